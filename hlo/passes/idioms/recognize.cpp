// The pass `recognize-idioms`.
#include <unordered_map>
#include <unordered_set>

#include "hlo/builder/builder.h"
#include "hlo/passes/idioms/idiom.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

using idioms::Instance;

// Ops of which each user may have its own copy.
bool is_copied(const Instruction& op) {
  return op.code() == OpCode::kConstant || op.code() == OpCode::kIota;
}

// The ops between the operands of an instance and its results.
class InstanceOps {
 public:
  explicit InstanceOps(const Instance& instance) {
    for (const Value operand : instance.operands) outside_.insert(operand);
    for (const Value result : instance.results) {
      results_.insert(result.def);
      visit(result);
    }
  }

  /// Whether only the instance uses its ops, so that a composite can replace them.
  bool are_apart() const { return are_here_ && !is_shared(); }
  /// In an order in which each op follows the ops that it uses.
  const std::vector<Instruction*>& in_order() const { return ops_; }

 private:
  void visit(Value value) {
    if (outside_.contains(value) || !seen_.insert(value.def).second) return;
    const Instruction& op = *value.def;
    const bool is_near = op.parent() == (*results_.begin())->parent() || is_copied(op);
    if (!is_near || op.code() == OpCode::kParameter || op.is_ordered()) {
      are_here_ = false;
      return;
    }
    for (const Value operand : all_operands(op)) visit(operand);
    ops_.push_back(value.def);
  }

  bool is_shared() const {
    for (const Instruction* op : ops_) {
      if (is_copied(*op) || results_.contains(op)) continue;
      for (const Use& use : op->uses()) {
        if (!seen_.contains(use.user)) return true;
      }
    }
    return false;
  }

  std::unordered_set<Value, ValueHash> outside_;
  std::unordered_set<const Instruction*> results_;
  std::unordered_set<const Instruction*> seen_;
  std::vector<Instruction*> ops_;
  bool are_here_ = true;
};

class Recognizer {
 public:
  Recognizer(Module& module, const PassOptions& options) : module_(module), options_(options) {}

  Result<bool> run() {
    TENON_TRY(idioms::check_idioms());
    std::vector<Computation*> functions;
    for (const auto& function : module_.functions()) functions.push_back(function.get());
    for (Computation* function : functions) TENON_TRY(computation(*function));
    return changed_;
  }

 private:
  // Begins at the last op, so that an idiom is found before the idioms that are parts of it.
  Status computation(Computation& computation) {
    Instruction* op = computation.last();
    while (op != nullptr) {
      for (size_t r = 0; r < op->region_count(); ++r) TENON_TRY(this->computation(op->region(r)));
      TENON_ASSIGN(Instruction* const composite, replaced(*op));
      op = composite != nullptr ? composite->previous() : op->previous();
    }
    return {};
  }

  // The composite that replaced an instance at `op`, or null.
  Result<Instruction*> replaced(Instruction& op) {
    for (const idioms::Idiom& idiom : idioms::all_idioms()) {
      const auto instance = idioms::find_instance(idiom, op);
      if (!instance) continue;
      const InstanceOps ops(*instance);
      if (!ops.are_apart()) continue;
      auto composite = composite_of(idiom, *instance, op);
      TENON_ASSIGN(const bool taken, options_.takes_composite(*composite));
      if (!taken) continue;
      TENON_ASSIGN(std::string function, outline(idiom, *instance, ops));
      composite->mutable_attributes().set(AttrKey::decomposition, SymbolAttr{std::move(function)});
      Instruction* const placed = put(std::move(composite), *instance, ops);
      changed_ = true;
      return placed;
    }
    return nullptr;
  }

  static std::unique_ptr<Instruction> composite_of(const idioms::Idiom& idiom,
                                                   const Instance& instance,
                                                   const Instruction& op) {
    std::vector<Type> types;
    for (const Value result : instance.results) types.push_back(result.type());
    auto composite =
        std::make_unique<Instruction>(OpCode::kComposite, instance.operands, std::move(types));
    composite->mutable_attributes().set(AttrKey::name, std::string(idiom.name));
    composite->mutable_attributes().set(AttrKey::composite_attributes,
                                        Attribute(instance.attributes));
    composite->set_location(op.location());
    return composite;
  }

  // Moves the ops to a new function, the decomposition. Returns its name.
  Result<std::string> outline(const idioms::Idiom& idiom, const Instance& instance,
                              const InstanceOps& ops) {
    int& count = counts_[std::string(idiom.name)];
    std::string name;
    do {
      name = fmt::format("{}.{}", idiom.name, count++);
    } while (module_.find_function(name) != nullptr);
    Computation& function = module_.add_function(name);
    function.set_visibility("private");
    Cloner cloner;
    for (const Value operand : instance.operands) {
      cloner.map(operand, function.add_parameter(operand.type()));
    }
    for (const Instruction* op : ops.in_order()) function.insert(cloner.clone(*op));
    std::vector<Value> results;
    std::vector<Type> types;
    for (const Value result : instance.results) {
      results.push_back(cloner(result));
      types.push_back(result.type());
    }
    function.set_declared_result_types(std::move(types));
    TENON_TRY(Builder(function).finish(results));
    return name;
  }

  static Instruction* put(std::unique_ptr<Instruction> composite, const Instance& instance,
                          const InstanceOps& ops) {
    Computation& computation = *instance.anchor->parent();
    Instruction* const placed = computation.insert(std::move(composite), instance.anchor);
    for (uint32_t r = 0; r < instance.results.size(); ++r) {
      instance.results[r].def->replace_uses(instance.results[r].index, placed->result(r));
    }
    for (auto op = ops.in_order().rbegin(); op != ops.in_order().rend(); ++op) {
      if ((*op)->uses().empty()) (*op)->parent()->erase(*op);
    }
    return placed;
  }

  Module& module_;
  const PassOptions& options_;
  std::unordered_map<std::string, int> counts_;
  bool changed_ = false;
};

}  // namespace

Result<bool> recognize_idioms(Module& module, const PassOptions& options) {
  if (options.takes_composite == nullptr) return false;
  return Recognizer(module, options).run();
}

}  // namespace tenon::hlo
