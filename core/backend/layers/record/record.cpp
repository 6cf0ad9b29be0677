#include "core/backend/layers/record/record.h"

#include <atomic>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <optional>

#include "core/backend/adapter/adapter.h"
#include "core/backend/layers/forward.h"
#include "core/backend/layers/loaded_kernel.h"
#include "core/backend/layers/paint.h"
#include "core/backend/layers/record/recorded_work.h"
#include "core/backend/layers/record/recording.h"
#include "core/kernel/serial/serial.h"

namespace tenon::backend {

using recorded::Number;

namespace {

// How long a device that is closed with work on it may take to do it.
constexpr int64_t kClosingTime = 1'000'000'000;

std::string_view as_text(const std::byte* data, int64_t bytes) {
  return {reinterpret_cast<const char*>(data), static_cast<size_t>(bytes)};
}

std::vector<Number> add_kernels(RecordingFile& file, Kernels kernels) {
  std::vector<Number> numbers;
  for (const kernel::Kernel* kernel : kernels) {
    numbers.push_back(file.add_bytes(kernel::save(*kernel)));
  }
  return numbers;
}

class RecordDevice final : public ForwardingDevice {
 public:
  RecordDevice(std::unique_ptr<Device> inner, std::shared_ptr<RecordingFile> file, Number opening,
               bool one_queue, const RecordOptions& options)
      : ForwardingDevice(std::move(inner)),
        file_(std::move(file)),
        opening_(opening),
        one_queue_(one_queue),
        values_(options.values),
        most_held_(options.most_held_bytes) {}

  ~RecordDevice() override {
    finish_queues();
    file_->add(recorded::RecordedClose{opening_});
    close();
  }

  Result<ModuleHandle> load(std::string_view binary, Kernels kernels) override {
    TENON_ASSIGN(const ModuleHandle handle, ForwardingDevice::load(binary, kernels));
    recorded::RecordedLoad entry = {opening_, file_->new_number(), file_->add_bytes(binary),
                                    add_kernels(*file_, kernels)};
    const std::lock_guard lock(mutex_);
    modules_[handle] = {entry.module, loaded(kernels)};
    file_->add(entry);
    return handle;
  }

  void unload(ModuleHandle module) override {
    {
      const std::lock_guard lock(mutex_);
      const auto found = modules_.extract(module);
      if (!found.empty()) file_->add(recorded::RecordedUnload{found.mapped().number});
    }
    ForwardingDevice::unload(module);
  }

  Result<MemoryHandle> allocate(uint32_t space, int64_t bytes) override {
    TENON_ASSIGN(const MemoryHandle handle, ForwardingDevice::allocate(space, bytes));
    const Number number = file_->new_number();
    const std::lock_guard lock(mutex_);
    memories_[handle] = {number, bytes, false};
    file_->add(recorded::RecordedAllocate{opening_, number, space, bytes});
    return handle;
  }

  void free(MemoryHandle memory) override {
    {
      const std::lock_guard lock(mutex_);
      const auto found = memories_.extract(memory);
      if (!found.empty()) file_->add(recorded::RecordedFree{found.mapped().number});
    }
    ForwardingDevice::free(memory);
  }

  Status copy(uint32_t queue, const MemoryAddress& destination, const MemoryAddress& source,
              int64_t bytes) override {
    TENON_TRY(paint_new(queue, destination));
    TENON_TRY(paint_new(queue, source));
    const Number data = source.on_host() ? file_->add_bytes(as_text(source.host, bytes)) : 0;
    const Number entry = file_->add(
        recorded::RecordedCopy{opening_, queue, place(destination), place(source), bytes, data});
    TENON_TRY(noted(entry, ForwardingDevice::copy(queue, destination, source, bytes)));
    RecordedWork work = {entry, {}, {}};
    if (destination.on_host()) work.outputs.push_back({0, destination.host, bytes});
    given(queue, std::move(work));
    return {};
  }

  Status fill(uint32_t queue, const MemoryAddress& destination, int64_t bytes,
              std::span<const std::byte> pattern) override {
    TENON_TRY(paint_new(queue, destination));
    const Number data =
        file_->add_bytes(as_text(pattern.data(), static_cast<int64_t>(pattern.size())));
    const Number entry =
        file_->add(recorded::RecordedFill{opening_, queue, place(destination), bytes, data});
    TENON_TRY(noted(entry, ForwardingDevice::fill(queue, destination, bytes, pattern)));
    given(queue, {entry, {}, {}});
    return {};
  }

