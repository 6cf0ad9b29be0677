// The op rng, computed by rng_bit_generator from the state that the builder carries.
#include "hlo/decomposition/decomposition_util.h"
#include "hlo/decomposition/math_builder.h"

namespace tenon::hlo::decomposition {
namespace {

/// Random bits of `type` (u32 or u64); advances the builder's state.
Expr random_bits(Builder& b, ElementType type, Dims dims) {
  Instruction* drawn =
      b.create(OpCode::kRngBitGenerator, {b.random_state()},
               {{AttrKey::rng_algorithm,
                 EnumAttr{EnumKind::kRngAlgorithm, static_cast<uint8_t>(RngAlgorithm::kPhilox)}}},
               {b.random_state().type(), Type::tensor(type, std::move(dims))});
  if (drawn == nullptr) return {b, Value()};
  b.set_random_state(drawn->result(0));
  return {b, drawn->result(1)};
}

/// Numbers in [0, 1): 24 random bits for f32, 53 for f64, so that each is exact.
Expr unit_interval(Builder& b, ElementType type, const Dims& dims) {
  const bool wide = type == ElementType::kF64;
  const Expr bits = random_bits(b, wide ? ElementType::kU64 : ElementType::kU32, dims);
  return convert(shift_right(bits, bits.constant(wide ? 11 : 8)), type) *
         (wide ? 0x1p-53 : 0x1p-24);
}

/// The bits of an integer, sign-extended to 64.
Expr as_u64(const Expr& x) {
  if (!is_signed_integer(x.type())) return convert(x, ElementType::kU64);
  const Expr wide = convert(x, ElementType::kS64);
  return {x.builder(), x.builder().bitcast(
                           wide.value(), wide.value().type().with_element_type(ElementType::kU64))};
}

// a + bits mod (b - a). A 64-bit remainder favours no value by more than range / 2^64.
Expr uniform_integers(Builder& b, const Expr& low, const Expr& high, const Dims& dims) {
  const Expr first = as_u64(low);
  const Expr range = as_u64(high) - first;
  const Expr bits = random_bits(b, ElementType::kU64, dims);
  const Expr offset = select(range == 0, 0, bits - bits / range * range);
  const Expr value = first + offset;
  if (!is_signed_integer(low.type())) return convert(value, low.type());
  const Type s64 =
      value.value() ? value.value().type().with_element_type(ElementType::kS64) : Type();
  return convert(Expr(b, b.bitcast(value.value(), s64)), low.type());
}

// Rounding may give the upper bound, which is excluded: it is replaced by the lower bound.
Expr uniform_floats(Builder& b, const Expr& low, const Expr& high, ElementType type,
                    const Dims& dims) {
  const Expr value = low + (high - low) * unit_interval(b, low.type(), dims);
  const Expr rounded = convert(value, type);
  const Expr bound = convert(high, type);
  return select(rounded >= bound, convert(low, type), rounded);
}

// Box and Muller, "A note on the generation of random normal deviates" (1958).
Expr normal_floats(Builder& b, const Expr& mean, const Expr& deviation, const Dims& dims) {
  const Expr radius = sqrt(-2.0 * log(1.0 - unit_interval(b, mean.type(), dims)));
  const Expr angle = unit_interval(b, mean.type(), dims) * 6.283185307179586;
  return mean + deviation * radius * cos(angle);
}

}  // namespace

Values rng(Builder& b, const Instruction& op) {
  if (!b.random_state()) return internal_error("{}: the decomposition has no state", op.name());
  TENON_TRY(check_static(op));
  const Type& type = op.result_type();
  const ElementType element = type.element_type();
  const bool floating = is_float(element);
  const ElementType computing = floating ? computing_type(element) : element;
  const auto spread = [&](size_t i) {
    return Expr(b, b.broadcast_scalar(b.convert(op.operand(i), computing), type.dims()));
  };
  const bool normal =
      op.enumeration<RngDistribution>(AttrKey::rng_distribution) == RngDistribution::kNormal;
  const Expr value = !floating ? uniform_integers(b, spread(0), spread(1), type.dims())
                     : normal
                         ? convert(normal_floats(b, spread(0), spread(1), type.dims()), element)
                         : uniform_floats(b, spread(0), spread(1), element, type.dims());
  return finished(b, {value.value()});
}

}  // namespace tenon::hlo::decomposition
