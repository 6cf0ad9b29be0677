// Kernels with their buffers, for comparing compilers of kernels with the interpreter.
#pragma once

#include <cmath>
#include <filesystem>

#include "core/base/file.h"
#include "core/kernel/testing/kernel_test_util.h"
#include "core/kernel/testing/op_test_util.h"

namespace tenon::kernel::testing {

/// Expects equal bits, or two NaNs; with `tolerance`, floats that are close.
inline void expect_same(const std::string& name, const Literal& actual, const Literal& expected,
                        double tolerance = 0) {
  const ElementType type = actual.element_type();
  int shown = 0;
  for (size_t i = 0; i < static_cast<size_t>(actual.element_count()) && shown < 3; ++i) {
    const uint64_t a = element(actual, i);
    const uint64_t e = element(expected, i);
    const bool nans =
        is_float(type) && std::isnan(decode_float(type, a)) && std::isnan(decode_float(type, e));
    if (a == e || nans) continue;
    if (is_float(type) && std::abs(decode_float(type, a) - decode_float(type, e)) <= tolerance) {
      continue;
    }
    ++shown;
    ADD_FAILURE() << fmt::format("{}: element {} is {:#x}, expected {:#x}", name, i, a, e);
  }
}

struct Case {
  Kernel kernel;
  std::vector<Literal> buffers;
};

inline Case case_of(OpCode code, ElementType type, ElementType stated, size_t count) {
  Case c;
  c.buffers = operands(code, type, count);
  const int64_t n = c.buffers[0].element_count();
  c.kernel = of_op(code, type, stated, n);
  const ElementType result = result_type(code, type, stated);
  c.kernel.name = fmt::format("{}_{}_{}", op_name(code), name_of(type), name_of(result));
  c.buffers.emplace_back(Shape(result, {n}));
  return c;
}

/// Kernels of every operation, conversion and bitcast on `types`.
inline std::vector<Case> operation_cases(const std::vector<ElementType>& types) {
  std::vector<Case> cases;
  for (int o = 0; o < kScalarOpCount; ++o) {
    const auto code = static_cast<OpCode>(o);
    const ScalarOp& op = scalar_op(code);
    for (const ElementType type : types) {
      if (!contains(op.types, type) || (is_math(code) && type != ElementType::kF32)) continue;
      if (op.result != ResultType::kStated) {
        cases.push_back(case_of(code, type, {}, 300));
        continue;
      }
      for (const ElementType to : types) {
        const bool fits = bit_width(type) == bit_width(to) && is_pred(type) == is_pred(to);
        if (code == OpCode::kConvert || fits) cases.push_back(case_of(code, type, to, 100));
      }
    }
  }
  return cases;
}

/// Every kind of loop and branch, with carried values.
inline constexpr std::string_view kLoops =
    R"(kernel @loops(%x: in s32[12], %y: inout s32[12], %z: out s64[3]) index s32 grid(%g: 3) {
  scratch %total : s32[1]
  %a, %b = for %k = (0, 5, 2) carry(%p = 1, %q = 2) : s32, s32 {
    %s = add %p, %q : s32
    yield %q, %s
  }
  %n, %m = while(%i = 0, %j = %a) : s32, s32 {
    %go = lt %i, 4 : s32
    yield %go
  } do(%i, %j) {
    %i1 = add %i, 1 : s32
    %j1 = mul %j, 3 : s32
    yield %i1, %j1
  }
  lanes(%l: 4) {
    %base = mul %g, 4 : s32
    %at = add %base, %l : s32
    %v = load %x[%at] : s32
    %odd = and %v, 1 : s32
    %is = ne %odd, 0 : s32
    %w = if %is : s32 {
      %t = add %v, %m : s32
      yield %t
    } else {
      %t = sub %b, %v : s32
      yield %t
    }
    store %w, %y[%at] : s32
  }
  %r = reduce lanes (%l: 4) init(0) : s32 commutative {
    %base = mul %g, 4 : s32
    %at = add %base, %l : s32
    %v = load %x[%at] : s32
    yield %v
  } combine(%c, %d) {
    %e = add %c, %d : s32
    yield %e
  }
  store %r, %total[0] : s32
  lanes(%l: 1) {
    %t = load %total[0] : s32
    %u = convert %t : s32 -> s64
    store %u, %z[%g] : s64
  }
}
)";

