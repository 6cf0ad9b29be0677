#include "hlo/lower/uses.h"

#include <algorithm>

namespace tenon::hlo::lower {

bool ends_at(Value value, const Instruction& op) {
  const Computation* const computation = op.parent();
  const bool argument =
      value.def->code() == OpCode::kParameter && value.def->parent()->owner() == nullptr;
  if (value.def->code() == OpCode::kConstant || argument) return false;
  // A value from outside of a loop's body is still live in the loop's next iteration.
  if (value.def->parent() != computation) return false;
  return std::ranges::none_of(value.def->uses(), [&](const Use& use) {
    if (use.user->operand(use.operand) != value) return false;
    const Instruction* user = use.user;
    while (user->parent() != computation) user = user->parent()->owner();
    return op.comes_before(*user);
  });
}

std::optional<size_t> changed_operand(const Instruction& op, uint32_t result) {
  switch (op.info().updates) {
    case Updates::kNothing:
      break;
    case Updates::kFirst:
      return 0;
    case Updates::kSameIndex:
    case Updates::kState:
      return result;
  }
  return std::nullopt;
}

bool may_change(const Instruction& op, size_t i) {
  const Value value = op.operand(i);
  return std::ranges::count(all_operands(op), value) == 1 && ends_at(value, op);
}

std::optional<std::vector<Value>> update_chain(const Instruction& loop, uint32_t i) {
  std::vector<Value> chain;
  const Value begin = loop.region(1).parameter(i);
  Value value = loop.region(1).return_instruction()->operand(i);
  while (value != begin) {
    const Instruction& op = *value.def;
    const std::optional<size_t> operand = changed_operand(op, value.index);
    if (!operand || !may_change(op, *operand)) return std::nullopt;
    if (op.code() == OpCode::kWhile) {
      auto within = update_chain(op, value.index);
      if (!within) return std::nullopt;
      chain.insert(chain.end(), within->begin(), within->end());
    }
    chain.push_back(value);
    value = op.operand(*operand);
  }
  return chain;
}

}  // namespace tenon::hlo::lower
