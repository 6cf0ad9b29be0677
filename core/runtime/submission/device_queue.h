// DeviceQueue: one queue of an open device at work. One thread gives work to it, in the order in
// which it was posted; another waits for it to be done. With a time limit a third looks whether the
// calls of the first return. Part of Device.
//
// Thread-safety: `post` and `claim` from any thread; functions marked as the worker's, on it alone.
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

/// Work gives work to the queue on the worker's thread and returns an error that it could not;
/// `done` hears the outcome, on a thread that it must not hold up, once all that work is done.
/// Both are kept until then. `stop` is raised when the time limit has passed.
using Work = std::function<Status()>;
using Done = std::function<void(const Status&)>;

struct WorkItem {
  Work work;
  Done done;
  std::shared_ptr<std::atomic<uint32_t>> stop;
  /// Work of other queues that comes before.
  WorkMarks after;
  int64_t serial = 0;
  EventShare event;  ///< Behind all that was given; from then on until it is known to be done.
  /// The worker was abandoned: a call of the work did not return in time, and its outcome is known.
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

  /// `progresses`: of all queues of the device. Work that is posted keeps the owner.
  DeviceQueue(uint32_t number, OpenDevice& device, Progresses progresses,
              std::weak_ptr<const void> owner);
  ~DeviceQueue();
  DeviceQueue(const DeviceQueue&) = delete;
  DeviceQueue& operator=(const DeviceQueue&) = delete;

  WorkPosition post(const std::shared_ptr<WorkItem>& item);
  /// The worker's place in the order of work.
  struct InlineTurn {
    std::unique_ptr<Worker::InlineSlot> slot;
    WorkPosition position;
  };
  /// If the worker is idle and there is no time limit, which only a thread that can be abandoned
  /// keeps.
  std::optional<InlineTurn> claim();
  /// post() on the calling thread, in a turn that was claimed.
  void run_inline(InlineTurn turn, const std::shared_ptr<WorkItem>& item);

  bool is_worker() const { return worker_->is_this_thread(); }
  /// Whether this is one of its threads, which cannot end themselves.
  bool owns_this_thread() const;

  // --- Called by the worker

  /// A call of the backend for the work at hand.
  template <class Call>
  std::invoke_result_t<Call, backend::Device&> watched(const Call& call) {
    TENON_ASSIGN(const OpenDevice::Share device, device_.use());
    return watched_call([&] { return guarded(device_.name(), [&] { return call(*device); }); });
  }
  /// Waits until all given work is done, within the limit of the work at hand.
  Status drain();

 private:
  template <class Call>
  std::invoke_result_t<Call> watched_call(const Call& call) {
    if (!watchdog_) return call();
    WorkItem& item = *at_hand_;
    // It may wait for work given before (B8), which has a time of its own.
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
  /// Has the queue wait for the work of other queues that `item` comes behind.
  Status wait_for_others(const WorkItem& item);
  /// An event of all that has been given; it is asked for more than once, since host memory may
  /// not be let go before it is done (B19). A device that gives none counts as lost.
  Result<EventShare> record();
  /// Whether all that was given is done, and all before has been heard of.
  bool is_done(const WorkItem& item);
  /// Lets the waiter finish it.
  void post_completion(const std::shared_ptr<WorkItem>& item, Status given);
  void finish(const std::shared_ptr<WorkItem>& item, Status given);
  /// The event's outcome, within nanoseconds if they are more than 0.
  Status outcome(const OwnedEvent& event, int64_t limit, std::atomic<uint32_t>* stop);
  /// Work took too long: raises its stop flag and aborts it. `ends` waits for it some nanoseconds.
  Status overrun(std::atomic<uint32_t>* stop, const std::function<bool(int64_t)>& ends);
  /// Called by the watchdog: a call of the work at hand is past the time limit.
  void call_is_late();
  /// Whether work that the queue was given, or waits for, is on its way.
  bool waits_for_others() const;

  const uint32_t number_;
  OpenDevice& device_;
  const Progresses progresses_;
  const std::weak_ptr<const void> owner_;
  std::mutex posting_;  // Pieces of work get their serials in the order of the worker.

  // The worker's; the watchdog reads it during a call.
  std::shared_ptr<WorkItem> at_hand_;
  int64_t taken_ = 0;  // Nanoseconds that the device took for it so far.
  // By queue, the last piece of work that this one has been made to wait for.
  std::array<std::atomic<int64_t>, kMostQueues> waited_ = {};
  // Pieces of work whose end the waiter waits for, and watches.
  std::atomic<int64_t> running_ = 0;
  // Those, and the ones whose end has not been heard of yet.
  std::atomic<int64_t> waited_for_ = 0;

  std::optional<Worker> completions_;
  std::optional<Worker> worker_;
  std::optional<Watchdog> watchdog_;  // With a time limit.
};

}  // namespace tenon::runtime
