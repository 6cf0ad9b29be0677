#include <unordered_set>

#include "hlo/builder/builder.h"
#include "hlo/decomposition/needs_decomposition.h"
#include "hlo/ir/inline.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

bool has_calls(const Computation& computation) {
  return any_instruction(computation,
                         [](const Instruction& op) { return op.code() == OpCode::kCall; });
}

// A composite that is called after a function of CHLO is that op.
Result<Instruction*> function_of(Instruction& composite) {
  Builder builder(*composite.parent(), &composite);
  builder.set_location(composite.location());
  TENON_ASSIGN(const std::vector<Value> values, decomposition::decompose(builder, composite));
  composite.replace_uses(0, values[0]);
  composite.parent()->erase(&composite);
  return values[0].def;
}

// Any other composite is a call of its decomposition.
Instruction* call_of(Instruction& composite) {
  auto call =
      std::make_unique<Instruction>(OpCode::kCall, composite.operands(), composite.result_types());
  call->mutable_attributes().set(AttrKey::callee,
                                 SymbolAttr{std::string(composite.text(AttrKey::decomposition))});
  call->set_location(composite.location());
  Computation& parent = *composite.parent();
  Instruction* placed = parent.insert(std::move(call), &composite);
  composite.replace_all_uses(placed->results());
  parent.erase(&composite);
  return placed;
}

// Replaces async_start by its body, and each async_done of its future by the results of the body.
Status inline_async(Instruction& start) {
  Computation& parent = *start.parent();
  const std::vector<Value> results = clone_body(start.region(0), start.operands(), start);
  while (!start.uses().empty()) {
    Instruction* done = start.uses().front().user;
    if (done->code() != OpCode::kAsyncDone || done->result_count() != results.size()) {
      return Status(unimplemented("{}: a future may only be waited for", start.name())
                        .at(position_of(start.location())));
    }
    done->replace_all_uses(results);
    done->parent()->erase(done);
  }
  parent.erase(&start);
  return {};
}

// Whether the function, or one that it calls, does something besides computing its results.
bool has_effects(const Module& module, std::string_view name,
                 std::unordered_set<std::string_view>& seen) {
  const Computation* const function = module.find_function(name);
  if (function == nullptr) return true;
  if (!seen.insert(function->name()).second) return false;
  return any_instruction(*function, [&](const Instruction& op) {
    if (op.code() == OpCode::kCall) return has_effects(module, op.text(AttrKey::callee), seen);
    if (op.code() == OpCode::kComposite) {
      return has_effects(module, op.text(AttrKey::decomposition), seen);
    }
    return op.is_ordered();
  });
}

Result<bool> is_taken(const Instruction& composite, const PassOptions& options) {
  if (options.takes_composite == nullptr) return false;
  std::unordered_set<std::string_view> seen;
  const Module& module = *composite.parent()->module();
  if (has_effects(module, composite.text(AttrKey::decomposition), seen)) return false;
  return options.takes_composite(composite);
}

Result<bool> replace_wrappers(Computation& computation, const PassOptions& options) {
  bool changed = false;
  Instruction* op = computation.first();
  while (op != nullptr) {
    if (op->code() == OpCode::kComposite) {
      TENON_ASSIGN(const bool taken, is_taken(*op, options));
      if (taken) {
        op = op->next();
        continue;
      }
    }
    if (decomposition::function_of_composite(*op)) {
      TENON_ASSIGN(op, function_of(*op));
      changed = true;
    } else if (op->code() == OpCode::kComposite) {
      op = call_of(*op);
      changed = true;
    }
    for (size_t i = 0; i < op->region_count(); ++i) {
      TENON_ASSIGN(const bool inner, replace_wrappers(op->region(i), options));
      changed |= inner;
    }
    if (op->code() == OpCode::kAsyncStart) {
      Instruction* before = op->previous();
      TENON_TRY(inline_async(*op));
      changed = true;
      op = before != nullptr ? before->next() : computation.first();
      continue;
    }
    op = op->next();
  }
  return changed;
}

void append_symbols(const Computation& computation, OpCode code, AttrKey key,
                    std::vector<std::string>& names) {
  any_instruction(computation, [&](const Instruction& op) {
    if (op.code() == code) names.emplace_back(op.text(key));
    return false;
  });
}

// Composites within the decompositions of composites that stay are decomposed, and so in functions
// that these call: a decomposition is there for those who do not take the whole.
Result<bool> flatten_decompositions(Module& module) {
  std::vector<std::string> todo;
  for (const auto& function : module.functions()) {
    append_symbols(*function, OpCode::kComposite, AttrKey::decomposition, todo);
  }
  std::unordered_set<const Computation*> seen;
  bool changed = false;
  while (!todo.empty()) {
    Computation* const function = module.find_function(todo.back());
    todo.pop_back();
    if (function == nullptr || !seen.insert(function).second) continue;
    TENON_ASSIGN(const bool replaced, replace_wrappers(*function, {}));
    changed |= replaced;
    append_symbols(*function, OpCode::kCall, AttrKey::callee, todo);
  }
  return changed;
}

}  // namespace

Result<bool> inline_all_calls(Module& module, const PassOptions& options) {
  bool changed = false;
  for (const auto& function : module.functions()) {
    TENON_ASSIGN(const bool replaced, replace_wrappers(*function, options));
    changed |= replaced;
  }
  if (options.takes_composite != nullptr) {
    TENON_ASSIGN(const bool replaced, flatten_decompositions(module));
    changed |= replaced;
  }
  for (const auto& function : module.functions()) changed |= has_calls(*function);
  const size_t before = module.functions().size();
  TENON_TRY(inline_calls(module));
  return changed || module.functions().size() != before;
}

}  // namespace tenon::hlo
