// The math functions whose accuracy is measured: those of the kernel IR, and CHLO's, which are
// decomposed into them. Each has a more precise reference and a kernel.
#pragma once

#include <string>
#include <vector>

#include "core/kernel/ir/kernel.h"
#include "core/types/float_convert.h"

namespace tenon::conformance {

struct MathFunction {
  std::string name;  ///< "exp", "chlo.erf"
  int operands = 1;
  double bound = 0;  ///< Maximum error in units in the last place.
  /// If the exact value is closer to zero than the terms whose difference it is, the unit is that
  /// of this number; null if every value is accurate to its own unit.
  double (*size_of_terms)(double x) = nullptr;
  double (*exact)(double, double) = nullptr;  ///< Null if there is only binary128.
  Float128 (*exact128)(Float128, Float128) = nullptr;
  kernel::OpCode op = kernel::OpCode::kYield;  ///< Set if the kernel IR has the function.

  bool is_op() const { return op != kernel::OpCode::kYield; }
};

const std::vector<MathFunction>& math_functions();

/// A kernel y[i] = function(x[i]) with the name `name`, for `count` numbers of `type`; for a
/// function of one argument.
Result<kernel::Kernel> kernel_of(const MathFunction& function, ElementType type, int64_t count,
                                 const std::string& name);

}  // namespace tenon::conformance
