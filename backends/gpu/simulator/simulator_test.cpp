// The simulator on GPU code given as text: its results and the errors that it detects.
#include <gtest/gtest.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/Support/SourceMgr.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "backends/gpu/simulator/pass.h"
#include "backends/gpu/simulator/simulator.h"

namespace tenon::gpu {
namespace {

constexpr const char* kTriple = "target triple = \"nvptx64-nvidia-cuda\"\n";
constexpr std::string_view kHead = R"(
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier0()
declare void @llvm.nvvm.bar.warp.sync(i32)
declare i32 @llvm.nvvm.shfl.sync.idx.i32(i32, i32, i32, i32)
declare i32 @llvm.nvvm.shfl.sync.up.i32(i32, i32, i32, i32)
declare i32 @llvm.nvvm.shfl.sync.down.i32(i32, i32, i32, i32)
declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32)
)";

// %tid, %block and %i, the index of the thread in the launch, followed by `body`.
std::string kernel(std::string_view parameters, std::string_view body) {
  return fmt::format(R"({}
define ptx_kernel void @k({}) {{
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %count = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %before = mul i32 %block, %count
  %i = add i32 %before, %tid
  %at = sext i32 %i to i64
  %t = sext i32 %tid to i64
{}
}}
)",
                     kHead, parameters, body);
}

Result<std::string> assemble(const std::string& text, bool checks) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  const auto module = llvm::parseAssemblyString(kTriple + text, diagnostic, context);
  if (module == nullptr) {
    return invalid_argument("line {}: {}", diagnostic.getLineNo(), diagnostic.getMessage().str());
  }
  return assemble_for_host(*module, checks);
}

using Numbers = std::vector<int32_t>;

struct How {
  bool checks = true;
  int64_t blocks = 1;
  uint32_t threads = 32;
  const volatile uint32_t* stop = nullptr;
};

// Runs @k on buffers of numbers.
Status run_on(const SimProgram& program, const How& how, const std::vector<Numbers*>& buffers) {
  std::vector<int32_t*> addresses;
  std::vector<int64_t> bytes;
  for (Numbers* each : buffers) {
    addresses.push_back(each->data());
    bytes.push_back(static_cast<int64_t>(each->size() * sizeof(int32_t)));
  }
  std::vector<const void*> arguments;
  for (int32_t*& each : addresses) arguments.push_back(static_cast<const void*>(&each));
  SimLaunch launch;
  launch.shape = {how.blocks, how.threads, bytes};
  launch.arguments = arguments;
  launch.stops[0] = how.stop;
  return simulate(program, launch);
}

Status run(const std::string& text, const How& how, const std::vector<Numbers*>& buffers) {
  TENON_ASSIGN(const std::string image, assemble(text, how.checks));
  TENON_ASSIGN(const auto program, SimProgram::load(image));
  return run_on(*program, how, buffers);
}

// With checks and without.
class SimTest : public testing::TestWithParam<bool> {
 protected:
  How how(int64_t blocks, uint32_t threads) const { return {GetParam(), blocks, threads, nullptr}; }
};

INSTANTIATE_TEST_SUITE_P(Checks, SimTest, testing::Bool(),
                         [](const auto& each) { return each.param ? "On" : "Off"; });

TEST_P(SimTest, EachThreadOfManyBlocks) {
  Numbers y(5000 * 64, -1);
  const Status status = run(kernel("ptr addrspace(1) %y", R"(
  %p = getelementptr i32, ptr addrspace(1) %y, i64 %at
  store i32 %i, ptr addrspace(1) %p
  ret void)"),
                            how(5000, 64), {&y});
  ASSERT_TRUE(status.ok()) << status.to_string();
  Numbers expected(y.size());
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(y, expected);
}

// Reverses the block's numbers through shared memory.
constexpr std::string_view kReverse = R"(
  %p = getelementptr i32, ptr addrspace(1) %x, i64 %at
  %v = load i32, ptr addrspace(1) %p
  %s = getelementptr [64 x i32], ptr addrspace(3) @tile, i64 0, i64 %t
  store i32 %v, ptr addrspace(3) %s
  call void @llvm.nvvm.barrier0()
  %other = sub i64 63, %t
  %r = getelementptr [64 x i32], ptr addrspace(3) @tile, i64 0, i64 %other
  %w = load i32, ptr addrspace(3) %r
  %q = getelementptr i32, ptr addrspace(1) %y, i64 %at
  store i32 %w, ptr addrspace(1) %q
  ret void)";
