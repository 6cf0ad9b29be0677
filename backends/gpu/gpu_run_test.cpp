// Kernels of a GPU, run by the simulator with all of its checks, give the interpreter's bits.
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/gpu/codegen/compile.h"
#include "backends/gpu/codegen/nvptx.h"
#include "backends/gpu/simulator/pass.h"
#include "backends/gpu/simulator/simulator.h"
#include "core/kernel/testing/case_test_util.h"

namespace tenon::gpu {
namespace {

using enum ElementType;
using kernel::Kernel;
using kernel::testing::Case;

constexpr int32_t kChip = 90;

// For the simulator with all checks: of the code as emitted, or as ptxas gets it.
class CheckingAssembler final : public Assembler {
 public:
  explicit CheckingAssembler(bool optimized) : optimized_(optimized) {}
  Result<std::vector<std::string>> assemble(llvm::Module& module) override {
    if (optimized_) TENON_TRY(optimize_for_chip(module, kChip));
    TENON_ASSIGN(std::string object, assemble_for_host(module, /*checks=*/true));
    return std::vector{std::move(object)};
  }

 private:
  const bool optimized_;
};

// Memory with a device's alignment.
class Aligned {
 public:
  explicit Aligned(const Literal& value)
      : bytes_(value.data().size() + kAlignment), size_(value.data().size()) {
    const auto address = reinterpret_cast<uintptr_t>(bytes_.data());
    start_ = bytes_.data() + (kAlignment - address % kAlignment) % kAlignment;
    std::copy_n(value.data().begin(), size_, start_);
  }
  std::byte* data() { return start_; }
  void copy_to(Literal& value) const { std::copy_n(start_, size_, value.mutable_data().begin()); }

