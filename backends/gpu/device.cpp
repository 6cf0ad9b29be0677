#include "backends/gpu/device.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>

#include "backends/gpu/codegen/code.h"
#include "backends/gpu/loaded_segment.h"
#include "core/backend/driver/waiting.h"
#include "core/backend/in_process/host_device.h"

namespace tenon::gpu {
namespace {

using backend::EventHandle;
using backend::Handles;
using backend::MemoryAddress;
using backend::MemoryHandle;
using backend::ModuleHandle;
using backend::rule_violation;

struct LoadedModule {
  GpuCode code;  // Without its images.
  Module module = 0;
  std::vector<Function> functions;
  std::unique_ptr<GpuLoadedSegment> segment;  // Of a segment, which then has code and functions.
};

struct DeviceMemory {
  Address address = 0;
  int64_t bytes = 0;
};

// An event of the context, with its outcome if known.
class GpuEvent {
 public:
  GpuEvent(Context& context, Event event) : context_(context), event_(event) {}
  ~GpuEvent() { context_.release(event_); }
  GpuEvent(const GpuEvent&) = delete;
  GpuEvent& operator=(const GpuEvent&) = delete;

  Event event() const { return event_; }
  std::optional<Status> outcome() const {
    const std::lock_guard lock(mutex_);
    return outcome_;
  }
  /// The first outcome is final (B25).
  Status finish(Status status) {
    const std::lock_guard lock(mutex_);
    if (!outcome_) outcome_ = std::move(status);
    return *outcome_;
  }

 private:
  Context& context_;
  const Event event_;
  mutable std::mutex mutex_;
  std::optional<Status> outcome_;
};

// The shortest pattern with the same effect.
std::span<const std::byte> shortest(std::span<const std::byte> pattern) {
  while (pattern.size() > 1) {
    const auto half = pattern.size() / 2;
    if (!std::ranges::equal(pattern.first(half), pattern.last(half))) break;
    pattern = pattern.first(half);
  }
  return pattern;
}

class GpuDevice final : public backend::Device {
 public:
  GpuDevice(std::string name, std::unique_ptr<Context> context, std::vector<Stream> streams,
            bool graphs)
      : name_(std::move(name)),
        context_(std::move(context)),
        streams_(std::move(streams)),
        graphs_(graphs) {}

  Result<ModuleHandle> load(std::string_view binary, backend::Kernels kernels) override {
    TENON_TRY(check());
    auto loaded = std::make_shared<LoadedModule>();
    TENON_ASSIGN(loaded->code, load_code(binary));
    const size_t launched = loaded->code.is_segment() ? 0 : loaded->code.kernels.size();
    if (launched != kernels.size()) {
      return tl::make_unexpected(
          rule_violation("B14", "the binary has a different number of kernels"));
    }
    if (!loaded->code.kernels.empty()) {
      TENON_ASSIGN(loaded->module, load(loaded->code.images));
      for (const GpuKernelCode& each : loaded->code.kernels) {
        auto function = heard(context_->function(loaded->module, each.symbol));
        if (!function) static_cast<void>(context_->unload(loaded->module));
        if (!function) return tl::make_unexpected(function.error());
        loaded->functions.push_back(*function);
      }
    }
    loaded->code.images.clear();
    if (loaded->code.is_segment()) {
      loaded->segment = std::make_unique<GpuLoadedSegment>(*context_, std::move(loaded->code),
                                                           std::move(loaded->functions), graphs_);
    }
    return modules_.add(std::move(loaded));
  }

  void unload(ModuleHandle module) override {
    const auto loaded = modules_.take(module);
    if (loaded == nullptr || loaded->module == 0) return;
    loaded->segment = nullptr;
    static_cast<void>(heard(context_->unload(loaded->module)));
  }

  Result<MemoryHandle> allocate(uint32_t space, int64_t bytes) override {
    TENON_TRY(check());
    if (space != 0 || bytes <= 0) {
      return tl::make_unexpected(
          rule_violation("B16", "an allocation of 0 bytes, or in an unknown space"));
    }
    TENON_ASSIGN(const Address address, heard(context_->allocate(bytes)));
    used_ += bytes;
    return memories_.add(std::make_shared<DeviceMemory>(DeviceMemory{address, bytes}));
  }

  void free(MemoryHandle memory) override {
    const auto taken = memories_.take(memory);
    if (taken == nullptr) return;
    used_ -= taken->bytes;
    static_cast<void>(heard(context_->free(taken->address)));
  }

