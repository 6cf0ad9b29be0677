// core/runtime/: runs Programs on open devices: clients, buffers, events, executables.
//
// Client: the opened devices of one backend.
//
//   auto client = Client::open(make_interpreter_backend());
//   auto executable = (*client)->load((*client)->devices()[0], compiled);
//   auto x = buffer_from_host(device, MemoryKind::kDevice, {data, shape});
//   auto run = (*executable)->execute({x->buffer});
//   Result<Literal> y = run->results[0]->to_literal();
//
// Thread-safety: all functions may be called from any thread. Devices, buffers and executables keep
// the parts of the client that they need, so they may be used after the Client is destroyed.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "core/runtime/executable.h"

namespace tenon::runtime {

struct ClientOptions {
  DeviceLimits limits;
  /// Indices of the devices to open; empty: all.
  std::vector<size_t> devices;
  size_t callback_threads = 2;
};

/// Waits at most `wait` nanoseconds until every device that this process opened is closed; devices
/// of destroyed clients are closed on other threads. Call it before the process ends, because
/// layers complete their files when their devices are closed. Returns false if some devices are
/// still open.
bool await_all_closed(int64_t wait);

class Client {
 public:
  /// Errors: those of the backend; kNotFound if the backend has no device of a given index.
  static Result<std::shared_ptr<Client>> open(std::shared_ptr<backend::Backend> backend,
                                              const ClientOptions& options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  backend::Backend& backend() const { return *backend_; }
  const std::shared_ptr<backend::Backend>& shared_backend() const { return backend_; }
  /// The devices as they were opened first.
  const std::vector<std::shared_ptr<Device>>& devices() const { return devices_; }
  /// The device of that index in devices(), or the one that took its place: if it is lost, it is
  /// opened again, as another Device. What was on the lost one stays lost. Errors: kUnavailable
  /// with the loss, and why the device cannot be opened now; a later call tries again.
  Result<std::shared_ptr<Device>> live_device(size_t place);
  /// The same without opening: it may be lost.
  std::shared_ptr<Device> last_device(size_t place) const;

 private:
  Client(std::shared_ptr<backend::Backend> backend, const ClientOptions& options)
      : backend_(std::move(backend)), limits_(options.limits), pool_(options.callback_threads) {}

  const std::shared_ptr<backend::Backend> backend_;
  const DeviceLimits limits_;
  const CallbackPool pool_;
  std::vector<std::shared_ptr<Device>> devices_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Device>> last_devices_;
};

}  // namespace tenon::runtime
