#include "hlo/lower/elements/arg_extremum.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "hlo/import/import.h"

namespace tenon::hlo::lower {
namespace {

// The extremum that a reduce of values of `type` and places finds; whether the values are results
// too, whether places are counted, and the place of the initial value.
std::optional<Extremum> found_in(std::string_view type, std::string_view body,
                                 bool uses_values = false, bool counts = true, int init = 0) {
  const auto module = import_module(
      fmt::format(R"(
func.func @main(%x: tensor<8x{0}>, %p: tensor<8xi32>, %init: tensor<{0}>) -> (tensor<i32>, tensor<{0}>) {{
  %places = stablehlo.{1}
  %none = stablehlo.constant dense<{4}> : tensor<i32>
  %0:2 = stablehlo.reduce(%x init: %init), (%places init: %none) across dimensions = [0]
      : (tensor<8x{0}>, tensor<8xi32>, tensor<{0}>, tensor<i32>) -> (tensor<{0}>, tensor<i32>)
    reducer(%a: tensor<{0}>, %b: tensor<{0}>) (%i: tensor<i32>, %j: tensor<i32>) {{
    %g = stablehlo.compare GT, %a, %b : (tensor<{0}>, tensor<{0}>) -> tensor<i1>
    %l = stablehlo.compare LT, %a, %b : (tensor<{0}>, tensor<{0}>) -> tensor<i1>
    %n = stablehlo.compare NE, %a, %a : (tensor<{0}>, tensor<{0}>) -> tensor<i1>
    %e = stablehlo.compare EQ, %a, %b : (tensor<{0}>, tensor<{0}>) -> tensor<i1>
    %f = stablehlo.compare LT, %i, %j : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %t = stablehlo.and %e, %f : tensor<i1>
    {2}
    stablehlo.return %v, %q : tensor<{0}>, tensor<i32>
  }}
  return %0#1, %{3} : tensor<i32>, tensor<{0}>
}})",
                  type, counts ? "iota dim = 0 : tensor<8xi32>" : "negate %p : tensor<8xi32>", body,
                  uses_values ? "0#0" : "init", init),
      "t");
  if (!module) {
    ADD_FAILURE() << module.error().to_string();
    return std::nullopt;
  }
  for (const Instruction& op : *(*module)->entry()) {
    if (op.code() == OpCode::kReduce) return find_arg_extremum(op);
  }
  ADD_FAILURE() << "no reduce";
  return std::nullopt;
}

// JAX's: %better is %g or %l.
std::string left_or_nan(std::string_view better, std::string_view type) {
  return fmt::format(R"(
    %c = stablehlo.or %{0}, %n : tensor<i1>
    %o = stablehlo.or %c, %t : tensor<i1>
    %v = stablehlo.select %c, %a, %b : tensor<i1>, tensor<{1}>
    %q = stablehlo.select %o, %i, %j : tensor<i1>, tensor<i32>)",
                     better, type);
}

constexpr const char* kWithoutNans = R"(
    %o = stablehlo.or %g, %t : tensor<i1>
    %v = stablehlo.select %g, %a, %b : tensor<i1>, tensor<i16>
    %q = stablehlo.select %o, %i, %j : tensor<i1>, tensor<i32>)";

TEST(ArgExtremum, ItsDirectionFollowsFromTheRegion) {
  for (const char* type : {"f32", "bf16", "f64", "i8", "ui32"}) {
    EXPECT_EQ(found_in(type, left_or_nan("g", type)), Extremum::kGreatest) << type;
    EXPECT_EQ(found_in(type, left_or_nan("l", type)), Extremum::kLeast) << type;
  }
  EXPECT_EQ(found_in("i16", kWithoutNans), Extremum::kGreatest);
}

// The left of two NaNs is taken, whose place is the lower one only if places ascend; the sign of a
// zero that is used depends on the order.
TEST(ArgExtremum, FloatsWantAscendingPlacesAlone) {
  EXPECT_FALSE(found_in("f32", left_or_nan("g", "f32"), true));
  EXPECT_FALSE(found_in("f32", left_or_nan("g", "f32"), false, false));
  EXPECT_FALSE(found_in("f32", left_or_nan("g", "f32"), false, true, 7)) << "the first place is 7";
  EXPECT_TRUE(found_in("f32", left_or_nan("g", "f32"), false, true, -1));
  EXPECT_TRUE(found_in("i32", left_or_nan("g", "i32"), true, false, 7));
}

