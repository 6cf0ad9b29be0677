// Products of integers in floats: no bit changes, and what f32 might round stays.
#include <gtest/gtest.h>

#include "core/base/random.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/import/import.h"
#include "hlo/passes/normalize/layouts.h"
#include "hlo/passes/pass.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace tenon::hlo {
namespace {

// The extremes of the type, and others.
Literal integers_of(const Type& type, Random& random) {
  Literal literal(type.shape());
  const int width = bit_width(type.element_type());
  const int64_t most = int64_t{1} << std::min(width, 20);
  const int64_t first = is_unsigned_integer(type.element_type()) ? 0 : -most / 2;
  const int64_t kind = static_cast<int64_t>(random.below(3));
  for (int64_t i = 0; i < literal.element_count(); ++i) {
    const auto any = static_cast<int64_t>(random.below(static_cast<uint64_t>(most)));
    literal.set_integer(i, first + (kind == 0 ? 0 : kind == 1 ? most - 1 : any));
  }
  return literal;
}

struct FloatedProgram {
  bool changed = false;
  int64_t float_products = 0, integer_products = 0;
  std::vector<ElementType> factors;  // Of the last product.
};

// Runs the pass, and compares the results of the program before and after.
FloatedProgram floated(const std::string& text, int64_t narrow_products = 0,
                       bool byte_products = false) {
  FloatedProgram found;
  auto before = import_module(text, "t"), after = import_module(text, "t");
  EXPECT_TRUE(before) << before.error().to_string();
  if (!before || !after) return found;
  PassOptions options;
  options.cost.float_products = true;
  options.cost.narrow_products = narrow_products;
  options.cost.byte_products = byte_products;
  const auto changed = compute_integers_in_floats(**after, options);
  EXPECT_TRUE(changed && verify(**after).ok()) << print_module(**after);
  found.changed = changed && *changed;
  change_ops(**after, [&](Instruction& op) {
    if (op.code() != OpCode::kDotGeneral && op.code() != OpCode::kConvolution) return false;
    ++(is_float(op.result_type().element_type()) ? found.float_products : found.integer_products);
    found.factors = {op.operand_type(0).element_type(), op.operand_type(1).element_type()};
    return false;
  });
  Random random(7);
  for (int run = 0; run < 4; ++run) {
    std::vector<Literal> arguments;
    const Computation& main = *(*before)->entry();
    for (size_t i = 0; i < main.parameter_count(); ++i)
      arguments.push_back(integers_of(main.parameter_types()[i], random));
    const auto expected = Evaluator(**before).run(main, arguments);
    const auto got = Evaluator(**after).run(*(*after)->entry(), arguments);
    EXPECT_TRUE(expected && got);
    if (expected && got) EXPECT_TRUE((*got)[0] == (*expected)[0]) << print_module(**after);
  }
  return found;
}

std::string dot(const std::string& x, const std::string& y, int64_t depth,
                const std::string& result = "i32", int64_t rows = 8, int64_t columns = 5) {
  return fmt::format(
      R"(func.func @main(%x: tensor<{3}x{0}x{1}>, %y: tensor<{0}x{4}x{2}>) -> tensor<{3}x{4}x{5}> {{
  %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<{3}x{0}x{1}>, tensor<{0}x{4}x{2}>) -> tensor<{3}x{4}x{5}>
  return %r : tensor<{3}x{4}x{5}>
}})",
      depth, x, y, rows, columns, result);
}

TEST(FloatProducts, OfBytesKeepTheRightFactorAsBytes) {
  for (const char* x : {"i8", "ui8"}) {
    const FloatedProgram found = floated(dot(x, "i8", 300));
    EXPECT_EQ(found.float_products, 1);
    EXPECT_EQ(found.integer_products, 0);
    EXPECT_EQ(found.factors, (std::vector{ElementType::kF32, ElementType::kS8}));
  }
  EXPECT_TRUE(floated(dot("ui8", "ui8", 200, "ui32")).changed);
  EXPECT_TRUE(floated(dot("i8", "i8", 200, "i64")).changed);
}

TEST(FloatProducts, ALongSumIsCutWhereItWouldBeRounded) {
  // 1,024 products of -128 and -128 are 2^24.
  EXPECT_EQ(floated(dot("i8", "i8", 1024)).float_products, 1);
  EXPECT_EQ(floated(dot("i8", "i8", 1025)).float_products, 2);
  EXPECT_EQ(floated(dot("i8", "i8", 4096)).float_products, 4);
  EXPECT_FALSE(floated(dot("i8", "i8", 4097)).changed) << "too many parts";
}

