#include "core/runtime/worker.h"

#include <exception>

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

void Worker::post(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  added_.notify_all();
}

void Worker::run() {
  while (true) {
    std::function<void()> work;
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
