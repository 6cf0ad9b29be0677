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

Result<bool> replace_wrappers(Computation& computation) {
  bool changed = false;
  Instruction* op = computation.first();
  while (op != nullptr) {
    if (decomposition::function_of_composite(*op)) {
      TENON_ASSIGN(op, function_of(*op));
      changed = true;
    } else if (op->code() == OpCode::kComposite) {
      op = call_of(*op);
      changed = true;
    }
    for (size_t i = 0; i < op->region_count(); ++i) {
      TENON_ASSIGN(const bool inner, replace_wrappers(op->region(i)));
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

}  // namespace

Result<bool> inline_all_calls(Module& module) {
  bool changed = false;
  for (const auto& function : module.functions()) {
    TENON_ASSIGN(const bool replaced, replace_wrappers(*function));
    changed |= replaced || has_calls(*function);
  }
  const size_t before = module.functions().size();
  TENON_TRY(inline_calls(module));
  return changed || module.functions().size() != before;
}

}  // namespace tenon::hlo
