#include "core/kernel/math/math.h"

#include "core/kernel/math/by_op.h"
#include "core/kernel/math/emitted.h"

namespace tenon::kernel {

float math_function(OpCode code, float x, float y) { return math::apply(code, x, y); }
double math_function(OpCode code, double x, double y) { return math::apply(code, x, y); }

ValueId expand_math(Builder& builder, OpCode code, ValueId x, ValueId y) {
  const auto on = [&](auto format) {
    using R = math::Emitted<decltype(format)>;
    return math::apply(code, R{{&builder, x}}, R{{&builder, y}}).id;
  };
  return builder.type_of(x) == ElementType::kF64 ? on(double{}) : on(float{});
}

}  // namespace tenon::kernel
