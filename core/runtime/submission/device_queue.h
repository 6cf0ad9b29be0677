// DeviceQueue: submits work to one queue of an open device. A worker thread submits work in the
// order in which it was posted; a second thread waits for its completion. With a time limit, a
// watchdog thread checks that the calls of the worker return. Part of Device.
//
// Thread-safety: any thread may call `post` and `claim`; only the worker calls the functions that
// are marked as its own.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <type_traits>

#include "core/backend/backend.h"
#include "core/runtime/submission/open_device.h"
#include "core/runtime/submission/queue_order.h"
#include "core/runtime/submission/watchdog.h"
#include "core/runtime/submission/worker.h"

namespace tenon::runtime {

/// Work submits commands to the queue, on the worker's thread, and returns an error if that fails.
/// Done receives the outcome when all those commands have completed; it must not block the thread
/// that calls it. Both objects live until then.
using Work = std::function<Status()>;
using Done = std::function<void(const Status&)>;

struct WorkItem {
  Work work;
  Done done;
  /// Raised when the time limit has passed; may be null. Lives as long as the item.
  std::atomic<uint32_t>* stop = nullptr;
  /// Work of other queues that must complete first.
  WorkMarks after;
  int64_t serial = 0;
  EventShare
      event;  ///< Recorded after the last command; null before, and once it is known to be done.
  /// A call of the work exceeded the time limit: the worker was abandoned, the outcome is reported.
  bool abandoned = false;
};

/// A call of a backend or of a function of the host. Exceptions become errors.
template <class Call>
std::invoke_result_t<Call> guarded(std::string_view what, const Call& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return resource_exhausted("{}: the host has no memory for it", what);
  } catch (const std::exception& e) {
    return internal_error("{}: it threw: {}", what, e.what());
  }
}

class DeviceQueue {
 public:
  using Progresses = std::span<const std::unique_ptr<WorkProgress>>;

  /// `progresses`: one for each queue of the device. Posted work keeps `owner` alive.
  DeviceQueue(uint32_t number, OpenDevice& device, Progresses progresses,
              std::weak_ptr<const void> owner);
  ~DeviceQueue();
  DeviceQueue(const DeviceQueue&) = delete;
  DeviceQueue& operator=(const DeviceQueue&) = delete;

  WorkPosition post(const std::shared_ptr<WorkItem>& item);
  /// The worker's turn, taken by another thread.
  struct InlineTurn {
    Worker::InlineSlot slot;
    WorkPosition position;
  };
  /// Takes the worker's turn if the worker is idle. Empty under a time limit: only a thread of the
  /// runtime can be abandoned.
  std::optional<InlineTurn> claim();
  /// Does what post() does, on the calling thread, in a turn from claim().
  void run_inline(InlineTurn turn, const std::shared_ptr<WorkItem>& item);

  bool is_worker() const { return worker_->is_this_thread(); }
  /// Whether the calling thread is one of the queue's: those cannot join themselves.
  bool owns_this_thread() const;

  // --- Called by the worker

  /// Calls the backend for the current work, under the watchdog.
  template <class Call>
  std::invoke_result_t<Call, backend::Device&> watched(const Call& call) {
    // No longer than the call: a device that was given up is closed once nothing shares it.
    TENON_ASSIGN(const OpenDevice::Share device, device_.use());
    return watched_call([&] { return guarded(device_.name(), [&] { return call(*device); }); });
  }
  /// Waits until all submitted work has completed, within the time limit of the current work.
  Status drain();

 private:
  template <class Call>
  std::invoke_result_t<Call> watched_call(const Call& call) {
    if (!watchdog_) return call();
    WorkItem& item = *at_hand_;
    // The call may wait for work submitted earlier (B8), which has a time limit of its own.
    const bool alone = !waits_for_others();
    const auto begin = std::chrono::steady_clock::now();
    watchdog_->begin(device_.time_limit() - taken_);
    auto result = call();
    const Watchdog::End end = watchdog_->end();
    if (end == Watchdog::End::kInTime) {
      if (alone)
        taken_ += std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
      return result;
    }
    item.abandoned = end == Watchdog::End::kAbandoned;
    return Error(device_.lost());
  }

  WorkProgress& progress() const { return *progresses_[number_]; }
  template <class Visit>
  void for_each_other(const Visit& visit) const;

  void submit(const std::shared_ptr<WorkItem>& item);
  void give(const std::shared_ptr<WorkItem>& item);
  /// Makes the queue wait for the work of other queues that must complete before `item`.
  Status wait_for_others(const WorkItem& item);
  /// Records an event after all submitted commands. A failure is retried, since host memory must
  /// outlive them (B19); a device that records none counts as lost.
  Result<EventShare> record();
  /// Whether all submitted commands have completed, and the outcome of all earlier work is
  /// reported.
  bool is_done(const WorkItem& item);
  /// Posts `item` to the thread that waits for completion.
  void post_completion(const std::shared_ptr<WorkItem>& item, Status given);
  /// `completed`: whether its event is known to have happened without an error.
  void finish(const std::shared_ptr<WorkItem>& item, Status given, bool completed = false);
  /// The outcome of `event`, within `limit` nanoseconds if that is positive.
  Status outcome(const OwnedEvent& event, int64_t limit, std::atomic<uint32_t>* stop);
  /// Handles work that exceeded its time: raises its stop flag and aborts it. `ends(nanoseconds)`
  /// waits for its end.
  Status overrun(std::atomic<uint32_t>* stop, const std::function<bool(int64_t)>& ends);
  /// Called by the watchdog when a call of the current work exceeds the time limit.
  void call_is_late();
  /// Whether earlier work of this queue, or work of others that it waits for, is still running.
  bool waits_for_others() const;

  const uint32_t number_;
  OpenDevice& device_;
  const Progresses progresses_;
  const std::weak_ptr<const void> owner_;
  std::mutex posting_;  // Serials follow the order in which the worker receives work.

  // Written by the worker; the watchdog reads it during a call.
  std::shared_ptr<WorkItem> at_hand_;
  int64_t taken_ = 0;  // Nanoseconds that its calls have taken so far.
  // By queue, the last work that this queue waits for.
  std::array<std::atomic<int64_t>, kMostQueues> waited_ = {};
  // Submitted work that has not completed yet.
  std::atomic<int64_t> running_ = 0;
  // The same, and completed work whose outcome is not reported yet.
  std::atomic<int64_t> waited_for_ = 0;

  std::optional<Worker> completions_;
  std::optional<Worker> worker_;
  std::optional<Watchdog> watchdog_;  // Only under a time limit.
};

}  // namespace tenon::runtime
