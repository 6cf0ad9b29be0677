#include "core/runtime/device.h"

namespace tenon::runtime {

// --- Worker

Worker::Worker() : thread_([this] { run(); }) {}

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  added_.notify_all();
  thread_.join();
}

void Worker::post(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  added_.notify_all();
}

void Worker::run() {
  while (true) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      added_.wait(lock, [&] { return ending_ || !work_.empty(); });
      if (work_.empty()) return;
      work = std::move(work_.front());
      work_.pop_front();
    }
    work();
  }
}

// --- Device

Result<std::shared_ptr<Device>> Device::open(std::shared_ptr<backend::Backend> backend,
                                             size_t index, backend::DeviceInfo info,
                                             CallbackPool pool, const DeviceLimits& limits) {
  TENON_TRY(check(info.target));
  auto state = std::shared_ptr<Device>(new Device(std::move(info), std::move(pool), limits),
                                       &Device::dispose);
  TENON_ASSIGN(state->device_, backend->open(index));
  state->backend_ = std::move(backend);
  state->number_ = index;
  const std::weak_ptr<Device> weak = state;
  for (uint32_t space = 0; space < state->info_.target.spaces.size(); ++space) {
    Allocator::Device device;
    device.device = state->device_.get();
    device.one_at_a_time = &state->one_at_a_time_;
    device.drain = [weak]() -> Status {
      const auto self = weak.lock();
      return self == nullptr ? Status() : self->drain();
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

std::optional<size_t> Device::space_of(backend::SpaceKind kind) const {
  for (size_t i = 0; i < info_.target.spaces.size(); ++i) {
    if (info_.target.spaces[i].kind == kind) return i;
  }
  return {};
}

Device::~Device() {
  worker_.reset();
  completions_.reset();
  for (const auto& space : spaces_) space->abandon();
}

Status Device::lost() const {
  const std::lock_guard lock(lost_mutex_);
  return lost_;
}

Status Device::noted(Status status) {
  if (status.code() != ErrorCode::kUnavailable) return status;
  const std::lock_guard lock(lost_mutex_);
  if (lost_.ok()) lost_ = status;
  return status;
}

void Device::post(Work work, Done done, std::shared_ptr<std::atomic<uint32_t>> stop) {
  const auto self = shared_from_this();
  worker_->post([self, work = std::move(work), done = std::move(done), stop = std::move(stop)] {
    Status status = self->lost();
    if (status.ok()) status = self->noted(work());
    const auto event = status.code() == ErrorCode::kUnavailable
                           ? Result<backend::EventHandle>(tl::make_unexpected(status))
                           : self->record();
    if (!event) {
      Status why = status.ok() ? event.error() : status;
      self->completions_->post([done, why = std::move(why)] { done(why); });
      return;
    }
    // The event is waited for even if `work` failed on its way: what it gave still runs.
    self->completions_->post([self, done, stop, event = *event, status = std::move(status)] {
      Status outcome = self->outcome(event, stop.get());
      self->device_->release(event);
      done(status.ok() ? std::move(outcome) : status);
    });
  });
}

Result<backend::EventHandle> Device::record() {
  constexpr int kTries = 3;
  Status why;
  for (int i = 0; i < kTries; ++i) {
    auto event = device_->record(0);
    if (event) return event;
    why = noted(event.error());
    if (why.code() == ErrorCode::kUnavailable) break;
  }
  if (why.code() != ErrorCode::kUnavailable) {
    why = noted(make_error(ErrorCode::kUnavailable, "{}: no event can be recorded: {}", info_.name,
                           why.message()));
  }
  return tl::make_unexpected(std::move(why));
}

Status Device::outcome(backend::EventHandle event, std::atomic<uint32_t>* stop) {
  constexpr int64_t kGrace = 100'000'000;
  if (Status gone = lost(); !gone.ok()) {
    // A device that was stopped may still be at what it was given.
    static_cast<void>(device_->await(event, kGrace));
    return gone;
  }
  const auto as_status = [&](const Result<bool>& done) {
    return done ? Status() : noted(done.error());
  };
  if (limits_.time_limit <= 0) return as_status(device_->await(event, -1));
  const Result<bool> done = device_->await(event, limits_.time_limit);
  if (!done || *done) return as_status(done);
  if (stop != nullptr) {
    stop->store(1);
    static_cast<void>(device_->await(event, kGrace));
  }
  return noted(make_error(ErrorCode::kUnavailable,
                          "{}: work took longer than the time limit of {} ms; the device counts "
                          "as lost",
                          info_.name, limits_.time_limit / 1'000'000));
}

Status Device::drain_queue() {
  if (Status gone = lost(); !gone.ok()) return gone;
  const auto event = record();
  if (!event) return event.error();
  Status status = outcome(*event, nullptr);
  device_->release(*event);
  return status;
}

Status Device::drain() {
  if (Status gone = lost(); !gone.ok()) return gone;
  Promise promise(pool_);
  const Event event = promise.event();
  auto shared = std::make_shared<Promise>(std::move(promise));
  post([]() -> Status { return {}; }, [shared](Status status) { shared->set(std::move(status)); });
  return event.await();
}

Result<backend::ModuleHandle> Device::load(std::string_view binary, backend::Kernels kernels) {
  TENON_TRY(lost());
  const std::lock_guard lock(one_at_a_time_);
  auto module = device_->load(binary, kernels);
  if (!module) return tl::make_unexpected(noted(module.error()));
  return module;
}

void Device::unload(backend::ModuleHandle module) {
  const auto self = shared_from_this();
  post([]() -> Status { return {}; },
       [self, module](const Status&) {
         const std::lock_guard lock(self->one_at_a_time_);
         self->device_->unload(module);
       });
}

}  // namespace tenon::runtime
