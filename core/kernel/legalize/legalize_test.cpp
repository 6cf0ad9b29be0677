// A legalised kernel computes the same bits as the original.
#include "core/kernel/legalize/legalize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/kernel/builder.h"
#include "core/kernel/interpreter.h"
#include "core/kernel/scalar.h"
#include "core/kernel/text.h"
#include "core/kernel/verifier.h"
#include "core/types/float_convert.h"
#include "core/types/random.h"

namespace tenon::kernel {
namespace {

using enum ElementType;

const std::vector<ElementType>& real_types() {
  static const std::vector<ElementType> types = {
      kPred,     kS2,         kS4,        kS8,     kS16,      kS32,        kS64,
      kU2,       kU4,         kU8,        kU16,    kU32,      kU64,        kF4E2M1FN,
      kF6E2M3FN, kF6E3M2FN,   kF8E3M4,    kF8E4M3, kF8E4M3FN, kF8E4M3FNUZ, kF8E4M3B11FNUZ,
      kF8E5M2,   kF8E5M2FNUZ, kF8E8M0FNU, kBF16,   kF16,      kF32,        kF64};
  return types;
}

/// Patterns of a type: special ones, then any.
std::vector<uint64_t> patterns(ElementType type, size_t count, uint64_t seed) {
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
      // Exponents near each other meet more often than those of any patterns.
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

Literal array(ElementType type, const std::vector<uint64_t>& values) {
  Literal result(Shape(type, {static_cast<int64_t>(values.size())}));
  const size_t width = storage_bytes(type);
  for (size_t i = 0; i < values.size(); ++i) {
    std::memcpy(result.mutable_data().data() + i * width, &values[i], width);
  }
  return result;
}

uint64_t element(const Literal& array, size_t i) {
  uint64_t raw = 0;
  const size_t width = storage_bytes(array.element_type());
  std::memcpy(&raw, array.data().data() + i * width, width);
  return from_pattern(array.element_type(), raw);
}

/// y[i] = op(x0[i], …)
Kernel of_op(OpCode code, ElementType type, ElementType stated, int64_t count) {
  const ScalarOp& op = scalar_op(code);
  Builder b("op");
  std::vector<MemoryId> inputs;
  for (int i = 0; i < op.operands; ++i) {
    const ElementType t = code == OpCode::kSelect && i == 0 ? kPred : type;
    inputs.push_back(b.buffer(fmt::format("x{}", i), t, {count}, Access::kIn));
  }
  const ElementType result = op.result == ResultType::kStated ? stated
                             : op.result == ResultType::kPred ? kPred
                                                              : type;
  const MemoryId y = b.buffer("y", result, {count}, Access::kOut);
  b.grid({});
  b.lanes({count}, [&](const Values& i) {
    Values operands;
    for (const MemoryId x : inputs) operands.push_back(b.load(x, i));
    b.store(b.op(code, operands, stated), y, i);
  });
  return b.finish();
}

Literal run(const Kernel& kernel, std::vector<Literal>& inputs, ElementType result, int64_t count,
            const InterpreterOptions& options = {}) {
  Literal y(Shape(result, {count}));
  std::vector<BufferArgument> buffers;
  for (Literal& x : inputs) buffers.push_back({x.mutable_data().data(), x.data().size()});
  buffers.push_back({y.mutable_data().data(), y.data().size()});
  const Status status = Interpreter(kernel).run(buffers, {}, options);
  EXPECT_TRUE(status.ok()) << status.to_string();
  return y;
}

void expect_same(const Kernel& kernel, std::vector<Literal> inputs, ElementType result,
                 int64_t count, const LegalForm& form) {
  ASSERT_TRUE(verify(kernel).ok()) << verify(kernel).to_string() << print(kernel);
  const auto legal = legalize(kernel, form);
  ASSERT_TRUE(legal) << legal.error().to_string();
  ASSERT_TRUE(verify(*legal).ok()) << verify(*legal).to_string() << print(*legal).substr(0, 4000);
  const Literal expected = run(kernel, inputs, result, count);
  const Literal actual = run(*legal, inputs, result, count);
  int shown = 0;
  for (size_t i = 0; i < static_cast<size_t>(count) && shown < 3; ++i) {
    const uint64_t a = element(actual, i);
    const uint64_t e = element(expected, i);
    const bool nans = is_float(result) && std::isnan(decode_float(result, a)) &&
                      std::isnan(decode_float(result, e));
    if (a == e || nans) continue;
    ++shown;
    std::string operands;
    for (const Literal& x : inputs) operands += fmt::format(" {:#x}", element(x, i));
    ADD_FAILURE() << fmt::format("of{}: {:#x}, expected {:#x}", operands, a, e);
  }
}

/// Every third addend is nearly the product, negated.
void make_cancel(std::vector<Literal>& inputs, ElementType type) {
  for (size_t i = 0; i < static_cast<size_t>(inputs[2].element_count()); i += 3) {
    const double x = decode_float(type, element(inputs[0], i));
    const double y = decode_float(type, element(inputs[1], i));
    const uint64_t z = encode_float(type, -x * y) + i % 5;
    std::memcpy(inputs[2].mutable_data().data() + i * storage_bytes(type), &z, storage_bytes(type));
  }
}

void check_op(OpCode code, ElementType type, ElementType stated, const LegalForm& form,
              size_t count) {
  SCOPED_TRACE(fmt::format("{} {} {}", op_name(code), name_of(type), name_of(stated)));
  const ScalarOp& op = scalar_op(code);
  std::vector<Literal> inputs;
  size_t size = count;
  for (int i = 0; i < op.operands; ++i) {
    const ElementType t = code == OpCode::kSelect && i == 0 ? kPred : type;
    std::vector<uint64_t> values = patterns(t, count, static_cast<uint64_t>(i) * 31 + 7);
    // Each operand in an order of its own.
    Random random(static_cast<uint64_t>(i) + 1);
    for (size_t k = values.size(); i > 0 && k > 1; --k) {
      std::swap(values[k - 1], values[static_cast<size_t>(random.below(static_cast<int64_t>(k)))]);
    }
    size = values.size();
    inputs.push_back(array(t, values));
  }
  if (code == OpCode::kFma) make_cancel(inputs, type);
  const ElementType result = op.result == ResultType::kStated ? stated
                             : op.result == ResultType::kPred ? kPred
                                                              : type;
  const auto n = static_cast<int64_t>(size);
  expect_same(of_op(code, type, stated, n), inputs, result, n, form);
}

LegalForm narrow_with_fma() {
  LegalForm form;
  form.fma = true;
  return form;
}

TEST(Legalize, EveryOperationOnEveryType) {
  for (int c = 0; c < kScalarOpCount; ++c) {
    const auto code = static_cast<OpCode>(c);
    const ScalarOp& op = scalar_op(code);
    if (op.result == ResultType::kStated || is_math(code)) continue;
    for (const ElementType type : real_types()) {
      if (!contains(op.types, type)) continue;
      check_op(code, type, {}, LegalForm::least(), 3000);
      if (code == OpCode::kFma) check_op(code, type, {}, narrow_with_fma(), 2000);
    }
  }
}

TEST(Legalize, EveryConversion) {
  for (const ElementType from : real_types()) {
    for (const ElementType to : real_types()) {
      check_op(OpCode::kConvert, from, to, LegalForm::least(), 300);
      const bool same = bit_width(from) == bit_width(to) && is_pred(from) == is_pred(to);
      if (same) check_op(OpCode::kBitcast, from, to, LegalForm::least(), 100);
    }
  }
}

TEST(Legalize, MathFunctions) {
  for (int c = 0; c < kScalarOpCount; ++c) {
    const auto code = static_cast<OpCode>(c);
    if (!is_math(code)) continue;
    for (const ElementType type : {kF8E4M3, kBF16, kF16, kF32, kF64}) {
      check_op(code, type, {}, narrow_with_fma(), type == kF64 ? 30 : 200);
    }
    check_op(code, kF32, {}, LegalForm::least(), 30);
  }
}

}  // namespace
}  // namespace tenon::kernel
