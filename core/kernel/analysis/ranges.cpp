#include "core/kernel/analysis/ranges.h"

#include <algorithm>

#include "core/kernel/ir/visitor.h"
#include "core/types/float_convert.h"

namespace tenon::kernel {
namespace {

IntegerRange hull(const IntegerRange& x, const IntegerRange& y) {
  return {std::min(x.low, y.low), std::max(x.high, y.high)};
}

// Exceeds every type, so that it counts as wrapping around.
IntegerRange unknown(const IntegerRange& whole) { return {whole.low - 1, whole.high + 1}; }

IntegerRange product(const IntegerRange& x, const IntegerRange& y, const IntegerRange& whole) {
  __int128 corners[4] = {};
  const bool fits = !__builtin_mul_overflow(x.low, y.low, &corners[0]) &&
                    !__builtin_mul_overflow(x.low, y.high, &corners[1]) &&
                    !__builtin_mul_overflow(x.high, y.low, &corners[2]) &&
                    !__builtin_mul_overflow(x.high, y.high, &corners[3]);
  if (!fits) return unknown(whole);
  return {*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4)};
}

IntegerRange quotient(const IntegerRange& x, const IntegerRange& y) {
  const __int128 corners[] = {x.low / y.low, x.low / y.high, x.high / y.low, x.high / y.high};
  IntegerRange result = {*std::min_element(corners, corners + 4),
                         *std::max_element(corners, corners + 4)};
  return x.low <= 0 && x.high >= 0 ? hull(result, {0, 0}) : result;
}

}  // namespace

IntegerRange range_of_type(ElementType type) {
  if (is_pred(type)) return {0, 1};
  if (!is_integer(type)) return {-(static_cast<__int128>(1) << 62), static_cast<__int128>(1) << 62};
  const int width = bit_width(type);
  if (is_signed_integer(type)) {
    return {-(static_cast<__int128>(1) << (width - 1)),
            (static_cast<__int128>(1) << (width - 1)) - 1};
  }
  return {0, (static_cast<__int128>(1) << width) - 1};
}

Ranges::Ranges(const Kernel& kernel)
    : kernel_(kernel), ranges_(kernel.values.size()), overflows_(kernel.values.size()) {
  for (ValueId v = 0; v < kernel.values.size(); ++v) {
    const Value& value = kernel.value(v);
    ranges_[v] = range_of_type(value.type);
    if (value.kind == ValueKind::kConstant && !is_float(value.type)) {
      const __int128 number = is_unsigned_integer(value.type)
                                  ? static_cast<__int128>(value.bits)
                                  : static_cast<__int128>(static_cast<int64_t>(value.bits));
      ranges_[v] = {number, number};
    }
  }
  const Block& body = kernel.block(kernel.body);
  for (size_t d = 0; d < kernel.grid.size(); ++d) {
    ranges_[body.arguments[d]] = {0, std::max<int64_t>(kernel.grid[d] - 1, 0)};
  }
  block(kernel.body);
}

void Ranges::block(BlockId id) {
  for (const NodeId n : kernel_.block(id).nodes) node(kernel_.node(n));
}

void Ranges::node(const Node& node) {
  if (is_scalar_op(node.op)) {
    set(node.results[0], scalar(node));
    return;
  }
  arguments(node);
  for (const BlockId b : node.blocks) block(b);
  if (node.op != OpCode::kIf) return;
  const Node& then = kernel_.node(kernel_.block(node.blocks[0]).nodes.back());
  const Node& otherwise = kernel_.node(kernel_.block(node.blocks[1]).nodes.back());
  for (size_t i = 0; i < node.results.size(); ++i) {
    ranges_[node.results[i]] = hull(of(then.operands[i]), of(otherwise.operands[i]));
  }
}

// Sets the ranges of induction variables; carried values may be anything.
void Ranges::arguments(const Node& node) {
  const auto indices = [&](BlockId b) {
    const Block& block = kernel_.block(b);
    for (size_t d = 0; d < node.extents.size(); ++d) {
      ranges_[block.arguments[d]] = {0, std::max<int64_t>(node.extents[d] - 1, 0)};
    }
  };
  visit(node, Overloads{
                  [](OnNode) {},  // It has no induction variable.
                  [&](OnLanes) { indices(node.blocks[0]); },
                  [&](OnReduce) { indices(node.blocks[0]); },
                  [&](OnScan) {
                    indices(node.blocks[0]);
                    indices(node.blocks[2]);
                  },
                  [&](OnFor) {
                    const IntegerRange low = of(node.operands[0]);
                    const IntegerRange high = of(node.operands[1]);
                    ranges_[kernel_.block(node.blocks[0]).arguments[0]] = {
                        low.low, std::max(low.low, high.high - 1)};
                  },
              });
}

IntegerRange Ranges::scalar(const Node& node) const {
  const IntegerRange whole = range_of_type(kernel_.value(node.results[0]).type);
  if (is_float(node.type) || is_float(node.from) || is_comparison(node.op)) return whole;
  const IntegerRange x = of(node.operands[0]);
  const IntegerRange y = node.operands.size() > 1 ? of(node.operands[1]) : x;
  switch (node.op) {
    case OpCode::kAdd:
      return {x.low + y.low, x.high + y.high};
    case OpCode::kSub:
      return {x.low - y.high, x.high - y.low};
    case OpCode::kMul:
      return product(x, y, whole);
    case OpCode::kNeg:
      return {-x.high, -x.low};
    case OpCode::kMin:
      return {std::min(x.low, y.low), std::min(x.high, y.high)};
    case OpCode::kMax:
      return {std::max(x.low, y.low), std::max(x.high, y.high)};
    case OpCode::kDiv:
      return y.low > 0 ? quotient(x, y) : whole;
    case OpCode::kRem:
      if (y.low <= 0) return whole;
      return {x.low >= 0 ? 0 : std::max(x.low, 1 - y.high),
              x.high <= 0 ? 0 : std::min(x.high, y.high - 1)};
    case OpCode::kAnd:
      return x.low >= 0 && y.low >= 0 ? IntegerRange{0, std::min(x.high, y.high)} : whole;
    case OpCode::kShl:
      if (y.low < 0 || y.high >= bit_width(node.type) || y.high > 62 || x.low < 0) {
        return unknown(whole);
      }
      return {x.low << static_cast<int>(y.low), x.high << static_cast<int>(y.high)};
    case OpCode::kShr:
    case OpCode::kSar:
      // sar treats the most significant bit of an unsigned number as its sign.
      if (node.op == OpCode::kSar && is_unsigned_integer(node.type)) return whole;
      if (y.low < 0 || y.high > 62 || x.low < 0) return whole;
      return {x.low >> static_cast<int>(y.high), x.high >> static_cast<int>(y.low)};
    case OpCode::kSelect:
      return hull(of(node.operands[1]), of(node.operands[2]));
    case OpCode::kConvert:
      return is_pred(node.type) ? whole : x;
    default:
      return whole;
  }
}

void Ranges::set(ValueId value, const IntegerRange& range) {
  const IntegerRange whole = range_of_type(kernel_.value(value).type);
  const bool fits = range.low >= whole.low && range.high <= whole.high;
  ranges_[value] = fits ? range : whole;
  overflows_[value] = !fits;
}

}  // namespace tenon::kernel
