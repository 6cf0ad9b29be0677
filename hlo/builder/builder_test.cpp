#include "hlo/builder/builder.h"

#include <gtest/gtest.h>

#include "hlo/text/printer.h"

namespace tenon::hlo {
namespace {

using enum ElementType;

struct BuilderTest : testing::Test {
  BuilderTest() : f(module.add_function("f")), b(f) {
    x = f.add_parameter(Type::tensor(kF32, {2, 3}));
    p = f.add_parameter(Type::tensor(kPred, {2, 3}));
  }
  std::string last() { return print_instruction(*f.last()); }
  Module module;
  Computation& f;
  Builder b;
  Value x, p;
};

TEST_F(BuilderTest, EachHelperMakesItsOp) {
  const Value zero = b.scalar(kF32, 0);
  const auto type = [](Value v) { return v ? v.type().to_string() : "null"; };
  EXPECT_EQ(type(b.add(x, x)), "f32[2,3]");
  EXPECT_EQ(type(b.sub(x, x)), "f32[2,3]");
  EXPECT_EQ(type(b.mul(x, x)), "f32[2,3]");
  EXPECT_EQ(type(b.div(x, x)), "f32[2,3]");
  EXPECT_EQ(type(b.neg(x)), "f32[2,3]");
  EXPECT_EQ(type(b.abs(x)), "f32[2,3]");
  EXPECT_EQ(type(b.select(p, x, x)), "f32[2,3]");
  EXPECT_EQ(type(b.compare(ComparisonDirection::kLt, x, x)), "pred[2,3]");
  EXPECT_EQ(type(b.convert(x, kF16)), "f16[2,3]");
  EXPECT_EQ(type(b.bitcast(x, Type::tensor(kS32, {2, 3}))), "s32[2,3]");
  EXPECT_EQ(type(b.reshape(x, {6})), "f32[6]");
  EXPECT_EQ(type(b.broadcast_in_dim(x, {4, 2, 3}, {1, 2})), "f32[4,2,3]");
  EXPECT_EQ(type(b.broadcast_scalar(zero, {5})), "f32[5]");
  EXPECT_EQ(type(b.transpose(x, {1, 0})), "f32[3,2]");
  EXPECT_EQ(type(b.slice(x, {0, 1}, {2, 3})), "f32[2,2]");
  EXPECT_EQ(type(b.concatenate({x, x}, 1)), "f32[2,6]");
  EXPECT_EQ(type(b.pad(x, zero, {1, 0}, {0, -1})), "f32[3,2]");
  EXPECT_EQ(type(b.dot_general(x, x, {{}, {}, {1}, {1}}, kF32)), "f32[2,2]");
  EXPECT_EQ(type(b.dot_general(x, x, {{0}, {0}, {1}, {1}}, kF32)), "f32[2]");
  EXPECT_EQ(type(b.reduce(OpCode::kAdd, x, zero, {1})), "f32[2]");
  EXPECT_EQ(type(b.iota(kS32, {4}, 0)), "s32[4]");
  EXPECT_EQ(type(b.splat_like(x, 2)), "f32[2,3]");
  EXPECT_EQ(type(b.i64_constant(3)), "s64[]");
  const Value i = b.i64_constant(0);
  EXPECT_EQ(type(b.dynamic_slice(x, {i, i}, {1, 3})), "f32[1,3]");
  EXPECT_EQ(type(b.dynamic_update_slice(x, x, {i, i})), "f32[2,3]");
  EXPECT_TRUE(b.ok()) << b.status().to_string();
}

TEST_F(BuilderTest, WhatChangesNothingMakesNothing) {
  EXPECT_EQ(b.convert(x, kF32), x);
  EXPECT_EQ(b.reshape(x, {2, 3}), x);
  EXPECT_TRUE(f.empty());
}

TEST_F(BuilderTest, DefaultsAreDropped) {
  b.compare(ComparisonDirection::kEq, x, x);
  EXPECT_EQ(last(), "%0 = stablehlo.compare(%1, %1) {comparison_direction = EQ} : pred[2,3]\n");
}

TEST_F(BuilderTest, SplatsAreKeptAsOneElement) {
  b.splat(Shape(kF32, {1 << 20, 1 << 20}), 1);
  EXPECT_TRUE(f.last()->attr<DenseAttr>(AttrKey::value)->is_splat());
}

TEST_F(BuilderTest, TheFirstErrorStays) {
  b.set_location(file_location("f", 1, 2));
  const Value bad = b.add(x, p);
  EXPECT_FALSE(bad);
  EXPECT_FALSE(b.add(bad, x));
  EXPECT_FALSE(b.reshape(bad, {1}));
  EXPECT_FALSE(b.splat_like(bad, 1));
  EXPECT_FALSE(b.dot_general(bad, bad, {}, kF32));
  EXPECT_FALSE(b.reduce(OpCode::kAdd, bad, bad, {}));
  EXPECT_EQ(b.while_loop({bad}, {}, {}), std::vector<Value>(1));
  const Status status = b.finish({bad});
  EXPECT_EQ(status, b.status());
  EXPECT_TRUE(status.to_string().starts_with("f:1:2: error: stablehlo.add: "))
      << status.to_string();
  EXPECT_TRUE(f.empty());
}

TEST_F(BuilderTest, ANullOperandIsABug) {
  b.add(x, Value{});
  EXPECT_EQ(b.status().code(), ErrorCode::kInternal);
  EXPECT_EQ(b.status().message(), "stablehlo.add: operand 1 is null");
}

TEST_F(BuilderTest, InsertsBefore) {
  const Value y = b.neg(x);
  Builder(f, y.def).abs(x);
  EXPECT_EQ(f.first()->code(), OpCode::kAbs);
  EXPECT_EQ(f.last(), y.def);
}

TEST_F(BuilderTest, WhileLoop) {
  const Value zero = b.i64_constant(0);
  const std::vector<Value> results = b.while_loop(
      {zero, x},
      [](Builder& inner, const std::vector<Value>& state) {
        return inner.compare(ComparisonDirection::kLt, state[0], inner.i64_constant(3));
      },
      [](Builder& inner, const std::vector<Value>& state) {
        return std::vector<Value>{inner.add(state[0], inner.i64_constant(1)), inner.neg(state[1])};
      });
  ASSERT_TRUE(b.ok()) << b.status().to_string();
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[1].type(), x.type());
  ASSERT_TRUE(b.finish({results[1]}).ok());
  EXPECT_EQ(f.return_instruction()->operand(0), results[1]);
}

TEST_F(BuilderTest, AnErrorInABodyIsTheLoopsError) {
  b.while_loop(
      {x}, [&](Builder& inner, const std::vector<Value>& s) { return inner.add(s[0], p); },
      [](Builder&, const std::vector<Value>& s) { return s; });
  EXPECT_FALSE(b.ok());
  EXPECT_TRUE(b.status().message().starts_with("stablehlo.add: ")) << b.status().message();
  EXPECT_TRUE(f.empty());
}

}  // namespace
}  // namespace tenon::hlo
