#include "hlo/sample/sampler.h"

#include <cmath>
#include <limits>

namespace tenon::hlo {

using enum ElementType;

I64s Sampler::counting(size_t count) {
  I64s list(count);
  for (size_t i = 0; i < count; ++i) list[i] = static_cast<int64_t>(i);
  return list;
}

I64s Sampler::shuffled(I64s values) {
  for (size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1], values[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
  }
  return values;
}

I64s Sampler::some_dimensions(int64_t rank) {
  I64s list = shuffled(counting(static_cast<size_t>(rank)));
  list.resize(static_cast<size_t>(random.between(0, rank)));
  return list;
}

Dims Sampler::refactored(int64_t count) {
  Dims to;
  int64_t rest = count;
  for (int64_t part = random.between(0, 3); part > 0 && rest > 1; --part) {
    std::vector<int64_t> divisors;
    for (int64_t d = 1; d <= rest; ++d) {
      if (rest % d == 0) divisors.push_back(d);
    }
    to.push_back(random.of(divisors));
    rest /= to.back();
  }
  if (rest != 1 || count == 0) to.push_back(rest);
  return to;
}

std::vector<Value> Sampler::starts(const Dims& dims) {
  std::vector<Value> indices;
  const ElementType type = random.of({kS32, kS32, kS64, kU8, kS8, kU64});
  const bool is_signed = is_signed_integer(type);
  for (const int64_t d : dims) {
    if (random.one_in(2)) {
      indices.push_back(number(type));
      continue;
    }
    const bool far = random.one_in(8);
    const int64_t extreme = bit_width(type) == 64 ? std::numeric_limits<int64_t>::min()
                            : is_signed           ? -1
                                                  : 200;
    indices.push_back(b().constant(
        Literal::scalar_integer(type, far ? extreme : random.between(is_signed ? -2 : 0, d + 2))));
  }
  return indices;
}

OpCode Sampler::combiner(ElementType type) {
  if (is_pred(type)) return random.of({OpCode::kAnd, OpCode::kOr, OpCode::kXor});
  if (is_complex(type)) return OpCode::kAdd;
  if (is_float(type)) return random.of({OpCode::kAdd, OpCode::kMaximum, OpCode::kMinimum});
  return random.of({OpCode::kAdd, OpCode::kMultiply, OpCode::kMaximum, OpCode::kMinimum,
                    OpCode::kAnd, OpCode::kOr, OpCode::kXor});
}

Value Sampler::neutral(OpCode combiner, ElementType type) {
  Literal value = Literal::scalar(type, 0);
  const auto set = [&](double real, int64_t integer) {
    value = is_float(type) ? Literal::scalar(type, real) : Literal::scalar_integer(type, integer);
  };
  const int64_t most =
      is_signed_integer(type) ? static_cast<int64_t>(~uint64_t{0} >> (65 - bit_width(type))) : -1;
  if (combiner == OpCode::kMultiply) set(1, 1);
  if (combiner == OpCode::kMaximum) set(-HUGE_VAL, is_signed_integer(type) ? -most - 1 : 0);
  if (combiner == OpCode::kMinimum) set(HUGE_VAL, most);
  if (combiner == OpCode::kAnd) set(0, is_pred(type) ? 1 : -1);
  return b().constant(value);
}

Value Sampler::exact(Builder& b, Value x, Value y) {
  const ElementType type = x.type().element_type();
  if (is_pred(type)) return b.binary(random.of({OpCode::kAnd, OpCode::kXor}), x, y);
  if (is_complex(type)) return b.sub(x, y);
  return b.binary(random.of({OpCode::kAdd, OpCode::kSubtract, OpCode::kMultiply, OpCode::kMaximum,
                             OpCode::kMinimum}),
                  x, y);
}

}  // namespace tenon::hlo
