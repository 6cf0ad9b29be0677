// The layer `validate` on an open device.
//
// Memory: each allocation is made larger by a canary on either side, filled with a pattern, and
// looked at with each event that follows work on it; what is between them begins as poison, so that
// who reads what nobody wrote sees it. Work: what each queue has been given, and up to where
// its events have been seen to be done, says which memory and modules are still in use.
#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <type_traits>

#include "core/backend/layers/forward.h"
#include "core/backend/layers/loaded_kernel.h"
#include "core/backend/layers/paint.h"
#include "core/backend/layers/validate_device.h"

namespace tenon::backend {
namespace {

constexpr int64_t kCanaryBytes = 256;
constexpr std::byte kCanary{0xCA};
constexpr std::byte kPoison{0xA5};

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

class ValidateDevice final : public ForwardingDevice {
 public:
  ValidateDevice(std::unique_ptr<Device> inner, TargetInfo target, std::function<void()> closed)
      : ForwardingDevice(std::move(inner)),
        closed_(std::move(closed)),
        target_(std::move(target)),
        // The canary keeps what lies behind it aligned.
        margin_(std::max(kCanaryBytes, target_.spaces[0].alignment)) {}
  ~ValidateDevice() override {
    close();
    closed_();
  }

  Result<ModuleHandle> load(std::string_view binary, Kernels kernels) override {
    const Turn turn(admin_);
    if (!turn.alone()) return fault("B7", "load beside load, unload, allocate or free");
    TENON_ASSIGN(const ModuleHandle module,
                 answered("load", [&] { return ForwardingDevice::load(binary, kernels); }));
    const std::lock_guard lock(mutex_);
    if (module == 0) return fault("B10", "load gave the handle 0");
    if (modules_.contains(module)) return fault("B10", "load gave handle {} twice", module);
    modules_[module].kernels = loaded(kernels);
    return module;
  }

  void unload(ModuleHandle module) override {
    const Turn turn(admin_);
    if (!turn.alone()) note(broken("B7", "unload beside load, unload, allocate or free"));
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
    if (bytes > INT64_MAX - 2 * margin_) {
      return resource_exhausted("there are no {} bytes", bytes);
    }
    if (space >= target_.spaces.size()) return fault("B16", "there is no space {}", space);
    TENON_ASSIGN(const MemoryHandle memory, answered("allocate", [&] {
                   return ForwardingDevice::allocate(space, bytes + 2 * margin_);
                 }));
    const std::lock_guard lock(mutex_);
    if (memory == 0) return fault("B10", "allocate gave the handle 0");
    if (memories_.contains(memory)) return fault("B10", "allocate gave handle {} twice", memory);
    memories_[memory].bytes = bytes;
    return memory;
  }

  void free(MemoryHandle memory) override {
    const Turn turn(admin_);
    if (!turn.alone()) note(broken("B7", "free beside load, unload, allocate or free"));
    {
      const std::lock_guard lock(mutex_);
      const auto found = memories_.find(memory);
      if (found == memories_.end()) return note(broken("B10", "free of no memory {}", memory));
      if (found->second.last_use > done_) {
        note(broken("B18", "memory {} is freed while work uses it", memory));
      }
      memories_.erase(found);
    }
    ForwardingDevice::free(memory);
  }

  Status copy(uint32_t queue, const Place& destination, const Place& source,
              int64_t bytes) override {
    const Turn turn(queue_);
    TENON_TRY(begin_work(turn, queue));
    if (bytes <= 0) return broken("B19", "a copy of {} bytes", bytes);
    if (destination.on_host() && source.on_host()) {
      return broken("B19", "a copy from host to host");
    }
    if (!destination.on_host() && destination.memory == source.memory &&
        destination.offset < source.offset + bytes && source.offset < destination.offset + bytes) {
      return broken("B19", "the ends of a copy of {} bytes overlap", bytes);
    }
    TENON_TRY(use(queue, destination, bytes, "a copy's destination"));
    TENON_TRY(use(queue, source, bytes, "a copy's source"));
    return answered("copy", [&] {
      return ForwardingDevice::copy(queue, inside(destination), inside(source), bytes);
    });
  }

  Status fill(uint32_t queue, const Place& destination, int64_t bytes,
              std::span<const std::byte> pattern) override {
    const Turn turn(queue_);
    TENON_TRY(begin_work(turn, queue));
    const auto size = static_cast<int64_t>(pattern.size());
    if (size < 1 || size > 8 || (size & (size - 1)) != 0 || bytes <= 0 || bytes % size != 0) {
      return broken("B19", "a fill of {} bytes with a pattern of {}", bytes, size);
    }
    if (destination.on_host()) return broken("B19", "a fill of host memory");
    TENON_TRY(use(queue, destination, bytes, "a fill's destination"));
    return ForwardingDevice::fill(queue, inside(destination), bytes, pattern);
  }

