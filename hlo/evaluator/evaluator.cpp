#include "hlo/evaluator/evaluator.h"

#include <algorithm>

#include "hlo/builder/builder.h"
#include "hlo/decomposition/needs_decomposition.h"
#include "hlo/evaluator/ops/rules.h"
#include "hlo/evaluator/work.h"

namespace tenon::hlo {

/// An op's decomposition as a function of its operands.
struct Evaluator::Decomposition {
  Module module;
  Computation* function = nullptr;
  std::vector<Value> captured;  // parameters after the operands
};

Evaluator::Evaluator(const Module& module, EvaluatorOptions options)
    : module_(module), options_(std::move(options)) {
  Tensor state(ElementType::kU64, {2}, options_.wide);
  state.set(0, Scalar(static_cast<int64_t>(options_.rng_seed)));
  random_state_ = EvalValue::of(std::move(state));
}
Evaluator::~Evaluator() = default;

void Evaluator::forget(const Instruction& op) {
  decompositions_.erase(&op);
  for (size_t i = 0; i < op.region_count(); ++i) {
    for (const Instruction& inner : op.region(i)) forget(inner);
  }
}

const EvalValue* EvalFrame::find(Value value) const {
  for (const EvalFrame* frame = this; frame != nullptr; frame = frame->outer_) {
    const auto found = frame->values_.find(value.def);
    if (found != frame->values_.end()) return &found->second.results[value.index];
  }
  return nullptr;
}

std::optional<EvalValue> EvalFrame::take(Value value) {
  const auto found = values_.find(value.def);
  if (found == values_.end()) {
    const EvalValue* outside = find(value);
    return outside == nullptr ? std::nullopt : std::optional(*outside);
  }
  std::optional<EvalValue> taken = found->second.results[value.index];
  if (--found->second.uses_left == 0) values_.erase(found);
  return taken;
}

Result<Tensor> Evaluator::make_tensor(const Type& type) const {
  if (!type.is_tensor() || !type.shape().is_static()) {
    return invalid_argument("{} is not a static array type; give the sizes of dynamic dimensions",
                            type.to_string());
  }
  const auto unit = static_cast<int64_t>(storage_size(storage_of(type.element_type(), wide())));
  TENON_ASSIGN(const int64_t count, checked_element_count(type.dims(), unit));
  if (count > options_.max_array_bytes / unit) {
    return resource_exhausted("an array of {} needs more than the {} MiB allowed", type.to_string(),
                              options_.max_array_bytes >> 20);
  }
  return Tensor(type.element_type(), type.dims(), wide());
}

Evaluator::Values Evaluator::run(const Computation& function,
                                 const std::vector<EvalValue>& arguments) {
  if (arguments.size() != function.parameter_count()) {
    return invalid_argument("@{} takes {} arguments, {} given", function.name(),
                            function.parameter_count(), arguments.size());
  }
  return run_computation(function, arguments, nullptr);
}

Result<std::vector<Literal>> Evaluator::run(const Computation& function,
                                            const std::vector<Literal>& arguments) {
  std::vector<EvalValue> values;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (i < function.parameter_count()) {
      const Type& type = function.parameter(i).type();
      // A quantized argument is an array of its storage type.
      const Type given(arguments[i].shape());
      const bool fits = type.is_tensor() && compatible(Type(type.shape()), given);
      if (!fits) {
        return invalid_argument("argument {} of @{} is {}, expected {}", i, function.name(),
                                arguments[i].shape().to_string(), type.to_string());
      }
    }
    values.push_back(EvalValue::of(tensor_from_literal(arguments[i], wide())));
  }
  TENON_ASSIGN(const std::vector<EvalValue> results, run(function, values));
  std::vector<Literal> literals;
  for (const EvalValue& result : results) {
    if (result.tensor != nullptr) literals.push_back(literal_from_tensor(*result));
  }
  return literals;
}

Status Evaluator::tick() {
  ++executed_;
  if (options_.progress && executed_ % 64 == 0 && !options_.progress(executed_)) {
    return make_error(ErrorCode::kCancelled, "cancelled after {} instructions", executed_);
  }
  return {};
}

Status Evaluator::spend(const Instruction& op) {
  if (options_.max_work == 0) return {};
  work_ += work_of(op);
  if (work_ <= options_.max_work) return {};
  return resource_exhausted("the program takes more than {:.0f} operations", options_.max_work);
}

