#include "frameworks/pjrt/engine.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "core/backend/interpreter/interpreter.h"
#include "core/backend/layers/layers.h"
#include "core/backend/layers/trace/trace.h"
#include "core/backend/registry/registry.h"
#include "core/runtime/serial.h"
#include "frameworks/pjrt/objects.h"
#include "frameworks/pjrt/profile/profile_recorder.h"
#include "frameworks/pjrt/program/reference_calls.h"
#include "hlo/decomposition/linalg/custom_calls.h"
#include "hlo/driver/host_calls.h"
#include "hlo/passes/pass.h"
#include "pjrt_source_hash.h"

namespace tenon::pjrt {
namespace {

// JAX's marker that a value counts as used.
constexpr const char* kSink = "dce_sink";

Error unanswered(std::string_view place, std::string_view target) {
  return unimplemented("{}: there is no implementation of the custom call @{}", place, target);
}

Result<std::vector<Literal>> no_processes(const hlo::Module&, std::span<const Literal>,
                                          const std::string&, hlo::Evaluator*) {
  return unimplemented("programs of a framework start no processes");
}

// The host's custom calls; a failed check (JAX's shape assertions) is an error of the execution.
// Each call collects its own failures, so that executions do not wait for each other.
Result<runtime::CustomCalls> host_functions(const program::Program& program) {
  TENON_ASSIGN(hlo::HostSteps of_program, hlo::HostSteps::prepare(program));
  const auto steps = std::make_shared<const hlo::HostSteps>(std::move(of_program));
  const hlo::Checks probes(nullptr, nullptr);
  const program::CustomCallHandler handler =
      [steps, probes](const program::Step&, const program::CustomCall& call,
                      const std::vector<Literal>& operands,
                      const std::vector<Shape>& results) -> Result<std::vector<Literal>> {
    std::vector<hlo::CheckFailure> failures;
    int64_t count = 0;
    const hlo::Checks checks = probes.reporting_to(&failures, &count);
    auto values = call.target == hlo::kHostTarget
                      ? steps->run(call, operands, checks, nullptr, no_processes)
                      : hlo::run_check(call, operands, results, checks);
    if (!values || failures.empty()) return values;
    return invalid_argument("{}", failures.front().text);
  };
  runtime::CustomCalls calls;
  for (const std::string_view target : hlo::Checks::targets()) calls[std::string(target)] = handler;
  calls[std::string(hlo::kHostTarget)] = handler;
  calls[kSink] = [](const program::Step&, const program::CustomCall&, const std::vector<Literal>&,
                    const std::vector<Shape>&) { return Result<std::vector<Literal>>(); };
  return calls;
}

// An error for a custom call that neither the device takes nor the host answers.
Status check_targets(const runtime::CompiledProgram& compiled, const runtime::CustomCalls& calls,
                     const runtime::HostFunctionTable& functions) {
  const program::Step* const step = runtime::unanswered_call(compiled, calls, functions);
  if (step == nullptr) return {};
  return unanswered(step->label, std::get<program::CustomCall>(step->action).target);
}

constexpr int64_t kMostDevices = 1024;

// Adds what the layer `trace` sees to recordings.
Result<std::shared_ptr<backend::Backend>> with_profiled_steps(
    std::shared_ptr<backend::Backend> inner) {
  TENON_ASSIGN(const std::vector<backend::DeviceInfo> devices, inner->devices());
  backend::TraceOptions options;
  options.path.clear();
  options.seen = [devices](const backend::TracedSlice& slice) {
    ProfileRecorder& recorder = ProfileRecorder::instance();
    if (!recorder.is_recording()) return;
    constexpr double kNanoseconds = 1e9;
    using Kind = backend::TracedSlice::TracedKind;
    if (slice.kind == Kind::kToDevice || slice.kind == Kind::kToHost) return;
    ProfileSpan span;
    span.row = ProfileRow::kSteps;
    span.device = devices[slice.device].name;
    span.name = slice.name;
    span.kernel = slice.kernel;
    span.queue = slice.queue;
    if (slice.kind == Kind::kLaunch) {
      span.bytes = slice.cost.bytes_read + slice.cost.bytes_written;
      span.flops = slice.cost.flops;
    } else if (slice.kind != Kind::kCall) {
      span.bytes = slice.bytes;
    }
    span.begin = static_cast<int64_t>(slice.begin * kNanoseconds);
    span.end = static_cast<int64_t>((slice.begin + slice.seconds) * kNanoseconds);
    recorder.add(std::move(span));
  };
  return backend::make_trace_layer(std::move(inner), options);
}

Result<std::shared_ptr<runtime::Client>> open_client(std::shared_ptr<backend::Backend> backend,
                                                     size_t first, const EngineOptions& engine) {
  constexpr int64_t kMillisecond = 1'000'000;
  runtime::ClientOptions options;
  options.limits.time_limit = engine.time_limit * kMillisecond;
  for (int64_t i = 0; i < engine.device_count; ++i)
    options.devices.push_back(first + static_cast<size_t>(i));
  return runtime::Client::open(std::move(backend), options);
}

// The size of the packed forms of constants that calls request.
int64_t packed_bytes(const runtime::CompiledProgram& compiled) {
  int64_t bytes = 0;
  for (const program::Sequence& sequence : compiled.program.sequences) {
    for (const program::Step& step : sequence.steps) {
      const auto* call = std::get_if<program::LibraryCallStep>(&step.action);
      const auto plan = call == nullptr ? compiled.plans.end() : compiled.plans.find(call->lowered);
      if (plan == compiled.plans.end()) continue;
      const std::vector<int64_t>& packed = plan->second.packed_bytes;
      for (size_t i = 0; i < std::min(packed.size(), call->operands.size()); ++i) {
        const program::BufferId root = compiled.program.root(call->operands[i]);
        const bool constant = compiled.program.buffer(root).kind == program::BufferKind::kConstant;
        bytes += constant ? std::max<int64_t>(packed[i], 0) : 0;
      }
    }
  }
  return bytes;
}

void add_memory(const runtime::CompiledProgram& from, CompiledModule& compiled) {
  compiled.code_bytes = static_cast<int64_t>(from.binary.size()) + packed_bytes(from);
  for (const runtime::CompiledSegment& segment : from.segments) {
    compiled.code_bytes += static_cast<int64_t>(segment.binary.size());
  }
  for (const Literal& constant : from.program.constants) {
    compiled.code_bytes += static_cast<int64_t>(constant.data().size());
  }
  int64_t workspace = 0;
  for (const auto& [lowered, plan] : from.plans) {
    workspace = std::max(workspace, plan.workspace_bytes);
  }
  compiled.temporary_bytes = from.program.temporary_bytes + workspace;
}

// The backend's own id does not cover passes and lowering.
std::string text_of_compiler(const backend::Backend& backend, const backend::TargetInfo& target) {
  return fmt::format("{}compiler's sources {}\n", runtime::compiled_for(backend, target),
                     kCompilerHash);
}

class BackendEngine : public Engine {
 public:
  explicit BackendEngine(std::shared_ptr<runtime::Client> client)
      : Engine(client, client->shared_backend()) {}

