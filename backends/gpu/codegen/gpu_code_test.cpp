// The PTX that the code generator makes of kernels, and ptxas's report on it. (The simulator's
// tests check that it computes the right bits.)
#include <gtest/gtest.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <cmath>
#include <csignal>
#include <regex>

#include "backends/gpu/codegen/nvptx.h"
#include "backends/gpu/codegen/remainder.h"
#include "backends/llvm/host.h"
#include "backends/llvm/jit.h"
#include "core/kernel/testing/case_test_util.h"

namespace tenon::gpu {
namespace {

using enum ElementType;
using kernel::Kernel;
using kernel::testing::Case;

constexpr int32_t kChips[] = {75, 80, 90};

Kernel legal(const Kernel& kernel) {
  auto made = kernel::legalize(kernel, gpu_features());
  EXPECT_TRUE(made) << made.error().to_string();
  return *std::move(made);
}

Kernel parsed(const std::string& text) {
  auto made = kernel::parse(text, "kernel");
  EXPECT_TRUE(made) << made.error().to_string();
  EXPECT_TRUE(verify(*made).ok()) << verify(*made).to_string();
  return legal(*made);
}

struct Ptx {
  std::string text;
  GpuCode code;
};

Ptx ptx_of_kernels(const std::vector<Kernel>& kernels, int32_t chip = 90) {
  std::vector<const Kernel*> list;
  for (const Kernel& each : kernels) list.push_back(&each);
  PtxAssembler assembler(chip, "");
  auto compiled = compile(target_of_gpu(chip), list, assembler);
  EXPECT_TRUE(compiled) << compiled.error().to_string();
  EXPECT_TRUE(compiled->declined.empty());
  EXPECT_EQ(compiled->code.images.size(), 1U);
  return {compiled->code.images.at(0), std::move(compiled->code)};
}

std::string ptx(const std::string& kernel, int32_t chip = 90) {
  return ptx_of_kernels({parsed(kernel)}, chip).text;
}

int64_t count(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  return std::distance(std::sregex_iterator(text.begin(), text.end(), expression), {});
}

void expect_lines(const std::string& text, const std::string& pattern, int64_t times) {
  EXPECT_EQ(count(text, pattern), times) << pattern << " in\n" << text;
}

// K8 and the exactness of each operation: no operation that ptxas may contract, or that is
// approximate or flushes denormals. ptxas accepts all of it.
TEST(GpuCode, EveryOperationIsExact) {
  std::vector<Kernel> kernels;
  for (const Case& c :
       kernel::testing::operation_cases({kPred, kS4, kS8, kS16, kS32, kS64, kU8, kU16, kU32, kU64,
                                         kBF16, kF16, kF8E4M3FN, kF32, kF64})) {
    kernels.push_back(legal(c.kernel));
  }
  const std::string ptxas = find_ptxas();
  for (const int32_t chip : kChips) {
    SCOPED_TRACE(chip);
    const Ptx made = ptx_of_kernels(kernels, chip);
    expect_lines(made.text, R"(\b(add|sub|mul|mad|fma|div|sqrt|rcp)\.(f32|f64))", 0);
    expect_lines(made.text, R"(\.(ftz|approx|full)\b)", 0);
    expect_lines(made.text, R"(\.local\b)", 0);
    EXPECT_GT(count(made.text, R"(\bdiv\.rn\.f32)"), 0);
    EXPECT_GT(count(made.text, R"(\bsqrt\.rn\.f64)"), 0);
    EXPECT_GT(count(made.text, R"(\bcvt\.rni\.f32)"), 0);
    if (ptxas.empty()) continue;
    const auto cubin = run_ptxas(ptxas, made.text, chip);
    ASSERT_TRUE(cubin) << cubin.error().to_string();
    ASSERT_EQ(cubin->kernels.size(), kernels.size());
    for (const Resources& each : cubin->kernels) {
      EXPECT_EQ(each.spill_stores + each.spill_loads, 0) << each.symbol;
    }
  }
  if (ptxas.empty()) GTEST_SKIP() << "no ptxas: the text alone was looked at";
}

// Registers, spills and barriers of the examples.
TEST(GpuCode, ExamplesStayInRegisters) {
  const std::string ptxas = find_ptxas();
  for (const Case& c : kernel::testing::example_cases(TENON_SOURCE)) {
    SCOPED_TRACE(c.kernel.name);
    for (const int32_t chip : kChips) {
      const Ptx made = ptx_of_kernels({legal(c.kernel)}, chip);
      expect_lines(made.text, R"(\.local\b)", 0);
      if (ptxas.empty()) continue;
      const auto cubin = run_ptxas(ptxas, made.text, chip);
      ASSERT_TRUE(cubin) << cubin.error().to_string();
      ASSERT_EQ(cubin->kernels.size(), 1u);
      EXPECT_EQ(cubin->kernels[0].symbol, made.code.kernels[0].symbol);
      EXPECT_EQ(cubin->kernels[0].spill_stores, 0);
      EXPECT_EQ(cubin->kernels[0].spill_loads, 0);
      EXPECT_EQ(cubin->kernels[0].stack_bytes, 0);
      EXPECT_GT(cubin->kernels[0].registers, 0);
      EXPECT_LE(cubin->kernels[0].registers, 64);
    }
  }
  if (ptxas.empty()) GTEST_SKIP() << "no ptxas: the text alone was looked at";
}

TEST(GpuCode, SoftmaxReducesByShufflesAndSharedMemory) {
  std::string text;
  for (const Case& c : kernel::testing::example_cases(TENON_SOURCE)) {
    if (c.kernel.name == "softmax") text = ptx_of_kernels({legal(c.kernel)}).text;
  }
  expect_lines(text, R"(shfl\.sync\.down)", 10);  // Five steps for each of two reductions.
  expect_lines(text, R"(ld\.global\.nc\.v4\.f32)", 2);
  expect_lines(text, R"(st\.global\.v4\.f32)", 1);
  expect_lines(text, R"(bar\.sync)", 3);  // After each reduction's partial results, after %e.
}

// Accumulators are registers, and each lane loads each element of a tile once.
TEST(GpuCode, DotsAccumulateInRegisters) {
  std::string text;
  for (const Case& c : kernel::testing::example_cases(TENON_SOURCE)) {
    if (c.kernel.name == "dot") text = ptx_of_kernels({legal(c.kernel)}).text;
  }
  expect_lines(text, R"(fma\.rn\.f32)", 16 * 4);
  expect_lines(text, R"(bar\.sync)", 2);
  EXPECT_LE(count(text, R"(ld\.shared)"), 16 * 4);
  EXPECT_GT(count(text, R"(ld\.shared\.v4)"), 0);
  EXPECT_GT(count(text, R"(ld\.global\.nc\.v4)"), 0);
}

std::string copying(const std::string& type, const std::string& dims, const std::string& extent,
                    const std::string& at) {
  return fmt::format(R"(kernel @move(%x: in {0}[{1}], %y: out {0}[{1}]) index s32 grid(%g: 3) {{
  lanes(%i: {2}) {{
    %b = mul %g, {2} : s32
    %p = add %b, %i : s32
    {3}
    %v = load %x[%p] : {0}
    store %v, %y[%p] : {0}
  }}
}}
)",
                     type, dims, extent, at);
}

