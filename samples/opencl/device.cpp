// An open device: queues, memory, events.
#include <algorithm>
#include <atomic>
#include <mutex>

#include "calls.h"
#include "core/backend/adapter/rendering.h"
#include "core/backend/driver/kept.h"
#include "core/backend/driver/memory_account.h"
#include "core/backend/driver/waiting.h"
#include "core/backend/in_process/host_queue.h"
#include "core/kernel/render/rendered_binary.h"

namespace tenon::opencl {
namespace {

using backend::EventHandle;
using backend::MemoryAddress;
using backend::MemoryHandle;
using backend::ModuleHandle;

struct ClMemory {
  cl::Context context;
  backend::MemoryAccount::Share share;
  void* shared = nullptr;  ///< Fine-grained SVM behind the buffer.
  cl::Buffer buffer;
  ~ClMemory() {
    buffer = cl::Buffer();
    if (shared != nullptr) clSVMFree(context(), shared);
  }
};

struct Function {
  cl::Kernel kernel;
  cl::NDRange global, local;
  std::vector<size_t> scalar_bytes;
};
using Module = std::vector<Function>;

/// The work between two events of a queue.
struct WorkBatch {
  cl::Event marker;                ///< Behind the work; null until it is recorded.
  std::vector<cl::Event> work;     ///< A command's own event states its failure.
  std::shared_ptr<ClMemory> word;  ///< Where kernels see that they are to stop.
  backend::StopRelay stop;
  backend::CompletionSignal signal;

  bool is_done() const {
    return marker.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>() <= CL_COMPLETE;
  }
  /// The outcome of work that is done.
  Status outcome() const {
    for (const cl::Event& each : work) {
      const cl_int status = each.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>();
      if (status < 0) return status_of(status, "a command failed on the device");
    }
    return stop.outcome();
  }
};

void CL_CALLBACK marker_is_done(cl_event, cl_int, void* data) {
  const std::unique_ptr<std::shared_ptr<WorkBatch>> batch(
      static_cast<std::shared_ptr<WorkBatch>*>(data));
  (*batch)->signal.raise();
}

class OpenClDevice final : public backend::Device {
 public:
  OpenClDevice(const Found& found, cl::Context context)
      : found_(found),
        context_(std::move(context)),
        account_(found.target.spaces[0].bytes),
        queues_(found.target.queues) {}

  Status start() {
    for (Queue& queue : queues_) {
      cl_int code = CL_SUCCESS;
      queue.commands =
          cl::CommandQueue(context_, found_.device, cl::QueueProperties::Profiling, &code);
      TENON_TRY(status_of(code, "clCreateCommandQueue"));
      TENON_ASSIGN(queue.batch, new_batch());
    }
    return {};
  }

  // Work that is under way uses memory of the host and of this device: it is ended first (B11).
  ~OpenClDevice() override {
    for (Queue& queue : queues_) {
      if (queue.commands() == nullptr) continue;
      if (queue.batch != nullptr) queue.batch->stop.stop_kernels();
      if (!lost_) queue.commands.finish();
    }
  }

  Result<ModuleHandle> load(std::string_view bytes, backend::Kernels kernels) override {
    TENON_TRY(state());
    TENON_ASSIGN(const kernel::RenderedBinary binary, kernel::RenderedBinary::load(bytes));
    cl_int code = CL_SUCCESS;
    const std::vector<unsigned char> saved(binary.program.begin(), binary.program.end());
    const cl::Program program(context_, {found_.device}, {saved}, nullptr, &code);
    TENON_TRY(status_of(code, "clCreateProgramWithBinary"));
    TENON_TRY(status_of(program.build({found_.device}, found_.build_options.c_str()),
                        "clBuildProgram of a binary"));
    auto module = std::make_shared<Module>();
    for (size_t k = 0; k < binary.kernels.size(); ++k) {
      const kernel::RenderedKernel& how = binary.kernels[k];
      Function function;
      function.kernel = cl::Kernel(program, how.function.c_str(), &code);
      TENON_TRY(status_of(code, fmt::format("clCreateKernel of {}", how.function)));
      function.local = cl::NDRange(static_cast<size_t>(how.lanes));
      function.global = cl::NDRange(static_cast<size_t>(how.lanes * how.workgroups));
      // A kernel of the plug-in's own (calls.h) has none.
      if (k < kernels.size()) function.scalar_bytes = backend::scalar_bytes(*kernels[k]);
      module->push_back(std::move(function));
    }
    return modules_.add(std::move(module));
  }
  void unload(ModuleHandle module) override { modules_.take(module); }

