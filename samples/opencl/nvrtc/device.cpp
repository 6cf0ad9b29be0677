// An open device: streams, memory, events.
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>

#include "core/backend/driver/waiting.h"
#include "core/backend/in_process/host_queue.h"
#include "core/kernel/render/rendered_binary.h"
#include "nvrtc.h"

namespace tenon::nvrtc {
namespace {

using backend::EventHandle;
using backend::MemoryAddress;
using backend::MemoryHandle;
using backend::ModuleHandle;

struct GpuMemory {
  GpuAddress address = 0;
};

struct GpuFunction {
  CudaFunction function;
  int64_t workgroups, lanes;
};
struct GpuModule {
  CudaModule module = nullptr;
  std::vector<GpuFunction> functions;
};

/// An event of CUDA, and a word of pinned memory in which kernels see that they are to stop (B27).
struct WorkMarker {
  CudaEvent event;
  uint32_t* stop;
};

/// The work between two events of a queue.
struct MarkedWork {
  WorkMarker marker;
  backend::StopRelay stop;
  std::optional<Status> outcome;  ///< Once it is done.
  std::optional<double> seconds;  ///< By the device's clock, once somebody has asked.
};

class NvrtcDevice final : public backend::Device {
 public:
  explicit NvrtcDevice(uint32_t queues) : queues_(queues) {}

  Status start(int number) {
    constexpr unsigned kNonBlocking = 1;
    TENON_TRY(cuda().create_context(&context_, 0, number));
    CudaContext popped = nullptr;
    TENON_TRY(cuda().pop_context(&popped));
    for (StreamQueue& queue : queues_) {
      TENON_TRY(run(cuda().create_stream, &queue.stream, kNonBlocking));
      TENON_ASSIGN(queue.work, new_work());
    }
    TENON_ASSIGN(latest_, new_work());
    latest_->seconds = 0;
    TENON_TRY(run(cuda().record, latest_->marker.event, queues_[0].stream));
    return run(cuda().finish, queues_[0].stream);
  }

  // Work that is under way uses memory of the host: it is ended first (B11). All that belongs to a
  // context goes with it.
  ~NvrtcDevice() override {
    if (context_ == nullptr) return;
    end_work(/*aborts=*/false);
    static_cast<void>(cuda().destroy_context(context_));
  }

  Result<ModuleHandle> load(std::string_view bytes, backend::Kernels) override {
    TENON_ASSIGN(const kernel::RenderedBinary binary, kernel::RenderedBinary::load(bytes));
    auto loaded = std::make_shared<GpuModule>();
    TENON_TRY(run(cuda().load_module, &loaded->module, binary.program.data()));
    for (const kernel::RenderedKernel& how : binary.kernels) {
      GpuFunction& found = loaded->functions.emplace_back(nullptr, how.workgroups, how.lanes);
      Status status =
          run(cuda().find_function, &found.function, loaded->module, how.function.c_str());
      if (status.ok()) continue;
      static_cast<void>(run(cuda().unload_module, loaded->module));
      return tl::make_unexpected(std::move(status).with_context(how.function));
    }
    return modules_.add(std::move(loaded));
  }
  void unload(ModuleHandle handle) override {
    const auto module = modules_.take(handle);
    if (module != nullptr) static_cast<void>(run(cuda().unload_module, module->module));
  }

  Result<MemoryHandle> allocate(uint32_t, int64_t bytes) override {
    auto memory = std::make_shared<GpuMemory>();
    TENON_TRY(run(cuda().allocate, &memory->address, static_cast<size_t>(bytes)));
    return memories_.add(std::move(memory));
  }
  void free(MemoryHandle handle) override {
    const auto memory = memories_.take(handle);
    if (memory != nullptr) static_cast<void>(run(cuda().free, memory->address));
  }

  Status copy(uint32_t number, const MemoryAddress& to, const MemoryAddress& from,
              int64_t bytes) override {
    const CudaStream stream = queues_[number].stream;
    if (to.on_host()) {
      // CUDA's own call would wait for the queue, but not see that the host stops the work.
      TENON_ASSIGN(const auto before, new_work());
      TENON_TRY(run(cuda().record, before->marker.event, stream));
      TENON_ASSIGN(const bool done, wait_for(*before, -1));
      static_cast<void>(done);
    }
    return run(cuda().copy, address_of(to), address_of(from), static_cast<size_t>(bytes), stream);
  }

