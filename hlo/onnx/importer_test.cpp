#include "hlo/onnx/importer.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "hlo/onnx/lowering.h"
#include "hlo/onnx/models_test_util.h"
#include "hlo/text/printer.h"

namespace tenon::hlo {
namespace {

using namespace testing;

size_t count_ops(const Module& module, OpCode code) {
  size_t count = 0;
  any_instruction(*module.entry(), [&](const Instruction& op) {
    count += op.code() == code ? 1 : 0;
    return false;
  });
  return count;
}

const OnnxValueInfo kX = value_info("x", ElementType::kF32, {2, 2});

TEST(OnnxTable, TheNewestRowUpToTheVersionCounts) {
  EXPECT_EQ(find_onnx_row("", "Softmax", 12)->since, 1);
  EXPECT_EQ(find_onnx_row("", "Softmax", 13)->since, 13);
  EXPECT_EQ(find_onnx_row("", "Add", 6), nullptr);
  EXPECT_EQ(find_onnx_row("ai.onnx.ml", "Add", 13), nullptr);
  EXPECT_TRUE(has_onnx_row("", "Add"));
}

TEST(OnnxTable, RowsAreDistinctAndNotNewerThanTheTable) {
  const std::vector<const OnnxRow*> rows = all_onnx_rows();
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_LE(rows[i]->since, kNewestOnnxOpset);
    if (i > 0) {
      EXPECT_FALSE(rows[i]->domain == rows[i - 1]->domain && rows[i]->name == rows[i - 1]->name &&
                   rows[i]->since == rows[i - 1]->since)
          << rows[i]->name;
    }
  }
}

TEST(OnnxImport, SoftmaxOfOldVersionsIsOfAllLaterDimensions) {
  const std::vector<Literal> x = {floats({1, 2, 2}, {0, 0, 0, 0})};
  const auto softmax = [](int64_t opset) {
    return model_of({node("Softmax", {"x"}, {"y"})},
                    {value_info("x", ElementType::kF32, {1, 2, 2})}, {"y"}, opset);
  };
  EXPECT_EQ(run(softmax(12), x), "[[[0.25, 0.25], [0.25, 0.25]]]");
  EXPECT_EQ(run(softmax(13), x), "[[[0.5, 0.5], [0.5, 0.5]]]");
}

TEST(OnnxImport, ShapesThatAreComputedAreFolded) {
  OnnxModel model =
      model_of({node("Shape", {"x"}, {"s"}), node("Gather", {"s", "zero"}, {"n"}),
                node("Concat", {"n", "rest"}, {"t"}), node("Reshape", {"x", "t"}, {"y"})},
               {value_info("x", ElementType::kF32, {2, 3, 2})}, {"y"});
  model.graph.nodes[2].attributes["axis"].integer = 0;
  model.graph.initializers = {{"zero", Literal::from_i64s(I64s{0})},
                              {"rest", Literal::from_i64s(I64s{-1})}};
  const auto imported = import_onnx(model);
  ASSERT_TRUE(imported) << imported.error().message();
  EXPECT_EQ(imported->module->entry()->result_types()[0].to_string(), "f32[2,6]");
  EXPECT_EQ(count_ops(*imported->module, OpCode::kGather), 0U) << "the ops of the shape are erased";
}

// Work that never ends is refused, and not done.
TEST(OnnxImport, ShapesThatTakeTooMuchWorkAreRefused) {
  OnnxModel model = model_of(
      {node("CumSum", {"ones", "zero"}, {"c"}), node("Slice", {"c", "from", "to"}, {"last"}),
       node("Reshape", {"x", "last"}, {"y"})},
      {value_info("x", ElementType::kF32, {1 << 20})}, {"y"});
  Literal ones(Shape(ElementType::kS64, {1 << 20}));
  for (int64_t i = 0; i < ones.element_count(); ++i) ones.set_integer(i, 1);
  model.graph.initializers = {{"ones", ones},
                              {"zero", Literal::from_i64s(I64s{0}).reshaped({})},
                              {"from", Literal::from_i64s(I64s{-1})},
                              {"to", Literal::from_i64s(I64s{1 << 20})}};
  EXPECT_EQ(error_of(model),
            "node 3, Reshape of opset 18: input 1 ('last') decides a shape, and is not computed "
            "while the model is imported: the program takes more than 134217728 operations");
}

TEST(OnnxImport, UniqueTellsLongIntegersApartAndNaNsNot) {
  const auto unique = [](const Literal& x) {
    OnnxModel model = model_of({node("Unique", {"v"}, {"u", "", "", "n"})},
                               {value_info("x", ElementType::kF32, {})}, {"u"});
    model.graph.initializers = {{"v", x}};
    return run(model, {Literal::scalar(ElementType::kF32, 0)});
  };
  EXPECT_EQ(unique(Literal::from_i64s(I64s{(int64_t{1} << 60) + 1, int64_t{1} << 60, -1})),
            "[-1, 1152921504606846976, 1152921504606846977]");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(unique(floats({6}, {nan, 1, -0.0F, nan, 0, -2})), "[-2, -0, 1, nan]");
}

TEST(OnnxImport, RangesOfLongIntegersAreExact) {
  const auto range = [](int64_t from, int64_t to, int64_t by) {
    OnnxModel model = model_of({node("Range", {"a", "b", "c"}, {"y"})},
                               {value_info("x", ElementType::kF32, {})}, {"y"});
    const auto number = [](int64_t x) { return Literal::from_i64s(I64s{x}).reshaped({}); };
    model.graph.initializers = {{"a", number(from)}, {"b", number(to)}, {"c", number(by)}};
    return run(model, {Literal::scalar(ElementType::kF32, 0)});
  };
  const int64_t far = int64_t{1} << 62;
  EXPECT_EQ(range(far, far + 3, 2), "[4611686018427387904, 4611686018427387906]");
  EXPECT_EQ(range(INT64_MIN, INT64_MAX, INT64_MAX),
            "[-9223372036854775808, -1, 9223372036854775806]");
  EXPECT_EQ(range(3, 0, -2), "[3, 1]");
  EXPECT_EQ(range(0, 3, -1), "[]");
}

TEST(OnnxImport, ASymbolHasOneSize) {
  const OnnxModel model = model_of({node("Identity", {"a"}, {"y"})},
                                   {value_info("a", ElementType::kF32, {kDynamic}, {"N"}),
                                    value_info("b", ElementType::kF32, {kDynamic}, {"N"})},
                                   {"y"});
  OnnxKnowledge known;
  known.shapes = {{0, {2}}, {1, {3}}};
  EXPECT_EQ(error_of(model, known), "input 1 ('b') has size 3 where 'N' is 2 in another input");
}

TEST(OnnxImport, AnInputThatDecidesAShapeNeedsAValue) {
  const OnnxModel model = model_of({node("Reshape", {"x", "s"}, {"y"})},
                                   {kX, value_info("s", ElementType::kS64, {1})}, {"y"});
  EXPECT_EQ(error_of(model),
            "node 1, Reshape of opset 18: input 1 ('s') decides a shape, and depends on an "
            "argument whose value is not given");
  OnnxKnowledge known;
  known.values.emplace(0, floats({2, 2}, {1, 2, 3, 4}));
  known.values.emplace(1, Literal::from_i64s(I64s{4}));
  const auto imported = import_onnx(model, known);
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->used_values, std::vector<size_t>{1});
  known.values.insert_or_assign(1, Literal::scalar_integer(ElementType::kS32, 4).reshaped({1}));
  EXPECT_EQ(error_of(model, known), "input 1 ('s') is of s64, and is given as s32[1]");
}

