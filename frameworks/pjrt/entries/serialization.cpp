// The serial form of executables.
#include <algorithm>

#include "core/base/archive.h"
#include "frameworks/pjrt/entries/executables.h"
#include "frameworks/pjrt/program/compile_options.h"
#include "hlo/proto/proto.h"

namespace tenon::pjrt {

// The program as passed with its options and the kind of device, and its compiled form. A file of
// version 1 ends before the compiled form; version 2 has no flops.
constexpr serial::Format kExecutableFormat = {"TNEX", "executable", 1, 3};

struct Saved {
  std::string target;
  std::string options;
  std::string code;
  std::string compiled;  // core/runtime/serial.h; empty: compile the source again.
  std::string name;
  std::vector<uint32_t> parameter_memory;  // The runtime::MemoryKind of each.
  std::vector<uint32_t> result_memory;
  StepSummary steps;
};
template <class A>
void serialize(A& a, serial::Of<A, StepSummary>& steps) {
  a(steps.steps, steps.host_steps, steps.bytes);
  if constexpr (A::kReads) {
    if (a.version() < 3) return;
  }
  a(steps.flops, steps.transcendentals);
}
template <class A>
void serialize(A& a, serial::Of<A, Saved>& saved) {
  a(saved.target, saved.options, saved.code);
  if constexpr (A::kReads) {
    if (a.version() < 2) return;
  }
  a(saved.compiled, saved.name, saved.parameter_memory, saved.result_memory, saved.steps);
}

namespace {

std::vector<uint32_t> numbers_of(const std::vector<runtime::MemoryKind>& kinds) {
  std::vector<uint32_t> numbers;
  for (const runtime::MemoryKind kind : kinds) numbers.push_back(static_cast<uint32_t>(kind));
  return numbers;
}

Status add_arrays(Signature& signature, const std::vector<Shape>& shapes,
                  const std::vector<uint32_t>& memory) {
  if (shapes.size() != memory.size()) {
    return invalid_argument("an executable of {} arrays, of which {} have a memory", shapes.size(),
                            memory.size());
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (memory[i] > static_cast<uint32_t>(runtime::MemoryKind::kPinnedHost)) {
      return invalid_argument("an executable with an array in memory {}", memory[i]);
    }
    add_array(signature, shapes[i], static_cast<runtime::MemoryKind>(memory[i]));
  }
  return {};
}

// Whether two sets of options compile a program to the same code, on any device.
bool compile_alike(const hlo::CompileOptions& a, const hlo::CompileOptions& b) {
  return a.strict == b.strict && a.native_math == b.native_math &&
         a.rewrites.disabled == b.rewrites.disabled;
}

Result<PJRT_LoadedExecutable*> load_compiled(const std::shared_ptr<ClientState>& client,
                                             Saved saved, const PjrtCompileOptions& options) {
  auto state = std::make_shared<ExecutableState>();
  state->client = client;
  TENON_ASSIGN(const size_t device, device_of(options, client->devices.size()));
  state->device = client->devices[device];
  TENON_ASSIGN(CompiledModule compiled, client->engine->load(saved.compiled, state->device->place));
  compiled.steps = saved.steps;
  TENON_TRY(
      add_arrays(state->parameters, compiled.executable->parameters(), saved.parameter_memory));
  TENON_TRY(add_arrays(state->results, compiled.executable->results(), saved.result_memory));
  state->name = std::move(saved.name);
  state->code = std::move(saved.code);
  state->takes_reshaped = hlo::is_hlo_proto(state->code);
  state->options = std::move(saved.options);
  return finish(std::move(state), std::move(compiled));
}

}  // namespace

std::string save(const ExecutableState& state) {
  Saved saved = {state.target,
                 state.options,
                 state.code,
                 state.unloaded,
                 state.name,
                 numbers_of(state.parameters.memory),
                 numbers_of(state.results.memory),
                 state.steps};
  if (const auto executable = state.executable.lock()) {
    saved.compiled = state.client->engine->save(*executable);
  }
  serial::ArchiveWriter writer;
  writer(saved);
  return serial::seal(kExecutableFormat, std::move(writer).take());
}

Result<PJRT_LoadedExecutable*> load(const std::shared_ptr<ClientState>& client,
                                    std::string_view bytes, std::string_view options) {
  TENON_ASSIGN(const serial::Unsealed file, serial::unseal(bytes, kExecutableFormat));
  serial::ArchiveReader reader(file.payload, file.version);
  Saved saved;
  reader(saved);
  TENON_TRY(Status(reader.status()));
  const std::string& here = client->devices.front()->description.kind;
  if (saved.target != here) {
    return failed_precondition("the executable is for {}, not for {}", saved.target, here);
  }
  TENON_ASSIGN(const PjrtCompileOptions before, parse_compile_options(saved.options));
  if (!options.empty()) saved.options = options;
  TENON_ASSIGN(const PjrtCompileOptions now, parse_compile_options(saved.options));
  if (!saved.compiled.empty() && compile_alike(before.compile, now.compile)) {
    const std::string code = saved.code;
    const std::string saved_options = saved.options;
    auto loaded = load_compiled(client, std::move(saved), now);
    // Made by another compiler, or in a form that this release does not read; other errors are the
    // device's.
    if (loaded || loaded.error().code() == ErrorCode::kUnavailable ||
        loaded.error().code() == ErrorCode::kResourceExhausted) {
      return loaded;
    }
    return compile(client, code, saved_options);
  }
  return compile(client, saved.code, saved.options);
}

}  // namespace tenon::pjrt
