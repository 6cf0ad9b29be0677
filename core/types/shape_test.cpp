#include "core/types/shape.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

using enum ElementType;

TEST(Shape, TextOfHlo) {
  EXPECT_EQ(Shape(kF32, {}).to_string(), "f32[]");
  EXPECT_EQ(Shape(kBF16, {2, 0, 3}).to_string(), "bf16[2,0,3]");
  EXPECT_EQ(Shape(kS8, {kDynamic, 4}).to_string(), "s8[?,4]");
  EXPECT_EQ(Shape(kF32, {kDynamic, kDynamic, 2}, {8, kDynamic, kDynamic}).to_string(),
            "f32[?<=8,?,2]");
}

TEST(Shape, CountsElementsAndBytes) {
  EXPECT_EQ(Shape(kF64, {}).element_count(), 1);
  EXPECT_EQ(Shape(kF64, {2, 3}).byte_size(), 48);
  EXPECT_EQ(Shape(kS4, {3}).byte_size(), 3);
  EXPECT_EQ(Shape(kC128, {5, 0}).byte_size(), 0);
}

TEST(Shape, StaticMeansEveryDimensionIsKnown) {
  EXPECT_TRUE(Shape(kF32, {1, 2}).is_static());
  EXPECT_FALSE(Shape(kF32, {1, kDynamic}).is_static());
  EXPECT_TRUE(Shape(kF32, {1, kDynamic}).is_dynamic_dim(1));
}

TEST(Shape, EqualityLooksAtBounds) {
  EXPECT_EQ(Shape(kF32, {2}), Shape(kF32, {2}));
  EXPECT_NE(Shape(kF32, {2}), Shape(kF16, {2}));
  EXPECT_NE(Shape(kF32, {kDynamic}, {3}), Shape(kF32, {kDynamic}));
  EXPECT_EQ(Shape(kF32, {kDynamic}, {3}).with_element_type(kS8), Shape(kS8, {kDynamic}, {3}));
  EXPECT_EQ(Shape(kF32, {kDynamic}, {3}).with_dims({2}), Shape(kF32, {2}));
}

TEST(Shape, CheckedCount) {
  EXPECT_EQ(checked_element_count({}), 1);
  EXPECT_EQ(checked_element_count({2, 3}, 8), 6);
  EXPECT_EQ(checked_element_count({0, 5}), 0);
  EXPECT_EQ(checked_element_count({int64_t{1} << 40, int64_t{1} << 22}), int64_t{1} << 62);
}

TEST(Shape, CheckedCountErrors) {
  EXPECT_EQ(checked_element_count({2, -1}).error().message(),
            "dimension size -1 is negative or not known");
  EXPECT_FALSE(checked_element_count({kDynamic}));
  const char* too_many =
      "a shape of dimensions [4294967296,4294967296] has more elements than can be counted";
  EXPECT_EQ(checked_element_count({int64_t{1} << 32, int64_t{1} << 32}).error().message(),
            too_many);
  // The number of bytes must be representable too, also with a dimension of size 0.
  EXPECT_TRUE(checked_element_count({int64_t{1} << 62}));
  EXPECT_FALSE(checked_element_count({int64_t{1} << 62}, 8));
  EXPECT_FALSE(checked_element_count({int64_t{1} << 32, int64_t{1} << 32, 0}));
}

TEST(Shape, RowMajorStrides) {
  EXPECT_EQ(row_major_strides({2, 3, 4}), (Dims{12, 4, 1}));
  EXPECT_EQ(row_major_strides({}), Dims{});
}

TEST(Shape, DimsToString) {
  EXPECT_EQ(dims_to_string({2, kDynamic, 3}, "x"), "2x?x3");
  EXPECT_EQ(dims_to_string({}), "");
}

}  // namespace
}  // namespace tenon
