// Whether constants become panels, and convolutions products: the backend is asked.
#include <gtest/gtest.h>

#include <set>

#include "core/backend/interpreter/interpreter.h"
#include "core/backend/layers/forward.h"
#include "hlo/driver/compile.h"
#include "hlo/import/import.h"

namespace tenon::hlo {
namespace {

// Takes products of a matrix with factors of at most so many dimensions.
class TakesMatrices final : public backend::ForwardingBackend {
 public:
  explicit TakesMatrices(int64_t most_rank)
      : ForwardingBackend(backend::make_interpreter_backend()), most_rank_(most_rank) {}
  Result<backend::LibraryCallPlan> plan(const backend::TargetInfo&,
                                        const backend::LibraryCallSite& site) override {
    ++asked;
    if (!std::holds_alternative<program::Contraction>(site.call) ||
        site.operands[1].rank() > most_rank_) {
      return unimplemented("no matrix");
    }
    return backend::LibraryCallPlan{site.operands[1].to_string(), 0, {}, 0};
  }
  bool takes_segments() const override { return false; }

  int asked = 0;

 private:
  const int64_t most_rank_;
};

// A library that knows matrices alone keeps its products, and is not asked without large constants.
TEST(Panels, AreMadeWhereTheBackendTakesThem) {
  const auto plans = [](TakesMatrices& backend, int64_t columns, bool may_lay_out = true) {
    backend::TargetInfo target = backend.devices().value()[0].target;
    target.vector_bytes = 64;
    std::string row = "[1.0";
    for (int64_t c = 1; c < columns; ++c) row += fmt::format(", {}.0", c % 7);
    std::string rows = row + "]";
    for (int64_t r = 1; r < 64; ++r) rows += ", " + row + "]";
    const auto module =
        import_module(fmt::format(R"(func.func @main(%x: tensor<8x64xf32>) -> tensor<8x{0}xf32> {{
  %w = stablehlo.constant dense<[{1}]> : tensor<64x{0}xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x64xf32>, tensor<64x{0}xf32>) -> tensor<8x{0}xf32>
  return %0 : tensor<8x{0}xf32>
}})",
                                  columns, rows),
                      "t.mlir");
    EXPECT_TRUE(module) << module.error().to_string();
    CompileOptions options;
    options.lower.limits.lays_out_constants = may_lay_out;
    const auto compiled = compile(**module, backend, target, options);
    EXPECT_TRUE(compiled) << compiled.error().to_string();
    std::vector<std::string> texts;
    for (const auto& [lowered, plan] : compiled->compiled.plans) texts.push_back(plan.plan);
    return texts;
  };
  TakesMatrices any(3), matrices(2), small(3), shared(3);
  EXPECT_EQ(plans(any, 256), std::vector<std::string>{"f32[8,64,32]"});
  EXPECT_EQ(plans(matrices, 256), std::vector<std::string>{"f32[64,256]"});
  EXPECT_EQ(matrices.asked, 2);
  EXPECT_EQ(plans(small, 64), std::vector<std::string>{"f32[64,64]"});
  EXPECT_EQ(small.asked, 1);
  EXPECT_EQ(plans(shared, 256, false), std::vector<std::string>{"f32[64,256]"});
}

// The gradients of a convolution of few places are library calls, with the filter as it lies, and
// one kernel each brings the windows together or apart.
TEST(ConvolutionProducts, ReachTheBackendAsContractions) {
  const auto module = import_module(
      R"(func.func @main(%x: tensor<2x40x4x4xf32>, %g: tensor<2x48x2x2xf32>, %w: tensor<48x40x3x3xf32>) -> (tensor<2x40x4x4xf32>, tensor<48x40x3x3xf32>) {
  %v = stablehlo.reverse %w, dims = [2, 3] : tensor<48x40x3x3xf32>
  %a = stablehlo.convolution(%g, %v) dim_numbers = [b, f, 0, 1]x[i, o, 0, 1]->[b, f, 0, 1], window = {pad = [[1, 2], [1, 2]], lhs_dilate = [2, 2]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x48x2x2xf32>, tensor<48x40x3x3xf32>) -> tensor<2x40x4x4xf32>
  %b = stablehlo.convolution(%x, %g) dim_numbers = [f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1], window = {pad = [[1, 0], [1, 0]], rhs_dilate = [2, 2]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x40x4x4xf32>, tensor<2x48x2x2xf32>) -> tensor<48x40x3x3xf32>
  return %a, %b : tensor<2x40x4x4xf32>, tensor<48x40x3x3xf32>
})",
      "t.mlir");
  ASSERT_TRUE(module) << module.error().to_string();
  TakesMatrices backend(2);
  backend::TargetInfo target = backend.devices().value()[0].target;
  target.vector_bytes = 64;
  const auto compiled = compile(**module, backend, target, {});
  ASSERT_TRUE(compiled) << compiled.error().to_string();
  std::set<std::string> filters;
  for (const auto& [lowered, plan] : compiled->compiled.plans) filters.insert(plan.plan);
  EXPECT_EQ(filters, (std::set<std::string>{"f32[48,360]", "f32[8,360]"}));
  int windows = 0;
  for (const auto& kernel : compiled->compiled.program.kernels) {
    EXPECT_EQ(kernel.name.find("convolution"), std::string::npos) << kernel.name;
    EXPECT_EQ(kernel.name.find("reverse"), std::string::npos) << kernel.name;
    EXPECT_EQ(kernel.name.find("pad"), std::string::npos) << kernel.name;
    windows += kernel.name.find("concatenated") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(windows, 1);
}

}  // namespace
}  // namespace tenon::hlo
