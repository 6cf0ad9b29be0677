// Every row of the table on random nodes: most do not fit the op, and must be refused by an error.
#include <gtest/gtest.h>

#include <random>

#include "hlo/onnx/importer.h"
#include "hlo/onnx/lowering.h"
#include "hlo/verify/verify.h"

namespace tenon::hlo {
namespace {

class RandomNodes {
 public:
  explicit RandomNodes(uint32_t seed) : random_(seed) {}

  /// A model of one node of the row's op; some of its inputs are initializers.
  OnnxModel model(const OnnxRow& row) {
    OnnxModel made;
    made.opsets[""] = kNewestOnnxOpset;
    made.opsets[std::string(row.domain)] = row.since;
    OnnxNode node;
    node.domain = row.domain;
    node.op_type = row.name;
    const int64_t inputs = below(7);
    ElementType type = any_type();
    Dims dims = any_dims();
    for (int64_t i = 0; i < inputs; ++i) {
      if (below(4) == 0) type = any_type();
      if (below(2) == 0) dims = any_dims();
      const std::string name = below(8) == 0 ? "" : fmt::format("i{}", i);
      node.inputs.push_back(name);
      if (name.empty()) continue;
      if (below(2) == 0) {
        made.graph.initializers.emplace_back(name, any_literal(type, dims));
      } else {
        OnnxValueInfo info;
        info.name = name;
        info.element_type = type;
        info.type = Type::tensor(type, dims);
        info.symbols.resize(dims.size());
        made.graph.inputs.push_back(std::move(info));
      }
    }
    const int64_t outputs = 1 + below(3);
    for (int64_t i = 0; i < outputs; ++i) node.outputs.push_back(fmt::format("o{}", i));
    made.graph.outputs.emplace_back().name = "o0";
    add_attributes(node);
    made.graph.nodes.push_back(std::move(node));
    return made;
  }

 private:
  int64_t below(int64_t most) {
    return static_cast<int64_t>(random_() % static_cast<uint32_t>(most));
  }

