#include "hlo/passes/simplify/identities.h"

#include <array>
#include <vector>

#include "hlo/passes/pass.h"
#include "hlo/passes/simplify/constants.h"

namespace tenon::hlo {
namespace {

using Rules = std::array<std::vector<const Identity*>, kOpCount>;

const Rules& rules() {
  static const Rules kRules = [] {
    Rules by_code;
    for (const auto identities : {arithmetic_identities(), shape_identities()}) {
      for (const Identity& each : identities) {
        by_code[static_cast<size_t>(each.code)].push_back(&each);
      }
    }
    return by_code;
  }();
  return kRules;
}

// Whether all values are arrays of numbers with known sizes, or the op only puts values together.
bool is_known(const Instruction& op) {
  if (op.code() == OpCode::kGetTupleElement) return true;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    if (!is_plain(op.operand_type(i))) return false;
  }
  return is_plain(op.result_type());
}

Result<bool> apply(Instruction& op) {
  const auto& candidates = rules()[static_cast<size_t>(op.code())];
  if (candidates.empty() || op.result_count() != 1 || op.uses().empty() || !is_known(op)) {
    return false;
  }
  for (const Identity* each : candidates) {
    Builder builder(*op.parent(), &op);
    builder.set_location(op.location());
    const Value value = each->apply(builder, op);
    if (!builder.ok()) return Error(builder.status());
    if (!value || value.type() != op.result_type()) continue;
    op.replace_uses(0, value);
    return true;
  }
  return false;
}

Result<bool> simplify(Computation& computation) {
  bool changed = false;
  for (Instruction* op = computation.first(); op != nullptr;) {
    for (size_t r = 0; r < op->region_count(); ++r) {
      TENON_ASSIGN(const bool inner, simplify(op->region(r)));
      changed |= inner;
    }
    Instruction* const next = op->next();
    TENON_ASSIGN(const bool here, apply(*op));
    if (here) computation.erase(op);
    changed |= here;
    op = next;
  }
  return changed;
}

}  // namespace

Result<bool> apply_identities(Module& module) {
  bool changed = false;
  for (const auto& function : module.functions()) {
    TENON_ASSIGN(const bool here, simplify(*function));
    changed |= here;
  }
  return changed;
}

}  // namespace tenon::hlo
