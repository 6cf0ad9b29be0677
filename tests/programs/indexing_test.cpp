// Scatters and gathers on every device: counts, sums in parts, rows, and indices far out of range.
#include <gtest/gtest.h>

#include "core/base/random.h"
#include "tests/programs/every_device_test_util.h"

namespace tenon::conformance {
namespace {

class Indexing : public EveryDevice {
 protected:
  // Combines 9,000 numbers with 30; some places are out of range, and one is 2^32 + 7.
  static Literal combined(const std::string& op, const std::string& type) {
    const ElementType element = type == "f32" ? ElementType::kF32 : ElementType::kS32;
    Random random(1);
    Literal at(Shape(ElementType::kS64, {9000, 1}));
    Literal numbers(Shape(element, {9000}));
    for (int64_t i = 0; i < 9000; ++i) {
      at.set_integer(i, i == 8 ? (int64_t{1} << 32) + 7 : random.below(36) - 3);
      numbers.set_double(i, static_cast<double>(random.below(11) - 5));
    }
    return result_of(text_of(op, type), {Literal(Shape(element, {30})), at, numbers});
  }
  static std::string text_of(const std::string& op, const std::string& type) {
    return "func.func @main(%x: tensor<30x" + type + ">, %i: tensor<9000x1xi64>, %u: tensor<9000x" +
           type + ">) -> tensor<30x" + type + "> {\n" +
           R"(%r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = )" +
           "#stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], " +
           "index_vector_dim = 1>}> ({\n^bb0(%a: tensor<" + type + ">, %b: tensor<" + type +
           ">):\n%s = stablehlo." + op + " %a, %b : tensor<" + type +
           ">\nstablehlo.return %s : tensor<" + type + ">\n}) : (tensor<30x" + type +
           ">, tensor<9000x1xi64>, tensor<9000x" + type + ">) -> tensor<30x" + type +
           ">\nreturn %r : tensor<30x" + type + ">\n}";
  }
};

// The sums are small whole numbers, which no order changes.
TEST_P(Indexing, ManyNumbersAtFewPlaces) {
  for (const char* type : {"i32", "f32"}) {
    for (const char* op : {"add", "maximum"}) {
      const Literal result = combined(op, type);
      const ElementType element = result.element_type();
      Random random(1);
      std::vector<double> totals(30);
      for (int64_t i = 0; i < 9000; ++i) {
        const int64_t at = i == 8 ? -1 : random.below(36) - 3;
        const auto number = static_cast<double>(random.below(11) - 5);
        if (at < 0 || at >= 30) continue;
        double& total = totals[static_cast<size_t>(at)];
        total = op == std::string("add") ? total + number : std::max(total, number);
      }
      for (int64_t k = 0; k < 30; ++k) {
        EXPECT_EQ(result.get_double(k), totals[static_cast<size_t>(k)])
            << op << " " << name_of(element) << " " << k;
      }
    }
  }
}

TEST_P(Indexing, RowsOfATable) {
  const std::string text = R"(
func.func @main(%x: tensor<40x300xf32>, %i: tensor<5xi32>) -> tensor<5x300xf32> {
  %zero = stablehlo.constant dense<0> : tensor<5xi32>
  %size = stablehlo.constant dense<40> : tensor<5xi32>
  %p = stablehlo.compare LT, %i, %zero : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
  %up = stablehlo.add %i, %size : tensor<5xi32>
  %j = stablehlo.select %p, %up, %i : tensor<5xi1>, tensor<5xi32>
  %k = stablehlo.broadcast_in_dim %j, dims = [0] : (tensor<5xi32>) -> tensor<5x1xi32>
  %g = "stablehlo.gather"(%x, %k) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 300>}> : (tensor<40x300xf32>, tensor<5x1xi32>) -> tensor<5x300xf32>
  %r = stablehlo.negate %g : tensor<5x300xf32>
  return %r : tensor<5x300xf32>
})";
  Literal table(Shape(ElementType::kF32, {40, 300}));
  for (int64_t k = 0; k < 12000; ++k) table.set_double(k, static_cast<double>(k));
  Literal at(Shape(ElementType::kS32, {5}));
  const int64_t places[] = {3, -1, 0, 77, -90};
  const int64_t rows[] = {3, 39, 0, 39, 0};
  for (int64_t i = 0; i < 5; ++i) at.set_integer(i, places[i]);
  const Literal result = result_of(text, {table, at});
  ASSERT_EQ(result.element_count(), 1500);
  for (int64_t k = 0; k < 1500; ++k) {
    EXPECT_EQ(result.get_double(k), -static_cast<double>(rows[k / 300] * 300 + k % 300)) << k;
  }
}

TENON_ON_EVERY_DEVICE(Indexing);

}  // namespace
}  // namespace tenon::conformance
