// Rules of control flow, calls and structure.
#include <algorithm>

#include "hlo/inference/infer_util.h"

namespace tenon::hlo::infer {
namespace {

// The common type of branches: a dimension that is not known in both is unknown.
Type least_specific(const Type& a, const Type& b) {
  if (!a.is_tensor() || !b.is_tensor()) return a;
  std::vector<Dim> dims;
  for (int64_t d = 0; d < a.rank(); ++d) {
    const Dim x = dim_of(a, d);
    const Dim y = dim_of(b, d);
    dims.push_back(x.size == y.size && x.bound == y.bound ? x : Dim{});
  }
  return with_dims(a, dims);
}

struct BranchLabels {
  std::string_view inputs, same;
};

Types branch_types(const Instruction& op, const BranchLabels& labels) {
  std::vector<Type> types;
  for (size_t i = 0; i < op.region_count(); ++i) {
    TENON_TRY(check_parameter_count(op, i, labels.inputs, 0));
    TENON_ASSIGN(const std::vector<Type> results, region_results(op, i, labels.same));
    if (i == 0) {
      types = results;
      continue;
    }
    if (!all_compatible(types, results)) {
      return rule_error(op, labels.same, "branch 0 returns ({}), branch {} returns ({})",
                        types_to_string(types), i, types_to_string(results));
    }
    for (size_t k = 0; k < types.size(); ++k) types[k] = least_specific(types[k], results[k]);
  }
  for (size_t k = 0; k < types.size(); ++k) types[k] = settle(op, k, types[k]);
  return types;
}

// The function that `op` names; null if `op` is detached and so belongs to no Module.
Result<const Computation*> callee_of(const Instruction& op, AttrKey key, std::string_view label) {
  const Module* module = op.parent() != nullptr ? op.parent()->module() : nullptr;
  if (module == nullptr) return nullptr;
  const Computation* callee = module->find_function(op.text(key));
  if (callee == nullptr) {
    return rule_error(op, label, "@{} is not a function of the module", op.text(key));
  }
  return callee;
}

// Checks operands against the parameters of `callee`; returns its result types.
Types call_types(const Instruction& op, const Computation* callee, std::string_view inputs_label,
                 std::string_view results_label) {
  if (callee == nullptr) return op.result_types();
  std::vector<Type> operands;
  for (size_t i = 0; i < op.operand_count(); ++i) operands.push_back(op.operand_type(i));
  const std::vector<Type> inputs = callee->parameter_types();
  if (!std::equal(operands.begin(), operands.end(), inputs.begin(), inputs.end(), compatible)) {
    return rule_error(op, inputs_label, "operands are ({}), but @{} takes ({})",
                      types_to_string(operands), callee->name(), types_to_string(inputs));
  }
  std::vector<Type> results = callee->result_types();
  const std::vector<Type>& stated = op.result_types();
  if (!stated.empty() &&
      !std::equal(stated.begin(), stated.end(), results.begin(), results.end(), compatible)) {
    return rule_error(op, results_label, "results are ({}), but @{} gives ({})",
                      types_to_string(stated), callee->name(), types_to_string(results));
  }
  return results;
}

// Letters, digits and underscores, followed by at least one part after a dot.
bool is_namespaced_name(std::string_view name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto is_word = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; };
  if (name.empty() || !is_letter(name[0])) return false;
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos) return false;
  if (!std::all_of(name.begin(), name.begin() + static_cast<ptrdiff_t>(dot), is_word)) return false;
  char previous = ' ';
  for (char c : name.substr(dot)) {
    if (c == '.' ? previous == '.' : !is_word(c) && c != '$') return false;
    previous = c;
  }
  return previous != '.';
}

}  // namespace

Types if_op(const Instruction& op) {
  TENON_TRY(check_scalar(op, "I1", 0));
  if (type_class(op.operand_type(0)) != kTypesPred) {
    return rule_error(op, "I1", "pred is {}, expected pred[]", op.operand_type(0).to_string());
  }
  return branch_types(op, {"C1", "C2"});
}

Types case_op(const Instruction& op) {
  TENON_TRY(check_scalar(op, "I1", 0));
  const Type& index = op.operand_type(0);
  if (index.is_quantized() || index.element_type() != ElementType::kS32) {
    return rule_error(op, "I1", "index is {}, expected s32[]", index.to_string());
  }
  if (op.region_count() == 0) return rule_error(op, "C1", "there are no branches");
  return branch_types(op, {"C2", "C3"});
}

