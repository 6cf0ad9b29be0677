// Modules: look-up, clone, equality, inlining, locations.
#include <gtest/gtest.h>

#include "hlo/import/import.h"
#include "hlo/ir/inline.h"
#include "hlo/text/printer.h"
#include "hlo/types/op_location.h"

namespace tenon::hlo {
namespace {

std::unique_ptr<Module> read(std::string_view text) {
  auto module = import_module(text, "t.mlir");
  EXPECT_TRUE(module) << module.error().to_string();
  return module ? std::move(*module) : nullptr;
}

constexpr std::string_view kLoop = R"(
module @m attributes {a = 1 : i32} {
  func.func public @main(%x: tensor<f32> {k = "v"}) -> (tensor<f32> {r}) {
    %c = stablehlo.constant dense<1.0> : tensor<f32>
    %0 = stablehlo.while(%i = %x) : tensor<f32>
     cond {
      %1 = stablehlo.compare LT, %i, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %2 = stablehlo.add %i, %c {note = "n"} : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }
    return %0 : tensor<f32>
  }
  func.func private @helper(tensor<f32>) -> tensor<f32>
})";

TEST(Module, CloneIsEqualAndOwnsItsValues) {
  const auto module = read(kLoop);
  auto copy = module->clone();
  std::string why;
  EXPECT_TRUE(equal(*module, *copy, &why)) << why;
  EXPECT_EQ(copy->find_function("main")->module(), copy.get());
  const std::string before = print_module(*module);
  copy->find_function("main")->first()->set_result_type(0, Type::token());
  EXPECT_EQ(print_module(*module), before);
}

TEST(Module, TheCloneOutlivesTheOriginal) {
  auto module = read(kLoop);
  const std::string before = print_module(*module);
  const auto copy = module->clone();
  module.reset();
  EXPECT_EQ(print_module(*copy), before);
}

TEST(Module, Entry) {
  const std::string body = "() { return }\n";
  const auto entry = [&](const std::string& text) {
    const auto module = read(text);
    const Computation* found = module->entry();
    return found ? found->name() : std::string("none");
  };
  EXPECT_EQ(entry("func.func @a" + body + "func.func private @main" + body), "main");
  EXPECT_EQ(entry("func.func @a" + body), "a");
  EXPECT_EQ(entry("func.func private @a" + body), "a");
  EXPECT_EQ(entry("func.func @a" + body + "func.func private @b" + body), "a");
  EXPECT_EQ(entry("func.func @a" + body + "func.func @b" + body), "none");
  EXPECT_EQ(entry("func.func @a" + body + "func.func @b()"), "a");
}

TEST(Module, FunctionsByName) {
  const auto module = read(kLoop);
  Computation* helper = module->find_function("helper");
  ASSERT_NE(helper, nullptr);
  EXPECT_TRUE(helper->is_declaration());
  module->erase_function(helper);
  EXPECT_EQ(module->find_function("helper"), nullptr);
  EXPECT_EQ(module->functions().size(), 1u);
}

// --- Equality: each difference with its text

struct Difference {
  const char* name;
  const char* from;  // text in the Module below, replaced by `to`
  const char* to;
  const char* why;
};
constexpr std::string_view kBase = R"(
module @m attributes {a = 1 : i32} {
  func.func public @f(%x: tensor<2xf32> {k = "v"}, %y: tensor<2xf32>) -> (tensor<2xf32> {r = 1 : i32}) attributes {z} {
    %0 = stablehlo.add %x, %y {note = "n"} : tensor<2xf32>
    %1 = stablehlo.transpose %0, dims = [0] : (tensor<2xf32>) -> tensor<2xf32>
    return %1 : tensor<2xf32>
  }
})";
class ModuleDifference : public testing::TestWithParam<Difference> {};
INSTANTIATE_TEST_SUITE_P(
    Table, ModuleDifference,
    testing::Values(
        Difference{"Name", "@m", "@n", "@m against @n"},
        Difference{"Attributes", "a = 1", "a = 2", "module attributes differ"},
        Difference{"Functions", "{\n  func", "{\n  func.func private @g()\n  func",
                   "number of functions differs"},
        Difference{"FunctionName", "@f", "@g", "in @: function @f against @g"},
        Difference{"Visibility", "public", "nested", "in @f: visibility 'public' against 'nested'"},
        Difference{"ParameterAttributes", "\"v\"", "\"w\"", "in @f: parameter attributes differ"},
        Difference{"ResultAttributes", "r = 1", "r = 2", "in @f: result attributes differ"},
        Difference{"FunctionAttributes", "{z}", "{y}", "in @f: function attributes differ"},
        Difference{"Op", "stablehlo.add", "stablehlo.multiply",
                   "in @f: stablehlo.add against stablehlo.multiply"},
        Difference{"Operand", "add %x, %y", "add %y, %y",
                   "in @f: stablehlo.add: operand 0 is another value"},
        Difference{"Discardable", "\"n\"", "\"o\"",
                   "in @f: stablehlo.add: discardable attributes differ"},
        Difference{"Longer", "return", "%2 = stablehlo.negate %1 : tensor<2xf32>\n return",
                   "in @f: stablehlo.return against stablehlo.negate"}),
    [](const auto& p) { return std::string(p.param.name); });