// Adjacent elements are moved 16 bytes at a time if they are proved to be aligned.
TEST(GpuCode, NeighboursMoveInRunsOf16Bytes) {
  const auto moved = [](const std::string& type, int64_t extent) {
    return ptx(copying(type, std::to_string(3 * extent), std::to_string(extent), ""));
  };
  const auto access = [](const std::string& text) {
    std::smatch found;
    std::regex_search(text, found, std::regex(R"(ld\.global\.nc\.(\S+))"));
    return found[1].str();
  };
  EXPECT_EQ(access(moved("f32", 256)), "v4.f32");
  EXPECT_EQ(access(moved("f64", 256)), "v2.f64");
  EXPECT_EQ(access(moved("s32", 256)), "v4.u32");
  EXPECT_EQ(access(moved("s64", 256)), "v2.u64");
  EXPECT_EQ(access(moved("bf16", 256)), "v4.u32");
  EXPECT_EQ(access(moved("s8", 256)), "v4.u32");
  EXPECT_EQ(access(moved("f32", 254)), "v2.f32");  // Runs of two.
  EXPECT_EQ(access(moved("f32", 255)), "f32");
  EXPECT_EQ(access(moved("s8", 255)), "u8");
  // A quarter of the threads.
  EXPECT_EQ(ptx_of_kernels({parsed(copying("f32", "768", "256", ""))}).code.kernels[0].threads,
            64u);
  EXPECT_EQ(ptx_of_kernels({parsed(copying("f32", "765", "255", ""))}).code.kernels[0].threads,
            256u);
}

