// Queues and events for backends whose work runs on threads of this process: shared by `interp` and
// the CPU backend.
//
// Thread-safety: HostQueue as rule B7 says of a queue; HostEvents from any thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "core/backend/backend.h"

namespace tenon::backend {

/// Fills `to` with copies of `pattern`, a whole number of them.
void fill_bytes(std::span<std::byte> to, std::span<const std::byte> pattern);

/// An event that is done once, with or without an error.
class HostEvent {
 public:
  /// `start` is when its work began, in seconds of the steady clock; nothing: that is not known.
  void finish(Status status, std::optional<double> start = {});
  /// The outcome, or nothing after `timeout` nanoseconds (B25).
  std::optional<Status> await(int64_t timeout);
  /// The times of a done event, in seconds of the steady clock.
  EventTimes times() const { return times_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Status> outcome_;
  EventTimes times_;
};

/// Runs pieces of work one after the other: on a thread of its own, or on the caller's thread
/// before `push` returns, which B8 allows and which is faster if the work is short.
class HostQueue {
 public:
  using Work = std::function<Status()>;
  enum class Thread : uint8_t { kOwn, kCallers };

  explicit HostQueue(Thread thread = Thread::kOwn);
  /// As end(), and waits for the thread.
  ~HostQueue();
  HostQueue(const HostQueue&) = delete;
  HostQueue& operator=(const HostQueue&) = delete;

  /// `work` returns a Status. On the caller's thread it is called before this returns.
  template <class Do>
  void push(Do&& work) {
    if (!thread_) return attempt(work);
    add({Work(std::forward<Do>(work)), nullptr});
  }
  /// Whether all work pushed so far is done, without an error since the last record.
  bool has_succeeded() const { return !thread_ && failed_.ok(); }
  /// An event for all work pushed before, with the first error since the last record (B23).
  std::shared_ptr<HostEvent> record();
  /// Makes work that is pushed later wait for the event, whether or not the event has an error
  /// (B24).
  void wait(std::shared_ptr<HostEvent> event);
  /// The thread ends after the work that it is at; events that are left become kCancelled, so that
  /// other queues do not wait for them.
  void end();

 private:
  struct QueuedWork {
    Work work;
    std::shared_ptr<HostEvent> event;
  };
  void add(QueuedWork item);
  void run();
  template <class Do>
  void attempt(const Do& work) {
    Status status;
    try {
      status = work();
    } catch (const std::exception& e) {
      status = out_of_memory(e);
    }
    if (failed_.ok()) failed_ = std::move(status);
  }
  /// An error of the work that threw (B5, B6): out of memory, mostly.
  static Status out_of_memory(const std::exception& thrown);

  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<QueuedWork> items_;
  bool ending_ = false;
  // For the work since the last record; used by the working thread only:
  Status failed_;
  std::optional<double> began_;  ///< On a thread of its own.
  std::optional<std::thread> thread_;
};

/// Handles of shared objects: events, modules, memory.
template <class Thing>
class Handles {
 public:
  uint64_t add(std::shared_ptr<Thing> thing) {
    const std::lock_guard lock(mutex_);
    if (auto node = std::exchange(spare_, {})) {
      node.key() = ++last_;
      node.mapped() = std::move(thing);
      things_.insert(things_.end(), std::move(node));
    } else {
      things_.emplace_hint(things_.end(), ++last_, std::move(thing));
    }
    return last_;
  }
  /// Null if there is no such handle.
  std::shared_ptr<Thing> find(uint64_t handle) const {
    const std::lock_guard lock(mutex_);
    const auto found = things_.find(handle);
    return found == things_.end() ? nullptr : found->second;
  }
  /// The same, with an error that says what `what` should have been: "event", "module".
  Result<std::shared_ptr<Thing>> get(uint64_t handle, std::string_view what) const {
    auto found = find(handle);
    if (found == nullptr) return invalid_argument("B10: there is no {} {}", what, handle);
    return found;
  }
  std::shared_ptr<Thing> take(uint64_t handle) {
    const std::lock_guard lock(mutex_);
    auto node = things_.extract(handle);
    if (node.empty()) return nullptr;
    std::shared_ptr<Thing> thing = std::move(node.mapped());
    spare_ = std::move(node);
    return thing;
  }
  /// The handles cannot change meanwhile.
  template <class Visit>
  void for_each(const Visit& visit) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [handle, thing] : things_) visit(*thing);
  }

 private:
  mutable std::mutex mutex_;
  std::map<uint64_t, std::shared_ptr<Thing>> things_;
  /// The node of a thing that was taken: events come and go.
  typename std::map<uint64_t, std::shared_ptr<Thing>>::node_type spare_;
  uint64_t last_ = 0;
};

}  // namespace tenon::backend