  Status launch(uint32_t queue, const KernelLaunch& launch) override {
    recorded::RecordedLaunch written = {opening_, queue, 0, launch.kernel, {}, {}, {}};
    if (launch.label != nullptr) written.label = launch.label;
    written.scalars.assign(launch.scalars.begin(), launch.scalars.end());
    LoadedKernel kernel;
    {
      const std::lock_guard lock(mutex_);
      const auto module = modules_.find(launch.module);
      // The backend refuses launches that break the rules.
      if (module == modules_.end() || launch.kernel >= module->second.kernels.size() ||
          launch.buffers.size() != module->second.kernels[launch.kernel].buffers.size()) {
        return ForwardingDevice::launch(queue, launch);
      }
      written.module = module->second.number;
      kernel = module->second.kernels[launch.kernel];
    }
    for (const MemoryAddress& each : launch.buffers) {
      TENON_TRY(paint_new(queue, each));
      written.buffers.push_back(place(each));
    }
    if (values_) make_room(queue, written_bytes(kernel));
    const Number entry = file_->add(written);
    TENON_TRY(noted(entry, ForwardingDevice::launch(queue, launch)));
    RecordedWork work = {entry, {}, {}};
    if (values_) add_outputs(kernel, work);
    read_back(queue, launch.buffers, given(queue, std::move(work)));
    return {};
  }

  Result<EventHandle> record(uint32_t queue) override {
    TENON_ASSIGN(const EventHandle handle, ForwardingDevice::record(queue));
    const Number number = file_->new_number();
    const std::lock_guard lock(mutex_);
    file_->add(recorded::RecordedRecord{opening_, queue, number});
    RecordedQueue& q = queue_of(queue);
    RecordedSpan span = {++q.records, handle, std::move(q.open)};
    q.open.clear();
    q.seen.resize(std::max(q.seen.size(), size_t{queue} + 1));
    q.seen[queue] = span.record;
    events_[handle] = {number, queue, span.record, q.seen, std::exchange(q.failed, Status())};
    q.spans.push_back(std::move(span));
    return handle;
  }

  Status wait(uint32_t queue, EventHandle event) override {
    TENON_TRY(ForwardingDevice::wait(queue, event));
    const std::lock_guard lock(mutex_);
    const auto found = events_.find(event);
    if (found == events_.end()) return {};
    file_->add(recorded::RecordedWait{opening_, queue, found->second.number});
    std::vector<uint64_t>& seen = queue_of(queue).seen;
    seen.resize(std::max(seen.size(), found->second.covers.size()));
    for (size_t i = 0; i < found->second.covers.size(); ++i) {
      seen[i] = std::max(seen[i], found->second.covers[i]);
    }
    return {};
  }

  Result<bool> await(EventHandle event, int64_t timeout) override {
    Result<bool> done = ForwardingDevice::await(event, timeout);
    if (done && !*done) return done;
    // Before the host is told: from then on memory that was copied to is the host's.
    const std::lock_guard lock(mutex_);
    settle(event, done ? Status() : done.error());
    const auto found = events_.find(event);
    if (!done || found == events_.end() || found->second.failed.ok()) return done;
    return tl::make_unexpected(found->second.failed);
  }

  void release(EventHandle event) override {
    {
      const std::lock_guard lock(mutex_);
      const auto found = events_.find(event);
      if (found != events_.end()) {
        const Result<bool> done = ForwardingDevice::await(event, 0);
        if (!done || *done) settle(event, done ? Status() : done.error());
        for (RecordedSpan& span : queue_of(found->second.queue).spans) {
          if (span.event == event) span.event = 0;
        }
        events_.erase(found);
      }
    }
    ForwardingDevice::release(event);
  }

  Result<std::byte*> map(MemoryHandle) override {
    return unimplemented("memory is not mapped while it is recorded");
  }

  Result<MemoryHandle> import_memory(uint32_t, std::span<const std::byte>) override {
    return unimplemented("memory of the host is copied while it is recorded");
  }

  Status copy_box(uint32_t, const MemoryAddress&, const MemoryAddress&, const Box&) override {
    return Status(unimplemented("boxes are copied by kernels while they are recorded"));
  }

  Status abort() override {
    aborted_ = true;
    return ForwardingDevice::abort();
  }

 private:
  struct RecordedMemory {
    Number number = 0;
    int64_t bytes = 0;
    bool painted = false;
  };
  struct RecordedModule {
    Number number = 0;
    std::vector<LoadedKernel> kernels;
  };
  // Work of a queue up to one record, which is its `record`-th.
  struct RecordedSpan {
    uint64_t record = 0;
    EventHandle event = 0;  // 0: released before anybody knew that it was done.
    std::vector<RecordedWork> work;
  };
  struct RecordedQueue {
    uint64_t records = 0;
    std::vector<RecordedWork> open;  // Work since the last record.
    std::deque<RecordedSpan> spans;  // Spans not yet seen to be done.
    std::vector<uint64_t> seen;      // Records of each queue that come before what is given next.
    int64_t held = 0;                // Bytes of the layer's that copies of open and spans write to.
    Status failed;                   // Error of work drained since the last record.
  };
  struct RecordedEvent {
    Number number = 0;
    uint32_t queue = 0;
    uint64_t record = 0;
    std::vector<uint64_t> covers;  // Records of each queue that are done when it is.
    Status failed;                 // Error of drained work before it.
  };

