// Kernels compiled by LLVM give the interpreter's bits, in vectors of any width.
#include "backends/cpu/cpu.h"

#include <gtest/gtest.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <regex>

#include "backends/cpu/codegen/emitter.h"
#include "backends/cpu/cpu_test_util.h"
#include "backends/llvm/host.h"
#include "core/base/random.h"
#include "core/kernel/legalize/tiles.h"
#include "core/kernel/testing/case_test_util.h"
#include "core/types/float_convert.h"

namespace tenon::cpu {
namespace {

using testing::expect_interpreters_bits;
using testing::ir_of;

using enum ElementType;
using kernel::Kernel;
using kernel::testing::Case;

TEST(Cpu, EveryOperation) {
  expect_interpreters_bits(kernel::testing::operation_cases(
      {kPred, kS4, kS8, kS16, kS32, kS64, kU8, kU16, kU32, kU64, kBF16, kF16, kF32, kF64}));
}

TEST(Cpu, Examples) {
  expect_interpreters_bits(kernel::testing::example_cases(TENON_SOURCE), 1e-4);
}

TEST(Cpu, ControlFlowAndCarriedValues) { expect_interpreters_bits(kernel::testing::loop_cases()); }

TEST(Cpu, Atomics) {
  expect_interpreters_bits(kernel::testing::atomic_cases({kS8, kU16, kS32, kU32, kS64, kU64}));
}

TEST(Cpu, OrderedReductions) {
  expect_interpreters_bits(kernel::testing::ordered_reduction_cases());
}

TEST(Cpu, LanesThatGoApart) { expect_interpreters_bits(kernel::testing::divergent_cases()); }

// Runs of `apart` elements a lane, in the first `count` of 40 lanes: loads and stores that fill
// each other's gaps, forwards and backwards; the loads first, or each before its store.
Case run_case(int64_t apart, int64_t count, bool loads_first = true) {
  std::string text = fmt::format(
      "kernel @k(%x: in f32[{0}], %y: out f32[{0}]) index s32 grid() {{\n"
      "  lanes(%i: 40) {{\n  %p = lt %i, {1} : s32\n  if %p {{\n"
      "  %r = sub {2}, %i : s32\n  %up = mul %i, {3} : s32\n  %down = mul %r, {3} : s32\n",
      apart * count, count, count - 1, apart);
  const auto load = [&](int64_t k) {
    text += fmt::format("  %l{0} = add %down, {0} : s32\n  %v{0} = load %x[%l{0}] : f32\n", k);
  };
  for (int64_t k = 0; loads_first && k < apart; ++k) load(k);
  for (int64_t k = 0; k < apart; ++k) {
    if (!loads_first) load(apart - 1 - k);
    text += fmt::format(
        "  %s{0} = add %up, {0} : s32\n  %w{0} = mul %v{1}, {2}.0 : f32\n"
        "  store %w{0}, %y[%s{0}] : f32\n",
        k, apart - 1 - k, k + 1);
  }
  const Kernel kernel = kernel::parse(text + "  }\n  }\n}\n", "k").value();
  Case c = {kernel, kernel::testing::zero_buffers(kernel)};
  for (int64_t k = 0; k < apart * count; ++k) c.buffers[0].set_double(k, static_cast<double>(k));
  return c;
}

TEST(Cpu, AccessesThatFillEachOthersGaps) {
  std::vector<Case> cases;
  for (const int64_t apart : {2, 3, 4, 5, 6, 8, 12, 16}) {
    for (const int64_t count : {40, 37, 3}) {
      for (const bool loads_first : {true, false}) {
        cases.push_back(run_case(apart, count, loads_first));
      }
    }
  }
  expect_interpreters_bits(cases);
}

// The runs become vectors: nothing is gathered or scattered. Stores do so although loads lie
// between them; those loads come in an order that is no run.
TEST(Cpu, RunsAreNotGathered) {
  for (const int64_t apart : {2, 3, 8}) {
    for (const bool loads_first : {true, false}) {
      const std::string ir = ir_of(run_case(apart, 40, loads_first).kernel);
      EXPECT_NE(ir.find("shufflevector"), std::string::npos) << ir;
      if (loads_first) EXPECT_EQ(ir.find("masked.gather"), std::string::npos) << ir;
      EXPECT_EQ(ir.find("masked.scatter"), std::string::npos) << ir;
    }
  }
}

// A store stays before a load of what it stored.
TEST(Cpu, StoresBeforeLoadsOfTheirMemory) {
  const Kernel kernel =
      kernel::parse(R"(kernel @k(%x: in f32[80], %y: inout f32[80]) index s32 grid() {
  lanes(%i: 40) {
    %a = mul %i, 2 : s32
    %b = add %a, 1 : s32
    %v = load %x[%b] : f32
    store %v, %y[%a] : f32
    %w = load %y[%a] : f32
    %z = add %w, 1.0 : f32
    store %z, %y[%b] : f32
  }
}
)",
                    "k")
          .value();
  Case c = {kernel, kernel::testing::zero_buffers(kernel)};
  for (int64_t k = 0; k < 80; ++k) c.buffers[0].set_double(k, static_cast<double>(k));
  std::vector<Case> cases;
  cases.push_back(std::move(c));
  expect_interpreters_bits(cases);
}

