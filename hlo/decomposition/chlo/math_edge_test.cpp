// Edge cases of the functions of CHLO: zeros, poles, branch cuts and branch points, and arguments
// whose intermediate results leave the range of the type.
#include "hlo/decomposition/chlo/math_test_util.h"
#include "hlo/evaluator/scalars/math_reference.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

constexpr ElementType kParts[] = {ElementType::kF32, ElementType::kF64};

ElementType complex_type(ElementType part) { return *complex_of(part); }

struct ComplexFunction {
  const char* op;
  CFloat128 (*exact)(CFloat128);
};
constexpr ComplexFunction kComplexFunctions[] = {
    {"chlo.acos", cacosf128},   {"chlo.acosh", cacoshf128}, {"chlo.asin", casinf128},
    {"chlo.asinh", casinhf128}, {"chlo.atan", catanf128},   {"chlo.atanh", catanhf128},
    {"chlo.cosh", ccoshf128},   {"chlo.sinh", csinhf128},
};

CFloat128 number(double re, double im) {
  CFloat128 z;
  __real__ z = re;
  __imag__ z = im;
  return z;
}

// Equal up to `bound` ULP, with the sign of a zero; NaN if the exact value is NaN.
::testing::AssertionResult matches(ElementType type, double result, Float128 exact, double bound) {
  const double error = ulps(type, result, exact);
  const bool sign_differs =
      result == 0 && exact == 0 && std::signbit(result) != std::signbit(static_cast<double>(exact));
  if (error <= bound && !sign_differs) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << result << ", expected " << static_cast<double>(exact) << " (" << error << " ULP)";
}

// Checks every pair of parts; results alternate by part.
void check_pairs(const ComplexFunction& f, ElementType part, const std::vector<double>& re,
                 const std::vector<double>& im) {
  std::vector<double> z;
  for (const double x : re) {
    for (const double y : im) z.insert(z.end(), {round_to(part, x), round_to(part, y)});
  }
  const std::vector<double> w = run_op(f.op, complex_type(part), {z});
  for (size_t i = 0; i + 1 < w.size(); i += 2) {
    const CFloat128 exact = f.exact(number(z[i], z[i + 1]));
    EXPECT_TRUE(matches(part, w[i], __real__ exact, 3) &&
                matches(part, w[i + 1], __imag__ exact, 3))
        << f.op << "(" << z[i] << ", " << z[i + 1] << ") of " << name_of(part) << " is (" << w[i]
        << ", " << w[i + 1] << "), expected (" << static_cast<double>(__real__ exact) << ", "
        << static_cast<double>(__imag__ exact) << ")";
  }
}

TEST(DecompositionMathEdges, SignsOfZeroChooseTheSideOfACut) {
  const std::vector<double> parts = {0.0, -0.0, 0.5, -0.5, 1, -1, 2, -2, 30, -30};
  for (const ComplexFunction& f : kComplexFunctions) {
    for (const ElementType part : kParts) check_pairs(f, part, parts, parts);
  }
}

TEST(DecompositionMathEdges, InfiniteParts) {
  const std::vector<double> infinite = {kInf, -kInf}, finite = {0.0, -0.0, 1, -2};
  for (const ComplexFunction& f : kComplexFunctions) {
    const bool is_inverse = std::string_view(f.op).substr(5, 1) == "a";
    for (const ElementType part : kParts) {
      check_pairs(f, part, infinite, finite);
      // For the other functions, the sign of the sine and cosine of infinity is undefined.
      if (!is_inverse) continue;
      check_pairs(f, part, finite, infinite);
      check_pairs(f, part, infinite, infinite);
    }
  }
}

