// Which whiles become `for`s; each computes what the evaluator does.
#include "hlo/lower/counted_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "core/kernel/analysis/cost.h"
#include "hlo/driver/compile.h"
#include "hlo/driver/same_test_util.h"
#include "hlo/import/import.h"

namespace tenon::hlo::lower {
namespace {

struct CountedCase {
  const char* name;
  const char* type;
  const char* first;
  const char* condition;  // of %i and %limit
  const char* limit;
  const char* next;  // of %i and %step
  const char* step;
  std::optional<CountedLoop> loop;
};

std::string text_of(const CountedCase& c) {
  return fmt::format(R"(
func.func @main(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<{0}>) {{
  %first = stablehlo.constant dense<{1}> : tensor<{0}>
  %r:3 = stablehlo.while(%v = %x, %i = %first, %w = %x)
      : tensor<3xf32>, tensor<{0}>, tensor<3xf32>
  cond {{
    %limit = stablehlo.constant dense<{2}> : tensor<{0}>
    %p = stablehlo.compare {3} : (tensor<{0}>, tensor<{0}>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %step = stablehlo.constant dense<{4}> : tensor<{0}>
    %f = stablehlo.convert %i : (tensor<{0}>) -> tensor<f32>
    %b = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %s = stablehlo.add %v, %b : tensor<3xf32>
    %j = stablehlo.{5} : tensor<{0}>
    stablehlo.return %s, %j, %v : tensor<3xf32>, tensor<{0}>, tensor<3xf32>
  }}
  %y = stablehlo.multiply %r#0, %r#2 : tensor<3xf32>
  return %y, %r#1 : tensor<3xf32>, tensor<{0}>
}})",
                     c.type, c.first, c.limit, c.condition, c.step, c.next);
}

// 0.5, 1.5, …
Literal numbers(const Dims& dims) {
  Literal literal{Shape(ElementType::kF32, dims)};
  for (int64_t i = 0; i < literal.element_count(); ++i)
    literal.set_double(i, 0.5 + static_cast<double>(i));
  return literal;
}

bool has(const program::Program& program, kernel::OpCode code) {
  return std::ranges::any_of(program.kernels, [&](const kernel::Kernel& each) {
    return std::ranges::find(each.nodes, code, &kernel::Node::op) != each.nodes.end();
  });
}

class Counted : public testing::TestWithParam<CountedCase> {};

TEST_P(Counted, Loop) {
  const CountedCase& c = GetParam();
  const std::string text = text_of(c);
  const auto module = import_module(text, "t");
  ASSERT_TRUE(module) << module.error().to_string();
  const Computation& entry = *(*module)->entry();
  const auto at = std::ranges::find(entry, OpCode::kWhile, &Instruction::code);
  ASSERT_NE(at, entry.end());
  EXPECT_EQ(counted_loop(*at), c.loop);

  const auto program = compile_to_program(**module);
  ASSERT_TRUE(program) << program.error().to_string();
  EXPECT_EQ(has(*program, kernel::OpCode::kWhile), !c.loop);
  EXPECT_EQ(has(*program, kernel::OpCode::kFor), c.loop && c.loop->turns > 0);
  EXPECT_EQ(
      std::ranges::all_of(program->kernels,
                          [](const kernel::Kernel& each) { return kernel::cost_of(each).bounded; }),
      c.loop.has_value());
  conformance::expect_same(text, {numbers({3})});
}

constexpr CountedLoop counts(int64_t first, int64_t step, int64_t turns) {
  return {1, first, step, turns, first + step * turns};
}

constexpr const char* kLess = "LT, %i, %limit";
constexpr const char* kNext = "add %i, %step";
constexpr std::nullopt_t kNot = std::nullopt;

INSTANTIATE_TEST_SUITE_P(
    Loops, Counted,
    testing::Values(
        CountedCase{"Up", "i32", "0", kLess, "10", kNext, "1", counts(0, 1, 10)},
        CountedCase{"UpTo", "i32", "0", "LE, %i, %limit", "10", kNext, "1", counts(0, 1, 11)},
        CountedCase{"Mirrored", "i32", "0", "GT, %limit, %i", "10", "add %step, %i", "1",
                    counts(0, 1, 10)},
        CountedCase{"BySteps", "i64", "-5", kLess, "10", kNext, "4", counts(-5, 4, 4)},
        CountedCase{"Down", "i32", "10", "GT, %i, %limit", "0", kNext, "-1", counts(10, -1, 10)},
        CountedCase{"DownTo", "i32", "9", "GE, %i, %limit", "0", "subtract %i, %step", "2",
                    counts(9, -2, 5)},
        CountedCase{"None", "i32", "10", kLess, "10", kNext, "1", counts(10, 1, 0)},
        CountedCase{"Unsigned", "ui8", "250", kLess, "255", kNext, "1", counts(250, 1, 5)},
        CountedCase{"WrapsAround", "ui8", "250", kLess, "255", kNext, "3", kNot},
        CountedCase{"ToAHugeNumber", "ui64", "18446744073709551610", kLess, "18446744073709551615",
                    kNext, "1", kNot},
        CountedCase{"WrapsDown", "ui8", "4", "GE, %i, %limit", "3", "subtract %i, %step", "5",
                    kNot},
        CountedCase{"UnsignedDown", "ui8", "255", "GT, %i, %limit", "0", kNext, "255", kNot},
        CountedCase{"UnsignedDownBy", "ui64", "9", "GT, %i, %limit", "2", "subtract %i, %step", "3",
                    counts(9, -3, 3)},
        CountedCase{"AllOfAType", "i8", "-128", kLess, "127", kNext, "1", counts(-128, 1, 255)},
        CountedCase{"ByTheLeastNumber", "i64", "5", "GT, %i, %limit", "0", "subtract %i, %step",
                    "-9223372036854775808", kNot},
        CountedCase{"FromTheLeastNumber", "i64", "-9223372036854775808", kLess,
                    "4611686018427387904", kNext, "4611686018427387904",
                    CountedLoop{1, std::numeric_limits<int64_t>::min(), int64_t{1} << 62, 3,
                                int64_t{1} << 62}},
        CountedCase{"Long", "i32", "0", kLess, "65537", kNext, "1", kNot},
        CountedCase{"Unequal", "i32", "0", "NE, %i, %limit", "10", kNext, "1", kNot},
        CountedCase{"NotByAConstant", "i32", "1", kLess, "10", "add %i, %i", "1", kNot},
        CountedCase{"FromAConstant", "i32", "1", "GE, %i, %limit", "-7", "subtract %step, %i", "-9",
                    kNot},
        CountedCase{"Floats", "f32", "0.0", kLess, "10.0", kNext, "1.0", kNot}),
    [](const auto& info) { return info.param.name; });

const Instruction& first_while(const Computation& in) {
  return *std::ranges::find(in, OpCode::kWhile, &Instruction::code);
}

std::string nest_of(int turns) {
  return fmt::format(R"(
func.func @main(%x: tensor<f32>) -> tensor<f32> {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<f32>
  cond {{
    %n = stablehlo.constant dense<{0}> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %s:2 = stablehlo.while(%k = %zero, %w = %v) : tensor<i32>, tensor<f32>
    cond {{
      %n = stablehlo.constant dense<{0}> : tensor<i32>
      %p = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }} do {{
      %half = stablehlo.constant dense<0.5> : tensor<f32>
      %h = stablehlo.multiply %w, %half : tensor<f32>
      %u = stablehlo.add %h, %x : tensor<f32>
      %l = stablehlo.add %k, %one : tensor<i32>
      stablehlo.return %l, %u : tensor<i32>, tensor<f32>
    }}
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %s#1 : tensor<i32>, tensor<f32>
  }}
  return %r#1 : tensor<f32>
}})",
                     turns);
}

