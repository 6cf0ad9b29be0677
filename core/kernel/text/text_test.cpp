#include "core/kernel/text/text.h"

#include <gtest/gtest.h>

namespace tenon::kernel {
namespace {

std::string error(std::string_view text) {
  const auto kernel = parse(text, "t");
  return kernel ? "" : kernel.error().to_string();
}

TEST(Text, ErrorsHaveTheirPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "t:1:1: error: one kernel expected, 0 found"},
      {"kernel", "t:1:7: error: expected '@', found the end of the text"},
      {"kernel @", "t:1:9: error: expected a kernel's name, found the end of the text"},
      {"kernel @k(", "t:1:11: error: expected '%', found the end of the text"},
      {"kernel @k(%x: f32[2])", "t:1:11: error: expected 'in', 'out', 'inout' or 'scalar'"},
      {"kernel @k(%x: in f99[2])", "t:1:18: error: 'f99' is not an element type"},
      {"kernel @k(%x: in f32[-1])", "t:1:22: error: K0: extent -1 is out of range"},
      {"kernel @k(%x: in f32[2]{1,1}) index s32 grid() {}",
       "t:1:29: error: K0: as many strides as dimensions"},
      {"kernel @k() index s32 grid() { foo }", "t:1:32: error: 'foo' is not an operation"},
      {"kernel @k() index s32 grid() { %a = add 1, 2 }",
       "t:1:41: error: expected ': TYPE' after the operands"},
      {"kernel @k() index s32 grid() {\n%a = add 1, 2.5 : s32 }",
       "t:2:14: error: expected ':', found '.5'"},
      {"kernel @k() index s32 grid() {\n%a = add 1, 300 : s8 }",
       "t:2:13: error: the constant is not a value of type s8"},
      {"kernel @k() index s32 grid() {\n%a, %b = add 1, 2 : s32 }",
       "t:2:1: error: K0: add gives 1 values, 2 are named"},
      {"kernel @k() index s32 grid() {\nlanes(%i: 2) { ", "t:2:16: error: '' is not an operation"},
      {"kernel @k() index s32 grid() {\nyield 1\n}",
       "t:3:2: error: K0: a kernel's body yields nothing"},
      {"kernel @k(%x: in s8[4,4], %y: out s8[4,4]) index s32 grid() {\n"
       "copy box(4, 4) %y[0, 0] by(1 ,) = %x[0, 0] by(0, 1)\n}",
       "t:2:25: error: K0: the box has 2 dimensions, by 1"},
      {"kernel @k(%x: in s8[4], %y: out s8[4]) index s32 grid() {\n"
       "copy box(4) %y[0] by(4294967296) = %x[0] by(0)\n}",
       "t:2:19: error: K0: 4294967296 is not a dimension"},
      {"kernel @k() index s32 grid() {}\nkernel @l() index s32 grid() {}",
       "t:1:1: error: one kernel expected, 2 found"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(error(text), expected) << text;
}

TEST(Text, NestingIsBounded) {
  std::string text = "kernel @k() index s32 grid() {\n";
  for (int i = 0; i < 300; ++i) text += "if true {\n";
  EXPECT_EQ(error(text), "t:203:1: error: K0: nested deeper than 200 levels");
}

// The name of a parameter may be a number, like the printer's names of values.
TEST(Text, NumbersAsNamesOfParameters) {
  const auto kernel = parse(
      "kernel @k(%y: out s32[4], %0: scalar s32) index s32 grid(%i: 4) {\nstore %0, %y[%i] : "
      "s32\n}",
      "t");
  ASSERT_TRUE(kernel);
  EXPECT_EQ(print(*kernel),
            "kernel @k(%y: out s32[4], %0: scalar s32) index s32 grid(%1: 4) {\n"
            "  store %0, %y[%1] : s32\n}\n");
}

TEST(Text, SeveralKernels) {
  const auto kernels = parse_all(
      "kernel @a() index s32 grid() {}\n// and\nkernel @b() index s64 grid(%i: 3) {}", "t");
  ASSERT_TRUE(kernels);
  ASSERT_EQ(kernels->size(), 2u);
  EXPECT_EQ((*kernels)[1].grid, Dims{3});
}

}  // namespace
}  // namespace tenon::kernel
