// A math function expanded into a kernel gives the same bits as on the host.
#include "core/kernel/math/math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "core/base/random.h"
#include "core/kernel/interpreter/interpreter.h"
#include "core/kernel/math/scalar.h"
#include "core/kernel/verify/verifier.h"
#include "core/types/float_convert.h"

namespace tenon::kernel {
namespace {

std::vector<OpCode> math_functions() {
  std::vector<OpCode> codes;
  for (int c = 0; c < kScalarOpCount; ++c) {
    if (is_math(static_cast<OpCode>(c))) codes.push_back(static_cast<OpCode>(c));
  }
  return codes;
}

// y[i] = f(x[2 i], x[2 i + 1])
Kernel expanded(OpCode code, ElementType type, int64_t count) {
  Builder b("f");
  const MemoryId x = b.buffer("x", type, {count, 2}, Access::kIn);
  const MemoryId y = b.buffer("y", type, {count}, Access::kOut);
  b.grid({});
  b.lanes({count}, [&](const Values& i) {
    const ValueId first = b.load(x, {i[0], b.index(0)});
    const ValueId second = b.load(x, {i[0], b.index(1)});
    b.store(expand_math(b, code, first, second), y, {i[0]});
  });
  return b.finish();
}

template <class F>
std::vector<F> arguments() {
  using Limits = std::numeric_limits<F>;
  std::vector<F> list = {0,
                         F(-0.0),
                         1,
                         -1,
                         F(0.5),
                         2,
                         3,
                         -3,
                         F(1e5),
                         F(-1e5),
                         F(1e30),
                         F(1e-30),
                         Limits::min(),
                         Limits::denorm_min(),
                         -Limits::denorm_min(),
                         Limits::max(),
                         Limits::lowest(),
                         Limits::infinity(),
                         -Limits::infinity(),
                         Limits::quiet_NaN()};
  Random random(5);
  for (int i = 0; i < 150; ++i) {
    const double unit = random.unit() * 2 - 1;
    list.push_back(static_cast<F>(unit * 100));
    list.push_back(static_cast<F>(std::ldexp(unit, static_cast<int>(random.below(200)) - 100)));
  }
  if (list.size() % 2 != 0) list.push_back(1);
  return list;
}

template <class F>
void expect_same_bits(ElementType type) {
  std::vector<F> x;
  const std::vector<F> one = arguments<F>();
  Random random(6);
  for (const F v : one) {
    x.push_back(v);
    x.push_back(random.of(one));
  }
  const auto count = static_cast<int64_t>(x.size() / 2);
  for (const OpCode code : math_functions()) {
    const Kernel kernel = expanded(code, type, count);
    for (const Node& n : kernel.nodes) ASSERT_FALSE(is_math(n.op));
    ASSERT_TRUE(verify(kernel).ok()) << op_name(code) << ": " << verify(kernel).to_string();
    std::vector<F> y(x.size() / 2);
    const BufferArgument buffers[] = {
        {reinterpret_cast<std::byte*>(x.data()), x.size() * sizeof(F)},
        {reinterpret_cast<std::byte*>(y.data()), y.size() * sizeof(F)}};
    ASSERT_TRUE(Interpreter(kernel).run(buffers).ok());
    for (size_t i = 0; i < y.size(); ++i) {
      const F expected = math_function(code, x[2 * i], x[2 * i + 1]);
      if (std::isnan(expected) && std::isnan(y[i])) continue;
      using Bits = std::conditional_t<sizeof(F) == 4, uint32_t, uint64_t>;
      EXPECT_EQ(std::bit_cast<Bits>(y[i]), std::bit_cast<Bits>(expected))
          << op_name(code) << "(" << x[2 * i] << ", " << x[2 * i + 1] << ") gives " << y[i] << ", "
          << expected << " natively";
    }
  }
}

TEST(Math, ExpandsToTheSameBits) {
  expect_same_bits<float>(ElementType::kF32);
  expect_same_bits<double>(ElementType::kF64);
}

TEST(Math, SpecialValues) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double nan = std::nan("");
  const struct {
    OpCode code;
    double x, y, expected;
  } cases[] = {
      {OpCode::kExp, -kInf, 0, 0},
      {OpCode::kExp, kInf, 0, kInf},
      {OpCode::kExpm1, -0.0, 0, -0.0},
      {OpCode::kExpm1, -kInf, 0, -1},
      {OpCode::kLog, 0, 0, -kInf},
      {OpCode::kLog, -1, 0, nan},
      {OpCode::kLog, kInf, 0, kInf},
      {OpCode::kLog1p, -1, 0, -kInf},
      {OpCode::kLog1p, -0.0, 0, -0.0},
      {OpCode::kLog1p, -2, 0, nan},
      {OpCode::kSin, -0.0, 0, -0.0},
      {OpCode::kSin, kInf, 0, nan},
      {OpCode::kCos, -kInf, 0, nan},
      {OpCode::kTan, -0.0, 0, -0.0},
      {OpCode::kTanh, -0.0, 0, -0.0},
      {OpCode::kTanh, -kInf, 0, -1},
      {OpCode::kLogistic, -kInf, 0, 0},
      {OpCode::kLogistic, kInf, 0, 1},
      {OpCode::kErf, -0.0, 0, -0.0},
      {OpCode::kErf, kInf, 0, 1},
      {OpCode::kErf, -kInf, 0, -1},
      {OpCode::kErf, nan, 0, nan},
      {OpCode::kErfc, -0.0, 0, 1},
      {OpCode::kErfc, kInf, 0, 0},
      {OpCode::kErfc, -kInf, 0, 2},
      {OpCode::kErfc, nan, 0, nan},
      {OpCode::kCbrt, -8, 0, -2},
      {OpCode::kCbrt, -0.0, 0, -0.0},
      {OpCode::kRsqrt, 0, 0, kInf},
      {OpCode::kRsqrt, kInf, 0, 0},
      {OpCode::kAtan2, 0, -0.0, M_PI},
      {OpCode::kAtan2, -0.0, 0, -0.0},
      {OpCode::kAtan2, kInf, kInf, M_PI / 4},
      {OpCode::kAtan2, -1, kInf, -0.0},
      {OpCode::kPow, nan, 0, 1},
      {OpCode::kPow, 1, nan, 1},
      {OpCode::kPow, -1, kInf, 1},
      {OpCode::kPow, -2, 3, -8},
      {OpCode::kPow, -2, 0.5, nan},
      {OpCode::kPow, -0.0, -3, -kInf},
      {OpCode::kPow, -kInf, 3, -kInf},
      {OpCode::kPow, -kInf, 0.5, kInf},
      {OpCode::kPow, 0.5, -kInf, kInf},
      {OpCode::kPow, 2, 10, 1024},
  };
  for (const auto& c : cases) {
    for (const ElementType type :
         {ElementType::kF16, ElementType::kBF16, ElementType::kF32, ElementType::kF64}) {
      const uint64_t bits =
          evaluate(c.code, type, type, encode_float(type, c.x), encode_float(type, c.y));
      if (std::isnan(c.expected)) {
        EXPECT_TRUE(std::isnan(decode_float(type, bits))) << op_name(c.code) << "(" << c.x << ")";
      } else {
        EXPECT_EQ(bits, encode_float(type, c.expected))
            << op_name(c.code) << "(" << c.x << ", " << c.y << ") in " << name_of(type);
      }
    }
  }
}

}  // namespace
}  // namespace tenon::kernel
