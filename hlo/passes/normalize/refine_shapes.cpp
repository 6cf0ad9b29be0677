#include "hlo/passes/normalize/refine_shapes.h"

#include <algorithm>
#include <unordered_map>

#include "hlo/evaluator/evaluator.h"
#include "hlo/inference/infer_util.h"
#include "hlo/ir/inline.h"
#include "hlo/verify/verify.h"

namespace tenon::hlo {
namespace {

// Values that determine shapes are short lists; longer ones are not tracked.
constexpr int64_t kMaxTrackedElements = 1024;

bool is_dynamic_type(const Type& type) { return type.is_tensor() && !type.shape().is_static(); }

bool any_dynamic(const Computation& computation) {
  for (size_t i = 0; i < computation.parameter_count(); ++i) {
    if (is_dynamic_type(computation.parameter(i).type())) return true;
  }
  return any_instruction(computation, [](const Instruction& op) {
    return std::any_of(op.result_types().begin(), op.result_types().end(), is_dynamic_type);
  });
}

class Refiner {
 public:
  explicit Refiner(Module& module) : module_(module), evaluator_(module) {}

  Status run(Computation& entry, const ArgumentKnowledge& known);

 private:
  struct Hash {
    size_t operator()(const std::pair<const Instruction*, uint32_t>& key) const {
      return std::hash<const void*>()(key.first) * 31 + key.second;
    }
  };

  Status refine_parameters(Computation& entry, const ArgumentKnowledge& known);
  Status refine_computation(Computation& computation);
  Result<Instruction*> refine_op(Instruction* op);
  Status refine_regions(Instruction& op);
  Result<std::vector<Type>> refined_types(Instruction& op);
  Result<std::vector<Type>> reshape_types(const Instruction& op);
  std::unique_ptr<Instruction> static_form(const Instruction& op);
  Status track(Instruction& op);
  Instruction* replace_by_constant(Instruction* op);
  std::optional<I64s> known_list(Value value) const;
  const EvalValue* known_value(Value value) const;

