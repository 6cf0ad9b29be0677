#include "core/kernel/legalize/round_to_odd.h"

namespace tenon::kernel {

using enum ElementType;

Expr made_odd(Expr rounded, Expr exact, Expr too_far) {
  const ElementType pattern = rounded.type() == kF64 ? kU64 : kU32;
  const Expr bits = bitcast(rounded, pattern);
  const Expr odd = (bits & 1) != 0;
  const Expr neighbour = select(too_far, bits - 1, bits + 1);
  return bitcast(select(either(exact, odd), bits, neighbour), rounded.type());
}

Expr add_to_odd(Expr x, Expr y) {
  const Expr sum = x + y;
  const Expr part = sum - x;
  const Expr rest = (x - (sum - part)) + (y - part);
  const Expr zero = {x.builder, x.builder->real(x.type(), 0)};
  // NaN, of an infinite sum too, leaves the sum alone.
  const Expr exact = complement(either(rest<zero, rest> zero));
  return made_odd(sum, exact, (rest > zero) != (sum > zero));
}

Expr convert_to_odd_f32(Expr x) {
  const Expr rounded = convert(x, kF32);
  const Expr back = convert(rounded, x.type());
  if (x.type() == kF64) {
    const Expr unordered = x != x;
    const Expr farther = back.op(OpCode::kAbs) > x.op(OpCode::kAbs);
    return made_odd(rounded, either(back == x, unordered), farther);
  }
  const Expr farther = x.is_signed() ? select(x < 0, back<x, back> x) : back > x;
  return made_odd(rounded, back == x, farther);
}

}  // namespace tenon::kernel
