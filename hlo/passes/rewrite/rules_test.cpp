// Tests derived from the tables: each rule is compared with the evaluator on instances of its
// pattern, each non-rule is evaluated on operands for which it would be wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "hlo/evaluator/evaluator.h"
#include "hlo/import/import.h"
#include "hlo/passes/rewrite/rewriter.h"
#include "hlo/passes/rewrite/sampler.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace tenon::hlo::rewrite {
namespace {

constexpr int kTries = 20'000;  // For one instance.

// Equal numbers have equal texts, and all NaNs do.
std::string text_of(const Literal& literal) {
  std::string text = literal.to_string(literal.element_count());
  for (size_t at = 0; (at = text.find("-nan")) != std::string::npos;) text.erase(at, 1);
  return text;
}

std::string result_of(const Module& module, const std::vector<Literal>& arguments) {
  auto results = Evaluator(module).run(*module.entry(), arguments);
  return results ? text_of((*results)[0]) : results.error().to_string();
}

// Applies the rule to the root of a sample; false if it does not apply.
bool apply(const CompiledRule& rule, Sample& sample, const Match& match) {
  Builder b(*sample.module->entry(), sample.root);
  const Value value = build_replacement(rule, b, match);
  EXPECT_TRUE(b.ok()) << b.status().to_string();
  if (!value || value.type() != sample.root->result_type()) return false;
  sample.root->replace_uses(0, value);
  const Status verified = verify(*sample.module);
  EXPECT_TRUE(verified.ok()) << verified.to_string();
  return true;
}

struct Outcome {
  int instances = 0;    // Programs to which the rule was applied.
  int different = 0;    // Instances whose results differ for some arguments.
  std::string example;  // One instance that differs.
};

// Applies a rule to `count` instances and compares their results before and after.
Outcome try_rule(const CompiledRule& rule, int count, int argument_sets) {
  Outcome outcome;
  Random random(7);
  for (int draws = 0; outcome.instances < count && draws < 4 * count; ++draws) {
    Match match;
    Sample sample = draw_match(rule, random, kTries, match);
    if (sample.root == nullptr) break;
    const std::unique_ptr<Module> before = sample.module->clone();
    if (!apply(rule, sample, match)) continue;
    ++outcome.instances;
    for (int i = 0; i < argument_sets; ++i) {
      const std::vector<Literal> arguments = draw_arguments(*before, random);
      const std::string expected = result_of(*before, arguments);
      const std::string actual = result_of(*sample.module, arguments);
      if (expected == actual) continue;
      ++outcome.different;
      outcome.example =
          print_module(*before) + expected + "\n" + print_module(*sample.module) + actual;
      for (const Literal& each : arguments) outcome.example += "\nwith " + text_of(each);
      break;
    }
  }
  return outcome;
}

CompiledRule compiled(const Rule& rule) {
  auto made = compile_rule(rule);
  EXPECT_TRUE(made) << made.error().to_string();
  return made ? std::move(*made) : CompiledRule();
}

class EveryRule : public testing::TestWithParam<const Rule*> {};

TEST_P(EveryRule, ChangesNoBit) {
  const Rule& rule = *GetParam();
  ASSERT_EQ(rule.exactness, Exactness::kEveryBit) << "compare within its bound";
  const Outcome outcome = try_rule(compiled(rule), 60, 4);
  EXPECT_GE(outcome.instances, 40) << "the sampler draws too few instances";
  EXPECT_EQ(outcome.different, 0) << outcome.example;
}

// The driver applies this rule or an earlier one, and leaves nothing for it to do.
TEST_P(EveryRule, IsAppliedByTheDriver) {
  const Rule& rule = *GetParam();
  const CompiledRule own = compiled(rule);
  Random random(11);
  bool is_hit = false;
  for (int i = 0; i < 40; ++i) {
    Match match;
    Sample sample = draw_match(own, random, kTries, match);
    ASSERT_NE(sample.root, nullptr);
    const std::unique_ptr<Module> before = sample.module->clone();
    Statistics statistics;
    const auto changed = apply_rules(*sample.module, {.statistics = &statistics});
    ASSERT_TRUE(changed) << changed.error().to_string();
    EXPECT_TRUE(*changed) << print_module(*before);
    EXPECT_FALSE(statistics.is_exhausted);
    for (size_t r = 0; r < statistics.hits.size(); ++r) {
      is_hit |= all_rules()[r] == &rule && statistics.hits[r] > 0;
    }
    const std::vector<Literal> arguments = draw_arguments(*before, random);
    EXPECT_EQ(result_of(*sample.module, arguments), result_of(*before, arguments));
    const auto again = apply_rules(*sample.module);
    EXPECT_TRUE(again && !*again) << print_module(*sample.module);
  }
  EXPECT_TRUE(is_hit) << "an earlier rule always comes first";
}

std::string name_of_case(const auto& info) {
  std::string name(info.param->name);
  std::ranges::replace(name, '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Table, EveryRule,
                         testing::ValuesIn(all_rules().begin(), all_rules().end()),
                         [](const auto& each) { return name_of_case(each); });

Rule as_rule(const NonRule& non_rule) {
  return {.name = non_rule.name,
          .pattern = non_rule.pattern,
          .where = non_rule.where,
          .replacement = non_rule.replacement,
          .because = non_rule.because};
}

std::vector<const NonRule*> all_of_non_rules() {
  std::vector<const NonRule*> all;
  for (const NonRule& each : all_non_rules()) all.push_back(&each);
  return all;
}

class EveryNonRule : public testing::TestWithParam<const NonRule*> {};

// If it were a rule, the check of ChangesNoBit would detect it.
TEST_P(EveryNonRule, WouldChangeResults) {
  const Rule planted = as_rule(*GetParam());
  const Outcome outcome = try_rule(compiled(planted), 60, 4);
  EXPECT_GE(outcome.instances, 40);
  EXPECT_GT(outcome.different, 0);
}

TEST_P(EveryNonRule, IsDoneByNoRule) {
  const Rule planted = as_rule(*GetParam());
  const CompiledRule own = compiled(planted);
  Random random(13);
  for (int i = 0; i < 40; ++i) {
    Match match;
    Sample sample = draw_match(own, random, kTries, match);
    ASSERT_NE(sample.root, nullptr);
    const std::unique_ptr<Module> before = sample.module->clone();
    ASSERT_TRUE(apply_rules(*sample.module));
    for (int set = 0; set < 4; ++set) {
      const std::vector<Literal> arguments = draw_arguments(*before, random);
      EXPECT_EQ(result_of(*sample.module, arguments), result_of(*before, arguments))
          << print_module(*before) << print_module(*sample.module);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Table, EveryNonRule, testing::ValuesIn(all_of_non_rules()),
                         [](const auto& each) { return name_of_case(each); });

TEST(Rules, HaveNamesOfTheirOwnAndReasons) {
  std::set<std::string_view> names;
  for (const Rule* rule : all_rules()) {
    EXPECT_TRUE(names.insert(rule->name).second) << rule->name;
    EXPECT_FALSE(rule->because.empty() || rule->replacement.empty()) << rule->name;
  }
  for (const NonRule& each : all_non_rules()) {
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
    EXPECT_FALSE(each.because.empty()) << each.name;
  }
}

// Many updates that are close, of an array of several numbers: the others stay.
TEST(Rules, ScatterOfEveryOtherElement) {
  // Far apart, or in a small part of the array, updates stay a scatter.
  struct Places {
    int64_t step;
    int64_t size;
    bool is_select;
  };
  for (const auto& [step, size, is_select] :
       {Places{2, 4000, true}, Places{2, 20'000, false}, Places{9, 18'000, false}}) {
    Module module;
    Computation& main = module.add_function("main");
    const Value x = main.add_parameter(Type::tensor(ElementType::kS32, {size}));
    const Value y = main.add_parameter(Type::tensor(ElementType::kS32, {2000}));
    Builder b(main);
    const Value steps = b.splat(Shape(ElementType::kS32, {2000}), static_cast<double>(step));
    const Value places = b.mul(b.iota(ElementType::kS32, {2000}, 0), steps);
    ScatterDims dims;
    dims.scatter_dims_to_operand_dims = dims.inserted_window_dims = {0};
    dims.index_vector_dim = 1;
    auto region = std::make_unique<Computation>();
    region->add_parameter(Type::tensor(ElementType::kS32, {}));
    const Value later = region->add_parameter(Type::tensor(ElementType::kS32, {}));
    region->insert(std::make_unique<Instruction>(OpCode::kReturn, std::vector<Value>{later},
                                                 std::vector<Type>{}));
    std::vector<std::unique_ptr<Computation>> regions;
    regions.push_back(std::move(region));
    Instruction* const scatter =
        b.create(OpCode::kScatter, {x, places, y}, {{AttrKey::scatter_dimension_numbers, dims}}, {},
                 std::move(regions));
    ASSERT_NE(scatter, nullptr) << b.status().to_string();
    main.set_declared_result_types({x.type()});
    ASSERT_TRUE(b.finish({scatter->result()}).ok());
    Random random(3);
    const std::vector<Literal> arguments = draw_arguments(module, random);
    const auto before = Evaluator(module).run(main, arguments);
    ASSERT_TRUE(before) << before.error().to_string();
    const auto applied = apply_rules(module);
    ASSERT_TRUE(applied) << applied.error().to_string();
    const OpCode last = main.last()->operand(0).def->code();
    EXPECT_EQ(last, is_select ? OpCode::kSelect : OpCode::kScatter);
    const auto after = Evaluator(module).run(main, arguments);
    ASSERT_TRUE(after) << after.error().to_string();
    EXPECT_EQ((*after)[0], (*before)[0]);
  }
}

// Whether a rule changes the program.
bool changes(std::string_view text) {
  const auto module = import_module(text, "t");
  EXPECT_TRUE(module) << module.error().to_string();
  const std::string before = print_module(**module);
  EXPECT_TRUE(apply_rules(**module));
  return print_module(**module) != before;
}

TEST(Rules, ChoicesOfWhatIsComputedBeforeALoopStay) {
  constexpr std::string_view kHead =
      "func.func @main(%p: tensor<4xi1>, %x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {";
  const auto program = [&](std::string_view body) {
    return fmt::format("{}\n{}\n}}", kHead, body);
  };
  EXPECT_TRUE(changes(program(R"(%0 = stablehlo.exponential %x : tensor<4xf32>
    %1 = stablehlo.exponential %y : tensor<4xf32>
    %2 = stablehlo.select %p, %0, %1 : tensor<4xi1>, tensor<4xf32>
    return %2 : tensor<4xf32>)")));
  EXPECT_FALSE(changes(program(R"(%0 = stablehlo.exponential %x : tensor<4xf32>
    %1 = stablehlo.exponential %y : tensor<4xf32>
    %2 = stablehlo.while(%i = %x) : tensor<4xf32>
    cond {
      %c = stablehlo.constant dense<true> : tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %s = stablehlo.select %p, %0, %1 : tensor<4xi1>, tensor<4xf32>
      stablehlo.return %s : tensor<4xf32>
    }
    return %2 : tensor<4xf32>)")));
  EXPECT_FALSE(changes(program(R"(%0 = "stablehlo.exponential"(%x) {result_accuracy =
        #stablehlo.result_accuracy<ulps = 3, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} :
        (tensor<4xf32>) -> tensor<4xf32>
    %1 = stablehlo.exponential %y : tensor<4xf32>
    %2 = stablehlo.select %p, %0, %1 : tensor<4xi1>, tensor<4xf32>
    return %2 : tensor<4xf32>)")));
}

TEST(Rules, ChoicesOfQuotientsByConstantsStay) {
  EXPECT_FALSE(changes(R"(
    func.func @main(%p: tensor<4xi1>, %x: tensor<4xi32>, %y: tensor<4xi32>) -> tensor<4xi32> {
      %c = stablehlo.constant dense<7> : tensor<4xi32>
      %0 = stablehlo.divide %x, %c : tensor<4xi32>
      %1 = stablehlo.divide %y, %x : tensor<4xi32>
      %2 = stablehlo.select %p, %0, %1 : tensor<4xi1>, tensor<4xi32>
      return %2 : tensor<4xi32>
    })"));
}

TEST(Rules, CanBeDisabled) {
  const Rule& rule = *find_rule("add-zero");
  Random random(1);
  Match match;
  Sample sample = draw_match(compiled(rule), random, kTries, match);
  ASSERT_NE(sample.root, nullptr);
  const auto off = apply_rules(*sample.module, {.disabled = {"add-zero"}});
  EXPECT_TRUE(off && !*off);
  const auto on = apply_rules(*sample.module);
  EXPECT_TRUE(on && *on);
  const auto unknown = apply_rules(*sample.module, {.disabled = {"add-nought"}});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().to_string(), "error: there is no rule 'add-nought'");
}

// A chain that folds from its end: every op is visited again when its operands have changed.
TEST(Rules, ReachTheEndOfAChain) {
  Module module;
  Computation& main = module.add_function("main");
  const Value x = main.add_parameter(Type::tensor(ElementType::kS32, {4}));
  Builder b(main);
  Value y = x;
  constexpr int kLength = 1000;
  for (int i = 0; i < kLength; ++i) y = b.neg(y);
  main.set_declared_result_types({y.type()});
  ASSERT_TRUE(b.finish({y}).ok());
  Statistics statistics;
  ASSERT_TRUE(apply_rules(module, {.statistics = &statistics}));
  EXPECT_EQ(main.last()->operand(0), x);
  EXPECT_EQ(statistics.total(), kLength / 2);
  EXPECT_LE(statistics.visited, 2 * kLength);
}

TEST(Rules, StopAtTheBudget) {
  Module module;
  Computation& main = module.add_function("main");
  const Value x = main.add_parameter(Type::tensor(ElementType::kS32, {4}));
  Builder b(main);
  const Value y = b.neg(b.neg(b.neg(b.neg(x))));
  main.set_declared_result_types({y.type()});
  ASSERT_TRUE(b.finish({y}).ok());
  Statistics statistics;
  ASSERT_TRUE(apply_rules(module, {.budget = 0, .statistics = &statistics}));
  EXPECT_FALSE(statistics.total() > 0);
  EXPECT_TRUE(statistics.is_exhausted);
}

TEST(Patterns, SayWhatIsWrongAndWhere) {
  const auto error = [](std::string_view text) {
    VariableNames names;
    const auto made = parse_pattern(text, names);
    return made ? std::string("none") : made.error().to_string();
  };
  EXPECT_EQ(error("add(x, 0)"), "none");
  EXPECT_EQ(error("ad(x, 0)"), "error: pattern 'ad(x, 0)', column 3: there is no op of this name");
  EXPECT_EQ(error("add(x"), "error: pattern 'add(x', column 6: expected ')'");
  EXPECT_EQ(error("add(x, y) z"), "error: pattern 'add(x, y) z', column 11: expected the end");
  EXPECT_EQ(error("compare[UP](x, y)"),
            "error: pattern 'compare[UP](x, y)', column 11: expected a comparison direction");
  const Rule open{.name = "open", .pattern = "negate(x)", .replacement = "negate(y)"};
  EXPECT_EQ(compile_rule(open).error().to_string(),
            "error: rule open: the pattern has no variable 'y'");
}

}  // namespace
}  // namespace tenon::hlo::rewrite