// Every combination on an integer type, by lanes and by the workgroup.
inline Kernel atomics(ElementType type, AtomicKind kind) {
  Builder b(fmt::format("count_{}_{}", op_name(combination_of(kind)), name_of(type)));
  const MemoryId x = b.buffer("x", type, {2, 24}, Access::kIn);
  const MemoryId y = b.buffer("y", type, {3}, Access::kInOut);
  const Values g = b.grid({2});
  const MemoryId sums = b.scratch("sums", type, {3});
  b.lanes({3}, [&](const Values& i) { b.store(b.integer(type, 5), sums, i); });
  b.lanes({24}, [&](const Values& i) {
    const Values third = {b.rem(i[0], b.index(3))};
    b.atomic(kind, b.load(x, {g[0], i[0]}), y, third);
    b.atomic(kind, b.load(x, {g[0], i[0]}), sums, third);
  });
  b.atomic(kind, b.load(sums, {b.index(1)}), y, {b.index(2)});
  return b.finish();
}

inline constexpr AtomicKind kAtomicKinds[] = {AtomicKind::kAdd, AtomicKind::kMin, AtomicKind::kMax,
                                              AtomicKind::kAnd, AtomicKind::kOr,  AtomicKind::kXor};

/// The kernels of core/kernel/examples on random numbers; `source` is the root of the tree.
inline std::vector<Case> example_cases(const std::string& source) {
  std::vector<Case> cases;
  for (const auto& file : std::filesystem::directory_iterator(source + "/core/kernel/examples")) {
    const auto text = read_file(file.path().string());
    EXPECT_TRUE(text);
    const auto kernel = parse(*text, "example");
    EXPECT_TRUE(kernel);
    Case c = {*kernel, zero_buffers(*kernel)};
    uint64_t seed = 3;
    for (size_t m = 0; m < c.buffers.size(); ++m) {
      if (kernel->memories[m].access == Access::kOut) continue;
      Random random(seed++);
      for (int64_t i = 0; i < c.buffers[m].element_count(); ++i) {
        c.buffers[m].set_double(i, random.unit() * 4 - 2);
      }
    }
    cases.push_back(std::move(c));
  }
  EXPECT_EQ(cases.size(), 6u);
  return cases;
}

inline std::vector<Case> loop_cases() {
  const Kernel kernel = parse(kLoops, "loops").value();
  EXPECT_TRUE(verify(kernel).ok()) << verify(kernel).to_string();
  std::vector<Case> cases = {{kernel, zero_buffers(kernel)}};
  for (int64_t i = 0; i < 12; ++i) cases[0].buffers[0].set_integer(i, i * i - 17);
  return cases;
}

/// Cases for each kind of atomic on each of the types.
inline std::vector<Case> atomic_cases(const std::vector<ElementType>& types) {
  std::vector<Case> cases;
  for (const ElementType type : types) {
    for (const AtomicKind kind : kAtomicKinds) {
      Case c = {atomics(type, kind), {}};
      EXPECT_TRUE(verify(c.kernel).ok()) << verify(c.kernel).to_string();
      const auto values = [&](Dims dims, uint64_t seed) {
        const Shape shape(type, std::move(dims));
        const auto count = static_cast<size_t>(element_count(shape.dims()));
        const Literal all = array(type, patterns(type, count, seed));
        return Literal::from_bytes(shape, all.data().first(count * storage_bytes(type))).value();
      };
      c.buffers = {values({2, 24}, 3), values({3}, 4)};
      cases.push_back(std::move(c));
    }
  }
  return cases;
}

/// One case for each kind of divergence: a branch with and without stores, strides, loaded indices,
/// a bound that is not constant.
inline std::vector<Case> divergent_cases() {
  const Kernel kernel =
      parse(
          R"(kernel @apart(%x: in s32[3,50], %at: in s32[50], %y: out s32[3,50], %z: out s32[3,50]) index s32 grid(%g: 3) {
  lanes(%i: 50) {
    %v = load %x[%g, %i] : s32
    %odd = and %v, 1 : s32
    %is = ne %odd, 0 : s32
    %w = if %is : s32 {
      %back = sub 49, %i : s32
      %t = load %x[%g, %back] : s32
      yield %t
    } else {
      %k = load %at[%i] : s32
      %t = load %x[%g, %k] : s32
      %u = for %n = (0, 3, 1) carry(%c = %t) : s32 {
        %d = add %c, %n : s32
        yield %d
      }
      yield %u
    }
    store %w, %y[%g, %i] : s32
    %small = lt %v, 0 : s32
    if %small {
      store %i, %z[%g, %i] : s32
    } else {
      store %w, %z[%g, %i] : s32
    }
  }
}
)",
          "apart")
          .value();
  EXPECT_TRUE(verify(kernel).ok()) << verify(kernel).to_string();
  std::vector<Case> cases = {{kernel, zero_buffers(kernel)}};
  Random random(5);
  for (int64_t i = 0; i < 150; ++i) cases[0].buffers[0].set_integer(i, random.below(100) - 50);
  for (int64_t i = 0; i < 50; ++i) cases[0].buffers[1].set_integer(i, random.below(50));
  return cases;
}

