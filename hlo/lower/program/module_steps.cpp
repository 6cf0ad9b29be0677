// Turns instructions into steps: library calls, kernels, calls out of the op set, loops and
// branches.
#include <algorithm>

#include "hlo/builder/builder.h"
#include "hlo/lower/foreign_calls.h"
#include "hlo/lower/kernel_maker.h"
#include "hlo/lower/library_calls.h"
#include "hlo/lower/program/module_lowering.h"
#include "hlo/text/attribute_printer.h"

namespace tenon::hlo::lower {
namespace {

using program::BufferId;
using program::BufferKind;

program::ConfigValue config_value(const Attribute& value) {
  if (const auto* flag = value.get<bool>()) return *flag;
  if (const auto* integer = value.get<IntegerAttr>()) return integer->value;
  if (const auto* real = value.get<FloatAttr>()) return real->value();
  if (const auto* text = value.get<std::string>()) return *text;
  return attribute_text(value, TextForm::kHlo);
}

program::Config config_of(const Instruction& op) {
  program::Config config;
  if (const auto* dict = op.attr<Dict>(AttrKey::backend_config)) {
    for (const auto& [key, value] : *dict) config.emplace_back(key, config_value(value));
  } else if (const auto* text = op.attr<std::string>(AttrKey::backend_config)) {
    config.emplace_back("backend_config", *text);
  }
  if (const Attribute* message = find(op.discardable(), "error_message")) {
    config.emplace_back("error_message", config_value(*message));
  }
  return config;
}

// A name that no function has.
std::string host_function_of(const Module& module) {
  std::string name = "tenon_host";
  while (module.find_function(name) != nullptr) name += '_';
  return name;
}

// A value of the type from parameters: one for each array in it.
Value parameters_of(const Type& type, Computation& function, Builder& builder) {
  if (type.is_token()) return builder.make(OpCode::kAfterAll, {});
  if (type.is_tensor()) return function.add_parameter(type);
  std::vector<Value> elements;
  for (const Type& element : type.elements()) {
    elements.push_back(parameters_of(element, function, builder));
  }
  return builder.make(OpCode::kTuple, elements);
}

// A Module whose function `name` does the same as `op`, with the functions that it refers to. It
// takes the arrays of the operands and of the values that regions capture.
std::string host_module(const Module& module, const Instruction& op, const std::string& name) {
  const bool refers = op.code() == OpCode::kCustomCall;
  const std::unique_ptr<Module> host = refers ? module.clone() : std::make_unique<Module>();
  Computation& function = host->add_function(name);
  Builder builder(function);
  Cloner cloner;
  for (const Value value : all_operands(op)) {
    cloner.map(value, parameters_of(value.type(), function, builder));
  }
  Instruction* copy = function.insert(cloner.clone(op));
  std::vector<Value> results;
  std::vector<Type> types;
  for (uint32_t r = 0; r < op.result_count(); ++r) {
    if (op.result_type(r).is_token()) continue;
    results.push_back(copy->result(r));
    types.push_back(op.result_type(r));
  }
  function.set_declared_result_types(std::move(types));
  static_cast<void>(builder.finish(results));
  return print_module(*host);
}

}  // namespace

// The step of a library call that the backend takes; nothing if it takes none for the op. What the
// call is lowered to is still to be entered.
Result<std::optional<program::LibraryCallStep>> ModuleLowering::taken_call(const Instruction& op) {
  auto site = options_.takes_call ? call_site_of(op) : std::nullopt;
  if (!site) return std::nullopt;
  for (size_t i = 0; i < op.operand_count(); ++i) site->constant[i] = is_constant(op.operand(i));
  const auto next = static_cast<SequenceId>(program_.sequences.size());
  TENON_ASSIGN(const bool taken, options_.takes_call({site->call, site->operands, site->results,
                                                      site->constant, number_of(op), next}));
  if (!taken) return std::nullopt;
  program::LibraryCallStep step;
  step.call = std::move(site->call);
  for (size_t i = 0; i < op.operand_count(); ++i) {
    TENON_ASSIGN(const BufferId buffer, buffer_of(op.operand(i)));
    step.operands.push_back(buffer);
  }
  return step;
}

Result<bool> ModuleLowering::takes_inner(const Instruction& fusion, const Instruction& op) const {
  const auto site = options_.takes_call ? call_site_of(op) : std::nullopt;
  if (!site) return false;
  const auto next = static_cast<SequenceId>(program_.sequences.size());
  return options_.takes_call(
      {site->call, site->operands, site->results, site->constant, number_of(fusion), next});
}

Status ModuleLowering::compute(const Instruction& op) {
  TENON_ASSIGN(auto step, taken_call(op));
  if (!step) return kernels(op);
  TENON_ASSIGN(LoweredOp as_kernels, lowered(op));
  step->results = result_buffers(op);
  step->lowered = enter();
  TENON_TRY(launches(op, std::move(as_kernels), step->results));
  leave();
  add_step(*std::move(step), op);
  return {};
}

// A call that the backend takes beside the steps of the decomposition, or these steps alone.
Status ModuleLowering::composite(const Instruction& op) {
  const Computation* const body = module_.find_function(op.text(AttrKey::decomposition));
  if (body == nullptr || body->is_declaration()) {
    return unsupported(op, "its decomposition is not defined");
  }
  TENON_ASSIGN(auto step, taken_call(op));
  if (!step) return inlined(op, *body);
  step->lowered = enter();
  const auto first_inner = static_cast<BufferId>(program_.buffers.size());
  TENON_TRY(inlined(op, *body));
  for (uint32_t r = 0; r < op.result_count(); ++r) {
    BufferId result = places_[{&op, r}].buffer;
    // The call writes the buffer that its decomposition computes, unless that is an operand, a
    // view, or another result too.
    const bool is_own = result >= first_inner && program_.root(result) == result &&
                        program_.buffer(result).kind == BufferKind::kTemporary &&
                        std::ranges::find(step->results, result) == step->results.end();
    if (!is_own) {
      const BufferId own = new_buffer(memory_shape(op.result_type(r)));
      copy(own, result, op);
      result = own;
    }
    step->results.push_back(result);
    places_[{&op, r}].buffer = result;
  }
  leave();
  add_step(*std::move(step), op);
  return {};
}

// The steps of a body that takes the operands and gives the results.
Status ModuleLowering::inlined(const Instruction& op, const Computation& body) {
  for (size_t i = 0; i < op.operand_count(); ++i) {
    TENON_ASSIGN(place(body.parameter(i)), place_of(op.operand(i)));
  }
  TENON_TRY(instructions(body));
  for (uint32_t r = 0; r < op.result_count(); ++r) {
    const Value value = body.return_instruction()->operand(r);
    TENON_ASSIGN(ValueLocation same, place_of(value));
    places_[{&op, r}] = std::move(same);
  }
  return {};
}

// An op that cannot be lowered leaves no buffers behind: a fusion is then taken apart.
Status ModuleLowering::kernels(const Instruction& op) {
  TENON_ASSIGN(LoweredOp as_kernels, lowered(op));
  return launches(op, std::move(as_kernels), result_buffers(op));
}

Status ModuleLowering::launches(const Instruction& op, LoweredOp lowered,
                                const std::vector<BufferId>& results) {
  // A constant that is laid out otherwise is no longer read.
  std::vector<bool> is_read(lowered.inputs.size());
  for (const auto& [result, input] : lowered.copies) is_read[input] = true;
  for (const LoweredLaunch& launch : lowered.launches) {
    for (const BufferRef ref : launch.buffers) {
      if (ref.kind == BufferRef::BufferRefKind::kInput) is_read[ref.index] = true;
    }
  }
  std::vector<BufferId> inputs(lowered.inputs.size(), program::kNone);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!is_read[i]) continue;
    TENON_ASSIGN(inputs[i], buffer_of(lowered.inputs[i]));
  }
  std::vector<BufferId> temporaries;
  for (const Shape& shape : lowered.temporaries) temporaries.push_back(new_buffer(shape));
  std::vector<BufferId> constants;
  for (const Literal& literal : lowered.constants) constants.push_back(add_constant(literal));
  for (const auto& [result, input] : lowered.copies) copy(results[result], inputs[input], op);
  for (LoweredLaunch& launch : lowered.launches) {
    program::Launch step;
    step.kernel = add_kernel(std::move(launch.kernel));
    step.scalars = std::move(launch.scalars);
    for (const BufferRef ref : launch.buffers) {
      const std::vector<BufferId>* lists[] = {&inputs, &results, &temporaries, &constants};
      step.buffers.push_back((*lists[static_cast<size_t>(ref.kind)])[ref.index]);
    }
    add_step(std::move(step), op);
  }
  return {};
}