  Status launch(uint32_t queue, const Launch& launch) override {
    const Turn turn(queue_);
    TENON_TRY(begin_work(turn, queue));
    TENON_ASSIGN(const LoadedKernel kernel, kernel_of(launch));
    std::vector<Place> places;
    for (size_t i = 0; i < launch.buffers.size(); ++i) {
      const Place& place = launch.buffers[i];
      if (place.on_host()) return broken("B21", "@{}: buffer {} is host memory", kernel.name, i);
      TENON_TRY(use(queue, place, kernel.buffers[i].bytes, "a buffer"));
      const int64_t alignment = target_.spaces[0].alignment;
      if (place.offset % alignment != 0) {
        return broken("B17", "@{}: buffer {} lies at {}, which {} does not divide", kernel.name, i,
                      place.offset, alignment);
      }
      places.push_back(inside(place));
    }
    TENON_TRY(check_aliases(kernel, launch.buffers));
    Launch moved = launch;
    moved.buffers = places;
    return answered("launch", [&] { return ForwardingDevice::launch(queue, moved); });
  }

  // A backend that offers no copy_box, call or pack gets none: the host asks first.
  Status call(uint32_t queue, const CallLaunch& launch) override {
    const Turn turn(queue_);
    TENON_TRY(begin_work(turn, queue));
    CallLaunch moved = launch;
    TENON_ASSIGN(const std::vector<Place> operands, used(queue, launch.operands, "an operand"));
    TENON_ASSIGN(const std::vector<Place> results, used(queue, launch.results, "a result"));
    moved.operands = operands;
    moved.results = results;
    moved.workspace = inside(launch.workspace);
    return answered("call", [&] { return ForwardingDevice::call(queue, moved); });
  }

  Status pack(uint32_t queue, std::string_view plan, uint32_t operand, const Place& destination,
              const Place& source) override {
    const Turn turn(queue_);
    TENON_TRY(begin_work(turn, queue));
    const Place both[] = {destination, source};
    TENON_ASSIGN(const std::vector<Place> moved, used(queue, both, "an operand to pack"));
    return answered(
        "pack", [&] { return ForwardingDevice::pack(queue, plan, operand, moved[0], moved[1]); });
  }

  Status copy_box(uint32_t queue, const Place& destination, const Place& source,
                  const Box& box) override {
    const Turn turn(queue_);
    TENON_TRY(begin_work(turn, queue));
    if (destination.on_host() && source.on_host()) {
      return broken("B19", "a copy from host to host");
    }
    const Place both[] = {destination, source};
    TENON_ASSIGN(const std::vector<Place> moved, used(queue, both, "an end of a box"));
    return answered("copy_box",
                    [&] { return ForwardingDevice::copy_box(queue, moved[0], moved[1], box); });
  }

  Result<EventHandle> record(uint32_t queue) override {
    const Turn turn(queue_);
    TENON_TRY(begin(turn, queue));
    Event added;
    TENON_ASSIGN(added.canaries, read_canaries(queue));
    const Result<EventHandle> answer =
        answered("record", [&] { return ForwardingDevice::record(queue); });
    const std::lock_guard lock(mutex_);
    if (!answer) {  // The canaries are on their way.
      released_.push_back({given_, std::move(added.canaries)});
      return answer;
    }
    const EventHandle event = *answer;
    if (event == 0) return fault("B10", "record gave the handle 0");
    if (events_.contains(event)) return fault("B10", "record gave handle {} twice", event);
    added.covers = given_++;
    added.idle = last_work_ != added.covers;
    events_[event] = std::move(added);
    return event;
  }

  Status wait(uint32_t queue, EventHandle event) override {
    const Turn turn(queue_);
    TENON_TRY(begin(turn, queue));
    {
      const std::lock_guard lock(mutex_);
      if (!events_.contains(event)) return broken("B10", "a wait for no event {}", event);
    }
    return answered("wait", [&] { return ForwardingDevice::wait(queue, event); });
  }

