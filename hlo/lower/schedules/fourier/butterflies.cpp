// Transforms of a few complex numbers in registers.
#include <cmath>

#include "core/base/roots_of_unity.h"
#include "hlo/lower/elements/index_math.h"
#include "hlo/lower/schedules/fourier/fourier.h"

namespace tenon::hlo::lower {
namespace {

using kernel::Builder;

class Butterfly {
 public:
  Butterfly(Builder& builder, ElementType part, int sign, bool fma)
      : b(builder), part_(part), sign_(sign), fma_(fma) {}

  Elements transform(const Elements& x) {
    switch (x.size()) {
      case 1:
        return x;
      case 2:
        return {plus(x[0], x[1]), minus(x[0], x[1])};
      case 4:
        return four(x);
      case 8:
        return eight(x);
      default:
        break;
    }
    for (const size_t first : {4, 3, 2}) {
      const size_t second = x.size() / first;
      if (x.size() % first == 0 && second > 1) return product(x, first, second);
    }
    return odd(x);
  }

 private:
  Element plus(const Element& x, const Element& y) {
    return {b.add(x.re, y.re), b.add(x.im, y.im)};
  }
  Element minus(const Element& x, const Element& y) {
    return {b.sub(x.re, y.re), b.sub(x.im, y.im)};
  }
  // x + sign i y, x - sign i y
  Element plus_turned(const Element& x, const Element& y, bool negated = false) {
    const bool forward = (sign_ < 0) != negated;
    if (forward) return {b.add(x.re, y.im), b.sub(x.im, y.re)};
    return {b.sub(x.re, y.im), b.add(x.im, y.re)};
  }
  Element minus_turned(const Element& x, const Element& y) { return plus_turned(x, y, true); }

  ValueId multiply_add(ValueId factor, ValueId x, ValueId sum) {
    return fma_ ? b.fma(factor, x, sum) : b.add(b.mul(factor, x), sum);
  }
  // x + factor y
  Element plus_scaled(const Element& x, double factor, const Element& y) {
    const ValueId f = b.real(part_, factor);
    return {multiply_add(f, y.re, x.re), multiply_add(f, y.im, x.im)};
  }

  Elements four(const Elements& x) {
    const Element a = plus(x[0], x[2]);
    const Element c = minus(x[0], x[2]);
    const Element d = plus(x[1], x[3]);
    const Element e = minus(x[1], x[3]);
    return {plus(a, d), plus_turned(c, e), minus(a, d), minus_turned(c, e)};
  }

  // Two transforms of four; those of odd numbers are turned by eighths.
  Elements eight(const Elements& x) {
    const double half = std::sqrt(0.5);
    const Elements even = four({x[0], x[2], x[4], x[6]});
    const Elements odd = four({x[1], x[3], x[5], x[7]});
    const Element first = plus_turned(odd[1], odd[1]);   // times sqrt(0.5): an eighth
    const Element third = minus_turned(odd[3], odd[3]);  // times -sqrt(0.5): three eighths
    return {plus(even[0], odd[0]),         plus_scaled(even[1], half, first),
            plus_turned(even[2], odd[2]),  plus_scaled(even[3], -half, third),
            minus(even[0], odd[0]),        plus_scaled(even[1], -half, first),
            minus_turned(even[2], odd[2]), plus_scaled(even[3], half, third)};
  }

  // A product of two radices: transforms of `first` numbers, roots of unity, transforms of
  // `second` numbers.
  Elements product(const Elements& x, size_t first, size_t second) {
    const size_t n = x.size();
    std::vector<Elements> columns(first);
    for (size_t j = 0; j < second; ++j) {
      Elements row;
      for (size_t i = 0; i < first; ++i) row.push_back(x[i * second + j]);
      row = transform(row);
      for (size_t k = 0; k < first; ++k) columns[k].push_back(times_root(row[k], j * k, n));
    }
    Elements y(n);
    for (size_t k = 0; k < first; ++k) {
      const Elements column = transform(columns[k]);
      for (size_t l = 0; l < second; ++l) y[k + first * l] = column[l];
    }
    return y;
  }

  // x exp(sign 2 pi i k / n)
  Element times_root(const Element& x, size_t k, size_t n) {
    if (k == 0) return x;
    const std::complex<long double> root =
        root_of_unity(static_cast<int64_t>(k), static_cast<int64_t>(n));
    const Element w = {b.real(part_, static_cast<double>(root.real())),
                       b.real(part_, sign_ * static_cast<double>(root.imag()))};
    return turned(b, x, w, fma_);
  }

  // An odd prime: the sums of mirrored numbers are multiplied by cosines, their differences by
  // sines.
  Elements odd(const Elements& x) {
    const size_t n = x.size();
    const size_t half = n / 2;
    Elements sums;
    Elements differences;
    Element total = x[0];
    for (size_t j = 1; j <= half; ++j) {
      sums.push_back(plus(x[j], x[n - j]));
      differences.push_back(minus(x[j], x[n - j]));
      total = plus(total, sums.back());
    }
    Elements y(n);
    y[0] = total;
    for (size_t k = 1; k <= half; ++k) {
      Element by_cosines = x[0];
      Element by_sines;
      for (size_t j = 1; j <= half; ++j) {
        const std::complex<long double> root =
            root_of_unity(static_cast<int64_t>(j * k % n), static_cast<int64_t>(n));
        by_cosines = plus_scaled(by_cosines, static_cast<double>(root.real()), sums[j - 1]);
        const auto sine = static_cast<double>(root.imag());
        const Element& d = differences[j - 1];
        const ValueId s = b.real(part_, sine);
        by_sines =
            j == 1 ? Element{b.mul(s, d.re), b.mul(s, d.im)} : plus_scaled(by_sines, sine, d);
      }
      y[k] = plus_turned(by_cosines, by_sines);
      y[n - k] = minus_turned(by_cosines, by_sines);
    }
    return y;
  }

  Builder& b;  // NOLINT: what every rule writes to
  ElementType part_;
  int sign_;
  bool fma_;
};

}  // namespace

Elements butterfly(Builder& b, ElementType part, const Elements& x, int sign, bool fma) {
  return Butterfly(b, part, sign, fma).transform(x);
}

Element turned(Builder& b, const Element& x, const Element& w, bool fma) {
  const ValueId crossed = b.mul(x.im, w.im);
  const ValueId other = b.mul(x.im, w.re);
  if (!fma) return {b.sub(b.mul(x.re, w.re), crossed), b.add(b.mul(x.re, w.im), other)};
  return {b.fma(x.re, w.re, b.unary(K::kNeg, crossed)), b.fma(x.re, w.im, other)};
}

}  // namespace tenon::hlo::lower