// Loads of lanes that lie apart, alone: whole vectors are no gathers.
TEST(Cpu, LoadsOfLanesApart) {
  std::vector<Case> cases;
  for (const std::string_view type : {"f32", "f64", "s8", "bf16"}) {
    for (const int64_t apart : {2, 3, 4, 5, 9, -2, -3}) {
      const int64_t first = apart < 0 ? -apart * 39 : 1;
      const Kernel kernel =
          kernel::parse(
              fmt::format(R"(kernel @k(%x: in {0}[{1}], %y: out {0}[40]) index s32 grid() {{
  lanes(%i: 40) {{
    %a = mul %i, {2} : s32
    %b = add %a, {3} : s32
    %v = load %x[%b] : {0}
    store %v, %y[%i] : {0}
  }}
}}
)",
                          type, std::abs(apart) * 39 + 1 + (apart < 0 ? 0 : 1), apart, first),
              "k")
              .value();
      Case c = {kernel, kernel::testing::zero_buffers(kernel)};
      for (int64_t k = 0; k < c.buffers[0].element_count(); ++k) {
        c.buffers[0].set_double(k, static_cast<double>(k % 120));
      }
      if (type == "f32") {
        const std::string ir = ir_of(kernel);
        EXPECT_EQ(ir.find("masked.gather") == std::string::npos, apart != 9) << ir;
      }
      cases.push_back(std::move(c));
    }
  }
  expect_interpreters_bits(cases);
}

// Two elements beside each other at any place are gathered as one: the parts of complex numbers. So
// they are of lanes that a condition leaves out, and not if an element lies between them.
TEST(Cpu, PairsAtAnyPlaceAreGatheredTogether) {
  std::vector<Case> cases;
  for (const std::string_view type : {"f32", "s32", "bf16", "f64"}) {
    for (const bool beside : {true, false}) {
      for (const bool masked : {true, false}) {
        const Kernel kernel =
            kernel::parse(
                fmt::format(
                    R"(kernel @k(%p: in s32[77], %x: in {0}[50,3], %y: inout {0}[77]) index s32 grid() {{
  lanes(%i: 77) {{
    %place = load %p[%i] : s32
    %wanted = lt %place, {1} : s32
    if %wanted {{
      %a = load %x[%place, 0] : {0}
      %b = load %x[%place, {2}] : {0}
      %c = sub %a, %b : {0}
      store %c, %y[%i] : {0}
    }}
  }}
}}
)",
                    type, masked ? 25 : 50, beside ? 1 : 2),
                "k")
                .value();
        Case c = {kernel, kernel::testing::zero_buffers(kernel)};
        for (int64_t k = 0; k < 77; ++k)
          c.buffers[0].set_double(k, static_cast<double>(k * 13 % 50));
        for (int64_t k = 0; k < 150; ++k)
          c.buffers[1].set_double(k, static_cast<double>(k * k % 99));
        if (type == "f32") {
          const std::string ir = ir_of(kernel);
          EXPECT_EQ(ir.find("x i64> @llvm.masked.gather") != std::string::npos, beside) << ir;
          EXPECT_EQ(ir.find("x float> @llvm.masked.gather") == std::string::npos, beside) << ir;
        }
        cases.push_back(std::move(c));
      }
    }
  }
  expect_interpreters_bits(cases);
}