// Places of 8 bits wrap around behind 127.
TEST(ArgExtremum, PlacesThatWrapDoNotAscend) {
  for (const auto& [count, ascend] : {std::pair(128, true), std::pair(129, false)}) {
    const auto module = import_module(fmt::format(R"(
func.func @main(%x: tensor<{0}xf32>) -> tensor<i8> {{
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %places = stablehlo.iota dim = 0 : tensor<{0}xi8>
  %none = stablehlo.constant dense<0> : tensor<i8>
  %0:2 = stablehlo.reduce(%x init: %low), (%places init: %none) across dimensions = [0]
      : (tensor<{0}xf32>, tensor<{0}xi8>, tensor<f32>, tensor<i8>) -> (tensor<f32>, tensor<i8>)
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%i: tensor<i8>, %j: tensor<i8>) {{
    %g = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %n = stablehlo.compare NE, %a, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %e = stablehlo.compare EQ, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %l = stablehlo.or %g, %n : tensor<i1>
    %o = stablehlo.or %l, %e : tensor<i1>
    %v = stablehlo.select %l, %a, %b : tensor<i1>, tensor<f32>
    %q = stablehlo.select %o, %i, %j : tensor<i1>, tensor<i8>
    stablehlo.return %v, %q : tensor<f32>, tensor<i8>
  }}
  return %0#1 : tensor<i8>
}})",
                                                  count),
                                      "t");
    ASSERT_TRUE(module) << module.error().to_string();
    for (const Instruction& op : *(*module)->entry()) {
      if (op.code() == OpCode::kReduce)
        EXPECT_EQ(find_arg_extremum(op).has_value(), ascend) << count;
    }
  }
}

TEST(ArgExtremum, OtherRegionsAreNone) {
  EXPECT_FALSE(found_in("f32", R"(
    %o = stablehlo.or %g, %t : tensor<i1>
    %v = stablehlo.select %g, %a, %b : tensor<i1>, tensor<f32>
    %q = stablehlo.select %o, %i, %j : tensor<i1>, tensor<i32>)"))
      << "a NaN on the left is lost";
  EXPECT_FALSE(found_in("i32", R"(
    %v = stablehlo.select %g, %a, %b : tensor<i1>, tensor<i32>
    %q = stablehlo.select %g, %i, %j : tensor<i1>, tensor<i32>)"))
      << "the last of equals";
  EXPECT_FALSE(found_in("i32", R"(
    %v = stablehlo.maximum %a, %b : tensor<i32>
    %q = stablehlo.add %i, %j : tensor<i32>)"))
      << "a sum of places";
  EXPECT_FALSE(found_in("i32", R"(
    %m = stablehlo.constant dense<4> : tensor<i32>
    %w = stablehlo.compare LT, %a, %m : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %v = stablehlo.select %w, %a, %b : tensor<i1>, tensor<i32>
    %q = stablehlo.select %w, %i, %j : tensor<i1>, tensor<i32>)"))
      << "a threshold";
  EXPECT_FALSE(found_in("i32", R"(
    %x = stablehlo.compare GT, %a, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %y = stablehlo.compare GT, %a, %j : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %w = stablehlo.and %x, %y : tensor<i1>
    %o = stablehlo.or %g, %t : tensor<i1>
    %u = stablehlo.or %o, %w : tensor<i1>
    %v = stablehlo.maximum %a, %b : tensor<i32>
    %q = stablehlo.select %u, %i, %j : tensor<i1>, tensor<i32>)"))
      << "a value beside a place";
  EXPECT_FALSE(found_in("i32", R"(
    %s = stablehlo.compare EQ, %i, %j : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %o = stablehlo.or %g, %t : tensor<i1>
    %x = stablehlo.maximum %a, %b : tensor<i32>
    %y = stablehlo.minimum %a, %b : tensor<i32>
    %v = stablehlo.select %s, %y, %x : tensor<i1>, tensor<i32>
    %q = stablehlo.select %o, %i, %j : tensor<i1>, tensor<i32>)"))
      << "the least value of equal places";
}

}  // namespace
}  // namespace tenon::hlo::lower