  Result<MemoryHandle> allocate(uint32_t, int64_t bytes) override {
    TENON_TRY(state());
    TENON_ASSIGN(std::shared_ptr<ClMemory> memory, new_memory(bytes));
    return memories_.add(std::move(memory));
  }
  void free(MemoryHandle memory) override { memories_.take(memory); }

  // The host's bytes in place, where the device is the CPU (B28).
  Result<MemoryHandle> import_memory(uint32_t, std::span<const std::byte> host) override {
    constexpr uintptr_t kAlignment = 64;
    if (!found_.is_host) return unimplemented("the device has a memory of its own");
    if (reinterpret_cast<uintptr_t>(host.data()) % kAlignment != 0) {
      return invalid_argument("bytes that are not aligned to {}", kAlignment);
    }
    auto memory = std::make_shared<ClMemory>();
    cl_int code = CL_SUCCESS;
    memory->buffer = cl::Buffer(context_, CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR, host.size(),
                                const_cast<std::byte*>(host.data()), &code);
    TENON_TRY(status_of(code, "clCreateBuffer of the host's bytes"));
    return memories_.add(std::move(memory));
  }

  Result<std::byte*> map(MemoryHandle handle) override {
    const auto memory = memories_.find(handle);
    if (memory == nullptr || memory->shared == nullptr) return unimplemented("no shared memory");
    return static_cast<std::byte*>(memory->shared);
  }

  Status copy(uint32_t number, const MemoryAddress& to, const MemoryAddress& from,
              int64_t bytes) override {
    const auto size = static_cast<size_t>(bytes);
    return enqueue(number, "a copy", [&](cl::CommandQueue& queue, cl::Event* done) {
      return from.on_host() ? queue.enqueueWriteBuffer(buffer_of(to), CL_FALSE, offset_of(to), size,
                                                       from.host, nullptr, done)
             : to.on_host()
                 ? queue.enqueueReadBuffer(buffer_of(from), CL_FALSE, offset_of(from), size,
                                           to.host, nullptr, done)
                 : queue.enqueueCopyBuffer(buffer_of(from), buffer_of(to), offset_of(from),
                                           offset_of(to), size, nullptr, done);
    });
  }

  Status copy_box(uint32_t number, const MemoryAddress& to, const MemoryAddress& from,
                  const backend::Box& box) override {
    const auto form = backend::pitched(box);
    if (!form) return unimplemented("the box is not of rows within slices");
    using At = std::array<size_t, 3>;
    const At region = {form->row_bytes, form->rows, form->slices};
    const At start = {0, 0, 0};
    const At to_start = {offset_of(to), 0, 0};
    const At from_start = {offset_of(from), 0, 0};
    const auto& [to_row, to_slice] = form->destination;
    const auto& [from_row, from_slice] = form->source;
    return enqueue(number, "a copy of rows", [&](cl::CommandQueue& queue, cl::Event* done) {
      return from.on_host() ? queue.enqueueWriteBufferRect(buffer_of(to), CL_FALSE, to_start, start,
                                                           region, to_row, to_slice, from_row,
                                                           from_slice, from.host, nullptr, done)
             : to.on_host() ? queue.enqueueReadBufferRect(buffer_of(from), CL_FALSE, from_start,
                                                          start, region, from_row, from_slice,
                                                          to_row, to_slice, to.host, nullptr, done)
                            : queue.enqueueCopyBufferRect(
                                  buffer_of(from), buffer_of(to), from_start, to_start, region,
                                  from_row, from_slice, to_row, to_slice, nullptr, done);
    });
  }

  Status fill(uint32_t number, const MemoryAddress& to, int64_t bytes,
              std::span<const std::byte> pattern) override {
    return enqueue(number, "clEnqueueFillBuffer", [&](cl::CommandQueue& queue, cl::Event* done) {
      return clEnqueueFillBuffer(queue(), buffer_of(to)(), pattern.data(), pattern.size(),
                                 offset_of(to), static_cast<size_t>(bytes), 0, nullptr, &(*done)());
    });
  }

  Status launch(uint32_t number, const backend::KernelLaunch& launch) override {
    TENON_ASSIGN(const auto module, modules_.get(launch.module, "module"));
    if (launch.kernel >= module->size()) {
      return internal_error("module {} has no kernel {}", launch.module, launch.kernel);
    }
    const Function& function = (*module)[launch.kernel];
    WorkBatch& batch = *queues_[number].batch;
    // Arguments belong to a kernel, which two queues may launch.
    const std::lock_guard lock(launching_);
    TENON_TRY(set_arguments(function, launch, batch).with_context(launch.label));
    batch.stop.add(launch.stop);
    return enqueue(number, "clEnqueueNDRangeKernel",
                   [&](cl::CommandQueue& queue, cl::Event* done) {
                     return queue.enqueueNDRangeKernel(function.kernel, cl::NullRange,
                                                       function.global, function.local, nullptr,
                                                       done);
                   })
        .with_context(launch.label);
  }

