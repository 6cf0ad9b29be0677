#include "core/kernel/verify/proofs.h"

#include <algorithm>
#include <map>

#include "core/kernel/analysis/ranges.h"
#include "core/kernel/ir/visitor.h"
#include "core/kernel/verify/verification.h"

namespace tenon::kernel {
namespace {

// Value numbering: equal expressions get equal numbers; 0 means unknown.
class Expressions {
 public:
  Expressions(std::map<std::vector<uint64_t>, uint64_t>& numbers, std::map<ValueId, uint64_t> sides)
      : numbers_(numbers), known_(std::move(sides)) {}

  // Numbers a node of the combination; called in order, operands first.
  void add(const Node& node) {
    if (!is_scalar_op(node.op)) {
      for (const ValueId result : node.results) known_[result] = 0;
      return;
    }
    std::vector<uint64_t> key = {2, static_cast<uint64_t>(node.op),
                                 static_cast<uint64_t>(node.type)};
    bool visible = true;
    for (const ValueId operand : node.operands) {
      key.push_back(of(operand));
      visible &= key.back() != 0;
    }
    if (is_commutative(node.op)) std::sort(key.begin() + 3, key.end());
    known_[node.results[0]] = visible ? number(std::move(key)) : 0;
  }

  uint64_t of(ValueId value) {
    const auto found = known_.find(value);
    if (found != known_.end()) return found->second;
    // A value from outside the combination: the same on both sides.
    return number({1, value});
  }

  uint64_t number(std::vector<uint64_t> key) {
    return numbers_.try_emplace(std::move(key), numbers_.size() + 1).first->second;
  }

 private:
  std::map<std::vector<uint64_t>, uint64_t>& numbers_;
  std::map<ValueId, uint64_t> known_;
};

class IndexVerifier {
 public:
  IndexVerifier(const Kernel& kernel, const std::vector<bool>& conditional)
      : kernel_(kernel), conditional_(conditional) {}

  std::optional<Violation> run() {
    const Ranges ranges(kernel_);
    std::vector<bool> proved(kernel_.values.size());
    for (NodeId n = 0; n < kernel_.nodes.size() && !violation_; ++n) {
      const Node& node = kernel_.node(n);
      at_ = n;
      if (is<OnTile>(node.op)) {
        tile_indices(node, ranges, proved);
        continue;
      }
      if (node.op == OpCode::kFor) {
        if (!arithmetic_fits(node.operands[0], ranges, proved) ||
            !arithmetic_fits(node.operands[1], ranges, proved)) {
          break;
        }
        continue;
      }
      if (!is<OnAccess>(node.op)) continue;
      const Memory& m = kernel_.memory(node.memories[0]);
      for (size_t d = 0; d < m.dims.size(); ++d) {
        const ValueId index = indices_of(node)[d];
        if (!arithmetic_fits(index, ranges, proved)) break;
        const IntegerRange& range = ranges.of(index);
        // A conditional statement may never run; the interpreter checks it.
        if (!conditional_[n] && m.dims[d] > 0 && (range.high < 0 || range.low >= m.dims[d])) {
          fail(KernelRule::kK7, "index {} of %{} is {} at least, the dimension has {} elements", d,
               m.name, static_cast<int64_t>(range.low), m.dims[d]);
          break;
        }
      }
    }
    return std::move(violation_);
  }

 private:
  template <class... Args>
  bool fail(KernelRule rule, fmt::format_string<Args...> format, Args&&... args) {
    if (!violation_) {
      violation_ = violation_of(kernel_, at_, rule, ErrorCode::kInvalidArgument,
                                fmt::format(format, std::forward<Args>(args)...));
    }
    return false;
  }

