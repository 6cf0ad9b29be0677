#include "hlo/lower/module_lowering.h"

#include <algorithm>

#include "core/kernel/text.h"
#include "hlo/buffers/assign.h"
#include "hlo/buffers/coalesce.h"
#include "hlo/ir/builder.h"
#include "hlo/lower/control_form.h"
#include "hlo/lower/index_math.h"
#include "hlo/lower/kernel_maker.h"
#include "hlo/lower/library_calls.h"
#include "hlo/passes/pass.h"
#include "hlo/text/attribute_printer.h"

namespace tenon::hlo::lower {
namespace {

using program::BufferId;
using program::MemoryKind;

Shape memory_shape(const Type& type) { return {type.element_type(), type.dims()}; }

Status unsupported(const Instruction& op, std::string why) {
  return Status(ErrorCode::kUnimplemented, fmt::format("{}: {}", op.name(), why))
      .at(position_of(op.location()));
}

// Whether the bytes in memory are the same under both types.
bool same_bytes(const Type& from, const Type& to) {
  const auto whole_bytes = [](ElementType type) {
    return !is_pred(type) && bit_width(complex_part(type)) >= 8;
  };
  return from.element_type() == to.element_type() ||
         (whole_bytes(from.element_type()) && whole_bytes(to.element_type()));
}

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

}  // namespace

// --- Buffers

BufferId ModuleLowering::add_buffer(program::Buffer buffer) {
  program_.buffers.push_back(std::move(buffer));
  return static_cast<BufferId>(program_.buffers.size() - 1);
}

BufferId ModuleLowering::new_buffer(const Shape& shape) {
  program::Buffer buffer;
  buffer.type = shape.element_type();
  buffer.dims = shape.dims();
  return add_buffer(std::move(buffer));
}

BufferId ModuleLowering::add_constant(const Literal& literal) {
  program::Buffer buffer;
  buffer.type = literal.element_type();
  buffer.dims = literal.shape().dims();
  buffer.kind = MemoryKind::kConstant;
  buffer.index = static_cast<uint32_t>(program_.constants.size());
  program_.constants.push_back(literal);
  return add_buffer(std::move(buffer));
}

BufferId ModuleLowering::view(BufferId of, const Type& type) {
  program::Buffer buffer;
  buffer.type = type.element_type();
  buffer.dims = type.dims();
  buffer.view_of = program_.root(of);
  return add_buffer(std::move(buffer));
}

Result<BufferId> ModuleLowering::buffer_of(Value value) {
  Place& at = place(value);
  if (at.buffer != program::kNone) return at.buffer;
  if (value.def->code() == OpCode::kConstant) {
    const auto& dense = *value.def->attr<DenseAttr>(AttrKey::value);
    TENON_TRY(checked_element_count(dense.shape.dims(), 16));
    // The type may be a quantized one: what lies in memory is its storage.
    const Literal values = dense.expanded();
    at.buffer = add_constant(values);
    return at.buffer;
  }
  return internal_error("{}: a value of type {} has no memory", value.def->name(),
                        value.type().to_string());
}

Result<BufferId> ModuleLowering::source_of(Value value) {
  constexpr int64_t kMostKept = 256;
  const Instruction& op = *value.def;
  if (op.code() != OpCode::kConstant || !is_inline_constant(op) ||
      element_count(value.type().dims()) <= kMostKept) {
    return buffer_of(value);
  }
  const BufferId kept = place(value).buffer;
  TENON_TRY(kernels(op));
  return std::exchange(place(value).buffer, kept);
}

uint32_t ModuleLowering::add_kernel(kernel::Kernel kernel) {
  const std::string name = std::exchange(kernel.name, "");
  std::string label = std::exchange(kernel.label, "");
  const std::string text = kernel::print(kernel);
  const auto [known, added] =
      kernels_.try_emplace(text, static_cast<uint32_t>(program_.kernels.size()));
  if (!added) return known->second;
  const int count = ++names_[name];
  kernel.name = count == 1 ? name : fmt::format("{}_{}", name, count);
  kernel.label = std::move(label);
  program_.kernels.push_back(std::move(kernel));
  return known->second;
}

// --- Steps

int ModuleLowering::level_of(const Instruction& op) const {
  if (options_.smaller.empty()) return 0;
  const auto found = options_.smaller.find(label_of(op));
  return found == options_.smaller.end() ? 0 : found->second;
}

LowerLimits ModuleLowering::limits_for(const Instruction& op) const {
  LowerLimits limits = options_.limits;
  const int level = level_of(op);
  limits.scratch_bytes >>= 3 * level;
  if (level >= LowerOptions::kOpByOp - 1) limits.private_memory = false;
  return limits;
}

void ModuleLowering::add_step(decltype(program::Step::action) action, const Instruction& op) {
  program_.sequences[open_.back()].steps.push_back({std::move(action), {}, label_of(op)});
}

void ModuleLowering::copy(BufferId destination, BufferId source, const Instruction& op) {
  add_step(program::Copy{destination, source}, op);
}

ModuleLowering::SequenceId ModuleLowering::enter() {
  const auto id = static_cast<SequenceId>(program_.sequences.size());
  program_.sequences.emplace_back();
  open_.push_back(id);
  return id;
}

std::vector<BufferId> ModuleLowering::result_buffers(const Instruction& op) {
  std::vector<BufferId> results;
  for (uint32_t r = 0; r < op.result_count(); ++r) {
    results.push_back(new_buffer(memory_shape(op.result_type(r))));
    places_[{&op, r}].buffer = results.back();
  }
  return results;
}

Status ModuleLowering::compute(const Instruction& op) {
  const auto found = options_.takes_call ? library_call_of(op) : std::nullopt;
  if (!found) return kernels(op);
  program::Call step;
  step.call = *found;
  std::vector<Shape> operands;
  std::vector<Shape> results;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    operands.push_back(memory_shape(op.operand_type(i)));
  }
  for (const Type& type : op.result_types()) results.push_back(memory_shape(type));
  if (!program::check(step.call, operands, results).ok()) return kernels(op);
  if (!options_.takes_call(step.call, operands, results)) return kernels(op);
  for (size_t i = 0; i < op.operand_count(); ++i) {
    TENON_ASSIGN(const BufferId buffer, buffer_of(op.operand(i)));
    step.operands.push_back(buffer);
  }
  TENON_ASSIGN(LoweredOp lowered, lower_op(op, schedule_, limits_for(op)));
  step.results = result_buffers(op);
  step.lowered = enter();
  TENON_TRY(launches(op, std::move(lowered), step.results));
  leave();
  add_step(std::move(step), op);
  return {};
}

