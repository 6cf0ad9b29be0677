#include "core/runtime/worker.h"

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
    if (left_) return false;
    work_.push_back(std::move(work));
  }
  added_.notify_all();
  return true;
}

std::deque<Worker::Work> Worker::leave() {
  const std::lock_guard lock(mutex_);
  left_ = true;
  return std::exchange(work_, {});
}

void Worker::run() {
  while (true) {
    Work work;
    {
      std::unique_lock lock(mutex_);
      added_.wait(lock, [&] { return ending_ || !work_.empty(); });
      if (work_.empty()) return;
      work = std::move(work_.front());
      work_.pop_front();
    }
    try {
      work();
    } catch (const std::exception&) {  // No memory; whoever waits hears of the broken promise.
    }
  }
}

}  // namespace tenon::runtime
