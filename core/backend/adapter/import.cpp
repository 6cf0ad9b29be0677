// Imports a plug-in's table as a Backend.
#include <algorithm>
#include <atomic>
#include <deque>

#include "core/backend/adapter/adapter.h"
#include "core/backend/adapter/c_types.h"
#include "core/backend/adapter/device_calls.h"

namespace tenon::backend {
namespace {

// Handles for the kernels of a call; valid as long as this object.
class KernelHandles {
 public:
  explicit KernelHandles(Kernels kernels) {
    for (const kernel::Kernel* kernel : kernels) {
      handles_.emplace_back().kernel = kernel;
      pointers_.push_back(&handles_.back());
    }
  }
  const TenonKernel* const* data() const { return pointers_.data(); }
  size_t size() const { return pointers_.size(); }

 private:
  std::deque<TenonKernel> handles_;
  std::vector<const TenonKernel*> pointers_;
};

// The math functions that releases after a plug-in's added to the kernel IR.
kernel::MathFunctions functions_after(uint32_t abi_minor) {
  kernel::MathFunctions functions;
  constexpr uint32_t kErfSince = 6;
  if (abi_minor >= kErfSince) return functions;
  for (const kernel::OpCode op : {kernel::OpCode::kErf, kernel::OpCode::kErfc}) {
    for (size_t t = 0; t < kElementTypeCount; ++t) {
      functions.insert(op, static_cast<ElementType>(t));
    }
  }
  return functions;
}

// The kernels of a call in the operations that a plug-in of an older release knows: a target that
// takes kernels as they are written gets even those that it does not list.
class KnownKernels {
 public:
  KnownKernels(Kernels kernels, uint32_t abi_minor) : list_(kernels.begin(), kernels.end()) {
    if (abi_minor >= TENON_ABI_MINOR) return;
    const kernel::MathFunctions unknown = functions_after(abi_minor);
    for (const kernel::Kernel*& each : list_) {
      const bool has_any = std::ranges::any_of(each->nodes, [&](const kernel::Node& n) {
        return kernel::is_scalar_op(n.op) && unknown.contains(n.op, n.type);
      });
      if (has_any) each = &made_.emplace_back(kernel::without(*each, unknown));
    }
  }
  Kernels list() const { return list_; }

 private:
  std::vector<const kernel::Kernel*> list_;
  std::deque<kernel::Kernel> made_;
};

// The segment with such kernels, if it had others.
std::optional<program::Program> segment_for(const program::Program& segment, uint32_t abi_minor) {
  if (abi_minor >= TENON_ABI_MINOR) return {};
  std::vector<const kernel::Kernel*> kernels;
  for (const kernel::Kernel& each : segment.kernels) kernels.push_back(&each);
  const KnownKernels known(kernels, abi_minor);
  program::Program made = segment;
  for (size_t i = 0; i < kernels.size(); ++i) made.kernels[i] = *known.list()[i];
  return made;
}

// Calls a function of the table, of the given name, with an error sink as the last argument.
template <class Function, class... Args>
Status call(const char* name, Function function, Args... args) {
  SinkText text;
  return status_of(function(args..., text.sink()), text, name);
}

// Collects items that a plug-in reports one by one. `add` makes each item from the arguments of the
// plug-in's call; it throws nothing.
template <class T>
struct Collected {
  std::vector<T> list;
  bool whole = true;

  template <class Make>
  void add(const Make& make) noexcept {
    try {
      list.push_back(make());
    } catch (const std::exception&) {
      whole = false;
    }
  }
};

std::string text_of(const char* text) { return text == nullptr ? "" : text; }

std::vector<TenonPlace> c_places(std::span<const MemoryAddress> places) {
  std::vector<TenonPlace> all;
  for (const MemoryAddress& place : places) all.push_back(c_place(place));
  return all;
}

class PluginDevice final : public Device {
 public:
  PluginDevice(const TenonBackend& table, TenonDevice device, std::string name)
      : table_(table), device_(device), calls_(std::move(name)) {}
  ~PluginDevice() override { table_.close(device_); }

  Result<ModuleHandle> load(std::string_view binary, Kernels kernels) override {
    const KernelHandles handles(kernels);
    SinkText text;
    TenonLoadArgs args{};
    args.size = sizeof args;
    args.device = device_;
    args.binary = binary.data();
    args.binary_size = binary.size();
    args.kernels = handles.data();
    args.kernel_count = handles.size();
    args.error = text.sink();
    TenonModule module = 0;
    TENON_TRY(calls_.of_device(status_of(table_.load(&args, &module), text, "load"), "load"));
    calls_.load(module, kernels);
    return checked(module, "load");
  }

