#include "tools/arguments.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>

#include "core/types/npy.h"
#include "hlo/import/import.h"

namespace tenon::tools {
namespace {

using enum ElementType;

// The arguments of `@f(types)` as text, or the error.
std::string arguments(std::string_view types, const std::vector<std::string>& specs) {
  const auto module = hlo::import_module(
      fmt::format("hlo_module {{ func.func @f({}) {{ stablehlo.return() }} }}", types), "t");
  if (!module) return module.error().to_string();
  const auto values = parse_arguments(*(*module)->find_function("f"), specs);
  if (!values) return values.error().message();
  std::string text;
  for (const Literal& value : *values) {
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", value.shape().to_string(),
                        value.to_string());
  }
  return text;
}

TEST(ParseArguments, Values) {
  const std::vector<std::array<const char*, 3>> cases = {
      {"%x: s32[2]", "0=5", "s32[2] [5, 5]"},
      {"%x: s8[]", "0=-128", "s8[] -128"},
      {"%x: u64[]", "0=18446744073709551615", "u64[] 18446744073709551615"},
      {"%x: f32[1,2]", "0=1.5", "f32[1,2] [[1.5, 1.5]]"},
      {"%x: f32[]", "0=nan", "f32[] nan"},
      {"%x: f32[]", "0=-inf", "f32[] -inf"},
      {"%x: c64[]", "0=2", "c64[] (2, 0)"},
      {"%x: pred[2]", "0=true", "pred[2] [true, true]"},
      {"%x: pred[]", "0=0", "pred[] false"},
      {"%x: f32[]", "0=true", "f32[] 1"},
      {"%x: q<s8:f32, 0.5>[2]", "0=3", "s8[2] [3, 3]"},
      {"%x: s32[0]", "0=1", "s32[0] []"},
  };
  for (const auto& [types, spec, expected] : cases) EXPECT_EQ(arguments(types, {spec}), expected);
}

TEST(ParseArguments, InAnyOrder) {
  EXPECT_EQ(arguments("%x: s32[], %y: s8[]", {"1=2", "0=1"}), "s32[] 1; s8[] 2");
  EXPECT_EQ(arguments("", {}), "");
}

TEST(ParseArguments, Files) {
  const std::string path = testing::TempDir() + "arguments_test.npy";
  ASSERT_TRUE(write_npy(path, Literal::scalar(kBF16, 1.5).splat_to(Shape(kBF16, {2}))).ok());
  EXPECT_EQ(arguments("%x: bf16[2]", {"0=@" + path}), "bf16[2] [1.5, 1.5]");
  EXPECT_EQ(arguments("%x: bf16[?]", {"0=@" + path}), "bf16[2] [1.5, 1.5]");
  EXPECT_EQ(arguments("%x: f32[2]", {"0=@" + path}),
            fmt::format("--arg 0=@{}: the array is bf16[2], parameter 0 is f32[2]", path));
  EXPECT_EQ(arguments("%x: bf16[3]", {"0=@" + path}),
            fmt::format("--arg 0=@{}: the array is bf16[2], parameter 0 is bf16[3]", path));
  std::remove(path.c_str());
  EXPECT_EQ(arguments("%x: bf16[3]", {"0=@" + path}),
            fmt::format("--arg 0=@{0}: cannot read {0}: No such file or directory", path));
}

TEST(ParseArguments, Errors) {
  const std::vector<std::array<const char*, 3>> cases = {
      {"%x: s32[]", "5", "--arg 5: expected N=…, N the number of a parameter"},
      {"%x: s32[]", "x=5", "--arg x=5: expected N=…, N the number of a parameter"},
      {"%x: s32[]", "-1=5", "--arg -1=5: expected N=…, N the number of a parameter"},
      {"%x: s32[]", "=5", "--arg =5: expected N=…, N the number of a parameter"},
      {"%x: s32[]", "1=5", "--arg 1=5: @f has 1 parameters, numbered from 0"},
      {"%x: s32[]", "0=", "--arg 0=: '' is not a value of type s32"},
      {"%x: s32[]", "0=1.5", "--arg 0=1.5: '1.5' is not a value of type s32"},
      {"%x: s32[]", "0=abc", "--arg 0=abc: 'abc' is not a value of type s32"},
      {"%x: s8[]", "0=128", "--arg 0=128: 128 is out of the range of s8"},
      {"%x: u8[]", "0=-1", "--arg 0=-1: -1 is out of the range of u8"},
      {"%x: s4[]", "0=8", "--arg 0=8: 8 is out of the range of s4"},
      {"%x: u64[]", "0=-1", "--arg 0=-1: -1 is out of the range of u64"},
      {"%x: s64[]", "0=9223372036854775808",
       "--arg 0=9223372036854775808: '9223372036854775808' is not a value of type s64"},
      {"%x: f32[]", "0=1x", "--arg 0=1x: '1x' is not a value of type f32"},
      {"%x: f32[]", "0=", "--arg 0=: '' is not a value of type f32"},
      {"%x: bf16[]", "0=1e40", "--arg 0=1e40: 1e40 is out of the range of bf16"},
      {"%x: f32[]", "0=1e400", "--arg 0=1e400: 1e400 is out of the range of f32"},
      {"%x: f4e2m1fn[]", "0=nan", "--arg 0=nan: nan is out of the range of f4e2m1fn"},
      {"%x: f32[100000000000,4]", "0=1",
       "--arg 0=1: an array of f32[100000000000,4] needs more than the 16384 MiB allowed"},
      {"%x: f32[]", "0=random:x", "--arg 0=random:x: 'x' is not a seed"},
      {"%x: f32[]", "0=random:", "--arg 0=random:: '' is not a seed"},
      {"%x: f32[?]", "0=1",
       "--arg 0=1: its type f32[?] has unknown sizes; give them with --shape, or an .npy file"},
      {"%x: token", "0=1", "--arg 0=1: a parameter of type token cannot be given here"},
  };
  for (const auto& [types, spec, expected] : cases) EXPECT_EQ(arguments(types, {spec}), expected);
}

TEST(ParseArguments, TwiceAndMissing) {
  EXPECT_EQ(arguments("%x: s32[]", {"0=1", "0=2"}), "--arg 0: given twice");
  EXPECT_EQ(arguments("%x: s32[], %y: f32[2]", {"0=1"}),
            "parameter 1 of @f, f32[2], has no value; give --arg 1=@FILE.npy, --arg 1=VALUE or "
            "--arg 1=random");
}

TEST(ParseArguments, RandomIsTheSameForASeed) {
  const std::string one = arguments("%x: f32[4]", {"0=random:7"});
  EXPECT_EQ(one, arguments("%x: f32[4]", {"0=random:7"}));
  EXPECT_NE(one, arguments("%x: f32[4]", {"0=random:8"}));
  EXPECT_EQ(arguments("%x: f32[4]", {"0=random"}), arguments("%x: f32[4]", {"0=random:0"}));
  // Two arguments of one seed differ.
  const std::string two = arguments("%x: f32[4], %y: f32[4]", {"0=random", "1=random"});
  EXPECT_NE(two.substr(0, two.find(';')), two.substr(two.find(';') + 2));
}

TEST(RandomLiteral, FillsEveryType) {
  for (const ElementTypeInfo& row : element_types()) {
    const Literal literal = random_literal(Shape(row.type, {64}), 1);
    EXPECT_FALSE(literal.is_splat()) << row.name;
    for (int64_t i = 0; i < 64; ++i) {
      if (is_float(row.type) && row.type != kF8E8M0FNU) {
        ASSERT_GE(literal.get_double(i), -1) << row.name;
        ASSERT_LE(literal.get_double(i), 1) << row.name;
      }
    }
  }
}

TEST(ParseShapes, Sizes) {
  const auto shapes = parse_shapes({"0=2x3", "2=scalar", "1=0"});
  ASSERT_TRUE(shapes) << shapes.error().message();
  EXPECT_EQ(*shapes, (std::map<size_t, Dims>{{0, {2, 3}}, {1, {0}}, {2, {}}}));
}

TEST(ParseShapes, Errors) {
  const auto error = [](const std::vector<std::string>& specs) {
    return parse_shapes(specs).error().message();
  };
  EXPECT_EQ(error({"2x3"}), "--shape 2x3: expected N=…, N the number of a parameter");
  for (const char* bad : {"0=2x", "0=x2", "0=-1", "0=2,3", "0=a", "0=2xx3", "0=2xscalar",
                          "0=99999999999999999999", "0="}) {
    EXPECT_EQ(error({bad}), fmt::format("--shape {}: expected sizes such as 2x3", bad));
  }
  EXPECT_EQ(error({"0=2", "0=3"}), "--shape 0: given twice");
}

}  // namespace
}  // namespace tenon::tools