std::string clipped(int64_t bound, const std::string& index) {
  return fmt::format(R"(kernel @clip(%x: in f32[{0}], %y: out f32[{0}]) index s32 grid(%g: 3) {{
  lanes(%i: 64) {{
    %b = mul %g, 64 : s32
    %p = add %b, %i : s32
    %in = lt %p, {0} : s32
    if %in {{
      {1}
      %v = load %x[%q] : f32
      store %v, %y[%p] : f32
    }}
  }}
}}
)",
                     bound, index);
}

TEST(GpuCode, RunsEndAtBoundsThatAreMultiples) {
  expect_lines(ptx(clipped(180, "%q = add %p, 0 : s32")), R"(ld\.global\.nc\.v4\.f32)", 1);
  expect_lines(ptx(clipped(182, "%q = add %p, 0 : s32")), R"(ld\.global\.nc\.v2\.f32)", 1);
  expect_lines(ptx(clipped(181, "%q = add %p, 0 : s32")), R"(ld\.global\.nc\.f32)", 1);
  // Backwards, and at addresses that are not adjacent.
  expect_lines(ptx(clipped(180, "%q = sub 179, %p : s32")), R"(ld\.global\.nc\.f32)", 1);
  expect_lines(ptx(clipped(180, "%q = rem %p, 90 : s32")), R"(ld\.global\.nc\.f32)", 1);
}

// Sums down columns: adjacent iterations are columns; each thread takes several, if there are
// enough.
std::string columns(int64_t groups) {
  return fmt::format(
      R"(kernel @columns(%x: in f32[{0},40,64], %y: out f32[{0},64]) index s32 grid(%g: {0}) {{
  lanes(%i: 64) {{
    %s = reduce serial(%k: 40) init(0.0) : f32 commutative {{
      %v = load %x[%g, %k, %i] : f32
      yield %v
    }} combine(%a, %b) {{
      %c = add %a, %b : f32
      yield %c
    }}
    store %s, %y[%g, %i] : f32
  }}
}}
)",
      groups);
}

TEST(GpuCode, RunsOfLoopsWhereThereAreManyThreads) {
  expect_lines(ptx(columns(4000)), R"(ld\.global\.nc\.v4\.f32)", 8);  // Of eight turns.
  expect_lines(ptx(columns(4)), R"(ld\.global\.nc\.v4\.f32)", 0);
}

// A serial loop gives the loads of several turns before it uses the first, in the order of its sum.
TEST(GpuCode, LoadsOfSeveralTurnsWaitTogether) {
  const auto sum = [](int64_t leaves) {
    return ptx(fmt::format(
        R"(kernel @k(%x: in f32[{0},64], %y: out f32[64]) index s32 grid() {{
  lanes(%i: 64) {{
    %s = reduce serial(%k: {0}) init(0.0) : f32 {{
      %a = load %x[%k, %i] : f32
      yield %a
    }} combine(%p, %q) {{
      %t = add %p, %q : f32
      yield %t
    }}
    store %s, %y[%i] : f32
  }}
}}
)",
        leaves));
  };
  // All of few, the largest divisor of many, and of a prime number a loop and the rest.
  expect_lines(sum(12), R"(ld\.global\.nc\.f32)", 12);
  expect_lines(sum(12), R"(bra)", 0);
  expect_lines(sum(120), R"(ld\.global\.nc\.f32)", 24);
  expect_lines(sum(120), R"(add\.rn\.f32)", 24);
  EXPECT_GE(count(sum(1009), R"(ld\.global\.nc\.f32)"), 24);
}

// Memory that a launch may share with another buffer is not read through the non-coherent cache.
TEST(GpuCode, InPlaceIsNotReadOnly) {
  const std::string text = ptx(
      R"(kernel @k(%x: in f32[64], %y: out f32[64] over %x) index s32 grid() {
  lanes(%i: 64) {
    %v = load %x[%i] : f32
    %w = neg %v : f32
    store %w, %y[%i] : f32
  }
}
)");
  expect_lines(text, R"(\.nc\.)", 0);
  expect_lines(text, R"(ld\.global\.v4\.f32)", 1);
}

