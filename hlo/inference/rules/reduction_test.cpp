#include "hlo/inference/infer_test_util.h"

namespace tenon::hlo::testing {
namespace {

RegionDraft body_of(const TypeArgs& elements) {
  RegionDraft body;
  for (int half = 0; half < 2; ++half) {
    body.parameters.insert(body.parameters.end(), elements.begin(), elements.end());
  }
  body.results = elements;
  return body;
}

TEST(InferReduce, clauses) {
  check_clauses(
      {OpCode::kReduce,
       {"f32[2,3]", "s32[?,3]", "f32[]", "s32[]"},
       {{AttrKey::dimensions, I64s{1}}},
       {body_of({"f32[]", "s32[]"})},
       {},
       {}},
      "f32[2], s32[2]",
      {{"nothing reduced", set(AttrKey::dimensions, I64s{}), "f32[2,3], s32[2,3]"},
       {"wider body", [](Draft& d) { d.regions = {body_of({"f64[]", "s64[]"})}; },
        "f64[2], s64[2]"},
       {"elements of another float type",
        [](Draft& d) {
          d.regions = {body_of({"f64[]", "s32[]"})};
          d.regions[0].parameters[2] = "f32[]";
        },
        "f64[2], s32[2]"},
       {"C1", [](Draft& d) { d.operands[1] = "s32[2,4]"; },
        "stablehlo.reduce: C1: input shapes differ: f32[2,3] and s32[2,4]"},
       {"C2", [](Draft& d) { d.operands[2] = "pred[]"; },
        "stablehlo.reduce: C2: input 0 is f32, its initial value is pred"},
       {"C3 odd", [](Draft& d) { d.operands.pop_back(); },
        "stablehlo.reduce: C3: there are 3 operands, expected as many initial values as inputs and "
        "at least one"},
       {"C3 none", [](Draft& d) { d.operands = {}; },
        "stablehlo.reduce: C3: there are 0 operands, expected as many initial values as inputs and "
        "at least one"},
       {"I2", [](Draft& d) { d.operands[3] = "s32[1]"; },
        "stablehlo.reduce: I2: operand 3 is s32[1], expected a 0-dimensional tensor"},
       {"C4", set(AttrKey::dimensions, I64s{2}),
        "stablehlo.reduce: C4: dimensions contains 2, expected values in [0, 2)"},
       {"C4 negative", set(AttrKey::dimensions, I64s{-1}),
        "stablehlo.reduce: C4: dimensions contains -1, expected values in [0, 2)"},
       {"C5", set(AttrKey::dimensions, I64s{1, 1}),
        "stablehlo.reduce: C5: dimensions is [1, 1], expected no value twice"},
       {"C6 parameters", [](Draft& d) { d.regions[0].parameters.pop_back(); },
        "stablehlo.reduce: C6: region 0 takes 3 parameters, expected 4"},
       {"C6 results", [](Draft& d) { d.regions[0].results.pop_back(); },
        "stablehlo.reduce: C6: region 0 returns 1 values, expected 2"},
       {"C6 rank", [](Draft& d) { d.regions[0].results[0] = "f32[1]"; },
        "stablehlo.reduce: C6: region 0 returns f32[1] as result 0, expected a 0-dimensional "
        "tensor"},
       {"C6 token", [](Draft& d) { d.regions[0].results[0] = "token"; },
        "stablehlo.reduce: C6: region 0 returns token as result 0, expected a 0-dimensional "
        "tensor"},
       {"C6 accumulator", [](Draft& d) { d.regions[0].parameters[1] = "s64[]"; },
        "stablehlo.reduce: C6: region 0 takes s64[] as parameter 1, expected s32[]"},
       {"C6 elements", [](Draft& d) { d.regions[0].parameters[3] = "s64[]"; },
        "stablehlo.reduce: C6: region 0 takes s64[] as parameter 3, expected s32[]"},
       {"C6 narrower", [](Draft& d) { d.regions = {body_of({"f32[]", "s16[]"})}; },
        "stablehlo.reduce: C6: region 0 returns s16[] as result 1, which s32 does not promote to"},
       {"C6 no return", [](Draft& d) { d.regions[0].ends_in_return = false; },
        "stablehlo.reduce: C6: region 0 does not end in a return"},
       {"C7", [](Draft& d) { d.stated = {"f32[2]", "s32[3]"}; },
        "stablehlo.reduce: C7: type of result 1 is s32[3], expected s32[2]"},
       {"C8", [](Draft& d) { d.stated = {"f64[2]", "s32[2]"}; },
        "stablehlo.reduce: C8: type of result 0 is f64[2], expected f32[2]"},
       {"number of results", [](Draft& d) { d.stated = {"f32[2]"}; },
        "stablehlo.reduce: has 1 results, expected 2"},
       {"no region", [](Draft& d) { d.regions = {}; },
        "stablehlo.reduce: has 0 regions, expected 1"}});
}

Draft reduce_window() {
  return {OpCode::kReduceWindow,
          {"f32[6,?]", "f32[]"},
          {{AttrKey::window_dimensions, I64s{3, 2}}},
          {body_of({"f32[]"})},
          {},
          {}};
}

TEST(InferReduce, OneScaleThroughoutABody) {
  const Type half = quantized({}, 0.5);
  check_clauses({OpCode::kReduce,
                 {quantized({2, 3}, 0.25), half},
                 {{AttrKey::dimensions, I64s{1}}},
                 {body_of({half})},
                 {},
                 {}},
                "q<s8:f32, 0.5>[2]",
                {{"C6 element", [](Draft& d) { d.regions[0].parameters[1] = quantized({}, 2); },
                  "stablehlo.reduce: C6: region 0 takes q<s8:f32, 2.0>[] as parameter 1, expected "
                  "q<s8:f32, 0.5>[]"},
                 {"C6 result", [](Draft& d) { d.regions[0].results[0] = quantized({}, 2); },
                  "stablehlo.reduce: C6: region 0 takes q<s8:f32, 0.5>[] as parameter 0, expected "
                  "q<s8:f32, 2.0>[]"}});
}

TEST(InferReduceWindow, clauses) {
  check_clauses(
      reduce_window(), "f32[4,?]",
      {{"everything",
        [](Draft& d) {
          d.operands[0] = "f32[6,3]";
          d.attributes[AttrKey::window_strides] = I64s{2, 1};
          d.attributes[AttrKey::base_dilations] = I64s{2, 1};
          d.attributes[AttrKey::window_dilations] = I64s{1, 2};
          d.attributes[AttrKey::padding] = I64Matrix{2, 2, {1, 1, 0, -1}};
        },
        // (6-1)*2+1+2 = 13 by windows of 3 with stride 2; 3-1 = 2 is less than the dilated window
        // of 3.
        "f32[6,0]"},
       {"empty", [](Draft& d) { d.operands[0] = "f32[0,?]"; }, "f32[0,?]"},
       {"C1", [](Draft& d) { d.operands.pop_back(); },
        "stablehlo.reduce_window: C1: there are 1 operands, expected as many initial values as "
        "inputs and at least one"},
       {"C2", [](Draft& d) { d.operands = {"f32[6,2]", "f32[6,3]", "f32[]", "f32[]"}; },
        "stablehlo.reduce_window: C2: input shapes differ: f32[6,2] and f32[6,3]"},
       {"C3", [](Draft& d) { d.operands[1] = "s32[]"; },
        "stablehlo.reduce_window: C3: input 0 is f32, its initial value is s32"},
       {"C4", set(AttrKey::window_dimensions, I64s{3}),
        "stablehlo.reduce_window: C4: window_dimensions has length 1, expected 2"},
       {"C5", set(AttrKey::window_dimensions, I64s{3, 0}),
        "stablehlo.reduce_window: C5: window_dimensions contains 0, expected positive values"},
       {"C6", set(AttrKey::window_strides, I64s{1, 1, 1}),
        "stablehlo.reduce_window: C6: window_strides has length 3, expected 2"},
       {"C7", set(AttrKey::window_strides, I64s{0, 1}),
        "stablehlo.reduce_window: C7: window_strides contains 0, expected positive values"},
       {"C8", set(AttrKey::base_dilations, I64s{2}),
        "stablehlo.reduce_window: C8: base_dilations has length 1, expected 2"},
       {"C9", set(AttrKey::base_dilations, I64s{1, -1}),
        "stablehlo.reduce_window: C9: base_dilations contains -1, expected positive values"},
       {"C10", set(AttrKey::window_dilations, I64s{2}),
        "stablehlo.reduce_window: C10: window_dilations has length 1, expected 2"},
       {"C11", set(AttrKey::window_dilations, I64s{2, 0}),
        "stablehlo.reduce_window: C11: window_dilations contains 0, expected positive values"},
       {"C12", set(AttrKey::padding, I64Matrix{1, 2, {0, 0}}),
        "stablehlo.reduce_window: C12: padding has shape [1, 2], expected [2, 2]"},
       {"padding of the wrong size", set(AttrKey::padding, I64Matrix{2, 2, {0, 0}}),
        "stablehlo.reduce_window: attribute padding has the wrong form"},
       {"C13", [](Draft& d) { d.regions = {body_of({"s32[]"})}; },
        "stablehlo.reduce_window: C13: region 0 returns s32[] as result 0, which f32 does not "
        "promote to"},
       {"C15", [](Draft& d) { d.stated = {"f32[5,?]"}; },
        "stablehlo.reduce_window: C15: result type is f32[5,?], expected f32[4,?]"},
       {"C15 overflow", set(AttrKey::base_dilations, I64s{kHuge, 1}),
        "stablehlo.reduce_window: C15: the padded size of dimension 0 overflows"},
       {"C15 overflow of the dilated size",
        [](Draft& d) {
          d.attributes[AttrKey::base_dilations] = I64s{kHuge, 1};
          d.attributes[AttrKey::padding] = I64Matrix{2, 2, {-kHuge, -kHuge, 0, 0}};
        },
        "stablehlo.reduce_window: C15: the padded size of dimension 0 overflows"},
       {"places of a window", set(AttrKey::window_dimensions, I64s{kHuge / 2, 4}),
        "stablehlo.reduce_window: window_dimensions is [4611686018427387903, 4], a window of more "
        "places than can be counted"},
       {"C16", [](Draft& d) { d.stated = {"f16[4,?]"}; },
        "stablehlo.reduce_window: C16: result type is f16[4,?], expected f32[4,?]"}});
}

TEST(InferSelectAndScatter, clauses) {
  RegionDraft select;
  select.parameters = {"f32[]", "f32[]"};
  select.results = {"pred[]"};
  check_clauses(
      {OpCode::kSelectAndScatter,
       {"f32[4,6]", "f32[2,3]", "f32[]"},
       {{AttrKey::window_dimensions, I64s{2, 2}}, {AttrKey::window_strides, I64s{2, 2}}},
       {select, body_of({"f32[]"})},
       {},
       {}},
      "f32[4,6]",
      {{"padded",
        [](Draft& d) {
          d.attributes[AttrKey::padding] = I64Matrix{2, 2, {2, 0, 0, 0}};
          d.operands[1] = "f32[3,3]";
        },
        "f32[4,6]"},
       {"windows of one element", [](Draft& d) { d.attributes.erase(AttrKey::window_dimensions); },
        "f32[4,6]"},
       {"C1", [](Draft& d) { d.operands[1] = "s32[2,3]"; },
        "stablehlo.select_and_scatter: C1: element types differ: f32 and s32"},
       {"C2", [](Draft& d) { d.operands[1] = "f32[2,2]"; },
        "stablehlo.select_and_scatter: C2: source is f32[2,2], expected f32[2,3], one element a "
        "window"},
       {"I3", [](Draft& d) { d.operands[2] = "f32[1]"; },
        "stablehlo.select_and_scatter: I3: operand 2 is f32[1], expected a 0-dimensional tensor"},
       {"C3", [](Draft& d) { d.operands[2] = "s32[]"; },
        "stablehlo.select_and_scatter: C3: init_value is s32[], expected elements f32"},
       {"C4", set(AttrKey::window_dimensions, I64s{2}),
        "stablehlo.select_and_scatter: C4: window_dimensions has length 1, expected 2"},
       {"C5", set(AttrKey::window_dimensions, I64s{2, 0}),
        "stablehlo.select_and_scatter: C5: window_dimensions contains 0, expected positive values"},
       {"places of a window", set(AttrKey::window_dimensions, I64s{kHuge / 2, 4}),
        "stablehlo.select_and_scatter: window_dimensions is [4611686018427387903, 4], a window of "
        "more places than can be counted"},
       {"C6", set(AttrKey::window_strides, I64s{2}),
        "stablehlo.select_and_scatter: C6: window_strides has length 1, expected 2"},
       {"C7", set(AttrKey::window_strides, I64s{2, 0}),
        "stablehlo.select_and_scatter: C7: window_strides contains 0, expected positive values"},
       {"C8", set(AttrKey::padding, I64Matrix{2, 1, {0, 0}}),
        "stablehlo.select_and_scatter: C8: padding has shape [2, 1], expected [2, 2]"},
       {"C9", [](Draft& d) { d.regions[0].parameters[0] = "f64[]"; },
        "stablehlo.select_and_scatter: C9: region 0 takes (f64[], f32[]), expected (f32[], f32[])"},
       {"C9 result", [](Draft& d) { d.regions[0].results[0] = "f32[]"; },
        "stablehlo.select_and_scatter: C9: select returns (f32[]), expected pred[]"},
       {"C10", [](Draft& d) { d.regions[1] = body_of({"s32[]"}); },
        "stablehlo.select_and_scatter: C10: region 1 returns s32[] as result 0, which f32 does not "
        "promote to"},
       {"C11", [](Draft& d) { d.stated = {"f32[2,3]"}; },
        "stablehlo.select_and_scatter: C11: result type is f32[2,3], expected f32[4,6]"},
       {"C12", [](Draft& d) { d.stated = {"f64[4,6]"}; },
        "stablehlo.select_and_scatter: C12: result type is f64[4,6], expected f32[4,6]"}});
}

TEST(InferSort, clauses) {
  RegionDraft comparator;
  comparator.parameters = {"f32[]", "f32[]", "s32[]", "s32[]"};
  comparator.results = {"pred[]"};
  check_clauses(
      {OpCode::kSort,
       {"f32[2,?]", "s32[?,3]"},
       {{AttrKey::dimension, int64_t{-2}}},
       {comparator},
       {},
       {}},
      "f32[2,3], s32[2,3]",
      {{"last dimension", [](Draft& d) { d.attributes.clear(); }, "f32[2,3], s32[2,3]"},
       {"C1", [](Draft& d) { d.operands = {}; }, "stablehlo.sort: C1: there are no inputs"},
       {"C2", [](Draft& d) { d.stated = {"f32[2,3]", "f32[2,3]"}; },
        "stablehlo.sort: C2: type of result 1 is f32[2,3], expected s32[2,3]"},
       {"C3", [](Draft& d) { d.operands[1] = "s32[3,3]"; },
        "stablehlo.sort: C3: input shapes differ: f32[2,?] and s32[3,3]"},
       {"C4", set(AttrKey::dimension, int64_t{2}),
        "stablehlo.sort: C4: dimension is 2, expected a value in [-2, 2)"},
       {"C4 low", set(AttrKey::dimension, int64_t{-3}),
        "stablehlo.sort: C4: dimension is -3, expected a value in [-2, 2)"},
       {"C5", [](Draft& d) { d.regions[0].parameters[1] = "s32[]"; },
        "stablehlo.sort: C5: region 0 takes (f32[], s32[], s32[], s32[]), expected (f32[], f32[], "
        "s32[], s32[])"},
       {"C5 result", [](Draft& d) { d.regions[0].results = {"s32[]"}; },
        "stablehlo.sort: C5: comparator returns (s32[]), expected pred[]"},
       {"C5 no result", [](Draft& d) { d.regions[0].results = {}; },
        "stablehlo.sort: C5: comparator returns (), expected pred[]"}});
}

TEST(InferBatchNormInference, clauses) {
  check_clauses(
      {OpCode::kBatchNormInference,
       {"f32[2,?]", "f32[3]", "f32[3]", "f32[3]", "f32[3]"},
       {{AttrKey::epsilon, FloatAttr{}}, {AttrKey::feature_index, int64_t{1}}},
       {},
       {},
       {}},
      "f32[2,3]",
      {{"C1", set(AttrKey::feature_index, int64_t{2}),
        "stablehlo.batch_norm_inference: C1: feature_index is 2, expected a value in [0, 2)"},
       {"C2", [](Draft& d) { d.operands[3] = "f64[3]"; },
        "stablehlo.batch_norm_inference: C2: operand 3 is f64[3], expected elements f32"},
       {"C2 result", [](Draft& d) { d.stated = {"f64[2,3]"}; },
        "stablehlo.batch_norm_inference: C2: result type is f64[2,3], expected f32[2,3]"},
       {"C3", [](Draft& d) { d.operands[1] = "f32[3,1]"; },
        "stablehlo.batch_norm_inference: C3: operand 1 is f32[3,1], expected one element for each "
        "of dimension 1 of f32[2,?]"},
       {"C4", [](Draft& d) { d.operands[2] = "f32[2]"; },
        "stablehlo.batch_norm_inference: C4: operand 2 is f32[2], expected one element for each of "
        "dimension 1 of f32[2,?]"},
       {"C5", [](Draft& d) { d.operands[3] = "f32[2]"; },
        "stablehlo.batch_norm_inference: C5: operand 3 is f32[2], expected one element for each of "
        "dimension 1 of f32[2,?]"},
       {"C6", [](Draft& d) { d.operands[4] = "f32[2]"; },
        "stablehlo.batch_norm_inference: C6: operand 4 is f32[2], expected one element for each of "
        "dimension 1 of f32[2,?]"},
       {"C7", [](Draft& d) { d.stated = {"f32[2,4]"}; },
        "stablehlo.batch_norm_inference: C7: result type is f32[2,4], expected f32[2,3]"}});
}

TEST(InferBatchNormTraining, clauses) {
  check_clauses(
      {OpCode::kBatchNormTraining,
       {"f32[2,3]", "f32[3]", "f32[3]"},
       {{AttrKey::epsilon, FloatAttr{}}, {AttrKey::feature_index, int64_t{1}}},
       {},
       {},
       {}},
      "f32[2,3], f32[3], f32[3]",
      {{"C1", set(AttrKey::feature_index, int64_t{-1}),
        "stablehlo.batch_norm_training: C1: feature_index is -1, expected a value in [0, 2)"},
       {"C2", [](Draft& d) { d.operands[2] = "bf16[3]"; },
        "stablehlo.batch_norm_training: C2: operand 2 is bf16[3], expected elements f32"},
       {"C3", [](Draft& d) { d.operands[1] = "f32[2]"; },
        "stablehlo.batch_norm_training: C3: operand 1 is f32[2], expected one element for each of "
        "dimension 1 of f32[2,3]"},
       {"C4", [](Draft& d) { d.operands[2] = "f32[2]"; },
        "stablehlo.batch_norm_training: C4: operand 2 is f32[2], expected one element for each of "
        "dimension 1 of f32[2,3]"},
       {"C5", [](Draft& d) { d.stated = {"f32[2,3]", "f32[2]", "f32[3]"}; },
        "stablehlo.batch_norm_training: C5: type of result 1 is f32[2], expected f32[3]"},
       {"C6", [](Draft& d) { d.stated = {"f32[2,3]", "f32[3]", "f32[2]"}; },
        "stablehlo.batch_norm_training: C6: type of result 2 is f32[2], expected f32[3]"},
       {"C7", [](Draft& d) { d.stated = {"f32[3,3]", "f32[3]", "f32[3]"}; },
        "stablehlo.batch_norm_training: C7: type of result 0 is f32[3,3], expected f32[2,3]"}});
}

TEST(InferBatchNormGrad, clauses) {
  check_clauses(
      {OpCode::kBatchNormGrad,
       {"f32[2,3]", "f32[3]", "f32[3]", "f32[3]", "f32[2,3]"},
       {{AttrKey::epsilon, FloatAttr{}}, {AttrKey::feature_index, int64_t{1}}},
       {},
       {},
       {}},
      "f32[2,3], f32[3], f32[3]",
      {{"C1", set(AttrKey::feature_index, int64_t{2}),
        "stablehlo.batch_norm_grad: C1: feature_index is 2, expected a value in [0, 2)"},
       {"C2", [](Draft& d) { d.operands[4] = "f64[2,3]"; },
        "stablehlo.batch_norm_grad: C2: operand 4 is f64[2,3], expected elements f32"},
       {"C3", [](Draft& d) { d.operands[4] = "f32[3,2]"; },
        "stablehlo.batch_norm_grad: C3: operand 4 is f32[3,2], expected the shape of f32[2,3]"},
       {"C3 result", [](Draft& d) { d.stated = {"f32[3,2]", "f32[3]", "f32[3]"}; },
        "stablehlo.batch_norm_grad: C3: type of result 0 is f32[3,2], expected f32[2,3]"},
       {"C4", [](Draft& d) { d.operands[3] = "f32[2]"; },
        "stablehlo.batch_norm_grad: C4: operand 3 is f32[2], expected one element for each of "
        "dimension 1 of f32[2,3]"},
       {"C4 result", [](Draft& d) { d.stated = {"f32[2,3]", "f32[3]", "f32[4]"}; },
        "stablehlo.batch_norm_grad: C4: type of result 2 is f32[4], expected f32[3]"},
       {"C5", [](Draft& d) { d.operands[1] = "f32[4]"; },
        "stablehlo.batch_norm_grad: C5: operand 1 is f32[4], expected one element for each of "
        "dimension 1 of f32[2,3]"}});
}

}  // namespace
}  // namespace tenon::hlo::testing