  void unload(ModuleHandle module) override {
    calls_.unload(module);
    table_.unload(device_, module);
  }

  Result<MemoryHandle> allocate(uint32_t space, int64_t bytes) override {
    TenonMemory memory = 0;
    TENON_TRY(calls_.of_device(
        backend::call("allocate", table_.allocate, device_, space, bytes, &memory), "allocate"));
    return checked(memory, "allocate");
  }

  void free(MemoryHandle memory) override { table_.free(device_, memory); }

  Status copy(uint32_t queue, const MemoryAddress& destination, const MemoryAddress& source,
              int64_t bytes) override {
    SinkText text;
    TenonCopyArgs args{};
    args.size = sizeof args;
    args.device = device_;
    args.queue = queue;
    args.destination = c_place(destination);
    args.source = c_place(source);
    args.bytes = bytes;
    args.error = text.sink();
    calls_.work(queue, "copy", "");
    return calls_.of_queue(status_of(table_.copy(&args), text, "copy"), "copy", queue);
  }

  Status launch(uint32_t queue, const KernelLaunch& launch) override {
    const std::vector<TenonPlace> buffers = c_places(launch.buffers);
    SinkText text;
    TenonLaunchArgs args{};
    args.size = sizeof args;
    args.device = device_;
    args.queue = queue;
    args.module = launch.module;
    args.kernel = launch.kernel;
    args.buffers = buffers.data();
    args.buffer_count = buffers.size();
    args.scalars = launch.scalars.data();
    args.scalar_count = launch.scalars.size();
    args.label = launch.label;
    args.stop = launch.stop;
    args.error = text.sink();
    calls_.launch(queue, launch);
    return calls_.of_launch(status_of(table_.launch(&args), text, "launch"), queue, launch);
  }

  Result<EventHandle> record(uint32_t queue) override {
    TenonEvent event = 0;
    TENON_TRY(calls_.of_queue(backend::call("record", table_.record, device_, queue, &event),
                              "record", queue));
    calls_.record(queue, event);
    return checked(event, "record");
  }

  Status wait(uint32_t queue, EventHandle event) override {
    return calls_.of_queue(backend::call("wait", table_.wait, device_, queue, event), "wait",
                           queue);
  }

  Result<bool> await(EventHandle event, int64_t timeout) override {
    TenonEventState state = TENON_EVENT_PENDING;
    const Status status = calls_.of_event(
        backend::call("await", table_.await, device_, event, timeout, &state), event);
    const bool done = state == TENON_EVENT_DONE || state == TENON_EVENT_ERROR;
    if (!status.ok()) {
      // An error of the call says nothing about the event, whose work may continue; unless the
      // device is lost (B12).
      if (done || status.code() == ErrorCode::kUnavailable) return tl::make_unexpected(status);
      warn_of_await(fmt::format("fails: {}", status.message()));
      return false;
    }
    if (state == TENON_EVENT_ERROR)
      return internal_error("B25: await answers OK of a failed event");
    if (!done && (timeout < 0 || state != TENON_EVENT_PENDING)) {
      warn_of_await(fmt::format("answers OK with the state {}", static_cast<int>(state)));
    }
    return done;
  }

  void release(EventHandle event) override {
    calls_.release(event);
    table_.release(device_, event);
  }

  // If the table lacks a function, the default of Device is used.

  Status fill(uint32_t queue, const MemoryAddress& destination, int64_t bytes,
              std::span<const std::byte> pattern) override {
    const auto fill = member_or(table_, &TenonBackend::fill, {});
    if (fill == nullptr) return Device::fill(queue, destination, bytes, pattern);
    calls_.work(queue, "fill", "");
    return calls_.of_queue(backend::call("fill", fill, device_, queue, c_place(destination), bytes,
                                         static_cast<const void*>(pattern.data()), pattern.size()),
                           "fill", queue);
  }

