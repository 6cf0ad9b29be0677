#include "core/backend/layers/trace/trace.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "core/backend/layers/forward.h"
#include "core/backend/layers/trace/trace_file.h"
#include "core/base/process/waiting.h"

namespace tenon::backend {
namespace {

using Json = TraceFile::Json;

// How long closing a device waits for its remaining work, in seconds, and how often it checks, in
// nanoseconds.
constexpr double kMostClosingSeconds = 1;
constexpr int64_t kLook = 20'000'000;

// A call of the host, from its begin to its end.
class HostCall {
 public:
  HostCall(TraceFile& file, uint64_t process, std::string name, Json arguments = Json::object())
      : file_(file),
        process_(process),
        name_(std::move(name)),
        arguments_(std::move(arguments)),
        begin_(file.now()) {}
  ~HostCall() {
    file_.slice(file_.track_of_this_thread(process_), name_, begin_, file_.now(), arguments_);
  }
  HostCall(const HostCall&) = delete;
  HostCall& operator=(const HostCall&) = delete;
  double begin() const { return begin_; }

 private:
  TraceFile& file_;
  const uint64_t process_;
  const std::string name_;
  const Json arguments_;
  const double begin_;
};

Json bytes_argument(int64_t bytes) { return {{"bytes", bytes}}; }

// Work after which the layer recorded an event: a launch or a copy.
struct TracedWork {
  std::string name;
  Json arguments = Json::object();
  TracedSlice slice;  // For TraceOptions::seen, without name and seconds.
  double given = 0;
  EventHandle event = 0;
};

// The work of one queue. A thread awaits each item in order and draws it.
class QueueTrace {
 public:
  QueueTrace(Device& device, TraceFile& file, TraceFile::TraceTrack row,
             const std::function<void(const TracedSlice&)>& see)
      : device_(device), file_(file), row_(row), seen_(see), waiter_([this] { run(); }) {}

  void add(TracedWork item) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(item));
      ++given_;
    }
    changed_.notify_all();
  }

  int64_t given() const {
    const std::lock_guard lock(mutex_);
    return given_;
  }

  // The first error among the items after `from` up to `to`, once all are done; nothing if they are
  // not done after `timeout` nanoseconds.
  std::optional<Status> await(int64_t from, int64_t to, int64_t timeout) {
    std::unique_lock lock(mutex_);
    const auto done = [&] { return done_ >= to || ended_; };
    if (timeout < 0) {
      changed_.wait(lock, done);
    } else if (!changed_.wait_for(lock, waiting_time(timeout), done)) {
      return {};
    }
    const auto error = errors_.upper_bound(from);
    return error != errors_.end() && error->first <= to ? error->second : Status();
  }

  // Ends the thread when all of its work is done, or after kClosingTime.
  void finish() {
    deadline_ = file_.now() + kMostClosingSeconds;
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    waiter_.join();
  }

 private:
  void run() {
    while (true) {
      TracedWork item;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
        if (waiting_.empty()) break;
        item = std::move(waiting_.front());
        waiting_.pop_front();
      }
      const std::optional<Status> outcome = await_item(item);
      device_.release(item.event);
      if (!outcome) break;
      const std::lock_guard lock(mutex_);
      ++done_;
      if (!outcome->ok()) errors_.emplace(done_, *outcome);
      changed_.notify_all();
    }
    const std::lock_guard lock(mutex_);
    for (const TracedWork& each : waiting_) device_.release(each.event);
    ended_ = true;
    changed_.notify_all();
  }

  // Returns nothing if the device was closed first.
  std::optional<Status> await_item(TracedWork& item) {
    while (true) {
      const Result<bool> done = device_.await(item.event, kLook);
      if (!done || *done) {
        draw(item, file_.now());
        return done ? Status() : done.error();
      }
      if (file_.now() > deadline_) return {};
    }
  }

  void draw(TracedWork& item, double seen) {
    const Result<EventTimes> times = device_.event_times(item.event);
    if (!named_) {
      file_.name_track(row_, fmt::format("queue {}{}", row_.thread, times ? "" : " (host clock)"));
      named_ = true;
    }
    // Estimates the offset between the device's clock and the host's: the host sees an event only
    // after it is done.
    if (times) offset_ = std::min(offset_, seen - times->end);
    const double end = std::max(times ? times->end + offset_ : seen, idle_since_);
    const bool is_told = times && times->start;
    const double begin =
        std::clamp(is_told ? *times->start + offset_ : item.given, std::min(idle_since_, end), end);
    file_.slice(row_, item.name, begin, end, item.arguments);
    idle_since_ = end;
    if (seen_ == nullptr) return;
    item.slice.name = item.name;
    item.slice.begin = file_.start() + begin;
    item.slice.seconds = end - begin;
    seen_(item.slice);
  }

  Device& device_;
  TraceFile& file_;
  const TraceFile::TraceTrack row_;
  const std::function<void(const TracedSlice&)>& seen_;
  // Used by the waiting thread only:
  bool named_ = false;
  double offset_ = std::numeric_limits<double>::infinity();
  double idle_since_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<TracedWork> waiting_;
  int64_t given_ = 0;
  int64_t done_ = 0;
  std::map<int64_t, Status> errors_;  // By the item's number, from 1.
  bool ending_ = false;
  bool ended_ = false;
  std::atomic<double> deadline_ = std::numeric_limits<double>::infinity();
  std::thread waiter_;  // Declared last: it uses all other members.
};