  Status call(uint32_t number, const backend::LibraryCallLaunch& call) override {
    TENON_TRY(state());
    std::vector<MemoryAddress> buffers(call.operands.begin(), call.operands.end());
    buffers.insert(buffers.end(), call.results.begin(), call.results.end());
    if (call.plan.starts_with("clblast ")) return multiply(number, call.plan, buffers);
    TENON_ASSIGN(const ModuleHandle module,
                 own_.get(std::string(call.plan), [&] { return load(call.plan, {}); }));
    return launch(number, {module, 0, buffers, {}, call.label, call.stop});
  }

  Result<EventHandle> record(uint32_t number) override {
    TENON_TRY(state());
    Queue& queue = queues_[number];
    TENON_ASSIGN(auto next, new_batch());
    cl::Event marker;
    TENON_TRY(status_of(queue.commands.enqueueMarkerWithWaitList(nullptr, &marker),
                        "clEnqueueMarkerWithWaitList"));
    TENON_TRY(status_of(queue.commands.flush(), "clFlush"));
    queue.batch->marker = std::move(marker);
    const std::lock_guard lock(batches_);  // abort() looks at them.
    return events_.add(std::exchange(queue.batch, std::move(next)));
  }

  Status wait(uint32_t number, EventHandle event) override {
    TENON_TRY(state());
    const auto batch = events_.find(event);
    if (batch == nullptr) return {};
    const std::vector<cl::Event> markers = {batch->marker};
    return status_of(queues_[number].commands.enqueueBarrierWithWaitList(&markers),
                     "clEnqueueBarrierWithWaitList");
  }

  Result<bool> await(EventHandle event, int64_t timeout) override {
    // Drivers of GPUs may take milliseconds until they call back, so that their events are asked
    // for.
    using namespace std::chrono_literals;
    const backend::WaitPace pace = found_.is_host ? backend::WaitPace{.pause = 5ms}
                                                  : backend::WaitPace{.busy = 1ms, .pause = 50us};
    TENON_ASSIGN(const auto batch, events_.get(event, "event"));
    if (!batch->is_done() && timeout != 0) {
      auto shared = std::make_unique<std::shared_ptr<WorkBatch>>(batch);
      TENON_TRY(status_of(batch->marker.setCallback(CL_COMPLETE, marker_is_done, shared.get()),
                          "clSetEventCallback"));
      static_cast<void>(shared.release());
    }
    TENON_ASSIGN(const bool done, batch->signal.await(timeout, pace, [&]() -> Result<bool> {
      if (batch->is_done()) return true;
      TENON_TRY(state());
      batch->stop.relay();
      return false;
    }));
    if (done) TENON_TRY(batch->outcome());
    return done;
  }
  void release(EventHandle event) override { events_.take(event); }

  Result<backend::EventTimes> event_times(EventHandle event) override {
    constexpr double kNanoseconds = 1e-9;
    TENON_ASSIGN(const auto batch, events_.get(event, "event"));
    cl_int code = CL_SUCCESS;
    const cl_ulong end = batch->marker.getProfilingInfo<CL_PROFILING_COMMAND_END>(&code);
    TENON_TRY(status_of(code, "clGetEventProfilingInfo"));
    cl_ulong start = end;
    for (const cl::Event& each : batch->work) {
      const auto began = each.getProfilingInfo<CL_PROFILING_COMMAND_START>(&code);
      if (code == CL_SUCCESS) start = std::min(start, began);
    }
    return backend::EventTimes{static_cast<double>(start) * kNanoseconds,
                               static_cast<double>(end) * kNanoseconds};
  }

  // OpenCL cannot end a kernel, but one that might never end reads a flag. What copies to the host
  // is over then too (B12).
  Status abort() override {
    lost_ = true;
    if (!found_.shares_memory()) return {};
    {
      const std::lock_guard lock(batches_);
      events_.for_each([](WorkBatch& batch) { batch.stop.stop_kernels(); });
      for (Queue& queue : queues_) queue.batch->stop.stop_kernels();
    }
    for (Queue& queue : queues_) queue.commands.finish();
    return {};
  }

 private:
  struct Queue {
    cl::CommandQueue commands;
    std::shared_ptr<WorkBatch> batch;  ///< The work since the last event.
  };

