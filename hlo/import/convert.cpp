// Converts a RawModule to a Module.
#include "hlo/artifact/artifact.h"
#include "hlo/import/import.h"
#include "hlo/import/sharding.h"
#include "hlo/ops/attribute_kinds.h"
#include "hlo/ops/mhlo_names.h"
#include "hlo/proto/proto.h"
#include "hlo/text/parse.h"
#include "hlo/verify/verify.h"

namespace tenon::hlo {
namespace {

class ModuleBuilder {
 public:
  explicit ModuleBuilder(const RawModule& raw) : raw_(raw), values_(raw.value_types.size()) {}

  Result<std::unique_ptr<Module>> build();

 private:
  Status declare_function(const RawOp& op);
  Status check_body_arguments(const RawOp& op, const Computation& function) const;
  Status convert_region(const RawRegion& raw, Computation& into);
  Status convert_ops(const std::vector<RawOp>& ops, Computation& into);
  Status convert_op(const RawOp& raw, Computation& into);
  Status convert_known(OpCode code, const RawOp& raw, Computation& into);
  Status convert_mhlo_call(std::string_view target, const RawOp& raw, Computation& into);
  Status convert_attribute(const std::string& key, const Attribute& value, Instruction& op);
  Status convert_foreign(const RawOp& raw, Computation& into);
  Status convert_check(const RawOp& raw, Computation& into);
  Status convert_tool_call(const RawOp& raw, Dict config, Computation& into);
  Status convert_manual_computation(const RawOp& raw, Computation& into);
  Status alias_operand(const RawOp& raw);
  Status check_sharding(const RawOp& op, std::string_view what, const Dict& attributes) const {
    return shardings_.check(what, attributes).at(position_of(op.location));
  }
  bool is_sharding_call(const RawOp& raw) const;
  Result<std::vector<Value>> operands_of(const RawOp& raw) const;

