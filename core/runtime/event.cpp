#include "core/runtime/event.h"

#include <atomic>

#include "core/base/process/waiting.h"
#include "core/runtime/submission/forked.h"

namespace tenon::runtime {

// --- CallbackPool

struct CallbackPool::Impl {
  std::mutex mutex;
  std::condition_variable added;
  std::deque<std::function<void()>> functions;
  bool ending = false;
};

namespace {

// Ends the threads when the last pool is destroyed. The threads share the queue but not this
// object. It may be destroyed on one of those threads, which then cannot be joined.
struct Threads {
  std::function<void()> end;
  std::vector<std::thread> threads;
  ~Threads() {
    end();
    for (std::thread& thread : threads) {
      if (thread.get_id() == std::this_thread::get_id()) {
        thread.detach();
      } else {
        thread.join();
      }
    }
  }
};

}  // namespace

CallbackPool::CallbackPool(size_t threads) {
  const auto state = std::make_shared<Impl>();
  const auto work = [state] {
    while (true) {
      std::function<void()> function;
      {
        std::unique_lock lock(state->mutex);
        state->added.wait(lock, [&] { return state->ending || !state->functions.empty(); });
        if (state->functions.empty()) return;
        function = std::move(state->functions.front());
        state->functions.pop_front();
      }
      function();
    }
  };
  auto owner = std::make_shared<Threads>();
  owner->end = [state] {
    {
      const std::lock_guard lock(state->mutex);
      state->ending = true;
    }
    state->added.notify_all();
  };
  for (size_t i = 0; i < threads; ++i) owner->threads.emplace_back(work);
  state_ = std::shared_ptr<Impl>(std::move(owner), state.get());
}

void CallbackPool::run(std::function<void()> function) const {
  {
    const std::lock_guard lock(state_->mutex);
    state_->functions.push_back(std::move(function));
  }
  state_->added.notify_one();
}

// --- Event

struct Event::Impl {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Status> outcome;
  std::atomic<bool> has_happened = false;  // The outcome is there, and never changes again.
  std::vector<Callback> callbacks;
  std::optional<CallbackPool> pool;  // Until the event has happened.
  Birth birth;
};

Event Event::ready(Status status) {
  if (status.ok()) {  // Places for events begin with it: all share one.
    static const Event* const kOk = [] {
      auto state = std::make_shared<Impl>();
      state->outcome.emplace();
      state->has_happened = true;
      return new Event(std::move(state));
    }();
    return *kOk;
  }
  auto state = std::make_shared<Impl>();
  state->outcome = std::move(status);
  state->has_happened = true;
  return Event(std::move(state));
}

bool Event::is_ready() const { return state_->has_happened; }

bool Event::is_ok() const { return state_->has_happened && state_->outcome->ok(); }

Status Event::await() const {
  if (state_->has_happened) return *state_->outcome;
  std::unique_lock lock(state_->mutex);
  // In a forked child no thread can complete an event of the parent.
  if (!state_->outcome) TENON_TRY(state_->birth.check());
  state_->changed.wait(lock, [&] { return state_->outcome.has_value(); });
  return *state_->outcome;
}

std::optional<Status> Event::await_for(int64_t nanoseconds) const {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_for(lock, waiting_time(nanoseconds),
                           [&] { return state_->outcome.has_value(); });
  return state_->outcome;
}

void Event::on_ready(Callback callback) const {
  if (!state_->has_happened) {
    const std::lock_guard lock(state_->mutex);
    if (!state_->outcome) {
      state_->callbacks.push_back(std::move(callback));
      return;
    }
  }
  callback(*state_->outcome);
}

// --- Promise

Promise::Promise(CallbackPool pool) : Promise() { state_->pool = std::move(pool); }

Promise::Promise() : state_(std::make_shared<Event::Impl>()) {}

Promise::~Promise() {
  if (state_ == nullptr || event().is_ready()) return;
  Status dropped(ErrorCode::kInternal, "");
  try {
    dropped = Status(internal_error("the promise of the event was destroyed"));
  } catch (const std::exception&) {  // Without memory there is no text.
  }
  set(std::move(dropped));
}

Promise& Promise::operator=(Promise&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

void Promise::set(Status status) {
  const std::shared_ptr<Event::Impl> state = state_;  // A callback may destroy the promise.
  std::vector<Event::Callback> callbacks;
  std::optional<CallbackPool> pool;
  {
    const std::lock_guard lock(state->mutex);
    if (state->outcome) return;
    state->outcome = std::move(status);
    state->has_happened = true;
    callbacks.swap(state->callbacks);
    pool.swap(state->pool);
  }
  state->changed.notify_all();
  for (const Event::Callback& callback : callbacks) {
    if (!pool) {
      callback(*state->outcome);
      continue;
    }
    try {
      pool->run([callback, state] { callback(*state->outcome); });
    } catch (const std::exception&) {  // No memory: the callback runs on this thread.
      callback(*state->outcome);
    }
  }
}

}  // namespace tenon::runtime
