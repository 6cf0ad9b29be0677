// core/backend/driver/: what backends over the interface of a driver (OpenCL, CUDA …) share.
//
// Waiting for work that a driver runs, and telling its kernels to stop.
//
// A backend keeps for each event of the seam the driver's own event, a StopRelay with the flags of
// the launches before it, and a CompletionSignal if the driver calls back:
//
//   return event.signal.await(timeout, pace, [&]() -> Result<bool> {
//     if (has_ended(event)) return true;
//     event.stop.relay();
//     return false;
//   });
//
// Thread-safety: CompletionSignal from any thread. StopRelay: add() while no other thread uses it,
// the rest from any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "core/base/status.h"

namespace tenon::backend {

/// The host's wish that the work before an event ends early (B27), for kernels that read a word in
/// memory which the host shares with the device.
class StopRelay {
 public:
  /// `word` becomes 0. Null: these kernels cannot be stopped.
  explicit StopRelay(uint32_t* word = nullptr);

  uint32_t* word() const { return word_; }
  /// The flag of a launch; null if it has none.
  void add(const volatile uint32_t* flag);
  /// Whether the host has raised a flag.
  bool is_wanted() const;
  /// Kernels are told without a flag too: the device is aborted or closed (B11, B12).
  void stop_kernels() const;
  /// Kernels are told if the host wishes it.
  void relay() const;
  /// The outcome of work that ended without an error of the device: kCancelled if the host wished
  /// its end, since what it wrote is then of no meaning.
  Status outcome() const;

 private:
  uint32_t* word_;
  std::vector<const volatile uint32_t*> flags_;
};

/// How often a driver is asked whether work is done.
struct WaitPace {
  /// At first without a pause, since short work ends meanwhile. On a device that is the CPU itself
  /// this would take a core from the work.
  std::chrono::nanoseconds busy{0};
  /// Then with this pause, which doubles up to `longest`. A stop or the loss of the device is seen
  /// that late; a signal ends the pause.
  std::chrono::nanoseconds pause{0};
  std::chrono::nanoseconds longest = pause;
};

/// Waits with a time limit for what a driver announces by a callback, or does not announce.
class CompletionSignal {
 public:
  /// The work is done, or will be at once: for the driver's callback.
  void raise();
  /// Asks `is_done` until it is true, an error, or `timeout` nanoseconds are over, as
  /// Device::await: 0 asks once, less than 0 has no limit (B25).
  Result<bool> await(int64_t timeout, const WaitPace& pace,
                     const std::function<Result<bool>()>& is_done);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_raised_ = false;
};

}  // namespace tenon::backend
