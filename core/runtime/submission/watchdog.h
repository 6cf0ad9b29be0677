// Whether calls return in time. Part of Device, whose worker makes them one after the other.
//
// Thread-safety: `begin` and `end` from the thread that makes the calls, the rest as it says.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace tenon::runtime {

class Watchdog {
 public:
  /// `late` is called, on a thread of the watchdog, while a call is at it past its time.
  explicit Watchdog(std::function<void()> late);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  bool is_this_thread() const { return thread_.get_id() == std::this_thread::get_id(); }

  /// A call begins, which may take so many nanoseconds.
  void begin(int64_t nanoseconds);
  enum class End : uint8_t {
    kInTime,
    kLate,       ///< `late` has heard of it, and has returned.
    kAbandoned,  ///< Nobody waits for it any more.
  };
  /// The call has returned.
  End end();

  // --- Called by `late`

  /// The call may take so many nanoseconds more.
  void extend(int64_t nanoseconds);
  /// Whether the call has returned, after waiting for some nanoseconds at most.
  bool await_end(int64_t nanoseconds);
  /// Leaves the call to itself; false if it has returned.
  bool abandon();

 private:
  void run();

  const std::function<void()> late_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::chrono::steady_clock::time_point deadline_;
  bool on_ = false;       // A call is, and has not been left.
  bool in_late_ = false;  // The function is.
  bool abandoned_ = false;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace tenon::runtime
