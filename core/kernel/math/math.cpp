#include "core/kernel/math/math.h"

#include "core/kernel/math/emitted.h"
#include "core/kernel/math/trigonometry.h"

namespace tenon::kernel {
namespace {

template <class R>
R apply(OpCode code, R x, R y) {
  switch (code) {
    case OpCode::kExp:
      return math::exp(x);
    case OpCode::kExpm1:
      return math::expm1(x);
    case OpCode::kLog:
      return math::log(x);
    case OpCode::kLog1p:
      return math::log1p(x);
    case OpCode::kSin:
      return math::sin(x);
    case OpCode::kCos:
      return math::cos(x);
    case OpCode::kTan:
      return math::tan(x);
    case OpCode::kTanh:
      return math::tanh(x);
    case OpCode::kLogistic:
      return math::logistic(x);
    case OpCode::kCbrt:
      return math::cbrt(x);
    case OpCode::kRsqrt:
      return math::rsqrt(x);
    case OpCode::kAtan2:
      return math::atan2(x, y);
    case OpCode::kPow:
      return math::pow(x, y);
    default:
      return x;
  }
}

}  // namespace

float math_function(OpCode code, float x, float y) { return apply(code, x, y); }
double math_function(OpCode code, double x, double y) { return apply(code, x, y); }

ValueId expand_math(Builder& builder, OpCode code, ValueId x, ValueId y) {
  const auto on = [&](auto format) {
    using R = math::Emitted<decltype(format)>;
    return apply(code, R{{&builder, x}}, R{{&builder, y}}).id;
  };
  return builder.type_of(x) == ElementType::kF64 ? on(double{}) : on(float{});
}

}  // namespace tenon::kernel
