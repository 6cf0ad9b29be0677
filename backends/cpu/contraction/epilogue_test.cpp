// Launches that follow a contraction row by row: which ones are fused, and that their results are
// the same.
#include "backends/cpu/contraction/epilogue.h"

#include <gtest/gtest.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>

#include "backends/cpu/cpu_test_util.h"
#include "backends/llvm/host.h"
#include "core/kernel/text/text.h"
#include "core/program/interpreter.h"

namespace tenon::cpu {
namespace {

using program::BufferId;
using program::BufferKind;
using program::Program;

constexpr int64_t kRows = 600;
constexpr int64_t kColumns = 512;
constexpr int64_t kSums = 8;  // Enough that the contraction alone should use several threads.

// The buffers of every program here.
enum : BufferId { kLhs, kRhs, kBias, kProduct, kOther, kRowSums, kFinal, kGivenRhs };

constexpr const char* kDot =
    R"(kernel @dot(%a: in f32[600,8], %b: in f32[8,512], %c: out f32[600,512]) index s32 grid(%i: 600) {
  lanes(%j: 512) {
    %s = for %k = (0, 8, 1) carry(%t = 0.0) : f32 {
      %x = load %a[%i, %k] : f32
      %y = load %b[%k, %j] : f32
      %n = fma %x, %y, %t : f32
      yield %n
    }
    store %s, %c[%i, %j] : f32
  }
}
)";

constexpr const char* kBiasInPlace =
    R"(kernel @bias(%b: in f32[512], %x: in f32[600,512], %y: out f32[600,512] over %x) index s32 grid(%i: 600, %c: 2) {
  %first = mul %c, 256 : s32
  lanes(%l: 256) {
    %j = add %first, %l : s32
    %v = load %x[%i, %j] : f32
    %w = load %b[%j] : f32
    %s = add %v, %w : f32
    store %s, %y[%i, %j] : f32
  }
}
)";

constexpr const char* kSumsOfRows =
    R"(kernel @sums(%x: in f32[600,512], %y: out f32[600]) index s32 grid(%i: 600) {
  %s = reduce lanes(%j: 512) init(0.0) : f32 commutative {
    %v = load %x[%i, %j] : f32
    yield %v
  } combine(%p, %q) {
    %t = add %p, %q : f32
    yield %t
  }
  store %s, %y[%i] : f32
}
)";

constexpr const char* kDouble =
    R"(kernel @twice(%x: in f32[600,512], %y: out f32[600,512]) index s32 grid(%i: 600) {
  lanes(%j: 512) {
    %v = load %x[%i, %j] : f32
    %s = add %v, %v : f32
    store %s, %y[%i, %j] : f32
  }
}
)";

constexpr const char* kUpsideDown =
    R"(kernel @flip(%x: in f32[600,512], %y: out f32[600,512]) index s32 grid(%i: 600) {
  %from = sub 599, %i : s32
  lanes(%j: 512) {
    %v = load %x[%from, %j] : f32
    store %v, %y[%i, %j] : f32
  }
}
)";

constexpr const char* kBatchedDot =
    R"(kernel @dot(%a: in f32[3,200,4], %b: in f32[3,4,512], %c: out f32[3,200,512]) index s32 grid(%n: 3, %i: 200) {
  lanes(%j: 512) {
    %s = for %k = (0, 4, 1) carry(%t = 0.0) : f32 {
      %x = load %a[%n, %i, %k] : f32
      %y = load %b[%n, %k, %j] : f32
      %m = fma %x, %y, %t : f32
      yield %m
    }
    store %s, %c[%n, %i, %j] : f32
  }
}
)";

constexpr const char* kBatchedRows =
    R"(kernel @rows(%x: in f32[3,200,512], %y: out f32[3,1,200], %z: out f32[3,200,512]) index s32 grid(%n: 3, %i: 200, %one: 1) {
  %s = reduce lanes(%j: 512) init(0.0) : f32 commutative {
    %v = load %x[%n, %i, %j] : f32
    yield %v
  } combine(%p, %q) {
    %t = add %p, %q : f32
    yield %t
  }
  store %s, %y[%n, 0, %i] : f32
  lanes(%j2: 512) {
    %v2 = load %x[%n, %i, %j2] : f32
    %w = sub %v2, %s : f32
    store %w, %z[%n, %i, %j2] : f32
  }
}
)";

