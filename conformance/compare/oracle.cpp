#include "conformance/compare/oracle.h"

#include <arb_hypgeom.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/types/float_convert.h"

namespace tenon::conformance {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kPi = 3.14159265358979323846;
constexpr slong kFirstBits = 128;
constexpr slong kMostBits = 4096;
/// Complex powers are compared while |y log z| is at most this.
constexpr double kGreatestExponent = 1024;

using ArbFunction = void (*)(arb_t, const arb_t, slong);

template <double (*kLimits)(double)>
OracleFunction unary(std::string op, ArbFunction f, std::vector<double> near = {}) {
  return {std::move(op), 1,
          [f](Ball& y, const Ball& x, const Ball&, slong bits) { f(y.get(), x.get(), bits); },
          [](double x, double) { return kLimits(x); }, std::move(near)};
}

// --- Functions that Arb has only in parts

void logistic(arb_t y, const arb_t x, slong bits) {
  Ball e;
  arb_neg(e.get(), x);
  arb_exp(e.get(), e.get(), bits);
  arb_add_ui(e.get(), e.get(), 1, bits);
  arb_inv(y, e.get(), bits);
}
void cbrt(arb_t y, const arb_t x, slong bits) {
  Ball size;
  arb_abs(size.get(), x);
  arb_root_ui(size.get(), size.get(), 3, bits);
  arb_is_negative(x) ? arb_neg(y, size.get()) : arb_set(y, size.get());
}
void bessel_i1e(arb_t y, const arb_t x, slong bits) {
  if (arb_is_zero(x)) return arb_zero(y);
  Ball order(1);
  Ball size;
  arb_abs(size.get(), x);
  arb_hypgeom_bessel_i_scaled(size.get(), order.get(), size.get(), bits);
  arb_is_negative(x) ? arb_neg(y, size.get()) : arb_set(y, size.get());
}
void erf(arb_t y, const arb_t x, slong bits) { arb_hypgeom_erf(y, x, bits); }
void erfc(arb_t y, const arb_t x, slong bits) { arb_hypgeom_erfc(y, x, bits); }
// log |gamma(x)|; below zero by reflection, log(pi / |sin(pi x)|) - log gamma(1 - x).
void lgamma(arb_t y, const arb_t x, slong bits) {
  if (arb_is_positive(x)) return arb_hypgeom_lgamma(y, x, bits);
  Ball sine, rest, pi;
  arb_sin_pi(sine.get(), x, bits);
  arb_abs(sine.get(), sine.get());
  arb_const_pi(pi.get(), bits);
  arb_div(sine.get(), pi.get(), sine.get(), bits);
  arb_log(sine.get(), sine.get(), bits);
  arb_sub_ui(rest.get(), x, 1, bits);
  arb_neg(rest.get(), rest.get());
  arb_hypgeom_lgamma(rest.get(), rest.get(), bits);
  arb_sub(y, sine.get(), rest.get(), bits);
}
void divide(Ball& y, const Ball& x, const Ball& x1, slong bits) {
  arb_div(y.get(), x.get(), x1.get(), bits);
}
void angle(Ball& y, const Ball& x, const Ball& x1, slong bits) {
  arb_atan2(y.get(), x.get(), x1.get(), bits);
}
bool is_odd_integer(const Ball& x) {
  const double value = arf_get_d(arb_midref(x.get()), ARF_RND_NEAR);
  return std::fmod(value, 2) == 1 || std::fmod(value, 2) == -1;
}
void power(Ball& y, const Ball& x, const Ball& x1, slong bits) {
  if (!arb_is_negative(x.get())) return arb_pow(y.get(), x.get(), x1.get(), bits);
  if (!arb_is_int(x1.get())) return arb_indeterminate(y.get());
  arb_abs(y.get(), x.get());
  arb_pow(y.get(), y.get(), x1.get(), bits);
  if (is_odd_integer(x1)) arb_neg(y.get(), y.get());
}
void zeta(Ball& y, const Ball& s, const Ball& q, slong bits) {
  arb_hurwitz_zeta(y.get(), s.get(), q.get(), bits);
}
void polygamma(Ball& y, const Ball& n, const Ball& x, slong bits) {
  acb_t order, at, value;
  acb_init(order), acb_init(at), acb_init(value);
  acb_set_arb(order, n.get());
  acb_set_arb(at, x.get());
  acb_polygamma(value, order, at, bits);
  arb_set(y.get(), acb_realref(value));
  acb_clear(order), acb_clear(at), acb_clear(value);
}

double logistic_limits(double x) { return x > 0 ? 1 : x < 0 ? 0 : x; }
double rsqrt_limits(double x) { return 1 / std::sqrt(x); }
double lgamma_limits(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}
double zero_limits(double x) { return std::isnan(x) ? x : std::copysign(0.0, x); }
double digamma_limits(double x) { return x == kInf ? kInf : std::nan(""); }
double erf_inv_limits(double x) {
  return x == 0 ? x : std::abs(x) == 1 ? std::copysign(kInf, x) : std::nan("");
}

// Both have zeros between the poles on the negative axis, where the terms of the reflection formula
// cancel.
double size_of_log_gamma(double x) { return x < 0 ? std::max(1.0, lgamma_limits(1 - x)) : 0; }
double size_of_digamma(double x) { return x < 0 ? std::max(1.0, std::log(-x)) : 0; }

}  // namespace

