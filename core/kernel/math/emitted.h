// Numbers that write operations into a kernel: what the functions are instantiated with to expand
// them (number.h).
#pragma once

#include <tuple>
#include <utility>

#include "core/kernel/builder.h"
#include "core/kernel/math/number.h"

namespace tenon::kernel::math {

/// A value of a kernel, and where operations on it go.
struct Place {
  Builder* builder = nullptr;
  ValueId id = kNone;

  Place op(OpCode code, Place y) const { return {builder, builder->binary(code, id, y.id)}; }
  Place op(OpCode code) const { return {builder, builder->unary(code, id)}; }
  Place integer(ElementType type, int64_t value) const {
    return {builder, builder->integer(type, value)};
  }
};

struct EmittedBool : Place {};
struct EmittedWord : Place {};  ///< u32
template <class F>
struct EmittedInt : Place {};  ///< s32 or s64
/// A number of the format F.
template <class F>
struct Emitted : Place {};

template <class F>
inline constexpr ElementType kRealType = sizeof(F) == 4 ? ElementType::kF32 : ElementType::kF64;
template <class F>
inline constexpr ElementType kIntType = sizeof(F) == 4 ? ElementType::kS32 : ElementType::kS64;

template <class F>
struct NumberTraits<Emitted<F>> {
  using Format = F;
  using Int = EmittedInt<F>;
  using Word = EmittedWord;
  using Bool = EmittedBool;
};

// --- Constants

template <class F>
Emitted<F> like(Emitted<F> as, std::type_identity_t<F> constant) {
  return {{as.builder, as.builder->real(kRealType<F>, constant)}};
}
template <class F>
EmittedInt<F> int_like(Emitted<F> as, int64_t constant) {
  return {as.integer(kIntType<F>, constant)};
}
template <class F>
EmittedWord word_like(Emitted<F> as, uint32_t constant) {
  return {as.integer(ElementType::kU32, constant)};
}

// --- Numbers

template <class F>
Emitted<F> operator+(Emitted<F> x, Emitted<F> y) {
  return {x.op(OpCode::kAdd, y)};
}
template <class F>
Emitted<F> operator-(Emitted<F> x, Emitted<F> y) {
  return {x.op(OpCode::kSub, y)};
}
template <class F>
Emitted<F> operator*(Emitted<F> x, Emitted<F> y) {
  return {x.op(OpCode::kMul, y)};
}
template <class F>
Emitted<F> operator/(Emitted<F> x, Emitted<F> y) {
  return {x.op(OpCode::kDiv, y)};
}
template <class F>
Emitted<F> operator+(Emitted<F> x, std::type_identity_t<F> y) {
  return x + like(x, y);
}
template <class F>
Emitted<F> operator-(Emitted<F> x, std::type_identity_t<F> y) {
  return x - like(x, y);
}
template <class F>
Emitted<F> operator*(Emitted<F> x, std::type_identity_t<F> y) {
  return x * like(x, y);
}
template <class F>
Emitted<F> operator-(Emitted<F> x) {
  return {x.op(OpCode::kNeg)};
}
template <class F>
Emitted<F> fma(Emitted<F> x, Emitted<F> y, Emitted<F> z) {
  return {{x.builder, x.builder->fma(x.id, y.id, z.id)}};
}
template <class F>
Emitted<F> sqrt(Emitted<F> x) {
  return {x.op(OpCode::kSqrt)};
}
template <class F>
Emitted<F> abs(Emitted<F> x) {
  return {x.op(OpCode::kAbs)};
}
template <class F>
Emitted<F> trunc(Emitted<F> x) {
  return {x.op(OpCode::kTrunc)};
}
template <class F>
Emitted<F> round_even(Emitted<F> x) {
  return {x.op(OpCode::kRoundEven)};
}
template <class F>
Emitted<F> min(Emitted<F> x, Emitted<F> y) {
  return {x.op(OpCode::kMin, y)};
}
template <class F>
Emitted<F> max(Emitted<F> x, Emitted<F> y) {
  return {x.op(OpCode::kMax, y)};
}

// --- Comparisons

template <class F>
EmittedBool operator<(Emitted<F> x, Emitted<F> y) {
  return {x.op(OpCode::kLt, y)};
}
template <class F>
EmittedBool operator>(Emitted<F> x, Emitted<F> y) {
  return {x.op(OpCode::kGt, y)};
}
template <class F>
EmittedBool operator==(Emitted<F> x, Emitted<F> y) {
  return {x.op(OpCode::kEq, y)};
}
template <class F>
EmittedBool operator!=(Emitted<F> x, Emitted<F> y) {
  return {x.op(OpCode::kNe, y)};
}
template <class F>
EmittedBool operator<(Emitted<F> x, std::type_identity_t<F> y) {
  return x < like(x, y);
}
template <class F>
EmittedBool operator>(Emitted<F> x, std::type_identity_t<F> y) {
  return x > like(x, y);
}
template <class F>
EmittedBool operator==(Emitted<F> x, std::type_identity_t<F> y) {
  return x == like(x, y);
}
inline EmittedBool both(EmittedBool x, EmittedBool y) { return {x.op(OpCode::kAnd, y)}; }
inline EmittedBool either(EmittedBool x, EmittedBool y) { return {x.op(OpCode::kOr, y)}; }
inline EmittedBool negate(EmittedBool x) { return {x.op(OpCode::kNot)}; }

template <class T>
T select(EmittedBool condition, T x, T y) {
  return {{x.builder, x.builder->select(condition.id, x.id, y.id)}};
}
template <class Then, class Otherwise>
auto if_else(EmittedBool condition, const Then& then, const Otherwise& otherwise) {
  using Results = decltype(then());
  const auto ids = [](const Results& results) {
    return std::apply([](auto... result) { return Values{result.id...}; }, results);
  };
  Builder* builder = condition.builder;
  const Values values =
      builder->if_else(condition.id, [&] { return ids(then()); }, [&] { return ids(otherwise()); });
  Results results;
  size_t next = 0;
  std::apply([&](auto&... result) { ((result = {{builder, values[next++]}}), ...); }, results);
  return results;
}

// --- Integers

template <class F>
EmittedInt<F> operator+(EmittedInt<F> x, EmittedInt<F> y) {
  return {x.op(OpCode::kAdd, y)};
}
template <class F>
EmittedInt<F> operator-(EmittedInt<F> x, EmittedInt<F> y) {
  return {x.op(OpCode::kSub, y)};
}
template <class F>
EmittedInt<F> operator*(EmittedInt<F> x, EmittedInt<F> y) {
  return {x.op(OpCode::kMul, y)};
}
template <class F>
EmittedInt<F> operator&(EmittedInt<F> x, EmittedInt<F> y) {
  return {x.op(OpCode::kAnd, y)};
}
template <class F>
EmittedInt<F> operator|(EmittedInt<F> x, EmittedInt<F> y) {
  return {x.op(OpCode::kOr, y)};
}
template <class F>
EmittedInt<F> operator^(EmittedInt<F> x, EmittedInt<F> y) {
  return {x.op(OpCode::kXor, y)};
}
template <class F>
EmittedInt<F> operator<<(EmittedInt<F> x, int amount) {
  return {x.op(OpCode::kShl, x.integer(kIntType<F>, amount))};
}
template <class F>
EmittedInt<F> operator>>(EmittedInt<F> x, int amount) {
  return {x.op(OpCode::kSar, x.integer(kIntType<F>, amount))};
}
template <class F>
EmittedBool operator<(EmittedInt<F> x, EmittedInt<F> y) {
  return {x.op(OpCode::kLt, y)};
}
template <class F>
EmittedBool operator==(EmittedInt<F> x, EmittedInt<F> y) {
  return {x.op(OpCode::kEq, y)};
}

inline EmittedWord operator+(EmittedWord x, EmittedWord y) { return {x.op(OpCode::kAdd, y)}; }
inline EmittedWord operator*(EmittedWord x, EmittedWord y) { return {x.op(OpCode::kMul, y)}; }
inline EmittedWord operator&(EmittedWord x, EmittedWord y) { return {x.op(OpCode::kAnd, y)}; }
inline EmittedWord operator|(EmittedWord x, EmittedWord y) { return {x.op(OpCode::kOr, y)}; }
inline EmittedWord operator^(EmittedWord x, EmittedWord y) { return {x.op(OpCode::kXor, y)}; }
inline EmittedWord operator<<(EmittedWord x, EmittedWord y) { return {x.op(OpCode::kShl, y)}; }
inline EmittedWord operator>>(EmittedWord x, EmittedWord y) { return {x.op(OpCode::kShr, y)}; }
inline EmittedBool operator<(EmittedWord x, EmittedWord y) { return {x.op(OpCode::kLt, y)}; }
inline EmittedWord multiply_high(EmittedWord x, EmittedWord y) { return {x.op(OpCode::kMulHi, y)}; }

// --- From one to another

template <class F>
EmittedInt<F> bits(Emitted<F> x) {
  return {{x.builder, x.builder->bitcast(x.id, kIntType<F>)}};
}
template <class F>
Emitted<F> from_bits(EmittedInt<F> x) {
  return {{x.builder, x.builder->bitcast(x.id, kRealType<F>)}};
}
template <class F>
EmittedInt<F> to_int(Emitted<F> x) {
  return {{x.builder, x.builder->convert(x.id, kIntType<F>)}};
}
template <class F>
Emitted<F> to_real(EmittedInt<F> x) {
  return {{x.builder, x.builder->convert(x.id, kRealType<F>)}};
}
template <class F>
EmittedWord word_of(EmittedInt<F> x, int index) {
  const Place shifted =
      index == 0 ? Place(x) : x.op(OpCode::kSar, x.integer(kIntType<F>, 32 * index));
  return {{x.builder, x.builder->convert(shifted.id, ElementType::kU32)}};
}
template <class F>
EmittedInt<F> int_of(Emitted<F>, EmittedWord x) {
  return {{x.builder, x.builder->convert(x.id, kIntType<F>)}};
}
template <class F>
Emitted<F> real_of(Emitted<F>, EmittedWord x) {
  return {{x.builder, x.builder->convert(x.id, kRealType<F>)}};
}

}  // namespace tenon::kernel::math
