// Exports a Backend as a plug-in's table.
#include <algorithm>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "core/backend/adapter/adapter.h"
#include "core/backend/adapter/c_types.h"
#include "core/backend/in_process/host_queue.h"
#include "core/kernel/serial/serial.h"
#include "core/program/serial.h"

namespace tenon::backend {
namespace {

// Kernels that the host recently passed, by their serial form: `load` gets the kernels of `compile`
// again, so each is read once. The host verified them before passing them. Host and plug-in are one
// process, so verifying them again would only protect against another release.
class HandedKernels {
 public:
  // `same_release`: whether the host's interface has exactly this version.
  Result<std::shared_ptr<const kernel::Kernel>> read(std::string bytes, bool same_release) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = kernels_.find(bytes); known != kernels_.end()) return known->second;
    }
    TENON_ASSIGN(kernel::Kernel kernel,
                 same_release ? kernel::load_verified_kernel(bytes) : kernel::load_kernel(bytes));
    auto shared = std::make_shared<const kernel::Kernel>(std::move(kernel));
    const std::lock_guard lock(mutex_);
    const auto [at, added] = kernels_.try_emplace(std::move(bytes), shared);
    if (!added) return at->second;
    order_.push_back(&at->first);
    held_ += at->first.size();
    while (held_ > kMostBytes && order_.size() > 1) {
      held_ -= order_.front()->size();
      kernels_.erase(std::string(*order_.front()));
      order_.pop_front();
    }
    return shared;
  }

 private:
  static constexpr size_t kMostBytes = size_t{4} << 20;  // Of serial forms.
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const kernel::Kernel>> kernels_;
  std::deque<const std::string*> order_;  // Keys of `kernels_`, the oldest first.
  size_t held_ = 0;
};

// The state of the exported backend. It is global, because the functions of the table have no
// context argument.
struct Exported {
  const TenonHost* host = nullptr;
  std::shared_ptr<Backend> backend;
  Handles<Device> devices;
  std::string name;
  std::string version;
  TenonBackend table{};
  HandedKernels kernels;

  bool same_release() const { return host->abi_minor == TENON_ABI_MINOR; }
};

// Never destroyed (B2): a host may close its devices while the process exits.
std::unique_ptr<Exported>& exported() {
  static auto* instance = new std::unique_ptr<Exported>();
  return *instance;
}

// Runs `body`, which returns a Status, and converts every exception to a code. Reporting an
// exception allocates no memory.
template <class Body>
TenonCode guarded(const TenonSink* error, const Body& body) noexcept {
  try {
    return to_code(body(), error);
  } catch (const std::bad_alloc&) {
    write(error, "the backend has no memory left on the host");
    return TENON_RESOURCE_EXHAUSTED;
  } catch (const std::exception& e) {
    write(error, "the backend threw: ");
    write(error, e.what());
  } catch (...) {
    write(error, "the backend threw an object that is not an exception");
  }
  return TENON_INTERNAL;
}

template <class T>
Status set(T* to, Result<T> from) {
  if (!from) return from.error();
  *to = *std::move(from);
  return {};
}

Result<std::shared_ptr<Device>> device_of(TenonDevice handle) {
  auto device = exported()->devices.find(handle);
  if (device != nullptr) return device;
  return invalid_argument("B10: there is no open device {}", handle);
}

// The kernels of a call, read from their serial form.
class OwnKernels {
 public:
  static Result<OwnKernels> of(const TenonKernel* const* handles, size_t count) {
    OwnKernels own;
    for (size_t i = 0; i < count; ++i) {
      SinkText bytes;
      exported()->host->serialize(handles[i], bytes.sink());
      TENON_ASSIGN(own.kernels_.emplace_back(),
                   exported()->kernels.read(bytes.take(), exported()->same_release()));
      own.pointers_.push_back(own.kernels_.back().get());
    }
    return own;
  }
  Kernels get() const { return pointers_; }

 private:
  std::vector<std::shared_ptr<const kernel::Kernel>> kernels_;
  std::vector<const kernel::Kernel*> pointers_;
};

TenonCode devices(void* context, void (*found)(void* context, const TenonDeviceInfo* info),
                  const TenonSink* error) {
  return guarded(error, [&]() -> Status {
    TENON_ASSIGN(const std::vector<DeviceInfo> list, exported()->backend->devices());
    for (const DeviceInfo& each : list) {
      const CTarget target(each.target);
      const TenonDeviceInfo info = {sizeof info, each.name.c_str(), target.get()};
      found(context, &info);
    }
    return {};
  });
}

