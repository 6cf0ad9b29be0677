#include "hlo/inference/infer_test_util.h"

namespace tenon::hlo::testing {
namespace {

auto numbers(const DotDims& dims) { return set(AttrKey::dot_dimension_numbers, dims); }
Attribute precisions(std::initializer_list<Precision> values) {
  ArrayAttr list;
  for (Precision value : values) list.push_back(word(EnumKind::kPrecision, value));
  return list;
}

TEST(InferDotGeneral, clauses) {
  const auto algorithm = [](int64_t lhs, int64_t rhs, int64_t operations) {
    DotAlgorithm value;
    value.lhs_component_count = lhs;
    value.rhs_component_count = rhs;
    value.num_primitive_operations = operations;
    return set(AttrKey::algorithm, value);
  };
  check_clauses(
      {OpCode::kDotGeneral,
       {"f32[?,3,4]", "f32[4,2,5]"},
       {{AttrKey::dot_dimension_numbers, DotDims{{0}, {1}, {2}, {0}}}},
       {},
       {},
       {}},
      "f32[2,3,5]",
      {{"outer product", numbers({}), "f32[?,3,4,4,2,5]"},
       {"wider result", [](Draft& d) { d.stated = {"f64[2,3,5]"}; }, "f64[2,3,5]"},
       {"two float types", [](Draft& d) { d.operands[1] = "bf16[4,2,5]"; }, "f32[2,3,5]"},
       {"stored weights", [](Draft& d) { d.operands[1] = "s8[4,2,5]"; }, "f32[2,3,5]"},
       {"a product of weights",
        [](Draft& d) {
          d.operands = {"s4[?,3,4]", "f32[4,2,5]"};
          d.stated = {"f32[2,3,5]"};
        },
        "f32[2,3,5]"},
       {"C1", numbers({{0}, {}, {2}, {0}}),
        "stablehlo.dot_general: C1: rhs_batching_dimensions has length 0, expected 1"},
       {"C2", numbers({{0}, {1}, {2}, {}}),
        "stablehlo.dot_general: C2: rhs_contracting_dimensions has length 0, expected 1"},
       {"C3", numbers({{2}, {1}, {2}, {0}}),
        "stablehlo.dot_general: C3: lhs_batching_dimensions + lhs_contracting_dimensions is [2, "
        "2], expected no value twice"},
       {"C4", numbers({{0}, {0}, {2}, {0}}),
        "stablehlo.dot_general: C4: rhs_batching_dimensions + rhs_contracting_dimensions is [0, "
        "0], expected no value twice"},
       {"C5", numbers({{3}, {1}, {2}, {0}}),
        "stablehlo.dot_general: C5: lhs_batching_dimensions contains 3, expected values in [0, 3)"},
       {"C6", numbers({{0}, {1}, {-1}, {0}}),
        "stablehlo.dot_general: C6: lhs_contracting_dimensions contains -1, expected values in [0, "
        "3)"},
       {"C7", numbers({{0}, {3}, {2}, {0}}),
        "stablehlo.dot_general: C7: rhs_batching_dimensions contains 3, expected values in [0, 3)"},
       {"C8", numbers({{0}, {1}, {2}, {3}}),
        "stablehlo.dot_general: C8: rhs_contracting_dimensions contains 3, expected values in [0, "
        "3)"},
       {"C9", numbers({{1}, {1}, {2}, {0}}),
        "stablehlo.dot_general: C9: batching dimension sizes differ: 3 and 2"},
       {"C10", numbers({{0}, {1}, {1}, {0}}),
        "stablehlo.dot_general: C10: contracting dimension sizes differ: 3 and 4"},
       {"C11",
        set(AttrKey::precision_config,
            precisions({Precision::kHigh, Precision::kHigh, Precision::kHigh})),
        "stablehlo.dot_general: C11: precision_config has length 3, expected 2"},
       {"C11 of one", set(AttrKey::precision_config, precisions({Precision::kHigh})),
        "stablehlo.dot_general: C11: precision_config has length 1, expected 2"},
       {"kind of result", [](Draft& d) { d.stated = {"s32[2,3,5]"}; },
        "stablehlo.dot_general: a product of f32 cannot be s32"},
       {"C12", [](Draft& d) { d.stated = {"f32[2,5,3]"}; },
        "stablehlo.dot_general: C12: result type is f32[2,5,3], expected f32[2,3,5]"},
       {"C13", [](Draft& d) { d.operands[1] = "s32[4,2,5]"; },
        "stablehlo.dot_general: C13: element types differ: f32 and s32"},
       {"C13 of a predicate", [](Draft& d) { d.operands[1] = "pred[4,2,5]"; },
        "stablehlo.dot_general: C13: element types differ: f32 and pred"},
       {"C21",
        [&](Draft& d) {
          algorithm(1, 1, 1)(d);
          d.attributes[AttrKey::precision_config] =
              precisions({Precision::kDefault, Precision::kHighest});
        },
        "stablehlo.dot_general: C21: precision_config has HIGHEST beside an algorithm, expected "
        "DEFAULT"},
       {"algorithm", algorithm(1, 1, 1), "f32[2,3,5]"},
       {"C22", algorithm(0, 1, 1),
        "stablehlo.dot_general: C22: lhs_component_count is 0, expected at least 1"},
       {"C23", algorithm(1, -1, 1),
        "stablehlo.dot_general: C23: rhs_component_count is -1, expected at least 1"},
       {"C24", algorithm(1, 1, 0),
        "stablehlo.dot_general: C24: num_primitive_operations is 0, expected at least 1"},
       {"a token", [](Draft& d) { d.stated = {"token"}; },
        "stablehlo.dot_general: result 0 is token, expected pred, integers, floats, complex, "
        "quantized"}});
}

TEST(InferDotGeneral, quantized) {
  const auto typed = [](ElementType storage, ElementType expressed) {
    QuantizedType q;
    q.storage = storage;
    q.expressed = expressed;
    return Type::quantized_tensor({3, 4}, q);
  };
  check_clauses(
      {OpCode::kDotGeneral,
       {quantized({2, 3}, 0.5, 7), quantized({3, 4})},
       {{AttrKey::dot_dimension_numbers, DotDims{{}, {}, {1}, {0}}}},
       {},
       {quantized({2, 4}, 0.1)},
       {}},
      "q<s8:f32, 0.1>[2,4]",
      {{"I1", [](Draft& d) { d.operands[0] = quantized_per_axis({2, 3}, 0, {1, 2}); },
        "stablehlo.dot_general: I1: operand 0 is q<s8:f32:0, {1.0, 2.0}>[2,3], expected one scale "
        "for the whole tensor"},
       {"scales of another shape",
        [](Draft& d) {
          d.operands[1] = quantized_per_axis({3, 4}, 1, {1, 2, 3, 4});
          d.stated = {quantized_per_axis({2, 4, 2}, 2, {1, 2})};
        },
        "stablehlo.dot_general: type of result 0 is malformed: the quantized dimension does not "
        "exist"},
       {"hybrid",
        [](Draft& d) {
          d.operands[0] = "f32[2,3]";
          d.stated = {"f32[2,4]"};
        },
        "f32[2,4]"},
       {"C14", [](Draft& d) { d.operands[1] = "s8[3,4]"; },
        "stablehlo.dot_general: C14: lhs is q<s8:f32, 0.5:7>[2,3], rhs s8[3,4] and the result "
        "q<s8:f32, 0.1>[2,4], expected a quantized rhs and both or none of the others"},
       {"C14 result", [](Draft& d) { d.stated = {"f32[2,4]"}; },
        "stablehlo.dot_general: C14: lhs is q<s8:f32, 0.5:7>[2,3], rhs q<s8:f32, 0.5>[3,4] and the "
        "result f32[2,4], expected a quantized rhs and both or none of the others"},
       {"C15", [](Draft& d) { d.operands[1] = quantized({3, 4}, 0.5, 1); },
        "stablehlo.dot_general: C15: rhs is q<s8:f32, 0.5:1>[3,4], expected zero points of 0"},
       {"C16", [](Draft& d) { d.operands[1] = quantized_per_axis({3, 4}, 0, {1, 2, 3}); },
        "stablehlo.dot_general: C16: rhs is quantized along dimension 0, which is contracted"},
       {"C17", [=](Draft& d) { d.operands[1] = typed(ElementType::kS16, ElementType::kF32); },
        "stablehlo.dot_general: C17: storage types differ: s8 and s16"},
       {"C18", [=](Draft& d) { d.operands[1] = typed(ElementType::kS8, ElementType::kF64); },
        "stablehlo.dot_general: C18: expressed types differ: f32, f64 and f32"},
       {"C19", [](Draft& d) { d.stated = {quantized_per_axis({2, 4}, 0, {1, 2})}; },
        "stablehlo.dot_general: C19: result is q<s8:f32:0, {1.0, 2.0}>[2,4], expected one scale as "
        "rhs has"},
       {"C20",
        [](Draft& d) {
          d.operands[0] = "f16[2,3]";
          d.stated = {"f16[2,4]"};
        },
        "stablehlo.dot_general: C20: lhs is f16[2,3] and the result f16[2,4], expected f32, the "
        "expressed type of rhs"}});
}

TEST(InferDot, clauses) {
  check_clauses({OpCode::kDot, {"f32[2,3]", "f32[3,4]"}, {}, {}, {}, {}}, "f32[2,4]",
                {{"vectors", [](Draft& d) { d.operands = {"f32[3]", "f32[3]"}; }, "f32[]"},
                 {"sizes", [](Draft& d) { d.operands[1] = "f32[4,3]"; },
                  "stablehlo.dot: cannot multiply f32[2,3] by f32[4,3]: expected vectors or "
                  "matrices that share the contracted size"},
                 {"ranks", [](Draft& d) { d.operands[0] = "f32[]"; },
                  "stablehlo.dot: cannot multiply f32[] by f32[3,4]: expected vectors or matrices "
                  "that share the contracted size"},
                 {"elements", [](Draft& d) { d.operands[1] = "c64[3,4]"; },
                  "stablehlo.dot: element types differ: f32 and c64"},
                 {"result", [](Draft& d) { d.stated = {"f32[2]"}; },
                  "stablehlo.dot: result type is f32[2], expected f32[2,4]"}});
}

TEST(InferEinsum, clauses) {
  const auto config = [](const char* text) {
    return set(AttrKey::einsum_config, std::string(text));
  };
  check_clauses(
      {OpCode::kEinsum,
       {"f32[2,3]", "f32[?,4]"},
       {{AttrKey::einsum_config, std::string("ab,bc->ca")}},
       {},
       {},
       {}},
      "f32[4,2]",
      {{"no arrow", config("ab,bc"), "stablehlo.einsum: einsum_config \"ab,bc\" has no \"->\""},
       {"operands", config("ab->a"),
        "stablehlo.einsum: einsum_config \"ab->a\" does not name each operand once"},
       {"rank", config("ab,b->a"),
        "stablehlo.einsum: einsum_config \"ab,b->a\" differs from the operands in rank"},
       {"labels", config("a1,1c->ac"),
        "stablehlo.einsum: einsum_config \"a1,1c->ac\" has labels other than letters"},
       {"sizes", config("aa,bc->c"),
        "stablehlo.einsum: einsum_config \"aa,bc->c\" gives 'a' the sizes 2 and 3"},
       {"unknown output", config("ab,bc->d"),
        "stablehlo.einsum: einsum_config \"ab,bc->d\" has an output label that is unknown or twice "
        "there"},
       {"output twice", config("ab,bc->aa"),
        "stablehlo.einsum: einsum_config \"ab,bc->aa\" has an output label that is unknown or "
        "twice there"},
       {"elements", [](Draft& d) { d.operands[1] = "s32[3,4]"; },
        "stablehlo.einsum: element types differ: f32 and s32"}});
  check_clauses(
      {OpCode::kUnaryEinsum,
       {"f32[2,3]"},
       {{AttrKey::einsum_config, std::string("ab->b")}},
       {},
       {},
       {}},
      "f32[3]",
      {{"diagonal",
        [&](Draft& d) {
          d.operands = {"f32[3,?]"};
          config("aa->a")(d);
        },
        "f32[3]"},
       {"operands", config("a,b->b"),
        "stablehlo.unary_einsum: einsum_config \"a,b->b\" does not name each operand once"}});
}

ConvDims nhwc() {
  ConvDims dims;
  dims.input_batch = 0;
  dims.input_spatial = {1, 2};
  dims.input_feature = 3;
  dims.kernel_spatial = {0, 1};
  dims.kernel_input_feature = 2;
  dims.kernel_output_feature = 3;
  dims.output_batch = 0;
  dims.output_spatial = {1, 2};
  dims.output_feature = 3;
  return dims;
}

auto conv(const std::function<void(ConvDims&)>& change) {
  return [change](Draft& d) {
    ConvDims dims = nhwc();
    change(dims);
    d.attributes[AttrKey::dimension_numbers] = dims;
  };
}

Draft convolution() {
  return {OpCode::kConvolution,
          {"f32[4,8,9,6]", "f32[3,2,6,10]"},
          {{AttrKey::dimension_numbers, nhwc()},
           {AttrKey::feature_group_count, int64_t{1}},
           {AttrKey::batch_group_count, int64_t{1}}},
          {},
          {},
          {}};
}

TEST(InferConvolution, clauses) {
  check_clauses(
      convolution(), "f32[4,6,8,10]",
      {{"window",
        [](Draft& d) {
          d.attributes[AttrKey::window_strides] = I64s{2, 1};
          d.attributes[AttrKey::padding] = I64Matrix{2, 2, {1, 1, 0, -2}};
          d.attributes[AttrKey::lhs_dilation] = I64s{1, 2};
          d.attributes[AttrKey::rhs_dilation] = I64s{2, 1};
        },
        // (8+2-5)/2+1 = 3; (17-2-2)+1 = 14.
        "f32[4,3,14,10]"},
       {"unknown", [](Draft& d) { d.operands[0] = "f32[?,?,9,6]"; }, "f32[?,?,8,10]"},
       {"wider result", [](Draft& d) { d.stated = {"f64[4,6,8,10]"}; }, "f64[4,6,8,10]"},
       {"feature groups",
        [](Draft& d) {
          d.attributes[AttrKey::feature_group_count] = int64_t{2};
          d.operands[1] = "f32[3,2,3,10]";
        },
        "f32[4,6,8,10]"},
       {"batch groups", set(AttrKey::batch_group_count, int64_t{2}), "f32[2,6,8,10]"},
       {"C1", [](Draft& d) { d.operands[1] = "f32[3,2,6]"; },
        "stablehlo.convolution: C1: operands are f32[4,8,9,6] and f32[3,2,6], expected the same "
        "rank of at least 2"},
       {"C1 rank", [](Draft& d) { d.operands = {"f32[3]", "f32[3]"}; },
        "stablehlo.convolution: C1: operands are f32[3] and f32[3], expected the same rank of at "
        "least 2"},
       {"C2", set(AttrKey::window_strides, I64s{1}),
        "stablehlo.convolution: C2: window_strides has length 1, expected 2"},
       {"C3", set(AttrKey::window_strides, I64s{1, 0}),
        "stablehlo.convolution: C3: window_strides contains 0, expected positive values"},
       {"C4", set(AttrKey::padding, I64Matrix{1, 2, {0, 0}}),
        "stablehlo.convolution: C4: padding has shape [1, 2], expected [2, 2]"},
       {"C5", set(AttrKey::lhs_dilation, I64s{1}),
        "stablehlo.convolution: C5: lhs_dilation has length 1, expected 2"},
       {"C6", set(AttrKey::lhs_dilation, I64s{0, 1}),
        "stablehlo.convolution: C6: lhs_dilation contains 0, expected positive values"},
       {"C7", set(AttrKey::rhs_dilation, I64s{1, 1, 1}),
        "stablehlo.convolution: C7: rhs_dilation has length 3, expected 2"},
       {"C8", set(AttrKey::rhs_dilation, I64s{1, -1}),
        "stablehlo.convolution: C8: rhs_dilation contains -1, expected positive values"},
       {"C9", set(AttrKey::window_reversal, BoolsAttr{{1}}),
        "stablehlo.convolution: C9: window_reversal has length 1, expected 2"},
       {"C10", set(AttrKey::batch_group_count, int64_t{5}),
        "stablehlo.convolution: C10: input batch size is 4, expected a multiple of "
        "batch_group_count 5"},
       {"C11", set(AttrKey::feature_group_count, int64_t{5}),
        "stablehlo.convolution: C11: input feature size is 6, expected a multiple of "
        "feature_group_count 5"},
       {"C12", conv([](ConvDims& c) { c.input_spatial = {1}; }),
        "stablehlo.convolution: C12: input_spatial_dimensions has length 1, expected 2"},
       {"C13", conv([](ConvDims& c) { c.input_batch = 3; }),
        "stablehlo.convolution: C13: input dimensions is [1, 2, 3, 3], expected no value twice"},
       {"C13 range", conv([](ConvDims& c) { c.input_feature = 4; }),
        "stablehlo.convolution: C13: input dimensions contains 4, expected values in [0, 4)"},
       {"C14", [](Draft& d) { d.operands[1] = "f32[3,2,5,10]"; },
        "stablehlo.convolution: C14: kernel input feature size is 5, expected 6 / 1"},
       {"C15", [](Draft& d) { d.attributes[AttrKey::batch_group_count] = int64_t{4}; },
        "stablehlo.convolution: C15: kernel output feature size is 10, expected a multiple of "
        "batch_group_count 4"},
       {"C16",
        [](Draft& d) {
          d.attributes[AttrKey::feature_group_count] = int64_t{3};
          d.operands[1] = "f32[3,2,2,10]";
        },
        "stablehlo.convolution: C16: kernel output feature size is 10, expected a multiple of "
        "feature_group_count 3"},
       {"C17", conv([](ConvDims& c) { c.kernel_spatial = {0}; }),
        "stablehlo.convolution: C17: kernel_spatial_dimensions has length 1, expected 2"},
       {"C18", conv([](ConvDims& c) { c.kernel_input_feature = 0; }),
        "stablehlo.convolution: C18: kernel dimensions is [0, 1, 0, 3], expected no value twice"},
       {"C19", conv([](ConvDims& c) { c.output_spatial = {}; }),
        "stablehlo.convolution: C19: output_spatial_dimensions has length 0, expected 2"},
       {"C20", conv([](ConvDims& c) { c.output_batch = -1; }),
        "stablehlo.convolution: C20: output dimensions contains -1, expected values in [0, 4)"},
       {"C21", set(AttrKey::feature_group_count, int64_t{0}),
        "stablehlo.convolution: C21: feature_group_count is 0, expected at least 1"},
       {"C22", set(AttrKey::batch_group_count, int64_t{-2}),
        "stablehlo.convolution: C22: batch_group_count is -2, expected at least 1"},
       {"C23",
        [](Draft& d) {
          d.attributes[AttrKey::feature_group_count] = int64_t{2};
          d.attributes[AttrKey::batch_group_count] = int64_t{2};
        },
        "stablehlo.convolution: C23: feature_group_count is 2 and batch_group_count 2, expected "
        "one of them to be 1"},
       {"C24",
        set(AttrKey::precision_config,
            precisions({Precision::kHigh, Precision::kHigh, Precision::kHigh})),
        "stablehlo.convolution: C24: precision_config has length 3, expected 2"},
       {"C25", [](Draft& d) { d.stated = {"f32[4,6,9,10]"}; },
        "stablehlo.convolution: C25: result type is f32[4,6,9,10], expected f32[4,6,8,10]"},
       {"C25 overflow", set(AttrKey::lhs_dilation, I64s{kHuge, 1}),
        "stablehlo.convolution: C25: the padded size of spatial dimension 0 overflows"},
       {"C25 rank", [](Draft& d) { d.stated = {"f32[4,6,8]"}; },
        "stablehlo.convolution: C25: result type is f32[4,6,8], expected f32[4,6,8,10]"},
       {"C27 kind of result", [](Draft& d) { d.stated = {"c64[4,6,8,10]"}; },
        "stablehlo.convolution: C27: a product of f32 cannot be c64"},
       {"C27", [](Draft& d) { d.operands[1] = "f64[3,2,6,10]"; },
        "stablehlo.convolution: C27: element types differ: f32 and f64"}});
}

TEST(InferConvolution, quantized) {
  Draft sound = convolution();
  sound.operands = {quantized({4, 8, 9, 6}), quantized({3, 2, 6, 2})};
  sound.stated = {quantized({4, 6, 8, 2}, 0.1)};
  check_clauses(
      sound, "q<s8:f32, 0.1>[4,6,8,2]",
      {{"C28", [](Draft& d) { d.stated = {"f32[4,6,8,2]"}; },
        "stablehlo.convolution: C28: lhs is q<s8:f32, 0.5>[4,8,9,6], rhs q<s8:f32, 0.5>[3,2,6,2] "
        "and the result f32[4,6,8,2], expected a quantized rhs and both or none of the others"},
       {"C29", [](Draft& d) { d.operands[1] = quantized_per_axis({3, 2, 6, 2}, 1, {1, 2}); },
        "stablehlo.convolution: C29: rhs is quantized along dimension 1, expected 3, its output "
        "feature"},
       {"C30", [](Draft& d) { d.stated = {quantized_per_axis({4, 6, 8, 2}, 0, {1, 2, 3, 4})}; },
        "stablehlo.convolution: C30: result is quantized along dimension 0, expected 3, its "
        "feature"},
       {"C31",
        [](Draft& d) {
          QuantizedType q;
          q.storage = ElementType::kS16;
          d.operands[1] = Type::quantized_tensor({3, 2, 6, 2}, q);
        },
        "stablehlo.convolution: C31: storage types differ: s8 and s16"},
       {"C32",
        [](Draft& d) {
          QuantizedType q;
          q.expressed = ElementType::kF64;
          d.operands[1] = Type::quantized_tensor({3, 2, 6, 2}, q);
        },
        "stablehlo.convolution: C32: expressed types differ: f32, f64 and f32"},
       {"C33", [](Draft& d) { d.stated = {quantized_per_axis({4, 6, 8, 2}, 3, {1, 2})}; },
        "stablehlo.convolution: C33: result is q<s8:f32:3, {1.0, 2.0}>[4,6,8,2], expected one "
        "scale as rhs has"},
       {"C34",
        [](Draft& d) {
          d.operands[0] = "f16[4,8,9,6]";
          d.stated = {"f16[4,6,8,2]"};
        },
        "stablehlo.convolution: C34: lhs is f16[4,8,9,6] and the result f16[4,6,8,2], expected "
        "f32, the expressed type of rhs"}});
}

TEST(InferDynamicConv, clauses) {
  Draft sound = convolution();
  sound.code = OpCode::kDynamicConv;
  sound.operands.emplace_back("s64[2,2]");
  check_clauses(
      sound, "f32[4,?,?,10]",
      {{"constant padding", [](Draft& d) { d.constants[2] = I64s{1, 1, 0, 0}; }, "f32[4,8,8,10]"},
       {"C4", [](Draft& d) { d.operands[2] = "s64[2]"; },
        "stablehlo.dynamic_conv: C4: padding is s64[2], expected the shape [2, 2]"},
       {"I3", [](Draft& d) { d.operands[2] = "f32[2,2]"; },
        "stablehlo.dynamic_conv: I3: operand 2 is f32[2,2], expected a tensor of integers"},
       {"C11", set(AttrKey::feature_group_count, int64_t{5}),
        "stablehlo.dynamic_conv: C11: input feature size is 6, expected a multiple of "
        "feature_group_count 5"}});
}

}  // namespace
}  // namespace tenon::hlo::testing
