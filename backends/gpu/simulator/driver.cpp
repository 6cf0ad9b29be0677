#include "backends/gpu/simulator/driver.h"

#include <chrono>
#include <cstring>
#include <map>
#include <new>
#include <tuple>
#include <variant>

#include "backends/gpu/simulator/simulator.h"
#include "core/backend/in_process/host_queue.h"

namespace tenon::gpu {
namespace {

using backend::Handles;
using backend::HostEvent;
using backend::HostQueue;

constexpr std::align_val_t kAlignment{256};

double now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

// Memory that lives as long as work needs it.
struct SimAllocation {
  explicit SimAllocation(int64_t size)
      : bytes(size),
        data(static_cast<std::byte*>(
            ::operator new(static_cast<size_t>(size), kAlignment, std::nothrow))) {}
  ~SimAllocation() { ::operator delete(data, kAlignment); }
  SimAllocation(const SimAllocation&) = delete;
  SimAllocation& operator=(const SimAllocation&) = delete;

  const int64_t bytes;
  std::byte* const data;
};
using Pinned = std::shared_ptr<SimAllocation>;

class SimHeap {
 public:
  Result<Address> allocate(int64_t bytes) {
    auto allocation = std::make_shared<SimAllocation>(bytes);
    if (allocation->data == nullptr) {
      return resource_exhausted("gpu-sim: there are no {} bytes of memory", bytes);
    }
    const auto address = reinterpret_cast<Address>(allocation->data);
    const std::lock_guard lock(mutex_);
    allocations_.emplace(address, std::move(allocation));
    return address;
  }
  bool free(Address address) {
    const std::lock_guard lock(mutex_);
    return !allocations_.extract(address).empty();
  }
  // The allocation that contains `address`, or ends at it; null if there is none.
  Pinned find(Address address) const {
    const std::lock_guard lock(mutex_);
    auto after = allocations_.upper_bound(address);
    if (after == allocations_.begin()) return nullptr;
    const Pinned& found = (--after)->second;
    return address - after->first <= static_cast<uint64_t>(found->bytes) ? found : nullptr;
  }

 private:
  mutable std::mutex mutex_;
  std::map<Address, Pinned> allocations_;
};

std::byte* pointer_of(Address address) { return reinterpret_cast<std::byte*>(address); }

// The values of a launch's arguments, and the memories to which they refer.
struct LaunchArguments {
  std::vector<uint64_t> values;
  std::vector<const void*> pointers;
  std::vector<int64_t> buffer_bytes;
  std::vector<Pinned> pinned;
};

// A launch, and the work of a graph, as its queue runs them.
struct SimQueuedLaunch {
  std::shared_ptr<const SimProgram> program;
  size_t kernel = 0;
  LaunchShape shape;  // Without its list of bytes.
  std::shared_ptr<const LaunchArguments> arguments;
};
struct SimQueuedWork {
  std::vector<std::vector<std::variant<SimQueuedLaunch, WorkLoop, WorkChoice>>> sequences;
  std::vector<Pinned> pinned;
};

class SimContext final : public Context {
 public:
  ~SimContext() override {
    __atomic_store_n(&closing_, 1, __ATOMIC_RELAXED);
    // A stream may wait for another one's event.
    for (const auto& stream : streams_) stream->end();
    streams_.clear();
  }

  Result<Address> allocate(int64_t bytes) override { return memory_.allocate(bytes); }
  Status free(Address memory) override {
    return memory_.free(memory) ? Status() : nothing("memory", memory);
  }

  Result<Stream> create_stream() override {
    streams_.push_back(std::make_unique<HostQueue>());
    return streams_.size();
  }

  Status copy_to_device(Stream stream, Address to, const std::byte* from, int64_t bytes) override {
    return copy(stream, pointer_of(to), from, bytes, {memory_.find(to)});
  }
  Status copy_to_host(Stream stream, std::byte* to, Address from, int64_t bytes) override {
    return copy(stream, to, pointer_of(from), bytes, {memory_.find(from)});
  }
  Status copy_on_device(Stream stream, Address to, Address from, int64_t bytes) override {
    return copy(stream, pointer_of(to), pointer_of(from), bytes,
                {memory_.find(to), memory_.find(from)});
  }

  Status fill(Stream stream, Address to, int64_t bytes,
              std::span<const std::byte> pattern) override {
    TENON_ASSIGN(HostQueue* const queue, queue_of(stream));
    queue->push([pinned = memory_.find(to), to, bytes,
                 words = std::vector<std::byte>(pattern.begin(), pattern.end())]() -> Status {
      backend::fill_bytes({pointer_of(to), static_cast<size_t>(bytes)}, words);
      return {};
    });
    return {};
  }

  Result<Module> load(std::string_view image) override {
    TENON_ASSIGN(auto program, SimProgram::load(image));
    return modules_.add(std::move(program));
  }
  Status unload(Module module) override {
    return modules_.take(module) != nullptr ? Status() : nothing("module", module);
  }