  Module& module_;
  Evaluator evaluator_;
  std::unordered_map<std::pair<const Instruction*, uint32_t>, EvalValue, Hash> known_;
};

const EvalValue* Refiner::known_value(Value value) const {
  const auto found = known_.find({value.def, value.index});
  return found == known_.end() ? nullptr : &found->second;
}

std::optional<I64s> Refiner::known_list(Value value) const {
  const EvalValue* known = known_value(value);
  if (known == nullptr) return std::nullopt;
  I64s list;
  for (int64_t i = 0; i < (*known)->count(); ++i) list.push_back((*known)->integer(i));
  return list;
}

Status Refiner::run(Computation& entry, const ArgumentKnowledge& known) {
  TENON_TRY(inline_calls(entry));
  erase_unreachable_functions(module_, &entry);
  TENON_TRY(refine_parameters(entry, known));
  TENON_TRY(refine_computation(entry));
  std::vector<Type> results;
  const Instruction* end = entry.return_instruction();
  for (size_t i = 0; i < end->operand_count(); ++i) results.push_back(end->operand_type(i));
  entry.set_declared_result_types(std::move(results));
  return {};
}

Status Refiner::refine_parameters(Computation& entry, const ArgumentKnowledge& known) {
  for (size_t i = 0; i < entry.parameter_count(); ++i) {
    Instruction& parameter = entry.parameter_instruction(i);
    const Type type = parameter.result_type();
    const auto shape = known.shapes.find(i);
    if (shape != known.shapes.end()) {
      const Type given = type.with_dims(shape->second);
      if (!type.is_tensor() || !compatible(type, given)) {
        return invalid_argument("parameter {} of @{} is {}; it cannot have the sizes {}", i,
                                entry.name(), type.to_string(), dims_to_string(shape->second, "x"));
      }
      parameter.set_result_type(0, given);
    } else if (is_dynamic_type(type)) {
      return invalid_argument("parameter {} of @{} is {}: give its sizes, as --shape {}=2x3", i,
                              entry.name(), type.to_string(), i);
    }
    const auto value = known.values.find(i);
    if (value != known.values.end() && is_integer(value->second.element_type()) &&
        value->second.element_count() <= kMaxTrackedElements) {
      known_[{&parameter, 0}] = EvalValue::of(tensor_from_literal(value->second, false));
    }
  }
  return {};
}

Status Refiner::refine_computation(Computation& computation) {
  for (Instruction* op = computation.first(); op != nullptr;) {
    TENON_ASSIGN(op, refine_op(op));
    TENON_TRY(track(*op));
    op = replace_by_constant(op)->next();
  }
  return {};
}

// Returns `op`, or the static op that replaced it.
Result<Instruction*> Refiner::refine_op(Instruction* op) {
  if (std::unique_ptr<Instruction> form = static_form(*op)) {
    auto types = infer_types(*form);
    if (!types) return Error(std::move(types.error()));
    form->set_result_types(std::move(*types));
    form->mutable_discardable() = op->discardable();
    Computation& parent = *op->parent();
    Instruction* placed = parent.insert(std::move(form), op);
    op->replace_all_uses(placed->results());
    parent.erase(op);
    op = placed;
  }
  TENON_TRY(refine_regions(*op));
  TENON_ASSIGN(std::vector<Type> types, refined_types(*op));
  for (size_t i = 0; i < types.size(); ++i) {
    if (is_dynamic_type(types[i])) {
      return invalid_argument(
                 "{}: the result {} does not follow from the argument shapes; give the "
                 "value of the integer arguments that it depends on with --arg",
                 op->name(), types[i].to_string())
          .at(position_of(op->location()));
    }
  }
  op->set_result_types(std::move(types));
  return op;
}

Status Refiner::refine_regions(Instruction& op) {
  if (op.code() == OpCode::kWhile) {
    for (size_t r = 0; r < 2; ++r) {
      for (size_t i = 0; i < op.operand_count(); ++i) {
        op.region(r).parameter_instruction(i).set_result_type(0, op.operand_type(i));
      }
    }
  }
  for (size_t i = 0; i < op.region_count(); ++i) TENON_TRY(refine_computation(op.region(i)));
  return {};
}

// The static form of a dynamic op with known amounts, without result types.
std::unique_ptr<Instruction> Refiner::static_form(const Instruction& op) {
  const auto make = [&](OpCode code, const std::vector<Value>& operands) {
    auto form = std::make_unique<Instruction>(code, operands, std::vector<Type>{});
    for (const auto& [key, value] : op.attributes()) {
      if (form->info().find_attribute(key) != nullptr) form->mutable_attributes().set(key, value);
    }
    form->set_location(op.location());
    return form;
  };
  const auto list = [&](size_t operand) { return known_list(op.operand(operand)); };
  switch (op.code()) {
    case OpCode::kDynamicIota:
    case OpCode::kDynamicReshape:
    case OpCode::kDynamicBroadcastInDim: {
      auto dims = list(op.operand_count() - 1);
      if (!dims) return nullptr;
      // A tracked value is a size, never the marker of an unknown size.
      for (int64_t& dim : *dims) dim = std::max<int64_t>(dim, -1);
      const bool iota = op.code() == OpCode::kDynamicIota;
      auto form = make(iota                                   ? OpCode::kIota
                       : op.code() == OpCode::kDynamicReshape ? OpCode::kReshape
                                                              : OpCode::kBroadcastInDim,
                       iota ? std::vector<Value>{} : std::vector<Value>{op.operand(0)});
      form->set_result_types({op.result_type().with_dims(*dims)});
      return form;
    }
    case OpCode::kDynamicPad: {
      const auto low = list(2);
      const auto high = list(3);
      const auto interior = list(4);
      if (!low || !high || !interior) return nullptr;
      auto form = make(OpCode::kPad, {op.operand(0), op.operand(1)});
      form->mutable_attributes().set(AttrKey::edge_padding_low, *low);
      form->mutable_attributes().set(AttrKey::edge_padding_high, *high);
      form->mutable_attributes().set(AttrKey::interior_padding, *interior);
      return form;
    }
    case OpCode::kRealDynamicSlice: {
      const auto start = list(1);
      const auto limit = list(2);
      const auto strides = list(3);
      if (!start || !limit || !strides) return nullptr;
      auto form = make(OpCode::kSlice, {op.operand(0)});
      form->mutable_attributes().set(AttrKey::start_indices, *start);
      form->mutable_attributes().set(AttrKey::limit_indices, *limit);
      form->mutable_attributes().set(AttrKey::strides, *strides);
      return form;
    }
    case OpCode::kSetDimensionSize: {
      // With a known size the result is the array truncated to that size: no hidden elements
      // remain.
      const auto size = list(1);
      const Type& array = op.operand_type(0);
      if (!size || is_dynamic_type(array)) return nullptr;
      auto form = make(OpCode::kSlice, {op.operand(0)});
      I64s limit = array.dims();
      limit[static_cast<size_t>(op.integer(AttrKey::dimension))] = size->front();
      form->mutable_attributes().set(AttrKey::start_indices, I64s(limit.size(), 0));
      form->mutable_attributes().set(AttrKey::limit_indices, std::move(limit));
      form->mutable_attributes().set(AttrKey::strides, I64s(array.dims().size(), 1));
      return form;
    }
    case OpCode::kDynamicGather: {
      const auto sizes = list(2);
      if (!sizes) return nullptr;
      auto form = make(OpCode::kGather, {op.operand(0), op.operand(1)});
      form->mutable_attributes().set(AttrKey::slice_sizes, *sizes);
      return form;
    }
    case OpCode::kDynamicConv: {
      const auto padding = list(2);
      if (!padding) return nullptr;
      auto form = make(OpCode::kConvolution, {op.operand(0), op.operand(1)});
      const auto rows = static_cast<int64_t>(padding->size() / 2);
      form->mutable_attributes().set(AttrKey::padding, Attribute(I64Matrix{rows, 2, *padding}));
      // One stride too many is accepted for dynamic_conv (hlo/inference/rules/convolution.cpp).
      if (const auto* strides = op.attr<I64s>(AttrKey::window_strides);
          strides != nullptr && static_cast<int64_t>(strides->size()) > rows) {
        form->mutable_attributes().set(AttrKey::window_strides,
                                       I64s(strides->begin(), strides->begin() + rows));
      }
      canonicalize_attributes(*form);
      return form;
    }
    default:
      return nullptr;
  }
}

Result<std::vector<Type>> Refiner::reshape_types(const Instruction& op) {
  const Type& operand = op.operand_type(0);
  Dims dims = op.result_type().dims();
  const auto unknown = std::count(dims.begin(), dims.end(), kDynamic);
  if (unknown == 1 && operand.shape().is_static()) {
    Dims known = dims;
    std::erase(known, kDynamic);
    TENON_ASSIGN(const int64_t rest, checked_element_count(known));
    TENON_ASSIGN(const int64_t count, checked_element_count(operand.dims()));
    if (rest != 0) *std::find(dims.begin(), dims.end(), kDynamic) = count / rest;
  }
  return std::vector<Type>{op.result_type().with_dims(std::move(dims))};
}

Result<std::vector<Type>> Refiner::refined_types(Instruction& op) {
  std::vector<Type> stated = op.result_types();
  if (op.code() == OpCode::kWhile || op.code() == OpCode::kOptimizationBarrier) {
    std::vector<Type> types;
    for (size_t i = 0; i < op.operand_count(); ++i) types.push_back(op.operand_type(i));
    return types;
  }
  if (op.code() == OpCode::kIf || op.code() == OpCode::kCase) return op.region(0).result_types();
  if (std::none_of(stated.begin(), stated.end(), is_dynamic_type)) return stated;
  switch (op.code()) {
    case OpCode::kReshape:
    case OpCode::kDynamicReshape:
      return reshape_types(op);
    case OpCode::kConvert:
    case OpCode::kUniformQuantize:
    case OpCode::kUniformDequantize:
    case OpCode::kReducePrecision:
      return std::vector<Type>{stated[0].with_dims(op.operand_type(0).dims())};
    case OpCode::kBitcastConvert: {
      Dims dims = stated[0].dims();
      for (size_t i = 0; i < dims.size() && i < op.operand_type(0).dims().size(); ++i) {
        if (dims[i] == kDynamic) dims[i] = op.operand_type(0).dims()[i];
      }
      return std::vector<Type>{stated[0].with_dims(std::move(dims))};
    }
    case OpCode::kCustomCall:
    case OpCode::kComposite:
    case OpCode::kBroadcastInDim:
    case OpCode::kDynamicIota:
    case OpCode::kDynamicBroadcastInDim:
      return stated;
    default:
      break;
  }
  // Applies the shape rule without the stated types; dimensions that it leaves open stay as stated.
  op.set_result_types({});
  auto types = infer_types(op);
  op.set_result_types(stated);
  if (!types) {
    op.set_result_types(stated);
    return Error(std::move(types.error()));
  }
  for (size_t i = 0; i < types->size() && i < stated.size(); ++i) {
    Type& type = (*types)[i];
    // Element types that operands do not determine are the stated ones: for dot_general, and the
    // scales of quantized types.
    if (type.is_tensor() && !infer::identical_element(type, stated[i])) {
      type = infer::with_dims(stated[i], infer::dims_of(type));
    }
  }
  return types;
}

// Computes `op` if it is a small integer computation on known values.
Status Refiner::track(Instruction& op) {
  if (op.code() == OpCode::kGetDimensionSize) {
    const auto axis = static_cast<size_t>(op.integer(AttrKey::dimension));
    const int64_t size = op.operand_type(0).dims()[axis];
    if (size == kDynamic) return {};
    Tensor value(op.result_type().element_type(), {}, false);
    value.set(0, Scalar(size));
    known_[{&op, 0}] = EvalValue::of(std::move(value));
    return {};
  }
  if (op.region_count() != 0 || op.result_count() != 1 || op.has_side_effect() ||
      op.info().category == Category::kCommunication || op.info().category == Category::kRandom) {
    return {};
  }
  const Type& type = op.result_type();
  if (!type.is_tensor() || type.is_quantized() || !type.shape().is_static() ||
      !(is_integer(type.element_type()) || is_pred(type.element_type())) ||
      type.shape().element_count() > kMaxTrackedElements) {
    return {};
  }
  if (op.code() == OpCode::kCustomCall || op.code() == OpCode::kComposite) return {};
  std::vector<EvalValue> operands;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const EvalValue* known = known_value(op.operand(i));
    if (known == nullptr) return {};
    operands.push_back(*known);
  }
  const EvalFrame frame(nullptr);
  TENON_ASSIGN(const std::vector<EvalValue> results, evaluator_.evaluate(op, operands, frame));
  evaluator_.forget(op);
  known_[{&op, 0}] = results[0];
  return {};
}

// Replaces an op whose value is known by that constant. Returns the replacement.
Instruction* Refiner::replace_by_constant(Instruction* op) {
  const auto known = known_.find({op, 0});
  if (known == known_.end() || op->code() == OpCode::kConstant) return op;
  auto constant =
      std::make_unique<Instruction>(OpCode::kConstant, std::vector<Value>{}, op->result_types());
  constant->mutable_attributes().set(AttrKey::value,
                                     Attribute(DenseAttr::of(literal_from_tensor(*known->second))));
  constant->set_location(op->location());
  Computation& parent = *op->parent();
  Instruction* placed = parent.insert(std::move(constant), op);
  known_[{placed, 0}] = known->second;
  op->replace_uses(0, placed->result());
  known_.erase({op, 0});
  parent.erase(op);
  return placed;
}

}  // namespace

bool is_dynamic(const Module& module) {
  return std::any_of(module.functions().begin(), module.functions().end(),
                     [](const auto& function) { return any_dynamic(*function); });
}

Result<std::unique_ptr<Module>> refine(const Module& module, const ArgumentKnowledge& known) {
  std::unique_ptr<Module> refined = module.clone();
  Computation* entry = known.entry.empty() ? refined->entry() : refined->find_function(known.entry);
  if (entry == nullptr || entry->is_declaration()) {
    return invalid_argument("there is no entry function to refine");
  }
  for (const auto& [index, dims] : known.shapes) {
    if (index >= entry->parameter_count()) {
      return invalid_argument("there is no parameter {}; @{} has {}", index, entry->name(),
                              entry->parameter_count());
    }
    TENON_TRY(checked_element_count(dims));
  }
  Status status = Refiner(*refined).run(*entry, known);
  if (!status.ok()) return Error(std::move(status).in_stage("refine"));
  Status verified = verify(*refined);
  if (!verified.ok()) return Error(std::move(verified).in_stage("refine"));
  return refined;
}

}  // namespace tenon::hlo