/// Sums of integers in any order, and the first of the greatest values, a reduction without a
/// neutral element.
inline std::vector<Case> reduction_cases() {
  std::vector<Case> cases;
  for (const int64_t count : {1, 2, 7, 16, 33, 64, 200, 1000}) {
    Builder b(fmt::format("reduce_{}", count));
    const auto x = b.buffer("x", ElementType::kS32, {3, count}, Access::kIn);
    const auto y = b.buffer("y", ElementType::kS32, {3}, Access::kOut);
    const auto at = b.buffer("at", ElementType::kS32, {2}, Access::kOut);
    b.grid({});
    b.lanes({3}, [&](const Values& i) {
      b.store(b.reduce({{count},
                        false,
                        true,
                        {b.integer(ElementType::kS32, 5)},
                        [&](const Values& k) { return Values{b.load(x, {i[0], k[0]})}; },
                        [&](const Values& v) { return Values{b.add(v[0], v[1])}; }})[0],
              y, i);
    });
    const Values best =
        b.reduce({{3, count},
                  true,
                  true,
                  {b.integer(ElementType::kS32, -1000000), b.integer(ElementType::kS32, -1)},
                  [&](const Values& k) {
                    return Values{b.load(x, k), b.add(b.mul(k[0], b.index(count)), k[1])};
                  },
                  [&](const Values& v) {
                    const auto greater = b.compare(OpCode::kGt, v[0], v[2]);
                    const auto equal = b.compare(OpCode::kEq, v[0], v[2]);
                    const auto before = b.compare(OpCode::kLt, v[1], v[3]);
                    const auto left = b.logical_or(greater, b.logical_and(equal, before));
                    return Values{b.select(left, v[0], v[2]), b.select(left, v[1], v[3])};
                  }});
    b.store(best[0], at, {b.index(0)});
    b.store(best[1], at, {b.index(1)});
    Case c = {b.finish(), {}};
    c.buffers = zero_buffers(c.kernel);
    Random random(static_cast<uint64_t>(count));
    for (int64_t i = 0; i < 3 * count; ++i) c.buffers[0].set_integer(i, random.below(90));
    cases.push_back(std::move(c));
  }
  return cases;
}

/// Products of maps x -> ax + b over the lanes of several workgroups, in which the order matters.
inline std::vector<Case> ordered_reduction_cases() {
  std::vector<Case> cases;
  for (const int64_t count : {0, 1, 3, 31, 32, 33, 64, 100, 255, 256, 257, 700}) {
    Builder b(fmt::format("compose_{}", count));
    const ElementType type = ElementType::kU32;
    const auto x = b.buffer("x", type, {2, 2, count}, Access::kIn);
    const auto y = b.buffer("y", type, {2, 2}, Access::kOut);
    const Values g = b.grid({2});
    const Values whole = b.reduce(
        {{count},
         true,
         false,
         {b.integer(type, 3), b.integer(type, 4)},
         [&](const Values& k) {
           return Values{b.load(x, {g[0], b.index(0), k[0]}), b.load(x, {g[0], b.index(1), k[0]})};
         },
         [&](const Values& v) {
           return Values{b.mul(v[0], v[2]), b.add(b.mul(v[0], v[3]), v[1])};
         }});
    for (int64_t i = 0; i < 2; ++i) {
      b.store(whole[static_cast<size_t>(i)], y, {g[0], b.index(i)});
    }
    Case c = {b.finish(), {}};
    EXPECT_TRUE(verify(c.kernel).ok()) << verify(c.kernel).to_string();
    c.buffers = zero_buffers(c.kernel);
    Random random(static_cast<uint64_t>(count) + 1);
    for (int64_t i = 0; i < 4 * count; ++i) c.buffers[0].set_integer(i, random.below(1000) | 1);
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace tenon::kernel::testing