TEST(DecompositionMathEdges, BesideBranchPoints) {
  for (const ElementType part : kParts) {
    const bool f64 = part == ElementType::kF64;
    const double epsilon = f64 ? 0x1p-52 : 0x1p-23;
    std::vector<double> near = {1, -1, 1 + epsilon, 1 - epsilon, 1 - epsilon / 2, -1 - epsilon};
    std::vector<double> small;
    for (const int exponent : {-1, -12, -24, -40, -52, -70, -100, -126, -140, -149}) {
      small.push_back(std::ldexp(1.25, exponent));
      small.push_back(std::ldexp(-1, f64 ? 7 * exponent : exponent));
    }
    for (const ComplexFunction& f : kComplexFunctions) {
      check_pairs(f, part, near, small);
      check_pairs(f, part, small, near);
    }
  }
}

TEST(DecompositionMathEdges, ProductsThatOverflowInPartOnly) {
  // sinh and cosh of the real part overflow, but their product with a small sine does not.
  for (const ElementType part : kParts) {
    const double x = part == ElementType::kF64 ? 712 : 90;
    const std::vector<double> z = {x, 1e-6, -x, 1e-6};
    for (const ComplexFunction& f : {kComplexFunctions[6], kComplexFunctions[7]}) {
      const std::vector<double> w = run_op(f.op, complex_type(part), {z});
      for (const size_t i : {size_t{0}, size_t{2}}) {
        const CFloat128 exact = f.exact(number(z[i], round_to(part, z[i + 1])));
        EXPECT_TRUE(matches(part, w[i + 1], __imag__ exact, 3)) << f.op;
        EXPECT_TRUE(std::isfinite(w[i + 1])) << f.op;
      }
    }
  }
}

// --- Real functions

void check_real(const char* op, ElementType type, Float128 (*exact)(Float128),
                const std::vector<double>& x, double bound) {
  std::vector<double> rounded;
  for (const double v : x) rounded.push_back(round_to(type, v));
  const std::vector<double> y = run_op(op, type, {rounded});
  for (size_t i = 0; i < y.size(); ++i) {
    EXPECT_TRUE(matches(type, y[i], exact(rounded[i]), bound))
        << op << "(" << rounded[i] << ") of " << name_of(type);
  }
}

TEST(DecompositionMathEdges, ZerosOfLgammaAndDigamma) {
  for (const ElementType type : kParts) {
    std::vector<double> near_one_and_two, near_zero;
    for (int k = 2; k < (type == ElementType::kF64 ? 50 : 22); ++k) {
      for (const double step : {std::ldexp(1, -k), -std::ldexp(1, -k)}) {
        near_one_and_two.insert(near_one_and_two.end(), {1 + step, 2 + step});
        near_zero.push_back(1.4616321449683622 + step);
      }
    }
    check_real("chlo.lgamma", type, lgammaf128, near_one_and_two, 3);
    check_real("chlo.digamma", type, reference::digamma, near_zero, 3);
  }
  check_real("chlo.lgamma", ElementType::kF64, lgammaf128, {1, 2}, 0.5);
}

TEST(DecompositionMathEdges, HugeArguments) {
  for (const ElementType type : kParts) {
    const double huge = type == ElementType::kF64 ? 1e300 : 1e35;
    check_real("chlo.lgamma", type, lgammaf128, {1e10, huge}, 2);
    check_real("chlo.digamma", type, reference::digamma, {1e10, huge}, 2);
    check_real("chlo.acosh", type, acoshf128, {1e10, huge, float_max(type)}, 2);
    check_real("chlo.asinh", type, asinhf128, {-1e10, -huge, float_max(type)}, 2);
    check_real("chlo.bessel_i1e", type, reference::bessel_i1e, {1e10, -huge}, 3);
  }
}

// A composite with the name of a function has the function's accuracy, not its decomposition's: a
// frontend's decomposition (here JAX's form of sinh) loses bits of x + log(1/2) for large x.
constexpr const char* kCompositeText = R"(
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.composite "chlo.sinh" %x {decomposition = @by_exp, version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.composite "my.sinh" %x {decomposition = @by_exp} : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
func.func private @by_exp(%x: tensor<4xf32>) -> tensor<4xf32> {
  %half = stablehlo.constant dense<-0.693147182> : tensor<4xf32>
  %0 = stablehlo.add %x, %half : tensor<4xf32>
  %1 = stablehlo.exponential %0 : tensor<4xf32>
  %2 = stablehlo.subtract %half, %x : tensor<4xf32>
  %3 = stablehlo.exponential %2 : tensor<4xf32>
  %4 = stablehlo.subtract %1, %3 : tensor<4xf32>
  return %4 : tensor<4xf32>
})";

