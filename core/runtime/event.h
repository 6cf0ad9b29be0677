// Event: whether something has happened, and how it went.
//
// Thread-safety: everything, from any thread. Callbacks run inline in on_ready when the event has
// happened already, else on a thread of the CallbackPool, which no queue needs: they may block and
// may call the client.
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

/// A few threads that run functions, for callbacks and steps of the host. Copies share the threads,
/// which end with the last of them.
class CallbackPool {
 public:
  explicit CallbackPool(size_t threads = 2);
  void run(std::function<void()> function) const;

 private:
  struct Impl;
  std::shared_ptr<Impl> state_;
};

/// Copies are the same event.
class Event {
 public:
  using Callback = std::function<void(const Status&)>;

  /// One that has happened.
  static Event ready(Status status = {});

  bool is_ready() const;
  /// The outcome, once there is one.
  Status await() const;
  /// The outcome, or nothing after `nanoseconds`.
  std::optional<Status> await_for(int64_t nanoseconds) const;
  void on_ready(Callback callback) const;

 private:
  friend class Promise;
  struct Impl;
  explicit Event(std::shared_ptr<Impl> state) : state_(std::move(state)) {}
  std::shared_ptr<Impl> state_;
};

/// Makes an event happen, once. A Promise that is destroyed before makes it fail with kInternal.
class Promise {
 public:
  explicit Promise(CallbackPool pool);
  ~Promise();
  Promise(Promise&&) noexcept = default;
  Promise& operator=(Promise&&) noexcept;

  Event event() const { return Event(state_); }
  void set(Status status);

 private:
  std::shared_ptr<Event::Impl> state_;
};

}  // namespace tenon::runtime
