// DeviceSession owns an open backend device until it is closed; it may outlive the runtime's Device
// when work is abandoned.
//
// Thread-safety: all functions, from any thread.
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
  /// Opens device `index`; waits at most `wait` nanoseconds while it is open elsewhere (B11).
  /// Errors: those of the backend; kAlreadyExists if it stays open.
  static Result<std::shared_ptr<DeviceSession>> open(std::shared_ptr<backend::Backend> backend,
                                                     size_t index, const std::string& name,
                                                     int64_t wait);

  /// Returns the device; may be called once. The device is closed when the last owner goes: at
  /// once, or on a thread of its own if the device is lost, since closing it may take long.
  std::shared_ptr<backend::Device> device();

  /// Call it before the owners of a lost device go.
  void set_lost() { lost_ = true; }
  /// Keeps `thing` until the device is closed: the device may still access it although its work was
  /// abandoned.
  void keep_until_closed(std::shared_ptr<const void> thing);
  /// Waits until the device is closed.
  void await_closed() const { closed_.wait(); }
  /// Waits for at most `time`; false if the device is still open then.
  bool await_closed(std::chrono::nanoseconds time) const {
    return closed_.wait_for(time) == std::future_status::ready;
  }
  /// Waits at most `wait` nanoseconds until no device of the process is open; false if some still
  /// are.
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
