// Rows of a few elements where lanes are wide vectors: transposes to and from them, and reductions.
#include <algorithm>

#include "core/kernel/ir/visitor.h"
#include "hlo/lower/schedules/schedules_test_util.h"
#include "hlo/passes/pass.h"

namespace tenon::conformance {
namespace {

struct Permuted {
  std::vector<int64_t> from;
  std::vector<int64_t> order;
  /// Accesses of the memory of a lane: as many as the row has elements, or one.
  size_t elements = 1;
  std::string kernel = "fusion";
};

std::string text_of(const Permuted& c, std::string_view type) {
  std::vector<int64_t> to;
  for (const int64_t d : c.order) to.push_back(c.from[static_cast<size_t>(d)]);
  return fmt::format(
      R"(func.func @main(%x: tensor<{0}x{2}>, %y: tensor<{1}x{2}>) -> tensor<{1}x{2}> {{
  %t = stablehlo.transpose %x, dims = [{3}] : (tensor<{0}x{2}>) -> tensor<{1}x{2}>
  %a = stablehlo.add %t, %y : tensor<{1}x{2}>
  return %a : tensor<{1}x{2}>
}})",
      fmt::join(c.from, "x"), fmt::join(to, "x"), type, fmt::join(c.order, ", "));
}

// Each store of the kernel's first loop over lanes.
size_t stores_of(const kernel::Kernel& kernel) {
  for (const kernel::Node& n : kernel.nodes) {
    if (n.op != kernel::OpCode::kLanes) continue;
    size_t stores = 0;
    kernel::for_each_node(kernel, n.blocks[0], [&](const kernel::Node& each) {
      stores += each.op == kernel::OpCode::kStore ? 1 : 0;
    });
    return stores;
  }
  return 0;
}

TEST(ShortTransposes, ElementsOfARowAreThoseOfALane) {
  const Permuted cases[] = {{{7, 101}, {1, 0}, 7},
                            {{101, 7}, {1, 0}, 7},
                            {{8, 101}, {1, 0}, 8},
                            {{101, 8}, {1, 0}, 8},
                            {{101, 12}, {1, 0}, 12},
                            {{16, 101}, {1, 0}, 16},
                            {{14, 101}, {1, 0}, 1},
                            {{3, 5, 40}, {0, 2, 1}, 5},
                            {{3, 40, 5}, {0, 2, 1}, 5},
                            {{2, 3, 40, 3}, {0, 3, 1, 2}, 3},
                            {{2, 3, 3, 40}, {0, 2, 3, 1}, 3},
                            {{9, 101}, {1, 0}, 1},
                            {{101, 9}, {1, 0}, 1, "fusion_tiles"},
                            {{3, 40, 5}, {2, 0, 1}, 5},
                            {{40, 3, 5}, {2, 1, 0}, 1},
                            {{9, 7, 3}, {0, 2, 1}, 1}};
  hlo::LowerOptions options;
  options.limits.vector_bytes = 64;
  options.limits.scratch_bytes = 256 << 10;
  for (const Permuted& c : cases) {
    for (const char* type : {"f32", "i8", "complex<f64>"}) {
      const std::string text = text_of(c, type);
      SCOPED_TRACE(text);
      const auto plain = imported(text);
      const auto module = fused(text);
      const auto program = hlo::compile_to_program(*module, options);
      ASSERT_TRUE(program) << program.error().to_string();
      ASSERT_EQ(program->kernels.size(), 1U);
      EXPECT_EQ(program->kernels[0].name, c.kernel);
      const size_t parts = std::string_view(type).starts_with("complex") ? 2 : 1;
      if (c.kernel == "fusion") EXPECT_EQ(stores_of(program->kernels[0]), c.elements * parts);
      const std::vector<Literal> arguments = arguments_of(*plain);
      const auto expected = hlo::Evaluator(*plain).run(*plain->entry(), arguments);
      ASSERT_TRUE(expected) << expected.error().to_string();
      for (const int seed : picked_runs(*plain, 1, 1)) {
        hlo::InterpretedRunOptions run = options_of_run({}, seed);
        run.lower.limits = options.limits;
        expect_results(*module, arguments, *expected, run);
      }
    }
  }
}

// Rules remove transposes of scalars, but for quantized ones.
TEST(ShortTransposes, OfScalars) {
  const auto module = imported(R"(func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %q = stablehlo.uniform_quantize %x : (tensor<f32>) -> tensor<!quant.uniform<i8:f32, 0.5>>
  %t = stablehlo.transpose %q, dims = [] : (tensor<!quant.uniform<i8:f32, 0.5>>) -> tensor<!quant.uniform<i8:f32, 0.5>>
  %d = stablehlo.uniform_dequantize %t : (tensor<!quant.uniform<i8:f32, 0.5>>) -> tensor<f32>
  return %d : tensor<f32>
})");
  hlo::LowerOptions options;
  options.limits.vector_bytes = 64;
  const auto program = hlo::compile_to_program(*module, options);
  EXPECT_TRUE(program) << program.error().to_string();
}