// Barriers are placed where a thread needs a value that another one stored, and nowhere else.
TEST(GpuCode, BarriersStandBetweenThreads) {
  const auto with = [](const std::string& body) {
    return ptx(fmt::format(
        R"(kernel @k(%x: in s32[64], %y: inout s32[64], %z: out s32[64]) index s32 grid() {{
  scratch %a : s32[64]
  scratch %b : s32[64]
{}}}
)",
        body));
  };
  const auto lanes = [](const std::string& from, const std::string& to) {
    return fmt::format(
        "  lanes(%i: 64) {{\n    %v = load {}[%i] : s32\n    store %v, {}[%i] : s32\n  }}\n", from,
        to);
  };
  const auto barriers = [&](const std::string& body) { return count(with(body), "bar\\.sync"); };
  EXPECT_EQ(barriers(lanes("%x", "%z")), 0);
  EXPECT_EQ(barriers(lanes("%x", "%y") + lanes("%x", "%z")), 0);
  EXPECT_EQ(barriers(lanes("%x", "%a") + lanes("%a", "%z")), 1);
  EXPECT_EQ(barriers(lanes("%x", "%a") + lanes("%x", "%b") + lanes("%a", "%y") + lanes("%b", "%z")),
            1);
  EXPECT_EQ(barriers(lanes("%y", "%z") + lanes("%x", "%y")), 1);  // Read before it is overwritten.
  const std::string loop =
      "  for %k = (0, 9, 1) {\n" + lanes("%x", "%a") + lanes("%a", "%y") + "  }\n";
  EXPECT_EQ(barriers(loop), 2);
  // Consecutive stores of thread 0 outside of lanes loops need no barrier.
  EXPECT_EQ(barriers("  store 1, %z[0] : s32\n  store 2, %z[1] : s32\n"), 0);
  EXPECT_EQ(barriers("  store 1, %a[0] : s32\n  %v = load %a[0] : s32\n  store %v, %z[0] : s32\n"),
            1);
}

// Memories with disjoint lifetimes share an offset.
TEST(GpuCode, ScratchSharesPlaces) {
  const auto side = [](const std::string& name) {
    return std::regex_replace(std::string(R"(
    scratch %s : f32[100]
    lanes(%i: 100) {
      %v = load %x[%i] : f32
      store %v, %s[%i] : f32
    }
    lanes(%i: 100) {
      %j = sub 99, %i : s32
      %v = load %s[%j] : f32
      store %v, %y[%i] : f32
    }
)"),
                              std::regex("%s"), name);
  };
  const std::string text =
      ptx("kernel @k(%x: in f32[100], %y: out f32[100], %c: scalar pred) index s32 grid() {\n"
          "  if %c {" +
          side("%s") + "  } else {" + side("%t") + "  }\n}\n");
  expect_lines(text, R"(\.shared \.align 16 \.b8 \S+\[400\])", 1);
}

TEST(GpuCode, GridsBeyondOneDimension) {
  const auto kernel = [](int64_t blocks) {
    return fmt::format(
        R"(kernel @k(%x: in s8[2,{0}], %y: out s8[2,{0}]) index s64 grid(%a: 2, %b: {0}) {{
  %v = load %x[%a, %b] : s8
  store %v, %y[%a, %b] : s8
}}
)",
        blocks);
  };
  expect_lines(ptx(kernel(1000)), R"(%ctaid\.y)", 0);
  expect_lines(ptx(kernel(2000000000)), R"(%ctaid\.y)", 1);
  expect_lines(ptx(kernel(2000000000)), R"(%nctaid\.x)", 1);
}

TEST(GpuCode, Atomics) {
  std::vector<Kernel> kernels;
  for (const Case& c : kernel::testing::atomic_cases({kS32, kU32, kS64, kU64, kS8})) {
    kernels.push_back(legal(c.kernel));
  }
  const std::string ptxas = find_ptxas();
  for (const int32_t chip : kChips) {
    const std::string text = ptx_of_kernels(kernels, chip).text;
    for (const char* const what : {"add", "and", "or", "xor", "min", "max"}) {
      EXPECT_GT(count(text, fmt::format(R"(atom\.global\.{}\.)", what)), 0) << what;
      EXPECT_GT(count(text, fmt::format(R"(atom\.shared\.{}\.)", what)), 0) << what;
    }
    expect_lines(text, R"(\.cas\.)", 0);
    if (ptxas.empty()) continue;
    EXPECT_TRUE(run_ptxas(ptxas, text, chip));
  }
}

