#include "core/runtime/device.h"

#include <algorithm>
#include <cstring>

namespace tenon::runtime {
namespace {

std::shared_ptr<WorkItem> make_work_item(Work work, Done done, PostOptions options) {
  auto item = std::make_shared<WorkItem>();
  item->work = std::move(work);
  item->done = std::move(done);
  item->after = options.after;
  return item;
}

}  // namespace

Result<std::shared_ptr<Device>> Device::open(std::shared_ptr<backend::Backend> backend,
                                             size_t index, backend::DeviceInfo info,
                                             CallbackPool pool, const DeviceLimits& limits) {
  TENON_TRY(check(info.target));
  auto device =
      std::shared_ptr<Device>(new Device(std::move(info), std::move(pool)), &Device::dispose);
  device->number_ = index;
  TENON_ASSIGN(device->device_,
               OpenDevice::open(std::move(backend), index, device->info_.name, limits));
  device->add_queues();
  device->add_spaces();
  return device;
}

void Device::add_queues() {
  const uint32_t count = std::min(info_.target.queues, kMostQueues);
  for (uint32_t i = 0; i < count; ++i) {
    progresses_.push_back(std::make_unique<WorkProgress>(/*keeps_events=*/count > 1));
  }
  device_->on_loss([this] {
    // Threads that wait for a throttle token, or for another queue, look again. The lock excludes
    // the moment between their look and their sleep.
    {
      const std::lock_guard lock(throttle_->mutex);
    }
    throttle_->fewer.notify_all();
    for (const auto& progress : progresses_) progress->wake();
  });
  for (uint32_t i = 0; i < count; ++i) {
    queues_.push_back(std::make_unique<DeviceQueue>(i, *device_, progresses_, weak_from_this()));
  }
}

void Device::add_spaces() {
  const std::weak_ptr<Device> weak = weak_from_this();
  for (uint32_t space = 0; space < info_.target.spaces.size(); ++space) {
    Allocator::AllocatorDevice device;
    device.use = [weak]() -> Result<OpenDevice::Share> {
      const auto self = weak.lock();
      if (self == nullptr) return failed_precondition("the device is closed");
      return self->device_->use();
    };
    device.one_at_a_time = &one_at_a_time_;
    device.drain = [weak]() -> Status {
      const auto self = weak.lock();
      return self == nullptr ? Status() : self->drain();
    };
    device.note_loss = [weak](Status status) {
      const auto self = weak.lock();
      return self == nullptr ? status : self->device_->note_loss(std::move(status));
    };
    if (progresses_.size() > 1) device.computed = progresses_[0]->counts();
    spaces_.push_back(
        std::make_shared<Allocator>(std::move(device), space, info_.target.spaces[space]));
  }
}

void Device::dispose(Device* device) {
  // In a forked child its threads are not here to be awaited.
  if (device->device_ != nullptr && device->device_->is_forked()) return;
  if (!device->owns_this_thread()) {
    delete device;
    return;
  }
  const CallbackPool pool = device->pool_;
  pool.run([device] { delete device; });
}

Device::~Device() {
  queues_.clear();
  for (const auto& space : spaces_) space->abandon();
}

uint32_t Device::number_of(QueueRole role) const {
  return std::min(static_cast<uint32_t>(role), static_cast<uint32_t>(queues_.size()) - 1);
}

DeviceQueue& Device::queue(QueueRole role) const { return *queues_[number_of(role)]; }

bool Device::is_worker() const {
  return std::ranges::any_of(queues_, [](const auto& queue) { return queue->is_worker(); });
}

bool Device::owns_this_thread() const {
  return std::ranges::any_of(queues_, [](const auto& queue) { return queue->owns_this_thread(); });
}

std::optional<size_t> Device::space_of(backend::SpaceKind kind) const {
  for (size_t i = 0; i < info_.target.spaces.size(); ++i) {
    if (info_.target.spaces[i].kind == kind) return i;
  }
  return {};
}

// --- Work

bool Throttle::enter(int most) {
  int now = count;
  while (now < most) {
    if (count.compare_exchange_weak(now, now + 1)) return true;
  }
  return false;
}

// One who begins to wait looks at the count after it has said so, or this looks after that.
void Throttle::leave() {
  --count;
  if (waiting == 0) return;
  {
    const std::lock_guard lock(mutex);
  }
  fewer.notify_one();
}

ThrottleToken Device::acquire_throttle_token() {
  // One at work and one behind it where the device's memory and cores are the caller's.
  const int most = info_.target.spaces[0].host_visible ? 2 : 32;
  if (!throttle_->enter(most)) {
    std::unique_lock lock(throttle_->mutex);
    ++throttle_->waiting;
    throttle_->fewer.wait(lock, [&] {
      if (throttle_->enter(most)) return true;
      if (!is_worker() && lost().ok()) return false;
      ++throttle_->count;
      return true;
    });
    --throttle_->waiting;
  }
  return ThrottleToken(throttle_);
}

WorkPosition Device::post(Work work, Done done, PostOptions options) {
  const QueueRole role = options.role;
  return queue(role).post(make_work_item(std::move(work), std::move(done), std::move(options)));
}

WorkPosition Device::post(const std::shared_ptr<WorkItem>& item, QueueRole role) {
  return queue(role).post(item);
}

bool Device::is_done(QueueRole role, const WorkMarks& work) const {
  for (uint32_t i = 0; i < progresses_.size(); ++i) {
    if (i != number_of(role) && !progresses_[i]->is_done(work.of(i))) return false;
  }
  return true;
}

std::optional<DeviceQueue::InlineTurn> Device::claim_inline_turn() {
  return queue(QueueRole::kCompute).claim();
}

void Device::run_inline(DeviceQueue::InlineTurn turn, const std::shared_ptr<WorkItem>& item) {
  queue(QueueRole::kCompute).run_inline(std::move(turn), item);
}

Status Device::copy(const backend::MemoryAddress& to, const backend::MemoryAddress& from,
                    int64_t bytes, QueueRole role) {
  if (bytes == 0) return {};
  if (to.on_host() && from.on_host()) {
    TENON_TRY(queue(role).drain());
    std::memcpy(to.host, from.host, static_cast<size_t>(bytes));
    return {};
  }
  return device_->note_loss(queue(role).watched(
      [&](backend::Device& device) { return device.copy(number_of(role), to, from, bytes); }));
}

Status Device::launch(const backend::KernelLaunch& launch) {
  return device_->note_loss(queue(QueueRole::kCompute).watched([&](backend::Device& device) {
    return device.launch(0, launch);
  }));
}

Status Device::copy_box(const backend::MemoryAddress& to, const backend::MemoryAddress& from,
                        const backend::Box& box, QueueRole role) {
  if (to.on_host() && from.on_host()) {
    return Status(unimplemented("a box between two places of the host"));
  }
  return device_->note_loss(queue(role).watched(
      [&](backend::Device& device) { return device.copy_box(number_of(role), to, from, box); }));
}

Status Device::call(const backend::LibraryCallLaunch& call) {
  return device_->note_loss(queue(QueueRole::kCompute).watched([&](backend::Device& device) {
    return device.call(0, call);
  }));
}

Status Device::pack(std::string_view plan, uint32_t operand, const backend::MemoryAddress& to,
                    const backend::MemoryAddress& from) {
  return device_->note_loss(queue(QueueRole::kCompute).watched([&](backend::Device& device) {
    return device.pack(0, plan, operand, to, from);
  }));
}

Status Device::fetch(std::span<std::byte> to, const backend::MemoryAddress& from) {
  const auto transit = std::make_shared<std::vector<std::byte>>(to.size());
  Status status =
      copy(backend::MemoryAddress::of_host(transit->data()), from, static_cast<int64_t>(to.size()));
  if (status.ok()) status = queue(QueueRole::kCompute).drain();
  if (!status.ok()) device_->await_quiescence(transit);
  if (status.ok() && !to.empty()) std::memcpy(to.data(), transit->data(), to.size());
  return status;
}

Status Device::put(const backend::MemoryAddress& to, std::span<const std::byte> from) {
  const auto transit = std::make_shared<std::vector<std::byte>>(from.begin(), from.end());
  Status status = copy(to, backend::MemoryAddress::of_host(transit->data()),
                       static_cast<int64_t>(transit->size()));
  if (status.ok()) status = queue(QueueRole::kCompute).drain();
  if (!status.ok()) device_->await_quiescence(transit);
  return status;
}

Status Device::await_given() { return queue(QueueRole::kCompute).drain(); }

Status Device::drain() {
  TENON_TRY(lost());
  std::vector<Event> drained;
  for (const auto& queue : queues_) {
    const auto promise = std::make_shared<Promise>(pool_);
    drained.push_back(promise->event());
    queue->post(make_work_item([]() -> Status { return {}; },
                               [promise](const Status& status) { promise->set(status); }, {}));
  }
  Status status;
  for (const Event& each : drained) {
    if (Status outcome = each.await(); status.ok()) status = std::move(outcome);
  }
  return status;
}

// --- Modules

Result<backend::ModuleHandle> Device::load(std::string_view binary, backend::Kernels kernels) {
  TENON_ASSIGN(const OpenDevice::Share device, device_->use());
  const std::lock_guard lock(one_at_a_time_);
  auto module = device->load(binary, kernels);
  if (!module) return tl::make_unexpected(device_->note_loss(module.error()));
  return module;
}

void Device::unload(backend::ModuleHandle module) noexcept {
  const auto now = [self = shared_from_this(), module](const Status&) {
    // The close of a lost device frees the module.
    const auto device = self->device_->use();
    if (!device) return;
    const std::lock_guard lock(self->one_at_a_time_);
    (*device)->unload(module);
  };
  // No given work uses the module any more; the worker waits for the lock instead of the caller. If
  // the host has no memory to post it, the caller waits.
  try {
    post([]() -> Status { return {}; }, now);
  } catch (const std::exception&) {
    now({});
  }
}

// --- Memory of the host

Result<backend::MemoryHandle> Device::import_memory(size_t space, std::span<const std::byte> host) {
  TENON_ASSIGN(const OpenDevice::Share device, device_->use());
  if (stages() || !imports_) return backend::MemoryHandle{0};
  const std::lock_guard lock(one_at_a_time_);
  auto memory = guarded(info_.name,
                        [&] { return device->import_memory(static_cast<uint32_t>(space), host); });
  if (memory) return memory;
  switch (memory.error().code()) {
    case ErrorCode::kUnimplemented:
      imports_ = false;
      [[fallthrough]];
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kResourceExhausted:
      return backend::MemoryHandle{0};
    default:
      return tl::make_unexpected(device_->note_loss(memory.error()));
  }
}

void Device::free_imported(backend::MemoryHandle memory, std::function<void()> gone) {
  // Where others have the device for long, the worker waits for it, not the caller.
  std::unique_lock free_now(one_at_a_time_, std::try_to_lock);
  const bool here = free_now.owns_lock();
  if (here) free_now.unlock();
  const auto work = []() -> Status { return {}; };
  // A lost device touches no memory of the host (B12), and its close takes the handle.
  const auto done = [self = shared_from_this(), memory, gone = std::move(gone)](const Status&) {
    if (const auto device = self->device_->use()) {
      const std::lock_guard lock(self->one_at_a_time_);
      (*device)->free(memory);
    }
    gone();
  };
  auto turn = here ? claim_inline_turn() : std::nullopt;
  if (!turn) {
    post(work, done);
    return;
  }
  run_inline(*std::move(turn), make_work_item(work, done, {}));
}

}  // namespace tenon::runtime