const std::vector<OracleFunction>& oracle_functions() {
  static const std::vector<OracleFunction> all = [] {
    const std::vector<double> overflow = {11.09, 17.33, 20,     -20,    88.72, 89.41,
                                          -87.3, -104,  709.78, 710.47, -745};
    const std::vector<double> angles = {kPi / 2, kPi, 3 * kPi / 2, 1000 * kPi, 0x1p17, 0x1p39};
    std::vector<OracleFunction> list = {
        unary<std::exp>("stablehlo.exponential", arb_exp, overflow),
        unary<std::expm1>("stablehlo.exponential_minus_one", arb_expm1, overflow),
        unary<std::log>("stablehlo.log", arb_log, {1}),
        unary<std::log1p>("stablehlo.log_plus_one", arb_log1p, {-1}),
        unary<logistic_limits>("stablehlo.logistic", logistic, overflow),
        unary<std::sin>("stablehlo.sine", arb_sin, angles),
        unary<std::cos>("stablehlo.cosine", arb_cos, angles),
        unary<std::tan>("stablehlo.tan", arb_tan, angles),
        unary<std::tanh>("stablehlo.tanh", arb_tanh, {0.625, 9, 20}),
        unary<std::sqrt>("stablehlo.sqrt", arb_sqrt),
        unary<rsqrt_limits>("stablehlo.rsqrt", arb_rsqrt),
        unary<std::cbrt>("stablehlo.cbrt", cbrt),
        {"stablehlo.divide", 2, divide, [](double x, double y) { return x / y; }},
        {"stablehlo.atan2", 2, angle, [](double x, double y) { return std::atan2(x, y); }},
        {"stablehlo.power", 2, power, [](double x, double y) { return std::pow(x, y); }},
        unary<std::acos>("chlo.acos", arb_acos, {1, -1, 0.5}),
        unary<std::acosh>("chlo.acosh", arb_acosh, {1, 0x1p14, 0x1p28}),
        unary<std::asin>("chlo.asin", arb_asin, {1, -1, 0.5}),
        unary<std::asinh>("chlo.asinh", arb_asinh, {1, 0x1p14, 0x1p28}),
        unary<std::atan>("chlo.atan", arb_atan, {1}),
        unary<std::atanh>("chlo.atanh", arb_atanh, {1, -1, 0.5}),
        unary<std::cosh>("chlo.cosh", arb_cosh, overflow),
        unary<std::sinh>("chlo.sinh", arb_sinh, overflow),
        unary<std::erf>("chlo.erf", erf, {0.5, 1, 4}),
        unary<std::erfc>("chlo.erfc", erfc, {0.5, 1, 2, 9, 10, 26}),
        unary<erf_inv_limits>("chlo.erf_inv", arb_hypgeom_erfinv, {1, -1, 0.5}),
        unary<lgamma_limits>("chlo.lgamma", lgamma, {1, 2, 0.5, -2.4570247, -1.5, -2, -10}),
        unary<digamma_limits>("chlo.digamma", arb_digamma, {1.4616321449683622, 2, -0.504, -1}),
        unary<zero_limits>("chlo.bessel_i1e", bessel_i1e, {8, -8}),
        {"chlo.zeta", 2, zeta},
        {"chlo.polygamma", 2, polygamma},
    };
    for (OracleFunction& f : list) {
      if (f.op == "chlo.lgamma") f.size_of_terms = size_of_log_gamma;
      if (f.op == "chlo.digamma") f.size_of_terms = size_of_digamma;
    }
    return list;
  }();
  return all;
}

