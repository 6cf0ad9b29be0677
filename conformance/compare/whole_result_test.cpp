// The rules for ops that are judged as a whole: right results pass, results that are wrong in one
// element do not.
#include "conformance/compare/whole_result.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "conformance/cases/text_program.h"
#include "conformance/compare/bounds.h"
#include "conformance/compare/differential.h"
#include "conformance/compare/tolerance.h"

namespace tenon::conformance {
namespace {

using enum ElementType;

// Adds `error`, relative to the element, to the first element that is not 0.
void spoil(Literal& array, double error) {
  for (int64_t i = 0; i < array.element_count(); ++i) {
    const auto z = array.get_complex(i);
    if (std::abs(z) == 0) continue;
    if (is_complex(array.element_type())) {
      array.set_complex(i, z * (1 + error));
    } else {
      array.set_double(i, z.real() * (1 + error));
    }
    return;
  }
}

// The message of the mismatch after the last result got a relative error; empty if it passes.
std::string mismatch(const TextTemplate& text, ElementType type, double error) {
  auto program = make_text_program(text, type, ValueClass::kOrdinary, 7);
  EXPECT_TRUE(program) << program.error().to_string();
  auto run = make_evaluator_target()->run(*program->module, program->arguments);
  EXPECT_TRUE(run) << run.error().to_string();
  spoil(run->results.back(), error);
  const auto found = compare_results(*program->module, program->arguments, run->results);
  return found ? found->text : "";
}

void expect_bound(const TextTemplate& text, ElementType type, double small, double large) {
  EXPECT_EQ(mismatch(text, type, 0), "");
  EXPECT_EQ(mismatch(text, type, small), "");
  EXPECT_NE(mismatch(text, type, large), "");
}

TEST(WholeResults, OfFftAreWithinTheNorm) {
  const TextTemplate fft{"", "3x8x$T", "3x8x$T", "data",
                         "%r = stablehlo.fft %a, type = FFT, length = [8] : ($A) -> $R"};
  expect_bound(fft, kC64, 1e-7, 1e-3);
  expect_bound(fft, kC128, 1e-16, 1e-9);
}

TEST(WholeResults, OfFactorsHaveSmallResiduals) {
  for (const bool lower : {true, false}) {
    const TextTemplate cholesky{"", "5x5x$T", "5x5x$T", "spd",
                                lower ? "%r = stablehlo.cholesky %a, lower = true : $A"
                                      : "%r = stablehlo.cholesky %a, lower = false : $A"};
    expect_bound(cholesky, kF32, 1e-8, 1e-3);
    expect_bound(cholesky, kC64, 1e-8, 1e-3);
  }
  const TextTemplate solve{
      "", "5x5x$T, 5x2x$T", "5x2x$T", "triangular data",
      "%r = \"stablehlo.triangular_solve\"(%a, %b) {left_side = true, lower = true, "
      "unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : ($A, $B) -> $R"};
  expect_bound(solve, kF64, 1e-17, 1e-9);
  EXPECT_NE(mismatch(solve, kF64, 1e-9).find("the residual is"), std::string::npos);
}

TEST(WholeResults, OfNormalizationAreWithinAMultipleOfTheRounding) {
  const TextTemplate training{
      "", "6x7x5x$T, 5x$T, 5x$T", "6x7x5x$T, 5x$T, 5x$T", "unit",
      "%r, %s, %u = \"stablehlo.batch_norm_training\"(%a, %b, %c) "
      "{epsilon = 0.001 : f32, feature_index = 2 : i64} : ($A, $B, $C) -> ($R, $S, $U)"};
  expect_bound(training, kF32, 1e-8, 1e-2);
}

TEST(WholeResults, OfRandomNumbersLieInTheirIntervalIfThereIsOne) {
  const auto between = [](std::string_view low, std::string_view high, double error) {
    const std::string body = fmt::format(
        "%low = stablehlo.constant dense<{}> : tensor<f32>\n"
        "%high = stablehlo.constant dense<{}> : tensor<f32>\n"
        "%shape = stablehlo.constant dense<64> : tensor<1xi64>\n"
        "%r = stablehlo.rng %low, %high, %shape, distribution = UNIFORM : "
        "(tensor<f32>, tensor<f32>, tensor<1xi64>) -> $R",
        low, high);
    return mismatch(TextTemplate{"", "4x$T", "64x$T", "data", body}, kF32, error);
  };
  EXPECT_EQ(between("1.0", "2.0", 0), "");
  EXPECT_NE(between("1.0", "2.0", 3), "");
  EXPECT_EQ(between("2.0", "1.0", 3), "");
}

// A sum of bf16 that is rounded at each step, as some units do it, is no sum in f32.
TEST(Sums, OfNarrowFloatsAreRoundedOnce) {
  const TextTemplate sum{"", "4096x$T", "$T", "positive",
                         "%z = stablehlo.constant dense<0.0> : tensor<$T>\n"
                         "%r = stablehlo.reduce(%a init: %z) applies stablehlo.add across "
                         "dimensions = [0] : ($A, tensor<$T>) -> $R"};
  expect_bound(sum, kBF16, 0, 0.02);
}

// The ledger's entry of the program's last op, after the last result got a relative error.
LedgerEntry ledger_entry(const TextTemplate& text, ElementType type, double error) {
  auto program = make_text_program(text, type, ValueClass::kOrdinary, 7);
  EXPECT_TRUE(program) << program.error().to_string();
  auto run = make_evaluator_target()->run(*program->module, program->arguments);
  EXPECT_TRUE(run) << run.error().to_string();
  spoil(run->results.back(), error);
  Ledger ledger;
  static_cast<void>(compare_results(*program->module, program->arguments, run->results, &ledger));
  const std::vector<LedgerEntry> entries = ledger.entries();
  EXPECT_EQ(entries.size(), 1u);
  return entries.empty() ? LedgerEntry{} : entries[0];
}

TEST(Ledgers, HaveSumsAndTransformsAsSharesOfTheirBounds) {
  const TextTemplate sum{"", "64x$T", "$T", "positive",
                         "%z = stablehlo.constant dense<0.0> : tensor<$T>\n"
                         "%r = stablehlo.reduce(%a init: %z) applies stablehlo.add across "
                         "dimensions = [0] : ($A, tensor<$T>) -> $R"};
  const TextTemplate fft{"", "3x8x$T", "3x8x$T", "data",
                         "%r = stablehlo.fft %a, type = FFT, length = [8] : ($A) -> $R"};
  for (const auto& [text, type, op] :
       {std::tuple{sum, kF32, "stablehlo.reduce"}, {fft, kC64, "stablehlo.fft"}}) {
    const LedgerEntry right = ledger_entry(text, type, 0);
    EXPECT_EQ(right.op, op);
    EXPECT_EQ(right.unit, ErrorUnit::kBound);
    EXPECT_EQ(right.bound, 1);
    EXPECT_LT(right.error, 0.5);
    EXPECT_GT(right.elements, 0);
    const LedgerEntry small = ledger_entry(text, type, 1e-6);
    EXPECT_GT(small.error, right.error);
    EXPECT_LT(small.error, 1);
    EXPECT_NE(small.operands.find("element ["), std::string::npos) << small.operands;
    EXPECT_NE(small.got, small.exact);
    EXPECT_GT(ledger_entry(text, type, 1e-2).error, 1);
  }
}

TEST(Ledgers, HaveComplexFunctionsInUnitsOfTheModulus) {
  const TextTemplate exponential{"", "5x$T", "5x$T", "data", "%r = stablehlo.exponential %a : $A"};
  const LedgerEntry right = ledger_entry(exponential, kC64, 0);
  EXPECT_EQ(right.unit, ErrorUnit::kUlp);
  EXPECT_EQ(right.bound, *required_ulp("stablehlo.exponential", kC64));
  EXPECT_EQ(right.elements, 5);
  EXPECT_LE(right.error, 1);
  const LedgerEntry wrong = ledger_entry(exponential, kC64, 0x1p-13);
  EXPECT_NEAR(wrong.error, 1024, 2);  // Of 2^-23.
  EXPECT_NE(wrong.operands, "");
}

// A factor with columns of other signs has the same residual.
TEST(WholeResults, OfFactorsHaveAPositiveDiagonal) {
  const TextTemplate cholesky{"", "4x4x$T", "4x4x$T", "spd",
                              "%r = stablehlo.cholesky %a, lower = true : $A"};
  for (const ElementType type : {kF32, kC64}) {
    auto program = make_text_program(cholesky, type, ValueClass::kOrdinary, 7);
    ASSERT_TRUE(program) << program.error().to_string();
    auto run = make_evaluator_target()->run(*program->module, program->arguments);
    ASSERT_TRUE(run) << run.error().to_string();
    Literal& factor = run->results.back();
    const auto wrong = [&] {
      return compare_results(*program->module, program->arguments, run->results);
    };
    EXPECT_FALSE(wrong());
    for (const int64_t i : {10, 14}) {  // Column 2.
      const auto z = -factor.get_complex(i);
      is_complex(type) ? factor.set_complex(i, z) : factor.set_double(i, z.real());
    }
    const auto found = wrong();
    ASSERT_TRUE(found);
    EXPECT_NE(found->text.find("diagonal"), std::string::npos) << found->text;
  }
}

TEST(Sums, OfSpecialTermsAreSpecial) {
  const double inf = HUGE_VAL;
  EXPECT_TRUE(is_sum_of_special_terms(inf, inf));
  EXPECT_TRUE(is_sum_of_special_terms(NAN, inf));
  EXPECT_TRUE(is_sum_of_special_terms(NAN, NAN));
  EXPECT_FALSE(is_sum_of_special_terms(0, inf));
  EXPECT_FALSE(is_sum_of_special_terms(-inf, inf));
  EXPECT_FALSE(is_sum_of_special_terms(inf, NAN));
  EXPECT_FALSE(is_sum_of_special_terms(1, NAN));
}

TEST(ProgramResults, AreWithinTheEvaluatorsOwnError) {
  Literal exact(Shape(kF32, {2}));
  exact.set_double(0, 1);
  exact.set_double(1, 100);
  Literal narrow = exact;
  narrow.set_double(0, 1.001);
  Literal actual = exact;
  actual.set_double(1, 100.003);  // Four times the evaluator's error.
  EXPECT_FALSE(check_program_result(exact, narrow, actual));
  actual.set_double(1, 100.01);
  const auto wrong = check_program_result(exact, narrow, actual);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->element, 1);
  const Literal number = Literal::scalar_integer(kS32, 3);
  EXPECT_FALSE(check_program_result(number, number, number));
  EXPECT_TRUE(check_program_result(number, number, Literal::scalar_integer(kS32, 4)));
}

TEST(TextPrograms, TakeTypesAndFillArguments) {
  const TextTemplate program{"", "3x$T, 2xi32", "3x$T", "small list:4,-5",
                             "%r = stablehlo.add %a, %a : $A"};
  EXPECT_EQ(text_of(program, kF16),
            "func.func @main(%a: tensor<3xf16>, %b: tensor<2xi32>) -> (tensor<3xf16>) {\n"
            "%r = stablehlo.add %a, %a : tensor<3xf16>\nreturn %r : tensor<3xf16>\n}\n");
  const auto made = make_text_program(program, kF16, ValueClass::kOrdinary, 1);
  ASSERT_TRUE(made) << made.error().to_string();
  EXPECT_EQ(made->arguments[1].get_integer(0), 4);
  EXPECT_EQ(made->arguments[1].get_integer(1), -5);
  const auto again = make_text_program(program, kF16, ValueClass::kOrdinary, 1);
  EXPECT_EQ(made->arguments, again->arguments);
}

}  // namespace
}  // namespace tenon::conformance
