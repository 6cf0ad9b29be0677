// Fibers: functions with their own stacks, of which a host thread runs one at a time, each until it
// yields. They are the threads of a simulated block.
//
// Registers are switched by hand on x86-64 and AArch64, by ucontext elsewhere. A fiber may be
// abandoned at any point: it must then hold nothing that a destructor would release.
//
// Thread-safety: fibers belong to the host thread that runs them.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace tenon::gpu {

class Fiber {
 public:
  using Entry = void (*)(void* argument);

  /// Uses the `bytes` at `stack`, which must outlive it.
  Fiber(std::byte* stack, size_t bytes);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Makes the next run() call `entry`; a call in progress is abandoned.
  void start(Entry entry, void* argument);
  /// Returns when the fiber yields, or ends.
  void run();
  /// Within the fiber: returns to run(), until the next run().
  void give_way();
  /// Within the fiber: returns to run() and abandons the call; start() begins a new one.
  [[noreturn]] void leave();

  bool has_ended() const { return ended_; }
  bool owns(const std::byte* address) const {
    return address >= stack_ && address < stack_ + bytes_;
  }

 private:
  struct Registers;
  static void begin(void* fiber);
  void switch_to_host(bool for_good);

  std::byte* const stack_;
  const size_t bytes_;
  Entry entry_ = nullptr;
  void* argument_ = nullptr;
  bool ended_ = true;
  const std::unique_ptr<Registers> registers_;
};

/// Fibers that a host thread reuses, with a guard page below each stack.
class FiberPool {
 public:
  FiberPool() = default;
  ~FiberPool() { release(); }
  FiberPool(const FiberPool&) = delete;
  FiberPool& operator=(const FiberPool&) = delete;

  /// Provides at least `count` fibers, with stacks of at least `stack_bytes`. False: there is no
  /// memory.
  bool reserve(size_t count, size_t stack_bytes);
  Fiber& operator[](size_t i) { return *fibers_[i]; }

 private:
  void release();

  std::byte* memory_ = nullptr;
  size_t mapped_ = 0;
  size_t stack_bytes_ = 0;
  std::vector<std::unique_ptr<Fiber>> fibers_;
};

}  // namespace tenon::gpu
