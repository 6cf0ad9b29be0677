#include "hlo/text/text_test_util.h"

namespace tenon::hlo {
namespace {

// The location of the only function.
std::string location_of(std::string_view location, std::string_view before = "",
                        std::string_view after = "") {
  const std::string text = fmt::format("{}func.func private @f() {}\n{}", before, location, after);
  const auto raw = parse_mlir_text(text, "t");
  if (!raw) return raw.error().to_string();
  return location_to_string(raw->module.regions[0].ops[0].location);
}

TEST(ParseLocation, EveryForm) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "\"t\":1:1"},  // none written: the op's own position
      {"loc(unknown)", "unknown"},
      {"loc(\"f.py\":3:4)", "\"f.py\":3:4"},
      {"loc(\"f.py\":3:4 to :9)", "\"f.py\":3:4 to 3:9"},
      {"loc(\"f.py\":3:4 to 5:6)", "\"f.py\":3:4 to 5:6"},
      {"loc(\"name\")", "\"name\""},
      {"loc(\"name\"(\"f.py\":3:4))", "\"name\"(\"f.py\":3:4)"},
      {"loc(\"name\"(unknown))", "\"name\""},
      {"loc(callsite(\"a\"(\"f\":1:2) at \"g\":3:4))", "callsite(\"a\"(\"f\":1:2) at \"g\":3:4)"},
      {"loc(fused[\"a\", \"f\":1:2])", "fused[\"a\", \"f\":1:2]"},
      {"loc(fused<{k = [1]}>[\"a\"])", "fused[\"a\"]"},
      {"loc(fused[])", "fused[]"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(location_of(text), expected) << text;
}

TEST(ParseLocation, AliasesBeforeAndAfterTheirUse) {
  EXPECT_EQ(location_of("loc(#loc1)", "#loc1 = loc(\"f\":1:2)\n"), "\"f\":1:2");
  EXPECT_EQ(location_of("loc(#loc1)", "", "#loc1 = loc(\"f\":1:2)"), "\"f\":1:2");
  EXPECT_EQ(location_of("loc(#loc2)", "#loc1 = loc(\"f\":1:2)\n#loc2 = loc(\"n\"(#loc1))\n"),
            "\"n\"(\"f\":1:2)");
  EXPECT_EQ(location_of("loc(#loc2)", "",
                        "#loc2 = loc(callsite(#loc1 at #loc1))\n#loc1 = loc(\"f\":1:2)"),
            "callsite(\"f\":1:2 at \"f\":1:2)");
  EXPECT_EQ(location_of("loc(#loc)", "", "#loc = loc(unknown)"), "unknown");
}

TEST(ParseLocation, OpsRegionsAndArgumentsHaveTheirOwn) {
  const auto module = testing::read(R"(
func.func @f(%p: tensor<i1> loc("p":1:1)) -> tensor<i1> {
  %0 = "stablehlo.if"(%p) ({
    stablehlo.return %p : tensor<i1> loc("inner":2:2)
  }, {
    stablehlo.return %p : tensor<i1>
  }) : (tensor<i1>) -> tensor<i1> loc("op":3:3)
  return %0 : tensor<i1>
} loc("f":4:4))");
  const Computation& f = *module->entry();
  EXPECT_EQ(location_to_string(f.location()), "\"f\":4:4");
  EXPECT_EQ(location_to_string(f.parameter(0).def->location()), "\"p\":1:1");
  EXPECT_EQ(location_to_string(f.first()->location()), "\"op\":3:3");
  EXPECT_EQ(location_to_string(f.first()->region(0).first()->location()), "\"inner\":2:2");
  EXPECT_EQ(location_to_string(f.first()->region(1).first()->location()), "\"t\":6:5");
}

TEST(ParseLocation, AnAliasOfAnAliasDefinedLater) {
  EXPECT_EQ(location_of("loc(#a)", "", "#a = loc(#b)\n#b = loc(\"f\":1:2)"), "\"f\":1:2");
}

TEST(ParseLocation, CyclesAreErrors) {
  EXPECT_EQ(location_of("", "#a = loc(#a)\n"), "t:2:1: error: location alias '#a' is itself");
  const std::string cycle = location_of("loc(#a)", "", "#a = loc(\"x\"(#b))\n#b = loc(\"y\"(#a))");
  EXPECT_TRUE(cycle.ends_with("refers to itself or is nested deeper than 256 levels")) << cycle;
  EXPECT_TRUE(cycle.starts_with("t:1:1: error: location alias '#")) << cycle;
}

TEST(ParseLocation, DepthIsBounded) {
  std::string deep;
  for (int i = 0; i < 300; ++i) deep += "\"a\"(";
  EXPECT_EQ(location_of("loc(" + deep), "t:1:1048: error: nested deeper than 256 levels");
  std::string chain;
  for (int i = 0; i < 300; ++i) chain += fmt::format("#l{} = loc(\"a\"(#l{}))\n", i, i + 1);
  const std::string error = location_of("loc(#l0)", "", chain + "#l300 = loc(unknown)");
  EXPECT_TRUE(error.ends_with("refers to itself or is nested deeper than 256 levels")) << error;
}

// 100 levels of two references each: 2^100 paths.
TEST(ParseLocation, SharedAliasesTakeNoTime) {
  std::string chain = "#l0 = loc(\"f\":1:2)\n";
  for (int i = 0; i < 100; ++i)
    chain += fmt::format("#l{} = loc(fused[#l{}, #l{}])\n", i + 1, i, i);
  EXPECT_TRUE(location_of("loc(#l100)", chain).starts_with("fused["));
}

TEST(ParseLocation, Errors) {
  const std::pair<const char*, const char*> cases[] = {
      {"loc(foo)", "t:1:28: error: unknown location 'foo'"},
      {"loc(\"f\":1)", "t:1:33: error: expected ':', found ')'"},
      {"loc(\"f\":1:x)", "t:1:34: error: expected an integer, found 'x'"},
      {"loc(callsite(\"a\" \"b\"))", "t:1:41: error: expected 'at', found '\"'"},
      {"loc(fused(\"a\"))", "t:1:33: error: expected '[', found '('"},
      {"loc(\"a\"", "t:2:1: error: expected ')', found the end of the text"},
  };
  for (const auto& [text, error] : cases) EXPECT_EQ(location_of(text), error) << text;
}

}  // namespace
}  // namespace tenon::hlo
