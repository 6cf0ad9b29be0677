#include "backends/backends.h"

#include "backends/cpu/cpu.h"
#include "backends/gpu/gpu.h"
#include "backends/template/template.h"

namespace tenon::backend {

void add_backends(Registry& registry) {
  using Made = Result<std::shared_ptr<Backend>>;
  static_cast<void>(registry.add("template", [] { return Made(make_template_backend()); }));
  static_cast<void>(registry.add("cpu", [] { return make_cpu_backend(); }));
  static_cast<void>(registry.add("gpu", [] { return Made(make_gpu_backend()); }));
  static_cast<void>(registry.add("gpu-sim", [] { return make_gpu_sim_backend(); }));
}

}  // namespace tenon::backend
