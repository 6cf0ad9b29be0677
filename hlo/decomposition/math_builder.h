// Expressions over a Builder, for decompositions that are formulas. Private to hlo/decomposition.
#pragma once

#include <limits>
#include <span>

#include "hlo/decomposition/decomposition.h"

namespace tenon::hlo::decomposition {

inline constexpr double kPi = 3.14159265358979323846;
inline constexpr double kLogOf2 = 0.69314718055994530942;
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// A value with the operators of its element type: `exp(-x * x) / 2.0` appends the corresponding
/// ops. A number as the other operand gets the shape and type of the expression. Comparisons give
/// expressions of type pred.
///
/// As with Builder, after an error everything is a no-op, and the builder's status has the error.
class Expr {
 public:
  Expr() = default;
  Expr(Builder& builder, Value value) : builder_(&builder), value_(value) {}

  Builder& builder() const { return *builder_; }
  Value value() const { return value_; }
  /// pred after an error.
  ElementType type() const { return value_ ? value_.type().element_type() : ElementType::kPred; }
  /// `number` with this expression's type and shape.
  Expr constant(double number) const { return {*builder_, builder_->splat_like(value_, number)}; }

  Expr apply(OpCode code) const { return {*builder_, builder_->unary(code, value_)}; }
  Expr apply(OpCode code, const Expr& y) const {
    return {*builder_, builder_->binary(code, value_, y.value_)};
  }
  Expr compare(ComparisonDirection direction, const Expr& y,
               ComparisonType type = ComparisonType::kNoType) const {
    return {*builder_, builder_->compare(direction, value_, y.value_, type)};
  }

