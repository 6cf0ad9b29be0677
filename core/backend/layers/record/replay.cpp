#include "core/backend/layers/record/replay.h"

#include <cmath>
#include <cstring>

#include "core/backend/layers/paint.h"
#include "core/kernel/legalize/legalize.h"
#include "core/types/literal.h"

namespace tenon::backend {

using recorded::Number;

namespace {

const std::byte* as_bytes(std::string_view text) {
  return reinterpret_cast<const std::byte*>(text.data());
}

bool is_nan(ElementType type, const std::byte* element) {
  return is_float(type) && std::isnan(Literal::scalar_from_bytes(type, element).get_double(0));
}

std::string text_of(ElementType type, const std::byte* element) {
  return Literal::scalar_from_bytes(type, element).element_to_string(0);
}

// Fills in the first difference; false if there is none.
bool differ(ElementType type, const std::byte* recorded, const std::byte* replayed, int64_t bytes,
            Difference& found) {
  const auto width = static_cast<int64_t>(storage_bytes(type));
  found.type = type;
  found.elements = bytes / width;
  for (int64_t at = 0; at + width <= bytes; at += width) {
    const std::byte* a = recorded + at;
    const std::byte* b = replayed + at;
    if (std::memcmp(a, b, static_cast<size_t>(width)) == 0) continue;
    if (is_nan(type, a) && is_nan(type, b)) continue;
    if (found.differing++ > 0) continue;
    found.element = at / width;
    found.recorded = text_of(type, a);
    found.replayed = text_of(type, b);
  }
  return found.differing != 0;
}

class Replayer {
 public:
  Replayer(const Recording& recording, Backend& backend, const ReplayOptions& options)
      : recording_(recording), backend_(backend), options_(options) {
    for (const recorded::Entry& entry : recording.entries) {
      if (const auto* values = std::get_if<recorded::RecordedValues>(&entry)) {
        values_[values->work] = values;
      } else if (const auto* failed = std::get_if<recorded::RecordedFailure>(&entry)) {
        failed_[failed->work] = failed;
      }
    }
  }

  Status open(size_t index) {
    TENON_ASSIGN(const std::vector<DeviceInfo> devices, backend_.devices());
    if (index >= devices.size()) {
      return not_found("backend {} has {} devices, there is no number {}", backend_.name(),
                       devices.size(), index);
    }
    target_ = devices[index].target;
    TENON_ASSIGN(device_, backend_.open(index));
    return {};
  }

  Result<ReplayReport> run() {
    for (entry_ = 0; entry_ < recording_.entries.size() && !report_.stopped; ++entry_) {
      if (skips()) {
        ++report_.skipped;
        continue;
      }
      Status status =
          std::visit([&](const auto& entry) { return act(entry); }, recording_.entries[entry_]);
      if (!status.ok()) {
        return tl::make_unexpected(std::move(status).with_context(fmt::format("entry {}", entry_)));
      }
    }
    return std::move(report_);
  }

 private:
  // Whether the entry is skipped: its work was refused, ended by the host, or lost with its device.
  bool skips() const {
    const auto found = failed_.find(entry_);
    if (found == failed_.end()) return false;
    const auto code = static_cast<ErrorCode>(found->second->code);
    return found->second->call || code == ErrorCode::kCancelled || code == ErrorCode::kUnavailable;
  }

  // --- Entries without an action

  static Status act(const recorded::RecordedBytes&) { return {}; }
  static Status act(const recorded::RecordedCompile&) { return {}; }
  static Status act(const recorded::RecordedRecord&) { return {}; }
  static Status act(const recorded::RecordedWait&) { return {}; }
  static Status act(const recorded::RecordedValues&) { return {}; }
  static Status act(const recorded::RecordedFailure&) { return {}; }

  // --- Devices, modules, memory. All that was open lies on one device: it is open once (B11).

  Status act(const recorded::RecordedOpen& e) {
    same_target_[e.opening] =
        e.backend == backend_.name() && e.target == to_string(target_) && !e.target.empty();
    return {};
  }

