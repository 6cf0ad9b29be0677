#include "core/backend/interpreter/interpreter.h"

#include <mutex>
#include <string_view>

#include "core/backend/in_process/host_device.h"
#include "core/base/archive.h"
#include "core/base/process/environment.h"
#include "core/kernel/serial/serial.h"
#include "core/kernel/verify/verifier.h"
#include "core/program/interpreter.h"
#include "core/program/segment.h"
#include "core/program/serial.h"

namespace tenon::backend {
namespace {

constexpr serial::Format kBinaryFormat = {"TNIP", "binary of interp", 1, 1};

// The serial form of the kernels; `load` gets the kernels again and compares them.
std::string binary_of(Kernels kernels) {
  serial::ArchiveWriter writer;
  writer.number(kernels.size());
  for (const kernel::Kernel* kernel : kernels) writer(*kernel);
  return serial::seal(kBinaryFormat, std::move(writer).take());
}

// Reads the kernels of a binary, which may come from a file.
Result<std::vector<kernel::Kernel>> read_kernels(const serial::Unsealed& file) {
  serial::ArchiveReader reader(file.payload, file.version);
  std::vector<kernel::Kernel> kernels;
  reader(kernels);
  TENON_TRY(Status(reader.status()));
  for (const kernel::Kernel& kernel : kernels) TENON_TRY(kernel::verify(kernel));
  return kernels;
}

struct InterpretedModule {
  std::mutex mutex;  // Launches of several queues come one at a time.
  std::optional<program::Program> segment;
  std::optional<program::ProgramInterpreter> segment_interpreter;
  std::vector<kernel::Kernel> kernels;
  std::vector<std::unique_ptr<kernel::Interpreter>> interpreters;  // Created at the first launch.
};

class InterpDevice final : public HostDevice {
 public:
  InterpDevice(const InterpreterConfig& config, uint32_t queues)
      : HostDevice("interp", config.memory_bytes, HostQueue::Thread::kOwn, queues),
        config_(config) {}
  ~InterpDevice() override { end_work(); }

  Result<ModuleHandle> load(std::string_view binary, Kernels kernels) override {
    if (binary.starts_with(program::kProgramFormat.letters)) return load_segment(binary);
    TENON_ASSIGN(const serial::Unsealed file, serial::unseal(binary, kBinaryFormat));
    auto module = std::make_shared<InterpretedModule>();
    if (binary == binary_of(kernels)) {
      // The host has verified them.
      for (const kernel::Kernel* kernel : kernels) module->kernels.push_back(*kernel);
    } else {
      TENON_ASSIGN(module->kernels, read_kernels(file));
    }
    if (module->kernels.size() != kernels.size()) {
      return tl::make_unexpected(
          rule_violation("B14", "the binary has a different number of kernels"));
    }
    module->interpreters.resize(kernels.size());
    return modules_.add(std::move(module));
  }

  void unload(ModuleHandle module) override { modules_.take(module); }

  Status launch(uint32_t queue, const KernelLaunch& launch) override {
    TENON_TRY(check_queue(queue));
    const auto module = modules_.find(launch.module);
    if (module != nullptr && module->segment) return launch_segment(queue, module, launch);
    if (module == nullptr || launch.kernel >= module->kernels.size()) {
      return rule_violation("B14", "a launch of a kernel that is not loaded");
    }
    const kernel::Kernel& kernel = module->kernels[launch.kernel];
    if (launch.buffers.size() != kernel.buffer_count ||
        launch.scalars.size() != kernel.scalars.size()) {
      return rule_violation("B21", fmt::format("@{} takes {} buffers and {} scalars", kernel.name,
                                               kernel.buffer_count, kernel.scalars.size()));
    }
    std::vector<int64_t> sizes;
    for (size_t i = 0; i < launch.buffers.size(); ++i) sizes.push_back(kernel.memories[i].bytes());
    TENON_ASSIGN(std::vector<Pinned> buffers, pin(launch.buffers, sizes));
    push(queue, [this, module, index = launch.kernel, buffers = std::move(buffers),
                 scalars = std::vector(launch.scalars.begin(), launch.scalars.end()),
                 stop = launch.stop] { return run(*module, index, buffers, scalars, stop); });
    return {};
  }