const std::string kTile = "@tile = internal addrspace(3) global [64 x i32] undef, align 16\n";

TEST_P(SimTest, SharedMemoryBetweenBarriers) {
  Numbers x(64 * 100);
  std::iota(x.begin(), x.end(), 0);
  Numbers y(x.size());
  const Status status =
      run(kTile + kernel("ptr addrspace(1) noalias readonly %x, ptr addrspace(1) %y", kReverse),
          how(100, 64), {&x, &y});
  ASSERT_TRUE(status.ok()) << status.to_string();
  for (size_t i = 0; i < y.size(); ++i) {
    ASSERT_EQ(y[i], static_cast<int32_t>(i / 64 * 64 + 63 - i % 64));
  }
}

TEST_P(SimTest, ALoopOfBarriers) {
  // A sum over a block by repeated halving, in place.
  Numbers x(256);
  std::iota(x.begin(), x.end(), 1);
  const Status status = run(kernel("ptr addrspace(1) %x", R"(
  %p = getelementptr i32, ptr addrspace(1) %x, i64 %t
  br label %loop
loop:
  %half = phi i32 [ 128, %entry ], [ %next, %again ]
  %mine = icmp slt i32 %tid, %half
  br i1 %mine, label %add, label %again
add:
  %h = sext i32 %half to i64
  %q = getelementptr i32, ptr addrspace(1) %p, i64 %h
  %a = load i32, ptr addrspace(1) %p
  %b = load i32, ptr addrspace(1) %q
  %c = add i32 %a, %b
  store i32 %c, ptr addrspace(1) %p
  br label %again
again:
  call void @llvm.nvvm.barrier0()
  %next = ashr i32 %half, 1
  %more = icmp sgt i32 %next, 0
  br i1 %more, label %loop, label %end
end:
  ret void)"),
                            how(1, 256), {&x});
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(x[0], 256 * 257 / 2);
}

// The values that a shuffle of (lane number + 100) returns to each lane of a warp; `bounds` is the
// instruction's operand.
Numbers shuffled(std::string_view mode, int32_t lane, int32_t bounds, bool checks) {
  Numbers y(32, -1);
  const Status status = run(kernel("ptr addrspace(1) %y", fmt::format(R"(
  %v = add i32 %tid, 100
  %w = call i32 @llvm.nvvm.shfl.sync.{}.i32(i32 -1, i32 %v, i32 {}, i32 {})
  %p = getelementptr i32, ptr addrspace(1) %y, i64 %t
  store i32 %w, ptr addrspace(1) %p
  ret void)",
                                                                      mode, lane, bounds)),
                            {checks, 1, 32, nullptr}, {&y});
  EXPECT_TRUE(status.ok()) << status.to_string();
  return y;
}

TEST_P(SimTest, Shuffles) {
  const auto expect = [&](std::string_view mode, int32_t lane, int32_t bounds, auto source) {
    SCOPED_TRACE(mode);
    Numbers expected(32);
    for (int32_t i = 0; i < 32; ++i) expected[static_cast<size_t>(i)] = 100 + source(i);
    EXPECT_EQ(shuffled(mode, lane, bounds, GetParam()), expected);
  };
  expect("idx", 5, 31, [](int32_t) { return 5; });
  expect("up", 3, 0, [](int32_t i) { return i < 3 ? i : i - 3; });
  expect("down", 3, 31, [](int32_t i) { return i + 3 > 31 ? i : i + 3; });
  expect("bfly", 16, 31, [](int32_t i) { return i ^ 16; });
  // In segments of eight lanes.
  constexpr int32_t kEight = (32 - 8) << 8;
  expect("idx", 1, kEight | 31, [](int32_t i) { return i / 8 * 8 + 1; });
  expect("up", 3, kEight, [](int32_t i) { return i % 8 < 3 ? i : i - 3; });
  expect("down", 3, kEight | 31, [](int32_t i) { return i % 8 + 3 > 7 ? i : i + 3; });
}

