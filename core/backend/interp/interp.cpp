#include "core/backend/interp/interp.h"

#include <atomic>
#include <cstring>
#include <new>

#include "core/backend/host_queue.h"
#include "core/kernel/serial.h"
#include "core/kernel/verifier.h"
#include "core/program/interpreter.h"
#include "core/program/serial.h"
#include "core/serial/archive.h"

namespace tenon::backend {
namespace {

constexpr int64_t kAlignment = 64;
constexpr serial::Format kBinaryFormat = {"TNIP", "binary of interp", 1, 1};

struct Allocation {
  explicit Allocation(int64_t size)
      : bytes(size),
        data(static_cast<std::byte*>(::operator new(static_cast<size_t>(size),
                                                    std::align_val_t(kAlignment), std::nothrow))) {}
  ~Allocation() { ::operator delete(data, std::align_val_t(kAlignment)); }
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  int64_t bytes;
  std::byte* data;
};

struct Module {
  std::optional<program::Program> segment;
  std::optional<program::ProgramInterpreter> segment_interpreter;
  std::vector<kernel::Kernel> kernels;
  std::vector<std::unique_ptr<kernel::Interpreter>> interpreters;  // Made at the first launch.
};

Status broken(std::string_view rule, std::string_view what) {
  return Status(invalid_argument("{}: {}", rule, what));
}

class InterpDevice final : public Device {
 public:
  explicit InterpDevice(const InterpConfig& config) : config_(config) {}
  ~InterpDevice() override { closing_ = true; }

  Result<ModuleHandle> load(std::string_view binary, Kernels kernels) override {
    if (binary.starts_with(program::kProgramFormat.letters)) return load_segment(binary);
    TENON_ASSIGN(const serial::Unsealed file, serial::unseal(binary, kBinaryFormat));
    auto module = std::make_shared<Module>();
    serial::Reader reader(file.payload, file.version);
    reader(module->kernels);
    TENON_TRY(Status(reader.status()));
    if (module->kernels.size() != kernels.size()) {
      return tl::make_unexpected(broken("B14", "the binary has another number of kernels"));
    }
    // The bytes may come from a file.
    for (const kernel::Kernel& kernel : module->kernels) TENON_TRY(kernel::verify(kernel));
    module->interpreters.resize(kernels.size());
    return modules_.add(std::move(module));
  }

  void unload(ModuleHandle module) override { modules_.take(module); }

  Result<MemoryHandle> allocate(uint32_t space, int64_t bytes) override {
    if (space != 0 || bytes <= 0) {
      return tl::make_unexpected(broken("B16", "an allocation of nothing, or in no space"));
    }
    if (config_.memory_bytes != 0 && bytes > config_.memory_bytes - used_) {
      return resource_exhausted("interp: {} bytes are asked for, {} of {} are in use", bytes, used_,
                                config_.memory_bytes);
    }
    auto allocation = std::make_shared<Allocation>(bytes);
    if (allocation->data == nullptr) {
      return resource_exhausted("interp: there are no {} bytes of memory", bytes);
    }
    used_ += bytes;
    return memories_.add(std::move(allocation));
  }

  void free(MemoryHandle memory) override {
    if (const auto allocation = memories_.take(memory)) used_ -= allocation->bytes;
  }

  Status copy(uint32_t queue, const Place& destination, const Place& source,
              int64_t bytes) override {
    TENON_TRY(check_queue(queue));
    TENON_ASSIGN(const Pinned to, pin(destination, bytes));
    TENON_ASSIGN(const Pinned from, pin(source, bytes));
    queue_.push([to, from, bytes]() -> Status {
      if (bytes > 0) std::memcpy(to.data, from.data, static_cast<size_t>(bytes));
      return {};
    });
    return {};
  }

  Status copy_box(uint32_t queue, const Place& destination, const Place& source,
                  const Box& box) override {
    TENON_TRY(check_queue(queue));
    TENON_ASSIGN(const Pinned to, pin_box(destination, box, box.destination_strides));
    TENON_ASSIGN(const Pinned from, pin_box(source, box, box.source_strides));
    queue_.push([to, from, box]() -> Status {
      backend::copy_box(to.data, from.data, box);
      return {};
    });
    return {};
  }