  Result<CompiledModule> compile(std::unique_ptr<hlo::Module> module, size_t device,
                                 const hlo::CompileOptions& options) override {
    TENON_ASSIGN(const std::shared_ptr<runtime::Device> target, live_device(device));
    TENON_ASSIGN(hlo::Compilation compilation, hlo::compile(std::move(module), client().backend(),
                                                            target->info().target, options));
    TENON_ASSIGN(CompiledModule compiled, load_on(target, std::move(compilation.compiled)));
    compiled.steps = summary_of(compilation.placement);
    return compiled;
  }

  std::string save(const runtime::Executable& executable) const override {
    return runtime::save(executable.compiled(),
                         text_of_compiler(client().backend(), executable.device()->info().target));
  }

  Result<CompiledModule> load(std::string_view bytes, size_t device) override {
    TENON_ASSIGN(const std::shared_ptr<runtime::Device> target, live_device(device));
    TENON_ASSIGN(runtime::CompiledProgram program,
                 runtime::load_compiled_program(
                     bytes, text_of_compiler(client().backend(), target->info().target)));
    auto compiled = load_on(target, std::move(program));
    if (compiled || compiled.error().code() == ErrorCode::kUnavailable ||
        compiled.error().code() == ErrorCode::kResourceExhausted) {
      return compiled;
    }
    return failed_precondition("{} refuses what was compiled: {}", client().backend().name(),
                               compiled.error().message());
  }

