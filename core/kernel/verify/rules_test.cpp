// A planted violation of each rule of docs/kernel-ir.md, and the message that cites the rule.
#include <fmt/format.h>

#include "core/kernel/ir/builder.h"
#include "core/kernel/legalize/tiles.h"
#include "core/kernel/testing/kernel_test_util.h"

namespace tenon::kernel {
namespace {

using testing::violation;

/// A kernel over %x in, %y out, %n inout of 8 elements, on two workgroups of one row each.
std::string kernel(std::string_view body, std::string_view grid = "", std::string_view more = "") {
  return fmt::format("kernel @k(%x: in f32[8], %n: inout s32[8]{}) index s32 grid({}) {{\n{}\n}}\n",
                     more, grid, body);
}

struct RuleCase {
  std::string text;
  const char* error;
};

void expect_violations(const std::vector<RuleCase>& cases) {
  for (const RuleCase& c : cases) EXPECT_EQ(violation(c.text), c.error) << c.text;
}

TEST(Rules, APlainKernelBreaksNone) {
  EXPECT_EQ(violation(kernel("lanes(%i: 8) {\n%v = load %n[%i] : s32\n%w = add %v, 1 : s32\n"
                             "store %w, %n[%i] : s32\n}")),
            "");
}

TEST(Rules, K0WellFormed) {
  expect_violations({
      {kernel("%v = load %x[%i] : f32"), "t:2:14: error: K0: %i is not defined here"},
      {kernel("%v = load %z[0] : f32"), "t:2:11: error: K0: no memory %z is declared here"},
      {kernel("%v = load %x[0, 0] : f32"), "t:2:13: error: K0: %x has 1 indices, 2 given"},
      {kernel("%v = load %x[0] : s32"), "t:2:17: error: K0: the memory holds f32, not s32"},
      {kernel("store 1.0, %x[0] : f32"), "k:2: error: K0: %x is 'in' and stored to"},
      {kernel("%v = load %x[0] : f32\n%w = add %v, 1 : s32"),
       "k:3: error: K0: operand 0 of add is f32, expected s32"},
      {kernel("%v = sqrt 1 : s32"), "t:2:11: error: K0: sqrt has no meaning on s32"},
      {kernel("%v = load %x[0] : f32\n%w = bitcast %v : f32 -> s64"),
       "k:3: error: K0: bitcast from f32 to s64: the widths differ"},
      {kernel("lanes(%i: 8) {\n%v = load %x[%i] : f32\n}\nlanes(%j: 8) {\nscratch %s : f32[2]\n}"),
       "k:6: error: K1: scratch stands inside a lanes loop; it belongs to the whole workgroup"},
      {kernel("%v = load %x[0] : f32\nscratch %s : f32[2]\n%w = abs %v : f32"), ""},
      {kernel("%c = eq 1, 1 : s32\n%r = if %c : f32 {\nyield 1\n} else {\n}"),
       "k:6: error: K0: yield gives (), expected (f32)"},
      {kernel("%r = for %k = (0, 4, 0) carry(%a = 0) : s32 {\nyield %a\n}"),
       "k:2: error: K0: the step of for is a positive constant"},
      {kernel("%q = load %n[0] : s32\nif %q {\n}"),
       "k:3: error: K0: the condition is s32, not pred"},
      {"kernel @k(%x: in c64[8]) index s32 grid() {\n}",
       "t:1:18: error: K0: a kernel has no complex numbers"},
      {"kernel @k(%x: in f32[8], %x: in f32[8]) index s32 grid() {\n}",
       "t:1:26: error: K0: parameter %x is declared twice"},
  });
}

TEST(Rules, K1OnlyTheWorkgroupStartsLanes) {
  expect_violations({
      {kernel("lanes(%i: 4) {\nlanes(%j: 2) {\n}\n}"),
       "k:3: error: K1: lanes stands inside a lanes loop; it belongs to the whole workgroup"},
      {kernel("lanes(%i: 4) {\n%r = reduce lanes(%j: 2) init(0) : s32 commutative {\nyield 1\n} "
              "combine(%a, %b) {\n%c = add %a, %b : s32\nyield %c\n}\n}"),
       "k:3: error: K1: reduce over lanes stands inside a lanes loop; it belongs to the whole "
       "workgroup"},
      {kernel("scratch %s : f32[8]\nlanes(%i: 4) {\ncopy box(2) %s[0] by(0) = %x[0] by(0)\n}"),
       "k:4: error: K1: copy stands inside a lanes loop; it belongs to the whole workgroup"},
  });
}

TEST(Rules, K2WhatIsNotStoredIsUndefined) {
  expect_violations({
      {kernel("scratch %s : f32[8]\nlanes(%i: 4) {\nstore 1.0, %s[%i] : f32\n}\n"
              "lanes(%i: 8) {\n%v = load %s[%i] : f32\n}"),
       "k:7: error: K2: %s[4] is loaded, but nothing has been stored to it in this execution of "
       "its body"},
      // The scratch memory of one execution of the body is not that of the next.
      {kernel("for %k = (0, 2, 1) {\n%p = eq %k, 0 : s32\nif %p {\nfor %j = (0, 1, 1) {\n}\n}\n}\n"
              "lanes(%i: 8) {\nstore 0, %n[%i] : s32\n}"),
       ""},
      {"kernel @k(%y: out f32[8]) index s32 grid() {\n%v = load %y[0] : f32\n}",
       "k:2: error: K2: %y is 'out' and loaded from: its content is undefined"},
      {"kernel @k(%y: out f32[8]) index s32 grid() {\nlanes(%i: 7) {\nstore 1.0, %y[%i] : "
       "f32\n}\n}",
       "k:1: error: K2: nothing was stored to %y[7], an element of an 'out' buffer"},
  });
}

TEST(Rules, K3IterationsDoNotMeet) {
  expect_violations({
      {kernel("lanes(%i: 8) {\nstore %i, %n[3] : s32\n}"),
       "k:3: error: K3: every iteration of the lanes loop stores to the same elements of %n"},
      {kernel("store 1, %n[0] : s32", "%g: 2"),
       "k:2: error: K3: every iteration of the grid stores to the same elements of %n"},
      // Each iteration reads an element that the next one writes.
      {kernel("lanes(%i: 7) {\n%j = add %i, 1 : s32\n%v = load %n[%j] : s32\nstore %v, %n[%i] : "
              "s32\n}"),
       "k:5: error: K3: %n[1] is stored to here by one iteration of the lanes loop and touched by "
       "another"},
      {kernel("lanes(%i: 8) {\n%h = div %i, 2 : s32\nstore %i, %n[%h] : s32\n}"),
       "k:4: error: K3: %n[0] is stored to here by one iteration of the lanes loop and touched by "
       "another"},
      {kernel("%h = div %g, 2 : s32\nstore %g, %n[%h] : s32", "%g: 4"),
       "k:3: error: K3: %n[0] is stored to here by one iteration of the grid and touched by "
       "another"},
      {kernel("%v = load %n[0] : s32\nstore %v, %n[%g] : s32", "%g: 4"),
       "k:2: error: K3: %n[0] is stored to by one iteration of the grid and touched by another"},
      {kernel("private %p : f32[4,2] per lanes 1\nlanes(%i: 4) {\nstore 1.0, %p[0, 1] : f32\n}"),
       "k:4: error: K3: %p is private: its first 1 indices are the variables of a lanes loop of "
       "its extents, in order"},
      {kernel("private %p : f32[4,2] per lanes 1\nlanes(%i: 2) {\nstore 1.0, %p[%i, 1] : f32\n}"),
       "k:4: error: K3: %p is private: its first 1 indices are the variables of a lanes loop of "
       "its extents, in order"},
  });
}

TEST(Rules, K3ARaceIsFoundInEveryOrder) {
  const std::string text = kernel(
      "lanes(%i: 7) {\n%j = add %i, 1 : s32\n%v = load %n[%j] : s32\nstore %v, %n[%i] : s32\n}");
  for (const InterpreterOptions& options : testing::orders()) {
    EXPECT_NE(violation(text, options).find("K3: "), std::string::npos);
  }
}

std::string in_place_error(std::string_view text) {
  const auto kernel = parse(text, "t");
  if (!kernel) return kernel.error().to_string();
  if (const Status status = verify(*kernel); !status.ok()) return status.to_string();
  std::vector<float> memory(16, 1.0F);
  auto* data = reinterpret_cast<std::byte*>(memory.data());
  const std::vector<BufferArgument> arguments = {{data, 32}, {data, 32}};
  return Interpreter(*kernel).run(arguments).to_string();
}

TEST(Rules, K4InPlace) {
  const auto over = [](std::string_view body) {
    return fmt::format(
        "kernel @k(%x: in f32[8], %y: out f32[8] over %x) index s32 grid() {{\n{}\n}}", body);
  };
  EXPECT_EQ(in_place_error(over("lanes(%i: 8) {\n%v = load %x[%i] : f32\n%w = add %v, 1.0 : f32\n"
                                "store %w, %y[%i] : f32\n}")),
            Status().to_string());
  EXPECT_EQ(
      in_place_error(over("lanes(%i: 8) {\nstore 1.0, %y[%i] : f32\n%v = load %x[%i] : f32\n}")),
      "k:4: error: K4: %x[0] is loaded after the buffer in its place was stored to");
  EXPECT_EQ(in_place_error(over("lanes(%i: 8) {\n%r = sub 7, %i : s32\n%v = load %x[%r] : f32\n"
                                "store %v, %y[%i] : f32\n}")),
            "k:4: error: K4: %x[3] is loaded after the buffer in its place was stored to");
  EXPECT_EQ(in_place_error("kernel @k(%x: in f32[8], %y: out f32[8]) index s32 grid() {\n}"),
            "error: @k: K4: %x and %y overlap, and are not in place");
  EXPECT_EQ(
      in_place_error("kernel @k(%x: in f32[8], %y: out f32[4] over %x) index s32 grid() {\n}"),
      "k:1: error: K4: %y over %x: the elements have different positions");
  EXPECT_EQ(
      in_place_error("kernel @k(%x: in f32[8], %y: inout f32[8] over %x) index s32 grid() {\n}"),
      "k:1: error: K4: %y over %x: an 'out' buffer may take the memory of an 'in' one");
}

TEST(Rules, K5Reductions) {
  const auto reduce = [](std::string_view combine, std::string_view leaf = "yield 1.0") {
    return kernel(
        fmt::format("%r = reduce serial(%i: 8) init(0.0) : f32 commutative {{\n{}\n}} "
                    "combine(%a, %b) {{\n{}\nyield %c\n}}",
                    leaf, combine));
  };
  expect_violations({
      {reduce("%c = add %a, %b : f32"), ""},
      {reduce("%c = sub %a, %b : f32"),
       "k:2: error: K5: commutative: swapping the sides of the combination gives another "
       "expression"},
      {reduce("%d = mul %a, %b : f32\n%e = add %b, %a : f32\n%c = add %e, %d : f32"), ""},
      {reduce("%d = abs %a : f32\n%c = add %d, %b : f32"),
       "k:2: error: K5: commutative: swapping the sides of the combination gives another "
       "expression"},
      {reduce("%c = add %a, %b : f32", "store 1, %n[%i] : s32\nyield 1.0"),
       "k:3: error: K5: a leaf, combination or condition only computes: it does not store"},
  });
}

// In every tree, leaves stay in order and init enters once: subtraction of strings of digits would
// reveal a violation, and so does the pair (a, b) -> (first of a, last of b).
TEST(Rules, K5LeavesStayInOrder) {
  const auto parsed = parse(
      "kernel @k(%y: out s32[2]) index s32 grid() {\n"
      "%f, %l = reduce serial(%i: 50) init(-1, -1) : s32, s32 {\nyield %i, %i\n}\n"
      "combine(%f0, %l0, %f1, %l1) {\n%adjacent0 = add %l0, 1 : s32\n%good = eq %adjacent0, %f1 : "
      "s32\n"
      "%l = select %good, %l1, -1000 : s32\nyield %f0, %l\n}\n"
      "store %f, %y[0] : s32\nstore %l, %y[1] : s32\n}",
      "t");
  ASSERT_TRUE(parsed) << parsed.error().to_string();
  ASSERT_TRUE(verify(*parsed).ok()) << verify(*parsed).to_string();
  for (const InterpreterOptions& options : testing::orders()) {
    std::vector<Literal> buffers = testing::zero_buffers(*parsed);
    ASSERT_TRUE(testing::run(*parsed, buffers, {}, options).ok());
    EXPECT_EQ(buffers[0].get<int32_t>(0), -1);
    EXPECT_EQ(buffers[0].get<int32_t>(1), 49);
  }
}

TEST(Rules, K6Atomics) {
  expect_violations({
      {kernel("lanes(%i: 8) {\n%h = div %i, 2 : s32\natomic add %i, %n[%h] : s32\n}"), ""},
      {kernel("lanes(%i: 8) {\natomic add 1.0, %f[%i] : f32\n}", "", ", %f: inout f32[8]"),
       "k:3: error: K6: an atomic on f32: the order of its combinations would change bits"},
      {kernel(
           "lanes(%i: 8) {\n%h = div %i, 2 : s32\natomic add %i, %n[%h] : s32\n%v = load %n[%h] : "
           "s32\n}"),
       "k:5: error: K6: %n[0] is touched both by one kind of atomic and otherwise within the lanes "
       "loop"},
      {kernel("lanes(%i: 8) {\natomic add %i, %n[0] : s32\natomic max %i, %n[0] : s32\n}"),
       "k:4: error: K6: %n[0] is touched both by one kind of atomic and otherwise within the lanes "
       "loop"},
      {kernel("lanes(%i: 8) {\natomic sub %i, %n[0] : s32\n}"),
       "t:3:8: error: K6: 'sub' is not an atomic combination"},
  });
}

TEST(Rules, K7Ranges) {
  expect_violations({
      {kernel("%v = load %x[8] : f32"),
       "k:2: error: K7: index 0 of %x is 8 at least, the dimension has 8 elements"},
      {kernel("lanes(%i: 9) {\n%v = load %x[%i] : f32\n}"),
       "k:3: error: K7: %x[8] is out of range: dimension 0 has 8 elements"},
      {kernel(
           "%q = load %n[0] : s32\n%r = sub %q, 1 : s32\n%v = load %x[%q] : f32\n%m = min %r, 7 : "
           "s32\nstore 0, %n[%m] : s32"),
       "k:6: error: K10: index arithmetic (sub) is not proved to fit s32"},
  });
}

// fma rounds once, mul and add twice: (1 + 2^-12)^2 has a last bit that only fma keeps.
TEST(Rules, K8NothingIsContracted) {
  const auto parsed = parse(
      "kernel @k(%x: in f32[2], %y: out f32[2]) index s32 grid() {\n%a = load %x[0] : f32\n"
      "%b = load %x[1] : f32\n%p = mul %a, %a : f32\n%s = add %p, %b : f32\n"
      "%f = fma %a, %a, %b : f32\nstore %s, %y[0] : f32\nstore %f, %y[1] : f32\n}",
      "t");
  ASSERT_TRUE(parsed) << parsed.error().to_string();
  std::vector<Literal> buffers = testing::zero_buffers(*parsed);
  buffers[0].set<float>(0, 1 + 0x1p-12F);
  buffers[0].set<float>(1, -1 - 0x1p-11F);
  ASSERT_TRUE(testing::run(*parsed, buffers).ok());
  EXPECT_EQ(buffers[1].get<float>(0), 0);
  EXPECT_EQ(buffers[1].get<float>(1), 0x1p-24F);
  Builder b("k");
  b.grid({});
  Node fma;
  fma.op = OpCode::kFma;
  fma.type = fma.from = ElementType::kS32;
  fma.operands = {b.index(1), b.index(2), b.index(3)};
  b.append(std::move(fma), {ElementType::kS32});
  EXPECT_EQ(verify(b.finish()).to_string(),
            "k:2: error: K8: fma rounds once; on s32 there is nothing to round");
}

TEST(Rules, K9Packed) {
  expect_violations({
      {"kernel @k(%x: packed in f32[8]) index s32 grid() {\n}",
       "k:1: error: K9: %x is packed, but f32 does not share bytes evenly"},
      {"kernel @k(%x: packed out s4[8]) index s32 grid() {\n}",
       "k:1: error: K9: %x is packed and can only be 'in'; declare a buffer that is stored to as "
       "bytes"},
  });
  const auto parsed = parse(
      "kernel @k(%x: packed in s4[4], %y: out s4[4]) index s32 grid() {\nlanes(%i: 4) {\n"
      "%v = load %x[%i] : s4\nstore %v, %y[%i] : s4\n}\n}",
      "t");
  ASSERT_TRUE(parsed) << parsed.error().to_string();
  std::byte packed[2] = {std::byte{0x72}, std::byte{0xF8}};
  std::byte unpacked[4] = {};
  const std::vector<BufferArgument> arguments = {{packed, 2}, {unpacked, 4}};
  ASSERT_TRUE(Interpreter(*parsed).run(arguments).ok());
  EXPECT_EQ(static_cast<int8_t>(unpacked[0]), 2);
  EXPECT_EQ(static_cast<int8_t>(unpacked[1]), 7);
  EXPECT_EQ(static_cast<int8_t>(unpacked[2]), -8);
  EXPECT_EQ(static_cast<int8_t>(unpacked[3]), -1);
}

TEST(Rules, K10IndexTypes) {
  expect_violations({
      {"kernel @k(%x: in f32[8]) index s16 grid() {\n}",
       "t:1:36: error: K10: the index type is s32 or s64"},
      {"kernel @k(%x: in f32[3000000000]) index s32 grid(%g: 60000) {\n%r = mul %g, 50000 : s32\n"
       "%v = load %x[%r] : f32\n}",
       "k:3: error: K10: index arithmetic (mul) is not proved to fit s32"},
      {kernel("%q = load %x[0] : f32\n%i = convert %q : f32 -> s64\n%w = load %x[%i] : f32"),
       "k:4: error: K10: an index of %x is s64, the kernel's index type is s32"},
      {"kernel @k(%x: in f32[64], %i: scalar s32) index s32 grid() {\nscratch %t : f32[32]\n"
       "copy box(32) %t[0] by(0) = %x[%i] by(0) pad 0.0\n}",
       "k:3: error: K10: start 1 of copy plus its box is not proved to fit s32"},
  });
}

// Violations that the verifier once did not detect.
TEST(Rules, SizesCountsAndTypesAreBounded) {
  expect_violations({
      {"kernel @k(%x: in f32[1099511627776,16777216], %y: out f32[1]) index s64 grid() {\n"
       "%v = load %x[0, 5] : f32\nstore %v, %y[0] : f32\n}",
       "k:1: error: K0: %x takes more than 1125899906842624 bytes, or has a negative stride"},
      {"kernel @k(%x: in f32[4]{-1}) index s32 grid() {\n}",
       "t:1:25: error: K0: extent -1 is out of range"},
      {"kernel @k() index s64 grid() {\nscratch %t : f32[1099511627776]\n}",
       "k:2: error: K0: %t takes more than 2147483648 bytes, or has a negative stride"},
      {"kernel @k() index s64 grid(%i: 8589934592, %j: 2147483648) {\n}",
       "k:1: error: K0: the grid has more than 4294967294 iterations"},
      {"kernel @k() index s64 grid() {\nlanes(%i: 4294967296, %j: 4294967296) {\n}\n}",
       "k:2: error: K0: a lanes loop has more than 4294967294 iterations"},
      {"kernel @k(%f: scalar f32) index s32 grid() {\n"
       "%r = for %k = (0, 1, 1) carry(%s = %f) : s8 {\nyield %s\n}\n}",
       "k:2: error: K0: for begins with values of other types than it gives"},
      {"kernel @k(%f: scalar f32) index s32 grid() {\n"
       "%r = reduce serial(%k: 2) init(%f) : s8 {\nyield 1\n} combine(%a, %b) {\nyield %a\n}\n}",
       "k:2: error: K0: reduce begins with values of other types than it gives"},
      {"kernel @k() index s32 grid() {\nlanes(%i: 2) {\nyield 1\n}\n}",
       "k:2: error: K0: a block of lanes yields nothing"},
  });
}

TEST(Rules, UndefinedAliasedAndUnprovedThings) {
  expect_violations({
      {"kernel @k(%y: out s32[2]) index s32 grid(%i: 2) {\natomic add 1, %y[%i] : s32\n}",
       "k:2: error: K2: an atomic on %y, which is 'out': its content is undefined"},
      {"kernel @k(%x: packed in s4[8], %y: out s4[8] over %x) index s32 grid() {\n}",
       "k:1: error: K4: %y over %x: the elements have different positions"},
      {"kernel @k(%x: packed in f6e2m3fn[4]) index s32 grid() {\n}",
       "k:1: error: K9: %x is packed, but f6e2m3fn does not share bytes evenly"},
      {kernel("%r = reduce serial(%k: 8) init(0) : s32 commutative {\nyield %k\n} combine(%a, %b) "
              "{\n%p = lt %a, 0 : s32\n%c = if %p : s32 {\nyield %a\n} else {\nyield %b\n}\n"
              "yield %c\n}"),
       "k:2: error: K5: commutative: swapping the sides of the combination gives another "
       "expression"},
      {kernel("private %c : f32[2,2,2,2] per lanes 2\nscratch %a : f32[8,8]\n"
              "contract box(8, 8, 8) %c[0, 0] += %a[0, 0] * %a[0, 0]"),
       "k:4: error: K7: the box of contract is not proved to lie within the tile %c"},
      {"kernel @k(%x: in s32[4]) index s32 grid() {\n%n = load %x[0] : s32\n"
       "%h = mul %n, 1000000 : s32\nfor %k = (0, %h, 1) {\n%v = load %x[%k] : s32\n}\n}",
       "k:4: error: K10: index arithmetic (mul) is not proved to fit s32"},
      {"kernel @k(%x: in s32[4]) index s32 grid() {\n%n = load %x[0] : s32\n%p = lt %n, 3 : s32\n"
       "%h = if %p : s32 {\n%t = shl %n, 31 : s32\nyield %t\n} else {\nyield 0\n}\n"
       "%v = load %x[%h] : s32\n}",
       "k:10: error: K10: index arithmetic (shl) is not proved to fit s32"},
      {"kernel @k(%x: in f32[2000], %y: out f32[1000]) index s32 grid(%i: 1000) {\n"
       "%m = mul %i, 3000000 : s32\n%r = rem %m, 100 : s32\n%q = min %r, %i : s32\n"
       "%v = load %x[%q] : f32\nstore %v, %y[%i] : f32\n}",
       "k:5: error: K10: index arithmetic (mul) is not proved to fit s32"},
      {"kernel @k(%x: in f32[8], %y: out f32[8]) index s32 grid(%i: 8) {\n"
       "copy box(2) %y[0] by(0) = %x[%i] by(0) pad 0.0\n}",
       "k:2: error: K3: every iteration of the grid copies to the same elements of %y"},
  });
}

TEST(Rules, WhatIsNeverExecutedBreaksNothing) {
  EXPECT_EQ(violation("kernel @k(%x: in f32[4], %y: out f32[0]) index s32 grid(%g: 3) {\n"
                      "lanes(%i: 0) {\nstore 1.0, %y[%i] : f32\n}\n"
                      "for %k = (8, 8, 1) {\n%v = load %x[8] : f32\n}\n}"),
            "");
  const auto padding = parse(
      "kernel @k(%x: in f32[4], %y: out f32[2]) index s32 grid() {\n"
      "copy box(2) %y[0] by(0) = %x[4] by(0) pad 0.0\n}",
      "t");
  ASSERT_TRUE(padding);
  EXPECT_EQ(verify(expand_tiles(*padding)).to_string(), "OK");
}

// The loop of a serial scan is one loop: a leaf may read what an earlier `each` has stored.
TEST(Rules, SerialScanIsALoop) {
  const auto scan = parse(
      "kernel @k(%y: out s32[1]) index s32 grid() {\nscratch %t : s32[1]\nstore 0, %t[0] : s32\n"
      "%r = scan serial(%k: 5) init(0) : s32 {\n%v = load %t[0] : s32\n%w = add %v, 1 : s32\n"
      "yield %w\n} combine(%a, %b) {\n%c = add %a, %b : s32\nyield %c\n} each(%k, %p) {\n"
      "store %p, %t[0] : s32\n}\nstore %r, %y[0] : s32\n}",
      "t");
  ASSERT_TRUE(scan) << scan.error().to_string();
  ASSERT_EQ(verify(*scan).to_string(), "OK");
  for (const InterpreterOptions& options : testing::orders()) {
    std::vector<Literal> buffers = testing::zero_buffers(*scan);
    EXPECT_EQ(testing::run(*scan, buffers, {}, options).to_string(), "OK");
    EXPECT_EQ(buffers[0].get_integer(0), 31);
  }
}

// Long chains of operations, and chains that double, take linear time and bounded depth.
TEST(Rules, ProofsAreLinear) {
  std::string chain = "kernel @k(%x: in s32[4]) index s32 grid(%g: 1) {\n%v0 = min %g, 3 : s32\n";
  for (int i = 1; i < 100000; ++i) chain += fmt::format("%v{} = min %v{}, 3 : s32\n", i, i - 1);
  chain += "%w = load %x[%v99999] : s32\n}";
  EXPECT_EQ(violation(chain), "");
  std::string doubling =
      "kernel @k() index s32 grid() {\n%r = reduce serial(%k: 2) init(0) : s32 commutative "
      "{\nyield "
      "%k\n} combine(%a, %b) {\n%c0 = add %a, %b : s32\n";
  for (int i = 1; i < 60; ++i) {
    doubling += fmt::format("%c{} = add %c{}, %c{} : s32\n", i, i - 1, i - 1);
  }
  EXPECT_EQ(violation(doubling + "yield %c59\n}\n}"), "");
}

TEST(Rules, ARunCanBeCancelled) {
  InterpreterOptions options;
  options.cancelled = [] { return true; };
  EXPECT_EQ(violation(kernel("while() {\nyield true\n} do() {\n}"), options), "error: cancelled");
  EXPECT_EQ(
      violation("kernel @k() index s64 grid() {\n%r = reduce serial(%k: 8589934592) init(0) : "
                "s32 {\nyield 1\n} combine(%a, %b) {\nyield %a\n}\n}",
                options),
      "error: cancelled");
  EXPECT_EQ(violation("kernel @k() index s64 grid(%i: 4000000000) {\n}", options),
            "error: cancelled");
}

}  // namespace
}  // namespace tenon::kernel
