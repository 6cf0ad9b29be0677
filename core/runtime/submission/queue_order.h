// WorkProgress: orders work across the queues of a device. It records how far each queue is, so
// that one queue can wait for work of another. Part of Device; docs/seam.md, "Queues, events and
// memory".
//
// Thread-safety: WorkPosition and WorkMarks are values; WorkProgress states it for each function.
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

/// The most queues of a device that the runtime uses.
inline constexpr uint32_t kMostQueues = 3;

/// The purpose of each queue. A device with fewer queues uses its last queue for the other
/// purposes.
enum class QueueRole : uint8_t {
  kCompute,   ///< Launches, library calls, copies on the device.
  kUpload,    ///< Copies from the host.
  kDownload,  ///< Copies to the host.
};

/// Names one piece of work: the `serial`-th posted to its queue, counted from 1; 0 is none.
struct WorkPosition {
  uint32_t queue = 0;
  int64_t serial = 0;
};

/// A set of work: for each queue, all work up to a serial.
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

/// An event of the backend, released when its last owner goes.
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

/// Serials of the last work of a queue in two states.
struct QueueCounts {
  std::atomic<int64_t> begun = 0;  ///< Its submission has begun.
  std::atomic<int64_t> done = 0;   ///< It is known to have completed.
};

/// The progress of one queue: work begins, is submitted ("given"), completes ("done"), and its
/// outcome is reported ("heard"), each in order of serials.
class WorkProgress {
 public:
  /// `keeps_events`: whether other queues may wait for work of this queue.
  explicit WorkProgress(bool keeps_events) : keeps_events_(keeps_events) {}

  // --- Of the queue itself

  /// Returns the serial of the next work. Callers must not overlap.
  int64_t next() { return ++posted_; }
  void begin(int64_t serial) { counts_->begun = serial; }
  /// Records that all commands of the work are submitted. `event` was recorded after them, if not
  /// null.
  void given(int64_t serial, EventShare event);
  void done(int64_t serial);
  /// Records that the outcome has been reported to all who wait for the work.
  void heard(int64_t serial);

  // --- Called by any thread

  const std::shared_ptr<const QueueCounts>& counts() const { return shared_counts_; }
  bool is_done(int64_t serial) const { return counts_->done >= serial; }
  bool is_heard(int64_t serial) const { return heard_ >= serial; }
  struct GivenEvent {
    int64_t serial = 0;
    EventShare event;
  };
  /// Waits until the work is submitted and returns the first event recorded after it. Returns no
  /// event if the work has completed, or if `gives_up` returns true after a wake().
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
  std::deque<GivenEvent> events_;  // Only those of work that is not known to have completed.
};

}  // namespace tenon::runtime
