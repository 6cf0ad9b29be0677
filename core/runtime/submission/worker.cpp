#include "core/runtime/submission/worker.h"

#include <exception>
#include <utility>

namespace tenon::runtime {

Worker::Worker() : thread_([this] { run(); }) {}

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  added_.notify_all();
  thread_.join();
}

bool Worker::post(Work work) {
  {
    const std::lock_guard lock(mutex_);
    if (abandoned_) return false;
    work_.push_back(std::move(work));
  }
  added_.notify_all();
  return true;
}

std::deque<Worker::Work> Worker::abandon() {
  const std::lock_guard lock(mutex_);
  abandoned_ = true;
  return std::exchange(work_, {});
}

std::optional<Worker::InlineSlot> Worker::claim() {
  const std::lock_guard lock(mutex_);
  if (busy_ || abandoned_ || ending_ || !work_.empty()) return {};
  busy_ = true;
  return InlineSlot(*this);
}

void Worker::InlineSlot::reset() {
  Worker* const worker = std::exchange(worker_, nullptr);
  if (worker == nullptr) return;
  bool awaited = false;
  {
    const std::lock_guard lock(worker->mutex_);
    worker->busy_ = false;
    awaited = worker->ending_ || !worker->work_.empty();
  }
  if (awaited) worker->added_.notify_all();
}

void Worker::run() {
  while (true) {
    Work work;
    {
      std::unique_lock lock(mutex_);
      added_.wait(lock, [&] { return !busy_ && (ending_ || !work_.empty()); });
      if (work_.empty()) return;
      work = std::move(work_.front());
      work_.pop_front();
      busy_ = true;
    }
    try {
      work();
    } catch (const std::exception&) {  // No memory; waiters get the error of the broken promise.
    }
    work = nullptr;  // Its captures are destroyed before the slot is free.
    const std::lock_guard lock(mutex_);
    busy_ = false;
  }
}

}  // namespace tenon::runtime
