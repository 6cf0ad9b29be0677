#include "backends/cpu/cpu.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/Config/llvm-config.h>
#include <tbb/info.h>

#include <map>
#include <span>

#include "backends/cpu/compiling.h"
#include "backends/cpu/jit.h"
#include "backends/cpu/lapack/lapack.h"
#include "backends/cpu/tasks.h"
#include "backends/cpu_compiler_hash.h"
#include "backends/llvm/host.h"
#include "core/backend/in_process/host_device.h"
#include "core/base/inline_vector.h"
#include "core/base/process/environment.h"

namespace tenon::backend {
namespace {

class CpuDevice final : public HostDevice {
 public:
  CpuDevice() : HostDevice("cpu", 0, HostQueue::Thread::kCallers) {}
  ~CpuDevice() override { end_work(); }

  Result<ModuleHandle> load(std::string_view binary, Kernels kernels) override {
    TENON_ASSIGN(cpu::CpuCode code, cpu::load_code(binary));
    // A segment is loaded without kernels, and counts as one.
    const size_t count = kernels.empty() ? 1 : kernels.size();
    if (code.kernels.size() != count) {
      return tl::make_unexpected(
          rule_violation("B14", "the binary has a different number of kernels"));
    }
    TENON_ASSIGN(auto library, cpu::load_library(std::move(code)));
    return modules_.add(std::move(library));
  }
  void unload(ModuleHandle module) override { modules_.take(module); }

  Status launch(uint32_t queue, const KernelLaunch& launch) override {
    TENON_TRY(check_queue(queue));
    const auto library = modules_.find(launch.module);
    if (library == nullptr || launch.kernel >= library->code().kernels.size()) {
      return rule_violation("B14", "a launch of a kernel that is not loaded");
    }
    const cpu::CpuKernelCode& kernel = library->code().kernels[launch.kernel];
    if (launch.buffers.size() != kernel.buffers.size() || launch.scalars.size() != kernel.scalars) {
      return rule_violation("B21", fmt::format("the kernel takes {} buffers and {} scalars",
                                               kernel.buffers.size(), kernel.scalars));
    }
    PinnedBuffers buffers(launch.buffers.size());
    buffers->resize(launch.buffers.size());
    TENON_TRY(pin(launch.buffers, kernel.buffers, *buffers));
    queue_run(queue, *library, launch.kernel, *buffers, launch.scalars, launch.stop);
    return {};
  }

  Status call(uint32_t queue, const LibraryCallLaunch& call) override {
    TENON_TRY(check_queue(queue));
    TENON_ASSIGN(const auto library, library_of(call.plan));
    std::vector<MemoryAddress> places(call.operands.begin(), call.operands.end());
    places.insert(places.end(), call.results.begin(), call.results.end());
    const cpu::CpuKernelCode& kernel = library->code().kernels[0];
    if (places.size() != kernel.buffers.size())
      return rule_violation("B21", "a library call of other arrays");
    TENON_ASSIGN(const std::vector<Pinned> buffers, pin(places, kernel.buffers));
    queue_run(queue, *library, 0, buffers, {}, call.stop);
    return {};
  }

 private:
  using PinnedBuffers = InlineVector<Pinned, 8>;

  // The queue works on the caller's thread: all of this is there until it has run.
  void queue_run(uint32_t queue, const cpu::Library& library, uint32_t index,
                 std::span<const Pinned> buffers, std::span<const uint64_t> scalars,
                 const volatile uint32_t* stop) {
    push(queue, [&] { return run(library, index, buffers, scalars, stop); });
  }

  // A plan is code.
  Result<std::shared_ptr<cpu::Library>> library_of(std::string_view plan) {
    const auto found = planned_.find(plan);
    if (found != planned_.end()) return found->second;
    TENON_ASSIGN(cpu::CpuCode code, cpu::load_code(plan));
    TENON_ASSIGN(auto library, cpu::load_library(std::move(code)));
    constexpr size_t kMostKept = 256;
    if (planned_.size() >= kMostKept) planned_.clear();  // Work in flight keeps its own code.
    return planned_.emplace(plan, std::move(library)).first->second;
  }

