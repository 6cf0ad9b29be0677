// Expressions over a Builder, for expansions that are formulas.
//
//   Expr x = ...;
//   return x / (sqrt(1 + x * x) + 1);
//
// An Expr is a Value with its Builder; numbers become constants of the other operand's shape and
// type. After an error every operation is a no-op, as in Builder.
#pragma once

#include <functional>
#include <span>

#include "hlo/expand/expand.h"

namespace tenon::hlo::expand {

class Expr {
 public:
  Expr(Builder& builder, Value value) : builder_(&builder), value_(value) {}

  Builder& builder() const { return *builder_; }
  Value value() const { return value_; }
  /// A constant like this one.
  Expr like(double number) const { return {*builder_, builder_->splat_like(value_, number)}; }
  Expr unary(OpCode code) const { return {*builder_, builder_->unary(code, value_)}; }
  Expr binary(OpCode code, Expr y) const {
    return {*builder_, builder_->binary(code, value_, y.value_)};
  }
  Expr compare(ComparisonDirection direction, Expr y) const {
    return {*builder_, builder_->compare(direction, value_, y.value_)};
  }

 private:
  Builder* builder_;
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
inline Expr operator<=(Expr x, Expr y) { return x.compare(ComparisonDirection::kLe, y); }
inline Expr operator>(Expr x, Expr y) { return x.compare(ComparisonDirection::kGt, y); }
inline Expr operator>=(Expr x, Expr y) { return x.compare(ComparisonDirection::kGe, y); }
inline Expr operator==(Expr x, Expr y) { return x.compare(ComparisonDirection::kEq, y); }
inline Expr operator!=(Expr x, Expr y) { return x.compare(ComparisonDirection::kNe, y); }
inline Expr operator<(Expr x, double y) { return x < x.like(y); }
inline Expr operator<=(Expr x, double y) { return x <= x.like(y); }
inline Expr operator>(Expr x, double y) { return x > x.like(y); }
inline Expr operator>=(Expr x, double y) { return x >= x.like(y); }
inline Expr operator==(Expr x, double y) { return x == x.like(y); }
inline Expr operator!=(Expr x, double y) { return x != x.like(y); }
inline Expr operator&(Expr p, Expr q) { return p.binary(OpCode::kAnd, q); }
inline Expr operator|(Expr p, Expr q) { return p.binary(OpCode::kOr, q); }
inline Expr operator!(Expr p) { return p.unary(OpCode::kNot); }

inline Expr abs(Expr x) { return x.unary(OpCode::kAbs); }
inline Expr atan2(Expr y, Expr x) { return y.binary(OpCode::kAtan2, x); }
inline Expr cos(Expr x) { return x.unary(OpCode::kCosine); }
inline Expr exp(Expr x) { return x.unary(OpCode::kExponential); }
inline Expr expm1(Expr x) { return x.unary(OpCode::kExponentialMinusOne); }
inline Expr floor(Expr x) { return x.unary(OpCode::kFloor); }
inline Expr is_finite(Expr x) { return x.unary(OpCode::kIsFinite); }
inline Expr log(Expr x) { return x.unary(OpCode::kLog); }
inline Expr log1p(Expr x) { return x.unary(OpCode::kLogPlusOne); }
inline Expr max(Expr x, Expr y) { return x.binary(OpCode::kMaximum, y); }
inline Expr min(Expr x, Expr y) { return x.binary(OpCode::kMinimum, y); }
inline Expr pow(Expr x, Expr y) { return x.binary(OpCode::kPower, y); }
inline Expr remainder(Expr x, Expr y) { return x.binary(OpCode::kRemainder, y); }
inline Expr sign(Expr x) { return x.unary(OpCode::kSign); }
inline Expr sin(Expr x) { return x.unary(OpCode::kSine); }
inline Expr sqrt(Expr x) { return x.unary(OpCode::kSqrt); }
inline Expr tan(Expr x) { return x.unary(OpCode::kTan); }
inline Expr real(Expr z) { return z.unary(OpCode::kReal); }
inline Expr imag(Expr z) { return z.unary(OpCode::kImag); }
inline Expr complex(Expr re, Expr im) { return re.binary(OpCode::kComplex, im); }
inline Expr select(Expr pred, Expr on_true, Expr on_false) {
  Builder& b = pred.builder();
  return {b, b.select(pred.value(), on_true.value(), on_false.value())};
}
inline Expr select(Expr pred, double on_true, Expr on_false) {
  return select(pred, on_false.like(on_true), on_false);
}
inline Expr select(Expr pred, Expr on_true, double on_false) {
  return select(pred, on_true, on_true.like(on_false));
}

/// c[0] x^(n-1) + … + c[n-1] by Horner's rule.
Expr polynomial(Expr x, std::span<const double> coefficients);

/// Sum of c[i] T_(n-1-i)(x / 2), the last term halved, by Clenshaw's rule, as Cephes stores its
/// series.
Expr chebyshev(Expr x, std::span<const double> coefficients);

/// x^2 as high + low, `high` exact and `low` at most |x| / 2^(mantissa / 3), for exponentials whose
/// argument x^2 would lose bits to rounding. |x| is below 32.
struct Square {
  Expr high;
  Expr low;
};
Square split_square(Expr x);

/// The type of a real or complex Expr; f32 after an error.
ElementType element_type(Expr x);
inline bool is_f64(Expr x) { return element_type(x) == ElementType::kF64; }
double max_finite(Expr x);
double min_normal(Expr x);

/// The results of `op` by a formula over its operands. Floats narrower than f32 are converted to
/// f32 and the formula's value back, so that only one rounding to the narrow type takes place.
using Formula = std::function<Expr(std::span<const Expr> operands)>;
Values expand_real(Builder& b, const Instruction& op, const Formula& formula);
/// The same with another formula for complex operands.
Values expand_real_or_complex(Builder& b, const Instruction& op, const Formula& real_formula,
                              const Formula& complex_formula);

// Formulas that others are built on; x is f32 or f64.
Expr lgamma(Expr x);
Expr lgamma_f64(Expr x);
/// log gamma(a) - (a - 1/2) log a + a - log(2 pi) / 2, a >= 8.
Expr stirling_correction(Expr a);
Expr digamma(Expr x);
Expr digamma_f64(Expr x);
Expr zeta(Expr s, Expr q);
Expr sinh(Expr x);
Expr cosh(Expr x);

// Complex formulas.
Expr complex_asin_acos_kernel(Expr z);
Expr complex_acos(Expr z);
Expr complex_acosh(Expr z);
Expr complex_asin(Expr z);
Expr complex_asinh(Expr z);
Expr complex_atan(Expr z);
Expr complex_atanh(Expr z);
Expr complex_cosh(Expr z);
Expr complex_sinh(Expr z);

}  // namespace tenon::hlo::expand