TEST(OnnxImport, SymbolicSizesAreThoseOfOtherInputs) {
  const OnnxModel model = model_of({node("Add", {"x", "y"}, {"z"})},
                                   {value_info("x", ElementType::kF32, {kDynamic, 2}, {"N", ""}),
                                    value_info("y", ElementType::kF32, {kDynamic, 1}, {"N", ""})},
                                   {"z"});
  EXPECT_EQ(error_of(model), "input 0 ('x') has an unknown size 'N'; give --shape 0=SIZES");
  OnnxKnowledge known;
  known.shapes[1] = {5, 1};
  const auto imported = import_onnx(model, known);
  ASSERT_TRUE(imported) << imported.error().message();
  EXPECT_EQ(imported->module->entry()->result_types()[0].to_string(), "f32[5,2]");
  known.shapes[1] = {5, 3};
  EXPECT_EQ(error_of(model, known), "input 1 ('y') is f32[?,1], and is given as [5,3]");
}

TEST(OnnxImport, ErrorsNameTheNodeTheOpAndTheVersion) {
  EXPECT_EQ(error_of(model_of({node("Frobnicate", {"x"}, {"y"})}, {kX}, {"y"})),
            "node 1, Frobnicate of opset 18: the op is not supported");
  OnnxNode named = node("Trilu", {"x"}, {"y"});
  named.name = "low";
  EXPECT_EQ(error_of(model_of({named}, {kX}, {"y"}, 13)),
            "node 1 'low', Trilu of opset 13: this version of the op is not supported");
  EXPECT_EQ(error_of(model_of({node("Relu", {"w"}, {"y"})}, {kX}, {"y"})),
            "node 1, Relu of opset 18: there is no value 'w' before it");
  EXPECT_EQ(error_of(model_of({node("Add", {"x"}, {"y"})}, {kX}, {"y"})),
            "node 1, Add of opset 18: input 1 is missing");
  EXPECT_EQ(error_of(model_of({}, {kX}, {"x"}, 99)),
            "the model is of opset 99, and the newest that is supported is 28");
  EXPECT_NE(
      error_of(model_of({with_integer(node("Flatten", {"x"}, {"y"}), "axis", 9)}, {kX}, {"y"}))
          .find("axis 9 is out of range"),
      std::string::npos);
}