 private:
  static Result<CompiledModule> load_on(const std::shared_ptr<runtime::Device>& device,
                                        runtime::CompiledProgram program) {
    TENON_ASSIGN(runtime::CustomCalls calls, host_functions(program.program));
    runtime::HostFunctionTable functions = runtime::HostFunctions::instance().of(kPlatformName);
    TENON_TRY(check_targets(program, calls, functions));
    CompiledModule compiled;
    add_memory(program, compiled);
    TENON_ASSIGN(compiled.executable,
                 runtime::Executable::load(device, std::move(program), std::move(calls),
                                           std::move(functions)));
    return compiled;
  }
};

constexpr const char* kEvaluate = "tenon.evaluate";
std::atomic<int64_t> evaluations = 0;

// The same for a Module that is evaluated.
Status check_targets(const hlo::Module& module, const runtime::HostFunctionTable& functions) {
  const hlo::Instruction* unknown = nullptr;
  const auto is_unknown = [&](const hlo::Instruction& op) {
    if (op.code() != hlo::OpCode::kCustomCall) return false;
    if (hlo::decomposition::linalg_call(op) != nullptr) return false;  // It is expanded.
    const std::string_view target = op.text(hlo::AttrKey::call_target_name);
    const auto known = hlo::Checks::targets();
    if (target == kSink || functions.contains(target)) return false;
    if (std::ranges::find(known, target) != known.end()) return false;
    unknown = &op;
    return true;
  };
  for (const auto& function : module.functions()) {
    if (!hlo::any_instruction(*function, is_unknown)) continue;
    return unanswered(unknown->name(), unknown->text(hlo::AttrKey::call_target_name))
        .at(hlo::position_of(unknown->location()));
  }
  return {};
}

// Uses the memory of an `interp` device, and computes with the evaluator.
class ReferenceEngine : public Engine {
 public:
  explicit ReferenceEngine(std::shared_ptr<runtime::Client> client)
      : Engine(std::move(client), nullptr) {}

  Result<CompiledModule> compile(std::unique_ptr<hlo::Module> given, size_t device,
                                 const hlo::CompileOptions&) override {
    std::shared_ptr<const hlo::Module> module = std::move(given);
    const auto functions = runtime::HostFunctions::instance().of(kPlatformName);
    TENON_TRY(check_targets(*module, functions));
    const std::shared_ptr<hlo::Module> laid_out = module->clone();
    TENON_ASSIGN(const bool changed, hlo::lay_out_calls(*laid_out));
    if (changed) module = laid_out;
    TENON_ASSIGN(auto prepared, ReferenceCalls::prepare(*module, functions));
    const auto host_calls = std::make_shared<const ReferenceCalls>(std::move(prepared));
    TENON_ASSIGN(const std::shared_ptr<runtime::Device> target, live_device(device));
    runtime::CompiledProgram compiled;
    compiled.program = one_step(*module->entry());
    TENON_TRY(program::validate(compiled.program));
    runtime::CustomCalls calls;
    calls[kEvaluate] = [module, host_calls](
                           const program::Step&, const program::CustomCall&,
                           const std::vector<Literal>& operands,
                           const std::vector<Shape>&) -> Result<std::vector<Literal>> {
      std::vector<hlo::CheckFailure> failures;
      int64_t checks = 0;
      hlo::Evaluator evaluator(*module);
      hlo::install_checks(evaluator, &failures, &checks);
      host_calls->install(evaluator, ++evaluations);
      evaluator.set_custom_call(
          kSink, [](hlo::Evaluator&, const hlo::Instruction&, const std::vector<hlo::EvalValue>&) {
            return Result<std::vector<hlo::EvalValue>>();
          });
      TENON_ASSIGN(std::vector<Literal> results, evaluator.run(*module->entry(), operands));
      if (!failures.empty()) return invalid_argument("{}", failures.front().text);
      return results;
    };
    CompiledModule result;
    int64_t bytes = 0;
    for (const program::Buffer& buffer : compiled.program.buffers) bytes += buffer.bytes();
    result.steps = {1, 1, static_cast<double>(bytes)};
    TENON_ASSIGN(result.executable, runtime::Executable::load(target, std::move(compiled), calls));
    return result;
  }

  // A Module that is evaluated has only its source as a serial form.
  std::string save(const runtime::Executable&) const override { return ""; }
  Result<CompiledModule> load(std::string_view, size_t) override {
    return failed_precondition("the reference evaluates programs");
  }