  Status copy_box(uint32_t queue, const MemoryAddress& destination, const MemoryAddress& source,
                  const Box& box) override {
    const auto copy_box = member_or(table_, &TenonBackend::copy_box, {});
    if (copy_box == nullptr) return Device::copy_box(queue, destination, source, box);
    const TenonBox c_box = {sizeof c_box,
                            box.element_bytes,
                            box.sizes.size(),
                            box.sizes.data(),
                            box.destination_strides.data(),
                            box.source_strides.data()};
    calls_.work(queue, "copy_box", "");
    return calls_.of_queue(backend::call("copy_box", copy_box, device_, queue, c_place(destination),
                                         c_place(source), &c_box),
                           "copy_box", queue);
  }

  Status call(uint32_t queue, const LibraryCallLaunch& launch) override {
    const auto call = member_or(table_, &TenonBackend::call, {});
    if (call == nullptr) return Device::call(queue, launch);
    const std::vector<TenonPlace> operands = c_places(launch.operands);
    const std::vector<TenonPlace> results = c_places(launch.results);
    SinkText text;
    TenonCallArgs args{};
    args.size = sizeof args;
    args.device = device_;
    args.queue = queue;
    args.plan = launch.plan.data();
    args.plan_size = launch.plan.size();
    args.operands = operands.data();
    args.operand_count = operands.size();
    args.results = results.data();
    args.result_count = results.size();
    args.workspace = c_place(launch.workspace);
    args.label = launch.label;
    args.stop = launch.stop;
    args.error = text.sink();
    calls_.work(queue, "call", launch.label);
    return calls_.of_queue(status_of(call(&args), text, "call"), "call", queue);
  }

  Status pack(uint32_t queue, std::string_view plan, uint32_t operand,
              const MemoryAddress& destination, const MemoryAddress& source) override {
    const auto pack = member_or(table_, &TenonBackend::pack, {});
    if (pack == nullptr) return Device::pack(queue, plan, operand, destination, source);
    SinkText text;
    TenonPackArgs args{};
    args.size = sizeof args;
    args.device = device_;
    args.queue = queue;
    args.plan = plan.data();
    args.plan_size = plan.size();
    args.operand = operand;
    args.destination = c_place(destination);
    args.source = c_place(source);
    args.error = text.sink();
    calls_.work(queue, "pack", "");
    return calls_.of_queue(status_of(pack(&args), text, "pack"), "pack", queue);
  }

  Result<std::byte*> map(MemoryHandle memory) override {
    const auto map = member_or(table_, &TenonBackend::map, {});
    if (map == nullptr) return Device::map(memory);
    void* host = nullptr;
    TENON_TRY(calls_.of_device(backend::call("map", map, device_, memory, &host), "map"));
    if (host == nullptr) return internal_error("B29: map succeeds and gives no address");
    return static_cast<std::byte*>(host);
  }

  Result<MemoryHandle> import_memory(uint32_t space, std::span<const std::byte> host) override {
    const auto import = member_or(table_, &TenonBackend::import_memory, {});
    if (import == nullptr) return Device::import_memory(space, host);
    TenonMemory memory = 0;
    TENON_TRY(backend::call("import_memory", import, device_, space,
                            static_cast<const void*>(host.data()),
                            static_cast<int64_t>(host.size()), &memory));
    return checked(memory, "import_memory");
  }

  Result<EventTimes> event_times(EventHandle event) override {
    const auto time = member_or(table_, &TenonBackend::event_time, {});
    if (time == nullptr) return Device::event_times(event);
    EventTimes times;
    TENON_TRY(backend::call("event_time", time, device_, event, &times.end));
    const auto start = member_or(table_, &TenonBackend::event_start, {});
    if (start == nullptr) return times;
    double began = 0;
    const Status told = backend::call("event_start", start, device_, event, &began);
    if (told.ok()) times.start = began;
    return told.ok() || told.code() == ErrorCode::kUnimplemented ? Result<EventTimes>(times)
                                                                 : tl::make_unexpected(told);
  }

  Status abort() override {
    const auto abort = member_or(table_, &TenonBackend::abort, {});
    return abort == nullptr ? Device::abort() : backend::call("abort", abort, device_);
  }

  Result<std::vector<Statistic>> statistics() override {
    const auto statistics = member_or(table_, &TenonBackend::statistics, {});
    if (statistics == nullptr) return Device::statistics();
    Collected<Statistic> found;
    const auto add = [](void* context, const char* name, double value) noexcept {
      static_cast<Collected<Statistic>*>(context)->add(
          [&] { return Statistic{text_of(name), value}; });
    };
    TENON_TRY(backend::call("statistics", statistics, device_, static_cast<void*>(&found),
                            static_cast<void (*)(void*, const char*, double)>(add)));
    if (!found.whole) return resource_exhausted("the host has no memory for statistics");
    return std::move(found.list);
  }