  recorded::RecordedAddress place(const MemoryAddress& place) {
    if (place.on_host()) return {};
    const std::lock_guard lock(mutex_);
    const auto found = memories_.find(place.memory);
    return {found == memories_.end() ? 0 : found->second.number, place.offset};
  }

  RecordedQueue& queue_of(uint32_t queue) { return queues_[queue]; }

  // The bytes of the memory if it is unpainted; 0 if it has been painted.
  int64_t unpainted_bytes(MemoryHandle memory) {
    const std::lock_guard lock(mutex_);
    const auto found = memories_.find(memory);
    return found == memories_.end() || found->second.painted ? 0 : found->second.bytes;
  }

  // Paints memory before its first use by work; called from the queue's thread. With several
  // queues, none uses the memory before it is painted.
  Status paint_new(uint32_t queue, const MemoryAddress& place) {
    if (place.on_host() || unpainted_bytes(place.memory) == 0) return {};
    const std::lock_guard painting(painting_);
    const int64_t bytes = unpainted_bytes(place.memory);
    if (bytes == 0) return {};
    TENON_TRY(paint(inner(), queue, {place.memory, 0, nullptr}, bytes, kUnwritten));
    if (!one_queue_) drain(queue);
    const std::lock_guard lock(mutex_);
    if (const auto found = memories_.find(place.memory); found != memories_.end()) {
      found->second.painted = true;
    }
    return {};
  }

  // Queues copies of what a launch writes, into memory that is kept until they are done. One that
  // is refused leaves the launch without values.
  void read_back(uint32_t queue, std::span<const MemoryAddress> buffers, RecordedWork& work) {
    for (size_t i = 0; i < work.outputs.size(); ++i) {
      const MemoryAddress to = MemoryAddress::of_host(work.storage[i].data());
      const RecordedWork::Output& output = work.outputs[i];
      if (ForwardingDevice::copy(queue, to, buffers[output.buffer], output.bytes).ok()) continue;
      work.outputs.clear();
    }
  }

  // Bounds the memory for values before a launch; called from the queue's thread. All launches of
  // an execution may write more than the host's memory.
  void make_room(uint32_t queue, int64_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      const int64_t held = queue_of(queue).held;
      if (held == 0 || bytes <= most_held_ - held) return;
    }
    drain(queue);
  }

  // Waits for what the queue was given, and writes down what came of it. An error of that is the
  // next event's (B23): the host has not asked yet.
  void drain(uint32_t queue) {
    const Result<EventHandle> event = ForwardingDevice::record(queue);
    if (!event) return;
    const Result<bool> done = ForwardingDevice::await(*event, -1);
    ForwardingDevice::release(*event);
    if (done && !*done) return;
    const std::lock_guard lock(mutex_);
    RecordedQueue& q = queue_of(queue);
    for (const RecordedSpan& span : q.spans) write(span, outcome_of(span));
    write({0, 0, std::move(q.open)}, done ? Status() : done.error());
    q.spans.clear();
    q.open.clear();
    q.held = 0;
    if (!done && q.failed.ok()) q.failed = done.error();
  }

  Status noted(Number entry, Status status) {
    if (!status.ok()) failed(entry, /*call=*/true, status);
    return status;
  }

  void failed(Number entry, bool call, const Status& status) {
    file_->add(recorded::RecordedFailure{entry, call, static_cast<uint8_t>(status.code()),
                                         status.message()});
  }

  // Appends work to the open span of the queue. The reference is valid until the next call for the
  // queue.
  RecordedWork& given(uint32_t queue, RecordedWork work) {
    const std::lock_guard lock(mutex_);
    RecordedQueue& q = queue_of(queue);
    q.open.push_back(std::move(work));
    q.held += q.open.back().held();
    return q.open.back();
  }

  // With the lock. An event is done: so is all that came before it.
  void settle(EventHandle event, const Status& outcome) {
    const auto found = events_.find(event);
    if (found == events_.end()) return;
    for (uint32_t q = 0; q < found->second.covers.size(); ++q) {
      std::deque<RecordedSpan>& spans = queue_of(q).spans;
      while (!spans.empty() && spans.front().record <= found->second.covers[q]) {
        const bool itself = spans.front().event == event;
        write(spans.front(), itself ? outcome : outcome_of(spans.front()));
        for (const RecordedWork& work : spans.front().work) queue_of(q).held -= work.held();
        spans.pop_front();
      }
    }
  }

