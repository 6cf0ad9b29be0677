// A plug-in that is wrong on purpose: interp as the mutant that TENON_MUTANT names, for the tests
// of the command (tests/programs/conform_test.py).
#include <cstdlib>

#include "conformance/mutation/mutants.h"
#include "core/backend/adapter/adapter.h"
#include "core/backend/interpreter/interpreter.h"

extern "C" const TenonBackend* tenon_plugin(const TenonHost* host, const TenonSink* error) {
  using namespace tenon;  // NOLINT: a function of the C interface
  return backend::export_backend(host, error, []() -> Result<std::shared_ptr<backend::Backend>> {
    const char* const name = std::getenv("TENON_MUTANT");
    backend::InterpreterConfig config;
    config.segments = false;
    auto sound = std::shared_ptr<backend::Backend>(backend::make_interpreter_backend(config));
    if (name == nullptr) return sound;
    return conformance::make_mutant(std::move(sound), name);
  });
}