 private:
  static Result<uint64_t> checked(uint64_t handle, std::string_view function) {
    if (handle != 0) return handle;
    return internal_error("B10: {} gave the handle 0", function);
  }

  // Once per device, because it will be asked again.
  void warn_of_await(const std::string& what) {
    if (warned_.exchange(true)) return;
    host_services()->log(fmt::format("{}: await {} (B25)", table_.name, what).c_str());
  }

  const TenonBackend& table_;
  const TenonDevice device_;
  DeviceCalls calls_;
  std::atomic<bool> warned_ = false;
};

class PluginBackend final : public Backend {
 public:
  explicit PluginBackend(const TenonBackend& table) : table_(table) {}

  std::string_view name() const override { return table_.name; }
  std::string_view version() const override {
    return table_.version == nullptr ? "" : table_.version;
  }

  Result<std::vector<DeviceInfo>> devices() override {
    struct DeviceCollector {
      std::vector<DeviceInfo> devices;
      Status status;

      Status add(const TenonDeviceInfo& info) noexcept try {
        const char* name = member_or(info, &TenonDeviceInfo::name, {});
        const TenonTargetInfo* target = member_or(info, &TenonDeviceInfo::target, {});
        if (name == nullptr || target == nullptr) {
          return failed_precondition("B9: a device without a name or a target");
        }
        TENON_ASSIGN(TargetInfo read, target_of(*target));
        devices.push_back({name, std::move(read)});
        return {};
      } catch (const std::exception&) {
        return Status(ErrorCode::kResourceExhausted, "");
      }
    } found;
    const auto add = [](void* context, const TenonDeviceInfo* info) noexcept {
      auto& into = *static_cast<DeviceCollector*>(context);
      if (into.status.ok()) into.status = into.add(*info);
    };
    TENON_TRY(call("devices", table_.devices, static_cast<void*>(&found),
                   static_cast<void (*)(void*, const TenonDeviceInfo*)>(add)));
    TENON_TRY(std::move(found.status));
    return std::move(found.devices);
  }

  Result<std::unique_ptr<Device>> open(size_t index) override {
    TenonDevice device = 0;
    TENON_TRY(call("open", table_.open, index, &device));
    if (device == 0) return internal_error("B10: open gave the handle 0");
    return std::make_unique<PluginDevice>(table_, device, fmt::format("{}:{}", name(), index));
  }

  Result<Compiled> compile(const TargetInfo& target, Kernels kernels) override {
    return compile_by("compile", table_.compile, target, kernels);
  }

  Result<std::string> source(const TargetInfo& target, Kernels kernels) override {
    const auto source = member_or(table_, &TenonBackend::source, {});
    if (source == nullptr) {
      return rendered_source(target, kernels, "had the host render no source");
    }
    TENON_ASSIGN(Compiled written, compile_by("source", source, target, kernels));
    if (written.binary.empty() && !written.declined.empty()) {
      return declined_source(kernels, written.declined.front());
    }
    return std::move(written.binary);
  }

  Result<LibraryCallPlan> plan(const TargetInfo& target, const LibraryCallSite& site) override {
    const auto plan = member_or(table_, &TenonBackend::plan, {});
    constexpr uint32_t kCompositesSince = 3;
    const bool is_known = table_.abi_minor >= kCompositesSince ||
                          !std::holds_alternative<program::Composite>(site.call);
    if (plan == nullptr || !is_known) return Backend::plan(target, site);
    const CTarget c_target(target);
    const TenonCall call{&site};
    LibraryCallPlan result;
    result.packed_bytes.resize(site.operands.size());
    SinkText words;
    SinkText text;
    TenonPlanArgs args{};
    args.size = sizeof args;
    args.target = c_target.get();
    args.call = &call;
    args.plan = words.sink();
    args.workspace_bytes = &result.workspace_bytes;
    args.packed_bytes = result.packed_bytes.data();
    args.seconds = &result.seconds;
    args.error = text.sink();
    TENON_TRY(status_of(plan(&args), text, "plan"));
    if (!words.whole()) return resource_exhausted("the host has no memory for a plan");
    constexpr int64_t kMost = int64_t{1} << 50;
    const auto bad = [](int64_t bytes) { return bytes < 0 || bytes > kMost; };
    if (bad(result.workspace_bytes) || std::ranges::any_of(result.packed_bytes, bad)) {
      return internal_error("{} plans a call with invalid sizes", name());
    }
    result.plan = words.take();
    return result;
  }

