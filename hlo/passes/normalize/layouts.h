// Orders of dimensions, and a walk over ops, for the passes on layouts.
#pragma once

#include "hlo/builder/builder.h"

namespace tenon::hlo {

/// The permutation that undoes `order`.
inline I64s inverse_order(const I64s& order) {
  I64s inverted(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    inverted[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  return inverted;
}

/// `values` in that order: element i of the result is element order[i].
template <class Sequence>
Sequence in_order(const Sequence& values, const I64s& order) {
  Sequence ordered;
  for (const int64_t d : order) ordered.push_back(values[static_cast<size_t>(d)]);
  return ordered;
}

/// The value with its dimensions in that order; itself if they are.
inline Value transposed(Builder& builder, Value value, const I64s& order) {
  if (!value.type().is_tensor() || std::ranges::is_sorted(order)) return value;
  return builder.make(OpCode::kTranspose, {value}, {{AttrKey::permutation, order}});
}

/// Calls `change` with each op of a computation and of its regions, innermost first; it may erase
/// the op. Fusions are entered only if `in_fusions`. True if one call was.
template <class Change>
bool change_ops(Computation& computation, const Change& change, bool in_fusions = true) {
  bool changed = false;
  for (Instruction* op = computation.first(); op != nullptr;) {
    Instruction* const next = op->next();
    const bool enter = in_fusions || op->code() != OpCode::kFusion;
    for (size_t r = 0; enter && r < op->region_count(); ++r)
      changed |= change_ops(op->region(r), change, in_fusions);
    changed |= change(*op);
    op = next;
  }
  return changed;
}
template <class Change>
bool change_ops(Module& module, const Change& change, bool in_fusions = true) {
  bool changed = false;
  for (const auto& function : module.functions())
    changed |= change_ops(*function, change, in_fusions);
  return changed;
}

}  // namespace tenon::hlo
