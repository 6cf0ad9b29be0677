#include "core/kernel/transform/simplify.h"

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "core/kernel/testing/kernel_test_util.h"

namespace tenon::kernel {
namespace {

Kernel parsed(const std::string& text) {
  auto kernel = parse(text, "t");
  EXPECT_TRUE(kernel) << kernel.error().to_string() << "\n" << text;
  if (!kernel) return {};
  EXPECT_EQ(verify(*kernel).to_string(), "OK");
  return std::move(*kernel);
}

void set(Literal& buffer, int64_t i, double value) {
  if (is_float(buffer.element_type())) {
    buffer.set_double(i, value);
  } else {
    buffer.set_integer(i, static_cast<int64_t>(value));
  }
}

struct SimplifyCase {
  const char* name;
  const char* before;
  const char* after;  // the body
};

class Simplify : public ::testing::TestWithParam<SimplifyCase> {};

TEST_P(Simplify, Gives) {
  const std::string before = GetParam().before;
  const std::string head = before.substr(0, before.find('\n') + 1);
  const Kernel simple = simplify(parsed(before));
  EXPECT_EQ(verify(simple).to_string(), "OK");
  EXPECT_EQ(print(simple), print(parsed(head + GetParam().after + "}")));
}

const SimplifyCase kCases[] = {
    {"DivisionAndRemainder",
     R"(kernel @f(%y: out s32[32,2]) index s32 grid(%i: 4, %j: 8) {
  %a = mul %i, 8 : s32
  %b = add %a, %j : s32
  %q = div %b, 8 : s32
  %r = rem %b, 8 : s32
  store %q, %y[%b, 0] : s32
  store %r, %y[%b, 1] : s32
})",
     R"(  %0 = mul %i, 8 : s32
  %1 = add %0, %j : s32
  store %i, %y[%1, 0] : s32
  store %j, %y[%1, 1] : s32
)"},
    {"BoundsThatAlwaysHold",
     R"(kernel @f(%x: in f32[8], %y: out f32[8]) index s32 grid(%i: 8) {
  %low = ge %i, 0 : s32
  %high = lt %i, 8 : s32
  %in = and %low, %high : pred
  %v = if %in : f32 {
    %w = load %x[%i] : f32
    yield %w
  } else {
    yield 0.0
  }
  store %v, %y[%i] : f32
})",
     R"(  %0 = load %x[%i] : f32
  store %0, %y[%i] : f32
)"},
    {"MinAndMaxThatChangeNothing",
     R"(kernel @f(%x: in f32[8], %y: out f32[8]) index s32 grid(%i: 8) {
  %a = max %i, 0 : s32
  %b = min %a, 7 : s32
  %v = load %x[%b] : f32
  store %v, %y[%i] : f32
})",
     R"(  %0 = load %x[%i] : f32
  store %0, %y[%i] : f32
)"},
    {"WhatALoopDoesNotChangeLeavesIt",
     R"(kernel @f(%x: in f32[8], %y: out f32[8,4], %s: scalar f32) index s32 grid(%i: 8) {
  lanes(%j: 4) {
    %v = load %x[%i] : f32
    %w = mul %v, %s : f32
    %e = exp %w : f32
    store %e, %y[%i, %j] : f32
  }
})",
     R"(  %0 = load %x[%i] : f32
  %1 = mul %0, %s : f32
  %2 = exp %1 : f32
  lanes(%3: 4) {
    store %2, %y[%i, %3] : f32
  }
)"},
    {"NothingLeavesABranchAndNoLoadALoopThatMayNotRun",
     R"(kernel @f(%x: in s32[8], %y: out s32[8]) index s32 grid(%i: 8) {
  %n = load %x[%i] : s32
  %p = lt %n, 3 : s32
  %m = max %n, 0 : s32
  %r = for %k = (0, %m, 1) carry(%s = 0) : s32 {
    %v = load %x[7] : s32
    %t = add %s, %v : s32
    yield %t
  }
  if %p {
    %q = mul %n, %n : s32
    store %q, %y[%i] : s32
  } else {
    store %r, %y[%i] : s32
  }
})",
     R"(  %0 = load %x[%i] : s32
  %1 = lt %0, 3 : s32
  %2 = max %0, 0 : s32
  %3 = for %4 = (0, %2, 1) carry(%5 = 0) : s32 {
    %6 = load %x[7] : s32
    %7 = add %5, %6 : s32
    yield %7
  }
  if %1 {
    %8 = mul %0, %0 : s32
    store %8, %y[%i] : s32
  } else {
    store %3, %y[%i] : s32
  }
)"},
    {"CommonSubexpressions",
     R"(kernel @f(%x: in f32[8], %y: out f32[8]) index s32 grid(%i: 8) {
  %a = load %x[%i] : f32
  %b = load %x[%i] : f32
  %c = add %a, %b : f32
  %d = add %b, %a : f32
  %e = mul %c, %d : f32
  store %e, %y[%i] : f32
})",
     R"(  %0 = load %x[%i] : f32
  %1 = add %0, %0 : f32
  %2 = mul %1, %1 : f32
  store %2, %y[%i] : f32
)"},
    {"LoopsOfOneIterationAndOfNone",
     R"(kernel @f(%y: out s32[8], %z: out s32[8,1]) index s32 grid(%i: 8) {
  %a = for %k = (3, 4, 1) carry(%s = 1) : s32 {
    %t = add %s, %k : s32
    yield %t
  }
  %b = for %k = (4, 4, 1) carry(%s = %a) : s32 {
    %t = mul %s, %i : s32
    yield %t
  }
  lanes(%j: 0) {
    store 1, %z[%i, %j] : s32
  }
  store %b, %y[%i] : s32
})",
     R"(  store 4, %y[%i] : s32
)"},
    {"WhatNoBufferSees",
     R"(kernel @f(%x: in f32[8], %y: out f32[8]) index s32 grid(%i: 8) {
  scratch %t : f32[8]
  scratch %u : f32[8]
  lanes(%j: 8) {
    %v = load %x[%j] : f32
    store %v, %t[%j] : f32
    store %v, %u[%j] : f32
  }
  %w = load %u[3] : f32
  %r = reduce lanes(%j: 8) init(0.0) : f32 {
    %v = load %t[%j] : f32
    yield %v
  } combine(%a, %b) {
    %c = add %a, %b : f32
    yield %c
  }
  store %w, %y[%i] : f32
})",
     R"(  scratch %u : f32[8]
  lanes(%0: 8) {
    %1 = load %x[%0] : f32
    store %1, %u[%0] : f32
  }
  %2 = load %u[3] : f32
  store %2, %y[%i] : f32
)"},
};
INSTANTIATE_TEST_SUITE_P(Table, Simplify, ::testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

// Kernels for which the simplifier once changed stored bits, or produced an invalid kernel.
TEST(SimplifySameBits, WhatAReviewFound) {
  const char* kernels[] = {
      "kernel @f(%y: out s32[5]) index s32 grid(%i: 5) {\n%a = sub %i, 5 : s32\n"
      "%r = rem %a, 2 : s32\nstore %r, %y[%i] : s32\n}",
      "kernel @f(%x: in u8[8], %y: out u8[8]) index s32 grid(%i: 8) {\n%v = load %x[%i] : u8\n"
      "%a = or %v, 128 : u8\n%b = sar %a, 1 : u8\n%c = min %b, 127 : u8\nstore %c, %y[%i] : u8\n}",
      "kernel @f(%x: in u64[8], %y: out u64[8]) index s32 grid(%i: 8) {\n%v = load %x[%i] : u64\n"
      "%a = shl %v, 41 : u64\n%b = div %a, 2199023255552 : u64\nstore %b, %y[%i] : u64\n}",
      "kernel @f(%x: in u32[8], %y: out u32[8]) index s32 grid(%i: 8) {\n%v = load %x[%i] : u32\n"
      "%w = and %v, 3 : u32\n%a = shl %w, 50 : u32\n%b = div %a, 2147483648 : u32\n"
      "store %b, %y[%i] : u32\n}",
      "kernel @f(%x: in u64[8], %y: out u64[8]) index s32 grid(%i: 8) {\n%v = load %x[%i] : u64\n"
      "%a = shl %v, 4294967296 : u64\n%b = div %a, 1 : u64\nstore %b, %y[%i] : u64\n}",
      "kernel @f(%x: in u64[8], %y: out u64[8]) index s32 grid(%i: 8) {\n%v = load %x[%i] : u64\n"
      "%a = mul %v, %v : u64\n%b = div %a, 3 : u64\nstore %b, %y[%i] : u64\n}",
      "kernel @f(%y: out f32[4]) index s32 grid() {\nprivate %p : f32[1,4] per lanes 2\n"
      "lanes(%a: 1, %b: 4) {\nstore 2.0, %p[%a, %b] : f32\n}\nlanes(%a: 1, %b: 4) {\n"
      "%v = load %p[%a, %b] : f32\nstore %v, %y[%b] : f32\n}\n}",
      "kernel @f(%x: in s2[8], %y: out s2[8]) index s32 grid(%i: 8) {\n%v = load %x[%i] : s2\n"
      "%c = clz %v : s2\n%d = add %c, 1 : s2\nstore %d, %y[%i] : s2\n}",
  };
  for (const char* text : kernels) {
    const Kernel kernel = parsed(text);
    const Kernel simple = simplify(kernel);
    EXPECT_EQ(verify(simple).to_string(), "OK") << text;
    std::vector<Literal> before = testing::zero_buffers(kernel);
    for (Literal& buffer : before) {
      for (int64_t i = 0; i < buffer.element_count(); ++i) {
        set(buffer, i, static_cast<double>(37 * i * i));
      }
    }
    std::vector<Literal> after = before;
    EXPECT_EQ(testing::run(kernel, before).to_string(), "OK") << text;
    EXPECT_EQ(testing::run(simple, after).to_string(), "OK") << text;
    EXPECT_EQ(before.back(), after.back()) << text << print(simple);
  }
}

// The examples of the specification store the same bits.
TEST(SimplifyExamples, SameBits) {
  for (const auto& entry :
       std::filesystem::directory_iterator(TENON_SOURCE "/core/kernel/examples")) {
    std::ifstream file(entry.path());
    std::stringstream text;
    text << file.rdbuf();
    const auto kernel = parse(text.str(), entry.path().filename());
    ASSERT_TRUE(kernel) << kernel.error().to_string();
    std::vector<Literal> before = testing::zero_buffers(*kernel);
    std::mt19937_64 random(1);
    for (Literal& buffer : before) {
      for (int64_t i = 0; i < buffer.element_count(); ++i) {
        set(buffer, i, static_cast<double>(random() % 1000) / 100);
      }
    }
    std::vector<Literal> after = before;
    const Kernel simple = simplify(*kernel);
    EXPECT_EQ(verify(simple).to_string(), "OK") << print(simple);
    EXPECT_EQ(testing::run(*kernel, before).to_string(), "OK");
    EXPECT_EQ(testing::run(simple, after).to_string(), "OK");
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(before[i], after[i]) << entry.path() << " buffer " << i;
    }
  }
}

}  // namespace
}  // namespace tenon::kernel