namespace {

/// The exponent of the unit in the last place of a number of `type` of magnitude 2^(e-1) to 2^e.
slong unit_exponent(ElementType type, slong e) {
  const auto& format = element_type_info(type).format;
  const slong least = 1 - format.bias - format.mantissa_bits;
  return e <= least ? least
                    : std::max<slong>(e - 1 - format.mantissa_bits, least);  // e is huge for 0.
}

/// The exponent of the unit at the midpoint of a finite ball.
slong unit_of(const arb_t y, ElementType type) {
  return unit_exponent(type, arf_abs_bound_lt_2exp_si(arb_midref(y)));
}

/// Whether the radius of the ball is at most a thousandth of 2^unit.
bool is_sharp(const arb_t y, slong unit) {
  if (arb_is_exact(y)) return true;
  arf_t radius;
  arf_init(radius);
  arf_set_mag(radius, arb_radref(y));
  const slong error = arf_abs_bound_lt_2exp_si(radius);
  arf_clear(radius);
  return error <= unit - 10;
}

/// |got - middle| / 2^exponent.
double distance(double got, const arf_t middle, slong exponent) {
  arf_t difference;
  arf_init(difference);
  arf_set_d(difference, got);
  arf_sub(difference, difference, middle, 256, ARF_RND_NEAR);
  arf_mul_2exp_si(difference, difference, -exponent);
  const double units = std::abs(arf_get_d(difference, ARF_RND_NEAR));
  arf_clear(difference);
  return units;
}

/// Compares with the C library, whose value is exact if it is a zero, an infinity or NaN.
double error_at_limits(ElementType type, double expected, double got) {
  if (std::isnan(expected) || std::isnan(got)) {
    return std::isnan(expected) == std::isnan(got) ? 0 : kInf;
  }
  const double rounded = round_to(type, expected);
  if (rounded == got) return got == 0 && std::signbit(got) != std::signbit(rounded) ? kInf : 0;
  if (std::isinf(rounded) || std::isinf(got)) return kInf;
  int exponent = 0;
  static_cast<void>(std::frexp(expected, &exponent));
  return std::ldexp(std::abs(got - expected), static_cast<int>(-unit_exponent(type, exponent)));
}

}  // namespace

double oracle_error(const OracleFunction& f, ElementType type, double x, double x1, double got) {
  Ball y;
  bool sharp = false;
  // Arb has no negative zero.
  const bool is_limit = x == 0 && f.operands == 2 && f.at_limits != nullptr;
  if (std::isfinite(x) && std::isfinite(x1) && !is_limit) {
    const Ball a(x);
    const Ball b(x1);
    for (slong bits = kFirstBits; !sharp && bits <= kMostBits; bits *= 2) {
      f.exact(y, a, b, bits);
      sharp = arb_is_finite(y.get()) && is_sharp(y.get(), unit_of(y.get(), type));
    }
  }
  if (!sharp || arb_is_zero(y.get())) {
    return f.at_limits == nullptr ? -1 : error_at_limits(type, f.at_limits(x, x1), got);
  }
  if (std::isnan(got)) return kInf;
  const arf_struct* middle = arb_midref(y.get());
  slong e = arf_abs_bound_lt_2exp_si(middle);
  const auto& format = element_type_info(type).format;
  if (f.size_of_terms != nullptr && f.size_of_terms(x) != 0) {
    e = std::max<slong>(e, std::ilogb(f.size_of_terms(x)) + 1);
  }
  // The greatest number and infinity count as adjacent: beyond both the error is measured from it.
  const slong greatest = unit_exponent(type, format.bias + 1);
  if (std::isinf(got)) {
    if (std::signbit(got) != (arf_sgn(middle) < 0)) return kInf;
    arf_t limit;
    arf_init(limit);
    arf_set_d(limit, float_max(type));
    const bool beyond = arf_cmpabs(middle, limit) >= 0;
    arf_clear(limit);
    return beyond ? 0 : distance(std::copysign(float_max(type), got), middle, greatest) + 1;
  }
  return distance(got, middle, std::min(unit_exponent(type, e), greatest));
}

// --- Complex functions

