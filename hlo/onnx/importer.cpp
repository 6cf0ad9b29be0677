#include "hlo/onnx/importer.h"

#include <algorithm>
#include <deque>
#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "hlo/evaluator/evaluator.h"
#include "hlo/evaluator/work.h"
#include "hlo/onnx/lowering.h"

namespace tenon::hlo {
namespace {

constexpr int kMostNesting = 64;          // Graphs and functions within one another.
constexpr int64_t kMostNodes = 1 << 20;   // Loops unrolled and functions inlined.
constexpr int64_t kMostFolded = 1 << 22;  // Elements of an array that is computed here.
constexpr double kFewOperations = 1024;
constexpr double kMostFoldedWork = 1 << 27;  // Scalar operations of all that is computed here.

// Values that follow from constants, and from arguments that are given, by the evaluator.
class KnownValues {
 public:
  KnownValues(const Module& module, const std::map<size_t, Literal>& given)
      : evaluator_(module, {.max_work = kMostFoldedWork}),
        cheap_evaluator_(module),
        given_(given) {}

  void set_main(const Computation& main) {
    for (size_t i = 0; i < main.parameter_count(); ++i)
      parameters_[&main.parameter_instruction(i)] = i;
  }
  void forget() {
    for (const auto& [op, value] : known_) evaluator_.forget(*op);
    known_.clear();
    unknown_.clear();
    decided_.clear();
  }
  std::optional<Literal> value(Value value);
  std::vector<size_t> used() const { return {used_.begin(), used_.end()}; }
  // Why a value is not known though its operands are; ok if there is no such reason.
  const Status& failure() const { return failure_; }

 private:
  // The results of an op, and the arguments that they depend on.
  struct Results {
    std::vector<Literal> literals;
    std::set<size_t> arguments;
  };
  // The op's results, if those of its operands are known.
  std::optional<Results> compute(const Instruction& op);
  std::optional<Results> parameter(const Instruction& op) const;
  static bool is_folded(const Instruction& op);
  bool is_decided(const Instruction& op);

