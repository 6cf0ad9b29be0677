#include "backends/gpu/cuda/cuda_driver.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>

#include "backends/gpu/cuda/cuda_api.h"
#include "backends/gpu/cuda/cuda_graph.h"
#include "core/backend/in_process/host_queue.h"

namespace tenon::gpu {
namespace {

using backend::Handles;

// The driver's events of a context, kept for further use: making and destroying one takes as long
// as a launch. An event that is recorded again changes nothing for those who wait for what it stood
// for before. Thread-safe; the context must be current.
class EventPool {
 public:
  explicit EventPool(const CudaApi& api) : api_(api) {}
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  Result<CUevent> take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        CUevent event = idle_.back();
        idle_.pop_back();
        return event;
      }
    }
    CUevent event = nullptr;
    TENON_TRY(api_.check(api_.create_event(&event, CU_EVENT_DEFAULT), "create an event"));
    return event;
  }
  void give_back(CUevent event) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(event);
  }
  void destroy() {
    const std::lock_guard lock(mutex_);
    for (CUevent event : idle_) static_cast<void>(api_.destroy_event(event));
    idle_.clear();
  }

 private:
  const CudaApi& api_;
  std::mutex mutex_;
  std::vector<CUevent> idle_;
};

// A time on the GPU's clock. The driver returns the time between two events as a float of
// milliseconds, which is accurate enough only for close events: each time is computed from the
// previous one.
class Moment {
 public:
  Moment(const CudaApi& api, EventPool& pool, CUevent event, std::shared_ptr<Moment> before)
      : api_(api), pool_(pool), event_(event), before_(std::move(before)) {}
  ~Moment() { pool_.give_back(event_); }
  Moment(const Moment&) = delete;
  Moment& operator=(const Moment&) = delete;

  CUevent event() const { return event_; }

  /// Seconds since the first one, if the GPU has reached it.
  Result<double> seconds() {
    const std::lock_guard lock(mutex_);
    if (before_ == nullptr) return seconds_;
    TENON_ASSIGN(const double before, before_->seconds());
    float milliseconds = 0;
    TENON_TRY(api_.check(api_.elapsed(&milliseconds, before_->event_, event_), "tell the time"));
    seconds_ = before + double{milliseconds} / 1000;
    before_ = nullptr;
    return seconds_;
  }

 private:
  const CudaApi& api_;
  EventPool& pool_;
  const CUevent event_;
  std::mutex mutex_;
  std::shared_ptr<Moment> before_;  // Null once the time is known.
  double seconds_ = 0;
};

class CudaContext final : public Context {
 public:
  explicit CudaContext(const CudaApi& api) : api_(api), pool_(api) {}

  Status open(CUdevice device) {
    TENON_TRY(api_.check(api_.create_context(&context_, 0, device), "open the GPU"));
    // The new context is now this thread's current context; each later call makes it current and
    // restores the previous one.
    CUcontext popped = nullptr;
    static_cast<void>(api_.pop_context(&popped));
    return {};
  }

  // Stops running work, also if the context is lost.
  ~CudaContext() override {
    if (context_ == nullptr) return;
    {
      const Current current(*this);
      for (CudaStream& stream : streams_) stream.anchor = nullptr;
      events_ = nullptr;
      graphs_ = nullptr;
      pool_.destroy();
      for (const CudaStream& stream : streams_) {
        static_cast<void>(api_.destroy_stream(stream.stream));
      }
    }
    static_cast<void>(api_.destroy_context(context_));
  }

  Result<Address> allocate(int64_t bytes) override {
    const Current current(*this);
    TENON_TRY(current.status());
    CUdeviceptr memory = 0;
    TENON_TRY(api_.check(api_.allocate(&memory, static_cast<size_t>(bytes)), "allocate memory"));
    return memory;
  }
  Status free(Address memory) override {
    const Current current(*this);
    TENON_TRY(current.status());
    return api_.check(api_.free(memory), "free memory");
  }

