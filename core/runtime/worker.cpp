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

bool Worker::do_here(const Work& work) {
  {
    const std::lock_guard lock(mutex_);
    if (busy_ || left_ || ending_ || !work_.empty()) return false;
    busy_ = true;
  }
  attempt(work);
  bool awaited = false;
  {
    const std::lock_guard lock(mutex_);
    busy_ = false;
    awaited = ending_ || !work_.empty();
  }
  if (awaited) added_.notify_all();
  return true;
}

void Worker::attempt(const Work& work) {
  try {
    work();
  } catch (const std::exception&) {  // No memory; whoever waits hears of the broken promise.
  }
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
    attempt(work);
    work = nullptr;  // What it kept goes before anybody else's turn.
    const std::lock_guard lock(mutex_);
    busy_ = false;
  }
}

}  // namespace tenon::runtime