  Evaluator evaluator_;
  Evaluator cheap_evaluator_;
  const std::map<size_t, Literal>& given_;
  std::unordered_map<const Instruction*, size_t> parameters_;
  std::unordered_map<const Instruction*, Results> known_;
  std::unordered_set<const Instruction*> unknown_;
  std::unordered_map<const Instruction*, bool> decided_;
  std::set<size_t> used_;
  Status failure_;
};

bool KnownValues::is_folded(const Instruction& op) {
  if (op.has_side_effect() || op.is_ordered()) return false;
  return std::ranges::all_of(op.result_types(), [](const Type& type) {
    return type.is_tensor() && !type.is_quantized() && type.shape().is_static() &&
           element_count(type.dims()) <= kMostFolded;
  });
}

std::optional<KnownValues::Results> KnownValues::parameter(const Instruction& op) const {
  const auto number = parameters_.find(&op);
  if (number == parameters_.end()) return std::nullopt;
  const auto found = given_.find(number->second);
  if (found == given_.end()) return std::nullopt;
  return Results{{found->second}, {number->second}};
}

std::optional<KnownValues::Results> KnownValues::compute(const Instruction& op) {
  if (op.code() == OpCode::kParameter) return parameter(op);
  if (!is_folded(op)) return std::nullopt;
  if (const auto* constant = op.attr<DenseAttr>(AttrKey::value); op.code() == OpCode::kConstant)
    return Results{{constant->expanded()}, {}};
  // Cheap ops are still computed, without the budget that is spent.
  const bool is_spent = !failure_.ok();
  if (is_spent && (work_of(op) > kFewOperations || op.region_count() != 0)) return std::nullopt;
  Evaluator& evaluator = is_spent ? cheap_evaluator_ : evaluator_;
  Results made;
  const auto values_of = [&](const Instruction* def) -> const std::vector<Literal>* {
    const auto found = known_.find(def);
    if (found == known_.end()) return nullptr;
    made.arguments.insert(found->second.arguments.begin(), found->second.arguments.end());
    return &found->second.literals;
  };
  const auto value_of = [](const Literal& literal) {
    return EvalValue::of(tensor_from_literal(literal, false));
  };
  std::vector<EvalValue> operands;
  for (const Value each : op.operands()) {
    const auto* literals = values_of(each.def);
    if (literals == nullptr) return std::nullopt;
    operands.push_back(value_of((*literals)[each.index]));
  }
  EvalFrame frame(nullptr);
  for (const Value each : captured_values(op)) {
    const auto* literals = values_of(each.def);
    if (literals == nullptr) return std::nullopt;
    std::vector<EvalValue> results;
    for (const Literal& literal : *literals) results.push_back(value_of(literal));
    frame.set(each.def, std::move(results));
  }
  auto results = evaluator.evaluate(op, operands, frame);
  evaluator.forget(op);
  if (!results) {
    if (results.error().code() == ErrorCode::kResourceExhausted) failure_ = results.error();
    return std::nullopt;
  }
  for (const EvalValue& each : *results) made.literals.push_back(literal_from_tensor(*each.tensor));
  return made;
}

// Decided before anything is computed: operands first, without recursion, since a chain of ops may
// be long.
bool KnownValues::is_decided(const Instruction& asked) {
  std::vector<std::pair<const Instruction*, bool>> stack = {{&asked, false}};
  while (!stack.empty()) {
    const auto [op, ready] = stack.back();
    stack.pop_back();
    if (decided_.contains(op)) continue;
    const bool leaf = op->code() == OpCode::kParameter || op->code() == OpCode::kConstant;
    if (leaf || !is_folded(*op)) {
      decided_[op] =
          leaf && (op->code() == OpCode::kConstant ? is_folded(*op) : parameter(*op).has_value());
      continue;
    }
    const std::vector<Value> operands = all_operands(*op);
    if (ready) {
      decided_[op] = std::ranges::all_of(operands, [&](Value each) { return decided_[each.def]; });
      continue;
    }
    stack.emplace_back(op, true);
    for (const Value each : operands) stack.emplace_back(each.def, false);
  }
  return decided_[&asked];
}

std::optional<Literal> KnownValues::value(Value asked) {
  if (!is_decided(*asked.def)) return std::nullopt;
  std::vector<std::pair<const Instruction*, bool>> stack = {{asked.def, false}};
  while (!stack.empty()) {
    const auto [op, ready] = stack.back();
    stack.pop_back();
    if (known_.contains(op) || unknown_.contains(op)) continue;
    if (ready) {
      auto computed = compute(*op);
      if (computed) {
        known_.emplace(op, *std::move(computed));
      } else {
        unknown_.insert(op);
      }
      continue;
    }
    stack.emplace_back(op, true);
    if (op->code() != OpCode::kParameter && !is_folded(*op)) continue;
    for (const Value each : all_operands(*op)) {
      // One of them that is unknown decides.
      if (unknown_.contains(each.def)) break;
      stack.emplace_back(each.def, false);
    }
  }
  const auto found = known_.find(asked.def);
  if (found == known_.end()) return std::nullopt;
  used_.insert(found->second.arguments.begin(), found->second.arguments.end());
  return found->second.literals[asked.index];
}

// --- The importer

class OnnxImporter : public OnnxScope {
 public:
  OnnxImporter(const OnnxModel& model, const OnnxKnowledge& knowledge)
      : model_(model),
        knowledge_(knowledge),
        module_(std::make_unique<Module>()),
        known_(*module_, knowledge.values) {}

  Result<OnnxImport> run();

  // For a trial, in place of `run`. Nodes must outlive the importer, and names those of their
  // values.
  void begin_trial();
  void add_trial_value(const std::string& name, const Type& type);
  void add_trial_constant(const std::string& name, Literal value);
  void import_trial_node(const OnnxNode& node);
  const Value* trial_value(std::string_view name) const;

  std::optional<Literal> known(Value value) override { return known_.value(value); }
  const Status& failure() const override { return known_.failure(); }
  Values import_graph(const OnnxGraph& graph, const Values& arguments, Builder& into) override;
  Values lower(std::string_view op_type, const Values& inputs, OnnxAttributes attributes,
               size_t outputs, Builder& into, int64_t opset) override;
  void forget() override { known_.forget(); }

