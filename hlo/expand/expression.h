// Formulas over Builder values, written as formulas.
//
//   const Expr x(b, op.operand(0));
//   const Expr y = 0.5 * log1p(x * x / (1 + sqrt(1 + x * x)));
//
// A number takes the shape and element type of the expression it meets. All operands of an operator
// come from one builder.
#pragma once

#include <initializer_list>
#include <span>

#include "hlo/expand/expand_util.h"

namespace tenon::hlo::expand {

class Expr {
 public:
  Expr(Builder& b, Value value) : b_(&b), value_(value) {}
  Value value() const { return value_; }
  Builder& builder() const { return *b_; }
  ElementType type() const { return b_->ok() ? value_.type().element_type() : ElementType::kF32; }
  /// A constant of this expression's shape and type.
  Expr like(double number) const { return {*b_, b_->splat_like(value_, number)}; }
  Expr unary(OpCode code) const { return {*b_, b_->unary(code, value_)}; }
  Expr binary(OpCode code, Expr other) const {
    return {*b_, b_->binary(code, value_, other.value_)};
  }
  Expr compare(ComparisonDirection direction, Expr other) const {
    return {*b_, b_->compare(direction, value_, other.value_)};
  }

 private:
  Builder* b_;
  Value value_;
};

inline Expr operator+(Expr x, Expr y) { return x.binary(OpCode::kAdd, y); }
inline Expr operator-(Expr x, Expr y) { return x.binary(OpCode::kSubtract, y); }
inline Expr operator*(Expr x, Expr y) { return x.binary(OpCode::kMultiply, y); }
inline Expr operator/(Expr x, Expr y) { return x.binary(OpCode::kDivide, y); }
inline Expr operator+(Expr x, double y) { return x + x.like(y); }
inline Expr operator-(Expr x, double y) { return x - x.like(y); }
inline Expr operator*(Expr x, double y) { return x * x.like(y); }
inline Expr operator/(Expr x, double y) { return x / x.like(y); }
inline Expr operator+(double x, Expr y) { return y.like(x) + y; }
inline Expr operator-(double x, Expr y) { return y.like(x) - y; }
inline Expr operator*(double x, Expr y) { return y.like(x) * y; }
inline Expr operator/(double x, Expr y) { return y.like(x) / y; }
inline Expr operator-(Expr x) { return x.unary(OpCode::kNegate); }

inline Expr operator<(Expr x, Expr y) { return x.compare(ComparisonDirection::kLt, y); }
inline Expr operator>(Expr x, Expr y) { return x.compare(ComparisonDirection::kGt, y); }
inline Expr operator<=(Expr x, Expr y) { return x.compare(ComparisonDirection::kLe, y); }
inline Expr operator>=(Expr x, Expr y) { return x.compare(ComparisonDirection::kGe, y); }
inline Expr operator<(Expr x, double y) { return x < x.like(y); }
inline Expr operator>(Expr x, double y) { return x > x.like(y); }
inline Expr operator<=(Expr x, double y) { return x <= x.like(y); }
inline Expr operator>=(Expr x, double y) { return x >= x.like(y); }
inline Expr equals(Expr x, Expr y) { return x.compare(ComparisonDirection::kEq, y); }
inline Expr equals(Expr x, double y) { return equals(x, x.like(y)); }
inline Expr differs(Expr x, Expr y) { return x.compare(ComparisonDirection::kNe, y); }
inline Expr operator&(Expr x, Expr y) { return x.binary(OpCode::kAnd, y); }
inline Expr operator|(Expr x, Expr y) { return x.binary(OpCode::kOr, y); }
inline Expr operator!(Expr x) { return x.unary(OpCode::kNot); }

inline Expr select(Expr pred, Expr x, Expr y) {
  return {x.builder(), x.builder().select(pred.value(), x.value(), y.value())};
}
inline Expr select(Expr pred, double x, Expr y) { return select(pred, y.like(x), y); }
inline Expr select(Expr pred, Expr x, double y) { return select(pred, x, x.like(y)); }
inline Expr abs(Expr x) { return x.unary(OpCode::kAbs); }
inline Expr exp(Expr x) { return x.unary(OpCode::kExponential); }
inline Expr expm1(Expr x) { return x.unary(OpCode::kExponentialMinusOne); }
inline Expr log(Expr x) { return x.unary(OpCode::kLog); }
inline Expr log1p(Expr x) { return x.unary(OpCode::kLogPlusOne); }
inline Expr sqrt(Expr x) { return x.unary(OpCode::kSqrt); }
inline Expr sin(Expr x) { return x.unary(OpCode::kSine); }
inline Expr cos(Expr x) { return x.unary(OpCode::kCosine); }
inline Expr floor(Expr x) { return x.unary(OpCode::kFloor); }
inline Expr sign(Expr x) { return x.unary(OpCode::kSign); }
inline Expr is_finite(Expr x) { return x.unary(OpCode::kIsFinite); }
inline Expr atan2(Expr y, Expr x) { return y.binary(OpCode::kAtan2, x); }
inline Expr pow(Expr x, Expr y) { return x.binary(OpCode::kPower, y); }
inline Expr remainder(Expr x, Expr y) { return x.binary(OpCode::kRemainder, y); }
inline Expr maximum(Expr x, Expr y) { return x.binary(OpCode::kMaximum, y); }
inline Expr minimum(Expr x, Expr y) { return x.binary(OpCode::kMinimum, y); }
inline Expr real_part(Expr z) { return z.unary(OpCode::kReal); }
inline Expr imaginary_part(Expr z) { return z.unary(OpCode::kImag); }
inline Expr complex(Expr re, Expr im) {
  return {re.builder(), re.builder().make(OpCode::kComplex, {re.value(), im.value()})};
}

/// Horner's rule, highest coefficient first.
inline Expr polynomial(Expr x, std::span<const double> coefficients) {
  Expr sum = x.like(coefficients[0]);
  for (const double c : coefficients.subspan(1)) sum = sum * x + c;
  return sum;
}

/// `f` of the operands as expressions, in f32 when their type is narrower.
template <class F>
Values in_working_type(Builder& b, const Instruction& op, F f) {
  const ElementType type = op.operand_type(0).element_type();
  const bool narrow = is_float(type) && bit_width(type) < 32;
  std::vector<Expr> x;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    x.emplace_back(b, narrow ? b.convert(op.operand(i), ElementType::kF32) : op.operand(i));
  }
  if (!b.ok()) return done(b, {});
  const Expr result = f(x);
  return done(b, {narrow ? b.convert(result.value(), type) : result.value()});
}

}  // namespace tenon::hlo::expand
