#include "conformance/mutation/mutants.h"

#include <algorithm>
#include <atomic>

#include "conformance/mutation/kernel_editor.h"
#include "core/backend/layers/forward.h"
#include "core/kernel/text/text.h"
#include "core/kernel/verify/verifier.h"

namespace tenon::conformance {
namespace {

std::atomic<int64_t> mutations = 0;
std::atomic<int64_t> refused = 0;

constexpr const KernelMutants* kKinds[] = {&kOperationMutants, &kConversionMutants,
                                           &kStatementMutants};

// The kernel as the mutant changes it; as it was, if it would not verify.
kernel::Kernel mutated(const kernel::Kernel& kernel, const std::string& mutant, int64_t* changes) {
  KernelEditor editor(kernel);
  int64_t changed = 0;
  for (const KernelMutants* kind : kKinds) changed += kind->change(editor, mutant);
  if (changed == 0) return kernel;
  // Ids of new values are anywhere; the parser gives them in the order of a kernel that was built.
  auto made = kernel::parse(kernel::print(editor.kernel()), "mutant");
  if (!made || !kernel::verify(*made).ok()) {
    ++refused;
    return kernel;
  }
  *changes += changed;
  return *std::move(made);
}

struct ChangedKernels {
  std::vector<kernel::Kernel> kernels;
  int64_t changes = 0;

  ChangedKernels(backend::Kernels given, const std::string& mutant) {
    for (const kernel::Kernel* each : given) kernels.push_back(mutated(*each, mutant, &changes));
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
    return inner().load(binary, ChangedKernels(kernels, mutant_).pointers());
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
    const ChangedKernels changed(kernels, mutant_);
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
int64_t mutations_refused() { return refused; }

const std::vector<Mutant>& all_mutants() {
  static const std::vector<Mutant> all = [] {
    std::vector<Mutant> list = seam_mutants();
    for (const KernelMutants* kind : kKinds) {
      for (Mutant& each : kind->list()) list.push_back(std::move(each));
    }
    return list;
  }();
  return all;
}

const Mutant* find_mutant(std::string_view name) {
  const auto found = std::ranges::find(all_mutants(), name, &Mutant::name);
  return found == all_mutants().end() ? nullptr : &*found;
}

Result<std::shared_ptr<backend::Backend>> make_mutant(std::shared_ptr<backend::Backend> inner,
                                                      const std::string& name) {
  if (find_mutant(name) == nullptr) return not_found("there is no mutant '{}'", name);
  if (name.starts_with("seam/")) return make_seam_mutant(std::move(inner), name);
  return std::make_shared<KernelMutantBackend>(std::move(inner), name);
}

}  // namespace tenon::conformance
