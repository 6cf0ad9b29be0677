#include "hlo/evaluator/scalars/element_functions.h"

#include <bit>

#include "hlo/evaluator/scalars/complex_math.h"
#include "hlo/types/comparison.h"

namespace tenon::hlo {
namespace {

using Context = ElementContext;

// --- Rounding of a result to its type

Scalar rounded(const Context& c, double x) {
  if (c.wide) return Scalar(x);
  return Scalar(round_to(c.result_type, x));
}
Scalar rounded(const Context&, Float128 x) { return Scalar(x); }

Scalar rounded_complex(const Context& c, cplx::C x) {
  const ElementType part = complex_part(c.result_type);
  if (c.wide) {
    if (part == ElementType::kF64) return Scalar(x);
    return Scalar(ComplexOf<double>{static_cast<double>(x.re), static_cast<double>(x.im)});
  }
  return Scalar(ComplexOf<double>{round_to(part, x.re), round_to(part, x.im)});
}

template <class R>
R get(const Scalar& x) {
  return x.as<R>();
}

cplx::C get_complex(const Scalar& x, bool wide_storage) {
  if (wide_storage) return x.cw;
  return {x.c.re, x.c.im};
}

bool is_wide_complex(const Context& c) { return c.wide && c.operand_type == ElementType::kC128; }

// --- Adapters from plain functions

template <class R, R (*f)(R)>
Scalar unary(const Context& c, const Scalar* x) {
  return rounded(c, f(get<R>(x[0])));
}
template <class R, R (*f)(R, R)>
Scalar binary(const Context& c, const Scalar* x) {
  return rounded(c, f(get<R>(x[0]), get<R>(x[1])));
}
// An elementary function of f64, computed in binary128 and rounded once.
template <Float128 (*f)(Float128)>
Scalar unary_f64(const Context&, const Scalar* x) {
  return Scalar(static_cast<double>(f(x[0].d)));
}
template <Float128 (*f)(Float128, Float128)>
Scalar binary_f64(const Context&, const Scalar* x) {
  return Scalar(static_cast<double>(f(x[0].d, x[1].d)));
}
template <cplx::C (*f)(cplx::C)>
Scalar unary_complex(const Context& c, const Scalar* x) {
  return rounded_complex(c, f(get_complex(x[0], is_wide_complex(c))));
}
template <cplx::C (*f)(cplx::C, cplx::C)>
Scalar binary_complex(const Context& c, const Scalar* x) {
  const bool wide = is_wide_complex(c);
  return rounded_complex(c, f(get_complex(x[0], wide), get_complex(x[1], wide)));
}
// The plain formula, with each operation rounded as on devices: the parts of a product of very
// large numbers or infinities may be NaN (docs/numerics.md).
Scalar complex_multiply(const Context& c, const Scalar* operands) {
  const bool wide = is_wide_complex(c);
  const cplx::C x = get_complex(operands[0], wide);
  const cplx::C y = get_complex(operands[1], wide);
  if (c.wide) return rounded_complex(c, cplx::mul(x, y));
  const ElementType part = complex_part(c.result_type);
  const auto product = [&](Float128 a, Float128 b) {
    return static_cast<Float128>(round_to(part, a * b));
  };
  return rounded_complex(
      c, {product(x.re, y.re) - product(x.im, y.im), product(x.re, y.im) + product(x.im, y.re)});
}
Scalar complex_power(const Context& c, const Scalar* operands) {
  const bool wide = is_wide_complex(c);
  const double most = c.wide ? HUGE_VAL : float_max(complex_part(c.result_type));
  return rounded_complex(
      c, cplx::pow(get_complex(operands[0], wide), get_complex(operands[1], wide), most));
}
template <int64_t (*f)(const Context&, int64_t)>
Scalar unary_integer(const Context& c, const Scalar* x) {
  return Scalar(wrap_integer(c.result_type, f(c, x[0].i)));
}
template <int64_t (*f)(const Context&, int64_t, int64_t)>
Scalar binary_integer(const Context& c, const Scalar* x) {
  return Scalar(wrap_integer(c.result_type, f(c, x[0].i, x[1].i)));
}

// --- Integers; the adapter wraps them, on unsigned arithmetic

uint64_t u(int64_t x) { return static_cast<uint64_t>(x); }
bool is_signed(const Context& c) { return is_signed_integer(c.operand_type); }

int64_t int_add(const Context& c, int64_t x, int64_t y) {
  return is_pred(c.operand_type) ? (x | y) : static_cast<int64_t>(u(x) + u(y));
}
int64_t int_sub(const Context&, int64_t x, int64_t y) { return static_cast<int64_t>(u(x) - u(y)); }
int64_t int_mul(const Context& c, int64_t x, int64_t y) {
  return is_pred(c.operand_type) ? (x & y) : static_cast<int64_t>(u(x) * u(y));
}
int64_t int_div(const Context& c, int64_t x, int64_t y) {
  if (y == 0) return -1;  // all ones
  if (!is_signed(c)) return static_cast<int64_t>(u(x) / u(y));
  return y == -1 ? static_cast<int64_t>(0 - u(x)) : x / y;
}
int64_t int_rem(const Context& c, int64_t x, int64_t y) {
  if (y == 0) return x;
  if (!is_signed(c)) return static_cast<int64_t>(u(x) % u(y));
  return y == -1 ? 0 : x % y;
}
int64_t int_max(const Context& c, int64_t x, int64_t y) {
  return (is_signed(c) ? x > y : u(x) > u(y)) ? x : y;
}
int64_t int_min(const Context& c, int64_t x, int64_t y) {
  return (is_signed(c) ? x < y : u(x) < u(y)) ? x : y;
}
int64_t int_pow(const Context& c, int64_t x, int64_t y) {
  if (is_signed(c) && y < 0) {
    if (x == 1) return 1;
    if (x == -1) return (y & 1) != 0 ? -1 : 1;
    return 0;
  }
  uint64_t result = 1;
  uint64_t power = u(x);
  for (uint64_t e = u(y); e != 0; e >>= 1) {
    if ((e & 1) != 0) result *= power;
    power *= power;
  }
  return static_cast<int64_t>(result);
}
int64_t int_and(const Context&, int64_t x, int64_t y) { return x & y; }
int64_t int_or(const Context&, int64_t x, int64_t y) { return x | y; }
int64_t int_xor(const Context&, int64_t x, int64_t y) { return x ^ y; }

// The shift amount as unsigned of its width; for amounts of the width and more every bit is shifted
// out.
bool shifts_out(const Context& c, int64_t y) {
  const int width = bit_width(c.operand_type);
  const uint64_t mask = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
  return (u(y) & mask) >= static_cast<uint64_t>(width);
}
int64_t int_shl(const Context& c, int64_t x, int64_t y) {
  return shifts_out(c, y) ? 0 : static_cast<int64_t>(u(x) << y);
}
int64_t int_shr(const Context& c, int64_t x, int64_t y) {
  const int width = bit_width(c.operand_type);
  const uint64_t mask = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
  return shifts_out(c, y) ? 0 : static_cast<int64_t>((u(x) & mask) >> y);
}
int64_t int_sar(const Context& c, int64_t x, int64_t y) {
  // As signed of its width, for unsigned types too.
  const int unused = 64 - bit_width(c.operand_type);
  const int64_t value = static_cast<int64_t>(u(x) << unused) >> unused;
  return shifts_out(c, y) ? (value < 0 ? -1 : 0) : value >> y;
}
int64_t int_abs(const Context& c, int64_t x) {
  return is_signed(c) && x < 0 ? static_cast<int64_t>(0 - u(x)) : x;
}
int64_t int_neg(const Context&, int64_t x) { return static_cast<int64_t>(0 - u(x)); }
int64_t int_not(const Context& c, int64_t x) { return is_pred(c.operand_type) ? x ^ 1 : ~x; }
int64_t int_sign(const Context& c, int64_t x) {
  return x == 0 ? 0 : (is_signed(c) && x < 0 ? -1 : 1);
}
int64_t int_clz(const Context& c, int64_t x) {
  const int width = bit_width(c.operand_type);
  return std::countl_zero(u(x) << (64 - width) | (width == 64 ? 0 : uint64_t{1} << (63 - width)));
}
int64_t int_popcnt(const Context& c, int64_t x) {
  return std::popcount(u(x) << (64 - bit_width(c.operand_type)));
}
int64_t int_mulhi(const Context& c, int64_t x, int64_t y) {
  const int width = bit_width(c.operand_type);
  if (is_signed(c)) return static_cast<int64_t>((static_cast<__int128>(x) * y) >> width);
  return static_cast<int64_t>((static_cast<unsigned __int128>(u(x)) * u(y)) >> width);
}

// --- Reals

template <class R>
R add(R x, R y) {
  return x + y;
}
template <class R>
R sub(R x, R y) {
  return x - y;
}
template <class R>
R mul(R x, R y) {
  return x * y;
}
template <class R>
R div(R x, R y) {
  return x / y;
}
template <class R>
R neg(R x) {
  return -x;
}
template <class R>
Scalar is_finite(const Context&, const Scalar* x) {
  const R value = get<R>(x[0]);
  return Scalar(int64_t{!real::isnan(value) && !real::isinf(value)});
}
template <class R>
Scalar make_complex(const Context& c, const Scalar* x) {
  if (c.wide && c.result_type == ElementType::kC128) {
    return Scalar(ComplexOf<Float128>{get<Float128>(x[0]), get<Float128>(x[1])});
  }
  return Scalar(
      ComplexOf<double>{static_cast<double>(get<R>(x[0])), static_cast<double>(get<R>(x[1]))});
}
Scalar complex_real(const Context& c, const Scalar* x) {
  return is_wide_complex(c) ? Scalar(x[0].cw.re) : Scalar(x[0].c.re);
}
Scalar complex_imag(const Context& c, const Scalar* x) {
  return is_wide_complex(c) ? Scalar(x[0].cw.im) : Scalar(x[0].c.im);
}
Scalar complex_abs(const Context& c, const Scalar* x) {
  const Float128 value = cplx::abs(get_complex(x[0], is_wide_complex(c)));
  if (is_wide_complex(c)) return Scalar(value);
  return c.wide ? Scalar(static_cast<double>(value)) : Scalar(round_to(c.result_type, value));
}
Scalar identity(const Context&, const Scalar* x) { return x[0]; }
// A type without zero has the number nearest to it instead.
Scalar real_zero(const Context& c, const Scalar*) {
  return scalar_of(storage_of(c.result_type, c.wide), c.wide ? 0 : round_to(c.result_type, 0.0));
}
cplx::C complex_neg(cplx::C x) { return {-x.re, -x.im}; }
bool complex_less(cplx::C x, cplx::C y) { return x.re != y.re ? x.re < y.re : x.im < y.im; }
bool has_nan_part(cplx::C x) { return real::isnan(x.re) || real::isnan(x.im); }
// Lexicographic, NaN wins.
cplx::C complex_max(cplx::C x, cplx::C y) {
  if (has_nan_part(x)) return x;
  if (has_nan_part(y)) return y;
  return complex_less(x, y) ? y : x;
}
cplx::C complex_min(cplx::C x, cplx::C y) {
  if (has_nan_part(x)) return x;
  if (has_nan_part(y)) return y;
  return complex_less(y, x) ? y : x;
}
cplx::C complex_rem(cplx::C x, cplx::C y) {
  const cplx::C q = cplx::div(x, y);
  const cplx::C whole = {q.re < 0 ? real::ceil(q.re) : real::floor(q.re),
                         q.im < 0 ? real::ceil(q.im) : real::floor(q.im)};
  return cplx::sub(x, cplx::mul(whole, y));
}

template <class R>
int exponent_of(R x) {
  if constexpr (std::is_same_v<R, double>) return std::ilogb(x);
  return ::ilogbf128(static_cast<Float128>(x));
}
template <class R>
R scaled(R x, int exponent) {
  if constexpr (std::is_same_v<R, double>) return std::ldexp(x, exponent);
  return R(::ldexpf128(static_cast<Float128>(x), exponent));
}

// Rounds to `exponent_bits` and `mantissa_bits`. The mantissa is rounded to nearest even. Then, if
// the new format has fewer exponent bits than the type, overflows become infinity, and numbers
// below the least normal number of the new format become zero.
template <class R>
Scalar reduce_precision(const Context& c, const Scalar* operands) {
  const R x = get<R>(operands[0]);
  if (real::isnan(x) && c.mantissa_bits > 0) return operands[0];
  if (real::isnan(x)) return rounded(c, real::copysign(R(HUGE_VAL), x));
  if (x == 0 || real::isinf(x)) return operands[0];
  const FloatFormat& format = element_type_info(c.operand_type).format;
  R kept = x;
  if (c.mantissa_bits < format.mantissa_bits) {
    // Denormals are stored without a leading one: their last place is that of the least normal
    // number.
    const int place = std::max(exponent_of(x), 1 - format.bias) - static_cast<int>(c.mantissa_bits);
    const R units = scaled(x, -place);
    kept = scaled(real::nearbyint(units), place);
    // Without a mantissa, the even one of two neighbours has the even exponent field.
    if (c.mantissa_bits == 0 && real::fabs(units) == R(1.5)) {
      const int up = (exponent_of(x) + format.bias) % 2;
      kept = real::copysign(scaled(R(1), place + up), x);
    }
  }
  if (c.exponent_bits >= format.exponent_bits || kept == 0) return rounded(c, kept);
  const int bias = (1 << (c.exponent_bits - 1)) - 1;
  const int exponent = exponent_of(kept);
  if (exponent > bias) return rounded(c, real::copysign(R(HUGE_VAL), x));
  if (exponent < 1 - bias) return rounded(c, real::copysign(R(0), x));
  return rounded(c, kept);
}

// --- Comparison

// A key whose order as a signed integer is the total order of the values.
int64_t total_order_key(ElementType type, const Scalar& x) {
  if (element_type_info(type).format.specials == FloatSpecials::kExponentOnly) {
    return static_cast<int64_t>(scalar_to_bits(type, ScalarStorage::kReal, x));  // without a sign
  }
  const auto bits =
      static_cast<int64_t>(scalar_to_bits(type, ScalarStorage::kReal, x) << (64 - bit_width(type)));
  return bits < 0 ? bits ^ std::numeric_limits<int64_t>::max() : bits;
}

template <class R>
Scalar compare_real(const Context& c, const Scalar* x) {
  if (c.comparison == ComparisonType::kTotalOrder) {
    // In the wide storage, the order follows the value and, for zeros and NaNs, the sign.
    if constexpr (std::is_same_v<R, double>) {
      const ElementType type = c.wide ? ElementType::kF64 : c.operand_type;
      return Scalar(
          int64_t{holds(c.direction, total_order_key(type, x[0]), total_order_key(type, x[1]))});
    } else {
      const auto key = [](Float128 v) {
        const auto bits = std::bit_cast<__int128>(v);
        return bits < 0 ? bits ^ ~(static_cast<__int128>(1) << 127) : bits;
      };
      return Scalar(int64_t{holds(c.direction, key(x[0].w), key(x[1].w))});
    }
  }
  return Scalar(int64_t{holds(c.direction, get<R>(x[0]), get<R>(x[1]))});
}

Scalar compare_integer(const Context& c, const Scalar* x) {
  if (is_signed_integer(c.operand_type)) return Scalar(int64_t{holds(c.direction, x[0].i, x[1].i)});
  return Scalar(int64_t{holds(c.direction, u(x[0].i), u(x[1].i))});
}

Scalar compare_complex(const Context& c, const Scalar* x) {
  const cplx::C a = get_complex(x[0], is_wide_complex(c));
  const cplx::C b = get_complex(x[1], is_wide_complex(c));
  const bool same = a.re == b.re && a.im == b.im;
  if (c.direction == ComparisonDirection::kEq) return Scalar(int64_t{same});
  if (c.direction == ComparisonDirection::kNe) return Scalar(int64_t{!same});
  if (a.re != b.re || real::isnan(a.re)) return Scalar(int64_t{holds(c.direction, a.re, b.re)});
  return Scalar(int64_t{holds(c.direction, a.im, b.im)});
}

// --- Conversion

Scalar convert(const Context& c, const Scalar* x) {
  const ElementType from = c.operand_type;
  const ElementType to = c.result_type;
  const ScalarStorage storage = storage_of(from, c.wide);
  const bool from_integer = storage == ScalarStorage::kInteger;
  Float128 value = 0;
  Float128 imaginary = 0;
  switch (storage) {
    case ScalarStorage::kInteger:
      value = is_signed_integer(from) ? static_cast<Float128>(x[0].i)
                                      : static_cast<Float128>(u(x[0].i));
      break;
    case ScalarStorage::kReal:
      value = x[0].d;
      break;
    case ScalarStorage::kWide:
      value = x[0].w;
      break;
    case ScalarStorage::kComplex:
    case ScalarStorage::kComplexWide:
      value = get_complex(x[0], is_wide_complex(c)).re;
      imaginary = get_complex(x[0], is_wide_complex(c)).im;
      break;
  }
  if (is_pred(to)) return Scalar(int64_t{value != 0});  // of a complex number, its real part
  if (is_integer(to)) {
    return Scalar(from_integer ? wrap_integer(to, x[0].i) : float_to_integer(to, value));
  }
  if (is_complex(to)) return rounded_complex(c, {value, imaginary});
  if (c.wide) return to == ElementType::kF64 ? Scalar(value) : Scalar(static_cast<double>(value));
  return Scalar(round_to(to, value));
}

Scalar select(const Context&, const Scalar* x) { return x[0].i != 0 ? x[1] : x[2]; }

// --- The table

template <double (*f)(double), Float128 (*g)(Float128), cplx::C (*h)(cplx::C)>
constexpr ScalarFunctions elementary() {
  return {nullptr, unary<double, f>, unary<Float128, g>, unary_complex<h>, unary_f64<g>};
}
template <double (*f)(double), Float128 (*g)(Float128)>
constexpr ScalarFunctions elementary_real() {
  return {nullptr, unary<double, f>, unary<Float128, g>, nullptr, unary_f64<g>};
}
template <double (*f)(double), Float128 (*g)(Float128)>
constexpr ScalarFunctions rounding() {
  return {nullptr, unary<double, f>, unary<Float128, g>, nullptr, nullptr};
}

}  // namespace

namespace scalar {

constinit const ScalarFunctions abs = {unary_integer<int_abs>, unary<double, real::fabs>,
                                       unary<Float128, real::fabs>, complex_abs, nullptr};
constinit const ScalarFunctions add = {binary_integer<int_add>, binary<double, hlo::add<double>>,
                                       binary<Float128, hlo::add<Float128>>,
                                       binary_complex<cplx::add>, nullptr};
constinit const ScalarFunctions atan2 = {nullptr, binary<double, real::atan2>,
                                         binary<Float128, real::atan2>, binary_complex<cplx::atan2>,
                                         binary_f64<real::atan2>};
constinit const ScalarFunctions bit_and = {binary_integer<int_and>};
constinit const ScalarFunctions bit_or = {binary_integer<int_or>};
constinit const ScalarFunctions bit_xor = {binary_integer<int_xor>};
constinit const ScalarFunctions cbrt = elementary<real::cbrt, real::cbrt, cplx::cbrt>();
constinit const ScalarFunctions ceil = rounding<real::ceil, real::ceil>();
constinit const ScalarFunctions compare = {compare_integer, compare_real<double>,
                                           compare_real<Float128>, compare_complex, nullptr};
constinit const ScalarFunctions complex = {nullptr, make_complex<double>, make_complex<Float128>,
                                           nullptr, nullptr};
constinit const ScalarFunctions convert = {hlo::convert, hlo::convert, hlo::convert, hlo::convert,
                                           nullptr};
constinit const ScalarFunctions cosine = elementary<real::cos, real::cos, cplx::cos>();
constinit const ScalarFunctions count_leading_zeros = {unary_integer<int_clz>};
constinit const ScalarFunctions divide = {binary_integer<int_div>, binary<double, div<double>>,
                                          binary<Float128, div<Float128>>,
                                          binary_complex<cplx::div>, nullptr};
constinit const ScalarFunctions erf = elementary_real<real::erf, real::erf>();
constinit const ScalarFunctions erfc = elementary_real<real::erfc, real::erfc>();
constinit const ScalarFunctions exponential = elementary<real::exp, real::exp, cplx::exp>();
constinit const ScalarFunctions exponential_minus_one =
    elementary<real::expm1, real::expm1, cplx::expm1>();
constinit const ScalarFunctions floor = rounding<real::floor, real::floor>();
constinit const ScalarFunctions imag = {nullptr, real_zero, real_zero, complex_imag, nullptr};
constinit const ScalarFunctions is_finite = {nullptr, hlo::is_finite<double>,
                                             hlo::is_finite<Float128>, nullptr, nullptr};
constinit const ScalarFunctions log = elementary<real::log, real::log, cplx::log>();
constinit const ScalarFunctions log_plus_one = elementary<real::log1p, real::log1p, cplx::log1p>();
constinit const ScalarFunctions logistic =
    elementary<real::logistic<double>, real::logistic<Float128>, cplx::logistic>();
constinit const ScalarFunctions maximum = {
    binary_integer<int_max>, binary<double, real::maximum<double>>,
    binary<Float128, real::maximum<Float128>>, binary_complex<complex_max>, nullptr};
constinit const ScalarFunctions minimum = {
    binary_integer<int_min>, binary<double, real::minimum<double>>,
    binary<Float128, real::minimum<Float128>>, binary_complex<complex_min>, nullptr};
constinit const ScalarFunctions mulhi = {binary_integer<int_mulhi>};
constinit const ScalarFunctions multiply = {binary_integer<int_mul>, binary<double, mul<double>>,
                                            binary<Float128, mul<Float128>>, complex_multiply,
                                            nullptr};
constinit const ScalarFunctions negate = {unary_integer<int_neg>, unary<double, neg<double>>,
                                          unary<Float128, neg<Float128>>,
                                          unary_complex<complex_neg>, nullptr};
constinit const ScalarFunctions not_ = {unary_integer<int_not>};
constinit const ScalarFunctions popcnt = {unary_integer<int_popcnt>};
constinit const ScalarFunctions power = {binary_integer<int_pow>, binary<double, real::pow>,
                                         binary<Float128, real::pow>, complex_power,
                                         binary_f64<real::pow>};
constinit const ScalarFunctions real = {nullptr, identity, identity, complex_real, nullptr};
constinit const ScalarFunctions reduce_precision = {
    nullptr, hlo::reduce_precision<double>, hlo::reduce_precision<Float128>, nullptr, nullptr};
constinit const ScalarFunctions remainder = {binary_integer<int_rem>, binary<double, real::fmod>,
                                             binary<Float128, real::fmod>,
                                             binary_complex<complex_rem>, nullptr};
constinit const ScalarFunctions round_nearest_afz = rounding<real::round, real::round>();
constinit const ScalarFunctions round_nearest_even = rounding<real::nearbyint, real::nearbyint>();
constinit const ScalarFunctions rsqrt =
    elementary<real::rsqrt<double>, real::rsqrt<Float128>, cplx::rsqrt>();
constinit const ScalarFunctions select = {hlo::select, hlo::select, hlo::select, hlo::select,
                                          nullptr};
constinit const ScalarFunctions shift_left = {binary_integer<int_shl>};
constinit const ScalarFunctions shift_right_arithmetic = {binary_integer<int_sar>};
constinit const ScalarFunctions shift_right_logical = {binary_integer<int_shr>};
constinit const ScalarFunctions sign = {unary_integer<int_sign>, unary<double, real::sign<double>>,
                                        unary<Float128, real::sign<Float128>>,
                                        unary_complex<cplx::sign>, nullptr};
constinit const ScalarFunctions sine = elementary<real::sin, real::sin, cplx::sin>();
constinit const ScalarFunctions sqrt = elementary<real::sqrt, real::sqrt, cplx::sqrt>();
constinit const ScalarFunctions subtract = {binary_integer<int_sub>, binary<double, sub<double>>,
                                            binary<Float128, sub<Float128>>,
                                            binary_complex<cplx::sub>, nullptr};
constinit const ScalarFunctions tan = elementary<real::tan, real::tan, cplx::tan>();
constinit const ScalarFunctions tanh = elementary<real::tanh, real::tanh, cplx::tanh>();

}  // namespace scalar

ElementFunction ScalarFunctions::of(const ElementContext& context) const {
  switch (storage_of(context.operand_type, context.wide)) {
    case ScalarStorage::kInteger:
      return integer;
    case ScalarStorage::kReal:
      return f64 != nullptr && context.operand_type == ElementType::kF64 && !context.wide ? f64
                                                                                          : real;
    case ScalarStorage::kWide:
      return wide;
    case ScalarStorage::kComplex:
    case ScalarStorage::kComplexWide:
      return complex;
  }
  return nullptr;
}

ElementFunction element_function(const Instruction& op, const ElementContext& context) {
  const ScalarFunctions* const functions = op.info().scalar;
  return functions == nullptr ? nullptr : functions->of(context);
}

ElementContext element_context(const Instruction& op, bool wide) {
  ElementContext context;
  context.wide = wide;
  if (op.operand_count() != 0 && op.operand_type(0).is_tensor()) {
    context.operand_type = op.operand_type(0).element_type();
  }
  if (op.result_count() != 0 && op.result_type().is_tensor()) {
    context.result_type = op.result_type().element_type();
  }
  context.direction = op.enumeration<ComparisonDirection>(AttrKey::comparison_direction);
  context.comparison = op.enumeration<ComparisonType>(AttrKey::compare_type);
  context.exponent_bits = op.integer(AttrKey::exponent_bits);
  context.mantissa_bits = op.integer(AttrKey::mantissa_bits);
  return context;
}

bool total_order_less(ElementType type, const Scalar& a, const Scalar& b) {
  return total_order_key(type, a) < total_order_key(type, b);
}

}  // namespace tenon::hlo