  Status fill(uint32_t number, const MemoryAddress& to, int64_t bytes,
              std::span<const std::byte> pattern) override {
    const CudaStream stream = queues_[number].stream;
    const GpuAddress place = address_of(to);
    const size_t width = pattern.size();
    if (place % width != 0) return Device::fill(number, to, bytes, pattern);
    const size_t count = static_cast<size_t>(bytes) / width;
    std::array<uint32_t, 2> word{};
    std::memcpy(word.data(), pattern.data(), width);  // Little-endian, as GPUs are.
    if (width == 1) return run(cuda().fill_8, place, word[0], count, stream);
    if (width == 2) return run(cuda().fill_16, place, word[0], count, stream);
    if (width == 4) return run(cuda().fill_32, place, word[0], count, stream);
    // The halves of the words, as columns.
    TENON_TRY(run(cuda().fill_rows_32, place, width, word[0], 1, count, stream));
    return run(cuda().fill_rows_32, place + width / 2, width, word[1], 1, count, stream);
  }

  Status launch(uint32_t number, const backend::KernelLaunch& launch) override {
    TENON_ASSIGN(const auto module, modules_.get(launch.module, "module"));
    if (launch.kernel >= module->functions.size()) {
      return internal_error("module {} has no kernel {}", launch.module, launch.kernel);
    }
    const GpuFunction& how = module->functions[launch.kernel];
    if (how.workgroups == 0) return {};
    StreamQueue& queue = queues_[number];
    std::vector<uint64_t> values;
    for (const MemoryAddress& place : launch.buffers) values.push_back(address_of(place));
    values.insert(values.end(), launch.scalars.begin(), launch.scalars.end());
    values.push_back(reinterpret_cast<uint64_t>(queue.work->marker.stop));
    std::vector<void*> arguments;
    for (uint64_t& each : values) arguments.push_back(&each);
    {
      const std::lock_guard lock(mutex_);
      queue.work->stop.add(launch.stop);
    }
    return run(cuda().launch, how.function, static_cast<unsigned>(how.workgroups), 1, 1,
               static_cast<unsigned>(how.lanes), 1, 1, 0, queue.stream, arguments.data(), nullptr)
        .with_context(launch.label);
  }

  Result<EventHandle> record(uint32_t number) override {
    StreamQueue& queue = queues_[number];
    TENON_ASSIGN(auto next, new_work());
    TENON_TRY(run(cuda().record, queue.work->marker.event, queue.stream));
    const std::lock_guard lock(mutex_);
    running_.push_back(queue.work);
    return events_.add(std::exchange(queue.work, std::move(next)));
  }

  Status wait(uint32_t number, EventHandle event) override {
    const auto work = events_.find(event);
    if (work == nullptr) return {};
    return run(cuda().wait, queues_[number].stream, work->marker.event, 0);
  }

  Result<bool> await(EventHandle event, int64_t timeout) override {
    TENON_ASSIGN(const auto work, events_.get(event, "event"));
    return wait_for(*work, timeout);
  }
  void release(EventHandle event) override { events_.take(event); }

  // CUDA gives milliseconds between two events, as a float: the nearer they are, the better.
  // CUDA's events have one time: that of the end.
  Result<backend::EventTimes> event_times(EventHandle event) override {
    constexpr double kMilliseconds = 1e-3;
    TENON_ASSIGN(const auto work, events_.get(event, "event"));
    const std::lock_guard lock(mutex_);
    if (!work->seconds) {
      float since = 0;
      TENON_TRY(run(cuda().elapsed, &since, latest_->marker.event, work->marker.event));
      work->seconds = *latest_->seconds + double{since} * kMilliseconds;
      latest_ = work;
    }
    return backend::EventTimes{{}, *work->seconds};
  }

  Status abort() override {
    end_work(/*aborts=*/true);
    return {};
  }

 private:
  struct StreamQueue {
    CudaStream stream = nullptr;
    std::shared_ptr<MarkedWork> work;  ///< Since the last event.
  };

  static Status lost() { return {ErrorCode::kUnavailable, "the device is lost"}; }

  /// Calls the driver with the context current on this thread, which may have one of its own.
  template <class Function, class... Arguments>
  Status run(const Function& function, Arguments... arguments) {
    if (lost_) return lost();
    TENON_TRY(cuda().push_context(context_));
    Status status = function(arguments...);
    CudaContext popped = nullptr;
    static_cast<void>(cuda().pop_context(&popped));
    if (status.code() == ErrorCode::kUnavailable) lost_ = true;
    return status;
  }

