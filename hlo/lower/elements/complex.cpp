// Elementwise ops on complex numbers, as operations on their parts.
//
// Magnitudes and quotients are scaled so that they overflow only if the result does. Functions are
// computed from functions of the real parts; special cases follow C's Annex G, as in the evaluator
// (hlo/evaluator/scalars/complex_math.cpp).
#include <cmath>

#include "hlo/lower/elements/rules.h"

namespace tenon::hlo::lower {
namespace {

using kernel::Builder;

class ComplexEmitter {
 public:
  ComplexEmitter(ElementEmitter& emitter, ElementType part)
      : e_(emitter), b_(emitter.b), part_(part) {}

  ValueId real(double value) { return b_.real(part_, value); }
  ValueId neg(ValueId x) { return b_.unary(K::kNeg, x); }
  ValueId abs(ValueId x) { return b_.unary(K::kAbs, x); }
  ValueId fn(K code, ValueId x) { return b_.unary(code, x); }
  ValueId is_inf(ValueId x) { return b_.compare(K::kEq, abs(x), real(HUGE_VAL)); }
  ValueId is_nan(ValueId x) { return b_.compare(K::kNe, x, x); }
  ValueId is_finite(ValueId x) { return b_.compare(K::kLt, abs(x), real(HUGE_VAL)); }
  ValueId is_finite(const Element& x) { return both(is_finite(x.re), is_finite(x.im)); }
  ValueId is_zero(ValueId x) { return b_.compare(K::kEq, x, real(0)); }
  ValueId both(ValueId x, ValueId y) { return b_.logical_and(x, y); }
  ValueId either(ValueId x, ValueId y) { return b_.logical_or(x, y); }
  // The magnitude of x with the sign of y.
  ValueId copysign(ValueId x, ValueId y) {
    const ElementType bits = *integer_of_width(bit_width(part_), false);
    const ValueId mask =
        b_.binary(K::kShl, b_.integer(bits, 1), b_.integer(bits, bit_width(part_) - 1));
    const ValueId magnitude = b_.logical_and(b_.bitcast(x, bits), b_.unary(K::kNot, mask));
    return b_.bitcast(b_.logical_or(magnitude, b_.logical_and(b_.bitcast(y, bits), mask)), part_);
  }

  // 1 with the sign of an infinity; 0 with the sign of any other number.
  ValueId unit_of_infinity(ValueId x) {
    return copysign(b_.select(is_inf(x), real(1), real(0)), x);
  }
  Element units_of_infinity(const Element& x) {
    return {unit_of_infinity(x.re), unit_of_infinity(x.im)};
  }

  Element neg(const Element& x) { return {neg(x.re), neg(x.im)}; }
  Element add(const Element& x, const Element& y) { return lower::add(e_, x, y, part_); }
  Element sub(const Element& x, const Element& y) {
    return {b_.sub(x.re, y.re), b_.sub(x.im, y.im)};
  }
  Element mul(const Element& x, const Element& y) { return multiply(e_, x, y, part_); }
  Element select(ValueId p, const Element& x, const Element& y) { return e_.select(p, x, y); }

  // sqrt(re^2 + im^2) of the parts scaled by a power of two that brings the greater one near 1; fma
  // keeps the low halves of the squares.
  ValueId magnitude(const Element& x) {
    const ValueId a = abs(x.re);
    const ValueId c = abs(x.im);
    const ValueId infinite = either(is_inf(x.re), is_inf(x.im));
    const ValueId greater = b_.max(a, c);
    const ValueId less = b_.min(a, c);
    const Scaling s = scaling(greater);
    const ValueId g = b_.mul(greater, s.down);
    const ValueId l = b_.mul(less, s.down);
    const ValueId high = b_.mul(g, g);
    const ValueId low = b_.fma(g, g, neg(high));
    const ValueId sum = b_.fma(l, l, high);
    // The rounding error of the sum of l^2 and g^2.
    const ValueId lost = b_.fma(l, l, b_.sub(high, sum));
    const ValueId root = fn(K::kSqrt, sum);
    // One Newton step corrects the rounding errors of sum and root.
    const ValueId rest = b_.add(b_.add(b_.fma(neg(root), root, sum), lost), low);
    const ValueId step = b_.div(rest, b_.mul(real(2), root));
    const ValueId better = b_.select(is_zero(root), root, b_.add(root, step));
    const ValueId result = b_.mul(better, s.up);
    return b_.select(infinite, real(HUGE_VAL), result);
  }