  Status launch(uint32_t queue, const Launch& launch) override {
    TENON_TRY(check_queue(queue));
    const auto module = modules_.find(launch.module);
    if (module != nullptr && module->segment) return launch_segment(module, launch);
    if (module == nullptr || launch.kernel >= module->kernels.size()) {
      return broken("B14", "a launch of a kernel that is not loaded");
    }
    const kernel::Kernel& kernel = module->kernels[launch.kernel];
    if (launch.buffers.size() != kernel.buffer_count ||
        launch.scalars.size() != kernel.scalars.size()) {
      return broken("B21", fmt::format("@{} takes {} buffers and {} scalars", kernel.name,
                                       kernel.buffer_count, kernel.scalars.size()));
    }
    std::vector<Pinned> buffers;
    for (size_t i = 0; i < launch.buffers.size(); ++i) {
      TENON_ASSIGN(Pinned pinned, pin(launch.buffers[i], kernel.memories[i].bytes()));
      buffers.push_back(std::move(pinned));
    }
    queue_.push([this, module, index = launch.kernel, buffers = std::move(buffers),
                 scalars = std::vector(launch.scalars.begin(), launch.scalars.end()),
                 stop = launch.stop] { return run(*module, index, buffers, scalars, stop); });
    return {};
  }

  Result<EventHandle> record(uint32_t queue) override {
    TENON_TRY(check_queue(queue));
    return events_.add(queue_.record());
  }

  Status wait(uint32_t queue, EventHandle event) override {
    TENON_TRY(check_queue(queue));
    auto found = events_.find(event);
    if (found == nullptr) return broken("B10", "a wait for no event");
    queue_.wait(std::move(found));
    return {};
  }

  Result<bool> await(EventHandle event, int64_t timeout) override {
    const auto found = events_.find(event);
    if (found == nullptr) return tl::make_unexpected(broken("B10", "no such event"));
    const std::optional<Status> outcome = found->await(timeout);
    if (!outcome) return false;
    if (!outcome->ok()) return tl::make_unexpected(*outcome);
    return true;
  }

  void release(EventHandle event) override { events_.take(event); }

  Result<std::byte*> map(MemoryHandle memory) override {
    const auto allocation = memories_.find(memory);
    if (allocation == nullptr) return tl::make_unexpected(broken("B10", "no such memory"));
    return allocation->data;
  }

  Result<double> event_time(EventHandle event) override {
    const auto found = events_.find(event);
    if (found == nullptr) return tl::make_unexpected(broken("B10", "no such event"));
    return found->time();
  }

 private:
  // Bytes, and what keeps them where they are.
  struct Pinned {
    std::byte* data = nullptr;
    int64_t bytes = 0;
    std::shared_ptr<Allocation> memory;
  };

  // The first element; all of them lie within the memory.
  Result<Pinned> pin_box(const Place& place, const Box& box, const Dims& strides) const {
    if (place.on_host()) return Pinned{place.host, 0, nullptr};
    int64_t low = 0;
    int64_t high = box.element_bytes;
    for (size_t d = 0; d < box.sizes.size(); ++d) {
      const int64_t reach = (box.sizes[d] - 1) * strides[d];
      (reach < 0 ? low : high) += reach;
    }
    Place whole = place;
    whole.offset += low;
    TENON_ASSIGN(Pinned pinned, pin(whole, high - low));
    pinned.data -= low;
    return pinned;
  }

  Result<ModuleHandle> load_segment(std::string_view binary) {
    auto module = std::make_shared<Module>();
    TENON_ASSIGN(module->segment, program::load_program(binary));
    module->segment_interpreter.emplace(*module->segment);
    return modules_.add(std::move(module));
  }

  Status launch_segment(const std::shared_ptr<Module>& module, const Launch& launch) {
    const program::Program& program = *module->segment;
    std::vector<int64_t> sizes;
    for (const auto* list : {&program.parameters, &program.results}) {
      for (const program::BufferId id : *list) sizes.push_back(program.buffer(id).bytes());
    }
    for (const Literal& constant : program.constants) {
      sizes.push_back(static_cast<int64_t>(constant.data().size()));
    }
    if (program.temporary_bytes > 0) sizes.push_back(program.temporary_bytes);
    if (launch.buffers.size() != sizes.size()) {
      return broken("B21",
                    fmt::format("a segment of {} takes {} buffers", program.name, sizes.size()));
    }
    std::vector<Pinned> buffers;
    for (size_t i = 0; i < sizes.size(); ++i) {
      TENON_ASSIGN(Pinned pinned, pin(launch.buffers[i], sizes[i]));
      buffers.push_back(std::move(pinned));
    }
    queue_.push([this, module, buffers = std::move(buffers), stop = launch.stop] {
      const program::Program& p = *module->segment;
      program::Memories memories;
      auto next = buffers.begin();
      for (size_t i = 0; i < p.parameters.size(); ++i)
        memories.parameters.push_back((next++)->data);
      for (size_t i = 0; i < p.results.size(); ++i) memories.results.push_back((next++)->data);
      for (size_t i = 0; i < p.constants.size(); ++i) memories.constants.push_back((next++)->data);
      if (next != buffers.end()) memories.temporaries = next->data;
      return module->segment_interpreter->run_in(memories, options(stop));
    });
    return {};
  }

