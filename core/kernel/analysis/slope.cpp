#include "core/kernel/analysis/slope.h"

#include <algorithm>

#include "core/kernel/ir/ops.h"
#include "core/kernel/ir/visitor.h"

namespace tenon::kernel {
namespace {

using Slope = std::optional<int64_t>;

Slope sum(Slope x, Slope y, int64_t sign) {
  int64_t scaled = 0;
  int64_t total = 0;
  const bool fits = x && y && !__builtin_mul_overflow(*y, sign, &scaled) &&
                    !__builtin_add_overflow(*x, scaled, &total);
  return fits ? Slope(total) : std::nullopt;
}

}  // namespace

Slope Slopes::of(ValueId value) {
  if (value == index_) return 1;
  const Value& v = kernel_.value(value);
  if (v.kind != ValueKind::kResult) return 0;  // Indices of other loops too.
  const auto found = known_.find(value);
  if (found != known_.end()) return found->second;
  const Slope slope = compute(kernel_.node(v.node));
  known_.emplace(value, slope);
  return slope;
}

Slope Slopes::compute(const Node& node) {
  const bool is_fixed = std::ranges::all_of(node.operands, [&](ValueId x) { return of(x) == 0; });
  // A statement with blocks may depend on the index by values that are used within them.
  if (is_fixed && node.blocks.empty()) return 0;
  if (!is<OnScalar>(node.op) || !is_integer(kernel_.value(node.results[0]).type)) return {};
  const auto operand = [&](size_t i) { return node.operands[i]; };
  switch (node.op) {
    case OpCode::kAdd:
      return sum(of(operand(0)), of(operand(1)), 1);
    case OpCode::kSub:
      return sum(of(operand(0)), of(operand(1)), -1);
    case OpCode::kMul:
      for (const size_t i : {size_t{0}, size_t{1}}) {
        const Value& factor = kernel_.value(operand(i));
        if (factor.kind != ValueKind::kConstant) continue;
        return sum(0, of(operand(1 - i)), static_cast<int64_t>(factor.bits));
      }
      return {};
    default:
      return {};
  }
}

Slope Slopes::of_place(const Node& access) {
  const Dims strides = kernel_.memory(access.memories[0]).resolved_strides();
  Slope slope = 0;
  for (size_t d = 0; const ValueId index : indices_of(access)) {
    slope = sum(slope, of(index), strides[d++]);
  }
  return slope;
}

}  // namespace tenon::kernel
