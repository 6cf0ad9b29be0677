// The first elements of short rows by reductions are those of a stable sort.
#include <gtest/gtest.h>

#include "core/base/random.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/import/import.h"
#include "hlo/passes/pass.h"
#include "hlo/verify/verify.h"

namespace tenon::hlo {
namespace {

struct Search {
  int64_t size = 12, kept = 2;
  std::string type = "f32", direction = "GT", order = "TOTALORDER";
  bool indices = true;
};

std::string search_text(const Search& s) {
  const std::string row = fmt::format("tensor<40x{}x", s.size);
  const std::string first = fmt::format("tensor<40x{}x", s.kept);
  const std::string second = s.indices ? fmt::format(", {}i32>", row) : "";
  const std::string second_key = s.indices ? ", %c: tensor<i32>, %d: tensor<i32>" : "";
  std::string text = fmt::format(
      R"(func.func @main(%x: {0}{2}>) -> ({1}{2}>{3}) {{
  %i = stablehlo.iota dim = 1 : {0}i32>
  %s{4} = "stablehlo.sort"(%x{5}) ({{
  ^bb0(%a: tensor<{2}>, %b: tensor<{2}>{6}):
    %p = stablehlo.compare {7}, %a, %b, {8} : (tensor<{2}>, tensor<{2}>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }}) {{dimension = 1 : i64, is_stable = true}} : ({0}{2}>{9}) -> ({0}{2}>{9})
  %v = stablehlo.slice %s{10} [0:40, 0:{11}] : ({0}{2}>) -> {1}{2}>
)",
      row, first, s.type, s.indices ? fmt::format(", {}i32>", first) : "", s.indices ? ":2" : "",
      s.indices ? ", %i" : "", second_key, s.direction, s.order, second, s.indices ? "#0" : "",
      s.kept);
  if (s.indices)
    text += fmt::format("  %k = stablehlo.slice %s#1 [0:40, 0:{}] : ({}i32>) -> {}i32>\n", s.kept,
                        row, first);
  return text + fmt::format("  return %v{} : {}{}>{}\n}}", s.indices ? ", %k" : "", first, s.type,
                            s.indices ? fmt::format(", {}i32>", first) : "");
}

// Few different numbers, and of floats both zeros, infinities and NaNs of both signs.
std::vector<Literal> argument_with_ties(const Module& module) {
  Random random(7);
  Literal x(module.entry()->parameter(0).type().shape());
  const bool is_real = is_float(x.element_type());
  const double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, -NAN};
  for (int64_t i = 0; i < x.element_count(); ++i) {
    const auto drawn = static_cast<int64_t>(random.below(12));
    const bool is_unsigned =
        x.element_type() == ElementType::kU8 || x.element_type() == ElementType::kU32;
    const int64_t least = is_unsigned ? 0 : 5;
    x.set_double(i, is_real && drawn < 6 ? special[drawn] : static_cast<double>(drawn - least));
  }
  return {x};
}

// Whether the pass leaves no sort; it keeps the results.
bool searches(const Search& s) {
  const std::string text = search_text(s);
  auto module = import_module(text, "t");
  EXPECT_TRUE(module) << module.error().to_string() << "\n" << text;
  if (!module) return false;
  const auto before = Evaluator(**module).run(*(*module)->entry(), argument_with_ties(**module));
  const auto changed = first_elements(**module);
  EXPECT_TRUE(changed) << changed.error().to_string();
  EXPECT_TRUE(verify(**module).ok()) << verify(**module).to_string();
  const auto after = Evaluator(**module).run(*(*module)->entry(), argument_with_ties(**module));
  EXPECT_TRUE(before && after);
  if (before && after) EXPECT_EQ(*before, *after) << text;
  return !any_instruction(*(*module)->entry(),
                          [](const Instruction& op) { return op.code() == OpCode::kSort; });
}

TEST(RowSearch, FindsTheFirstOfAStableSort) {
  for (const std::string direction : {"GT", "LT"}) {
    for (const std::string type : {"f32", "bf16", "f16"}) {
      EXPECT_TRUE(searches({12, 2, type, direction})) << type;
      EXPECT_TRUE(searches({5, 1, type, direction})) << type;
    }
    for (const std::string type : {"i8", "i16", "i32"})
      EXPECT_TRUE(searches({12, 4, type, direction, "SIGNED"})) << type;
    for (const std::string type : {"ui8", "ui32"})
      EXPECT_TRUE(searches({12, 4, type, direction, "UNSIGNED"})) << type;
  }
  EXPECT_TRUE(searches({.size = 200, .kept = 8}));
  EXPECT_TRUE(searches({.indices = false}));
}

// The sort alone reads the array that it sorts, an iota.
TEST(RowSearch, FindsThoseOfAnIota) {
  const auto module = import_module(R"(func.func @main() -> tensor<3x2xi32> {
  %i = stablehlo.iota dim = 1 : tensor<3x16xi32>
  %s = "stablehlo.sort"(%i) ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %c = stablehlo.compare GT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) {dimension = 1 : i64, is_stable = true} : (tensor<3x16xi32>) -> tensor<3x16xi32>
  %r = stablehlo.slice %s [0:3, 0:2] : (tensor<3x16xi32>) -> tensor<3x2xi32>
  return %r : tensor<3x2xi32>
})",
                                    "t");
  ASSERT_TRUE(module) << module.error().to_string();
  ASSERT_TRUE(first_elements(**module));
  const auto results = Evaluator(**module).run(*(*module)->entry(), std::vector<Literal>());
  ASSERT_TRUE(results) << results.error().to_string();
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ((*results)[0].get_integer(i), 15 - i % 2);
}

TEST(RowSearch, LeavesOthersToSorts) {
  EXPECT_FALSE(searches({.size = 12, .kept = 7})) << "more than half";
  EXPECT_FALSE(searches({.size = 40, .kept = 9})) << "many";
  EXPECT_FALSE(searches({.type = "f64"})) << "keys of 64 bits";
  EXPECT_FALSE(searches({.type = "f8E8M0FNU"})) << "no sign";
  EXPECT_FALSE(searches({.order = "FLOAT"})) << "no order of NaNs";
  EXPECT_FALSE(searches({.direction = "GE"})) << "no order of equal elements";
}

}  // namespace
}  // namespace tenon::hlo