// The two halves of a warp diverge, and shuffle separately.
TEST_P(SimTest, ShufflesOfPartsOfAWarp) {
  Numbers y(64, -1);
  const Status status = run(kernel("ptr addrspace(1) %y", R"(
  %lane = and i32 %tid, 31
  %low = icmp slt i32 %lane, 16
  br i1 %low, label %a, label %b
a:
  %va = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 65535, i32 %tid, i32 2, i32 31)
  br label %end
b:
  %vb = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -65536, i32 %tid, i32 20, i32 31)
  br label %end
end:
  %v = phi i32 [ %va, %a ], [ %vb, %b ]
  %p = getelementptr i32, ptr addrspace(1) %y, i64 %t
  store i32 %v, ptr addrspace(1) %p
  ret void)"),
                            how(1, 64), {&y});
  ASSERT_TRUE(status.ok()) << status.to_string();
  for (int32_t i = 0; i < 64; ++i) {
    EXPECT_EQ(y[static_cast<size_t>(i)], i / 32 * 32 + (i % 32 < 16 ? 2 : 20));
  }
}

TEST_P(SimTest, AtomicsOfAllMemories) {
  Numbers y(2, 0);
  const Status status =
      run("@sum = internal addrspace(3) global i32 undef\n" + kernel("ptr addrspace(1) %y", R"(
  %first = icmp eq i32 %tid, 0
  br i1 %first, label %clear, label %go
clear:
  store i32 0, ptr addrspace(3) @sum
  br label %go
go:
  call void @llvm.nvvm.barrier0()
  %a = atomicrmw add ptr addrspace(3) @sum, i32 %tid monotonic
  %q = getelementptr i32, ptr addrspace(1) %y, i64 1
  %m = atomicrmw max ptr addrspace(1) %q, i32 %i monotonic
  call void @llvm.nvvm.barrier0()
  br i1 %first, label %add, label %end
add:
  %s = load i32, ptr addrspace(3) @sum
  %b = atomicrmw add ptr addrspace(1) %y, i32 %s monotonic
  br label %end
end:
  ret void)"),
          how(1000, 64), {&y});
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(y, (Numbers{1000 * (63 * 64 / 2), 63999}));
}

// Scalars of the launch, an array of a thread, a function of the module, a table.
TEST_P(SimTest, WhatElseAModuleMayHave) {
  const std::string text = std::string(
                               "@table = internal addrspace(4) constant [4 x i32] "
                               "[i32 7, i32 8, i32 9, i32 10]\n") +
                           kernel("ptr addrspace(1) %y, i32 %scale", R"(
  %own = alloca [4 x i32]
  %n = and i64 %t, 3
  %e = getelementptr [4 x i32], ptr addrspace(4) @table, i64 0, i64 %n
  %c = load i32, ptr addrspace(4) %e
  %o = getelementptr [4 x i32], ptr %own, i64 0, i64 %n
  store i32 %c, ptr %o
  %d = load i32, ptr %o
  %f = call i32 @twice(i32 %d, ptr addrspace(1) %y)
  %g = mul i32 %f, %scale
  %p = getelementptr i32, ptr addrspace(1) %y, i64 %at
  store i32 %g, ptr addrspace(1) %p
  ret void)") + R"(
define internal i32 @twice(i32 %a, ptr addrspace(1) %y) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = add i32 %a, %tid
  ret i32 %b
})";
  const auto image = assemble(text, GetParam());
  ASSERT_TRUE(image) << image.error().to_string();
  const auto program = SimProgram::load(*image);
  ASSERT_TRUE(program) << program.error().to_string();
  Numbers y(64, 0);
  int32_t* const address = y.data();
  const int32_t scale = 3;
  const void* const arguments[] = {static_cast<const void*>(&address), &scale};
  const int64_t bytes[] = {256};
  SimLaunch launch;
  launch.shape = {2, 32, bytes};
  launch.arguments = arguments;
  const Status status = simulate(**program, launch);
  ASSERT_TRUE(status.ok()) << status.to_string();
  for (int32_t i = 0; i < 64; ++i) {
    EXPECT_EQ(y[static_cast<size_t>(i)], (i % 4 + 7 + i % 32) * 3);
  }
}

TEST(Sim, TheSameForAnyHostThreads) {
  const auto image =
      assemble(kTile + kernel("ptr addrspace(1) %x, ptr addrspace(1) %y", kReverse), false).value();
  const auto program = SimProgram::load(image).value();
  Numbers x(64 * 3000);
  std::iota(x.begin(), x.end(), 0);
  std::vector<Numbers> results;
  for (const int threads : {1, 2}) {
    Numbers y(x.size());
    tbb::task_arena arena(threads);
    arena.execute(
        [&] { EXPECT_TRUE(run_on(*program, {false, 3000, 64, nullptr}, {&x, &y}).ok()); });
    results.push_back(std::move(y));
  }
  EXPECT_EQ(results[0], results[1]);
}

