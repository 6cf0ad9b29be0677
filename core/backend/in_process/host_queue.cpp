#include "core/backend/in_process/host_queue.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/base/process/waiting.h"

namespace tenon::backend {

namespace {

double steady_seconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

}  // namespace

void fill_bytes(std::span<std::byte> to, std::span<const std::byte> pattern) {
  constexpr size_t kMostCopied = 64 << 10;  // At once, so that the copy comes from a cache.
  if (to.empty()) return;
  std::memcpy(to.data(), pattern.data(), pattern.size());
  size_t together = pattern.size();
  for (size_t at = together; at < to.size();) {
    const size_t size = std::min(together, to.size() - at);
    std::memcpy(to.data() + at, to.data(), size);
    at += size;
    if (together < kMostCopied) together = at;
  }
}

void HostEvent::finish(Status status, std::optional<double> start) {
  const double now = steady_seconds();
  {
    const std::lock_guard lock(mutex_);
    if (outcome_) return;
    times_ = {start, now};
    outcome_ = std::move(status);
  }
  changed_.notify_all();
}

std::optional<Status> HostEvent::await(int64_t timeout) {
  std::unique_lock lock(mutex_);
  const auto done = [&] { return outcome_.has_value(); };
  if (timeout < 0) {
    changed_.wait(lock, done);
  } else if (timeout > 0) {
    changed_.wait_for(lock, waiting_time(timeout), done);
  }
  return outcome_;
}

HostQueue::HostQueue(Thread thread) {
  if (thread == Thread::kOwn) thread_.emplace([this] { run(); });
}

HostQueue::~HostQueue() {
  end();
  if (thread_) thread_->join();
}

void HostQueue::end() {
  std::deque<QueuedWork> left;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    left.swap(items_);
  }
  added_.notify_all();
  for (const QueuedWork& item : left) {
    if (item.event) item.event->finish(Status(ErrorCode::kCancelled, "the device was closed"));
  }
}

void HostQueue::add(QueuedWork item) {
  {
    const std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
  }
  added_.notify_all();
}

std::shared_ptr<HostEvent> HostQueue::record() {
  auto event = std::make_shared<HostEvent>();
  if (thread_) {
    add({nullptr, event});
  } else {
    event->finish(std::exchange(failed_, Status()));
  }
  return event;
}

void HostQueue::wait(std::shared_ptr<HostEvent> event) {
  push([event = std::move(event)]() -> Status {
    event->await(-1);
    return {};
  });
}

void HostQueue::run() {
  while (true) {
    QueuedWork item;
    {
      std::unique_lock lock(mutex_);
      added_.wait(lock, [&] { return ending_ || !items_.empty(); });
      if (ending_) return;
      item = std::move(items_.front());
      items_.pop_front();
    }
    if (item.event) {
      const double began = std::exchange(began_, std::nullopt).value_or(steady_seconds());
      item.event->finish(std::exchange(failed_, Status()), began);
      continue;
    }
    if (!began_) began_ = steady_seconds();
    attempt(item.work);
  }
}

Status HostQueue::out_of_memory(const std::exception& thrown) {
  return Status(resource_exhausted("the host could not do the work: {}", thrown.what()));
}

}  // namespace tenon::backend