  Status copy(uint32_t queue, const MemoryAddress& destination, const MemoryAddress& source,
              int64_t bytes) override {
    TENON_TRY(check_queue(queue));
    if (destination.on_host() && source.on_host()) {
      return copy_on_host(queue, destination, source, bytes);
    }
    Address to = 0;
    Address from = 0;
    if (!destination.on_host()) {
      TENON_ASSIGN(to, address_of(destination, bytes));
    }
    if (!source.on_host()) {
      TENON_ASSIGN(from, address_of(source, bytes));
    }
    if (bytes == 0) return {};
    if (destination.on_host()) {
      return heard(context_->copy_to_host(streams_[queue], destination.host, from, bytes));
    }
    if (source.on_host()) {
      return heard(context_->copy_to_device(streams_[queue], to, source.host, bytes));
    }
    return heard(context_->copy_on_device(streams_[queue], to, from, bytes));
  }

  Status fill(uint32_t queue, const MemoryAddress& destination, int64_t bytes,
              std::span<const std::byte> pattern) override {
    TENON_TRY(check_queue(queue));
    if (destination.on_host()) return Device::fill(queue, destination, bytes, pattern);
    TENON_ASSIGN(const Address to, address_of(destination, bytes));
    pattern = shortest(pattern);
    // The host copies if the address is not a multiple of the pattern's size.
    if (to % pattern.size() != 0) return Device::fill(queue, destination, bytes, pattern);
    if (bytes == 0) return {};
    return heard(context_->fill(streams_[queue], to, bytes, pattern));
  }

  Status launch(uint32_t queue, const backend::KernelLaunch& launch) override {
    TENON_TRY(check_queue(queue));
    const auto loaded = modules_.find(launch.module);
    if (loaded != nullptr && loaded->segment)
      return launch_segment(queue, *loaded->segment, launch);
    if (loaded == nullptr || launch.kernel >= loaded->code.kernels.size()) {
      return rule_violation("B14", "a launch of a kernel that is not loaded");
    }
    const GpuKernelCode& kernel = loaded->code.kernels[launch.kernel];
    if (launch.buffers.size() != kernel.buffers.size() ||
        launch.scalars.size() != kernel.scalars.size()) {
      return rule_violation("B21", fmt::format("the kernel takes {} buffers and {} scalars",
                                               kernel.buffers.size(), kernel.scalars.size()));
    }
    std::vector<uint64_t> values;
    for (size_t i = 0; i < launch.buffers.size(); ++i) {
      TENON_ASSIGN(const Address address, address_of(launch.buffers[i], kernel.buffers[i]));
      values.push_back(address);
    }
    values.insert(values.end(), launch.scalars.begin(), launch.scalars.end());
    if (kernel.blocks == 0) return {};
    // The driver reads the low bytes of a scalar: GPUs and their hosts are little-endian.
    std::vector<const void*> arguments;
    for (const uint64_t& each : values) arguments.push_back(&each);
    ++launches_;
    const LaunchShape shape = {kernel.blocks, kernel.threads, kernel.buffers};
    return heard(context_->launch(streams_[queue], loaded->functions[launch.kernel], shape,
                                  arguments, launch.stop));
  }

  Result<EventHandle> record(uint32_t queue) override {
    TENON_TRY(check_queue(queue));
    TENON_ASSIGN(const Event event, heard(context_->record(streams_[queue])));
    return events_.add(std::make_shared<GpuEvent>(*context_, event));
  }

  Status wait(uint32_t queue, EventHandle event) override {
    TENON_TRY(check_queue(queue));
    const auto found = events_.find(event);
    if (found == nullptr) return rule_violation("B10", "a wait for no event");
    return heard(context_->wait(streams_[queue], found->event()));
  }

  Result<bool> await(EventHandle event, int64_t timeout) override {
    const auto found = events_.find(event);
    if (found == nullptr) return tl::make_unexpected(rule_violation("B10", "no such event"));
    TENON_ASSIGN(const bool done, ask(*found, timeout));
    if (!done) return false;
    const std::optional<Status> outcome = found->outcome();
    if (!outcome->ok()) return tl::make_unexpected(*outcome);
    return true;
  }
  void release(EventHandle event) override { events_.take(event); }

  // The driver's events have one time, so only the end is known.
  Result<backend::EventTimes> event_times(EventHandle event) override {
    const auto found = events_.find(event);
    if (found == nullptr) return tl::make_unexpected(rule_violation("B10", "no such event"));
    TENON_TRY(check());
    TENON_ASSIGN(const double end, heard(context_->seconds(found->event())));
    return backend::EventTimes{{}, end};
  }

  Result<std::vector<backend::Statistic>> statistics() override {
    return std::vector<backend::Statistic>{{"bytes_allocated", static_cast<double>(used_.load())},
                                           {"launches", static_cast<double>(launches_.load())}};
  }