 private:
  static program::BufferId add(program::Program& program, const hlo::Type& type,
                               program::BufferKind kind, size_t index) {
    program::Buffer buffer;
    buffer.type = type.element_type();
    buffer.dims = type.dims();
    buffer.kind = kind;
    buffer.index = static_cast<uint32_t>(index);
    program.buffers.push_back(std::move(buffer));
    return static_cast<program::BufferId>(program.buffers.size() - 1);
  }

  static program::Program one_step(const hlo::Computation& entry) {
    program::Program program;
    program.name = entry.name();
    for (size_t i = 0; i < entry.parameter_count(); ++i) {
      program.parameters.push_back(
          add(program, entry.parameter(i).type(), program::BufferKind::kParameter, i));
      if (hlo::is_donated(entry, i)) program.donated.push_back(static_cast<uint32_t>(i));
    }
    const std::vector<hlo::Type> results = entry.result_types();
    for (size_t i = 0; i < results.size(); ++i) {
      program.results.push_back(add(program, results[i], program::BufferKind::kResult, i));
    }
    program::Step step;
    step.action = program::CustomCall{kEvaluate, {}, program.parameters, program.results};
    step.label = entry.name();
    program.sequences.emplace_back().steps.push_back(std::move(step));
    program::find_dependencies(program);
    return program;
  }
};

}  // namespace

StepSummary summary_of(const std::vector<hlo::Placement>& placement) {
  StepSummary summary;
  for (const hlo::Placement& each : placement) {
    summary.steps += 1;
    summary.host_steps += each.kind == hlo::PlacementKind::kHost ? 1 : 0;
    summary.bytes += static_cast<double>(each.bytes);
    summary.flops += each.flops;
    summary.transcendentals += each.transcendentals;
  }
  return summary;
}

std::string NamedDevices::description() const {
  if (backend == nullptr) return "reference evaluator";
  return fmt::format("{} {}", backend->name(), backend->version());
}

std::string NamedDevices::device_kind(size_t device) const {
  return backend == nullptr ? "reference" : devices[device].target.name;
}

namespace {

Status check(const EngineOptions& options) {
  if (options.device_count < 1) {
    return invalid_argument("{} devices; expected at least one", options.device_count);
  }
  if (options.device_count > kMostDevices) {
    return invalid_argument("{} devices; {} at most", options.device_count, kMostDevices);
  }
  constexpr int64_t kLongestLimit = int64_t{1} << 40;
  if (options.time_limit < 0 || options.time_limit > kLongestLimit) {
    return invalid_argument("a time limit of {} milliseconds; 0 (none) to {}", options.time_limit,
                            kLongestLimit);
  }
  return {};
}

bool is_reference(const EngineOptions& options) { return options.device == "reference"; }

// The backend of the devices within its layers, and the index of the first.
Result<std::pair<std::shared_ptr<backend::Backend>, size_t>> backend_of(
    const EngineOptions& options) {
  TENON_TRY(check(options));
  if (is_reference(options)) {
    backend::InterpreterConfig config;
    config.devices = static_cast<size_t>(options.device_count);
    TENON_ASSIGN(auto backend,
                 backend::with_layers(backend::make_interpreter_backend(config), options.layers));
    return std::pair(std::move(backend), size_t{0});
  }
  TENON_ASSIGN(const backend::DeviceName name, backend::parse_device_name(options.device));
  TENON_ASSIGN(auto backend, backend::Registry::instance().get(name.backend));
  TENON_ASSIGN(backend, backend::with_layers(std::move(backend), options.layers));
  if (options.profile_steps) {
    TENON_ASSIGN(backend, with_profiled_steps(std::move(backend)));
  }
  return std::pair(std::move(backend), name.index);
}

}  // namespace

Result<NamedDevices> find_devices(const EngineOptions& options) {
  TENON_ASSIGN(const auto found, backend_of(options));
  TENON_ASSIGN(const std::vector<backend::DeviceInfo> all, found.first->devices());
  NamedDevices named;
  if (!is_reference(options)) named.backend = found.first;
  for (size_t i = 0; i < static_cast<size_t>(options.device_count); ++i) {
    if (found.second + i >= all.size()) {
      return not_found("backend {} has {} devices, there is no number {}", found.first->name(),
                       all.size(), found.second + i);
    }
    named.devices.push_back(all[found.second + i]);
  }
  return named;
}

Result<UnloadedModule> compile_for(const NamedDevices& devices, size_t device,
                                   std::unique_ptr<hlo::Module> module,
                                   const hlo::CompileOptions& options) {
  UnloadedModule unloaded;
  const auto functions = runtime::HostFunctions::instance().of(kPlatformName);
  if (devices.backend == nullptr) {
    TENON_TRY(check_targets(*module, functions));
    unloaded.steps = {1, 1};
    return unloaded;
  }
  const backend::TargetInfo& target = devices.devices[device].target;
  TENON_ASSIGN(hlo::Compilation compilation,
               hlo::compile(std::move(module), *devices.backend, target, options));
  TENON_ASSIGN(const runtime::CustomCalls calls, host_functions(compilation.compiled.program));
  TENON_TRY(check_targets(compilation.compiled, calls, functions));
  CompiledModule sizes;
  add_memory(compilation.compiled, sizes);
  unloaded.code_bytes = sizes.code_bytes;
  unloaded.temporary_bytes = sizes.temporary_bytes;
  unloaded.steps = summary_of(compilation.placement);
  unloaded.saved = runtime::save(compilation.compiled, text_of_compiler(*devices.backend, target));
  return unloaded;
}

Engine::Engine(std::shared_ptr<runtime::Client> client, std::shared_ptr<backend::Backend> backend)
    : client_(std::move(client)) {
  named_.backend = std::move(backend);
  for (const auto& device : client_->devices()) named_.devices.push_back(device->info());
}

Result<std::unique_ptr<Engine>> Engine::open(const EngineOptions& options) {
  TENON_ASSIGN(auto found, backend_of(options));
  TENON_ASSIGN(auto client, open_client(std::move(found.first), found.second, options));
  if (is_reference(options)) return std::make_unique<ReferenceEngine>(std::move(client));
  return std::make_unique<BackendEngine>(std::move(client));
}

namespace {

// The engines of this process, by their options. The lock is never held while a device opens, and
// forks wait for the lock: a child finds it free, even if another thread of its parent was opening
// a device.
class SharedEngines {
 public:
  static SharedEngines& instance() {
    static SharedEngines* const all = [] {
      auto* const made = new SharedEngines();
      pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                     [] { instance().begin_in_child(); });
      return made;
    }();
    return *all;
  }