 private:
  Builder* builder_ = nullptr;
  Value value_;
};

inline Expr operator+(const Expr& x, const Expr& y) { return x.apply(OpCode::kAdd, y); }
inline Expr operator-(const Expr& x, const Expr& y) { return x.apply(OpCode::kSubtract, y); }
inline Expr operator*(const Expr& x, const Expr& y) { return x.apply(OpCode::kMultiply, y); }
inline Expr operator/(const Expr& x, const Expr& y) { return x.apply(OpCode::kDivide, y); }
inline Expr operator+(const Expr& x, double y) { return x + x.constant(y); }
inline Expr operator-(const Expr& x, double y) { return x - x.constant(y); }
inline Expr operator*(const Expr& x, double y) { return x * x.constant(y); }
inline Expr operator/(const Expr& x, double y) { return x / x.constant(y); }
inline Expr operator+(double x, const Expr& y) { return y.constant(x) + y; }
inline Expr operator-(double x, const Expr& y) { return y.constant(x) - y; }
inline Expr operator*(double x, const Expr& y) { return y.constant(x) * y; }
inline Expr operator/(double x, const Expr& y) { return y.constant(x) / y; }
inline Expr operator-(const Expr& x) { return x.apply(OpCode::kNegate); }

// Bitwise; logical for pred.
inline Expr operator&(const Expr& x, const Expr& y) { return x.apply(OpCode::kAnd, y); }
inline Expr operator|(const Expr& x, const Expr& y) { return x.apply(OpCode::kOr, y); }
inline Expr operator^(const Expr& x, const Expr& y) { return x.apply(OpCode::kXor, y); }
inline Expr operator!(const Expr& x) { return x.apply(OpCode::kNot); }
inline Expr shift_left(const Expr& x, const Expr& y) { return x.apply(OpCode::kShiftLeft, y); }
inline Expr shift_right(const Expr& x, const Expr& y) {
  return x.apply(OpCode::kShiftRightLogical, y);
}

inline Expr operator==(const Expr& x, const Expr& y) {
  return x.compare(ComparisonDirection::kEq, y);
}
inline Expr operator!=(const Expr& x, const Expr& y) {
  return x.compare(ComparisonDirection::kNe, y);
}
inline Expr operator<(const Expr& x, const Expr& y) {
  return x.compare(ComparisonDirection::kLt, y);
}
inline Expr operator<=(const Expr& x, const Expr& y) {
  return x.compare(ComparisonDirection::kLe, y);
}
inline Expr operator>(const Expr& x, const Expr& y) {
  return x.compare(ComparisonDirection::kGt, y);
}
inline Expr operator>=(const Expr& x, const Expr& y) {
  return x.compare(ComparisonDirection::kGe, y);
}
inline Expr operator==(const Expr& x, double y) { return x == x.constant(y); }
inline Expr operator!=(const Expr& x, double y) { return x != x.constant(y); }
inline Expr operator<(const Expr& x, double y) { return x < x.constant(y); }
inline Expr operator<=(const Expr& x, double y) { return x <= x.constant(y); }
inline Expr operator>(const Expr& x, double y) { return x > x.constant(y); }
inline Expr operator>=(const Expr& x, double y) { return x >= x.constant(y); }

inline Expr select(const Expr& pred, const Expr& on_true, const Expr& on_false) {
  Builder& b = on_true.builder();
  return {b, b.select(pred.value(), on_true.value(), on_false.value())};
}
inline Expr select(const Expr& pred, double on_true, const Expr& on_false) {
  return select(pred, on_false.constant(on_true), on_false);
}
inline Expr select(const Expr& pred, const Expr& on_true, double on_false) {
  return select(pred, on_true, on_true.constant(on_false));
}

inline Expr abs(const Expr& x) { return x.apply(OpCode::kAbs); }
inline Expr atan2(const Expr& y, const Expr& x) { return y.apply(OpCode::kAtan2, x); }
inline Expr cos(const Expr& x) { return x.apply(OpCode::kCosine); }
inline Expr exp(const Expr& x) { return x.apply(OpCode::kExponential); }
inline Expr expm1(const Expr& x) { return x.apply(OpCode::kExponentialMinusOne); }
inline Expr floor(const Expr& x) { return x.apply(OpCode::kFloor); }
inline Expr log(const Expr& x) { return x.apply(OpCode::kLog); }
inline Expr log1p(const Expr& x) { return x.apply(OpCode::kLogPlusOne); }
inline Expr max(const Expr& x, const Expr& y) { return x.apply(OpCode::kMaximum, y); }
inline Expr min(const Expr& x, const Expr& y) { return x.apply(OpCode::kMinimum, y); }
inline Expr pow(const Expr& x, const Expr& y) { return x.apply(OpCode::kPower, y); }
inline Expr round(const Expr& x) { return x.apply(OpCode::kRoundNearestEven); }
/// -1, 1, or x itself if it is zero or NaN.
inline Expr sign(const Expr& x) { return x.apply(OpCode::kSign); }
inline Expr sin(const Expr& x) { return x.apply(OpCode::kSine); }
inline Expr sqrt(const Expr& x) { return x.apply(OpCode::kSqrt); }
inline Expr real(const Expr& z) { return z.apply(OpCode::kReal); }
inline Expr imag(const Expr& z) { return z.apply(OpCode::kImag); }
inline Expr complex(const Expr& re, const Expr& im) { return re.apply(OpCode::kComplex, im); }
inline Expr convert(const Expr& x, ElementType type) {
  return {x.builder(), x.builder().convert(x.value(), type)};
}

/// Whether the sign bit is set, also for -0.
inline Expr is_negative(const Expr& x) {
  return x.compare(ComparisonDirection::kLt, x.constant(0), ComparisonType::kTotalOrder);
}
/// `magnitude`, which must not be negative, with the sign bit of `x`.
inline Expr with_sign_of(const Expr& magnitude, const Expr& x) {
  return select(is_negative(x), -magnitude, magnitude);
}
/// x rounded to `mantissa_bits` bits after the leading one.
Expr rounded_to_bits(const Expr& x, int mantissa_bits);
/// c[0] x^(n-1) + … + c[n-1], by Horner's rule.
Expr polynomial(const Expr& x, std::span<const double> coefficients);

/// Coefficients for f32 or f64, by the type of `x`.
inline std::span<const double> for_type(const Expr& x, std::span<const double> f32,
                                        std::span<const double> f64) {
  return x.type() == ElementType::kF64 ? f64 : f32;
}
inline double for_type(const Expr& x, double f32, double f64) {
  return x.type() == ElementType::kF64 ? f64 : f32;
}
/// The greatest finite number of x's type, f32 or f64.
inline double greatest(const Expr& x) {
  return for_type(x, 0x1.fffffep127, 0x1.fffffffffffffp1023);
}

/// The type in which elements of a float type are computed: f32 for types narrower than f32, else
/// the type itself.
ElementType computing_type(ElementType type);

using RealFunction = Expr (*)(const Expr&);
using RealFunction2 = Expr (*)(const Expr&, const Expr&);
/// `function` of the operands, computed in computing_type and rounded once.
Values elementwise(Builder& b, const Instruction& op, RealFunction function);
Values elementwise(Builder& b, const Instruction& op, RealFunction2 function);

// Formulas used by others, for f32 or f64.

Expr digamma(const Expr& x);
/// The parts of a complex number.
struct ComplexExpr {
  Expr re;
  Expr im;
};

/// e^(x / 2), whose square may overflow.
Expr root_of_exp(const Expr& x);
Expr real_sinh(const Expr& x);
Expr real_cosh(const Expr& x);

/// (sqrt(a^2 - x^2), log(a + sqrt(a^2 - 1))) with x = |re|, y = |im| and
/// a = (hypot(x + 1, y) + hypot(x - 1, y)) / 2: the parts of asin and acos, up to signs.
ComplexExpr asin_acos_kernel(const ComplexExpr& z);
ComplexExpr complex_acos(const ComplexExpr& z);
ComplexExpr complex_acosh(const ComplexExpr& z);
ComplexExpr complex_asin(const ComplexExpr& z);
ComplexExpr complex_asinh(const ComplexExpr& z);
ComplexExpr complex_atan(const ComplexExpr& z);
ComplexExpr complex_atanh(const ComplexExpr& z);
ComplexExpr complex_cosh(const ComplexExpr& z);
ComplexExpr complex_sinh(const ComplexExpr& z);

}  // namespace tenon::hlo::decomposition
