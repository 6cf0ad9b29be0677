// The CPU backend as a plug-in.
#include "backends/cpu/cpu.h"
#include "core/backend/adapter/adapter.h"

extern "C" const TenonBackend* tenon_plugin(const TenonHost* host, const TenonSink* error) {
  return tenon::backend::export_backend(host, error,
                                        [] { return tenon::backend::make_cpu_backend(); });
}
