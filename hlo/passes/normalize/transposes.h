// Orders of dimensions.
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

}  // namespace tenon::hlo
