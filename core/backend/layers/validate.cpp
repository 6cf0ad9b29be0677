// The layer `validate`: the numbered rules, checked at each call, on both sides of the seam.
//
// Memory: each allocation is made larger by a canary on either side, filled with a pattern, and
// looked at when it is freed and when the device closes; what is between them begins as poison, so
// that who reads what nobody wrote sees it. Work: what each queue has been given, and up to where
// its events have been seen to be done, says which memory and modules are still in use.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "core/backend/layers/forward.h"
#include "core/backend/layers/layers.h"

namespace tenon::backend {
namespace {

constexpr int64_t kCanaryBytes = 256;
constexpr std::byte kCanary{0xCA};
constexpr std::byte kPoison{0xA5};

template <class... Args>
Status broken(std::string_view rule, fmt::format_string<Args...> format, Args&&... args) {
  return Status(
      internal_error("validate: {}: {}", rule, fmt::format(format, std::forward<Args>(args)...)));
}

// One caller at a time, of what rule B7 says comes one at a time.
class Turn {
 public:
  explicit Turn(std::atomic<int>& callers) : callers_(callers), alone_(callers.fetch_add(1) == 0) {}
  ~Turn() { callers_.fetch_sub(1); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  bool alone() const { return alone_; }

 private:
  std::atomic<int>& callers_;
  const bool alone_;
};

struct BufferUse {
  int64_t bytes = 0;
  bool writes = false;
  uint32_t over = kernel::kNone;
};

struct LoadedKernel {
  std::string name;
  std::vector<BufferUse> buffers;
  size_t scalars = 0;
};

LoadedKernel loaded(const kernel::Kernel& kernel) {
  LoadedKernel result = {kernel.name, {}, kernel.scalars.size()};
  for (size_t i = 0; i < kernel.buffer_count; ++i) {
    const kernel::Memory& m = kernel.memories[i];
    const int64_t bytes =
        m.packed ? (m.span() * bit_width(m.type) + 7) / 8 : Shape(m.type, {m.span()}).byte_size();
    result.buffers.push_back({bytes, m.access != kernel::Access::kIn, m.over});
  }
  return result;
}

class ValidateDevice final : public ForwardingDevice {
 public:
  ValidateDevice(std::unique_ptr<Device> inner, TargetInfo target)
      : ForwardingDevice(std::move(inner)), target_(std::move(target)) {
    // The canary keeps what lies behind it aligned.
    margin_ = std::max(kCanaryBytes, target_.spaces[0].alignment);
  }

  Result<ModuleHandle> load(std::string_view binary, Kernels kernels) override {
    const Turn turn(admin_);
    if (!turn.alone()) return fault("B7", "load beside load, unload, allocate or free");
    TENON_ASSIGN(const ModuleHandle module, ForwardingDevice::load(binary, kernels));
    const std::lock_guard lock(mutex_);
    if (module == 0) return fault("B10", "load gave the handle 0");
    if (modules_.contains(module)) return fault("B10", "load gave handle {} twice", module);
    std::vector<LoadedKernel>& list = modules_[module].kernels;
    for (const kernel::Kernel* kernel : kernels) list.push_back(loaded(*kernel));
    return module;
  }

  void unload(ModuleHandle module) override {
    const Turn turn(admin_);
    {
      const std::lock_guard lock(mutex_);
      const auto found = modules_.find(module);
      if (found == modules_.end()) return note(broken("B10", "unload of no module {}", module));
      if (found->second.last_use > done_) {
        note(broken("B18", "module {} is unloaded while work uses it", module));
      }
      modules_.erase(found);
    }
    ForwardingDevice::unload(module);
  }

  Result<MemoryHandle> allocate(uint32_t space, int64_t bytes) override {
    const Turn turn(admin_);
    if (!turn.alone()) return fault("B7", "allocate beside load, unload, allocate or free");
    TENON_TRY(noted());
    if (bytes <= 0) return fault("B16", "an allocation of {} bytes", bytes);
    if (space >= target_.spaces.size()) return fault("B16", "there is no space {}", space);
    TENON_ASSIGN(const MemoryHandle memory, ForwardingDevice::allocate(space, bytes + 2 * margin_));
    const std::lock_guard lock(mutex_);
    if (memory == 0) return fault("B10", "allocate gave the handle 0");
    if (memories_.contains(memory)) return fault("B10", "allocate gave handle {} twice", memory);
    memories_[memory].bytes = bytes;
    fresh_.insert(memory);
    return memory;
  }

