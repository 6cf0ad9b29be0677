// Accuracy of the decompositions of CHLO functions: their results in the evaluator's normal mode
// against binary128, over arguments spread evenly over the real line and over the bit patterns of
// the type.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

#include "core/base/process/full_test_util.h"
#include "hlo/decomposition/chlo/math_test_util.h"
#include "hlo/evaluator/scalars/math_reference.h"

namespace tenon::hlo {
namespace {

struct Accuracy {
  const char* op;
  Float128 (*exact)(Float128);
  double low;
  double high;
  double f32_bound;
  double f64_bound;
  double floor = 0;  ///< Above 0 if the function has zeros that its series does not resolve.
};

// Half as many arguments without TENON_FULL.
int sampled(int count) { return tests_take_all() ? count : count / 2; }

double worst(const Accuracy& c, ElementType type) {
  const std::vector<double> x = sample(type, c.low, c.high, sampled(20000));
  const std::vector<double> y = run_op(c.op, type, {x});
  double largest = 0;
  double at = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    const double error = ulps(type, y[i], c.exact(x[i]), c.floor);
    if (error > largest) {
      largest = error;
      at = x[i];
    }
  }
  std::printf("%-16s [%g, %g] %s: %.2f ULP at %.17g\n", c.op, c.low, c.high,
              std::string(name_of(type)).c_str(), largest, at);
  return largest;
}

constexpr double kMax = std::numeric_limits<double>::max();
using namespace reference;

// Largest error measured, in ULP of the type, rounded up.
const Accuracy kAccuracy[] = {
    {"chlo.acos", acosf128, -1, 1, 3, 3},
    {"chlo.acosh", acoshf128, 1, kMax, 3, 3},
    {"chlo.acosh", acoshf128, 1, 10, 3, 3},
    {"chlo.asin", asinf128, -1, 1, 3, 3},
    {"chlo.asinh", asinhf128, -kMax, kMax, 3, 3},
    {"chlo.asinh", asinhf128, -10, 10, 3, 3},
    {"chlo.atan", atanf128, -kMax, kMax, 1, 1},
    {"chlo.atan", atanf128, -10, 10, 1, 1},
    {"chlo.atanh", atanhf128, -1, 1, 3, 3},
    {"chlo.cosh", coshf128, -20, 20, 3, 3},
    {"chlo.cosh", coshf128, -90, 90, 3, 3},
    {"chlo.cosh", coshf128, -712, 712, 3, 3},
    {"chlo.sinh", sinhf128, -20, 20, 3, 3},
    {"chlo.sinh", sinhf128, -90, 90, 3, 3},
    {"chlo.sinh", sinhf128, -712, 712, 3, 3},
    {"chlo.tan", tanf128, -100, 100, 1, 1},
    {"chlo.erf", erff128, -6, 6, 3, 3},
    {"chlo.erfc", erfcf128, -6, 10.5, 4, 4},
    {"chlo.erfc", erfcf128, 1, 28, 4, 4},
    {"chlo.erf_inv", erf_inv, -1, 1, 4, 4},
    {"chlo.erf_inv", erf_inv, 0.999, 1, 3, 3},
    {"chlo.bessel_i1e", bessel_i1e, -20, 20, 3, 3},
    {"chlo.bessel_i1e", bessel_i1e, -kMax, kMax, 3, 3},
    {"chlo.lgamma", lgammaf128, 3, kMax, 3, 3},
    {"chlo.lgamma", lgammaf128, 3, 100, 3, 3},
    {"chlo.lgamma", lgammaf128, 0, 0.5, 3, 3},
    {"chlo.lgamma", lgammaf128, 0.5, 3, 3, 3},
    {"chlo.lgamma", lgammaf128, -10, 0, 6, 4, 1},
    {"chlo.digamma", digamma, 2, kMax, 3, 3},
    {"chlo.digamma", digamma, 2, 100, 3, 3},
    {"chlo.digamma", digamma, 0, 1, 3, 3},
    {"chlo.digamma", digamma, 1, 2, 3, 3},
    {"chlo.digamma", digamma, -10, 0, 8, 8, 1},
};

TEST(DecompositionMath, RealFunctionsStayWithinTheirBounds) {
  for (const Accuracy& c : kAccuracy) {
    EXPECT_LE(worst(c, ElementType::kF32), c.f32_bound) << c.op << " f32";
    EXPECT_LE(worst(c, ElementType::kF64), c.f64_bound) << c.op << " f64";
  }
}

// One rounding of an f32 result: half a unit, and slightly more if f32's error crosses a tie.
TEST(DecompositionMath, NarrowTypesAreRoundedOnce) {
  for (const ElementType type : {ElementType::kF16, ElementType::kBF16}) {
    for (const Accuracy& c : kAccuracy) {
      if (c.floor > 0) continue;
      EXPECT_LE(worst(c, type), 0.51) << c.op << " " << name_of(type);
    }
  }
}

TEST(DecompositionMath, ZetaAndPolygammaStayWithinTheirBounds) {
  for (const ElementType type : {ElementType::kF32, ElementType::kF64}) {
    std::vector<double> s = sample(type, 1.01, 30, 4000);
    std::vector<double> q = sample(type, 0.01, 100, 4000);
    s.resize(4000);
    q.resize(4000);
    std::vector<double> n;
    for (size_t i = 0; i < 4000; ++i) n.push_back(static_cast<double>(i % 17));
    const std::vector<double> zetas = run_op("chlo.zeta", type, {s, q});
    const std::vector<double> polygammas = run_op("chlo.polygamma", type, {n, q});
    double largest[2] = {0, 0};
    for (size_t i = 0; i < 4000; ++i) {
      largest[0] = std::max(largest[0], ulps(type, zetas[i], zeta(s[i], q[i])));
      if (n[i] == 0) continue;  // digamma
      largest[1] = std::max(largest[1], ulps(type, polygammas[i], polygamma(n[i], q[i])));
    }
    std::printf("chlo.zeta %s: %.2f ULP, chlo.polygamma: %.2f ULP\n",
                std::string(name_of(type)).c_str(), largest[0], largest[1]);
    EXPECT_LE(largest[0], 16);
    EXPECT_LE(largest[1], 16);
  }
}

struct ComplexAccuracy {
  const char* op;
  CFloat128 (*exact)(CFloat128);
  double c64_bound;
  double c128_bound;
};

// The maximum over both parts, in ULP.
const ComplexAccuracy kComplexAccuracy[] = {
    {"chlo.acos", cacosf128, 3, 3}, {"chlo.acosh", cacoshf128, 3, 3},
    {"chlo.asin", casinf128, 3, 3}, {"chlo.asinh", casinhf128, 3, 3},
    {"chlo.atan", catanf128, 3, 3}, {"chlo.atanh", catanhf128, 3, 3},
    {"chlo.cosh", ccoshf128, 3, 3}, {"chlo.sinh", csinhf128, 3, 3},
    {"chlo.tan", ctanf128, 3, 3},
};

double worst_complex(const ComplexAccuracy& c, ElementType type, double range) {
  const ElementType part = complex_part(type);
  std::vector<double> x = sample(part, -range, range, sampled(10000));
  std::shuffle(x.begin(), x.end(), std::mt19937_64(2));
  x.resize(x.size() / 2 * 2);
  const std::vector<double> y = run_op(c.op, type, {x});
  double largest[2] = {0, 0};
  size_t at[2] = {0, 0};
  for (size_t i = 0; i + 1 < y.size(); i += 2) {
    CFloat128 z;
    __real__ z = x[i];
    __imag__ z = x[i + 1];
    const CFloat128 w = c.exact(z);
    const double errors[2] = {ulps(part, y[i], __real__ w), ulps(part, y[i + 1], __imag__ w)};
    for (int k = 0; k < 2; ++k) {
      if (errors[k] > largest[k]) largest[k] = errors[k], at[k] = i;
    }
  }
  std::printf("%-12s within %g %s: %.2f ULP at (%.17g, %.17g), %.2f ULP at (%.17g, %.17g)\n", c.op,
              range, type == ElementType::kC128 ? "c128" : "c64", largest[0], x[at[0]],
              x[at[0] + 1], largest[1], x[at[1]], x[at[1] + 1]);
  return std::max(largest[0], largest[1]);
}

TEST(DecompositionMath, ComplexFunctionsStayWithinTheirBounds) {
  for (const ComplexAccuracy& c : kComplexAccuracy) {
    for (const double range : {10.0, 80.0, kMax}) {
      EXPECT_LE(worst_complex(c, ElementType::kC64, range), c.c64_bound) << c.op << " c64";
      EXPECT_LE(worst_complex(c, ElementType::kC128, range), c.c128_bound) << c.op << " c128";
    }
  }
}

struct Special {
  const char* op;
  std::vector<std::vector<double>> arguments;
  std::vector<double> results;
};

TEST(DecompositionMath, SpecialValues) {
  const double half_pi = std::numbers::pi / 2;
  const std::vector<Special> specials = {
      {"chlo.acos", {{1, -1, 1.5, kInf, kNan, 0}}, {0, 2 * half_pi, kNan, kNan, kNan, half_pi}},
      {"chlo.acosh", {{1, 0.5, -kInf, kInf, kNan, 0}}, {0, kNan, kNan, kInf, kNan, kNan}},
      {"chlo.asin",
       {{1, -1, 0.0, -0.0, 1.5, kInf, kNan}},
       {half_pi, -half_pi, 0.0, -0.0, kNan, kNan, kNan}},
      {"chlo.asinh", {{0.0, -0.0, kInf, -kInf, kNan}}, {0.0, -0.0, kInf, -kInf, kNan}},
      {"chlo.atan", {{0.0, -0.0, kInf, -kInf, kNan}}, {0.0, -0.0, half_pi, -half_pi, kNan}},
      {"chlo.atanh",
       {{0.0, -0.0, 1, -1, 1.5, kInf, kNan}},
       {0.0, -0.0, kInf, -kInf, kNan, kNan, kNan}},
      {"chlo.cosh", {{0.0, -0.0, kInf, -kInf, kNan}}, {1, 1, kInf, kInf, kNan}},
      {"chlo.sinh", {{0.0, -0.0, kInf, -kInf, kNan}}, {0.0, -0.0, kInf, -kInf, kNan}},
      {"chlo.tan", {{0.0, -0.0, kInf, kNan}}, {0.0, -0.0, kNan, kNan}},
      {"chlo.erf", {{0.0, -0.0, kInf, -kInf, kNan}}, {0.0, -0.0, 1, -1, kNan}},
      {"chlo.erfc", {{0.0, -0.0, kInf, -kInf, kNan}}, {1, 1, 0, 2, kNan}},
      {"chlo.erf_inv",
       {{0.0, -0.0, 1, -1, 1.5, kInf, -kInf, kNan}},
       {0.0, -0.0, kInf, -kInf, kNan, kNan, kNan, kNan}},
      {"chlo.bessel_i1e", {{0.0, -0.0, kInf, -kInf, kNan}}, {0.0, -0.0, 0.0, -0.0, kNan}},
      {"chlo.lgamma",
       {{0.0, -0.0, -1, -7, kInf, -kInf, kNan}},
       {kInf, kInf, kInf, kInf, kInf, kInf, kNan}},
      {"chlo.digamma", {{0.0, -0.0, -1, -7, kInf, kNan}}, {kNan, kNan, kNan, kNan, kInf, kNan}},
      {"chlo.zeta",
       {{1, 0.5, 2, 2, 3, 2.5, kNan, 2, kInf}, {2, 2, 0, -1, -1, -0.5, 1, kNan, 1}},
       {kInf, kNan, kInf, kInf, kNan, kNan, kNan, kNan, 1}},
      {"chlo.polygamma",
       {{-1, 0.5, 1, 1, kNan, 1}, {2, 2, 0, kNan, 1, -1}},
       {kNan, kNan, kInf, kNan, kNan, kInf}},
  };
  for (const Special& c : specials) {
    for (const ElementType type : {ElementType::kF32, ElementType::kF64}) {
      const std::vector<double> results = run_op(c.op, type, c.arguments);
      for (size_t i = 0; i < results.size(); ++i) {
        const double expected = c.results[i];
        const bool good =
            std::isnan(expected) ? std::isnan(results[i]) : ulps(type, results[i], expected) <= 1.5;
        const bool sign = expected != 0 || std::signbit(results[i]) == std::signbit(expected);
        EXPECT_TRUE(good && sign) << c.op << "(" << c.arguments[0][i] << ") of " << name_of(type)
                                  << " is " << results[i] << ", expected " << expected;
      }
    }
  }
}

TEST(DecompositionMath, SubnormalArguments) {
  for (const Accuracy& c : kAccuracy) {
    if (c.low > 0 || c.high <= 0) continue;
    const std::vector<double> f32 = {0x1p-149, 0x1.8p-148, 0x1p-127, 0x1p-126};
    const std::vector<double> f64 = {0x1p-1074, 0x1.8p-1073, 0x1p-1023, 0x1p-1022};
    for (const ElementType type : {ElementType::kF32, ElementType::kF64}) {
      const std::vector<double>& x = type == ElementType::kF32 ? f32 : f64;
      const std::vector<double> y = run_op(c.op, type, {x});
      for (size_t i = 0; i < y.size(); ++i) {
        EXPECT_LE(ulps(type, y[i], c.exact(x[i])), 1) << c.op << "(" << x[i] << ") is " << y[i];
      }
    }
  }
}

}  // namespace
}  // namespace tenon::hlo
