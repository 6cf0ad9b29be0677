#include "hlo/inference/infer.h"
#include "hlo/inference/infer_test_util.h"

namespace tenon::hlo::testing {
namespace {

TEST(InferChloBroadcast, every_binary_op) {
  for (const OpInfo& info : all_ops()) {
    if (info.infer != infer::chlo_broadcast || info.operand_names().size() != 2) continue;
    SCOPED_TRACE(info.name);
    const bool takes_integers = info.name.find("and") != std::string_view::npos ||
                                info.name.find("or") != std::string_view::npos ||
                                info.name.find("shift") != std::string_view::npos;
    const std::string element = takes_integers ? "s32" : "f32";
    Draft draft{info.code, {(element + "[2,1]").c_str(), (element + "[4,1,3]").c_str()}, {}, {}, {},
                {}};
    std::string expected = element + "[4,2,3]";
    if (info.code == OpCode::kChloBroadcastComplex) expected = "c64[4,2,3]";
    if (info.code == OpCode::kChloBroadcastCompare) {
      expected = "pred[4,2,3]";
      draft.attributes[AttrKey::comparison_direction] =
          word(EnumKind::kComparisonDirection, ComparisonDirection::kLt);
    }
    EXPECT_EQ(outcome(draft), expected);
  }
}

TEST(InferChloBroadcast, clauses) {
  check_clauses(
      {OpCode::kChloBroadcastAdd, {"f32[2,3]", "f32[3]"}, {}, {}, {}, {}}, "f32[2,3]",
      {{"scalar", [](Draft& d) { d.operands[1] = "f32[]"; }, "f32[2,3]"},
       {"unknown", [](Draft& d) { d.operands[0] = "f32[?,?]"; }, "f32[?,3]"},
       {"dimensions",
        [](Draft& d) {
          d.operands[1] = "f32[2]";
          d.attributes[AttrKey::broadcast_dimensions] = I64s{0};
        },
        "f32[2,3]"},
       {"sizes", [](Draft& d) { d.operands[1] = "f32[2]"; },
        "chlo.broadcast_add: sizes 2 and 3 of dimension 1 do not broadcast"},
       {"elements", [](Draft& d) { d.operands[1] = "f64[3]"; },
        "chlo.broadcast_add: element types differ: f32 and f64"},
       {"dimension count", set(AttrKey::broadcast_dimensions, I64s{0, 1}),
        "chlo.broadcast_add: broadcast_dimensions has length 2, expected 1"},
       {"dimension range", set(AttrKey::broadcast_dimensions, I64s{2}),
        "chlo.broadcast_add: broadcast_dimensions contains 2, expected values in [0, 2)"},
       {"result", [](Draft& d) { d.stated = {"f32[3]"}; },
        "chlo.broadcast_add: result type is f32[3], expected f32[2,3]"},
       {"integers alone", [](Draft& d) { d.code = OpCode::kChloBroadcastShiftLeft; },
        "chlo.broadcast_shift_left: lhs is f32[2,3], which stablehlo.shift_left does not take"},
       {"order of numbers that have none",
        [](Draft& d) {
          d.code = OpCode::kChloBroadcastCompare;
          d.operands = {"s32[2,3]", "s32[3]"};
          d.attributes[AttrKey::comparison_direction] = EnumAttr{EnumKind::kComparisonDirection, 0};
          d.attributes[AttrKey::compare_type] =
              word(EnumKind::kComparisonType, ComparisonType::kFloat);
        },
        "chlo.broadcast_compare: compare_type is FLOAT, which does not compare s32"}});
}

TEST(InferChloBroadcast, select) {
  check_clauses({OpCode::kChloBroadcastSelect, {"pred[4,1]", "f32[3]", "f32[]"}, {}, {}, {}, {}},
                "f32[4,3]",
                {{"pred", [](Draft& d) { d.operands[0] = "s32[]"; },
                  "chlo.broadcast_select: pred is s32[], expected a tensor of pred"},
                 {"elements", [](Draft& d) { d.operands[2] = "s32[]"; },
                  "chlo.broadcast_select: element types differ: f32 and s32"},
                 {"sizes", [](Draft& d) { d.operands[0] = "pred[2]"; },
                  "chlo.broadcast_select: sizes 2 and 3 of dimension 0 do not broadcast"}});
}

TEST(InferChloConstantLike, clauses) {
  check_clauses({OpCode::kChloConstantLike,
                 {"s32[2,?]"},
                 {{AttrKey::value, FloatAttr::of(ElementType::kF32, 3.5)}},
                 {},
                 {},
                 {}},
                "f32[2,?]",
                {{"integer", set(AttrKey::value, IntegerAttr{3, ElementType::kU8}), "u8[2,?]"},
                 {"pred", set(AttrKey::value, true), "pred[2,?]"},
                 {"complex",
                  [](Draft& d) {
                    d.attributes[AttrKey::value] = OpaqueAttr{"#complex.number"};
                    d.stated = {"c64[2,?]"};
                  },
                  "c64[2,?]"},
                 {"complex of another shape",
                  [](Draft& d) {
                    d.attributes[AttrKey::value] = OpaqueAttr{"#complex.number"};
                    d.stated = {"c64[3]"};
                  },
                  "chlo.constant_like: result is c64[3], expected the shape of s32[2,?]"},
                 {"result", [](Draft& d) { d.stated = {"f64[2,?]"}; },
                  "chlo.constant_like: result type is f64[2,?], expected f32[2,?]"}});
}

TEST(InferChloTopK, clauses) {
  check_clauses(
      {OpCode::kChloTopK, {"f32[2,5]"}, {{AttrKey::k, int64_t{3}}}, {}, {}, {}},
      "f32[2,3], s32[2,3]",
      {{"unknown", [](Draft& d) { d.operands = {"f32[?<=4,?]"}; }, "f32[?<=4,3], s32[?<=4,3]"},
       {"k", set(AttrKey::k, int64_t{6}),
        "chlo.top_k: k is 6, expected 0 to the last size in f32[2,5]"},
       {"negative k", set(AttrKey::k, int64_t{-1}),
        "chlo.top_k: k is -1, expected 0 to the last size in f32[2,5]"},
       {"rank", [](Draft& d) { d.operands = {"f32[]"}; },
        "chlo.top_k: operand is f32[], expected rank 1 or more"},
       {"result", [](Draft& d) { d.stated = {"f32[2,3]", "s64[2,3]"}; },
        "chlo.top_k: type of result 1 is s64[2,3], expected s32[2,3]"}});
}

TEST(InferChloScan, ScalesStayAsTheyAre) {
  const Type half = quantized({}, 0.5);
  const Type two = quantized({}, 2);
  check_clauses({OpCode::kChloScan,
                 {quantized({5}, 0.5), half},
                 {{AttrKey::dimension, int64_t{0}}},
                 {{{half, half}, {half, half}, true}},
                 {},
                 {}},
                "q<s8:f32, 0.5>[5], q<s8:f32, 0.5>[]",
                {{"parameter", [&](Draft& d) { d.regions[0].parameters[0] = two; },
                  "chlo.scan: q<s8:f32, 0.5>[] is handed on as q<s8:f32, 2.0>[]"},
                 {"carry", [&](Draft& d) { d.regions[0].results[1] = two; },
                  "chlo.scan: q<s8:f32, 2.0>[] is handed on as q<s8:f32, 0.5>[]"},
                 {"result", [&](Draft& d) { d.stated = {quantized({5}, 0.5), two}; },
                  "chlo.scan: q<s8:f32, 0.5>[] is handed on as q<s8:f32, 2.0>[]"}});
}

TEST(InferChloScan, clauses) {
  // One input of 5 steps of f32[2], one carry; one output of s32[2] per step.
  check_clauses(
      {OpCode::kChloScan,
       {"f32[2,5]", "f32[]"},
       {{AttrKey::dimension, int64_t{1}}},
       {{{"f32[2]", "f32[]"}, {"s32[2]", "f32[]"}, true}},
       {},
       {}},
      "s32[2,5], f32[]",
      {{"steps alone",
        [](Draft& d) {
          d.operands = {"f32[]"};
          d.regions[0].parameters = {"f32[]"};
          d.attributes[AttrKey::scan_dim_size] = int64_t{7};
        },
        "s32[2,7], f32[]"},
       {"dimension", set(AttrKey::dimension, int64_t{2}),
        "chlo.scan: dimension is 2, expected a value in [0, 2)"},
       {"negative dimension", set(AttrKey::dimension, int64_t{-1}),
        "chlo.scan: dimension is -1, expected a value in [0, 2)"},
       {"steps", set(AttrKey::scan_dim_size, int64_t{4}),
        "chlo.scan: input 0 is f32[2,5], expected the size 4 in dimension 1"},
       {"negative steps", set(AttrKey::scan_dim_size, int64_t{-4}),
        "chlo.scan: scan_dim_size is -4, expected at least 0"},
       {"steps of nothing",
        [](Draft& d) {
          d.operands = {"f32[]"};
          d.regions[0] = {{"f32[]"}, {"f32[]"}, true};
        },
        "chlo.scan: has neither inputs, outputs nor scan_dim_size to say its steps"},
       {"no operands", [](Draft& d) { d.operands = {}; }, "chlo.scan: there are no operands"},
       {"parameters", [](Draft& d) { d.regions[0].parameters.pop_back(); },
        "chlo.scan: region 0 takes 1 parameters, expected 2"},
       {"parameter type", [](Draft& d) { d.regions[0].parameters[0] = "f32[3]"; },
        "chlo.scan: region 0 takes (f32[3], f32[]), expected (f32[2], f32[])"},
       {"carry", [](Draft& d) { d.regions[0].results[1] = "f64[]"; },
        "chlo.scan: body returns f64[] as carry 0, expected f32[]"},
       {"no carry", [](Draft& d) { d.regions[0].results = {}; },
        "chlo.scan: body returns 0 values, expected the 1 carries after the outputs"},
       {"output", [](Draft& d) { d.regions[0].results[0] = "s32[]"; },
        "chlo.scan: body returns s32[] as output 0, which cannot be stacked along dimension 1"},
       {"no return", [](Draft& d) { d.regions[0].ends_in_return = false; },
        "chlo.scan: region 0 does not end in a return"}});
}

TEST(InferChloRaggedDot, clauses) {
  // Groups of rows: lhs [m, k], rhs [g, k, n].
  RaggedDotDims rows;
  rows.dot = {{}, {}, {1}, {1}};
  rows.lhs_ragged = {0};
  rows.rhs_group = {0};
  const auto edit = [](const std::function<void(RaggedDotDims&)>& change) {
    return [change](Draft& d) {
      RaggedDotDims dims =
          *d.attributes[AttrKey::ragged_dot_dimension_numbers].get<RaggedDotDims>();
      change(dims);
      d.attributes[AttrKey::ragged_dot_dimension_numbers] = dims;
    };
  };
  check_clauses({OpCode::kChloRaggedDot,
                 {"f32[11,5]", "f32[3,5,7]", "s32[3]"},
                 {{AttrKey::ragged_dot_dimension_numbers, rows}},
                 {},
                 {},
                 {}},
                "f32[11,7]",
                {{"groups of the contracted dimension",
                  [](Draft& d) {
                    RaggedDotDims dims;
                    dims.dot = {{0}, {0}, {2}, {1}};
                    dims.lhs_ragged = {2};
                    d.attributes[AttrKey::ragged_dot_dimension_numbers] = dims;
                    d.operands = {"f32[2,11,5]", "f32[2,5,7]", "s32[2,3]"};
                  },
                  "f32[3,2,11,7]"},
                 {"groups of a batch",
                  [](Draft& d) {
                    RaggedDotDims dims;
                    dims.dot = {{0}, {0}, {2}, {1}};
                    dims.lhs_ragged = {0};
                    d.attributes[AttrKey::ragged_dot_dimension_numbers] = dims;
                    d.operands = {"f32[2,11,5]", "f32[2,5,7]", "s32[3]"};
                  },
                  "f32[2,11,7]"},
                 {"sizes of floats", [](Draft& d) { d.operands[2] = "f32[3]"; },
                  "chlo.ragged_dot: operand 2 is f32[3], expected a tensor of integers"},
                 {"ragged count", edit([](RaggedDotDims& r) { r.lhs_ragged = {0, 1}; }),
                  "chlo.ragged_dot: lhs_ragged_dimensions has length 2, expected 1"},
                 {"ragged range", edit([](RaggedDotDims& r) { r.lhs_ragged = {2}; }),
                  "chlo.ragged_dot: lhs_ragged_dimensions[0] is 2, expected a value in [0, 2)"},
                 {"group range", edit([](RaggedDotDims& r) { r.rhs_group = {3}; }),
                  "chlo.ragged_dot: rhs_group_dimensions contains 3, expected values in [0, 3)"},
                 {"group twice used", edit([](RaggedDotDims& r) { r.rhs_group = {1}; }),
                  "chlo.ragged_dot: rhs group, batching and contracting dimensions is [1, 1], "
                  "expected no value twice"},
                 {"no group", edit([](RaggedDotDims& r) { r.rhs_group = {}; }),
                  "chlo.ragged_dot: rhs_group_dimensions has length 0, expected 1"},
                 {"group of a contraction", edit([](RaggedDotDims& r) { r.lhs_ragged = {1}; }),
                  "chlo.ragged_dot: rhs_group_dimensions has length 1, expected 0"},
                 {"group size", [](Draft& d) { d.operands[2] = "s32[4]"; },
                  "chlo.ragged_dot: group dimension of rhs is 3, expected 4 as in group_sizes"},
                 {"sizes rank", [](Draft& d) { d.operands[2] = "s32[]"; },
                  "chlo.ragged_dot: group_sizes is s32[], expected rank 1 or more"},
                 {"sizes shape", [](Draft& d) { d.operands[2] = "s32[2,3]"; },
                  "chlo.ragged_dot: group_sizes is s32[2,3], expected rank 1 or the sizes of "
                  "dimensions [] of f32[11,5] and the groups"},
                 {"contracted sizes", [](Draft& d) { d.operands[0] = "f32[11,4]"; },
                  "chlo.ragged_dot: contracting dimension sizes differ: 4 and 5"},
                 {"elements", [](Draft& d) { d.operands[1] = "s32[3,5,7]"; },
                  "chlo.ragged_dot: element types differ: f32 and s32"},
                 {"result element", [](Draft& d) { d.stated = {"s32[11,7]"}; },
                  "chlo.ragged_dot: a product of f32 cannot be s32"},
                 {"result", [](Draft& d) { d.stated = {"f32[11]"}; },
                  "chlo.ragged_dot: result type is f32[11], expected f32[11,7]"}});
}

}  // namespace
}  // namespace tenon::hlo::testing
