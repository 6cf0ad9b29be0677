// Arrays that are read and written at other indices, on every device: counts, sums in parts, rows,
// indices far out of range, stencils in loops.
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

// Squares of elements of every width are transposed in registers.
TEST_P(Indexing, TransposesOfEveryWidth) {
  for (const char* type : {"i8", "i16", "f32", "i64"}) {
    const ElementType element = *element_type_from_mlir_name(type);
    Literal x(Shape(element, {64, 96}));
    for (int64_t i = 0; i < 64 * 96; ++i) x.set_double(i, static_cast<double>(i * 7 % 127));
    const std::string from = std::string("tensor<64x96x") + type + ">";
    const std::string to = std::string("tensor<96x64x") + type + ">";
    const Literal y = result_of("func.func @main(%x: " + from + ") -> " + to +
                                    " {\n%y = stablehlo.transpose %x, dims = [1, 0] : (" + from +
                                    ") -> " + to + "\nreturn %y : " + to + "\n}",
                                {x});
    ASSERT_EQ(y.element_count(), 64 * 96) << type;
    int64_t wrong = 0;
    for (int64_t i = 0; i < 64 * 96; ++i) {
      wrong += y.get_double(i) == x.get_double(i % 64 * 96 + i / 64) ? 0 : 1;
    }
    EXPECT_EQ(wrong, 0) << type;
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
    const int64_t number = rows[k / 300] * 300 + k % 300;
    EXPECT_EQ(result.get_double(k), -static_cast<double>(number)) << k;
  }
}

// Three turns of a loop over 6 x 300 numbers, of which the neighbours are added: around the edges
// by rotations, or in place with an edge that stays.
TEST_P(Indexing, StencilsInALoop) {
  const auto turned = [](const std::string& name, const std::string& step) {
    return "func.func @main(%x: tensor<6x300xf32>) -> tensor<6x300xf32> {\n"
           "%zero = stablehlo.constant dense<0> : tensor<i32>\n"
           "%one = stablehlo.constant dense<1> : tensor<i32>\n"
           "%three = stablehlo.constant dense<3> : tensor<i32>\n"
           "%r:2 = stablehlo.while(%n = %zero, %s = %x) : tensor<i32>, tensor<6x300xf32>\n"
           "cond {\n%p = stablehlo.compare LT, %n, %three : (tensor<i32>, tensor<i32>) -> "
           "tensor<i1>\nstablehlo.return %p : tensor<i1>\n} do {\n" +
           step + "%m = stablehlo.add %n, %one : tensor<i32>\nstablehlo.return %m, %" + name +
           " : tensor<i32>, tensor<6x300xf32>\n}\nreturn %r#1 : tensor<6x300xf32>\n}";
  };
  const std::string rotated = turned("next", R"(
%a0 = stablehlo.slice %s [5:6, 0:300] : (tensor<6x300xf32>) -> tensor<1x300xf32>
%a1 = stablehlo.slice %s [0:5, 0:300] : (tensor<6x300xf32>) -> tensor<5x300xf32>
%a = stablehlo.concatenate %a0, %a1, dim = 0 : (tensor<1x300xf32>, tensor<5x300xf32>) -> tensor<6x300xf32>
%b0 = stablehlo.slice %s [0:6, 1:300] : (tensor<6x300xf32>) -> tensor<6x299xf32>
%b1 = stablehlo.slice %s [0:6, 0:1] : (tensor<6x300xf32>) -> tensor<6x1xf32>
%b = stablehlo.concatenate %b0, %b1, dim = 1 : (tensor<6x299xf32>, tensor<6x1xf32>) -> tensor<6x300xf32>
%ab = stablehlo.add %a, %b : tensor<6x300xf32>
%next = stablehlo.subtract %ab, %s : tensor<6x300xf32>
)");
  const std::string in_place = turned("next", R"(
%a = stablehlo.slice %s [0:4, 1:299] : (tensor<6x300xf32>) -> tensor<4x298xf32>
%b = stablehlo.slice %s [1:5, 2:300] : (tensor<6x300xf32>) -> tensor<4x298xf32>
%ab = stablehlo.add %a, %b : tensor<4x298xf32>
%next = stablehlo.dynamic_update_slice %s, %ab, %one, %one : (tensor<6x300xf32>, tensor<4x298xf32>, tensor<i32>, tensor<i32>) -> tensor<6x300xf32>
)");
  Random random(4);
  std::vector<double> start(1800);
  for (double& number : start) number = static_cast<double>(random.below(9) - 4);
  Literal x(Shape(ElementType::kF32, {6, 300}));
  for (size_t k = 0; k < start.size(); ++k) x.set_double(static_cast<int64_t>(k), start[k]);
  for (const bool wraps : {true, false}) {
    std::vector<double> now = start;
    for (int turn = 0; turn < 3; ++turn) {
      const std::vector<double> old = now;
      for (size_t i = 0; i < 6; ++i) {
        for (size_t j = 0; j < 300; ++j) {
          const bool edge = i == 0 || i == 5 || j == 0 || j == 299;
          const double up = old[(i + 5) % 6 * 300 + j], right = old[i * 300 + (j + 1) % 300];
          if (wraps) now[i * 300 + j] = up + right - old[i * 300 + j];
          if (!wraps && !edge) now[i * 300 + j] = up + right;
        }
      }
    }
    const Literal result = result_of(wraps ? rotated : in_place, {x});
    ASSERT_EQ(result.element_count(), 1800);
    for (size_t k = 0; k < now.size(); ++k) {
      EXPECT_EQ(result.get_double(static_cast<int64_t>(k)), now[k]) << wraps << " " << k;
    }
  }
}

// Whether any number of 400 x 300 is 7: where all and none of the parts have one.
TEST_P(Indexing, AnyOfALargeArray) {
  const std::string text = R"(
func.func @main(%x: tensor<400x300xf32>) -> tensor<i1> {
  %seven = stablehlo.constant dense<7.0> : tensor<400x300xf32>
  %no = stablehlo.constant dense<false> : tensor<i1>
  %p = stablehlo.compare EQ, %x, %seven : (tensor<400x300xf32>, tensor<400x300xf32>) -> tensor<400x300xi1>
  %r = stablehlo.reduce(%p init: %no) applies stablehlo.or across dimensions = [0, 1] : (tensor<400x300xi1>, tensor<i1>) -> tensor<i1>
  return %r : tensor<i1>
})";
  for (const int64_t place : {-1, 0, 70'001, 119'999}) {
    Literal x(Shape(ElementType::kF32, {400, 300}));
    if (place >= 0) x.set_double(place, 7);
    EXPECT_EQ(result_of(text, {x}).get_integer(0) != 0, place >= 0) << place;
  }
}

TENON_ON_EVERY_DEVICE(Indexing);

}  // namespace
}  // namespace tenon::conformance
