// Ops read the elements that their results need: no value of their imported models has many more.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "hlo/onnx/models_test_util.h"

namespace tenon::hlo {
namespace {

using namespace testing;

Literal integers(const I64s& values) { return Literal::from_i64s(values); }

Literal ascending(Dims dims) {
  std::vector<float> values(static_cast<size_t>(element_count(dims)));
  std::iota(values.begin(), values.end(), 0.0F);
  return floats(std::move(dims), values);
}

// The number of elements of the largest value, but for the arguments; 0 if the import fails.
int64_t largest_of(const OnnxModel& model) {
  const auto imported = import_onnx(model);
  EXPECT_TRUE(imported) << imported.error().message();
  if (!imported) return 0;
  EXPECT_TRUE(verify(*imported->module).ok());
  int64_t most = 0;
  any_instruction(*imported->module->entry(), [&](const Instruction& op) {
    for (const Type& each : op.result_types()) most = std::max(most, element_count(each.dims()));
    return false;
  });
  return most;
}

OnnxModel resize_of(int64_t length, float scale, const std::string& mode) {
  OnnxNode resize = node("Resize", {"x", "", "scales"}, {"y"});
  resize.attributes["mode"].text = mode;
  OnnxModel model =
      model_of({std::move(resize)}, {value_info("x", ElementType::kF32, {1, length})}, {"y"});
  model.graph.initializers = {{"scales", floats({2}, {1, scale})}};
  return model;
}

TEST(OnnxCosts, ResizeReadsTheElementsThatHaveWeights) {
  for (const char* mode : {"linear", "cubic"}) {
    EXPECT_LE(largest_of(resize_of(100000, 2, mode)), 200000) << mode;
    OnnxModel smooth = resize_of(100000, 0.25, mode);
    smooth.graph.nodes[0].attributes["antialias"].integer = 1;
    EXPECT_LE(largest_of(smooth), 100000) << mode;
    // More elements than a sum has terms.
    smooth.graph.initializers[0].second = floats({2}, {1, 0.01F});
    EXPECT_LE(largest_of(smooth), 400000) << mode;
    // A product is less work for a short axis.
    EXPECT_EQ(largest_of(resize_of(6, 2, mode)), 6 * 12) << mode;
  }
}

TEST(OnnxCosts, ResizeOfALongAxisIsThatOfAShortOne) {
  const std::string y = run(resize_of(20, 2, "linear"), {ascending({1, 20})});
  EXPECT_TRUE(y.starts_with("[[0, 0.25, 0.75, 1.25, 1.75,")) << y;
  EXPECT_TRUE(y.ends_with("18.25, 18.75, 19]]")) << y;
  EXPECT_EQ(run(resize_of(4, 2, "linear"), {ascending({1, 4})}),
            "[[0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3]]");
}

TEST(OnnxCosts, ResizeRefusesPositionsThatAreNoNumbers) {
  OnnxModel model = resize_of(4, 2, "linear");
  OnnxNode& resize = model.graph.nodes[0];
  resize.attributes["coordinate_transformation_mode"].text = "tf_crop_and_resize";
  resize.inputs[1] = "roi";
  const auto with_end = [&](float end) {
    model.graph.initializers.resize(1);
    model.graph.initializers.emplace_back("roi", floats({4}, {0, 0, 1, end}));
    return error_of(model);
  };
  EXPECT_EQ(with_end(0.5), "");
  EXPECT_EQ(with_end(3e38F), "");
  EXPECT_NE(with_end(std::numeric_limits<float>::quiet_NaN()).find("at the position nan"),
            std::string::npos);
}

OnnxModel regions_of(int64_t count, Dims dims) {
  OnnxNode align =
      with_integer(node("RoiAlign", {"x", "regions", "batches"}, {"y"}), "sampling_ratio", 1);
  align.attributes["coordinate_transformation_mode"].text = "output_half_pixel";
  return model_of({std::move(align)},
                  {value_info("x", ElementType::kF32, std::move(dims)),
                   value_info("regions", ElementType::kF32, {count, 4}),
                   value_info("batches", ElementType::kS64, {count})},
                  {"y"});
}

TEST(OnnxCosts, RegionsDoNotCopyTheirMaps) {
  EXPECT_LE(largest_of(regions_of(100, {2, 8, 64, 64})), 2 * 8 * 64 * 64);
  // The middle of each region of the second, the first and the second map.
  EXPECT_EQ(run(regions_of(3, {2, 1, 3, 3}),
                {ascending({2, 1, 3, 3}), floats({3, 4}, {0, 0, 2, 2, 0, 1, 1, 2, 1, 0, 2, 1}),
                 integers({1, 0, 1})}),
            "[[[[13]]], [[[5]]], [[[12]]]]");
}

OnnxModel grams_of(int64_t length, const I64s& pool, const I64s& begins, const I64s& columns) {
  OnnxNode counts = node("TfIdfVectorizer", {"x"}, {"y"});
  counts.attributes["mode"].text = "TF";
  counts.attributes["pool_int64s"].integers = pool;
  counts.attributes["ngram_counts"].integers = begins;
  counts.attributes["ngram_indexes"].integers = columns;
  for (const char* name : {"min_gram_length", "max_gram_length"})
    counts.attributes[name].integer = std::ssize(begins);
  counts.attributes["max_skip_count"].integer = 1;
  return model_of({std::move(counts)}, {value_info("x", ElementType::kS64, {length})}, {"y"});
}

TEST(OnnxCosts, GramsAreFoundWithoutATableOfAllPairs) {
  I64s pool(1000);
  std::iota(pool.begin(), pool.end(), -500);
  EXPECT_LE(largest_of(grams_of(900, pool, {0}, pool)), 2048);
}

TEST(OnnxCosts, GramsAreCountedInTheirColumns) {
  // A gram that is there twice, one without a column, and two of one column.
  const Literal x = integers({3, 3, 7, -1, 5, 3, 9});
  EXPECT_EQ(run(grams_of(7, {3, 7, 3, -1, 5, 8}, {0}, {4, 0, 1, -1, 0, 5}), {x}),
            "[2, 3, 0, 0, 3, 0]");
  // Pairs of neighbours, and of elements with one between them: 3 7 is there in both ways.
  EXPECT_EQ(run(grams_of(7, {1, 3, 7, 3, 3, 5, 9, 5, 3}, {0, 1}, {0, 1, 2, 3, 4}), {x}),
            "[0, 2, 1, 1, 1]");
  // Each gram of a column by its own weight, as in ONNX Runtime.
  OnnxModel weighted = grams_of(6, {1, 2, 3}, {0}, {2, 0, 2});
  OnnxNode& counts = weighted.graph.nodes[0];
  counts.attributes["weights"].reals = {10, 20, 30};
  counts.attributes["mode"].text = "TFIDF";
  EXPECT_EQ(run(weighted, {integers({1, 1, 2, 3, 3, 3})}), "[20, 0, 110]");
  counts.attributes["mode"].text = "IDF";
  EXPECT_EQ(run(weighted, {integers({1, 1, 2, 3, 3, 3})}), "[20, 0, 30]");
  // No window is long enough.
  EXPECT_EQ(run(grams_of(1, {1, 3, 7}, {0, 1}, {0, 1}), {integers({3})}), "[0, 0]");
  const I64s many(65, 3);
  EXPECT_NE(error_of(grams_of(7, many, {0}, many)).find("more than 64 times"), std::string::npos);
}

OnnxModel einsum_of(const std::string& equation, Dims dims) {
  OnnxNode einsum = node("Einsum", {"x"}, {"y"});
  einsum.attributes["equation"].text = equation;
  return model_of({std::move(einsum)}, {value_info("x", ElementType::kF32, std::move(dims))},
                  {"y"});
}

TEST(OnnxCosts, DiagonalsReadNoOtherElements) {
  EXPECT_LE(largest_of(einsum_of("ii->i", {500, 500})), 500);
  EXPECT_LE(largest_of(einsum_of("iji->ij", {50, 3, 50})), 150);
  EXPECT_EQ(run(einsum_of("iji->ij", {2, 3, 2}), {ascending({2, 3, 2})}),
            "[[0, 2, 4], [7, 9, 11]]");
  EXPECT_EQ(run(einsum_of("iij->ji", {2, 2, 2}), {ascending({2, 2, 2})}), "[[0, 6], [1, 7]]");
  EXPECT_NE(error_of(einsum_of("ii->i", {2, 3})).find("dimensions of 2 and 3 elements"),
            std::string::npos);
}

}  // namespace
}  // namespace tenon::hlo