  Result<Function> function(Module module, const std::string& symbol) override {
    const auto program = modules_.find(module);
    if (program == nullptr) return tl::make_unexpected(nothing("module", module));
    const std::vector<SimKernel>& kernels = program->image().kernels;
    for (size_t i = 0; i < kernels.size(); ++i) {
      if (kernels[i].symbol == symbol) return module << kIndexBits | i;
    }
    return not_found("gpu-sim: there is no kernel {} in the module", symbol);
  }

  Status launch(Stream stream, Function function, const LaunchShape& shape,
                std::span<const void* const> arguments, const volatile uint32_t* stop) override {
    TENON_ASSIGN(HostQueue* const queue, queue_of(stream));
    TENON_ASSIGN(SimQueuedLaunch kept, keep(function, shape, arguments));
    queue->push([this, kept = std::move(kept), stop] { return run(kept, stop); });
    return {};
  }

  Result<Graph> make_graph(const GpuWork& work) override {
    TENON_ASSIGN(std::ignore, keep(work));
    return graphs_.add(std::make_shared<GpuWork>(work));
  }
  Status update_graph(Graph graph, const GpuWork& work) override {
    const auto found = graphs_.find(graph);
    if (found == nullptr) return nothing("graph", graph);
    *found = work;
    return {};
  }
  Status launch_graph(Stream stream, Graph graph, const volatile uint32_t* stop) override {
    TENON_ASSIGN(HostQueue* const queue, queue_of(stream));
    const auto work = graphs_.find(graph);
    if (work == nullptr) return nothing("graph", graph);
    TENON_ASSIGN(auto kept, keep(*work));
    queue->push([this, kept = std::move(kept), stop] { return run(*kept, 0, stop); });
    return {};
  }
  void free_graph(Graph graph) override { graphs_.take(graph); }

  Result<Event> record(Stream stream) override {
    TENON_ASSIGN(HostQueue* const queue, queue_of(stream));
    return events_.add(queue->record());
  }
  Status wait(Stream stream, Event event) override {
    TENON_ASSIGN(HostQueue* const queue, queue_of(stream));
    auto found = events_.find(event);
    if (found == nullptr) return nothing("event", event);
    queue->wait(std::move(found));
    return {};
  }
  Result<bool> query(Event event) override { return await(event, 0); }
  Status synchronize(Event event) override {
    const Result<bool> done = await(event, -1);
    return done ? Status() : done.error();
  }
  Result<double> seconds(Event event) override {
    const auto found = events_.find(event);
    if (found == nullptr) return tl::make_unexpected(nothing("event", event));
    return found->times().end - opened_;
  }
  void release(Event event) override { events_.take(event); }

 private:
  // A function is a module's number and, in its low bits, the kernel's index.
  static constexpr int kIndexBits = 24;

  static Status nothing(std::string_view kind, uint64_t handle) {
    return invalid_argument("gpu-sim: there is no {} {}", kind, handle);
  }

  Result<HostQueue*> queue_of(Stream stream) const {
    if (stream == 0 || stream > streams_.size()) {
      return tl::make_unexpected(nothing("stream", stream));
    }
    return streams_[stream - 1].get();
  }

  Status copy(Stream stream, std::byte* to, const std::byte* from, int64_t bytes,
              std::vector<Pinned> pinned) {
    TENON_ASSIGN(HostQueue* const queue, queue_of(stream));
    queue->push([to, from, bytes, pinned = std::move(pinned)]() -> Status {
      std::memcpy(to, from, static_cast<size_t>(bytes));
      return {};
    });
    return {};
  }

  Result<SimQueuedLaunch> keep(Function function, const LaunchShape& shape,
                               std::span<const void* const> arguments) const {
    SimQueuedLaunch kept;
    kept.program = modules_.find(function >> kIndexBits);
    kept.kernel = function & ((uint64_t{1} << kIndexBits) - 1);
    if (kept.program == nullptr || kept.kernel >= kept.program->image().kernels.size()) {
      return tl::make_unexpected(nothing("function", function));
    }
    kept.shape = {shape.blocks, shape.threads, {}};
    TENON_ASSIGN(kept.arguments,
                 keep(kept.program->image().kernels[kept.kernel], shape, arguments));
    return kept;
  }

  Result<std::shared_ptr<const SimQueuedWork>> keep(const GpuWork& work) const {
    auto kept = std::make_shared<SimQueuedWork>();
    for (const std::vector<WorkStep>& sequence : work.sequences) {
      auto& steps = kept->sequences.emplace_back();
      for (const WorkStep& step : sequence) {
        if (const auto* launch = std::get_if<WorkLaunch>(&step)) {
          std::vector<const void*> arguments;
          for (const uint64_t& each : launch->arguments) arguments.push_back(&each);
          const LaunchShape shape = {launch->blocks, launch->threads, launch->buffer_bytes};
          TENON_ASSIGN(SimQueuedLaunch made, keep(launch->function, shape, arguments));
          steps.emplace_back(std::move(made));
        } else if (const auto* loop = std::get_if<WorkLoop>(&step)) {
          kept->pinned.push_back(memory_.find(loop->predicate));
          steps.emplace_back(*loop);
        } else if (const auto* choice = std::get_if<WorkChoice>(&step)) {
          kept->pinned.push_back(memory_.find(choice->index));
          steps.emplace_back(*choice);
        }
      }
    }
    return kept;
  }