class TraceDevice final : public ForwardingDevice {
 public:
  TraceDevice(std::unique_ptr<Device> inner, std::shared_ptr<TraceFile> file, size_t index,
              uint64_t process, const TraceOptions& options)
      : ForwardingDevice(std::move(inner)),
        file_(std::move(file)),
        index_(index),
        process_(process),
        options_(options) {}

  ~TraceDevice() override {
    for (auto& [queue, trace] : queues_) trace->finish();
    Json figures = Json::object();
    if (const auto statistics = inner().statistics()) {
      for (const Statistic& each : *statistics) figures[each.name] = each.value;
    }
    const HostCall call(*file_, process_, "close", std::move(figures));
    close();
  }

  Result<ModuleHandle> load(std::string_view binary, Kernels kernels) override {
    const HostCall call(*file_, process_, "load",
                        bytes_argument(static_cast<int64_t>(binary.size())));
    TENON_ASSIGN(const ModuleHandle module, ForwardingDevice::load(binary, kernels));
    std::vector<TracedKernel> list;
    for (const kernel::Kernel* kernel : kernels) {
      const kernel::Cost cost = kernel::cost_of(*kernel);
      list.push_back({kernel->name, cost, arguments_of(kernel->name, cost)});
    }
    const std::lock_guard lock(mutex_);
    modules_[module] = std::move(list);
    return module;
  }

  void unload(ModuleHandle module) override {
    const HostCall call(*file_, process_, "unload");
    {
      const std::lock_guard lock(mutex_);
      modules_.erase(module);
    }
    ForwardingDevice::unload(module);
  }

  Result<MemoryHandle> allocate(uint32_t space, int64_t bytes) override {
    const HostCall call(*file_, process_, "allocate", bytes_argument(bytes));
    TENON_ASSIGN(const MemoryHandle memory, ForwardingDevice::allocate(space, bytes));
    const std::lock_guard lock(mutex_);
    memories_[memory] = {space, bytes};
    count(space, bytes);
    return memory;
  }

  void free(MemoryHandle memory) override {
    const HostCall call(*file_, process_, "free");
    {
      const std::lock_guard lock(mutex_);
      const auto found = memories_.extract(memory);
      if (!found.empty()) count(found.mapped().space, -found.mapped().bytes);
    }
    ForwardingDevice::free(memory);
  }

  // Imported memory is not memory of the device.
  Result<MemoryHandle> import_memory(uint32_t space, std::span<const std::byte> host) override {
    const HostCall call(*file_, process_, "import_memory",
                        bytes_argument(static_cast<int64_t>(host.size())));
    return ForwardingDevice::import_memory(space, host);
  }

  Status copy(uint32_t queue, const MemoryAddress& destination, const MemoryAddress& source,
              int64_t bytes) override {
    const HostCall call(*file_, process_, "give copy", bytes_argument(bytes));
    TENON_TRY(ForwardingDevice::copy(queue, destination, source, bytes));
    const char* direction = source.on_host()        ? "host to device"
                            : destination.on_host() ? "device to host"
                                                    : "device to device";
    const Kind kind = source.on_host()        ? Kind::kToDevice
                      : destination.on_host() ? Kind::kToHost
                                              : Kind::kOnDevice;
    give(queue, call,
         {fmt::format("copy {}", direction), Json{{"bytes", bytes}, {"direction", direction}}},
         slice_of(kind, bytes));
    return {};
  }

  Status fill(uint32_t queue, const MemoryAddress& destination, int64_t bytes,
              std::span<const std::byte> pattern) override {
    const HostCall call(*file_, process_, "give fill", bytes_argument(bytes));
    TENON_TRY(ForwardingDevice::fill(queue, destination, bytes, pattern));
    give(queue, call, {"fill", bytes_argument(bytes)}, slice_of(Kind::kFill, bytes));
    return {};
  }