// --- Remainders, on the host

template <class T>
using Remainder = T (*)(T, T);

template <class T>
void expect_remainders(Remainder<T> remainder, ElementType type) {
  const auto value = [&](uint64_t bits) {
    T x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
  };
  const auto bits_of = [](T x) {
    uint64_t bits = 0;
    std::memcpy(&bits, &x, sizeof x);
    return bits;
  };
  const std::vector<uint64_t> numbers = kernel::testing::patterns(type, 400, 7);
  int wrong = 0;
  for (const uint64_t a : numbers) {
    for (const uint64_t b : numbers) {
      const T actual = remainder(value(a), value(b));
      const T expected = std::fmod(value(a), value(b));
      const bool same =
          std::isnan(expected) ? std::isnan(actual) : bits_of(actual) == bits_of(expected);
      if (!same && ++wrong < 5) {
        ADD_FAILURE() << value(a) << " rem " << value(b) << " is " << expected << ", not "
                      << actual;
      }
    }
  }
}

TEST(GpuCode, RemaindersAreExact) {
  llvm::LLVMContext context;
  llvm::Module module("remainders", context);
  const auto machine = codegen::host_machine();
  ASSERT_TRUE(machine);
  codegen::set_target(module, **machine);
  for (llvm::Type* const type :
       {llvm::Type::getFloatTy(context), llvm::Type::getDoubleTy(context)}) {
    llvm::Function* const function = remainder_function(module, type);
    EXPECT_EQ(remainder_function(module, type), function);
    function->setLinkage(llvm::GlobalValue::ExternalLinkage);
  }
  const std::string objects[] = {codegen::compile_to_object(module, **machine).value()};
  const auto loaded = codegen::load_objects(objects, {});
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  expect_remainders(reinterpret_cast<Remainder<float>>((*loaded)->address("tenon_rem_f32").value()),
                    kF32);
  expect_remainders(
      reinterpret_cast<Remainder<double>>((*loaded)->address("tenon_rem_f64").value()), kF64);
}

// --- Declined kernels, and errors

backend::Declined declined(const std::string& text) {
  const Kernel kernel = parsed(text);
  const Kernel* const kernels[] = {&kernel};
  PtxAssembler assembler(90, "");
  const auto compiled = compile(target_of_gpu(90), kernels, assembler);
  EXPECT_TRUE(compiled) << compiled.error().to_string();
  EXPECT_EQ(compiled->declined.size(), 1u);
  EXPECT_TRUE(compiled->code.images.empty());
  return compiled->declined.empty() ? backend::Declined{} : compiled->declined[0];
}

TEST(GpuCode, WhatDoesNotFitIsDeclined) {
  const auto scratch = declined(R"(kernel @large(%y: out f32[1]) index s32 grid() {
  scratch %s : f32[13000]
  store 1.0, %s[0] : f32
  %v = load %s[0] : f32
  store %v, %y[0] : f32
}
)");
  EXPECT_EQ(scratch.reason, backend::Reason::kTooMuchScratch);
  EXPECT_EQ(scratch.text, "@large needs 52000 bytes of shared memory, a block has 49152");
  const auto own = declined(R"(kernel @own(%y: out f32[512]) index s32 grid() {
  private %p : f32[512,100] per lanes 1
  lanes(%i: 512) {
    store 1.0, %p[%i, 3] : f32
    %v = load %p[%i, 3] : f32
    store %v, %y[%i] : f32
  }
}
)");
  EXPECT_EQ(own.reason, backend::Reason::kTooMuchPrivate);
  EXPECT_EQ(own.text, "@own needs 800 bytes a thread of private memory, registers hold 640");
  std::string parameters;
  for (int i = 0; i < 513; ++i) parameters += fmt::format("{}%s{}: scalar f32", i ? ", " : "", i);
  const auto many = declined("kernel @many(" + parameters + ") index s32 grid() {\n}\n");
  EXPECT_EQ(many.reason, backend::Reason::kTooManyParameters);
  EXPECT_EQ(many.text, "@many has 513 parameters, a launch 512");
}