// Two lanes that lie four apart: a vector between them would end behind the second.
TEST(Cpu, LoadsOfTwoLanesApartEndWithTheSecond) {
  std::vector<Case> cases;
  for (const int64_t apart : {2, 3, 4, -3, -4}) {
    const Kernel kernel =
        kernel::parse(fmt::format(R"(kernel @k(%x: in f32[{0}], %y: out f32[2]) index s32 grid() {{
  lanes(%i: 2) {{
    %a = mul %i, {1} : s32
    %b = add %a, {2} : s32
    %v = load %x[%b] : f32
    %e = exp %v : f32
    store %e, %y[%i] : f32
  }}
}}
)",
                                  std::abs(apart) + 1, apart, apart < 0 ? -apart : 0),
                      "k")
            .value();
    Case c = {kernel, kernel::testing::zero_buffers(kernel)};
    for (int64_t k = 0; k < c.buffers[0].element_count(); ++k) {
      c.buffers[0].set_double(k, static_cast<double>(k));
    }
    const std::string ir = ir_of(kernel);
    EXPECT_EQ(ir.find("load <2 x float>") != std::string::npos, std::abs(apart) < 4) << ir;
    cases.push_back(std::move(c));
  }
  expect_interpreters_bits(cases);
}

// An index that is a sum of sums: as terms it would be visited 2^60 times.
TEST(Cpu, IndicesThatAreSumsOfSums) {
  std::string text =
      "kernel @k(%x: in f32[80], %y: out f32[80]) index s32 grid(%g: 1) {\n"
      "  lanes(%i: 40) {\n  %z0 = mul %g, 1 : s32\n";
  for (int k = 1; k <= 60; ++k) text += fmt::format("  %z{0} = add %z{1}, %z{1} : s32\n", k, k - 1);
  text +=
      "  %d = mul %i, 2 : s32\n  %a = add %d, %z60 : s32\n  %b = add %a, 1 : s32\n"
      "  %u = load %x[%a] : f32\n  %v = load %x[%b] : f32\n"
      "  store %v, %y[%a] : f32\n  store %u, %y[%b] : f32\n  }\n}\n";
  const auto kernel = kernel::parse(text, "k");
  ASSERT_TRUE(kernel) << kernel.error().to_string();
  Case c = {*kernel, kernel::testing::zero_buffers(*kernel)};
  for (int64_t k = 0; k < 80; ++k) c.buffers[0].set_double(k, static_cast<double>(k));
  expect_interpreters_bits({c});
}

// Elements of less than 32 bits at places that other elements name.
TEST(Cpu, GathersOfBytesAndWords) {
  std::vector<Case> cases;
  for (const std::string_view type : {"s8", "u8", "s16", "u16", "f16", "bf16", "pred"}) {
    const Kernel kernel =
        kernel::parse(
            fmt::format(
                R"(kernel @k(%x: in {0}[37], %n: in s32[50], %y: out {0}[50]) index s32 grid() {{
  lanes(%i: 50) {{
    %a = load %n[%i] : s32
    %b = max %a, 0 : s32
    %c = min %b, 36 : s32
    %v = load %x[%c] : {0}
    store %v, %y[%i] : {0}
  }}
}}
)",
                type),
            "k")
            .value();
    Case c = {kernel, kernel::testing::zero_buffers(kernel)};
    for (int64_t k = 0; k < 37; ++k) {
      c.buffers[0].set_double(k, static_cast<double>(type == "pred" ? k % 3 % 2 : k * 3 % 37));
    }
    for (int64_t k = 0; k < 50; ++k) c.buffers[1].set_integer(k, k * 7 % 37);
    cases.push_back(std::move(c));
  }
  expect_interpreters_bits(cases);
}

