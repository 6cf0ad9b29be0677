// KernelExpr: kernel operations written as expressions, for the replacements that the legaliser
// makes. Types are those of the kernel IR; both operands of an operator have the same type.
#pragma once

#include "core/kernel/analysis/ranges.h"
#include "core/kernel/ir/builder.h"

namespace tenon::kernel {

/// A value and its builder. A number as the other operand becomes a constant of the value's type.
struct KernelExpr {
  Builder* builder = nullptr;
  ValueId id = kNone;

  ElementType type() const { return builder->type_of(id); }
  bool is_signed() const { return is_signed_integer(type()); }
  KernelExpr like(int64_t number) const { return {builder, builder->integer(type(), number)}; }
  KernelExpr op(OpCode code) const { return {builder, builder->unary(code, id)}; }
  KernelExpr op(OpCode code, KernelExpr y) const {
    return {builder, builder->binary(code, id, y.id)};
  }
  KernelExpr op(OpCode code, int64_t y) const { return op(code, like(y)); }
};

inline KernelExpr operator+(KernelExpr x, KernelExpr y) { return x.op(OpCode::kAdd, y); }
inline KernelExpr operator-(KernelExpr x, KernelExpr y) { return x.op(OpCode::kSub, y); }
inline KernelExpr operator*(KernelExpr x, KernelExpr y) { return x.op(OpCode::kMul, y); }
inline KernelExpr operator&(KernelExpr x, KernelExpr y) { return x.op(OpCode::kAnd, y); }
inline KernelExpr operator|(KernelExpr x, KernelExpr y) { return x.op(OpCode::kOr, y); }
inline KernelExpr operator^(KernelExpr x, KernelExpr y) { return x.op(OpCode::kXor, y); }
inline KernelExpr operator<<(KernelExpr x, KernelExpr y) { return x.op(OpCode::kShl, y); }
/// Logical for every type; see sar().
inline KernelExpr operator>>(KernelExpr x, KernelExpr y) { return x.op(OpCode::kShr, y); }
inline KernelExpr sar(KernelExpr x, KernelExpr y) { return x.op(OpCode::kSar, y); }
inline KernelExpr operator==(KernelExpr x, KernelExpr y) { return x.op(OpCode::kEq, y); }
inline KernelExpr operator!=(KernelExpr x, KernelExpr y) { return x.op(OpCode::kNe, y); }
inline KernelExpr operator<(KernelExpr x, KernelExpr y) { return x.op(OpCode::kLt, y); }
inline KernelExpr operator>(KernelExpr x, KernelExpr y) { return x.op(OpCode::kGt, y); }
inline KernelExpr operator<=(KernelExpr x, KernelExpr y) { return x.op(OpCode::kLe, y); }
inline KernelExpr operator>=(KernelExpr x, KernelExpr y) { return x.op(OpCode::kGe, y); }
inline KernelExpr min(KernelExpr x, KernelExpr y) { return x.op(OpCode::kMin, y); }
inline KernelExpr max(KernelExpr x, KernelExpr y) { return x.op(OpCode::kMax, y); }

inline KernelExpr operator+(KernelExpr x, int64_t y) { return x + x.like(y); }
inline KernelExpr operator-(KernelExpr x, int64_t y) { return x - x.like(y); }
inline KernelExpr operator*(KernelExpr x, int64_t y) { return x * x.like(y); }
inline KernelExpr operator&(KernelExpr x, int64_t y) { return x & x.like(y); }
inline KernelExpr operator|(KernelExpr x, int64_t y) { return x | x.like(y); }
inline KernelExpr operator^(KernelExpr x, int64_t y) { return x ^ x.like(y); }
inline KernelExpr operator<<(KernelExpr x, int64_t y) { return x << x.like(y); }
inline KernelExpr operator>>(KernelExpr x, int64_t y) { return x >> x.like(y); }
inline KernelExpr sar(KernelExpr x, int64_t y) { return sar(x, x.like(y)); }
inline KernelExpr operator==(KernelExpr x, int64_t y) { return x == x.like(y); }
inline KernelExpr operator!=(KernelExpr x, int64_t y) { return x != x.like(y); }
inline KernelExpr operator<(KernelExpr x, int64_t y) { return x < x.like(y); }
inline KernelExpr operator>(KernelExpr x, int64_t y) { return x > x.like(y); }
inline KernelExpr operator<=(KernelExpr x, int64_t y) { return x <= x.like(y); }
inline KernelExpr operator>=(KernelExpr x, int64_t y) { return x >= x.like(y); }

inline KernelExpr both(KernelExpr x, KernelExpr y) { return x & y; }
inline KernelExpr either(KernelExpr x, KernelExpr y) { return x | y; }
inline KernelExpr complement(KernelExpr x) { return x.op(OpCode::kNot); }
inline KernelExpr clz(KernelExpr x) { return x.op(OpCode::kClz); }
inline KernelExpr multiply_high(KernelExpr x, KernelExpr y) { return x.op(OpCode::kMulHi, y); }
inline KernelExpr select(KernelExpr condition, KernelExpr x, KernelExpr y) {
  return {x.builder, x.builder->select(condition.id, x.id, y.id)};
}
inline KernelExpr select(KernelExpr condition, KernelExpr x, int64_t y) {
  return select(condition, x, x.like(y));
}
inline KernelExpr select(KernelExpr condition, int64_t x, KernelExpr y) {
  return select(condition, y.like(x), y);
}
inline KernelExpr convert(KernelExpr x, ElementType type) {
  return {x.builder, x.builder->convert(x.id, type)};
}
inline KernelExpr bitcast(KernelExpr x, ElementType type) {
  return {x.builder, x.builder->bitcast(x.id, type)};
}

/// An expression with the value of the integer x which proves that it lies in `range` (K10), if
/// `range` is one of x's type. A range that was proved of an operation cannot be proved again of
/// the operation's expansion.
inline KernelExpr known_within(KernelExpr x, const IntegerRange& range) {
  const IntegerRange all = range_of_type(x.type());
  if (range.low < all.low || range.high > all.high) return x;
  KernelExpr result = x;
  if (range.low > all.low) result = max(result, x.like(static_cast<int64_t>(range.low)));
  if (range.high < all.high) result = min(result, x.like(static_cast<int64_t>(range.high)));
  return result;
}

/// An index into a dimension, clamped to the dimension unless `range` proves that it fits.
inline ValueId bounded_index(Builder& b, ValueId index, const IntegerRange& range, int64_t dim) {
  if ((range.low >= 0 && range.high < dim) || dim == 0) return index;
  return b.max(b.min(index, b.index(dim - 1)), b.index(0));
}

}  // namespace tenon::kernel
