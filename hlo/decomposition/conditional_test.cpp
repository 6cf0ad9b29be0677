// Ops that have both a decomposition and an evaluator function: both give the same results.
#include <cmath>

#include "hlo/decomposition/decomposition_test_util.h"
#include "hlo/decomposition/needs_decomposition.h"

namespace tenon::hlo {
namespace {

Status decompose_all(Computation& computation) {
  Instruction* op = computation.first();
  while (op != nullptr) {
    Instruction* next = op->next();
    if (!decomposition::needs_decomposition(*op)) {
      for (size_t r = 0; r < op->region_count(); ++r) TENON_TRY(decompose_all(op->region(r)));
    } else {
      Instruction* before = op->previous();
      Builder builder(computation, op);
      auto results = decomposition::decompose(builder, *op);
      if (!results) return results.error();
      for (uint32_t i = 0; i < op->result_count(); ++i) op->replace_uses(i, (*results)[i]);
      computation.erase(op);
      // The new ops may need decomposition too.
      next = before != nullptr ? before->next() : computation.first();
    }
    op = next;
  }
  return {};
}

bool anything_to_decompose(const Computation& computation) {
  for (const Instruction& op : computation) {
    if (decomposition::needs_decomposition(op)) return true;
  }
  return false;
}

struct BothWays {
  std::vector<Literal> direct, decomposed;
  bool had_to_decompose = false;
};

BothWays both_ways(const std::string& text, const std::vector<Literal>& arguments) {
  BothWays both;
  auto module = import_module(text, "test.mlir");
  EXPECT_TRUE(module) << module.error().to_string() << "\n" << text;
  if (!module) return both;
  Computation& main = *(*module)->find_function("main");
  auto direct = Evaluator(**module).run(main, arguments);
  EXPECT_TRUE(direct) << direct.error().to_string();
  both.had_to_decompose = anything_to_decompose(main);
  const Status status = decompose_all(main);
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_FALSE(anything_to_decompose(main));
  if (!direct || !status.ok()) return both;
  auto decomposed = Evaluator(**module).run(main, arguments);
  EXPECT_TRUE(decomposed) << decomposed.error().to_string();
  both.direct = *direct;
  if (decomposed) both.decomposed = *decomposed;
  return both;
}

// --- Fourier transforms

Literal some_data(ElementType type, const Dims& dims) {
  Literal data(Shape(type, dims));
  const Reals parts = some_reals(static_cast<size_t>(2 * data.element_count()), 7);
  for (int64_t i = 0; i < data.element_count(); ++i) {
    const auto at = static_cast<size_t>(2 * i);
    if (is_complex(type)) {
      data.set_complex(i, {parts[at], parts[at + 1]});
    } else {
      data.set_double(i, parts[at]);
    }
  }
  return data;
}

void expect_same_transform(const std::string& kind, const Dims& dims, const I64s& length,
                           ElementType complex_type, bool needs) {
  SCOPED_TRACE(
      fmt::format("{} of [{}], length [{}]", kind, fmt::join(dims, ","), fmt::join(length, ",")));
  const ElementType real_type = complex_part(complex_type);
  // `dims` are the dimensions of the real or full form of the data.
  Dims half = dims;
  if (!half.empty() && half.back() != 0) half.back() = half.back() / 2 + 1;
  const Literal data =
      some_data(kind == "RFFT" ? real_type : complex_type, kind == "IRFFT" ? half : dims);
  const Shape result(kind == "IRFFT" ? real_type : complex_type, kind == "RFFT" ? half : dims);
  const OpCall op{"stablehlo.fft",
                  fmt::format("fft_type = #stablehlo<fft_type {}>, fft_length = array<i64: {}>",
                              kind, fmt::join(length, ", ")),
                  {Type(result).to_mlir().substr(7, Type(result).to_mlir().size() - 8)},
                  {}};
  const BothWays both = both_ways(op.text({data}), {data});
  EXPECT_EQ(both.had_to_decompose, needs);
  ASSERT_EQ(both.decomposed.size(), 1u);
  ASSERT_TRUE(both.decomposed[0].shape() == both.direct[0].shape());
  const double unit = complex_type == ElementType::kC64 ? 6e-8 : 2e-16;
  double norm = 1;
  for (int64_t i = 0; i < data.element_count(); ++i) norm += std::norm(data.get_complex(i));
  for (int64_t i = 0; i < both.direct[0].element_count(); ++i) {
    EXPECT_LT(std::abs(both.direct[0].get_complex(i) - both.decomposed[0].get_complex(i)),
              32 * unit * norm)
        << "element " << i;
  }
}

TEST(Fft, AnyLength) {
  for (const std::string kind : {"FFT", "IFFT", "RFFT", "IRFFT"}) {
    for (const int64_t n : {1, 2, 3, 5, 6, 7, 8, 12, 15, 17, 34, 38, 100, 143}) {
      const bool needs = n % 17 == 0 || n % 19 == 0;
      expect_same_transform(kind, {2, n}, {n}, ElementType::kC128, needs);
    }
    expect_same_transform(kind, {7}, {7}, ElementType::kC64, false);
    expect_same_transform(kind, {19}, {19}, ElementType::kC64, true);
  }
}

TEST(Fft, ManyDimensions) {
  for (const std::string kind : {"FFT", "IFFT", "RFFT", "IRFFT"}) {
    expect_same_transform(kind, {2, 3, 4, 5}, {3, 4, 5}, ElementType::kC128, false);
    expect_same_transform(kind, {17, 4}, {17, 4}, ElementType::kC128, true);
    expect_same_transform(kind, {2, 6, 17}, {6, 17}, ElementType::kC128, true);
    expect_same_transform(kind, {4, 8}, {4, 8}, ElementType::kC128, false);
  }
}

TEST(Fft, Empty) {
  expect_same_transform("FFT", {3, 0}, {0}, ElementType::kC64, true);
  expect_same_transform("FFT", {0, 3}, {3}, ElementType::kC64, false);
  expect_same_transform("FFT", {0, 17}, {17}, ElementType::kC64, true);
}

// --- Quantized programs: the same stored integers

Literal all_bytes() {
  Literal data(Shape(ElementType::kS8, {256}));
  for (int64_t i = 0; i < 256; ++i) data.set_integer(i, i - 128);
  return data;
}

void expect_same_bits(const std::string& text, const std::vector<Literal>& arguments) {
  const BothWays both = both_ways(text, arguments);
  EXPECT_TRUE(both.had_to_decompose) << text;
  ASSERT_EQ(both.direct.size(), both.decomposed.size());
  for (size_t i = 0; i < both.direct.size(); ++i) {
    EXPECT_TRUE(both.direct[i] == both.decomposed[i]) << text << both.direct[i].to_string() << "\n"
                                                      << both.decomposed[i].to_string();
  }
}

TEST(Quantized, QuantizeEveryKindOfNumber) {
  Reals x = {0, -0.0, NAN, INFINITY, -INFINITY, 1e30, 0.05, 0.15, 0.25, -0.05, 12.75, -12.85};
  const Reals more = some_reals(116, 3);
  for (const double value : more) x.push_back(value * 20);
  for (const char* const q : {"i8:f32, 0.1:-3", "u8:f32, 0.1:128", "i8<-7:7>:f32, 1.0",
                              "i32:f32, 1.0e-9", "i4:f32, 2.5:1", "i16:f32, 3.0e-3:100"}) {
    const std::string text = fmt::format(
        "func.func @main(%x: tensor<128xf32>) -> tensor<128xf32> {{\n"
        "  %q = stablehlo.uniform_quantize %x : (tensor<128xf32>) -> "
        "tensor<128x!quant.uniform<{0}>>\n"
        "  %r = stablehlo.uniform_dequantize %q : (tensor<128x!quant.uniform<{0}>>) -> "
        "tensor<128xf32>\n"
        "  return %r : tensor<128xf32>\n}}\n",
        q);
    expect_same_bits(text, {reals({128}, x, ElementType::kF32)});
  }
}

TEST(Quantized, PerAxis) {
  expect_same_bits(
      "func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {\n"
      "  %q = stablehlo.uniform_quantize %x : (tensor<2x3xf32>) -> "
      "tensor<2x3x!quant.uniform<i8:f32:1, "
      "{0.1:1, 0.2:-5, 0.3}>>\n"
      "  %r = stablehlo.uniform_dequantize %q : (tensor<2x3x!quant.uniform<i8:f32:1, {0.1:1, "
      "0.2:-5, "
      "0.3}>>) -> tensor<2x3xf32>\n"
      "  return %r : tensor<2x3xf32>\n}\n",
      {reals({2, 3}, some_reals(6, 4), ElementType::kF32)});
}

TEST(Quantized, Requantize) {
  expect_same_bits(
      "func.func @main(%x: tensor<256x!quant.uniform<i8:f32, 0.1:-3>>) -> "
      "tensor<256x!quant.uniform<u8:f32, "
      "0.07:9>> {\n"
      "  %r = stablehlo.uniform_quantize %x : (tensor<256x!quant.uniform<i8:f32, 0.1:-3>>) -> "
      "tensor<256x!quant.uniform<u8:f32, 0.07:9>>\n"
      "  return %r : tensor<256x!quant.uniform<u8:f32, 0.07:9>>\n}\n",
      {all_bytes()});
}

TEST(Quantized, Elementwise) {
  const std::string from = "tensor<256x!quant.uniform<i8:f32, 0.05:-3>>";
  const std::string to = "tensor<256x!quant.uniform<i8:f32, 0.11:7>>";
  for (const std::string op :
       {"tanh", "negate", "abs", "cbrt", "ceil", "sine", "logistic", "sign"}) {
    expect_same_bits(
        fmt::format("func.func @main(%x: {0}) -> {1} {{\n  %r = \"stablehlo.{2}\"(%x) : ({0}) "
                    "-> {1}\n  return %r : {1}\n}}\n",
                    from, to, op),
        {all_bytes()});
  }
  // The same value as both operands.
  for (const std::string op : {"add", "multiply", "divide", "maximum", "atan2"}) {
    expect_same_bits(
        fmt::format("func.func @main(%x: {0}) -> {1} {{\n  %r = \"stablehlo.{2}\"(%x, %x) : "
                    "({0}, {0}) -> {1}\n  return %r : {1}\n}}\n",
                    from, to, op),
        {all_bytes()});
  }
}

TEST(Quantized, DotAndReduce) {
  const std::string q = "!quant.uniform<i8:f32, 0.05>";
  expect_same_bits(
      fmt::format(
          "func.func @main(%x: tensor<16x16x{0}>) -> tensor<16x16x!quant.uniform<i32:f32, 0.0025>> "
          "{{\n"
          "  %r = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<16x16x{0}>, "
          "tensor<16x16x{0}>) -> tensor<16x16x!quant.uniform<i32:f32, 0.0025>>\n"
          "  return %r : tensor<16x16x!quant.uniform<i32:f32, 0.0025>>\n}}\n",
          q),
      {all_bytes().reshaped({16, 16})});
  expect_same_bits(
      fmt::format(
          "func.func @main(%x: tensor<16x16x{0}>, %i: tensor<{0}>) -> tensor<16x{0}> {{\n"
          "  %r = \"stablehlo.reduce\"(%x, %i) ({{ ^bb0(%a: tensor<{0}>, %b: tensor<{0}>):\n"
          "    %s = \"stablehlo.maximum\"(%a, %b) : (tensor<{0}>, tensor<{0}>) -> tensor<{0}>\n"
          "    \"stablehlo.return\"(%s) : (tensor<{0}>) -> ()\n"
          "  }}) {{dimensions = array<i64: 1>}} : (tensor<16x16x{0}>, tensor<{0}>) -> "
          "tensor<16x{0}>\n"
          "  return %r : tensor<16x{0}>\n}}\n",
          q),
      {all_bytes().reshaped({16, 16}), integers({}, {-128}, ElementType::kS8)});
}

// Ops that only move elements do not need a decomposition, but may have one.
TEST(Quantized, MovesWorkOnStorage) {
  const std::string text =
      "func.func @main(%x: tensor<16x16x!quant.uniform<i8:f32, 0.05:-3>>) -> "
      "tensor<16x16x!quant.uniform<i8:f32, 0.05:-3>> {\n"
      "  %r = stablehlo.transpose %x, dims = [1, 0] : (tensor<16x16x!quant.uniform<i8:f32, "
      "0.05:-3>>) -> "
      "tensor<16x16x!quant.uniform<i8:f32, 0.05:-3>>\n"
      "  return %r : tensor<16x16x!quant.uniform<i8:f32, 0.05:-3>>\n}\n";
  auto module = import_module(text, "test.mlir");
  ASSERT_TRUE(module);
  Computation& main = *(*module)->find_function("main");
  EXPECT_FALSE(anything_to_decompose(main));
  const Literal data = all_bytes().reshaped({16, 16});
  const auto direct = Evaluator(**module).run(main, {data});
  Instruction* op = main.first();
  while (op != nullptr && op->code() != OpCode::kTranspose) op = op->next();
  ASSERT_NE(op, nullptr);
  Builder builder(main, op);
  const auto results = decomposition::decompose(builder, *op);
  ASSERT_TRUE(results) << results.error().to_string();
  op->replace_uses(0, (*results)[0]);
  main.erase(op);
  const auto decomposed = Evaluator(**module).run(main, {data});
  ASSERT_TRUE(direct && decomposed);
  EXPECT_TRUE((*direct)[0] == (*decomposed)[0]);
}

}  // namespace
}  // namespace tenon::hlo