  // A start plus any position in the box must fit, as the expansion into loops adds them.
  bool tile_indices(const Node& node, const Ranges& ranges, std::vector<bool>& proved) {
    const size_t starts = node.operands.size() - (node.has_pad ? 1 : 0);
    int64_t extent = 0;
    for (const int64_t e : node.extents) extent = std::max(extent, e);
    const IntegerRange whole = range_of_type(kernel_.index_type);
    const Memory& c = kernel_.memory(node.memories[0]);
    for (size_t i = 0; i < 2 && c.space == Space::kPrivate; ++i) {
      const IntegerRange& range = ranges.of(node.operands[i]);
      if (range.low < 0 || range.high + node.extents[i] > c.dims[i] * c.dims[i + 2]) {
        return fail(KernelRule::kK7, "the box of contract is not proved to lie within the tile %{}",
                    c.name);
      }
    }
    for (size_t i = 0; i < starts; ++i) {
      const ValueId start = node.operands[i];
      if (!arithmetic_fits(start, ranges, proved)) return false;
      const IntegerRange& range = ranges.of(start);
      if (range.high + extent > whole.high || range.low - extent < whole.low) {
        return fail(KernelRule::kK10, "start {} of {} plus its box is not proved to fit {}", i,
                    op_name(node.op), name_of(kernel_.index_type));
      }
    }
    return true;
  }

  // Data are values that were loaded, carried, combined, or computed in another type: the
  // interpreter checks them.
  bool arithmetic_fits(ValueId index, const Ranges& ranges, std::vector<bool>& proved) {
    if (kernel_.index_type != ElementType::kS32) return true;
    std::vector<ValueId> work = {index};
    while (!work.empty()) {
      const ValueId value = work.back();
      work.pop_back();
      if (proved[value]) continue;
      proved[value] = true;
      if (kernel_.value(value).kind != ValueKind::kResult) continue;
      const Node& node = kernel_.node(kernel_.value(value).node);
      if (node.op == OpCode::kIf) {
        const auto place = std::find(node.results.begin(), node.results.end(), value);
        for (const BlockId b : node.blocks) {
          const Node& yield = kernel_.node(kernel_.block(b).nodes.back());
          work.push_back(yield.operands[static_cast<size_t>(place - node.results.begin())]);
        }
        continue;
      }
      if (!is_scalar_op(node.op) || is_float(node.from) || is_comparison(node.op)) continue;
      if (node.op == OpCode::kBitcast) continue;
      if (ranges.may_overflow(value)) {
        return fail(KernelRule::kK10, "index arithmetic ({}) is not proved to fit s32",
                    op_name(node.op));
      }
      if (node.op == OpCode::kConvert && node.from != kernel_.index_type) continue;
      work.insert(work.end(), node.operands.begin(), node.operands.end());
    }
    return true;
  }

  const Kernel& kernel_;
  const std::vector<bool>& conditional_;
  std::optional<Violation> violation_;
  NodeId at_ = 0;
};

}  // namespace

bool is_symmetric(const Kernel& kernel, const Node& node) {
  const Block& combine = kernel.block(node.blocks[1]);
  const size_t n = combine.arguments.size() / 2;
  std::map<std::vector<uint64_t>, uint64_t> numbers;
  std::map<ValueId, uint64_t> sides[2];
  for (size_t i = 0; i < 2 * n; ++i) {
    for (const size_t swapped : {0u, 1u}) {
      const uint64_t side = (i + swapped * n) % (2 * n);
      sides[swapped][combine.arguments[i]] =
          numbers.try_emplace({0, side}, numbers.size() + 1).first->second;
    }
  }
  Expressions straight(numbers, sides[0]);
  Expressions swapped(numbers, sides[1]);
  for (const NodeId id : combine.nodes) {
    if (kernel.node(id).op == OpCode::kYield) break;
    straight.add(kernel.node(id));
    swapped.add(kernel.node(id));
  }
  for (const ValueId value : kernel.node(combine.nodes.back()).operands) {
    const uint64_t number = straight.of(value);
    if (number == 0 || number != swapped.of(value)) return false;
  }
  return true;
}

std::optional<Violation> verify_indices(const Kernel& kernel,
                                        const std::vector<bool>& conditional) {
  return IndexVerifier(kernel, conditional).run();
}

}  // namespace tenon::kernel