  Element divide(const Element& x, const Element& y) {
    const Normalized dividend = normalized(x);
    const Normalized divisor = normalized(y);
    const Element& w = dividend.number;
    const Element& z = divisor.number;
    const ValueId norm = b_.fma(z.re, z.re, b_.mul(z.im, z.im));
    const ValueId exponent = b_.sub(dividend.exponent, divisor.exponent);
    const auto quotient = [&](ValueId a, ValueId c, ValueId d, ValueId f) {
      // (a c + d f) / norm, with the sum of products accurate to about an ulp.
      return times_power_of_two(b_.div(sum_of_products(a, c, d, f), norm), exponent);
    };
    const Element plain = {quotient(w.re, z.re, w.im, z.im), quotient(w.im, z.re, neg(w.re), z.im)};
    // Annex G.5.1: divided by zero, an infinity; an infinity divided by a finite number, an
    // infinity; a finite number divided by an infinity, a zero.
    const auto conjugate_product = [&](double scale, const Element& u, const Element& v) {
      return Element{b_.mul(real(scale), b_.add(b_.mul(u.re, v.re), b_.mul(u.im, v.im))),
                     b_.mul(real(scale), b_.sub(b_.mul(u.im, v.re), b_.mul(u.re, v.im)))};
    };
    const ValueId zero = both(is_zero(y.re), is_zero(y.im));
    const ValueId signed_infinity = copysign(real(HUGE_VAL), y.re);
    const Element by_zero = {b_.mul(signed_infinity, x.re), b_.mul(signed_infinity, x.im)};
    const ValueId x_infinite = either(is_inf(x.re), is_inf(x.im));
    const ValueId y_infinite = either(is_inf(y.re), is_inf(y.im));
    const Element of_infinity = conjugate_product(HUGE_VAL, units_of_infinity(x), y);
    const Element by_infinity = conjugate_product(0, w, units_of_infinity(y));
    const Element finite = select(both(x_infinite, is_finite(y)), of_infinity, plain);
    return select(zero, by_zero, select(both(y_infinite, is_finite(x)), by_infinity, finite));
  }

  Element exp(const Element& x) {
    const ValueId cosine = fn(K::kCos, x.im);
    const ValueId sine = fn(K::kSin, x.im);
    const ValueId on_axis = is_zero(x.im);
    const Element general = {b_.select(on_axis, fn(K::kExp, x.re), exp_times(x.re, cosine)),
                             b_.select(on_axis, x.im, exp_times(x.re, sine))};
    // With an infinite real part, a non-finite imaginary part gives an infinity or a zero.
    const ValueId no_angle = b_.unary(K::kNot, is_finite(x.im));
    const ValueId lost = both(b_.compare(K::kEq, x.re, real(HUGE_VAL)), no_angle);
    const ValueId vanishes = both(b_.compare(K::kEq, x.re, real(-HUGE_VAL)), no_angle);
    const Element infinite = {real(HUGE_VAL), real(std::nan(""))};
    return select(vanishes, {real(0), real(0)}, select(lost, infinite, general));
  }

  // (e^a - 1) cos b + (cos b - 1), with cos b - 1 = -2 sin^2(b / 2).
  Element expm1(const Element& x) {
    const ValueId half = fn(K::kSin, b_.mul(x.im, real(0.5)));
    const ValueId e = fn(K::kExpm1, x.re);
    const ValueId cosine = fn(K::kCos, x.im);
    const ValueId twice = b_.mul(real(-2), half);
    const ValueId re = sum_of_products(e, cosine, twice, half);
    const ValueId im = exp_times(x.re, fn(K::kSin, x.im));
    const ValueId on_axis = is_zero(x.im);
    return {b_.select(on_axis, e, re), b_.select(on_axis, x.im, im)};
  }