  const RawModule& raw_;
  std::vector<Value> values_;
  std::unique_ptr<Module> module_;
  Shardings shardings_;
};

Error error_at(const RawOp& op, Error error) {
  return std::move(error).at(position_of(op.location));
}

template <class T>
const T* raw_attr(const RawOp& op, std::string_view key) {
  const Attribute* found = find(op.attributes, key);
  return found ? found->get<T>() : nullptr;
}

// Whether a func.func is a declaration. The generic form writes a declaration as a function with an
// empty region.
bool is_declaration(const RawOp& op) {
  return op.regions.empty() || (op.regions[0].ops.empty() && op.regions[0].arguments.empty());
}

std::vector<Dict> dicts_of(const RawOp& op, std::string_view key) {
  std::vector<Dict> out;
  const auto* array = raw_attr<ArrayAttr>(op, key);
  if (array == nullptr) return out;
  bool any = false;
  for (const Attribute& element : *array) {
    const auto* dict = element.get<Dict>();
    out.push_back(dict ? canonical_undeclared(*dict) : Dict{});
    any |= !out.back().empty();
  }
  if (!any) out.clear();
  return out;
}

Result<std::unique_ptr<Module>> ModuleBuilder::build() {
  module_ = std::make_unique<Module>();
  if (raw_.module.name != "builtin.module" || raw_.module.regions.size() != 1) {
    return Error(
        error_at(raw_.module, invalid_argument("expected a module, found {}", raw_.module.name)));
  }
  for (const auto& [key, value] : raw_.module.attributes) {
    if (key == "sym_name") {
      if (const auto* name = value.get<std::string>()) module_->set_name(*name);
    } else {
      insert(module_->attributes(), key, canonical_undeclared(value));
    }
  }
  const std::vector<RawOp>& ops = raw_.module.regions[0].ops;
  for (const RawOp& op : ops) {
    if (op.name == "sdy.mesh") shardings_.add_mesh(op);
  }
  for (const RawOp& op : ops) {
    if (op.name == "func.func") {
      TENON_TRY(declare_function(op));
    } else if (op.name != "sdy.mesh") {
      return error_at(op, invalid_argument("{} stands outside a function", op.name));
    }
  }
  size_t next = 0;
  for (const RawOp& op : ops) {
    if (op.name != "func.func") continue;
    Computation& function = *module_->functions()[next++];
    if (is_declaration(op)) continue;
    const RawRegion& body = op.regions[0];
    for (size_t i = 0; i < body.arguments.size(); ++i) {
      values_[body.arguments[i]] = function.parameter(i);
      if (i < body.argument_locations.size()) {
        function.parameter(i).def->set_location(body.argument_locations[i]);
      }
    }
    TENON_TRY(convert_ops(body.ops, function));
    if (function.return_instruction() == nullptr) {
      return error_at(op, invalid_argument("function @{} does not end in return", function.name()));
    }
  }
  TENON_TRY(verify(*module_));
  return std::move(module_);
}

Status ModuleBuilder::declare_function(const RawOp& op) {
  const auto* name = raw_attr<std::string>(op, "sym_name");
  const auto* type = raw_attr<Type>(op, "function_type");
  if (name == nullptr || type == nullptr || type->kind() != TypeKind::kFunction) {
    return error_at(op, invalid_argument("func.func: sym_name or function_type is missing"));
  }
  if (module_->find_function(*name) != nullptr) {
    return error_at(op, invalid_argument("function @{} is defined twice", *name));
  }
  Computation& function = module_->add_function(*name);
  function.set_location(op.location);
  function.set_declared_result_types(type->function_results());
  function.parameter_attributes() = dicts_of(op, "arg_attrs");
  function.result_attributes() = dicts_of(op, "res_attrs");
  if (const auto* visibility = raw_attr<std::string>(op, "sym_visibility")) {
    if (*visibility != "public" && *visibility != "private" && *visibility != "nested") {
      return error_at(op, invalid_argument("func.func: visibility '{}' is neither public, private "
                                           "nor nested",
                                           *visibility));
    }
    function.set_visibility(*visibility);
  }
  for (const Type& input : type->elements()) function.add_parameter(input, op.location);
  TENON_TRY(check_body_arguments(op, function));
  const auto fits = [](size_t attributes, size_t values) {
    return attributes == 0 || attributes == values;
  };
  if (!fits(function.parameter_attributes().size(), type->elements().size()) ||
      !fits(function.result_attributes().size(), type->function_results().size())) {
    return error_at(op, invalid_argument("function @{}: arg_attrs and res_attrs have {} and {} "
                                         "entries for {} arguments and {} results",
                                         *name, function.parameter_attributes().size(),
                                         function.result_attributes().size(),
                                         type->elements().size(), type->function_results().size()));
  }
  for (size_t i = 0; i < function.parameter_attributes().size(); ++i) {
    TENON_TRY(check_sharding(op, fmt::format("argument {} of @{}", i, *name),
                             function.parameter_attributes()[i]));
  }
  for (size_t i = 0; i < function.result_attributes().size(); ++i) {
    TENON_TRY(check_sharding(op, fmt::format("result {} of @{}", i, *name),
                             function.result_attributes()[i]));
  }
  for (const auto& [key, value] : op.attributes) {
    if (key != "sym_name" && key != "function_type" && key != "sym_visibility" &&
        key != "arg_attrs" && key != "res_attrs") {
      insert(function.attributes(), key, canonical_undeclared(value));
    }
  }
  return {};
}

// The generic form and artifacts state the arguments twice: in the function's type and in its body.
Status ModuleBuilder::check_body_arguments(const RawOp& op, const Computation& function) const {
  if (is_declaration(op)) return {};
  const std::vector<RawValue>& arguments = op.regions[0].arguments;
  if (arguments.size() != function.parameter_count()) {
    return error_at(op,
                    invalid_argument("function @{} has {} arguments, its type {}", function.name(),
                                     arguments.size(), function.parameter_count()));
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Type& found = raw_.value_types[arguments[i]];
    if (found == function.parameter(i).type()) continue;
    return error_at(op, invalid_argument("argument {} of function @{} is {}, in its type {}", i,
                                         function.name(), found.to_string(),
                                         function.parameter(i).type().to_string()));
  }
  return {};
}

Status ModuleBuilder::convert_region(const RawRegion& raw, Computation& into) {
  for (size_t i = 0; i < raw.arguments.size(); ++i) {
    const RawValue argument = raw.arguments[i];
    values_[argument] =
        into.add_parameter(raw_.value_types[argument],
                           i < raw.argument_locations.size() ? raw.argument_locations[i] : nullptr);
  }
  return convert_ops(raw.ops, into);
}

Status ModuleBuilder::convert_ops(const std::vector<RawOp>& ops, Computation& into) {
  for (const RawOp& op : ops) TENON_TRY(convert_op(op, into));
  return {};
}

Status ModuleBuilder::convert_op(const RawOp& raw, Computation& into) {
  const auto code = op_from_name(raw.name);
  if (!code || *code == OpCode::kParameter) return convert_foreign(raw, into);
  if (*code == OpCode::kCustomCall && is_sharding_call(raw)) {
    TENON_TRY(check_sharding(
        raw, fmt::format("custom_call @{}", *raw_attr<std::string>(raw, "call_target_name")),
        raw.attributes));
    return alias_operand(raw);
  }
  if (*code == OpCode::kCustomCall) {
    const auto* target = raw_attr<std::string>(raw, "call_target_name");
    if (target != nullptr && (target->starts_with("mhlo.") || unary_of_mhlo(*target)))
      return convert_mhlo_call(*target, raw, into);
  }
  return convert_known(*code, raw, into);
}

// Custom calls that stand for ops of XLA's own dialect. Others of its name stay custom calls.
Status ModuleBuilder::convert_mhlo_call(std::string_view target, const RawOp& raw,
                                        Computation& into) {
  RawOp op;
  op.operands = raw.operands;
  op.results = raw.results;
  op.location = raw.location;
  if (target == kMhloCopy) return alias_operand(raw);
  if (const auto ours = unary_of_mhlo(target)) {
    op.name = *ours;
    return convert_known(*op_from_name(*ours), op, into);
  }
  if (target != kMhloTopK) return convert_known(OpCode::kCustomCall, raw, into);
  const auto* config = raw_attr<Dict>(raw, "mhlo.attributes");
  const Attribute* k = config == nullptr ? nullptr : find(*config, "k");
  const Attribute* largest = config == nullptr ? nullptr : find(*config, "largest");
  const bool* is_largest = largest == nullptr ? nullptr : largest->get<bool>();
  if (k == nullptr || (is_largest != nullptr && !*is_largest)) {
    return error_at(raw,
                    unimplemented("custom_call @mhlo.topk without k, or of the least elements"));
  }
  op.name = "chlo.top_k";
  insert(op.attributes, "k", *k);
  return convert_known(OpCode::kChloTopK, op, into);
}

// Calls that only state a sharding, a placement or a requested layout; they are identities on one
// device.
bool ModuleBuilder::is_sharding_call(const RawOp& raw) const {
  const auto* target = raw_attr<std::string>(raw, "call_target_name");
  if (target == nullptr || raw.operands.size() != 1 || raw.results.size() != 1) return false;
  return *target == "Sharding" || *target == "SPMDFullToShardShape" ||
         *target == "SPMDShardToFullShape" || *target == "xla.sdy.FuncResultSharding" ||
         *target == "annotate_device_placement" || *target == "LayoutConstraint";
}

Status ModuleBuilder::alias_operand(const RawOp& raw) {
  if (raw.operands.size() != 1 || raw.results.size() != 1) {
    return error_at(raw, invalid_argument("{}: expected one operand and one result", raw.name));
  }
  TENON_ASSIGN(const std::vector<Value> operands, operands_of(raw));
  const Type& result = raw_.value_types[raw.results[0]];
  if (!(operands[0].type() == result)) {
    return error_at(raw, unimplemented("{}: an identity from {} to {} needs partitioning", raw.name,
                                       operands[0].type().to_string(), result.to_string()));
  }
  values_[raw.results[0]] = operands[0];
  return {};
}

Result<std::vector<Value>> ModuleBuilder::operands_of(const RawOp& raw) const {
  std::vector<Value> operands;
  operands.reserve(raw.operands.size());
  for (const RawValue operand : raw.operands) {
    if (!values_[operand]) {
      return error_at(raw,
                      invalid_argument("{}: an operand is used before its definition", raw.name));
    }
    operands.push_back(values_[operand]);
  }
  return operands;
}

Status ModuleBuilder::convert_known(OpCode code, const RawOp& raw, Computation& into) {
  TENON_ASSIGN(std::vector<Value> operands, operands_of(raw));
  std::vector<Type> types;
  types.reserve(raw.results.size());
  for (const RawValue result : raw.results) types.push_back(raw_.value_types[result]);
  auto op = std::make_unique<Instruction>(code, std::move(operands), std::move(types));
  op->set_location(raw.location);
  for (const auto& [key, value] : raw.attributes) {
    Status status = convert_attribute(key, value, *op);
    if (!status.ok()) {
      return std::move(status).with_context(raw.name).at(position_of(raw.location));
    }
  }
  TENON_TRY(check_sharding(raw, raw.name, op->discardable()));
  // A called region may use the enclosing values, so the op is inserted first.
  Instruction* placed = into.insert(std::move(op));
  for (const RawRegion& region : raw.regions) {
    TENON_TRY(convert_region(region, placed->add_region()));
  }
  canonicalize_attributes(*placed);
  for (uint32_t i = 0; i < raw.results.size(); ++i) values_[raw.results[i]] = placed->result(i);
  return {};
}

Status ModuleBuilder::convert_attribute(const std::string& key, const Attribute& value,
                                        Instruction& op) {
  const auto attr_key = attr_key_from_name(key);
  const AttrSpec* spec = attr_key ? op.info().find_attribute(*attr_key) : nullptr;
  if (spec == nullptr) {
    // Segment sizes repeat information that the operands have.
    if (key == "operandSegmentSizes" || key == "operand_segment_sizes" ||
        key == "resultSegmentSizes" || key == "result_segment_sizes") {
      return {};
    }
    insert(op.mutable_discardable(), key, canonical_undeclared(value));
    return {};
  }
  TENON_ASSIGN(Attribute canonical, canonical_attribute(*spec, value));
  op.mutable_attributes().set(*attr_key, std::move(canonical));
  return {};
}

// --- Ops of other dialects

Status ModuleBuilder::convert_foreign(const RawOp& raw, Computation& into) {
  const std::string& name = raw.name;
  if (name == "builtin.unrealized_conversion_cast" || name == kMhloCopy) return alias_operand(raw);
  if (unary_of_mhlo(name)) return convert_mhlo_call(name, raw, into);
  if (name == "sdy.sharding_constraint" || name == "sdy.reshard") {
    if (const auto* text = raw_attr<OpaqueAttr>(raw, "sharding")) {
      Status status = shardings_.check_sdy(name, text->text);
      if (!status.ok()) return std::move(status).at(position_of(raw.location));
    }
    return alias_operand(raw);
  }
  if (name == "sdy.propagation_barrier") return alias_operand(raw);
  if (name == "sdy.sharding_group") return {};
  if (name == "sdy.manual_computation") return convert_manual_computation(raw, into);
  if (name.starts_with("check.")) return convert_check(raw, into);
  if (name.starts_with("interpreter.")) {
    Dict config;
    for (const auto& [key, value] : raw.attributes) insert(config, key, value);
    return convert_tool_call(raw, std::move(config), into);
  }
  return error_at(raw, invalid_argument("unknown op '{}'", name));
}

// On one device the body's shards are the arrays themselves.
Status ModuleBuilder::convert_manual_computation(const RawOp& raw, Computation& into) {
  for (const std::string_view key : {"in_shardings", "out_shardings"}) {
    if (const auto* text = raw_attr<OpaqueAttr>(raw, key)) {
      Status status = shardings_.check_sdy(raw.name, text->text);
      if (!status.ok()) return std::move(status).at(position_of(raw.location));
    }
  }
  TENON_ASSIGN(const std::vector<Value> operands, operands_of(raw));
  if (raw.regions.size() != 1 || raw.regions[0].arguments.size() != operands.size() ||
      raw.regions[0].ops.empty()) {
    return error_at(
        raw, invalid_argument("{}: one region with as many arguments as operands is expected",
                              raw.name));
  }
  const RawRegion& body = raw.regions[0];
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!(operands[i].type() == raw_.value_types[body.arguments[i]])) {
      return error_at(raw,
                      unimplemented("{}: argument {} is {} inside and {} outside, which needs "
                                    "partitioning",
                                    raw.name, i, raw_.value_types[body.arguments[i]].to_string(),
                                    operands[i].type().to_string()));
    }
    values_[body.arguments[i]] = operands[i];
  }
  for (size_t i = 0; i + 1 < body.ops.size(); ++i) TENON_TRY(convert_op(body.ops[i], into));
  const RawOp& end = body.ops.back();
  TENON_ASSIGN(const std::vector<Value> results, operands_of(end));
  if (end.name != "sdy.return" || results.size() != raw.results.size()) {
    return error_at(raw, invalid_argument("{}: the region ends in {} with {} values, expected "
                                          "sdy.return with {}",
                                          raw.name, end.name, results.size(), raw.results.size()));
  }
  for (size_t i = 0; i < results.size(); ++i) values_[raw.results[i]] = results[i];
  return {};
}