// Quotients of vectors, which no processor has: around multiples of the divisor, and at both ends.
TEST(Cpu, QuotientsOfVectors) {
  std::vector<Case> cases;
  for (const ElementType type : {kS8, kU8, kS16, kU16, kS32, kU32, kS64, kU64}) {
    const Kernel kernel =
        kernel::parse(
            fmt::format(
                R"(kernel @k(%x: in {0}[4096], %z: in {0}[4096], %q: out {0}[4096], %r: out {0}[4096]) index s32 grid() {{
  lanes(%i: 4096) {{
    %a = load %x[%i] : {0}
    %b = load %z[%i] : {0}
    %c = div %a, %b : {0}
    store %c, %q[%i] : {0}
    %d = rem %a, %b : {0}
    store %d, %r[%i] : {0}
  }}
}}
)",
                name_of(type)),
            "k")
            .value();
    Case c = {kernel, kernel::testing::zero_buffers(kernel)};
    const int64_t least = is_signed_integer(type) ? integer_min(type) : 0;
    const int64_t most = integer_max(type);
    Random random(static_cast<uint64_t>(type));
    for (int64_t k = 0; k < 4096; ++k) {
      const int bits = static_cast<int>(random.below(bit_width(type) - 1));
      const auto divisor = static_cast<int64_t>(random.bits() >> (63 - bits));
      const int64_t number = static_cast<int64_t>(random.bits());
      const int64_t multiple = divisor == 0 ? number : number - number % divisor;
      const int64_t numbers[] = {number, multiple, multiple - 1, multiple + 1, least, most, 0, 1};
      const int64_t divisors[] = {divisor, -divisor, 0, -1, least, most, 1, 2};
      c.buffers[0].set_integer(k, numbers[k % 8]);
      c.buffers[1].set_integer(k, divisors[k / 8 % 16 < 8 ? k / 8 % 8 : 0]);
    }
    cases.push_back(std::move(c));
  }
  expect_interpreters_bits(cases);
}

// A number of a type with any exponent.
double any_number(Random& random, ElementType type) {
  const bool is_wide = type == kF64 || type == kF32 || type == kBF16;
  const int most = type == kF64 ? 1020 : is_wide ? 125 : 15;
  const int exponent = static_cast<int>(random.below(2 * most)) - most;
  const double significand = 1 + std::ldexp(static_cast<double>(random.bits() >> 12), -52);
  return std::ldexp(random.below(2) == 0 ? significand : -significand, exponent);
}

// Dividend and divisor: around multiples, where the rounded quotient is one too large; of any size;
// what is no number, and zeros of both signs.
std::pair<double, double> remainder_operands(Random& random, ElementType type, int64_t k) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double special[] = {0.0, -0.0, kInfinity, -kInfinity, std::nan(""), 1.0, -3.5, 1e-4};
  const auto rounded = [&](double number) {
    return type == kF32 ? static_cast<double>(static_cast<float>(number)) : number;
  };
  const double divisor = rounded(any_number(random, type));
  const double times = static_cast<double>(random.bits() >> (20 + random.below(40)));
  const double multiple = rounded(times * divisor);
  const auto next = [&](double to) {
    return type == kF64 ? std::nextafter(multiple, to)
                        : std::nextafter(static_cast<float>(multiple), static_cast<float>(to));
  };
  switch (k / 64 % 6) {
    case 0:
      return {special[k % 8], special[k / 8 % 8]};
    case 1:
      return {any_number(random, type), divisor};
    case 2:
      return {multiple, divisor};
    case 3:
      return {next(0), divisor};
    case 4:
      return {next(kInfinity), -divisor};
    default:
      return {std::ldexp(any_number(random, type), -8), special[k % 8]};
  }
}

// For those of a constant, LLVM calls fmaxf and fminf.
TEST(Cpu, ExtremaOfHalves) {
  std::vector<Case> cases;
  for (const std::string op : {"max", "min"}) {
    const Kernel kernel =
        kernel::parse(fmt::format(R"(kernel @k(%x: in f16[7], %y: out f16[7]) index s32 grid() {{
  lanes(%i: 7) {{
    %a = load %x[%i] : f16
    %b = convert %i : s32 -> f16
    %c = {} %a, %b : f16
    store %c, %y[%i] : f16
  }}
}}
)",
                                  op),
                      "k")
            .value();
    Case c = {kernel, kernel::testing::zero_buffers(kernel)};
    const double values[] = {-0.0, 0.5, NAN, 3, -INFINITY, INFINITY, 7};
    for (int64_t k = 0; k < 7; ++k) c.buffers[0].set_double(k, values[k]);
    cases.push_back(c);
  }
  expect_interpreters_bits(cases);
}

