#include "hlo/text/text_test_util.h"

namespace tenon::hlo {
namespace {

using testing::parse_attribute;

struct AttributeCase {
  const char* text;
  Attribute value;
};

// Reads each case, prints it in both forms and reads it again.
void check(const std::vector<AttributeCase>& cases) {
  for (const AttributeCase& c : cases) {
    const auto value = parse_attribute(c.text);
    ASSERT_TRUE(value) << c.text << ": " << value.error().to_string();
    EXPECT_EQ(*value, c.value) << c.text << " is " << attribute_text(*value, TextForm::kHlo);
    for (const TextForm form : {TextForm::kHlo, TextForm::kStableHlo}) {
      const std::string text = attribute_text(*value, form);
      const auto again = parse_attribute(text, form == TextForm::kHlo);
      ASSERT_TRUE(again) << text << ": " << again.error().to_string();
      EXPECT_EQ(*again, *value) << text;
    }
  }
}

FloatAttr f32_bits(uint64_t bits) { return {bits, ElementType::kF32}; }

TEST(ParseAttribute, Builtin) {
  check({
      {"unit", Unit{}},
      {"true", true},
      {"false", false},
      {"true : i1", true},
      {"1 : i1", IntegerAttr{1, ElementType::kPred}},
      {"5", int64_t{5}},
      {"-5 : i32", IntegerAttr{-5, ElementType::kS32}},
      {"0x1F : i64", int64_t{31}},
      {"255 : ui8", IntegerAttr{255, ElementType::kU8}},
      {"18446744073709551615 : ui64", IntegerAttr{-1, ElementType::kU64}},
      {"3 : index", int64_t{3}},
      {"1.5", FloatAttr::of(ElementType::kF64, 1.5)},
      {"1.0e-5 : f32", FloatAttr::of(ElementType::kF32, 1e-5)},
      {"-0.0 : f32", f32_bits(0x80000000)},
      {"0x7F800000 : f32", f32_bits(0x7F800000)},
      {"0x7FC00001 : f32", f32_bits(0x7FC00001)},
      {"0.1 : bf16", FloatAttr::of(ElementType::kBF16, 0.1)},
      {"1.0 : f8E4M3FN", FloatAttr::of(ElementType::kF8E4M3FN, 1)},
      {R"("a\22\0A\\b")", "a\"\n\\b"},
      {"\"\"", ""},
      {"@f", SymbolAttr{"f"}},
      {"@\"a b\"", SymbolAttr{"a b"}},
      {"@a::@b", SymbolAttr{"a::b"}},
      {"[]", ArrayAttr{}},
      {"[1, \"a\", [true]]", ArrayAttr{int64_t{1}, "a", ArrayAttr{true}}},
      {"{}", Dict{}},
      {"{k = 1, u, \"q r\" = 2}", Dict{{"k", int64_t{1}}, {"q r", int64_t{2}}, {"u", Unit{}}}},
      {"tensor<2xf32>", Type::tensor(ElementType::kF32, {2})},
      {"(tensor<f32>) -> ()", Type::function({Type::tensor(ElementType::kF32, {})}, {})},
      {"!stablehlo.token", Type::token()},
      {"i32", OpaqueAttr{"i32"}},
      {"array<i64: 1, -2>", I64s{1, -2}},
      {"array<i64>", I64s{}},
      {"array<i1: true, false>", BoolsAttr{{1, 0}}},
      {"array<i1>", BoolsAttr{}},
      {"array<f32: 1.0>", ArrayAttr{FloatAttr::of(ElementType::kF32, 1)}},
      {"array<i8: 1, -2>",
       ArrayAttr{IntegerAttr{1, ElementType::kS8}, IntegerAttr{-2, ElementType::kS8}}},
      {"array<i32>", ArrayAttr{}},
      {"#foo.bar<a, [b], {\">\"}>", OpaqueAttr{"#foo.bar<a, [b], {\">\"}>"}},
      {"#foo.bar", OpaqueAttr{"#foo.bar"}},
      {"affine_map<(d0) -> (d0)>", OpaqueAttr{"affine_map<(d0) -> (d0)>"}},
      {"loc(\"f\":1:2)", OpaqueAttr{"loc(\"f\":1:2)"}},
      {"#sdy.sharding<@mesh, [{\"a\"}, {}]>", OpaqueAttr{"#sdy.sharding<@mesh, [{\"a\"}, {}]>"}},
  });
}

TEST(ParseAttribute, EveryEnumInBothSpellings) {
  for (int k = 0; k <= static_cast<int>(EnumKind::kResultAccuracyMode); ++k) {
    const auto kind = static_cast<EnumKind>(k);
    for (size_t v = 0; v < enum_size(kind); ++v) {
      const EnumAttr word{kind, static_cast<uint8_t>(v)};
      if (enum_word(word).empty()) continue;
      const std::string name(enum_kind_name(kind));
      const std::string text(enum_word(word));
      check({{("#stablehlo<" + name + " " + text + ">").c_str(), word},
             {("#stablehlo." + name + "<" + text + ">").c_str(), word}});
    }
  }
}

TEST(ParseAttribute, StructuresOfStableHlo) {
  const DotDims dot{{0}, {1}, {2, 3}, {4, 5}};
  DotAlgorithm algorithm;
  algorithm.lhs_precision = algorithm.rhs_precision = {ElementType::kF32, true};
  algorithm.accumulation = {ElementType::kF32, false};
  algorithm.num_primitive_operations = 3;
  algorithm.allow_imprecise_accumulation = true;
  check({
      {"#stablehlo.channel_handle<handle = 1, type = 2>", ChannelHandle{1, 2}},
      {"#stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [1], "
       "lhs_contracting_dimensions = [2, 3], rhs_contracting_dimensions = [4, 5]>",
       dot},
      {"#stablehlo.dot<rhs_contracting_dimensions = [], lhs_contracting_dimensions = [1]>",
       DotDims{{}, {}, {1}, {}}},
      {"#stablehlo.dot<>", DotDims{}},
      {"#stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], operand_batching_dims = "
       "[2], "
       "start_indices_batching_dims = [3], start_index_map = [4], index_vector_dim = 5>",
       GatherDims{{1}, {0}, {2}, {3}, {4}, 5}},
      {"#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
       "input_batching_dims = [2], scatter_indices_batching_dims = [3], "
       "scatter_dims_to_operand_dims = [4], index_vector_dim = 1>",
       ScatterDims{{1}, {0}, {2}, {3}, {4}, 1}},
      {"#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[f, 1, 0, b]>",
       ConvDims{0, 3, {1, 2}, 2, 3, {0, 1}, 3, 0, {2, 1}}},
      {"#stablehlo.conv<[b, f]x[o, i]->[b, f]>", ConvDims{0, 1, {}, 1, 0, {}, 0, 1, {}}},
      {"#stablehlo.dot_algorithm<lhs_precision_type = tf32, rhs_precision_type = tf32, "
       "accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, "
       "num_primitive_operations = 3, allow_imprecise_accumulation = true>",
       algorithm},
      {"#stablehlo.result_accuracy<atol = 1.0e-5, rtol = 0.5, ulps = 3, mode = "
       "#stablehlo.result_accuracy_mode<TOLERANCE>>",
       ResultAccuracy{1e-5, 0.5, 3, ResultAccuracyMode::kTolerance}},
      {"#stablehlo.result_accuracy<mode = HIGHEST>",
       ResultAccuracy{0, 0, 0, ResultAccuracyMode::kHighest}},
      {"#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 1, "
       "operand_tuple_indices = []>",
       OutputOperandAlias{{0}, 1, {}}},
      {"#chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], "
       "lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>",
       RaggedDotDims{{{}, {}, {1}, {1}}, {0}, {0}}},
      {"#stablehlo.replica_group_mesh_axes<mesh = @m, axes = [#stablehlo.axis_ref<name = \"x\">]>",
       OpaqueAttr{"#stablehlo.replica_group_mesh_axes<mesh = @m, axes = [#stablehlo.axis_ref<name "
                  "= \"x\">]>"}},
      {"#mhlo.dot<lhs_contracting_dimensions = [1]>", DotDims{{}, {}, {1}, {}}},
      {"#chlo.precision<HIGH>", EnumAttr{EnumKind::kPrecision, 1}},
  });
}

TEST(ParseAttribute, Aliases) {
  const auto raw = parse_mlir_text(
      "#a = 5 : i32\n#b.c = [#a]\nfunc.func private @f() attributes {x = #a, y = #b.c}", "t");
  ASSERT_TRUE(raw) << raw.error().to_string();
  const Dict& dict = raw->module.regions[0].ops[0].attributes;
  EXPECT_EQ(*find(dict, "x"), Attribute(IntegerAttr{5, ElementType::kS32}));
  EXPECT_EQ(*find(dict, "y"), Attribute(ArrayAttr{IntegerAttr{5, ElementType::kS32}}));
}

// Positions count from "func.func private @f() attributes {a = ", 39 characters.
TEST(ParseAttribute, Errors) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "t:1:40: error: expected an attribute, found '}'"},
      {"nonsense", "t:1:40: error: unknown attribute 'nonsense'"},
      {"@", "t:1:41: error: expected a symbol name, found '}'"},
      {"1 : complex<f32>", "t:1:40: error: a number cannot have type c64[]"},
      {"1 : tensor<2xi32>", "t:1:40: error: a number cannot have type s32[2]"},
      {"1 : !stablehlo.token", "t:1:40: error: a number cannot have type token"},
      {"256 : i8", "t:1:40: error: 256 is out of the range of s8"},
      {"-1 : ui64", "t:1:40: error: -1 is out of the range of u64"},
      {"1.5 : i32", "t:1:40: error: a float cannot have type s32"},
      {"1 : f32", "t:1:40: error: a decimal integer cannot have type f32; write 1.0"},
      {"0x1FFFFFFFF : f32", "t:1:40: error: 0x1FFFFFFFF has more than the 32 bits of f32"},
      {"array<!stablehlo.token>", "t:1:45: error: array<!stablehlo.token> is not supported"},
      {"array<tensor<2xi64>>", "t:1:45: error: array<tensor<2xi64>> is not supported"},
      {"array<i1: 2>", "t:1:50: error: expected 'false', found '2'"},
      {"array<complex<f32>>", "t:1:45: error: array<tensor<complex<f32>>> is not supported"},
      {"[1", "t:1:42: error: expected ']', found '}'"},
      {"{1}", "t:1:41: error: expected an attribute name, found '1'"},
      {"{b = 1 c}", "t:1:47: error: expected '}', found 'c'"},
      {"{b, b}", "t:1:44: error: attribute 'b' is given twice"},
      {"#nothing", "t:1:40: error: attribute alias '#nothing' is not defined"},
      {"#stablehlo<foo BAR>", "t:1:55: error: unknown attribute '#stablehlo<foo'"},
      {"#stablehlo<precision LOW>", "t:1:61: error: 'LOW' is not a valid precision"},
      {"#stablehlo.dot<foo = [1]>", "t:1:55: error: unknown field 'foo'"},
      {"#stablehlo.dot<lhs_batching_dimensions = 1>", "t:1:81: error: expected '[', found '1'"},
      {"#stablehlo.dot_algorithm<foo = 1>", "t:1:65: error: unknown field 'foo' of dot_algorithm"},
      {"#stablehlo.result_accuracy<foo = 1>",
       "t:1:67: error: unknown field 'foo' of result_accuracy"},
      {"#stablehlo.result_accuracy<mode = #stablehlo<precision HIGH>>",
       "t:1:67: error: mode is not a result_accuracy_mode"},
      {"#stablehlo.conv<[b, f]x[o, i]->[b, b]>",
       "t:1:56: error: dimension numbers name each of b, f (or i, o) and 0, 1 … once"},
      {"#stablehlo.conv<[b, f, 1]x[o, i, 0]->[b, f, 0]>",
       "t:1:56: error: dimension numbers name each of b, f (or i, o) and 0, 1 … once"},
      {"#stablehlo.conv<[b, ]>", "t:1:60: error: expected a dimension letter or number, found ']'"},
      {"#foo.bar<", "t:1:49: error: unbalanced '}'"},
  };
  for (const auto& [text, error] : cases) {
    const auto value = parse_attribute(text);
    ASSERT_FALSE(value) << text;
    EXPECT_EQ(value.error().to_string(), error);
  }
}

