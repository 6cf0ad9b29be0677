// The backend `gpu` as a plug-in.
#include "backends/gpu/gpu.h"
#include "core/backend/adapter/adapter.h"

extern "C" const TenonBackend* tenon_plugin(const TenonHost* host, const TenonSink* error) {
  return tenon::backend::export_backend(host, error, [] {
    return tenon::Result<std::shared_ptr<tenon::backend::Backend>>(
        tenon::backend::make_gpu_backend());
  });
}
