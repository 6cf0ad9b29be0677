// core/kernel/analysis/: facts about a kernel: cost, ranges of values, updates in place.
//
// The cost of a launch, computed from the kernel alone.
#pragma once

#include <cstdint>

#include "core/kernel/ir/kernel.h"

namespace tenon::kernel {

inline constexpr double kMathOperations = 30;

struct Cost {
  /// Floating-point arithmetic: from additions to roundings; an fma counts as two, a contraction of
  /// m, n and k as 2mnk.
  double flops = 0;
  /// Calls of math functions (exp …) on floats, which do not count as flops. A legalised kernel has
  /// them expanded to arithmetic.
  double transcendentals = 0;
  /// Bytes of the buffers that are loaded from, and of those that are stored to; of each buffer at
  /// most its size, and at most what the accesses reach (rows of a large table).
  int64_t bytes_read = 0;
  int64_t bytes_written = 0;
  /// Operations of any kind on any type, including loads and stores; a math function counts as
  /// kMathOperations.
  double operations = 0;
  /// False if computed values determine how often something runs. Then a `while`, and a `for` with
  /// unknown bounds, count as one iteration; a `for` whose bounds have known ranges counts as the
  /// longest possible; an `if` counts as the maximum of its branches, separately for each number.
  bool exact = true;
  /// Whether the cost is an upper bound: there is no `while`, and no `for` with unknown bounds.
  bool bounded = true;
};

/// The cost of a verified kernel.
Cost cost_of(const Kernel& kernel);

}  // namespace tenon::kernel