 private:
  // The names of a graph's values, those of the graphs around it, and what holds for its nodes.
  struct Names {
    const Names* outer = nullptr;
    const OnnxOpsets* opsets = nullptr;
    const OnnxAttributes* attributes =
        nullptr;  // Of the call of the function that the graph is in.
    std::unordered_map<std::string_view, Value> values;
  };

  Result<Type> type_of_input(size_t i, std::map<std::string, int64_t>& symbols) const;
  Value find_value(std::string_view name) const;
  void import_nodes(std::span<const OnnxNode> nodes, Builder& into);
  Values import_node(const OnnxNode& node, Builder& into);
  Values call(const OnnxFunction& function, const OnnxNode& node, const Values& inputs,
              Builder& into);
  Values apply(const OnnxNode& node, Values inputs, Builder& into, int64_t opset = 0);
  void erase_unused(Computation& main);

  const OnnxModel& model_;
  const OnnxKnowledge& knowledge_;
  std::unique_ptr<Module> module_;
  KnownValues known_;
  Names* names_ = nullptr;
  int depth_ = 0;
  int64_t nodes_ = 0;
  Names trial_names_;
  std::optional<Builder> trial_builder_;
};

Value OnnxImporter::find_value(std::string_view name) const {
  for (const Names* each = names_; each != nullptr; each = each->outer) {
    const auto found = each->values.find(name);
    if (found != each->values.end()) return found->second;
  }
  fail_onnx(make_error(ErrorCode::kDataLoss, "there is no value '{}' before it", name));
}

// Restores what it was given when it goes.
template <class T>
class Restored {
 public:
  Restored(T& target, T value) : target_(target), old_(std::exchange(target, std::move(value))) {}
  ~Restored() { target_ = std::move(old_); }
  Restored(const Restored&) = delete;
  Restored& operator=(const Restored&) = delete;

 private:
  T& target_;
  T old_;
};

Values OnnxImporter::import_graph(const OnnxGraph& graph, const Values& arguments, Builder& into) {
  if (depth_ >= kMostNesting) exceed_onnx("graphs and functions are nested too deeply");
  const Restored<int> deeper(depth_, depth_ + 1);
  Names names;
  names.outer = names_;
  if (names_ != nullptr) {
    names.opsets = names_->opsets;
    names.attributes = names_->attributes;
  } else {
    names.opsets = &model_.opsets;
  }
  if (graph.inputs.size() != arguments.size())
    bad_onnx("graph '{}' takes {} values, not {}", graph.name, graph.inputs.size(),
             arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) names.values[graph.inputs[i].name] = arguments[i];
  const OnnxEmitter emitter(into);
  for (const auto& [name, value] : graph.initializers) names.values[name] = emitter.constant(value);
  const Restored<Names*> inner(names_, &names);
  import_nodes(graph.nodes, into);
  Values results;
  for (const OnnxValueInfo& each : graph.outputs) {
    results.push_back(find_value(each.name));
    if (!results.back()) bad_onnx("output '{}' of graph '{}' has no value", each.name, graph.name);
  }
  return results;
}

void OnnxImporter::import_nodes(std::span<const OnnxNode> nodes, Builder& into) {
  int64_t number = 0;
  for (const OnnxNode& node : nodes) {
    ++number;
    // A name without a line: the file is no text.
    auto place = std::make_shared<LocationNode>();
    place->kind = LocationKind::kName;
    place->name = node.name.empty() ? fmt::format("{}:{}", node.op_type, number) : node.name;
    const Location location = std::move(place);
    into.set_location(location);
    try {
      if (++nodes_ > kMostNodes)
        exceed_onnx("more than {} nodes, loops unrolled and functions inlined", kMostNodes);
      const Values results = import_node(node, into);
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i].empty()) continue;
        if (i >= results.size() || !results[i]) refuse_onnx("its output {} is not supported", i);
        names_->values[node.outputs[i]] = results[i];
      }
    } catch (OnnxFailure& failure) {
      const std::string name = node.name.empty() ? std::string() : fmt::format(" '{}'", node.name);
      const std::string domain = node.domain.empty() ? std::string() : node.domain + ".";
      const auto version = names_->opsets->find(node.domain);
      throw OnnxFailure{std::move(failure.status)
                            .with_context(fmt::format(
                                "node {}{}, {}{} of opset {}", number, name, domain, node.op_type,
                                version == names_->opsets->end() ? 0 : version->second)),
                        depth_ == 0 ? failure.wanted_input : -1};
    }
    into.set_location(location);
  }
}

