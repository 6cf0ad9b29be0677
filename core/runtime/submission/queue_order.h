// The order of work on several queues of a device: which piece of work comes behind which, and how
// far each queue is. Part of Device; docs/seam.md, "Queues, events and memory".
//
// Thread-safety: WorkPosition and WorkMarks are values; WorkProgress as its functions say.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "core/runtime/submission/open_device.h"

namespace tenon::runtime {

/// Queues of a device that the runtime uses, at most.
inline constexpr uint32_t kMostQueues = 3;

/// The purposes of a device's queues. A device with fewer queues has its last one for the rest.
enum class QueueRole : uint8_t {
  kCompute,   ///< Launches, library calls, copies on the device.
  kUpload,    ///< Copies from the host.
  kDownload,  ///< Copies to the host.
};

/// One piece of work: the `serial`-th that was posted to its queue, from 1 on; 0: none.
struct WorkPosition {
  uint32_t queue = 0;
  int64_t serial = 0;
};

/// Pieces of work on several queues, of which a queue's last stands for all before it.
class WorkMarks {
 public:
  void raise(const WorkPosition& position) {
    int64_t& serial = serials_[position.queue];
    serial = std::max(serial, position.serial);
  }
  void raise(const WorkMarks& other) {
    for (uint32_t q = 0; q < kMostQueues; ++q) raise({q, other.of(q)});
  }
  int64_t of(uint32_t queue) const { return serials_[queue]; }

 private:
  std::array<int64_t, kMostQueues> serials_ = {};
};

/// An event of the backend, released with the last share.
class OwnedEvent {
 public:
  OwnedEvent(const OpenDevice& device, backend::EventHandle handle)
      : device_(device), handle_(handle) {}
  ~OwnedEvent() {
    if (const auto device = device_.use()) (*device)->release(handle_);
  }
  OwnedEvent(const OwnedEvent&) = delete;
  OwnedEvent& operator=(const OwnedEvent&) = delete;
  backend::EventHandle handle() const { return handle_; }

 private:
  const OpenDevice& device_;
  const backend::EventHandle handle_;
};
using EventShare = std::shared_ptr<const OwnedEvent>;

/// Up to which piece of work a queue has been given work, and has done it.
struct QueueCounts {
  std::atomic<int64_t> begun = 0;  ///< The last whose calls have begun.
  std::atomic<int64_t> done = 0;   ///< The last that is known to be done.
};

/// How far one queue is. Its pieces of work pass through each stage in order.
class WorkProgress {
 public:
  /// `keeps_events`: other queues may wait for work of this one.
  explicit WorkProgress(bool keeps_events) : keeps_events_(keeps_events) {}

  // --- Of the queue itself

  /// The serial of the next piece of work. One caller at a time.
  int64_t next() { return ++posted_; }
  void begin(int64_t serial) { counts_->begun = serial; }
  /// All calls of the work have returned; `event` comes behind them, null if there is none.
  void given(int64_t serial, EventShare event);
  void done(int64_t serial);
  /// The outcome has been passed on to those who wait for the work.
  void heard(int64_t serial);

  // --- Called by any thread

  const std::shared_ptr<const QueueCounts>& counts() const { return shared_counts_; }
  bool is_done(int64_t serial) const { return counts_->done >= serial; }
  bool is_heard(int64_t serial) const { return heard_ >= serial; }
  struct GivenEvent {
    int64_t serial = 0;
    EventShare event;
  };
  /// The first event that comes behind the work, once its calls have returned; without an event if
  /// the work is done, or once `gives_up` says so after wake().
  GivenEvent event_behind(int64_t serial, const std::function<bool()>& gives_up);
  void await_heard(int64_t serial);
  void wake();

 private:
  const bool keeps_events_;
  int64_t posted_ = 0;
  const std::shared_ptr<QueueCounts> counts_ = std::make_shared<QueueCounts>();
  const std::shared_ptr<const QueueCounts> shared_counts_ = counts_;
  std::atomic<int64_t> heard_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t given_ = 0;
  std::deque<GivenEvent> events_;  // Of work that is not known to be done.
};

}  // namespace tenon::runtime
