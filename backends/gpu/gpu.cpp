#include "backends/gpu/gpu.h"

#include <charconv>
#include <functional>
#include <string_view>

#include "backends/gpu/codegen/compile.h"
#include "backends/gpu/codegen/nvptx.h"
#include "backends/gpu/codegen/segment.h"
#include "backends/gpu/cuda/cuda_driver.h"
#include "backends/gpu/device.h"
#include "backends/gpu/simulator/driver.h"
#include "backends/gpu/simulator/pass.h"
#include "backends/llvm/host.h"
#include "core/base/process/environment.h"

namespace tenon::backend {
namespace {

using AssemblerFor = std::function<std::unique_ptr<gpu::Assembler>(int32_t compute_capability)>;

class SimAssembler final : public gpu::Assembler {
 public:
  SimAssembler(const GpuSimConfig& config, int32_t compute_capability)
      : config_(config), compute_capability_(compute_capability) {}
  Result<std::vector<std::string>> assemble(llvm::Module& module) override {
    const std::string dump = codegen::next_dump("TENON_GPU_DUMP");
    if (config_.optimized) TENON_TRY(gpu::optimize_for_chip(module, compute_capability_));
    TENON_ASSIGN(std::string object, gpu::assemble_for_host(module, config_.checks, dump));
    return std::vector{std::move(object)};
  }

 private:
  const GpuSimConfig config_;
  const int32_t compute_capability_;
};

// "sm_90"
Result<int32_t> compute_capability_of(const TargetInfo& target) {
  constexpr std::string_view kPrefix = "sm_";
  int32_t number = 0;
  const char* const end = target.name.data() + target.name.size();
  const bool named = target.name.starts_with(kPrefix);
  const auto read = std::from_chars(target.name.data() + (named ? kPrefix.size() : 0), end, number);
  if (named && read.ec == std::errc() && read.ptr == end) return number;
  return invalid_argument("gpu: the target '{}' is not a GPU: expected sm_ and a number",
                          target.name);
}

class GpuBackend final : public Backend {
 public:
  /// `compiler` becomes the prefix of the compiler_id of targets, because another compiler makes
  /// other images of the same IR. It is called when there are devices.
  GpuBackend(std::string name, std::function<std::string()> compiler,
             std::unique_ptr<gpu::Driver> driver, AssemblerFor assembler)
      : name_(std::move(name)),
        compiler_(std::move(compiler)),
        driver_(std::move(driver)),
        assembler_(std::move(assembler)) {}

  std::string_view name() const override { return name_; }
  std::string_view version() const override { return "1"; }

  Result<std::vector<DeviceInfo>> devices() override {
    TENON_ASSIGN(const std::vector<gpu::GpuChip> chips, driver_->chips());
    const std::string compiler = compiler_();
    std::vector<DeviceInfo> devices;
    for (const gpu::GpuChip& chip : chips) {
      TargetInfo target = gpu::target_of_gpu(chip.compute_capability);
      target.compiler_id = compiler + target.compiler_id;
      target.compute_units = chip.multiprocessors;
      target.scratch_bytes = std::min(target.scratch_bytes, chip.shared_bytes);
      target.spaces[0].bytes = chip.memory_bytes;
      target.queues = gpu::kQueues;
      devices.push_back({fmt::format("{}:{}", name_, devices.size()), std::move(target)});
    }
    return devices;
  }

  Result<std::unique_ptr<Device>> open(size_t index) override {
    TENON_ASSIGN(auto context, driver_->open(index));
    return gpu::make_gpu_device(fmt::format("{}:{}", name_, index), std::move(context),
                                environment_or("TENON_GPU_GRAPHS", "1") != "0");
  }

  Result<Compiled> compile(const TargetInfo& target, Kernels kernels) override {
    TENON_ASSIGN(const int32_t compute_capability, compute_capability_of(target));
    const std::unique_ptr<gpu::Assembler> assembler = assembler_(compute_capability);
    TENON_ASSIGN(gpu::CompiledKernels compiled, gpu::compile(target, kernels, *assembler));
    if (!compiled.declined.empty()) return Compiled{"", std::move(compiled.declined)};
    return Compiled{gpu::save(compiled.code), {}};
  }

  bool takes_segments() const override { return true; }
  Result<std::string> compile_segment(const TargetInfo& target,
                                      const program::Program& segment) override {
    TENON_ASSIGN(const int32_t compute_capability, compute_capability_of(target));
    const std::unique_ptr<gpu::Assembler> assembler = assembler_(compute_capability);
    TENON_ASSIGN(const gpu::CompiledKernels compiled,
                 gpu::compile_segment(target, segment, *assembler));
    if (compiled.declined.empty()) return gpu::save(compiled.code);
    return unimplemented("{}", compiled.declined[0].text);
  }

 private:
  const std::string name_;
  const std::function<std::string()> compiler_;
  const std::unique_ptr<gpu::Driver> driver_;
  const AssemblerFor assembler_;
};

}  // namespace

std::unique_ptr<Backend> make_gpu_backend(const std::string& library) {
  return std::make_unique<GpuBackend>(
      "gpu", [] { return fmt::format("ptxas {} ", gpu::version_of(gpu::find_ptxas())); },
      gpu::make_cuda_driver(library),
      [](int32_t capability) { return std::make_unique<gpu::PtxAssembler>(capability); });
}

std::unique_ptr<Backend> make_gpu_sim_backend(const GpuSimConfig& config) {
  const codegen::TargetCpu& host = codegen::host();
  std::string compiler = fmt::format("sim-1{}{} {} {} ", config.checks ? " checks" : "",
                                     config.optimized ? " optimized" : "", host.cpu, host.features);
  gpu::SimConfig sim;
  sim.devices = config.devices;
  return std::make_unique<GpuBackend>(
      "gpu-sim", [compiler = std::move(compiler)] { return compiler; }, gpu::make_sim_driver(sim),
      [config](int32_t capability) { return std::make_unique<SimAssembler>(config, capability); });
}

Result<std::shared_ptr<Backend>> make_gpu_sim_backend() {
  const auto is_set = [](const char* name) { return environment_or(name, "0") == "1"; };
  GpuSimConfig config;
  TENON_ASSIGN(const int64_t devices, environment_number("TENON_GPU_SIM_DEVICES", 1, {1, 4096}));
  config.devices = static_cast<size_t>(devices);
  config.checks = is_set("TENON_GPU_SIM_CHECKS");
  config.optimized = is_set("TENON_GPU_SIM_OPTIMIZED");
  return make_gpu_sim_backend(config);
}

}  // namespace tenon::backend
