#include "hlo/text/text_test_util.h"

namespace tenon::hlo {
namespace {

using testing::parse_type;

struct TypeCase {
  const char* text;
  const char* hlo;
};

TEST(ParseType, EveryElementType) {
  for (const ElementTypeInfo& row : element_types()) {
    const auto type = parse_type(fmt::format("tensor<2x{}>", row.mlir_name));
    ASSERT_TRUE(type) << type.error().to_string();
    EXPECT_EQ(*type, Type::tensor(row.type, {2}));
    EXPECT_EQ(parse_type(fmt::format("{}[2]", row.name), true), Type::tensor(row.type, {2}));
  }
}

TEST(ParseType, FormsOfStableHlo) {
  const TypeCase cases[] = {
      {"tensor<f32>", "f32[]"},
      {"tensor<0x3xf32>", "f32[0,3]"},  // not a hexadecimal number
      {"tensor<0x0x0xi8>", "s8[0,0,0]"},
      {"tensor<12x?x4xf32>", "f32[12,?,4]"},
      {"tensor< 2 x 3 x f32 >", nullptr},
      {"tensor<2xsi8>", "s8[2]"},
      {"tensor<2xindex>", "s64[2]"},
      {"tensor<2xcomplex<f64>>", "c128[2]"},
      {"tensor<?x4xf32, #stablehlo.bounds<8, ?>>", "f32[?<=8,4]"},
      {"tensor<?x4xf32, #stablehlo.type_extensions<bounds = [8, ?]>>", "f32[?<=8,4]"},
      {"tensor<?xf32, #mhlo.type_extensions<bounds = [8]>>", "f32[?<=8]"},
      {"!stablehlo.token", "token"},
      {"!mhlo.token", "token"},
      {"!stablehlo.future<tensor<f32>, !stablehlo.token>", "future<f32[], token>"},
      {"tuple<>", "tuple<>"},
      {"tuple<tensor<f32>, tuple<!stablehlo.token>>", "tuple<f32[], tuple<token>>"},
      {"(tensor<f32>) -> tensor<i1>", "function<(f32[]) -> (pred[])>"},
      {"() -> (tensor<f32>, tensor<i1>)", "function<() -> (f32[], pred[])>"},
      {"memref<4xf32>", "buffer<f32[4]>"},
      {"none", "none"},
      {"f32", "f32[]"},
      {"tensor<!quant.uniform<i8:f32, 0.1>>", "q<s8:f32, 0.1>[]"},
      {"tensor<2x!quant.uniform<i8<-127:127>:f32, 1.0E-9:-3>>",
       "q<s8<-127:127>:f32, 1.0e-09:-3>[2]"},
      {"tensor<2x!quant.uniform<u8:f32, 34.0:16>>", "q<u8:f32, 34.0:16>[2]"},
      {"tensor<2x!quant.uniform<ui8:bf16, 2.0>>", "q<u8:bf16, 2.0>[2]"},
      {"tensor<2x3x!quant.uniform<i4:f32:1, {0.1, 0.2:5, 0.3:-6}>>",
       "q<s4:f32:1, {0.1, 0.2:5, 0.3:-6}>[2,3]"},
  };
  for (const TypeCase& c : cases) {
    const auto type = parse_type(c.text);
    if (c.hlo == nullptr) {
      EXPECT_FALSE(type) << c.text;
      continue;
    }
    ASSERT_TRUE(type) << c.text << ": " << type.error().to_string();
    EXPECT_EQ(type->to_string(), c.hlo);
    // Both texts parse to the same type.
    EXPECT_EQ(parse_type(type->to_mlir()), *type) << type->to_mlir();
    EXPECT_EQ(parse_type(type->to_string(), true), *type) << type->to_string();
  }
}

TEST(ParseType, MemrefLayoutsAreIgnored) {
  const auto type = parse_type("memref<4xf32, #layout<a, [1]>>");
  EXPECT_FALSE(type);  // a layout instead of a tensor's encoding
}

TEST(ParseType, Aliases) {
  EXPECT_EQ(testing::parse_error("!t = tensor<2xf32>\n!e = !quant.uniform<i8:f32, 0.5>\n"
                                 "func.func private @f(!t, tensor<3x!e>)"),
            "");
}

TEST(ParseType, BoundedQuantizedTypesKeepTheirQuantization) {
  const auto type = parse_type("q<s8:f32, 0.5>[?<=4]", true);
  ASSERT_TRUE(type) << type.error().to_string();
  EXPECT_TRUE(type->is_quantized());
}

TEST(ParseType, Errors) {
  const TypeCase cases[] = {
      {"tensor<2xf33>", "t:1:31: error: unknown type 'f33'"},
      {"tensor<2x>", "t:1:31: error: expected a type, found '>'"},
      {"tensor<2f32>", "t:1:30: error: expected 'x' after a dimension size"},
      {"tensor<*xf32>", "t:1:29: error: unranked tensors are not supported"},
      {"tensor<-2xf32>", "t:1:29: error: expected a type, found '-'"},
      {"tensor<99999999999999999999xf32>", "t:1:29: error: a dimension size does not fit 63 bits"},
      {"tensor<2xf32", "t:1:34: error: expected '>', found ')'"},
      {"tensor<2xtensor<f32>>", "t:1:31: error: unknown type 'tensor'"},
      {"tensor<2xcomplex<f16>>",
       "t:1:31: error: complex<f16> is not an element type; the part is f32 or f64"},
      {"tensor<?xf32, #sparse.encoding<x>>",
       "t:1:36: error: tensor encoding '#sparse.encoding' is not supported"},
      {"tensor<?x?xf32, #stablehlo.bounds<8>>", "t:1:58: error: 1 bounds for 2 dimensions"},
      {"!nothing", "t:1:22: error: unknown type '!nothing'"},
      {"tensor<2x!nothing>", "t:1:31: error: unknown element type '!nothing'"},
      {"tensor<!quant.uniform<f32:f32, 0.1>>",
       "t:1:44: error: quantized storage type 'f32' is not an integer"},
      {"tensor<!quant.uniform<i8:i8, 0.1>>",
       "t:1:49: error: quantized expressed type s8[] is not a float"},
      {"tensor<!quant.uniform<i8:f32:-2, {0.1}>>",
       "t:1:55: error: quantization dimension -2 is negative"},
      {"tensor<!quant.uniform<i8:f32, x>>", "t:1:52: error: expected a number, found 'x'"},
      {"tuple<tensor<f32>", "t:1:39: error: expected '>', found ')'"},
      {"foo", "t:1:22: error: unknown type 'foo'"},
  };
  for (const TypeCase& c : cases) {
    const auto type = parse_type(c.text);
    ASSERT_FALSE(type) << c.text;
    EXPECT_EQ(type.error().to_string(), c.hlo);
  }
}

TEST(ParseType, ErrorsOfHloForm) {
  EXPECT_EQ(parse_type("f32[-1]", true).error().to_string(),
            "t:1:41: error: dimension size -1 is negative");
  EXPECT_EQ(parse_type("f32[2", true).error().to_string(),
            "t:1:40: error: expected ']', found ')'");
}

TEST(ParseType, DepthIsBounded) {
  std::string text = "tensor<f32>";
  for (int i = 0; i < 300; ++i) text = "tuple<" + text + ">";
  EXPECT_EQ(parse_type(text).error().to_string(), "t:1:1552: error: nested deeper than 256 levels");
}

TEST(ParseType, RankIsBounded) {
  std::string dims;
  for (int i = 0; i < 1025; ++i) dims += "1x";
  EXPECT_EQ(parse_type("tensor<" + dims + "f32>").error().to_string(),
            "t:1:2077: error: more than 1024 dimensions");
}

}  // namespace
}  // namespace tenon::hlo
