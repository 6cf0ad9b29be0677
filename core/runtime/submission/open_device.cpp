#include "core/runtime/submission/open_device.h"

#include <chrono>

namespace tenon::runtime {

Result<std::unique_ptr<OpenDevice>> OpenDevice::open(std::shared_ptr<backend::Backend> backend,
                                                     size_t index, const std::string& name,
                                                     const DeviceLimits& limits) {
  auto device = std::unique_ptr<OpenDevice>(new OpenDevice(name, limits));
  TENON_ASSIGN(device->session_,
               DeviceSession::open(std::move(backend), index, name, limits.open_wait));
  device->device_ = device->session_->device();
  return device;
}

Status OpenDevice::lost() const {
  TENON_TRY(birth_.check());
  if (!is_lost_) return {};
  const std::lock_guard lock(mutex_);
  return lost_;
}

Result<OpenDevice::Share> OpenDevice::use() const {
  TENON_TRY(birth_.check());
  const std::lock_guard lock(mutex_);
  if (!lost_.ok()) return tl::make_unexpected(lost_);
  return device_;
}

Status OpenDevice::note_loss(Status status) {
  if (status.code() != ErrorCode::kUnavailable) return status;
  return lose(std::move(status), /*by_host=*/false);
}

Status OpenDevice::lose(Status why, bool by_host) {
  Share last;  // Dropped without the lock: it may be the last one.
  {
    const std::lock_guard lock(mutex_);
    if (!lost_.ok()) return lost_;
    lost_ = std::move(why);
    given_up_ = by_host;
    is_lost_ = true;
    session_->set_lost();
    last = std::move(device_);
  }
  if (heard_) heard_();
  return lost();
}

void OpenDevice::await_quiescence(const std::shared_ptr<const void>& work) {
  if (!given_up_) return;
  if (stages()) return session_->keep_until_closed(work);
  // Viewers of its memory keep it open, and may wait for this very work. From now on host memory
  // that it touches is kept; it has had time to end its work.
  constexpr std::chrono::milliseconds kTurn(10);
  constexpr int kMostTurns = 100;
  for (int turn = 0; !session_->await_closed(kTurn); ++turn) {
    if (*views_ > 0 && turn >= kMostTurns) return session_->keep_until_closed(work);
  }
}

std::shared_ptr<const void> OpenDevice::keep_open() const {
  const auto device = use();
  if (!device) return nullptr;
  ++*views_;
  return {device->get(), [share = *device, views = views_](const void*) { --*views; }};
}

}  // namespace tenon::runtime
