// Seam mutants of memory and modules.
#include <algorithm>
#include <deque>
#include <map>
#include <mutex>

#include "conformance/mutation/seam_devices.h"

namespace tenon::conformance {
namespace {

using backend::MemoryAddress;
using backend::MemoryHandle;
using backend::ModuleHandle;

// The memory of a device that never gets any back.
constexpr int64_t kRoom = int64_t{1} << 30;

class ResourceMutantDevice : public backend::ForwardingDevice {
 public:
  ResourceMutantDevice(std::unique_ptr<backend::Device> inner, const std::string& name,
                       std::shared_ptr<SessionState> state)
      : ForwardingDevice(std::move(inner)), mutant_(name), state_(std::move(state)) {}
  ~ResourceMutantDevice() override {
    if (!mutant_.is("seam/close/keeps_memory")) state_->bytes = 0;
    close();  // Bytes of copies are in use until then.
  }

  Result<MemoryHandle> allocate(uint32_t space, int64_t bytes) override;
  void free(MemoryHandle memory) override;
  Result<ModuleHandle> load(std::string_view binary, backend::Kernels kernels) override;
  void unload(ModuleHandle module) override;
  Status launch(uint32_t queue, const backend::KernelLaunch& launch) override;
  Result<std::byte*> map(MemoryHandle memory) override;
  Result<MemoryHandle> import_memory(uint32_t space, std::span<const std::byte> host) override;
  Result<std::vector<backend::Statistic>> statistics() override {
    if (mutant_.is("seam/statistics/have_no_names")) return std::vector<backend::Statistic>(1);
    return inner().statistics();
  }

 private:
  struct OwnBlock {
    MemoryHandle memory;
    int64_t bytes;
  };
  // A module whose binary is not read yet.
  struct LateModule {
    std::string_view binary;
    std::vector<kernel::Kernel> kernels;
    ModuleHandle module = 0;
  };
  void write_zeros(MemoryHandle memory, int64_t bytes);
  int64_t size_of(MemoryHandle memory);
  Result<ModuleHandle> loaded(LateModule& late);