 private:
  static constexpr size_t kAlignment = 256;
  std::vector<std::byte> bytes_;
  size_t size_;
  std::byte* start_;
};

Status run(const SimProgram& program, const GpuCode& code, size_t number,
           std::vector<Literal>& buffers) {
  std::vector<Aligned> memories(buffers.begin(), buffers.end());
  std::vector<std::byte*> addresses;
  for (Aligned& each : memories) addresses.push_back(each.data());
  std::vector<const void*> arguments;
  for (std::byte*& each : addresses) arguments.push_back(static_cast<const void*>(&each));
  const GpuKernelCode& kernel = code.kernels[number];
  SimLaunch launch;
  launch.kernel = number;
  launch.shape = {kernel.blocks, kernel.threads, kernel.buffers};
  launch.arguments = arguments;
  TENON_TRY(simulate(program, launch));
  for (size_t m = 0; m < buffers.size(); ++m) memories[m].copy_to(buffers[m]);
  return {};
}

void expect_interpreters_bits(const std::vector<Case>& cases, backend::Kernels kernels,
                              bool optimized, double tolerance) {
  CheckingAssembler assembler(optimized);
  const auto compiled = compile(target_of_gpu(kChip), kernels, assembler);
  ASSERT_TRUE(compiled) << compiled.error().to_string();
  ASSERT_TRUE(compiled->declined.empty()) << compiled->declined[0].text;
  const auto program = SimProgram::load(compiled->code.images.at(0));
  ASSERT_TRUE(program) << program.error().to_string();
  for (size_t k = 0; k < cases.size(); ++k) {
    std::vector<Literal> expected = cases[k].buffers;
    std::vector<Literal> actual = cases[k].buffers;
    ASSERT_TRUE(kernel::testing::run(cases[k].kernel, expected).ok());
    const Status status = run(**program, compiled->code, k, actual);
    ASSERT_TRUE(status.ok()) << cases[k].kernel.name << ": " << status.to_string();
    for (size_t m = 0; m < actual.size(); ++m) {
      kernel::testing::expect_same(cases[k].kernel.name, actual[m], expected[m], tolerance);
    }
  }
}

void expect_interpreters_bits(const std::vector<Case>& cases, double tolerance = 0) {
  std::vector<Kernel> legal;
  for (const Case& c : cases) {
    auto kernel = kernel::legalize(c.kernel, gpu_features());
    ASSERT_TRUE(kernel) << kernel.error().to_string();
    legal.push_back(*std::move(kernel));
  }
  std::vector<const Kernel*> kernels;
  for (const Kernel& each : legal) kernels.push_back(&each);
  for (const bool optimized : {false, true}) {
    SCOPED_TRACE(optimized ? "as ptxas gets it" : "as it is emitted");
    expect_interpreters_bits(cases, kernels, optimized, tolerance);
  }
}

TEST(GpuRun, EveryOperation) {
  expect_interpreters_bits(kernel::testing::operation_cases(
      {kPred, kS4, kS8, kS16, kS32, kS64, kU8, kU16, kU32, kU64, kBF16, kF16, kF32, kF64}));
}

TEST(GpuRun, Examples) {
  expect_interpreters_bits(kernel::testing::example_cases(TENON_SOURCE), 1e-4);
}

TEST(GpuRun, ControlFlowAndCarriedValues) {
  expect_interpreters_bits(kernel::testing::loop_cases());
}

TEST(GpuRun, Atomics) {
  expect_interpreters_bits(kernel::testing::atomic_cases({kS8, kU16, kS32, kU32, kS64, kU64}));
}

TEST(GpuRun, LanesThatGoApart) { expect_interpreters_bits(kernel::testing::divergent_cases()); }

TEST(GpuRun, Reductions) {
  expect_interpreters_bits(kernel::testing::reduction_cases());
  expect_interpreters_bits(kernel::testing::ordered_reduction_cases());
}

// Reductions of each type that shuffles and shared memory support, with and without runs.
TEST(GpuRun, ReductionsOfEveryType) {
  std::vector<Case> cases;
  for (const ElementType type : {kPred, kS8, kU8, kS16, kU16, kS32, kU32, kS64, kU64, kF32, kF64}) {
    for (const int64_t count : {1, 30, 256, 259, 2048}) {
      kernel::Builder b(fmt::format("greatest_{}_{}", name_of(type), count));
      const auto x = b.buffer("x", type, {2, count}, kernel::Access::kIn);
      const auto y = b.buffer("y", type, {2}, kernel::Access::kOut);
      const kernel::Values g = b.grid({2});
      const auto any = [&](const kernel::Values& v) {
        return is_pred(type) ? b.logical_or(v[0], v[1]) : b.op(kernel::OpCode::kMax, {v[0], v[1]});
      };
      b.store(b.reduce(
                  {{count},
                   true,
                   true,
                   {b.constant(type, 0)},
                   [&](const kernel::Values& k) { return kernel::Values{b.load(x, {g[0], k[0]})}; },
                   [&](const kernel::Values& v) { return kernel::Values{any(v)}; }})[0],
              y, g);
      Case c = {b.finish(), {}};
      const auto numbers = static_cast<size_t>(2 * count);
      const Literal all = kernel::testing::array(type, kernel::testing::patterns(type, numbers, 9));
      c.buffers = {Literal::from_bytes(Shape(type, {2, count}),
                                       all.data().first(numbers * storage_bytes(type)))
                       .value(),
                   Literal(Shape(type, {2}))};
      cases.push_back(std::move(c));
    }
  }
  expect_interpreters_bits(cases);
}

Case with_numbers(const std::string& text) {
  const Kernel kernel = kernel::parse(text, "kernel").value();
  EXPECT_TRUE(verify(kernel).ok()) << verify(kernel).to_string();
  Case c = {kernel, kernel::testing::zero_buffers(kernel)};
  Random random(11);
  for (size_t m = 0; m < c.buffers.size(); ++m) {
    if (kernel.memories[m].access == kernel::Access::kOut) continue;
    for (int64_t i = 0; i < c.buffers[m].element_count(); ++i) {
      c.buffers[m].set_integer(i, random.below(200) - 100);
    }
  }
  return c;
}

// A combiner that never terminates on values that belong to no element: the greatest common divisor
// by subtraction.
TEST(GpuRun, CombinersThatLoop) {
  std::vector<Case> cases;
  for (const int count : {40, 200, 256, 2048}) {
    cases.push_back(with_numbers(
        fmt::format(R"(kernel @gcd(%x: in s32[2,{0}], %y: out s32[2]) index s32 grid(%g: 2) {{
  %r = reduce lanes (%i: {0}) init(12) : s32 {{
    %v = load %x[%g, %i] : s32
    %w = abs %v : s32
    %n = add %w, 1 : s32
    yield %n
  }} combine(%p, %q) {{
    %a, %b = while(%c = %p, %d = %q) : s32, s32 {{
      %go = ne %c, %d : s32
      yield %go
    }} do(%c, %d) {{
      %first = gt %c, %d : s32
      %e = sub %c, %d : s32
      %f = sub %d, %c : s32
      %c1 = select %first, %e, %c : s32
      %d1 = select %first, %d, %f : s32
      yield %c1, %d1
    }}
    yield %a
  }}
  store %r, %y[%g] : s32
}}
)",
                    count)));
  }
  expect_interpreters_bits(cases);
}