  Element log(const Element& x) { return {log_magnitude(x), b_.binary(K::kAtan2, x.im, x.re)}; }

  // |1 + x|^2 - 1 = a (2 + a) + b^2 keeps small numbers accurate.
  Element log1p(const Element& x) {
    const ValueId tiny = sum_of_products(x.re, b_.add(real(2), x.re), x.im, x.im);
    const ValueId near = b_.mul(fn(K::kLog1p, tiny), real(0.5));
    const Element moved = {b_.add(real(1), x.re), x.im};
    const ValueId is_near = b_.compare(K::kLt, abs(tiny), real(0.5));
    return {b_.select(is_near, near, log_magnitude(moved)), b_.binary(K::kAtan2, x.im, moved.re)};
  }

  // u = sqrt((|x| + |re|) / 2), and im / (2 u): the sign of re determines which of them is the real
  // part.
  Element sqrt(const Element& x) {
    const ValueId size = b_.max(abs(x.re), abs(x.im));
    // Scaled by an even power of two, whose root is exact.
    const EvenScaling s = even_scaling(size);
    const Element y = {b_.mul(x.re, s.down), b_.mul(x.im, s.down)};
    const ValueId u = fn(K::kSqrt, b_.mul(b_.add(magnitude(y), abs(y.re)), real(0.5)));
    const ValueId v = b_.div(abs(y.im), b_.mul(real(2), u));
    const ValueId scaled_u = b_.mul(u, s.root_up);
    const ValueId scaled_v = b_.mul(v, s.root_up);
    const ValueId right = b_.compare(K::kGe, x.re, real(0));
    const Element plain = {b_.select(right, scaled_u, scaled_v),
                           copysign(b_.select(right, scaled_v, scaled_u), x.im)};
    const ValueId zero = is_zero(size);
    const Element origin = {real(0), x.im};
    const Element vertical = {real(HUGE_VAL), x.im};
    const ValueId positive = b_.compare(K::kGt, x.re, real(0));
    const ValueId nan_im = is_nan(x.im);
    const ValueId zero_like = b_.select(nan_im, real(std::nan("")), copysign(real(0), x.im));
    const Element along = {
        b_.select(positive, x.re, b_.select(nan_im, real(std::nan("")), real(0))),
        b_.select(positive, zero_like,
                  b_.select(nan_im, real(HUGE_VAL), copysign(real(HUGE_VAL), x.im)))};
    return select(is_inf(x.im), vertical, select(is_inf(x.re), along, select(zero, origin, plain)));
  }

  Element rsqrt(const Element& x) {
    const ValueId infinite = either(is_inf(x.re), is_inf(x.im));
    return select(infinite, {real(0), real(0)}, divide({real(1), real(0)}, sqrt(x)));
  }

  Element cbrt(const Element& x) {
    // Scaled by a power of eight, whose root is exact: the error of the logarithm grows with its
    // size.
    const ElementType bits = *integer_of_width(bit_width(part_), true);
    const ValueId third = b_.div(exponent(b_.max(abs(x.re), abs(x.im))), b_.integer(bits, 3));
    const ValueId down = power_of_two(b_.mul(third, b_.integer(bits, -3)));
    const ValueId up = power_of_two(third);
    const Element l = log({b_.mul(x.re, down), b_.mul(x.im, down)});
    const Element near = exp({b_.div(l.re, real(3)), b_.div(l.im, real(3))});
    const Element root = {b_.mul(near.re, up), b_.mul(near.im, up)};
    return select(both(is_zero(x.re), is_zero(x.im)), x, root);
  }

