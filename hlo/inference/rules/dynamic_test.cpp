#include <limits>

#include "hlo/inference/infer_test_util.h"

namespace tenon::hlo::testing {
namespace {

auto constant(size_t operand, const I64s& values) {
  return [=](Draft& d) { d.constants[operand] = values; };
}

TEST(InferDynamicBroadcastInDim, clauses) {
  check_clauses(
      {OpCode::kDynamicBroadcastInDim,
       {"f32[1,?]", "s32[3]"},
       {{AttrKey::broadcast_dimensions, I64s{2, 1}}},
       {},
       {"f32[?,3,?]"},
       {}},
      "f32[?,3,?]",
      {{"constant shape",
        [](Draft& d) {
          d.operands[1] = "s64[3]";
          d.constants[1] = I64s{4, 3, 2};
        },
        "f32[4,3,2]"},
       {"nothing stated", [](Draft& d) { d.stated = {}; },
        "stablehlo.dynamic_broadcast_in_dim: the result type follows from nothing else and must be "
        "stated"},
       {"C1", [](Draft& d) { d.stated = {"f64[?,3,?]"}; },
        "stablehlo.dynamic_broadcast_in_dim: C1: result is f64[?,3,?], expected elements f32"},
       {"C2", set(AttrKey::broadcast_dimensions, I64s{2}),
        "stablehlo.dynamic_broadcast_in_dim: C2: broadcast_dimensions has length 1, expected 2"},
       {"C3", set(AttrKey::broadcast_dimensions, I64s{2, 3}),
        "stablehlo.dynamic_broadcast_in_dim: C3: broadcast_dimensions contains 3, expected values "
        "in [0, 3)"},
       {"C4", set(AttrKey::broadcast_dimensions, I64s{1, 1}),
        "stablehlo.dynamic_broadcast_in_dim: C4: broadcast_dimensions is [1, 1], expected no value "
        "twice"},
       {"C5", [](Draft& d) { d.operands[0] = "f32[1,2]"; },
        "stablehlo.dynamic_broadcast_in_dim: C5: operand dimension 1 is 2, expected 1 or 3, the "
        "size of result dimension 1"},
       {"C5 constant",
        [](Draft& d) {
          d.operands = {"f32[1,2]", "s64[3]"};
          d.stated = {"f32[?,?,?]"};
          d.constants[1] = I64s{4, 3, 2};
        },
        "stablehlo.dynamic_broadcast_in_dim: C5: operand dimension 1 is 2, expected 1 or 3, the "
        "size of result dimension 1"},
       {"C6",
        [](Draft& d) {
          d.operands[0] = quantized_per_axis({1, 3}, 0, {0.5});
          d.stated = {quantized_per_axis({2, 3, 2}, 0, {0.5, 0.5})};
        },
        "stablehlo.dynamic_broadcast_in_dim: C6: result is quantized along dimension 0, expected "
        "2"},
       {"C7", [](Draft& d) { d.operands[1] = "s32[2]"; },
        "stablehlo.dynamic_broadcast_in_dim: C7: operand 1 is s32[2], expected 3 elements"},
       {"C7 constant",
        [](Draft& d) {
          d.operands[1] = "s64[3]";
          d.constants[1] = I64s{4, 5, 2};
        },
        "stablehlo.dynamic_broadcast_in_dim: C7: result is f32[?,3,?], expected the shape [4, 5, "
        "2]"},
       {"I2", [](Draft& d) { d.operands[1] = "s32[3,1]"; },
        "stablehlo.dynamic_broadcast_in_dim: I2: operand 1 is s32[3,1], expected a 1-dimensional "
        "tensor"},
       {"I2 floats", [](Draft& d) { d.operands[1] = "f32[3]"; },
        "stablehlo.dynamic_broadcast_in_dim: I2: operand 1 is f32[3], expected a tensor of "
        "integers"},
       {"C8",
        [](Draft& d) {
          d.attributes[AttrKey::known_expanding_dimensions] = I64s{0};
          d.attributes[AttrKey::known_nonexpanding_dimensions] = I64s{0};
        },
        "stablehlo.dynamic_broadcast_in_dim: C8: known_expanding_dimensions + "
        "known_nonexpanding_dimensions is [0, 0], expected no value twice"},
       {"C9", set(AttrKey::known_expanding_dimensions, I64s{2}),
        "stablehlo.dynamic_broadcast_in_dim: C9: known_expanding_dimensions contains 2, expected "
        "values in [0, 2)"},
       {"C10", set(AttrKey::known_nonexpanding_dimensions, I64s{-1}),
        "stablehlo.dynamic_broadcast_in_dim: C10: known_nonexpanding_dimensions contains -1, "
        "expected values in [0, 2)"}});
}

TEST(InferDynamicReshape, clauses) {
  check_clauses(
      {OpCode::kDynamicReshape, {"f32[2,6]", "s64[2]"}, {}, {}, {"f32[?,4]"}, {}}, "f32[?,4]",
      {{"constant shape", constant(1, {3, 4}), "f32[3,4]"},
       {"C1", [](Draft& d) { d.stated = {"s32[?,4]"}; },
        "stablehlo.dynamic_reshape: C1: result is s32[?,4], expected elements f32"},
       {"C2", [](Draft& d) { d.stated = {"f32[5,4]"}; },
        "stablehlo.dynamic_reshape: C2: operand f32[2,6] has 12 elements, result f32[5,4] has 20"},
       {"C2 constant", constant(1, {4, 4}),
        "stablehlo.dynamic_reshape: C2: operand f32[2,6] has 12 elements, result f32[4,4] has 16"},
       {"C3",
        [](Draft& d) {
          d.operands[0] = quantized_per_axis({6, 2}, 1, {1, 2});
          d.stated = {quantized_per_axis({2, 6}, 0, {1, 2})};
        },
        "stablehlo.dynamic_reshape: C3: q<s8:f32:1, {1.0, 2.0}>[6,2] and q<s8:f32:0, {1.0, "
        "2.0}>[2,6] differ in the dimensions before, at or after the quantized one"},
       {"C4", [](Draft& d) { d.operands[1] = "s64[3]"; },
        "stablehlo.dynamic_reshape: C4: operand 1 is s64[3], expected 2 elements"},
       {"C4 constant", constant(1, {2, 6}),
        "stablehlo.dynamic_reshape: C4: result is f32[?,4], expected the shape [2, 6]"},
       {"C4 negative", constant(1, {-3, 4}),
        "stablehlo.dynamic_reshape: C4: result is f32[?,4], expected the shape [-3, 4]"},
       {"I2 unknown rank", [](Draft& d) { d.operands[1] = "s64[?]"; },
        "stablehlo.dynamic_reshape: I2: operand 1 is s64[?], from which no rank follows"},
       {"I2", [](Draft& d) { d.operands[1] = "pred[2]"; },
        "stablehlo.dynamic_reshape: I2: operand 1 is pred[2], expected a tensor of integers"}});
}

TEST(InferDynamicIota, clauses) {
  check_clauses(
      {OpCode::kDynamicIota,
       {"s64[2]"},
       {{AttrKey::iota_dimension, int64_t{1}}},
       {},
       {"f32[?,3]"},
       {}},
      "f32[?,3]",
      {{"constant shape", constant(0, {2, 3}), "f32[2,3]"},
       {"C1", set(AttrKey::iota_dimension, int64_t{2}),
        "stablehlo.dynamic_iota: C1: iota_dimension is 2, expected a value in [0, 2)"},
       {"C2", [](Draft& d) { d.operands[0] = "s64[3]"; },
        "stablehlo.dynamic_iota: C2: operand 0 is s64[3], expected 2 elements"},
       {"I1", [](Draft& d) { d.operands[0] = "s64[]"; },
        "stablehlo.dynamic_iota: I1: operand 0 is s64[], expected a 1-dimensional tensor"},
       {"pred", [](Draft& d) { d.stated = {"pred[?,3]"}; },
        "stablehlo.dynamic_iota: result 0 is pred[?,3], expected integers, floats, complex, "
        "quantized"}});
}

TEST(InferDynamicPad, clauses) {
  check_clauses(
      {OpCode::kDynamicPad, {"f32[2,3]", "f32[]", "s64[2]", "s64[2]", "s64[2]"}, {}, {}, {}, {}},
      "f32[?,?]",
      {{"constants", [](Draft& d) { d.constants = {{2, {1, -1}}, {3, {0, 2}}, {4, {2, 0}}}; },
        "f32[5,4]"},
       {"I2", [](Draft& d) { d.operands[1] = "f32[1]"; },
        "stablehlo.dynamic_pad: I2: operand 1 is f32[1], expected a 0-dimensional tensor"},
       {"C1", [](Draft& d) { d.operands[1] = "f64[]"; },
        "stablehlo.dynamic_pad: C1: operand is f32[2,3], padding value f64[] and the result "
        "f32[?,?], expected one element type"},
       {"C1 result", [](Draft& d) { d.stated = {"f64[?,?]"}; },
        "stablehlo.dynamic_pad: C1: operand is f32[2,3], padding value f32[] and the result "
        "f64[?,?], expected one element type"},
       {"C2", [](Draft& d) { d.operands[3] = "s64[3]"; },
        "stablehlo.dynamic_pad: C2: operand 3 is s64[3], expected 2 elements"},
       {"I5", [](Draft& d) { d.operands[4] = "f32[2]"; },
        "stablehlo.dynamic_pad: I5: operand 4 is f32[2], expected a tensor of integers"},
       {"C3", constant(4, {0, -1}),
        "stablehlo.dynamic_pad: C3: interior_padding contains -1, expected values from 0 on"},
       {"C4", [](Draft& d) { d.stated = {"f32[?]"}; },
        "stablehlo.dynamic_pad: C4: result is f32[?], expected the rank of f32[2,3]"},
       {"C4 constants",
        [](Draft& d) {
          d.constants = {{2, {1, -1}}, {3, {0, 2}}, {4, {2, 0}}};
          d.stated = {"f32[5,5]"};
        },
        "stablehlo.dynamic_pad: C4: dimension 1 of the result f32[5,5] does not follow from "
        "f32[2,3] padded by -1, 2 and 0 between"},
       {"C4 overflow of the size between",
        [](Draft& d) {
          constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
          d.operands[0] = "f32[4,3]";
          d.constants = {{2, {0, 0}}, {3, {-kMost, 0}}, {4, {kMost / 2, 0}}};
          d.stated = {"f32[?,3]"};
        },
        "stablehlo.dynamic_pad: C4: dimension 0 of the result f32[?,3] does not follow from "
        "f32[4,3] padded by 0, -9223372036854775807 and 4611686018427387903 between"}});
}

TEST(InferRealDynamicSlice, clauses) {
  check_clauses(
      {OpCode::kRealDynamicSlice, {"f32[4,5]", "s64[2]", "s64[2]", "s64[2]"}, {}, {}, {}, {}},
      "f32[?,?]",
      {{"stated", [](Draft& d) { d.stated = {"f32[2,?]"}; }, "f32[2,?]"},
       {"constants", [](Draft& d) { d.constants = {{1, {1, 0}}, {2, {4, 5}}, {3, {2, 1}}}; },
        "f32[2,5]"},
       {"size", [](Draft& d) { d.operands[2] = "s64[3]"; },
        "stablehlo.real_dynamic_slice: operand 2 is s64[3], expected 2 elements"},
       {"bounds", [](Draft& d) { d.constants = {{1, {1, 0}}, {2, {5, 5}}, {3, {2, 1}}}; },
        "stablehlo.real_dynamic_slice: dimension 0 is sliced from 1 to 5 by 2, expected bounds in "
        "order within f32[4,5] and a positive stride"},
       {"result", [](Draft& d) { d.stated = {"f32[2]"}; },
        "stablehlo.real_dynamic_slice: result type is f32[2], expected f32[?,?]"}});
}

TEST(InferGetDimensionSize, clauses) {
  check_clauses(
      {OpCode::kGetDimensionSize, {"f32[2,?]"}, {{AttrKey::dimension, int64_t{1}}}, {}, {}, {}},
      "s32[]",
      {{"C1", set(AttrKey::dimension, int64_t{2}),
        "stablehlo.get_dimension_size: C1: dimension is 2, expected a value in [0, 2)"},
       {"size",
        [](Draft& d) {
          d.operands[0] = "f32[2,2147483648]";
          d.attributes[AttrKey::dimension] = int64_t{1};
        },
        "stablehlo.get_dimension_size: dimension 1 of f32[2,2147483648] has a size that s32, the "
        "result's type, has not"},
       {"result", [](Draft& d) { d.stated = {"s64[]"}; },
        "stablehlo.get_dimension_size: result type is s64[], expected s32[]"}});
}

TEST(InferSetDimensionSize, clauses) {
  check_clauses(
      {OpCode::kSetDimensionSize,
       {"f32[2,5]", "s64[]"},
       {{AttrKey::dimension, int64_t{1}}},
       {},
       {},
       {}},
      "f32[2,?<=5]",
      {{"the whole size", constant(1, {5}), "f32[2,5]"},
       {"less", constant(1, {4}), "f32[2,?<=5]"},
       {"bounded", [](Draft& d) { d.operands[0] = "f32[2,?<=7]"; }, "f32[2,?<=7]"},
       {"too much", constant(1, {6}),
        "stablehlo.set_dimension_size: size is 6, expected 0 to 5, the size in f32[2,5]"},
       {"dimension", set(AttrKey::dimension, int64_t{-1}),
        "stablehlo.set_dimension_size: dimension is -1, expected a value in [0, 2)"},
       {"size", [](Draft& d) { d.operands[1] = "s64[1]"; },
        "stablehlo.set_dimension_size: operand 1 is s64[1], expected a 0-dimensional tensor"}});
}

}  // namespace
}  // namespace tenon::hlo::testing
