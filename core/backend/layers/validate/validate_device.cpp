// The layer `validate` on an open device.
//
// Memory: each allocation is made larger by a canary on either side, filled with a pattern, and
// looked at with each event that follows work on it; what is between them begins as poison, so that
// reads of unwritten memory show (canaries.h). Work: what each queue has been given, and up to
// where its events have been seen to be done, says which memory and modules are still in use
// (progress.h). Imported memory is the host's own: nothing is put around or into it, nothing may
// write there, and it is the same when it is freed (B28).
#include <algorithm>
#include <map>
#include <mutex>

#include "core/backend/layers/forward.h"
#include "core/backend/layers/loaded_kernel.h"
#include "core/backend/layers/validate/canaries.h"
#include "core/backend/layers/validate/progress.h"
#include "core/backend/layers/validate/turn.h"
#include "core/backend/layers/validate/validate_answers.h"
#include "core/backend/layers/validate/validate_device.h"
#include "core/base/digest.h"

namespace tenon::backend {
namespace {

class ValidateDevice final : public ForwardingDevice, private Answers {
 public:
  ValidateDevice(std::unique_ptr<Device> inner, TargetInfo target,
                 std::shared_ptr<const PlannedCalls> planned, std::function<void()> closed)
      : ForwardingDevice(std::move(inner)),
        closed_(std::move(closed)),
        target_(std::move(target)),
        planned_(std::move(planned)) {}
  ~ValidateDevice() override {
    close();
    closed_();
  }

  Result<ModuleHandle> load(std::string_view binary, Kernels kernels) override {
    const Turn turn(admin_);
    if (!turn.alone()) return fault("B7", "load beside load, unload, allocate or free");
    TENON_ASSIGN(const ModuleHandle module,
                 check_answer("load", [&] { return ForwardingDevice::load(binary, kernels); }));
    const std::lock_guard lock(mutex_);
    if (module == 0) return fault("B10", "load gave the handle 0");
    if (modules_.contains(module)) return fault("B10", "load gave handle {} twice", module);
    modules_[module].kernels = loaded(kernels);
    return module;
  }

