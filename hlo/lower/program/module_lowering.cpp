#include "hlo/lower/program/module_lowering.h"

#include <algorithm>

#include "core/kernel/ir/structure.h"
#include "core/kernel/text/text.h"
#include "hlo/buffers/assign.h"
#include "hlo/buffers/coalesce.h"
#include "hlo/ir/inline.h"
#include "hlo/lower/elements/emitter.h"
#include "hlo/lower/kernel_maker.h"
#include "hlo/lower/schedules/control_form.h"
#include "hlo/lower/schedules/own_kernels.h"

namespace tenon::hlo::lower {
namespace {

using program::BufferId;
using program::BufferKind;

// Whether the bytes in memory are the same for both types.
bool same_bytes(const Type& from, const Type& to) {
  const auto whole_bytes = [](ElementType type) {
    return !is_pred(type) && bit_width(complex_part(type)) >= 8;
  };
  return from.element_type() == to.element_type() ||
         (whole_bytes(from.element_type()) && whole_bytes(to.element_type()));
}

}  // namespace

Status unsupported(const Instruction& op, std::string why) {
  return Status(ErrorCode::kUnimplemented, fmt::format("{}: {}", op.name(), why))
      .at(position_of(op.location()));
}

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
  buffer.kind = BufferKind::kConstant;
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

bool ModuleLowering::is_filled(const Instruction& op) const {
  return is_inline_constant(op) &&
         element_count(op.result_type().dims()) > options_.limits.cost.kept_constant;
}

bool ModuleLowering::is_constant(Value value) {
  const BufferId known = place(value).buffer;
  if (known != program::kNone) {
    return program_.buffer(program_.root(known)).kind == BufferKind::kConstant;
  }
  return value.def->code() == OpCode::kConstant && !is_filled(*value.def);
}

Result<BufferId> ModuleLowering::buffer_of(Value value) {
  ValueLocation& at = place(value);
  if (at.buffer != program::kNone) return at.buffer;
  const Instruction& op = *value.def;
  if (op.code() != OpCode::kConstant) {
    return internal_error("{}: a value of type {} has no memory", op.name(),
                          value.type().to_string());
  }
  if (is_filled(op)) {
    // The buffer is not recorded for the value, because it is filled only here, in this sequence.
    TENON_TRY(kernels(op));
    return std::exchange(place(value).buffer, program::kNone);
  }
  const auto& dense = *op.attr<DenseAttr>(AttrKey::value);
  TENON_TRY(checked_element_count(dense.shape.dims(), 16));
  // The type may be quantized: the memory has its storage type.
  at.buffer = add_constant(dense.expanded());
  return at.buffer;
}

Result<ModuleLowering::ValueLocation> ModuleLowering::place_of(Value value) {
  if (!value.type().is_tensor()) return place(value);
  ValueLocation at;
  TENON_ASSIGN(at.buffer, buffer_of(value));
  return at;
}

uint32_t ModuleLowering::add_kernel(kernel::Kernel kernel) {
  const std::string name = std::exchange(kernel.name, "");
  std::string label = std::exchange(kernel.label, "");
  // The passes of a sort differ in the names of their buffers alone.
  std::vector<std::string> buffers;
  for (kernel::Memory& memory : kernel.memories) {
    buffers.push_back(std::exchange(memory.name, fmt::format("m{}", buffers.size())));
  }
  const auto [known, added] =
      kernels_.try_emplace(kernel::print(kernel), static_cast<uint32_t>(program_.kernels.size()));
  if (!added) return known->second;
  for (size_t m = 0; m < buffers.size(); ++m) kernel.memories[m].name = std::move(buffers[m]);
  const int count = ++names_[name];
  kernel.name = count == 1 ? name : fmt::format("{}_{}", name, count);
  kernel.label = std::move(label);
  program_.kernels.push_back(std::move(kernel));
  return known->second;
}

// --- Steps

int ModuleLowering::fallback_level(const Instruction& op) const {
  if (options_.fallback_levels.empty()) return 0;
  const auto found = options_.fallback_levels.find(number_of(op));
  return found == options_.fallback_levels.end() ? 0 : found->second;
}

LowerLimits ModuleLowering::limits_for(const Instruction& op) const {
  LowerLimits limits = options_.limits;
  const int level = fallback_level(op);
  limits.scratch_bytes >>= 3 * level;
  if (level >= LowerOptions::kPerOpLevel - 1) limits.private_memory = false;
  return limits;
}

Result<LoweredOp> ModuleLowering::lowered(const Instruction& op) {
  if (options_.cache == nullptr) return lower_op(op, tuning_, limits_for(op));
  return options_.cache->lower(op, fallback_level(op), tuning_, limits_for(op));
}

void ModuleLowering::add_step(decltype(program::Step::action) action, const Instruction& op) {
  program_.sequences[open_.back()].steps.push_back(
      {std::move(action), {}, label_of(op), number_of(op)});
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

// Lowers control flow whose state fits a lane's registers or a workgroup's scratch memory to one
// kernel.
bool ModuleLowering::in_one_kernel(const Instruction& op) {
  const ControlForm form = control_form(op, limits_for(op));
  return form == ControlForm::kLane || (form == ControlForm::kWorkgroup &&
                                        tuning_.choose_flag(parameters::kControlInWorkgroup, true));
}

// Lowers control flow to one kernel if it is small enough, else to steps.
Status ModuleLowering::control(const Instruction& op) {
  if (in_one_kernel(op)) {
    Status status = kernels(op);
    if (status.code() != ErrorCode::kResourceExhausted) return status;
  }
  return op.code() == OpCode::kWhile ? while_loop(op) : conditional(op);
}

// Lowers a fusion as a whole, or op by op if some op has no element rule or the fusion would be too
// large.
Status ModuleLowering::fusion(const Instruction& op) {
  bool has_kernels = is_elemental(op) || scatter_of_fusion(op) != nullptr;
  if (const Instruction* const sort = sort_of_selection(op)) {
    TENON_ASSIGN(const bool sorts, takes_inner(op, *sort));
    has_kernels = !sorts;
  }
  if (has_kernels && fallback_level(op) < LowerOptions::kPerOpLevel) {
    Status status = kernels(op);
    if (status.code() != ErrorCode::kResourceExhausted) return status;
  }
  return inlined(op, op.region(0));
}

Status ModuleLowering::instructions(const Computation& computation) {
  for (const Instruction& op : computation) {
    if (op.code() == OpCode::kReturn) break;
    TENON_TRY(instruction(op));
  }
  return {};
}

Status ModuleLowering::instruction(const Instruction& op) {
  switch (op.info().step) {
    case StepKind::kNothing:
      return {};
    case StepKind::kTuple: {
      ValueLocation tuple;
      for (size_t i = 0; i < op.operand_count(); ++i) {
        TENON_ASSIGN(ValueLocation element, place_of(op.operand(i)));
        tuple.elements.push_back(std::move(element));
      }
      places_[{&op, 0}] = std::move(tuple);
      return {};
    }
    case StepKind::kTupleElement: {
      const auto index = static_cast<size_t>(op.integer(AttrKey::index));
      ValueLocation element = place(op.operand(0)).elements[index];
      places_[{&op, 0}] = std::move(element);
      return {};
    }
    case StepKind::kForward:
      for (uint32_t i = 0; i < op.operand_count(); ++i) {
        TENON_ASSIGN(ValueLocation same, place_of(op.operand(i)));
        places_[{&op, i}] = std::move(same);
      }
      return {};
    case StepKind::kView: {
      if (!same_bytes(op.operand_type(0), op.result_type())) return kernels(op);
      if (op.code() == OpCode::kBroadcastInDim && !keeps_order(op)) return kernels(op);
      TENON_ASSIGN(const BufferId from, buffer_of(op.operand(0)));
      places_[{&op, 0}].buffer = view(from, op.result_type());
      return {};
    }
    case StepKind::kCustomCall:
      return custom_call(op);
    case StepKind::kControl:
      return control(op);
    case StepKind::kFusion:
      return fusion(op);
    case StepKind::kHost:
      return host_step(op);
    case StepKind::kCompute:
      return compute(op);
    case StepKind::kComposite:
      return composite(op);
    case StepKind::kUnset:  // A decomposable op, which was to be decomposed before.
      break;
  }
  return kernels(op);
}

// --- Whole Modules

// The decomposition of a composite if it has no numbers yet, else null.
const Computation* ModuleLowering::decomposition_of(const Instruction& op) {
  if (op.code() != OpCode::kComposite) return nullptr;
  const Computation* const body = module_.find_function(op.text(AttrKey::decomposition));
  const bool is_new = body != nullptr && !body->empty() && !numbers_.contains(body->first());
  return is_new ? body : nullptr;
}

void ModuleLowering::number(const Computation& computation) {
  for (const Instruction& op : computation) {
    numbers_.emplace(&op, static_cast<uint32_t>(numbers_.size()));
    for (size_t i = 0; i < op.region_count(); ++i) number(op.region(i));
    if (const Computation* const body = decomposition_of(op)) number(*body);
  }
}

uint32_t ModuleLowering::number_of(const Instruction& op) const {
  const auto found = numbers_.find(&op);
  return found == numbers_.end() ? program::kNone : found->second;
}

// Refinement makes unknown sizes static: an array with an unknown size has no memory. Complex
// numbers are stored with one more dimension.
Status ModuleLowering::check_sizes(const Computation& computation) const {
  const auto check = [](const Instruction& op) -> Status {
    for (const Type& type : op.result_types()) {
      if (!type.is_tensor()) continue;
      if (!type.shape().is_static()) {
        return unsupported(op,
                           fmt::format("{} has dimensions that are not known", type.to_string()));
      }
      const size_t rank = memory_dims(type).size();
      if (rank > kernel::kMostRank) {
        return unsupported(op, fmt::format("an array of {} dimensions, of which kernels have at "
                                           "most {}",
                                           rank, kernel::kMostRank));
      }
    }
    return {};
  };
  for (size_t i = 0; i < computation.parameter_count(); ++i) {
    TENON_TRY(check(computation.parameter_instruction(i)));
  }
  for (const Instruction& op : computation) {
    TENON_TRY(check(op));
    for (size_t i = 0; i < op.region_count(); ++i) TENON_TRY(check_sizes(op.region(i)));
    if (op.code() == OpCode::kComposite) {
      const Computation* const body = module_.find_function(op.text(AttrKey::decomposition));
      if (body != nullptr) TENON_TRY(check_sizes(*body));
    }
  }
  return {};
}

Status ModuleLowering::parameters(const Computation& entry) {
  for (uint32_t i = 0; i < entry.parameter_count(); ++i) {
    const Type& type = entry.parameter(i).type();
    if (type.is_token()) continue;
    if (!type.is_tensor()) {
      return unsupported(entry.parameter_instruction(i),
                         fmt::format("a parameter of type {}", type.to_string()));
    }
    program::Buffer buffer;
    buffer.type = type.element_type();
    buffer.dims = type.dims();
    buffer.kind = BufferKind::kParameter;
    buffer.index = static_cast<uint32_t>(program_.parameters.size());
    const uint32_t index = buffer.index;
    program_.parameters.push_back(add_buffer(std::move(buffer)));
    place(entry.parameter(i)).buffer = program_.parameters.back();
    if (is_donated(entry, i)) program_.donated.push_back(index);
  }
  return {};
}

// Each result has its own memory: a temporary becomes the result, any other buffer is copied.
Status ModuleLowering::results(const Computation& entry) {
  const Instruction* end = entry.return_instruction();
  for (size_t i = 0; i < end->operand_count(); ++i) {
    if (end->operand_type(i).is_token()) continue;
    if (!end->operand_type(i).is_tensor()) {
      return unsupported(*end,
                         fmt::format("a result of type {}", end->operand_type(i).to_string()));
    }
    TENON_ASSIGN(BufferId id, buffer_of(end->operand(i)));
    const auto index = static_cast<uint32_t>(program_.results.size());
    const BufferId root = program_.root(id);
    if (program_.buffer(root).kind != BufferKind::kTemporary) {
      const BufferId own = new_buffer(memory_shape(end->operand_type(i)));
      copy(own, id, *end);
      id = own;
    }
    program::Buffer& memory = program_.buffers[program_.root(id)];
    memory.kind = BufferKind::kResult;
    memory.index = index;
    program_.results.push_back(id);
  }
  return {};
}

Result<program::Program> ModuleLowering::run(const Computation& entry) {
  program_.name = entry.name();
  number(entry);
  enter();
  TENON_TRY(check_sizes(entry));
  TENON_TRY(parameters(entry));
  TENON_TRY(instructions(entry));
  TENON_TRY(results(entry));
  if (tuning_.choose_flag(parameters::kInPlace, true)) coalesce_buffers(program_);
  assign_buffers(program_, options_.limits.alignment);
  program::find_dependencies(program_);
  TENON_TRY(program::validate_steps(program_));
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

}  // namespace tenon::hlo