TEST(FloatProducts, WhatMayBeRoundedOrWrapStays) {
  EXPECT_FALSE(floated(dot("i32", "i32", 128)).changed) << "any numbers";
  EXPECT_FALSE(floated(dot("i16", "i16", 128)).changed) << "each product may be rounded";
  EXPECT_FALSE(floated(dot("i8", "ui8", 128, "ui32")).changed) << "negative sums";
  EXPECT_FALSE(floated(dot("i8", "i8", 300, "i16")).changed) << "sums wrap";
  EXPECT_FALSE(floated(dot("i8", "i8", 8)).changed) << "few products";
  PassOptions options;  // A target whose integers are as fast.
  auto module = import_module(dot("i8", "i8", 300), "t");
  const auto changed = compute_integers_in_floats(**module, options);
  EXPECT_TRUE(changed && !*changed);
}

TEST(FloatProducts, OfNumbersLessTheirZeroPoint) {
  // 255 · 129 · 510 = 16,776,450; one more is over 2^24.
  const auto program = [](int64_t depth) {
    return fmt::format(
        R"(func.func @main(%x: tensor<8x{0}xui8>, %y: tensor<{0}x5xi8>) -> tensor<8x5xi32> {{
  %z = stablehlo.constant dense<130> : tensor<8x{0}xi32>
  %o = stablehlo.constant dense<1> : tensor<{0}x5xi32>
  %a = stablehlo.convert %x : (tensor<8x{0}xui8>) -> tensor<8x{0}xi32>
  %b = stablehlo.subtract %a, %z : tensor<8x{0}xi32>
  %c = stablehlo.convert %y : (tensor<{0}x5xi8>) -> tensor<{0}x5xi32>
  %d = stablehlo.subtract %c, %o : tensor<{0}x5xi32>
  %r = stablehlo.dot_general %b, %d, contracting_dims = [1] x [0] : (tensor<8x{0}xi32>, tensor<{0}x5xi32>) -> tensor<8x5xi32>
  return %r : tensor<8x5xi32>
}})",
        depth);
  };
  // From -130 to 125, and from -129 to 126: 130 · 129 · 1,000 = 16,770,000.
  EXPECT_EQ(floated(program(1000)).float_products, 1);
  EXPECT_EQ(floated(program(1001)).float_products, 2);
  EXPECT_EQ(floated(program(1000)).factors, (std::vector{ElementType::kF32, ElementType::kF32}));
}

TEST(FloatProducts, AConversionThatChangesNumbersIsNotLeftOut) {
  for (const auto& [from, to] : {std::pair("ui8", "i4"), std::pair("i8", "ui16"),
                                 std::pair("ui8", "i8"), std::pair("ui8", "i16")}) {
    const std::string text = fmt::format(
        R"(func.func @main(%x: tensor<8x64xi8>, %y: tensor<64x9x{0}>) -> tensor<8x9xi32> {{
  %c = stablehlo.convert %y : (tensor<64x9x{0}>) -> tensor<64x9x{1}>
  %r = stablehlo.dot_general %x, %c, contracting_dims = [1] x [0] : (tensor<8x64xi8>, tensor<64x9x{1}>) -> tensor<8x9xi32>
  return %r : tensor<8x9xi32>
}})",
        from, to);
    const FloatedProgram found = floated(text);
    const bool changes = to != std::string("i16");
    if (found.changed) EXPECT_EQ(found.factors[1] == ElementType::kU8, !changes) << text;
  }
}

TEST(FloatProducts, SumsThatMayWrapHaveNoRange) {
  // 200 + 200 in u8 is 144.
  const std::string text =
      R"(func.func @main(%x: tensor<8x64xui8>, %y: tensor<64x9xi8>) -> tensor<8x9xi32> {
  %s = stablehlo.add %x, %x : tensor<8x64xui8>
  %t = stablehlo.negate %y : tensor<64x9xi8>
  %r = stablehlo.dot_general %s, %t, contracting_dims = [1] x [0] : (tensor<8x64xui8>, tensor<64x9xi8>) -> tensor<8x9xi32>
  return %r : tensor<8x9xi32>
})";
  EXPECT_EQ(floated(text).float_products, 1) << "they are bytes still";
}