  Result<Stream> create_stream() override {
    const Current current(*this);
    TENON_TRY(current.status());
    CUstream stream = nullptr;
    TENON_TRY(api_.check(api_.create_stream(&stream, CU_STREAM_NON_BLOCKING), "create a stream"));
    streams_.push_back({stream, nullptr, {}});
    // It is reached at once; times of all streams count from that of the first.
    TENON_TRY(renew_anchor(streams_.size(), streams_.front().anchor));
    return streams_.size();
  }

  Status copy_to_device(Stream stream, Address to, const std::byte* from, int64_t bytes) override {
    const Current current(*this);
    TENON_TRY(current.status());
    return api_.check(api_.copy_to_device(to, from, static_cast<size_t>(bytes), of(stream)),
                      "copy to the GPU");
  }
  Status copy_to_host(Stream stream, std::byte* to, Address from, int64_t bytes) override {
    const Current current(*this);
    TENON_TRY(current.status());
    return api_.check(api_.copy_to_host(to, from, static_cast<size_t>(bytes), of(stream)),
                      "copy from the GPU");
  }
  Status copy_on_device(Stream stream, Address to, Address from, int64_t bytes) override {
    const Current current(*this);
    TENON_TRY(current.status());
    return api_.check(api_.copy_on_device(to, from, static_cast<size_t>(bytes), of(stream)),
                      "copy on the GPU");
  }

  Status fill(Stream stream, Address to, int64_t bytes,
              std::span<const std::byte> pattern) override {
    const Current current(*this);
    TENON_TRY(current.status());
    const size_t count = static_cast<size_t>(bytes) / pattern.size();
    std::array<std::byte, 8> word{};
    std::ranges::copy(pattern, word.begin());
    const auto part = [&]<class T>(T value, size_t at) {
      std::memcpy(&value, word.data() + at, sizeof value);
      return value;
    };
    const CUstream on = of(stream);
    switch (pattern.size()) {
      case 1:
        return api_.check(api_.fill_8(to, part(uint8_t{}, 0), count, on), "fill memory");
      case 2:
        return api_.check(api_.fill_16(to, part(uint16_t{}, 0), count, on), "fill memory");
      case 4:
        return api_.check(api_.fill_32(to, part(uint32_t{}, 0), count, on), "fill memory");
      default:
        // The two halves of each word, as columns of four bytes.
        TENON_TRY(
            api_.check(api_.fill_rows_32(to, 8, part(uint32_t{}, 0), 1, count, on), "fill memory"));
        return api_.check(api_.fill_rows_32(to + 4, 8, part(uint32_t{}, 4), 1, count, on),
                          "fill memory");
    }
  }

  Result<Module> load(std::string_view image) override {
    const Current current(*this);
    TENON_TRY(current.status());
    std::array<char, 4096> log{};
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    // The size is in the pointer's own bits.
    void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
    const std::string text(image);  // PTX must end with a zero.
    CUmodule module = nullptr;
    Status loaded =
        api_.check(api_.load_module(&module, text.c_str(), 2, options, values), "load a module");
    if (!loaded.ok() && log[0] != '\0') {
      return tl::make_unexpected(Status(loaded.code(), loaded.message() + ": " + log.data()));
    }
    TENON_TRY(std::move(loaded));
    return reinterpret_cast<Module>(module);
  }
  Status unload(Module module) override {
    const Current current(*this);
    TENON_TRY(current.status());
    return api_.check(api_.unload_module(reinterpret_cast<CUmodule>(module)), "unload a module");
  }
  Result<Function> function(Module module, const std::string& symbol) override {
    const Current current(*this);
    TENON_TRY(current.status());
    CUfunction found = nullptr;
    TENON_TRY(api_.check(api_.function(&found, reinterpret_cast<CUmodule>(module), symbol.c_str()),
                         "find a kernel"));
    return reinterpret_cast<Function>(found);
  }

  Status launch(Stream stream, Function function, const LaunchShape& shape,
                std::span<const void* const> arguments, const volatile uint32_t*) override {
    const Current current(*this);
    TENON_TRY(current.status());
    const Grid grid = grid_of(shape.blocks);
    return api_.check(
        api_.launch(reinterpret_cast<CUfunction>(function), grid.x, grid.y, 1, shape.threads, 1, 1,
                    0, of(stream), const_cast<void**>(arguments.data()), nullptr),
        "launch a kernel");
  }

