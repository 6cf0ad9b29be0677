// What the expansions share.
#pragma once

#include <utility>

#include "hlo/expand/expand.h"

namespace tenon::hlo::expand {

/// The results, or the first error that the builder met.
inline Values done(Builder& b, std::vector<Value> values) {
  if (!b.ok()) return tl::make_unexpected(b.status());
  return values;
}

/// 0, 1, … rank - 1 without those in `left_out`.
inline I64s dims_without(int64_t rank, const I64s& left_out) {
  I64s dims;
  for (int64_t d = 0; d < rank; ++d) {
    bool out = false;
    for (const int64_t x : left_out) out |= x == d;
    if (!out) dims.push_back(d);
  }
  return dims;
}

/// The value of a constant operand as integers, or nothing.
inline std::optional<I64s> constant_integers(Value value) {
  if (value.def->code() != OpCode::kConstant) return std::nullopt;
  const auto* dense = value.def->attr<DenseAttr>(AttrKey::value);
  if (dense == nullptr || dense->shape.element_count() > (1 << 20)) return std::nullopt;
  I64s out(static_cast<size_t>(dense->shape.element_count()));
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = dense->values.get_integer(dense->is_splat() ? 0 : static_cast<int64_t>(i));
  }
  return out;
}

/// Whether every size of the result is known; the error that says so otherwise.
inline Status require_static_result(const Instruction& op) {
  const Type& type = op.result_type();
  if (type.is_tensor() && type.shape().is_static()) return {};
  return failed_precondition("{}: the result shape {} is not known; refine the program first",
                             op.name(), type.to_string())
      .at(position_of(op.location()));
}

}  // namespace tenon::hlo::expand