  Status act(const recorded::RecordedClose& e) {
    for (auto each = modules_.begin(); each != modules_.end();) {
      if (each->second.opening == e.opening) device_->unload(each->second.handle);
      each = each->second.opening == e.opening ? modules_.erase(each) : std::next(each);
    }
    for (auto each = memories_.begin(); each != memories_.end();) {
      if (each->second.opening == e.opening) device_->free(each->second.handle);
      each = each->second.opening == e.opening ? memories_.erase(each) : std::next(each);
    }
    return {};
  }

  Status act(const recorded::RecordedLoad& e) {
    ReplayedModule module = {e.opening, 0};
    if (same_target_[e.opening]) {
      std::vector<const kernel::Kernel*> kernels;
      for (const Number each : e.kernels) kernels.push_back(&recording_.kernels.at(each));
      TENON_ASSIGN(module.handle, device_->load(recording_.bytes[e.binary], kernels));
      ++report_.modules_loaded;
    } else {
      TENON_ASSIGN(module.handle, compile(e));
      ++report_.modules_compiled;
    }
    modules_[e.module] = module;
    return {};
  }

  Result<ModuleHandle> compile(const recorded::RecordedLoad& e) {
    std::vector<kernel::Kernel> made;
    std::vector<const kernel::Kernel*> kernels;
    made.reserve(e.kernels.size());
    kernel::TargetFeatures form = features_of(target_);
    form.math = false;  // The recorded bits are those of the expansions.
    for (const Number each : e.kernels) {
      const kernel::Kernel& kernel = recording_.kernels.at(each);
      if (target_.accepts_all) {
        kernels.push_back(&kernel);
        continue;
      }
      auto legal = kernel::legalize(kernel, form);
      if (!legal) {
        return tl::make_unexpected(
            std::move(legal.error())
                .with_context(fmt::format("@{} has no form for {}", kernel.name, target_.name)));
      }
      kernels.push_back(&made.emplace_back(*std::move(legal)));
    }
    TENON_ASSIGN(const Compiled compiled, backend_.compile(target_, kernels));
    if (!compiled.declined.empty()) {
      const Declined& first = compiled.declined.front();
      return failed_precondition("{} declines @{}: {} ({})", target_.name,
                                 kernels[first.kernel]->name, first.text, name_of(first.reason));
    }
    return device_->load(compiled.binary, kernels);
  }

  Status act(const recorded::RecordedUnload& e) {
    device_->unload(modules_.at(e.module).handle);
    modules_.erase(e.module);
    return {};
  }

  Status act(const recorded::RecordedAllocate& e) {
    const uint32_t space = e.space < target_.spaces.size() ? e.space : 0;
    TENON_ASSIGN(const MemoryHandle handle, device_->allocate(space, e.bytes));
    memories_[e.memory] = {e.opening, handle};
    TENON_TRY(paint(*device_, 0, {handle, 0, nullptr}, e.bytes, kUnwritten));
    return finish();
  }

  Status act(const recorded::RecordedFree& e) {
    device_->free(memories_.at(e.memory).handle);
    memories_.erase(e.memory);
    return {};
  }

  // --- Work

  Status act(const recorded::RecordedCopy& e) {
    ++report_.copies;
    ElementType type = type_at(e.source);
    if (e.bytes % static_cast<int64_t>(storage_bytes(type)) != 0) type = ElementType::kU8;
    if (e.destination.memory != 0) {
      const MemoryAddress from = e.source.memory == 0
                                     ? MemoryAddress::of_host(as_bytes(recording_.bytes[e.data]))
                                     : place(e.source);
      TENON_TRY(device_->copy(0, place(e.destination), from, e.bytes));
      set_type(e.destination, e.bytes, type);
      return outcome(finish());
    }
    std::vector<std::byte> got(static_cast<size_t>(e.bytes));
    TENON_TRY(device_->copy(0, MemoryAddress::of_host(got.data()), place(e.source), e.bytes));
    const Status done = finish();
    const auto values = values_.find(entry_);
    if (values == values_.end() || values->second->written.empty() || !done.ok()) {
      return outcome(done);
    }
    Difference difference;
    difference.buffer = "the copy to the host";
    return compare(e.source, type, recording_.bytes[values->second->written[0].data], got,
                   std::move(difference));
  }