// Overwrites the right operand.
constexpr const char* kClear =
    R"(kernel @clear(%x: in f32[600,512], %y: out f32[8,512]) index s32 grid(%i: 600) {
  lanes(%j: 512) {
    %v = load %x[%i, %j] : f32
    %z = lt %i, 8 : s32
    if %z {
      store %v, %y[%i, %j] : f32
    }
  }
}
)";

struct Run {
  const char* kernel;
  std::vector<BufferId> buffers;
};

Program program_of(const std::vector<Run>& runs) {
  Program p;
  p.name = "p";
  const auto buffer = [&](BufferKind kind, uint32_t index, Dims dims) {
    program::Buffer b;
    b.type = ElementType::kF32;
    b.dims = std::move(dims);
    b.kind = kind;
    b.index = index;
    if (kind == BufferKind::kTemporary) {
      b.offset = p.temporary_bytes;
      p.temporary_bytes += b.bytes();
    }
    p.buffers.push_back(b);
  };
  buffer(BufferKind::kParameter, 0, {kRows, kSums});
  buffer(BufferKind::kTemporary, 0, {kSums, kColumns});
  buffer(BufferKind::kParameter, 1, {kColumns});
  buffer(BufferKind::kTemporary, 0, {kRows, kColumns});
  buffer(BufferKind::kTemporary, 0, {kRows, kColumns});
  buffer(BufferKind::kResult, 0, {kRows});
  buffer(BufferKind::kResult, 1, {kRows, kColumns});
  buffer(BufferKind::kParameter, 2, {kSums, kColumns});
  p.parameters = {kLhs, kBias, kGivenRhs};
  p.results = {kRowSums, kFinal};
  const auto add = [&](size_t sequence, const auto& action) {
    p.sequences[sequence].steps.emplace_back().action = action;
  };
  const auto launch = [&](size_t sequence, const Run& run) {
    p.kernels.push_back(kernel::parse(run.kernel, "k").value());
    add(sequence, program::Launch{static_cast<uint32_t>(p.kernels.size() - 1), run.buffers, {}});
  };
  p.sequences.resize(2);
  launch(1, {kDot, {kLhs, kRhs, kProduct}});
  add(0, program::Copy{kRhs, kGivenRhs});
  program::LibraryCallStep dot;
  dot.call = program::Contraction{{}, {}, {1}, {0}};
  dot.operands = {kLhs, kRhs};
  dot.results = {kProduct};
  dot.lowered = 1;
  add(0, dot);
  for (const Run& run : runs) launch(0, run);
  program::find_dependencies(p);
  return p;
}

// The steps after the contraction that are in its epilogue.
std::vector<size_t> epilogue_steps(const Program& p) {
  const Shape shapes[] = {Shape(ElementType::kF32, {kRows, kSums}),
                          Shape(ElementType::kF32, {kSums, kColumns})};
  const auto loops = loops_of(program::Contraction{{}, {}, {1}, {0}}, shapes,
                              Shape(ElementType::kF32, {kRows, kColumns}));
  const auto groups = row_groups_of(*loops, codegen::host().vector_bytes);
  EXPECT_GT(groups->groups(), 3);
  EXPECT_EQ(groups->row_bytes, kColumns * 4);
  std::vector<size_t> steps;
  for (const EpilogueLaunch& each : epilogue_launches(p, p.sequences[0], 1, *groups)) {
    steps.push_back(each.step - 2);
  }
  return steps;
}