TEST_P(ModuleDifference, IsNamed) {
  const Difference& d = GetParam();
  std::string changed(kBase);
  const size_t at = changed.find(d.from);
  ASSERT_NE(at, std::string::npos);
  changed.replace(at, std::string_view(d.from).size(), d.to);
  const auto a = read(kBase);
  const auto b = read(changed);
  ASSERT_TRUE(a && b);
  std::string why;
  EXPECT_FALSE(equal(*a, *b, &why));
  EXPECT_EQ(why, d.why);
  EXPECT_FALSE(equal(*a, *b));
}

// A difference made in the graph, for cases that text cannot express.
std::string difference(std::string_view text, const std::function<void(Computation&)>& change) {
  const auto a = read(text);
  const auto b = a->clone();
  change(*b->functions()[0]);
  std::string why;
  EXPECT_FALSE(equal(*a, *b, &why));
  return why;
}

TEST(ModuleEqual, TypesAndCounts) {
  const Type other = Type::tensor(ElementType::kS8, {});
  EXPECT_EQ(difference(kBase, [&](Computation& f) { f.set_declared_result_types({other}); }),
            "in @f: result types f32[2] against s8[]");
  EXPECT_EQ(difference(kBase, [&](Computation& f) { f.add_parameter(other); }),
            "in @f: parameters (f32[2], f32[2]) against (f32[2], f32[2], s8[])");
  EXPECT_EQ(difference(kBase, [&](Computation& f) { f.first()->set_result_type(0, other); }),
            "in @f: stablehlo.add: results f32[2] against s8[]");
  EXPECT_EQ(difference(kBase, [](Computation& f) { f.first()->set_operands({f.parameter(0)}); }),
            "in @f: stablehlo.add: operand count");
  EXPECT_EQ(difference(kBase, [](Computation& f) { f.first()->add_region(); }),
            "in @f: stablehlo.add: region count");
  EXPECT_EQ(difference(kBase, [](Computation& f) { f.erase(f.last()); }),
            "in @f: stablehlo.return at the end stands on one side only");
  EXPECT_EQ(difference(kBase,
                       [](Computation& f) {
                         f.first()->next()->mutable_attributes().set(AttrKey::permutation,
                                                                     Attribute(I64s{1}));
                       }),
            "in @f: stablehlo.transpose: attribute permutation differs");
}

TEST(ModuleEqual, RegionsAreCompared) {
  EXPECT_EQ(difference(kLoop,
                       [](Computation& f) {
                         Instruction& loop = *f.first()->next();
                         loop.region(1).first()->set_operand(1, loop.region(1).parameter(0));
                       }),
            "in @main: stablehlo.add: operand 1 is another value");
}

TEST(ModuleEqual, LocationsDoNotCount) {
  const auto a = read(kBase);
  const auto b = a->clone();
  b->functions()[0]->first()->set_location(nullptr);
  EXPECT_TRUE(equal(*a, *b));
}

