// Transposes to and from rows of a few elements, where lanes are wide vectors.
#include <algorithm>

#include "core/kernel/ir/visitor.h"
#include "hlo/lower/schedules/schedules_test_util.h"

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

}  // namespace
}  // namespace tenon::conformance