TEST(Cpu, RemaindersOfFloats) {
  std::vector<Case> cases;
  for (const ElementType type : {kF32, kF64, kBF16, kF16}) {
    const Kernel kernel =
        kernel::parse(
            fmt::format(
                R"(kernel @k(%x: in {0}[4096], %z: in {0}[4096], %r: out {0}[4096], %s: out {0}[1]) index s32 grid() {{
  lanes(%i: 4096) {{
    %a = load %x[%i] : {0}
    %b = load %z[%i] : {0}
    %d = rem %a, %b : {0}
    store %d, %r[%i] : {0}
  }}
  %u = load %x[200] : {0}
  %v = load %z[200] : {0}
  %w = rem %u, %v : {0}
  store %w, %s[0] : {0}
}}
)",
                name_of(type)),
            "k")
            .value();
    Case c = {kernel, kernel::testing::zero_buffers(kernel)};
    Random random(static_cast<uint64_t>(type));
    for (int64_t k = 0; k < 4096; ++k) {
      const auto [x, y] = remainder_operands(random, type, k);
      c.buffers[0].set_double(k, x);
      c.buffers[1].set_double(k, y);
    }
    cases.push_back(std::move(c));
  }
  expect_interpreters_bits(cases);
}

// A vector of remainders is divided at once, and calls nothing unless a quotient is large.
TEST(Cpu, RemaindersOfFloatsAreDivisions) {
  const Kernel kernel = kernel::parse(R"(kernel @k(%x: inout f32[64]) index s32 grid() {
  lanes(%i: 64) {
    %a = load %x[%i] : f32
    %d = rem %a, 0.7 : f32
    store %d, %x[%i] : f32
  }
}
)",
                                      "k")
                            .value();
  const std::string ir = ir_of(kernel);
  EXPECT_NE(ir.find("fdiv <"), std::string::npos) << ir;
  EXPECT_NE(ir.find("vector.reduce.and"), std::string::npos) << ir;
}

// Sums of private or scratch tiles of all results, from factors of the same or a narrower type.
Case contract_case(std::string_view factors, std::string_view sums, std::string_view tile,
                   std::string_view a_dims, std::string_view how) {
  const bool is_private = tile.starts_with("private");
  const std::string text = fmt::format(
      R"(kernel @k(%a: in {0}[{3}], %b: in {0}[24,64], %y: out {1}[32,64]) index s32 grid() {{
  {2}
  lanes(%i: 4, %j: 2) {{
    for %u = (0, 8, 1) {{
      for %v = (0, 32, 1) {{
        {5}
        store {6}, %c[{7}] : {1}
      }}
    }}
  }}
  for %k = (0, 2, 1) {{
    contract box(32, 64, 24) %c[0, 0] += %a[0, 0] * %b[0, 0] {4}
  }}
  lanes(%i2: 4, %j2: 2) {{
    for %u2 = (0, 8, 1) {{
      for %v2 = (0, 32, 1) {{
        %r8 = mul %i2, 8 : s32
        %r = add %r8, %u2 : s32
        %s32 = mul %j2, 32 : s32
        %s = add %s32, %v2 : s32
        %x = load %c[{8}] : {1}
        store %x, %y[%r, %s] : {1}
      }}
    }}
  }}
}}
)",
      factors, sums, tile, a_dims, how,
      is_private ? ""
                 : "%q8 = mul %i, 8 : s32\n%q = add %q8, %u : s32\n"
                   "%p32 = mul %j, 32 : s32\n%p = add %p32, %v : s32",
      sums.starts_with("f") ? "0.0" : "0", is_private ? "%i, %j, %u, %v" : "%q, %p",
      is_private ? "%i2, %j2, %u2, %v2" : "%r, %s");
  const Kernel kernel = kernel::parse(text, "k").value();
  Case c = {kernel, kernel::testing::zero_buffers(kernel)};
  for (size_t b = 0; b < 2; ++b) {
    for (int64_t i = 0; i < c.buffers[b].element_count(); ++i) {
      c.buffers[b].set_double(i, static_cast<double>((i * 7 + static_cast<int64_t>(b)) % 13) / 3);
    }
  }
  return c;
}

