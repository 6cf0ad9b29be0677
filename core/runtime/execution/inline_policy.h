// InlinePolicy: whether executions of a Program run on the thread of the caller. A short one gains
// if it does not wait for another thread: handing it over and hearing of its end takes some 50 us.
//
// Thread-safety: InlinePolicy may be used from any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace tenon::runtime {

struct CompiledProgram;

class InlinePolicy {
 public:
  InlinePolicy() = default;
  /// Programs with steps of the host never run there: its functions may wait for what the caller
  /// does next. Of others the work is estimated if all of it is known; else executions are
  /// measured, where the host sees the device's memory.
  void decide(const CompiledProgram& compiled, bool host_sees_memory);

  /// Whether the next execution runs on the caller's thread.
  bool runs_inline() const {
    return basis_ == Basis::kBrief || (basis_ == Basis::kMeasured &&
                                       short_in_a_row_.load(std::memory_order_relaxed) >= kShort);
  }
  /// Whether to measure executions for add().
  bool measures() const { return basis_ == Basis::kMeasured; }
  /// An execution without an error was done after that time.
  void add(int64_t nanoseconds) const {
    const int before = short_in_a_row_.load(std::memory_order_relaxed);
    const int now = nanoseconds > kMostNanoseconds ? kAfterLong : std::min(before + 1, kShort);
    if (now != before) short_in_a_row_.store(now, std::memory_order_relaxed);
  }

  /// So many short executions in a row are taken as the rule.
  static constexpr int kShort = 3;
  /// The count after a long one: a caller that waited for one waits for few more.
  static constexpr int kAfterLong = -32;
  /// A longer execution gains less than a sixth.
  static constexpr int64_t kMostNanoseconds = 300'000;

 private:
  enum class Basis : uint8_t { kNever, kBrief, kMeasured };
  Basis basis_ = Basis::kNever;
  mutable std::atomic<int> short_in_a_row_ = 0;
};

}  // namespace tenon::runtime
