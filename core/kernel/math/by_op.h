// The math functions, selected by operation.
#pragma once

#include "core/kernel/ir/ops.h"
#include "core/kernel/math/trigonometry.h"

namespace tenon::kernel::math {

/// The value of a math function; `y` is used if it takes two arguments.
template <class R>
R apply(OpCode code, R x, R y) {
  switch (code) {
    case OpCode::kExp:
      return exp(x);
    case OpCode::kExpm1:
      return expm1(x);
    case OpCode::kLog:
      return log(x);
    case OpCode::kLog1p:
      return log1p(x);
    case OpCode::kSin:
      return sin(x);
    case OpCode::kCos:
      return cos(x);
    case OpCode::kTan:
      return tan(x);
    case OpCode::kTanh:
      return tanh(x);
    case OpCode::kLogistic:
      return logistic(x);
    case OpCode::kErf:
      return erf(x);
    case OpCode::kErfc:
      return erfc(x);
    case OpCode::kCbrt:
      return cbrt(x);
    case OpCode::kRsqrt:
      return rsqrt(x);
    case OpCode::kAtan2:
      return atan2(x, y);
    case OpCode::kPow:
      return pow(x, y);
    default:
      return x;
  }
}

}  // namespace tenon::kernel::math
