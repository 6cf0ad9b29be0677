// A legalised kernel computes the same bits as the original.
#include "core/kernel/legalize/legalize.h"
#include "core/base/process/full_test_util.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/random.h"
#include "core/kernel/interpreter/interpreter.h"
#include "core/kernel/testing/kernel_test_util.h"
#include "core/kernel/testing/op_test_util.h"
#include "core/kernel/text/text.h"
#include "core/kernel/verify/verifier.h"
#include "core/types/float_convert.h"

namespace tenon::kernel {
namespace {

using enum ElementType;

using testing::element;
using testing::of_op;
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
                 int64_t count, const TargetFeatures& features) {
  ASSERT_TRUE(verify(kernel).ok()) << verify(kernel).to_string() << print(kernel);
  const auto legal = legalize(kernel, features);
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

/// Every third addend is approximately the negated product.
void make_cancel(std::vector<Literal>& inputs, ElementType type) {
  for (size_t i = 0; i < static_cast<size_t>(inputs[2].element_count()); i += 3) {
    const double x = decode_float(type, element(inputs[0], i));
    const double y = decode_float(type, element(inputs[1], i));
    const uint64_t z = encode_float(type, -x * y) + i % 5;
    std::memcpy(inputs[2].mutable_data().data() + i * storage_bytes(type), &z, storage_bytes(type));
  }
}

void check_op(OpCode code, ElementType type, ElementType stated, const TargetFeatures& features,
              size_t count) {
  SCOPED_TRACE(fmt::format("{} {} {}", op_name(code), name_of(type), name_of(stated)));
  std::vector<Literal> inputs = testing::operands(code, type, count);
  if (code == OpCode::kFma) make_cancel(inputs, type);
  const ElementType result = testing::result_type(code, type, stated);
  const int64_t n = inputs[0].element_count();
  expect_same(of_op(code, type, stated, n), inputs, result, n, features);
}

TargetFeatures narrow_with_fma() {
  TargetFeatures features;
  features.fma = true;
  return features;
}

TEST(Legalize, EveryOperationOnEveryType) {
  for (int c = 0; c < kScalarOpCount; ++c) {
    const auto code = static_cast<OpCode>(c);
    const ScalarOp& op = scalar_op(code);
    if (op.result == ResultType::kStated || is_math(code)) continue;
    for (const ElementType type : real_types()) {
      if (!contains(op.types, type)) continue;
      check_op(code, type, {}, TargetFeatures::least(), 3000);
      if (code == OpCode::kFma) check_op(code, type, {}, narrow_with_fma(), 2000);
    }
  }
}

/// Feature sets that some target may have; each lacks a feature that its neighbours have.
std::vector<TargetFeatures> forms() {
  std::vector<TargetFeatures> all;
  for (const std::string_view text :
       {"f16", "f16,fma", "bf16,fma,dimensions", "s64,u64,fma", "s64,u64,f64",
        "s64,u64,f64,fma,f16,math", "convert_f16", "u16,convert_f16,convert_bf16,fma",
        "f16,convert_bf16", "s8,u8,s16,u16,fma", "s16,f16,fma,math", "f8e5m2,u8,fma",
        "s8,s16,s64,u8,u16,u64,f16,bf16,f64,fma,"
        "math,tiles,scans,private_memory,atomics,dimensions"}) {
    all.push_back(TargetFeatures::parse(text).value());
  }
  return all;
}

/// An operation on a type, and the type that it states, where it does.
struct TypedOp {
  OpCode code;
  ElementType type;
  ElementType stated = {};
};

std::vector<TypedOp> typed_ops() {
  std::vector<TypedOp> all;
  for (int c = 0; c < kScalarOpCount; ++c) {
    const auto code = static_cast<OpCode>(c);
    const ScalarOp& op = scalar_op(code);
    for (const ElementType type :
         {kPred, kS4, kS8, kU8, kS16, kS64, kU64, kF8E5M2, kBF16, kF16, kF64}) {
      if (!contains(op.types, type) || (is_math(code) && type == kF64)) continue;
      if (op.result != ResultType::kStated) {
        all.push_back({code, type});
        continue;
      }
      for (const ElementType to :
           {kPred, kS8, kU16, kS16, kS32, kS64, kU64, kF8E5M2, kBF16, kF16, kF32, kF64}) {
        const bool fits = bit_width(type) == bit_width(to) && is_pred(type) == is_pred(to);
        if (code == OpCode::kConvert || fits) all.push_back({code, type, to});
      }
    }
  }
  return all;
}

/// Each form has a third of the operations on types, the next form the next third, so that each of
/// these is in four forms or more; all are in each form with TENON_FULL.
TEST(Legalize, OtherForms) {
  const std::vector<TypedOp> ops = typed_ops();
  const size_t step = tests_take_all() ? 1 : 3;
  const std::vector<TargetFeatures> all = forms();
  for (size_t form = 0; form < all.size(); ++form) {
    for (size_t i = form % step; i < ops.size(); i += step) {
      check_op(ops[i].code, ops[i].type, ops[i].stated, all[form], 60);
    }
  }
}

TEST(Legalize, FormsThatAreNone) {
  const Kernel kernel = of_op(OpCode::kAdd, kF32, {}, 4);
  for (const std::string_view text : {"s64", "f64", "u4", "f64,s64"}) {
    EXPECT_FALSE(legalize(kernel, TargetFeatures::parse(text).value())) << text;
  }
  EXPECT_EQ(TargetFeatures::parse("fma,wings").error().message().substr(0, 36),
            "'wings' is not a feature of targets;");
}

/// Parses the kernel, legalises it for each feature set, and runs both: every buffer must have the
/// same bits.
void expect_same_text(const std::string& text, const std::vector<std::string_view>& targets) {
  const auto kernel = parse(text, "k");
  ASSERT_TRUE(kernel) << kernel.error().to_string();
  ASSERT_TRUE(verify(*kernel).ok()) << verify(*kernel).to_string();
  const auto buffers_of = [&] {
    std::vector<Literal> buffers = testing::zero_buffers(*kernel);
    for (size_t m = 0; m < buffers.size(); ++m) {
      for (int64_t i = 0; i < buffers[m].element_count(); ++i) {
        buffers[m].set_double(i, static_cast<double>((i * 7 + static_cast<int64_t>(m)) % 5));
      }
    }
    return buffers;
  };
  std::vector<Literal> expected = buffers_of();
  const Status status = testing::run(*kernel, expected);
  ASSERT_TRUE(status.ok()) << status.to_string();
  for (const std::string_view target : targets) {
    SCOPED_TRACE(target);
    const auto legal = legalize(*kernel, TargetFeatures::parse(target).value());
    ASSERT_TRUE(legal) << legal.error().to_string();
    std::vector<Literal> actual = buffers_of();
    const Status legal_status = testing::run(*legal, actual);
    ASSERT_TRUE(legal_status.ok()) << legal_status.to_string() << print(*legal);
    for (size_t m = 0; m < actual.size(); ++m) {
      const auto a = actual[m].data();
      const auto e = expected[m].data();
      EXPECT_TRUE(std::equal(a.begin(), a.end(), e.begin(), e.end())) << "buffer " << m;
    }
  }
}

// An index that was a narrow number now has the index type: its wrapping must not count as
// arithmetic to be proved.
TEST(Legalize, NarrowNumbersAreIndices) {
  for (const char* type : {"s2", "s4", "u4", "s8", "u8", "s16"}) {
    expect_same_text(
        fmt::format("kernel @k(%x: in f32[9], %i: in {0}[5], %y: out f32[5]) index s32 grid() {{\n"
                    "lanes(%l: 5) {{\n%a = load %i[%l] : {0}\n%z = max %a, 0 : {0}\n"
                    "%b = min %z, 1 : {0}\n%c = convert %b : {0} -> s32\n"
                    "%v = load %x[%c] : f32\nstore %v, %y[%l] : f32\n}}\n}}\n",
                    type),
        {"least", "fma"});
  }
}

// A value carried by a loop or reduction has the whole range of its type.
TEST(Legalize, CarriedNarrowNumbersAreIndices) {
  for (const char* type : {"u2", "u4", "u8", "u16"}) {
    expect_same_text(
        fmt::format("kernel @k(%x: in f32[9], %i: in {0}[5], %y: out f32[5]) index s32 grid() {{\n"
                    "lanes(%l: 5) {{\n%a = load %i[%l] : {0}\n"
                    "%r = reduce serial() init(0) : {0} commutative {{\nyield %a\n}} "
                    "combine(%p, %q) {{\n%m = max %p, %q : {0}\nyield %m\n}}\n"
                    "%b = convert %r : {0} -> s32\n%c = min %b, 8 : s32\n"
                    "%v = load %x[%c] : f32\nstore %v, %y[%l] : f32\n}}\n}}\n",
                    type),
        {"least", "fma", "s8,u8,s64,u64,f64,fma"});
  }
}

TEST(Legalize, AtomicsAndScansBecomeSerial) {
  expect_same_text(
      R"(kernel @histogram(%x: in s64[3,8], %h: inout s64[5], %p: out s64[3,8]) index s32 grid(%g: 3) {
  private %own : s32[8] per lanes 1
  lanes(%l: 8) {
    %v = load %x[%g, %l] : s64
    %w = convert %v : s64 -> s32
    store %w, %own[%l] : s32
  }
  lanes(%l: 8) {
    %w = load %own[%l] : s32
    %a = max %w, 0 : s32
    %b = min %a, 4 : s32
    atomic add 3, %h[%b] : s64
  }
  %t = scan lanes(%j: 8) init(0) : s64 {
    %v = load %x[%g, %j] : s64
    yield %v
  } combine(%a, %b) {
    %c = add %a, %b : s64
    yield %c
  } each(%j, %s) {
    store %s, %p[%g, %j] : s64
  }
}
)",
      {"least", "fma,private_memory,dimensions", "s64,u64,dimensions,scans",
       "s64,u64,scans,atomics"});
}

