// core/kernel/analysis/: facts about a kernel: cost, ranges of values, updates in place.
//
// The cost of a launch, counted from the kernel alone.
#pragma once

#include <cstdint>

#include "core/kernel/ir/kernel.h"

namespace tenon::kernel {

inline constexpr double kMathOperations = 30;

struct Cost {
  /// Arithmetic on floats, sums to roundings; an fma is two, a contraction of m, n and k 2mnk.
  double flops = 0;
  /// Calls of math functions (exp …) on floats, which are not among the flops. A legalised kernel
  /// has them as arithmetic.
  double transcendentals = 0;
  /// Bytes of the buffers that are loaded from, and stored to, each buffer once.
  int64_t bytes_read = 0;
  int64_t bytes_written = 0;
  /// Operations of any kind on any type, loads and stores too; a math function is kMathOperations.
  double operations = 0;
  /// False if how often something runs depends on what is computed: a `while` and a `for` of
  /// unknown ends count as one turn, one whose ends have bounds as its longest, an `if` as the
  /// greater of its branches, number by number.
  bool exact = true;
  /// Whether this is the most that it can be: no `while`, no `for` of unknown ends.
  bool bounded = true;
};

/// The cost of a verified kernel.
Cost cost_of(const Kernel& kernel);

}  // namespace tenon::kernel