// --- Inlining

constexpr std::string_view kCalls = R"(
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = func.call @twice(%x) : (tensor<f32>) -> tensor<f32>
  %1 = func.call @twice(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func private @twice(%x: tensor<f32>) -> tensor<f32> {
  %0 = func.call @add(%x, %x) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @add(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.add %x, %y : tensor<f32>
  return %0 : tensor<f32>
}
func.func private @unused() { return }
)";

TEST(Inline, CallsOfCalls) {
  const auto module = read(kCalls);
  ASSERT_TRUE(inline_calls(*module->entry()).ok());
  erase_unreachable_functions(*module);
  EXPECT_EQ(print_module(*module), R"(hlo_module {
  func.func @main(%arg0: f32[]) -> (f32[]) {
    %0 = stablehlo.add(%arg0, %arg0) : f32[]
    %1 = stablehlo.add(%0, %0) : f32[]
    stablehlo.return(%1)
  }
}
)");
}

TEST(Inline, CallsInRegions) {
  const auto module = read(R"(
func.func @main(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {
  %0 = "stablehlo.if"(%p) ({
    %1 = func.call @neg(%x) : (tensor<f32>) -> tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }, {
    stablehlo.return %x : tensor<f32>
  }) : (tensor<i1>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @neg(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.negate %x : tensor<f32>
  return %0 : tensor<f32>
})");
  ASSERT_TRUE(inline_calls(*module->entry()).ok());
  EXPECT_EQ(module->entry()->first()->region(0).first()->code(), OpCode::kNegate);
}

TEST(Inline, ReturnedParametersAreTheArguments) {
  const auto module = read(R"(
func.func @main(%x: tensor<f32>, %y: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %0:2 = func.call @swap(%x, %y) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %0#0, %0#1 : tensor<f32>, tensor<f32>
}
func.func private @swap(%x: tensor<f32>, %y: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  return %y, %x : tensor<f32>, tensor<f32>
})");
  ASSERT_TRUE(inline_calls(*module->entry()).ok());
  const Instruction* end = module->entry()->return_instruction();
  EXPECT_EQ(end->operand(0), module->entry()->parameter(1));
  EXPECT_EQ(end->operand(1), module->entry()->parameter(0));
}

TEST(Inline, TheLimitIsAnError) {
  const auto module = read(kCalls);
  const Status status = inline_calls(*module->entry(), 3);
  EXPECT_EQ(status.code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "inlining @add makes too many instructions");
}

TEST(Inline, TheLimitCountsWhatIsInRegions) {
  const auto module = read(R"(
func.func @main(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {
  %0 = func.call @f(%p, %x) : (tensor<i1>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @f(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.negate %x : tensor<f32>
    %2 = stablehlo.negate %1 : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }, {
    stablehlo.return %x : tensor<f32>
  }) : (tensor<i1>) -> tensor<f32>
  return %0 : tensor<f32>
})");
  EXPECT_EQ(inline_calls(*module->entry(), 2).message(), "inlining @f makes too many instructions");
  EXPECT_TRUE(inline_calls(*module->entry(), 3).ok());
}

// A chain of functions, each of which calls the next.
std::string chain_of_functions(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += fmt::format(R"(
func.func {} @{}(%x: tensor<f32>) -> tensor<f32> {{
  %0 = stablehlo.negate %x : tensor<f32>
  %1 = func.call @f{}(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}})",
                        i == 0 ? "" : "private", i == 0 ? "main" : fmt::format("f{}", i), i + 1);
  }
  return text + fmt::format(
                    "\nfunc.func private @f{}(%x: tensor<f32>) -> tensor<f32> {{ return "
                    "%x : tensor<f32> }}",
                    count);
}

// Each function is copied once: a negation and a call; nothing for the last function.
TEST(Inline, AChainOfFunctionsIsCopiedOnce) {
  constexpr int kFunctions = 20'000;
  const auto module = read(chain_of_functions(kFunctions));
  EXPECT_EQ(module->functions().size(), kFunctions + 1U);
  const auto copy = module->clone();
  EXPECT_EQ(inline_calls(*copy, 2 * (kFunctions - 1) - 1).message(),
            "inlining @f19999 makes too many instructions");
  const Status status = inline_calls(*module, 2 * (kFunctions - 1));
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(module->functions().size(), 1U);
  EXPECT_EQ(std::distance(module->entry()->begin(), module->entry()->end()), kFunctions + 1);
}

// Regions of the callee are nested in those of the caller.
TEST(Inline, RegionsDoNotNestWithoutBound) {
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text += fmt::format(R"(
func.func {} @{}(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {{
  %0 = "stablehlo.if"(%p) ({{
    %1 = func.call @f{}(%p, %x) : (tensor<i1>, tensor<f32>) -> tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }}, {{
    stablehlo.return %x : tensor<f32>
  }}) : (tensor<i1>) -> tensor<f32>
  return %0 : tensor<f32>
}})",
                        i == 0 ? "" : "private", i == 0 ? "main" : fmt::format("f{}", i), i + 1);
  }
  text +=
      "\nfunc.func private @f300(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> { return %x : "
      "tensor<f32> }";
  const auto module = read(text);
  EXPECT_EQ(inline_calls(*module).to_string(),
            "t.mlir:2307:8: error: inlining nests regions more than 256 deep");
}

TEST(Inline, AMissingFunctionIsAnErrorAtTheCall) {
  const auto module = read(kCalls);
  module->erase_function(module->find_function("add"));
  EXPECT_EQ(inline_calls(*module->entry()).to_string(),
            "t.mlir:8:8: error: func.call: function @add is not defined");
}

TEST(Inline, CompositesKeepTheirDecomposition) {
  const auto module = read(R"(
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.composite "a.b" %x {decomposition = @d} : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @d(%x: tensor<f32>) -> tensor<f32> {
  %0 = func.call @e(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @e(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }
func.func private @f() { return }
)");
  erase_unreachable_functions(*module);
  EXPECT_NE(module->find_function("d"), nullptr);
  EXPECT_NE(module->find_function("e"), nullptr);
  EXPECT_EQ(module->find_function("f"), nullptr);
}

// --- Locations

TEST(Location, Text) {
  const Location at = file_location("f \"1\".py", 3, 4);
  EXPECT_EQ(location_to_string(at), "\"f \\221\\22.py\":3:4");
  EXPECT_EQ(location_to_string(nullptr), "unknown");
  LocationNode named{LocationKind::kName, "n", 0, 0, 0, 0, {at}};
  EXPECT_EQ(position_of(std::make_shared<LocationNode>(named)),
            (SourcePosition{"f \"1\".py", 3, 4}));
}

TEST(Location, ThePositionOfACallSiteIsTheCallee) {
  const LocationNode site{LocationKind::kCallSite,
                          "",
                          0,
                          0,
                          0,
                          0,
                          {file_location("a", 1, 2), file_location("b", 3, 4)}};
  EXPECT_EQ(position_of(std::make_shared<LocationNode>(site)), (SourcePosition{"a", 1, 2}));
  EXPECT_FALSE(position_of(nullptr).known());
  const Location numbered = op_location(function_location("p.mlirbc", "main"), 17);
  EXPECT_EQ(position_of(numbered), (SourcePosition{"p.mlirbc: @main: op 17", 0, 0}));
  EXPECT_EQ(location_to_string(numbered), "unknown");
}

// Aliases share nodes: with 64 levels of two references, 2^64 positions would be printed.
TEST(Location, ATextOfSharedNodesIsBounded) {
  Location at = file_location("f", 1, 2);
  for (int i = 0; i < 64; ++i) {
    at = std::make_shared<LocationNode>(
        LocationNode{LocationKind::kFused, "", 0, 0, 0, 0, {at, at}});
  }
  EXPECT_LT(location_to_string(at).size(), size_t{1} << 20);
}

}  // namespace
}  // namespace tenon::hlo
