// Event: whether something has happened, and with which outcome.
//
// Thread-safety: all functions may be called from any thread. If the event has happened, on_ready
// calls the callback at once; otherwise a thread of the CallbackPool calls it. No queue depends on
// that thread, so a callback may block and may call the client.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/base/status.h"

namespace tenon::runtime {

/// A few threads that run callbacks and host steps. Copies share the threads, which end with the
/// last copy.
class CallbackPool {
 public:
  explicit CallbackPool(size_t threads = 2);
  void run(std::function<void()> function) const;

 private:
  struct Impl;
  std::shared_ptr<Impl> state_;
};

/// Copies refer to the same event.
class Event {
 public:
  using Callback = std::function<void(const Status&)>;

  /// An event that has happened.
  static Event ready(Status status = {});

  bool is_ready() const;
  /// Whether it has happened, without an error.
  bool is_ok() const;
  /// Waits for the outcome and returns it.
  Status await() const;
  /// The outcome, or nothing if the event has not happened after `nanoseconds`.
  std::optional<Status> await_for(int64_t nanoseconds) const;
  void on_ready(Callback callback) const;

 private:
  friend class Promise;
  struct Impl;
  explicit Event(std::shared_ptr<Impl> state) : state_(std::move(state)) {}
  std::shared_ptr<Impl> state_;
};

/// Completes an event, once. If a Promise is destroyed before that, the event fails with kInternal.
class Promise {
 public:
  explicit Promise(CallbackPool pool);
  /// One whose set() calls the callbacks itself.
  Promise();
  ~Promise();
  Promise(Promise&&) noexcept = default;
  Promise& operator=(Promise&&) noexcept;

  Event event() const { return Event(state_); }
  void set(Status status);

 private:
  std::shared_ptr<Event::Impl> state_;
};

}  // namespace tenon::runtime
