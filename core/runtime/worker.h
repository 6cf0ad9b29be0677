// A thread that does what it is given, in order. Of Device.
//
// Thread-safety: `post` from any thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace tenon::runtime {

class Worker {
 public:
  Worker();
  /// Does what is left first. Not on the thread itself.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Work that throws has ended with that; promises that it held are broken, and say so.
  void post(std::function<void()> work);
  bool is_this_thread() const { return thread_.get_id() == std::this_thread::get_id(); }

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<std::function<void()>> work_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace tenon::runtime