  bool takes_segments() const override {
    return member_or(table_, &TenonBackend::compile_segment, {}) != nullptr;
  }
  Result<std::string> compile_segment(const TargetInfo& target,
                                      const program::Program& segment) override {
    const auto compile = member_or(table_, &TenonBackend::compile_segment, {});
    if (compile == nullptr) return Backend::compile_segment(target, segment);
    const CTarget c_target(target);
    const std::optional<program::Program> older = segment_for(segment, table_.abi_minor);
    const TenonSegment c_segment{older ? &*older : &segment};
    SinkText binary;
    SinkText text;
    TenonSegmentArgs args{};
    args.size = sizeof args;
    args.target = c_target.get();
    args.segment = &c_segment;
    args.binary = binary.sink();
    args.error = text.sink();
    TENON_TRY(status_of(compile(&args), text, "compile_segment"));
    if (!binary.whole()) return resource_exhausted("the host has no memory for a segment's binary");
    return binary.take();
  }

 private:
  // The answer of a function of the table that takes TenonCompileArgs.
  Result<Compiled> compile_by(const char* name, TenonCode (*function)(const TenonCompileArgs* args),
                              const TargetInfo& target, Kernels kernels) {
    const KnownKernels known(kernels, table_.abi_minor);
    const KernelHandles handles(known.list());
    const CTarget c_target(target);
    Collected<Declined> declines;
    SinkText binary;
    SinkText text;
    TenonCompileArgs args{};
    args.size = sizeof args;
    args.target = c_target.get();
    args.kernels = handles.data();
    args.kernel_count = handles.size();
    args.binary = binary.sink();
    args.declined_context = &declines;
    args.declined = [](void* context, size_t kernel, TenonReason reason, const char* why) noexcept {
      const bool known = reason >= TENON_TOO_MUCH_SCRATCH && reason <= TENON_OTHER_REASON;
      static_cast<Collected<Declined>*>(context)->add([&] {
        return Declined{static_cast<uint32_t>(kernel),
                        known ? static_cast<Reason>(reason) : Reason::kOther, text_of(why)};
      });
    };
    args.error = text.sink();
    TENON_TRY(status_of(function(&args), text, name));
    if (!binary.whole() || !declines.whole) {
      return resource_exhausted("the host has no memory for what {} compiled", this->name());
    }
    Compiled compiled = {binary.take(), std::move(declines.list)};
    if (!compiled.binary.empty() && !compiled.declined.empty()) {
      return internal_error("B13: {} gave a binary and declined kernels", this->name());
    }
    return compiled;
  }

  const TenonBackend& table_;
};

// The names of the required functions that are missing.
std::string missing(const TenonBackend& table) {
  std::string names;
  const auto require = [&](auto TenonBackend::* member, std::string_view name) {
    if (member_or(table, member, {}) != nullptr) return;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  };
  require(&TenonBackend::devices, "devices");
  require(&TenonBackend::open, "open");
  require(&TenonBackend::close, "close");
  require(&TenonBackend::compile, "compile");
  require(&TenonBackend::load, "load");
  require(&TenonBackend::unload, "unload");
  require(&TenonBackend::allocate, "allocate");
  require(&TenonBackend::free, "free");
  require(&TenonBackend::copy, "copy");
  require(&TenonBackend::launch, "launch");
  require(&TenonBackend::record, "record");
  require(&TenonBackend::wait, "wait");
  require(&TenonBackend::await, "await");
  require(&TenonBackend::release, "release");
  return names;
}

}  // namespace

Result<std::shared_ptr<Backend>> import_backend(const TenonBackend* table) {
  if (table->abi_major != TENON_ABI_MAJOR || table->abi_minor > TENON_ABI_MINOR) {
    return failed_precondition(
        "the plug-in was built for version {}.{} of the interface, this is {}.{} (B3)",
        table->abi_major, table->abi_minor, TENON_ABI_MAJOR, TENON_ABI_MINOR);
  }
  const std::string lacks = missing(*table);
  if (!lacks.empty()) {
    return failed_precondition("the plug-in lacks required functions: {}", lacks);
  }
  if (table->name == nullptr || *table->name == '\0') {
    return failed_precondition("the plug-in has no name");
  }
  return std::make_shared<PluginBackend>(*table);
}

}  // namespace tenon::backend