  void free(MemoryHandle memory) override {
    const Turn turn(admin_);
    {
      const std::lock_guard lock(mutex_);
      const auto found = memories_.find(memory);
      if (found == memories_.end()) return note(broken("B10", "free of no memory {}", memory));
      if (found->second.last_use > done_) {
        note(broken("B18", "memory {} is freed while work uses it", memory));
      }
      if (Status status = check_canaries(memory, found->second); !status.ok()) note(status);
      memories_.erase(found);
      fresh_.erase(memory);
    }
    ForwardingDevice::free(memory);
  }

  Status copy(uint32_t queue, const Place& destination, const Place& source,
              int64_t bytes) override {
    const Turn turn(queue_);
    TENON_TRY(begin(turn, queue));
    const std::lock_guard lock(mutex_);
    if (bytes <= 0) return broken("B19", "a copy of {} bytes", bytes);
    if (destination.on_host() && source.on_host()) {
      return broken("B19", "a copy from host to host");
    }
    TENON_TRY(paint_fresh(queue));
    TENON_TRY(use(destination, bytes, "a copy's destination"));
    TENON_TRY(use(source, bytes, "a copy's source"));
    if (!destination.on_host() && destination.memory == source.memory &&
        destination.offset < source.offset + bytes && source.offset < destination.offset + bytes) {
      return broken("B19", "the ends of a copy of {} bytes overlap", bytes);
    }
    return ForwardingDevice::copy(queue, inside(destination), inside(source), bytes);
  }

  Status launch(uint32_t queue, const Launch& launch) override {
    const Turn turn(queue_);
    TENON_TRY(begin(turn, queue));
    const std::lock_guard lock(mutex_);
    const auto module = modules_.find(launch.module);
    if (module == modules_.end()) return broken("B10", "a launch of no module {}", launch.module);
    if (launch.kernel >= module->second.kernels.size()) {
      return broken("B14", "a launch of kernel {} of {}", launch.kernel,
                    module->second.kernels.size());
    }
    const LoadedKernel& kernel = module->second.kernels[launch.kernel];
    if (launch.buffers.size() != kernel.buffers.size() || launch.scalars.size() != kernel.scalars) {
      return broken("B21", "@{} takes {} buffers and {} scalars, the launch has {} and {}",
                    kernel.name, kernel.buffers.size(), kernel.scalars, launch.buffers.size(),
                    launch.scalars.size());
    }
    TENON_TRY(paint_fresh(queue));
    std::vector<Place> places;
    for (size_t i = 0; i < launch.buffers.size(); ++i) {
      const Place& place = launch.buffers[i];
      if (place.on_host()) return broken("B21", "@{}: buffer {} is host memory", kernel.name, i);
      TENON_TRY(use(place, kernel.buffers[i].bytes, "a buffer"));
      const int64_t alignment = target_.spaces[0].alignment;
      if (place.offset % alignment != 0) {
        return broken("B17", "@{}: buffer {} lies at {}, which {} does not divide", kernel.name, i,
                      place.offset, alignment);
      }
      places.push_back(inside(place));
    }
    TENON_TRY(check_aliases(kernel, launch.buffers));
    module->second.last_use = given_;
    Launch moved = launch;
    moved.buffers = places;
    return ForwardingDevice::launch(queue, moved);
  }

  Result<EventHandle> record(uint32_t queue) override {
    const Turn turn(queue_);
    TENON_TRY(begin(turn, queue));
    const std::lock_guard lock(mutex_);
    TENON_ASSIGN(const EventHandle event, ForwardingDevice::record(queue));
    if (event == 0) return fault("B10", "record gave the handle 0");
    if (events_.contains(event)) return fault("B10", "record gave handle {} twice", event);
    events_[event] = {given_++, "", std::exchange(carried_, Status())};
    return event;
  }

  Status wait(uint32_t queue, EventHandle event) override {
    const Turn turn(queue_);
    TENON_TRY(begin(turn, queue));
    {
      const std::lock_guard lock(mutex_);
      if (!events_.contains(event)) return broken("B10", "a wait for no event {}", event);
    }
    return ForwardingDevice::wait(queue, event);
  }