  // --- On the stream's thread

  Status run(const SimQueuedLaunch& kept, const volatile uint32_t* stop) const {
    SimLaunch launch;
    launch.kernel = kept.kernel;
    launch.shape = kept.shape;
    launch.shape.buffer_bytes = kept.arguments->buffer_bytes;
    launch.arguments = kept.arguments->pointers;
    launch.stops = {stop, &closing_};
    return simulate(*kept.program, launch);
  }

  Status run(const SimQueuedWork& work, uint32_t sequence, const volatile uint32_t* stop) const {
    for (const auto& step : work.sequences[sequence]) {
      if (const auto* launch = std::get_if<SimQueuedLaunch>(&step)) {
        TENON_TRY(run(*launch, stop));
      } else if (const auto* loop = std::get_if<WorkLoop>(&step)) {
        TENON_TRY(run(work, *loop, stop));
      } else if (const auto* choice = std::get_if<WorkChoice>(&step)) {
        TENON_TRY(run(work, choice->branches[chosen_by(*choice)], stop));
      }
    }
    return {};
  }

  Status run(const SimQueuedWork& work, const WorkLoop& loop, const volatile uint32_t* stop) const {
    const std::byte* const predicate = pointer_of(loop.predicate);
    while (true) {
      if ((stop != nullptr && *stop != 0) || closing_ != 0) {
        return Status(ErrorCode::kCancelled, "gpu-sim: a loop was stopped");
      }
      TENON_TRY(run(work, loop.condition, stop));
      if ((*predicate & std::byte{1}) == std::byte{0}) return {};
      TENON_TRY(run(work, loop.body, stop));
    }
  }

  static uint32_t chosen_by(const WorkChoice& choice) {
    int32_t index = 0;
    std::memcpy(&index, pointer_of(choice.index), choice.is_pred ? 1 : sizeof index);
    return chosen_branch(choice.is_pred, index, choice.branches.size());
  }

  // ---

  Result<std::shared_ptr<const LaunchArguments>> keep(
      const SimKernel& kernel, const LaunchShape& shape,
      std::span<const void* const> arguments) const {
    if (arguments.size() != kernel.parameters.size()) {
      return invalid_argument("gpu-sim: @{} takes {} arguments, not {}", kernel.symbol,
                              kernel.parameters.size(), arguments.size());
    }
    auto kept = std::make_shared<LaunchArguments>();
    kept->values.resize(arguments.size());
    kept->buffer_bytes.assign(shape.buffer_bytes.begin(), shape.buffer_bytes.end());
    for (size_t i = 0; i < arguments.size(); ++i) {
      const auto bytes = static_cast<size_t>(kernel.parameters[i].bytes);
      if (bytes > sizeof(uint64_t)) {
        return unimplemented("gpu-sim: @{} takes an argument of {} bytes", kernel.symbol, bytes);
      }
      std::memcpy(&kept->values[i], arguments[i], bytes);
      if (kernel.parameters[i].is_buffer) kept->pinned.push_back(memory_.find(kept->values[i]));
    }
    for (const uint64_t& value : kept->values) kept->pointers.push_back(&value);
    return kept;
  }

  Result<bool> await(Event event, int64_t timeout) {
    const auto found = events_.find(event);
    if (found == nullptr) return tl::make_unexpected(nothing("event", event));
    const std::optional<Status> outcome = found->await(timeout);
    if (!outcome) return false;
    if (!outcome->ok()) return tl::make_unexpected(*outcome);
    return true;
  }

  const double opened_ = now();
  volatile uint32_t closing_ = 0;  // Once set, it stays set.
  SimHeap memory_;
  Handles<const SimProgram> modules_;
  Handles<HostEvent> events_;
  Handles<GpuWork> graphs_;
  std::vector<std::unique_ptr<HostQueue>> streams_;
};

// Those of an H100 (SXM), so that the same kernels are chosen as for a GPU.
constexpr int64_t kMultiprocessors = 132;

class SimDriver final : public Driver {
 public:
  explicit SimDriver(const SimConfig& config) : config_(config) {}

  Result<std::vector<GpuChip>> chips() override {
    GpuChip chip;
    chip.name = "simulated GPU";
    chip.compute_capability = config_.compute_capability;
    chip.multiprocessors = kMultiprocessors;
    return std::vector<GpuChip>(config_.devices, chip);
  }

  Result<std::unique_ptr<Context>> open(size_t chip) override {
    if (chip >= config_.devices) return not_found("gpu-sim: there is no device {}", chip);
    return std::make_unique<SimContext>();
  }

 private:
  const SimConfig config_;
};

}  // namespace

std::unique_ptr<Driver> make_sim_driver(const SimConfig& config) {
  return std::make_unique<SimDriver>(config);
}

}  // namespace tenon::gpu