TEST(GpuCode, ErrorsOfChipsAndTools) {
  const Kernel kernel = kernel::testing::of_op(kernel::OpCode::kNeg, kF32, {}, 40);
  const Kernel* const kernels[] = {&kernel};
  const auto error = [&](int32_t chip, const std::string& ptxas) {
    PtxAssembler assembler(chip, ptxas);
    const auto compiled = compile(target_of_gpu(chip), kernels, assembler);
    return compiled ? "" : compiled.error().to_string();
  };
  EXPECT_NE(error(70, "").find("gpu: sm_70 is older than sm_75"), std::string::npos);
  const auto refusal = [](const std::string& ptxas) {
    return run_ptxas(ptxas, "", 90).error().message();
  };
  EXPECT_NE(refusal("/nowhere/ptxas").find("gpu: /nowhere/ptxas cannot be run: No such file"),
            std::string::npos);
  EXPECT_NE(refusal("/bin/false").find("gpu: /bin/false ends with 1"), std::string::npos);
  EXPECT_NE(refusal("/bin/true").find("gpu: /bin/true made no cubin"), std::string::npos);
  // The PTX is kept even if ptxas fails; the driver may know better.
  const auto images = [&](const std::string& ptxas) {
    PtxAssembler assembler(90, ptxas);
    return compile(target_of_gpu(90), kernels, assembler)->code.images.size();
  };
  EXPECT_EQ(images(""), 1U);
  EXPECT_EQ(images("/nowhere/ptxas"), 1U);
  EXPECT_EQ(images("/bin/false"), 1U);
  // Chips that LLVM does not know use the code of the newest earlier chip.
  EXPECT_EQ(error(120, ""), "");
  const std::string ptxas = find_ptxas();
  if (ptxas.empty()) GTEST_SKIP() << "no ptxas";
  const auto refused = run_ptxas(ptxas, "no PTX", 90);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kInternal);
  EXPECT_EQ(images(ptxas), 2U);
  // Servers often ignore SIGCHLD.
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  EXPECT_EQ(images(ptxas), 2U);
  std::signal(SIGCHLD, before);
}

TEST(GpuCode, ReportsAreRead) {
  const auto kernels = parse_report(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'a' for 'sm_90'\n"
      "ptxas info    : Function properties for a\n"
      "    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
      "ptxas info    : Used 255 registers, used 1 barriers, 4096 bytes smem\n"
      "ptxas info    : Compiling entry function 'b' for 'sm_90'\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 10 registers");
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].symbol, "a");
  EXPECT_EQ(kernels[0].registers, 255);
  EXPECT_EQ(kernels[0].stack_bytes, 16);
  EXPECT_EQ(kernels[0].spill_stores, 8);
  EXPECT_EQ(kernels[0].spill_loads, 12);
  EXPECT_EQ(kernels[1].symbol, "b");
  EXPECT_EQ(kernels[1].registers, 10);
}

TEST(GpuCode, CodeIsWhatWasSaved) {
  const Kernel kernel = parsed(
      "kernel @k(%x: inout f32[40], %a: scalar f32, %c: scalar pred) index s32 grid(%g: 3, %h: 5) "
      "{\n  if %c {\n    store %a, %x[%g] : f32\n  }\n}\n");
  const GpuCode code = ptx_of_kernels({kernel}).code;
  const auto again = load_code(save(code));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->images, code.images);
  ASSERT_EQ(again->kernels.size(), 1u);
  EXPECT_EQ(again->kernels[0].symbol, "tenon_0_k");
  EXPECT_EQ(again->kernels[0].blocks, 15);
  EXPECT_EQ(again->kernels[0].threads, 32u);
  EXPECT_EQ(again->kernels[0].buffers, std::vector<int64_t>{160});
  EXPECT_EQ(again->kernels[0].scalars, (std::vector<ElementType>{kF32, kPred}));
  std::string damaged = save(code);
  damaged[damaged.size() / 2] ^= 1;
  EXPECT_EQ(load_code(damaged).error().code(), ErrorCode::kDataLoss);
}

}  // namespace
}  // namespace tenon::gpu