// Where the target multiplies them faster, integers stay, in the fewest bits that have them.
TEST(FloatProducts, NarrowIntegersStay) {
  using enum ElementType;
  const auto program = [](const char* x, const char* y, const char* as, int64_t rows) {
    return fmt::format(
        R"(func.func @main(%x: tensor<{3}x64x{0}>, %y: tensor<64x10x{1}>) -> tensor<{3}x10xi32> {{
  %a = stablehlo.convert %x : (tensor<{3}x64x{0}>) -> tensor<{3}x64x{2}>
  %b = stablehlo.convert %y : (tensor<64x10x{1}>) -> tensor<64x10x{2}>
  %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<{3}x64x{2}>, tensor<64x10x{2}>) -> tensor<{3}x10xi32>
  return %r : tensor<{3}x10xi32>
}})",
        x, y, as, rows);
  };
  const auto factors = [&](const char* x, const char* y, const char* as, int64_t rows = 8) {
    return floated(program(x, y, as, rows), 8).factors;
  };
  const auto pair = [](ElementType x, ElementType y) { return std::vector<ElementType>{x, y}; };
  EXPECT_EQ(factors("i8", "ui8", "i32"), pair(kS16, kS16)) << "factors have one type";
  EXPECT_EQ(factors("i8", "i8", "i16"), pair(kS8, kS8));
  EXPECT_EQ(factors("ui8", "i1", "i32"), pair(kU8, kU8));
  EXPECT_EQ(factors("i16", "i8", "i32"), pair(kS16, kS16));
  EXPECT_EQ(factors("i4", "i8", "i32"), pair(kS8, kS8));
  EXPECT_EQ(factors("i8", "i8", "i32", 7), pair(kF32, kS8)) << "too few rows";
  EXPECT_EQ(factors("i16", "i16", "i32"), pair(kS32, kS32)) << "both are wide";
  EXPECT_EQ(factors("ui8", "i8", "i8"), pair(kS8, kS8)) << "the conversion changes numbers";
  EXPECT_FALSE(floated(dot("i8", "i8", 64), 8).changed) << "they are narrow as they are";
}

// Numbers less their zero point may fit 8 bits again.
TEST(FloatProducts, NarrowIntegersLessTheirZeroPoint) {
  const std::string text =
      R"(func.func @main(%x: tensor<8x64xui8>, %y: tensor<64x9xi8>) -> tensor<8x9xi32> {
  %a = stablehlo.convert %x : (tensor<8x64xui8>) -> tensor<8x64xi32>
  %z = stablehlo.constant dense<128> : tensor<8x64xi32>
  %s = stablehlo.subtract %a, %z : tensor<8x64xi32>
  %b = stablehlo.convert %y : (tensor<64x9xi8>) -> tensor<64x9xi32>
  %r = stablehlo.dot_general %s, %b, contracting_dims = [1] x [0] : (tensor<8x64xi32>, tensor<64x9xi32>) -> tensor<8x9xi32>
  return %r : tensor<8x9xi32>
})";
  const FloatedProgram found = floated(text, 8);
  EXPECT_EQ(found.integer_products, 1);
  EXPECT_EQ(found.factors, (std::vector<ElementType>{ElementType::kS8, ElementType::kS8}));
}

// A product whose lines or products are several loops is no matrix.
TEST(FloatProducts, OtherLayoutsAreFloats) {
  const auto factors = [](const char* x, const char* y, const char* dims, const char* result) {
    return floated(
               fmt::format(
                   R"(func.func @main(%x: tensor<{0}xi8>, %y: tensor<{1}xi8>) -> tensor<{3}xi32> {{
  %r = stablehlo.dot_general %x, %y, {2} : (tensor<{0}xi8>, tensor<{1}xi8>) -> tensor<{3}xi32>
  return %r : tensor<{3}xi32>
}})",
                   x, y, dims, result),
               8, true)
        .factors[0];
  };
  using enum ElementType;
  EXPECT_EQ(factors("16x24x4", "24x64", "contracting_dims = [1] x [0]", "16x4x64"), kF32);
  EXPECT_EQ(factors("16x24x3", "24x16x3", "batching_dims = [2] x [2], contracting_dims = [1] x [0]",
                    "3x16x16"),
            kF32);
  EXPECT_EQ(factors("16x3x24", "24x3x16", "contracting_dims = [1, 2] x [1, 0]", "16x16"), kF32);
  EXPECT_EQ(factors("4x4x24", "24x16", "contracting_dims = [2] x [0]", "4x4x16"), kS8);
}

