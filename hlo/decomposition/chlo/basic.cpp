// hlo/decomposition/chlo/: decompositions of CHLO ops.
//
// CHLO ops that need only one or a few StableHLO ops.
#include <cmath>
#include <limits>

#include "hlo/decomposition/decomposition_util.h"
#include "hlo/decomposition/math_builder.h"

namespace tenon::hlo::decomposition {
namespace {

struct BroadcastRow {
  OpCode broadcasting;
  OpCode plain;
};

constexpr BroadcastRow kBroadcastRows[] = {
    {OpCode::kChloBroadcastAdd, OpCode::kAdd},
    {OpCode::kChloBroadcastAnd, OpCode::kAnd},
    {OpCode::kChloBroadcastAtan2, OpCode::kAtan2},
    {OpCode::kChloBroadcastCompare, OpCode::kCompare},
    {OpCode::kChloBroadcastComplex, OpCode::kComplex},
    {OpCode::kChloBroadcastDivide, OpCode::kDivide},
    {OpCode::kChloBroadcastMaximum, OpCode::kMaximum},
    {OpCode::kChloBroadcastMinimum, OpCode::kMinimum},
    {OpCode::kChloBroadcastMultiply, OpCode::kMultiply},
    {OpCode::kChloBroadcastNextAfter, OpCode::kChloNextAfter},
    {OpCode::kChloBroadcastOr, OpCode::kOr},
    {OpCode::kChloBroadcastPolygamma, OpCode::kChloPolygamma},
    {OpCode::kChloBroadcastPower, OpCode::kPower},
    {OpCode::kChloBroadcastRemainder, OpCode::kRemainder},
    {OpCode::kChloBroadcastSelect, OpCode::kSelect},
    {OpCode::kChloBroadcastShiftLeft, OpCode::kShiftLeft},
    {OpCode::kChloBroadcastShiftRightArithmetic, OpCode::kShiftRightArithmetic},
    {OpCode::kChloBroadcastShiftRightLogical, OpCode::kShiftRightLogical},
    {OpCode::kChloBroadcastSubtract, OpCode::kSubtract},
    {OpCode::kChloBroadcastXor, OpCode::kXor},
    {OpCode::kChloBroadcastZeta, OpCode::kChloZeta},
};

// x broadcast to `dims`. For an operand of lower rank, broadcast_dimensions lists its result
// dimensions; without the attribute they are the last ones.
Value spread(Builder& b, const Instruction& op, Value x, const Dims& dims) {
  if (!b.ok() || x.type().dims() == dims) return x;
  const int64_t rank = x.type().rank();
  const auto added = static_cast<int64_t>(dims.size()) - rank;
  I64s dimensions = counting(rank);
  for (int64_t& d : dimensions) d += added;
  const auto* stated = op.attr<I64s>(AttrKey::broadcast_dimensions);
  if (stated != nullptr && static_cast<int64_t>(stated->size()) == rank && added > 0) {
    dimensions = *stated;
  }
  return b.broadcast_in_dim(x, dims, std::move(dimensions));
}

}  // namespace

Values chlo_broadcast(Builder& b, const Instruction& op) {
  TENON_TRY(check_static(op));
  for (const BroadcastRow& row : kBroadcastRows) {
    if (row.broadcasting != op.code()) continue;
    std::vector<Value> operands;
    for (const Value x : op.operands()) {
      operands.push_back(spread(b, op, x, op.result_type().dims()));
    }
    auto plain = std::make_unique<Instruction>(row.plain, std::move(operands), std::vector<Type>{});
    for (const AttrKey key : {AttrKey::comparison_direction, AttrKey::compare_type}) {
      if (const Attribute* value = op.attribute(key)) plain->mutable_attributes().set(key, *value);
    }
    Instruction* made = b.create(std::move(plain));
    return finished(b, {made ? made->result() : Value{}});
  }
  return internal_error("{} has no op without broadcasting", op.name());
}

Values chlo_conj(Builder& b, const Instruction& op) {
  TENON_TRY(check_static(op));
  const Expr z(b, op.operand(0));
  if (!is_complex(z.type())) return finished(b, {z.value()});
  return finished(b, {complex(real(z), -imag(z)).value()});
}

Values chlo_square(Builder& b, const Instruction& op) {
  TENON_TRY(check_static(op));
  const Expr z(b, op.operand(0));
  if (!is_complex(z.type())) return finished(b, {(z * z).value()});
  const Expr x = real(z), y = imag(z);
  // Equal magnitudes cancel even if their difference is 0 and their sum infinite.
  const Expr cancels = (abs(x) == abs(y)) & Expr(b, b.unary(OpCode::kIsFinite, x.value()));
  const Expr re = select(cancels, 0.0, (x - y) * (x + y));
  return finished(b, {complex(re, 2.0 * (x * y)).value()});
}

Values chlo_constant(Builder& b, const Instruction& op) {
  return finished(b, {b.constant(*op.attr<DenseAttr>(AttrKey::value))});
}

namespace {

// There is no attribute kind for a complex number, so it is text: "#complex.number<:f32 1.0, 2.0>".
std::optional<std::complex<double>> complex_of_text(std::string_view text) {
  const size_t space = text.find(' '), comma = text.find(',');
  if (space == std::string_view::npos || comma == std::string_view::npos || comma < space) {
    return std::nullopt;
  }
  const std::string re(text.substr(space, comma - space)), im(text.substr(comma + 1));
  return std::complex<double>(std::strtod(re.c_str(), nullptr), std::strtod(im.c_str(), nullptr));
}

std::optional<Literal> scalar_of(const Attribute& value, ElementType type) {
  if (const auto* integer = value.get<IntegerAttr>()) {
    return Literal::scalar_integer(type, integer->value);
  }
  if (const auto* number = value.get<FloatAttr>()) return Literal::scalar(type, number->value());
  if (const auto* truth = value.get<bool>()) return Literal::scalar_integer(type, *truth ? 1 : 0);
  const auto* text = value.get<OpaqueAttr>();
  const auto number = text && is_complex(type) ? complex_of_text(text->text) : std::nullopt;
  if (!number) return std::nullopt;
  Literal literal = Literal::scalar(type, 0);
  literal.set_complex(0, *number);
  return literal;
}

}  // namespace

Values chlo_constant_like(Builder& b, const Instruction& op) {
  TENON_TRY(check_static(op));
  const Attribute& value = *op.attribute(AttrKey::value);
  const Shape& shape = op.result_type().shape();
  if (const auto* dense = value.get<DenseAttr>()) {
    if (dense->shape == shape) return finished(b, {b.constant(*dense)});
    if (dense->values.shape().is_scalar()) {
      return finished(b, {b.constant(DenseAttr::splat(shape, dense->values))});
    }
  }
  const std::optional<Literal> scalar = scalar_of(value, shape.element_type());
  if (!scalar) {
    return unimplemented("{}: the value is not a number of {}", op.name(),
                         name_of(shape.element_type()));
  }
  return finished(b, {b.constant(DenseAttr::splat(shape, *scalar))});
}

namespace {

Values equals(Builder& b, const Instruction& op, const Expr& x, double number) {
  TENON_TRY(check_static(op));
  // A format without infinities needs no test; the converted number could be wrong.
  const ElementType computed = computing_type(op.operand_type(0).element_type());
  return finished(b, {(convert(x, computed) == number).value()});
}

}  // namespace

Values chlo_is_inf(Builder& b, const Instruction& op) {
  return equals(b, op, abs(Expr(b, op.operand(0))), kInfinity);
}
Values chlo_is_pos_inf(Builder& b, const Instruction& op) {
  return equals(b, op, Expr(b, op.operand(0)), kInfinity);
}
Values chlo_is_neg_inf(Builder& b, const Instruction& op) {
  return equals(b, op, Expr(b, op.operand(0)), -kInfinity);
}

namespace {

// The high word of a u64 product, from products of halves.
Expr multiply_high_u64(const Expr& x, const Expr& y) {
  const Expr half = x.constant(32), low = x.constant(0xFFFFFFFF);
  const Expr x0 = x & low, x1 = shift_right(x, half);
  const Expr y0 = y & low, y1 = shift_right(y, half);
  const Expr inner = x1 * y0 + shift_right(x0 * y0, half);
  const Expr outer = x0 * y1 + (inner & low);
  return x1 * y1 + shift_right(inner, half) + shift_right(outer, half);
}

ElementType wider_integer(ElementType type) {
  const bool is_signed = is_signed_integer(type);
  return bit_width(type) == 32 ? (is_signed ? ElementType::kS64 : ElementType::kU64)
                               : (is_signed ? ElementType::kS32 : ElementType::kU32);
}

}  // namespace

Values chlo_mulhi(Builder& b, const Instruction& op) {
  TENON_TRY(check_static(op));
  const Expr x(b, op.operand(0)), y(b, op.operand(1));
  const ElementType type = x.type();
  if (type == ElementType::kU64) return finished(b, {multiply_high_u64(x, y).value()});
  if (type == ElementType::kS64) {
    // A negative x as unsigned is x + 2^64, which adds y to the high word.
    const Expr high = convert(
        multiply_high_u64(convert(x, ElementType::kU64), convert(y, ElementType::kU64)), type);
    const Expr zero = x.constant(0);
    return finished(b, {(high - select(x < zero, y, zero) - select(y < zero, x, zero)).value()});
  }
  const ElementType wide = wider_integer(type);
  const Expr product = convert(x, wide) * convert(y, wide);
  const OpCode shift =
      is_signed_integer(type) ? OpCode::kShiftRightArithmetic : OpCode::kShiftRightLogical;
  return finished(b,
                  {convert(product.apply(shift, product.constant(bit_width(type))), type).value()});
}

namespace {

std::optional<ElementType> integer_of_width(int bits) {
  switch (bits) {
    case 8:
      return ElementType::kS8;
    case 16:
      return ElementType::kS16;
    case 32:
      return ElementType::kS32;
    case 64:
      return ElementType::kS64;
    default:
      return std::nullopt;
  }
}

}  // namespace

// The bits of a float are its sign and a magnitude that counts representable numbers from zero.
Values chlo_next_after(Builder& b, const Instruction& op) {
  TENON_TRY(check_static(op));
  const Expr x(b, op.operand(0)), y(b, op.operand(1));
  const ElementType type = x.type();
  const FloatSpecials specials = element_type_info(type).format.specials;
  const std::optional<ElementType> bits_type = integer_of_width(bit_width(type));
  if (!bits_type || (specials != FloatSpecials::kIeee && specials != FloatSpecials::kNanOnly)) {
    return unimplemented("{} is not defined on {}", op.name(), name_of(type));
  }
  const Dims& dims = op.result_type().dims();
  const auto bits_of = [&](const Expr& v) {
    return Expr(b, b.bitcast(v.value(), Type::tensor(*bits_type, dims)));
  };
  const Expr bits = bits_of(x), target = bits_of(y);
  const Expr sign_bit(
      b, b.constant(DenseAttr::splat(
             Shape(*bits_type, dims),
             Literal::scalar_integer(
                 *bits_type, std::numeric_limits<int64_t>::min() >> (64 - bit_width(type))))));
  const Expr magnitude = bits & !sign_bit, target_magnitude = target & !sign_bit;
  const Expr signs_differ = ((bits ^ target) & sign_bit) != 0.0;
  const Expr toward_zero = signs_differ | (magnitude > target_magnitude);
  const Expr stepped = bits + select(toward_zero, -1.0, bits.constant(1));
  const Expr least = (target & sign_bit) | bits.constant(1);
  const Expr next = select(magnitude == 0.0, least, stepped);
  const Expr result(b, b.bitcast(next.value(), Type::tensor(type, dims)));
  const Expr is_nan = (x != x) | (y != y);
  return finished(b, {select(is_nan, x + y, select(x == y, y, result)).value()});
}

}  // namespace tenon::hlo::decomposition
