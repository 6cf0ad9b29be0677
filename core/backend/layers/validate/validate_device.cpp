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
#include "core/backend/layers/validate/memory_table.h"
#include "core/backend/layers/validate/pending_checks.h"
#include "core/backend/layers/validate/progress.h"
#include "core/backend/layers/validate/turn.h"
#include "core/backend/layers/validate/validate_answers.h"
#include "core/backend/layers/validate/validate_device.h"

namespace tenon::backend {
namespace {

class ValidateDevice final : public ForwardingDevice, private Answers {
 public:
  ValidateDevice(std::unique_ptr<Device> inner, TargetInfo target,
                 std::shared_ptr<const PlannedCalls> planned, std::function<void()> closed)
      : ForwardingDevice(std::move(inner)),
        closed_(std::move(closed)),
        target_(std::move(target)),
        planned_(std::move(planned)),
        memories_(target_) {}
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
    const std::lock_guard lock(mutex_);
    TENON_TRY(memories_.add("allocate", memory, bytes, space));
    return memory;
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
    const std::lock_guard lock(mutex_);
    TENON_TRY(
        memories_.add("import_memory", memory, static_cast<int64_t>(host.size()), space, host));
    return memory;
  }

  void free(MemoryHandle memory) override {
    const Turn turn(admin_);
    if (!turn.alone()) note(rule_violation("B7", "free beside load, unload, allocate or free"));
    {
      const std::lock_guard lock(mutex_);
      if (!memories_.contains(memory))
        return note(rule_violation("B10", "free of no memory {}", memory));
      for (Status& wrong : memories_.remove(memory, progress_)) note(std::move(wrong));
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
    TENON_ASSIGN(const MemoryAddress to,
                 use(queue, destination, bytes, MemoryUse::kWrite, "a copy's destination"));
    TENON_ASSIGN(const MemoryAddress from,
                 use(queue, source, bytes, MemoryUse::kRead, "a copy's source"));
    const auto give = [&] {
      return check_answer("copy", [&] { return ForwardingDevice::copy(queue, to, from, bytes); });
    };
    if (!use_host(queue, to, {0, bytes}, MemoryUse::kWrite)) return give();
    if (!use_host(queue, from, {0, bytes}, MemoryUse::kRead)) return give();
    const WorkCheck check =
        WorkCheck::of_copy(CheckedRange::of(destination, to, bytes),
                           CheckedRange::of(source, from, bytes), target_.queues == 1);
    return checked(queue, check, give);
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
    TENON_ASSIGN(const MemoryAddress to,
                 use(queue, destination, bytes, MemoryUse::kWrite, "a fill's destination"));
    const WorkCheck check =
        WorkCheck::of_fill(CheckedRange::of(destination, to, bytes), pattern, target_.queues == 1);
    return checked(queue, check, [&] { return ForwardingDevice::fill(queue, to, bytes, pattern); });
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
      TENON_ASSIGN(
          places.emplace_back(),
          use(queue, place, kernel.buffers[i].bytes,
              kernel.buffers[i].writes ? MemoryUse::kWrite : MemoryUse::kRead, "a buffer"));
      const int64_t alignment = alignment_of(place.memory);
      if (place.offset % alignment != 0) {
        return rule_violation("B17", "@{}: buffer {} lies at {}, which {} does not divide",
                              kernel.name, i, place.offset, alignment);
      }
    }
    TENON_TRY(check_aliases(kernel, launch.buffers));
    KernelLaunch moved = launch;
    moved.buffers = places;
    return checked(
        queue, WorkCheck::of_launch(kernel, launch.buffers, places, target_.queues == 1), [&] {
          return check_answer("launch", [&] { return ForwardingDevice::launch(queue, moved); });
        });
  }

  // A backend that offers no copy_box, call or pack gets none: the host asks first.
  Status call(uint32_t queue, const LibraryCallLaunch& launch) override {
    const Turn turn(callers_of(queue));
    TENON_TRY(begin_work(turn, queue));
    const PlannedCall sizes = planned_->find(launch.plan);
    LibraryCallLaunch moved = launch;
    TENON_ASSIGN(const std::vector<MemoryAddress> operands,
                 used(queue, launch.operands, sizes.operands, MemoryUse::kRead, "an operand"));
    for (const MemoryAddress& each : launch.results) TENON_TRY(check_writable(each, "a result"));
    TENON_ASSIGN(const std::vector<MemoryAddress> results,
                 used(queue, launch.results, sizes.results, MemoryUse::kWrite, "a result"));
    moved.operands = operands;
    moved.results = results;
    if (sizes.workspace > 0 && launch.workspace.on_host()) {
      return rule_violation("B17", "a call without its workspace of {} bytes", sizes.workspace);
    }
    TENON_TRY(check_writable(launch.workspace, "a workspace"));
    if (!launch.workspace.on_host()) {
      TENON_ASSIGN(moved.workspace,
                   use(queue, launch.workspace, sizes.workspace, MemoryUse::kWrite, "a workspace"));
    }
    return checked(queue, WorkCheck::of_call(launch, moved, sizes, target_.queues == 1), [&] {
      return check_answer("call", [&] { return ForwardingDevice::call(queue, moved); });
    });
  }