TEST(Cpu, ContractStatements) {
  std::vector<Case> cases;
  for (const auto& [factors, sums] : std::vector<std::pair<std::string, std::string>>{
           {"f32", "f32"}, {"f64", "f64"}, {"f32", "f64"}, {"s8", "s32"}, {"u64", "u64"}}) {
    for (const std::string tile :
         {"private %c : {}[4,2,8,32] per lanes 2", "scratch %c : {}[32,64]"}) {
      const std::string declared = fmt::format(fmt::runtime(tile), sums);
      cases.push_back(contract_case(factors, sums, declared, "32,24", ""));
      cases.push_back(contract_case(factors, sums, declared, "24,32", "transpose a"));
    }
  }
  for (const Case& c : cases) {
    ASSERT_TRUE(verify(c.kernel).ok()) << verify(c.kernel).to_string();
    const Kernel legal = kernel::legalize(c.kernel, host_features()).value();
    const Kernel tiled = with_native_tiles(legal, codegen::host().vector_bytes);
    EXPECT_TRUE(kernel::has_tiles(tiled)) << kernel::print(tiled);
    EXPECT_TRUE(verify(tiled).ok()) << verify(tiled).to_string();
  }
  expect_interpreters_bits(cases);
}

// The processor does not fetch lines ahead that lie far apart.
TEST(Cpu, ContractStatementsFetchLinesAhead) {
  const auto fetches = [](const std::string& factors, const std::string& sums) {
    const Case c =
        contract_case(factors, sums, fmt::format("scratch %c : {}[32,64]", sums), "32,24", "");
    const Kernel legal = kernel::legalize(c.kernel, host_features()).value();
    return ir_of(with_native_tiles(legal, 16)).find("@llvm.prefetch") != std::string::npos;
  };
  EXPECT_TRUE(fetches("f32", "f32"));
  EXPECT_FALSE(fetches("s8", "s32")) << "64 bytes apart";
}

// A `contract` statement becomes loops if its sums cannot be kept in registers: narrow floats, a
// part of a tile, columns that are not adjacent.
TEST(Cpu, ContractStatementsAsLoops) {
  const std::string tile = "private %c : f32[4,2,8,32] per lanes 2";
  std::vector<Case> cases = {contract_case("bf16", "f32", tile, "32,24", ""),
                             contract_case("f16", "f32", tile, "24,32", "transpose a")};
  Case part = contract_case("f32", "f32", tile, "32,24", "");
  Case apart = part;
  for (kernel::Node& n : part.kernel.nodes) {
    if (n.op == kernel::OpCode::kContract) n.extents = {20, 64, 24};
  }
  for (kernel::Node& n : apart.kernel.nodes) {
    if (n.op != kernel::OpCode::kContract) continue;
    n.extents = {32, 24, 24};
    n.transpose_b = true;
  }
  cases.push_back(part);
  cases.push_back(apart);
  for (const Case& c : cases) {
    ASSERT_TRUE(verify(c.kernel).ok()) << verify(c.kernel).to_string();
    const Kernel legal = kernel::legalize(c.kernel, host_features()).value();
    EXPECT_FALSE(kernel::has_tiles(with_native_tiles(legal, codegen::host().vector_bytes)));
  }
  expect_interpreters_bits(cases);
}