 private:
  Result<ModuleHandle> load_segment(std::string_view binary) {
    auto module = std::make_shared<InterpretedModule>();
    TENON_ASSIGN(module->segment, program::load_program(binary));
    module->segment_interpreter.emplace(*module->segment);
    return modules_.add(std::move(module));
  }

  Status launch_segment(uint32_t queue, const std::shared_ptr<InterpretedModule>& module,
                        const KernelLaunch& launch) {
    const program::Program& program = *module->segment;
    const std::vector<int64_t> sizes = program::memory_sizes(program);
    if (launch.buffers.size() != sizes.size()) {
      return rule_violation(
          "B21", fmt::format("a segment of {} takes {} buffers", program.name, sizes.size()));
    }
    TENON_ASSIGN(std::vector<Pinned> buffers, pin(launch.buffers, sizes));
    push(queue, [this, module, buffers = std::move(buffers), stop = launch.stop] {
      const std::lock_guard lock(module->mutex);
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
    options.cancelled = [this, stop] { return is_stopped(stop); };
    return options;
  }

  Status run(InterpretedModule& module, uint32_t index, const std::vector<Pinned>& buffers,
             const std::vector<uint64_t>& scalars, const volatile uint32_t* stop) const {
    const std::lock_guard lock(module.mutex);
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

  const InterpreterConfig config_;
  Handles<InterpretedModule> modules_;
};

Result<uint32_t> queues_from_environment() {
  TENON_ASSIGN(const int64_t count, environment_number("TENON_INTERP_QUEUES", 1, {1, 16}));
  return static_cast<uint32_t>(count);
}

class InterpBackend final : public Backend {
 public:
  explicit InterpBackend(const InterpreterConfig& config)
      : config_(config),
        queues_(config.queues > 0 ? Result<uint32_t>(config.queues) : queues_from_environment()) {}

  std::string_view name() const override { return "interp"; }
  std::string_view version() const override { return "1"; }

  Result<std::vector<DeviceInfo>> devices() override {
    TargetInfo target;
    target.name = "interp";
    target.compiler_id = "interp-1";
    target.accepts_all = !config_.features.has_value();
    target.features = config_.features.value_or(kernel::TargetFeatures());
    target.scratch_bytes = target.features.scratch ? config_.scratch_bytes : 0;
    target.spaces[0].host_visible = true;
    target.spaces[0].host_writable = true;
    target.spaces[0].alignment = config_.alignment;
    target.spaces[0].bytes = config_.memory_bytes;
    TENON_ASSIGN(target.queues, Result<uint32_t>(queues_));
    std::vector<DeviceInfo> devices;
    for (size_t i = 0; i < config_.devices; ++i) {
      devices.push_back({fmt::format("interp:{}", i), target});
    }
    return devices;
  }

  Result<std::unique_ptr<Device>> open(size_t index) override {
    if (index >= config_.devices) return not_found("interp: there is no device {}", index);
    TENON_ASSIGN(const uint32_t queues, Result<uint32_t>(queues_));
    return std::make_unique<InterpDevice>(config_, queues);
  }

  Result<Compiled> compile(const TargetInfo&, Kernels kernels) override {
    return Compiled{binary_of(kernels), {}};
  }

  bool takes_segments() const override { return config_.segments; }
  Result<std::string> compile_segment(const TargetInfo& target,
                                      const program::Program& segment) override {
    return takes_segments() ? program::save(segment) : Backend::compile_segment(target, segment);
  }

 private:
  const InterpreterConfig config_;
  const Result<uint32_t> queues_;  // Read once, so that every call gives the same devices (B9).
};

}  // namespace

std::unique_ptr<Backend> make_interpreter_backend(const InterpreterConfig& config) {
  return std::make_unique<InterpBackend>(config);
}

}  // namespace tenon::backend