  Status pack(uint32_t queue, std::string_view plan, uint32_t operand,
              const MemoryAddress& destination, const MemoryAddress& source) override {
    const Turn turn(callers_of(queue));
    TENON_TRY(begin_work(turn, queue));
    TENON_TRY(check_writable(destination, "a packed operand"));
    // Its size is the plan's own.
    TENON_ASSIGN(const MemoryAddress to,
                 use(queue, destination, 0, MemoryUse::kWrite, "an operand to pack"));
    TENON_ASSIGN(const MemoryAddress from,
                 use(queue, source, 0, MemoryUse::kRead, "an operand to pack"));
    return check_answer("pack",
                        [&] { return ForwardingDevice::pack(queue, plan, operand, to, from); });
  }

  Status copy_box(uint32_t queue, const MemoryAddress& destination, const MemoryAddress& source,
                  const Box& box) override {
    const Turn turn(callers_of(queue));
    TENON_TRY(begin_work(turn, queue));
    if (destination.on_host() && source.on_host()) {
      return rule_violation("B19", "a copy from host to host");
    }
    TENON_TRY(check_writable(destination, "a box's destination"));
    bool is_known = true;  // The bytes of the host are.
    const auto end_of_box = [&](const MemoryAddress& place, const Dims& strides, MemoryUse access) {
      const TouchedBytes range = range_of(place.offset, box, strides);
      is_known &= use_host(queue, place, range, access);
      return use(queue, place, range, access, "an end of a box");
    };
    TENON_ASSIGN(const MemoryAddress to,
                 end_of_box(destination, box.destination_strides, MemoryUse::kWrite));
    TENON_ASSIGN(const MemoryAddress from,
                 end_of_box(source, box.source_strides, MemoryUse::kRead));
    const auto give = [&] {
      return check_answer("copy_box",
                          [&] { return ForwardingDevice::copy_box(queue, to, from, box); });
    };
    if (!is_known) return give();
    return checked(queue,
                   WorkCheck::of_box({destination, to}, {source, from}, box, target_.queues == 1),
                   give);
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
    if (event == 0 || events_.contains(event)) {
      std::ranges::move(added.canaries, std::back_inserter(kept_canaries_));
      if (event == 0) return fault("B10", "record gave the handle 0");
      return fault("B10", "record gave handle {} twice", event);
    }
    added.recorded = progress_.record(queue);
    added.failed = std::exchange(failed_[queue], Status());
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
    if (done && !found->second.failed.ok()) done = tl::make_unexpected(found->second.failed);
    if (!done && found->second.recorded.idle && done.error().code() != ErrorCode::kUnavailable) {
      return fault("B23", "an event of no work failed: {}", done.error().message());
    }
    const std::string outcome = done ? std::string(kDone) : done.error().message();
    if (!found->second.outcome.empty() && outcome != found->second.outcome) {
      return fault("B25", "an event that was '{}' is '{}' now", found->second.outcome, outcome);
    }
    found->second.outcome = outcome;
    progress_.done(found->second.recorded.covers);
    Status wrong = checks_.judge(progress_, done ? ok_records() : PendingChecks::Records());
    if (done && wrong.ok()) wrong = check_canaries(found->second.canaries);
    if (!wrong.ok()) {  // A device that breaks rules may write there late.
      std::ranges::move(found->second.canaries, std::back_inserter(kept_canaries_));
      found->second.canaries.clear();
      return tl::make_unexpected(std::move(wrong));
    }
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
    if (!memories_.contains(memory)) return fault("B10", "map of no memory {}", memory);
    return host + memories_.guarded(memory).margin;
  }

 private:
  static constexpr std::string_view kDone = "done";  // The outcome of an event that is OK.

  struct ValidatedModule {
    std::vector<LoadedKernel> kernels;
    QueueProgress::Marks last_use;
  };
  struct ValidatedEvent {
    QueueProgress::Recorded recorded;
    std::string outcome;
    std::vector<Canaries> canaries;
    Status failed;  // Error of drained work before it.
  };

  template <class... Args>
  static tl::unexpected<Status> fault(std::string_view rule, fmt::format_string<Args...> format,
                                      Args&&... args) {
    return tl::make_unexpected(rule_violation(rule, format, std::forward<Args>(args)...));
  }

  Status check_writable(const MemoryAddress& place, std::string_view what) {
    const std::lock_guard lock(mutex_);
    return memories_.check_writable(place, what);
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
    return memories_.alignment_of(memory);
  }

  Result<MemoryAddress> use(uint32_t queue, const MemoryAddress& place, int64_t bytes,
                            MemoryUse access, std::string_view what) {
    return use(queue, place, TouchedBytes{place.offset, place.offset + bytes}, access, what);
  }

