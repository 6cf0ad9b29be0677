// OpenDevice: the backend's device, as long as it is not lost. Part of Device.
//
// A device is lost by its own word (B12) or when the host gives it up. Then every call gets the
// error, and the device is closed as soon as no call of it is left.
//
// Thread-safety: everything, from any thread.
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
  /// Nanoseconds that a piece of work may take the device, in the calls that give it and after
  /// them, before the device counts as lost; 0: any. With a limit, copies from and to the caller's
  /// memory go through memory of the runtime, which a device that hangs may still write when the
  /// caller has long had his error.
  int64_t time_limit = 0;
  /// Nanoseconds to wait for a device that is still open (B11): clients close their devices when
  /// the last of their work is done, soon after their destruction.
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
  /// Whether the device must not be given memory of the caller.
  bool stages() const { return limits_.time_limit > 0; }
  /// Whether this process was forked from the one that opened the device.
  bool is_forked() const { return birth_.is_elsewhere(); }

  /// The error that every call ends with since the device is lost; OK as long as it is not.
  Status lost() const;
  /// A share of the device, for a call of it. Error if the device is lost.
  Result<Share> use() const;
  /// Marks the device as lost if `status`, an answer of its own, says so. Returns `status`.
  Status note_loss(Status status);
  /// `by_host`: the host gives the device up, which may go on.
  Status lose(Status why, bool by_host);
  /// Called once, when the device is lost, with no lock held. Set before the first work.
  void on_loss(std::function<void()> heard) { heard_ = std::move(heard); }

  /// After work has ended with the loss of the device: waits until it touches no memory of the
  /// host, or keeps what it may touch until the device is closed.
  void await_quiescence(const std::shared_ptr<const void>& work);
  /// A view of its memory: the device is not closed while it lives, even if it is lost; null if it
  /// is lost already.
  std::shared_ptr<const void> keep_open() const;
  /// Whether somebody has such a view.
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
  bool given_up_ = false;  // The host gave the device up: it may go on.
  Share device_;           // Null once it is lost.
};

}  // namespace tenon::runtime