  Result<Graph> make_graph(const GpuWork& work) override {
    if (!api_.graphs) return unimplemented("the CUDA driver is too old for graphs with loops");
    const Current current(*this);
    TENON_TRY(current.status());
    TENON_ASSIGN(const CudaConditionKernels* const conditions, conditions_of(work));
    TENON_ASSIGN(auto graph, CudaGraph::make(api_, context_, conditions, work));
    return graphs_->add(std::move(graph));
  }
  Status update_graph(Graph graph, const GpuWork& work) override {
    const Current current(*this);
    TENON_TRY(current.status());
    const auto found = graphs_->find(graph);
    return found == nullptr ? Context::update_graph(graph, work) : found->update(work);
  }
  Status launch_graph(Stream stream, Graph graph, const volatile uint32_t* stop) override {
    const Current current(*this);
    TENON_TRY(current.status());
    const auto found = graphs_->find(graph);
    return found == nullptr ? Context::launch_graph(stream, graph, stop)
                            : found->launch(of(stream));
  }
  void free_graph(Graph graph) override {
    const Current current(*this);
    graphs_->take(graph);
  }

  Result<Event> record(Stream stream) override {
    const Current current(*this);
    TENON_TRY(current.status());
    CudaStream& on = streams_[stream - 1];
    if (std::chrono::steady_clock::now() - on.anchored > std::chrono::milliseconds(500)) {
      // The moment's absolute time, so that earlier moments are no longer needed.
      static_cast<void>(on.anchor->seconds());
      TENON_TRY(renew_anchor(stream, on.anchor));
    }
    TENON_ASSIGN(auto moment, moment_on(stream, on.anchor));
    return events_->add(std::move(moment));
  }
  Status wait(Stream stream, Event event) override {
    const Current current(*this);
    TENON_TRY(current.status());
    TENON_ASSIGN(const auto moment, find(event));
    return api_.check(api_.wait_stream(of(stream), moment->event(), 0), "wait for an event");
  }
  Result<bool> query(Event event) override {
    const Current current(*this);
    TENON_TRY(current.status());
    TENON_ASSIGN(const auto moment, find(event));
    const CUresult result = api_.query(moment->event());
    if (result == CUDA_ERROR_NOT_READY) return false;
    TENON_TRY(api_.check(result, "finish its work"));
    return true;
  }
  Status synchronize(Event event) override {
    const Current current(*this);
    TENON_TRY(current.status());
    TENON_ASSIGN(const auto moment, find(event));
    return api_.check(api_.synchronize(moment->event()), "finish its work");
  }
  Result<double> seconds(Event event) override {
    const Current current(*this);
    TENON_TRY(current.status());
    TENON_ASSIGN(const auto moment, find(event));
    return moment->seconds();
  }
  void release(Event event) override {
    const Current current(*this);
    events_->take(event);
  }

 private:
  // Makes the context current on this thread while it exists: callers have contexts of their own.
  class Current {
   public:
    explicit Current(const CudaContext& of)
        : api_(of.api_), status_(api_.check(api_.push_context(of.context_), "open the GPU")) {}
    ~Current() {
      CUcontext popped = nullptr;
      if (status_.ok()) static_cast<void>(api_.pop_context(&popped));
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
    Status status() const { return status_; }

   private:
    const CudaApi& api_;
    const Status status_;
  };

  // The kernels that set conditions, loaded when the first work has a loop or a branch; null for
  // work without. The module is freed with the context.
  Result<const CudaConditionKernels*> conditions_of(const GpuWork& work) {
    const auto is_conditional = [](const WorkStep& step) {
      return !std::holds_alternative<WorkLaunch>(step);
    };
    const bool any = std::ranges::any_of(work.sequences, [&](const std::vector<WorkStep>& steps) {
      return std::ranges::any_of(steps, is_conditional);
    });
    if (!any) return nullptr;
    const std::lock_guard lock(mutex_);
    if (!conditions_) {
      TENON_ASSIGN(conditions_, load_condition_kernels(api_));
    }
    return &*conditions_;
  }

  CUstream of(Stream stream) const { return streams_[stream - 1].stream; }

  Result<std::shared_ptr<Moment>> find(Event event) const { return events_->get(event, "event"); }