// A scan over lanes of each element of x[2, count], which stores prefixes, and what follows it.
std::string scan_text(int64_t count, std::string_view combine) {
  return fmt::format(
      R"(kernel @scan(%x: in s32[2,{0}], %y: out s32[2,{0}], %z: out s32[2,{0}]) index s32 grid(%g: 2) {{
  scratch %kept : s32[{0}]
  %t, %n = scan lanes(%i: {0}) init(7, 0) : s32, s32 {{
    %v = load %x[%g, %i] : s32
    yield %v, 1
  }} combine(%a, %m, %b, %k) {{
    {1}
    %c = add %m, %k : s32
    yield %r, %c
  }} each(%i, %p, %q) {{
    store %p, %y[%g, %i] : s32
    store %q, %kept[%i] : s32
  }}
  lanes(%i: {0}) {{
    %last = sub {2}, %i : s32
    %q = load %kept[%last] : s32
    %u = mul %t, %n : s32
    %w = add %u, %q : s32
    store %w, %z[%g, %i] : s32
  }}
}}
)",
      count, combine, count - 1);
}

// As many elements as a warp has threads, a block, some turns of it, and one fewer and more.
TEST(GpuRun, ScansOverLanes) {
  std::vector<Case> cases;
  for (const int64_t count : {1, 2, 31, 32, 33, 64, 255, 256, 257, 1000, 1023, 1024, 1025, 5001}) {
    cases.push_back(with_numbers(scan_text(count, "%r = add %a, %b : s32")));
    // Swapping sides, or a leaf that is not there, would give other bits: the last number above 60.
    cases.push_back(with_numbers(
        scan_text(count, "%big = gt %b, 60 : s32\n    %r = select %big, %b, %a : s32")));
  }
  expect_interpreters_bits(cases);
}

// Prefixes of the greatest common divisor by subtraction, which never ends with 0.
TEST(GpuRun, ScansWhoseCombinersLoop) {
  std::vector<Case> cases;
  for (const int64_t count : {5, 200, 256, 1500}) {
    cases.push_back(
        with_numbers(scan_text(count, R"(%r, %same = while(%c = %a, %d = %b) : s32, s32 {
      %go = ne %c, %d : s32
      yield %go
    } do(%c, %d) {
      %first = gt %c, %d : s32
      %e = sub %c, %d : s32
      %f = sub %d, %c : s32
      %c1 = select %first, %e, %c : s32
      %d1 = select %first, %d, %f : s32
      yield %c1, %d1
    })")));
    Literal& numbers = cases.back().buffers[0];
    for (int64_t i = 0; i < numbers.element_count(); ++i) numbers.set_integer(i, 7 * (1 + i % 30));
  }
  expect_interpreters_bits(cases);
}

// Serial scans in lanes, with runs of adjacent lanes and without.
TEST(GpuRun, SerialScans) {
  std::vector<Case> cases;
  for (const int64_t lanes : {1, 30, 128}) {
    cases.push_back(with_numbers(fmt::format(
        R"(kernel @columns(%x: in s32[9,{0}], %y: out s32[9,{0}], %z: out s32[{0}]) index s32 grid() {{
  lanes(%j: {0}) {{
    %t = scan serial(%i: 9) init(3) : s32 {{
      %v = load %x[%i, %j] : s32
      yield %v
    }} combine(%a, %b) {{
      %c = sub %a, %b : s32
      yield %c
    }} each(%i, %p) {{
      store %p, %y[%i, %j] : s32
    }}
    store %t, %z[%j] : s32
  }}
}}
)",
        lanes)));
  }
  expect_interpreters_bits(cases);
}