 private:
  Status lost() const {
    const std::lock_guard lock(mutex_);
    return Status(ErrorCode::kUnavailable, lost_text_);
  }
  Status check() const { return is_lost_ ? lost() : Status(); }
  Status check_queue(uint32_t queue) const {
    TENON_TRY(check());
    return queue < streams_.size()
               ? Status()
               : rule_violation("B10", fmt::format("there is no queue {}", queue));
  }

  // Returns the context's status; once it is kUnavailable the GPU stays lost (B12).
  Status heard(Status status) {
    if (status.code() == ErrorCode::kUnavailable) {
      const std::lock_guard lock(mutex_);
      if (!is_lost_) lost_text_ = fmt::format("{} is lost: {}", name_, status.message());
      is_lost_ = true;
    }
    return status;
  }
  template <class T>
  Result<T> heard(Result<T> result) {
    if (!result) static_cast<void>(heard(result.error()));
    return result;
  }

  Result<Address> address_of(const MemoryAddress& place, int64_t bytes) const {
    if (place.on_host()) {
      return tl::make_unexpected(
          rule_violation("B17", "a place of the host where the device's is wanted"));
    }
    const auto memory = memories_.find(place.memory);
    if (memory == nullptr) return tl::make_unexpected(rule_violation("B10", "no such memory"));
    if (place.offset < 0 || bytes < 0 || bytes > memory->bytes - place.offset) {
      return tl::make_unexpected(rule_violation(
          "B17", fmt::format("{} bytes at {} of {}", bytes, place.offset, memory->bytes)));
    }
    return memory->address + static_cast<uint64_t>(place.offset);
  }

  // Copies after the work that the queue has been given.
  Status copy_on_host(uint32_t queue, const MemoryAddress& destination, const MemoryAddress& source,
                      int64_t bytes) {
    TENON_ASSIGN(const Event event, heard(context_->record(streams_[queue])));
    Status before = heard(context_->synchronize(event));
    context_->release(event);
    TENON_TRY(std::move(before));
    std::memcpy(destination.host, source.host, static_cast<size_t>(bytes));
    return {};
  }

  Status launch_segment(uint32_t queue, GpuLoadedSegment& segment,
                        const backend::KernelLaunch& launch) {
    const std::vector<int64_t>& sizes = segment.memories();
    if (launch.kernel != 0 || launch.buffers.size() != sizes.size() || !launch.scalars.empty()) {
      return rule_violation("B21", fmt::format("the segment takes {} buffers", sizes.size()));
    }
    std::vector<Address> memories;
    memories.reserve(sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i) {
      TENON_ASSIGN(memories.emplace_back(), address_of(launch.buffers[i], sizes[i]));
    }
    ++launches_;
    return heard(segment.launch(streams_[queue], memories, launch.stop));
  }

  // The module of the first image that the driver accepts, or the error for the last one.
  Result<Module> load(const std::vector<std::string>& images) {
    Result<Module> module = internal_error("gpu: the code has no image");
    for (const std::string& image : images) {
      module = heard(context_->load(image));
      if (module || is_lost_) break;
    }
    return module;
  }

  // Whether the event has an outcome by now.
  Result<bool> ask(GpuEvent& event, int64_t timeout) {
    if (event.outcome()) return true;
    if (const Status gone = check(); !gone.ok()) {
      static_cast<void>(event.finish(gone));
      return true;
    }
    if (timeout < 0) {
      static_cast<void>(event.finish(heard(context_->synchronize(event.event()))));
      return true;
    }
    using namespace std::chrono_literals;
    const backend::WaitPace pace{.pause = 1us, .longest = 1ms};
    return backend::CompletionSignal().await(timeout, pace, [&]() -> Result<bool> {
      const Result<bool> done = heard(context_->query(event.event()));
      if (done && !*done) return false;
      static_cast<void>(event.finish(done ? Status() : done.error()));
      return true;
    });
  }

  const std::string name_;
  const std::unique_ptr<Context> context_;
  const std::vector<Stream> streams_;  // By queue.
  const bool graphs_;
  std::atomic<int64_t> used_ = 0;
  std::atomic<int64_t> launches_ = 0;
  std::atomic<bool> is_lost_ = false;
  mutable std::mutex mutex_;
  std::string lost_text_;
  Handles<DeviceMemory> memories_;
  Handles<LoadedModule> modules_;
  Handles<GpuEvent> events_;  // Destroyed before the context.
};

}  // namespace

Result<std::unique_ptr<backend::Device>> make_gpu_device(std::string name,
                                                         std::unique_ptr<Context> context,
                                                         bool graphs) {
  std::vector<Stream> streams;
  for (uint32_t i = 0; i < kQueues; ++i) {
    TENON_ASSIGN(streams.emplace_back(), context->create_stream());
  }
  return std::make_unique<GpuDevice>(std::move(name), std::move(context), std::move(streams),
                                     graphs);
}

}  // namespace tenon::gpu
