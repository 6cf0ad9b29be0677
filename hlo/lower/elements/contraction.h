// Helpers for lowering dot_general.
#pragma once

#include <array>

#include "hlo/lower/elements/emitter.h"

namespace tenon::hlo::lower {

/// The type of products and sums: f32 for floats of at most 32 bits, f64 for f64; integers wrap in
/// the result's type.
ElementType accumulator(const Instruction& op);

/// The dimensions of a dot_general by role: the result's are batch, m, n.
struct DotShape {
  explicit DotShape(const Instruction& dot);

  Dims batch, m, n, k;
  /// The index of an element of a factor: of operand 0 from (batch, m, k), of operand 1 from
  /// (batch, n, k).
  Values factor(size_t operand, const Values& in_batch, const Values& free,
                const Values& contracting) const;

  /// The dimensions of each kind, in order, for each operand.
  std::array<I64s, 2> batching, free, contracting;
};

}  // namespace tenon::hlo::lower