  void unload(ModuleHandle module) override {
    const Turn turn(admin_);
    if (!turn.alone()) note(rule_violation("B7", "unload beside load, unload, allocate or free"));
    {
      const std::lock_guard lock(mutex_);
      const auto found = modules_.find(module);
      if (found == modules_.end())
        return note(rule_violation("B10", "unload of no module {}", module));
      if (!progress_.is_done(found->second.last_use)) {
        note(rule_violation("B18", "module {} is unloaded while work uses it", module));
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
    const int64_t margin = margin_of(target_.spaces[space]);
    if (bytes > INT64_MAX - 2 * margin) return resource_exhausted("there are no {} bytes", bytes);
    TENON_ASSIGN(const MemoryHandle memory, check_answer("allocate", [&] {
                   return ForwardingDevice::allocate(space, bytes + 2 * margin);
                 }));
    return added("allocate", memory, {bytes, space, {}, false, {}, 0});
  }

  Result<MemoryHandle> import_memory(uint32_t space, std::span<const std::byte> host) override {
    const Turn turn(admin_);
    if (!turn.alone()) return fault("B7", "import_memory beside load, unload, allocate or free");
    TENON_TRY(noted());
    if (host.data() == nullptr || host.empty()) return fault("B28", "an import of nothing");
    if (space >= target_.spaces.size()) return fault("B16", "there is no space {}", space);
    TENON_ASSIGN(const MemoryHandle memory, check_answer("import_memory", [&] {
                   return ForwardingDevice::import_memory(space, host);
                 }));
    const auto bytes = static_cast<int64_t>(host.size());
    return added("import_memory", memory, {bytes, space, {}, true, host, hash_of(host)});
  }

  void free(MemoryHandle memory) override {
    const Turn turn(admin_);
    if (!turn.alone()) note(rule_violation("B7", "free beside load, unload, allocate or free"));
    {
      const std::lock_guard lock(mutex_);
      const auto found = memories_.find(memory);
      if (found == memories_.end())
        return note(rule_violation("B10", "free of no memory {}", memory));
      if (!progress_.is_done(found->second.last_use)) {
        note(rule_violation("B18", "memory {} is freed while work uses it", memory));
      }
      if (hash_of(found->second.imported) != found->second.hash) {
        note(rule_violation("B28", "the bytes of imported memory {} have changed", memory));
      }
      memories_.erase(found);
    }
    ForwardingDevice::free(memory);
  }

  Status copy(uint32_t queue, const MemoryAddress& destination, const MemoryAddress& source,
              int64_t bytes) override {
    const Turn turn(callers_of(queue));
    TENON_TRY(begin_work(turn, queue));
    if (bytes <= 0) return rule_violation("B19", "a copy of {} bytes", bytes);
    if (destination.on_host() && source.on_host()) {
      return rule_violation("B19", "a copy from host to host");
    }
    if (overlap(destination, bytes, source, bytes)) {
      return rule_violation("B19", "the ends of a copy of {} bytes overlap", bytes);
    }
    TENON_TRY(check_writable(destination, "a copy's destination"));
    TENON_ASSIGN(const MemoryAddress to, use(queue, destination, bytes, "a copy's destination"));
    TENON_ASSIGN(const MemoryAddress from, use(queue, source, bytes, "a copy's source"));
    return check_answer("copy", [&] { return ForwardingDevice::copy(queue, to, from, bytes); });
  }

  Status fill(uint32_t queue, const MemoryAddress& destination, int64_t bytes,
              std::span<const std::byte> pattern) override {
    const Turn turn(callers_of(queue));
    TENON_TRY(begin_work(turn, queue));
    const auto size = static_cast<int64_t>(pattern.size());
    if (size < 1 || size > 8 || (size & (size - 1)) != 0 || bytes <= 0 || bytes % size != 0) {
      return rule_violation("B19", "a fill of {} bytes with a pattern of {}", bytes, size);
    }
    if (destination.on_host()) return rule_violation("B19", "a fill of host memory");
    TENON_TRY(check_writable(destination, "a fill's destination"));
    TENON_ASSIGN(const MemoryAddress to, use(queue, destination, bytes, "a fill's destination"));
    return ForwardingDevice::fill(queue, to, bytes, pattern);
  }

  Status launch(uint32_t queue, const KernelLaunch& launch) override {
    const Turn turn(callers_of(queue));
    TENON_TRY(begin_work(turn, queue));
    TENON_ASSIGN(const LoadedKernel kernel, kernel_of(queue, launch));
    std::vector<MemoryAddress> places;
    for (size_t i = 0; i < launch.buffers.size(); ++i) {
      const MemoryAddress& place = launch.buffers[i];
      if (place.on_host())
        return rule_violation("B21", "@{}: buffer {} is host memory", kernel.name, i);
      if (kernel.buffers[i].writes) TENON_TRY(check_writable(place, "a buffer that is written"));
      TENON_ASSIGN(places.emplace_back(), use(queue, place, kernel.buffers[i].bytes, "a buffer"));
      const int64_t alignment = alignment_of(place.memory);
      if (place.offset % alignment != 0) {
        return rule_violation("B17", "@{}: buffer {} lies at {}, which {} does not divide",
                              kernel.name, i, place.offset, alignment);
      }
    }
    TENON_TRY(check_aliases(kernel, launch.buffers));
    KernelLaunch moved = launch;
    moved.buffers = places;
    return check_answer("launch", [&] { return ForwardingDevice::launch(queue, moved); });
  }

  // A backend that offers no copy_box, call or pack gets none: the host asks first.
  Status call(uint32_t queue, const LibraryCallLaunch& launch) override {
    const Turn turn(callers_of(queue));
    TENON_TRY(begin_work(turn, queue));
    const PlannedCall sizes = planned_->find(launch.plan);
    LibraryCallLaunch moved = launch;
    TENON_ASSIGN(const std::vector<MemoryAddress> operands,
                 used(queue, launch.operands, sizes.operands, "an operand"));
    for (const MemoryAddress& each : launch.results) TENON_TRY(check_writable(each, "a result"));
    TENON_ASSIGN(const std::vector<MemoryAddress> results,
                 used(queue, launch.results, sizes.results, "a result"));
    moved.operands = operands;
    moved.results = results;
    if (sizes.workspace > 0 && launch.workspace.on_host()) {
      return rule_violation("B17", "a call without its workspace of {} bytes", sizes.workspace);
    }
    TENON_TRY(check_writable(launch.workspace, "a workspace"));
    if (!launch.workspace.on_host()) {
      TENON_ASSIGN(moved.workspace, use(queue, launch.workspace, sizes.workspace, "a workspace"));
    }
    return check_answer("call", [&] { return ForwardingDevice::call(queue, moved); });
  }

  Status pack(uint32_t queue, std::string_view plan, uint32_t operand,
              const MemoryAddress& destination, const MemoryAddress& source) override {
    const Turn turn(callers_of(queue));
    TENON_TRY(begin_work(turn, queue));
    const MemoryAddress both[] = {destination, source};
    TENON_TRY(check_writable(destination, "a packed operand"));
    TENON_ASSIGN(const std::vector<MemoryAddress> moved,
                 used(queue, both, {}, "an operand to pack"));
    return check_answer(
        "pack", [&] { return ForwardingDevice::pack(queue, plan, operand, moved[0], moved[1]); });
  }

  Status copy_box(uint32_t queue, const MemoryAddress& destination, const MemoryAddress& source,
                  const Box& box) override {
    const Turn turn(callers_of(queue));
    TENON_TRY(begin_work(turn, queue));
    if (destination.on_host() && source.on_host()) {
      return rule_violation("B19", "a copy from host to host");
    }
    const MemoryAddress both[] = {destination, source};
    TENON_TRY(check_writable(destination, "a box's destination"));
    TENON_ASSIGN(const std::vector<MemoryAddress> moved, used(queue, both, {}, "an end of a box"));
    return check_answer("copy_box",
                        [&] { return ForwardingDevice::copy_box(queue, moved[0], moved[1], box); });
  }

  Result<EventHandle> record(uint32_t queue) override {
    const Turn turn(callers_of(queue));
    TENON_TRY(begin(turn, queue));
    ValidatedEvent added;
    TENON_ASSIGN(added.canaries, read_canaries(queue));
    Result<EventHandle> answer =
        check_answer("record", [&] { return ForwardingDevice::record(queue); });
    const std::lock_guard lock(mutex_);
    if (!answer) {  // The canaries are on their way.
      keep(queue, std::move(added.canaries));
      return answer;
    }
    const EventHandle event = *answer;
    if (event == 0) return fault("B10", "record gave the handle 0");
    if (events_.contains(event)) return fault("B10", "record gave handle {} twice", event);
    added.recorded = progress_.record(queue);
    events_[event] = std::move(added);
    return event;
  }

  Status wait(uint32_t queue, EventHandle event) override {
    const Turn turn(callers_of(queue));
    TENON_TRY(begin(turn, queue));
    {
      const std::lock_guard lock(mutex_);
      const auto found = events_.find(event);
      if (found == events_.end()) return rule_violation("B10", "a wait for no event {}", event);
      progress_.wait(queue, found->second.recorded.covers);
    }
    return check_answer("wait", [&] { return ForwardingDevice::wait(queue, event); });
  }

  Result<bool> await(EventHandle event, int64_t timeout) override {
    {
      const std::lock_guard lock(mutex_);
      if (!events_.contains(event)) return fault("B10", "await of no event {}", event);
    }
    const bool lost = lost_;
    Result<bool> done = ForwardingDevice::await(event, timeout);
    if (!done && done.error().code() == ErrorCode::kUnavailable) lost_ = true;
    const std::lock_guard lock(mutex_);
    const auto found = events_.find(event);
    if (done && !*done) {
      // Breaks of rules are noted for the next call; the event stays pending.
      if (timeout < 0)
        note(rule_violation("B25", "await without limit answers that the event is pending"));
      if (lost) note(rule_violation("B12", "an event of a lost device is pending"));
      if (found != events_.end() && !found->second.outcome.empty()) {
        note(rule_violation("B25", "an event that was '{}' is pending now", found->second.outcome));
      }
      return done;
    }
    if (found == events_.end()) return done;
    if (!done && found->second.recorded.idle && done.error().code() != ErrorCode::kUnavailable) {
      return fault("B23", "an event of no work failed: {}", done.error().message());
    }
    const std::string outcome = done ? "done" : done.error().message();
    if (!found->second.outcome.empty() && outcome != found->second.outcome) {
      return fault("B25", "an event that was '{}' is '{}' now", found->second.outcome, outcome);
    }
    found->second.outcome = outcome;
    progress_.done(found->second.recorded.covers);
    if (done) TENON_TRY(check_canaries(found->second.canaries));
    TENON_TRY(noted());
    return done;
  }

  void release(EventHandle event) override {
    {
      const std::lock_guard lock(mutex_);
      const auto found = events_.find(event);
      if (found == events_.end())
        return note(rule_violation("B10", "release of no event {}", event));
      // Copies of canaries for this event may still be in flight (B26).
      if (found->second.outcome.empty()) {
        released_.push_back({found->second.recorded.covers, std::move(found->second.canaries)});
      }
      events_.erase(found);
    }
    ForwardingDevice::release(event);
  }

  Result<std::byte*> map(MemoryHandle memory) override {
    const Turn turn(admin_);
    if (!turn.alone()) return fault("B7", "map beside load, unload, allocate or free");
    TENON_ASSIGN(std::byte* const host,
                 check_answer("map", [&] { return ForwardingDevice::map(memory); }));
    if (host == nullptr) return fault("B29", "map gives no address of memory {}", memory);
    const std::lock_guard lock(mutex_);
    const auto found = memories_.find(memory);
    if (found == memories_.end()) return fault("B10", "map of no memory {}", memory);
    return host + guarded_of(*found).margin;
  }

 private:
  struct ValidatedAllocation {
    int64_t bytes = 0;
    uint32_t space = 0;
    QueueProgress::Marks last_use;
    bool painted = false;
    std::span<const std::byte> imported;
    uint64_t hash = 0;  // Hash of the imported bytes.
  };
  struct ValidatedModule {
    std::vector<LoadedKernel> kernels;
    QueueProgress::Marks last_use;
  };
  struct ValidatedEvent {
    QueueProgress::Recorded recorded;
    std::string outcome;
    std::vector<Canaries> canaries;
  };

  template <class... Args>
  static tl::unexpected<Status> fault(std::string_view rule, fmt::format_string<Args...> format,
                                      Args&&... args) {
    return tl::make_unexpected(rule_violation(rule, format, std::forward<Args>(args)...));
  }

  Result<MemoryHandle> added(std::string_view function, MemoryHandle memory,
                             ValidatedAllocation made) {
    const std::lock_guard lock(mutex_);
    if (memory == 0) return fault("B10", "{} gave the handle 0", function);
    if (memories_.contains(memory)) {
      return fault("B10", "{} gave handle {} twice", function, memory);
    }
    memories_[memory] = std::move(made);
    return memory;
  }

  static uint64_t hash_of(std::span<const std::byte> bytes) {
    if (bytes.empty()) return 0;
    return serial::short_digest_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

  Status check_writable(const MemoryAddress& place, std::string_view what) {
    const std::lock_guard lock(mutex_);
    const auto found = memories_.find(place.memory);
    if (found == memories_.end() || found->second.imported.empty()) return {};
    return rule_violation("B28", "{} is imported memory {}, which is only read", what,
                          place.memory);
  }

  // Begins a call that gives work to the queue; a record uses begin().
  Status begin_work(const Turn& turn, uint32_t queue) {
    TENON_TRY(begin(turn, queue));
    const std::lock_guard lock(mutex_);
    progress_.work(queue);
    return {};
  }

  Status begin(const Turn& turn, uint32_t queue) {
    if (!turn.alone()) return rule_violation("B7", "two calls for queue {} at once", queue);
    if (queue >= target_.queues) return rule_violation("B10", "there is no queue {}", queue);
    return noted();
  }

  std::atomic<int>& callers_of(uint32_t queue) {
    const std::lock_guard lock(mutex_);
    return callers_[queue];
  }

  int64_t alignment_of(MemoryHandle memory) {
    const std::lock_guard lock(mutex_);
    const auto found = memories_.find(memory);
    return target_.spaces[found == memories_.end() ? 0 : found->second.space].alignment;
  }

  // Marks bytes as used by the next work and gives their address in the inner device; called from
  // the queue's thread.
  Result<MemoryAddress> use(uint32_t queue, const MemoryAddress& place, int64_t bytes,
                            std::string_view what) {
    if (place.on_host()) {
      if (place.host == nullptr) return fault("B19", "{} is null", what);
      return place;
    }
    Guarded guarded;
    bool painted = false;
    {
      const std::lock_guard lock(mutex_);
      const auto found = memories_.find(place.memory);
      if (found == memories_.end()) return fault("B10", "{}: no memory {}", what, place.memory);
      if (place.offset < 0 || bytes > found->second.bytes - place.offset) {
        return fault("B17", "{}: {} bytes at {} of {}", what, bytes, place.offset,
                     found->second.bytes);
      }
      progress_.use(queue, found->second.last_use);
      guarded = guarded_of(*found);
      painted = found->second.painted;
    }
    const MemoryAddress within = {place.memory, place.offset + guarded.margin, nullptr};
    if (painted) return within;
    TENON_TRY(paint_guarded(inner(), queue, guarded));
    const std::lock_guard lock(mutex_);
    if (const auto found = memories_.find(place.memory); found != memories_.end()) {
      found->second.painted = true;
    }
    return within;
  }

  Guarded guarded_of(const std::pair<const MemoryHandle, ValidatedAllocation>& memory) const {
    const ValidatedAllocation& of = memory.second;
    const int64_t margin = of.imported.empty() ? margin_of(target_.spaces[of.space]) : 0;
    return {memory.first, of.bytes, margin};
  }

  // The addresses of arrays in the inner device; sizes as far as they are known.
  Result<std::vector<MemoryAddress>> used(uint32_t queue, std::span<const MemoryAddress> places,
                                          const std::vector<int64_t>& sizes,
                                          std::string_view what) {
    std::vector<MemoryAddress> moved;
    for (size_t i = 0; i < places.size(); ++i) {
      const int64_t bytes = i < sizes.size() ? sizes[i] : 0;
      TENON_ASSIGN(moved.emplace_back(), use(queue, places[i], bytes, what));
    }
    return moved;
  }

  Result<LoadedKernel> kernel_of(uint32_t queue, const KernelLaunch& launch) {
    const std::lock_guard lock(mutex_);
    const auto module = modules_.find(launch.module);
    if (module == modules_.end()) return fault("B10", "a launch of no module {}", launch.module);
    const std::vector<LoadedKernel>& kernels = module->second.kernels;
    if (kernels.empty() && launch.kernel == 0) {  // A segment: its buffers are not checked.
      progress_.use(queue, module->second.last_use);
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
    progress_.use(queue, module->second.last_use);
    return kernel;
  }

  static Status check_aliases(const LoadedKernel& kernel, std::span<const MemoryAddress> places) {
    const auto aliases = first_alias(kernel, places);
    if (!aliases) return {};
    return rule_violation("B21", "@{}: buffers {} and {} overlap", kernel.name, aliases->first,
                          aliases->second);
  }

  // Queues copies that read the canaries of all memory that the queue has used since its last
  // record.
  Result<std::vector<Canaries>> read_canaries(uint32_t queue) {
    std::vector<Canaries> all;
    {
      const std::lock_guard lock(mutex_);
      std::erase_if(released_,
                    [&](const Released& each) { return progress_.is_done(each.covers); });
      for (const auto& memory : memories_) {
        const ValidatedAllocation& of = memory.second;
        const bool around = of.painted && of.imported.empty();
        if (around && progress_.uses(queue, of.last_use)) all.emplace_back(guarded_of(memory));
      }
    }
    for (Canaries& each : all) {
      const Status read = each.read(inner(), queue);
      if (read.ok()) continue;
      // The queued copies may still write there.
      const std::lock_guard lock(mutex_);
      keep(queue, std::move(all));
      return tl::make_unexpected(read);
    }
    return all;
  }

  static Status check_canaries(const std::vector<Canaries>& canaries) {
    for (const Canaries& each : canaries) {
      const std::optional<int64_t> at = each.written_at();
      if (!at) continue;
      return rule_violation("B21", "something was written at {} of memory {}, which has {} bytes",
                            *at, each.of.memory, each.of.bytes);
    }
    return {};
  }

  // Canaries of a released event, kept until the work before it is done.
  struct Released {
    QueueProgress::Marks covers;
    std::vector<Canaries> canaries;
  };
  // Keeps canaries until all work given to the queue is done.
  void keep(uint32_t queue, std::vector<Canaries> canaries) {
    Released& kept = released_.emplace_back();
    progress_.use(queue, kept.covers);
    kept.canaries = std::move(canaries);
  }

  const std::function<void()> closed_;
  const TargetInfo target_;
  const std::shared_ptr<const PlannedCalls> planned_;
  std::atomic<int> admin_ = 0;
  std::mutex mutex_;
  std::map<MemoryHandle, ValidatedAllocation> memories_;
  std::map<ModuleHandle, ValidatedModule> modules_;
  std::map<EventHandle, ValidatedEvent> events_;
  std::vector<Released> released_;
  std::map<uint32_t, std::atomic<int>> callers_;  // Callers within each queue's functions.
  QueueProgress progress_;
};

}  // namespace

std::unique_ptr<Device> make_validate_device(std::unique_ptr<Device> inner,
                                             const TargetInfo& target,
                                             std::shared_ptr<const PlannedCalls> planned,
                                             std::function<void()> closed) {
  return std::make_unique<ValidateDevice>(std::move(inner), target, std::move(planned),
                                          std::move(closed));
}

}  // namespace tenon::backend