Values OnnxImporter::import_node(const OnnxNode& node, Builder& into) {
  Values inputs;
  for (const std::string& name : node.inputs)
    inputs.push_back(name.empty() ? Value{} : find_value(name));
  while (!inputs.empty() && !inputs.back()) inputs.pop_back();
  // Attributes that stand for those of the function's call.
  OnnxNode resolved;
  const OnnxNode* used = &node;
  const auto refers = [](const auto& each) { return !each.second.reference.empty(); };
  if (std::ranges::any_of(node.attributes, refers)) {
    resolved = node;
    std::erase_if(resolved.attributes, refers);
    for (const auto& [name, attribute] : node.attributes) {
      if (attribute.reference.empty() || names_->attributes == nullptr) continue;
      const auto given = names_->attributes->find(attribute.reference);
      if (given != names_->attributes->end()) resolved.attributes[name] = given->second;
    }
    used = &resolved;
  }
  const auto function =
      model_.functions.find(function_key(node.domain, node.op_type, node.overload));
  if (function != model_.functions.end()) return call(function->second, *used, inputs, into);
  return apply(*used, std::move(inputs), into);
}

Values OnnxImporter::call(const OnnxFunction& function, const OnnxNode& node, const Values& inputs,
                          Builder& into) {
  if (depth_ >= kMostNesting) exceed_onnx("graphs and functions are nested too deeply");
  if (inputs.size() > function.inputs.size())
    bad_onnx("{} inputs, and the function takes {}", inputs.size(), function.inputs.size());
  const Restored<int> deeper(depth_, depth_ + 1);
  OnnxAttributes attributes = node.attributes;
  attributes.insert(function.defaults.begin(), function.defaults.end());
  Names names;
  names.opsets = function.opsets.empty() ? &model_.opsets : &function.opsets;
  names.attributes = &attributes;
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    names.values[function.inputs[i]] = i < inputs.size() ? inputs[i] : Value{};
  }
  const Restored<Names*> inner(names_, &names);
  import_nodes(function.nodes, into);
  Values results;
  for (const std::string& each : function.outputs) results.push_back(find_value(each));
  return results;
}

Values OnnxImporter::apply(const OnnxNode& node, Values inputs, Builder& into, int64_t opset) {
  if (opset == 0) {
    const auto stated = names_->opsets->find(node.domain);
    if (stated == names_->opsets->end())
      fail_onnx(make_error(ErrorCode::kDataLoss, "the model states no version of its domain"));
    opset = stated->second;
  }
  const OnnxRow* row = find_onnx_row(node.domain, node.op_type, opset);
  if (row == nullptr) {
    if (has_onnx_row(node.domain, node.op_type))
      refuse_onnx("this version of the op is not supported");
    refuse_onnx("the op is not supported");
  }
  OnnxLowering lowering(*this, into, node, *row, opset, std::move(inputs));
  Values results = row->lower(lowering);
  for (const Value each : results) {
    if (each && each.type().is_tensor()) {
      constexpr int64_t kWidest = 16;
      if (const auto count = checked_element_count(each.type().dims(), kWidest); !count)
        throw OnnxFailure{count.error()};
    }
  }
  return results;
}

Values OnnxImporter::lower(std::string_view op_type, const Values& inputs,
                           OnnxAttributes attributes, size_t outputs, Builder& into,
                           int64_t opset) {
  OnnxNode node;
  node.op_type = op_type;
  node.attributes = std::move(attributes);
  node.outputs.assign(outputs, "_");
  node.inputs.assign(inputs.size(), "_");
  return apply(node, inputs, into, opset);
}