TenonCode open(size_t index, TenonDevice* device, const TenonSink* error) {
  return guarded(error, [&]() -> Status {
    TENON_ASSIGN(auto opened, exported()->backend->open(index));
    *device = exported()->devices.add(std::shared_ptr<Device>(std::move(opened)));
    return {};
  });
}

void close(TenonDevice device) {
  guarded(nullptr, [&]() -> Status {
    exported()->devices.take(device);
    return {};
  });
}

TenonCode compile(const TenonCompileArgs* args) {
  return guarded(args->error, [&]() -> Status {
    TENON_ASSIGN(const TargetInfo target, target_of(*args->target));
    TENON_ASSIGN(const OwnKernels kernels, OwnKernels::of(args->kernels, args->kernel_count));
    TENON_ASSIGN(const Compiled compiled, exported()->backend->compile(target, kernels.get()));
    for (const Declined& each : compiled.declined) {
      args->declined(args->declined_context, each.kernel, static_cast<TenonReason>(each.reason),
                     each.text.c_str());
    }
    if (compiled.declined.empty()) write(args->binary, compiled.binary);
    return {};
  });
}

TenonCode source(const TenonCompileArgs* args) {
  return guarded(args->error, [&]() -> Status {
    TENON_ASSIGN(const TargetInfo target, target_of(*args->target));
    TENON_ASSIGN(const OwnKernels kernels, OwnKernels::of(args->kernels, args->kernel_count));
    TENON_ASSIGN(const std::string text, exported()->backend->source(target, kernels.get()));
    write(args->binary, text);
    return {};
  });
}

TenonCode load(const TenonLoadArgs* args, TenonModule* module) {
  return guarded(args->error, [&]() -> Status {
    TENON_ASSIGN(const auto device, device_of(args->device));
    TENON_ASSIGN(const OwnKernels kernels, OwnKernels::of(args->kernels, args->kernel_count));
    return set(module, device->load({args->binary, args->binary_size}, kernels.get()));
  });
}

void unload(TenonDevice device, TenonModule module) {
  guarded(nullptr, [&]() -> Status {
    TENON_ASSIGN(const auto of, device_of(device));
    of->unload(module);
    return {};
  });
}

TenonCode allocate(TenonDevice device, uint32_t space, int64_t bytes, TenonMemory* memory,
                   const TenonSink* error) {
  return guarded(error, [&]() -> Status {
    TENON_ASSIGN(const auto of, device_of(device));
    return set(memory, of->allocate(space, bytes));
  });
}

void free_memory(TenonDevice device, TenonMemory memory) {
  guarded(nullptr, [&]() -> Status {
    TENON_ASSIGN(const auto of, device_of(device));
    of->free(memory);
    return {};
  });
}

TenonCode copy(const TenonCopyArgs* args) {
  return guarded(args->error, [&]() -> Status {
    TENON_ASSIGN(const auto device, device_of(args->device));
    return device->copy(args->queue, place_of(args->destination), place_of(args->source),
                        args->bytes);
  });
}

std::vector<MemoryAddress> places_of(const TenonPlace* places, size_t count) {
  std::vector<MemoryAddress> all;
  for (size_t i = 0; i < count; ++i) all.push_back(place_of(places[i]));
  return all;
}

TenonCode launch(const TenonLaunchArgs* args) {
  return guarded(args->error, [&]() -> Status {
    TENON_ASSIGN(const auto device, device_of(args->device));
    const std::vector<MemoryAddress> buffers = places_of(args->buffers, args->buffer_count);
    KernelLaunch work;
    work.module = args->module;
    work.kernel = args->kernel;
    work.buffers = buffers;
    work.scalars = {args->scalars, args->scalar_count};
    work.label = args->label;
    work.stop = member_or(*args, &TenonLaunchArgs::stop, {});
    return device->launch(args->queue, work);
  });
}

TenonCode record(TenonDevice device, uint32_t queue, TenonEvent* event, const TenonSink* error) {
  return guarded(error, [&]() -> Status {
    TENON_ASSIGN(const auto of, device_of(device));
    return set(event, of->record(queue));
  });
}

TenonCode wait(TenonDevice device, uint32_t queue, TenonEvent event, const TenonSink* error) {
  return guarded(error, [&]() -> Status {
    TENON_ASSIGN(const auto of, device_of(device));
    return of->wait(queue, event);
  });
}

