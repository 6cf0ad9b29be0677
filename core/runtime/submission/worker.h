// core/runtime/submission/: the threads that call a device, and what a lost device leaves.
//
// A thread that does the work posted to it, in order. Part of Device.
//
// Thread-safety: `post` from any thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace tenon::runtime {

class Worker {
 public:
  Worker();
  /// Does the remaining work first. Must not run on the thread itself.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  using Work = std::function<void()>;
  /// Work that throws has ended with that; promises that it held are broken, and say so. False if
  /// the thread was left.
  bool post(Work work);
  /// While it lives the thread begins nothing: its owner does work in its place.
  class InlineSlot {
   public:
    explicit InlineSlot(Worker& worker) : worker_(worker) {}
    ~InlineSlot();
    InlineSlot(const InlineSlot&) = delete;
    InlineSlot& operator=(const InlineSlot&) = delete;

   private:
    Worker& worker_;
  };
  /// Null if the thread is at work, or has some before it.
  std::unique_ptr<InlineSlot> claim();
  /// Abandons the thread in its current work, for good, and gives the work not begun.
  std::deque<Work> abandon();
  bool is_this_thread() const { return thread_.get_id() == std::this_thread::get_id(); }

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<Work> work_;
  bool busy_ = false;  // At work, or claimed.
  bool ending_ = false;
  bool abandoned_ = false;
  std::thread thread_;
};

}  // namespace tenon::runtime