namespace {

using AcbFunction = void (*)(acb_t, const acb_t, slong);

ComplexOracleFunction complex_unary(std::string op, AcbFunction f) {
  return {std::move(op), 1,
          [f](acb_t w, const acb_t z, const acb_t, slong bits) { f(w, z, bits); }};
}

void complex_logistic(acb_t w, const acb_t z, slong bits) {
  acb_neg(w, z);
  acb_exp(w, w, bits);
  acb_add_ui(w, w, 1, bits);
  acb_inv(w, w, bits);
}
void complex_sign(acb_t w, const acb_t z, slong bits) {
  if (acb_is_zero(z)) return acb_zero(w);
  Ball size;
  acb_abs(size.get(), z, bits);
  acb_div_arb(w, z, size.get(), bits);
}
void complex_abs(acb_t w, const acb_t z, slong bits) {
  acb_abs(acb_realref(w), z, bits);
  arb_zero(acb_imagref(w));
}
void complex_cbrt(acb_t w, const acb_t z, slong bits) {
  if (acb_is_zero(z)) return acb_zero(w);
  acb_root_ui(w, z, 3, bits);
}

// e^(y log z), unless the exponent is so large that its own rounding changes the angle.
void complex_power(acb_t w, const acb_t z, const acb_t y, slong bits) {
  if (acb_is_zero(z)) return acb_indeterminate(w);
  acb_log(w, z, bits);
  acb_mul(w, w, y, bits);
  Ball size;
  const Ball most(kGreatestExponent);
  acb_abs(size.get(), w, bits);
  arb_le(size.get(), most.get()) ? acb_exp(w, w, bits) : acb_indeterminate(w);
}

}  // namespace

const std::vector<ComplexOracleFunction>& complex_oracle_functions() {
  static const std::vector<ComplexOracleFunction> all = {
      {"stablehlo.divide", 2, acb_div},
      {"stablehlo.power", 2, complex_power},
      complex_unary("stablehlo.exponential", acb_exp),
      complex_unary("stablehlo.exponential_minus_one", acb_expm1),
      complex_unary("stablehlo.log", acb_log),
      complex_unary("stablehlo.log_plus_one", acb_log1p),
      complex_unary("stablehlo.logistic", complex_logistic),
      complex_unary("stablehlo.sine", acb_sin),
      complex_unary("stablehlo.cosine", acb_cos),
      complex_unary("stablehlo.tan", acb_tan),
      complex_unary("stablehlo.tanh", acb_tanh),
      complex_unary("stablehlo.sqrt", acb_sqrt),
      complex_unary("stablehlo.rsqrt", acb_rsqrt),
      complex_unary("stablehlo.cbrt", complex_cbrt),
      complex_unary("stablehlo.abs", complex_abs),
      complex_unary("stablehlo.sign", complex_sign),
      complex_unary("chlo.acos", acb_acos),
      complex_unary("chlo.acosh", acb_acosh),
      complex_unary("chlo.asin", acb_asin),
      complex_unary("chlo.asinh", acb_asinh),
      complex_unary("chlo.atan", acb_atan),
      complex_unary("chlo.atanh", acb_atanh),
      complex_unary("chlo.cosh", acb_cosh),
      complex_unary("chlo.sinh", acb_sinh),
  };
  return all;
}

double complex_oracle_error(const ComplexOracleFunction& f, ElementType part,
                            std::span<const double> z, std::span<const double> z1,
                            std::span<const double> got) {
  acb_t a, b, w;
  acb_init(a), acb_init(b), acb_init(w);
  acb_set_d_d(a, z[0], z[1]);
  acb_set_d_d(b, z1[0], z1[1]);
  Ball size;
  bool sharp = false;
  double error = -1;
  slong unit = 0;
  for (slong bits = kFirstBits; !sharp && bits <= kMostBits; bits *= 2) {
    f.exact(w, a, b, bits);
    acb_abs(size.get(), w, bits);
    if (!acb_is_finite(w)) continue;
    unit = unit_of(size.get(), part);
    sharp = is_sharp(acb_realref(w), unit) && is_sharp(acb_imagref(w), unit);
  }
  Ball most(float_max(part));
  if (sharp && arb_le(size.get(), most.get())) {
    const bool is_number = std::isfinite(got[0]) && std::isfinite(got[1]);
    error = is_number ? std::hypot(distance(got[0], arb_midref(acb_realref(w)), unit),
                                   distance(got[1], arb_midref(acb_imagref(w)), unit))
                      : kInf;
  }
  acb_clear(a), acb_clear(b), acb_clear(w);
  return error;
}

}  // namespace tenon::conformance