  Status launch(uint32_t queue, const KernelLaunch& launch) override {
    const HostCall call(*file_, process_, "give launch");
    TENON_TRY(ForwardingDevice::launch(queue, launch));
    TracedKernel kernel;
    {
      const std::lock_guard lock(mutex_);
      const auto module = modules_.find(launch.module);
      if (module != modules_.end() && launch.kernel < module->second.size()) {
        kernel = module->second[launch.kernel];
      }
    }
    const std::string_view label = launch.label == nullptr ? "" : launch.label;
    const std::string shown(label.empty() ? std::string_view(kernel.name) : label);
    TracedSlice slice = slice_of(Kind::kLaunch);
    slice.kernel = kernel.name;
    slice.cost = kernel.cost;
    give(queue, call, {shown, kernel.arguments}, std::move(slice));
    return {};
  }

  Status copy_box(uint32_t queue, const MemoryAddress& destination, const MemoryAddress& source,
                  const Box& box) override {
    const int64_t bytes = element_count(box.sizes) * box.element_bytes;
    const HostCall made(*file_, process_, "give copy_box", bytes_argument(bytes));
    TENON_TRY(ForwardingDevice::copy_box(queue, destination, source, box));
    const Kind kind = source.on_host()        ? Kind::kToDevice
                      : destination.on_host() ? Kind::kToHost
                                              : Kind::kOnDevice;
    give(queue, made, {"copy_box", bytes_argument(bytes)}, slice_of(kind, bytes));
    return {};
  }

  Status call(uint32_t queue, const LibraryCallLaunch& call) override {
    const HostCall made(*file_, process_, "give call");
    TENON_TRY(ForwardingDevice::call(queue, call));
    const std::string_view label = call.label == nullptr ? "" : call.label;
    give(queue, made,
         {std::string(label.empty() ? "call" : label),
          Json{{"operands", call.operands.size()}, {"results", call.results.size()}}},
         slice_of(Kind::kCall));
    return {};
  }

  Status pack(uint32_t queue, std::string_view plan, uint32_t operand,
              const MemoryAddress& destination, const MemoryAddress& source) override {
    const HostCall made(*file_, process_, "give pack");
    TENON_TRY(ForwardingDevice::pack(queue, plan, operand, destination, source));
    give(queue, made, {"pack", Json{{"operand", operand}}}, slice_of(Kind::kPack));
    return {};
  }

  Result<EventHandle> record(uint32_t queue) override {
    const HostCall call(*file_, process_, "record");
    TENON_ASSIGN(const EventHandle event, ForwardingDevice::record(queue));
    if (!options_.events) return event;
    const std::lock_guard lock(mutex_);
    QueueTrace* trace = trace_of(queue);
    const int64_t given = trace->given();
    host_events_[event] = {trace, std::exchange(recorded_[queue], given), given};
    return event;
  }

  Status wait(uint32_t queue, EventHandle event) override {
    const HostCall call(*file_, process_, "wait");
    return ForwardingDevice::wait(queue, event);
  }

  // Errors of work went to the layer's events (B23); here they are passed to the host's event.
  Result<bool> await(EventHandle event, int64_t timeout) override {
    std::optional<HostCall> call;
    if (timeout != 0) call.emplace(*file_, process_, "await");
    const double begin = file_->now();
    Result<bool> done = ForwardingDevice::await(event, timeout);
    if (!done || !*done) return done;
    TracedEvent own;
    {
      const std::lock_guard lock(mutex_);
      const auto found = host_events_.find(event);
      if (found == host_events_.end()) return done;
      own = found->second;
    }
    int64_t left = timeout;
    if (timeout > 0) {
      left = std::max<int64_t>(timeout - static_cast<int64_t>((file_->now() - begin) * 1e9), 0);
    }
    const std::optional<Status> outcome = own.trace->await(own.from, own.to, left);
    if (!outcome) return false;
    if (!outcome->ok()) return tl::make_unexpected(*outcome);
    return true;
  }

  void release(EventHandle event) override {
    {
      const std::lock_guard lock(mutex_);
      host_events_.erase(event);
    }
    ForwardingDevice::release(event);
  }

 private:
  struct TracedKernel {
    std::string name;
    kernel::Cost cost;
    Json arguments = Json::object();
  };
  struct TracedMemory {
    uint32_t space = 0;
    int64_t bytes = 0;
  };
  // The items between the queue's previous record and this one.
  struct TracedEvent {
    QueueTrace* trace = nullptr;
    int64_t from = 0;
    int64_t to = 0;
  };
  struct What {
    std::string name;
    Json arguments = Json::object();
  };

