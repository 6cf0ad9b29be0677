#include "core/kernel/math/scalar.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "core/kernel/math/math.h"
#include "core/kernel/math/number.h"
#include "core/types/float_convert.h"

namespace tenon::kernel {
namespace {

uint64_t mask_of(int width) { return width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1; }

// --- Integers

int64_t s(uint64_t x) { return static_cast<int64_t>(x); }
bool is_signed(ElementType type) { return is_signed_integer(type); }

uint64_t wrapped(ElementType type, uint64_t x) {
  if (type == ElementType::kS32) return static_cast<uint64_t>(int64_t{static_cast<int32_t>(x)});
  if (type == ElementType::kU32) return static_cast<uint32_t>(x);
  return is_pred(type) ? x & 1 : static_cast<uint64_t>(wrap_integer(type, s(x)));
}

/// For amounts of the width and more, every bit is shifted out.
bool shifts_out(int width, uint64_t amount) { return (amount & mask_of(width)) >= uint64_t(width); }

uint64_t integer_division(OpCode code, ElementType type, uint64_t x, uint64_t y) {
  if (y == 0) return code == OpCode::kDiv ? ~uint64_t{0} : x;
  if (!is_signed(type)) return code == OpCode::kDiv ? x / y : x % y;
  if (s(y) == -1) return code == OpCode::kDiv ? 0 - x : 0;
  return static_cast<uint64_t>(code == OpCode::kDiv ? s(x) / s(y) : s(x) % s(y));
}

uint64_t high_half(ElementType type, uint64_t x, uint64_t y) {
  const int width = bit_width(type);
  if (is_signed(type)) {
    return static_cast<uint64_t>((static_cast<__int128>(s(x)) * s(y)) >> width);
  }
  return static_cast<uint64_t>((static_cast<unsigned __int128>(x) * y) >> width);
}

uint64_t shift(OpCode code, int width, uint64_t x, uint64_t y) {
  if (code == OpCode::kShl) return shifts_out(width, y) ? 0 : x << (y & mask_of(width));
  if (code == OpCode::kShr) {
    return shifts_out(width, y) ? 0 : (x & mask_of(width)) >> (y & mask_of(width));
  }
  const int64_t value = s(x << (64 - width)) >> (64 - width);
  if (shifts_out(width, y)) return value < 0 ? ~uint64_t{0} : 0;
  return static_cast<uint64_t>(value >> (y & mask_of(width)));
}

uint64_t rotate(int width, uint64_t x, uint64_t y) {
  const uint64_t amount = (y & mask_of(width)) % static_cast<uint64_t>(width);
  const uint64_t bits = x & mask_of(width);
  return amount == 0 ? bits : bits << amount | bits >> (static_cast<uint64_t>(width) - amount);
}

template <OpCode code>
uint64_t on_integers(ElementType type, ElementType, uint64_t x, uint64_t y, uint64_t) {
  const auto less = [&] { return is_signed(type) ? s(x) < s(y) : x < y; };
  const auto width = [&] { return bit_width(type); };
  switch (code) {
    case OpCode::kAdd:
      return wrapped(type, x + y);
    case OpCode::kSub:
      return wrapped(type, x - y);
    case OpCode::kMul:
      return wrapped(type, x * y);
    case OpCode::kMulHi:
      return wrapped(type, high_half(type, x, y));
    case OpCode::kDiv:
    case OpCode::kRem:
      return wrapped(type, integer_division(code, type, x, y));
    case OpCode::kMin:
      return less() ? x : y;
    case OpCode::kMax:
      return less() ? y : x;
    case OpCode::kNeg:
      return wrapped(type, 0 - x);
    case OpCode::kAbs:
      return wrapped(type, is_signed(type) && s(x) < 0 ? 0 - x : x);
    case OpCode::kAnd:
      return x & y;
    case OpCode::kOr:
      return x | y;
    case OpCode::kXor:
      return x ^ y;
    case OpCode::kNot:
      return wrapped(type, ~x);
    case OpCode::kShl:
    case OpCode::kShr:
    case OpCode::kSar:
      return wrapped(type, shift(code, width(), x, y));
    case OpCode::kRotl:
      return wrapped(type, rotate(width(), x, y));
    case OpCode::kClz:
      return wrapped(
          type, static_cast<uint64_t>(std::countl_zero(x & mask_of(width())) - (64 - width())));
    case OpCode::kPopcount:
      return wrapped(type, static_cast<uint64_t>(std::popcount(x & mask_of(width()))));
    case OpCode::kEq:
      return x == y;
    case OpCode::kNe:
      return x != y;
    case OpCode::kLt:
      return less();
    case OpCode::kLe:
      return less() || x == y;
    case OpCode::kGt:
      return !less() && x != y;
    case OpCode::kGe:
      return !less();
    default:
      return 0;
  }
}

// --- Floats

/// x + y, rounded to odd: rounding the result again, to a type of at least two bits fewer, gives
/// the sum rounded once. Boldo and Melquiond, "Emulation of FMA and correctly rounded sums" (2008).
double add_to_odd(double x, double y) {
  const double sum = x + y;
  const double part = sum - x;
  const double rest = (x - (sum - part)) + (y - part);
  if (rest == 0 || !std::isfinite(sum)) return sum;
  const auto bits = std::bit_cast<uint64_t>(sum);
  if ((bits & 1) != 0) return sum;
  const bool away = (rest > 0) == (sum > 0);
  return std::bit_cast<double>(away ? bits + 1 : bits - 1);
}

/// The operation in R; rounding R's result to the type equals a single rounding.
template <OpCode code, class R>
R in_real(R x, R y, R z) {
  switch (code) {
    case OpCode::kAdd:
      return x + y;
    case OpCode::kSub:
      return x - y;
    case OpCode::kMul:
      return x * y;
    case OpCode::kDiv:
      return x / y;
    case OpCode::kRem:
      return std::fmod(x, y);
    case OpCode::kMin:
      return math::min(x, y);
    case OpCode::kMax:
      return math::max(x, y);
    case OpCode::kNeg:
      return -x;
    case OpCode::kAbs:
      return std::fabs(x);
    case OpCode::kFma:
      return std::fma(x, y, z);
    case OpCode::kSqrt:
      return std::sqrt(x);
    case OpCode::kFloor:
      return std::floor(x);
    case OpCode::kCeil:
      return std::ceil(x);
    case OpCode::kTrunc:
      return std::trunc(x);
    case OpCode::kRoundEven:
      return std::nearbyint(x);
    case OpCode::kRoundAway:
      return std::round(x);
    default:
      return 0;
  }
}

template <OpCode code>
bool holds(double x, double y) {
  switch (code) {
    case OpCode::kEq:
      return x == y;
    case OpCode::kNe:
      return x != y;
    case OpCode::kLt:
      return x < y;
    case OpCode::kLe:
      return x <= y;
    case OpCode::kGt:
      return x > y;
    case OpCode::kGe:
      return x >= y;
    default:
      return false;
  }
}

template <OpCode code>
uint64_t on_f32(ElementType, ElementType, uint64_t x, uint64_t y, uint64_t z) {
  const auto real = [](uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); };
  if constexpr (is_comparison(code)) return holds<code>(real(x), real(y));
  if constexpr (is_math(code))
    return std::bit_cast<uint32_t>(math_function(code, real(x), real(y)));
  return std::bit_cast<uint32_t>(in_real<code, float>(real(x), real(y), real(z)));
}

template <OpCode code>
uint64_t on_f64(ElementType, ElementType, uint64_t x, uint64_t y, uint64_t z) {
  const auto real = [](uint64_t bits) { return std::bit_cast<double>(bits); };
  if constexpr (is_comparison(code)) return holds<code>(real(x), real(y));
  if constexpr (is_math(code))
    return std::bit_cast<uint64_t>(math_function(code, real(x), real(y)));
  return std::bit_cast<uint64_t>(in_real<code, double>(real(x), real(y), real(z)));
}

// Types narrower than f32: computed in double, where + - * / and sqrt of such operands round
// innocuously; functions in f32.
template <OpCode code>
uint64_t on_narrow(ElementType type, ElementType, uint64_t x, uint64_t y, uint64_t z) {
  const double a = decode_float(type, x);
  const double b = decode_float(type, y);
  if constexpr (is_comparison(code)) return holds<code>(a, b);
  if constexpr (is_math(code)) {
    return encode_float(type,
                        double{math_function(code, static_cast<float>(a), static_cast<float>(b))});
  }
  if constexpr (code == OpCode::kNeg || code == OpCode::kAbs) {
    // A sign that the format lacks changes nothing here.
    return encode_float(type, in_real<code, double>(a, b, 0));
  }
  if constexpr (code == OpCode::kFma) {
    return encode_float(type, add_to_odd(a * b, decode_float(type, z)));
  }
  return encode_float(type, in_real<code, double>(a, b, 0));
}

// --- Any type

uint64_t select(ElementType, ElementType, uint64_t x, uint64_t y, uint64_t z) {
  return x != 0 ? y : z;
}

uint64_t bitcast(ElementType type, ElementType from, uint64_t x, uint64_t, uint64_t) {
  return from_pattern(type, pattern_of(from, x));
}

uint64_t convert(ElementType type, ElementType from, uint64_t x, uint64_t, uint64_t) {
  if (is_float(from)) {
    const double value = decode_float(from, x);
    if (is_pred(type)) return value != 0;
    if (is_integer(type)) return static_cast<uint64_t>(float_to_integer(type, value));
    return encode_float(type, value);
  }
  if (is_pred(type)) return x != 0;
  if (is_integer(type)) return static_cast<uint64_t>(wrap_integer(type, s(x)));
  return encode_float(type,
                      is_signed(from) ? static_cast<Float128>(s(x)) : static_cast<Float128>(x));
}

template <OpCode code>
ScalarFunction function_for(ElementType type) {
  if constexpr (code == OpCode::kSelect) return select;
  if constexpr (code == OpCode::kConvert) return convert;
  if constexpr (code == OpCode::kBitcast) return bitcast;
  if (type == ElementType::kF32) return on_f32<code>;
  if (type == ElementType::kF64) return on_f64<code>;
  if (is_float(type)) return on_narrow<code>;
  return on_integers<code>;
}

}  // namespace

