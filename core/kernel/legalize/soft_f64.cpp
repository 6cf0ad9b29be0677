#include "core/kernel/legalize/soft_f64.h"

#include <functional>
#include <limits>
#include <tuple>

#include "core/types/float_convert.h"

namespace tenon::kernel {
namespace {

using enum ElementType;

constexpr int64_t kSign = std::numeric_limits<int64_t>::min();
constexpr int64_t kMagnitude = ~kSign;
constexpr int64_t kInfinity = int64_t{0x7FF} << 52;
constexpr int64_t kNan = kInfinity | int64_t{1} << 51;
constexpr int64_t kFraction = (int64_t{1} << 52) - 1;
constexpr int64_t kHidden = int64_t{1} << 52;
constexpr int64_t kOne = int64_t{1023} << 52;

KernelExpr magnitude(KernelExpr x) { return x & kMagnitude; }
KernelExpr sign(KernelExpr x) { return x & kSign; }
KernelExpr is_nan(KernelExpr x) { return magnitude(x) > kInfinity; }
KernelExpr is_infinite(KernelExpr x) { return magnitude(x) == kInfinity; }
KernelExpr is_zero(KernelExpr x) { return magnitude(x) == 0; }
KernelExpr as_signed(KernelExpr x) { return bitcast(x, kS64); }
KernelExpr as_bits(KernelExpr x) { return bitcast(x, kU64); }

/// x >> n, with the bits shifted out ORed into the lowest bit (sticky); n >= 0 may be any size.
KernelExpr shift_right_jam(KernelExpr x, KernelExpr n) {
  const int64_t width = bit_width(x.type());
  const KernelExpr amount = min(n, n.like(width - 1));
  const KernelExpr lost = (x << (amount.like(width) - amount)) != 0;
  return select(amount == 0, x, (x >> amount) | convert(lost, x.type()));
}

/// A significand with its highest bit at 62 (0 for zero), and its biased exponent; exponents are
/// s64.
struct Unpacked {
  KernelExpr exponent, significand;
};

/// As stored: subnormals have no bit 62, and exponent 1.
Unpacked unpack_as_is(KernelExpr x) {
  const KernelExpr field = as_signed((x >> 52) & 0x7FF);
  const KernelExpr subnormal = field == 0;
  const KernelExpr fraction = x & kFraction;
  return {select(subnormal, 1, field), select(subnormal, fraction, fraction | kHidden) << 10};
}
Unpacked normalized(Unpacked u) {
  const KernelExpr shift = clz(u.significand) - 1;
  return {u.exponent - as_signed(shift), u.significand << shift};
}
Unpacked unpack(KernelExpr x) { return normalized(unpack_as_is(x)); }

/// The format to which results are packed.
struct PackedFormat {
  ElementType bits;  ///< Unsigned, of the format's width.
  int fraction_bits;
  int guard_bits;  ///< Below the fraction; the significand's highest bit is at fraction_bits +
                   ///< guard_bits.
  int64_t exponent_limit;
};
constexpr PackedFormat kF64Target = {kU64, 52, 10, 0x7FF};
constexpr PackedFormat kF32Target = {kU32, 23, 7, 0xFF};

/// Rounds a significand whose highest bit is `fraction_bits + guard_bits`, or lower for zero and
/// for results that stay subnormal. `exponent` is signed and as wide as the significand.
KernelExpr round_and_pack(const PackedFormat& t, KernelExpr sign, KernelExpr exponent,
                          KernelExpr significand) {
  const KernelExpr below = exponent < 1;
  const KernelExpr shift = select(below, exponent.like(1) - exponent, 0);
  const KernelExpr aligned = shift_right_jam(significand, bitcast(shift, t.bits));
  const int64_t half = int64_t{1} << (t.guard_bits - 1);
  const KernelExpr odd = (aligned >> t.guard_bits) & 1;
  const KernelExpr rounded = (aligned + (half - 1) + odd) >> t.guard_bits;
  const KernelExpr field = select(below, 0, exponent - 1);
  const KernelExpr bits = (bitcast(field, t.bits) << t.fraction_bits) + rounded;
  const int64_t infinity = t.exponent_limit << t.fraction_bits;
  const KernelExpr overflow = either(exponent >= t.exponent_limit, bits >= infinity);
  return sign | select(overflow, infinity, bits);
}
KernelExpr pack(KernelExpr sign, KernelExpr exponent, KernelExpr significand) {
  return round_and_pack(kF64Target, sign, exponent, significand);
}
/// The same for any significand below 2^63.
KernelExpr normalize_and_pack(KernelExpr sign, KernelExpr exponent, KernelExpr significand) {
  const Unpacked u = normalized({exponent, significand});
  return select(significand == 0, sign, pack(sign, u.exponent, u.significand));
}

KernelExpr quiet_if(KernelExpr condition, KernelExpr otherwise) {
  return select(condition, kNan, otherwise);
}

// --- Sums

KernelExpr add(KernelExpr x, KernelExpr y) {
  const KernelExpr x_larger = magnitude(x) >= magnitude(y);
  const KernelExpr a = select(x_larger, x, y);
  const KernelExpr b = select(x_larger, y, x);
  const Unpacked ua = unpack_as_is(a);
  const Unpacked ub = unpack_as_is(b);
  const KernelExpr shift = as_bits(ua.exponent - ub.exponent);
  const KernelExpr aligned = shift_right_jam(ub.significand, shift);
  const KernelExpr same_sign = sign(x) == sign(y);
  const KernelExpr sum = select(same_sign, ua.significand + aligned, ua.significand - aligned);
  // A carry into the highest bit.
  const KernelExpr carry = sum >> 63;
  const KernelExpr significand = select(carry != 0, (sum >> 1) | (sum & 1), sum);
  const KernelExpr exponent = ua.exponent + as_signed(carry);
  // x - x is +0; -0 + -0 is -0.
  const KernelExpr zero_sign = sign(x) & sign(y);
  const KernelExpr finite =
      select(sum == 0, zero_sign, normalize_and_pack(sign(a), exponent, significand));
  const KernelExpr undefined =
      either(is_nan(a), both(both(is_infinite(x), is_infinite(y)), complement(same_sign)));
  const KernelExpr nan = either(undefined, is_nan(b));
  return quiet_if(nan, select(is_infinite(a), a, finite));
}

// --- Products

KernelExpr multiply(KernelExpr x, KernelExpr y) {
  const Unpacked a = unpack(x);
  const Unpacked b = unpack(y);
  const KernelExpr s = sign(x ^ y);
  // Bits 62 and 63: the high half begins at bit 61 or 62.
  const KernelExpr high = multiply_high(a.significand, b.significand << 1);
  const KernelExpr low = a.significand * (b.significand << 1);
  const KernelExpr significand = high | convert(low != 0, kU64);
  const KernelExpr finite = normalize_and_pack(s, a.exponent + b.exponent - 1022, significand);
  const KernelExpr zero = either(is_zero(x), is_zero(y));
  const KernelExpr infinite = either(is_infinite(x), is_infinite(y));
  const KernelExpr nan = either(either(is_nan(x), is_nan(y)), both(zero, infinite));
  return quiet_if(nan, select(infinite, s | kInfinity, select(zero, s, finite)));
}

/// Runs body(state) `count` times.
Values repeat(Builder& b, int64_t count, const Values& inits,
              const std::function<Values(const std::vector<KernelExpr>&)>& body) {
  return b.for_loop(b.index(0), b.index(count), 1, inits, [&](const Values& arguments) {
    std::vector<KernelExpr> state;
    for (size_t i = 1; i < arguments.size(); ++i) state.push_back({&b, arguments[i]});
    return body(state);
  });
}

KernelExpr divide(KernelExpr x, KernelExpr y) {
  const Unpacked a = unpack(x);
  const Unpacked b = unpack(y);
  const KernelExpr s = sign(x ^ y);
  // The quotient in [1/2, 1), one bit at a time.
  const KernelExpr less = a.significand < b.significand;
  const KernelExpr numerator = select(less, a.significand, a.significand >> 1);
  const Values end = repeat(*x.builder, 56, {numerator.id, x.like(0).id},
                            [&](const std::vector<KernelExpr>& state) {
                              const KernelExpr r = state[0] << 1;
                              const KernelExpr fits = r >= b.significand;
                              const KernelExpr rest = select(fits, r - b.significand, r);
                              const KernelExpr quotient = (state[1] << 1) | convert(fits, kU64);
                              return Values{rest.id, quotient.id};
                            });
  const KernelExpr remainder = {x.builder, end[0]};
  const KernelExpr quotient = {x.builder, end[1]};
  const KernelExpr significand = (quotient << 7) | convert(remainder != 0, kU64);
  const KernelExpr exponent = a.exponent - b.exponent + 1023 - convert(less, kS64);
  const KernelExpr finite = pack(s, exponent, significand);
  const KernelExpr both_special =
      either(both(is_zero(x), is_zero(y)), both(is_infinite(x), is_infinite(y)));
  const KernelExpr nan = either(either(is_nan(x), is_nan(y)), both_special);
  const KernelExpr infinite = either(is_infinite(x), is_zero(y));
  const KernelExpr zero = either(is_zero(x), is_infinite(y));
  return quiet_if(nan, select(infinite, s | kInfinity, select(zero, s, finite)));
}

/// One bit of the root at a time, as fdlibm's e_sqrt.c explains.
KernelExpr square_root(KernelExpr x) {
  const Unpacked a = unpack(x);
  const KernelExpr e = a.exponent - 1023;
  const KernelExpr odd = e & 1;
  // In [1, 4), with its leading 1 at bit 53.
  const KernelExpr radicand = (a.significand >> 9) << as_bits(odd);
  Builder& b = *x.builder;
  const Values end = repeat(b, 54, {radicand.id, x.like(0).id, x.like(int64_t{1} << 53).id},
                            [&](const std::vector<KernelExpr>& state) {
                              const auto& [rest, root, bit] =
                                  std::tie(state[0], state[1], state[2]);
                              // `root` counts twice: once as the sum of the bits, once in twice the
                              // bits.
                              const KernelExpr trial = (root << 1) + bit;
                              const KernelExpr fits = trial <= rest;
                              const KernelExpr next_rest = select(fits, rest - trial, rest) << 1;
                              const KernelExpr next_root = select(fits, root + bit, root);
                              return Values{next_rest.id, next_root.id, (bit >> 1).id};
                            });
  const KernelExpr rest = {&b, end[0]};
  const KernelExpr root = {&b, end[1]};
  const KernelExpr significand = (root << 9) | convert(rest != 0, kU64);
  const KernelExpr finite = pack(x.like(0), sar(e - odd, 1) + 1023, significand);
  const KernelExpr negative = both(sign(x) != 0, complement(is_zero(x)));
  const KernelExpr itself = either(is_zero(x), is_infinite(x));
  return quiet_if(either(is_nan(x), negative), select(itself, x, finite));
}

// --- x y + z, on significands of 128 bits

struct Wide {
  KernelExpr high, low;
};
Wide select(KernelExpr p, Wide x, Wide y) {
  return {kernel::select(p, x.high, y.high), kernel::select(p, x.low, y.low)};
}
KernelExpr less(Wide x, Wide y) {
  return either(x.high < y.high, both(x.high == y.high, x.low < y.low));
}
Wide add(Wide x, Wide y) {
  const KernelExpr low = x.low + y.low;
  return {x.high + y.high + convert(low < x.low, kU64), low};
}
Wide subtract(Wide x, Wide y) {
  return {x.high - y.high - convert(x.low < y.low, kU64), x.low - y.low};
}
Wide shift_right_jam(Wide x, KernelExpr n) {
  const KernelExpr whole = n >= 64;
  const KernelExpr rest = kernel::select(whole, n - 64, n);
  const Wide moved = select(whole, Wide{x.high.like(0), x.high}, x);
  const KernelExpr out = kernel::select(whole, x.low, 0);
  // Shifts within the 128 bits by less than 64, or beyond all of them.
  const KernelExpr past = rest >= 64;
  const KernelExpr high = moved.high >> rest;
  const KernelExpr low =
      (moved.low >> rest) | kernel::select(rest == 0, 0, moved.high << (rest.like(64) - rest));
  const KernelExpr lost = kernel::select(rest == 0, 0, moved.low << (rest.like(64) - rest));
  const KernelExpr any = (x.high | x.low) != 0;
  const KernelExpr jammed = low | convert((lost | out) != 0, kU64);
  return {kernel::select(past, 0, high), kernel::select(past, convert(any, kU64), jammed)};
}

KernelExpr fused_multiply_add(KernelExpr x, KernelExpr y, KernelExpr z) {
  const Unpacked a = unpack(x);
  const Unpacked b = unpack(y);
  const Unpacked c = unpack(z);
  const KernelExpr s = sign(x ^ y);
  // Exponents of bit 124: the product's highest bit is that or the next, so the sum fits with a
  // carry.
  const Wide product = {multiply_high(a.significand, b.significand), a.significand * b.significand};
  const KernelExpr exponent = a.exponent + b.exponent - 1023;
  const KernelExpr z_zero = is_zero(z);
  const KernelExpr z_exponent = kernel::select(z_zero, -100000, c.exponent - 2);
  const Wide addend = {c.significand, x.like(0)};
  const KernelExpr ahead = exponent >= z_exponent;
  const KernelExpr distance =
      as_bits(kernel::select(ahead, exponent - z_exponent, z_exponent - exponent));
  const Wide p = select(ahead, product, shift_right_jam(product, distance));
  const Wide q = select(ahead, shift_right_jam(addend, distance), addend);
  const KernelExpr same_sign = s == sign(z);
  const KernelExpr p_less = less(p, q);
  const Wide difference = select(p_less, subtract(q, p), subtract(p, q));
  const Wide sum = select(same_sign, add(p, q), difference);
  const KernelExpr sum_sign = kernel::select(either(same_sign, complement(p_less)), s, sign(z));
  // Moves the highest bit to 62, and ORs the rest into the lowest bit.
  const KernelExpr top = kernel::select(ahead, exponent, z_exponent);
  const KernelExpr in_low = sum.high == 0;
  const KernelExpr first = kernel::select(in_low, sum.low, sum.high);
  const KernelExpr second = kernel::select(in_low, 0, sum.low);
  const KernelExpr n = clz(first);
  const KernelExpr head = (first << n) | kernel::select(n == 0, 0, second >> (n.like(64) - n));
  const KernelExpr tail = second << n;
  const KernelExpr significand = (head >> 1) | convert((tail | (head & 1)) != 0, kU64);
  const KernelExpr lead = as_signed(n + kernel::select(in_low, n.like(64), 0));
  const KernelExpr nonzero = pack(sum_sign, top + 3 - lead, significand);
  const KernelExpr cancelled = kernel::select((sum.high | sum.low) == 0, s & sign(z), nonzero);
  const KernelExpr product_zero = either(is_zero(x), is_zero(y));
  const KernelExpr without_product = kernel::select(z_zero, s & sign(z), z);
  const KernelExpr finite = kernel::select(product_zero, without_product, cancelled);
  const KernelExpr product_infinite = either(is_infinite(x), is_infinite(y));
  const KernelExpr clash = both(both(product_infinite, is_infinite(z)), complement(same_sign));
  const KernelExpr nan = either(either(is_nan(x), either(is_nan(y), is_nan(z))),
                                either(clash, both(product_infinite, product_zero)));
  const KernelExpr infinite = kernel::select(product_infinite, s | kInfinity, finite);
  return quiet_if(nan,
                  kernel::select(both(is_infinite(z), complement(product_infinite)), z, infinite));
}

// --- Comparisons

/// As a signed integer that orders like the numbers, with -0 before +0.
KernelExpr in_order(KernelExpr x) {
  const KernelExpr bits = as_signed(x);
  return bits ^ (sar(bits, 63) & kMagnitude);
}

KernelExpr compare(OpCode code, KernelExpr x, KernelExpr y) {
  const KernelExpr unordered = either(is_nan(x), is_nan(y));
  const KernelExpr zeros = both(is_zero(x), is_zero(y));
  const KernelExpr same = either(zeros, x == y);
  const KernelExpr less = both(complement(zeros), in_order(x) < in_order(y));
  switch (code) {
    case OpCode::kEq:
      return both(complement(unordered), same);
    case OpCode::kNe:
      return either(unordered, complement(same));
    case OpCode::kLt:
      return both(complement(unordered), less);
    case OpCode::kLe:
      return both(complement(unordered), either(less, same));
    case OpCode::kGt:
      return both(complement(unordered), complement(either(less, same)));
    default:
      return both(complement(unordered), complement(less));
  }
}

KernelExpr extreme(OpCode code, KernelExpr x, KernelExpr y) {
  const KernelExpr less = in_order(x) < in_order(y);
  const KernelExpr chosen = code == OpCode::kMin ? select(less, x, y) : select(less, y, x);
  return quiet_if(either(is_nan(x), is_nan(y)), chosen);
}

// --- To whole numbers

/// Rounds the magnitude after adding `bias(unit)`; `small` is the result for numbers below 1. A
/// unit is the weight of 1 in the pattern.
KernelExpr to_whole(KernelExpr x,
                    const std::function<KernelExpr(KernelExpr unit, KernelExpr magnitude)>& bias,
                    KernelExpr small) {
  const KernelExpr m = magnitude(x);
  const KernelExpr exponent = m >> 52;
  const KernelExpr places = select(exponent < 1075, exponent.like(1075) - exponent, 0);
  const KernelExpr unit = x.like(1) << min(places, places.like(52));
  const KernelExpr rounded = (m + bias(unit, m)) & complement(unit - 1);
  const KernelExpr whole = exponent >= 1075;  // NaN and infinity too.
  return select(whole, x, sign(x) | select(exponent < 1023, small, rounded));
}

KernelExpr round(OpCode code, KernelExpr x) {
  const KernelExpr m = magnitude(x);
  const KernelExpr negative = sign(x) != 0;
  const KernelExpr one = x.like(kOne);
  const KernelExpr zero = x.like(0);
  const KernelExpr half = x.like(kOne - kHidden);
  const KernelExpr up_if_any = select(m == 0, zero, one);
  switch (code) {
    case OpCode::kTrunc:
      return to_whole(x, [&](KernelExpr, KernelExpr) { return zero; }, zero);
    case OpCode::kFloor:
      return to_whole(
          x, [&](KernelExpr unit, KernelExpr) { return select(negative, unit - 1, zero); },
          select(negative, up_if_any, zero));
    case OpCode::kCeil:
      return to_whole(
          x, [&](KernelExpr unit, KernelExpr) { return select(negative, zero, unit - 1); },
          select(negative, zero, up_if_any));
    case OpCode::kRoundAway:
      return to_whole(
          x, [&](KernelExpr unit, KernelExpr) { return unit >> 1; }, select(m >= half, one, zero));
    default:
      return to_whole(
          x,
          [&](KernelExpr unit, KernelExpr pattern) {
            const KernelExpr odd = convert((pattern & unit) != 0, kU64);
            return select(unit == 1, zero, (unit >> 1) - 1 + odd);
          },
          select(m > half, one, zero));
  }
}

/// x - trunc(x / y) y: the remainder, one bit of the quotient at a time.
KernelExpr remainder(KernelExpr x, KernelExpr y) {
  const Unpacked a = unpack(x);
  const Unpacked b = unpack(y);
  Builder& builder = *x.builder;
  const KernelExpr count = max(a.exponent - b.exponent, a.exponent.like(0));
  const auto at = [&](const Values& values, size_t i) { return KernelExpr{&builder, values[i]}; };
  const Values end = builder.while_loop(
      {a.significand.id, count.id}, [&](const Values& v) { return Values{(at(v, 1) > 0).id}; },
      [&](const Values& v) {
        const KernelExpr r = at(v, 0);
        const KernelExpr next = select(r >= b.significand, r - b.significand, r) << 1;
        return Values{next.id, (at(v, 1) - 1).id};
      });
  const KernelExpr r = {&builder, end[0]};
  const KernelExpr rest = select(r >= b.significand, r - b.significand, r);
  const KernelExpr finite = normalize_and_pack(sign(x), b.exponent, rest);
  const KernelExpr smaller = magnitude(x) < magnitude(y);  // Also for an infinite y.
  const KernelExpr nan = either(either(is_nan(x), is_nan(y)), either(is_infinite(x), is_zero(y)));
  return quiet_if(nan, select(either(smaller, is_zero(x)), x, finite));
}

// --- From and to other types

KernelExpr from_f32(KernelExpr x) {
  const KernelExpr bits = convert(bitcast(x, kU32), kU64);
  const KernelExpr s = (bits & (int64_t{1} << 31)) << 32;
  const KernelExpr m = bits & 0x7FFFFFFF;
  const KernelExpr field = m >> 23;
  const KernelExpr normal = (m << 29) + (int64_t{896} << 52);
  // Normalises subnormals by their highest bit; special values keep their fraction.
  const KernelExpr shift = clz(m) - 11;
  const KernelExpr subnormal = ((m << shift) & kFraction) | ((shift.like(926) - shift) << 52);
  const KernelExpr special = (m << 29) | kInfinity;
  const KernelExpr finite = select(field == 0, select(m == 0, 0, subnormal), normal);
  return s | select(field == 0xFF, special, finite);
}

KernelExpr to_f32(KernelExpr x) {
  const Unpacked u = unpack_as_is(x);
  const KernelExpr s = convert(x >> 32, kU32) & (int64_t{1} << 31);
  const KernelExpr significand = convert(shift_right_jam(u.significand, x.like(32)), kU32);
  // Below the least subnormal only the sticky bit matters; exponents are clamped to s32.
  const KernelExpr exponent = convert(max(u.exponent - 896, u.exponent.like(-100)), kS32);
  const KernelExpr finite = round_and_pack(kF32Target, s, exponent, significand);
  const KernelExpr infinity = s | 0x7F800000;
  const KernelExpr bits =
      select(is_nan(x), s | 0x7FC00000, select(is_infinite(x), infinity, finite));
  return bitcast(bits, kF32);
}

KernelExpr from_integer(KernelExpr x) {
  const bool is_signed = x.is_signed();
  const KernelExpr wide = convert(x, is_signed ? kS64 : kU64);
  const KernelExpr bits = is_signed ? as_bits(wide) : wide;
  const KernelExpr s = is_signed ? bits & kSign : bits.like(0);
  const KernelExpr size = select(s != 0, bits.like(0) - bits, bits);
  // Moves the highest bit to 62.
  const KernelExpr n = clz(size);
  const KernelExpr shifted = size << n;
  const KernelExpr significand = (shifted >> 1) | (shifted & 1);
  const KernelExpr exponent = as_signed(n.like(1023 + 63) - n);
  return select(size == 0, 0, pack(s, exponent, significand));
}

/// Toward zero, saturated; NaN gives 0.
KernelExpr to_64_bits(KernelExpr x, bool is_signed) {
  const KernelExpr m = magnitude(x);
  const KernelExpr exponent = m >> 52;
  const KernelExpr fraction = (x & kFraction) | kHidden;
  const KernelExpr left = fraction << select(exponent >= 1075, exponent - 1075, 0);
  const KernelExpr right = fraction >> select(exponent >= 1075, 0, exponent.like(1075) - exponent);
  const KernelExpr size = select(exponent < 1023, 0, select(exponent >= 1075, left, right));
  const KernelExpr negative = sign(x) != 0;
  const KernelExpr too_large = exponent >= (is_signed ? 1023 + 63 : 1023 + 64);
  KernelExpr value = select(too_large, is_signed ? kMagnitude : int64_t{-1}, size);
  if (is_signed) {
    value = select(negative, select(too_large, x.like(kSign), x.like(0) - size), value);
  } else {
    value = select(negative, 0, value);
  }
  const KernelExpr bits = select(is_nan(x), 0, value);
  return is_signed ? as_signed(bits) : bits;
}

KernelExpr to_integer(KernelExpr x, ElementType type) {
  const KernelExpr wide = to_64_bits(x, type != kU64);
  if (type == kU64 || type == kS64) return wide;
  const KernelExpr low = wide.like(integer_min(type));
  const KernelExpr high = wide.like(integer_max(type));
  return convert(min(max(wide, low), high), type);
}

}  // namespace

KernelExpr soft_f64_op(OpCode code, KernelExpr x, KernelExpr y, KernelExpr z) {
  switch (code) {
    case OpCode::kAdd:
      return add(x, y);
    case OpCode::kSub:
      return add(x, y ^ kSign);
    case OpCode::kMul:
      return multiply(x, y);
    case OpCode::kDiv:
      return divide(x, y);
    case OpCode::kRem:
      return remainder(x, y);
    case OpCode::kFma:
      return fused_multiply_add(x, y, z);
    case OpCode::kSqrt:
      return square_root(x);
    case OpCode::kMin:
    case OpCode::kMax:
      return extreme(code, x, y);
    case OpCode::kNeg:
      return x ^ kSign;
    case OpCode::kAbs:
      return magnitude(x);
    case OpCode::kFloor:
    case OpCode::kCeil:
    case OpCode::kTrunc:
    case OpCode::kRoundEven:
    case OpCode::kRoundAway:
      return round(code, x);
    default:
      return compare(code, x, y);
  }
}

KernelExpr soft_f64_from(KernelExpr x) {
  const ElementType type = x.type();
  if (type == kF32) return from_f32(x);
  return from_integer(is_pred(type) ? convert(x, kU32) : x);
}

KernelExpr soft_f64_to(KernelExpr x, ElementType type) {
  if (type == kF32) return to_f32(x);
  if (is_pred(type)) return magnitude(x) != 0;
  return to_integer(x, type);
}

}  // namespace tenon::kernel