// Private memory for more lanes than a block has threads: a thread has the memory of several lanes.
TEST(GpuRun, LanesOwnMemoryAcrossLoops) {
  expect_interpreters_bits({with_numbers(
      R"(kernel @own(%x: in s32[2,70,9], %y: out s32[2,70,9]) index s32 grid(%g: 2) {
  private %acc : s32[70,9,2] per lanes 2
  scratch %t : s32[9]
  lanes(%i: 70, %j: 9) {
    store 0, %acc[%i, %j, 0] : s32
    store 1, %acc[%i, %j, 1] : s32
  }
  for %k = (0, 70, 7) {
    lanes(%j: 9) {
      %v = load %x[%g, %k, %j] : s32
      store %v, %t[%j] : s32
    }
    lanes(%i: 70, %j: 9) {
      %r = rem %i, 9 : s32
      %r0 = max %r, 0 : s32
      %v = load %t[%r0] : s32
      %s = load %acc[%i, %j, 0] : s32
      %s2 = add %s, %v : s32
      store %s2, %acc[%i, %j, 0] : s32
      %p = load %acc[%i, %j, 1] : s32
      %p2 = mul %p, 3 : s32
      store %p2, %acc[%i, %j, 1] : s32
    }
  }
  lanes(%i: 70, %j: 9) {
    %s = load %acc[%i, %j, 0] : s32
    %p = load %acc[%i, %j, 1] : s32
    %w = add %s, %p : s32
    store %w, %y[%g, %i, %j] : s32
  }
}
)")});
}

// Scratch memories that share an offset, across loops, branches and stores of the workgroup.
TEST(GpuRun, WhatThreadsPassToEachOther) {
  expect_interpreters_bits({with_numbers(
      R"(kernel @pass(%x: in s32[3,100], %y: out s32[3,100], %z: inout s32[3]) index s32 grid(%g: 3) {
  scratch %sum : s32[2]
  store 0, %sum[0] : s32
  for %k = (0, 4, 1) {
    scratch %a : s32[100]
    lanes(%i: 100) {
      %v = load %x[%g, %i] : s32
      %w = mul %v, %k : s32
      store %w, %a[%i] : s32
    }
    %first = load %a[7] : s32
    %odd = and %first, 1 : s32
    %is = ne %odd, 0 : s32
    if %is {
      scratch %b : s32[100]
      lanes(%i: 100) {
        %j = sub 99, %i : s32
        %v = load %a[%j] : s32
        store %v, %b[%i] : s32
      }
      %v = load %b[3] : s32
      %s = load %sum[0] : s32
      %t = add %s, %v : s32
      store %t, %sum[0] : s32
    } else {
      scratch %c : s32[50]
      lanes(%i: 50) {
        %j = mul %i, 2 : s32
        %v = load %a[%j] : s32
        store %v, %c[%i] : s32
      }
      %r = reduce lanes (%i: 50) init(1) : s32 commutative {
        %v = load %c[%i] : s32
        yield %v
      } combine(%p, %q) {
        %m = add %p, %q : s32
        yield %m
      }
      %s = load %sum[0] : s32
      %t = add %s, %r : s32
      store %t, %sum[0] : s32
    }
  }
  %n, %last = while(%i = 0, %j = 0) : s32, s32 {
    %v = load %sum[0] : s32
    %big = gt %v, 10 : s32
    %few = lt %i, 6 : s32
    %go = and %big, %few : pred
    yield %go
  } do(%i, %j) {
    %v = load %sum[0] : s32
    %h = div %v, 2 : s32
    store %h, %sum[0] : s32
    %i1 = add %i, 1 : s32
    yield %i1, %h
  }
  %total = load %sum[0] : s32
  atomic add %total, %z[%g] : s32
  lanes(%i: 100) {
    %v = add %total, %i : s32
    %w = add %v, %n : s32
    %u = add %w, %last : s32
    store %u, %y[%g, %i] : s32
  }
}
)")});
}

// A launch that writes over its input, which another thread reads first.
TEST(GpuRun, InPlace) {
  Case c = with_numbers(
      R"(kernel @swap(%x: in s32[64], %y: out s32[64] over %x) index s32 grid() {
  scratch %s : s32[64]
  lanes(%i: 64) {
    %j = sub 63, %i : s32
    %v = load %x[%j] : s32
    store %v, %s[%i] : s32
  }
  lanes(%i: 64) {
    %v = load %s[%i] : s32
    store %v, %y[%i] : s32
  }
}
)");
  expect_interpreters_bits({c});
}

// Indices of 64 bits, strides, and empty loops.
TEST(GpuRun, IndicesAndExtents) {
  expect_interpreters_bits(
      {with_numbers(
           R"(kernel @wide(%x: in s32[6,40]{1,6}, %y: out s32[40,6]) index s64 grid(%a: 2, %b: 3) {
  %r = mul %a, 3 : s64
  %s = add %r, %b : s64
  lanes(%i: 40) {
    %v = load %x[%s, %i] : s32
    store %v, %y[%i, %s] : s32
  }
}
)"),
       with_numbers(R"(kernel @none(%x: in s32[4], %y: out s32[4]) index s32 grid() {
  lanes(%i: 0, %j: 5) {
    store 7, %y[%i] : s32
  }
  lanes() {
    %v = load %x[2] : s32
    store %v, %y[2] : s32
  }
  lanes(%i: 2) {
    store %i, %y[%i] : s32
  }
  store 5, %y[3] : s32
}
)"),
       with_numbers(R"(kernel @steps(%y: out s32[3]) index s32 grid() {
  %n = for %k = (0, 2147483647, 1000000000) carry(%c = 0) : s32 {
    %d = add %c, 1 : s32
    yield %d
  }
  lanes(%i: 3) {
    %t = for %k = (%i, 2, 1) carry(%c = %n) : s32 {
      %d = add %c, %k : s32
      yield %d
    }
    store %t, %y[%i] : s32
  }
}
)")});
}