  // sinh and cosh of a real number, each multiplied by factors of at most 1: if one overflows,
  // products are computed in steps.
  struct HyperbolicValues {
    ValueId sinh;
    ValueId cosh;
    ValueId far;
    ValueId root;  // e^(|y| / 2)
  };
  HyperbolicValues hyperbolic(ValueId y) {
    const ValueId m = fn(K::kExpm1, abs(y));
    // sinh = (m + m / (m + 1)) / 2, accurate near 0; from 20 on e^-y does not change the sum.
    const ValueId small = b_.mul(b_.add(m, b_.div(m, b_.add(m, real(1)))), real(0.5));
    const ValueId e = fn(K::kExp, abs(y));
    const ValueId near_cosh = b_.mul(b_.add(e, b_.div(real(1), e)), real(0.5));
    const ValueId root = fn(K::kExp, b_.mul(abs(y), real(0.5)));
    return {copysign(small, y), near_cosh, b_.compare(K::kGt, abs(y), real(20)), root};
  }
  ValueId far_times(const HyperbolicValues& h, ValueId factor) {
    return b_.mul(b_.mul(b_.mul(h.root, real(0.5)), factor), h.root);
  }
  ValueId cosh_times(const HyperbolicValues& h, ValueId factor) {
    return b_.select(h.far, far_times(h, factor), b_.mul(h.cosh, factor));
  }
  ValueId sinh_times(const HyperbolicValues& h, ValueId y, ValueId factor) {
    const ValueId far = b_.mul(copysign(real(1), y), far_times(h, factor));
    return b_.select(h.far, far, b_.mul(h.sinh, factor));
  }
  // `product`, or `zero` where a zero met an infinity or NaN.
  ValueId or_zero(ValueId product, ValueId has_zero, ValueId zero) {
    return b_.select(both(has_zero, is_nan(product)), zero, product);
  }
  // `product`, or an infinity with the sign of `sign` if y is infinite and the angle is not finite.
  ValueId or_infinity(ValueId product, ValueId y, ValueId angle, ValueId sign) {
    const ValueId lost = both(is_inf(y), b_.unary(K::kNot, is_finite(angle)));
    return b_.select(lost, copysign(real(HUGE_VAL), sign), product);
  }

  // sin a cosh b + i cos a sinh b
  Element sin(const Element& x) {
    const HyperbolicValues h = hyperbolic(x.im);
    const ValueId re = cosh_times(h, fn(K::kSin, x.re));
    const ValueId im = sinh_times(h, x.im, fn(K::kCos, x.re));
    return {or_zero(re, is_zero(x.re), x.re),
            or_infinity(or_zero(im, is_zero(x.im), x.im), x.im, x.re, x.im)};
  }
  // cos a cosh b - i sin a sinh b
  Element cos(const Element& x) {
    const HyperbolicValues h = hyperbolic(x.im);
    const ValueId re = cosh_times(h, fn(K::kCos, x.re));
    const ValueId im = neg(sinh_times(h, x.im, fn(K::kSin, x.re)));
    const ValueId zero = neg(b_.mul(copysign(real(0), x.re), copysign(real(1), x.im)));
    return {or_infinity(re, x.im, x.re, real(1)),
            or_zero(im, either(is_zero(x.re), is_zero(x.im)), zero)};
  }