  using Kind = TracedSlice::TracedKind;
  static TracedSlice slice_of(Kind kind, int64_t bytes = 0) {
    TracedSlice slice;
    slice.kind = kind;
    slice.bytes = bytes;
    return slice;
  }

  static Json arguments_of(const std::string& kernel, const kernel::Cost& cost) {
    return {{"kernel", kernel},
            {"bytes_read", cost.bytes_read},
            {"bytes_written", cost.bytes_written},
            {"flops", cost.flops},
            {"transcendentals", cost.transcendentals},
            {"counted", cost.exact ? "exactly" : "roughly"}};
  }

  // The lock must be held.
  QueueTrace* trace_of(uint32_t queue) {
    auto& trace = queues_[queue];
    if (trace == nullptr)
      trace = std::make_unique<QueueTrace>(inner(), *file_, TraceFile::TraceTrack{process_, queue},
                                           options_.seen);
    return trace.get();
  }

  void count(uint32_t space, int64_t bytes) {
    allocated_[space] += bytes;
    file_->counter(process_, fmt::format("allocated in space {}", space), file_->now(),
                   allocated_[space]);
  }

  // Records an event after work; called on the queue's thread. Without an event the work is not
  // drawn.
  void give(uint32_t queue, const HostCall& call, What what, TracedSlice slice) {
    if (!options_.events) return;
    const Result<EventHandle> event = ForwardingDevice::record(queue);
    if (!event) return;
    slice.device = index_;
    slice.queue = queue;
    if (options_.tag != nullptr) slice.tag = options_.tag();
    const std::lock_guard lock(mutex_);
    trace_of(queue)->add(
        {std::move(what.name), std::move(what.arguments), std::move(slice), call.begin(), *event});
  }

  const std::shared_ptr<TraceFile> file_;
  const size_t index_;
  const uint64_t process_;
  const TraceOptions options_;
  std::mutex mutex_;
  std::map<ModuleHandle, std::vector<TracedKernel>> modules_;
  std::map<MemoryHandle, TracedMemory> memories_;
  std::map<uint32_t, int64_t> allocated_;  // By space.
  std::map<EventHandle, TracedEvent> host_events_;
  std::map<uint32_t, int64_t> recorded_;  // Number of items of a queue before its last record.
  std::map<uint32_t, std::unique_ptr<QueueTrace>> queues_;
};

class TraceBackend final : public ForwardingBackend {
 public:
  TraceBackend(std::shared_ptr<Backend> inner, std::shared_ptr<TraceFile> file,
               TraceOptions options)
      : ForwardingBackend(std::move(inner)), file_(std::move(file)), options_(std::move(options)) {}

  Result<std::unique_ptr<Device>> open(size_t index) override {
    TENON_ASSIGN(const std::vector<DeviceInfo> devices, ForwardingBackend::devices());
    const uint64_t process = ++opened_;
    file_->name_process(process, index < devices.size() ? devices[index].name : "device");
    const HostCall call(*file_, process, "open");
    TENON_ASSIGN(std::unique_ptr<Device> device, ForwardingBackend::open(index));
    return std::make_unique<TraceDevice>(std::move(device), file_, index, process, options_);
  }

  Result<Compiled> compile(const TargetInfo& target, Kernels kernels) override {
    const HostCall call(*file_, 0, "compile",
                        Json{{"kernels", kernels.size()}, {"target", target.name}});
    return ForwardingBackend::compile(target, kernels);
  }

  // Segments are declined, so that every launch is seen.
  bool takes_segments() const override { return false; }

 private:
  const std::shared_ptr<TraceFile> file_;
  const TraceOptions options_;
  std::atomic<uint64_t> opened_ = 0;
};

}  // namespace

TraceOptions TraceOptions::from_environment() {
  TraceOptions options;
  if (const char* path = std::getenv("TENON_TRACE"); path != nullptr && *path != '\0') {
    options.path = path;
  }
  const char* events = std::getenv("TENON_TRACE_EVENTS");
  options.events = events == nullptr || std::string_view(events) != "0";
  return options;
}

Result<std::shared_ptr<Backend>> make_trace_layer(std::shared_ptr<Backend> inner,
                                                  const TraceOptions& options) {
  TENON_ASSIGN(std::shared_ptr<TraceFile> file, TraceFile::create(options.path));
  return std::make_shared<TraceBackend>(std::move(inner), std::move(file), options);
}

}  // namespace tenon::backend
