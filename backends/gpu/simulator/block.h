// A block of a launch: its threads, which run in turn as fibers, and the barriers and shuffles at
// which they wait.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>

#include "backends/gpu/simulator/fibers.h"
#include "backends/gpu/simulator/memory.h"
#include "backends/gpu/simulator/simulator.h"

namespace tenon::gpu {

/// A running launch: the state that its blocks share.
///
/// Thread-safety: fail() and is_over() from any thread; only a checked run uses the memory.
class SimRun {
 public:
  SimRun(const SimProgram& program, const SimLaunch& launch);

  /// Records the error of the first block that fails, so that the error does not depend on host
  /// threads.
  void fail(int64_t block, Status status);
  /// Whether a block need not run any more: an earlier one has failed, or all are stopped.
  bool is_over(int64_t block);
  Status outcome() const { return status_; }

  const SimProgram& program;
  const SimLaunch& launch;
  const SimKernel& kernel;
  const SimEntry entry;
  const Grid grid;
  std::optional<SimMemory> memory;  ///< With checks.

 private:
  std::mutex mutex_;
  std::atomic<int64_t> failed_block_;
  Status status_;
};

class SimBlock;

/// A thread of a block, with its waiting state.
struct BlockThread : SimThread {
  enum class ThreadState : uint8_t { kReady, kAtBarrier, kAtWarpBarrier, kAtShuffle, kEnded };

  SimBlock* block = nullptr;
  Fiber* fiber = nullptr;
  ThreadState state = ThreadState::kReady;
  uint32_t site = 0;
  // `mask`: the participants of a shuffle or warp barrier. The other members: operands of a
  // shuffle; `value` receives its result.
  uint32_t mask = 0;
  ShuffleMode mode{};
  uint32_t value = 0;
  uint32_t lane = 0;
  uint32_t bounds = 0;
  // For the checks.
  uint32_t epoch = 0;
  std::array<uint16_t, kWarpLanes> clocks{};
};

/// Memory that a host thread reuses from launch to launch.
struct HostThreadMemory {
  FiberPool fibers;
  std::vector<BlockThread> threads;
  std::vector<std::byte> shared;
};

/// Runs blocks, one after the other, on a host thread.
class SimBlock {
 public:
  /// If is_ready() is false, there was no memory.
  SimBlock(SimRun& run, HostThreadMemory& memory);
  bool is_ready() const { return ready_; }

  /// Errors are reported to the run.
  void run_blocks(int64_t begin, int64_t end);

  // --- Called by the running thread of the block
  void wait(BlockThread& thread, BlockThread::ThreadState state, uint32_t site);
  void look(BlockThread& thread, const SimAccess& access);
  [[noreturn]] void fail(BlockThread& thread, Status status);
  const SimRun& of() const { return run_; }
  int64_t number() const { return number_; }

 private:
  void begin_block(int64_t number);
  void run_in_row();
  void run_in_turns();
  void run_warp(uint32_t first);
  bool pass_barrier();
  bool pass_warp(uint32_t first);
  void pass_group(uint32_t first, uint32_t group);
  Status exchange(uint32_t first, uint32_t group);
  void join_clocks(uint32_t first, uint32_t group);
  bool waits_with(const BlockThread& a, const BlockThread& b) const;
  Status deadlock() const;
  std::string place_of(const BlockThread& thread) const;
  std::span<BlockThread> threads() { return {memory_.threads.data(), count_}; }
  uint32_t lanes_of(uint32_t first) const;

  SimRun& run_;
  HostThreadMemory& memory_;
  const uint32_t count_;
  std::byte* shared_ = nullptr;
  bool ready_ = false;
  bool failed_ = false;
  int64_t number_ = 0;
  int64_t end_ = 0;
};

/// The functions that simulated code calls.
std::span<const codegen::HostFunction> sim_functions();

}  // namespace tenon::gpu