Result<Type> OnnxImporter::type_of_input(size_t i, std::map<std::string, int64_t>& symbols) const {
  const OnnxValueInfo& input = model_.graph.inputs[i];
  if (!input.unsupported.empty())
    return unimplemented("input {} ('{}') is {}, which is not supported", i, input.name,
                         input.unsupported);
  if (!input.element_type) return invalid_argument("input {} ('{}') has no type", i, input.name);
  std::optional<Dims> dims;
  if (input.type) dims = input.type->dims();
  const auto shape = knowledge_.shapes.find(i);
  const auto value = knowledge_.values.find(i);
  const Dims* given = shape != knowledge_.shapes.end()   ? &shape->second
                      : value != knowledge_.values.end() ? &value->second.shape().dims()
                                                         : nullptr;
  if (given != nullptr) {
    if (value != knowledge_.values.end() && value->second.element_type() != *input.element_type) {
      return invalid_argument("input {} ('{}') is of {}, and is given as {}", i, input.name,
                              name_of(*input.element_type), value->second.shape().to_string());
    }
    if (dims && dims->size() != given->size())
      return invalid_argument("input {} ('{}') has rank {}, and is given with rank {}", i,
                              input.name, dims->size(), given->size());
    for (size_t d = 0; dims && d < dims->size(); ++d) {
      if ((*dims)[d] != kDynamic && (*dims)[d] != (*given)[d])
        return invalid_argument("input {} ('{}') is {}, and is given as [{}]", i, input.name,
                                input.type->to_string(), dims_to_string(*given));
      if (input.symbols[d].empty()) continue;
      const auto [symbol, first] = symbols.emplace(input.symbols[d], (*given)[d]);
      if (!first && symbol->second != (*given)[d])
        return invalid_argument("input {} ('{}') has size {} where '{}' is {} in another input", i,
                                input.name, (*given)[d], symbol->first, symbol->second);
    }
    dims = *given;
  }
  if (!dims)
    return invalid_argument("input {} ('{}') has no shape in the model; give --shape {}=SIZES", i,
                            input.name, i);
  for (size_t d = 0; d < dims->size(); ++d) {
    if ((*dims)[d] != kDynamic) continue;
    const auto known = symbols.find(input.symbols[d]);
    if (input.symbols[d].empty() || known == symbols.end())
      return invalid_argument(
          "input {} ('{}') has an unknown size{}; give --shape {}=SIZES", i, input.name,
          input.symbols[d].empty() ? "" : fmt::format(" '{}'", input.symbols[d]), i);
    (*dims)[d] = known->second;
  }
  constexpr int64_t kWidest = 16;
  TENON_TRY(checked_element_count(*dims, kWidest));
  return Type::tensor(*input.element_type, *std::move(dims));
}

// Ops that nothing uses: those that only computed shapes.
void OnnxImporter::erase_unused(Computation& main) {
  for (Instruction* op = main.last(); op != nullptr;) {
    Instruction* const previous = op->previous();
    if (op->uses().empty() && op->code() != OpCode::kReturn && !op->has_side_effect())
      main.erase(op);
    op = previous;
  }
}

Result<OnnxImport> OnnxImporter::run() {
  const auto version = model_.opsets.find("");
  if (version != model_.opsets.end() && version->second > kNewestOnnxOpset)
    return unimplemented("the model is of opset {}, and the newest that is supported is {}",
                         version->second, kNewestOnnxOpset);
  module_->set_name(model_.graph.name.empty() ? "onnx" : model_.graph.name);
  Computation& main = module_->add_function("main");
  main.set_visibility("public");
  std::map<std::string, int64_t> symbols;
  std::vector<Type> types(model_.graph.inputs.size());
  // Sizes that are given are those of other inputs with the same symbols.
  for (const bool last : {false, true}) {
    for (size_t i = 0; i < types.size(); ++i) {
      auto type = type_of_input(i, symbols);
      if (!type && last) return Error(type.error());
      if (type) types[i] = *std::move(type);
    }
  }
  Values arguments;
  for (const Type& type : types) arguments.push_back(main.add_parameter(type));
  known_.set_main(main);
  Builder builder(main);
  try {
    const Values results = import_graph(model_.graph, arguments, builder);
    if (results.empty()) return invalid_argument("the model has no outputs");
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i]) return invalid_argument("output {} has no value", i);
    }
    std::vector<Type> outputs;
    for (const Value each : results) outputs.push_back(each.type());
    TENON_TRY(builder.finish(results));
    main.set_declared_result_types(std::move(outputs));
  } catch (const OnnxFailure& failure) {
    return Error(failure.status);
  } catch (const std::bad_alloc&) {
    return resource_exhausted("the model wants more memory than there is");
  }
  OnnxImport imported;
  imported.used_values = known_.used();
  known_.forget();
  erase_unused(main);
  imported.module = std::move(module_);
  return imported;
}