  // Marks bytes as used by the next work and gives their address in the inner device; called from
  // the queue's thread.
  Result<MemoryAddress> use(uint32_t queue, const MemoryAddress& place, const TouchedBytes& range,
                            MemoryUse access, std::string_view what) {
    if (place.on_host()) {
      if (place.host == nullptr) return fault("B19", "{} is null", what);
      return place;
    }
    std::unique_lock lock(mutex_);
    TENON_ASSIGN(const Guarded guarded,
                 memories_.use(progress_, queue, place.memory, range, access, what));
    const bool painted = memories_.is_painted(place.memory);
    lock.unlock();
    if (!painted) TENON_TRY(paint_new(queue, guarded));
    return MemoryAddress{place.memory, place.offset + guarded.margin, nullptr};
  }

  // Paints memory before its first use; called from the queue's thread. With several queues none
  // uses it before it is painted.
  Status paint_new(uint32_t queue, const Guarded& guarded) {
    const std::lock_guard painting(painting_);
    {
      const std::lock_guard lock(mutex_);
      if (memories_.is_painted(guarded.memory)) return {};
    }
    TENON_TRY(paint_guarded(inner(), queue, guarded));
    if (target_.queues > 1) drain(queue);
    const std::lock_guard lock(mutex_);
    memories_.set_painted(guarded.memory);
    return {};
  }

  // Waits for what the queue was given. An error of that is the host's next event's (B23).
  void drain(uint32_t queue) {
    const Result<EventHandle> event = ForwardingDevice::record(queue);
    if (!event) return;
    const Result<bool> done = ForwardingDevice::await(*event, -1);
    ForwardingDevice::release(*event);
    const std::lock_guard lock(mutex_);
    Status& failed = failed_[queue];
    if (!done && failed.ok()) failed = done.error();
  }

  // The addresses of arrays in the inner device; sizes as far as they are known.
  Result<std::vector<MemoryAddress>> used(uint32_t queue, std::span<const MemoryAddress> places,
                                          const std::vector<int64_t>& sizes, MemoryUse access,
                                          std::string_view what) {
    std::vector<MemoryAddress> moved;
    for (size_t i = 0; i < places.size(); ++i) {
      const int64_t bytes = i < sizes.size() ? sizes[i] : 0;
      TENON_ASSIGN(moved.emplace_back(), use(queue, places[i], bytes, access, what));
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
      for (const Guarded& each : memories_.used_with_margins(progress_, queue)) {
        all.emplace_back(each);
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

  // The events that are OK, of those whose work is done. The device is asked for those that the
  // host has not awaited: it may await them in any order. Called with mutex_.
  PendingChecks::Records ok_records() {
    PendingChecks::Records ok;
    for (const auto& [event, each] : events_) {
      const QueueProgress::Recorded& recorded = each.recorded;
      if (!progress_.is_done(recorded.queue, recorded.record) || !each.failed.ok()) continue;
      bool is_ok = each.outcome == kDone;
      if (each.outcome.empty()) is_ok = ForwardingDevice::await(event, 0).value_or(false);
      if (is_ok) ok.emplace(recorded.queue, recorded.record);
    }
    return ok;
  }

  // Notes that the queue's next work uses the place, if it is on the host; whether that may be
  // checked.
  bool use_host(uint32_t queue, const MemoryAddress& place, const TouchedBytes& range,
                MemoryUse access) {
    if (!place.on_host() || place.host == nullptr) return true;
    const std::lock_guard lock(mutex_);
    const std::span bytes(place.host + range.begin, static_cast<size_t>(range.end - range.begin));
    return checks_.use_host(progress_, queue, bytes, access == MemoryUse::kWrite);
  }

  // Gives work to the queue between the copies that check it.
  template <class Give>
  Status checked(uint32_t queue, WorkCheck check, const Give& give) {
    const auto keep_check = [&](bool is_void) {
      const std::lock_guard lock(mutex_);
      if (is_void) return checks_.add_void(progress_, queue, std::move(check));
      checks_.add(progress_, queue, std::move(check));
    };
    Status status = check.before(inner(), queue);
    if (status.ok()) status = give();
    if (status.ok()) status = check.behind(inner(), queue);
    keep_check(!status.ok());
    return status;
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
  MemoryTable memories_;
  std::map<ModuleHandle, ValidatedModule> modules_;
  std::map<EventHandle, ValidatedEvent> events_;
  std::vector<Released> released_;
  PendingChecks checks_;
  std::vector<Canaries> kept_canaries_;           // Of broken rules, until the device is closed.
  std::map<uint32_t, std::atomic<int>> callers_;  // Callers within each queue's functions.
  std::map<uint32_t, Status> failed_;  // By queue, the error of work drained since its last record.
  std::mutex painting_;                // Taken before mutex_.
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