  ElementType any_type() {
    using enum ElementType;
    static constexpr ElementType kTypes[] = {kF32,  kF32, kF32, kS64,  kS64,      kS32, kU8, kS8,
                                             kPred, kF16, kF64, kBF16, kF8E4M3FN, kS4,  kC64};
    return kTypes[below(std::size(kTypes))];
  }
  Dims any_dims() {
    Dims dims(static_cast<size_t>(below(6)));
    for (int64_t& each : dims) each = below(12) == 0 ? 0 : 1 + below(4);
    return dims;
  }
  int64_t any_integer() {
    static constexpr int64_t kFar[] = {INT64_MAX, INT64_MIN, int64_t{1} << 40, -(int64_t{1} << 33),
                                       100};
    return below(10) == 0 ? kFar[below(std::size(kFar))] : below(9) - 3;
  }
  Literal any_literal(ElementType type, const Dims& dims) {
    Literal literal(Shape(type, dims));
    for (int64_t i = 0; i < literal.element_count(); ++i) {
      if (is_complex(type)) {
        literal.set_complex(i, {1, 2});
      } else if (is_float(type)) {
        literal.set_double(i, static_cast<double>(any_integer()));
      } else {
        literal.set_integer(i, is_pred(type) ? below(2) : any_integer());
      }
    }
    return literal;
  }
  OnnxAttribute any_attribute() {
    static constexpr const char* kTexts[] = {
        "linear",        "cubic",      "nearest",  "reflect",
        "edge",          "SAME_UPPER", "VALID",    "mean",
        "bidirectional", "ij,jk->ik",  "...i->i",  "LEFT",
        "RIGHT",         "max",        "circular", "tf_crop_and_resize",
        "align_corners", "not_larger", "border",   "delta",
        "CRD",           "TFIDF"};
    OnnxAttribute made;
    if (below(3) != 0) made.integer = any_integer();
    if (below(3) == 0) made.real = static_cast<float>(any_integer()) / 4;
    if (below(2) == 0) made.text = kTexts[below(std::size(kTexts))];
    for (int64_t i = below(5); i > 0; --i) made.integers.push_back(any_integer());
    for (int64_t i = below(5); i > 0; --i) made.reals.push_back(static_cast<float>(any_integer()));
    if (below(4) == 0) made.tensor = any_literal(any_type(), {1});
    return made;
  }
  void add_attributes(OnnxNode& node) {
    static constexpr const char* kNames[] = {"axis",
                                             "axes",
                                             "keepdims",
                                             "mode",
                                             "to",
                                             "value",
                                             "perm",
                                             "kernel_shape",
                                             "strides",
                                             "pads",
                                             "dilations",
                                             "group",
                                             "auto_pad",
                                             "ceil_mode",
                                             "output_padding",
                                             "output_shape",
                                             "equation",
                                             "alpha",
                                             "beta",
                                             "epsilon",
                                             "size",
                                             "block_size",
                                             "blocksize",
                                             "num_groups",
                                             "direction",
                                             "hidden_size",
                                             "layout",
                                             "reduction",
                                             "ignore_index",
                                             "k",
                                             "largest",
                                             "batch_dims",
                                             "exclusive",
                                             "reverse",
                                             "p",
                                             "q_num_heads",
                                             "kv_num_heads",
                                             "num_heads",
                                             "is_causal",
                                             "scale",
                                             "update_rule",
                                             "onesided",
                                             "inverse",
                                             "periodic",
                                             "sampling_ratio",
                                             "output_height",
                                             "output_width",
                                             "num_outputs",
                                             "split",
                                             "starts",
                                             "ends",
                                             "scales",
                                             "coordinate_transformation_mode",
                                             "nearest_mode",
                                             "antialias",
                                             "padding_mode",
                                             "align_corners",
                                             "storage_order",
                                             "count_include_pad",
                                             "transA",
                                             "transB",
                                             "allowzero",
                                             "start",
                                             "end",
                                             "batch_axis",
                                             "time_axis",
                                             "output_dtype",
                                             "dtype",
                                             "output_datatype",
                                             "stash_type",
                                             "softmax_precision",
                                             "rotary_embedding_dim",
                                             "num_scan_inputs",
                                             "noop_with_empty_axes",
                                             "select_last_index",
                                             "upper",
                                             "keep_aspect_ratio_policy",
                                             "policy",
                                             "qk_matmul_output_mode",
                                             "linear_before_reset",
                                             "fmod",
                                             "clip",
                                             "training_mode",
                                             "ngram_counts",
                                             "ngram_indexes",
                                             "pool_int64s",
                                             "offset_group",
                                             "N",
                                             "K",
                                             "bits",
                                             "qkv_hidden_sizes",
                                             "unidirectional",
                                             "do_rotary",
                                             "channels_last",
                                             "opset",
                                             "activation",
                                             "local_window_size",
                                             "interleaved"};
    for (const char* name : kNames) {
      if (below(4) == 0) node.attributes[name] = any_attribute();
    }
  }

  std::mt19937 random_;
};

TEST(OnnxRows, RefuseWhatDoesNotFit) {
  constexpr int kNodes = 200;
  int imported = 0;
  for (const OnnxRow* row : all_onnx_rows()) {
    for (int i = 0; i < kNodes; ++i) {
      RandomNodes random(static_cast<uint32_t>(i));
      const OnnxModel model = random.model(*row);
      const auto made = import_onnx(model);
      if (!made) {
        EXPECT_FALSE(made.error().message().empty());
        continue;
      }
      ++imported;
      EXPECT_TRUE(verify(*made->module).ok())
          << row->name << " " << i << ": " << verify(*made->module).message();
    }
  }
  // Some fit: the nodes are not all refused for a common reason.
  EXPECT_GT(imported, 1000);
}

}  // namespace
}  // namespace tenon::hlo