  Result<bool> await(EventHandle event, int64_t timeout) override {
    {
      const std::lock_guard lock(mutex_);
      if (!events_.contains(event)) return fault("B10", "await of no event {}", event);
    }
    Result<bool> done = ForwardingDevice::await(event, timeout);
    const std::lock_guard lock(mutex_);
    if (done && !*done && timeout < 0) {
      return fault("B25", "await without limit answers that the event is pending");
    }
    const auto found = events_.find(event);
    if (found == events_.end()) return done;
    if (done && *done && !found->second.carried.ok()) {
      done = tl::make_unexpected(found->second.carried);
    }
    const std::string outcome = !done ? done.error().message() : *done ? "done" : "";
    if (!found->second.outcome.empty() && outcome != found->second.outcome) {
      return fault("B25", "an event that was '{}' is '{}' now", found->second.outcome, outcome);
    }
    found->second.outcome = outcome;
    if (!outcome.empty()) done_ = std::max(done_, found->second.covers);
    TENON_TRY(noted());
    return done;
  }

  void release(EventHandle event) override {
    {
      const std::lock_guard lock(mutex_);
      if (events_.erase(event) == 0) return note(broken("B10", "release of no event {}", event));
    }
    ForwardingDevice::release(event);
  }

  Result<std::byte*> map(MemoryHandle memory) override {
    TENON_ASSIGN(std::byte* const host, ForwardingDevice::map(memory));
    return host + margin_;
  }

 private:
  struct Allocation {
    int64_t bytes = 0;
    int64_t last_use = 0;  // The record that comes behind its last work.
  };
  struct Module {
    std::vector<LoadedKernel> kernels;
    int64_t last_use = 0;
  };
  struct Event {
    int64_t covers = 0;
    std::string outcome;
    Status carried;  // An error that a record of the layer's own was given (B23).
  };

  template <class... Args>
  static tl::unexpected<Status> fault(std::string_view rule, fmt::format_string<Args...> format,
                                      Args&&... args) {
    return tl::make_unexpected(broken(rule, format, std::forward<Args>(args)...));
  }

  // What a function without a result found is the next one's error.
  void note(Status status) {
    const std::lock_guard lock(noted_mutex_);
    if (noted_.ok()) noted_ = std::move(status);
  }
  Status noted() {
    const std::lock_guard lock(noted_mutex_);
    return std::exchange(noted_, Status());
  }

  Status begin(const Turn& turn, uint32_t queue) {
    if (!turn.alone()) return broken("B7", "two calls for queue {} at once", queue);
    if (queue >= target_.queues) return broken("B10", "there is no queue {}", queue);
    return noted();
  }

  Place inside(const Place& place) const {
    if (place.on_host()) return place;
    return {place.memory, place.offset + margin_, nullptr};
  }

  Status use(const Place& place, int64_t bytes, std::string_view what) {
    if (place.on_host()) {
      return place.host != nullptr ? Status() : broken("B19", "{} is null", what);
    }
    const auto found = memories_.find(place.memory);
    if (found == memories_.end()) return broken("B10", "{}: no memory {}", what, place.memory);
    if (place.offset < 0 || bytes > found->second.bytes - place.offset) {
      return broken("B17", "{}: {} bytes at {} of {}", what, bytes, place.offset,
                    found->second.bytes);
    }
    found->second.last_use = given_;
    return {};
  }

  static Status check_aliases(const LoadedKernel& kernel, std::span<const Place> places) {
    for (size_t i = 0; i < places.size(); ++i) {
      if (!kernel.buffers[i].writes) continue;
      for (size_t k = 0; k < places.size(); ++k) {
        const bool apart = places[i].memory != places[k].memory ||
                           places[i].offset + kernel.buffers[i].bytes <= places[k].offset ||
                           places[k].offset + kernel.buffers[k].bytes <= places[i].offset;
        if (i == k || apart || kernel.buffers[i].over == k || kernel.buffers[k].over == i) continue;
        return broken("B21", "@{}: buffers {} and {} overlap", kernel.name, i, k);
      }
    }
    return {};
  }

  // Canaries and poison of what has been allocated since, before work of the queue can touch it.
  Status paint_fresh(uint32_t queue) {
    for (const MemoryHandle memory : std::exchange(fresh_, {})) {
      const int64_t bytes = memories_[memory].bytes;
      std::vector<std::byte> paint(static_cast<size_t>(bytes + 2 * margin_), kCanary);
      std::fill_n(paint.begin() + margin_, bytes, kPoison);
      TENON_TRY(
          copy_now(queue, {memory, 0, nullptr}, Place::of_host(paint.data()), bytes + 2 * margin_));
    }
    return {};
  }

