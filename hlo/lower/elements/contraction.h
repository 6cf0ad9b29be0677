// Helpers for lowering dot_general.
#pragma once

#include <array>

#include "core/program/library_call.h"
#include "hlo/lower/elements/emitter.h"
#include "hlo/lower/elements/index_math.h"

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

/// An element of a convolution's window: its place in the window, and its feature within the group.
struct WindowElement {
  ValueId batch = 0;  ///< Number of the array in the result.
  Values spatial;     ///< The place of the result.
  ValueId group = 0;
  Values in_window;
  ValueId feature = 0;
};
/// The index of the element of the input. Narrows `inside` to windows that do not hang over the
/// input, and to elements that are not gaps of its dilation, unless the caller takes only those: of
/// dimension s places are multiples of `multiples[s]`.
Values input_index(kernel::Builder& b, const Instruction& op, const program::Convolution& c,
                   const WindowElement& of, const I64s& multiples, ValueId& inside);
/// The index of its factor in the kernel, for the output feature `output`.
Values kernel_index(kernel::Builder& b, const Instruction& op, const program::Convolution& c,
                    const WindowElement& of, ValueId output);

}  // namespace tenon::hlo::lower