  Status act(const recorded::RecordedFill& e) {
    const std::string_view pattern = recording_.bytes[e.pattern];
    set_type(e.destination, e.bytes, ElementType::kU8);
    Status filled =
        device_->fill(0, place(e.destination), e.bytes, std::as_bytes(std::span(pattern)));
    if (filled.ok()) return outcome(finish());
    if (filled.code() != ErrorCode::kUnimplemented) return filled;
    std::string whole;
    while (static_cast<int64_t>(whole.size()) < e.bytes) whole += pattern;
    TENON_TRY(
        device_->copy(0, place(e.destination), MemoryAddress::of_host(as_bytes(whole)), e.bytes));
    return outcome(finish());
  }

  Status act(const recorded::RecordedLaunch& e) {
    ++report_.launches;
    const kernel::Kernel& kernel = recording_.kernel_of(e);
    std::vector<MemoryAddress> places;
    for (const recorded::RecordedAddress& each : e.buffers) places.push_back(place(each));
    std::vector<MemoryHandle> bounced;
    Status status = bounce_in(kernel, places, bounced);
    if (status.ok()) {
      KernelLaunch launch;
      launch.module = modules_.at(e.module).handle;
      launch.kernel = e.kernel;
      launch.buffers = places;
      launch.scalars = e.scalars;
      launch.label = e.label.c_str();
      status = device_->launch(0, launch);
    }
    if (status.ok() && !bounced.empty()) status = bounce_out(kernel, e, places);
    const Status done = finish();
    for (const MemoryHandle each : bounced) device_->free(each);
    TENON_TRY(outcome(status.ok() ? done : status));
    for (size_t i = 0; i < e.buffers.size(); ++i) {
      const kernel::Memory& memory = kernel.memories[i];
      if (memory.access != kernel::Access::kIn) {
        set_type(e.buffers[i], memory.bytes(), memory.packed ? ElementType::kU8 : memory.type);
      }
    }
    return check_written(e, kernel);
  }

  Status check_written(const recorded::RecordedLaunch& e, const kernel::Kernel& kernel) {
    const auto values = values_.find(entry_);
    if (values == values_.end()) return {};
    for (const recorded::Written& each : values->second->written) {
      const kernel::Memory& memory = kernel.memories[each.buffer];
      const std::string_view expected = recording_.bytes[each.data];
      if (expected.empty()) continue;
      std::vector<std::byte> got(expected.size());
      TENON_TRY(device_->copy(0, MemoryAddress::of_host(got.data()), place(e.buffers[each.buffer]),
                              static_cast<int64_t>(got.size())));
      TENON_TRY(finish());
      Difference difference;
      difference.label = e.label;
      difference.kernel = kernel.name;
      difference.buffer = memory.name;
      TENON_TRY(compare(e.buffers[each.buffer], memory.packed ? ElementType::kU8 : memory.type,
                        expected, got, std::move(difference)));
      if (report_.stopped) return {};
    }
    return {};
  }

  Status compare(const recorded::RecordedAddress& where, ElementType type,
                 std::string_view expected, std::span<const std::byte> got, Difference difference) {
    ++report_.compared;
    report_.compared_bytes += static_cast<int64_t>(got.size());
    const std::byte* recorded = as_bytes(expected);
    if (std::memcmp(recorded, got.data(), got.size()) == 0) return {};
    difference.entry = entry_;
    if (differ(type, recorded, got.data(), static_cast<int64_t>(got.size()), difference)) {
      report_.differences.push_back(std::move(difference));
      report_.stopped = report_.differences.size() >= options_.most_differences;
    }
    TENON_TRY(device_->copy(0, place(where), MemoryAddress::of_host(recorded),
                            static_cast<int64_t>(got.size())));
    return finish();
  }

  // Work that failed when it was recorded may fail in the replay.
  Status outcome(const Status& status) {
    if (status.ok() || !failed_.contains(entry_)) return status;
    report_.errors.push_back(fmt::format("entry {}: {}", entry_, status.message()));
    return {};
  }