void expect_interpreters_results(const Program& p, int64_t threads, bool has_epilogue) {
  ASSERT_TRUE(program::validate(p).ok()) << program::validate(p).to_string();
  std::vector<Literal> arguments;
  for (const BufferId id : p.parameters) {
    Literal x(Shape(ElementType::kF32, p.buffer(id).dims));
    for (int64_t i = 0; i < x.element_count(); ++i) {
      x.set_double(i, static_cast<double>(i * 7 % 11) - 5);
    }
    arguments.push_back(std::move(x));
  }
  const auto expected = program::ProgramInterpreter(p).run(arguments);
  ASSERT_TRUE(expected) << expected.error().to_string();
  const CpuCode code = compile_segment(p, threads).value();
  const bool emitted = std::ranges::any_of(code.objects, [](const std::string& object) {
    return object.find("tenon_epilogue_0") != std::string::npos;
  });
  EXPECT_EQ(emitted, has_epilogue);
  const auto library = load_library(code);
  ASSERT_TRUE(library) << library.error().to_string();
  const tbb::global_control several(tbb::global_control::max_allowed_parallelism, 8);
  for (const int at_once : {1, 2, 8}) {
    SCOPED_TRACE(at_once);
    std::vector<Literal> memories = arguments;
    for (const BufferId id : p.results) {
      memories.emplace_back(Shape(ElementType::kF32, p.buffer(id).dims));
    }
    memories.emplace_back(Shape(ElementType::kU8, {p.temporary_bytes}));
    tbb::task_arena(at_once).execute([&] { testing::run(**library, 0, memories); });
    for (size_t r = 0; r < p.results.size(); ++r) {
      EXPECT_EQ(memories[p.parameters.size() + r], (*expected)[r]) << "result " << r;
    }
  }
}

void expect_epilogue(const std::vector<Run>& runs, const std::vector<size_t>& expected) {
  const Program p = program_of(runs);
  EXPECT_EQ(epilogue_steps(p), expected);
  expect_interpreters_results(p, 2, !expected.empty());
}

const Run kLast = {kSumsOfRows, {kProduct, kRowSums}};

TEST(Epilogue, InPlaceAndOverRows) {
  expect_epilogue({{kBiasInPlace, {kBias, kProduct, kProduct}},
                   {kSumsOfRows, {kProduct, kRowSums}},
                   {kDouble, {kProduct, kFinal}}},
                  {0, 1, 2});
}

// There are groups of rows for a few threads only; more threads do better with one step after the
// other.
TEST(Epilogue, ThreadsEnough) {
  const Program p = program_of({{kBiasInPlace, {kBias, kProduct, kProduct}}, kLast});
  expect_interpreters_results(p, 100, false);
}

// In each batch iteration the last group of rows is incomplete.
TEST(Epilogue, Batches) {
  Program p = program_of({});
  p.kernels = {kernel::parse(kBatchedDot, "k").value(), kernel::parse(kBatchedRows, "k").value()};
  p.buffers[kLhs].dims = {3, 200, 4};
  p.buffers[kRhs].dims = p.buffers[kGivenRhs].dims = {3, 4, 512};
  p.buffers[kProduct].dims = p.buffers[kFinal].dims = {3, 200, 512};
  p.buffers[kRowSums].dims = {3, 1, 200};
  int64_t place = 0;
  for (program::Buffer& each : p.buffers) {
    if (each.kind != BufferKind::kTemporary) continue;
    each.offset = place;
    place += each.bytes();
  }
  p.temporary_bytes = place;
  auto& steps = p.sequences[0].steps;
  auto& dot = std::get<program::LibraryCallStep>(steps[1].action);
  dot.call = program::Contraction{{0}, {0}, {2}, {1}};
  steps.emplace_back().action = program::Launch{1, {kProduct, kRowSums, kFinal}, {}};
  program::find_dependencies(p);
  expect_interpreters_results(p, 1, true);
}

TEST(Epilogue, WhatAnEpilogueLaunchWrote) {
  expect_epilogue({{kDouble, {kProduct, kOther}}, {kDouble, {kOther, kFinal}}, kLast}, {0, 1, 2});
}

TEST(Epilogue, OtherRowsWait) {
  expect_epilogue({{kUpsideDown, {kProduct, kFinal}}, kLast}, {1});
  expect_epilogue({{kDouble, {kProduct, kOther}}, {kUpsideDown, {kOther, kFinal}}, kLast}, {0, 2});
}

// A launch that depends on one outside the epilogue stays outside, too.
TEST(Epilogue, OrderIsKept) {
  expect_epilogue({{kUpsideDown, {kProduct, kOther}}, {kDouble, {kOther, kFinal}}, kLast}, {2});
  expect_epilogue(
      {{kUpsideDown, {kProduct, kFinal}}, {kBiasInPlace, {kBias, kProduct, kProduct}}, kLast}, {});
}

TEST(Epilogue, OperandsAreNotOverwritten) {
  expect_epilogue({{kClear, {kProduct, kRhs}}, kLast, {kDouble, {kProduct, kFinal}}}, {1, 2});
}

}  // namespace
}  // namespace tenon::cpu