Types while_op(const Instruction& op) {
  std::vector<Type> types;
  for (size_t i = 0; i < op.operand_count(); ++i) types.push_back(op.operand_type(i));
  TENON_TRY(check_parameters(op, 0, "C1", types));
  TENON_ASSIGN(const std::vector<Type> condition, region_results(op, 0, "C1"));
  if (condition.size() != 1 || !(condition[0] == Type::tensor(ElementType::kPred, {}))) {
    return rule_error(op, "C1", "cond returns ({}), expected pred[]", types_to_string(condition));
  }
  TENON_TRY(check_parameters(op, 1, "C2", types));
  TENON_ASSIGN(const std::vector<Type> next, region_results(op, 1, "C2"));
  if (!all_compatible(next, types)) {
    return rule_error(op, "C2", "body returns ({}), expected ({})", types_to_string(next),
                      types_to_string(types));
  }
  for (size_t i = 0; i < types.size(); ++i) types[i] = settle(op, i, types[i]);
  return types;
}

Types call(const Instruction& op) {
  TENON_ASSIGN(const Computation* callee, callee_of(op, AttrKey::callee, ""));
  return call_types(op, callee, "", "");
}

Types composite(const Instruction& op) {
  if (!is_namespaced_name(op.text(AttrKey::name))) {
    return rule_error(op, "C1", "name is \"{}\", expected a namespace and a name such as \"my.op\"",
                      op.text(AttrKey::name));
  }
  TENON_ASSIGN(const Computation* decomposition, callee_of(op, AttrKey::decomposition, "C2"));
  return call_types(op, decomposition, "C3", "C4");
}

Types return_op(const Instruction& op) {
  const Computation* parent = op.parent();
  if (parent == nullptr || !parent->is_function()) return std::vector<Type>{};
  std::vector<Type> operands;
  for (size_t i = 0; i < op.operand_count(); ++i) operands.push_back(op.operand_type(i));
  const std::vector<Type> declared = parent->result_types();
  if (!std::equal(operands.begin(), operands.end(), declared.begin(), declared.end(), compatible)) {
    return rule_error(op, "", "returns ({}), but @{} is declared to give ({})",
                      types_to_string(operands), parent->name(), types_to_string(declared));
  }
  return std::vector<Type>{};
}

Types optimization_barrier(const Instruction& op) {
  std::vector<Type> types;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    types.push_back(settle(op, i, op.operand_type(i)));
  }
  return types;
}

Types tuple(const Instruction& op) {
  std::vector<Type> types;
  for (size_t i = 0; i < op.operand_count(); ++i) types.push_back(op.operand_type(i));
  return one(Type::tuple(std::move(types)));
}

Types get_tuple_element(const Instruction& op) {
  const Type& operand = op.operand_type(0);
  if (!operand.is_tuple()) {
    return rule_error(op, "I1", "operand is {}, expected a tuple", operand.to_string());
  }
  const int64_t index = op.integer(AttrKey::index);
  TENON_TRY(check_dimension(op, "C1", "index", index, length(operand.elements())));
  return one(operand.elements()[at(index)]);
}

Types parameter(const Instruction& op) { return op.result_types(); }

Types fusion(const Instruction& op) {
  std::vector<Type> types;
  for (size_t i = 0; i < op.operand_count(); ++i) types.push_back(op.operand_type(i));
  TENON_TRY(check_parameters(op, 0, "", types));
  return region_results(op, 0, "");
}

