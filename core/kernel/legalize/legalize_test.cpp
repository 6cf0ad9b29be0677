// A legalised kernel computes the same bits as the original.
#include "core/kernel/legalize/legalize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/kernel/interpreter.h"
#include "core/kernel/op_test_util.h"
#include "core/kernel/text.h"
#include "core/kernel/verifier.h"
#include "core/types/float_convert.h"
#include "core/types/random.h"

namespace tenon::kernel {
namespace {

using enum ElementType;

using testing::array;
using testing::element;
using testing::of_op;
using testing::patterns;
using testing::real_types;

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
  std::vector<Literal> inputs = testing::operands(code, type, count);
  if (code == OpCode::kFma) make_cancel(inputs, type);
  const ElementType result = testing::result_type(code, type, stated);
  const int64_t n = inputs[0].element_count();
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