Status ModuleLowering::custom_call(const Instruction& op) {
  program::CustomCall call;
  call.target = op.text(AttrKey::call_target_name);
  const bool of_host =
      call.target == "interpreter.run_parallel" || call.target == "interpreter.print";
  if (of_host) return host_step(op);
  if (call.target == kHostTarget) return unsupported(op, "a target that is the compiler's own");
  call.config = config_of(op);
  if (!call.target.starts_with("check.") && !call.target.starts_with("interpreter.")) {
    TENON_ASSIGN(const program::ForeignCall foreign, foreign_call_of(op));
    program::add_foreign(call.config, foreign);
  }
  return claimed_or_host(op, std::move(call));
}

// A call that the backend takes stands beside the host's step, which is then never run.
Status ModuleLowering::claimed_or_host(const Instruction& op, program::CustomCall call) {
  TENON_ASSIGN(auto step, taken_call(op));
  if (!step) return call_step(op, op.operands(), std::move(call));
  step->lowered = enter();
  TENON_TRY(call_step(op, op.operands(), std::move(call)));
  leave();
  for (uint32_t r = 0; r < op.result_count(); ++r) {
    step->results.push_back(places_[{&op, r}].buffer);
  }
  add_step(*std::move(step), op);
  return {};
}

Status ModuleLowering::call_step(const Instruction& op, const std::vector<Value>& operands,
                                 program::CustomCall call) {
  for (const Value operand : operands) {
    TENON_ASSIGN(const ValueLocation at, place_of(operand));
    at.append_buffers(call.operands);
  }
  for (uint32_t r = 0; r < op.result_count(); ++r) {
    if (op.result_type(r).is_token()) continue;
    if (!op.result_type(r).is_tensor()) {
      return unsupported(op, fmt::format("results of type {}", op.result_type(r).to_string()));
    }
    call.results.push_back(new_buffer(memory_shape(op.result_type(r))));
    places_[{&op, r}].buffer = call.results.back();
  }
  add_step(std::move(call), op);
  return {};
}