Evaluator::Values Evaluator::run_computation(const Computation& computation,
                                             const std::vector<EvalValue>& arguments,
                                             const EvalFrame* outer) {
  struct Depth {
    int& depth;
    ~Depth() { --depth; }
  } leave{depth_};
  if (++depth_ > options_.max_depth) {
    return resource_exhausted("calls and regions are nested deeper than {} levels",
                              options_.max_depth);
  }
  EvalFrame frame(outer);
  for (size_t i = 0; i < arguments.size(); ++i) {
    frame.set(computation.parameter(i).def, {arguments[i]});
  }
  for (const Instruction& op : computation) {
    std::vector<EvalValue> operands;
    operands.reserve(op.operand_count());
    for (size_t i = 0; i < op.operand_count(); ++i) {
      std::optional<EvalValue> value = frame.take(op.operand(i));
      if (!value) {
        return Error(Status(internal_error("{}: operand {} has no value", op.name(), i)));
      }
      operands.push_back(std::move(*value));
    }
    if (op.code() == OpCode::kReturn) return operands;
    auto results = evaluate(op, operands, frame);
    if (!results) return Error(std::move(results.error()).at(position_of(op.location())));
    frame.set(&op, std::move(*results));
    TENON_TRY(tick());
  }
  return internal_error("computation {} has no return", computation.name());
}

// In this order: quantized values by their expressed values, an elementwise op by its function on
// scalars, an op by its own function, a decomposable op by its decomposition.
Evaluator::Values Evaluator::evaluate(const Instruction& op, const std::vector<EvalValue>& operands,
                                      const EvalFrame& frame) {
  TENON_TRY(spend(op));
  const OpInfo& info = op.info();
  const EvalCall call = {*this, op, operands, frame};
  if (info.category == Category::kControl && info.evaluate != nullptr) return info.evaluate(call);
  for (const Type& type : op.result_types()) {
    if (type.is_tensor()) TENON_TRY(make_tensor(type));
  }
  if (decomposition::touches_quantized(op)) {
    if (op.region_count() != 0 && decomposition::needs_decomposition(op)) {
      return decomposed(op, operands, frame);
    }
    auto done = evaluate_quantized(*this, op, operands, frame);
    if (!done || !done->empty()) return done;
  }
  if (element_function(op, element_context(op, wide())) != nullptr) {
    return evaluate_elementwise(*this, op, operands);
  }
  if (info.evaluate != nullptr) return info.evaluate(call);
  if (info.is_decomposable()) return decomposed(op, operands, frame);
  return unimplemented("{} is not evaluated on {}", op.name(),
                       op.operand_count() != 0 ? op.operand_type(0).to_string() : "no operands");
}

// The decomposition is built once per instruction: a function whose parameters are the operands.
Evaluator::Values Evaluator::decomposed(const Instruction& op,
                                        const std::vector<EvalValue>& operands,
                                        const EvalFrame& frame) {
  std::unique_ptr<Decomposition>& decomposition = decompositions_[&op];
  if (decomposition == nullptr) {
    auto made = std::make_unique<Decomposition>();
    made->function = &made->module.add_function(std::string(op.name()));
    Cloner cloner;
    for (size_t i = 0; i < op.operand_count(); ++i) {
      cloner.map(op.operand(i), made->function->add_parameter(op.operand_type(i)));
    }
    made->captured = captured_values(op);
    for (const Value value : made->captured) {
      cloner.map(value, made->function->add_parameter(value.type()));
    }
    std::unique_ptr<Instruction> copy = cloner.clone(op);
    // If an operand occurs twice, there must still be two parameters.
    for (size_t i = 0; i < op.operand_count(); ++i)
      copy->set_operand(i, made->function->parameter(i));
    Builder builder(*made->function);
    builder.set_location(op.location());
    const bool random = op.code() == OpCode::kRng;
    std::vector<Type> result_types = op.result_types();
    if (random) {
      result_types.push_back(Type::tensor(ElementType::kU64, {2}));
      builder.set_random_state(made->function->add_parameter(result_types.back()));
    }
    auto results = decomposition::decompose(builder, *copy);
    if (!results) return Error(std::move(results.error()));
    if (random) results->push_back(builder.random_state());
    made->function->set_declared_result_types(std::move(result_types));
    TENON_TRY(builder.finish(*results));
    decomposition = std::move(made);
  }
  std::vector<EvalValue> arguments = operands;
  for (const Value value : decomposition->captured) {
    const EvalValue* captured = frame.find(value);
    if (captured == nullptr) {
      return internal_error("{}: a value that its region uses has no value", op.name());
    }
    arguments.push_back(*captured);
  }
  if (op.code() != OpCode::kRng) {
    return run_computation(*decomposition->function, arguments, nullptr);
  }
  arguments.push_back(random_state_);
  TENON_ASSIGN(auto values, run_computation(*decomposition->function, arguments, nullptr));
  random_state_ = std::move(values.back());
  values.pop_back();
  return values;
}

}  // namespace tenon::hlo