void OnnxImporter::begin_trial() {
  Computation& main = module_->add_function("main");
  known_.set_main(main);
  trial_names_.opsets = &model_.opsets;
  names_ = &trial_names_;
  trial_builder_.emplace(main);
}

void OnnxImporter::add_trial_value(const std::string& name, const Type& type) {
  trial_names_.values[name] = module_->find_function("main")->add_parameter(type);
}

void OnnxImporter::add_trial_constant(const std::string& name, Literal value) {
  trial_names_.values[name] = OnnxEmitter(*trial_builder_).constant(std::move(value));
}

void OnnxImporter::import_trial_node(const OnnxNode& node) {
  import_nodes(std::span(&node, 1), *trial_builder_);
}

const Value* OnnxImporter::trial_value(std::string_view name) const {
  const auto found = trial_names_.values.find(name);
  return found == trial_names_.values.end() ? nullptr : &found->second;
}

}  // namespace

bool has_onnx_op(std::string_view domain, std::string_view op_type, int64_t version) {
  return find_onnx_row(domain, op_type, version) != nullptr;
}

struct OnnxTrial::State {
  explicit State(OnnxOpsets opsets) : importer(model, knowledge) {
    model.opsets = std::move(opsets);
    importer.begin_trial();
  }

  OnnxModel model;
  OnnxKnowledge knowledge;
  std::deque<std::string> names;
  std::deque<OnnxNode> nodes;
  OnnxImporter importer;
};

OnnxTrial::OnnxTrial(OnnxOpsets opsets) : state_(std::make_unique<State>(std::move(opsets))) {}
OnnxTrial::~OnnxTrial() = default;

void OnnxTrial::add_value(std::string name, const Type& type) {
  state_->importer.add_trial_value(state_->names.emplace_back(std::move(name)), type);
}

Status OnnxTrial::add_constant(std::string name, Literal value) {
  try {
    state_->importer.add_trial_constant(state_->names.emplace_back(std::move(name)),
                                        std::move(value));
  } catch (const OnnxFailure& failure) {
    return failure.status;
  }
  return {};
}

Status OnnxTrial::add_node(OnnxNode node) {
  wanted_input_ = -1;
  try {
    state_->importer.import_trial_node(state_->nodes.emplace_back(std::move(node)));
  } catch (const OnnxFailure& failure) {
    wanted_input_ = failure.wanted_input;
    return failure.status;
  }
  return {};
}

const Type* OnnxTrial::type_of(std::string_view name) const {
  const Value* const value = state_->importer.trial_value(name);
  return value == nullptr || !*value ? nullptr : &value->type();
}

Result<std::unique_ptr<Module>> onnx_signature(const OnnxModel& model) {
  auto module = std::make_unique<Module>();
  Computation& main = module->add_function("main");
  for (size_t i = 0; i < model.graph.inputs.size(); ++i) {
    const OnnxValueInfo& input = model.graph.inputs[i];
    if (!input.element_type || !input.unsupported.empty())
      return unimplemented("input {} ('{}') is {}, which is not supported", i, input.name,
                           input.unsupported.empty() ? "of no type" : input.unsupported);
    main.add_parameter(input.type ? *input.type : Type::tensor(*input.element_type, {kDynamic}));
  }
  return module;
}

Result<OnnxImport> import_onnx(const OnnxModel& model, const OnnxKnowledge& known) {
  auto imported = OnnxImporter(model, known).run();
  if (!imported) return Error(std::move(imported.error()).in_stage("import"));
  return imported;
}

}  // namespace tenon::hlo
