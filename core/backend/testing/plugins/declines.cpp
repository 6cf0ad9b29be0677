// A plug-in that declines every kernel: interp without its compiler.
#include "core/backend/adapter/adapter.h"
#include "core/backend/interpreter/interpreter.h"
#include "core/backend/layers/forward.h"

namespace tenon::backend {
namespace {

class DecliningBackend final : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;

  std::string_view name() const override { return "declines"; }
  Result<Compiled> compile(const TargetInfo&, Kernels kernels) override {
    Compiled compiled;
    for (uint32_t k = 0; k < kernels.size(); ++k) {
      compiled.declined.push_back({k, Reason::kOther, "there is no compiler"});
    }
    return compiled;
  }
};

}  // namespace
}  // namespace tenon::backend

extern "C" const TenonBackend* tenon_plugin(const TenonHost* host, const TenonSink* error) {
  using namespace tenon;
  return backend::export_backend(host, error, [] {
    backend::InterpreterConfig config;
    config.segments = false;
    return Result<std::shared_ptr<backend::Backend>>(std::make_shared<backend::DecliningBackend>(
        std::shared_ptr<backend::Backend>(backend::make_interpreter_backend(config))));
  });
}