  Result<std::shared_ptr<Moment>> moment_on(Stream stream, std::shared_ptr<Moment> before) {
    TENON_ASSIGN(const CUevent event, pool_.take());
    auto moment = std::make_shared<Moment>(api_, pool_, event, std::move(before));
    TENON_TRY(api_.check(api_.record(event, of(stream)), "record an event"));
    return moment;
  }

  // Ensures a reference moment at most half a second old when work is recorded.
  Status renew_anchor(Stream stream, const std::shared_ptr<Moment>& before) {
    CudaStream& on = streams_[stream - 1];
    TENON_ASSIGN(on.anchor, moment_on(stream, before));
    on.anchored = std::chrono::steady_clock::now();
    return {};
  }

  // A moment of a stream is told by one before on the same stream, which is reached by then.
  struct CudaStream {
    CUstream stream = nullptr;
    std::shared_ptr<Moment> anchor;
    std::chrono::steady_clock::time_point anchored;
  };

  const CudaApi& api_;
  CUcontext context_ = nullptr;
  EventPool pool_;                   // Destroyed after what has its events.
  std::vector<CudaStream> streams_;  // All made before the first is used.
  std::unique_ptr<Handles<Moment>> events_ = std::make_unique<Handles<Moment>>();
  std::unique_ptr<Handles<CudaGraph>> graphs_ = std::make_unique<Handles<CudaGraph>>();
  std::mutex mutex_;
  std::optional<CudaConditionKernels> conditions_;
};

class CudaDriver final : public Driver {
 public:
  explicit CudaDriver(std::string library) : library_(std::move(library)) {}

  Result<std::vector<GpuChip>> chips() override {
    TENON_ASSIGN(const CudaApi* const api, start());
    int count = 0;
    TENON_TRY(api->check(api->device_count(&count), "count the GPUs"));
    std::vector<GpuChip> chips;
    for (int i = 0; i < count; ++i) {
      TENON_ASSIGN(GpuChip chip, chip_of(*api, i));
      chips.push_back(std::move(chip));
    }
    return chips;
  }

  Result<std::unique_ptr<Context>> open(size_t chip) override {
    TENON_ASSIGN(const CudaApi* const api, start());
    CUdevice device = 0;
    TENON_TRY(api->check(api->device(&device, static_cast<int>(chip)), "find the GPU"));
    auto context = std::make_unique<CudaContext>(*api);
    TENON_TRY(context->open(device));
    return context;
  }

 private:
  Result<const CudaApi*> start() const {
    TENON_ASSIGN(const CudaApi* const api, find_cuda(library_));
    const Status started = api->check(api->init(0), "start");
    if (started.ok()) return api;
    return tl::make_unexpected(Status(ErrorCode::kUnavailable, started.message()));
  }

  static Result<GpuChip> chip_of(const CudaApi& api, int number) {
    CUdevice device = 0;
    TENON_TRY(api.check(api.device(&device, number), "find the GPU"));
    std::array<char, 256> name{};
    size_t bytes = 0;
    TENON_TRY(api.check(api.device_name(name.data(), static_cast<int>(name.size()), device),
                        "name the GPU"));
    TENON_TRY(api.check(api.device_memory(&bytes, device), "tell its memory"));
    const auto attribute = [&](CUdevice_attribute which) -> Result<int> {
      int value = 0;
      TENON_TRY(api.check(api.device_attribute(&value, which, device), "describe the GPU"));
      return value;
    };
    GpuChip chip;
    chip.name = name.data();
    chip.memory_bytes = static_cast<int64_t>(bytes);
    TENON_ASSIGN(const int major, attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
    TENON_ASSIGN(const int minor, attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
    chip.compute_capability = 10 * major + minor;
    TENON_ASSIGN(chip.multiprocessors, attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
    TENON_ASSIGN(chip.shared_bytes, attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
    TENON_ASSIGN(chip.most_threads, attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
    return chip;
  }

  const std::string library_;
};

}  // namespace

std::unique_ptr<Driver> make_cuda_driver(std::string library) {
  return std::make_unique<CudaDriver>(std::move(library));
}

}  // namespace tenon::gpu
