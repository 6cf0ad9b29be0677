// Edge cases of ops on complex numbers: signed zeros, infinities, NaN and numbers near the ends of
// the range. Compares interp, which lowers them (hlo/lower/elements/complex.cpp), with the
// evaluator (hlo/evaluator/scalars/complex_math.cpp). Every other device has the bits of interp
// (bits_test).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/base/process/full_test_util.h"
#include "core/types/float_convert.h"
#include "hlo/builder/builder.h"
#include "hlo/driver/interpreted.h"
#include "hlo/evaluator/evaluator.h"

namespace tenon::conformance {
namespace {

using hlo::OpCode;

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<double> edges(ElementType part) {
  const double most = float_max(part);
  const double least = decode_float(part, 1);
  std::vector<double> parts = {0, 0.75, 1, 2, 100, 1e-3, most, most / 4, 1e4 * least, least, kInf};
  const size_t positive = parts.size();
  for (size_t i = 0; i < positive; ++i) parts.push_back(-parts[i]);
  parts.push_back(kNan);
  return parts;
}

/// Every pair of parts; for two operands, each of these with every fifth as the other operand, the
/// next one with the next fifth. With TENON_FULL every pair of them.
std::vector<Literal> edge_arguments(ElementType type, size_t operands) {
  const ElementType part = complex_part(type);
  std::vector<std::complex<double>> numbers;
  for (const double re : edges(part)) {
    for (const double im : edges(part))
      numbers.emplace_back(round_to(part, re), round_to(part, im));
  }
  const size_t step = operands == 1 || tests_take_all() ? 1 : 5;
  std::vector<std::vector<std::complex<double>>> rows(operands);
  const size_t turns = operands == 1 ? 1 : numbers.size();
  for (size_t turn = 0; turn < turns; ++turn) {
    for (size_t k = turn % step; k < numbers.size(); k += step) {
      rows[0].push_back(numbers[k]);
      if (operands == 2) rows[1].push_back(numbers[turn]);
    }
  }
  std::vector<Literal> arguments;
  for (const auto& row : rows) {
    Literal literal(Shape(type, {static_cast<int64_t>(row.size())}));
    for (size_t i = 0; i < row.size(); ++i) literal.set_complex(static_cast<int64_t>(i), row[i]);
    arguments.push_back(std::move(literal));
  }
  return arguments;
}

std::unique_ptr<hlo::Module> module_of(OpCode code, const std::vector<Literal>& arguments) {
  auto module = std::make_unique<hlo::Module>();
  hlo::Computation& main = module->add_function("main");
  std::vector<hlo::Value> operands;
  for (const Literal& argument : arguments) {
    operands.push_back(main.add_parameter(hlo::Type(argument.shape())));
  }
  hlo::Builder builder(main);
  const hlo::Value y = builder.make(code, operands);
  EXPECT_TRUE(builder.finish({y}).ok()) << builder.status().to_string();
  main.set_declared_result_types({y.type()});
  return module;
}

double unit_of(ElementType part, double size) {
  const double least = decode_float(part, 1);
  if (size == 0 || !std::isfinite(size)) return least;
  return std::max(std::ldexp(1, std::ilogb(size) - element_type_info(part).format.mantissa_bits),
                  least);
}

/// One op, and how its results are compared.
struct Case {
  OpCode code;
  size_t operands = 1;
  double units = 16;
  /// Annex G gives each zero a sign, and no part underflows to zero.
  bool signed_zeros = true;
  /// Errors are normwise: if one part overflows, the other is unspecified.
  bool normwise_at_overflow = false;
};

/// Whether the parts are of the same kind (NaN, infinity, finite), and finite ones within `units`
/// of each other by the magnitude of the finite parts. Annex G leaves signs open beside a NaN, and
/// where neither part of the argument is finite.
bool is_same(const Case& c, ElementType part, std::complex<double> argument, std::complex<double> a,
             std::complex<double> b) {
  const double most = float_max(part);
  const auto size = [&](double x) { return std::isfinite(x) ? std::abs(x) : 0; };
  const double unit = unit_of(part, std::max(size(b.real()), size(b.imag())));
  const bool signs_open = std::isnan(b.real()) || std::isnan(b.imag()) ||
                          (!std::isfinite(argument.real()) && !std::isfinite(argument.imag()));
  const auto alike = [&](double x, double y) {
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) == std::isnan(y);
    if (signs_open && (x == 0 || std::isinf(x))) return std::abs(x) == std::abs(y);
    if (x == y) return x != 0 || !c.signed_zeros || std::signbit(x) == std::signbit(y);
    // The greatest number and infinity are neighbours.
    const double near_x = std::clamp(x, -most, most);
    return std::abs(near_x - std::clamp(y, -most, most)) <= c.units * unit;
  };
  if (c.normwise_at_overflow && std::isfinite(std::abs(argument))) {
    const auto overflows = [](double x, double y) { return std::isinf(x) && x == y; };
    if (overflows(a.real(), b.real())) return std::isnan(a.imag()) == std::isnan(b.imag());
    if (overflows(a.imag(), b.imag())) return std::isnan(a.real()) == std::isnan(b.real());
  }
  return alike(a.real(), b.real()) && alike(a.imag(), b.imag());
}

/// Whether y log x is so large that its rounding changes the angle of the power, or that it
/// overflows.
bool is_beyond_powers(std::complex<double> x, std::complex<double> y) {
  const bool finite = std::isfinite(std::abs(x)) && std::isfinite(std::abs(y));
  return !finite || (x != 0.0 && !(std::abs(y * std::log(x)) <= 16));
}

void expect_same_at_edges(const Case& c, ElementType type) {
  const ElementType part = complex_part(type);
  const std::vector<Literal> arguments = edge_arguments(type, c.operands);
  const auto module = module_of(c.code, arguments);
  const auto expected = hlo::Evaluator(*module).run(*module->entry(), arguments);
  ASSERT_TRUE(expected) << expected.error().to_string();
  std::vector<hlo::CheckFailure> failures;
  int64_t checks = 0;
  const auto actual = hlo::run_interpreted(*module, arguments, hlo::Checks(&failures, &checks));
  ASSERT_TRUE(actual) << actual.error().to_string();
  int64_t wrong = 0;
  std::string first;
  for (int64_t i = 0; i < arguments[0].element_count(); ++i) {
    if (c.code == OpCode::kPower &&
        is_beyond_powers(arguments[0].get_complex(i), arguments[1].get_complex(i))) {
      continue;
    }
    const std::complex<double> a = (*actual)[0].get_complex(i);
    const std::complex<double> b = (*expected)[0].get_complex(i);
    if (is_same(c, part, arguments[0].get_complex(i), a, b) || ++wrong > 40) continue;
    for (const Literal& argument : arguments) first += " " + argument.element_to_string(i);
    first += ": interp " + (*actual)[0].element_to_string(i) + ", evaluator " +
             (*expected)[0].element_to_string(i) + "\n";
  }
  EXPECT_EQ(wrong, 0) << op_name(c.code) << " of " << name_of(type) << "\n" << first;
}

class ComplexEdges : public ::testing::TestWithParam<Case> {};

TEST_P(ComplexEdges, LoweredAsEvaluated) {
  for (const ElementType type : {ElementType::kC64, ElementType::kC128}) {
    expect_same_at_edges(GetParam(), type);
  }
}

std::vector<Case> complex_ops() {
  return {
      {.code = OpCode::kAbs},
      {.code = OpCode::kSign},
      {.code = OpCode::kExponential},
      {.code = OpCode::kExponentialMinusOne, .signed_zeros = false},
      {.code = OpCode::kLog},
      {.code = OpCode::kLogPlusOne},
      // Near a pole the sum 1 + e^-z amplifies the exponential's error.
      {.code = OpCode::kLogistic, .units = 256, .signed_zeros = false},
      {.code = OpCode::kSine},
      {.code = OpCode::kCosine},
      {.code = OpCode::kTan},
      {.code = OpCode::kTanh},
      {.code = OpCode::kSqrt},
      {.code = OpCode::kRsqrt, .signed_zeros = false},
      {.code = OpCode::kCbrt},
      {.code = OpCode::kAdd, .operands = 2, .units = 0},
      {.code = OpCode::kSubtract, .operands = 2, .units = 0},
      {.code = OpCode::kMultiply, .operands = 2, .units = 0},
      {.code = OpCode::kDivide, .operands = 2, .signed_zeros = false, .normwise_at_overflow = true},
      {.code = OpCode::kPower, .operands = 2, .units = 256, .signed_zeros = false}};
}

struct Row {
  OpCode code;
  std::vector<std::complex<double>> arguments;
  std::complex<double> result;
};

// Rules of C's Annex G that the evaluator once violated, and the plain formula of multiply.
TEST(ComplexRules, TheEvaluatorFollowsAnnexG) {
  const std::vector<Row> rows = {
      {OpCode::kExponential, {{-kInf, 2}}, {-0.0, 0.0}},
      {OpCode::kExponential, {{-kInf, kInf}}, {0.0, 0.0}},
      {OpCode::kTanh, {{2, kInf}}, {kNan, kNan}},
      {OpCode::kTanh, {{kInf, 100}}, {1, -0.0}},
      {OpCode::kSine, {{1, kInf}}, {kInf, kInf}},
      {OpCode::kCosine, {{1, -kInf}}, {kInf, kInf}},
      {OpCode::kDivide, {{kInf, kNan}, {1, 1}}, {kInf, -kInf}},
      {OpCode::kDivide, {{1, -2}, {-0.0, 0}}, {-kInf, kInf}},
      {OpCode::kDivide, {{1, 2}, {kInf, kNan}}, {0, 0}},
      {OpCode::kMultiply, {{kInf, 1}, {1, 0}}, {kInf, kNan}},
      {OpCode::kMultiply, {{3e38, 3e38}, {2, 2}}, {kNan, kInf}},
  };
  for (const Row& row : rows) {
    std::vector<Literal> arguments;
    for (const std::complex<double> argument : row.arguments) {
      Literal literal(Shape(ElementType::kC64, {1}));
      literal.set_complex(0, argument);
      arguments.push_back(std::move(literal));
    }
    const auto module = module_of(row.code, arguments);
    const auto result = hlo::Evaluator(*module).run(*module->entry(), arguments);
    ASSERT_TRUE(result) << result.error().to_string();
    const Case exact = {.code = row.code, .units = 0, .signed_zeros = row.arguments.size() == 1};
    EXPECT_TRUE(is_same(exact, ElementType::kF32, row.arguments[0], (*result)[0].get_complex(0),
                        row.result))
        << op_name(row.code) << " " << row.arguments[0] << ": " << (*result)[0].to_string();
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, ComplexEdges, ::testing::ValuesIn(complex_ops()),
                         [](const ::testing::TestParamInfo<Case>& test) {
                           return std::string(hlo::op_info(test.param.code).short_name());
                         });

}  // namespace
}  // namespace tenon::conformance
