// Kernels of one operation, and operands that cover its special cases.
#pragma once

#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/kernel/ir/builder.h"
#include "core/kernel/math/scalar.h"
#include "core/types/float_convert.h"

namespace tenon::kernel::testing {

inline const std::vector<ElementType>& real_types() {
  using enum ElementType;
  static const std::vector<ElementType> types = {
      kPred,     kS2,         kS4,        kS8,     kS16,      kS32,        kS64,
      kU2,       kU4,         kU8,        kU16,    kU32,      kU64,        kF4E2M1FN,
      kF6E2M3FN, kF6E3M2FN,   kF8E3M4,    kF8E4M3, kF8E4M3FN, kF8E4M3FNUZ, kF8E4M3B11FNUZ,
      kF8E5M2,   kF8E5M2FNUZ, kF8E8M0FNU, kBF16,   kF16,      kF32,        kF64};
  return types;
}

/// Patterns of a type: special values first, then random ones.
inline std::vector<uint64_t> patterns(ElementType type, size_t count, uint64_t seed) {
  std::vector<uint64_t> list;
  const int width = is_pred(type) ? 1 : bit_width(type);
  Random random(seed);
  if (width <= 8) {
    for (size_t i = 0; i < count; ++i) list.push_back(random.bits());
  } else if (is_float(type)) {
    const auto& format = element_type_info(type).format;
    for (const double x : {0.0,
                           -0.0,
                           1.0,
                           -1.0,
                           0.5,
                           1.5,
                           2.5,
                           -2.5,
                           3.0,
                           0.1,
                           65504.0,
                           65520.0,
                           1e9,
                           2147483648.0,
                           4294967296.0,
                           9223372036854775808.0,
                           18446744073709551616.0,
                           -9223372036854775808.0,
                           HUGE_VAL,
                           -HUGE_VAL,
                           double(NAN)}) {
      list.push_back(encode_float(type, x));
    }
    list.push_back(1);
    list.push_back(uint64_t{1} << format.mantissa_bits);
    list.push_back((uint64_t{1} << format.mantissa_bits) - 1);
    while (list.size() < count) {
      // Numbers with close exponents interact more often than random patterns.
      const double near =
          std::ldexp(random.unit() * 2 - 1, static_cast<int>(random.below(140)) - 70);
      list.push_back(random.one_in(3) ? random.bits() : encode_float(type, near));
    }
  } else {
    for (const int64_t x : {0, 1, -1, 2, 3, 7, 31, 32, 33, 63, 64, 65, 100}) {
      list.push_back(static_cast<uint64_t>(x));
    }
    list.push_back(static_cast<uint64_t>(integer_min(type)));
    list.push_back(static_cast<uint64_t>(integer_max(type)));
    while (list.size() < count) {
      const uint64_t bits = random.bits();
      list.push_back(random.one_in(2) ? bits : bits >> random.below(64));
    }
  }
  for (uint64_t& p : list) p = from_pattern(type, p);
  return list;
}

inline Literal array(ElementType type, const std::vector<uint64_t>& values) {
  Literal result(Shape(type, {static_cast<int64_t>(values.size())}));
  const size_t width = storage_bytes(type);
  for (size_t i = 0; i < values.size(); ++i) {
    std::memcpy(result.mutable_data().data() + i * width, &values[i], width);
  }
  return result;
}

inline uint64_t element(const Literal& array, size_t i) {
  uint64_t raw = 0;
  const size_t width = storage_bytes(array.element_type());
  std::memcpy(&raw, array.data().data() + i * width, width);
  return from_pattern(array.element_type(), raw);
}

inline ElementType result_type(OpCode code, ElementType type, ElementType stated) {
  const ResultType result = scalar_op(code).result;
  if (result == ResultType::kStated) return stated;
  return result == ResultType::kPred ? ElementType::kPred : type;
}

/// Arrays for the operands of an operation, of at least `count` elements, each in its own order.
inline std::vector<Literal> operands(OpCode code, ElementType type, size_t count) {
  std::vector<Literal> inputs;
  for (int i = 0; i < scalar_op(code).operands; ++i) {
    const ElementType t = code == OpCode::kSelect && i == 0 ? ElementType::kPred : type;
    std::vector<uint64_t> values = patterns(t, count, static_cast<uint64_t>(i) * 31 + 7);
    Random random(static_cast<uint64_t>(i) + 1);
    for (size_t k = values.size(); i > 0 && k > 1; --k) {
      std::swap(values[k - 1], values[static_cast<size_t>(random.below(static_cast<int64_t>(k)))]);
    }
    inputs.push_back(array(t, values));
  }
  return inputs;
}

/// y[i] = op(x0[i], …)
inline Kernel of_op(OpCode code, ElementType type, ElementType stated, int64_t count) {
  const ScalarOp& op = scalar_op(code);
  Builder b("op");
  std::vector<MemoryId> inputs;
  for (int i = 0; i < op.operands; ++i) {
    const ElementType t = code == OpCode::kSelect && i == 0 ? ElementType::kPred : type;
    inputs.push_back(b.buffer(fmt::format("x{}", i), t, {count}, Access::kIn));
  }
  const MemoryId y = b.buffer("y", result_type(code, type, stated), {count}, Access::kOut);
  b.grid({});
  b.lanes({count}, [&](const Values& i) {
    Values operands;
    for (const MemoryId x : inputs) operands.push_back(b.load(x, i));
    b.store(b.op(code, operands, stated), y, i);
  });
  return b.finish();
}

}  // namespace tenon::kernel::testing