// What cannot be lowered leaves no buffers behind: a fusion is then taken apart.
Status ModuleLowering::kernels(const Instruction& op) {
  TENON_ASSIGN(LoweredOp lowered, lower_op(op, schedule_, limits_for(op)));
  return launches(op, std::move(lowered), result_buffers(op));
}

Status ModuleLowering::launches(const Instruction& op, LoweredOp lowered,
                                const std::vector<BufferId>& results) {
  std::vector<BufferId> inputs;
  for (const Value value : lowered.inputs) {
    TENON_ASSIGN(const BufferId buffer, buffer_of(value));
    inputs.push_back(buffer);
  }
  std::vector<BufferId> temporaries;
  for (const Shape& shape : lowered.temporaries) temporaries.push_back(new_buffer(shape));
  std::vector<BufferId> constants;
  for (const Literal& literal : lowered.constants) constants.push_back(add_constant(literal));
  for (const auto& [result, input] : lowered.copies) copy(results[result], inputs[input], op);
  for (KernelLaunch& launch : lowered.launches) {
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
  call.config = config_of(op);
  return call_step(op, std::move(call));
}

Status ModuleLowering::call_step(const Instruction& op, program::CustomCall call) {
  for (size_t i = 0; i < op.operand_count(); ++i) {
    if (op.operand_type(i).is_token()) continue;
    TENON_ASSIGN(const BufferId buffer, buffer_of(op.operand(i)));
    call.operands.push_back(buffer);
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

// A Module of one function that does what `op` does, with what it refers to.
std::string host_module(const Module& module, const Instruction& op) {
  const bool refers = op.code() == OpCode::kCustomCall;
  const std::unique_ptr<Module> host = refers ? module.clone() : std::make_unique<Module>();
  Computation& function = host->add_function(std::string(kHostFunction));
  Builder builder(function);
  Cloner cloner;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const Type& type = op.operand_type(i);
    cloner.map(op.operand(i), type.is_token() ? builder.make(OpCode::kAfterAll, {})
                                              : function.add_parameter(type));
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

Status ModuleLowering::host_step(const Instruction& op) {
  program::CustomCall call;
  call.target = kHostTarget;
  call.config.emplace_back("module", host_module(module_, op));
  return call_step(op, std::move(call));
}

// --- Control flow

// The body's results become the state: what is itself a part of the state is set aside first, for
// another copy may overwrite it.
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
    TENON_ASSIGN(const BufferId init, source_of(op.operand(i)));
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
      TENON_ASSIGN(const BufferId value, source_of(end->operand(r)));
      copy(results[r], value, *end);
    }
    leave();
  }
  add_step(std::move(conditional), op);
  return {};
}

// Control flow whose state fits a lane's registers or a workgroup's scratch memory.
bool ModuleLowering::in_one_kernel(const Instruction& op) {
  const ControlForm form = control_form(op, limits_for(op));
  return form == ControlForm::kLane || (form == ControlForm::kWorkgroup &&
                                        schedule_.choose("control_in_workgroup", 1, {0, 1}) != 0);
}

// As a whole, or op by op where some have no elements or it would be too large.
Status ModuleLowering::fusion(const Instruction& op) {
  if (is_elemental(op) && level_of(op) < LowerOptions::kOpByOp) {
    Status status = kernels(op);
    if (status.code() != ErrorCode::kResourceExhausted) return status;
  }
  const Computation& body = op.region(0);
  for (size_t i = 0; i < op.operand_count(); ++i) {
    if (op.operand_type(i).is_tensor()) TENON_TRY(buffer_of(op.operand(i)));
    Place same = place(op.operand(i));
    place(body.parameter(i)) = std::move(same);
  }
  TENON_TRY(instructions(body));
  for (uint32_t r = 0; r < op.result_count(); ++r) {
    const Value value = body.return_instruction()->operand(r);
    if (value.type().is_tensor()) TENON_TRY(buffer_of(value));
    Place same = place(value);
    places_[{&op, r}] = std::move(same);
  }
  return {};
}

Status ModuleLowering::instructions(const Computation& computation) {
  for (const Instruction& op : computation) {
    if (op.code() == OpCode::kReturn) break;
    TENON_TRY(instruction(op));
  }
  return {};
}

Status ModuleLowering::instruction(const Instruction& op) {
  switch (op.code()) {
    case OpCode::kConstant:
    case OpCode::kAfterAll:
      return {};
    case OpCode::kTuple: {
      Place tuple;
      for (size_t i = 0; i < op.operand_count(); ++i) {
        if (op.operand_type(i).is_tensor()) TENON_TRY(buffer_of(op.operand(i)));
        tuple.elements.push_back(place(op.operand(i)));
      }
      places_[{&op, 0}] = std::move(tuple);
      return {};
    }
    case OpCode::kGetTupleElement: {
      const auto index = static_cast<size_t>(op.integer(AttrKey::index));
      Place element = place(op.operand(0)).elements[index];
      places_[{&op, 0}] = std::move(element);
      return {};
    }
    case OpCode::kOptimizationBarrier:
      for (uint32_t i = 0; i < op.operand_count(); ++i) {
        if (op.operand_type(i).is_tensor()) TENON_TRY(buffer_of(op.operand(i)));
        Place same = place(op.operand(i));
        places_[{&op, i}] = std::move(same);
      }
      return {};
    case OpCode::kReshape:
    case OpCode::kBitcastConvert:
    case OpCode::kSetDimensionSize: {
      if (!same_bytes(op.operand_type(0), op.result_type())) return kernels(op);
      TENON_ASSIGN(const BufferId from, buffer_of(op.operand(0)));
      places_[{&op, 0}].buffer = view(from, op.result_type());
      return {};
    }
    case OpCode::kCustomCall:
      return custom_call(op);
    case OpCode::kWhile:
      return in_one_kernel(op) ? kernels(op) : while_loop(op);
    case OpCode::kIf:
    case OpCode::kCase:
      return in_one_kernel(op) ? kernels(op) : conditional(op);
    case OpCode::kFusion:
      return fusion(op);
    default:
      return op.info().category == Category::kCommunication ? host_step(op) : compute(op);
  }
}

// --- The whole

Status ModuleLowering::parameters(const Computation& entry) {
  for (uint32_t i = 0; i < entry.parameter_count(); ++i) {
    const Type& type = entry.parameter(i).type();
    if (type.is_token()) continue;
    if (!type.is_tensor()) {
      return unsupported(entry.parameter_instruction(i),
                         fmt::format("a parameter of type {}", type.to_string()));
    }
    if (!type.shape().is_static()) {
      return unsupported(entry.parameter_instruction(i),
                         fmt::format("{} has dimensions that are not known", type.to_string()));
    }
    program::Buffer buffer;
    buffer.type = type.element_type();
    buffer.dims = type.dims();
    buffer.kind = MemoryKind::kParameter;
    buffer.index = static_cast<uint32_t>(program_.parameters.size());
    const uint32_t index = buffer.index;
    program_.parameters.push_back(add_buffer(std::move(buffer)));
    place(entry.parameter(i)).buffer = program_.parameters.back();
    if (is_donated(entry, i)) program_.donated.push_back(index);
  }
  return {};
}

// Each result has memory of its own: a temporary becomes it, anything else is copied.
Status ModuleLowering::results(const Computation& entry) {
  const Instruction* end = entry.return_instruction();
  for (size_t i = 0; i < end->operand_count(); ++i) {
    if (end->operand_type(i).is_token()) continue;
    if (!end->operand_type(i).is_tensor()) {
      return unsupported(*end,
                         fmt::format("a result of type {}", end->operand_type(i).to_string()));
    }
    TENON_ASSIGN(BufferId id, source_of(end->operand(i)));
    const auto index = static_cast<uint32_t>(program_.results.size());
    const BufferId root = program_.root(id);
    if (program_.buffer(root).kind != MemoryKind::kTemporary) {
      const BufferId own = new_buffer(memory_shape(end->operand_type(i)));
      copy(own, id, *end);
      id = own;
    }
    program::Buffer& memory = program_.buffers[program_.root(id)];
    memory.kind = MemoryKind::kResult;
    memory.index = index;
    program_.results.push_back(id);
  }
  return {};
}

Result<program::Program> ModuleLowering::run(const Computation& entry) {
  program_.name = entry.name();
  enter();
  TENON_TRY(parameters(entry));
  TENON_TRY(instructions(entry));
  TENON_TRY(results(entry));
  if (schedule_.choose("in_place", 1, {0, 1}) != 0) coalesce_buffers(program_);
  assign_buffers(program_, options_.limits.alignment);
  program::find_dependencies(program_);
  TENON_TRY(program::validate(program_));
  return std::move(program_);
}

}  // namespace tenon::hlo::lower

namespace tenon::hlo {

bool is_donated(const Computation& function, size_t parameter) {
  if (parameter >= function.parameter_attributes().size()) return false;
  const Dict& attributes = function.parameter_attributes()[parameter];
  return find(attributes, "tf.aliasing_output") != nullptr ||
         find(attributes, "jax.buffer_donor") != nullptr;
}

Result<program::Program> lower_module(const Module& module, const LowerOptions& options) {
  const Computation* entry =
      options.entry.empty() ? module.entry() : module.find_function(options.entry);
  if (entry == nullptr || entry->is_declaration()) {
    return not_found("there is no function to lower{}",
                     options.entry.empty() ? "" : ": @" + options.entry);
  }
  auto program = lower::ModuleLowering(module, options).run(*entry);
  if (!program) return Error(std::move(program.error()).in_stage("lower"));
  return program;
}

Result<program::Program> compile_to_program(const Module& module, const LowerOptions& options) {
  const std::unique_ptr<Module> copy = module.clone();
  TENON_TRY(run_passes(*copy, lowering_passes()));
  return lower_module(*copy, options);
}

}  // namespace tenon::hlo
