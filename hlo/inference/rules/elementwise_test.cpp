#include "hlo/inference/infer_test_util.h"

namespace tenon::hlo::testing {
namespace {

TEST(InferUnary, types_of_every_op) {
  for (const OpInfo& info : all_ops()) {
    if (info.infer != op_info(OpCode::kTanh).infer) continue;
    SCOPED_TRACE(info.name);
    const std::string_view element = (info.types & kTypesFloat) != 0 ? "f32"
                                     : (info.types & kTypesInt) != 0 ? "s32"
                                                                     : "c64";
    const Type operand = type_of(fmt::format("{}[2,?]", element));
    EXPECT_EQ(outcome({info.code, {operand}, {}, {}, {}, {}}), operand.to_string());
    const std::string label = info.dialect() == "stablehlo" ? "C1: " : "";
    EXPECT_EQ(outcome({info.code, {operand}, {}, {}, {operand.with_dims({3})}, {}}),
              fmt::format("{}: {}result type is {}[3], expected {}[2,?]", info.name, label, element,
                          element));
    EXPECT_EQ(outcome({info.code, {operand, operand}, {}, {}, {}, {}}),
              fmt::format("{}: has 2 operands, expected 1", info.name));
  }
}

TEST(InferUnary, result_accuracy) {
  const auto accuracy = [](double atol, int64_t ulps, ResultAccuracyMode mode) {
    return [=](Draft& d) {
      d.attributes[AttrKey::result_accuracy] = ResultAccuracy{atol, 0, ulps, mode};
    };
  };
  check_clauses({OpCode::kExponential, {"f32[2]"}, {}, {}, {}, {}}, "f32[2]",
                {{"tolerance", accuracy(1e-3, 2, ResultAccuracyMode::kTolerance), "f32[2]"},
                 {"negative", accuracy(-1, 0, ResultAccuracyMode::kTolerance),
                  "stablehlo.exponential: result_accuracy has a negative tolerance"},
                 {"not a number", accuracy(std::nan(""), 0, ResultAccuracyMode::kTolerance),
                  "stablehlo.exponential: result_accuracy has a negative tolerance"},
                 {"without the mode", accuracy(0, 2, ResultAccuracyMode::kHighest),
                  "stablehlo.exponential: result_accuracy has tolerances, expected none but with "
                  "mode TOLERANCE"}});
}

TEST(InferUnary, quantized) {
  check_clauses(
      {OpCode::kTanh, {quantized({2})}, {}, {}, {}, {}}, "q<s8:f32, 0.5>[2]",
      {{"per axis", [](Draft& d) { d.operands = {quantized_per_axis({2}, 0, {1, 2})}; },
        "stablehlo.tanh: operand 0 is q<s8:f32:0, {1.0, 2.0}>[2], expected one scale for the whole "
        "tensor"},
       {"another scale", [](Draft& d) { d.stated = {quantized({2}, 0.25)}; }, "q<s8:f32, 0.25>[2]"},
       {"C1 plain result", [](Draft& d) { d.stated = {"f32[2]"}; },
        "stablehlo.tanh: C1: result type is f32[2], expected q<s8:f32, 0.5>[2]"},
       {"C1 another shape", [](Draft& d) { d.stated = {quantized({3})}; },
        "stablehlo.tanh: C1: result type is q<s8:f32, 0.5>[3], expected q<s8:f32, 0.5>[2]"}});
}

TEST(InferSign, clauses) {
  check_clauses(
      {OpCode::kSign, {"s32[2]"}, {}, {}, {}, {}}, "s32[2]",
      {{"I1", [](Draft& d) { d.operands = {"u32[2]"}; },
        "stablehlo.sign: I1: operand is u32[2], expected signed integers, floats or complex "
        "numbers"},
       {"pred", [](Draft& d) { d.operands = {"pred[2]"}; },
        "stablehlo.sign: operand 0 is pred[2], expected integers, floats, complex, quantized"}});
}

TEST(InferAbs, clauses) {
  check_clauses(
      {OpCode::kAbs, {"c64[2]"}, {}, {}, {}, {}}, "f32[2]",
      {{"integers", [](Draft& d) { d.operands = {"s8[?<=4]"}; }, "s8[?<=4]"},
       {"I1", [](Draft& d) { d.operands = {"u8[2]"}; },
        "stablehlo.abs: I1: operand is u8[2], expected signed integers, floats or complex numbers"},
       {"C1", [](Draft& d) { d.stated = {"f32[3]"}; },
        "stablehlo.abs: C1: result type is f32[3], expected f32[2]"},
       {"C2", [](Draft& d) { d.stated = {"c64[2]"}; },
        "stablehlo.abs: C2: result type is c64[2], expected f32[2]"}});
}

TEST(InferBinary, types_of_every_op) {
  for (const OpInfo& info : all_ops()) {
    if (info.infer != op_info(OpCode::kAdd).infer) continue;
    SCOPED_TRACE(info.name);
    const bool is_float = (info.types & kTypesFloat) != 0;
    const TypeArg known = is_float ? "f32[2,3]" : "s32[2,3]";
    const TypeArg unknown = is_float ? "f32[?,3]" : "s32[?,3]";
    const TypeArg other = is_float ? "f32[3,3]" : "s32[3,3]";
    EXPECT_EQ(outcome({info.code, {unknown, known}, {}, {}, {}, {}}), known.type.to_string());
    const std::string label = info.dialect() == "stablehlo" ? "C1: " : "";
    EXPECT_EQ(outcome({info.code, {known, other}, {}, {}, {}, {}}),
              fmt::format("{}: {}operand types differ: {} and {}", info.name, label,
                          known.type.to_string(), other.type.to_string()));
    EXPECT_EQ(outcome({info.code, {known, known}, {}, {}, {other}, {}}),
              fmt::format("{}: {}result type is {}, expected {}", info.name, label,
                          other.type.to_string(), known.type.to_string()));
  }
}

TEST(InferBinary, element_types) {
  check_clauses(
      {OpCode::kMultiply, {"f32[2]", "f32[2]"}, {}, {}, {}, {}}, "f32[2]",
      {{"C1", [](Draft& d) { d.operands[1] = "s32[2]"; },
        "stablehlo.multiply: C1: operand types differ: f32[2] and s32[2]"},
       {"one quantized", [](Draft& d) { d.operands[1] = quantized({2}); },
        "stablehlo.multiply: C1: operand types differ: f32[2] and q<s8:f32, 0.5>[2]"},
       {"two scales",
        [](Draft& d) {
          d.operands = {quantized({2}, 0.5), quantized({2}, 0.25)};
          d.stated = {quantized({2}, 2.0)};
        },
        "q<s8:f32, 2.0>[2]"},
       {"bounds", [](Draft& d) { d.operands = {"f32[?<=8]", "f32[?<=4]"}; }, "f32[?<=4]"}});
  check_clauses({OpCode::kAnd, {"pred[2]", "pred[2]"}, {}, {}, {}, {}}, "pred[2]",
                {{"floats", [](Draft& d) { d.operands = {"f32[2]", "f32[2]"}; },
                  "stablehlo.and: operand 0 is f32[2], expected pred, integers"},
                 {"token", [](Draft& d) { d.operands[0] = "token"; },
                  "stablehlo.and: operand 0 is token, expected pred, integers"}});
}

TEST(InferAdd, quantized) {
  const Type per_axis = quantized_per_axis({2, 3}, 1, {1, 2, 4});
  check_clauses(
      {OpCode::kAdd, {per_axis, quantized({2, 3})}, {}, {}, {per_axis}, {}},
      "q<s8:f32:1, {1.0, 2.0, 4.0}>[2,3]",
      {{"C1", [](Draft& d) { d.stated = {quantized_per_axis({3, 3}, 1, {1, 2, 4})}; },
        "stablehlo.add: C1: result is q<s8:f32:1, {1.0, 2.0, 4.0}>[3,3], expected the shape of "
        "q<s8:f32:1, {1.0, 2.0, 4.0}>[2,3]"},
       {"no result stated", [](Draft& d) { d.stated = {}; }, "q<s8:f32:1, {1.0, 2.0, 4.0}>[2,3]"},
       {"C2", [](Draft& d) { d.operands[1] = "s8[2,3]"; },
        "stablehlo.add: C2: q<s8:f32:1, {1.0, 2.0, 4.0}>[2,3], s8[2,3] and result q<s8:f32:1, "
        "{1.0, 2.0, 4.0}>[2,3] are not all quantized"},
       {"C2 result", [](Draft& d) { d.stated = {"f32[2,3]"}; },
        "stablehlo.add: C2: q<s8:f32:1, {1.0, 2.0, 4.0}>[2,3], q<s8:f32, 0.5>[2,3] and result "
        "f32[2,3] are not all quantized"},
       {"C3",
        [](Draft& d) {
          QuantizedType q;
          q.storage = ElementType::kU8;
          q.storage_min = 0;
          q.storage_max = 255;
          d.operands[1] = Type::quantized_tensor({2, 3}, q);
        },
        "stablehlo.add: C3: storage types differ: s8, u8 and s8"},
       {"C4",
        [](Draft& d) {
          QuantizedType q;
          q.expressed = ElementType::kF64;
          d.operands[1] = Type::quantized_tensor({2, 3}, q);
        },
        "stablehlo.add: C4: expressed types differ: f32, f64 and f32"},
       {"C5", [](Draft& d) { d.stated = {quantized({2, 3})}; },
        "stablehlo.add: C5: result q<s8:f32, 0.5>[2,3] is not quantized per axis, but an operand "
        "is"},
       {"C6", [](Draft& d) { d.stated = {quantized_per_axis({2, 3}, 0, {1, 2})}; },
        "stablehlo.add: C6: lhs is quantized along dimension 1, the result along 0"},
       {"C7",
        [](Draft& d) {
          std::swap(d.operands[0], d.operands[1]);
          d.stated = {quantized_per_axis({2, 3}, 0, {1, 2})};
        },
        "stablehlo.add: C7: rhs is quantized along dimension 1, the result along 0"}});
}

TEST(InferClamp, clauses) {
  check_clauses({OpCode::kClamp, {"f32[]", "f32[2]", "f32[2]"}, {}, {}, {}, {}}, "f32[2]",
                {{"C1", [](Draft& d) { d.operands[0] = "f32[3]"; },
                  "stablehlo.clamp: C1: min is f32[3], expected rank 0 or the shape of f32[2]"},
                 {"C2", [](Draft& d) { d.operands[2] = "f32[1,2]"; },
                  "stablehlo.clamp: C2: max is f32[1,2], expected rank 0 or the shape of f32[2]"},
                 {"C3", [](Draft& d) { d.operands[2] = "f64[]"; },
                  "stablehlo.clamp: C3: element types differ: f32, f32 and f64"},
                 {"C4", [](Draft& d) { d.stated = {"f32[]"}; },
                  "stablehlo.clamp: C4: result type is f32[], expected f32[2]"}});
}

TEST(InferSelect, clauses) {
  check_clauses(
      {OpCode::kSelect, {"pred[]", "f32[2,?]", "f32[?,3]"}, {}, {}, {}, {}}, "f32[2,3]",
      {{"I1", [](Draft& d) { d.operands[0] = "s32[]"; },
        "stablehlo.select: I1: pred is s32[], expected a tensor of pred"},
       {"C1", [](Draft& d) { d.operands[0] = "pred[3,3]"; },
        "stablehlo.select: C1: pred is pred[3,3], expected rank 0 or the shape of f32[2,?]"},
       {"C2", [](Draft& d) { d.operands[2] = "f64[2,3]"; },
        "stablehlo.select: C2: on_true is f32[2,?], on_false is f64[2,3], expected the same type"},
       {"C2 shapes", [](Draft& d) { d.operands[2] = "f32[4,3]"; },
        "stablehlo.select: C2: on_true is f32[2,?], on_false is f32[4,3], expected the same type"},
       {"C2 result", [](Draft& d) { d.stated = {"f32[2,4]"}; },
        "stablehlo.select: C2: result type is f32[2,4], expected f32[2,3]"}});
}

TEST(InferCompare, clauses) {
  const auto type = [](ComparisonType value) {
    return [value](Draft& d) {
      d.attributes[AttrKey::compare_type] = word(EnumKind::kComparisonType, value);
    };
  };
  check_clauses({OpCode::kCompare,
                 {"f32[2]", "f32[2]"},
                 {{AttrKey::comparison_direction,
                   word(EnumKind::kComparisonDirection, ComparisonDirection::kLt)}},
                 {},
                 {},
                 {}},
                "pred[2]",
                {{"total order", type(ComparisonType::kTotalOrder), "pred[2]"},
                 {"unsigned order of s32",
                  [&](Draft& d) {
                    d.operands = {"s32[2]", "s32[2]"};
                    type(ComparisonType::kUnsigned)(d);
                  },
                  "pred[2]"},
                 {"C1", [](Draft& d) { d.operands[1] = "f64[2]"; },
                  "stablehlo.compare: C1: element types differ: f32 and f64"},
                 {"C2", [](Draft& d) { d.operands[1] = "f32[3]"; },
                  "stablehlo.compare: C2: operand shapes differ: f32[2] and f32[3]"},
                 {"C2 result", [](Draft& d) { d.stated = {"pred[3]"}; },
                  "stablehlo.compare: C2: result type is pred[3], expected pred[2]"},
                 {"result element", [](Draft& d) { d.stated = {"f32[2]"}; },
                  "stablehlo.compare: result type is f32[2], expected pred[2]"},
                 {"C3 total order of complex",
                  [&](Draft& d) {
                    d.operands = {"c64[2]", "c64[2]"};
                    type(ComparisonType::kTotalOrder)(d);
                  },
                  "stablehlo.compare: C3: compare_type is TOTALORDER, which does not compare c64"},
                 {"direction", [](Draft& d) { d.attributes.clear(); },
                  "stablehlo.compare: attribute comparison_direction is missing"}});
}

TEST(InferComplex, clauses) {
  check_clauses({OpCode::kComplex, {"f32[2]", "f32[?]"}, {}, {}, {}, {}}, "c64[2]",
                {{"f64", [](Draft& d) { d.operands = {"f64[]", "f64[]"}; }, "c128[]"},
                 {"I1", [](Draft& d) { d.operands = {"bf16[2]", "bf16[2]"}; },
                  "stablehlo.complex: I1: lhs is bf16[2], expected f32 or f64"},
                 {"C1", [](Draft& d) { d.operands[1] = "f32[3]"; },
                  "stablehlo.complex: C1: operand types differ: f32[2] and f32[3]"},
                 {"C2", [](Draft& d) { d.stated = {"c64[3]"}; },
                  "stablehlo.complex: C2: result type is c64[3], expected c64[2]"},
                 {"C3", [](Draft& d) { d.stated = {"c128[2]"}; },
                  "stablehlo.complex: C3: result type is c128[2], expected c64[2]"}});
}

TEST(InferRealImag, clauses) {
  for (const OpCode code : {OpCode::kReal, OpCode::kImag}) {
    EXPECT_EQ(outcome({code, {"c128[2]"}, {}, {}, {}, {}}), "f64[2]");
    EXPECT_EQ(outcome({code, {"f16[2]"}, {}, {}, {}, {}}), "f16[2]");
    EXPECT_EQ(outcome({code, {"c64[2]"}, {}, {}, {"f32[3]"}, {}}),
              fmt::format("{}: C1: result type is f32[3], expected f32[2]", op_name(code)));
    EXPECT_EQ(outcome({code, {"c64[2]"}, {}, {}, {"c64[2]"}, {}}),
              fmt::format("{}: C2: result type is c64[2], expected f32[2]", op_name(code)));
  }
}

TEST(InferIsFinite, clauses) {
  check_clauses({OpCode::kIsFinite, {"f32[2]"}, {}, {}, {}, {}}, "pred[2]",
                {{"quantized", [](Draft& d) { d.operands = {quantized({2})}; }, "pred[2]"},
                 {"I1", [](Draft& d) { d.operands = {"pred[2]"}; },
                  "stablehlo.is_finite: I1: operand is pred[2], expected floats"},
                 {"C1", [](Draft& d) { d.stated = {"pred[3]"}; },
                  "stablehlo.is_finite: C1: result type is pred[3], expected pred[2]"},
                 {"CHLO",
                  [](Draft& d) {
                    d.code = OpCode::kChloIsInf;
                    d.operands = {"pred[2]"};
                  },
                  "chlo.is_inf: operand is pred[2], expected floats"}});
}

TEST(InferConvert, clauses) {
  check_clauses(
      {OpCode::kConvert, {"f32[2]"}, {}, {}, {"s8[2]"}, {}}, "s8[2]",
      {{"dynamic result", [](Draft& d) { d.stated = {"s8[?]"}; }, "s8[2]"},
       {"nothing stated", [](Draft& d) { d.stated = {}; },
        "stablehlo.convert: the result type follows from nothing else and must be stated"},
       {"quantized", [](Draft& d) { d.stated = {quantized({2})}; },
        "stablehlo.convert: result 0 is q<s8:f32, 0.5>[2], expected pred, integers, floats, "
        "complex"},
       {"C1", [](Draft& d) { d.stated = {"s8[3]"}; },
        "stablehlo.convert: C1: result is s8[3], expected the shape of f32[2]"}});
}

TEST(InferReducePrecision, clauses) {
  check_clauses({OpCode::kReducePrecision,
                 {"f32[2]"},
                 {{AttrKey::exponent_bits, int64_t{5}}, {AttrKey::mantissa_bits, int64_t{0}}},
                 {},
                 {},
                 {}},
                "f32[2]",
                {{"C1", [](Draft& d) { d.stated = {"f16[2]"}; },
                  "stablehlo.reduce_precision: C1: result type is f16[2], expected f32[2]"},
                 {"C2", [](Draft& d) { d.attributes[AttrKey::exponent_bits] = int64_t{0}; },
                  "stablehlo.reduce_precision: C2: exponent_bits is 0, expected at least 1"},
                 {"C3", [](Draft& d) { d.attributes[AttrKey::mantissa_bits] = int64_t{-1}; },
                  "stablehlo.reduce_precision: C3: mantissa_bits is -1, expected at least 0"},
                 {"form", [](Draft& d) { d.attributes[AttrKey::mantissa_bits] = int64_t{1} << 40; },
                  "stablehlo.reduce_precision: attribute mantissa_bits has the wrong form"}});
}

TEST(InferUniformQuantize, clauses) {
  check_clauses(
      {OpCode::kUniformQuantize, {"f32[2]"}, {}, {}, {quantized({2})}, {}}, "q<s8:f32, 0.5>[2]",
      {{"requantize", [](Draft& d) { d.operands = {quantized({2}, 0.1)}; }, "q<s8:f32, 0.5>[2]"},
       {"plain result", [](Draft& d) { d.stated = {"f32[2]"}; },
        "stablehlo.uniform_quantize: result is f32[2], expected a quantized tensor"},
       {"C1", [](Draft& d) { d.stated = {quantized({3})}; },
        "stablehlo.uniform_quantize: C1: result is q<s8:f32, 0.5>[3], expected the shape of "
        "f32[2]"},
       {"C2", [](Draft& d) { d.operands = {"f16[2]"}; },
        "stablehlo.uniform_quantize: C2: expressed type of the result is f32, expected f16"}});
}

TEST(InferUniformDequantize, clauses) {
  check_clauses(
      {OpCode::kUniformDequantize, {quantized({2})}, {}, {}, {}, {}}, "f32[2]",
      {{"I1", [](Draft& d) { d.operands = {"f32[2]"}; },
        "stablehlo.uniform_dequantize: I1: operand is f32[2], expected a quantized tensor"},
       {"C1", [](Draft& d) { d.stated = {"f32[3]"}; },
        "stablehlo.uniform_dequantize: C1: result type is f32[3], expected f32[2]"},
       {"C2", [](Draft& d) { d.stated = {"f64[2]"}; },
        "stablehlo.uniform_dequantize: C2: result type is f64[2], expected f32[2]"}});
}

TEST(InferMap, clauses) {
  check_clauses(
      {OpCode::kMap,
       {"f32[2,3]", "s32[2,?]"},
       {{AttrKey::dimensions, I64s{0, 1}}},
       {{{"f32[]", "s32[]"}, {"f64[]"}}},
       {},
       {}},
      "f64[2,3]",
      {{"C1", [](Draft& d) { d.operands[1] = "s32[2,4]"; },
        "stablehlo.map: C1: input shapes differ: f32[2,3] and s32[2,4]"},
       {"C1 result", [](Draft& d) { d.stated = {"f64[2,4]"}; },
        "stablehlo.map: C1: result type is f64[2,4], expected f64[2,3]"},
       {"C2", [](Draft& d) { d.operands = {}; }, "stablehlo.map: C2: there are no inputs"},
       {"C3", [](Draft& d) { d.attributes[AttrKey::dimensions] = I64s{1, 0}; },
        "stablehlo.map: C3: dimensions is [1, 0], expected 0 to 1 in order"},
       {"C3 length", [](Draft& d) { d.attributes[AttrKey::dimensions] = I64s{0}; },
        "stablehlo.map: C3: dimensions is [0], expected 0 to 1 in order"},
       {"C4", [](Draft& d) { d.regions[0].parameters[1] = "f32[]"; },
        "stablehlo.map: C4: region 0 takes (f32[], f32[]), expected (f32[], s32[])"},
       {"C4 results", [](Draft& d) { d.regions[0].results = {}; },
        "stablehlo.map: C4: computation returns (), expected one 0-dimensional tensor"},
       {"C4 no return", [](Draft& d) { d.regions[0].ends_in_return = false; },
        "stablehlo.map: C4: region 0 does not end in a return"},
       {"C4 element", [](Draft& d) { d.stated = {"f32[2,3]"}; },
        "stablehlo.map: C4: result type is f32[2,3], expected f64[2,3]"}});
}

}  // namespace
}  // namespace tenon::hlo::testing
