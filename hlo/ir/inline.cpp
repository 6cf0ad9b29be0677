#include "hlo/ir/inline.h"

#include <unordered_set>

namespace tenon::hlo {
namespace {

// More than any framework nests. A limit is needed because walks over regions are recursive.
constexpr int kMostRegions = 256;

// The number of instructions in a copy of `computation`; if it exceeds `limit`, some number above
// `limit`.
int64_t count_instructions(const Computation& computation, int64_t limit) {
  int64_t count = 0;
  any_instruction(computation, [&](const Instruction& op) {
    count += op.code() == OpCode::kReturn ? 0 : 1;
    return count > limit;
  });
  return count;
}

class Inliner {
 public:
  explicit Inliner(int64_t limit) : budget_(limit) {}

  // `depth`: the number of regions around the computation.
  Status run(Computation& computation, int depth = 0) {
    Instruction* op = computation.first();
    while (op != nullptr) {
      if (op->region_count() > 0 && depth == kMostRegions) {
        return resource_exhausted("inlining nests regions more than {} deep", kMostRegions)
            .at(position_of(op->location()));
      }
      for (size_t i = 0; i < op->region_count(); ++i) TENON_TRY(run(op->region(i), depth + 1));
      if (op->code() != OpCode::kCall) {
        op = op->next();
        continue;
      }
      Instruction* before = op->previous();
      TENON_TRY(inline_call(*op));
      computation.erase(op);
      // Calls in the inlined body come next.
      op = before != nullptr ? before->next() : computation.first();
    }
    return {};
  }

 private:
  Status inline_call(Instruction& call) {
    const Module* module = call.parent()->module();
    const std::string_view name = call.text(AttrKey::callee);
    const Computation* callee = module ? module->find_function(name) : nullptr;
    if (callee == nullptr || callee->is_declaration()) {
      return not_found("func.call: function @{} is not defined", name)
          .at(position_of(call.location()));
    }
    budget_ -= count_instructions(*callee, budget_);
    if (budget_ < 0) return resource_exhausted("inlining @{} makes too many instructions", name);
    call.replace_all_uses(clone_body(*callee, call.operands(), call));
    return {};
  }

  int64_t budget_;
};

void add_symbols(const Attribute& value, std::vector<std::string>& names) {
  if (const auto* symbol = value.get<SymbolAttr>()) names.push_back(symbol->name);
  if (const auto* array = value.get<ArrayAttr>()) {
    for (const Attribute& element : *array) add_symbols(element, names);
  }
  if (const auto* dict = value.get<Dict>()) {
    for (const auto& [key, element] : *dict) add_symbols(element, names);
  }
}

void add_references(const Computation& computation, std::vector<std::string>& names) {
  for (const Instruction& op : computation) {
    for (const auto& [key, value] : op.attributes()) add_symbols(value, names);
    for (size_t i = 0; i < op.region_count(); ++i) add_references(op.region(i), names);
  }
}

}  // namespace

std::vector<Value> clone_body(const Computation& body, const std::vector<Value>& arguments,
                              Instruction& before) {
  Cloner cloner;
  for (size_t i = 0; i < body.parameter_count(); ++i) cloner.map(body.parameter(i), arguments[i]);
  std::vector<Value> results;
  for (const Instruction& op : body) {
    if (op.code() == OpCode::kReturn) {
      for (const Value value : op.operands()) results.push_back(cloner(value));
      break;
    }
    before.parent()->insert(cloner.clone(op), &before);
  }
  return results;
}

Status inline_calls(Computation& computation, int64_t limit) {
  return Inliner(limit).run(computation);
}

Status inline_calls(Module& module, int64_t limit) {
  Inliner inliner(limit);
  Computation* const entry = module.entry();
  if (entry != nullptr && !entry->is_declaration()) {
    TENON_TRY(inliner.run(*entry));
    erase_unreachable_functions(module, entry);
  }
  for (const auto& function : module.functions()) TENON_TRY(inliner.run(*function));
  erase_unreachable_functions(module, entry);
  return {};
}

void erase_unreachable_functions(Module& module, const Computation* entry) {
  if (entry == nullptr) entry = module.entry();
  if (entry == nullptr) return;
  std::unordered_set<const Computation*> reached = {entry};
  std::vector<const Computation*> todo = {entry};
  while (!todo.empty()) {
    const Computation* at = todo.back();
    todo.pop_back();
    std::vector<std::string> names;
    add_references(*at, names);
    for (const std::string& name : names) {
      const Computation* callee = module.find_function(name);
      if (callee != nullptr && reached.insert(callee).second) todo.push_back(callee);
    }
  }
  module.erase_functions([&](const Computation& function) { return !reached.contains(&function); });
}

Status select_entry(Module& module, std::string_view name) {
  if (name.empty()) return {};
  Computation* const entry = module.find_function(name);
  if (entry == nullptr || entry->is_declaration()) {
    return not_found("there is no function @{}", name);
  }
  if (entry == module.entry()) return {};
  TENON_TRY(inline_calls(*entry));
  erase_unreachable_functions(module, entry);
  for (const auto& function : module.functions()) {
    function->set_visibility(function.get() == entry ? "" : "private");
  }
  return {};
}

}  // namespace tenon::hlo