  Status run(const cpu::Library& library, uint32_t index, std::span<const Pinned> buffers,
             std::span<const uint64_t> scalars, const volatile uint32_t* stop) const {
    const cpu::CpuKernelCode& kernel = library.code().kernels[index];
    llvm::SmallVector<std::byte*, 16> data;
    for (const Pinned& buffer : buffers) data.push_back(buffer.data);
    const auto stops = stop_words(stop);
    const bool ran =
        cpu::run_tasks(library.entry(index), data.data(), scalars.data(), kernel.workgroups,
                       kernel.grain, kernel.scratch_bytes, stops.data());
    if (!ran) {
      return Status(
          resource_exhausted("cpu: there are no {} bytes of scratch memory", kernel.scratch_bytes));
    }
    if (is_stopped(stop)) return Status(ErrorCode::kCancelled, "cpu: the launch was stopped");
    return {};
  }

  Handles<cpu::Library> modules_;
  std::map<std::string, std::shared_ptr<cpu::Library>, std::less<>> planned_;
};

// All functions, with the bits of the shared expansions.
std::vector<MathInfo> shared_math() {
  std::vector<MathInfo> list;
  for (size_t i = 0; i < static_cast<size_t>(kernel::kScalarOpCount); ++i) {
    const auto op = static_cast<kernel::OpCode>(i);
    if (!kernel::is_math(op)) continue;
    for (const ElementType type : {ElementType::kF32, ElementType::kF64}) {
      list.push_back({std::string(kernel::op_name(op)), type, 0});
    }
  }
  return list;
}

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(size_t devices) : devices_(devices) {}

  std::string_view name() const override { return "cpu"; }
  std::string_view version() const override { return "1"; }

  Result<std::vector<DeviceInfo>> devices() override {
    const codegen::TargetCpu& host = codegen::host();
    TargetInfo target;
    target.name = host.cpu;
    target.compiler_id = fmt::format("cpu {} llvm {} lapack {} dots {} {} {}", cpu::kCompilerHash,
                                     LLVM_VERSION_STRING, cpu::names_lapack() ? 1 : 0,
                                     host.dots_words ? 1 : 0, host.cpu, host.features);
    target.features = cpu::host_features();
    target.math = shared_math();
    // Not the threads of the caller's arena, which may be fewer.
    target.compute_units = tbb::info::default_concurrency();
    target.vector_bytes = host.vector_bytes;
    target.scratch_bytes = 256 << 10;
    target.narrow_products = host.dots_words ? cpu::kLeastMatrixLines : 0;
    target.byte_products = host.dots_words && host.tiles;
    target.spaces[0].host_visible = true;
    target.spaces[0].host_writable = true;
    target.spaces[0].alignment = HostDevice::kAlignment;
    std::vector<DeviceInfo> devices;
    for (size_t i = 0; i < devices_; ++i) devices.push_back({fmt::format("cpu:{}", i), target});
    return devices;
  }

  Result<std::unique_ptr<Device>> open(size_t index) override {
    if (index >= devices_) return not_found("cpu: there is no device {}", index);
    return std::make_unique<CpuDevice>();
  }

  Result<Compiled> compile(const TargetInfo&, Kernels kernels) override {
    TENON_ASSIGN(const cpu::CpuCode code, cpu::compile(kernels));
    return Compiled{cpu::save(code), {}};
  }

  Result<LibraryCallPlan> plan(const TargetInfo& target, const LibraryCallSite& site) override {
    const auto loops =
        std::holds_alternative<program::Contraction>(site.call)
            ? cpu::contraction_loops_of(codegen::host(), site.call, site.operands, site.results[0])
            : std::nullopt;
    LibraryCallPlan plan;
    if (const auto lapack = cpu::lapack_call_of(site.call, site.operands, site.results)) {
      TENON_TRY(cpu::lapack_state());
      TENON_ASSIGN(const auto code, cpu::lapack_code(*lapack));
      plan.plan = cpu::save(*code);
      return plan;
    }
    if (!loops) return Backend::plan(target, site);
    TENON_ASSIGN(const auto code, cpu::contraction_code(*loops));
    plan.plan = cpu::save(*code);
    return plan;
  }

  bool takes_segments() const override { return true; }
  Result<std::string> compile_segment(const TargetInfo& target,
                                      const program::Program& segment) override {
    TENON_ASSIGN(const cpu::CpuCode code, cpu::compile_segment(segment, target.compute_units));
    return cpu::save(code);
  }

 private:
  const size_t devices_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(size_t devices) {
  return std::make_unique<CpuBackend>(devices);
}

Result<std::shared_ptr<Backend>> make_cpu_backend() {
  TENON_ASSIGN(const int64_t devices, environment_number("TENON_CPU_DEVICES", 1, {1, 4096}));
  return make_cpu_backend(static_cast<size_t>(devices));
}

}  // namespace tenon::backend
