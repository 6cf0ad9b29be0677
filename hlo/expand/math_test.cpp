// Accuracy of the expansions of CHLO functions: their results in the evaluator's normal mode
// against binary128, over arguments spread evenly over the real line and over the bit patterns of
// the type.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "core/types/float_convert.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/expand/math_reference.h"
#include "hlo/import/import.h"

namespace tenon::hlo {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::string type_text(ElementType type, size_t count) {
  return "tensor<" + std::to_string(count) + "x" + std::string(element_type_info(type).mlir_name) +
         ">";
}

// op(arguments...), each argument a list of numbers of `type` (parts in turn for complex types).
std::vector<double> run_op(const std::string& op, ElementType type,
                           const std::vector<std::vector<double>>& arguments) {
  const size_t parts = is_complex(type) ? 2 : 1;
  const size_t count = arguments[0].size() / parts;
  const std::string tensor = type_text(type, count);
  std::string parameters;
  std::string names;
  std::string types;
  std::vector<Literal> literals;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string comma = i == 0 ? "" : ", ";
    const std::string name = "%x" + std::to_string(i);
    names += comma + name;
    types += comma + tensor;
    parameters += comma + name + ": " + tensor;
    Literal literal(Shape(type, {static_cast<int64_t>(count)}));
    for (size_t k = 0; k < count; ++k) {
      const auto at = static_cast<int64_t>(k);
      if (parts == 1) {
        literal.set_double(at, arguments[i][k]);
      } else {
        literal.set_complex(at, {arguments[i][2 * k], arguments[i][2 * k + 1]});
      }
    }
    literals.push_back(std::move(literal));
  }
  const std::string text = "func.func @main(" + parameters + ") -> " + tensor + " {\n  %r = \"" +
                           op + "\"(" + names + ") : (" + types + ") -> " + tensor +
                           "\n  return %r : " + tensor + "\n}\n";
  auto module = import_module(text, "test.mlir");
  if (!module) {
    ADD_FAILURE() << module.error().to_string() << "\n" << text;
    return {};
  }
  Evaluator evaluator(**module);
  auto results = evaluator.run(*(*module)->find_function("main"), literals);
  if (!results) {
    ADD_FAILURE() << op << ": " << results.error().to_string();
    return {};
  }
  std::vector<double> numbers;
  for (size_t k = 0; k < count; ++k) {
    const auto at = static_cast<int64_t>(k);
    if (parts == 1) {
      numbers.push_back((*results)[0].get_double(at));
    } else {
      numbers.push_back((*results)[0].get_complex(at).real());
      numbers.push_back((*results)[0].get_complex(at).imag());
    }
  }
  return numbers;
}

// Units in the last place of `type` between a result and the exact value; infinity where one of
// them is NaN or overflows and the other does not.
double ulps(ElementType type, double result, Float128 exact) {
  const double rounded = round_to(type, exact);
  if (std::isnan(result) || std::isnan(rounded)) {
    return std::isnan(result) == std::isnan(rounded) ? 0 : kInf;
  }
  if (result == rounded) return std::isinf(result) ? 0 : 0.5;
  if (std::isinf(result) || std::isinf(rounded)) return kInf;
  const bool f64 = type == ElementType::kF64;
  const int digits = f64 ? 53 : type == ElementType::kF32 ? 24 : type == ElementType::kF16 ? 11 : 8;
  const int least = f64 ? -1074 : type == ElementType::kF16 ? -24 : digits == 24 ? -149 : -133;
  const int exponent = rounded == 0 ? least : std::max(std::ilogb(rounded) + 1 - digits, least);
  const Float128 error = fabsf128(static_cast<Float128>(result) - exact);
  return static_cast<double>(scalbnf128(error, -exponent));
}

// Arguments of a type: `count` evenly in [low, high], as many evenly among its bit patterns there.
std::vector<double> sample(ElementType type, double low, double high, int count) {
  std::mt19937_64 random(1);
  std::vector<double> numbers;
  const auto add = [&](double x) {
    x = round_to(type, x);
    if (x >= low && x <= high) numbers.push_back(x);
  };
  std::uniform_real_distribution<double> part(0, 1);
  for (int i = 0; i < count; ++i) add(low + (high - low) * part(random));
  const int bits = bit_width(type);
  for (int i = 0; i < count; ++i) {
    add(decode_float(type, bits == 64 ? random() : random() & ((uint64_t{1} << bits) - 1)));
  }
  return numbers;
}

struct Accuracy {
  const char* op;
  Float128 (*exact)(Float128);
  double low;
  double high;
  double f32_bound;
  double f64_bound;
};

double worst(const Accuracy& c, ElementType type) {
  const std::vector<double> x = sample(type, c.low, c.high, 20000);
  const std::vector<double> y = run_op(c.op, type, {x});
  double largest = 0;
  double at = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    const double error = ulps(type, y[i], c.exact(x[i]));
    if (error > largest) {
      largest = error;
      at = x[i];
    }
  }
  std::printf("%-16s [%g, %g] %s: %.2f ULP at %.17g\n", c.op, c.low, c.high,
              type == ElementType::kF64 ? "f64" : "f32", largest, at);
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
    {"chlo.atan", atanf128, -kMax, kMax, 3, 3},
    {"chlo.atan", atanf128, -10, 10, 3, 3},
    {"chlo.atanh", atanhf128, -1, 1, 3, 3},
    {"chlo.cosh", coshf128, -20, 20, 3, 3},
    {"chlo.cosh", coshf128, -90, 90, 3, 3},
    {"chlo.cosh", coshf128, -712, 712, 3, 3},
    {"chlo.sinh", sinhf128, -20, 20, 3, 3},
    {"chlo.sinh", sinhf128, -90, 90, 3, 3},
    {"chlo.sinh", sinhf128, -712, 712, 3, 3},
    {"chlo.tan", tanf128, -100, 100, 1, 1},
    {"chlo.erf", erff128, -6, 6, 3, 3},
    {"chlo.erfc", erfcf128, -6, 10.5, 8, 8},
    {"chlo.erfc", erfcf128, 1, 28, 8, 8},
    {"chlo.erf_inv", erf_inv, -1, 1, 8, 8},
    {"chlo.erf_inv", erf_inv, 0.999, 1, 8, 8},
    {"chlo.bessel_i1e", bessel_i1e, -20, 20, 3, 3},
    {"chlo.bessel_i1e", bessel_i1e, -kMax, kMax, 3, 3},
    {"chlo.lgamma", lgammaf128, 3, kMax, 8, 8},
    {"chlo.lgamma", lgammaf128, 3, 100, 8, 8},
    {"chlo.lgamma", lgammaf128, 0, 0.5, 8, 8},
    {"chlo.lgamma", lgammaf128, 0.5, 3, 8, 8},
    {"chlo.lgamma", lgammaf128, -10, 0, 8, 8},
    {"chlo.digamma", digamma, 2, kMax, 8, 8},
    {"chlo.digamma", digamma, 2, 100, 8, 8},
    {"chlo.digamma", digamma, 0, 1, 8, 8},
    {"chlo.digamma", digamma, 1, 2, 8, 8},
    {"chlo.digamma", digamma, -10, 0, 8, 8},
};

TEST(ExpandMath, RealFunctionsStayWithinTheirBounds) {
  for (const Accuracy& c : kAccuracy) {
    EXPECT_LE(worst(c, ElementType::kF32), c.f32_bound) << c.op << " f32";
    EXPECT_LE(worst(c, ElementType::kF64), c.f64_bound) << c.op << " f64";
  }
}

}  // namespace
}  // namespace tenon::hlo
