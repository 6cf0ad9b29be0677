// Ops that move elements, gather and scatter.
#include "hlo/evaluator/eval_test_util.h"

namespace tenon::hlo {
namespace {

using testing::binary_region;
using testing::constant;
using testing::eval;

// One op on %x (and on values that `more` defines).
std::string op_on(std::string_view type, std::string_view x, std::string_view op,
                  std::string_view result, std::string_view more = "") {
  return eval(constant("x", type, x) + std::string(more) +
                  fmt::format("%r = stablehlo.{} : {}", op, result),
              "%r", result);
}

TEST(ShapeOps, Broadcasts) {
  EXPECT_EQ(
      op_on("s8[2]", "[1, 2]", "broadcast_in_dim(%x) {broadcast_dimensions = [0]}", "s8[2,2]"),
      "[[1, 1], [2, 2]]");
  EXPECT_EQ(
      op_on("s8[2]", "[1, 2]", "broadcast_in_dim(%x) {broadcast_dimensions = [1]}", "s8[2,2]"),
      "[[1, 2], [1, 2]]");
  EXPECT_EQ(op_on("s8[1,2]", "[[1, 2]]", "broadcast_in_dim(%x) {broadcast_dimensions = [1, 0]}",
                  "s8[2,2]"),
            "[[1, 1], [2, 2]]");  // unsorted: transposes; size 1 expands
  EXPECT_EQ(op_on("s8[]", "5", "broadcast_in_dim(%x) {broadcast_dimensions = []}", "s8[2,0]"),
            "[[], []]");
}

TEST(ShapeOps, TransposeReverseReshape) {
  EXPECT_EQ(
      op_on("s8[2,3]", "[[1, 2, 3], [4, 5, 6]]", "transpose(%x) {permutation = [1, 0]}", "s8[3,2]"),
      "[[1, 4], [2, 5], [3, 6]]");
  EXPECT_EQ(op_on("s8[1,2,3]", "[[[1, 2, 3], [4, 5, 6]]]",
                  "transpose(%x) {permutation = [2, 0, 1]}", "s8[3,1,2]"),
            "[[[1, 4]], [[2, 5]], [[3, 6]]]");
  EXPECT_EQ(op_on("s8[2,2]", "[[1, 2], [3, 4]]", "reverse(%x) {dimensions = [1]}", "s8[2,2]"),
            "[[2, 1], [4, 3]]");
  EXPECT_EQ(op_on("s8[2,2]", "[[1, 2], [3, 4]]", "reverse(%x) {dimensions = []}", "s8[2,2]"),
            "[[1, 2], [3, 4]]");
  EXPECT_EQ(op_on("s8[2,2]", "[[1, 2], [3, 4]]", "reshape(%x)", "s8[4,1]"), "[[1], [2], [3], [4]]");
  EXPECT_EQ(op_on("s8[0,3]", "", "reshape(%x)", "s8[2,0]"), "[[], []]");
}

TEST(ShapeOps, SliceAndConcatenate) {
  EXPECT_EQ(op_on("s8[5]", "[0, 1, 2, 3, 4]",
                  "slice(%x) {start_indices = [1], limit_indices = [5], strides = [3]}", "s8[2]"),
            "[1, 4]");
  EXPECT_EQ(op_on("s8[5]", "[0, 1, 2, 3, 4]",
                  "slice(%x) {start_indices = [2], limit_indices = [2], strides = [1]}", "s8[0]"),
            "[]");
  EXPECT_EQ(op_on("s8[2]", "[1, 2]", "concatenate(%x, %e, %x) {dimension = 0}", "s8[4]",
                  constant("e", "s8[0]", "")),
            "[1, 2, 1, 2]");
  EXPECT_EQ(op_on("s8[2,1]", "[[1], [2]]", "concatenate(%x, %y) {dimension = 1}", "s8[2,3]",
                  constant("y", "s8[2,2]", "[[3, 4], [5, 6]]")),
            "[[1, 3, 4], [2, 5, 6]]");
}

TEST(ShapeOps, Pad) {
  const auto pad = [](int low, int high, int interior, int size) {
    return op_on("s8[3]", "[1, 2, 3]",
                 fmt::format("pad(%x, %v) {{edge_padding_low = [{}], edge_padding_high = [{}], "
                             "interior_padding = [{}]}}",
                             low, high, interior),
                 fmt::format("s8[{}]", size), constant("v", "s8[]", "9"));
  };
  EXPECT_EQ(pad(1, 2, 0, 6), "[9, 1, 2, 3, 9, 9]");
  EXPECT_EQ(pad(0, 0, 2, 7), "[1, 9, 9, 2, 9, 9, 3]");
  EXPECT_EQ(pad(-1, -1, 0, 1), "[2]");
  EXPECT_EQ(pad(-1, -2, 1, 2), "[9, 2]");  // crops after the interior padding
  EXPECT_EQ(pad(-3, 0, 0, 0), "[]");
  EXPECT_EQ(pad(-3, 2, 0, 2), "[9, 9]");
  EXPECT_EQ(
      op_on("s8[0]", "",
            "pad(%x, %v) {edge_padding_low = [1], edge_padding_high = [1], interior_padding = [5]}",
            "s8[2]", constant("v", "s8[]", "9")),
      "[9, 9]");
}

TEST(ShapeOps, DynamicSliceClampsItsStart) {
  const auto slice = [](const char* type, const char* start) {
    return op_on("s8[5]", "[0, 1, 2, 3, 4]", "dynamic_slice(%x, %i) {slice_sizes = [2]}", "s8[2]",
                 constant("i", type, start));
  };
  EXPECT_EQ(slice("s32[]", "1"), "[1, 2]");
  EXPECT_EQ(slice("s32[]", "-7"), "[0, 1]");
  EXPECT_EQ(slice("s64[]", "9223372036854775807"), "[3, 4]");
  EXPECT_EQ(slice("u64[]", "18446744073709551615"), "[3, 4]");
  EXPECT_EQ(slice("u8[]", "255"), "[3, 4]");
  EXPECT_EQ(slice("s8[]", "-128"), "[0, 1]");
}

TEST(ShapeOps, DynamicUpdateSliceClampsItsStart) {
  const auto update = [](const char* start) {
    return op_on("s8[5]", "[0, 1, 2, 3, 4]", "dynamic_update_slice(%x, %u, %i)", "s8[5]",
                 constant("u", "s8[2]", "[8, 9]") + constant("i", "s64[]", start));
  };
  EXPECT_EQ(update("1"), "[0, 8, 9, 3, 4]");
  EXPECT_EQ(update("-100"), "[8, 9, 2, 3, 4]");
  EXPECT_EQ(update("4"), "[0, 1, 2, 8, 9]");
}

TEST(ShapeOps, Iota) {
  EXPECT_EQ(eval("%r = stablehlo.iota() {iota_dimension = 1} : s32[2,3]", "%r", "s32[2,3]"),
            "[[0, 1, 2], [0, 1, 2]]");
  EXPECT_EQ(eval("%r = stablehlo.iota() {iota_dimension = 0} : u2[6]", "%r", "u2[6]"),
            "[0, 1, 2, 3, 0, 1]");
  EXPECT_EQ(eval("%r = stablehlo.iota() {iota_dimension = 0} : c64[2]", "%r", "c64[2]"),
            "[(0, 0), (1, 0)]");
  EXPECT_EQ(eval("%r = stablehlo.iota() {iota_dimension = 0} : f16[0]", "%r", "f16[0]"), "[]");
}

TEST(ShapeOps, BitcastConvert) {
  struct Case {
    const char* from;
    const char* x;
    const char* to;
    const char* expected;
  };
  const Case cases[] = {
      {"f32[]", "1", "s32[]", "1065353216"},
      {"s32[]", "1065353216", "f32[]", "1"},
      {"f32[]", "1", "u8[4]", "[0, 0, 128, 63]"},  // the lowest bits first
      {"u8[4]", "[0, 0, 128, 63]", "f32[]", "1"},
      {"s8[]", "-127", "pred[8]", "[true, false, false, false, false, false, false, true]"},
      {"pred[8]", "[true, false, false, false, false, false, false, true]", "s8[]", "-127"},
      {"s8[]", "-31", "s4[2]", "[1, -2]"},
      {"u4[2]", "[1, 14]", "u8[]", "225"},
      {"u8[]", "228", "u2[4]", "[0, 1, 2, 3]"},
      {"f64[]", "-0.0", "u32[2]", "[0, 2147483648]"},
      {"s64[2]", "[1, -1]", "s32[2,2]", "[[1, 0], [-1, -1]]"},
      {"c64[]", "(1, 2)", "c64[]", "(1, 2)"},
      {"f8e4m3fn[]", "1", "u8[]", "56"},
      {"u8[]", "56", "f8e4m3fn[]", "1"},
      {"s16[0]", "", "s8[0,2]", "[]"},
  };
  for (const Case& c : cases)
    EXPECT_EQ(op_on(c.from, c.x, "bitcast_convert(%x)", c.to), c.expected) << c.from << c.to;
  const std::string bits = op_on("s64[]", "5", "bitcast_convert(%x)", "pred[64]");
  EXPECT_TRUE(bits.starts_with("[true, false, true, false, ")) << bits;
}

// --- Gather

std::string gather(std::string_view indices_type, std::string_view indices, std::string_view dims,
                   std::string_view sizes, std::string_view result) {
  return eval(constant("x", "s8[3,4]", "[[0, 1, 2, 3], [10, 11, 12, 13], [20, 21, 22, 23]]") +
                  constant("i", indices_type, indices) +
                  fmt::format("%r = stablehlo.gather(%x, %i) {{dimension_numbers = "
                              "#stablehlo.gather<{}>, slice_sizes = {}}} : {}",
                              dims, sizes, result),
              "%r", result);
}

TEST(Gather, RowsWithClampedIndices) {
  const char* rows =
      "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1";
  EXPECT_EQ(gather("s32[3,1]", "[[1], [-5], [100]]", rows, "[1, 4]", "s8[3,4]"),
            "[[10, 11, 12, 13], [0, 1, 2, 3], [20, 21, 22, 23]]");
  EXPECT_EQ(gather("u64[1,1]", "[[18446744073709551615]]", rows, "[1, 2]", "s8[1,2]"),
            "[[20, 21]]");
  EXPECT_EQ(gather("s8[0,1]", "", rows, "[1, 4]", "s8[0,4]"), "[]");
}

TEST(Gather, AnImplicitIndexVector) {
  EXPECT_EQ(gather("s32[2]", "[2, 0]",
                   "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
                   "index_vector_dim = 1",
                   "[1, 4]", "s8[2,4]"),
            "[[20, 21, 22, 23], [0, 1, 2, 3]]");
}

TEST(Gather, WindowsAreClampedAsAWhole) {
  EXPECT_EQ(gather("s32[2]", "[2, 3]", "offset_dims = [0, 1], start_index_map = [0, 1]", "[2, 2]",
                   "s8[2,2]"),
            "[[12, 13], [22, 23]]");
  EXPECT_EQ(gather("s32[2]", "[3, 0]", "offset_dims = [0, 1], start_index_map = [1, 0]", "[1, 1]",
                   "s8[1,1]"),
            "[[3]]");
}

TEST(Gather, BatchingDimensionsIndexDirectly) {
  EXPECT_EQ(gather("s32[3,1]", "[[3], [-1], [1]]",
                   "operand_batching_dims = [0], start_indices_batching_dims = [0], "
                   "collapsed_slice_dims = [1], "
                   "start_index_map = [1], index_vector_dim = 1",
                   "[1, 1]", "s8[3]"),
            "[3, 10, 21]");
}

// --- Scatter

std::string scatter(std::string_view indices_type, std::string_view indices,
                    std::string_view updates_type, std::string_view updates,
                    std::string_view dims) {
  return eval(constant("x", "s32[2,3]", "[[0, 0, 0], [0, 0, 0]]") +
                  constant("i", indices_type, indices) + constant("u", updates_type, updates) +
                  fmt::format("%r = stablehlo.scatter(%x, %i, %u) {{scatter_dimension_numbers = "
                              "#stablehlo.scatter<{}>}} ({}) : s32[2,3]",
                              dims, binary_region("add", "s32[]")),
              "%r", "s32[2,3]");
}
constexpr const char* kPoints =
    "inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1";

TEST(Scatter, CollidingUpdatesAddUp) {
  EXPECT_EQ(scatter("s32[3,2]", "[[0, 1], [1, 2], [0, 1]]", "s32[3]", "[1, 2, 4]", kPoints),
            "[[0, 5, 0], [0, 0, 2]]");
}

TEST(Scatter, UpdatesOutOfBoundsAreDropped) {
  EXPECT_EQ(
      scatter("s32[4,2]", "[[-1, 0], [2, 0], [0, 3], [1, 1]]", "s32[4]", "[1, 2, 4, 8]", kPoints),
      "[[0, 0, 0], [0, 8, 0]]");
  EXPECT_EQ(scatter("u64[1,2]", "[[18446744073709551615, 0]]", "s32[1]", "[1]", kPoints),
            "[[0, 0, 0], [0, 0, 0]]");
}

// Each element of the updates is in or out of bounds independently.
TEST(Scatter, OfAWindowPartlyOutTheInsideIsUpdated) {
  const char* rows =
      "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0, "
      "1], index_vector_dim = 1";
  EXPECT_EQ(scatter("s32[2,2]", "[[0, 1], [1, 2]]", "s32[2,2]", "[[1, 2], [3, 4]]", rows),
            "[[0, 1, 2], [0, 0, 3]]");
  EXPECT_EQ(scatter("s64[1,2]", "[[9223372036854775807, -9223372036854775808]]", "s32[1,2]",
                    "[[1, 2]]", rows),
            "[[0, 0, 0], [0, 0, 0]]");
}

TEST(Scatter, BatchingDimensions) {
  EXPECT_EQ(scatter("s32[2,1]", "[[2], [0]]", "s32[2]", "[5, 6]",
                    "inserted_window_dims = [1], input_batching_dims = [0], "
                    "scatter_indices_batching_dims = [0], "
                    "scatter_dims_to_operand_dims = [1], index_vector_dim = 1"),
            "[[0, 0, 5], [6, 0, 0]]");
}

TEST(Scatter, SeveralInputs) {
  EXPECT_EQ(eval(constant("x", "s32[2]", "[1, 2]") + constant("y", "f32[2]", "[1, 2]") +
                     constant("i", "s32[1]", "[1]") + constant("u", "s32[]", "10") +
                     constant("v", "f32[]", "20") +
                     "%r:2 = stablehlo.scatter(%x, %y, %i, %u, %v) {scatter_dimension_numbers = "
                     "#stablehlo.scatter<"
                     "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>} ({\n"
                     "^bb0(%a: s32[], %b: f32[], %c: s32[], %d: f32[]):\n%s = stablehlo.add(%a, "
                     "%c) : s32[]\n"
                     "stablehlo.return(%s, %d)\n}) : s32[2], f32[2]",
                 "%r#0, %r#1", "s32[2], f32[2]"),
            "[1, 12]; [1, 20]");
}

}  // namespace
}  // namespace tenon::hlo