TEST(OnnxImport, FunctionsOfTheModelAreInlined) {
  OnnxModel model = model_of({with_integer(node("Ours", {"x"}, {"y"}), "which", 1)}, {kX}, {"y"});
  model.graph.nodes[0].domain = "our.domain";
  OnnxFunction function;
  function.inputs = {"a"};
  function.outputs = {"b"};
  function.opsets[""] = 18;
  OnnxNode sum = node("ReduceSum", {"a"}, {"s"});
  sum.attributes["keepdims"].reference = "which";
  sum.attributes["noop_with_empty_axes"].reference = "absent";
  function.nodes = {sum, node("Mul", {"s", "a"}, {"b"})};
  model.functions[function_key("our.domain", "Ours", "")] = function;
  EXPECT_EQ(run(model, {floats({2, 2}, {1, 2, 3, 4})}), "[[10, 20], [30, 40]]");
}

TEST(OnnxImport, AFunctionThatCallsItselfIsAnError) {
  OnnxModel model = model_of({node("Ours", {"x"}, {"y"})}, {kX}, {"y"});
  OnnxFunction function;
  function.inputs = {"a"};
  function.outputs = {"b"};
  function.nodes = {node("Ours", {"a"}, {"b"})};
  model.functions[function_key("", "Ours", "")] = function;
  EXPECT_NE(error_of(model).find("nested too deeply"), std::string::npos);
}

std::shared_ptr<const OnnxGraph> graph_of(OnnxModel model) {
  return std::make_shared<const OnnxGraph>(std::move(model.graph));
}

OnnxModel conditional() {
  OnnxNode choose = node("If", {"c"}, {"y"});
  choose.attributes["then_branch"].graph =
      graph_of(model_of({node("Neg", {"x"}, {"a"})}, {}, {"a"}));
  choose.attributes["else_branch"].graph =
      graph_of(model_of({node("Add", {"x", "x"}, {"b"})}, {}, {"b"}));
  return model_of({choose}, {kX, value_info("c", ElementType::kPred, {})}, {"y"});
}

TEST(OnnxControl, AConditionThatIsKnownTakesOneBranch) {
  const Literal x = floats({2, 2}, {1, 2, 3, 4}),
                yes = Literal::scalar_integer(ElementType::kPred, 1);
  const auto imported = import_onnx(conditional());
  ASSERT_TRUE(imported) << imported.error().message();
  EXPECT_EQ(count_ops(*imported->module, OpCode::kIf), 1U);
  EXPECT_EQ(run(conditional(), {x, yes}), "[[-1, -2], [-3, -4]]");
  OnnxKnowledge known;
  known.values.emplace(1, yes);
  const auto chosen = import_onnx(conditional(), known);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(count_ops(*chosen->module, OpCode::kIf), 0U);
  EXPECT_EQ(chosen->used_values, std::vector<size_t>{1});
}

