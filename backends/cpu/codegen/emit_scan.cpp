// Scans: one element after the other, or vectors whose lanes are scanned in registers.
#include "backends/cpu/codegen/emitter.h"
#include "backends/llvm/operations.h"

namespace tenon::cpu {

using kernel::Node;
using kernel::ValueId;

void CpuKernelEmitter::scan(const Node& n) {
  if (width_ == 1 && n.over_lanes && scan_by_vectors(n)) return;
  const Ids& each = kernel_.block(n.blocks[2]).arguments;
  const ValueId of_leaf = kernel_.block(n.blocks[0]).arguments[0];
  set(n.results, loop(number(0), number(n.extents[0]), 1, n.results, forms(n.operands),
                      [&](Value* i, const Many& before) {
                        values_[of_leaf] = values_[each[0]] = index_from(i);
                        const Many prefix = combine(n, before, block(n.blocks[0]));
                        set(each, prefix, 1);
                        block(n.blocks[2]);
                        return prefix;
                      }));
}

// Vectors of prefixes. The lanes of one are scanned in log2(width) steps (Hillis and Steele, "Data
// parallel algorithms", CACM 29(12), 1986), which do not wait for the vector before; then the
// prefix before them is combined with all lanes at once.
class CpuKernelEmitter::VectorScan {
 public:
  VectorScan(CpuKernelEmitter& emitter, const Node& n)
      : e_(emitter),
        b_(emitter.b_),
        n_(n),
        each_(emitter.kernel_.block(n.blocks[2]).arguments),
        of_leaf_(emitter.kernel_.block(n.blocks[0]).arguments[0]),
        neutral_(emitter.neutral(n)) {}

  /// The last prefix, in every lane.
  Many run() {
    Many before = e_.forms(n_.operands);
    for (Lanes& init : before) init = {nullptr, e_.vector_of(init), 0};
    const int64_t extent = n_.extents[0];
    const int64_t full = extent / e_.width_ * e_.width_;
    before =
        e_.loop(e_.number(0), e_.number(full), e_.width_, n_.results, before,
                [&](Value* place, const Many& inner) { return strip(place, inner, e_.width_); });
    return full == extent ? before : strip(e_.number(full), before, extent - full);
  }

 private:
  // The prefixes of the elements from `place` on, of which there are `count`.
  Many strip(Value* place, const Many& before, int64_t count) {
    Value* mask = nullptr;
    if (count < e_.width_) {
      Value* const left = b_.getInt32(static_cast<uint32_t>(count));
      mask = b_.CreateICmpULT(e_.steps(b_.getInt32Ty(), 1), splat(left));
    }
    e_.values_[of_leaf_] = e_.values_[each_[0]] = e_.index_from(place, 1);
    e_.mask_ = mask;
    const Many leaves = e_.block(n_.blocks[0]);
    e_.mask_ = nullptr;
    const Many prefixes = vectors(e_.combine(n_, before, scanned(vectors(leaves))));
    e_.set(each_, prefixes, 1);
    e_.mask_ = mask;
    e_.block(n_.blocks[2]);
    e_.mask_ = nullptr;
    return shuffled(prefixes, [&](int64_t) { return count - 1; });
  }

  Many scanned(Many lanes) {
    for (int64_t step = 1; step < e_.width_; step *= 2) {
      const auto from = [&](int64_t lane) { return lane < step ? lane : lane - step; };
      if (!neutral_.empty()) {
        lanes = vectors(e_.combine(n_, {shifted(lanes[0], step)}, lanes));
        continue;
      }
      const Many both = vectors(e_.combine(n_, shuffled(lanes, from), lanes));
      Value* const changed = b_.CreateICmpUGE(e_.steps(b_.getInt32Ty(), 1),
                                              splat(b_.getInt32(static_cast<uint32_t>(step))));
      for (size_t i = 0; i < lanes.size(); ++i)
        lanes[i].vector = b_.CreateSelect(changed, both[i].vector, lanes[i].vector);
    }
    return lanes;
  }

  // Each lane that of `step` lanes before, the first ones the identity element.
  Lanes shifted(const Lanes& lanes, int64_t step) {
    std::vector<int> from;
    for (int64_t lane = 0; lane < e_.width_; ++lane)
      from.push_back(static_cast<int>(lane < step ? e_.width_ : lane - step));
    return {nullptr, b_.CreateShuffleVector(lanes.vector, neutral_[0].vector, from), 0};
  }

  template <class From>
  Many shuffled(Many lanes, const From& lane_from) {
    std::vector<int> from;
    for (int64_t lane = 0; lane < e_.width_; ++lane)
      from.push_back(static_cast<int>(lane_from(lane)));
    for (Lanes& each : lanes) each = {nullptr, b_.CreateShuffleVector(each.vector, from), 0};
    return lanes;
  }

  Many vectors(Many lanes) {
    for (Lanes& each : lanes) each = {nullptr, e_.vector_of(each), 0};
    return lanes;
  }
  Value* splat(Value* value) {
    return b_.CreateVectorSplat(static_cast<unsigned>(e_.width_), value);
  }

  CpuKernelEmitter& e_;
  llvm::IRBuilder<>& b_;
  const Node& n_;
  const Ids& each_;
  const ValueId of_leaf_;
  const Many neutral_;
};

bool CpuKernelEmitter::scan_by_vectors(const Node& n) {
  if (!only_computes(n.blocks[1])) return false;
  VectorPlan plan = plan_of(n);
  while (plan.width > n.extents[0]) plan.width /= 2;
  if (plan.width < 2) return false;
  const Varying varying(kernel_, n, {kernel_.block(n.blocks[0]).arguments[0]});
  for (const ValueId result : n.results) {
    if (!varying(result)) return false;
  }
  Many last;
  in_lanes(plan.width, varying, [&] {
    last = VectorScan(*this, n).run();
    for (Lanes& each : last) each = {b_.CreateExtractElement(each.vector, uint64_t{0}), nullptr, 0};
  });
  set(n.results, last);
  return true;
}

}  // namespace tenon::cpu
