// Decompositions of ops whose result shape is unknown: each returns an error that says so.
#include "hlo/builder/builder.h"
#include "hlo/decomposition/decomposition_test_util.h"

namespace tenon::hlo {
namespace {

// The Module after decomposing the first decomposable op of @main, or the error.
std::string decompose_first(const std::string& text) {
  auto module = import_module(text, "test.mlir");
  if (!module) return module.error().to_string();
  Computation& main = *(*module)->find_function("main");
  for (Instruction& op : main) {
    if (!op.info().is_decomposable()) continue;
    Builder b(main, &op);
    const auto values = op.info().decompose(b, op);
    return values ? "no error" : values.error().message();
  }
  return "nothing to decompose";
}

std::string unary(const std::string& op, const std::string& type, const std::string& attributes) {
  return fmt::format(
      "func.func @main(%x: {1}) -> {1} {{\n  %r = \"{0}\"(%x) {{{2}}} : ({1}) -> {1}\n"
      "  return %r : {1}\n}}\n",
      op, type, attributes);
}

TEST(DecomposeDynamicShapes, ElementwiseAndMatrices) {
  for (const std::string op : {"chlo.asin", "chlo.lgamma", "chlo.square", "chlo.conj"}) {
    EXPECT_EQ(decompose_first(unary(op, "tensor<?xf32>", "")),
              op + ": the result shape f32[?] is not known; refine the program first");
  }
  EXPECT_EQ(
      decompose_first(unary("stablehlo.cholesky", "tensor<?x3x3xf32>", "lower = true")),
      "stablehlo.cholesky: the result shape f32[?,3,3] is not known; refine the program first");
}

TEST(DecomposeDynamicShapes, ShapesThatAreOperands) {
  const auto with_operand = [](const std::string& op, const std::string& attributes) {
    return fmt::format(
        "func.func @main(%x: tensor<3xf32>, %d: tensor<1xi64>) -> tensor<?xf32> {{\n"
        "  %r = \"{}\"(%x, %d) {{{}}} : (tensor<3xf32>, tensor<1xi64>) -> tensor<?xf32>\n"
        "  return %r : tensor<?xf32>\n}}\n",
        op, attributes);
  };
  for (const auto& [op, attributes] : std::vector<std::pair<std::string, std::string>>{
           {"stablehlo.dynamic_reshape", ""},
           {"stablehlo.dynamic_broadcast_in_dim", "broadcast_dimensions = array<i64: 0>"}}) {
    EXPECT_EQ(decompose_first(with_operand(op, attributes)),
              op + ": the result shape f32[?] is not known; refine the program first");
  }
}

TEST(DecomposeDynamicShapes, SizesOfUnknownDimensions) {
  EXPECT_EQ(decompose_first("func.func @main(%x: tensor<?xf32>) -> tensor<i32> {\n"
                            "  %r = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> "
                            "tensor<i32>\n  return %r : tensor<i32>\n}\n"),
            "stablehlo.get_dimension_size: the shape f32[?] of operand 0 is not known; refine the "
            "program first");
}

TEST(DecomposeDynamicShapes, StaticShapesDecomposeInPlace) {
  EXPECT_EQ(decompose_first(unary("chlo.asin", "tensor<2xf32>", "")), "no error");
}

}  // namespace
}  // namespace tenon::hlo
