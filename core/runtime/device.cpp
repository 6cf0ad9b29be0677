#include "core/runtime/device.h"

#include <cstring>
#include <new>

namespace tenon::runtime {

Result<std::shared_ptr<Device>> Device::open(std::shared_ptr<backend::Backend> backend,
                                             size_t index, backend::DeviceInfo info,
                                             CallbackPool pool, const DeviceLimits& limits) {
  TENON_TRY(check(info.target));
  auto state = std::shared_ptr<Device>(new Device(std::move(info), std::move(pool), limits),
                                       &Device::dispose);
  TENON_ASSIGN(state->opening_,
               Opening::open(std::move(backend), index, state->info_.name, limits.open_wait));
  state->device_ = state->opening_->device();
  state->number_ = index;
  const std::weak_ptr<Device> weak = state;
  for (uint32_t space = 0; space < state->info_.target.spaces.size(); ++space) {
    Allocator::Device device;
    device.use = [weak]() -> Result<Share> {
      const auto self = weak.lock();
      if (self == nullptr) return failed_precondition("the device is closed");
      return self->use();
    };
    device.one_at_a_time = &state->one_at_a_time_;
    device.drain = [weak]() -> Status {
      const auto self = weak.lock();
      return self == nullptr ? Status() : self->drain();
    };
    device.noted = [weak](Status status) {
      const auto self = weak.lock();
      return self == nullptr ? status : self->noted(std::move(status));
    };
    state->spaces_.push_back(
        std::make_shared<Allocator>(std::move(device), space, state->info_.target.spaces[space]));
  }
  state->completions_.emplace();
  state->worker_.emplace();
  return state;
}

void Device::dispose(Device* device) {
  const auto ends_itself = [](const std::optional<Worker>& worker) {
    return worker && worker->is_this_thread();
  };
  if (!ends_itself(device->worker_) && !ends_itself(device->completions_)) {
    delete device;
    return;
  }
  const CallbackPool pool = device->pool_;
  pool.run([device] { delete device; });
}

Device::~Device() {
  worker_.reset();
  completions_.reset();
  for (const auto& space : spaces_) space->abandon();
}

std::optional<size_t> Device::space_of(backend::SpaceKind kind) const {
  for (size_t i = 0; i < info_.target.spaces.size(); ++i) {
    if (info_.target.spaces[i].kind == kind) return i;
  }
  return {};
}

// --- Loss

Status Device::lost() const {
  const std::lock_guard lock(lost_mutex_);
  return lost_;
}

Result<Device::Share> Device::use() const {
  const std::lock_guard lock(lost_mutex_);
  if (!lost_.ok()) return tl::make_unexpected(lost_);
  return device_;
}

Status Device::noted(Status status) {
  if (status.code() != ErrorCode::kUnavailable) return status;
  return lose(std::move(status), /*by_host=*/false);
}

Status Device::lose(Status why, bool by_host) {
  Share last;  // Dropped without the lock: it may be the last one.
  const std::lock_guard lock(lost_mutex_);
  if (!lost_.ok()) return lost_;
  lost_ = std::move(why);
  given_up_ = by_host;
  opening_->set_lost();
  last = std::move(device_);
  return lost_;
}

void Device::settle(const std::shared_ptr<const void>& work) {
  {
    const std::lock_guard lock(lost_mutex_);
    if (!given_up_) return;
  }
  if (stages()) {
    opening_->park(work);
  } else {
    opening_->await_closed();
  }
}

// --- Work

void Device::post(Work work, Done done, std::shared_ptr<std::atomic<uint32_t>> stop) {
  auto posted = std::make_shared<Posted>(Posted{std::move(work), std::move(done), std::move(stop)});
  worker_->post([self = shared_from_this(), posted = std::move(posted)] { self->give(posted); });
}

void Device::give(const std::shared_ptr<Posted>& posted) {
  stop_ = posted->stop.get();
  waiting_since_.reset();
  Status status = lost();
  if (status.ok()) {
    try {
      status = posted->work();
    } catch (const std::bad_alloc&) {
      status = Status(resource_exhausted("the host has no memory for the work of {}", info_.name));
    }
  }
  stop_ = nullptr;
  // The event is waited for even if the work failed on its way: what it gave still runs.
  const auto event = record();
  completions_->post([self = shared_from_this(), posted, event = event.value_or(0),
                      status = status.ok() && !event ? event.error() : std::move(status)] {
    self->finish(posted, event, status);
  });
}

void Device::finish(const std::shared_ptr<Posted>& posted, backend::EventHandle event,
                    Status given) {
  if (event != 0) {
    Status status = outcome(event, limits_.time_limit, posted->stop.get());
    if (const auto device = use()) (*device)->release(event);
    if (given.ok()) given = std::move(status);
  }
  settle(posted);
  posted->done(given);
}

Result<backend::EventHandle> Device::record() {
  constexpr int kTries = 3;
  Status why;
  for (int i = 0; i < kTries; ++i) {
    TENON_ASSIGN(const Share device, use());
    auto event = device->record(0);
    if (event) return event;
    why = noted(event.error());
  }
  return tl::make_unexpected(
      lose(make_error(ErrorCode::kUnavailable, "{}: no event can be recorded: {}", info_.name,
                      why.message())
               .status(),
           /*by_host=*/true));
}

Status Device::outcome(backend::EventHandle event, int64_t limit, std::atomic<uint32_t>* stop) {
  TENON_ASSIGN(const Share device, use());
  const Result<bool> done = device->await(event, limit > 0 ? limit : -1);
  if (!done) return noted(done.error());
  return *done ? Status() : overrun(*device, event, stop);
}

Status Device::overrun(backend::Device& device, backend::EventHandle event,
                       std::atomic<uint32_t>* stop) {
  if (stop != nullptr) {
    // Time for a backend of this process to leave its loop (B27).
    constexpr int64_t kGrace = 100'000'000;
    stop->store(1);
    static_cast<void>(device.await(event, kGrace));
  }
  const bool ended = device.abort().ok();
  return lose(make_error(ErrorCode::kUnavailable,
                         "{}: work took longer than the time limit of {} ms; the device counts as "
                         "lost",
                         info_.name, limits_.time_limit / 1'000'000)
                  .status(),
              /*by_host=*/!ended);
}

Status Device::drain_queue() {
  using std::chrono::steady_clock;
  TENON_ASSIGN(const backend::EventHandle event, record());
  Status status;
  if (limits_.time_limit > 0) {
    // A loop that the host walks is one piece of work, however short its steps are.
    if (!waiting_since_) waiting_since_ = steady_clock::now();
    const std::chrono::nanoseconds waited = steady_clock::now() - *waiting_since_;
    const int64_t left = limits_.time_limit - waited.count();
    TENON_ASSIGN(const Share device, use());
    status = left > 0 ? outcome(event, left, stop_) : overrun(*device, event, stop_);
  } else {
    status = outcome(event, 0, stop_);
  }
  if (const auto device = use()) (*device)->release(event);
  return status;
}

Status Device::copy(const backend::Place& to, const backend::Place& from, int64_t bytes) {
  if (bytes == 0) return {};
  if (to.on_host() && from.on_host()) {
    TENON_TRY(drain_queue());
    std::memcpy(to.host, from.host, static_cast<size_t>(bytes));
    return {};
  }
  TENON_ASSIGN(const Share device, use());
  return noted(device->copy(0, to, from, bytes));
}

Status Device::launch(const backend::Launch& launch) {
  TENON_ASSIGN(const Share device, use());
  return noted(device->launch(0, launch));
}

Status Device::copy_box(const backend::Place& to, const backend::Place& from,
                        const backend::Box& box) {
  if (to.on_host() && from.on_host()) {
    return Status(unimplemented("a box between two places of the host"));
  }
  TENON_ASSIGN(const Share device, use());
  return noted(device->copy_box(0, to, from, box));
}

Status Device::call(const backend::CallLaunch& call) {
  TENON_ASSIGN(const Share device, use());
  return noted(device->call(0, call));
}

Status Device::pack(std::string_view plan, uint32_t operand, const backend::Place& to,
                    const backend::Place& from) {
  TENON_ASSIGN(const Share device, use());
  return noted(device->pack(0, plan, operand, to, from));
}

Status Device::fetch(std::span<std::byte> to, const backend::Place& from) {
  const auto transit = std::make_shared<std::vector<std::byte>>(to.size());
  Status status =
      copy(backend::Place::of_host(transit->data()), from, static_cast<int64_t>(to.size()));
  if (status.ok()) status = drain_queue();
  if (!status.ok()) settle(transit);
  if (status.ok() && !to.empty()) std::memcpy(to.data(), transit->data(), to.size());
  return status;
}

Status Device::put(const backend::Place& to, std::span<const std::byte> from) {
  const auto transit = std::make_shared<std::vector<std::byte>>(from.begin(), from.end());
  Status status =
      copy(to, backend::Place::of_host(transit->data()), static_cast<int64_t>(transit->size()));
  if (status.ok()) status = drain_queue();
  if (!status.ok()) settle(transit);
  return status;
}

Status Device::drain() {
  TENON_TRY(lost());
  const auto drained = std::make_shared<Promise>(pool_);
  const Event event = drained->event();
  post([]() -> Status { return {}; }, [drained](const Status& status) { drained->set(status); });
  return event.await();
}

// --- Modules

Result<backend::ModuleHandle> Device::load(std::string_view binary, backend::Kernels kernels) {
  TENON_ASSIGN(const Share device, use());
  const std::lock_guard lock(one_at_a_time_);
  auto module = device->load(binary, kernels);
  if (!module) return tl::make_unexpected(noted(module.error()));
  return module;
}

void Device::unload(backend::ModuleHandle module) {
  // Of a lost device its close takes the module.
  post([]() -> Status { return {}; },
       [self = shared_from_this(), module](const Status&) {
         const auto device = self->use();
         if (!device) return;
         const std::lock_guard lock(self->one_at_a_time_);
         (*device)->unload(module);
       });
}

}  // namespace tenon::runtime
