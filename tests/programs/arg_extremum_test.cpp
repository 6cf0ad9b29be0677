// The place of the greatest or least element, on every device: the first of equal ones, and of NaNs
// before every number (hlo/lower/elements/arg_extremum.h).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "hlo/lower/elements/arg_extremum.h"
#include "tests/programs/every_device_test_util.h"

namespace tenon::conformance {
namespace {

struct Reducer {
  const char* name;
  const char* body;  ///< %a, %i, %b, %j; {0} is the type of a value, {1} GT or LT.
  bool finds_nans;   ///< Else only numbers are given.
};

// JAX's and TensorFlow's.
const Reducer kReducers[] = {
    {"left or NaN", R"(
    %better = stablehlo.compare {1}, %a, %b : (tensor<{0}>, tensor<{0}>) -> tensor<i1>
    %nan = stablehlo.compare NE, %a, %a : (tensor<{0}>, tensor<{0}>) -> tensor<i1>
    %left = stablehlo.or %better, %nan : tensor<i1>
    %same = stablehlo.compare EQ, %a, %b : (tensor<{0}>, tensor<{0}>) -> tensor<i1>
    %before = stablehlo.compare LT, %i, %j : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %tie = stablehlo.and %same, %before : tensor<i1>
    %first = stablehlo.or %left, %tie : tensor<i1>
    %value = stablehlo.select %left, %a, %b : tensor<i1>, tensor<{0}>
    %place = stablehlo.select %first, %i, %j : tensor<i1>, tensor<i32>)",
     true},
    {"least place of equals", R"(
    %left = stablehlo.compare {1}, %a, %b : (tensor<{0}>, tensor<{0}>) -> tensor<i1>
    %value = stablehlo.select %left, %a, %b : tensor<i1>, tensor<{0}>
    %either = stablehlo.select %left, %i, %j : tensor<i1>, tensor<i32>
    %same = stablehlo.compare EQ, %a, %b : (tensor<{0}>, tensor<{0}>) -> tensor<i1>
    %least = stablehlo.minimum %i, %j : tensor<i32>
    %place = stablehlo.select %same, %least, %either : tensor<i1>, tensor<i32>)",
     false},
};

std::string text_of(const Reducer& reducer, const std::string& type, bool greatest, Dims dims,
                    int64_t along) {
  const std::string array = fmt::format("{}x{}", fmt::join(dims, "x"), type);
  const std::string places = fmt::format("{}xi32", fmt::join(dims, "x"));
  dims.erase(dims.begin() + along);
  const std::string results = dims.empty() ? "" : fmt::format("{}x", fmt::join(dims, "x"));
  const std::string body = fmt::format(fmt::runtime(reducer.body), type, greatest ? "GT" : "LT");
  const bool whole = type[0] == 'i' || type[0] == 'u';
  const std::string worst = whole ? "0" : greatest ? "-1.0e4" : "1.0e4";
  return fmt::format(R"(func.func @main(%x: tensor<{0}>) -> tensor<{1}i32> {{
  %places = stablehlo.iota dim = {2} : tensor<{3}>
  %worst = stablehlo.constant dense<{4}> : tensor<{5}>
  %none = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.reduce(%x init: %worst), (%places init: %none) across dimensions = [{2}]
      : (tensor<{0}>, tensor<{3}>, tensor<{5}>, tensor<i32>) -> (tensor<{1}{5}>, tensor<{1}i32>)
    reducer(%a: tensor<{5}>, %b: tensor<{5}>) (%i: tensor<i32>, %j: tensor<i32>) {{{6}
    stablehlo.return %value, %place : tensor<{5}>, tensor<i32>
  }}
  return %0#1 : tensor<{1}i32>
}})",
                     array, results, along, places, worst, type, body);
}

// Few different numbers, so that many are equal.
Literal numbers(ElementType type, const Dims& dims, double nan_at) {
  Literal x(Shape(type, dims));
  for (int64_t i = 0; i < x.element_count(); ++i) {
    const auto number = static_cast<double>(i * 37 % 11 + 1);
    if (is_integer(type)) {
      x.set_integer(i, static_cast<int64_t>(number));
    } else {
      x.set_double(i, i % 13 == nan_at ? std::numeric_limits<double>::quiet_NaN() : number);
    }
  }
  return x;
}

// Whether lowering finds the extremum of the program's reduce.
bool is_found(const hlo::Module& module) {
  for (const hlo::Instruction& op : *module.entry()) {
    if (op.code() == hlo::OpCode::kReduce) return hlo::lower::find_arg_extremum(op).has_value();
  }
  return false;
}

class ArgExtremum : public EveryDevice {};

TEST_P(ArgExtremum, IsTheFirstOfEquals) {
  const Dims shapes[] = {{1003}, {7, 65}, {65, 7}, {70, 12}, {12, 70}, {3}};
  for (const char* type : {"f32", "bf16", "i8", "ui16"}) {
    for (const Reducer& reducer : kReducers) {
      for (const Dims& dims : shapes) {
        const bool greatest = dims[0] != 7;
        if (is_integer(*element_type_from_mlir_name(type)) && !greatest) continue;
        for (int64_t along = 0; along < static_cast<int64_t>(dims.size()); ++along) {
          const std::string text = text_of(reducer, type, greatest, dims, along);
          const bool with_nan = reducer.finds_nans && dims[0] != 65;
          const Literal x = numbers(*element_type_from_mlir_name(type), dims, with_nan ? 5 : -1);
          const auto module = hlo::import_module(text, "t");
          ASSERT_TRUE(module) << module.error().to_string() << text;
          const bool whole = is_integer(*element_type_from_mlir_name(type));
          EXPECT_EQ(is_found(**module), whole || reducer.finds_nans) << text;
          const auto expected = hlo::Evaluator(**module).run(*(*module)->entry(), {{x}});
          ASSERT_TRUE(expected) << expected.error().to_string();
          EXPECT_EQ(run(text, {x}), (*expected)[0].to_string()) << text;
        }
      }
    }
  }
}

TENON_ON_EVERY_DEVICE(ArgExtremum);

}  // namespace
}  // namespace tenon::conformance