  GpuAddress address_of(const MemoryAddress& place) const {
    if (place.on_host()) return reinterpret_cast<GpuAddress>(place.host);
    return memories_.find(place.memory)->address + static_cast<GpuAddress>(place.offset);
  }

  /// With a marker that comes back when nobody needs it.
  Result<std::shared_ptr<MarkedWork>> new_work() {
    const std::lock_guard lock(markers_lock_);
    if (lost_) return tl::make_unexpected(lost());  // Kernels may still read an idle marker.
    if (idle_.empty()) TENON_TRY(make_markers());
    auto* const work = new MarkedWork{idle_.back(), backend::StopRelay(idle_.back().stop), {}, {}};
    idle_.pop_back();
    return std::shared_ptr<MarkedWork>(work, [this](MarkedWork* old) {
      const std::lock_guard taken(markers_lock_);
      idle_.push_back(old->marker);
      delete old;
    });
  }

  Status make_markers() {
    constexpr size_t kMarkers = 64;
    constexpr unsigned kPortable = 1;
    constexpr unsigned kMapped = 2;  // At the same address for the host and the GPU.
    void* page = nullptr;
    TENON_TRY(run(cuda().allocate_host, &page, kMarkers * sizeof(uint32_t), kPortable | kMapped));
    for (size_t i = 0; i < kMarkers; ++i) {
      CudaEvent event = nullptr;
      TENON_TRY(run(cuda().create_event, &event, 0));
      idle_.push_back({event, static_cast<uint32_t*>(page) + i});
    }
    return {};
  }

  /// Whether the work is done; if it is not, kernels hear that the host wants them to stop.
  bool settle(MarkedWork& work) {
    if (work.outcome) return true;
    Status status = run(cuda().query, work.marker.event);
    if (status.code() == ErrorCode::kDeadlineExceeded) {
      work.stop.relay();
      return false;
    }
    work.outcome = status.ok() ? work.stop.outcome() : std::move(status);
    return true;
  }

  bool settle_all(MarkedWork& wanted) {
    const std::lock_guard lock(mutex_);
    std::erase_if(running_, [&](const auto& work) { return settle(*work); });
    for (const StreamQueue& queue : queues_) queue.work->stop.relay();
    return settle(wanted);
  }

  Result<bool> wait_for(MarkedWork& work, int64_t timeout) {
    using namespace std::chrono_literals;  // CUDA calls nobody back.
    const backend::WaitPace pace{.busy = 1ms, .pause = 50us};
    TENON_ASSIGN(const bool done, backend::CompletionSignal().await(
                                      timeout, pace, [&] { return settle_all(work); }));
    if (!done) return false;
    if (!work.outcome->ok()) return tl::make_unexpected(*work.outcome);
    return true;
  }

  /// Waits for all work, without the loops that can be stopped, in any state of the device.
  void end_work(bool aborts) {
    {
      const std::lock_guard lock(mutex_);
      if (aborts) lost_ = true;  // Work that is not done counts as done from here on.
      for (const auto& work : running_) work->stop.stop_kernels();
      for (const StreamQueue& queue : queues_) {
        if (queue.work != nullptr) queue.work->stop.stop_kernels();
      }
    }
    if (!cuda().push_context(context_).ok()) return;
    for (const StreamQueue& queue : queues_) static_cast<void>(cuda().finish(queue.stream));
    CudaContext popped = nullptr;
    static_cast<void>(cuda().pop_context(&popped));
  }

  CudaContext context_ = nullptr;
  std::atomic<bool> lost_ = false;
  std::mutex markers_lock_;  // The inner one.
  std::vector<WorkMarker> idle_;
  std::mutex mutex_;  // For all MarkedWork.
  std::vector<std::shared_ptr<MarkedWork>> running_;
  std::shared_ptr<MarkedWork> latest_;  // The last whose time is known.
  std::vector<StreamQueue> queues_;
  backend::Handles<GpuModule> modules_;
  backend::Handles<GpuMemory> memories_;
  backend::Handles<MarkedWork> events_;
};

}  // namespace

Result<std::unique_ptr<backend::Device>> open_device(int number, uint32_t queues) {
  auto device = std::make_unique<NvrtcDevice>(queues);
  TENON_TRY(device->start(number));
  return device;
}

}  // namespace tenon::nvrtc