// Tiles at the edges of arrays, with every kind of factor.
TEST(GpuRun, Products) {
  expect_interpreters_bits({with_numbers(
      R"(kernel @product(%x: in s32[20,33], %y: in s32[21,33], %z: out s32[20,21]) index s32 grid(%i: 2, %j: 2) {
  scratch %a : s32[16,8]
  scratch %b : s32[16,8]
  private %acc : s32[8,4,2,4] per lanes 2
  %r = mul %i, 16 : s32
  %c = mul %j, 16 : s32
  lanes(%p: 8, %q: 4) {
    for %u = (0, 2, 1) {
      for %v = (0, 4, 1) {
        store 0, %acc[%p, %q, %u, %v] : s32
      }
    }
  }
  for %k = (0, 33, 8) {
    copy box(16, 8) %a[0, 0] by(0, 1) = %x[%r, %k] by(0, 1) pad 0
    copy box(16, 8) %b[0, 0] by(0, 1) = %y[%c, %k] by(0, 1) pad 0
    contract box(16, 16, 8) %acc[0, 0] += %a[0, 0] * %b[0, 0] transpose b
  }
  lanes(%p: 8, %q: 4) {
    %p2 = mul %p, 2 : s32
    %q4 = mul %q, 4 : s32
    for %u = (0, 2, 1) {
      for %v = (0, 4, 1) {
        %s = load %acc[%p, %q, %u, %v] : s32
        %ru = add %r, %p2 : s32
        %row = add %ru, %u : s32
        %cv = add %c, %q4 : s32
        %column = add %cv, %v : s32
        %in0 = lt %row, 20 : s32
        %in1 = lt %column, 21 : s32
        %in = and %in0, %in1 : pred
        if %in {
          store %s, %z[%row, %column] : s32
        }
      }
    }
  }
}
)")});
}

}  // namespace
}  // namespace tenon::gpu
