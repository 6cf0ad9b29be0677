#include "hlo/lower/elements/bit_patterns.h"

#include <cmath>

#include "hlo/lower/elements/index_math.h"

namespace tenon::hlo::lower {
namespace {

using kernel::Builder;

constexpr ElementType kWide = ElementType::kF32;
constexpr ElementType kWideBits = ElementType::kU32;

// Floats of six bits, a width that no integer type has. In f32, which represents them as normal
// numbers, their normal numbers have the same mantissa, shifted left, and another bias; the others
// are multiples of the least number.
class SixBits {
 public:
  SixBits(Builder& b, ElementType type)
      : b_(b),
        type_(type),
        format_(element_type_info(type).format),
        wide_(element_type_info(kWide).format),
        shift_(wide_.mantissa_bits - format_.mantissa_bits),
        rebias_(static_cast<int64_t>(wide_.bias - format_.bias) << format_.mantissa_bits),
        least_(std::ldexp(1.0, 1 - format_.bias - format_.mantissa_bits)) {}

  ValueId bits_of(ValueId x) {
    const ValueId wide = b_.convert(x, kWide);
    const ValueId size = b_.unary(K::kAbs, wide);
    const ValueId normal =
        b_.sub(b_.binary(K::kShr, b_.bitcast(size, kWideBits), number(shift_)), number(rebias_));
    const ValueId multiple = b_.mul(size, b_.real(kWide, 1 / least_));
    const ValueId is_normal =
        b_.compare(K::kGe, size, b_.real(kWide, std::ldexp(1.0, 1 - format_.bias)));
    const ValueId bits = b_.select(is_normal, normal, b_.convert(multiple, kWideBits));
    const ValueId sign = b_.binary(K::kShr, b_.bitcast(wide, kWideBits), number(31));
    const ValueId whole = b_.logical_or(bits, b_.binary(K::kShl, sign, number(kSign)));
    return b_.convert(whole, ElementType::kU8);
  }

  ValueId from_bits(ValueId bits) {
    const ValueId all = b_.convert(bits, kWideBits);
    const ValueId size = b_.logical_and(all, number((1 << kSign) - 1));
    const ValueId normal =
        b_.bitcast(b_.binary(K::kShl, b_.add(size, number(rebias_)), number(shift_)), kWide);
    const ValueId multiple = b_.mul(b_.convert(size, kWide), b_.real(kWide, least_));
    const ValueId is_normal = b_.compare(K::kGe, size, number(int64_t{1} << format_.mantissa_bits));
    const ValueId x = b_.select(is_normal, normal, multiple);
    const ValueId sign = b_.binary(
        K::kShl, b_.logical_and(b_.binary(K::kShr, all, number(kSign)), number(1)), number(31));
    const ValueId signed_x = b_.bitcast(b_.logical_or(b_.bitcast(x, kWideBits), sign), kWide);
    return b_.convert(signed_x, type_);
  }

 private:
  static constexpr int64_t kSign = 5;

  ValueId number(int64_t value) { return b_.integer(kWideBits, value); }

  Builder& b_;
  const ElementType type_;
  const FloatFormat& format_;
  const FloatFormat& wide_;
  const int64_t shift_;
  const int64_t rebias_;
  const double least_;
};

bool has_integer(ElementType type) { return integer_of_width(bit_width(type), false).has_value(); }

}  // namespace

ElementType bits_type(ElementType type) {
  return is_pred(type) ? ElementType::kU8
                       : integer_of_width(bit_width(type), false).value_or(ElementType::kU8);
}

ValueId bits_of(Builder& b, ValueId x) {
  const ElementType type = b.type_of(x);
  if (is_pred(type)) return b.convert(x, ElementType::kU8);
  return has_integer(type) ? b.bitcast(x, bits_type(type)) : SixBits(b, type).bits_of(x);
}

ValueId from_bits(Builder& b, ValueId bits, ElementType type) {
  if (is_pred(type)) {
    return b.convert(b.logical_and(bits, b.integer(b.type_of(bits), 1)), type);
  }
  if (!has_integer(type)) return SixBits(b, type).from_bits(bits);
  return b.bitcast(b.convert(bits, bits_type(type)), type);
}

}  // namespace tenon::hlo::lower
