// core/runtime/: runs Programs on open devices: clients, buffers, events, executables.
//
// Client: the devices of one backend, opened.
//
//   auto client = Client::open(make_interpreter_backend());
//   auto executable = (*client)->load((*client)->devices()[0], compiled);
//   auto x = buffer_from_host(device, MemoryKind::kDevice, {data, shape});
//   auto run = (*executable)->execute({x->buffer});
//   Result<Literal> y = run->results[0]->to_literal();
//
// Thread-safety: everything, from any thread. Devices, buffers and executables keep what they need
// of it: they may be used after the Client is gone.
#pragma once

#include <memory>
#include <vector>

#include "core/runtime/executable.h"

namespace tenon::runtime {

struct ClientOptions {
  DeviceLimits limits;
  /// Numbers of the devices to open; empty: all.
  std::vector<size_t> devices;
  size_t callback_threads = 2;
};

/// Waits until every device that this process had opened is closed, for some nanoseconds at most:
/// devices of destroyed clients are closed on other threads. For a process that is about to end,
/// since layers write the ends of their files then. False if some are open still.
bool await_all_closed(int64_t wait);

class Client {
 public:
  /// Errors: those of the backend; kNotFound if it has no device of a number.
  static Result<std::shared_ptr<Client>> open(std::shared_ptr<backend::Backend> backend,
                                              const ClientOptions& options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  backend::Backend& backend() const { return *backend_; }
  const std::shared_ptr<backend::Backend>& shared_backend() const { return backend_; }
  const std::vector<std::shared_ptr<Device>>& devices() const { return devices_; }

 private:
  explicit Client(std::shared_ptr<backend::Backend> backend) : backend_(std::move(backend)) {}

  const std::shared_ptr<backend::Backend> backend_;
  std::vector<std::shared_ptr<Device>> devices_;
};

}  // namespace tenon::runtime