TenonCode await(TenonDevice device, TenonEvent event, int64_t timeout, TenonEventState* state,
                const TenonSink* error) {
  *state = TENON_EVENT_PENDING;
  return guarded(error, [&]() -> Status {
    TENON_ASSIGN(const auto of, device_of(device));
    const Result<bool> done = of->await(event, timeout);
    *state = !done ? TENON_EVENT_ERROR : *done ? TENON_EVENT_DONE : TENON_EVENT_PENDING;
    return done ? Status() : done.error();
  });
}

void release(TenonDevice device, TenonEvent event) {
  guarded(nullptr, [&]() -> Status {
    TENON_ASSIGN(const auto of, device_of(device));
    of->release(event);
    return {};
  });
}

TenonCode fill(TenonDevice device, uint32_t queue, TenonPlace destination, int64_t bytes,
               const void* pattern, size_t pattern_bytes, const TenonSink* error) {
  return guarded(error, [&]() -> Status {
    TENON_ASSIGN(const auto of, device_of(device));
    return of->fill(queue, place_of(destination), bytes,
                    {static_cast<const std::byte*>(pattern), pattern_bytes});
  });
}

TenonCode map(TenonDevice device, TenonMemory memory, void** host, const TenonSink* error) {
  return guarded(error, [&]() -> Status {
    TENON_ASSIGN(const auto of, device_of(device));
    TENON_ASSIGN(*host, of->map(memory));
    return {};
  });
}

TenonCode import_memory(TenonDevice device, uint32_t space, const void* host, int64_t bytes,
                        TenonMemory* memory, const TenonSink* error) {
  return guarded(error, [&]() -> Status {
    TENON_ASSIGN(const auto of, device_of(device));
    return set(memory, of->import_memory(space, {static_cast<const std::byte*>(host),
                                                 static_cast<size_t>(bytes)}));
  });
}

TenonCode event_time(TenonDevice device, TenonEvent event, double* seconds,
                     const TenonSink* error) {
  return guarded(error, [&]() -> Status {
    TENON_ASSIGN(const auto of, device_of(device));
    TENON_ASSIGN(*seconds, of->event_times(event).map(&EventTimes::end));
    return {};
  });
}

TenonCode event_start(TenonDevice device, TenonEvent event, double* seconds,
                      const TenonSink* error) {
  return guarded(error, [&]() -> Status {
    TENON_ASSIGN(const auto of, device_of(device));
    TENON_ASSIGN(const EventTimes times, of->event_times(event));
    if (!times.start) return unimplemented("the device does not tell when work began");
    *seconds = *times.start;
    return {};
  });
}

TenonCode abort_device(TenonDevice device, const TenonSink* error) {
  return guarded(error, [&]() -> Status {
    TENON_ASSIGN(const auto of, device_of(device));
    return of->abort();
  });
}

TenonCode copy_box(TenonDevice device, uint32_t queue, TenonPlace destination, TenonPlace source,
                   const TenonBox* box, const TenonSink* error) {
  return guarded(error, [&]() -> Status {
    TENON_ASSIGN(const auto of, device_of(device));
    const auto dims = [&](const int64_t* list) { return Dims(list, list + box->rank); };
    return of->copy_box(queue, place_of(destination), place_of(source),
                        {box->element_bytes, dims(box->sizes), dims(box->destination_strides),
                         dims(box->source_strides)});
  });
}

TenonCode call(const TenonCallArgs* args) {
  return guarded(args->error, [&]() -> Status {
    TENON_ASSIGN(const auto device, device_of(args->device));
    const std::vector<MemoryAddress> operands = places_of(args->operands, args->operand_count);
    const std::vector<MemoryAddress> results = places_of(args->results, args->result_count);
    LibraryCallLaunch launch;
    launch.plan = {args->plan, args->plan_size};
    launch.operands = operands;
    launch.results = results;
    launch.workspace = place_of(args->workspace);
    launch.label = args->label;
    launch.stop = args->stop;
    return device->call(args->queue, launch);
  });
}

TenonCode pack(const TenonPackArgs* args) {
  return guarded(args->error, [&]() -> Status {
    TENON_ASSIGN(const auto device, device_of(args->device));
    return device->pack(args->queue, {args->plan, args->plan_size}, args->operand,
                        place_of(args->destination), place_of(args->source));
  });
}

// Reads an array of structs of the host, which may be of a newer release.
Status read_arrays(const TenonArrayInfo* infos, size_t count, std::vector<Shape>& shapes,
                   std::vector<bool>* constant) {
  return each_of(infos, count, [&](const TenonArrayInfo& info) -> Status {
    const auto type = element_type_from_name(info.type);
    if (!type) return invalid_argument("there is not an element type '{}'", info.type);
    shapes.emplace_back(*type, Dims(info.dims, info.dims + info.rank));
    if (constant != nullptr) constant->push_back(info.constant != 0);
    return {};
  });
}