// --- Errors, and their messages

TEST_P(SimTest, AnEndlessLoopIsStopped) {
  for (const char* sync : {"", "call void @llvm.nvvm.barrier0()"}) {
    Numbers y(1, 0);
    const std::string text = kernel("ptr addrspace(1) %y", fmt::format(R"(
  br label %loop
loop:
  {}
  br label %loop)",
                                                                       sync));
    volatile uint32_t stop = 0;
    std::thread stopper([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    });
    How forever = how(200, 32);
    forever.stop = &stop;
    const Status status = run(text, forever, {&y});
    stopper.join();
    EXPECT_EQ(status.code(), ErrorCode::kCancelled);
    EXPECT_EQ(status.message(), "gpu-sim: @k: it was stopped");
  }
}

TEST_P(SimTest, BarriersThatNotAllReach) {
  Numbers y(1, 0);
  const Status ended = run(kernel("ptr addrspace(1) %y", R"(
  %mine = icmp slt i32 %tid, 40
  br i1 %mine, label %wait, label %end
wait:
  call void @llvm.nvvm.barrier0()
  br label %end
end:
  ret void)"),
                           how(2, 64), {&y});
  EXPECT_EQ(ended.message(),
            "gpu-sim: @k: block 0 cannot go on: thread 0 waits at barrier 1 of @k for thread 40, "
            "which has ended");
  const Status elsewhere = run(kernel("ptr addrspace(1) %y", R"(
  %mine = icmp slt i32 %tid, 40
  br i1 %mine, label %a, label %b
a:
  call void @llvm.nvvm.barrier0()
  ret void
b:
  call void @llvm.nvvm.barrier0()
  ret void)"),
                               how(1, 64), {&y});
  EXPECT_EQ(elsewhere.message(),
            "gpu-sim: @k: block 0 cannot go on: thread 0 waits at barrier 1 of @k for thread 40, "
            "which waits at barrier 2 of @k");
}

TEST_P(SimTest, ShufflesThatLanesDoNotShare) {
  Numbers y(1, 0);
  const Status elsewhere = run(kernel("ptr addrspace(1) %y", R"(
  %low = icmp slt i32 %tid, 16
  br i1 %low, label %a, label %b
a:
  %va = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %tid, i32 2, i32 31)
  ret void
b:
  %vb = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %tid, i32 2, i32 31)
  ret void)"),
                               how(1, 32), {&y});
  EXPECT_EQ(elsewhere.message(),
            "gpu-sim: @k: block 0 cannot go on: thread 0 waits at shuffle 1 of @k for thread 16, "
            "which waits at shuffle 2 of @k");
  const Status lacking = run(kernel("ptr addrspace(1) %y", R"(
  %v = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 65535, i32 %tid, i32 2, i32 31)
  ret void)"),
                             how(1, 32), {&y});
  EXPECT_EQ(lacking.message(),
            "gpu-sim: @k: thread 16 of block 0 is not in the mask 0xffff of shuffle 1 of @k");
}

TEST(SimChecks, ALaneThatTakesNoPart) {
  Numbers y(1, 0);
  const std::string text = kernel("ptr addrspace(1) %y", R"(
  %low = icmp slt i32 %tid, 16
  br i1 %low, label %a, label %b
a:
  %v = call i32 @llvm.nvvm.shfl.sync.down.i32(i32 65535, i32 %tid, i32 1, i32 31)
  ret void
b:
  ret void)");
  EXPECT_EQ(run(text, {}, {&y}).message(),
            "gpu-sim: @k: thread 15 of block 0 reads in shuffle 1 of @k from lane 16, which takes "
            "no part");
  EXPECT_TRUE(run(text, {false}, {&y}).ok());
}

TEST(SimChecks, ARaceInSharedMemory) {
  Numbers x(64, 1);
  Numbers y(64, 0);
  std::string body(kReverse);
  body.erase(body.find("  call void @llvm.nvvm.barrier0()\n"), 34);
  const std::string text = kTile + kernel("ptr addrspace(1) %x, ptr addrspace(1) %y", body);
  EXPECT_EQ(run(text, {true, 1, 64}, {&x, &y}).message(),
            "gpu-sim: @k: a race: thread 32 of block 0 stores byte 128 of tile, which thread 31 of "
            "block 0 loaded; nothing orders the two");
  EXPECT_TRUE(run(text, {false, 1, 64}, {&x, &y}).ok());
}

