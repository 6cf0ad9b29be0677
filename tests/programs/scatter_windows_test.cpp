// Windows of a scatter that are partly out of range: StableHLO drops the elements out of range;
// XLA, and a scatter with whole_windows, drop the window (docs/numerics.md).
#include <gtest/gtest.h>

#include "tests/programs/every_device_test_util.h"

namespace tenon::conformance {
namespace {

// Windows of 2 x 2 at (row, column): inside, over each edge, entirely outside, inside again.
constexpr const char* kTwoDimensions = R"(
func.func @main(%x: tensor<4x4xTYPE>, %at: tensor<7x2xi32>, %u: tensor<7x2x2xTYPE>) -> tensor<4x4xTYPE> {
  %r = "stablehlo.scatter"(%x, %at, %u) <{
    scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>ATTRIBUTES
  }> ({
  ^bb0(%a: tensor<TYPE>, %b: tensor<TYPE>):
    %s = stablehlo.OP %a, %b : tensor<TYPE>
    stablehlo.return %s : tensor<TYPE>
  }) : (tensor<4x4xTYPE>, tensor<7x2xi32>, tensor<7x2x2xTYPE>) -> tensor<4x4xTYPE>
  return %r : tensor<4x4xTYPE>
})";
constexpr int64_t kStarts[] = {0, 0, 3, 0, 0, 3, -1, 1, 2, -1, 7, 7, 2, 2};

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

class ScatterWindows : public EveryDevice {
 protected:
  std::string sum(const std::string& type, const std::string& op, const std::string& attributes) {
    const std::string text = replaced(
        replaced(replaced(kTwoDimensions, "TYPE", type), "ATTRIBUTES", attributes), "OP", op);
    const ElementType element = type == "f32" ? ElementType::kF32 : ElementType::kS32;
    Literal at(Shape(ElementType::kS32, {7, 2}));
    for (int64_t i = 0; i < 14; ++i) at.set_integer(i, kStarts[i]);
    Literal ones(Shape(element, {7, 2, 2}));
    for (int64_t i = 0; i < 28; ++i) {
      element == ElementType::kF32 ? ones.set_double(i, 1) : ones.set_integer(i, 1);
    }
    return run(text, {Literal(Shape(element, {4, 4})), at, ones});
  }
};

TEST_P(ScatterWindows, KeepWhatIsInsideByTheSpecification) {
  const std::string expected = "[[1, 2, 1, 1], [1, 1, 0, 1], [1, 0, 1, 1], [2, 1, 1, 1]]";
  for (const char* type : {"f32", "i32"}) {
    EXPECT_EQ(sum(type, "add", ""), expected);
    EXPECT_EQ(sum(type, "add", ", whole_windows = false"), expected);
  }
}

TEST_P(ScatterWindows, AreDroppedAsAWholeIfAsked) {
  const std::string expected = "[[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]";
  for (const char* type : {"f32", "i32"}) {
    EXPECT_EQ(sum(type, "add", ", whole_windows = true"), expected);
    EXPECT_EQ(sum(type, "maximum", ", whole_windows = true"), expected);
    EXPECT_EQ(sum(type, "add", ", unique_indices = true, whole_windows = true"), expected);
  }
}

TENON_ON_EVERY_DEVICE(ScatterWindows);

}  // namespace
}  // namespace tenon::conformance
