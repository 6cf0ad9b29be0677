// core/runtime/submission/: the threads that call a device, and the handling of lost devices.
//
// Worker: a thread that does posted work in order. Part of Device.
//
// Thread-safety: any thread may call `post`.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace tenon::runtime {

class Worker {
 public:
  Worker();
  /// Does the remaining work first. Must not run on the thread itself.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  using Work = std::function<void()>;
  /// Appends work. Work that throws ends there; promises that it holds report that they are broken.
  /// False if the thread was abandoned.
  bool post(Work work);
  /// While a slot lives, the thread begins no work: the slot's owner works in its place.
  class InlineSlot {
   public:
    explicit InlineSlot(Worker& worker) : worker_(&worker) {}
    ~InlineSlot() { reset(); }
    InlineSlot(InlineSlot&& other) noexcept : worker_(std::exchange(other.worker_, nullptr)) {}
    InlineSlot& operator=(InlineSlot&&) = delete;
    /// Gives the slot back.
    void reset();

   private:
    Worker* worker_;
  };
  /// Takes the slot; nothing if the thread is busy or has work queued.
  std::optional<InlineSlot> claim();
  /// Abandons the thread in its current work, for good. Returns the work that has not begun.
  std::deque<Work> abandon();
  bool is_this_thread() const { return thread_.get_id() == std::this_thread::get_id(); }

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<Work> work_;
  bool busy_ = false;  // Doing work, or claimed.
  bool ending_ = false;
  bool abandoned_ = false;
  std::thread thread_;
};

}  // namespace tenon::runtime