  Status copy_now(uint32_t queue, const Place& to, const Place& from, int64_t bytes) {
    TENON_TRY(ForwardingDevice::copy(queue, to, from, bytes));
    TENON_ASSIGN(const EventHandle event, ForwardingDevice::record(queue));
    const Result<bool> done = ForwardingDevice::await(event, -1);
    ForwardingDevice::release(event);
    if (done) return {};
    if (done.error().code() == ErrorCode::kUnavailable) return done.error();
    // It may be that of the host's work, which the host's next event is to tell.
    if (carried_.ok()) carried_ = done.error();
    return {};
  }

  Status check_canaries(MemoryHandle memory, const Allocation& allocation) {
    if (fresh_.contains(memory)) return {};
    // The queue may be in use by its own thread: only when nothing is on its way is it looked at.
    const Turn turn(queue_);
    if (!turn.alone()) return {};
    std::vector<std::byte> bytes(static_cast<size_t>(margin_));
    for (const int64_t at : {int64_t{0}, margin_ + allocation.bytes}) {
      const Status read = copy_now(0, Place::of_host(bytes.data()), {memory, at, nullptr}, margin_);
      if (!read.ok()) return {};  // A device that is lost: there is nothing to see.
      const auto changed = std::ranges::find_if(bytes, [](std::byte b) { return b != kCanary; });
      if (changed == bytes.end()) continue;
      const int64_t place = at + (changed - bytes.begin()) - margin_;
      return broken("B21", "something was written at {} of memory {}, which has {} bytes", place,
                    memory, allocation.bytes);
    }
    return {};
  }

  const TargetInfo target_;
  int64_t margin_ = kCanaryBytes;
  std::atomic<int> admin_ = 0;
  std::atomic<int> queue_ = 0;
  std::mutex mutex_;
  std::map<MemoryHandle, Allocation> memories_;
  std::set<MemoryHandle> fresh_;
  std::map<ModuleHandle, Module> modules_;
  std::map<EventHandle, Event> events_;
  Status carried_;
  int64_t given_ = 1;  // Records so far, and one.
  int64_t done_ = 0;   // The last of them whose event was seen to be done.
  std::mutex noted_mutex_;
  Status noted_;
};

class ValidateBackend final : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;

  Result<std::vector<DeviceInfo>> devices() override {
    TENON_ASSIGN(std::vector<DeviceInfo> devices, ForwardingBackend::devices());
    std::string text;
    for (const DeviceInfo& each : devices) text += each.name + "\n" + to_string(each.target);
    const std::lock_guard lock(mutex_);
    if (!seen_.empty() && text != seen_) {
      return tl::make_unexpected(broken("B9", "the devices are others than before"));
    }
    seen_ = std::move(text);
    return devices;
  }

  Result<std::unique_ptr<Device>> open(size_t index) override {
    TENON_ASSIGN(const std::vector<DeviceInfo> devices, this->devices());
    if (index >= devices.size()) {
      return tl::make_unexpected(broken("B9", "open of device {} of {}", index, devices.size()));
    }
    TENON_ASSIGN(std::unique_ptr<Device> device, ForwardingBackend::open(index));
    return std::make_unique<ValidateDevice>(std::move(device), devices[index].target);
  }

  Result<Compiled> compile(const TargetInfo& target, Kernels kernels) override {
    TENON_ASSIGN(Compiled compiled, ForwardingBackend::compile(target, kernels));
    if (!compiled.declined.empty() && !compiled.binary.empty()) {
      return tl::make_unexpected(broken("B13", "compile gave bytes and declined kernels"));
    }
    for (const Declined& each : compiled.declined) {
      if (each.kernel < kernels.size()) continue;
      return tl::make_unexpected(
          broken("B13", "compile declined kernel {} of {}", each.kernel, kernels.size()));
    }
    return compiled;
  }

 private:
  std::mutex mutex_;
  std::string seen_;
};

}  // namespace

std::shared_ptr<Backend> make_validate_layer(std::shared_ptr<Backend> inner) {
  return std::make_shared<ValidateBackend>(std::move(inner));
}

}  // namespace tenon::backend
