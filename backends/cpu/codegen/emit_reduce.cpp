// Reductions: one leaf after the other, or vectors of leaves whose lanes are combined at the end.
#include "backends/cpu/codegen/emitter.h"
#include "backends/llvm/operations.h"

namespace tenon::cpu {

using kernel::Node;
using kernel::ValueId;

namespace {

constexpr int64_t kAccumulators = 4;    // Their additions overlap.
constexpr size_t kMostLeafNodes = 100;  // For more than one accumulator.

}  // namespace

void CpuKernelEmitter::reduce(const Node& n) {
  // A few leaves are computed as scalars, so that they need not go through memory to become a
  // vector.
  const bool tiny = is_tiny(n.extents, n.blocks[0]);
  if (width_ == 1 && !tiny && reduce_by_vectors(flattened(n).node)) return;
  reduce_by_one(n);
}

void CpuKernelEmitter::reduce_by_one(const Node& n) {
  const Ids& indices = kernel_.block(n.blocks[0]).arguments;
  const bool tiny = is_tiny(n.extents, n.blocks[0]);
  const auto rows = tiny || (width_ > 1 && has_row_of_leaves(n))
                        ? rows_of_leaves(n)
                        : std::map<kernel::NodeId, std::vector<Value*>>();
  if (tiny || !rows.empty()) {
    Many carried = forms(n.operands);
    unrolled(indices, n.extents, [&, leaf = size_t{0}]() mutable {
      for (const auto& [load, vectors] : rows) provided_[load] = vectors[leaf];
      carried = combine(n, carried, block(n.blocks[0]));
      ++leaf;
    });
    for (const auto& [load, vectors] : rows) provided_.erase(load);
    return set(n.results, carried);
  }
  reduce_serially(n);
}

CpuKernelEmitter::Many CpuKernelEmitter::neutral(const Node& n) {
  llvm::Constant* const one = codegen::identity_of(context_, kernel_, n);
  if (one == nullptr) return {};
  return {{nullptr, b_.CreateVectorSplat(static_cast<unsigned>(width_), one), 0}};
}

CpuKernelEmitter::Many CpuKernelEmitter::horizontal(const Node& n, Many vectors) {
  const int64_t whole = width_;
  while (width_ > 1) {
    const int64_t half = width_ / 2;
    Many sides[2];
    for (int64_t s = 0; s < 2; ++s) {
      std::vector<int> which;
      for (int64_t lane = 0; lane < half; ++lane)
        which.push_back(static_cast<int>(s * half + lane));
      for (const Lanes& each : vectors) {
        if (half > 1) {
          sides[s].push_back({nullptr, b_.CreateShuffleVector(each.vector, which), 0});
        } else {
          sides[s].push_back(
              {b_.CreateExtractElement(each.vector, static_cast<uint64_t>(s)), nullptr, 0});
        }
      }
    }
    width_ = half;
    vectors = combine(n, sides[0], sides[1]);
    if (half == 1) break;
    for (Lanes& each : vectors) each = {nullptr, vector_of(each), 0};
  }
  width_ = whole;
  return vectors;
}

// Vectors of accumulators; each lane combines some of the leaves. Several vectors alternate along
// the plan's dimension, so that their combinations overlap.
class CpuKernelEmitter::PartialSums {
 public:
  PartialSums(CpuKernelEmitter& emitter, const Node& n, const VectorPlan& plan)
      : e_(emitter),
        b_(emitter.b_),
        n_(n),
        dimension_(plan.dimension),
        extent_(n.extents[plan.dimension]),
        indices_(emitter.kernel_.block(n.blocks[0]).arguments),
        results_(n.results.size()),
        neutral_(emitter.neutral(n)),
        known_(!neutral_.empty()) {
    const bool several =
        extent_ >= kAccumulators * e_.width_ && e_.varying_->nodes() <= kMostLeafNodes;
    accumulators_ = several ? static_cast<size_t>(kAccumulators) : 1;
    for (size_t i = 0; !known_ && i < results_; ++i) {
      llvm::Type* const type = e_.type_of(e_.kernel_.value(n.results[i]).type, true);
      neutral_.push_back({nullptr, llvm::Constant::getNullValue(type), 0});
    }
    for (size_t a = 0; a < accumulators_; ++a) {
      like_.insert(like_.end(), n.results.begin(), n.results.end());
    }
  }

  Many run() {
    Many inits;
    for (size_t a = 0; a < accumulators_; ++a) {
      inits.insert(inits.end(), neutral_.begin(), neutral_.end());
    }
    Many sums = around(0, inits);
    for (size_t a = 1; a < accumulators_; ++a) {
      const Many both = e_.combine(n_, part(sums, 0), part(sums, a));
      for (size_t i = 0; i < results_; ++i) sums[i] = {nullptr, e_.vector_of(both[i]), 0};
    }
    sums.resize(results_);
    return sums;
  }