  Status state() const {
    return lost_ ? Status(ErrorCode::kUnavailable, "the device is lost") : Status();
  }

  /// Queues a command, which names its event.
  template <class Command>
  Status enqueue(uint32_t number, std::string_view name, const Command& command) {
    TENON_TRY(state());
    Queue& queue = queues_[number];
    cl::Event done;
    TENON_TRY(status_of(command(queue.commands, &done), name));
    queue.batch->work.push_back(std::move(done));
    return {};
  }

  /// CLBlast gives the event of its last kernel alone: a marker before the first has the start.
  Status multiply(uint32_t number, std::string_view plan, std::span<const MemoryAddress> arrays) {
    const auto at = [&](size_t i) { return ClArray{buffer_of(arrays[i])(), offset_of(arrays[i])}; };
    TENON_TRY(enqueue(number, "clEnqueueMarkerWithWaitList", [](auto& queue, cl::Event* start) {
      return queue.enqueueMarkerWithWaitList(nullptr, start);
    }));
    Queue& queue = queues_[number];
    cl::Event done;
    TENON_TRY(clblast_call(plan, at(0), at(1), at(2), queue.commands(), &done()));
    queue.batch->work.push_back(std::move(done));
    return {};
  }

  const cl::Buffer& buffer_of(const MemoryAddress& place) const {
    return memories_.find(place.memory)->buffer;
  }
  static size_t offset_of(const MemoryAddress& place) { return static_cast<size_t>(place.offset); }

  Result<std::shared_ptr<ClMemory>> new_memory(int64_t bytes) {
    auto memory = std::make_shared<ClMemory>();
    TENON_ASSIGN(memory->share, account_.take(bytes));
    const auto size = static_cast<size_t>(bytes);
    const auto alignment = static_cast<cl_uint>(found_.target.spaces[0].alignment);
    memory->context = context_;
    if (found_.shares_memory()) {
      memory->shared =
          clSVMAlloc(context_(), CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, size, alignment);
      if (memory->shared == nullptr) return resource_exhausted("clSVMAlloc of {} bytes", bytes);
    }
    cl_int code = CL_SUCCESS;
    memory->buffer = cl::Buffer(
        context_, CL_MEM_READ_WRITE | (memory->shared != nullptr ? CL_MEM_USE_HOST_PTR : 0), size,
        memory->shared, &code);
    TENON_TRY(status_of(code, "clCreateBuffer"));
    return memory;
  }

  Result<std::shared_ptr<WorkBatch>> new_batch() {
    auto batch = std::make_shared<WorkBatch>();
    if (found_.shares_memory()) {
      TENON_ASSIGN(batch->word, new_memory(sizeof(uint32_t)));
      batch->stop = backend::StopRelay(static_cast<uint32_t*>(batch->word->shared));
    }
    return batch;
  }

  Status set_arguments(const Function& function, const backend::KernelLaunch& launch,
                       const WorkBatch& batch) const {
    cl_uint index = 0;
    const auto set = [&](size_t bytes, const void* value) {
      return status_of(clSetKernelArg(function.kernel(), index++, bytes, value), "clSetKernelArg");
    };
    for (const MemoryAddress& place : launch.buffers) {
      const auto offset = static_cast<cl_ulong>(place.offset);  // Its low half comes first.
      TENON_TRY(set(sizeof(cl_mem), &buffer_of(place)()));
      TENON_TRY(set(static_cast<size_t>(found_.offset_bits() / 8), &offset));
    }
    for (size_t i = 0; i < launch.scalars.size(); ++i) {
      TENON_TRY(set(function.scalar_bytes[i], &launch.scalars[i]));
    }
    if (batch.word == nullptr) return {};
    return status_of(clSetKernelArgSVMPointer(function.kernel(), index, batch.stop.word()),
                     "clSetKernelArgSVMPointer");
  }

  const Found found_;
  const cl::Context context_;
  backend::MemoryAccount account_;
  std::atomic<bool> lost_ = false;
  std::mutex launching_;
  std::mutex batches_;
  backend::KeptValues<std::string, ModuleHandle> own_;  ///< Kernels of the plug-in's own, by plan.
  backend::Handles<Module> modules_;
  backend::Handles<ClMemory> memories_;
  backend::Handles<WorkBatch> events_;
  std::vector<Queue> queues_;
};

}  // namespace

Result<std::unique_ptr<backend::Device>> open_device(const Found& found,
                                                     const cl::Context& context) {
  auto device = std::make_unique<OpenClDevice>(found, context);
  TENON_TRY(device->start());
  return device;
}

}  // namespace tenon::opencl