ScalarFunction scalar_function(OpCode code, ElementType type) {
  switch (code) {
#define KERNEL_OP(id, ...) \
  case OpCode::k##id:      \
    return function_for<OpCode::k##id>(type);
#include "core/kernel/ir/ops.inc"
#undef KERNEL_OP
    default:
      return nullptr;
  }
}

uint64_t bits_of_integer(ElementType type, int64_t value) {
  if (is_pred(type)) return value != 0;
  if (is_integer(type)) return static_cast<uint64_t>(wrap_integer(type, value));
  return encode_float(type, static_cast<Float128>(value));
}

uint64_t bits_of_real(ElementType type, double value) {
  if (is_pred(type)) return value != 0;
  if (is_integer(type)) return static_cast<uint64_t>(float_to_integer(type, value));
  return encode_float(type, value);
}

uint64_t pattern_of(ElementType type, uint64_t bits) { return bits & mask_of(bit_width(type)); }

uint64_t from_pattern(ElementType type, uint64_t bits) {
  if (is_pred(type)) return bits & 1;
  if (is_integer(type)) return static_cast<uint64_t>(wrap_integer(type, s(bits)));
  return bits & mask_of(bit_width(type));
}

double real_of(ElementType type, uint64_t bits) { return decode_float(type, bits); }

}  // namespace tenon::kernel
