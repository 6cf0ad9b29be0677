#include "hlo/inference/infer_test_util.h"

namespace tenon::hlo::testing {
namespace {

// Operand [batch 2, 5, 6, 7]; indices [4, batch 2, 2]: slices of 1 x 3 x 7 at dimensions 1 and 2.
GatherDims gather_dims() {
  GatherDims dims;
  dims.offset_dims = {2, 3};
  dims.collapsed_slice_dims = {1};
  dims.operand_batching_dims = {0};
  dims.start_indices_batching_dims = {1};
  dims.start_index_map = {1, 2};
  dims.index_vector_dim = 2;
  return dims;
}

auto change(const std::function<void(GatherDims&)>& edit) {
  return [edit](Draft& d) {
    GatherDims dims = *d.attributes[AttrKey::dimension_numbers].get<GatherDims>();
    edit(dims);
    d.attributes[AttrKey::dimension_numbers] = dims;
  };
}

TEST(InferGather, clauses) {
  check_clauses(
      {OpCode::kGather,
       {"f32[2,5,6,7]", "s32[4,2,2]"},
       {{AttrKey::dimension_numbers, gather_dims()}, {AttrKey::slice_sizes, I64s{1, 1, 3, 7}}},
       {},
       {},
       {}},
      "f32[4,2,3,7]",
      {{"bounded batch", [](Draft& d) { d.operands[1] = "s32[?<=4,2,2]"; }, "f32[?<=4,2,3,7]"},
       {"implied index vector",
        [](Draft& d) {
          d.operands = {"f32[5]", "u8[3]"};
          GatherDims dims;
          dims.collapsed_slice_dims = {0};
          dims.start_index_map = {0};
          dims.index_vector_dim = 1;
          d.attributes[AttrKey::dimension_numbers] = dims;
          d.attributes[AttrKey::slice_sizes] = I64s{1};
        },
        "f32[3]"},
       {"I2", [](Draft& d) { d.operands[1] = "f32[4,2,2]"; },
        "stablehlo.gather: I2: operand 1 is f32[4,2,2], expected a tensor of integers"},
       {"C1", change([](GatherDims& g) { g.offset_dims = {2}; }),
        "stablehlo.gather: C1: offset, collapsed and batching dimensions are 3, expected 4, the "
        "rank of f32[2,5,6,7]"},
       {"C2", change([](GatherDims& g) { g.index_vector_dim = 4; }),
        "stablehlo.gather: C2: index_vector_dim is 4, expected a value in [0, 4)"},
       {"C2 negative", change([](GatherDims& g) { g.index_vector_dim = -1; }),
        "stablehlo.gather: C2: index_vector_dim is -1, expected a value in [0, 4)"},
       {"C3", change([](GatherDims& g) { g.start_index_map = {1}; }),
        "stablehlo.gather: C3: start_index_map has length 1, expected 2"},
       {"C4", change([](GatherDims& g) { g.offset_dims = {3, 2}; }),
        "stablehlo.gather: C4: offset_dims is [3, 2], expected ascending values"},
       {"C4 twice", change([](GatherDims& g) { g.offset_dims = {2, 2}; }),
        "stablehlo.gather: C4: offset_dims is [2, 2], expected no value twice"},
       {"C5", change([](GatherDims& g) { g.offset_dims = {2, 4}; }),
        "stablehlo.gather: C5: offset_dims contains 4, expected values in [0, 4)"},
       {"C6", change([](GatherDims& g) { g.collapsed_slice_dims = {0}; }),
        "stablehlo.gather: C6: collapsed_slice_dims + operand_batching_dims is [0, 0], expected no "
        "value twice"},
       {"C7", change([](GatherDims& g) {
          g.collapsed_slice_dims = {2, 1};
          g.offset_dims = {2};
        }),
        "stablehlo.gather: C7: collapsed_slice_dims is [2, 1], expected ascending values"},
       {"C8", change([](GatherDims& g) { g.collapsed_slice_dims = {4}; }),
        "stablehlo.gather: C8: collapsed_slice_dims contains 4, expected values in [0, 4)"},
       {"C9", set(AttrKey::slice_sizes, I64s{1, 2, 3, 7}),
        "stablehlo.gather: C9: slice size of dimension 1 in collapsed_slice_dims is 2, expected at "
        "most 1"},
       {"C10", change([](GatherDims& g) {
          g.operand_batching_dims = {2, 0};
          g.offset_dims = {2};
        }),
        "stablehlo.gather: C10: operand_batching_dims is [2, 0], expected ascending values"},
       {"C11", change([](GatherDims& g) { g.operand_batching_dims = {-1}; }),
        "stablehlo.gather: C11: operand_batching_dims contains -1, expected values in [0, 4)"},
       {"C12", set(AttrKey::slice_sizes, I64s{2, 1, 3, 7}),
        "stablehlo.gather: C12: slice size of dimension 0 in operand_batching_dims is 2, expected "
        "at most 1"},
       {"C13", change([](GatherDims& g) { g.start_indices_batching_dims = {1, 1}; }),
        "stablehlo.gather: C13: start_indices_batching_dims is [1, 1], expected no value twice"},
       {"C14", change([](GatherDims& g) { g.start_indices_batching_dims = {3}; }),
        "stablehlo.gather: C14: start_indices_batching_dims contains 3, expected values in [0, 3)"},
       {"C15", change([](GatherDims& g) { g.start_indices_batching_dims = {2}; }),
        "stablehlo.gather: C15: start_indices_batching_dims contains index_vector_dim 2"},
       {"C16", change([](GatherDims& g) { g.start_indices_batching_dims = {}; }),
        "stablehlo.gather: C16: start_indices_batching_dims has length 0, expected 1"},
       {"C17", change([](GatherDims& g) { g.start_indices_batching_dims = {0}; }),
        "stablehlo.gather: C17: batching dimension sizes differ: 2 and 4"},
       {"C18", change([](GatherDims& g) { g.start_index_map = {1, 0}; }),
        "stablehlo.gather: C18: start_index_map + operand_batching_dims is [1, 0, 0], expected no "
        "value twice"},
       {"C19", change([](GatherDims& g) { g.start_index_map = {1, 4}; }),
        "stablehlo.gather: C19: start_index_map contains 4, expected values in [0, 4)"},
       {"C20", set(AttrKey::slice_sizes, I64s{1, 1, 3}),
        "stablehlo.gather: C20: slice_sizes has length 3, expected 4"},
       {"empty slices", set(AttrKey::slice_sizes, I64s{1, 0, 3, 7}),
        "stablehlo.gather: the slices have size 0 in dimension 1, which the result has not, "
        "expected 1: they have no elements for it"},
       {"empty slices of a batch", set(AttrKey::slice_sizes, I64s{0, 1, 3, 7}),
        "stablehlo.gather: the slices have size 0 in dimension 0, which the result has not, "
        "expected 1: they have no elements for it"},
       {"empty slices and result", set(AttrKey::slice_sizes, I64s{0, 0, 0, 7}), "f32[4,2,0,7]"},
       {"C21 unknown", set(AttrKey::slice_sizes, I64s{1, 1, kDynamic, 7}),
        "stablehlo.gather: C21: slice size of dimension 2 is -9223372036854775808, expected 0 to "
        "the size in f32[2,5,6,7]"},
       {"C21", set(AttrKey::slice_sizes, I64s{1, 1, 7, 7}),
        "stablehlo.gather: C21: slice size of dimension 2 is 7, expected 0 to the size in "
        "f32[2,5,6,7]"},
       {"C21 negative", set(AttrKey::slice_sizes, I64s{1, 1, -1, 7}),
        "stablehlo.gather: C21: slice size of dimension 2 is -1, expected 0 to the size in "
        "f32[2,5,6,7]"},
       {"C22", [](Draft& d) { d.stated = {"f32[4,2,7,3]"}; },
        "stablehlo.gather: C22: result type is f32[4,2,7,3], expected f32[4,2,3,7]"},
       {"C23", [](Draft& d) { d.stated = {"s32[4,2,3,7]"}; },
        "stablehlo.gather: C23: result type is s32[4,2,3,7], expected f32[4,2,3,7]"}});
}

TEST(InferDynamicGather, clauses) {
  GatherDims dims;
  dims.offset_dims = {1};
  dims.collapsed_slice_dims = {0};
  dims.start_index_map = {0, 1};
  dims.index_vector_dim = 1;
  check_clauses(
      {OpCode::kDynamicGather,
       {"f32[5,6]", "s32[4,2]", "s64[2]"},
       {{AttrKey::dimension_numbers, dims}},
       {},
       {},
       {}},
      "f32[4,?]",
      {{"constant sizes", [](Draft& d) { d.constants[2] = I64s{1, 3}; }, "f32[4,3]"},
       {"C1", change([](GatherDims& g) { g.offset_dims = {}; }),
        "stablehlo.dynamic_gather: C1: offset, collapsed and batching dimensions are 1, expected "
        "2, the rank of f32[5,6]"},
       {"C2", change([](GatherDims& g) { g.index_vector_dim = 3; }),
        "stablehlo.dynamic_gather: C2: index_vector_dim is 3, expected a value in [0, 3)"},
       {"C3", change([](GatherDims& g) { g.start_index_map = {0}; }),
        "stablehlo.dynamic_gather: C3: start_index_map has length 1, expected 2"},
       {"C4", change([](GatherDims& g) {
          g.offset_dims = {1, 0};
          g.collapsed_slice_dims = {};
        }),
        "stablehlo.dynamic_gather: C4: offset_dims is [1, 0], expected ascending values"},
       {"C5", change([](GatherDims& g) { g.offset_dims = {2}; }),
        "stablehlo.dynamic_gather: C5: offset_dims contains 2, expected values in [0, 2)"},
       {"C6", change([](GatherDims& g) {
          g.offset_dims = {};
          g.collapsed_slice_dims = {0, 0};
        }),
        "stablehlo.dynamic_gather: C6: collapsed_slice_dims + operand_batching_dims is [0, 0], "
        "expected no value twice"},
       {"C7", change([](GatherDims& g) { g.collapsed_slice_dims = {2}; }),
        "stablehlo.dynamic_gather: C7: collapsed_slice_dims contains 2, expected values in [0, 2)"},
       {"C8", [](Draft& d) { d.constants[2] = I64s{2, 3}; },
        "stablehlo.dynamic_gather: C8: slice size of dimension 0 in collapsed_slice_dims is 2, "
        "expected at most 1"},
       {"C9", change([](GatherDims& g) { g.start_index_map = {1, 1}; }),
        "stablehlo.dynamic_gather: C9: start_index_map + operand_batching_dims is [1, 1], expected "
        "no value twice"},
       {"C10", change([](GatherDims& g) { g.start_index_map = {1, 2}; }),
        "stablehlo.dynamic_gather: C10: start_index_map contains 2, expected values in [0, 2)"},
       {"C11", [](Draft& d) { d.operands[2] = "s64[3]"; },
        "stablehlo.dynamic_gather: C11: operand 2 is s64[3], expected 2 elements"},
       {"I3", [](Draft& d) { d.operands[2] = "f32[2]"; },
        "stablehlo.dynamic_gather: I3: operand 2 is f32[2], expected a tensor of integers"},
       {"C12 unknown", [](Draft& d) { d.constants[2] = I64s{1, kDynamic}; },
        "stablehlo.dynamic_gather: C12: slice size of dimension 1 is -9223372036854775808, "
        "expected 0 to the size in f32[5,6]"},
       {"empty slices", [](Draft& d) { d.constants[2] = I64s{0, 3}; },
        "stablehlo.dynamic_gather: the slices have size 0 in dimension 0, which the result has "
        "not, expected 1: they have no elements for it"},
       {"C12", [](Draft& d) { d.constants[2] = I64s{1, 7}; },
        "stablehlo.dynamic_gather: C12: slice size of dimension 1 is 7, expected 0 to the size in "
        "f32[5,6]"},
       {"C13", [](Draft& d) { d.stated = {"f32[5,?]"}; },
        "stablehlo.dynamic_gather: C13: result type is f32[5,?], expected f32[4,?]"},
       {"C14", [](Draft& d) { d.stated = {"f64[4,?]"}; },
        "stablehlo.dynamic_gather: C14: result type is f64[4,?], expected f32[4,?]"}});
}

auto change_scatter(const std::function<void(ScatterDims&)>& edit) {
  return [edit](Draft& d) {
    ScatterDims dims = *d.attributes[AttrKey::scatter_dimension_numbers].get<ScatterDims>();
    edit(dims);
    d.attributes[AttrKey::scatter_dimension_numbers] = dims;
  };
}

// The inverse of the gather above, for two inputs.
TEST(InferScatter, clauses) {
  ScatterDims dims;
  dims.update_window_dims = {2, 3};
  dims.inserted_window_dims = {1};
  dims.input_batching_dims = {0};
  dims.scatter_indices_batching_dims = {1};
  dims.scatter_dims_to_operand_dims = {1, 2};
  dims.index_vector_dim = 2;
  RegionDraft body;
  body.parameters = {"f32[]", "s32[]", "f32[]", "s32[]"};
  body.results = {"f32[]", "s32[]"};
  check_clauses(
      {OpCode::kScatter,
       {"f32[2,5,6,7]", "s32[2,5,?,7]", "s64[4,2,2]", "f32[4,2,3,7]", "s32[4,2,3,7]"},
       {{AttrKey::scatter_dimension_numbers, dims}},
       {body},
       {},
       {}},
      "f32[2,5,6,7], s32[2,5,6,7]",
      {{"C1", [](Draft& d) { d.operands[1] = "s32[2,5,5,7]"; },
        "stablehlo.scatter: C1: input shapes differ: f32[2,5,6,7] and s32[2,5,5,7]"},
       {"C2", change_scatter([](ScatterDims& s) { s.inserted_window_dims = {}; }),
        "stablehlo.scatter: C2: window, inserted and batching dimensions are 3, expected 4, the "
        "rank of f32[2,5,6,7]"},
       {"C3", [](Draft& d) { d.operands[4] = "s32[4,2,2,7]"; },
        "stablehlo.scatter: C3: update shapes differ: f32[4,2,3,7] and s32[4,2,2,7]"},
       {"C4 window",
        [](Draft& d) {
          d.operands[3] = "f32[4,2,7,7]";
          d.operands[4] = "s32[4,2,7,7]";
        },
        "stablehlo.scatter: C4: dimension 2 of updates f32[4,2,7,7] is 7, expected at most 6 as in "
        "the inputs"},
       {"C4 indices",
        [](Draft& d) {
          d.operands[3] = "f32[3,2,3,7]";
          d.operands[4] = "s32[3,2,3,7]";
        },
        "stablehlo.scatter: C4: dimension 0 of updates f32[3,2,3,7] is 3, expected 4 as in the "
        "indices"},
       {"C4 rank",
        [](Draft& d) {
          d.operands[3] = "f32[4,2,3,7,1]";
          d.operands[4] = "s32[4,2,3,7,1]";
        },
        "stablehlo.scatter: C4: updates are f32[4,2,3,7,1], expected rank 4"},
       {"C5", [](Draft& d) { d.operands.pop_back(); },
        "stablehlo.scatter: C5: there are 4 operands, expected inputs, indices and as many "
        "updates"},
       {"I2", [](Draft& d) { d.operands[2] = "pred[4,2,2]"; },
        "stablehlo.scatter: I2: operand 2 is pred[4,2,2], expected a tensor of integers"},
       {"C6", [](Draft& d) { d.operands[3] = "c64[4,2,3,7]"; },
        "stablehlo.scatter: C6: update 0 is c64, its input is f32"},
       {"C7", change_scatter([](ScatterDims& s) { s.update_window_dims = {3, 2}; }),
        "stablehlo.scatter: C7: update_window_dims is [3, 2], expected ascending values"},
       {"C7 twice", change_scatter([](ScatterDims& s) { s.update_window_dims = {2, 2}; }),
        "stablehlo.scatter: C7: update_window_dims is [2, 2], expected no value twice"},
       {"C8", change_scatter([](ScatterDims& s) { s.update_window_dims = {2, 4}; }),
        "stablehlo.scatter: C8: update_window_dims contains 4, expected values in [0, 4)"},
       {"C9", change_scatter([](ScatterDims& s) { s.inserted_window_dims = {0}; }),
        "stablehlo.scatter: C9: inserted_window_dims + input_batching_dims is [0, 0], expected no "
        "value twice"},
       {"C10", change_scatter([](ScatterDims& s) {
          s.inserted_window_dims = {2, 1};
          s.update_window_dims = {2};
        }),
        "stablehlo.scatter: C10: inserted_window_dims is [2, 1], expected ascending values"},
       {"C11", change_scatter([](ScatterDims& s) { s.inserted_window_dims = {4}; }),
        "stablehlo.scatter: C11: inserted_window_dims contains 4, expected values in [0, 4)"},
       {"C12", change_scatter([](ScatterDims& s) {
          s.input_batching_dims = {2, 0};
          s.update_window_dims = {2};
        }),
        "stablehlo.scatter: C12: input_batching_dims is [2, 0], expected ascending values"},
       {"C13", change_scatter([](ScatterDims& s) { s.input_batching_dims = {4}; }),
        "stablehlo.scatter: C13: input_batching_dims contains 4, expected values in [0, 4)"},
       {"C14", change_scatter([](ScatterDims& s) { s.scatter_indices_batching_dims = {1, 1}; }),
        "stablehlo.scatter: C14: scatter_indices_batching_dims is [1, 1], expected no value twice"},
       {"C15", change_scatter([](ScatterDims& s) { s.scatter_indices_batching_dims = {3}; }),
        "stablehlo.scatter: C15: scatter_indices_batching_dims contains 3, expected values in [0, "
        "3)"},
       {"C16", change_scatter([](ScatterDims& s) { s.scatter_indices_batching_dims = {2}; }),
        "stablehlo.scatter: C16: scatter_indices_batching_dims contains index_vector_dim 2"},
       {"C17", change_scatter([](ScatterDims& s) { s.scatter_indices_batching_dims = {}; }),
        "stablehlo.scatter: C17: scatter_indices_batching_dims has length 0, expected 1"},
       {"C18", change_scatter([](ScatterDims& s) { s.scatter_indices_batching_dims = {0}; }),
        "stablehlo.scatter: C18: batching dimension sizes differ: 2 and 4"},
       {"C19", change_scatter([](ScatterDims& s) { s.scatter_dims_to_operand_dims = {1}; }),
        "stablehlo.scatter: C19: scatter_dims_to_operand_dims has length 1, expected 2"},
       {"C20", change_scatter([](ScatterDims& s) { s.scatter_dims_to_operand_dims = {1, 0}; }),
        "stablehlo.scatter: C20: scatter_dims_to_operand_dims + input_batching_dims is [1, 0, 0], "
        "expected no value twice"},
       {"C21", change_scatter([](ScatterDims& s) { s.scatter_dims_to_operand_dims = {1, 4}; }),
        "stablehlo.scatter: C21: scatter_dims_to_operand_dims contains 4, expected values in [0, "
        "4)"},
       {"C22", change_scatter([](ScatterDims& s) { s.index_vector_dim = 4; }),
        "stablehlo.scatter: C22: index_vector_dim is 4, expected a value in [0, 4)"},
       {"C23", [](Draft& d) { d.regions[0].results[1] = "f32[]"; },
        "stablehlo.scatter: C23: region 0 takes s32[] as parameter 1, expected f32[]"},
       {"C24", [](Draft& d) { d.stated = {"f32[2,5,6,7]", "s32[2,5,6]"}; },
        "stablehlo.scatter: C24: type of result 1 is s32[2,5,6], expected s32[2,5,6,7]"},
       {"C25", [](Draft& d) { d.stated = {"f64[2,5,6,7]", "s32[2,5,6,7]"}; },
        "stablehlo.scatter: C25: type of result 0 is f64[2,5,6,7], expected f32[2,5,6,7]"}});
}

}  // namespace
}  // namespace tenon::hlo::testing