TEST(OnnxControl, ACostlyConditionStaysAndHidesNoConstant) {
  OnnxNode cumsum = node("CumSum", {"ones", "zero"}, {"sums"}),
           choose = conditional().graph.nodes[0];
  choose.inputs = {"last"};
  OnnxNode cast = with_integer(node("Cast", {"sum"}, {"last"}), "to", 9);
  OnnxModel model =
      model_of({cumsum, node("ReduceMax", {"sums"}, {"sum"}), cast, choose,
                node("Mul", {"two", "two"}, {"four"}), node("Reshape", {"y", "four"}, {"z"})},
               {kX}, {"z"});
  model.graph.nodes[1].attributes["keepdims"].integer = 0;
  Literal ones(Shape(ElementType::kS64, {1 << 20}));
  for (int64_t i = 0; i < ones.element_count(); ++i) ones.set_integer(i, 1);
  model.graph.initializers = {{"ones", ones},
                              {"zero", Literal::from_i64s(I64s{0}).reshaped({})},
                              {"two", Literal::from_i64s(I64s{2})}};
  const auto imported = import_onnx(model);
  ASSERT_TRUE(imported) << imported.error().message();
  EXPECT_EQ(count_ops(*imported->module, OpCode::kIf), 1U);
  EXPECT_EQ(imported->module->entry()->result_types()[0].to_string(), "f32[4]");
}

// Adds `x` to the carried value in each iteration; `body` may do more.
OnnxModel loop_of(std::vector<OnnxNode> body, Names results, Names outputs) {
  OnnxModel inner = model_of(std::move(body), {}, std::move(results));
  for (const char* name : {"i", "go", "v"}) inner.graph.inputs.emplace_back().name = name;
  OnnxNode loop = node("Loop", {"m", "", "x"}, outputs);
  loop.attributes["body"].graph = graph_of(std::move(inner));
  OnnxModel model = model_of({loop}, {kX}, {outputs.back()});
  model.graph.initializers = {{"m", Literal::scalar_integer(ElementType::kS64, 3)}};
  return model;
}

TEST(OnnxControl, LoopsBecomeWhile) {
  const OnnxModel sum = loop_of({node("Add", {"v", "x"}, {"w"})}, {"go", "w"}, {"y"});
  const auto imported = import_onnx(sum);
  ASSERT_TRUE(imported) << imported.error().message();
  EXPECT_EQ(count_ops(*imported->module, OpCode::kWhile), 1U);
  EXPECT_EQ(run(sum, {floats({2, 2}, {1, 2, 3, 4})}), "[[4, 8], [12, 16]]");
  const OnnxModel collects =
      loop_of({node("Add", {"v", "x"}, {"w"}), node("ReduceMax", {"w"}, {"r"})}, {"go", "w", "r"},
              {"y", "z"});
  EXPECT_EQ(run(collects, {floats({2, 2}, {1, 2, 3, 4})}), "[[[8]], [[12]], [[16]]]");
}

// Results that are collected have a size for each iteration: none, or an unknown number, is
// refused.
TEST(OnnxControl, LoopsThatMayEndEarlyCollectNothing) {
  OnnxModel model = loop_of({node("ReduceMax", {"v"}, {"r"}), node("Identity", {"t"}, {"g"})},
                            {"g", "v", "r"}, {"y", "z"});
  model.graph.initializers.emplace_back("t", Literal::scalar_integer(ElementType::kPred, 1));
  EXPECT_EQ(run(model, {floats({2, 2}, {1, 2, 3, 4})}), "[[[4]], [[4]], [[4]]]");
  model.graph.nodes[0].inputs[1] = "stop";
  model.graph.initializers.emplace_back("stop", Literal::scalar_integer(ElementType::kPred, 0));
  EXPECT_NE(error_of(model), "");
}

