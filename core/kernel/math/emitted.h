// Number types whose operators emit operations: the math functions (number.h) are instantiated with
// them to be expanded into a kernel or into a code generator's output.
//
// A builder B has a type B::Id and the functions unary, binary, select, fma, if_else, convert,
// bitcast, real and integer of kernel::Builder. It may have `Id scale(Id x, Id n)`, x 2^n rounded
// once, which returns Id() if it cannot emit that.
#pragma once

#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "core/kernel/ir/builder.h"
#include "core/kernel/math/number.h"

namespace tenon::kernel::math {

template <class B>
struct IdOf {
  using Type = typename B::Id;
};
template <>
struct IdOf<Builder> {
  using Type = ValueId;
};

/// A value, and the builder to which operations on it are emitted.
template <class B>
struct EmittedValue {
  using Id = typename IdOf<B>::Type;
  B* builder = nullptr;
  Id id{};

  EmittedValue op(OpCode code, EmittedValue y) const {
    return {builder, builder->binary(code, id, y.id)};
  }
  EmittedValue op(OpCode code) const { return {builder, builder->unary(code, id)}; }
  EmittedValue integer(ElementType type, int64_t value) const {
    return {builder, builder->integer(type, value)};
  }
};

template <class B>
struct EmittedBool : EmittedValue<B> {};
template <class B>
struct EmittedWord : EmittedValue<B> {};  ///< u32
template <class F, class B>
struct EmittedInt : EmittedValue<B> {};  ///< s32 or s64
/// A number of format F.
template <class F, class B = Builder>
struct Emitted : EmittedValue<B> {};

template <class F>
inline constexpr ElementType kRealType = sizeof(F) == 4 ? ElementType::kF32 : ElementType::kF64;
template <class F>
inline constexpr ElementType kIntType = sizeof(F) == 4 ? ElementType::kS32 : ElementType::kS64;

template <class F, class B>
struct NumberTraits<Emitted<F, B>> {
  using Format = F;
  using Int = EmittedInt<F, B>;
  using Word = EmittedWord<B>;
  using Bool = EmittedBool<B>;
};

// --- Constants

template <class F, class B>
Emitted<F, B> like(Emitted<F, B> as, std::type_identity_t<F> constant) {
  return {{as.builder, as.builder->real(kRealType<F>, constant)}};
}
template <class F, class B>
EmittedInt<F, B> int_like(Emitted<F, B> as, int64_t constant) {
  return {as.integer(kIntType<F>, constant)};
}
template <class F, class B>
EmittedWord<B> word_like(Emitted<F, B> as, uint32_t constant) {
  return {as.integer(ElementType::kU32, constant)};
}

// --- Numbers

template <class F, class B>
Emitted<F, B> operator+(Emitted<F, B> x, Emitted<F, B> y) {
  return {x.op(OpCode::kAdd, y)};
}
template <class F, class B>
Emitted<F, B> operator-(Emitted<F, B> x, Emitted<F, B> y) {
  return {x.op(OpCode::kSub, y)};
}
template <class F, class B>
Emitted<F, B> operator*(Emitted<F, B> x, Emitted<F, B> y) {
  return {x.op(OpCode::kMul, y)};
}
template <class F, class B>
Emitted<F, B> operator/(Emitted<F, B> x, Emitted<F, B> y) {
  return {x.op(OpCode::kDiv, y)};
}
template <class F, class B>
Emitted<F, B> operator+(Emitted<F, B> x, std::type_identity_t<F> y) {
  return x + like(x, y);
}
template <class F, class B>
Emitted<F, B> operator-(Emitted<F, B> x, std::type_identity_t<F> y) {
  return x - like(x, y);
}
template <class F, class B>
Emitted<F, B> operator*(Emitted<F, B> x, std::type_identity_t<F> y) {
  return x * like(x, y);
}
template <class F, class B>
Emitted<F, B> operator-(Emitted<F, B> x) {
  return {x.op(OpCode::kNeg)};
}
template <class F, class B>
Emitted<F, B> fma(Emitted<F, B> x, Emitted<F, B> y, Emitted<F, B> z) {
  return {{x.builder, x.builder->fma(x.id, y.id, z.id)}};
}
template <class F, class B>
Emitted<F, B> sqrt(Emitted<F, B> x) {
  return {x.op(OpCode::kSqrt)};
}
template <class F, class B>
Emitted<F, B> abs(Emitted<F, B> x) {
  return {x.op(OpCode::kAbs)};
}
template <class F, class B>
Emitted<F, B> trunc(Emitted<F, B> x) {
  return {x.op(OpCode::kTrunc)};
}
template <class F, class B>
Emitted<F, B> round_even(Emitted<F, B> x) {
  return {x.op(OpCode::kRoundEven)};
}
template <class F, class B>
Emitted<F, B> min(Emitted<F, B> x, Emitted<F, B> y) {
  return {x.op(OpCode::kMin, y)};
}
template <class F, class B>
Emitted<F, B> max(Emitted<F, B> x, Emitted<F, B> y) {
  return {x.op(OpCode::kMax, y)};
}

// --- Comparisons

template <class F, class B>
EmittedBool<B> operator<(Emitted<F, B> x, Emitted<F, B> y) {
  return {x.op(OpCode::kLt, y)};
}
template <class F, class B>
EmittedBool<B> operator>(Emitted<F, B> x, Emitted<F, B> y) {
  return {x.op(OpCode::kGt, y)};
}
template <class F, class B>
EmittedBool<B> operator==(Emitted<F, B> x, Emitted<F, B> y) {
  return {x.op(OpCode::kEq, y)};
}
template <class F, class B>
EmittedBool<B> operator!=(Emitted<F, B> x, Emitted<F, B> y) {
  return {x.op(OpCode::kNe, y)};
}
template <class F, class B>
EmittedBool<B> operator<(Emitted<F, B> x, std::type_identity_t<F> y) {
  return x < like(x, y);
}
template <class F, class B>
EmittedBool<B> operator>(Emitted<F, B> x, std::type_identity_t<F> y) {
  return x > like(x, y);
}
template <class F, class B>
EmittedBool<B> operator==(Emitted<F, B> x, std::type_identity_t<F> y) {
  return x == like(x, y);
}
template <class B>
EmittedBool<B> both(EmittedBool<B> x, EmittedBool<B> y) {
  return {x.op(OpCode::kAnd, y)};
}
template <class B>
EmittedBool<B> either(EmittedBool<B> x, EmittedBool<B> y) {
  return {x.op(OpCode::kOr, y)};
}
template <class B>
EmittedBool<B> negate(EmittedBool<B> x) {
  return {x.op(OpCode::kNot)};
}

template <class T, class B>
T select(EmittedBool<B> condition, T x, T y) {
  return {{x.builder, x.builder->select(condition.id, x.id, y.id)}};
}
template <class B, class Then, class Otherwise>
auto if_else(EmittedBool<B> condition, const Then& then, const Otherwise& otherwise) {
  using Results = decltype(then());
  const auto ids = [](const Results& results) {
    return std::apply(
        [](auto... result) { return std::vector<typename EmittedValue<B>::Id>{result.id...}; },
        results);
  };
  B* builder = condition.builder;
  const auto values =
      builder->if_else(condition.id, [&] { return ids(then()); }, [&] { return ids(otherwise()); });
  Results results;
  size_t next = 0;
  std::apply([&](auto&... result) { ((result = {{builder, values[next++]}}), ...); }, results);
  return results;
}

// --- Integers

template <class F, class B>
EmittedInt<F, B> operator+(EmittedInt<F, B> x, EmittedInt<F, B> y) {
  return {x.op(OpCode::kAdd, y)};
}
template <class F, class B>
EmittedInt<F, B> operator-(EmittedInt<F, B> x, EmittedInt<F, B> y) {
  return {x.op(OpCode::kSub, y)};
}
template <class F, class B>
EmittedInt<F, B> operator*(EmittedInt<F, B> x, EmittedInt<F, B> y) {
  return {x.op(OpCode::kMul, y)};
}
template <class F, class B>
EmittedInt<F, B> operator&(EmittedInt<F, B> x, EmittedInt<F, B> y) {
  return {x.op(OpCode::kAnd, y)};
}
template <class F, class B>
EmittedInt<F, B> operator|(EmittedInt<F, B> x, EmittedInt<F, B> y) {
  return {x.op(OpCode::kOr, y)};
}
template <class F, class B>
EmittedInt<F, B> operator^(EmittedInt<F, B> x, EmittedInt<F, B> y) {
  return {x.op(OpCode::kXor, y)};
}
template <class F, class B>
EmittedInt<F, B> operator<<(EmittedInt<F, B> x, int amount) {
  return {x.op(OpCode::kShl, x.integer(kIntType<F>, amount))};
}
template <class F, class B>
EmittedInt<F, B> operator>>(EmittedInt<F, B> x, int amount) {
  return {x.op(OpCode::kSar, x.integer(kIntType<F>, amount))};
}
template <class F, class B>
EmittedBool<B> operator<(EmittedInt<F, B> x, EmittedInt<F, B> y) {
  return {x.op(OpCode::kLt, y)};
}
template <class F, class B>
EmittedBool<B> operator==(EmittedInt<F, B> x, EmittedInt<F, B> y) {
  return {x.op(OpCode::kEq, y)};
}

template <class B>
EmittedWord<B> operator+(EmittedWord<B> x, EmittedWord<B> y) {
  return {x.op(OpCode::kAdd, y)};
}
template <class B>
EmittedWord<B> operator*(EmittedWord<B> x, EmittedWord<B> y) {
  return {x.op(OpCode::kMul, y)};
}
template <class B>
EmittedWord<B> operator&(EmittedWord<B> x, EmittedWord<B> y) {
  return {x.op(OpCode::kAnd, y)};
}
template <class B>
EmittedWord<B> operator|(EmittedWord<B> x, EmittedWord<B> y) {
  return {x.op(OpCode::kOr, y)};
}
template <class B>
EmittedWord<B> operator^(EmittedWord<B> x, EmittedWord<B> y) {
  return {x.op(OpCode::kXor, y)};
}
template <class B>
EmittedWord<B> operator<<(EmittedWord<B> x, EmittedWord<B> y) {
  return {x.op(OpCode::kShl, y)};
}
template <class B>
EmittedWord<B> operator>>(EmittedWord<B> x, EmittedWord<B> y) {
  return {x.op(OpCode::kShr, y)};
}
template <class B>
EmittedBool<B> operator<(EmittedWord<B> x, EmittedWord<B> y) {
  return {x.op(OpCode::kLt, y)};
}
template <class B>
EmittedWord<B> multiply_high(EmittedWord<B> x, EmittedWord<B> y) {
  return {x.op(OpCode::kMulHi, y)};
}

// --- From one to another

template <class F, class B>
EmittedInt<F, B> bits(Emitted<F, B> x) {
  return {{x.builder, x.builder->bitcast(x.id, kIntType<F>)}};
}
template <class F, class B>
Emitted<F, B> from_bits(EmittedInt<F, B> x) {
  return {{x.builder, x.builder->bitcast(x.id, kRealType<F>)}};
}
template <class F, class B>
EmittedInt<F, B> to_int(Emitted<F, B> x) {
  return {{x.builder, x.builder->convert(x.id, kIntType<F>)}};
}
template <class F, class B>
Emitted<F, B> to_real(EmittedInt<F, B> x) {
  return {{x.builder, x.builder->convert(x.id, kRealType<F>)}};
}
template <class F, class B>
EmittedWord<B> word_of(EmittedInt<F, B> x, int index) {
  const EmittedValue<B> shifted =
      index == 0 ? EmittedValue<B>(x) : x.op(OpCode::kSar, x.integer(kIntType<F>, 32 * index));
  return {{x.builder, x.builder->convert(shifted.id, ElementType::kU32)}};
}
template <class F, class B>
EmittedInt<F, B> int_of(Emitted<F, B>, EmittedWord<B> x) {
  return {{x.builder, x.builder->convert(x.id, kIntType<F>)}};
}
template <class F, class B>
Emitted<F, B> real_of(Emitted<F, B>, EmittedWord<B> x) {
  return {{x.builder, x.builder->convert(x.id, kRealType<F>)}};
}

/// x 2^n rounded once, if the builder supports it.
template <class F, class B>
std::optional<Emitted<F, B>> scaled_at_once(Emitted<F, B> x, EmittedInt<F, B> n) {
  if constexpr (requires { x.builder->scale(x.id, n.id); }) {
    const auto id = x.builder->scale(x.id, n.id);
    if (id != typename EmittedValue<B>::Id()) return Emitted<F, B>{{x.builder, id}};
  }
  return std::nullopt;
}

}  // namespace tenon::kernel::math