 private:
  Many part(const Many& all, size_t which) const {
    const auto at = all.begin() + static_cast<std::ptrdiff_t>(which * results_);
    return {at, at + static_cast<std::ptrdiff_t>(results_)};
  }

  // Loops over the other dimensions.
  Many around(size_t d, const Many& carried) {
    if (d == dimension_) ++d;
    if (d >= n_.extents.size()) return along(carried);
    return e_.loop(e_.number(0), e_.number(n_.extents[d]), 1, like_, carried,
                   [&](Value* i, const Many& inner) {
                     e_.values_[indices_[d]] = e_.index_from(i);
                     return around(d + 1, inner);
                   });
  }

  // Iterations with leaves for all of the vectors, then for one, then for some of its lanes.
  Many along(const Many& before) {
    const int64_t stride = static_cast<int64_t>(accumulators_) * e_.width_;
    // There is always an accumulator.
    const int64_t main = extent_ / stride * stride;  // NOLINT(clang-analyzer-core.DivideZero)
    const int64_t full = extent_ / e_.width_ * e_.width_;
    Many carried = turns(0, main, accumulators_, before);
    if (full > main) carried = turns(main, full, 1, carried);
    if (extent_ == full) return carried;
    Value* const left = b_.getInt32(static_cast<uint32_t>(extent_ - full));
    Value* const mask = b_.CreateICmpULT(
        e_.steps(b_.getInt32Ty(), 1), b_.CreateVectorSplat(static_cast<unsigned>(e_.width_), left));
    take(carried, 0, e_.number(full), e_.number(full), mask);
    return carried;
  }

  Many turns(int64_t low, int64_t high, size_t vectors, const Many& before) {
    return e_.loop(e_.number(low), e_.number(high), static_cast<int64_t>(vectors) * e_.width_,
                   like_, before, [&](Value* place, const Many& inner) {
                     Many next = inner;
                     for (size_t a = 0; a < vectors; ++a) {
                       Value* const mine =
                           b_.CreateAdd(place, e_.number(static_cast<int64_t>(a) * e_.width_));
                       take(next, a, place, mine, nullptr);
                     }
                     return next;
                   });
  }

  // Combines the leaves from `place` on with one of the vectors. Without a neutral element, the
  // first leaves become the initial values; `start` is the start of this iteration of the loop.
  void take(Many& carried, size_t which, Value* start, Value* place, Value* mask) {
    e_.values_[indices_[dimension_]] = e_.index_from(place, 1);
    e_.mask_ = mask;
    const Many leaf = e_.block(n_.blocks[0]);
    e_.mask_ = nullptr;
    const Many mine = part(carried, which);
    const Many both = e_.combine(n_, mine, leaf);
    for (size_t i = 0; i < results_; ++i) {
      Value* next = e_.vector_of(both[i]);
      if (!known_) next = b_.CreateSelect(is_first(start), e_.vector_of(leaf[i]), next);
      if (mask != nullptr) next = b_.CreateSelect(mask, next, e_.vector_of(mine[i]));
      carried[which * results_ + i] = {nullptr, next, 0};
    }
  }

  Value* is_first(Value* place) {
    Value* first = b_.CreateICmpEQ(place, e_.number(0));
    for (size_t d = 0; d < n_.extents.size(); ++d) {
      if (d == dimension_) continue;
      Value* const index = e_.form(indices_[d]).scalar;
      first = b_.CreateAnd(first, b_.CreateICmpEQ(index, e_.index(0)));
    }
    return first;
  }

  CpuKernelEmitter& e_;
  llvm::IRBuilder<>& b_;
  const Node& n_;
  const size_t dimension_;
  const int64_t extent_;
  const Ids& indices_;
  const size_t results_;
  Many neutral_;
  const bool known_;
  size_t accumulators_ = 1;
  Ids like_;  // The value whose type each accumulator has: the results, once per accumulator.
};

bool CpuKernelEmitter::reduce_by_vectors(const Node& n) {
  if (!n.commutative || !only_computes(n.blocks[1])) return false;
  for (const int64_t extent : n.extents) {
    if (extent < 1) return false;
  }
  VectorPlan plan = plan_of(n);
  const int64_t extent = n.extents.empty() ? 0 : n.extents[plan.dimension];
  while (plan.width > extent) plan.width /= 2;  // Each lane must have a leaf.
  if (plan.width < 2) return false;
  const Varying varying(kernel_, n, {kernel_.block(n.blocks[0]).arguments[plan.dimension]});
  for (const ValueId result : n.results) {
    if (!varying(result)) return false;
  }
  Many total;
  in_lanes(plan.width, varying, [&] { total = horizontal(n, PartialSums(*this, n, plan).run()); });
  set(n.results, combine(n, forms(n.operands), total));
  return true;
}

}  // namespace tenon::cpu