TEST(OnnxControl, AGraphWhoseOutputHasNoValueIsAnError) {
  OnnxFunction function;
  function.inputs = {"m", "x", "left_out"};
  function.outputs = {"y"};
  OnnxModel inner = model_of({}, {}, {"go", "left_out"});
  for (const char* name : {"i", "go", "v"}) inner.graph.inputs.emplace_back().name = name;
  OnnxNode loop = node("Loop", {"m", "", "x"}, {"y"});
  loop.attributes["body"].graph = graph_of(std::move(inner));
  function.nodes = {loop};
  function.opsets[""] = 18;
  OnnxNode call = node("F", {"m", "x"}, {"y"});
  call.domain = "own";
  OnnxModel model = model_of({call}, {kX}, {"y"});
  model.graph.initializers = {{"m", Literal::scalar_integer(ElementType::kS64, 3)}};
  model.opsets["own"] = 1;
  model.functions[function_key("own", "F", "")] = function;
  EXPECT_NE(error_of(model).find("has no value"), std::string::npos) << error_of(model);
}

TEST(OnnxShapes, SizesThatDoNotFitAreErrors) {
  OnnxModel columns = model_of({node("Col2Im", {"x", "image", "block"}, {"y"})},
                               {value_info("x", ElementType::kF32, {1, 4, 4})}, {"y"});
  columns.graph.initializers = {{"image", Literal::from_i64s(std::array<int64_t, 2>{3, 3})},
                                {"block", Literal::from_i64s(std::array<int64_t, 2>{2, 2})}};
  EXPECT_EQ(error_of(columns), "");
  columns.graph.nodes[0].attributes["strides"].integers = {0, 0};
  EXPECT_NE(error_of(columns).find("is not positive"), std::string::npos) << error_of(columns);
  OnnxModel split = model_of({node("Split", {"x", "sizes"}, {"y", "z"})},
                             {value_info("x", ElementType::kF32, {4})}, {"y"});
  split.graph.initializers = {{"sizes", Literal::from_i64s(std::array<int64_t, 2>{1, 1})}};
  EXPECT_NE(error_of(split).find("its parts"), std::string::npos) << error_of(split);
}

TEST(OnnxReductions, MeansOfManyShortFloatsAreRight) {
  const OnnxModel model = model_of({node("GlobalAveragePool", {"x"}, {"y"})},
                                   {value_info("x", ElementType::kF16, {1, 1, 256, 256})}, {"y"});
  const Literal ones =
      Literal::scalar(ElementType::kF16, 1).splat_to(Shape(ElementType::kF16, {1, 1, 256, 256}));
  EXPECT_EQ(run(model, {ones}), "[[[[1]]]]");
}

TEST(OnnxReductions, LabelsWithoutAnArrowAreCountedAsTheyStand) {
  OnnxNode trace = node("Einsum", {"x"}, {"y"});
  trace.attributes["equation"].text = "ii";
  EXPECT_EQ(run(model_of({trace}, {kX}, {"y"}), {floats({2, 2}, {1, 2, 3, 4})}), "5");
}

// As ONNX Runtime's CPU provider has them.
TEST(OnnxReductions, NanIsGreaterThanAllNumbers) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Literal x = floats({2, 4}, {1, nan, 3, -nan, -0.0F, 0, -1, nan});
  const auto positions = [&](int64_t largest) {
    const OnnxNode top = with_integer(node("TopK", {"x", "k"}, {"v", "i"}), "largest", largest);
    OnnxModel model = model_of({top}, {value_info("x", ElementType::kF32, {2, 4})}, {"i"});
    model.graph.initializers = {{"k", Literal::from_i64s(std::array<int64_t, 1>{4})}};
    return run(model, {x});
  };
  EXPECT_EQ(positions(1), "[[1, 3, 2, 0], [3, 0, 1, 2]]");
  EXPECT_EQ(positions(0), "[[0, 2, 1, 3], [2, 0, 1, 3]]");
}

// Three places of six are cut: two at the begin, or one with SAME_UPPER.
TEST(OnnxShapes, AnOddNumberOfPlacesIsCutFromBothEnds) {
  const auto result = [](const char* automatic) {
    OnnxNode turned = node("ConvTranspose", {"x", "w"}, {"y"});
    turned.attributes["output_shape"].integers = {3};
    turned.attributes["auto_pad"].text = automatic;
    OnnxModel model = model_of({turned}, {value_info("x", ElementType::kF32, {1, 1, 4})}, {"y"});
    model.graph.initializers = {{"w", floats({1, 1, 3}, {1, 10, 100})}};
    return run(model, {floats({1, 1, 4}, {1, 2, 3, 4})});
  };
  EXPECT_EQ(result("NOTSET"), "[[[123, 234, 340]]]");
  EXPECT_EQ(result("SAME_LOWER"), "[[[123, 234, 340]]]");
  EXPECT_EQ(result("SAME_UPPER"), "[[[12, 123, 234]]]");
}