// Loops within each other: only as much work in all as a launch may take between two looks at the
// stop flag.
TEST(CountedLoops, WithinEachOther) {
  for (const int turns : {30, 3000}) {
    const auto module = import_module(nest_of(turns), "t");
    ASSERT_TRUE(module) << module.error().to_string();
    const Instruction& outer = first_while(*(*module)->entry());
    EXPECT_EQ(counted_loop(outer).has_value(), turns == 30);
    EXPECT_EQ(counted_loop(first_while(outer.region(1))), (CountedLoop{0, 0, 1, turns, turns}));
    const auto program = compile_to_program(**module);
    ASSERT_TRUE(program) << program.error().to_string();
    EXPECT_EQ(has(*program, kernel::OpCode::kWhile), turns == 3000);
    EXPECT_TRUE(has(*program, kernel::OpCode::kFor));
  }
  conformance::expect_same(nest_of(30), {numbers({})});
}

// The elements of a reduction count: each may run the loop of its region.
TEST(CountedLoops, InARegion) {
  const auto text = [](int64_t elements, int turns) {
    return fmt::format(R"(
func.func @main(%x: tensor<{0}xf32>) -> tensor<f32> {{
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %s = "stablehlo.reduce"(%x, %z) ({{
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %r:2 = stablehlo.while(%i = %zero, %v = %p) : tensor<i32>, tensor<f32>
      cond {{
        %n = stablehlo.constant dense<{1}> : tensor<i32>
        %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      }} do {{
        %one = stablehlo.constant dense<1> : tensor<i32>
        %w = stablehlo.add %v, %q : tensor<f32>
        %j = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %j, %w : tensor<i32>, tensor<f32>
      }}
      stablehlo.return %r#1 : tensor<f32>
  }}) {{dimensions = array<i64: 0>}} : (tensor<{0}xf32>, tensor<f32>) -> tensor<f32>
  return %s : tensor<f32>
}})",
                       elements, turns);
  };
  const auto counts_in = [&](int64_t elements, int turns) {
    const auto module = import_module(text(elements, turns), "t");
    if (!module) return false;
    const Computation& entry = *(*module)->entry();
    const Instruction& reduce = *std::ranges::find(entry, OpCode::kReduce, &Instruction::code);
    return counted_loop(first_while(reduce.region(0))).has_value();
  };
  EXPECT_TRUE(counts_in(10, 65'536));
  EXPECT_TRUE(counts_in(100'000, 10));
  EXPECT_FALSE(counts_in(100'000, 65'536));
  conformance::expect_same(text(6, 5), {numbers({6})});
}

}  // namespace
}  // namespace tenon::hlo::lower
