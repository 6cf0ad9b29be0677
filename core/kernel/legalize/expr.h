// Expr: operations of a kernel written as expressions, for what the legaliser puts in place of
// others. Types are those of the kernel IR; both sides of an operator are of one type.
#pragma once

#include "core/kernel/analysis/ranges.h"
#include "core/kernel/ir/builder.h"

namespace tenon::kernel {

/// A value and the builder that it belongs to. A number beside one is a constant of its type.
struct Expr {
  Builder* builder = nullptr;
  ValueId id = kNone;

  ElementType type() const { return builder->type_of(id); }
  bool is_signed() const { return is_signed_integer(type()); }
  Expr like(int64_t number) const { return {builder, builder->integer(type(), number)}; }
  Expr op(OpCode code) const { return {builder, builder->unary(code, id)}; }
  Expr op(OpCode code, Expr y) const { return {builder, builder->binary(code, id, y.id)}; }
  Expr op(OpCode code, int64_t y) const { return op(code, like(y)); }
};

inline Expr operator+(Expr x, Expr y) { return x.op(OpCode::kAdd, y); }
inline Expr operator-(Expr x, Expr y) { return x.op(OpCode::kSub, y); }
inline Expr operator*(Expr x, Expr y) { return x.op(OpCode::kMul, y); }
inline Expr operator&(Expr x, Expr y) { return x.op(OpCode::kAnd, y); }
inline Expr operator|(Expr x, Expr y) { return x.op(OpCode::kOr, y); }
inline Expr operator^(Expr x, Expr y) { return x.op(OpCode::kXor, y); }
inline Expr operator<<(Expr x, Expr y) { return x.op(OpCode::kShl, y); }
/// Logical, of every type; see sar().
inline Expr operator>>(Expr x, Expr y) { return x.op(OpCode::kShr, y); }
inline Expr sar(Expr x, Expr y) { return x.op(OpCode::kSar, y); }
inline Expr operator==(Expr x, Expr y) { return x.op(OpCode::kEq, y); }
inline Expr operator!=(Expr x, Expr y) { return x.op(OpCode::kNe, y); }
inline Expr operator<(Expr x, Expr y) { return x.op(OpCode::kLt, y); }
inline Expr operator>(Expr x, Expr y) { return x.op(OpCode::kGt, y); }
inline Expr operator<=(Expr x, Expr y) { return x.op(OpCode::kLe, y); }
inline Expr operator>=(Expr x, Expr y) { return x.op(OpCode::kGe, y); }
inline Expr min(Expr x, Expr y) { return x.op(OpCode::kMin, y); }
inline Expr max(Expr x, Expr y) { return x.op(OpCode::kMax, y); }

inline Expr operator+(Expr x, int64_t y) { return x + x.like(y); }
inline Expr operator-(Expr x, int64_t y) { return x - x.like(y); }
inline Expr operator*(Expr x, int64_t y) { return x * x.like(y); }
inline Expr operator&(Expr x, int64_t y) { return x & x.like(y); }
inline Expr operator|(Expr x, int64_t y) { return x | x.like(y); }
inline Expr operator^(Expr x, int64_t y) { return x ^ x.like(y); }
inline Expr operator<<(Expr x, int64_t y) { return x << x.like(y); }
inline Expr operator>>(Expr x, int64_t y) { return x >> x.like(y); }
inline Expr sar(Expr x, int64_t y) { return sar(x, x.like(y)); }
inline Expr operator==(Expr x, int64_t y) { return x == x.like(y); }
inline Expr operator!=(Expr x, int64_t y) { return x != x.like(y); }
inline Expr operator<(Expr x, int64_t y) { return x < x.like(y); }
inline Expr operator>(Expr x, int64_t y) { return x > x.like(y); }
inline Expr operator<=(Expr x, int64_t y) { return x <= x.like(y); }
inline Expr operator>=(Expr x, int64_t y) { return x >= x.like(y); }

inline Expr both(Expr x, Expr y) { return x & y; }
inline Expr either(Expr x, Expr y) { return x | y; }
inline Expr complement(Expr x) { return x.op(OpCode::kNot); }
inline Expr clz(Expr x) { return x.op(OpCode::kClz); }
inline Expr multiply_high(Expr x, Expr y) { return x.op(OpCode::kMulHi, y); }
inline Expr select(Expr condition, Expr x, Expr y) {
  return {x.builder, x.builder->select(condition.id, x.id, y.id)};
}
inline Expr select(Expr condition, Expr x, int64_t y) { return select(condition, x, x.like(y)); }
inline Expr select(Expr condition, int64_t x, Expr y) { return select(condition, y.like(x), y); }
inline Expr convert(Expr x, ElementType type) {
  return {x.builder, x.builder->convert(x.id, type)};
}
inline Expr bitcast(Expr x, ElementType type) {
  return {x.builder, x.builder->bitcast(x.id, type)};
}

/// x, which is an integer known to lie in `range` if that is one of its type, written so that this
/// is proved (K10): what an operation was proved to give is not seen through those it becomes.
inline Expr known_within(Expr x, const Range& range) {
  const Range all = range_of_type(x.type());
  if (range.low < all.low || range.high > all.high) return x;
  Expr result = x;
  if (range.low > all.low) result = max(result, x.like(static_cast<int64_t>(range.low)));
  if (range.high < all.high) result = min(result, x.like(static_cast<int64_t>(range.high)));
  return result;
}

/// An index into a dimension, bounded by it unless its `range` proves that.
inline ValueId bounded_index(Builder& b, ValueId index, const Range& range, int64_t dim) {
  if ((range.low >= 0 && range.high < dim) || dim == 0) return index;
  return b.max(b.min(index, b.index(dim - 1)), b.index(0));
}

}  // namespace tenon::kernel