  Result<std::shared_ptr<Engine>> get(const EngineOptions& options) {
    std::unique_lock lock(mutex_);
    while (true) {
      std::erase_if(engines_,
                    [](const auto& each) { return !each->is_opening && each->engine.expired(); });
      const auto found =
          std::ranges::find(engines_, options, [](const auto& each) { return each->options; });
      if (found == engines_.end()) break;
      if (std::shared_ptr<Engine> engine = (*found)->engine.lock()) return engine;
      opened_->wait(lock);  // Another thread opens it: two clients at once get the same one.
    }
    const auto entry = engines_.emplace_back(std::make_shared<SharedEngine>(options));
    lock.unlock();
    Result<std::shared_ptr<Engine>> engine = internal_error("an exception");
    try {
      engine = Engine::open(options);
    } catch (...) {
      end_opening(*entry, nullptr);
      throw;
    }
    end_opening(*entry, engine ? *engine : nullptr);
    return engine;
  }

 private:
  struct SharedEngine {
    explicit SharedEngine(const EngineOptions& given) : options(given) {}
    const EngineOptions options;
    std::weak_ptr<Engine> engine;
    bool is_opening = true;
  };

  void end_opening(SharedEngine& entry, const std::shared_ptr<Engine>& engine) {
    const std::lock_guard lock(mutex_);
    entry.engine = engine;
    entry.is_opening = false;
    opened_->notify_all();
  }

  // The parent's engines have their threads there, and so has who waits for one.
  void begin_in_child() {
    engines_.clear();
    static_cast<void>(opened_.release());  // Its waiters are not here to be woken.
    opened_ = std::make_unique<std::condition_variable>();
    mutex_.unlock();
  }

  std::mutex mutex_;
  std::unique_ptr<std::condition_variable> opened_ = std::make_unique<std::condition_variable>();
  std::vector<std::shared_ptr<SharedEngine>> engines_;
};

}  // namespace

Result<std::shared_ptr<Engine>> Engine::shared(const EngineOptions& options) {
  return SharedEngines::instance().get(options);
}

}  // namespace tenon::pjrt
