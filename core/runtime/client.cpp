#include "core/runtime/client.h"

#include <numeric>

namespace tenon::runtime {

Result<std::shared_ptr<Client>> Client::open(std::shared_ptr<backend::Backend> backend,
                                             const ClientOptions& options) {
  auto client = std::shared_ptr<Client>(new Client(std::move(backend)));
  TENON_ASSIGN(const std::vector<backend::DeviceInfo> found, client->backend_->devices());
  std::vector<size_t> numbers = options.devices;
  if (numbers.empty()) {
    numbers.resize(found.size());
    std::iota(numbers.begin(), numbers.end(), size_t{0});
  }
  const CallbackPool pool(options.callback_threads);
  for (const size_t number : numbers) {
    if (number >= found.size()) {
      return not_found("backend {} has {} devices, there is no number {}", client->backend_->name(),
                       found.size(), number);
    }
    TENON_ASSIGN(auto device,
                 Device::open(client->backend_, number, found[number], pool, options.limits));
    client->devices_.push_back(std::move(device));
  }
  return client;
}

Client::~Client() = default;

bool await_all_closed(int64_t wait) { return DeviceSession::await_all_closed(wait); }

}  // namespace tenon::runtime