TEST(ParseAttribute, DepthIsBounded) {
  const std::string open(300, '[');
  EXPECT_EQ(parse_attribute(open).error().to_string(),
            "t:1:295: error: nested deeper than 256 levels");
  std::string dicts;
  for (int i = 0; i < 300; ++i) dicts += "{a=";
  EXPECT_EQ(parse_attribute(dicts).error().message(), "nested deeper than 256 levels");
}

// Attributes and types in aliases are counted as if they were written out, and bounded.
TEST(ParseAttribute, AliasesAreBounded) {
  const auto error_of = [](const std::string& text) {
    const auto raw = parse_mlir_text(text, "t");
    return raw ? "" : raw.error().message();
  };
  const auto file = [](int count, const char* first, const char* next) {
    std::string text = first;
    for (int i = 1; i < count; ++i) {
      text += fmt::format(fmt::runtime(next), i, i - 1);
    }
    return text + "func.func private @f()";
  };
  const std::string deep = "nested deeper than 256 levels";
  const std::string many = "aliases stand for more than 4194304 types and attributes";
  EXPECT_EQ(error_of(file(200, "#a0 = []\n", "#a{} = [#a{}]\n")), "");
  EXPECT_EQ(error_of(file(20'000, "#a0 = []\n", "#a{} = [#a{}]\n")), deep);
  EXPECT_EQ(error_of(file(20'000, "!t0 = tuple<tensor<f32>>\n", "!t{} = tuple<!t{}>\n")), deep);
  EXPECT_EQ(error_of(file(45, "#a0 = [1]\n", "#a{0} = [#a{1}, #a{1}]\n")), many);
  EXPECT_EQ(error_of(file(45, "!t0 = tuple<tensor<f32>>\n", "!t{0} = tuple<!t{1}, !t{1}>\n")),
            many);
  // Their length counts too: this alias would be copied to 4,000 places.
  const auto long_alias = [](const std::string& definition, char sigil) {
    std::string text = sigil + definition + "func.func private @f() attributes {";
    for (int i = 0; i < 4'000; ++i) text += fmt::format("a{} = {}a,", i, sigil);
    return text + "b}";
  };
  std::string numbers;
  std::string dims;
  for (int i = 0; i < 10'000; ++i) {
    numbers += i == 0 ? "1" : ", 1";
    dims += "1x";
  }
  EXPECT_EQ(error_of(long_alias("a = array<i64: " + numbers + ">\n", '#')), many);
  EXPECT_EQ(error_of(long_alias("a = \"" + dims + "\"\n", '#')), many);
  EXPECT_EQ(error_of(long_alias("a = dense<[" + numbers + "]> : tensor<10000xi64>\n", '#')), "");
  std::string quantized = "!q = tensor<2x";
  for (int i = 0; i < 15'000; ++i) quantized += "!quant.uniform<i8:";
  EXPECT_EQ(error_of(quantized), deep);
}

TEST(ParseAttribute, SymbolsOfManyParts) {
  std::string symbol = "@a";
  std::string name = "a";
  for (int i = 0; i < 60'000; ++i) {
    symbol += "::@a";
    name += "::a";
  }
  const auto value = parse_attribute(symbol);
  ASSERT_TRUE(value) << value.error().to_string();
  EXPECT_EQ(value->get<SymbolAttr>()->name, name);
}

TEST(ParseAttribute, ConvolutionNumbersByName) {
  const auto drawn = parse_attribute("#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[f, b, 1, 0]>");
  const auto named = parse_attribute(
      "#stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, "
      "input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, "
      "kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], "
      "output_batch_dimension = 1, output_feature_dimension = 0, "
      "output_spatial_dimensions = [3, 2]>");
  ASSERT_TRUE(drawn) << drawn.error().to_string();
  ASSERT_TRUE(named) << named.error().to_string();
  EXPECT_EQ(*named, *drawn);
}

}  // namespace
}  // namespace tenon::hlo