Status ModuleLowering::host_step(const Instruction& op) {
  program::CustomCall call;
  call.target = kHostTarget;
  const std::string name = host_function_of(module_);
  call.config.emplace_back("function", name);
  call.config.emplace_back("module", host_module(module_, op, name));
  return call_step(op, all_operands(op), std::move(call));
}

// --- Control flow

// The body's results become the state. A result that is itself a part of the state is set aside
// first, since another copy may overwrite it.
Status ModuleLowering::advance(const Computation& body, const std::vector<BufferId>& state) {
  const Instruction* end = body.return_instruction();
  std::vector<std::pair<BufferId, BufferId>> copies;
  for (size_t i = 0; i < state.size(); ++i) {
    if (state[i] == program::kNone) continue;
    TENON_ASSIGN(BufferId next, buffer_of(end->operand(i)));
    if (program_.root(next) == state[i]) continue;
    const bool in_state = std::find(state.begin(), state.end(), program_.root(next)) != state.end();
    if (in_state) {
      const program::Buffer from = program_.buffer(next);
      const BufferId aside = new_buffer({from.type, from.dims});
      copy(aside, next, *end);
      next = aside;
    }
    copies.emplace_back(state[i], next);
  }
  for (const auto& [to, from] : copies) copy(to, from, *end);
  return {};
}

Status ModuleLowering::while_loop(const Instruction& op) {
  std::vector<BufferId> state;
  for (uint32_t i = 0; i < op.operand_count(); ++i) {
    const Type& type = op.operand_type(i);
    if (!type.is_tensor() && !type.is_token()) {
      return unsupported(op, fmt::format("a state of type {}", type.to_string()));
    }
    state.push_back(type.is_token() ? program::kNone : new_buffer(memory_shape(type)));
    if (type.is_token()) continue;
    TENON_ASSIGN(const BufferId init, buffer_of(op.operand(i)));
    copy(state.back(), init, op);
    for (const size_t r : {0u, 1u}) place(op.region(r).parameter(i)).buffer = state.back();
    places_[{&op, i}].buffer = state.back();
  }
  program::While loop;
  loop.condition = enter();
  TENON_TRY(instructions(op.region(0)));
  leave();
  TENON_ASSIGN(loop.predicate, buffer_of(op.region(0).return_instruction()->operand(0)));
  loop.body = enter();
  TENON_TRY(instructions(op.region(1)));
  TENON_TRY(advance(op.region(1), state));
  leave();
  add_step(loop, op);
  return {};
}

Status ModuleLowering::conditional(const Instruction& op) {
  std::vector<BufferId> results;
  for (uint32_t r = 0; r < op.result_count(); ++r) {
    const Type& type = op.result_type(r);
    if (!type.is_tensor() && !type.is_token()) {
      return unsupported(op, fmt::format("a result of type {}", type.to_string()));
    }
    results.push_back(type.is_token() ? program::kNone : new_buffer(memory_shape(type)));
    places_[{&op, r}].buffer = results.back();
  }
  program::Conditional conditional;
  TENON_ASSIGN(conditional.index, buffer_of(op.operand(0)));
  for (size_t i = 0; i < op.region_count(); ++i) {
    conditional.branches.push_back(enter());
    TENON_TRY(instructions(op.region(i)));
    const Instruction* end = op.region(i).return_instruction();
    for (size_t r = 0; r < results.size(); ++r) {
      if (results[r] == program::kNone) continue;
      TENON_ASSIGN(const BufferId value, buffer_of(end->operand(r)));
      copy(results[r], value, *end);
    }
    leave();
  }
  add_step(std::move(conditional), op);
  return {};
}

}  // namespace tenon::hlo::lower