// Without scratch memory, lanes share no reduction, and a kernel that has some is declined.
TEST(Legalize, WithoutScratch) {
  const auto features = TargetFeatures::parse("fma,dimensions,no_scratch").value();
  const Kernel sum = parse(R"(kernel @sum(%x: in f32[3,8], %y: out f32[3]) index s32 grid(%g: 3) {
  %s = reduce lanes(%j: 8) init(0.0) : f32 commutative {
    %v = load %x[%g, %j] : f32
    yield %v
  } combine(%a, %b) {
    %c = add %a, %b : f32
    yield %c
  }
  store %s, %y[%g] : f32
}
)",
                           "sum")
                         .value();
  EXPECT_EQ(check_legal(sum, features).message(),
            "@sum: reduce is not legal for the target: lanes share it");
  const auto legal = legalize(sum, features);
  ASSERT_TRUE(legal) << legal.error().to_string();
  EXPECT_NE(print(*legal).find("reduce serial(%2: 8)"), std::string::npos) << print(*legal);
  const Kernel kept = parse(R"(kernel @kept(%x: in f32[8], %y: out f32[8]) index s32 grid() {
  scratch %e : f32[8]
  lanes(%j: 8) {
    %v = load %x[%j] : f32
    store %v, %e[%j] : f32
  }
  lanes(%j: 8) {
    %v = load %e[%j] : f32
    store %v, %y[%j] : f32
  }
}
)",
                            "kept")
                          .value();
  EXPECT_EQ(legalize(kept, features).error(),
            Status(ErrorCode::kUnimplemented,
                   "@kept: %e is scratch memory, which the target does not have"));
}