  // tanh(a + i b) = (sinh a cosh a + i sin b cos b) / (sinh^2 a + cos^2 b)
  Element tanh(const Element& x) {
    const HyperbolicValues h = hyperbolic(x.re);
    const ValueId sine = fn(K::kSin, x.im);
    const ValueId cosine = fn(K::kCos, x.im);
    const ValueId denominator = b_.fma(h.sinh, h.sinh, b_.mul(cosine, cosine));
    const Element near = {b_.div(b_.mul(h.sinh, h.cosh), denominator),
                          b_.div(b_.mul(sine, cosine), denominator)};
    // For large |a|: +-1 and 4 sin b cos b e^-2|a|.
    const ValueId decay = fn(K::kExp, neg(abs(x.re)));
    const ValueId tail = b_.mul(b_.mul(b_.mul(b_.mul(real(4), sine), cosine), decay), decay);
    const ValueId no_angle = b_.unary(K::kNot, is_finite(x.im));
    // For a finite a and a non-finite angle the result is NaN; for an infinite a it is +-1.
    const Element far = {b_.select(both(no_angle, b_.unary(K::kNot, is_inf(x.re))),
                                   real(std::nan("")), copysign(real(1), x.re)),
                         b_.select(both(is_inf(x.re), no_angle), real(0), tail)};
    const Element w = select(h.far, far, near);
    return {b_.select(is_zero(x.re), x.re, w.re), b_.select(is_zero(x.im), x.im, w.im)};
  }

  // tan z = -i tanh(i z)
  Element tan(const Element& x) {
    const Element t = tanh({neg(x.im), x.re});
    return {t.im, neg(t.re)};
  }

  Element logistic(const Element& x) {
    // e^x / (1 + e^x) or 1 / (1 + e^-x), whichever exponential is at most 1.
    const ValueId left = b_.compare(K::kLt, x.re, real(0));
    const Element e = exp(select(left, x, neg(x)));
    const Element one = {real(1), real(0)};
    return divide(select(left, e, one), add(one, e));
  }

  Element pow(const Element& x, const Element& y) {
    const Element one = {real(1), real(0)};
    const Element general = exp(mul(y, log(x)));
    const ValueId y_real = is_zero(y.im);
    const ValueId x_zero = both(is_zero(x.re), is_zero(x.im));
    const ValueId growing = b_.compare(K::kGt, y.re, real(0));
    const Element of_zero = {b_.select(growing, real(0), real(HUGE_VAL)), real(0)};
    const ValueId is_one = both(y_real, b_.compare(K::kEq, y.re, real(1)));
    const ValueId is_none = both(y_real, is_zero(y.re));
    return select(is_none, one, select(both(x_zero, y_real), of_zero, select(is_one, x, general)));
  }

  // -i log((x + i y) / sqrt(x^2 + y^2))
  Element atan2(const Element& y, const Element& x) {
    // Squares of numbers that were scaled to near 1 neither overflow nor underflow.
    const Scaling s = scaling(b_.max(b_.max(abs(x.re), abs(x.im)), b_.max(abs(y.re), abs(y.im))));
    const Element u = {b_.mul(x.re, s.down), b_.mul(x.im, s.down)};
    const Element v = {b_.mul(y.re, s.down), b_.mul(y.im, s.down)};
    const Element numerator = {b_.sub(u.re, v.im), b_.add(u.im, v.re)};
    const Element l = log(divide(numerator, sqrt(add(mul(u, u), mul(v, v)))));
    return {l.im, neg(l.re)};
  }

  Element sign(const Element& x) {
    const Scaling s = scaling(b_.max(abs(x.re), abs(x.im)));
    const Element near = {b_.mul(x.re, s.down), b_.mul(x.im, s.down)};
    const ValueId norm = magnitude(near);
    const Element unit = {b_.div(near.re, norm), b_.div(near.im, norm)};
    const ValueId nan = either(is_nan(x.re), is_nan(x.im));
    const ValueId zero = both(is_zero(x.re), is_zero(x.im));
    const Element no_number = {real(std::nan("")), real(std::nan(""))};
    return select(nan, no_number, select(zero, {real(0), real(0)}, unit));
  }

  // Lexicographic, NaN wins.
  Element extremum(const Element& x, const Element& y, bool greatest) {
    const Element& low = greatest ? x : y;
    const Element& high = greatest ? y : x;
    const ValueId less =
        b_.select(b_.compare(K::kEq, low.re, high.re), b_.compare(K::kLt, low.im, high.im),
                  b_.compare(K::kLt, low.re, high.re));
    const ValueId x_nan = either(is_nan(x.re), is_nan(x.im));
    const ValueId y_nan = either(is_nan(y.re), is_nan(y.im));
    return select(x_nan, x, select(y_nan, y, select(less, y, x)));
  }

