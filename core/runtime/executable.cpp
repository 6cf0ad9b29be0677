#include "core/runtime/executable.h"

#include <algorithm>
#include <chrono>

#include "core/runtime/execution/step_runner.h"
#include "core/runtime/memory/donations.h"

namespace tenon::runtime {
namespace {

Shape shape_of(const program::Program& program, program::BufferId id) {
  return {program.buffer(id).type, program.buffer(id).dims};
}

std::vector<Shape> shapes_of(const program::Program& program,
                             const std::vector<program::BufferId>& ids) {
  std::vector<Shape> shapes;
  for (const program::BufferId id : ids) shapes.push_back(shape_of(program, id));
  return shapes;
}

// Whether an execution on undefined inputs may do harm: loops might never end, and functions of the
// host have effects.
bool needs_inputs(const program::Program& program) {
  for (const program::Sequence& sequence : program.sequences) {
    for (const program::Step& step : sequence.steps) {
      if (std::holds_alternative<program::While>(step.action) || program::is_on_host(step)) {
        return true;
      }
    }
  }
  return std::ranges::any_of(program.kernels, [](const kernel::Kernel& kernel) {
    return std::ranges::find(kernel.nodes, kernel::OpCode::kWhile, &kernel::Node::op) !=
           kernel.nodes.end();
  });
}

}  // namespace

struct Executable::Impl : LoadedProgram {
  ~Impl() {
    if (module != 0) device->unload(module);
    for (const auto& [begin, segment] : segments) device->unload(segment.module);
  }
};

namespace {

Status load_modules(LoadedProgram& state) {
  const program::Program& program = state.compiled.program;
  std::vector<const kernel::Kernel*> kernels;
  for (size_t k = 0; k < program.kernels.size(); ++k) {
    state.module_index.push_back(static_cast<uint32_t>(kernels.size()));
    if (state.compiled.kernel_placements[k] == KernelPlacement::kDevice)
      kernels.push_back(&program.kernels[k]);
  }
  if (!kernels.empty()) {
    TENON_ASSIGN(state.module, state.device->load(state.compiled.binary, kernels));
  }
  for (const CompiledSegment& each : state.compiled.segments) {
    LoadedProgram::LoadedSegment segment = {each.range, each.memories, 0, "", {}};
    segment.label =
        fmt::format("{} and {} more steps",
                    program.sequences[each.range.sequence].steps[each.range.begin].label,
                    each.range.end - each.range.begin - 1);
    segment.steps =
        program::count_steps(program, each.range, [&](const program::LibraryCallStep& call) {
          return state.compiled.plans.contains(call.lowered);
        });
    TENON_ASSIGN(segment.module, state.device->load(each.binary, {}));
    state.segments[{each.range.sequence, each.range.begin}] = std::move(segment);
  }
  for (const auto& [lowered, plan] : state.compiled.plans) {
    state.workspace_bytes = std::max(state.workspace_bytes, plan.workspace_bytes);
  }
  const int64_t alignment = state.device->info().target.spaces[0].alignment;
  state.workspace_offset = (program.temporary_bytes + alignment - 1) / alignment * alignment;
  state.needs_inputs = needs_inputs(program);
  const bool host_sees_memory = state.device->info().target.spaces[0].host_visible;
  state.inline_policy.decide(state.compiled, host_sees_memory);
  state.parameters = shapes_of(program, program.parameters);
  state.results = shapes_of(program, program.results);
  for (size_t r = 0; r < state.results.size(); ++r) {
    state.result_shapes.push_back(std::make_shared<const Shape>(state.results[r]));
    state.result_labels.emplace_back(fmt::format("result {} of {}", r, program.name));
  }
  state.temporaries_label = fmt::format("temporaries of {}", program.name);
  return {};
}

// Prepares the steps that call functions of the host, but for those that the device has taken.
Status prepare_host_calls(LoadedProgram& state) {
  const program::Program& program = state.compiled.program;
  for (program::SequenceId id = 0; id < program.sequences.size(); ++id) {
    if (state.compiled.plans.contains(id)) continue;
    for (const program::Step& step : program.sequences[id].steps) {
      const auto* call = std::get_if<program::CustomCall>(&step.action);
      if (call == nullptr || state.calls.contains(call->target)) continue;
      const auto function = state.functions.find(call->target);
      if (function == state.functions.end()) continue;
      PreparedCall prepared;
      auto foreign = program::foreign_of(program, *call);
      if (!foreign) return with_label(foreign.error(), step.label);
      prepared.foreign = *std::move(foreign);
      auto made = function->second(*call, prepared.foreign);
      if (!made) return with_label(made.error(), step.label);
      prepared.run = *std::move(made);
      state.host_calls.emplace(call, std::move(prepared));
    }
  }
  return {};
}

// Posts work that writes memory which every execution reads.
void post_definition(const std::shared_ptr<LoadedProgram>& state, Work work, QueueRole role,
                     const WorkPosition& after) {
  auto defined = std::make_shared<Promise>(state->device->pool());
  state->constants_defined.push_back(defined->event());
  PostOptions options;
  options.role = role;
  options.after = state->constants_definers;
  options.after.raise(after);
  state->constants_definers.raise(state->device->post(
      std::move(work), [defined](const Status& status) { defined->set(status); },
      std::move(options)));
}

// Constants of at least this many bytes are imported; smaller ones do not justify an entry in the
// device's table of memories.
constexpr size_t kLarge = size_t{1} << 16;

// Imports a large constant, to be read in place; empty if the device does not import it.
Result<BufferStorage> import_constant(const std::shared_ptr<Device>& device,
                                      const Literal& constant) {
  if (constant.data().size() < kLarge) return BufferStorage();
  Promise gone(device->pool());
  // Copies of a literal share its bytes: this copy keeps the bytes as long as the device reads
  // them.
  gone.event().on_ready([constant](const Status&) {});
  return import(device, MemoryKind::kDevice, constant.data(), std::move(gone));
}

Status put_constants(const std::shared_ptr<LoadedProgram>& state) {
  const program::Program& program = state->compiled.program;
  for (size_t i = 0; i < program.constants.size(); ++i) {
    const Literal& constant = program.constants[i];
    TENON_ASSIGN(BufferStorage imported, import_constant(state->device, constant));
    if (!imported.empty()) {
      state->constants.push_back(std::move(imported));
      continue;
    }
    const auto bytes = static_cast<int64_t>(constant.data().size());
    TENON_ASSIGN(BufferStorage storage,
                 allocate(*state->device, MemoryKind::kDevice, bytes,
                          fmt::format("constant {} of {}", i, program.name), QueueRole::kUpload));
    state->constants.push_back(storage);
    // The state keeps the constant until it has been copied.
    post_definition(
        state,
        [state, storage, &constant, bytes] {
          return state->device->copy(storage.place(),
                                     backend::MemoryAddress::of_host(constant.data().data()), bytes,
                                     QueueRole::kUpload);
        },
        QueueRole::kUpload, storage.free_after());
  }
  return {};
}

Status pack_constants(const std::shared_ptr<LoadedProgram>& state) {
  const program::Program& program = state->compiled.program;
  for (const program::Sequence& sequence : program.sequences) {
    for (const program::Step& step : sequence.steps) {
      const auto* call = std::get_if<program::LibraryCallStep>(&step.action);
      if (call == nullptr || !state->compiled.plans.contains(call->lowered)) continue;
      const backend::LibraryCallPlan& plan = state->compiled.plans.at(call->lowered);
      for (uint32_t i = 0; i < std::min(plan.packed_bytes.size(), call->operands.size()); ++i) {
        const program::Buffer& from = program.buffer(program.root(call->operands[i]));
        if (plan.packed_bytes[i] <= 0 || from.kind != program::BufferKind::kConstant) continue;
        TENON_ASSIGN(BufferStorage packed,
                     allocate(*state->device, MemoryKind::kDevice, plan.packed_bytes[i],
                              fmt::format("a packed constant of {}", program.name)));
        state->packed[{call->lowered, i}] = packed;
        const BufferStorage constant = state->constants[from.index];
        post_definition(state,
                        [state, &plan, i, packed, constant] {
                          return state->device->pack(plan.plan, i, packed.place(),
                                                     constant.place());
                        },
                        QueueRole::kCompute, {});
      }
    }
  }
  return {};
}

// For each parameter, whether an execution takes its memory; empty if it takes none.
std::vector<bool> find_donated(const LoadedProgram& loaded, const ExecuteOptions& options) {
  if (loaded.compiled.program.donated.empty()) return {};
  std::vector<bool> is_donated = loaded.donated;
  for (const uint32_t kept : options.keep) {
    if (kept < is_donated.size()) is_donated[kept] = false;
  }
  return is_donated;
}

}  // namespace

const program::Step* unanswered_call(const CompiledProgram& compiled, const CustomCalls& calls,
                                     const HostFunctionTable& functions) {
  const std::vector<program::Sequence>& sequences = compiled.program.sequences;
  for (program::SequenceId id = 0; id < sequences.size(); ++id) {
    if (compiled.plans.contains(id)) continue;
    for (const program::Step& step : sequences[id].steps) {
      const auto* call = std::get_if<program::CustomCall>(&step.action);
      const bool is_answered =
          call == nullptr || calls.contains(call->target) || functions.contains(call->target);
      if (!is_answered) return &step;
    }
  }
  return nullptr;
}

Executable::~Executable() = default;
Result<std::shared_ptr<Executable>> Executable::reload(std::shared_ptr<Device> device) const {
  return load(std::move(device), state_->compiled, state_->calls, state_->functions);
}

const program::Program& Executable::program() const { return state_->compiled.program; }
const CompiledProgram& Executable::compiled() const { return state_->compiled; }
const std::shared_ptr<Device>& Executable::device() const { return state_->device; }
const std::vector<Shape>& Executable::parameters() const { return state_->parameters; }
const std::vector<Shape>& Executable::results() const { return state_->results; }

std::vector<bool> Executable::donated_parameters(const ExecuteOptions& options) const {
  std::vector<bool> is_donated = find_donated(*state_, options);
  is_donated.resize(state_->parameters.size());
  return is_donated;
}

int64_t Executable::aliased_bytes() const {
  int64_t bytes = 0;
  for (size_t r = 0; r < state_->results.size(); ++r) {
    if (state_->aliased_parameters[r] != program::kNone) bytes += state_->results[r].byte_size();
  }
  return bytes;
}

Result<std::shared_ptr<Executable>> Executable::load(std::shared_ptr<Device> device,
                                                     CompiledProgram compiled, CustomCalls calls,
                                                     HostFunctionTable functions) {
  auto state = std::make_shared<Impl>();
  state->device = std::move(device);
  state->compiled = std::move(compiled);
  state->calls = std::move(calls);
  state->functions = std::move(functions);
  state->donated.resize(state->compiled.program.parameters.size());
  for (const uint32_t index : state->compiled.program.donated) state->donated[index] = true;
  state->aliased_parameters = program::parameters_of_results(state->compiled.program);
  TENON_TRY(prepare_host_calls(*state));
  TENON_TRY(load_modules(*state));
  TENON_TRY(put_constants(state));
  TENON_TRY(pack_constants(state));
  return std::shared_ptr<Executable>(new Executable(std::move(state)));
}

// --- Execution

namespace {

using Clock = std::chrono::steady_clock;

std::atomic<int64_t> executions = 0;

// One execution while it is in flight: its work, and all that this needs, in one allocation. It
// keeps itself by no reference: who has the work has it.
struct InFlightExecution : WorkItem {
  InFlightExecution(std::shared_ptr<const LoadedProgram> program, const ExecuteOptions& options)
      : loaded(std::move(program)),
        observer(options.observer),
        context(options.context),
        memory(*loaded),
        done_(loaded->device->pool()) {
    work = [this] { return run(); };
    done = [this](const Status& status) { finish(status); };
    stop = &stop_word;
  }