TEST(Legalize, NarrowResultsAreWrapped) {
  expect_same_text(R"(kernel @clz(%x: in s2[4], %y: out s32[4]) index s32 grid() {
  lanes(%i: 4) {
    %v = load %x[%i] : s2
    %n = clz %v : s2
    %p = popcount %v : s2
    %l = lt %n, %p : s2
    %w = convert %n : s2 -> s32
    %u = convert %l : pred -> s32
    %s = add %w, %u : s32
    store %s, %y[%i] : s32
  }
}
)",
                   {"least", "fma"});
}

TEST(Legalize, CommutativeStaysWhereItIsProved) {
  const auto kernel = parse(
      R"(kernel @sum(%x: in f32[4], %n: in s64[4], %y: out f32[], %m: out s64[]) index s32 grid() {
  %s = reduce lanes (%i: 4) init(0.0) : f32 commutative {
    %v = load %x[%i] : f32
    yield %v
  } combine(%a, %b) {
    %c = add %a, %b : f32
    yield %c
  }
  store %s, %y[] : f32
  %t = reduce lanes (%i: 4) init(0) : s64 commutative {
    %v = load %n[%i] : s64
    yield %v
  } combine(%a, %b) {
    %c = max %a, %b : s64
    yield %c
  }
  store %t, %m[] : s64
}
)",
      "sum");
  ASSERT_TRUE(kernel) << kernel.error().to_string();
  const auto legal = legalize(*kernel, TargetFeatures::parse("fma").value());
  ASSERT_TRUE(legal) << legal.error().to_string();
  const auto commutative = [](const Kernel& k) {
    return std::count_if(k.nodes.begin(), k.nodes.end(),
                         [](const Node& n) { return n.commutative; });
  };
  EXPECT_GE(commutative(*legal), 1);
}

TEST(Legalize, DataAsIndices) {
  expect_same_text(
      R"(kernel @pick(%k: in s32[6], %d: in f64[6], %q: packed in u4[9], %x: in f32[5,7], %y: out f32[6], %z: out u4[6]) index s32 grid() {
  lanes(%i: 6) {
    %r = load %k[%i] : s32
    %e = load %d[%i] : f64
    %c = convert %e : f64 -> s32
    %v = load %x[%r, %c] : f32
    store %v, %y[%i] : f32
    %u = load %q[%r] : u4
    store %u, %z[%i] : u4
  }
}
)",
      {"least", "fma,dimensions", "s64,u64,f64,fma"});
}

TEST(Legalize, EveryConversion) {
  for (const ElementType from : real_types()) {
    for (const ElementType to : real_types()) {
      check_op(OpCode::kConvert, from, to, TargetFeatures::least(), 300);
      const bool same = bit_width(from) == bit_width(to) && is_pred(from) == is_pred(to);
      if (same) check_op(OpCode::kBitcast, from, to, TargetFeatures::least(), 100);
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
    check_op(code, kF32, {}, TargetFeatures::least(), 30);
  }
}

// A target with math functions that lacks some keeps the others.
TEST(Legalize, MathFunctionsThatTheTargetLacks) {
  TargetFeatures features = TargetFeatures::parse("f16,f64,s64,u64,fma,math").value();
  features.expanded.insert(OpCode::kErf, kF32);
  features.expanded.insert(OpCode::kErf, kF16);
  EXPECT_FALSE(features.has_math(OpCode::kErf, kF16));
  EXPECT_TRUE(features.has_math(OpCode::kErf, kF64));
  for (const ElementType type : {kF16, kF32, kF64}) check_op(OpCode::kErf, type, {}, features, 100);
}

}  // namespace
}  // namespace tenon::kernel