  kernel::InterpreterOptions options(const volatile uint32_t* stop) const {
    kernel::InterpreterOptions options = config_.interpreter;
    options.cancelled = [this, stop] {
      return closing_ || (stop != nullptr && __atomic_load_n(stop, __ATOMIC_RELAXED) != 0);
    };
    return options;
  }

  Status check_queue(uint32_t queue) const {
    return queue == 0 ? Status() : broken("B10", fmt::format("there is no queue {}", queue));
  }

  Result<Pinned> pin(const Place& place, int64_t bytes) const {
    if (place.on_host()) return Pinned{place.host, bytes, nullptr};
    auto memory = memories_.find(place.memory);
    if (memory == nullptr) return tl::make_unexpected(broken("B10", "no such memory"));
    if (place.offset < 0 || bytes < 0 || bytes > memory->bytes - place.offset) {
      return tl::make_unexpected(
          broken("B17", fmt::format("{} bytes at {} of {}", bytes, place.offset, memory->bytes)));
    }
    std::byte* data = memory->data + place.offset;
    return Pinned{data, bytes, std::move(memory)};
  }

  Status run(Module& module, uint32_t index, const std::vector<Pinned>& buffers,
             const std::vector<uint64_t>& scalars, const volatile uint32_t* stop) const {
    auto& interpreter = module.interpreters[index];
    if (interpreter == nullptr) {
      interpreter = std::make_unique<kernel::Interpreter>(module.kernels[index]);
    }
    std::vector<kernel::BufferArgument> arguments;
    for (const Pinned& buffer : buffers) {
      arguments.push_back({buffer.data, static_cast<size_t>(buffer.bytes)});
    }
    return interpreter->run(arguments, scalars, options(stop));
  }

  const InterpConfig config_;
  int64_t used_ = 0;
  std::atomic<bool> closing_ = false;  // Ends the loop that a kernel may be in (B11).
  Handles<Allocation> memories_;
  Handles<Module> modules_;
  Handles<HostEvent> events_;
  HostQueue queue_;  // The last: it ends before what its work uses.
};

class InterpBackend final : public Backend {
 public:
  explicit InterpBackend(const InterpConfig& config) : config_(config) {}

  std::string_view name() const override { return "interp"; }
  std::string_view version() const override { return "1"; }

  Result<std::vector<DeviceInfo>> devices() override {
    TargetInfo target;
    target.name = "interp";
    target.compiler_id = "interp-1";
    target.as_written = !config_.form.has_value();
    target.form = config_.form.value_or(kernel::LegalForm());
    target.scratch_bytes = config_.scratch_bytes;
    target.spaces[0].host_visible = true;
    target.spaces[0].alignment = config_.alignment;
    target.spaces[0].bytes = config_.memory_bytes;
    std::vector<DeviceInfo> devices;
    for (size_t i = 0; i < config_.devices; ++i) {
      devices.push_back({fmt::format("interp:{}", i), target});
    }
    return devices;
  }

  Result<std::unique_ptr<Device>> open(size_t index) override {
    if (index >= config_.devices) return not_found("interp: there is no device {}", index);
    return std::make_unique<InterpDevice>(config_);
  }

  Result<Compiled> compile(const TargetInfo&, Kernels kernels) override {
    serial::Writer writer;
    writer.number(kernels.size());
    for (const kernel::Kernel* kernel : kernels) writer(*kernel);
    return Compiled{serial::seal(kBinaryFormat, std::move(writer).take()), {}};
  }

  bool takes_segments() const override { return config_.segments; }
  Result<std::string> compile_segment(const TargetInfo& target,
                                      const program::Program& segment) override {
    return takes_segments() ? program::save(segment) : Backend::compile_segment(target, segment);
  }

 private:
  const InterpConfig config_;
};

}  // namespace

std::unique_ptr<Backend> make_interp_backend(const InterpConfig& config) {
  return std::make_unique<InterpBackend>(config);
}

}  // namespace tenon::backend
