#include "core/runtime/device.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>

namespace tenon::runtime {

Result<std::shared_ptr<Device>> Device::open(std::shared_ptr<backend::Backend> backend,
                                             size_t index, backend::DeviceInfo info,
                                             CallbackPool pool, const DeviceLimits& limits) {
  TENON_TRY(check(info.target));
  auto state = std::shared_ptr<Device>(new Device(std::move(info), std::move(pool), limits),
                                       &Device::dispose);
  TENON_ASSIGN(state->session_,
               DeviceSession::open(std::move(backend), index, state->info_.name, limits.open_wait));
  state->device_ = state->session_->device();
  state->number_ = index;
  const std::weak_ptr<Device> weak = state;
  for (uint32_t space = 0; space < state->info_.target.spaces.size(); ++space) {
    Allocator::AllocatorDevice device;
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
    device.note_loss = [weak](Status status) {
      const auto self = weak.lock();
      return self == nullptr ? status : self->note_loss(std::move(status));
    };
    state->spaces_.push_back(
        std::make_shared<Allocator>(std::move(device), space, state->info_.target.spaces[space]));
  }
  state->completions_.emplace();
  state->worker_.emplace();
  if (limits.time_limit > 0) {
    state->watchdog_.emplace([device = state.get()] { device->call_is_late(); });
  }
  return state;
}

void Device::dispose(Device* device) {
  if (device->birth_.is_elsewhere()) return;  // Its threads are not here to be awaited.
  const auto ends_itself = [](const auto& thread) { return thread && thread->is_this_thread(); };
  if (!ends_itself(device->worker_) && !ends_itself(device->completions_) &&
      !ends_itself(device->watchdog_)) {
    delete device;
    return;
  }
  const CallbackPool pool = device->pool_;
  pool.run([device] { delete device; });
}

Device::~Device() {
  watchdog_.reset();
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
  TENON_TRY(birth_.check());
  const std::lock_guard lock(lost_mutex_);
  return lost_;
}

Result<Device::Share> Device::use() const {
  TENON_TRY(birth_.check());
  const std::lock_guard lock(lost_mutex_);
  if (!lost_.ok()) return tl::make_unexpected(lost_);
  return device_;
}

Status Device::note_loss(Status status) {
  if (status.code() != ErrorCode::kUnavailable) return status;
  return lose(std::move(status), /*by_host=*/false);
}

Status Device::lose(Status why, bool by_host) {
  Share last;  // Dropped without the lock: it may be the last one.
  {
    const std::lock_guard lock(lost_mutex_);
    if (!lost_.ok()) return lost_;
    lost_ = std::move(why);
    given_up_ = by_host;
    session_->set_lost();
    last = std::move(device_);
  }
  // Threads that wait for a throttle token look again. The lock excludes the moment between their
  // look and their sleep.
  {
    const std::lock_guard lock(throttle_->mutex);
  }
  throttle_->fewer.notify_all();
  return lost();
}

void Device::await_quiescence(const std::shared_ptr<const void>& work) {
  {
    const std::lock_guard lock(lost_mutex_);
    if (!given_up_) return;
  }
  if (stages()) return session_->keep_until_closed(work);
  // Viewers of its memory keep it open, and may wait for this very work. From now on host memory
  // that it touches is kept; it has had time to end its work.
  constexpr std::chrono::milliseconds kTurn(10);
  constexpr int kMostTurns = 100;
  for (int turn = 0; !session_->await_closed(kTurn); ++turn) {
    if (*views_ > 0 && turn >= kMostTurns) return session_->keep_until_closed(work);
  }
}

// --- Work

namespace {

// A backend of this process may find no memory; functions of the host may throw what they like.
template <class Call>
std::invoke_result_t<Call> guarded(std::string_view what, const Call& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return resource_exhausted("{}: the host has no memory for it", what);
  } catch (const std::exception& e) {
    return internal_error("{}: it threw: {}", what, e.what());
  }
}

int64_t nanoseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

std::shared_ptr<const void> Device::acquire_throttle_token() {
  // One at work and one behind it where the device's memory and cores are the caller's.
  const int most = info_.target.spaces[0].host_visible ? 2 : 32;
  const std::shared_ptr<Throttle> throttle = throttle_;
  {
    std::unique_lock lock(throttle->mutex);
    if (!worker_->is_this_thread()) {
      throttle->fewer.wait(lock, [&] { return throttle->count < most || !lost().ok(); });
    }
    ++throttle->count;
  }
  return {throttle.get(), [throttle](const void*) {
            {
              const std::lock_guard lock(throttle->mutex);
              --throttle->count;
            }
            throttle->fewer.notify_one();
          }};
}

void Device::post(Work work, Done done, std::shared_ptr<std::atomic<uint32_t>> stop) {
  post(make_work_item(std::move(work), std::move(done), std::move(stop)));
}

std::unique_ptr<Worker::InlineSlot> Device::claim_inline_slot() {
  return watchdog_ || birth_.is_elsewhere() ? nullptr : worker_->claim();
}

void Device::run_inline(std::unique_ptr<Worker::InlineSlot> claim,
                        const std::shared_ptr<WorkItem>& item) {
  const auto self = shared_from_this();  // Longer than the claim.
  try {
    submit(item);
  } catch (const std::exception&) {  // As on the worker: waiters get the error of a broken promise.
    at_hand_ = nullptr;
  }
  claim.reset();
}

std::shared_ptr<Device::WorkItem> Device::make_work_item(
    Work work, Done done, std::shared_ptr<std::atomic<uint32_t>> stop) {
  return std::make_shared<WorkItem>(WorkItem{std::move(work), std::move(done), std::move(stop)});
}

void Device::post(const std::shared_ptr<WorkItem>& item) {
  if (birth_.is_elsewhere()) return item->done(birth_.check());
  const auto self = shared_from_this();
  if (!worker_->post([self, item] { self->submit(item); })) post_completion(item, 0, lost());
}

void Device::submit(const std::shared_ptr<WorkItem>& item) {
  at_hand_ = item;
  taken_ = 0;
  Status status = lost();
  if (status.ok()) status = guarded(info_.name, item->work);
  // The event is waited for even if the work failed on its way: work that it gave still runs.
  const auto event = item->abandoned ? Result<backend::EventHandle>(0) : record();
  if (item->abandoned) return;
  at_hand_ = nullptr;
  if (status.ok() && !event) status = event.error();
  // Devices may have done the work before they returned (B8).
  if (event && is_done(*event)) {
    ++waited_for_;
    ++running_;
    return finish(item, *event, std::move(status));
  }
  post_completion(item, event.value_or(0), std::move(status));
}

bool Device::is_done(backend::EventHandle event) {
  if (watchdog_ || waited_for_ > 0) return false;
  const auto device = use();
  if (!device) return false;
  const auto done = guarded(info_.name, [&] { return (*device)->await(event, 0); });
  return done && *done;
}

void Device::post_completion(const std::shared_ptr<WorkItem>& item, backend::EventHandle event,
                             Status given) {
  ++waited_for_;
  ++running_;
  try {
    completions_->post(
        [self = shared_from_this(), item, event, given] { self->finish(item, event, given); });
  } catch (const std::exception&) {  // No memory; the device uses what the work keeps.
    finish(item, event, std::move(given));
  }
}

void Device::finish(const std::shared_ptr<WorkItem>& item, backend::EventHandle event,
                    Status given) {
  if (event != 0) {
    Status status = outcome(event, limits_.time_limit, item->stop.get());
    if (const auto device = use()) (*device)->release(event);
    if (given.ok()) given = std::move(status);
  }
  await_quiescence(item);
  // Before `done`, upon which somebody may give work whose time counts from its first call on.
  --running_;
  // Work given from within `done` may be done at once (is_done), which looks at the work before it.
  struct Heard {
    std::atomic<int64_t>& count;
    ~Heard() { --count; }
  } heard{waited_for_};
  item->done(given);
}

template <class Call>
std::invoke_result_t<Call, backend::Device&> Device::watched(const Call& call) {
  TENON_ASSIGN(const Share device, use());
  const auto guarded_call = [&] { return guarded(info_.name, [&] { return call(*device); }); };
  if (!watchdog_) return guarded_call();
  WorkItem& item = *at_hand_;
  // It may wait for work given before (B8), which has a time of its own.
  const bool alone = running_ == 0;
  const auto begin = std::chrono::steady_clock::now();
  watchdog_->begin(limits_.time_limit - taken_);
  auto result = guarded_call();
  const Watchdog::End end = watchdog_->end();
  if (end == Watchdog::End::kInTime) {
    if (alone) taken_ += nanoseconds_since(begin);
    return result;
  }
  item.abandoned = end == Watchdog::End::kAbandoned;
  return Error(lost());
}

void Device::call_is_late() {
  if (running_ > 0 && lost().ok()) return watchdog_->extend(limits_.time_limit);
  const std::shared_ptr<WorkItem> item = at_hand_;
  const Status why = overrun(
      item->stop.get(), [this](int64_t nanoseconds) { return watchdog_->await_end(nanoseconds); });
  if (!watchdog_->abandon()) return;
  // The worker is lost with the device: waiters get the error from this thread.
  post_completion(item, 0, why);
  for (const Worker::Work& work : worker_->abandon()) work();
  at_hand_ = nullptr;
}

Result<backend::EventHandle> Device::record() {
  constexpr int kTries = 3;
  Status why;
  for (int i = 0; i < kTries; ++i) {
    TENON_TRY(lost());
    auto event = watched([](backend::Device& device) { return device.record(0); });
    if (event) return event;
    why = note_loss(event.error());
  }
  return tl::make_unexpected(
      lose(make_error(ErrorCode::kUnavailable, "{}: no event can be recorded: {}", info_.name,
                      why.message())
               .status(),
           /*by_host=*/true));
}

Status Device::outcome(backend::EventHandle event, int64_t limit, std::atomic<uint32_t>* stop) {
  constexpr int kTries = 3;
  TENON_ASSIGN(const Share device, use());
  const auto await = [&](int64_t nanoseconds) -> Result<bool> {
    try {
      return device->await(event, nanoseconds);
    } catch (const std::exception&) {  // That says nothing of the event.
      return false;
    }
  };
  const auto begin = std::chrono::steady_clock::now();
  int64_t left = limit > 0 ? limit : -1;
  for (int i = 0; i < kTries && (left > 0 || limit == 0); ++i) {
    const Result<bool> done = await(left);
    if (!done) return note_loss(done.error());
    if (*done) return {};
    if (limit > 0) left = limit - nanoseconds_since(begin);
  }
  if (limit > 0) {
    return overrun(stop, [&](int64_t nanoseconds) { return await(nanoseconds).value_or(true); });
  }
  return lose(make_error(ErrorCode::kUnavailable,
                         "{}: await does not say whether work is done (B25); the device counts as "
                         "lost",
                         info_.name)
                  .status(),
              /*by_host=*/true);
}

Status Device::overrun(std::atomic<uint32_t>* stop, const std::function<bool(int64_t)>& ends) {
  constexpr int64_t kGrace = 100'000'000;
  if (stop != nullptr) {
    // Time for a backend of this process to leave its loop (B27).
    stop->store(1);
    ends(kGrace);
  }
  const auto device = use();
  const bool ended = device && (*device)->abort().ok() && ends(kGrace);
  return lose(make_error(ErrorCode::kUnavailable,
                         "{}: work took longer than the time limit of {} ms; the device counts as "
                         "lost",
                         info_.name, limits_.time_limit / 1'000'000)
                  .status(),
              /*by_host=*/!ended);
}

Status Device::drain_queue() {
  TENON_ASSIGN(const backend::EventHandle event, record());
  std::atomic<uint32_t>* const stop = at_hand_->stop.get();
  const auto begin = std::chrono::steady_clock::now();
  // A loop that the host walks is one piece of work, however short its steps are.
  const int64_t limit = limits_.time_limit;
  Status status = outcome(event, limit > 0 ? std::max<int64_t>(limit - taken_, 1) : 0, stop);
  taken_ += nanoseconds_since(begin);
  if (const auto device = use()) (*device)->release(event);
  return status;
}

Status Device::copy(const backend::MemoryAddress& to, const backend::MemoryAddress& from,
                    int64_t bytes) {
  if (bytes == 0) return {};
  if (to.on_host() && from.on_host()) {
    TENON_TRY(drain_queue());
    std::memcpy(to.host, from.host, static_cast<size_t>(bytes));
    return {};
  }
  return note_loss(
      watched([&](backend::Device& device) { return device.copy(0, to, from, bytes); }));
}

Status Device::launch(const backend::KernelLaunch& launch) {
  return note_loss(watched([&](backend::Device& device) { return device.launch(0, launch); }));
}

Status Device::copy_box(const backend::MemoryAddress& to, const backend::MemoryAddress& from,
                        const backend::Box& box) {
  if (to.on_host() && from.on_host()) {
    return Status(unimplemented("a box between two places of the host"));
  }
  return note_loss(
      watched([&](backend::Device& device) { return device.copy_box(0, to, from, box); }));
}

Status Device::call(const backend::LibraryCallLaunch& call) {
  return note_loss(watched([&](backend::Device& device) { return device.call(0, call); }));
}

Status Device::pack(std::string_view plan, uint32_t operand, const backend::MemoryAddress& to,
                    const backend::MemoryAddress& from) {
  return note_loss(
      watched([&](backend::Device& device) { return device.pack(0, plan, operand, to, from); }));
}

Status Device::fetch(std::span<std::byte> to, const backend::MemoryAddress& from) {
  const auto transit = std::make_shared<std::vector<std::byte>>(to.size());
  Status status =
      copy(backend::MemoryAddress::of_host(transit->data()), from, static_cast<int64_t>(to.size()));
  if (status.ok()) status = drain_queue();
  if (!status.ok()) await_quiescence(transit);
  if (status.ok() && !to.empty()) std::memcpy(to.data(), transit->data(), to.size());
  return status;
}

Status Device::put(const backend::MemoryAddress& to, std::span<const std::byte> from) {
  const auto transit = std::make_shared<std::vector<std::byte>>(from.begin(), from.end());
  Status status = copy(to, backend::MemoryAddress::of_host(transit->data()),
                       static_cast<int64_t>(transit->size()));
  if (status.ok()) status = drain_queue();
  if (!status.ok()) await_quiescence(transit);
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
  if (!module) return tl::make_unexpected(note_loss(module.error()));
  return module;
}

void Device::unload(backend::ModuleHandle module) noexcept {
  const auto now = [self = shared_from_this(), module](const Status&) {
    // The close of a lost device frees the module.
    const auto device = self->use();
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
  TENON_ASSIGN(const Share device, use());
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
      return tl::make_unexpected(note_loss(memory.error()));
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
    if (const auto device = self->use()) {
      const std::lock_guard lock(self->one_at_a_time_);
      (*device)->free(memory);
    }
    gone();
  };
  auto place = here ? claim_inline_slot() : nullptr;
  if (place == nullptr) return post(work, done);
  run_inline(std::move(place), make_work_item(work, done, nullptr));
}

std::shared_ptr<const void> Device::keep_open() const {
  const auto device = use();
  if (!device) return nullptr;
  ++*views_;
  return {device->get(), [share = *device, views = views_](const void*) { --*views; }};
}

}  // namespace tenon::runtime