  const ChosenMutant mutant_;
  const std::shared_ptr<SessionState> state_;
  std::mutex mutex_;
  std::vector<OwnBlock> blocks_;  // In the order of their allocation.
  std::map<int64_t, MemoryHandle> first_of_;
  std::vector<ModuleHandle> modules_;
  std::map<ModuleHandle, LateModule> late_;
  std::deque<std::vector<std::byte>> bytes_;
};

void ResourceMutantDevice::write_zeros(MemoryHandle memory, int64_t bytes) {
  const auto& zeros = bytes_.emplace_back(static_cast<size_t>(bytes));
  static_cast<void>(inner().copy(0, {memory}, MemoryAddress::of_host(zeros.data()), bytes));
}

int64_t ResourceMutantDevice::size_of(MemoryHandle memory) {
  const auto found = std::ranges::find(blocks_, memory, &OwnBlock::memory);
  return found == blocks_.end() ? 0 : found->bytes;
}

Result<MemoryHandle> ResourceMutantDevice::allocate(uint32_t space, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  const bool leaks = mutant_.is("seam/free/does_nothing") || mutant_.is("seam/close/keeps_memory");
  if (leaks && state_->bytes + bytes > kRoom)
    return resource_exhausted("the mutant has no room for {} bytes", bytes);
  auto made = inner().allocate(space, bytes);
  if (!made && mutant_.is("seam/allocate/no_room_is_internal"))
    return Error(Status(ErrorCode::kInternal, "no room"));
  if (!made && mutant_.is("seam/allocate/no_room_is_unreported"))
    return inner().allocate(space, 4096);
  if (!made) return made;
  state_->bytes += bytes;
  if (mutant_.is("seam/allocate/is_shared"))
    return first_of_.try_emplace(bytes, *made).first->second;
  if (!blocks_.empty() && mutant_.is("seam/allocate/loses_contents"))
    write_zeros(blocks_.back().memory, std::min<int64_t>(64, blocks_.back().bytes));
  blocks_.push_back({*made, bytes});
  return made;
}

void ResourceMutantDevice::free(MemoryHandle memory) {
  const std::lock_guard lock(mutex_);
  if (mutant_.is("seam/allocate/is_shared")) return;  // Others still use it.
  if (mutant_.is("seam/free/does_nothing")) return;
  if (!blocks_.empty() && mutant_.is("seam/free/frees_another")) memory = blocks_.back().memory;
  state_->bytes -= size_of(memory);
  std::erase_if(blocks_, [&](const OwnBlock& each) { return each.memory == memory; });
  inner().free(memory);
}

Result<ModuleHandle> ResourceMutantDevice::load(std::string_view binary, backend::Kernels kernels) {
  const std::lock_guard lock(mutex_);
  if (mutant_.is("seam/load/keeps_first") && !modules_.empty()) return modules_.front();
  if (mutant_.is("seam/compile/is_not_reproducible")) binary.remove_suffix(1);
  if (mutant_.is("seam/load/reads_binary_late")) {
    LateModule late;
    late.binary = binary;
    for (const kernel::Kernel* each : kernels) late.kernels.push_back(*each);
    const ModuleHandle handle = late_.size() + 1;
    late_.emplace(handle, std::move(late));
    return handle;
  }
  TENON_ASSIGN(const ModuleHandle made, inner().load(binary, kernels));
  modules_.push_back(made);
  return made;
}

void ResourceMutantDevice::unload(ModuleHandle module) {
  const std::lock_guard lock(mutex_);
  if (mutant_.is("seam/load/keeps_first") || mutant_.is("seam/load/reads_binary_late")) return;
  if (!modules_.empty() && mutant_.is("seam/unload/unloads_another")) module = modules_.back();
  std::erase(modules_, module);
  inner().unload(module);
}

Result<ModuleHandle> ResourceMutantDevice::loaded(LateModule& late) {
  if (late.module != 0) return late.module;
  std::vector<const kernel::Kernel*> kernels;
  for (const kernel::Kernel& each : late.kernels) kernels.push_back(&each);
  TENON_ASSIGN(late.module, inner().load(late.binary, kernels));
  return late.module;
}

Status ResourceMutantDevice::launch(uint32_t queue, const backend::KernelLaunch& launch) {
  if (!mutant_.is("seam/load/reads_binary_late")) return inner().launch(queue, launch);
  const std::lock_guard lock(mutex_);
  const auto late = late_.find(launch.module);
  if (late == late_.end()) return internal_error("a launch of no module");
  backend::KernelLaunch changed = launch;
  TENON_ASSIGN(changed.module, loaded(late->second));
  return inner().launch(queue, changed);
}

Result<std::byte*> ResourceMutantDevice::map(MemoryHandle memory) {
  TENON_ASSIGN(std::byte* const pointer, inner().map(memory));
  if (!mutant_.is("seam/map/is_a_copy")) return pointer;
  const std::lock_guard lock(mutex_);
  return bytes_.emplace_back(pointer, pointer + size_of(memory)).data();
}

Result<MemoryHandle> ResourceMutantDevice::import_memory(uint32_t space,
                                                         std::span<const std::byte> host) {
  if (!mutant_.is("seam/import_memory/is_zero")) return inner().import_memory(space, host);
  TENON_ASSIGN(const MemoryHandle made, allocate(space, std::ssize(host)));
  write_zeros(made, std::ssize(host));
  return made;
}

}  // namespace

std::unique_ptr<backend::Device> make_resource_mutant(std::unique_ptr<backend::Device> inner,
                                                      const std::string& name,
                                                      std::shared_ptr<SessionState> state) {
  return std::make_unique<ResourceMutantDevice>(std::move(inner), name, std::move(state));
}

}  // namespace tenon::conformance