TenonCode plan(const TenonPlanArgs* args) {
  return guarded(args->error, [&]() -> Status {
    const TenonHost& host = *exported()->host;
    TENON_ASSIGN(const TargetInfo target, target_of(*args->target));
    SinkText bytes;
    host.serialize_call(args->call, bytes.sink());
    TENON_ASSIGN(const program::LibraryCall call, program::load_call(bytes.take()));
    TenonCallInfo info{};
    info.size = sizeof info;
    if (host.describe_call(args->call, &info) != TENON_OK) {
      return internal_error("the host does not describe a library call");
    }
    std::vector<Shape> operands;
    std::vector<Shape> results;
    std::vector<bool> constant;
    TENON_TRY(read_arrays(info.operands, info.operand_count, operands, &constant));
    TENON_TRY(read_arrays(info.results, info.result_count, results, nullptr));
    TENON_ASSIGN(const LibraryCallPlan made,
                 exported()->backend->plan(target, {call, operands, results, constant}));
    if (made.packed_bytes.size() > operands.size()) {
      return internal_error("a plan packs {} of {} operands", made.packed_bytes.size(),
                            operands.size());
    }
    write(args->plan, made.plan);
    *args->workspace_bytes = made.workspace_bytes;
    std::ranges::copy(made.packed_bytes, args->packed_bytes);
    *args->seconds = made.seconds;
    return {};
  });
}

TenonCode compile_segment(const TenonSegmentArgs* args) {
  return guarded(args->error, [&]() -> Status {
    TENON_ASSIGN(const TargetInfo target, target_of(*args->target));
    SinkText bytes;
    exported()->host->serialize_segment(args->segment, bytes.sink());
    const std::string form = bytes.take();
    TENON_ASSIGN(const program::Program segment, exported()->same_release()
                                                     ? program::load_validated_program(form)
                                                     : program::load_program(form));
    TENON_ASSIGN(const std::string binary, exported()->backend->compile_segment(target, segment));
    write(args->binary, binary);
    return {};
  });
}

TenonCode statistics(TenonDevice device, void* context,
                     void (*found)(void* context, const char* name, double value),
                     const TenonSink* error) {
  return guarded(error, [&]() -> Status {
    TENON_ASSIGN(const auto of, device_of(device));
    TENON_ASSIGN(const std::vector<Statistic> list, of->statistics());
    for (const Statistic& each : list) found(context, each.name.c_str(), each.value);
    return {};
  });
}

TenonBackend table_of(const Exported& from) {
  TenonBackend table{};
  table.size = sizeof table;
  table.abi_major = TENON_ABI_MAJOR;
  table.abi_minor = TENON_ABI_MINOR;
  table.name = from.name.c_str();
  table.version = from.version.c_str();
  table.devices = devices;
  table.open = open;
  table.close = close;
  table.compile = compile;
  table.load = load;
  table.unload = unload;
  table.allocate = allocate;
  table.free = free_memory;
  table.copy = copy;
  table.launch = launch;
  table.record = record;
  table.wait = wait;
  table.await = await;
  table.release = release;
  table.fill = fill;
  table.map = map;
  table.event_time = event_time;
  table.event_start = event_start;
  table.abort = abort_device;
  table.copy_box = copy_box;
  table.plan = plan;
  table.call = call;
  table.pack = pack;
  if (from.backend->takes_segments()) table.compile_segment = compile_segment;
  table.statistics = statistics;
  table.import_memory = import_memory;
  table.source = source;
  return table;
}

}  // namespace

const TenonBackend* export_backend(const TenonHost* host, const TenonSink* error,
                                   const BackendFactory& make) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (exported() != nullptr) return &exported()->table;
  const TenonCode code = guarded(error, [&]() -> Status {
    if (host->abi_major != TENON_ABI_MAJOR || static_cast<int>(host->abi_minor) < TENON_ABI_MINOR) {
      return failed_precondition(
          "the backend was built for version {}.{} of the interface, the "
          "host has {}.{} (B3)",
          TENON_ABI_MAJOR, TENON_ABI_MINOR, host->abi_major, host->abi_minor);
    }
    auto instance = std::make_unique<Exported>();
    TENON_ASSIGN(instance->backend, make());
    instance->host = host;
    instance->name = instance->backend->name();
    instance->version = instance->backend->version();
    instance->table = table_of(*instance);
    exported() = std::move(instance);
    return {};
  });
  return code == TENON_OK ? &exported()->table : nullptr;
}

}  // namespace tenon::backend
