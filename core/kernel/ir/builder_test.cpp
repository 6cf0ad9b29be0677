#include "core/kernel/ir/builder.h"

#include <gtest/gtest.h>

#include "core/kernel/text/text.h"
#include "core/kernel/transform/rewriter.h"
#include "core/kernel/verify/verifier.h"

namespace tenon::kernel {
namespace {

using enum ElementType;

TEST(Builder, MakesWhatItsPageSays) {
  Builder b("scale");
  const MemoryId x = b.buffer("x", kF32, {4, 8}, Access::kIn);
  const MemoryId y = b.buffer("y", kF32, {4, 8}, Access::kOut);
  const ValueId a = b.scalar("a", kF32);
  const Values i = b.grid({4});
  b.lanes({8},
          [&](const Values& j) { b.store(b.mul(b.load(x, {i[0], j[0]}), a), y, {i[0], j[0]}); });
  const Kernel kernel = b.finish();
  EXPECT_TRUE(verify(kernel).ok()) << verify(kernel).to_string();
  EXPECT_EQ(
      print(kernel),
      "kernel @scale(%x: in f32[4,8], %y: out f32[4,8], %a: scalar f32) index s32 grid(%0: 4) {\n"
      "  lanes(%1: 8) {\n"
      "    %2 = load %x[%0, %1] : f32\n"
      "    %3 = mul %2, %a : f32\n"
      "    store %3, %y[%0, %1] : f32\n"
      "  }\n"
      "}\n");
}

TEST(Builder, FoldsConstantsAndIdentities) {
  Builder b("k");
  const ValueId n = b.scalar("n", kS32);
  const ValueId p = b.scalar("p", kPred);
  const ValueId f = b.scalar("f", kF32);
  b.grid({});
  EXPECT_EQ(b.add(b.index(2), b.index(3)), b.index(5));
  EXPECT_EQ(b.add(n, b.index(0)), n);
  EXPECT_EQ(b.mul(b.index(1), n), n);
  EXPECT_EQ(b.mul(n, b.index(0)), b.index(0));
  EXPECT_EQ(b.rem(n, b.index(1)), b.index(0));
  EXPECT_EQ(b.div(n, b.index(1)), n);
  EXPECT_EQ(b.logical_and(p, b.pred(true)), p);
  EXPECT_EQ(b.logical_and(p, b.pred(false)), b.pred(false));
  EXPECT_EQ(b.select(b.pred(true), n, b.index(1)), n);
  EXPECT_EQ(b.compare(OpCode::kLt, b.index(1), b.index(2)), b.pred(true));
  EXPECT_EQ(b.convert(b.index(3), kF32), b.real(kF32, 3));
  // Identities of floats are not applied: -0 + 0 is 0.
  EXPECT_NE(b.add(f, b.real(kF32, 0)), f);
}

TEST(Builder, JoinsConstantsThatAreAdded) {
  Builder b("k");
  const ValueId n = b.scalar("n", kS32);
  const ValueId u = b.scalar("u", ElementType::kU8);
  const ValueId f = b.scalar("f", kF32);
  b.grid({});
  const auto byte = [&](int64_t value) { return b.integer(ElementType::kU8, value); };
  const ValueId both = b.add(b.index(2), b.add(n, b.index(1)));
  const ValueId minus = b.sub(b.sub(n, b.index(3)), b.index(4));
  EXPECT_EQ(b.sub(both, b.index(3)), n);
  EXPECT_EQ(b.add(minus, b.index(7)), n);
  // Integers wrap around.
  EXPECT_EQ(b.sub(b.add(b.add(u, byte(200)), byte(100)), byte(44)), u);
  const ValueId wrapped = b.add(b.add(u, byte(200)), byte(100));
  // Only from the right is a constant subtracted, and sums of floats are rounded one by one.
  const ValueId from = b.sub(b.index(5), b.add(n, b.index(1)));
  const ValueId real = b.add(b.add(f, b.real(kF32, 1)), b.real(kF32, 2));
  const Kernel kernel = b.finish();
  const auto text_of = [&](ValueId value) {
    const Node& node = kernel.node(kernel.value(value).node);
    EXPECT_TRUE(kernel.is_constant(node.operands[1]) || value == from);
    return std::pair(node.operands[0], kernel.value(node.operands[1]).bits);
  };
  EXPECT_EQ(text_of(both), std::pair(n, uint64_t{3}));
  EXPECT_EQ(text_of(minus), std::pair(n, static_cast<uint64_t>(int64_t{-7})));
  EXPECT_EQ(text_of(wrapped), std::pair(u, uint64_t{44}));
  EXPECT_TRUE(kernel.is_constant(text_of(from).first));
  EXPECT_NE(text_of(real).first, f);
}

TEST(Builder, DeclarationsGoToTheHead) {
  Builder b("k");
  b.grid({});
  const ValueId n =
      b.add(b.convert(b.load(b.scratch("s", kF32, {1}), {b.index(0)}), kS32), b.index(1));
  b.scratch("s", kF32, {2});
  b.unary(OpCode::kNeg, n);
  EXPECT_EQ(print(b.finish()),
            "kernel @k() index s32 grid() {\n"
            "  scratch %s : f32[1]\n"
            "  scratch %s_2 : f32[2]\n"
            "  %0 = load %s[0] : f32\n"
            "  %1 = convert %0 : f32 -> s32\n"
            "  %2 = add %1, 1 : s32\n"
            "  %3 = neg %2 : s32\n"
            "}\n");
}

TEST(Rewriter, CopiesEverything) {
  const auto kernel = parse(
      "kernel @k(%x: in f32[8]{2}, %y: out s32[8], %n: scalar s32) index s64 grid(%g: 1) label \"a "
      "\\22b\" {\n"
      "scratch %s : s32[8]\nprivate %p : f32[8,2] per lanes 1\n"
      "lanes(%i: 8) {\nstore 0, %s[%i] : s32\n}\n"
      "lanes(%i: 8) {\n%v = load %x[%i] : f32\nstore %v, %p[%i, 0] : f32\natomic max %n, %s[0] : "
      "s32\n}\n"
      "%a, %b = while(%u = 1, %w = 2.0) : s32, f32 {\n%c = lt %u, 9 : s32\nyield %c\n} do(%u, %w) "
      "{\n"
      "%t = add %u, 1 : s32\nyield %t, %w\n}\n"
      "%c = eq %a, 9 : s32\n%r = if %c : f32 {\nyield %b\n} else {\nyield -inf\n}\n"
      "%q = for %k = (0, 8, 3) carry(%z = 1) : s32 {\nyield %z\n}\n"
      "%m = scan serial(%k: 8) init(0) : s32 commutative {\nyield 1\n} combine(%e, %f) {\n"
      "%h = add %e, %f : s32\nyield %h\n} each(%k, %e) {\nstore %e, %y[%k] : s32\n}\n}",
      "t");
  ASSERT_TRUE(kernel) << kernel.error().to_string();
  ASSERT_TRUE(verify(*kernel).ok()) << verify(*kernel).to_string();
  const Kernel copy = Rewriter(*kernel).run();
  EXPECT_EQ(print(copy), print(*kernel));
  EXPECT_TRUE(verify(copy).ok());
}

}  // namespace
}  // namespace tenon::kernel
