#include "backends/cpu/jit.h"

#include "backends/cpu/compiling.h"
#include "backends/cpu/tasks.h"
#include "backends/llvm/jit.h"

namespace tenon::cpu {
namespace {

class LoadedLibrary final : public Library {
 public:
  Status load(CpuCode code) {
    const codegen::HostFunction tasks = {kTaskFunction, reinterpret_cast<void*>(run_tasks)};
    TENON_ASSIGN(objects_, codegen::load_objects(code.objects, {&tasks, 1}));
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
