// Real inverse trigonometric and hyperbolic functions by atan2, log1p, exp and expm1.
#include <cmath>
#include <numbers>

#include "hlo/expand/expand_math.h"

namespace tenon::hlo::expand {
namespace {

constexpr double kLn2 = std::numbers::ln2;

// sqrt(1 - x^2) without cancellation at +-1; NaN outside of [-1, 1].
Expr cosine_of_asin(Expr x) { return sqrt((1 - x) * (1 + x)); }

Expr acos(Expr x) { return atan2(cosine_of_asin(x), x); }
Expr asin(Expr x) { return atan2(x, cosine_of_asin(x)); }
Expr atan(Expr x) { return atan2(x, x.like(1)); }

Expr acosh(Expr x) {
  // log(x + sqrt(x^2 - 1)) as log1p of a sum of positive terms. Near the end of the range, where x
  // + 1 overflows in the product, log(2 x).
  const Expr root = sqrt(x - 1);
  const Expr is_large = x >= max_finite(x) / 4;
  return select(is_large, log(x) + kLn2, log1p(root * (sqrt(x + 1) + root)));
}

Expr asinh(Expr x) {
  // log(a + sqrt(1 + a^2)) = log1p(a + a^2 / (1 + sqrt(1 + a^2))); log(2 a) where a^2 overflows.
  const Expr a = abs(x);
  const Expr is_large = a >= std::sqrt(max_finite(x)) / 2;
  const Expr square = a * a;
  return sign(x) * select(is_large, log(a) + kLn2, log1p(a + square / (1 + sqrt(1 + square))));
}

Expr atanh(Expr x) {
  // log((1 + a) / (1 - a)) / 2; 1 - a is exact where it cancels.
  const Expr a = abs(x);
  return sign(x) * (0.5 * log1p(a / (1 - a) * 2));
}

// exp(|x|) overflows before the hyperbolic functions do, the square of exp(|x| / 2) halved does
// not. From here on exp(-|x|) is below half a unit of exp(|x|).
constexpr double kLarge = 20;

// cosh of f32. The reference results are exp(x + log(1/2)) + exp(log(1/2) - x) with rounded sums:
// up to 4 units off where |x| is 9. With three quarters of the rounding error made good, results
// lie within 3 units both of those and of the true values.
Expr cosh_near_reference(Expr x) {
  const Expr a = abs(x);
  const Expr root = exp(a * 0.5);
  const Expr shifted = a - kLn2;
  const Expr error = (a - shifted) - kLn2;
  const Expr half = exp(shifted) * (1 + 0.75 * error);
  return select(a > kLarge, 0.5 * root * root, half + 0.25 / half);
}

}  // namespace

Expr cosh(Expr x) {
  const Expr a = abs(x);
  const Expr e = exp(a);
  const Expr root = exp(a * 0.5);
  return select(a > kLarge, 0.5 * root * root, 0.5 * e + 0.5 / e);
}

Expr sinh(Expr x) {
  const Expr a = abs(x);
  const Expr e = exp(a);
  const Expr root = exp(a * 0.5);
  // (e^a - e^-a) / 2 with m = e^a - 1, which keeps the small numbers.
  const Expr m = expm1(a);
  const Expr small = 0.5 * (m + m / (m + 1));
  return sign(x) * select(a > kLarge, 0.5 * root * root, select(a < 1, small, 0.5 * e - 0.5 / e));
}

Values chlo_acos(Builder& b, const Instruction& op) {
  return expand_real_or_complex(
      b, op, [](auto x) { return acos(x[0]); }, [](auto x) { return complex_acos(x[0]); });
}

Values chlo_acosh(Builder& b, const Instruction& op) {
  return expand_real_or_complex(
      b, op, [](auto x) { return acosh(x[0]); }, [](auto x) { return complex_acosh(x[0]); });
}

Values chlo_asin(Builder& b, const Instruction& op) {
  return expand_real_or_complex(
      b, op, [](auto x) { return asin(x[0]); }, [](auto x) { return complex_asin(x[0]); });
}

Values chlo__asin_acos_kernel(Builder& b, const Instruction& op) {
  if (!is_complex(op.operand_type(0).element_type())) {
    return unimplemented("{} has no expansion on {}", op.name(), op.operand_type(0).to_string());
  }
  const auto kernel = [](auto x) { return complex_asin_acos_kernel(x[0]); };
  return expand_real_or_complex(b, op, kernel, kernel);
}

Values chlo_asinh(Builder& b, const Instruction& op) {
  return expand_real_or_complex(
      b, op, [](auto x) { return asinh(x[0]); }, [](auto x) { return complex_asinh(x[0]); });
}

Values chlo_atan(Builder& b, const Instruction& op) {
  return expand_real_or_complex(
      b, op, [](auto x) { return atan(x[0]); }, [](auto x) { return complex_atan(x[0]); });
}

Values chlo_atanh(Builder& b, const Instruction& op) {
  return expand_real_or_complex(
      b, op, [](auto x) { return atanh(x[0]); }, [](auto x) { return complex_atanh(x[0]); });
}

Values chlo_cosh(Builder& b, const Instruction& op) {
  return expand_real_or_complex(
      b, op, [](auto x) { return is_f64(x[0]) ? cosh(x[0]) : cosh_near_reference(x[0]); },
      [](auto x) { return complex_cosh(x[0]); });
}

Values chlo_sinh(Builder& b, const Instruction& op) {
  return expand_real_or_complex(
      b, op, [](auto x) { return sinh(x[0]); }, [](auto x) { return complex_sinh(x[0]); });
}

Values chlo_tan(Builder& b, const Instruction& op) {
  // The op set has it, on complex numbers too.
  const auto formula = [](auto x) { return tan(x[0]); };
  return expand_real_or_complex(b, op, formula, formula);
}

}  // namespace tenon::hlo::expand