namespace {

Status check_layouts(const Instruction& op, AttrKey key, const std::vector<Type>& types) {
  const auto* layouts = op.attr<ArrayAttr>(key);
  if (layouts == nullptr) return {};
  const std::string_view name = attr_key_name(key);
  TENON_TRY(check_length(op, "", name, length(*layouts), length(types)));
  for (size_t i = 0; i < types.size(); ++i) {
    const auto* order = (*layouts)[i].get<I64s>();
    const bool has_shape = types[i].is_tensor() || types[i].kind() == TypeKind::kBuffer;
    const int64_t rank = has_shape ? types[i].rank() : 0;
    const bool is_order =
        length(*order) == rank && is_unique(*order) &&
        std::all_of(order->begin(), order->end(), [&](int64_t d) { return d >= 0 && d < rank; });
    if (!is_order) {
      return rule_error(op, "", "{} has {} for {}, expected its dimensions in some order", name,
                        list_to_string(*order), types[i].to_string());
    }
  }
  return {};
}

// The element of nested tuples at the path `indices`, or null.
const Type* tuple_part(const Type& type, const I64s& indices) {
  const Type* part = &type;
  for (int64_t index : indices) {
    if (!part->is_tuple() || index < 0 || index >= length(part->elements())) return nullptr;
    part = &part->elements()[at(index)];
  }
  return part;
}

Status check_aliases(const Instruction& op) {
  const auto* aliases = op.attr<ArrayAttr>(AttrKey::output_operand_aliases);
  if (aliases == nullptr || op.result_count() == 0) return {};
  const Type results = op.result_count() == 1 ? op.result_type() : Type::tuple(op.result_types());
  for (const Attribute& element : *aliases) {
    const auto& alias = *element.get<OutputOperandAlias>();
    TENON_TRY(check_dimension(op, "", "operand_index of output_operand_aliases",
                              alias.operand_index, static_cast<int64_t>(op.operand_count())));
    const Type* from =
        tuple_part(op.operand_type(at(alias.operand_index)), alias.operand_tuple_indices);
    const Type* to = tuple_part(results, alias.output_tuple_indices);
    if (from == nullptr || to == nullptr) {
      return rule_error(op, "", "output_operand_aliases leads out of a tuple");
    }
    if (!compatible(*from, *to)) {
      return rule_error(op, "", "output_operand_aliases joins {} of an operand and {} of a result",
                        from->to_string(), to->to_string());
    }
  }
  return {};
}

// Results of the functions that the tools of this project provide on every device.
Status check_tool_results(const Instruction& op, std::string_view target,
                          const std::vector<Type>& operands) {
  const std::vector<Type>& results = op.result_types();
  constexpr std::string_view kGiveNothing[] = {"check.expect_serialized_eq", "interpreter.print",
                                               "shape_assertion"};
  constexpr std::string_view kGiveWhetherEqual[] = {"check.eq", "check.expect_almost_eq",
                                                    "check.expect_close", "check.expect_eq"};
  const auto is_one_of = [&](std::span<const std::string_view> targets) {
    return std::find(targets.begin(), targets.end(), target) != targets.end();
  };
  if (is_one_of(kGiveNothing) && !results.empty()) {
    return rule_error(op, "", "@{} has {} results, expected none", target, results.size());
  }
  if (target == "interpreter.probe" && results != operands) {
    return rule_error(op, "", "results of @{} are ({}), expected ({}), the operands", target,
                      types_to_string(results), types_to_string(operands));
  }
  if (!is_one_of(kGiveWhetherEqual)) return {};
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].is_tensor() && type_class(results[i]) == kTypesPred) continue;
    return rule_error(op, "", "result {} of @{} is {}, expected a tensor of pred", i, target,
                      results[i].to_string());
  }
  return {};
}

}  // namespace

Types custom_call(const Instruction& op) {
  std::vector<Type> operands;
  for (size_t i = 0; i < op.operand_count(); ++i) operands.push_back(op.operand_type(i));
  const bool is_one_tuple = op.result_count() == 1 && op.result_type().is_tuple();
  const std::vector<Type>& results = is_one_tuple ? op.result_type().elements() : op.result_types();
  // Layouts of operands and results must occur together; if either list is empty it is dropped.
  const bool has_operand_layouts = op.attribute(AttrKey::operand_layouts) != nullptr;
  const bool has_result_layouts = op.attribute(AttrKey::result_layouts) != nullptr;
  if (has_operand_layouts != has_result_layouts && !operands.empty() && !results.empty()) {
    return rule_error(op, "",
                      "{} alone have layouts, expected both operands and results or neither",
                      has_operand_layouts ? "operands" : "results");
  }
  TENON_TRY(check_layouts(op, AttrKey::operand_layouts, operands));
  TENON_TRY(check_layouts(op, AttrKey::result_layouts, results));
  TENON_TRY(check_aliases(op));
  // Only the typed interface takes a dictionary. Ops of check and interpreter, which import turns
  // into calls, have their attributes in one.
  const bool is_typed =
      op.enumeration<CustomCallApiVersion>(AttrKey::api_version) == CustomCallApiVersion::kTypedFfi;
  const std::string_view target = op.text(AttrKey::call_target_name);
  TENON_TRY(check_tool_results(op, target, operands));
  const bool is_dialect_op = target.starts_with("check.") || target.starts_with("interpreter.");
  const Attribute* config = op.attribute(AttrKey::backend_config);
  if (config == nullptr || is_dialect_op) return op.result_types();
  if (is_typed ? config->get<Dict>() == nullptr : config->get<std::string>() == nullptr) {
    return rule_error(op, "", "backend_config is not a {}, as this api_version requires",
                      is_typed ? "dictionary" : "string");
  }
  return op.result_types();
}

}  // namespace tenon::hlo::infer