// A load after the store of an iteration reads the stored value, although loads go along the rows.
TEST(Cpu, TransposesKeepLoadsBehindStores) {
  const auto with_numbers = [](std::string_view text) {
    const Kernel kernel = kernel::parse(text, "k").value();
    Case c = {kernel, kernel::testing::zero_buffers(kernel)};
    for (size_t b = 0; b < c.buffers.size(); ++b) {
      for (int64_t i = 0; i < c.buffers[b].element_count(); ++i) {
        c.buffers[b].set_double(i, static_cast<double>((i * 7 + static_cast<int64_t>(b)) % 101));
      }
    }
    return c;
  };
  expect_interpreters_bits(
      {with_numbers(R"(kernel @plain(%x: in f32[64,64], %y: out f32[64,64]) index s32 grid() {
  lanes(%i: 64, %j: 64) {
    %v = load %x[%j, %i] : f32
    store %v, %y[%i, %j] : f32
  }
}
)"),
       with_numbers(R"(kernel @in_place(%n: inout f32[64,64], %y: out f32[64,64]) index s32 grid() {
  lanes(%i: 64, %j: 64) {
    %a = load %n[%j, %i] : f32
    %s = add %a, 1.0 : f32
    store %s, %n[%j, %i] : f32
    %b = load %n[%j, %i] : f32
    store %b, %y[%i, %j] : f32
  }
}
)")});
}

// More scalars than a vector has lanes: the rest is another vector.
TEST(Cpu, MathFunctionsOfManyScalars) {
  std::string text = "kernel @many(%x: in f64[20], %y: out f64[20]) index s32 grid() {\n";
  for (int i = 0; i < 20; ++i) {
    text += fmt::format("  %v{0} = load %x[{0}] : f64\n  %e{0} = exp %v{0} : f64\n", i);
  }
  text += "  %s0 = add 0.0, %e0 : f64\n  store %s0, %y[0] : f64\n";
  for (int i = 1; i < 20; ++i) {
    text +=
        fmt::format("  %s{0} = add %s{1}, %e{0} : f64\n  store %s{0}, %y[{0}] : f64\n", i, i - 1);
  }
  const Kernel kernel = kernel::parse(text + "}\n", "k").value();
  ASSERT_TRUE(verify(kernel).ok()) << verify(kernel).to_string();
  std::vector<Case> cases = {{kernel, kernel::testing::zero_buffers(kernel)}};
  for (int64_t i = 0; i < 20; ++i) cases[0].buffers[0].set_double(i, 0.1 * static_cast<double>(i));
  expect_interpreters_bits(cases);
}

// Inactive lanes affect neither a skipped branch nor its condition.
TEST(Cpu, WhatNoLaneDoes) {
  const Kernel kernel =
      kernel::parse(R"(kernel @k(%x: in f32[16], %y: inout f32[5]) index s32 grid() {
  lanes(%j: 5) {
    %c = ge %j, 5 : s32
    %r = if %c : f32 {
      %v = load %x[%j] : f32
      yield %v
    } else {
      yield 0.0
    }
    %d = gt %r, 0.0 : f32
    if %d {
      store 1.0, %y[%j] : f32
    }
  }
}
)",
                    "k")
          .value();
  ASSERT_TRUE(verify(kernel).ok()) << verify(kernel).to_string();
  std::vector<Case> cases = {{kernel, kernel::testing::zero_buffers(kernel)}};
  for (int64_t i = 0; i < 16; ++i) cases[0].buffers[0].set_double(i, 1);
  expect_interpreters_bits(cases);
}

// The first lane's address does not fit 32 bits, but only the last lane is active.
TEST(Cpu, PlacesOfLanesThatAreOff) {
  const Kernel kernel =
      kernel::parse(
          R"(kernel @k(%on: in s32[16], %x: in f32[8], %y: inout f32[16]) index s64 grid() {
  lanes(%i: 16) {
    %a = load %on[%i] : s32
    %c = ne %a, 0 : s32
    if %c {
      %b = mul %i, 1000000000 : s64
      %p = sub %b, 14999999995 : s64
      %v = load %x[%p] : f32
      store %v, %y[%i] : f32
    }
  }
}
)",
          "k")
          .value();
  ASSERT_TRUE(verify(kernel).ok()) << verify(kernel).to_string();
  std::vector<Case> cases = {{kernel, kernel::testing::zero_buffers(kernel)}};
  cases[0].buffers[0].set_integer(15, 1);
  cases[0].buffers[1].set_double(5, 1.5);
  expect_interpreters_bits(cases);
}

TEST(Cpu, Reductions) { expect_interpreters_bits(kernel::testing::reduction_cases()); }