TEST(OnnxControl, LoopsWhoseValuesChangeTheirTypeAreUnrolled) {
  OnnxNode grow = with_integer(node("Concat", {"v", "x"}, {"w"}), "axis", 0);
  const OnnxModel model = loop_of({grow}, {"go", "w"}, {"y"});
  const auto imported = import_onnx(model);
  ASSERT_TRUE(imported) << imported.error().message();
  EXPECT_EQ(imported->module->entry()->result_types()[0].to_string(), "f32[8,2]");
  EXPECT_EQ(count_ops(*imported->module, OpCode::kWhile), 0U);
}

TEST(OnnxControl, ScansCollectInBothDirections) {
  OnnxModel inner = model_of({node("Add", {"s", "e"}, {"t"})}, {}, {"t", "t"});
  for (const char* name : {"s", "e"}) inner.graph.inputs.emplace_back().name = name;
  OnnxNode scan = with_integer(node("Scan", {"z", "x"}, {"last", "all"}), "num_scan_inputs", 1);
  scan.attributes["body"].graph = graph_of(std::move(inner));
  scan.attributes["scan_input_directions"].integers = {1};
  OnnxModel model = model_of({scan}, {kX}, {"all"});
  model.graph.initializers = {{"z", floats({2}, {0, 0})}};
  EXPECT_EQ(run(model, {floats({2, 2}, {1, 2, 3, 4})}), "[[3, 4], [4, 6]]");
}

TEST(OnnxQuantization, IntegersSaturate) {
  OnnxModel model = model_of({node("QuantizeLinear", {"x", "scale", "zero"}, {"q"}),
                              node("DequantizeLinear", {"q", "scale", "zero"}, {"y"})},
                             {kX}, {"y"});
  model.graph.initializers = {{"scale", floats({}, {0.5})},
                              {"zero", Literal::scalar_integer(ElementType::kU8, 128)}};
  EXPECT_EQ(run(model, {floats({2, 2}, {1.3F, -2, 1000, -1000})}), "[[1.5, -2], [63.5, -64]]");
}

// --- Of the domain com.microsoft

OnnxModel microsoft(OnnxNode op, std::vector<OnnxValueInfo> inputs, int64_t opset = 11) {
  op.domain = "com.microsoft";
  OnnxModel model = model_of({std::move(op)}, std::move(inputs), {"y"}, opset);
  model.opsets["com.microsoft"] = 1;
  return model;
}

TEST(OnnxMicrosoft, OpsOfLaterVersionsOfTheStandardAreThere) {
  // Gelu is of opset 20 in ai.onnx, LayerNormalization of 17.
  EXPECT_EQ(run(microsoft(node("Gelu", {"x"}, {"y"}), {kX}), {floats({2, 2}, {0, 10, -10, 20})}),
            "[[0, 10], [-0, 20]]");
  OnnxModel norm = microsoft(node("SkipLayerNormalization", {"x", "x", "gamma"}, {"y"}), {kX});
  norm.graph.initializers = {{"gamma", floats({2}, {1, 2})}};
  EXPECT_EQ(run(norm, {floats({2, 2}, {-1, 1, 3, 5})}), "[[-1, 2], [-1, 2]]");
}

TEST(OnnxMicrosoft, WeightsOfFourBitsBeginWithTheLowestBits) {
  OnnxNode product = node("MatMulNBits", {"x", "weights", "scales", "points"}, {"y"});
  for (const auto& [name, value] :
       {std::pair("N", 2), std::pair("K", 18), std::pair("bits", 4), std::pair("block_size", 16)}) {
    product.attributes[name].integer = value;
  }
  // Two blocks a row, of which the second has two numbers; those of the second row are all 9.
  Literal weights(Shape(ElementType::kU8, {2, 2, 8}));
  for (int64_t i = 0; i < 32; ++i) weights.set_integer(i, i < 16 ? 0x98 : 0x99);
  Literal points(Shape(ElementType::kU8, {2}));
  points.set_integer(0, 0x78);  // 8 for the first block of the first row, 7 for the second.
  points.set_integer(1, 0x98);
  OnnxModel model = microsoft(product, {value_info("x", ElementType::kF32, {1, 18})});
  model.graph.initializers = {
      {"weights", weights}, {"scales", floats({4}, {0.5, 10, 1, 100})}, {"points", points}};
  // 8 of (9 - 8) / 2, and (8 - 7) 10 + (9 - 7) 10; 16 of 9 - 8, and none of 9 - 9.
  EXPECT_EQ(run(model, {floats({1, 18}, std::vector<float>(18, 1))}), "[[34, 16]]");
  model.graph.nodes[0].attributes["bits"].integer = 5;
  EXPECT_NE(error_of(model).find("weights of 5 bits are not supported"), std::string::npos);
  model.graph.nodes[0].attributes["bits"].integer = 8;
  EXPECT_NE(error_of(model).find("32 bytes of weights for 2 x 18"), std::string::npos);
}