// Adjacent lanes of a warp: ordered by a warp barrier, not by a shuffle.
TEST(SimChecks, WarpBarriersOrder) {
  Numbers y(32, 0);
  const auto text = [](std::string_view between) {
    return kTile + kernel("ptr addrspace(1) %y", fmt::format(R"(
  %s = getelementptr [64 x i32], ptr addrspace(3) @tile, i64 0, i64 %t
  store i32 %tid, ptr addrspace(3) %s
  {}
  %other = xor i64 %t, 1
  %r = getelementptr [64 x i32], ptr addrspace(3) @tile, i64 0, i64 %other
  %w = load i32, ptr addrspace(3) %r
  %p = getelementptr i32, ptr addrspace(1) %y, i64 %t
  store i32 %w, ptr addrspace(1) %p
  ret void)",
                                                             between));
  };
  const Status ordered = run(text("call void @llvm.nvvm.bar.warp.sync(i32 -1)"), {}, {&y});
  EXPECT_TRUE(ordered.ok()) << ordered.to_string();
  EXPECT_EQ(y[4], 5);
  EXPECT_EQ(
      run(text("%z = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %tid, i32 0, i32 31)"), {},
          {&y})
          .message(),
      "gpu-sim: @k: a race: thread 0 of block 0 loads byte 4 of tile, which thread 1 of block 0 "
      "stored; nothing orders the two");
}

TEST(SimChecks, ARaceBetweenBlocks) {
  Numbers y(33, 0);
  // Each block stores a number beyond its own range.
  const std::string text = kernel("ptr addrspace(1) %y", R"(
  %four = mul i64 %at, 1
  %p = getelementptr i32, ptr addrspace(1) %y, i64 %four
  %block8 = mul i32 %block, 8
  %k = add i32 %block8, %tid
  %kk = sext i32 %k to i64
  %q = getelementptr i32, ptr addrspace(1) %y, i64 %kk
  store i32 %k, ptr addrspace(1) %q
  ret void)");
  EXPECT_EQ(run(text, {true, 4, 9}, {&y}).message(),
            "gpu-sim: @k: a race: thread 0 of block 1 stores byte 32 of y, which thread 8 of block "
            "0 stored; nothing orders the two");
  EXPECT_TRUE(run(text, {true, 4, 8}, {&y}).ok());
}

// One block reads a buffer, and another stores to it through another parameter.
TEST(SimChecks, ARaceByAliases) {
  Numbers x(64, 1);
  const std::string text = kernel("ptr addrspace(1) %x, ptr addrspace(1) %y", R"(
  %j = sub i64 63, %at
  %p = getelementptr i32, ptr addrspace(1) %x, i64 %j
  %v = load i32, ptr addrspace(1) %p
  %q = getelementptr i32, ptr addrspace(1) %y, i64 %at
  store i32 %v, ptr addrspace(1) %q
  ret void)");
  EXPECT_EQ(run(text, {true, 2, 32}, {&x, &x}).message(),
            "gpu-sim: @k: a race: thread 0 of block 1 loads byte 124 of x, which thread 31 of "
            "block 0 stored; nothing orders the two");
  Numbers y(64, 0);
  EXPECT_TRUE(run(text, {true, 2, 32}, {&x, &y}).ok());
}

TEST(SimChecks, AtomicsRaceWithWhatIsNone) {
  Numbers y(1, 0);
  const std::string text = kernel("ptr addrspace(1) %y", R"(
  %a = atomicrmw add ptr addrspace(1) %y, i32 1 monotonic
  %last = icmp eq i32 %tid, 31
  br i1 %last, label %read, label %end
read:
  %v = load i32, ptr addrspace(1) %y
  br label %end
end:
  ret void)");
  EXPECT_EQ(run(text, {}, {&y}).message(),
            "gpu-sim: @k: a race: thread 31 of block 0 loads byte 0 of y, which thread 0 of block "
            "0 updated; nothing orders the two");
}