  const std::shared_ptr<const LoadedProgram> loaded;
  StepObserver* const observer;
  const std::shared_ptr<const void> context;
  ThrottleToken throttle_token;
  ExecutionMemory memory;
  std::atomic<uint32_t> stop_word = 0;
  /// The caller's too, who may keep it for long.
  const std::shared_ptr<program::StepCounts> steps = std::make_shared<program::StepCounts>();
  const int64_t number = ++executions;
  std::vector<Event> inputs;  // Those that have not happened yet, or with an error.

  /// Its end, and that of its results.
  Event ended() const { return done_.event(); }

 private:
  Status inputs_defined() const {
    for (const Event& input : inputs) TENON_TRY(input.await());
    return {};
  }

  Status run() {
    if (loaded->needs_inputs) TENON_TRY(inputs_defined());
    if (loaded->inline_policy.measures()) begin_ = Clock::now();
    Status status =
        StepRunner(*loaded, memory, &stop_word, *steps, observer, {number, context.get()}).run();
    // Later users of this memory queue their work behind this work.
    memory.clear();
    return status;
  }

  // If an argument or constant failed to be defined, its error precedes those of the execution.
  void finish(Status status) {
    for (const Event& input : inputs) {
      if (!input.is_ready()) continue;
      const Status defined = input.await();
      if (defined.ok()) continue;
      status = defined;
      break;
    }
    if (begin_ && status.ok())
      loaded->inline_policy.add(std::chrono::nanoseconds(Clock::now() - *begin_).count());
    throttle_token.reset();
    done_.set(std::move(status));
  }