  // The outcome of a span, if its event is done; nothing if that is not known.
  std::optional<Status> outcome_of(const RecordedSpan& span) {
    if (span.event == 0) return {};
    const Result<bool> done = ForwardingDevice::await(span.event, 0);
    if (done && !*done) return {};
    return done ? Status() : done.error();
  }

  void write(const RecordedSpan& span, const std::optional<Status>& outcome) {
    if (!outcome) return;
    for (const RecordedWork& work : span.work) {
      if (!outcome->ok()) {
        failed(work.entry, /*call=*/false, *outcome);
        continue;
      }
      if (work.outputs.empty()) continue;
      recorded::RecordedValues values = {work.entry, {}};
      for (const RecordedWork::Output& each : work.outputs) {
        values.written.push_back({each.buffer, file_->add_bytes(as_text(each.data, each.bytes))});
      }
      file_->add(values);
    }
  }

  // Writes down work that the host has not asked for, as far as the device does it within
  // kClosingTime.
  void finish_queues() {
    if (aborted_) return;
    for (auto& [queue, q] : queues_) {
      if (q.open.empty() && q.spans.empty()) continue;
      const Result<EventHandle> event = record(queue);
      if (!event) continue;
      static_cast<void>(await(*event, kClosingTime));
      release(*event);
    }
  }

  const std::shared_ptr<RecordingFile> file_;
  const Number opening_;
  const bool one_queue_;
  const bool values_;
  const int64_t most_held_;
  std::atomic<bool> aborted_ = false;
  std::mutex painting_;  // Taken before mutex_.
  std::mutex mutex_;
  std::map<MemoryHandle, RecordedMemory> memories_;
  std::map<ModuleHandle, RecordedModule> modules_;
  std::map<EventHandle, RecordedEvent> events_;
  std::map<uint32_t, RecordedQueue> queues_;
};

class RecordBackend final : public ForwardingBackend {
 public:
  RecordBackend(std::shared_ptr<Backend> inner, std::shared_ptr<RecordingFile> file,
                RecordOptions options)
      : ForwardingBackend(std::move(inner)), file_(std::move(file)), options_(std::move(options)) {}

  ~RecordBackend() override {
    if (const Status status = file_->status(); !status.ok()) {
      host_services()->log(status.message().c_str());
    }
  }

  Result<std::unique_ptr<Device>> open(size_t index) override {
    TENON_ASSIGN(const std::vector<DeviceInfo> devices, ForwardingBackend::devices());
    TENON_ASSIGN(std::unique_ptr<Device> device, ForwardingBackend::open(index));
    if (index >= devices.size()) return internal_error("device {} is not listed", index);
    const DeviceInfo& info = devices[index];
    const Number opening = file_->new_number();
    file_->add(recorded::RecordedOpen{opening, std::string(name()), std::string(version()),
                                      info.name, info.target.compiler_id, to_string(info.target)});
    return std::make_unique<RecordDevice>(std::move(device), file_, opening,
                                          info.target.queues == 1, options_);
  }

  Result<Compiled> compile(const TargetInfo& target, Kernels kernels) override {
    TENON_ASSIGN(Compiled compiled, ForwardingBackend::compile(target, kernels));
    recorded::RecordedCompile entry = {target.name, add_kernels(*file_, kernels), 0, {}};
    if (compiled.declined.empty()) entry.binary = file_->add_bytes(compiled.binary);
    for (const Declined& each : compiled.declined) {
      entry.declined.push_back({each.kernel, static_cast<uint8_t>(each.reason), each.text});
    }
    file_->add(entry);
    return compiled;
  }

  // A recording has kernels only: library calls are declined.
  Result<LibraryCallPlan> plan(const TargetInfo&, const LibraryCallSite&) override {
    return unimplemented("calls are made of kernels while they are recorded");
  }
  bool takes_segments() const override { return false; }

 private:
  const std::shared_ptr<RecordingFile> file_;
  const RecordOptions options_;
};

}  // namespace

RecordOptions RecordOptions::from_environment() {
  RecordOptions options;
  if (const char* path = std::getenv("TENON_RECORD"); path != nullptr && *path != '\0') {
    options.path = path;
  }
  const char* values = std::getenv("TENON_RECORD_VALUES");
  options.values = values == nullptr || std::string_view(values) != "0";
  return options;
}

Result<std::shared_ptr<Backend>> make_record_layer(std::shared_ptr<Backend> inner,
                                                   const RecordOptions& options) {
  TENON_ASSIGN(std::shared_ptr<RecordingFile> file, RecordingFile::create(options.path));
  return std::make_shared<RecordBackend>(std::move(inner), std::move(file), options);
}

}  // namespace tenon::backend
