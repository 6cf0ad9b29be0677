#include <algorithm>
#include <vector>

#include "hlo/passes/rewrite/rule.h"

namespace tenon::hlo::rewrite {

std::string_view name_of(Exactness exactness) {
  switch (exactness) {
    case Exactness::kEveryBit:
      return "every bit";
    case Exactness::kRounded:
      return "rounded";
    case Exactness::kRelaxed:
      break;
  }
  return "relaxed";
}

std::span<const Rule* const> all_rules() {
  static const std::vector<const Rule*> kAll = [] {
    std::vector<const Rule*> all;
    for (const std::span<const Rule> table : {arithmetic_rules(), shape_rules(), product_rules()}) {
      for (const Rule& rule : table) all.push_back(&rule);
    }
    return all;
  }();
  return kAll;
}

const Rule* find_rule(std::string_view name) {
  const auto found =
      std::ranges::find_if(all_rules(), [&](const Rule* rule) { return rule->name == name; });
  return found == all_rules().end() ? nullptr : *found;
}

namespace {

constexpr Condition kBackFromNarrower{
    "x is a float, the type between is narrower, and the result has the type of x",
    [](const Match& m) {
      const ElementType between = m.inner().result_type().element_type();
      return is_float(m.type()) && is_float(between) && bit_width(between) < bit_width(m.type()) &&
             m.root().result_type().element_type() == m.type();
    }};

// clang-format off
constexpr NonRule kNonRules[] = {
    {.name = "float-add-zero", .pattern = "add(x, 0.0)", .where = kFloat, .replacement = "x",
     .because = "-0.0 + 0.0 is 0.0"},
    {.name = "float-subtract-negative-zero", .pattern = "subtract(x, -0.0)", .where = kFloat,
     .replacement = "x", .because = "-0.0 - -0.0 is 0.0"},
    {.name = "float-subtract-self", .pattern = "subtract(x, x)", .where = kFloat, .replacement = "0",
     .because = "x may be infinite or NaN"},
    {.name = "float-multiply-zero", .pattern = "multiply(x, 0)", .where = kFloat, .replacement = "0",
     .because = "x may be infinite, NaN or negative"},
    {.name = "float-divide-self", .pattern = "divide(x, x)", .where = kFloat, .replacement = "1",
     .because = "x may be 0, infinite or NaN"},
    {.name = "float-compare-self", .pattern = "compare[EQ](x, x)", .where = kFloat, .replacement = "true",
     .because = "a NaN differs from itself"},
    {.name = "float-add-subtract", .pattern = "subtract(add(x, y), y)", .where = kFloat, .replacement = "x",
     .because = "the sum is rounded, or overflows"},
    {.name = "float-associate", .pattern = "add(add(x, y), z)", .where = kFloat,
     .replacement = "add(x, add(y, z))", .because = "each sum is rounded"},
    {.name = "float-distribute", .pattern = "add(multiply(x, y), multiply(x, z))", .where = kFloat,
     .replacement = "multiply(x, add(y, z))", .because = "products and sums are rounded, or overflow"},
    {.name = "float-negate-subtract", .pattern = "negate(subtract(x, y))", .where = kFloat,
     .replacement = "subtract(y, x)", .because = "if x equals y, one side is -0.0 and the other 0.0"},
    {.name = "square-root-of-square", .pattern = "sqrt(multiply(x, x))", .where = kFloat,
     .replacement = "abs(x)", .because = "the square overflows or underflows"},
    {.name = "exponential-of-log", .pattern = "exponential(log(x))", .where = kFloat, .replacement = "x",
     .because = "the log is rounded; of negative x it is NaN"},
    {.name = "convert-through-narrower", .pattern = "convert(convert(x))", .where = kBackFromNarrower,
     .replacement = "x", .because = "the type between rounds"},
};
// clang-format on

}  // namespace

std::span<const NonRule> all_non_rules() { return kNonRules; }

}  // namespace tenon::hlo::rewrite
