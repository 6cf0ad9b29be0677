#!/usr/bin/env python3
"""Prints core/kernel/math/coefficients.h: constants and polynomials of the math functions.

    scripts/math_coefficients.py > core/kernel/math/coefficients.h

The polynomials are Chebyshev fits in 60 digits, whose error is within a small factor of the least
possible, or, where errors count for more in some places than in others, best fits by the exchange
of Remez under a weight; coefficients are rounded to the format. Each fit is of what remains of a
function when its first terms, which are exact or known in two parts, are taken off, so that its
relative error hardly enters the result. Needs mpmath.
"""
import struct

import mpmath as mp

mp.mp.dps = 60


def rounded(value, is_float, bits=None):
    """The nearest number of the format, or of `bits` significant bits."""
    if bits:
        with mp.workprec(bits):
            value = +mp.mpf(value)
    number = float(value)
    return struct.unpack("f", struct.pack("f", number))[0] if is_float else number


def text(number, is_float):
    return float(number).hex() + ("F" if is_float else "")


def best_fit(function, low, high, degree, weight):
    """The polynomial whose greatest error times `weight` is least, highest power first, and that error."""
    count = degree + 2
    def points(n):
        return [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * i / (n - 1)) for i in range(n)]
    grid = points(40 * count)
    values, weights = [function(x) for x in grid], [weight(x) for x in grid]
    chosen = [round(i * (len(grid) - 1) / (count - 1)) for i in range(count)]
    for _ in range(20):
        rows = [[grid[k]**j for j in range(degree + 1)] + [(-1)**i / weights[k]] for i, k in enumerate(chosen)]
        solved = mp.lu_solve(mp.matrix(rows), mp.matrix([values[k] for k in chosen]))
        fit = [solved[degree - j] for j in range(degree + 1)]
        errors = [(value - mp.polyval(fit, x)) * w for x, value, w in zip(grid, values, weights)]
        extremes = []  # The greatest error between two changes of its sign.
        for k, error in enumerate(errors):
            if not extremes or (error > 0) != (errors[extremes[-1]] > 0):
                extremes.append(k)
            elif abs(error) > abs(errors[extremes[-1]]):
                extremes[-1] = k
        while len(extremes) > count:
            extremes.pop(0 if abs(errors[extremes[0]]) < abs(errors[extremes[-1]]) else -1)
        greatest = max(map(abs, errors))
        if len(extremes) < count or greatest < 1.01 * min(abs(errors[k]) for k in extremes):
            break
        chosen = extremes
    return fit, greatest


ERFC_CENTRE = 3


def erfc_argument(t):
    return ERFC_CENTRE * (1 + t) / (1 - t)


def scaled_erfc(t):
    x = erfc_argument(t)
    return (x + ERFC_CENTRE) * mp.exp(x**2) * mp.erfc(x)


def erfc_variable(x):
    return (mp.mpf(x) - ERFC_CENTRE) / (mp.mpf(x) + ERFC_CENTRE)


def erf_ratio(z):
    return (mp.erf(mp.sqrt(z)) / mp.sqrt(z) if z > 1e-20 else 2 / mp.sqrt(mp.pi) * (1 - z / 3)) - 1