  Element remainder(const Element& x, const Element& y) {
    const Element q = divide(x, y);
    return sub(x, mul({fn(K::kTrunc, q.re), fn(K::kTrunc, q.im)}, y));
  }

  ValueId compare(ComparisonDirection direction, const Element& x, const Element& y) {
    const ValueId same = both(b_.compare(K::kEq, x.re, y.re), b_.compare(K::kEq, x.im, y.im));
    if (direction == ComparisonDirection::kEq) return same;
    if (direction == ComparisonDirection::kNe) return b_.unary(K::kNot, same);
    const K code = direction == ComparisonDirection::kGe   ? K::kGe
                   : direction == ComparisonDirection::kGt ? K::kGt
                   : direction == ComparisonDirection::kLe ? K::kLe
                                                           : K::kLt;
    return b_.select(b_.compare(K::kEq, x.re, y.re), b_.compare(code, x.im, y.im),
                     b_.compare(code, x.re, y.re));
  }

 private:
  // Powers of two that scale a number to near 1 and back, up to the ends of the exponent range.
  struct Scaling {
    ValueId down;
    ValueId up;
  };
  struct EvenScaling {
    ValueId down;
    ValueId root_up;
  };

  int mantissa() const { return part_ == ElementType::kF64 ? 52 : 23; }
  int bias() const { return part_ == ElementType::kF64 ? 1023 : 127; }

  // The exponent of |x|, clamped so that its power and the inverse are normal numbers.
  ValueId exponent(ValueId x) {
    const ElementType bits = *integer_of_width(bit_width(part_), true);
    const ValueId biased = b_.binary(K::kShr, b_.bitcast(x, bits), b_.integer(bits, mantissa()));
    const ValueId e = b_.sub(biased, b_.integer(bits, bias()));
    const ValueId most = b_.integer(bits, bias() - 2);
    return b_.max(b_.min(e, most), b_.unary(K::kNeg, most));
  }
  ValueId power_of_two(ValueId exponent) {
    const ElementType bits = *integer_of_width(bit_width(part_), true);
    const ValueId biased = b_.add(exponent, b_.integer(bits, bias()));
    return b_.bitcast(b_.binary(K::kShl, biased, b_.integer(bits, mantissa())), part_);
  }
  Scaling scaling(ValueId positive) {
    const ValueId e = exponent(positive);
    return {power_of_two(b_.unary(K::kNeg, e)), power_of_two(e)};
  }
  /// A number whose greater part is near 1; multiplied by 2^exponent it is the original number.
  struct Normalized {
    Element number;
    ValueId exponent;
  };
  Normalized normalized(const Element& x) {
    const ElementType bits = *integer_of_width(bit_width(part_), true);
    const ValueId size = b_.max(abs(x.re), abs(x.im));
    // Denormals have no usable exponent until they are scaled up.
    const int raise = mantissa() + 2;
    const ValueId tiny = b_.compare(K::kLt, size, real(std::ldexp(1, 2 - bias())));
    const ValueId factor = b_.select(tiny, real(std::ldexp(1, raise)), real(1));
    const ValueId e = exponent(b_.mul(size, factor));
    const ValueId down = power_of_two(b_.unary(K::kNeg, e));
    const auto part = [&](ValueId v) { return b_.mul(b_.mul(v, factor), down); };
    return {{part(x.re), part(x.im)},
            b_.sub(e, b_.select(tiny, b_.integer(bits, raise), b_.integer(bits, 0)))};
  }
  // x 2^exponent for a number x near 1, rounded once.
  ValueId times_power_of_two(ValueId x, ValueId exponent) {
    const ElementType bits = *integer_of_width(bit_width(part_), true);
    const ValueId most = b_.integer(bits, 2 * (bias() - 1));
    const ValueId e = b_.max(b_.min(exponent, most), b_.unary(K::kNeg, most));
    const ValueId half = b_.binary(K::kSar, e, b_.integer(bits, 1));
    return b_.mul(b_.mul(x, power_of_two(half)), power_of_two(b_.sub(e, half)));
  }
  EvenScaling even_scaling(ValueId positive) {
    const ElementType bits = *integer_of_width(bit_width(part_), true);
    const ValueId half = b_.binary(K::kSar, exponent(positive), b_.integer(bits, 1));
    const ValueId even = b_.binary(K::kShl, half, b_.integer(bits, 1));
    return {power_of_two(b_.unary(K::kNeg, even)), power_of_two(half)};
  }

