#include "conformance/mutation/mutants.h"

#include <algorithm>
#include <atomic>

#include "core/backend/layers/forward.h"

namespace tenon::conformance {
namespace {

std::atomic<int64_t> mutations = 0;

struct ChangedKernels {
  std::vector<kernel::Kernel> kernels;
  int64_t changes = 0;

  static Result<ChangedKernels> of(backend::Kernels given, const std::string& mutant) {
    ChangedKernels changed;
    for (const kernel::Kernel* each : given) {
      TENON_ASSIGN(kernel::Kernel kernel, mutated(*each, mutant, &changed.changes));
      changed.kernels.push_back(std::move(kernel));
    }
    return changed;
  }
  std::vector<const kernel::Kernel*> pointers() const {
    std::vector<const kernel::Kernel*> list;
    for (const kernel::Kernel& each : kernels) list.push_back(&each);
    return list;
  }
};

// Changes kernels before the backend compiles and loads them.
class KernelMutantDevice : public backend::ForwardingDevice {
 public:
  KernelMutantDevice(std::unique_ptr<backend::Device> inner, std::string mutant)
      : ForwardingDevice(std::move(inner)), mutant_(std::move(mutant)) {}

  Result<backend::ModuleHandle> load(std::string_view binary, backend::Kernels kernels) override {
    TENON_ASSIGN(const ChangedKernels changed, ChangedKernels::of(kernels, mutant_));
    return inner().load(binary, changed.pointers());
  }

 private:
  const std::string mutant_;
};

class KernelMutantBackend : public backend::ForwardingBackend {
 public:
  KernelMutantBackend(std::shared_ptr<Backend> inner, std::string mutant)
      : ForwardingBackend(std::move(inner)), mutant_(std::move(mutant)) {}

  Result<std::unique_ptr<backend::Device>> open(size_t index) override {
    TENON_ASSIGN(auto device, inner().open(index));
    return std::make_unique<KernelMutantDevice>(std::move(device), mutant_);
  }
  Result<backend::Compiled> compile(const backend::TargetInfo& target,
                                    backend::Kernels kernels) override {
    TENON_ASSIGN(const ChangedKernels changed, ChangedKernels::of(kernels, mutant_));
    if (changed.changes > 0) count_mutation();
    return inner().compile(target, changed.pointers());
  }
  // Kernels alone are changed, not the Programs of segments.
  bool takes_segments() const override { return false; }

 private:
  const std::string mutant_;
};

}  // namespace

int64_t mutations_made() { return mutations; }
void count_mutation() { ++mutations; }

const std::vector<Mutant>& all_mutants() {
  static const std::vector<Mutant> all = [] {
    std::vector<Mutant> list = seam_mutants();
    for (Mutant& each : kernel_mutants()) list.push_back(std::move(each));
    return list;
  }();
  return all;
}

Result<std::shared_ptr<backend::Backend>> make_mutant(std::shared_ptr<backend::Backend> inner,
                                                      const std::string& name) {
  if (std::ranges::find(all_mutants(), name, &Mutant::name) == all_mutants().end()) {
    return not_found("there is no mutant '{}'", name);
  }
  if (name.starts_with("seam/")) return make_seam_mutant(std::move(inner), name);
  return std::make_shared<KernelMutantBackend>(std::move(inner), name);
}

}  // namespace tenon::conformance