TEST(DecompositionMathEdges, CompositesCalledAfterFunctionsAreTheFunctions) {
  const double x[] = {77.63151, 17.3, 40.2, 9.1};
  Literal argument(Shape(ElementType::kF32, {4}));
  for (int64_t i = 0; i < 4; ++i) argument.set_double(i, x[i]);
  auto module = import_module(kCompositeText, "test.mlir");
  ASSERT_TRUE(module) << module.error().to_string();
  const auto run = [&](const Module& m) {
    auto results = Evaluator(m).run(*m.entry(), std::vector<Literal>{argument});
    EXPECT_TRUE(results) << results.error().to_string();
    return *results;
  };
  const std::vector<Literal> whole = run(**module);
  ASSERT_TRUE(run_passes(**module, lowering_passes()).ok());
  const std::vector<Literal> inlined = run(**module);
  double of_decomposition = 0;
  for (int64_t i = 0; i < 4; ++i) {
    const Float128 exact = sinhf128(argument.get_double(i));
    EXPECT_LE(ulps(ElementType::kF32, whole[0].get_double(i), exact), 3);
    EXPECT_LE(ulps(ElementType::kF32, inlined[0].get_double(i), exact), 3);
    of_decomposition =
        std::max(of_decomposition, ulps(ElementType::kF32, whole[1].get_double(i), exact));
  }
  EXPECT_GT(of_decomposition, 6);  // The decomposition is used for any other name.
}

TEST(DecompositionMathEdges, ErfcDownToSubnormals) {
  check_real("chlo.erfc", ElementType::kF32, erfcf128, {9, 9.2, 9.5, 9.9, 10, 10.05, 11}, 3);
  check_real("chlo.erfc", ElementType::kF64, erfcf128, {26, 26.5, 26.6, 27, 27.2, 28, 40}, 3);
}

// Below zero, where x is an integer, terms of either sign precede those of the formula.
TEST(DecompositionMathEdges, ZetaBelowZero) {
  for (const ElementType type : kParts) {
    std::vector<double> s, q;
    for (const double exponent : {2.0, 3.0, 4.0, 7.0, 12.0}) {
      for (const double at : {-0x1p-20, -0.25, -0.375, -1.25, -7.625, -12.125, -40.75}) {
        s.push_back(exponent);
        q.push_back(at);
      }
    }
    const std::vector<double> y = run_op("chlo.zeta", type, {s, q});
    for (size_t i = 0; i < y.size(); ++i) {
      EXPECT_LE(ulps(type, y[i], reference::zeta(s[i], q[i])), 8)
          << "zeta(" << s[i] << ", " << q[i] << ") of " << name_of(type) << " is " << y[i];
    }
  }
}

TEST(DecompositionMathEdges, PolygammaOfFactorsOutOfRange) {
  // 27! 29^-28 and 150! 30^-151: neither factor is a normal number of the type.
  const struct {
    ElementType type;
    double n, x;
  } cases[] = {{ElementType::kF32, 27, 29},     {ElementType::kF32, 33, 3.5},
               {ElementType::kF32, 6, -2.75},   {ElementType::kF64, 150, 3000},
               {ElementType::kF64, 170, 20.25}, {ElementType::kF64, 3, -10.0625}};
  for (const auto& c : cases) {
    const std::vector<double> y = run_op("chlo.polygamma", c.type, {{c.n}, {c.x}});
    EXPECT_LE(ulps(c.type, y[0], reference::polygamma(c.n, c.x)), 32)
        << "polygamma(" << c.n << ", " << c.x << ") is " << y[0];
  }
}

}  // namespace
}  // namespace tenon::hlo