  Result<bool> await(EventHandle event, int64_t timeout) override {
    {
      const std::lock_guard lock(mutex_);
      if (!events_.contains(event)) return fault("B10", "await of no event {}", event);
    }
    const bool lost = lost_;
    const Result<bool> done = ForwardingDevice::await(event, timeout);
    if (!done && done.error().code() == ErrorCode::kUnavailable) lost_ = true;
    const std::lock_guard lock(mutex_);
    const auto found = events_.find(event);
    if (done && !*done) {
      // Whatever is wrong with that, nobody may take the event for done.
      if (timeout < 0) note(broken("B25", "await without limit answers that the event is pending"));
      if (lost) note(broken("B12", "an event of a lost device is pending"));
      if (found != events_.end() && !found->second.outcome.empty()) {
        note(broken("B25", "an event that was '{}' is pending now", found->second.outcome));
      }
      return done;
    }
    if (found == events_.end()) return done;
    if (!done && found->second.idle && done.error().code() != ErrorCode::kUnavailable) {
      return fault("B23", "an event of no work failed: {}", done.error().message());
    }
    const std::string outcome = done ? "done" : done.error().message();
    if (!found->second.outcome.empty() && outcome != found->second.outcome) {
      return fault("B25", "an event that was '{}' is '{}' now", found->second.outcome, outcome);
    }
    found->second.outcome = outcome;
    done_ = std::max(done_, found->second.covers);
    if (done) TENON_TRY(check_canaries(found->second.canaries));
    TENON_TRY(noted());
    return done;
  }