  // e^a * x, without overflowing before the product does.
  ValueId exp_times(ValueId a, ValueId x) {
    const double limit = part_ == ElementType::kF64 ? 709 : 88;
    const ValueId big = b_.compare(K::kGt, a, real(limit));
    const ValueId first = fn(K::kExp, b_.select(big, b_.mul(a, real(0.5)), a));
    const ValueId once = b_.mul(first, x);
    return b_.select(big, b_.mul(once, first), once);
  }

  // a c + d f by Kahan's method: an error of at most 1.5 ulp.
  ValueId sum_of_products(ValueId a, ValueId c, ValueId d, ValueId f) {
    const ValueId product = b_.mul(d, f);
    const ValueId error = b_.fma(d, f, neg(product));
    const ValueId sum = b_.fma(a, c, product);
    const ValueId exact = b_.add(sum, error);
    // For infinities the correction is NaN, which is not the result.
    return b_.select(is_nan(error), sum, exact);
  }

  // log |x|, by log1p near the unit circle.
  ValueId log_magnitude(const Element& x) {
    const ValueId a = b_.max(abs(x.re), abs(x.im));
    const ValueId c = b_.min(abs(x.re), abs(x.im));
    const ValueId near = b_.mul(
        fn(K::kLog1p, sum_of_products(b_.sub(a, real(1)), b_.add(a, real(1)), c, c)), real(0.5));
    const ValueId is_near = both(b_.compare(K::kGt, a, real(0.5)), b_.compare(K::kLt, a, real(2)));
    // For large |x|: the log of the scaled magnitude plus the log of the scale.
    const ValueId e = exponent(a);
    const ValueId down = power_of_two(b_.unary(K::kNeg, e));
    const ValueId scaled = magnitude({b_.mul(a, down), b_.mul(c, down)});
    const ValueId scale = b_.convert(e, part_);
    const ValueId high = real(part_ == ElementType::kF64 ? 0x1.62e42fee00000p-1 : 0x1.62e4p-1);
    const ValueId low =
        real(part_ == ElementType::kF64 ? 0x1.a39ef35793c76p-33 : 0x1.7f7d1cf79abcap-20);
    const ValueId far = b_.fma(scale, high, b_.fma(scale, low, fn(K::kLog, scaled)));
    const ValueId infinite = either(is_inf(x.re), is_inf(x.im));
    const ValueId zero = is_zero(a);
    return b_.select(infinite, real(HUGE_VAL),
                     b_.select(zero, real(-HUGE_VAL), b_.select(is_near, near, far)));
  }

