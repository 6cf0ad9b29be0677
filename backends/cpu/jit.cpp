#include "backends/cpu/jit.h"

#include <algorithm>

#include "backends/cpu/compiling.h"
#include "backends/cpu/lapack/lapack.h"
#include "backends/cpu/tasks.h"
#include "backends/llvm/jit.h"

namespace tenon::cpu {
namespace {

class LoadedLibrary final : public Library {
 public:
  Status load(CpuCode code) {
    const codegen::HostFunction functions[] = {
        {kTaskFunction, reinterpret_cast<void*>(run_tasks)},
        {kLapackFunction, reinterpret_cast<void*>(run_lapack)}};
    // Code from a cache, made where there was a library.
    const bool calls_lapack = std::ranges::any_of(code.objects, [](const std::string& object) {
      return object.find(kLapackFunction) != std::string::npos;
    });
    if (calls_lapack) TENON_TRY(lapack_state());
    TENON_ASSIGN(objects_, codegen::load_objects(code.objects, functions));
    for (const CpuKernelCode& each : code.kernels) {
      TENON_ASSIGN(void* const address, objects_->address(each.symbol));
      entries_.push_back(reinterpret_cast<Entry>(address));
    }
    code.objects.clear();
    code_ = std::move(code);
    return {};
  }

 private:
  std::unique_ptr<codegen::LoadedObjects> objects_;
};

}  // namespace

Result<std::shared_ptr<Library>> load_library(CpuCode code) {
  auto library = std::make_shared<LoadedLibrary>();
  if (const Status status = library->load(std::move(code)); !status.ok()) {
    return tl::make_unexpected(Status(status).with_context("cpu"));
  }
  return library;
}

}  // namespace tenon::cpu