TEST(Cpu, CodeIsWhatWasSaved) {
  const Kernel kernel = kernel::testing::of_op(kernel::OpCode::kNeg, kF32, {}, 40);
  const Kernel* const kernels[] = {&kernel};
  const std::string bytes = save(compile(kernels).value());
  const auto again = load_code(bytes);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->kernels[0].buffers, (std::vector<int64_t>{160, 160}));
  EXPECT_TRUE(load_library(*again));
  std::string damaged = bytes;
  damaged[bytes.size() / 2] ^= 1;
  EXPECT_EQ(load_code(damaged).error().code(), ErrorCode::kDataLoss);
  CpuCode broken = *again;
  broken.objects[0].resize(100);
  EXPECT_EQ(load_library(broken).error().code(), ErrorCode::kInternal);
}

// If several threads would not pay there are no tasks; else each task runs some of the workgroups.
TEST(Cpu, TasksOfAKernel) {
  EXPECT_EQ(grain_of(90'000, 1000), 1000);
  EXPECT_EQ(grain_of(200'000, 1000), 100);
  EXPECT_EQ(grain_of(200'000, 2), 1);
  EXPECT_EQ(grain_of(1e9, 1), 1);
  EXPECT_EQ(grain_of(0, 1000), 1000);
}

// Work on integers in scratch memory, which is no flops and few bytes, is shared out as well.
TEST(Cpu, IntegerWorkIsShared) {
  const auto grain = [](int64_t turns) {
    const Kernel kernel =
        kernel::parse(
            fmt::format(R"(kernel @k(%x: in s32[64], %y: out s32[64]) index s32 grid(%g: 64) {{
  %v = load %x[%g] : s32
  %w = for %i = (0, {}, 1) carry(%c = %v) : s32 {{
    %d = mul %c, 3 : s32
    %e = xor %d, %i : s32
    yield %e
  }}
  store %w, %y[%g] : s32
}}
)",
                        turns),
            "k")
            .value();
    return describe(kernel, 0).grain;
  };
  EXPECT_LT(grain(100'000), 8);
  EXPECT_EQ(grain(10), 64);
}

// An application may call from a task of its own, whose group another thread has cancelled.
TEST(Cpu, CompilesWithinTasksThatAreCancelled) {
  const Kernel kernel = kernel::testing::of_op(kernel::OpCode::kNeg, kF32, {}, 40);
  const std::vector<const Kernel*> kernels(20, &kernel);  // Several objects.
  Result<CpuCode> code = compile(kernels);
  ASSERT_TRUE(code) << code.error().to_string();
  Result<CpuCode> within = internal_error("nothing was compiled");
  tbb::task_group group;
  group.run_and_wait([&] {
    group.cancel();
    within = compile(kernels);
  });
  ASSERT_TRUE(within) << within.error().to_string();
  EXPECT_TRUE(save(*within) == save(*code));
}

TEST(Cpu, WhatMachinesHaveFma) {
  EXPECT_TRUE(codegen::has_fma("x86_64-pc-linux-gnu", "-avx512f,+fma"));
  EXPECT_TRUE(codegen::has_fma("x86_64-pc-linux-gnu", "+avx512f,-fma"));
  EXPECT_FALSE(codegen::has_fma("x86_64-pc-linux-gnu", "-fma,+fma4,+avx512fp16"));
  EXPECT_TRUE(codegen::has_fma("aarch64-unknown-linux-gnu", "+neon"));
}

// The target describes the machine, in every task arena; its compiler_id identifies these sources.
TEST(Cpu, TargetDependsOnTheMachineAlone) {
  const auto backend = backend::make_cpu_backend(1);
  const backend::TargetInfo target = backend->devices().value()[0].target;
  tbb::task_arena narrow(1);
  narrow.execute(
      [&] { EXPECT_EQ(backend->devices().value()[0].target.compute_units, target.compute_units); });
  EXPECT_TRUE(std::regex_search(target.compiler_id, std::regex("^cpu [0-9a-f]{16} llvm 19\\.")))
      << target.compiler_id;
}

}  // namespace
}  // namespace tenon::cpu
