// rng_bit_generator with every state, output and algorithm: a program that passes the verifier
// gives the same results, or the same error, on interp and on the evaluator.
#include <gtest/gtest.h>

#include "hlo/driver/same_test_util.h"

namespace tenon::conformance {
namespace {

constexpr std::string_view kStates[] = {
    "f32",    "ui64",  "3xf32",  "1xui64", "2xui64",   "3xui64",
    "4xui64", "2xi64", "4xui32", "6xi32",  "2x2xui64", "8xui16",
};
constexpr std::string_view kOutputs[] = {
    "ui64",  "1xui16",  "2x3xui32", "5xi8",  "0xui32",
    "3xui4", "3x3xf32", "7xbf16",   "2xf64", "5xf8E5M2",
};
constexpr std::string_view kAlgorithms[] = {"DEFAULT", "THREE_FRY", "PHILOX"};

std::string text_of(std::string_view state, std::string_view output, std::string_view algorithm) {
  return fmt::format(R"(
func.func @main(%state: tensor<{0}>) -> (tensor<{0}>, tensor<{1}>) {{
  %0, %1 = stablehlo.rng_bit_generator %state, algorithm = {2} : (tensor<{0}>) -> (tensor<{0}>, tensor<{1}>)
  return %0, %1 : tensor<{0}>, tensor<{1}>
}})",
                     state, output, algorithm);
}

Literal seed(const Shape& shape) {
  Literal literal(shape);
  for (int64_t i = 0; i < literal.element_count(); ++i) {
    if (is_integer(shape.element_type())) literal.set_integer(i, -1 - 7 * i);
  }
  return literal;
}

TEST(RngBitGenerator, WhatTheVerifierAdmitsRunsAlike) {
  int ran = 0;
  int refused_by_verifier = 0;
  int refused_by_both = 0;
  for (const std::string_view state : kStates) {
    for (const std::string_view output : kOutputs) {
      for (const std::string_view algorithm : kAlgorithms) {
        const std::string text = text_of(state, output, algorithm);
        const auto module = hlo::import_module(text, "t");
        if (!module) {
          ++refused_by_verifier;
          continue;
        }
        const hlo::Computation& main = *(*module)->entry();
        const std::vector<Literal> arguments = {seed(main.parameter(0).shape())};
        const auto expected = hlo::Evaluator(**module).run(main, arguments);
        if (expected) {
          ++ran;
          expect_same(text, arguments);
          continue;
        }
        std::vector<hlo::CheckFailure> failures;
        int64_t checks = 0;
        const auto actual =
            hlo::run_interpreted(**module, arguments, hlo::Checks(&failures, &checks));
        ASSERT_FALSE(actual) << text;
        EXPECT_EQ(actual.error().code(), expected.error().code()) << text;
        EXPECT_EQ(actual.error().message(), expected.error().message()) << text;
        ++refused_by_both;
      }
    }
  }
  // u64[2], s64[2] and u32[4] with all algorithms; u64[3] and s32[6] with two of them.
  EXPECT_EQ(ran, 10 * (3 * 3 + 2 * 2));
  EXPECT_EQ(refused_by_both, 10 * 3);  // f32[], as in compatibility artifacts.
  EXPECT_EQ(refused_by_verifier, 10 * 3 * 12 - ran - refused_by_both);
}

}  // namespace
}  // namespace tenon::conformance
