#include "core/types/float_convert.h"

#include <bit>
#include <cmath>
#include <limits>

namespace tenon {
namespace {

// The few operations that the encoder needs, on both source types. For binary128 they are written
// with plain arithmetic, so that core needs no quad-precision library.
bool is_nan(double x) { return std::isnan(x); }
bool is_nan(Float128 x) { return x != x; }
bool sign_bit(double x) { return std::signbit(x); }
bool sign_bit(Float128 x) { return (std::bit_cast<unsigned __int128>(x) >> 127) != 0; }
bool is_inf(double x) { return std::isinf(x); }
bool is_inf(Float128 x) {
  const auto bits = std::bit_cast<unsigned __int128>(x) << 1;
  return bits == (static_cast<unsigned __int128>(0x7FFF) << 113);
}

// Exponent e with 2^e <= |x| < 2^(e+1); x is finite and not zero.
int exponent_of(double x) { return std::ilogb(x); }
int exponent_of(Float128 x) {
  auto biased = [](Float128 v) {
    return static_cast<int>((std::bit_cast<unsigned __int128>(v) >> 112) & 0x7FFF);
  };
  if (biased(x) != 0) return biased(x) - 16383;
  const Float128 scaled = x * static_cast<Float128>(0x1p200);  // a denormal binary128
  return biased(scaled) - 16383 - 200;
}

double scale(double x, int exponent) { return std::ldexp(x, exponent); }
Float128 scale(Float128 x, int exponent) {
  while (exponent > 900) {
    x *= static_cast<Float128>(0x1p900);
    exponent -= 900;
  }
  while (exponent < -900) {
    x *= static_cast<Float128>(0x1p-900);
    exponent += 900;
  }
  return x * static_cast<Float128>(std::ldexp(1.0, exponent));
}

// Rounds to the nearest integer, ties to even; |x| < 2^62.
uint64_t round_to_integer(double x) { return static_cast<uint64_t>(std::nearbyint(x)); }
uint64_t round_to_integer(Float128 x) {
  const auto floor = static_cast<uint64_t>(x);
  const Float128 rest = x - static_cast<Float128>(floor);
  const auto half = static_cast<Float128>(0.5);
  if (rest > half || (rest == half && (floor & 1) != 0)) return floor + 1;
  return floor;
}

struct Encodings {
  uint64_t max_finite;  // magnitude bits
  uint64_t infinity;    // magnitude bits; meaningful for kIeee
  uint64_t nan;         // whole pattern
};

Encodings encodings_of(const FloatFormat& format) {
  const uint64_t exponent_mask = ((uint64_t{1} << format.exponent_bits) - 1)
                                 << format.mantissa_bits;
  const uint64_t all_ones = exponent_mask | ((uint64_t{1} << format.mantissa_bits) - 1);
  switch (format.specials) {
    case FloatSpecials::kIeee:
      return {exponent_mask - 1, exponent_mask,
              exponent_mask | (uint64_t{1} << (format.mantissa_bits - 1))};
    case FloatSpecials::kNanOnly:
      return {all_ones - 1, all_ones, all_ones};
    case FloatSpecials::kUnsignedZero:
      return {all_ones, all_ones, all_ones + 1};
    case FloatSpecials::kFinite:
      return {all_ones, all_ones, all_ones + 1};  // NaN becomes -0
    case FloatSpecials::kExponentOnly:
      return {all_ones - 1, all_ones, all_ones};
  }
  return {};
}

uint64_t overflow_bits(const FloatFormat& format, const Encodings& codes, uint64_t sign) {
  switch (format.specials) {
    case FloatSpecials::kIeee:
      return sign | codes.infinity;
    case FloatSpecials::kFinite:
      return sign | codes.max_finite;
    case FloatSpecials::kNanOnly:
      return sign | codes.nan;
    case FloatSpecials::kUnsignedZero:
    case FloatSpecials::kExponentOnly:
      return codes.nan;
  }
  return codes.nan;
}

// f8E8M0FNU: powers of two 2^-127 … 2^127. Ties go up, because a significand of one bit is always
// odd. There is no zero and no sign: zero gives the least value, negative values give NaN.
template <class Real>
uint64_t encode_exponent_only(Real value) {
  if (is_nan(value) || is_inf(value) || value < Real(0)) return 0xFF;
  if (value == Real(0)) return 0;
  const int exponent = exponent_of(value);
  const Real fraction = scale(value, -exponent);  // [1, 2)
  int code = exponent + 127;
  if (fraction >= Real(1.5)) ++code;
  if (code < 0) return 0;
  return code > 254 ? 0xFF : static_cast<uint64_t>(code);
}

template <class Real>
uint64_t encode(ElementType type, Real value) {
  const ElementTypeInfo& info = element_type_info(type);
  const FloatFormat& format = info.format;
  if (format.specials == FloatSpecials::kExponentOnly) return encode_exponent_only(value);
  const Encodings codes = encodings_of(format);
  const uint64_t sign = sign_bit(value) ? uint64_t{1} << (info.bits - 1) : 0;
  if (is_nan(value)) {
    const bool one_nan = format.specials == FloatSpecials::kUnsignedZero;
    return one_nan ? codes.nan : sign | codes.nan;
  }
  if (is_inf(value)) return overflow_bits(format, codes, sign);
  const bool one_zero = format.specials == FloatSpecials::kUnsignedZero;
  if (value == Real(0)) return one_zero ? 0 : sign;

  const Real magnitude = value < Real(0) ? -value : value;
  const int exponent = exponent_of(magnitude);
  const int min_exponent = 1 - format.bias;
  const int max_exponent = (1 << format.exponent_bits) - format.bias;
  if (exponent > max_exponent) return overflow_bits(format, codes, sign);
  const bool denormal = exponent < min_exponent;
  const int unit = (denormal ? min_exponent : exponent) - format.mantissa_bits;
  const uint64_t rounded = round_to_integer(scale(magnitude, -unit));
  // The hidden bit of `rounded` carries into the exponent field, also if rounding overflowed it.
  const uint64_t bits =
      denormal ? rounded
               : (static_cast<uint64_t>(exponent - min_exponent) << format.mantissa_bits) + rounded;
  if (bits > codes.max_finite) return overflow_bits(format, codes, sign);
  return bits == 0 && one_zero ? 0 : sign | bits;
}

}  // namespace

double decode_float(ElementType type, uint64_t bits) {
  const ElementTypeInfo& info = element_type_info(type);
  if (type == ElementType::kF64) return std::bit_cast<double>(bits);
  if (type == ElementType::kF32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  const FloatFormat& format = info.format;
  if (format.specials == FloatSpecials::kExponentOnly) {
    if ((bits & 0xFF) == 0xFF) return std::numeric_limits<double>::quiet_NaN();
    return std::ldexp(1.0, static_cast<int>(bits & 0xFF) - format.bias);
  }
  const uint64_t sign_mask = uint64_t{1} << (info.bits - 1);
  const bool negative = (bits & sign_mask) != 0;
  const uint64_t magnitude = bits & (sign_mask - 1);
  const Encodings codes = encodings_of(format);
  double value = 0;
  if (format.specials == FloatSpecials::kUnsignedZero && bits == codes.nan) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (magnitude > codes.max_finite) {
    const bool infinite = format.specials == FloatSpecials::kIeee && magnitude == codes.infinity;
    value = infinite ? std::numeric_limits<double>::infinity()
                     : std::numeric_limits<double>::quiet_NaN();
  } else {
    const auto exponent = static_cast<int>(magnitude >> format.mantissa_bits);
    const uint64_t mantissa = magnitude & ((uint64_t{1} << format.mantissa_bits) - 1);
    const int unit = (exponent == 0 ? 1 : exponent) - format.bias - format.mantissa_bits;
    const uint64_t hidden = exponent == 0 ? 0 : uint64_t{1} << format.mantissa_bits;
    value = std::ldexp(static_cast<double>(mantissa | hidden), unit);
  }
  return negative ? -value : value;
}

uint64_t encode_float(ElementType type, double value) {
  if (type == ElementType::kF64) return std::bit_cast<uint64_t>(value);
  if (type == ElementType::kF32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  return encode(type, value);
}

uint64_t encode_float(ElementType type, Float128 value) {
  if (type == ElementType::kF64) return std::bit_cast<uint64_t>(static_cast<double>(value));
  if (type == ElementType::kF32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  return encode(type, value);
}

double round_to(ElementType type, double value) {
  if (type == ElementType::kF64) return value;
  if (type == ElementType::kF32) return static_cast<float>(value);
  return decode_float(type, encode(type, value));
}

double round_to(ElementType type, Float128 value) {
  if (type == ElementType::kF64) return static_cast<double>(value);
  if (type == ElementType::kF32) return static_cast<float>(value);
  return decode_float(type, encode(type, value));
}

int64_t wrap_integer(ElementType type, int64_t value) {
  const int unused = 64 - bit_width(type);
  const auto shifted = static_cast<uint64_t>(value) << unused;
  if (is_signed_integer(type)) return static_cast<int64_t>(shifted) >> unused;
  return static_cast<int64_t>(shifted >> unused);
}

int64_t integer_min(ElementType type) {
  if (!is_signed_integer(type)) return 0;
  return static_cast<int64_t>(~uint64_t{0} << (bit_width(type) - 1));
}

int64_t integer_max(ElementType type) {
  if (is_signed_integer(type)) return ~integer_min(type);
  return static_cast<int64_t>(~uint64_t{0} >> (64 - bit_width(type)));
}

int64_t float_to_integer(ElementType type, Float128 value) {
  if (is_nan(value)) return 0;
  const bool is_signed = is_signed_integer(type);
  const auto least = static_cast<Float128>(integer_min(type));
  const auto greatest = is_signed ? static_cast<Float128>(integer_max(type))
                                  : static_cast<Float128>(static_cast<uint64_t>(integer_max(type)));
  if (value <= least) return integer_min(type);
  if (value >= greatest) return integer_max(type);
  return is_signed ? static_cast<int64_t>(value)
                   : static_cast<int64_t>(static_cast<uint64_t>(value));
}

double float_max(ElementType type) {
  const FloatFormat& format = element_type_info(type).format;
  return decode_float(type, encodings_of(format).max_finite);
}

bool has_infinity(ElementType type) {
  return is_float(type) && element_type_info(type).format.specials == FloatSpecials::kIeee;
}

bool has_nan(ElementType type) {
  return is_float(type) && element_type_info(type).format.specials != FloatSpecials::kFinite;
}

}  // namespace tenon
