// `interp` as a plug-in. The other backends of this repository are built as plug-ins in the same
// way.
#include "core/backend/adapter/adapter.h"
#include "core/backend/interpreter/interpreter.h"

extern "C" const TenonBackend* tenon_plugin(const TenonHost* host, const TenonSink* error) {
  return tenon::backend::export_backend(host, error, [] {
    tenon::backend::InterpreterConfig config;
    config.devices = 65;
    return tenon::Result<std::shared_ptr<tenon::backend::Backend>>(
        tenon::backend::make_interpreter_backend(config));
  });
}
