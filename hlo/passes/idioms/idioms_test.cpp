// Each idiom is recognized in its example if the target takes it, and the composite computes the
// same result; near misses are not changed.
#include <gtest/gtest.h>

#include <algorithm>

#include "hlo/evaluator/evaluator.h"
#include "hlo/import/import.h"
#include "hlo/lower/library_calls.h"
#include "hlo/passes/idioms/idiom.h"
#include "hlo/passes/pass.h"
#include "hlo/passes/rewrite/sampler.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace tenon::hlo::idioms {
namespace {

std::unique_ptr<Module> module_of(const std::string& text) {
  auto module = import_module(text, "t.mlir");
  EXPECT_TRUE(module) << module.error().to_string() << text;
  return module ? std::move(*module) : std::make_unique<Module>();
}

// A target that takes the composites with these names, or all; it records what it was offered.
struct Taker {
  std::vector<std::string> names;
  bool takes_all = false;
  std::vector<std::string> offers;

  PassOptions options() {
    PassOptions made;
    made.takes_composite = [this](const Instruction& op) -> Result<bool> {
      const auto site = lower::call_site_of(op);
      if (!site) return internal_error("no library call");
      offers.push_back(to_string(site->call));
      return takes_all || std::ranges::find(names, op.text(AttrKey::name)) != names.end();
    };
    return made;
  }
};

// The names of the composites in the entry function.
std::vector<std::string> composites_of(const Module& module) {
  std::vector<std::string> names;
  any_instruction(*module.entry(), [&](const Instruction& op) {
    if (op.code() == OpCode::kComposite) names.emplace_back(op.text(AttrKey::name));
    return false;
  });
  return names;
}

std::vector<std::string> results_of(const Module& module, const std::vector<Literal>& arguments) {
  auto results = Evaluator(module).run(*module.entry(), arguments);
  EXPECT_TRUE(results) << results.error().to_string() << print_module(module);
  std::vector<std::string> texts;
  if (!results) return texts;
  for (const Literal& each : *results) texts.push_back(each.to_string(each.element_count()));
  return texts;
}

void expect_same_results(const Module& before, const Module& after) {
  Random random(5);
  for (int i = 0; i < 20; ++i) {
    const std::vector<Literal> arguments = rewrite::draw_arguments(before, random);
    EXPECT_EQ(results_of(before, arguments), results_of(after, arguments)) << print_module(after);
  }
}

const Idiom& idiom(std::string_view name) {
  const auto found = std::ranges::find(all_idioms(), name, &Idiom::name);
  EXPECT_NE(found, all_idioms().end()) << name;
  return *found;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from << text;
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

TEST(Idioms, PatternsAreRead) {
  EXPECT_TRUE(check_idioms().ok()) << check_idioms().to_string();
  EXPECT_GE(all_idioms().size(), 6U);
}

TEST(Idioms, EachIsRecognizedInItsExample) {
  for (const Idiom& each : all_idioms()) {
    SCOPED_TRACE(each.name);
    const auto before = module_of(std::string(each.example));
    const auto after = before->clone();
    Taker taker{.names = {std::string(each.name)}};
    const auto changed = recognize_idioms(*after, taker.options());
    ASSERT_TRUE(changed) << changed.error().to_string();
    EXPECT_TRUE(*changed);
    const Status verified = verify(*after);
    EXPECT_TRUE(verified.ok()) << verified.to_string() << print_module(*after);
    EXPECT_EQ(composites_of(*after), std::vector<std::string>{std::string(each.name)});
    expect_same_results(*before, *after);
    // If a target takes no composite, inlining restores the ops.
    ASSERT_TRUE(inline_all_calls(*after));
    EXPECT_TRUE(composites_of(*after).empty());
    expect_same_results(*before, *after);
  }
}

TEST(Idioms, AttributesSayWhatIsComputed) {
  const auto offer_of = [](std::string_view name) {
    const auto module = module_of(std::string(idiom(name).example));
    Taker taker{.names = {std::string(name)}};
    EXPECT_TRUE(recognize_idioms(*module, taker.options()));
    return taker.offers.empty() ? "" : taker.offers.back();
  };
  EXPECT_EQ(offer_of("tenon.softmax"), "composite tenon.softmax dimension=1");
  EXPECT_EQ(offer_of("tenon.layer_norm"),
            "composite tenon.layer_norm dimension=1 epsilon=9.999999747378752e-06");
  EXPECT_EQ(offer_of("tenon.top_k"),
            "composite tenon.top_k descending=1 dimension=1 k=4 total_order=1");
  EXPECT_EQ(offer_of("tenon.scan"), "composite tenon.scan combiner=\"maximum\" dimension=1");
  EXPECT_EQ(offer_of("tenon.attention"),
            "composite tenon.attention output_lhs_batch=0 output_lhs_contracting=2 "
            "output_rhs_batch=0 output_rhs_contracting=1 scale=0.25 scores_lhs_batch=0 "
            "scores_lhs_contracting=2 scores_rhs_batch=0 scores_rhs_contracting=2 weights_first=1");
  EXPECT_EQ(offer_of("tenon.attention_with_bias"),
            "composite tenon.attention_with_bias output_lhs_batch=[] output_lhs_contracting=0 "
            "output_rhs_batch=[] output_rhs_contracting=1 scale=0.125 scores_lhs_batch=[] "
            "scores_lhs_contracting=1 scores_rhs_batch=[] scores_rhs_contracting=1 "
            "weights_first=0");
  EXPECT_EQ(offer_of("tenon.attention_with_mask"),
            "composite tenon.attention_with_mask fill=-1000000000 output_lhs_batch=[] "
            "output_lhs_contracting=1 output_rhs_batch=[] output_rhs_contracting=0 scale=1 "
            "scores_lhs_batch=[] scores_lhs_contracting=1 scores_rhs_batch=[] "
            "scores_rhs_contracting=1 weights_first=1");
}

// The larger idiom is offered first; if it is declined, its parts are offered.
TEST(Idioms, TheLargestIsOfferedFirst) {
  const auto module = module_of(std::string(idiom("tenon.attention").example));
  Taker taker{.names = {"tenon.softmax"}};
  ASSERT_TRUE(recognize_idioms(*module, taker.options()));
  EXPECT_EQ(composites_of(*module), std::vector<std::string>{"tenon.softmax"});
  ASSERT_EQ(taker.offers.size(), 2U);
  EXPECT_TRUE(taker.offers[0].starts_with("composite tenon.attention "));
}

TEST(Idioms, NothingHappensWhereNothingIsTaken) {
  for (const Idiom& each : all_idioms()) {
    const auto module = module_of(std::string(each.example));
    const auto before = module->clone();
    EXPECT_EQ(recognize_idioms(*module).value(), false);
    Taker taker;
    EXPECT_EQ(recognize_idioms(*module, taker.options()).value(), false);
    EXPECT_FALSE(taker.offers.empty());
    EXPECT_TRUE(equal(*before, *module)) << each.name;
  }
}

struct NearMiss {
  std::string_view idiom;
  std::string_view from;
  std::string_view to;
};

// An example with a small change is not an instance.
TEST(Idioms, NearMissesStay) {
  const NearMiss misses[] = {
      // The exponentials have another use.
      {"tenon.softmax", "return %y", "return %e"},
      // The sum begins at 1, the maximum at 0.
      {"tenon.softmax", "%zero = stablehlo.constant dense<0.0>",
       "%zero = stablehlo.constant dense<1.0>"},
      {"tenon.softmax", "%low = stablehlo.constant dense<0xFF800000>",
       "%low = stablehlo.constant dense<0.0>"},
      {"tenon.softmax", "stablehlo.divide %e, %tb", "stablehlo.divide %tb, %e"},
      {"tenon.softmax", "applies stablehlo.maximum", "applies stablehlo.minimum"},
      // The divisor is not the number of elements.
      {"tenon.layer_norm", "dense<8.0> : tensor<3x1xf32>", "dense<7.0> : tensor<3x1xf32>"},
      {"tenon.layer_norm", "stablehlo.multiply %c, %c ", "stablehlo.multiply %c, %x "},
      // Rows that do not begin at the first element, and slices of different lengths.
      {"tenon.top_k", "%s#0 [0:3, 0:4]", "%s#0 [0:3, 1:5]"},
      {"tenon.top_k", "stablehlo.iota dim = 1", "stablehlo.iota dim = 0"},
      {"tenon.top_k", "stablehlo.compare GT, %a, %b", "stablehlo.compare GE, %a, %b"},
      // An element at an index that another slice also covers.
      {"tenon.scan", "%x [0:2, 2:5:2]", "%x [0:2, 1:5:3]"},
      {"tenon.scan", "%7 = stablehlo.maximum", "%7 = stablehlo.minimum"},
      {"tenon.scan", "%zero = stablehlo.constant dense<0.0>",
       "%zero = stablehlo.constant dense<1.0>"},
      // The weights contract another dimension than the softmax's.
      {"tenon.attention", "applies stablehlo.add across dimensions = [2]",
       "applies stablehlo.maximum across dimensions = [2]"},
  };
  for (const NearMiss& miss : misses) {
    SCOPED_TRACE(std::string(miss.idiom) + ": " + std::string(miss.to));
    std::string text = replaced(std::string(idiom(miss.idiom).example), miss.from, miss.to);
    const auto module = module_of(text);
    Taker taker{.names = {std::string(miss.idiom)}};
    const auto changed = recognize_idioms(*module, taker.options());
    ASSERT_TRUE(changed) << changed.error().to_string();
    // A part may be an instance, the whole must not.
    for (const Value result : module->entry()->return_instruction()->operands()) {
      EXPECT_NE(result.def->code(), OpCode::kComposite) << print_module(*module);
    }
    EXPECT_TRUE(miss.idiom == "tenon.scan" || !*changed);
  }
}

// If two dimensions are equal, types do not determine the dimensions of a broadcast.
TEST(Idioms, RowsStayInTheirOrder) {
  std::string text(idiom("tenon.softmax").example);
  for (size_t at = text.find("3x7"); at != std::string::npos; at = text.find("3x7", at)) {
    text.replace(at, 3, "5x5");
  }
  for (size_t at = text.find("tensor<3x"); at != std::string::npos; at = text.find("tensor<3x")) {
    text.replace(at, 9, "tensor<5x");
  }
  const auto recognized = [](const std::string& program) {
    Taker taker{.takes_all = true};
    return recognize_idioms(*module_of(program), taker.options()).value();
  };
  EXPECT_TRUE(recognized(text));
  EXPECT_FALSE(recognized(replaced(text, "%mb = stablehlo.broadcast_in_dim %m, dims = [0]",
                                   "%mb = stablehlo.broadcast_in_dim %m, dims = [1]")));
  EXPECT_FALSE(recognized(replaced(text, "%tb = stablehlo.broadcast_in_dim %t, dims = [0]",
                                   "%tb = stablehlo.broadcast_in_dim %t, dims = [1]")));
  EXPECT_FALSE(recognized(replaced(text, "applies stablehlo.maximum across dimensions = [1]",
                                   "applies stablehlo.maximum across dimensions = [0]")));
}

constexpr const char* kOwn = R"(
func.func private @inner(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.negate %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @fused(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.composite "vendor.inner" %x {decomposition = @inner} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.add %0, %y : tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.composite "vendor.fused" %x, %y {composite_attributes = {mode = "fast", alpha = 0.5 : f32, axes = array<i64: 0, 1>}, decomposition = @fused, version = 2 : i32} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.composite "vendor.inner" %y {decomposition = @inner} : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
})";

// Composites of the program are offered by name; composites within a decomposition are not.
TEST(Composites, OfTheProgramAreOffered) {
  const auto before = module_of(kOwn);
  const auto after = before->clone();
  Taker taker{.takes_all = true};
  ASSERT_TRUE(inline_all_calls(*after, taker.options()));
  EXPECT_EQ(composites_of(*after), (std::vector<std::string>{"vendor.fused", "vendor.inner"}));
  EXPECT_NE(std::ranges::find(taker.offers,
                              "composite vendor.fused version=2 alpha=0.5 axes=[0,1] "
                              "mode=\"fast\""),
            taker.offers.end());
  const Computation* const fused = after->find_function("fused");
  ASSERT_NE(fused, nullptr);
  EXPECT_FALSE(any_instruction(
      *fused, [](const Instruction& op) { return op.code() == OpCode::kComposite; }));
  expect_same_results(*before, *after);

  const auto some = before->clone();
  Taker inner{.names = {"vendor.inner"}};
  ASSERT_TRUE(inline_all_calls(*some, inner.options()));
  EXPECT_EQ(composites_of(*some), (std::vector<std::string>{"vendor.inner", "vendor.inner"}));
  expect_same_results(*before, *some);
}

// A decomposition with side effects runs as written.
TEST(Composites, WithEffectsAreNotOffered) {
  std::string text = replaced(kOwn, "%0 = stablehlo.negate %x : tensor<4xf32>",
                              "%0 = stablehlo.negate %x : tensor<4xf32>\n  stablehlo.custom_call "
                              "@print(%0) {has_side_effect = true} : (tensor<4xf32>) -> ()");
  const auto module = module_of(text);
  Taker taker{.takes_all = true};
  ASSERT_TRUE(inline_all_calls(*module, taker.options()));
  EXPECT_TRUE(taker.offers.empty());
  EXPECT_TRUE(composites_of(*module).empty());
}

}  // namespace
}  // namespace tenon::hlo::idioms