// Zero points, which are constants or arguments, go behind the product.
TEST(FloatProducts, ZeroPointsBehindProductsOfBytes) {
  const auto program = [](const char* of_x, const char* of_y) {
    return fmt::format(
        R"(func.func @main(%x: tensor<2x8x3x24xui8>, %y: tensor<2x9x3x24xi8>, %p: tensor<ui8>, %q: tensor<i8>) -> tensor<2x8x9xi32> {{
  %a = stablehlo.convert %x : (tensor<2x8x3x24xui8>) -> tensor<2x8x3x24xi32>
  %b = stablehlo.convert %y : (tensor<2x9x3x24xi8>) -> tensor<2x9x3x24xi32>
  %c = stablehlo.constant dense<117> : tensor<i32>
  %d = stablehlo.constant dense<-7> : tensor<i32>
  %e = stablehlo.convert %p : (tensor<ui8>) -> tensor<i32>
  %f = stablehlo.convert %q : (tensor<i8>) -> tensor<i32>
  %g = stablehlo.broadcast_in_dim %{}, dims = [] : (tensor<i32>) -> tensor<2x8x3x24xi32>
  %h = stablehlo.broadcast_in_dim %{}, dims = [] : (tensor<i32>) -> tensor<2x9x3x24xi32>
  %s = stablehlo.subtract %a, %g : tensor<2x8x3x24xi32>
  %t = stablehlo.subtract %b, %h : tensor<2x9x3x24xi32>
  %r = stablehlo.dot_general %s, %t, batching_dims = [0] x [0], contracting_dims = [2, 3] x [2, 3] : (tensor<2x8x3x24xi32>, tensor<2x9x3x24xi32>) -> tensor<2x8x9xi32>
  return %r : tensor<2x8x9xi32>
}})",
        of_x, of_y);
  };
  using enum ElementType;
  for (const auto& [of_x, of_y] : {std::pair("c", "f"), std::pair("e", "d"), std::pair("e", "f")}) {
    const FloatedProgram found = floated(program(of_x, of_y), 8, true);
    EXPECT_EQ(found.integer_products, 1);
    EXPECT_EQ(found.factors, (std::vector<ElementType>{kS8, kS8})) << of_x << " " << of_y;
  }
}

TEST(FloatProducts, ConstantsBecomeFloatsOrBytes) {
  const auto program = [](int64_t rows, int64_t columns) {
    return fmt::format(R"(func.func @main(%x: tensor<4x{0}xi8>) -> tensor<4x{1}xi32> {{
  %w = stablehlo.constant dense<-100> : tensor<{0}x{1}xi32>
  %a = stablehlo.convert %x : (tensor<4x{0}xi8>) -> tensor<4x{0}xi32>
  %r = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : (tensor<4x{0}xi32>, tensor<{0}x{1}xi32>) -> tensor<4x{1}xi32>
  return %r : tensor<4x{1}xi32>
}})",
                       rows, columns);
  };
  EXPECT_EQ(floated(program(256, 64)).factors, (std::vector{ElementType::kF32, ElementType::kF32}));
  EXPECT_EQ(floated(program(256, 1024)).factors,
            (std::vector{ElementType::kF32, ElementType::kS8}));
}

TEST(FloatProducts, Convolutions) {
  const auto program = [](const std::string& filter, const std::string& more,
                          const std::string& result) {
    return fmt::format(
        R"(func.func @main(%x: tensor<2x6x6x8xui8>, %w: tensor<{0}xi8>) -> tensor<{2}xi32> {{
  %z = stablehlo.constant dense<255> : tensor<2x6x6x8xi32>
  %a = stablehlo.convert %x : (tensor<2x6x6x8xui8>) -> tensor<2x6x6x8xi32>
  %b = stablehlo.subtract %a, %z : tensor<2x6x6x8xi32>
  %c = stablehlo.convert %w : (tensor<{0}xi8>) -> tensor<{0}xi32>
  %r = stablehlo.convolution(%b, %c) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {{pad = [[1, 1], [1, 1]]}} {{{1}}} : (tensor<2x6x6x8xi32>, tensor<{0}xi32>) -> tensor<{2}xi32>
  return %r : tensor<{2}xi32>
}})",
        filter, more, result);
  };
  const FloatedProgram plain = floated(
      program("3x3x8x6", "batch_group_count = 1 : i64, feature_group_count = 1 : i64", "2x6x6x6"));
  EXPECT_EQ(plain.float_products, 1);
  EXPECT_EQ(plain.factors, (std::vector{ElementType::kF32, ElementType::kF32}));
  EXPECT_TRUE(
      floated(program("3x3x2x8", "batch_group_count = 1 : i64, feature_group_count = 4 : i64",
                      "2x6x6x8"))
          .changed);
}

}  // namespace
}  // namespace tenon::hlo
