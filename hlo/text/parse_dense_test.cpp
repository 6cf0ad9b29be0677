#include "core/types/float_convert.h"
#include "hlo/text/text_test_util.h"

namespace tenon::hlo {
namespace {

using testing::parse_attribute;
using enum ElementType;

// The elements of a dense attribute as text, or its error.
std::string elements(std::string_view text, bool hlo = false) {
  const auto value = parse_attribute(text, hlo);
  if (!value) return value.error().to_string();
  return value->get<DenseAttr>()->expanded().to_string();
}

TEST(ParseDense, Elements) {
  const std::pair<const char*, const char*> cases[] = {
      {"dense<5> : tensor<i32>", "5"},
      {"dense<[5]> : tensor<i32>", "5"},  // a rank-0 value in a list
      {"dense<5> : tensor<2x2xi32>", "[[5, 5], [5, 5]]"},
      {"dense<[[1, 2], [3, -4]]> : tensor<2x2xi8>", "[[1, 2], [3, -4]]"},
      {"dense<[1.5, -0.0, 1.0e-5]> : tensor<3xf32>", "[1.5, -0, 1e-05]"},
      {"dense<[1, 2]> : tensor<2xf32>", "[1, 2]"},
      {"dense<[0x7F800000, 0xFF800000, 0x7FC00000]> : tensor<3xf32>", "[inf, -inf, nan]"},
      {"dense<[0x7F80, 0x3F80]> : tensor<2xbf16>", "[inf, 1]"},
      {"dense<0x7C> : tensor<f8E5M2>", "inf"},
      {"dense<[true, false, 1, 0]> : tensor<4xi1>", "[true, false, true, false]"},
      {"dense<[-8, 7]> : tensor<2xi4>", "[-8, 7]"},
      {"dense<[0xF, 0x7]> : tensor<2xi4>", "[-1, 7]"},
      {"dense<[3, 0]> : tensor<2xui2>", "[3, 0]"},
      {"dense<[255, 0xFF]> : tensor<2xui8>", "[255, 255]"},
      {"dense<0xFFFFFFFF> : tensor<i32>", "-1"},
      {"dense<[128, 255, -128]> : tensor<3xi8>", "[-128, -1, -128]"},
      {"dense<18446744073709551615> : tensor<ui64>", "18446744073709551615"},
      {"dense<9223372036854775808> : tensor<i64>", "-9223372036854775808"},
      {"dense<18446744073709551615> : tensor<ui64>", "18446744073709551615"},
      {"dense<(1.0, -2.5)> : tensor<complex<f32>>", "(1, -2.5)"},
      {"dense<[(1.0,0x7F800000), (0.0, 1.0)]> : tensor<2xcomplex<f32>>", "[(1, inf), (0, 1)]"},
      {"dense<(0x3FF0000000000000, 2.0)> : tensor<complex<f64>>", "(1, 2)"},
      {"dense<> : tensor<0xf32>", "[]"},
      {"dense<[]> : tensor<0xf32>", "[]"},
      {"dense<[[], []]> : tensor<2x0xf32>", "[[], []]"},
      {"dense<1.0> : tensor<2x0xf32>", "[[], []]"},
      // Hexadecimal data: all elements, or one for a splat.
      {"dense<\"0x0000803F00000040\"> : tensor<2xf32>", "[1, 2]"},
      {"dense<\"0x0000803F\"> : tensor<3xf32>", "[1, 1, 1]"},
      {"dense<\"0x01FF\"> : tensor<2xi8>", "[1, -1]"},
      {"dense<\"0x0F07\"> : tensor<2xi4>", "[-1, 7]"},
      {"dense<\"0x\"> : tensor<0xi8>", "[]"},
      {"dense<\"0x0000803F00000040\"> : tensor<1xcomplex<f32>>", "[(1, 2)]"},
      // i1: one bit per element in ceil(n / 8) bytes, or one byte per element.
      {"dense<\"0x05\"> : tensor<3xi1>", "[true, false, true]"},
      {"dense<\"0x010001\"> : tensor<3xi1>", "[true, false, true]"},
      {"dense<\"0xFF\"> : tensor<3xi1>", "[true, true, true]"},
      {"dense<\"0x0102\"> : tensor<10xi1>",
       "[true, false, false, false, false, false, false, false, false, true]"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(elements(text), expected) << text;
}

TEST(ParseDense, HloFormHasNamesForSpecialValues) {
  EXPECT_EQ(elements("dense<[inf, -inf, nan]> : f32[3]", true), "[inf, -inf, nan]");
  EXPECT_EQ(elements("dense<[(inf, 1.0)]> : c64[1]", true), "[(inf, 1)]");
}

TEST(ParseDense, DecimalsPassThroughDouble) {
  // Between two f32: rounding to the nearest double comes first, as in MLIR.
  EXPECT_EQ(parse_attribute("dense<0.1> : tensor<f16>")->get<DenseAttr>()->values.get_double(0),
            round_to(kF16, 0.1));
  EXPECT_EQ(elements("dense<1.0e400> : tensor<f64>"), "inf");
}

TEST(ParseDense, EveryCodeOfTheNarrowFloatsReadsBackFromItsText) {
  for (const ElementTypeInfo& row : element_types()) {
    if (row.kind != ElementKind::kFloat || row.bits > 8) continue;
    const int64_t count = int64_t{1} << row.bits;
    Literal codes(Shape(row.type, {count}));
    for (int64_t i = 0; i < count; ++i) codes.set(i, static_cast<uint8_t>(i));
    const Attribute value(DenseAttr::of(codes));
    for (const TextForm form : {TextForm::kHlo, TextForm::kStableHlo}) {
      // More than 100 elements are printed as hexadecimal data, lists of 50 as numbers.
      EXPECT_EQ(parse_attribute(attribute_text(value, form), form == TextForm::kHlo), value)
          << row.name;
      for (int64_t from = 0; from < count; from += 16) {
        Literal piece(Shape(row.type, {16}));
        for (int64_t i = 0; i < 16; ++i) piece.set(i, static_cast<uint8_t>(from + i));
        const Attribute part(DenseAttr::of(piece));
        EXPECT_EQ(parse_attribute(attribute_text(part, form), form == TextForm::kHlo), part)
            << attribute_text(part, form);
      }
    }
  }
}

TEST(ParseDense, LargeArraysOfEveryTypeRoundTrip) {
  for (const ElementTypeInfo& row : element_types()) {
    Literal literal(Shape(row.type, {150}));
    for (int64_t i = 0; i < 150; ++i) {
      if (is_complex(row.type)) {
        literal.set_complex(i, {double(i), -1});
      } else if (is_float(row.type)) {
        literal.set_double(i, double(i % 3));
      } else {
        literal.set_integer(i, i);
      }
    }
    const Attribute value(DenseAttr::of(literal));
    for (const TextForm form : {TextForm::kHlo, TextForm::kStableHlo}) {
      EXPECT_EQ(parse_attribute(attribute_text(value, form), form == TextForm::kHlo), value)
          << row.name;
    }
  }
}

TEST(ParseDense, SplatsOfAnySizeAreOneElement) {
  const auto value = parse_attribute("dense<1.0> : tensor<1000000x1000000xf32>");
  ASSERT_TRUE(value) << value.error().to_string();
  EXPECT_TRUE(value->get<DenseAttr>()->is_splat());
}

// Values begin at column 45, after "dense".
TEST(ParseDense, Errors) {
  const std::pair<const char*, const char*> cases[] = {
      {"dense 1 : tensor<i32>", "t:1:46: error: expected '<', found '1'"},
      {"dense<1 : tensor<i32>", "t:1:61: error: unbalanced '}'"},
      {"dense<1> : tensor<?xi32>",
       "t:1:45: error: a constant has a static tensor type, not s32[?]"},
      {"dense<1> : !stablehlo.token",
       "t:1:45: error: a constant has a static tensor type, not token"},
      {"dense<1.0> : tensor<4611686018427387904xf32>",
       "t:1:45: error: a shape of dimensions [4611686018427387904] has more elements than can be "
       "counted"},
      {"dense<> : tensor<2xi32>", "t:1:46: error: dense<> for 2 elements"},
      {"dense<[1]> : tensor<1000000xi32>",
       "t:1:46: error: a list is too short for 1000000 elements"},
      {"dense<[1, 2, 3]> : tensor<2xi32>", "t:1:53: error: more than 2 elements along dimension 0"},
      {"dense<[1]> : tensor<2xi32>", "t:1:46: error: 1 elements along dimension 0, expected 2"},
      {"dense<[[1, 2], [3]]> : tensor<2x2xi32>",
       "t:1:55: error: 1 elements along dimension 1, expected 2"},
      {"dense<[1, 2]> : tensor<2x1xi32>", "t:1:47: error: expected '[', found '1'"},
      {"dense<[[1, 2]]> : tensor<1xi32>", "t:1:47: error: expected an integer, found '['"},
      {"dense<1.5> : tensor<i32>", "t:1:47: error: expected '>', found '.5'"},
      {"dense<x> : tensor<f32>", "t:1:46: error: expected a number, found 'x'"},
      {"dense<inf> : tensor<f32>", "t:1:46: error: expected a number, found 'inf'"},
      {"dense<256> : tensor<i8>", "t:1:46: error: 256 is out of the range of s8"},
      {"dense<-129> : tensor<i8>", "t:1:46: error: -129 is out of the range of s8"},
      {"dense<-1> : tensor<ui64>", "t:1:46: error: -1 is out of the range of u64"},
      {"dense<0x100> : tensor<i8>", "t:1:46: error: 256 is out of the range of s8"},
      {"dense<-1> : tensor<ui8>", "t:1:46: error: -1 is out of the range of u8"},
      {"dense<16> : tensor<i4>", "t:1:46: error: 16 is out of the range of s4"},
      {"dense<2> : tensor<i1>", "t:1:46: error: 2 is out of the range of pred"},
      {"dense<0x1FFFF> : tensor<f16>", "t:1:46: error: 0x1FFFF has more than the 16 bits of f16"},
      {"dense<1.0> : tensor<complex<f32>>", "t:1:46: error: expected '(', found '1.0'"},
      {"dense<(1.0)> : tensor<complex<f32>>", "t:1:50: error: expected ',', found ')'"},
      {"dense<\"0x1\"> : tensor<i8>",
       "t:1:46: error: constant data is not a hexadecimal string \"0x…\""},
      {"dense<\"0xZZ\"> : tensor<i8>",
       "t:1:46: error: constant data is not a hexadecimal string \"0x…\""},
      {"dense<\"0x0102\"> : tensor<3xi8>", "t:1:46: error: 2 bytes of constant data for s8[3]"},
      {"dense<\"0x0102\"> : tensor<20xi1>", "t:1:46: error: 2 bytes of constant data for pred[20]"},
  };
  for (const auto& [text, error] : cases) EXPECT_EQ(elements(text), error) << text;
}

// --- Resources

std::string with_resource(std::string_view type, std::string_view resources) {
  return fmt::format("func.func private @f() attributes {{a = dense_resource<key> : {}}}\n{}", type,
                     resources);
}
std::string resource(std::string_view type, std::string_view data) {
  return with_resource(type,
                       fmt::format("{{-#\n  dialect_resources: {{\n    builtin: {{\n      key: {}\n"
                                   "    }}\n  }}\n#-}}\n",
                                   data));
}

TEST(ParseDense, ResourcesAtTheEndOfTheFile) {
  const auto raw =
      parse_mlir_text(resource("tensor<2xf32>", "\"0x040000000000803F00000040\""), "t");
  ASSERT_TRUE(raw) << raw.error().to_string();
  EXPECT_EQ(
      find(raw->module.regions[0].ops[0].attributes, "a")->get<DenseAttr>()->values.to_string(),
      "[1, 2]");
}

// Otherwise a short text that uses one resource many times would need much memory.
TEST(ParseDense, UsesOfOneResourceShareItsElements) {
  const auto raw = parse_mlir_text(
      "func.func private @f() attributes {a = dense_resource<key> : tensor<2x2xi8>, "
      "b = dense_resource<key> : tensor<4xi8>, c = dense_resource<key> : tensor<2x1xi16>, "
      "d = dense_resource<key> : tensor<1x2x1xi16>, e = dense_resource<key> : tensor<2xui16>}\n"
      "{-# dialect_resources: { builtin: { key: \"0x0400000001020304\" } } #-}",
      "t");
  ASSERT_TRUE(raw) << raw.error().to_string();
  const auto data = [&](std::string_view name) {
    return find(raw->module.regions[0].ops[0].attributes, name)->get<DenseAttr>()->values.data();
  };
  EXPECT_EQ(data("a").data(), data("b").data());
  EXPECT_EQ(data("c").data(), data("d").data());
  EXPECT_EQ(data("e").size(), 4U);
}

TEST(ParseDense, OtherResourcesArePassedOver) {
  const std::string text =
      "func.func private @f()\n{-# external_resources: { mlir_reproducer: { "
      "pipeline: \"x\", verify_each: true } } #-}";
  EXPECT_EQ(testing::parse_error(text), "");
}

// The section of resources ends the text; similar text elsewhere is not a section.
TEST(ParseDense, WhatIsNoSectionOfResources) {
  for (const char* text : {"func.func private @f()\n// a comment that names {-# and no more",
                           "func.func private @f() attributes {note = \"see {-# dialect\"}",
                           "func.func private @f()\n{-# a: {} #-}\n  // CHECK: {-# #-}\n\n"}) {
    EXPECT_EQ(testing::parse_error(text), "") << text;
  }
  EXPECT_EQ(testing::parse_error("func.func private @f()\n{-# a: {}"),
            "t:2:1: error: expected the end of the text, found '{'");
}

TEST(ParseDense, ResourceErrors) {
  EXPECT_EQ(testing::parse_error(with_resource("tensor<2xf32>", "")),
            "t:1:54: error: resource 'key' is not defined in this file");
  EXPECT_EQ(testing::parse_error(resource("tensor<?xf32>", "\"0x04000000\"")),
            "t:1:54: error: a dense_resource has a static tensor type");
  EXPECT_EQ(testing::parse_error(resource("tensor<3xf32>", "\"0x040000000000803F00000040\"")),
            "t:1:54: error: resource 'key' has 8 bytes, f32[3] expected");
  EXPECT_EQ(testing::parse_error(resource("tensor<3xf32>", "\"0x04\"")),
            "t:1:54: error: resource 'key' has 0 bytes, f32[3] expected");
  EXPECT_EQ(testing::parse_error(resource("tensor<3xf32>", "\"zz\"")),
            "t:1:54: error: resource 'key' is not a hexadecimal string");
  EXPECT_EQ(testing::parse_error(with_resource("tensor<2xf32>", "{-# a: {b: 1} #-}")),
            "t:2:12: error: expected resource data, found '1'");
  EXPECT_EQ(testing::parse_error(with_resource("tensor<2xf32>", "{-# 1 #-}")),
            "t:2:5: error: expected a resource name, found '1'");
  EXPECT_EQ(
      testing::parse_error(with_resource("tensor<2xf32>", "{-# a: {b: {c: {d: {e: {} } } } } #-}")),
      "t:2:25: error: resources nested too deep");
}

}  // namespace
}  // namespace tenon::hlo