  void release(EventHandle event) override {
    {
      const std::lock_guard lock(mutex_);
      const auto found = events_.find(event);
      if (found == events_.end()) return note(broken("B10", "release of no event {}", event));
      // What it reads may still be on its way (B26).
      if (found->second.outcome.empty()) {
        released_.push_back({found->second.covers, std::move(found->second.canaries)});
      }
      events_.erase(found);
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
    bool painted = false;
  };
  struct Module {
    std::vector<LoadedKernel> kernels;
    int64_t last_use = 0;
  };
  // Both canaries of an allocation as they were when the event was recorded.
  struct Canaries {
    MemoryHandle memory = 0;
    int64_t bytes = 0;
    std::vector<std::byte> seen;
  };
  struct Event {
    int64_t covers = 0;
    bool idle = false;  // No work was given since the event before.
    std::string outcome;
    std::vector<Canaries> canaries;
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

  // A call of the backend, whose answer says whether the device is lost, and stays lost (B12).
  template <class Call>
  std::invoke_result_t<Call> answered(std::string_view function, const Call& call) {
    const bool lost = lost_;
    auto result = call();
    Status status;
    if constexpr (std::is_same_v<decltype(result), Status>) {
      status = result;
    } else if (!result) {
      status = result.error();
    }
    if (status.code() == ErrorCode::kUnavailable) {
      lost_ = true;
    } else if (lost) {
      return Error(broken("B12", "{} answers '{}' on a lost device", function, status.to_string()));
    }
    return result;
  }

  // Of work, not of records.
  Status begin_work(const Turn& turn, uint32_t queue) {
    TENON_TRY(begin(turn, queue));
    const std::lock_guard lock(mutex_);
    last_work_ = given_;
    return {};
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

  // Of the queue's thread. Work that is about to be given uses the bytes.
  Status use(uint32_t queue, const Place& place, int64_t bytes, std::string_view what) {
    if (place.on_host()) {
      return place.host != nullptr ? Status() : broken("B19", "{} is null", what);
    }
    int64_t unpainted = 0;
    {
      const std::lock_guard lock(mutex_);
      const auto found = memories_.find(place.memory);
      if (found == memories_.end()) return broken("B10", "{}: no memory {}", what, place.memory);
      if (place.offset < 0 || bytes > found->second.bytes - place.offset) {
        return broken("B17", "{}: {} bytes at {} of {}", what, bytes, place.offset,
                      found->second.bytes);
      }
      found->second.last_use = given_;
      if (!found->second.painted) unpainted = found->second.bytes;
    }
    if (unpainted == 0) return {};
    TENON_TRY(paint(queue, place.memory, unpainted));
    const std::lock_guard lock(mutex_);
    if (const auto found = memories_.find(place.memory); found != memories_.end()) {
      found->second.painted = true;
    }
    return {};
  }

  // Places of arrays whose sizes the layer does not know, as they are within.
  Result<std::vector<Place>> used(uint32_t queue, std::span<const Place> places,
                                  std::string_view what) {
    std::vector<Place> moved;
    for (const Place& place : places) {
      TENON_TRY(use(queue, place, 0, what));
      moved.push_back(inside(place));
    }
    return moved;
  }

  Result<LoadedKernel> kernel_of(const Launch& launch) {
    const std::lock_guard lock(mutex_);
    const auto module = modules_.find(launch.module);
    if (module == modules_.end()) return fault("B10", "a launch of no module {}", launch.module);
    const std::vector<LoadedKernel>& kernels = module->second.kernels;
    if (kernels.empty() && launch.kernel == 0) {  // A segment: what it takes is its own affair.
      module->second.last_use = given_;
      return LoadedKernel{"segment", std::vector<BufferUse>(launch.buffers.size()), 0};
    }
    if (launch.kernel >= kernels.size()) {
      return fault("B14", "a launch of kernel {} of {}", launch.kernel, kernels.size());
    }
    const LoadedKernel& kernel = kernels[launch.kernel];
    if (launch.buffers.size() != kernel.buffers.size() || launch.scalars.size() != kernel.scalars) {
      return fault("B21", "@{} takes {} buffers and {} scalars, the launch has {} and {}",
                   kernel.name, kernel.buffers.size(), kernel.scalars, launch.buffers.size(),
                   launch.scalars.size());
    }
    module->second.last_use = given_;
    return kernel;
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

  // Canaries and poison, queued before the first work that uses the memory.
  Status paint(uint32_t queue, MemoryHandle memory, int64_t bytes) {
    const auto write = [&](int64_t from, int64_t to, std::byte value) {
      return tenon::backend::paint(inner(), queue, {memory, from, nullptr}, to - from, value);
    };
    TENON_TRY(write(0, margin_, kCanary));
    TENON_TRY(write(margin_, margin_ + bytes, kPoison));
    return write(margin_ + bytes, bytes + 2 * margin_, kCanary);
  }

  // Queues reading the canaries of all that has been used since the last record.
  Result<std::vector<Canaries>> read_canaries(uint32_t queue) {
    std::vector<Canaries> all;
    {
      const std::lock_guard lock(mutex_);
      std::erase_if(released_, [&](const Released& each) { return each.covers <= done_; });
      for (const auto& [memory, allocation] : memories_) {
        if (allocation.last_use != given_ || !allocation.painted) continue;
        all.push_back(
            {memory, allocation.bytes, std::vector<std::byte>(static_cast<size_t>(2 * margin_))});
      }
    }
    for (Canaries& each : all) {
      for (const auto& [at, to] :
           {std::pair(int64_t{0}, int64_t{0}), std::pair(margin_ + each.bytes, margin_)}) {
        const Status read = ForwardingDevice::copy(queue, Place::of_host(each.seen.data() + to),
                                                   {each.memory, at, nullptr}, margin_);
        if (read.ok()) continue;
        // What has been queued still writes.
        const std::lock_guard lock(mutex_);
        released_.push_back({given_, std::move(all)});
        return tl::make_unexpected(read);
      }
    }
    return all;
  }

  Status check_canaries(const std::vector<Canaries>& canaries) const {
    for (const Canaries& each : canaries) {
      const auto changed =
          std::ranges::find_if(each.seen, [](std::byte b) { return b != kCanary; });
      if (changed == each.seen.end()) continue;
      int64_t at = changed - each.seen.begin();
      at += at < margin_ ? -margin_ : each.bytes - margin_;
      return broken("B21", "something was written at {} of memory {}, which has {} bytes", at,
                    each.memory, each.bytes);
    }
    return {};
  }

  // Bytes of an event that nobody asks for any more, until work of a later one is done.
  struct Released {
    int64_t covers = 0;
    std::vector<Canaries> canaries;
  };

  const std::function<void()> closed_;
  const TargetInfo target_;
  const int64_t margin_;
  std::atomic<int> admin_ = 0;
  std::atomic<int> queue_ = 0;
  std::atomic<bool> lost_ = false;
  std::mutex mutex_;
  std::map<MemoryHandle, Allocation> memories_;
  std::map<ModuleHandle, Module> modules_;
  std::map<EventHandle, Event> events_;
  std::vector<Released> released_;
  int64_t given_ = 1;      // Records so far, and one.
  int64_t last_work_ = 0;  // given_ when work was last given.
  int64_t done_ = 0;       // The last of them whose event was seen to be done.
  std::mutex noted_mutex_;
  Status noted_;
};

}  // namespace

std::unique_ptr<Device> make_validate_device(std::unique_ptr<Device> inner,
                                             const TargetInfo& target,
                                             std::function<void()> closed) {
  return std::make_unique<ValidateDevice>(std::move(inner), target, std::move(closed));
}

}  // namespace tenon::backend
