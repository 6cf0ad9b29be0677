// The number types of the math functions: numbers of one format and its integers, computed on the
// host.
//
// Each function of functions.h is one template. Instantiated with float or double it computes, for
// the interpreter and for folding; with Emitted<float> or Emitted<double> (emitted.h) it emits the
// same operations into a kernel. The two therefore agree in every bit, and each expansion is
// written once.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

namespace tenon::kernel::math {

/// An integer as wide as format F; arithmetic wraps, comparisons are signed.
template <class F>
class Integer {
 public:
  using Signed = std::conditional_t<sizeof(F) == 4, int32_t, int64_t>;
  using Unsigned = std::make_unsigned_t<Signed>;

  Integer() = default;
  Integer(Signed value) : value_(value) {}  // NOLINT: literals are integers of every format
  Signed value() const { return value_; }

  friend Integer operator+(Integer x, Integer y) { return wrap(x.bits() + y.bits()); }
  friend Integer operator-(Integer x, Integer y) { return wrap(x.bits() - y.bits()); }
  friend Integer operator*(Integer x, Integer y) { return wrap(x.bits() * y.bits()); }
  friend Integer operator&(Integer x, Integer y) { return wrap(x.bits() & y.bits()); }
  friend Integer operator|(Integer x, Integer y) { return wrap(x.bits() | y.bits()); }
  friend Integer operator^(Integer x, Integer y) { return wrap(x.bits() ^ y.bits()); }
  /// Shifts by a constant less than the width.
  friend Integer operator<<(Integer x, int amount) { return wrap(x.bits() << amount); }
  friend Integer operator>>(Integer x, int amount) { return Integer(Signed(x.value_ >> amount)); }
  friend bool operator<(Integer x, Integer y) { return x.value_ < y.value_; }
  friend bool operator==(Integer x, Integer y) { return x.value_ == y.value_; }

 private:
  Unsigned bits() const { return static_cast<Unsigned>(value_); }
  static Integer wrap(Unsigned bits) { return Integer(static_cast<Signed>(bits)); }
  Signed value_ = 0;
};

/// An unsigned 32-bit word, for fixed-point numbers of several words.
class Word32 {
 public:
  Word32() = default;
  explicit Word32(uint32_t bits) : bits_(bits) {}
  uint32_t bits() const { return bits_; }

  friend Word32 operator+(Word32 x, Word32 y) { return Word32(x.bits_ + y.bits_); }
  friend Word32 operator*(Word32 x, Word32 y) { return Word32(x.bits_ * y.bits_); }
  friend Word32 multiply_high(Word32 x, Word32 y) {
    return Word32(static_cast<uint32_t>((uint64_t{x.bits_} * y.bits_) >> 32));
  }
  friend Word32 operator&(Word32 x, Word32 y) { return Word32(x.bits_ & y.bits_); }
  friend Word32 operator|(Word32 x, Word32 y) { return Word32(x.bits_ | y.bits_); }
  friend Word32 operator^(Word32 x, Word32 y) { return Word32(x.bits_ ^ y.bits_); }
  /// Amounts of 32 and more give 0.
  friend Word32 operator<<(Word32 x, Word32 amount) {
    return Word32(amount.bits_ > 31 ? 0 : x.bits_ << amount.bits_);
  }
  friend Word32 operator>>(Word32 x, Word32 amount) {
    return Word32(amount.bits_ > 31 ? 0 : x.bits_ >> amount.bits_);
  }
  friend bool operator<(Word32 x, Word32 y) { return x.bits_ < y.bits_; }
  friend bool operator==(Word32 x, Word32 y) { return x.bits_ == y.bits_; }

 private:
  uint32_t bits_ = 0;
};

/// The types that belong to numbers of type R.
template <class R>
struct NumberTraits {
  using Format = R;
  using Int = Integer<R>;
  using Word = Word32;
  using Bool = bool;
};
template <class R>
using Format = typename NumberTraits<R>::Format;
template <class R>
using Int = typename NumberTraits<R>::Int;
template <class R>
using Word = typename NumberTraits<R>::Word;
template <class R>
using Bool = typename NumberTraits<R>::Bool;

/// The parameters of a format.
template <class F>
inline constexpr int kMantissaBits = sizeof(F) == 4 ? 23 : 52;
template <class F>
inline constexpr int kBias = sizeof(F) == 4 ? 127 : 1023;

// --- Operations, by the names of the kernel IR

template <class F>
concept Native = std::is_floating_point_v<F>;

/// A constant of the same kind as `x`: on the host or emitted.
template <Native F>
F like(F, std::type_identity_t<F> constant) {
  return constant;
}
template <Native F>
Integer<F> int_like(F, typename Integer<F>::Signed constant) {
  return constant;
}
template <Native F>
Word32 word_like(F, uint32_t constant) {
  return Word32(constant);
}
/// Word `index` of an integer, the lowest first.
template <class F>
Word32 word_of(Integer<F> x, int index) {
  return Word32(static_cast<uint32_t>(static_cast<uint64_t>(x.value()) >> (32 * index)));
}
/// The number of a word below 2^31, of the same kind as `as`.
template <Native F>
Integer<F> int_of(F, Word32 x) {
  return static_cast<typename Integer<F>::Signed>(x.bits());
}
template <Native F>
F real_of(F, Word32 x) {
  return static_cast<F>(x.bits());
}
template <Native F>
F fma(F x, F y, F z) {
  return std::fma(x, y, z);
}
template <Native F>
F sqrt(F x) {
  return std::sqrt(x);
}
template <Native F>
F abs(F x) {
  return std::fabs(x);
}
template <Native F>
F trunc(F x) {
  return std::trunc(x);
}
template <Native F>
F round_even(F x) {
  return std::nearbyint(x);
}
/// A NaN wins, and -0 < +0.
template <Native F>
F min(F x, F y) {
  if (std::isnan(x) || std::isnan(y)) return x + y;
  if (x == y) return std::signbit(x) ? x : y;
  return x < y ? x : y;
}
template <Native F>
F max(F x, F y) {
  if (std::isnan(x) || std::isnan(y)) return x + y;
  if (x == y) return std::signbit(x) ? y : x;
  return x < y ? y : x;
}
template <Native F>
Integer<F> bits(F x) {
  return std::bit_cast<typename Integer<F>::Signed>(x);
}
template <Native F>
F from_bits(Integer<F> x) {
  return std::bit_cast<F>(x.value());
}
/// Toward zero, saturated; NaN gives 0.
template <Native F>
Integer<F> to_int(F x) {
  using I = typename Integer<F>::Signed;
  if (std::isnan(x)) return 0;
  const F limit = std::ldexp(F(1), sizeof(I) * 8 - 1);
  if (x >= limit) return std::numeric_limits<I>::max();
  if (x <= -limit) return std::numeric_limits<I>::min();
  return static_cast<I>(x);
}
template <Native F>
F to_real(Integer<F> x) {
  return static_cast<F>(x.value());
}
template <class T>
T select(bool condition, T x, T y) {
  return condition ? x : y;
}
inline bool both(bool x, bool y) { return x && y; }
inline bool either(bool x, bool y) { return x || y; }
inline bool negate(bool x) { return !x; }
/// Empty: host numbers have no such operation.
template <Native F>
std::optional<F> scaled_at_once(F, Integer<F>) {
  return std::nullopt;
}
/// then() or otherwise(); only one of them is run.
template <class Then, class Otherwise>
auto if_else(bool condition, const Then& then, const Otherwise& otherwise) {
  return condition ? then() : otherwise();
}

}  // namespace tenon::kernel::math
