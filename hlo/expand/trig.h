// Between chlo_trig.cpp and chlo_trig_complex.cpp.
#pragma once

#include "hlo/expand/expand_util.h"

namespace tenon::hlo::expand {

/// The parts of a complex number.
struct Complex {
  Expr re;
  Expr im;
};

/// e^(x / 2), of which the square may overflow.
Expr root_of_exp(const Expr& x);
Expr real_sinh(const Expr& x);
Expr real_cosh(const Expr& x);

/// (sqrt(a^2 - x^2), log(a + sqrt(a^2 - 1))) with x = |re|, y = |im| and
/// a = (hypot(x + 1, y) + hypot(x - 1, y)) / 2: what asin and acos, up to signs, are made of.
Complex asin_acos_kernel(const Complex& z);
Complex complex_acos(const Complex& z);
Complex complex_acosh(const Complex& z);
Complex complex_asin(const Complex& z);
Complex complex_asinh(const Complex& z);
Complex complex_atan(const Complex& z);
Complex complex_atanh(const Complex& z);
Complex complex_cosh(const Complex& z);
Complex complex_sinh(const Complex& z);

}  // namespace tenon::hlo::expand