  Promise done_;
  std::optional<Clock::time_point> begin_;  // Of an execution that is measured.
};

Status check_argument(const LoadedProgram& loaded, size_t i, const BufferPtr& argument) {
  const program::Program& program = loaded.compiled.program;
  const Shape& expected = loaded.parameters[i];
  if (argument == nullptr) {
    return Status(invalid_argument("{}: argument {} is null", program.name, i));
  }
  if (argument->device() != loaded.device) {
    if (const Status lost = argument->device()->lost(); !lost.ok()) {
      return Status(lost.code(), fmt::format("{}: argument {} was on a device that is lost: {}",
                                             program.name, i, lost.message()));
    }
    return Status(invalid_argument("{}: argument {} is on {}, expected {}", program.name, i,
                                   argument->device()->info().name, loaded.device->info().name));
  }
  if (argument->shape() != expected) {
    return Status(invalid_argument("{}: argument {} is {}, expected {}", program.name, i,
                                   argument->shape().to_string(), expected.to_string()));
  }
  if (argument->memory_kind() != MemoryKind::kDevice) {
    return Status(invalid_argument("{}: argument {} is in {} memory, expected device memory",
                                   program.name, i, name_of(argument->memory_kind())));
  }
  return {};
}

// For each argument, whether the caller donates it; empty if it donates none.
Result<std::vector<bool>> check_arguments(const LoadedProgram& loaded,
                                          std::span<const BufferPtr> arguments,
                                          const ExecuteOptions& options) {
  const program::Program& program = loaded.compiled.program;
  if (arguments.size() != program.parameters.size()) {
    return invalid_argument("{}: {} arguments, expected {}", program.name, arguments.size(),
                            program.parameters.size());
  }
  for (size_t i = 0; i < arguments.size(); ++i) TENON_TRY(check_argument(loaded, i, arguments[i]));
  std::vector<bool> is_donated = find_donated(loaded, options);
  if (is_donated.empty()) return is_donated;
  std::vector<const Buffer*> buffers;
  buffers.reserve(arguments.size());
  for (const BufferPtr& argument : arguments) buffers.push_back(argument.get());
  const size_t twice = first_donated_twice<const Buffer*>(buffers, is_donated);
  if (twice == buffers.size()) return is_donated;
  return invalid_argument("{}: argument {} is donated and passed twice", program.name, twice);
}

Result<BufferStorage> allocate_result(const LoadedProgram& loaded, size_t r) {
  return allocate(*loaded.device, MemoryKind::kDevice, loaded.results[r].byte_size(),
                  loaded.result_labels[r]);
}

// Allocates the memory of results and temporaries. A result that is aliased with a `writable`
// argument gets its memory later.
Status allocate_execution_memory(const LoadedProgram& loaded, const std::vector<bool>& writable,
                                 ExecutionMemory& execution_memory) {
  for (size_t r = 0; r < loaded.results.size(); ++r) {
    BufferStorage& memory = execution_memory.results->emplace_back();
    const uint32_t parameter = loaded.aliased_parameters[r];
    if (parameter != program::kNone && !writable.empty() && writable[parameter]) continue;
    TENON_ASSIGN(memory, allocate_result(loaded, r));
  }
  if (loaded.compiled.program.temporary_bytes + loaded.workspace_bytes > 0) {
    TENON_ASSIGN(
        execution_memory.temporaries,
        allocate(*loaded.device, MemoryKind::kDevice,
                 loaded.workspace_offset + loaded.workspace_bytes, loaded.temporaries_label));
  }
  return {};
}

// For each argument, whether its memory may be written. Memory that is held, or that belongs to the
// caller, is only read, and the result is computed in other memory.
std::vector<bool> find_writable(std::span<const BufferPtr> arguments,
                                const std::vector<bool>& is_donated) {
  std::vector<bool> writable = is_donated;
  for (size_t i = 0; i < is_donated.size(); ++i) {
    if (is_donated[i]) writable[i] = arguments[i]->is_writable();
  }
  return writable;
}

// Takes the donated arguments, and gives aliased results the memory of those that are `writable`.
// If one of those has become held meanwhile, takes nothing and returns false.
Result<bool> take_arguments(const LoadedProgram& loaded, std::span<const BufferPtr> arguments,
                            const std::vector<bool>& is_donated, const std::vector<bool>& writable,
                            ExecutionMemory& execution_memory, Donations& donations) {
  for (const BufferPtr& argument : arguments) {
    TENON_ASSIGN(execution_memory.parameters->emplace_back(), argument->storage());
  }
  for (size_t i = 0; i < is_donated.size(); ++i) {
    if (!is_donated[i]) continue;
    TENON_ASSIGN(const bool still_writable, donations.take(arguments[i]));
    if (writable[i] && !still_writable) return false;
  }
  for (size_t r = 0; r < loaded.results.size(); ++r) {
    BufferStorage& memory = (*execution_memory.results)[r];
    if (memory.empty()) memory = (*execution_memory.parameters)[loaded.aliased_parameters[r]];
  }
  return true;
}

// The work of other queues that an execution comes behind: what writes its inputs, and what reads
// memory that it may write.
WorkMarks comes_behind(const LoadedProgram& loaded, std::span<const BufferPtr> arguments,
                       const ExecutionMemory& memory, const std::vector<bool>& is_donated) {
  WorkMarks after = loaded.constants_definers;
  for (size_t i = 0; i < arguments.size(); ++i) {
    after.raise(arguments[i]->definer());
    const auto& suballocation = (*memory.parameters)[i].suballocation;
    if (!is_donated.empty() && is_donated[i] && suballocation != nullptr)
      after.raise(suballocation->readers());
  }
  return after;
}

}  // namespace

Result<Execution> Executable::execute(std::span<const BufferPtr> arguments,
                                      const ExecuteOptions& options) const {
  TENON_ASSIGN(const std::vector<bool> is_donated, check_arguments(*state_, arguments, options));
  const auto in_flight = std::make_shared<InFlightExecution>(state_, options);
  in_flight->throttle_token = state_->device->acquire_throttle_token();
  // Donated buffers are taken last, and given back after a failure. Memory is allocated without the
  // lock, because an allocation may wait for work.
  std::unique_lock<std::mutex> in_order;
  std::optional<Donations> donations;
  for (bool taken = false; !taken;) {
    donations.reset();
    if (in_order.owns_lock()) in_order.unlock();
    const std::vector<bool> writable = find_writable(arguments, is_donated);
    in_flight->memory.clear();
    TENON_TRY(allocate_execution_memory(*state_, writable, in_flight->memory));
    in_order = state_->device->in_order();
    donations.emplace();
    TENON_ASSIGN(taken, take_arguments(*state_, arguments, is_donated, writable, in_flight->memory,
                                       *donations));
  }
  const auto depends_on = [&](const Event& input) {
    if (!input.is_ok()) in_flight->inputs.push_back(input);
  };
  for (const BufferPtr& argument : arguments) depends_on(argument->defined());
  for (const Event& constant : state_->constants_defined) depends_on(constant);
  Execution execution;
  execution.done = in_flight->ended();
  execution.steps = in_flight->steps;
  execution.results.reserve(state_->results.size());
  for (size_t r = 0; r < state_->results.size(); ++r) {
    execution.results.push_back(
        std::make_shared<Buffer>(state_->device, MemoryKind::kDevice, state_->result_shapes[r],
                                 (*in_flight->memory.results)[r], execution.done));
  }
  in_flight->after = comes_behind(*state_, arguments, in_flight->memory, is_donated);
  Device& device = *state_->device;
  const bool here = state_->inline_policy.runs_inline() &&
                    std::ranges::all_of(in_flight->inputs, &Event::is_ready) &&
                    device.is_done(QueueRole::kCompute, in_flight->after);
  auto turn = here ? device.claim_inline_turn() : std::nullopt;
  const auto set_definers = [&](const WorkPosition& definer) {
    for (const BufferPtr& result : execution.results) result->set_definer(definer);
  };
  if (!turn) {
    set_definers(device.post(in_flight, QueueRole::kCompute));
    donations->keep();
    return execution;
  }
  set_definers(turn->position);
  donations->keep();  // No more memory is allocated from here on.
  // Work that other threads post from now on is ordered after it.
  in_order.unlock();
  device.run_inline(*std::move(turn), in_flight);
  return execution;
}

}  // namespace tenon::runtime