TEST(SimChecks, OutOfRange) {
  Numbers y(40, 0);
  const std::string text = kernel("ptr addrspace(1) %y", R"(
  %p = getelementptr i32, ptr addrspace(1) %y, i64 %at
  store i32 %i, ptr addrspace(1) %p
  ret void)");
  EXPECT_EQ(run(text, {true, 2, 32}, {&y}).message(),
            "gpu-sim: @k: thread 8 of block 1 stores 4 bytes at 160 of y, which has 160 bytes");
  const std::string shared = kTile + kernel("ptr addrspace(1) %y", R"(
  %n = sub i64 %t, 1
  %s = getelementptr [64 x i32], ptr addrspace(3) @tile, i64 0, i64 %n
  %v = load i32, ptr addrspace(3) %s
  ret void)");
  EXPECT_EQ(run(shared, {}, {&y}).message(),
            "gpu-sim: @k: thread 0 of block 0 loads 4 bytes at -4 of tile, which has 256 bytes");
  const std::string own = kernel("ptr addrspace(1) %y", R"(
  %own = alloca [4 x i32]
  %o = getelementptr [4 x i32], ptr %own, i64 0, i64 %t
  store i32 1, ptr %o
  ret void)");
  EXPECT_EQ(run(own, {}, {&y}).message(),
            "gpu-sim: @k: thread 4 of block 0 touches 4 bytes at 16 of an array of its own, which "
            "has 16 bytes");
  const std::string askew = kernel("ptr addrspace(1) %y", R"(
  %p = getelementptr i32, ptr addrspace(1) %y, i64 %t
  store <2 x i32> zeroinitializer, ptr addrspace(1) %p, align 8
  ret void)");
  EXPECT_EQ(run(askew, {}, {&y}).message(),
            "gpu-sim: @k: thread 1 of block 0 stores 8 bytes at 4 of y, aligned as no 8 bytes are");
  const std::string elsewhere = kernel("ptr addrspace(1) %y", R"(
  %p = inttoptr i64 4096 to ptr addrspace(1)
  store i32 1, ptr addrspace(1) %p
  ret void)");
  EXPECT_EQ(run(elsewhere, {}, {&y}).message(),
            "gpu-sim: @k: thread 0 of block 0 stores 4 bytes of no memory of the launch");
}

// The launch returns the error of the first block that fails, for every schedule of host threads.
TEST(SimChecks, TheFirstBlocksError) {
  Numbers y(1, 0);
  const std::string text = kernel("ptr addrspace(1) %y", R"(
  %late = icmp sgt i32 %block, 70
  br i1 %late, label %some, label %end
some:
  %mine = icmp slt i32 %tid, 3
  br i1 %mine, label %wait, label %end
wait:
  call void @llvm.nvvm.barrier0()
  br label %end
end:
  ret void)");
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(run(text, {false, 2000, 32}, {&y}).message(),
              "gpu-sim: @k: block 71 cannot go on: thread 0 waits at barrier 1 of @k for thread 3, "
              "which has ended");
  }
}

TEST(SimPass, WhatItDoesNotKnow) {
  const auto error = [](const std::string& text) {
    const auto image = assemble(text, true);
    return image ? "" : image.error().message();
  };
  EXPECT_EQ(error("declare i32 @llvm.nvvm.read.ptx.sreg.tid.y()\n" + kernel("", R"(
  %v = call i32 @llvm.nvvm.read.ptx.sreg.tid.y()
  ret void)")),
            "gpu-sim: @k calls llvm.nvvm.read.ptx.sreg.tid.y, which the simulator does not know");
  EXPECT_EQ(error("declare void @other()\n" + kernel("", "call void @other()\nret void")),
            "gpu-sim: @k calls other, which the simulator does not know");
  EXPECT_EQ(error(kernel("", "call void asm sideeffect \"\", \"\"()\nret void")),
            "gpu-sim: @k calls assembly or by a pointer");
  EXPECT_EQ(error("@g = internal addrspace(1) global i32 0\n" + kernel("", R"(
  store i32 1, ptr addrspace(1) @g
  ret void)")),
            "gpu-sim: @g is neither a constant nor a variable of shared memory of the module");
}

TEST(SimPass, AnImageIsChecked) {
  EXPECT_EQ(SimProgram::load("TNGS").error().code(), ErrorCode::kDataLoss);
  const auto program = SimProgram::load(assemble(kernel("", "ret void"), false).value()).value();
  Numbers y(1);
  EXPECT_EQ(run_on(*program, {}, {&y}).message(), "gpu-sim: @k takes 0 arguments, not 1");
  EXPECT_EQ(run_on(*program, {false, 1, 0}, {}).message(),
            "gpu-sim: @k: cannot launch 1 blocks of 0 threads");
}

}  // namespace
}  // namespace tenon::gpu
