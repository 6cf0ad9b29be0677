#include "core/kernel/legalize/round_to_odd.h"

namespace tenon::kernel {

using enum ElementType;

KernelExpr made_odd(KernelExpr rounded, KernelExpr exact, KernelExpr too_far) {
  const ElementType pattern = rounded.type() == kF64 ? kU64 : kU32;
  const KernelExpr bits = bitcast(rounded, pattern);
  const KernelExpr odd = (bits & 1) != 0;
  const KernelExpr neighbour = select(too_far, bits - 1, bits + 1);
  return bitcast(select(either(exact, odd), bits, neighbour), rounded.type());
}

KernelExpr add_to_odd(KernelExpr x, KernelExpr y) {
  const KernelExpr sum = x + y;
  const KernelExpr part = sum - x;
  const KernelExpr rest = (x - (sum - part)) + (y - part);
  const KernelExpr zero = {x.builder, x.builder->real(x.type(), 0)};
  // If the rest is NaN, also for an infinite sum, the sum stays as it is.
  const KernelExpr exact = complement(either(rest<zero, rest> zero));
  return made_odd(sum, exact, (rest > zero) != (sum > zero));
}

KernelExpr convert_to_odd_f32(KernelExpr x) {
  const KernelExpr rounded = convert(x, kF32);
  const KernelExpr back = convert(rounded, x.type());
  if (x.type() == kF64) {
    const KernelExpr unordered = x != x;
    const KernelExpr farther = back.op(OpCode::kAbs) > x.op(OpCode::kAbs);
    return made_odd(rounded, either(back == x, unordered), farther);
  }
  const KernelExpr farther = x.is_signed() ? select(x < 0, back<x, back> x) : back > x;
  return made_odd(rounded, back == x, farther);
}

}  // namespace tenon::kernel