# Name, summary, function, range, degrees of f32 and f64; a pair for the range: of f32, of f64; for best_fit the weight.
FITS = [
    ("kExp", "(e^r - 1 - r) / r^2 for |r| <= 0.3467", lambda r: (mp.expm1(r) - r) / r**2 if abs(r) > 1e-20 else mp.mpf(1) / 2 + r / 6,
     -0.3467, 0.3467, (5, 10)),
    ("kLog", "((log(1 + s) - log(1 - s)) / s - 2) / s^2 of s^2, for |s| <= 0.1716",
     lambda z: (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2) / z if z > 1e-20 else mp.mpf(2) / 3, 0, 0.02945, (3, 7)),
    ("kLogTail", "(((log(1 + s) - log(1 - s)) / s - 2) / s^2 - 2/3) / s^2 of s^2, for |s| <= 0.1716",
     lambda z: ((2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2) / z - mp.mpf(2) / 3) / z if z > 1e-20 else mp.mpf(2) / 5,
     0, 0.02945, (3, 7)),
    ("kSin", "(sin(r) / r - 1) / r^2 of r^2, for |r| <= 0.786",
     lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z if z > 1e-20 else -mp.mpf(1) / 6, 0, 0.618, (3, 6)),
    ("kCos", "(cos(r) - 1 + r^2 / 2) / r^4 of r^2, for |r| <= 0.786",
     lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2 if z > 1e-20 else mp.mpf(1) / 24, 0, 0.618, (3, 6)),
    ("kAtan", "(atan(t) / t - 1) / t^2 of t^2, for |t| <= 0.25",
     lambda z: (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z if z > 1e-20 else -mp.mpf(1) / 3, 0, 0.0626, (4, 10)),
    ("kCbrt", "cube root of m in [1, 8], to one part in 500", mp.cbrt, 1, 8, (4, 4)),
    ("kErf", "erf(x) / x - 1 of x^2, for |x| <= 0.9 (f64: 1)", erf_ratio, 0, (mp.mpf("0.81"), 1), (5, 11), lambda z: 1 / (1 + erf_ratio(z))),
    ("kErfFar", "erfc(x)^(1/8) for 0.9 <= x <= 3.95 (f64: 1 to 5.95)", lambda x: mp.root(mp.erfc(x), 8),
     (mp.mpf("0.9"), 1), (mp.mpf("3.95"), mp.mpf("5.95")), (7, 17), lambda x: 8 * mp.root(mp.erfc(x), 8)**7 / mp.erf(x)),
    ("kErfc", "(x + 3) e^(x^2) erfc(x) of (x - 3) / (x + 3), for 0 <= x <= 10.1 (f64: 27.3)", scaled_erfc, -1,
     (erfc_variable(10.1), erfc_variable(27.3)), (9, 22), lambda t: 1 / scaled_erfc(t)),
]


def parts(value, count, is_float, bits):
    """`value` as a sum of numbers of the format, of `bits` bits each."""
    result = []
    for _ in range(count):
        part = rounded(value, is_float, bits)
        result.append(part)
        value -= mp.mpf(part)
    return result


def words_of_two_over_pi(count):
    with mp.workprec(32 * count + 64):
        value = 2 / mp.pi
        words = []
        for _ in range(count):
            value *= 2**32
            word = int(mp.floor(value))
            words.append(word)
            value -= word
    return words


print("""// Generated by scripts/math_coefficients.py: constants of the math functions.
#pragma once

#include <array>
#include <cstdint>

namespace tenon::kernel::math {

/// The constants of one format.
template <class F>
struct Coefficients;
""")
for is_float in (True, False):
    kind = "float" if is_float else "double"
    precision = 24 if is_float else 53
    print(f"template <>\nstruct Coefficients<{kind}> {{")

    def constant(name, value, is_float=is_float, kind=kind):
        print(f"  static constexpr {kind} {name} = {text(rounded(value, is_float), is_float)};")

    constant("kLog2E", 1 / mp.log(2))
    # Times an exponent of the format, the high part is exact.
    high = parts(mp.log(2), 1, is_float, precision - (9 if is_float else 12))[0]
    constant("kLn2High", high)
    constant("kLn2Low", mp.log(2) - mp.mpf(high))
    constant("kTwoOverPi", 2 / mp.pi)
    for name, part in zip(("kPiOver2A", "kPiOver2B", "kPiOver2C"), parts(mp.pi / 2, 3, is_float, precision)):
        constant(name, part)
    for name, part in zip(("kPiHigh", "kPiLow"), parts(mp.pi, 2, is_float, precision)):
        constant(name, part)
    for name, part in zip(("kAtanHalfHigh", "kAtanHalfLow"), parts(mp.atan(mp.mpf(1) / 2), 2, is_float, precision)):
        constant(name, part)
    for name, part in zip(("kTwoThirdsHigh", "kTwoThirdsLow"), parts(mp.mpf(2) / 3, 2, is_float, precision)):
        constant(name, part)
    for name, summary, function, low, high, degrees, *weight in FITS:
        low, high, degree = (each[0 if is_float else 1] if isinstance(each, tuple) else each for each in (low, high, degrees))
        if weight:
            fit, error = best_fit(function, mp.mpf(low), mp.mpf(high), degree, *weight)
        else:
            fit, error = mp.chebyfit(function, [low, high], degree + 1, error=True)
        numbers = ",\n      ".join(text(rounded(c, is_float), is_float) for c in fit)
        print(f"  /// {summary}; highest power first, within {mp.nstr(error, 2)}.")
        print(f"  static constexpr std::array<{kind}, {degree + 1}> {name} = {{\n      {numbers}}};")
    print("};\n")

words = words_of_two_over_pi(40)
print("/// 2 / pi in words of 32 bits, the first after the point.")
print(f"inline constexpr std::array<uint32_t, {len(words)}> kTwoOverPiWords = {{")
print(",\n".join("    " + ", ".join(f"0x{w:08X}" for w in words[i:i + 6]) for i in range(0, len(words), 6)) + "};\n")
print("}  // namespace tenon::kernel::math")