  Status finish() {
    TENON_ASSIGN(const EventHandle event, device_->record(0));
    const Result<bool> done = device_->await(event, -1);
    device_->release(event);
    return done ? Status() : done.error();
  }

  // --- Buffers that do not lie where this target wants them (B17)

  bool is_aligned(const MemoryAddress& place) const {
    return place.offset % target_.spaces[0].alignment == 0;
  }

  // Copies each buffer that is not aligned to new memory, with its contents.
  Status bounce_in(const kernel::Kernel& kernel, std::vector<MemoryAddress>& places,
                   std::vector<MemoryHandle>& bounced) {
    std::map<std::pair<MemoryHandle, int64_t>, MemoryHandle> made;
    for (size_t i = 0; i < places.size(); ++i) {
      const int64_t bytes = kernel.memories[i].bytes();
      if (is_aligned(places[i]) || bytes == 0) continue;
      MemoryHandle& memory = made[{places[i].memory, places[i].offset}];
      if (memory == 0) {
        TENON_ASSIGN(memory, device_->allocate(0, bytes));
        bounced.push_back(memory);
        TENON_TRY(device_->copy(0, {memory, 0, nullptr}, places[i], bytes));
      }
      places[i] = {memory, 0, nullptr};
    }
    return {};
  }

  Status bounce_out(const kernel::Kernel& kernel, const recorded::RecordedLaunch& e,
                    const std::vector<MemoryAddress>& places) {
    for (size_t i = 0; i < places.size(); ++i) {
      const kernel::Memory& memory = kernel.memories[i];
      if (is_aligned(place(e.buffers[i])) || memory.access == kernel::Access::kIn) continue;
      if (memory.bytes() == 0) continue;
      TENON_TRY(device_->copy(0, place(e.buffers[i]), places[i], memory.bytes()));
    }
    return {};
  }

  // --- Memory, by the recording's numbers

  MemoryAddress place(const recorded::RecordedAddress& place) const {
    return {memories_.at(place.memory).handle, place.offset, nullptr};
  }

  // The type of the elements that a launch wrote there, for showing a copy.
  ElementType type_at(const recorded::RecordedAddress& place) const {
    const auto found = types_.find({place.memory, place.offset});
    return found == types_.end() ? ElementType::kU8 : found->second;
  }
  void set_type(const recorded::RecordedAddress& place, int64_t bytes, ElementType type) {
    types_.erase(types_.lower_bound({place.memory, place.offset}),
                 types_.lower_bound({place.memory, place.offset + bytes}));
    if (bytes > 0) types_[{place.memory, place.offset}] = type;
  }

  struct ReplayedModule {
    Number opening = 0;
    ModuleHandle handle = 0;
  };
  struct ReplayedMemory {
    Number opening = 0;
    MemoryHandle handle = 0;
  };

  const Recording& recording_;
  Backend& backend_;
  const ReplayOptions options_;
  TargetInfo target_;
  std::unique_ptr<Device> device_;
  std::map<Number, const recorded::RecordedValues*> values_;  // By entry.
  std::map<Number, const recorded::RecordedFailure*> failed_;
  std::map<Number, bool> same_target_;  // By opening.
  std::map<Number, ReplayedModule> modules_;
  std::map<Number, ReplayedMemory> memories_;
  std::map<std::pair<Number, int64_t>, ElementType> types_;
  Number entry_ = 0;
  ReplayReport report_;
};

}  // namespace

std::string Difference::to_string() const {
  const std::string what =
      kernel.empty() ? buffer : fmt::format("launch '{}' of @{}: %{}", label, kernel, buffer);
  return fmt::format("entry {}: {}, {}[{}], element {} is {}, recorded {} ({} of {} differ)", entry,
                     what, name_of(type), elements, element, replayed, this->recorded, differing,
                     elements);
}

Result<ReplayReport> replay(const Recording& recording, Backend& backend, size_t device,
                            const ReplayOptions& options) {
  try {
    Replayer replayer(recording, backend, options);
    TENON_TRY(replayer.open(device));
    return replayer.run();
  } catch (const std::bad_alloc&) {  // A recording may name any number of bytes.
    return resource_exhausted("the host has no memory for what the recording copies");
  }
}

}  // namespace tenon::backend
