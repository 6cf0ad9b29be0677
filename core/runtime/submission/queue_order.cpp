#include "core/runtime/submission/queue_order.h"

namespace tenon::runtime {

void WorkProgress::given(int64_t serial, EventShare event) {
  if (!keeps_events_) return;
  {
    const std::lock_guard lock(mutex_);
    given_ = serial;
    if (event != nullptr) events_.push_back({serial, std::move(event)});
  }
  changed_.notify_all();
}

void WorkProgress::done(int64_t serial) {
  counts_->done = std::max(counts_->done.load(), serial);
  if (!keeps_events_) return;
  std::deque<GivenEvent> released;  // Outside the lock.
  const std::lock_guard lock(mutex_);
  while (!events_.empty() && events_.front().serial <= serial) {
    released.push_back(std::move(events_.front()));
    events_.pop_front();
  }
}

void WorkProgress::heard(int64_t serial) {
  if (!keeps_events_) return;
  {
    const std::lock_guard lock(mutex_);
    heard_ = std::max(heard_.load(), serial);
  }
  changed_.notify_all();
}

WorkProgress::GivenEvent WorkProgress::event_behind(int64_t serial,
                                                    const std::function<bool()>& gives_up) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return given_ >= serial || is_done(serial) || gives_up(); });
  if (is_done(serial)) return {};
  const auto found = std::ranges::lower_bound(events_, serial, {}, &GivenEvent::serial);
  return found == events_.end() ? GivenEvent() : *found;
}

void WorkProgress::await_heard(int64_t serial) {
  if (is_heard(serial)) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_heard(serial); });
}

void WorkProgress::wake() {
  {  // Excludes the moment between a look and the sleep.
    const std::lock_guard lock(mutex_);
  }
  changed_.notify_all();
}

}  // namespace tenon::runtime
