// Orders of dimensions, and a walk over ops, for the passes on layouts.
#pragma once

#include <algorithm>
#include <set>

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

/// A matrix with its rows in that order.
inline I64Matrix in_order(const I64Matrix& matrix, const I64s& order) {
  I64Matrix ordered = {matrix.rows, matrix.columns, {}};
  for (const int64_t row : order) {
    for (int64_t column = 0; column < matrix.columns; ++column)
      ordered.values.push_back(matrix.at(row, column));
  }
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

/// Transposes that a pass put behind ops that now compute in another order.
using TransposeSet = std::set<const Instruction*>;
/// Moves them through the ops that read them and need no order of dimensions; true if anything
/// changed. The set gets those that are new.
bool sink_transposes(Module& module, TransposeSet& transposes);

}  // namespace tenon::hlo
