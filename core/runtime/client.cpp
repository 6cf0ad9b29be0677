#include "core/runtime/client.h"

#include <algorithm>
#include <numeric>

namespace tenon::runtime {

Result<std::shared_ptr<Client>> Client::open(std::shared_ptr<backend::Backend> backend,
                                             const ClientOptions& options) {
  auto client = std::shared_ptr<Client>(new Client(std::move(backend), options));
  TENON_ASSIGN(const std::vector<backend::DeviceInfo> found, client->backend_->devices());
  std::vector<size_t> numbers = options.devices;
  if (numbers.empty()) {
    numbers.resize(found.size());
    std::iota(numbers.begin(), numbers.end(), size_t{0});
  }
  for (const size_t number : numbers) {
    if (number >= found.size()) {
      return not_found("backend {} has {} devices, there is no number {}", client->backend_->name(),
                       found.size(), number);
    }
    TENON_ASSIGN(auto device, Device::open(client->backend_, number, found[number], client->pool_,
                                           client->limits_));
    client->devices_.push_back(std::move(device));
  }
  client->last_devices_ = client->devices_;
  return client;
}

Result<std::shared_ptr<Device>> Client::live_device(size_t place) {
  // While others have views of its memory, a lost device stays open: callers wait for that only
  // briefly.
  constexpr int64_t kMostWait = 1'000'000'000;
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Device>& device = last_devices_[place];
  const Status lost = device->lost();
  if (lost.code() != ErrorCode::kUnavailable) return device;
  DeviceLimits limits = limits_;
  limits.open_wait = std::min(limits.open_wait, kMostWait);
  auto opened = Device::open(backend_, device->number(), device->info(), pool_, limits);
  if (!opened) {
    return make_error(ErrorCode::kUnavailable, "{}; it cannot be opened again now: {}",
                      lost.message(), opened.error().message());
  }
  device = *std::move(opened);
  return device;
}

std::shared_ptr<Device> Client::last_device(size_t place) const {
  const std::lock_guard lock(mutex_);
  return last_devices_[place];
}

Client::~Client() = default;

bool await_all_closed(int64_t wait) { return DeviceSession::await_all_closed(wait); }

}  // namespace tenon::runtime
