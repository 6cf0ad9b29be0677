#include "hlo/inference/infer_test_util.h"

namespace tenon::hlo::testing {
namespace {

TEST(InferConstant, clauses) {
  const auto value = DenseAttr::of(Literal::from_i64s(I64s{1, 2}));
  for (const OpCode code : {OpCode::kConstant, OpCode::kChloConstant}) {
    EXPECT_EQ(outcome({code, {}, {{AttrKey::value, value}}, {}, {}, {}}), "s64[2]");
  }
  check_clauses({OpCode::kConstant, {}, {{AttrKey::value, value}}, {}, {"s64[2]"}, {}}, "s64[2]",
                {{"C1", [](Draft& d) { d.stated = {"s64[3]"}; },
                  "stablehlo.constant: C1: result type is s64[3], expected s64[2]"},
                 {"C1 element", [](Draft& d) { d.stated = {"s32[2]"}; },
                  "stablehlo.constant: C1: result type is s32[2], expected s64[2]"},
                 {"quantized",
                  [](Draft& d) {
                    d.attributes[AttrKey::value] =
                        DenseAttr::of(Literal(Shape(ElementType::kS8, {2})));
                    d.stated = {quantized({2})};
                  },
                  "q<s8:f32, 0.5>[2]"},
                 {"unknown size",
                  [](Draft& d) {
                    DenseAttr bad;
                    bad.shape = Shape(ElementType::kS8, {kDynamic});
                    bad.values = Literal(Shape(ElementType::kS8, {}));
                    d.attributes[AttrKey::value] = bad;
                  },
                  "stablehlo.constant: attribute value has the wrong form"}});
}

TEST(InferIota, clauses) {
  check_clauses(
      {OpCode::kIota, {}, {{AttrKey::iota_dimension, int64_t{1}}}, {}, {"f32[2,3]"}, {}},
      "f32[2,3]",
      {{"C1", set(AttrKey::iota_dimension, int64_t{2}),
        "stablehlo.iota: C1: iota_dimension is 2, expected a value in [0, 2)"},
       {"C1 negative", set(AttrKey::iota_dimension, int64_t{-1}),
        "stablehlo.iota: C1: iota_dimension is -1, expected a value in [0, 2)"},
       {"pred", [](Draft& d) { d.stated = {"pred[2,3]"}; },
        "stablehlo.iota: result 0 is pred[2,3], expected integers, floats, complex, quantized"},
       {"negative size", [](Draft& d) { d.stated = {Type::tensor(ElementType::kF32, {2, -3})}; },
        "stablehlo.iota: type of result 0 is malformed: the size -3 is negative"},
       {"nothing stated", [](Draft& d) { d.stated = {}; },
        "stablehlo.iota: the result type follows from nothing else and must be stated"}});
}

TEST(InferBitcastConvert, clauses) {
  check_clauses(
      {OpCode::kBitcastConvert, {"f32[2,3]"}, {}, {}, {"s32[2,3]"}, {}}, "s32[2,3]",
      {{"narrower", [](Draft& d) { d.stated = {"u8[2,3,4]"}; }, "u8[2,3,4]"},
       {"to bits", [](Draft& d) { d.stated = {"pred[2,3,32]"}; }, "pred[2,3,32]"},
       {"wider",
        [](Draft& d) {
          d.operands = {"f32[3,2]"};
          d.stated = {"f64[3]"};
        },
        "f64[3]"},
       {"C1 shape", [](Draft& d) { d.stated = {"s32[3,2]"}; },
        "stablehlo.bitcast_convert: C1: result is s32[3,2], expected s32[2,3] from f32[2,3]"},
       {"C1 ratio", [](Draft& d) { d.stated = {"u8[2,3,5]"}; },
        "stablehlo.bitcast_convert: C1: result is u8[2,3,5], expected u8[2,3,4] from f32[2,3]"},
       {"C1 narrow rank", [](Draft& d) { d.stated = {"u8[2,3]"}; },
        "stablehlo.bitcast_convert: C1: result is u8[2,3], expected u8[2,3,4] from f32[2,3]"},
       {"C1 wide", [](Draft& d) { d.stated = {"f64[2]"}; },
        "stablehlo.bitcast_convert: C1: operand is f32[2,3], expected a last dimension of 2 to "
        "fill f64"},
       {"C1 no multiple",
        [](Draft& d) {
          d.operands = {"f6e2m3fn[2]"};
          d.stated = {"u4[2,1]"};
        },
        "stablehlo.bitcast_convert: C1: f6e2m3fn and u4 differ in width by no whole number"},
       {"C2", [](Draft& d) { d.stated = {"c64[2,3]"}; },
        "stablehlo.bitcast_convert: C2: cannot convert between f32[2,3] and c64[2,3]: only one is "
        "complex"}});
}

TEST(InferBroadcast, clauses) {
  check_clauses(
      {OpCode::kBroadcast, {"f32[3]"}, {{AttrKey::broadcast_sizes, I64s{2, 1}}}, {}, {}, {}},
      "f32[2,1,3]",
      {{"negative", set(AttrKey::broadcast_sizes, I64s{-2}),
        "stablehlo.broadcast: broadcast_sizes contains -2, a negative size"},
       {"too large", set(AttrKey::broadcast_sizes, I64s{kHuge, 2}),
        "stablehlo.broadcast: type of result 0 is malformed: a shape of dimensions "
        "[9223372036854775807,2,3] has more elements "
        "than can be counted"},
       {"result", [](Draft& d) { d.stated = {"f32[3]"}; },
        "stablehlo.broadcast: result type is f32[3], expected f32[2,1,3]"}});
}

TEST(InferBroadcastInDim, clauses) {
  check_clauses(
      {OpCode::kBroadcastInDim,
       {"f32[1,3]"},
       {{AttrKey::broadcast_dimensions, I64s{2, 1}}},
       {},
       {"f32[4,3,2]"},
       {}},
      "f32[4,3,2]",
      {{"unknown operand size", [](Draft& d) { d.operands = {"f32[?,3]"}; }, "f32[4,3,2]"},
       {"C1", [](Draft& d) { d.stated = {"f64[4,3,2]"}; },
        "stablehlo.broadcast_in_dim: C1: result is f64[4,3,2], expected elements f32"},
       {"C2", set(AttrKey::broadcast_dimensions, I64s{2}),
        "stablehlo.broadcast_in_dim: C2: broadcast_dimensions has length 1, expected 2"},
       {"C3", set(AttrKey::broadcast_dimensions, I64s{3, 1}),
        "stablehlo.broadcast_in_dim: C3: broadcast_dimensions contains 3, expected values in [0, "
        "3)"},
       {"C4", set(AttrKey::broadcast_dimensions, I64s{1, 1}),
        "stablehlo.broadcast_in_dim: C4: broadcast_dimensions is [1, 1], expected no value twice"},
       {"C5", [](Draft& d) { d.operands = {"f32[1,2]"}; },
        "stablehlo.broadcast_in_dim: C5: operand dimension 1 is 2, expected 1 or 3, the size of "
        "result dimension 1"},
       {"nothing stated", [](Draft& d) { d.stated = {}; },
        "stablehlo.broadcast_in_dim: the result type follows from nothing else and must be stated"},
       {"a token stated", [](Draft& d) { d.stated = {"token"}; },
        "stablehlo.broadcast_in_dim: result 0 is token, expected pred, integers, floats, complex, "
        "quantized"}});
}

TEST(InferBroadcastInDim, quantized) {
  check_clauses(
      {OpCode::kBroadcastInDim,
       {quantized_per_axis({1, 3}, 0, {0.5})},
       {{AttrKey::broadcast_dimensions, I64s{2, 1}}},
       {},
       {quantized_per_axis({4, 3, 2}, 2, {0.5, 0.5})},
       {}},
      "q<s8:f32:2, {0.5, 0.5}>[4,3,2]",
      {{"C1", [](Draft& d) { d.operands = {quantized({1, 3})}; },
        "stablehlo.broadcast_in_dim: C1: result is q<s8:f32:2, {0.5, 0.5}>[4,3,2], expected "
        "elements q<s8:f32, 0.5>"},
       {"C6 axis", [](Draft& d) { d.stated = {quantized_per_axis({4, 3, 2}, 1, {0.5, 0.5, 0.5})}; },
        "stablehlo.broadcast_in_dim: C6: result is quantized along dimension 1, expected 2"},
       {"C6 scales", [](Draft& d) { d.stated = {quantized_per_axis({4, 3, 2}, 2, {0.5, 2})}; },
        "stablehlo.broadcast_in_dim: C6: scale 1 of the result is 2:0, expected 0.5:0 as in the "
        "operand"}});
}

TEST(InferConcatenate, clauses) {
  check_clauses(
      {OpCode::kConcatenate,
       {"f32[2,?]", "f32[3,4]", "f32[0,?]"},
       {{AttrKey::dimension, int64_t{0}}},
       {},
       {},
       {}},
      "f32[5,4]",
      {{"unknown", [](Draft& d) { d.operands[1] = "f32[?,4]"; }, "f32[?,4]"},
       {"bounded", [](Draft& d) { d.operands[1] = "f32[?<=5,4]"; }, "f32[?<=7,4]"},
       {"C1", [](Draft& d) { d.operands[1] = "f64[3,4]"; },
        "stablehlo.concatenate: C1: element types differ: f32 and f64"},
       {"C2", [](Draft& d) { d.operands[2] = "f32[0,5]"; },
        "stablehlo.concatenate: C2: inputs f32[2,?] and f32[0,5] differ in more than dimension 0"},
       {"C2 rank", [](Draft& d) { d.operands[2] = "f32[0]"; },
        "stablehlo.concatenate: C2: inputs f32[2,?] and f32[0] differ in more than dimension 0"},
       {"C3", [](Draft& d) { d.operands = {}; }, "stablehlo.concatenate: C3: there are no inputs"},
       {"C4", set(AttrKey::dimension, int64_t{2}),
        "stablehlo.concatenate: C4: dimension is 2, expected a value in [0, 2)"},
       {"C5", [](Draft& d) { d.stated = {"s32[5,4]"}; },
        "stablehlo.concatenate: C5: result type is s32[5,4], expected f32[5,4]"},
       {"C6", [](Draft& d) { d.stated = {"f32[6,4]"}; },
        "stablehlo.concatenate: C6: result type is f32[6,4], expected f32[5,4]"},
       {"C6 overflow",
        [](Draft& d) {
          d.operands = {Type::tensor(ElementType::kS8, {kHuge}),
                        Type::tensor(ElementType::kS8, {2})};
        },
        "stablehlo.concatenate: C6: the size of dimension 0 overflows"}});
}

TEST(InferPad, clauses) {
  check_clauses({OpCode::kPad,
                 {"f32[2,3]", "f32[]"},
                 {{AttrKey::edge_padding_low, I64s{1, -1}},
                  {AttrKey::edge_padding_high, I64s{0, 2}},
                  {AttrKey::interior_padding, I64s{2, 0}}},
                 {},
                 {},
                 {}},
                "f32[5,4]",
                {{"empty", [](Draft& d) { d.operands[0] = "f32[0,3]"; }, "f32[1,4]"},
                 {"bounded", [](Draft& d) { d.operands[0] = "f32[?<=2,?]"; }, "f32[?<=5,?]"},
                 {"I2", [](Draft& d) { d.operands[1] = "f32[1]"; },
                  "stablehlo.pad: I2: operand 1 is f32[1], expected a 0-dimensional tensor"},
                 {"C1", [](Draft& d) { d.operands[1] = "f64[]"; },
                  "stablehlo.pad: C1: element types differ: f32 and f64"},
                 {"C2 low", set(AttrKey::edge_padding_low, I64s{1}),
                  "stablehlo.pad: C2: edge_padding_low has length 1, expected 2"},
                 {"C2 high", set(AttrKey::edge_padding_high, I64s{1, 1, 1}),
                  "stablehlo.pad: C2: edge_padding_high has length 3, expected 2"},
                 {"C2 interior", set(AttrKey::interior_padding, I64s{}),
                  "stablehlo.pad: C2: interior_padding has length 0, expected 2"},
                 {"C3", set(AttrKey::interior_padding, I64s{0, -1}),
                  "stablehlo.pad: C3: interior_padding contains -1, expected values from 0 on"},
                 {"C4 negative", set(AttrKey::edge_padding_low, I64s{-6, 0}),
                  "stablehlo.pad: C4: padding dimension 0 of f32[2,3] by -6, 0 and 2 between gives "
                  "no valid size"},
                 {"C4 overflow", set(AttrKey::interior_padding, I64s{kHuge, 0}),
                  "stablehlo.pad: C4: padding dimension 0 of f32[2,3] by 1, 0 and "
                  "9223372036854775807 between gives no valid size"},
                 {"C4 overflow of the size between",
                  [](Draft& d) {
                    d.operands[0] = "f32[4,3]";
                    d.attributes[AttrKey::interior_padding] = I64s{kHuge / 2, 0};
                    d.attributes[AttrKey::edge_padding_high] = I64s{-kHuge, 0};
                  },
                  "stablehlo.pad: C4: padding dimension 0 of f32[4,3] by 1, -9223372036854775807 "
                  "and 4611686018427387903 between gives no valid size"},
                 {"C4 result", [](Draft& d) { d.stated = {"f32[5,5]"}; },
                  "stablehlo.pad: C4: result type is f32[5,5], expected f32[5,4]"}});
}

TEST(InferSlice, clauses) {
  check_clauses({OpCode::kSlice,
                 {"f32[4,?]"},
                 {{AttrKey::start_indices, I64s{1, 0}},
                  {AttrKey::limit_indices, I64s{4, 5}},
                  {AttrKey::strides, I64s{2, 1}}},
                 {},
                 {},
                 {}},
                "f32[2,5]",
                {{"nothing", set(AttrKey::start_indices, I64s{4, 5}), "f32[0,0]"},
                 {"huge stride", set(AttrKey::strides, I64s{kHuge, kHuge}), "f32[1,1]"},
                 {"C1", [](Draft& d) { d.stated = {"f64[2,5]"}; },
                  "stablehlo.slice: C1: result type is f64[2,5], expected f32[2,5]"},
                 {"C2 start", set(AttrKey::start_indices, I64s{1}),
                  "stablehlo.slice: C2: start_indices has length 1, expected 2"},
                 {"C2 limit", set(AttrKey::limit_indices, I64s{4, 5, 6}),
                  "stablehlo.slice: C2: limit_indices has length 3, expected 2"},
                 {"C2 strides", set(AttrKey::strides, I64s{1}),
                  "stablehlo.slice: C2: strides has length 1, expected 2"},
                 {"C3 start", set(AttrKey::start_indices, I64s{-1, 0}),
                  "stablehlo.slice: C3: dimension 0 is sliced from -1 to 4, expected bounds in "
                  "order within f32[4,?]"},
                 {"C3 order", set(AttrKey::start_indices, I64s{1, 6}),
                  "stablehlo.slice: C3: dimension 1 is sliced from 6 to 5, expected bounds in "
                  "order within f32[4,?]"},
                 {"C3 limit", set(AttrKey::limit_indices, I64s{5, 5}),
                  "stablehlo.slice: C3: dimension 0 is sliced from 1 to 5, expected bounds in "
                  "order within f32[4,?]"},
                 {"C3 bound", [](Draft& d) { d.operands = {"f32[4,?<=4]"}; },
                  "stablehlo.slice: C3: dimension 1 is sliced from 0 to 5, expected bounds in "
                  "order within f32[4,?<=4]"},
                 {"C4", set(AttrKey::strides, I64s{0, 1}),
                  "stablehlo.slice: C4: strides contains 0, expected positive values"},
                 {"C5", [](Draft& d) { d.stated = {"f32[3,5]"}; },
                  "stablehlo.slice: C5: result type is f32[3,5], expected f32[2,5]"}});
}

TEST(InferDynamicSlice, clauses) {
  check_clauses(
      {OpCode::kDynamicSlice,
       {"f32[4,?]", "s32[]", "s32[]"},
       {{AttrKey::slice_sizes, I64s{2, 3}}},
       {},
       {},
       {}},
      "f32[2,3]",
      {{"C1", [](Draft& d) { d.stated = {"f64[2,3]"}; },
        "stablehlo.dynamic_slice: C1: result type is f64[2,3], expected f32[2,3]"},
       {"C2 sizes", set(AttrKey::slice_sizes, I64s{2}),
        "stablehlo.dynamic_slice: C2: slice_sizes has length 1, expected 2"},
       {"C2 indices", [](Draft& d) { d.operands.pop_back(); },
        "stablehlo.dynamic_slice: C2: start_indices has length 1, expected 2"},
       {"C3", [](Draft& d) { d.operands[2] = "s64[]"; },
        "stablehlo.dynamic_slice: C3: start indices differ in type: s32[] and s64[]"},
       {"C3 rank", [](Draft& d) { d.operands[2] = "s32[1]"; },
        "stablehlo.dynamic_slice: C3: operand 2 is s32[1], expected a 0-dimensional tensor"},
       {"C3 floats", [](Draft& d) { d.operands[2] = "f32[]"; },
        "stablehlo.dynamic_slice: C3: operand 2 is f32[], expected a tensor of integers"},
       {"C4", set(AttrKey::slice_sizes, I64s{5, 3}),
        "stablehlo.dynamic_slice: C4: slice size of dimension 0 is 5, expected 0 to the size in "
        "f32[4,?]"},
       {"C4 negative", set(AttrKey::slice_sizes, I64s{2, -1}),
        "stablehlo.dynamic_slice: C4: slice size of dimension 1 is -1, expected 0 to the size in "
        "f32[4,?]"},
       {"C5", [](Draft& d) { d.stated = {"f32[2,4]"}; },
        "stablehlo.dynamic_slice: C5: result type is f32[2,4], expected f32[2,3]"}});
}

TEST(InferDynamicUpdateSlice, clauses) {
  check_clauses(
      {OpCode::kDynamicUpdateSlice, {"f32[4,?]", "f32[2,9]", "u8[]", "u8[]"}, {}, {}, {}, {}},
      "f32[4,?]",
      {{"C1", [](Draft& d) { d.stated = {"f32[2,9]"}; },
        "stablehlo.dynamic_update_slice: C1: result type is f32[2,9], expected f32[4,?]"},
       {"C2", [](Draft& d) { d.operands[1] = "f64[2,9]"; },
        "stablehlo.dynamic_update_slice: C2: element types differ: f32 and f64"},
       {"C3", [](Draft& d) { d.operands[1] = "f32[2]"; },
        "stablehlo.dynamic_update_slice: C3: update is f32[2], expected the rank of f32[4,?]"},
       {"C4", [](Draft& d) { d.operands.pop_back(); },
        "stablehlo.dynamic_update_slice: C4: start_indices has length 1, expected 2"},
       {"C5", [](Draft& d) { d.operands[3] = "s32[]"; },
        "stablehlo.dynamic_update_slice: C5: start indices differ in type: u8[] and s32[]"},
       {"C6", [](Draft& d) { d.operands[1] = "f32[5,9]"; },
        "stablehlo.dynamic_update_slice: C6: update is f32[5,9], which exceeds f32[4,?] in "
        "dimension 0"}});
}

TEST(InferTranspose, clauses) {
  check_clauses(
      {OpCode::kTranspose, {"f32[2,?<=4,3]"}, {{AttrKey::permutation, I64s{2, 0, 1}}}, {}, {}, {}},
      "f32[3,2,?<=4]",
      {{"C1", [](Draft& d) { d.stated = {"f64[3,2,4]"}; },
        "stablehlo.transpose: C1: result type is f64[3,2,4], expected f32[3,2,?<=4]"},
       {"C2 twice", set(AttrKey::permutation, I64s{2, 0, 0}),
        "stablehlo.transpose: C2: permutation is [2, 0, 0], expected each of 0 to 2 once"},
       {"C2 length", set(AttrKey::permutation, I64s{1, 0}),
        "stablehlo.transpose: C2: permutation is [1, 0], expected each of 0 to 2 once"},
       {"C2 range", set(AttrKey::permutation, I64s{0, 1, 3}),
        "stablehlo.transpose: C2: permutation is [0, 1, 3], expected each of 0 to 2 once"},
       {"C3", [](Draft& d) { d.stated = {"f32[2,3,4]"}; },
        "stablehlo.transpose: C3: result type is f32[2,3,4], expected f32[3,2,?<=4]"},
       {"quantized", [](Draft& d) { d.operands = {quantized_per_axis({2, 1, 3}, 0, {1, 2})}; },
        "q<s8:f32:1, {1.0, 2.0}>[3,2,1]"},
       {"C4",
        [](Draft& d) {
          d.operands = {quantized_per_axis({2, 2, 3}, 0, {1, 2})};
          d.stated = {quantized_per_axis({3, 2, 2}, 2, {1, 2})};
        },
        "stablehlo.transpose: C4: result is quantized along dimension 2, expected 1"}});
}

TEST(InferReverse, clauses) {
  check_clauses({OpCode::kReverse, {"f32[2,3]"}, {{AttrKey::dimensions, I64s{1}}}, {}, {}, {}},
                "f32[2,3]",
                {{"C1", [](Draft& d) { d.stated = {"f32[3,2]"}; },
                  "stablehlo.reverse: C1: result type is f32[3,2], expected f32[2,3]"},
                 {"C2", set(AttrKey::dimensions, I64s{1, 1}),
                  "stablehlo.reverse: C2: dimensions is [1, 1], expected no value twice"},
                 {"C3", set(AttrKey::dimensions, I64s{2}),
                  "stablehlo.reverse: C3: dimensions contains 2, expected values in [0, 2)"}});
}

TEST(InferReshape, clauses) {
  check_clauses(
      {OpCode::kReshape, {"f32[2,6]"}, {}, {}, {"f32[3,4]"}, {}}, "f32[3,4]",
      {{"dynamic", [](Draft& d) { d.operands = {"f32[2,?]"}; }, "f32[3,4]"},
       {"empty",
        [](Draft& d) {
          d.operands = {"f32[0,2]"};
          d.stated = {"f32[5,0]"};
        },
        "f32[5,0]"},
       {"C1", [](Draft& d) { d.stated = {"s32[3,4]"}; },
        "stablehlo.reshape: C1: result is s32[3,4], expected elements f32"},
       {"C2", [](Draft& d) { d.stated = {"f32[3,5]"}; },
        "stablehlo.reshape: C2: operand f32[2,6] has 12 elements, result f32[3,5] has 15"},
       {"C2 overflow", [](Draft& d) { d.stated = {Type::tensor(ElementType::kF32, {kHuge, 4})}; },
        "stablehlo.reshape: type of result 0 is malformed: a shape of dimensions "
        "[9223372036854775807,4] has more elements "
        "than can be counted"},
       {"moved quantized dimension",
        [](Draft& d) {
          d.operands = {quantized_per_axis({6, 2}, 1, {1, 2})};
          d.stated = {quantized_per_axis({2, 3, 2}, 2, {1, 2})};
        },
        "q<s8:f32:2, {1.0, 2.0}>[2,3,2]"},
       {"C3",
        [](Draft& d) {
          d.operands = {quantized_per_axis({6, 2}, 1, {1, 2})};
          d.stated = {quantized_per_axis({2, 6}, 0, {1, 2})};
        },
        "stablehlo.reshape: C3: q<s8:f32:1, {1.0, 2.0}>[6,2] and q<s8:f32:0, {1.0, 2.0}>[2,6] "
        "differ in the dimensions before, at or after the quantized one"},
       {"nothing stated", [](Draft& d) { d.stated = {}; },
        "stablehlo.reshape: the result type follows from nothing else and must be stated"}});
}

TEST(InferTorchIndexSelect, clauses) {
  check_clauses(
      {OpCode::kTorchIndexSelect,
       {"f32[2,3,4]", "s32[2,5]"},
       {{AttrKey::dim, int64_t{1}}, {AttrKey::batch_dims, int64_t{1}}},
       {},
       {},
       {}},
      "f32[2,5,4]",
      {{"no batch", set(AttrKey::batch_dims, int64_t{0}), "f32[2,2,5,4]"},
       {"index", [](Draft& d) { d.operands[1] = "f32[2,5]"; },
        "stablehlo.torch_index_select: operand 1 is f32[2,5], expected a tensor of integers"},
       {"dim", set(AttrKey::dim, int64_t{3}),
        "stablehlo.torch_index_select: dim is 3, expected a value in [0, 3)"},
       {"batch_dims", set(AttrKey::batch_dims, int64_t{2}),
        "stablehlo.torch_index_select: batch_dims is 2, expected 0 to dim 1 and at most the rank "
        "of s32[2,5]"},
       {"batch size", [](Draft& d) { d.operands[1] = "s32[3,5]"; },
        "stablehlo.torch_index_select: batch dimension 0 differs in f32[2,3,4] and s32[3,5]"},
       {"result", [](Draft& d) { d.stated = {"f32[2,5,5]"}; },
        "stablehlo.torch_index_select: result type is f32[2,5,5], expected f32[2,5,4]"}});
}

}  // namespace
}  // namespace tenon::hlo::testing