// check.expect_* becomes a custom call of the same name; a constant becomes an operand of it.
Status ModuleBuilder::convert_check(const RawOp& raw, Computation& into) {
  RawOp call = raw;
  Dict config;
  for (const auto& [key, value] : raw.attributes) {
    const auto* dense = value.get<DenseAttr>();
    if (key != "value" || dense == nullptr) {
      insert(config, key, value);
      continue;
    }
    auto constant = std::make_unique<Instruction>(OpCode::kConstant, std::vector<Value>{},
                                                  std::vector<Type>{Type(dense->shape)});
    constant->mutable_attributes().set(AttrKey::value, value);
    constant->set_location(raw.location);
    const Value result = into.insert(std::move(constant))->result();
    call.operands.push_back(static_cast<RawValue>(values_.size()));
    values_.push_back(result);
    if (call.name.ends_with("_const")) call.name.resize(call.name.size() - 6);
  }
  return convert_tool_call(call, std::move(config), into);
}

Status ModuleBuilder::convert_tool_call(const RawOp& raw, Dict config, Computation& into) {
  RawOp call = raw;
  call.attributes.clear();
  insert(call.attributes, "call_target_name", Attribute(raw.name));
  insert(call.attributes, "has_side_effect", Attribute(true));
  if (!config.empty()) insert(call.attributes, "backend_config", Attribute(std::move(config)));
  return convert_known(OpCode::kCustomCall, call, into);
}

}  // namespace

Result<std::unique_ptr<Module>> build_module(const RawModule& raw) {
  auto built = ModuleBuilder(raw).build();
  if (!built) return Error(std::move(built.error()).in_stage("import"));
  return built;
}

Result<std::unique_ptr<Module>> import_module(std::string_view bytes, const std::string& file_name,
                                              const ImportLimits& limits) {
  TENON_ASSIGN(const RawModule raw, is_artifact(bytes) ? parse_artifact(bytes, file_name, limits)
                                    : is_hlo_proto(bytes)
                                        ? parse_hlo_proto(bytes, file_name, limits)
                                        : parse_mlir_text(bytes, file_name, limits));
  return build_module(raw);
}

}  // namespace tenon::hlo