  ElementEmitter& e_;
  Builder& b_;
  ElementType part_;
};

// The emitter for the parts of the operands of `op`.
ComplexEmitter emitter_of(ElementEmitter& e, const Instruction& op) {
  return {e, complex_part(op.operand_type(op.operand_count() == 3 ? 1 : 0).element_type())};
}

}  // namespace

namespace complex_rules {

using E = ElementEmitter;
using Op = Instruction;

Elements abs(E& e, const Op& op, const Elements& x) {
  return {{emitter_of(e, op).magnitude(x[0])}};
}
Elements add(E& e, const Op& op, const Elements& x) { return {emitter_of(e, op).add(x[0], x[1])}; }
Elements atan2(E& e, const Op& op, const Elements& x) {
  return {emitter_of(e, op).atan2(x[0], x[1])};
}
Elements cbrt(E& e, const Op& op, const Elements& x) { return {emitter_of(e, op).cbrt(x[0])}; }
Elements cosine(E& e, const Op& op, const Elements& x) { return {emitter_of(e, op).cos(x[0])}; }
Elements divide(E& e, const Op& op, const Elements& x) {
  return {emitter_of(e, op).divide(x[0], x[1])};
}
Elements exponential(E& e, const Op& op, const Elements& x) {
  return {emitter_of(e, op).exp(x[0])};
}
Elements exponential_minus_one(E& e, const Op& op, const Elements& x) {
  return {emitter_of(e, op).expm1(x[0])};
}
Elements log(E& e, const Op& op, const Elements& x) { return {emitter_of(e, op).log(x[0])}; }
Elements log_plus_one(E& e, const Op& op, const Elements& x) {
  return {emitter_of(e, op).log1p(x[0])};
}
Elements logistic(E& e, const Op& op, const Elements& x) {
  return {emitter_of(e, op).logistic(x[0])};
}
Elements maximum(E& e, const Op& op, const Elements& x) {
  return {emitter_of(e, op).extremum(x[0], x[1], true)};
}
Elements minimum(E& e, const Op& op, const Elements& x) {
  return {emitter_of(e, op).extremum(x[0], x[1], false)};
}
Elements multiply(E& e, const Op& op, const Elements& x) {
  return {emitter_of(e, op).mul(x[0], x[1])};
}
Elements negate(E& e, const Op& op, const Elements& x) { return {emitter_of(e, op).neg(x[0])}; }
Elements power(E& e, const Op& op, const Elements& x) {
  return {emitter_of(e, op).pow(x[0], x[1])};
}
Elements remainder(E& e, const Op& op, const Elements& x) {
  return {emitter_of(e, op).remainder(x[0], x[1])};
}
Elements rsqrt(E& e, const Op& op, const Elements& x) { return {emitter_of(e, op).rsqrt(x[0])}; }
Elements select(E& e, const Op& op, const Elements& x) {
  return {emitter_of(e, op).select(x[0].re, x[1], x[2])};
}
Elements sign(E& e, const Op& op, const Elements& x) { return {emitter_of(e, op).sign(x[0])}; }
Elements sine(E& e, const Op& op, const Elements& x) { return {emitter_of(e, op).sin(x[0])}; }
Elements sqrt(E& e, const Op& op, const Elements& x) { return {emitter_of(e, op).sqrt(x[0])}; }
Elements subtract(E& e, const Op& op, const Elements& x) {
  return {emitter_of(e, op).sub(x[0], x[1])};
}
Elements tan(E& e, const Op& op, const Elements& x) { return {emitter_of(e, op).tan(x[0])}; }
Elements tanh(E& e, const Op& op, const Elements& x) { return {emitter_of(e, op).tanh(x[0])}; }

// Maximum and minimum of complex numbers compare the real parts first.
Elements clamp(E& e, const Op& op, const Elements& x) {
  ComplexEmitter c = emitter_of(e, op);
  return {c.extremum(c.extremum(x[1], x[0], true), x[2], false)};
}
Elements compare(E& e, const Op& op, const Elements& x) {
  const auto direction = op.enumeration<ComparisonDirection>(AttrKey::comparison_direction);
  return {{emitter_of(e, op).compare(direction, x[0], x[1])}};
}
Elements complex(E&, const Op&, const Elements& x) { return {{x[0].re, x[1].re}}; }
Elements convert(E& e, const Op& op, const Elements& x) {
  return {e.convert(x[0], op.operand_type(0).element_type(), op.result_type().element_type())};
}
Elements imag(E&, const Op&, const Elements& x) { return {{x[0].im}}; }
Elements real(E&, const Op&, const Elements& x) { return {{x[0].re}}; }

}  // namespace complex_rules
}  // namespace tenon::hlo::lower
