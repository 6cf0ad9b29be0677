// OpenDevice: holds the backend's device until it is lost. Part of Device.
//
// A device is lost when it says so (B12) or when the host abandons it. From then on every call
// returns the error, and the device is closed when its last call has returned.
//
// Thread-safety: all functions, from any thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "core/runtime/submission/device_session.h"
#include "core/runtime/submission/forked.h"

namespace tenon::runtime {

struct DeviceLimits {
  /// Nanoseconds that one piece of work may take, its submission included, before the device counts
  /// as lost; 0: no limit. Under a limit, copies from and to the caller's memory are staged in
  /// memory of the runtime, since a device that hangs may write there after the caller has got the
  /// error.
  int64_t time_limit = 0;
  /// Nanoseconds to wait for a device that is still open (B11): a client that is destroyed closes
  /// its devices when the last of its work has completed.
  int64_t open_wait = 5'000'000'000;
};

class OpenDevice {
 public:
  using Share = std::shared_ptr<backend::Device>;

  static Result<std::unique_ptr<OpenDevice>> open(std::shared_ptr<backend::Backend> backend,
                                                  size_t index, const std::string& name,
                                                  const DeviceLimits& limits);

  const std::string& name() const { return name_; }
  int64_t time_limit() const { return limits_.time_limit; }
  /// Whether copies from and to the caller's memory are staged.
  bool stages() const { return limits_.time_limit > 0; }
  /// Whether this process was forked from the one that opened the device.
  bool is_forked() const { return birth_.is_elsewhere(); }

  /// The error that every call returns because the device is lost; OK if it is not.
  Status lost() const;
  /// Returns the device for one call. Error if the device is lost.
  Result<Share> use() const;
  /// Marks the device as lost if `status`, which the device returned, says so. Returns `status`.
  Status note_loss(Status status);
  /// Marks the device as lost. `by_host`: the host abandons it, and it may still run.
  Status lose(Status why, bool by_host);
  /// Sets what is called once, without a lock, when the device is lost. Call it before the first
  /// work.
  void on_loss(std::function<void()> heard) { heard_ = std::move(heard); }

  /// Makes host memory safe after the loss of the device ended `work`: waits until the device no
  /// longer accesses it, or keeps `work` until the device is closed.
  void await_quiescence(const std::shared_ptr<const void>& work);
  /// Returns an owner of a view of device memory: while it lives, the device is not closed, even if
  /// it is lost. Null if the device is lost already.
  std::shared_ptr<const void> keep_open() const;
  /// Whether such an owner lives.
  bool is_viewed() const { return *views_ > 0; }

 private:
  OpenDevice(std::string name, const DeviceLimits& limits)
      : name_(std::move(name)), limits_(limits) {}

  const Birth birth_;
  const std::string name_;
  const DeviceLimits limits_;
  std::shared_ptr<DeviceSession> session_;
  std::function<void()> heard_;
  const std::shared_ptr<std::atomic<int>> views_ = std::make_shared<std::atomic<int>>(0);
  mutable std::mutex mutex_;
  Status lost_;
  std::atomic<bool> is_lost_ = false;   // Set once `lost_` says why.
  std::atomic<bool> given_up_ = false;  // The host abandoned the device, which may still run.
  Share device_;                        // Null once it is lost.
};

}  // namespace tenon::runtime