// Workgroups whose boxes lie within the array have a loop without a condition.
TEST(ShortTransposes, WholeBoxesAreApart) {
  hlo::LowerOptions options;
  options.limits.vector_bytes = 64;
  const auto loops_of = [&](const Permuted& c) {
    const auto program = hlo::compile_to_program(*fused(text_of(c, "f32")), options);
    EXPECT_TRUE(program) << program.error().to_string();
    return std::ranges::count_if(program->kernels[0].nodes, [](const kernel::Node& n) {
      return n.op == kernel::OpCode::kLanes;
    });
  };
  EXPECT_EQ(loops_of({{9, 101}, {1, 0}}), 2);
  EXPECT_EQ(loops_of({{9, 96}, {1, 0}}), 1);
  options.limits.vector_bytes = 16;
  EXPECT_EQ(loops_of({{9, 101}, {1, 0}}), 1);
}

// Elements that a lane gathers by one index are its own if they are few; longer rows are vectors.
TEST(ShortRows, GatheredRowsThatGoOn) {
  hlo::LowerOptions options;
  options.limits.vector_bytes = 64;
  const auto stores = [&](std::string_view row, std::string_view offsets) {
    const auto module = imported(fmt::format(
        R"(func.func @main(%x: tensor<90x{0}xf32>, %i: tensor<70x1xi32>) -> tensor<70x{0}xf32> {{
  %g = "stablehlo.gather"(%x, %i) <{{dimension_numbers = #stablehlo.gather<offset_dims = [{1}], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, {2}>}}> : (tensor<90x{0}xf32>, tensor<70x1xi32>) -> tensor<70x{0}xf32>
  return %g : tensor<70x{0}xf32>
}})",
        row, offsets,
        row == "3"     ? "3"
        : row == "7x3" ? "7, 3"
                       : "2, 3"));
    const auto program = hlo::compile_to_program(*module, options);
    EXPECT_TRUE(program) << program.error().to_string();
    return stores_of(program->kernels[0]);
  };
  EXPECT_EQ(stores("3", "1"), 3U);
  EXPECT_EQ(stores("2x3", "1, 2"), 6U);
  EXPECT_EQ(stores("7x3", "1, 2"), 1U);
  // Without scattered stores a row of six is a vector.
  options.limits.vector_bytes = 32;
  EXPECT_EQ(stores("3", "1"), 3U);
  EXPECT_EQ(stores("2x3", "1, 2"), 1U);
}

// The greatest of each row subtracted from it, or also what is left summed.
std::string rows_less_greatest(int64_t count, std::string_view type, bool is_summed) {
  const std::string sum = R"(
  %sum = stablehlo.reduce(%d init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<{0}>, tensor<{1}>) -> tensor<70x{1}>
  %wide = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<70x{1}>) -> tensor<{0}>
  %r = stablehlo.subtract %d, %wide : tensor<{0}>)";
  return fmt::format(
      R"(func.func @main(%x: tensor<{0}>) -> tensor<{0}> {{
  %zero = stablehlo.constant dense<0.0> : tensor<{1}>
  %m = stablehlo.reduce(%x init: %zero) applies stablehlo.maximum across dimensions = [1] : (tensor<{0}>, tensor<{1}>) -> tensor<70x{1}>
  %b = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<70x{1}>) -> tensor<{0}>
  %d = stablehlo.subtract %x, %b : tensor<{0}>{2}
  return {3} : tensor<{0}>
}})",
      fmt::format("70x{}x{}", count, type), type,
      is_summed ? fmt::format(fmt::runtime(sum), fmt::format("70x{}x{}", count, type), type) : "",
      is_summed ? "%r" : "%d");
}

// Rows in registers of a lane have no loop over their elements. Those of more are so if there is
// enough to do for each element.
TEST(ShortRows, AreInRegistersOfALane) {
  struct Expected {
    int64_t count;
    std::string_view type;
    bool is_summed;
    bool in_registers;
  };
  hlo::LowerOptions options;
  options.limits.vector_bytes = 64;
  options.limits.scratch_bytes = 256 << 10;
  for (const Expected& c : {Expected{2, "f32", false, true},
                            {8, "f32", false, true},
                            {10, "f32", false, false},
                            {10, "f32", true, true},
                            {12, "f64", true, true},
                            {13, "f32", true, true},
                            {13, "bf16", true, true},
                            {16, "f32", true, true},
                            {17, "bf16", true, false}}) {
    const std::string text = rows_less_greatest(c.count, c.type, c.is_summed);
    SCOPED_TRACE(text);
    const auto plain = imported(text);
    const auto module = imported(text);
    ASSERT_TRUE(hlo::fuse_elements(*module));
    const auto program = hlo::compile_to_program(*module, options);
    ASSERT_TRUE(program) << program.error().to_string();
    ASSERT_EQ(program->kernels.size(), 1U);
    const kernel::Kernel& kernel = program->kernels[0];
    const bool has_loops = kernel::any_node(kernel, kernel.body, [](const kernel::Node& n) {
      return n.op == kernel::OpCode::kReduce || n.op == kernel::OpCode::kFor;
    });
    EXPECT_EQ(stores_of(kernel) == static_cast<size_t>(c.count) && !has_loops, c.in_registers);
    const std::vector<Literal> arguments = arguments_of(*plain);
    const auto expected = hlo::Evaluator(*plain).run(*plain->entry(), arguments);
    ASSERT_TRUE(expected) << expected.error().to_string();
    hlo::InterpretedRunOptions run;
    run.lower.limits = options.limits;
    expect_results(*module, arguments, *expected, run);
  }
}

}  // namespace
}  // namespace tenon::conformance
