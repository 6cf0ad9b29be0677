// The domain com.microsoft: activations, products with what stands around them, normalisations.
//
// ONNX Runtime's page ContribOperators defines these ops; its optimizer and the tools
// that quantise or export models write them.
#include <cmath>

#include "hlo/onnx/ops/windows.h"

namespace tenon::hlo {
namespace {

using Lm = OnnxLowering;

// --- Activations

// The op of a version of ai.onnx.
Values standard(Lm& n, std::string_view op, const Values& inputs, int64_t version,
                OnnxAttributes attributes, size_t results = 1) {
  return n.scope().lower(op, inputs, std::move(attributes), results, n.builder(), version);
}

OnnxAttribute attribute_of(double value) {
  OnnxAttribute made;
  made.real = static_cast<float>(value);
  return made;
}

// Gelu, BiasGelu and FastGelu, whose parameter is 1: of x, or of x + bias.
Values lower_gelu_of_sum(Lm& n) {
  const Value x = n.has(1) ? n.add(n.in(0), n.in(1)) : n.in(0);
  OnnxAttribute form;
  form.text = n.row().parameter == 1 ? "tanh" : "none";
  return standard(n, "Gelu", {x}, 20, {{"approximate", form}});
}

Values lower_quick_gelu(Lm& n) {
  const Value x = n.in(0);
  return {n.mul(x, n.sigmoid(n.mul(x, n.real("alpha", 1.702))))};
}

// The activation that a fused op states; `parameter` gives its numbers.
Value activated(Lm& n, Value x, const std::function<double(size_t, double)>& parameter) {
  const std::string name = n.text("activation", "");
  if (name.empty()) return x;
  if (name == "Relu") return n.max(x, 0);
  if (name == "Tanh") return n.tanh(x);
  if (name == "Sigmoid") return n.sigmoid(x);
  if (name == "LeakyRelu") {
    const Value below = n.mul(x, parameter(0, 0.01));
    return n.select(n.compare(Direction::kLt, x, 0), below, x);
  }
  if (name == "Clip") {
    constexpr double kMost = std::numeric_limits<float>::max();
    return n.min(n.max(x, parameter(0, -kMost)), parameter(1, kMost));
  }
  if (name == "HardSigmoid") {
    return n.max(n.min(n.add(n.mul(x, parameter(0, 0.2)), parameter(1, 0.5)), 1), 0);
  }
  refuse_onnx("the activation {} is not supported", name);
}

// --- Products

Value last_two_swapped(Lm& n, Value x) {
  if (n.rank_of(x) < 2) return x;
  I64s order = all_axes(n.rank_of(x));
  std::swap(order.back(), order[order.size() - 2]);
  return n.transpose(x, order);
}

Values lower_fused_matmul(Lm& n) {
  if (n.flag("transBatchA") || n.flag("transBatchB"))
    refuse_onnx("transposed batches are not supported");
  const Value a = n.flag("transA") ? last_two_swapped(n, n.in(0)) : n.in(0);
  const Value b = n.flag("transB") ? last_two_swapped(n, n.in(1)) : n.in(1);
  const Value product = n.matmul(a, b);
  const double alpha = n.real("alpha", 1);
  return {alpha == 1 ? product : n.mul(product, alpha)};
}

OnnxAttributes without_activation(Lm& n) {
  auto attributes = n.node().attributes;
  std::erase_if(attributes, [](const auto& each) { return each.first.starts_with("activation"); });
  return attributes;
}

Values lower_fused_gemm(Lm& n) {
  const Value y = standard(n, "Gemm", n.inputs(), 13, without_activation(n))[0];
  const std::string names[] = {"activation_alpha", "activation_beta"};
  return {activated(n, y, [&](size_t i, double otherwise) { return n.real(names[i], otherwise); })};
}

Values lower_fused_conv(Lm& n) {
  Value y = onnx_convolution_of(n, n.in(0), n.in(1));
  if (n.has(2)) y = n.add(y, n.broadcast_in_dim(n.in(2), n.dims_of(y), {1}));
  if (n.has(3)) y = n.add(y, n.in(3));
  const OnnxAttribute* const given = n.attribute("activation_params");
  return {activated(n, y, [&](size_t i, double otherwise) {
    return given != nullptr && i < given->reals.size() ? given->reals[i] : otherwise;
  })};
}

// --- Normalisations

// The normalisation of input + skip + bias, and that sum.
Values lower_skip_layer_normalization(Lm& n) {
  const bool simplified = n.row().parameter == 1;
  const size_t bias = simplified ? 3 : 4;
  Value sum = n.add(n.in(0), n.in(1));
  if (n.has(bias)) sum = n.add(sum, n.in(bias));
  const OnnxAttribute epsilon = attribute_of(n.real("epsilon", 1e-12));
  if (simplified) {
    const Values y = standard(n, "RMSNormalization", {sum, n.in(2)}, 23, {{"epsilon", epsilon}}, 2);
    return {y[0], {}, y[1], sum};
  }
  Values y = standard(n, "LayerNormalization", {sum, n.in(2), n.has(3) ? n.in(3) : Value{}}, 17,
                      {{"epsilon", epsilon}}, 3);
  y.push_back(sum);
  return y;
}

// Inputs: words, segments, three tables, gamma, beta, a mask, positions.
Values lower_embed_layer_normalization(Lm& n) {
  const Value words = n.in(0);
  n.check_rank(words, 2, 2);
  if (n.has(7)) n.check_rank(n.in(7), 2, 2);
  Value sum = n.take(n.in(2), words, 0);
  const Value positions = n.has(8) ? n.in(8) : n.iota(n.type_of(words), n.dims_of(words), 1);
  sum = n.add(sum, n.take(n.in(3), positions, 0));
  if (n.has(4)) {  // Without segments all words are of the first.
    const Value segment = n.has(1) ? n.take(n.in(4), n.in(1), 0) : n.slice_of(n.in(4), 0, 0, 1);
    sum = n.add(sum, segment);
  }
  const Value y = standard(n, "LayerNormalization", {sum, n.in(5), n.in(6)}, 17,
                           {{"epsilon", attribute_of(n.real("epsilon", 1e-12))}})[0];
  const Value counted = n.has(7) ? n.sum(n.convert(n.in(7), ElementType::kS32), {1}, false)
                                 : n.splat(ElementType::kS32, {n.dims_of(words)[0]}, 0);
  return {y, counted, sum};
}

// --- Others

// Ops that became those of a version of ai.onnx, with the same inputs and attributes.
Values lower_as_standard(Lm& n) {
  return standard(n, n.node().op_type, n.inputs(), n.row().parameter, n.node().attributes,
                  n.output_count());
}

Values lower_expand_dims(Lm& n) {
  const int64_t axis = n.known_integer(1), rank = n.rank_of(n.in(0));
  return {n.unsqueeze(n.in(0), {normal_axis(axis, rank + 1)})};
}

// The distances of the rows of two matrices.
Values lower_cdist(Lm& n) {
  const Value a = n.in(0), b = n.in(1);
  n.check_rank(a, 2, 2);
  n.check_rank(b, 2, 2);
  const std::string metric = n.text("metric", "sqeuclidean");
  if (metric != "sqeuclidean" && metric != "euclidean")
    refuse_onnx("the metric {} is not supported", metric);
  const Value apart = n.sub(n.unsqueeze(a, {1}), n.unsqueeze(b, {0}));
  const Value squares = n.sum(n.mul(apart, apart), {2}, false);
  return {metric == "euclidean" ? n.sqrt(squares) : squares};
}

constexpr OnnxRow kMicrosoftRows[] = {
    {"BiasGelu", 1, lower_gelu_of_sum, 0, kMicrosoftDomain},
    {"CDist", 1, lower_cdist, 0, kMicrosoftDomain},
    {"EmbedLayerNormalization", 1, lower_embed_layer_normalization, 0, kMicrosoftDomain},
    {"ExpandDims", 1, lower_expand_dims, 0, kMicrosoftDomain},
    {"FastGelu", 1, lower_gelu_of_sum, 1, kMicrosoftDomain},
    {"FusedConv", 1, lower_fused_conv, 0, kMicrosoftDomain},
    {"FusedGemm", 1, lower_fused_gemm, 0, kMicrosoftDomain},
    {"FusedMatMul", 1, lower_fused_matmul, 0, kMicrosoftDomain},
    {"GatherND", 1, lower_as_standard, 12, kMicrosoftDomain},
    {"Gelu", 1, lower_gelu_of_sum, 0, kMicrosoftDomain},
    {"GridSample", 1, lower_as_standard, 16, kMicrosoftDomain},
    {"Pad", 1, lower_as_standard, 13, kMicrosoftDomain},
    {"QuickGelu", 1, lower_quick_gelu, 0, kMicrosoftDomain},
    {"SkipLayerNormalization", 1, lower_skip_layer_normalization, 0, kMicrosoftDomain},
    {"SkipSimplifiedLayerNormalization", 1, lower_skip_layer_normalization, 1, kMicrosoftDomain},
    {"TransposeMatMul", 1, lower_fused_matmul, 0, kMicrosoftDomain},
    {"Trilu", 1, lower_as_standard, 14, kMicrosoftDomain},
};

}  // namespace

std::span<const OnnxRow> onnx_microsoft_rows() { return kMicrosoftRows; }

}  // namespace tenon::hlo
