// DeviceSession owns an open backend device until it is closed; it may outlive the runtime's Device
// when work is abandoned.
//
// Thread-safety: everything, from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <vector>

#include "core/backend/backend.h"

namespace tenon::runtime {

class DeviceSession : public std::enable_shared_from_this<DeviceSession> {
 public:
  /// Opens device `index`; one that is open already is waited for, for some nanoseconds (B11).
  /// Errors: those of the backend; kAlreadyExists if it stays open.
  static Result<std::shared_ptr<DeviceSession>> open(std::shared_ptr<backend::Backend> backend,
                                                     size_t index, const std::string& name,
                                                     int64_t wait);

  /// The device. It is closed when the last share is gone: at once, or, of a lost device, which may
  /// take its time, on a thread of its own. Once.
  std::shared_ptr<backend::Device> device();

  /// Before the shares of a lost device are dropped.
  void set_lost() { lost_ = true; }
  /// What the device might touch although nobody waits for it any more: kept until it is closed.
  void keep_until_closed(std::shared_ptr<const void> thing);
  /// Until it is closed.
  void await_closed() const { closed_.wait(); }
  /// Whether that was within the time.
  bool await_closed(std::chrono::nanoseconds time) const {
    return closed_.wait_for(time) == std::future_status::ready;
  }
  /// Until no device of the process is open; false if some are after the nanoseconds.
  static bool await_all_closed(int64_t wait);

 private:
  DeviceSession() = default;
  void close();

  std::shared_ptr<backend::Backend> backend_;
  size_t index_ = 0;
  std::unique_ptr<backend::Device> device_;
  std::atomic<bool> lost_ = false;
  std::mutex mutex_;
  std::vector<std::shared_ptr<const void>> kept_;
  bool is_closed_ = false;
  std::promise<void> closing_;
  std::shared_future<void> closed_ = closing_.get_future().share();
};

}  // namespace tenon::runtime
