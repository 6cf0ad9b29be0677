#include "hlo/types/type.h"

#include <gtest/gtest.h>

namespace tenon::hlo {
namespace {

using enum ElementType;

QuantizedType per_tensor(double scale, int64_t zero_point) {
  QuantizedType q;
  q.scales = {scale};
  q.zero_points = {zero_point};
  return q;
}

TEST(Type, BothTexts) {
  QuantizedType narrow = per_tensor(7.843137254901961e-09, 0);
  narrow.storage_min = -127;
  QuantizedType unsigned_storage = per_tensor(2, 3);
  unsigned_storage.storage = kU8;
  unsigned_storage.storage_min = 0;
  unsigned_storage.storage_max = 255;
  QuantizedType per_axis;
  per_axis.axis = 1;
  per_axis.scales = {0.5, 1e-30};
  per_axis.zero_points = {-1, 0};
  const Type f32 = Type::tensor(kF32, {});
  struct Case {
    Type type;
    const char* hlo;
    const char* mlir;
  };
  const Case cases[] = {
      {f32, "f32[]", "tensor<f32>"},
      {Type::tensor(kS8, {2, 0}), "s8[2,0]", "tensor<2x0xi8>"},
      {Type::tensor(kC64, {3}), "c64[3]", "tensor<3xcomplex<f32>>"},
      {Type::tensor(kPred, {kDynamic}), "pred[?]", "tensor<?xi1>"},
      {Type(Shape(kF32, {kDynamic, 2}, {4, kDynamic})), "f32[?<=4,2]",
       "tensor<?x2xf32, #stablehlo.bounds<4, ?>>"},
      {Type::token(), "token", "!stablehlo.token"},
      {Type::none(), "none", "none"},
      {Type::tuple({}), "tuple<>", "tuple<>"},
      {Type::tuple({f32, Type::token()}), "tuple<f32[], token>",
       "tuple<tensor<f32>, !stablehlo.token>"},
      {Type::future({f32}), "future<f32[]>", "!stablehlo.future<tensor<f32>>"},
      {Type::buffer(Shape(kF32, {4})), "buffer<f32[4]>", "memref<4xf32>"},
      {Type::function({f32}, {f32}), "function<(f32[]) -> (f32[])>",
       "(tensor<f32>) -> tensor<f32>"},
      {Type::function({}, {}), "function<() -> ()>", "() -> ()"},
      {Type::quantized_tensor({2}, per_tensor(0.1, -3)), "q<s8:f32, 0.1:-3>[2]",
       "tensor<2x!quant.uniform<i8:f32, 0.1:-3>>"},
      {Type::quantized_tensor({}, narrow), "q<s8<-127:127>:f32, 7.843137254901961e-09>[]",
       "tensor<!quant.uniform<i8<-127:127>:f32, 7.843137254901961e-09>>"},
      {Type::quantized_tensor({}, unsigned_storage), "q<u8:f32, 2.0:3>[]",
       "tensor<!quant.uniform<u8:f32, 2.0:3>>"},
      {Type::quantized_tensor({2, 2}, per_axis), "q<s8:f32:1, {0.5:-1, 1.0e-30}>[2,2]",
       "tensor<2x2x!quant.uniform<i8:f32:1, {0.5:-1, 1.0e-30}>>"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(c.type.to_string(), c.hlo);
    EXPECT_EQ(c.type.to_mlir(), c.mlir);
  }
}

TEST(Type, ListsAreJoined) {
  EXPECT_EQ(types_to_string({Type::tensor(kF32, {2}), Type::token()}), "f32[2], token");
  EXPECT_EQ(types_to_string({}), "");
}

TEST(Type, EqualityIsByContent) {
  const Type f32 = Type::tensor(kF32, {});
  EXPECT_EQ(Type::tuple({f32}), Type::tuple({f32}));
  EXPECT_FALSE(Type::tuple({f32}) == Type::future({f32}));
  EXPECT_FALSE(Type::token() == f32);
  EXPECT_EQ(Type::quantized_tensor({2}, per_tensor(0.1, 0)),
            Type::quantized_tensor({2}, per_tensor(0.1, 0)));
  EXPECT_FALSE(Type::quantized_tensor({2}, per_tensor(0.1, 0)) == Type::tensor(kS8, {2}));
  EXPECT_FALSE(Type::quantized_tensor({2}, per_tensor(0.1, 0)) ==
               Type::quantized_tensor({2}, per_tensor(0.2, 0)));
  EXPECT_FALSE(Type::function({f32}, {}) == Type::function({}, {f32}));
}

TEST(Type, WithDimsKeepsQuantizationAndDropsBounds) {
  const Type q = Type::quantized_tensor({2}, per_tensor(0.1, 0));
  EXPECT_EQ(q.with_dims({3}).to_string(), "q<s8:f32, 0.1>[3]");
  EXPECT_EQ(q.with_element_type(kF32).to_string(), "f32[2]");
  EXPECT_EQ(Type(Shape(kF32, {kDynamic}, {4})).with_dims({3}).to_string(), "f32[3]");
}

TEST(Type, Compatible) {
  const Type any(Shape(kF32, {kDynamic, 2}));
  const Type bounded(Shape(kF32, {kDynamic, 2}, {4, kDynamic}));
  EXPECT_TRUE(compatible(any, Type::tensor(kF32, {3, 2})));
  EXPECT_TRUE(compatible(Type::tensor(kF32, {3, 2}), any));
  EXPECT_TRUE(compatible(any, bounded));
  EXPECT_TRUE(compatible(bounded, Type::tensor(kF32, {4, 2})));
  EXPECT_FALSE(compatible(bounded, Type::tensor(kF32, {5, 2})));
  EXPECT_FALSE(compatible(any, Type::tensor(kF32, {3, 3})));
  EXPECT_FALSE(compatible(any, Type::tensor(kF32, {3})));
  EXPECT_FALSE(compatible(any, Type::tensor(kF16, {3, 2})));
  EXPECT_FALSE(compatible(any, Type::token()));
  EXPECT_TRUE(compatible(Type::token(), Type::token()));
}

TEST(Type, CompatibleLooksIntoTuplesAndQuantization) {
  const Type any(Shape(kF32, {kDynamic}));
  const Type two = Type::tensor(kF32, {2});
  EXPECT_TRUE(compatible(Type::tuple({any}), Type::tuple({two})));
  EXPECT_FALSE(compatible(Type::tuple({any}), Type::tuple({two, two})));
  EXPECT_FALSE(compatible(Type::tuple({any}), Type::tuple({Type::token()})));
  const Type q = Type::quantized_tensor({2}, per_tensor(0.1, 0));
  EXPECT_TRUE(compatible(q, q.with_dims({kDynamic})));
  EXPECT_FALSE(compatible(q, Type::tensor(kS8, {2})));
  EXPECT_FALSE(compatible(q, Type::quantized_tensor({2}, per_tensor(0.2, 0))));
}

}  // namespace
}  // namespace tenon::hlo