TEST(OnnxMicrosoft, MeansOfQuantizedNumbersAreRounded) {
  OnnxNode mean = node("QLinearReduceMean", {"x", "half", "one", "half", "one"}, {"y"});
  mean.attributes["axes"].integers = {-1};
  OnnxModel model =
      microsoft(with_integer(mean, "keepdims", 0), {value_info("x", ElementType::kU8, {2, 2})});
  model.graph.initializers = {{"half", floats({}, {0.5})},
                              {"one", Literal::scalar_integer(ElementType::kU8, 1)}};
  Literal x(Shape(ElementType::kU8, {2, 2}));
  for (const auto& [i, value] :
       {std::pair(0, 1), std::pair(1, 2), std::pair(2, 9), std::pair(3, 11)})
    x.set_integer(i, value);
  EXPECT_EQ(run(model, {x}), "[1, 10]");
  model.graph.initializers[0].second = floats({2}, {1, 2});
  EXPECT_NE(error_of(model).find("of a vector are not supported"), std::string::npos);
}

TEST(OnnxTrial, TellsWhichNodesCanBeImported) {
  OnnxTrial trial({{"", 18}});
  trial.add_value("x", Type::tensor(ElementType::kF32, {2, 6}));
  trial.add_value("sizes", Type::tensor(ElementType::kS64, {2}));
  ASSERT_TRUE(trial.add_constant("two", Literal::from_i64s(std::array<int64_t, 1>{2})).ok());
  ASSERT_TRUE(trial.add_node(node("Relu", {"x"}, {"y"})).ok());
  EXPECT_EQ(trial.type_of("y")->to_string(), "f32[2,6]");
  EXPECT_EQ(trial.type_of("z"), nullptr);
  // A shape that follows from sizes.
  ASSERT_TRUE(trial.add_node(node("Shape", {"y"}, {"shape"})).ok());
  ASSERT_TRUE(trial.add_node(node("Div", {"shape", "two"}, {"half"})).ok());
  ASSERT_TRUE(trial.add_node(node("Expand", {"two", "half"}, {"wide"})).ok());
  EXPECT_EQ(trial.type_of("wide")->to_string(), "s64[1,3]");
  // One that follows from an argument.
  Status failed = trial.add_node(node("Reshape", {"x", "sizes"}, {"r"}));
  EXPECT_EQ(failed.code(), ErrorCode::kUnimplemented);
  EXPECT_EQ(trial.wanted_input(), 1);
  EXPECT_EQ(trial.type_of("r"), nullptr);
  failed = trial.add_node(node("TreeEnsemble", {"x"}, {"r"}));
  EXPECT_EQ(failed.message(), "node 1, TreeEnsemble of opset 18: the op is not supported");
  EXPECT_EQ(trial.wanted_input(), -1);
  // Nodes behind those that failed.
  trial.add_value("r", Type::tensor(ElementType::kF32, {3, 4}));
  EXPECT_TRUE(trial.add_node(node("Neg", {"r"}, {"n"})).ok());
  EXPECT_EQ(trial.type_of("n")->to_string(), "f32[3,4]");
}

TEST(OnnxTable, HasOpsByVersion) {
  EXPECT_TRUE(has_onnx_op("", "Add", 13));
  EXPECT_FALSE(has_onnx_op("", "Add", 6));
  EXPECT_FALSE(has_onnx_op("com.microsoft", "Add", 13));
}

}  // namespace
}  // namespace tenon::hlo
