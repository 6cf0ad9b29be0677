#include "core/runtime/submission/watchdog.h"

#include <algorithm>
#include <exception>

#include "core/base/process/waiting.h"

namespace tenon::runtime {

Watchdog::Watchdog(std::function<void()> late)
    : late_(std::move(late)), thread_([this] { run(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::begin(int64_t nanoseconds) {
  extend(nanoseconds);
  {
    const std::lock_guard lock(mutex_);
    on_ = true;
  }
  changed_.notify_all();
}

void Watchdog::extend(int64_t nanoseconds) {
  const std::lock_guard lock(mutex_);
  deadline_ = std::chrono::steady_clock::now() + waiting_time(std::max<int64_t>(nanoseconds, 0));
}

Watchdog::End Watchdog::end() {
  std::unique_lock lock(mutex_);
  if (abandoned_) return End::kAbandoned;
  on_ = false;
  if (!in_late_) return End::kInTime;
  changed_.notify_all();
  changed_.wait(lock, [&] { return !in_late_; });
  return End::kLate;
}

bool Watchdog::await_end(int64_t nanoseconds) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, waiting_time(nanoseconds), [&] { return !on_; });
}

bool Watchdog::abandon() {
  const std::lock_guard lock(mutex_);
  if (!on_) return false;
  on_ = false;
  abandoned_ = true;
  return true;
}

void Watchdog::run() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    if (!on_) {
      changed_.wait(lock);
    } else if (std::chrono::steady_clock::now() < deadline_) {
      changed_.wait_until(lock, deadline_);
    } else {
      in_late_ = true;
      lock.unlock();
      try {
        late_();
      } catch (const std::exception&) {  // No memory: it is tried again if the call is still on.
      }
      lock.lock();
      in_late_ = false;
      changed_.notify_all();
    }
  }
}

}  // namespace tenon::runtime
