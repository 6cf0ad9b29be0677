// Lanes over rows of a few elements, which are whole vectors, give the interpreter's bits.
#include <gtest/gtest.h>

#include <iterator>

#include "backends/cpu/cpu_test_util.h"
#include "core/base/process/full_test_util.h"
#include "core/base/random.h"

namespace tenon::cpu {
namespace {

using kernel::Kernel;
using kernel::testing::Case;
using testing::every_width;
using testing::expect_interpreters_bits;
using testing::ir_of;
using testing::numbered_case;

// Rows of a few elements, 48 a workgroup, of which the last may have fewer: accesses along rows, by
// the row, by the place in a row, backwards, of a transposed array, of every other row, where a
// condition on the place holds, and stores with gaps between them.
Case short_rows_case(int64_t count, int64_t rows, const std::string& type) {
  const std::string text = fmt::format(
      R"(kernel @k(%x: in {2}[{3},{0}], %w: in {2}[{0}], %v: in {2}[{3}], %t: in {2}[{0},{3}], %y: out {2}[{1},{0}], %z: inout {2}[{1},{4}], %p: out pred[{1},{0}]) index s32 grid(%0: {5}) {{
  %g = mul %0, 48 : s32
  lanes(%i: 48, %j: {0}) {{
    %r = add %g, %i : s32
    %in = lt %r, {1} : s32
    if %in {{
      %a = load %x[%r, %j] : {2}
      %b = load %w[%j] : {2}
      %c = load %v[%r] : {2}
      %d = load %t[%j, %r] : {2}
      %k = sub {6}, %j : s32
      %e = load %x[%r, %k] : {2}
      %rr = mul %r, 2 : s32
      %f = load %x[%rr, %j] : {2}
      %ge = ge %j, 1 : s32
      %both = and %in, %ge : pred
      %h = if %both : {2} {{
        %m = sub %j, 1 : s32
        %l = load %x[%r, %m] : {2}
        yield %l
      }} else {{
        yield %b
      }}
      %s0 = add %a, %b : {2}
      %s1 = sub %c, %d : {2}
      %s2 = max %e, %f : {2}
      %s3 = add %s0, %s1 : {2}
      %s4 = add %s2, %h : {2}
      %s5 = sub %s3, %s4 : {2}
      store %s5, %y[%r, %j] : {2}
      %jj = mul %j, 2 : s32
      store %s0, %z[%r, %jj] : {2}
      %q = lt %a, %b : {2}
      store %q, %p[%r, %j] : pred
    }}
  }}
}}
)",
      count, rows, type, 2 * rows, 2 * count, (rows + 47) / 48, count - 1);
  const Kernel kernel = kernel::parse(text, "k").value();
  Case c = {kernel, kernel::testing::zero_buffers(kernel)};
  Random random(11);
  for (size_t b = 0; b < 4; ++b) {
    for (int64_t k = 0; k < c.buffers[b].element_count(); ++k)
      c.buffers[b].set_double(k, static_cast<double>(random.below(30)));
  }
  return c;
}

// Each number of elements with each number of rows, in one of the types, each of which comes with
// each of these numbers; in all of them with TENON_FULL.
TEST(ShortRows, RowsOfAFewElements) {
  const std::string types[] = {"f32", "f64", "s8", "s16"};
  const bool full = tests_take_all();
  std::vector<Case> cases;
  size_t next = 0;
  for (const int64_t count : {2, 3, 5, 6, 7, 8, 12, 16, 31, 33}) {
    for (const int64_t rows : {48, 96, 50, 67, 7}) {
      for (size_t type = 0; type < std::size(types); ++type) {
        if (full || type == next % std::size(types))
          cases.push_back(short_rows_case(count, rows, types[type]));
      }
      ++next;
    }
  }
  expect_interpreters_bits(cases);
}

TEST(ShortRows, RowsOfAFewElementsAreNotGathered) {
  for (const int64_t bytes : {32, 64}) {
    for (const int64_t count : {2, 3, 5, 7}) {
      const std::string ir = ir_of(short_rows_case(count, 96, "f32").kernel, bytes);
      EXPECT_NE(ir.find("shufflevector"), std::string::npos) << ir;
      EXPECT_EQ(ir.find("masked.gather"), std::string::npos) << ir;
      EXPECT_EQ(ir.find("masked.scatter"), std::string::npos) << ir;
    }
  }
}

// The places of the greatest elements of rows, one row a lane, the last ones behind a condition.
Case greatest_of_rows(int64_t count, int64_t rows, std::string_view type) {
  const Kernel kernel =
      kernel::parse(
          fmt::format(R"(kernel @k(%x: in {0}[{1},{2}], %y: out s32[{1}]) index s32 grid(%g: {3}) {{
  %first = mul %g, 64 : s32
  lanes(%l: 64) {{
    %i = add %first, %l : s32
    %inside = lt %i, {1} : s32
    if %inside {{
      %v, %p = reduce serial(%k: {2}) init({4}, 0) : {0}, s32 {{
        %e = load %x[%i, %k] : {0}
        yield %e, %k
      }} combine(%a, %m, %b, %n) {{
        %c = max %a, %b : {0}
        %d = lt %a, %b : {0}
        %o = select %d, %n, %m : s32
        yield %c, %o
      }}
      store %p, %y[%i] : s32
    }}
  }}
}}
)",
                      type, rows, count, (rows + 63) / 64, type == "s16" ? "-9" : "-9.0"),
          "k")
          .value();
  Case c = {kernel, kernel::testing::zero_buffers(kernel)};
  Random random(static_cast<uint64_t>(count));
  for (int64_t k = 0; k < count * rows; ++k)
    c.buffers[0].set_double(k, static_cast<double>(random.below(12)));
  return c;
}

// Those of 8 to 32 leaves are taken apart in registers: by halves, or as transposed squares.
TEST(ShortRows, ReductionsOfARowOfALane) {
  std::vector<Case> cases;
  for (const int64_t count : {7, 8, 9, 10, 12, 13, 14, 15, 16, 17, 24, 31, 32, 33}) {
    cases.push_back(greatest_of_rows(count, 150, "f32"));
    if (tests_take_all() || count % 2 == 0) cases.push_back(greatest_of_rows(count, 150, "f64"));
    if (tests_take_all() || count % 2 == 1) cases.push_back(greatest_of_rows(count, 150, "s16"));
    for (const int64_t bytes : {32, 64}) {
      const std::string ir = ir_of(greatest_of_rows(count, 150, "f32").kernel, bytes);
      EXPECT_EQ(ir.find("masked.gather") == std::string::npos, count < 33) << ir;
    }
  }
  expect_interpreters_bits(cases, 0, every_width());
}

// Each lane loads a row and stores it backwards, with a number added to each element; the last ones
// behind a condition.
Case turned_rows(int64_t count, int64_t rows, std::string_view type) {
  std::string body;
  for (int64_t k = 0; k < count; ++k)
    body += fmt::format("      %e{0} = load %x[%i, {0}] : {1}\n", k, type);
  for (int64_t k = 0; k < count; ++k) {
    body += fmt::format(
        "      %s{0} = add %e{1}, {2} : {3}\n      store %s{0}, %y[%i, {0}] : {3}\n", k,
        count - 1 - k, type[0] == 'f' ? fmt::format("{}.0", k) : fmt::format("{}", k), type);
  }
  return numbered_case(
      fmt::format(
          "kernel @k(%x: in {0}[{1},{2}], %y: out {0}[{1},{2}]) index s32 grid(%g: {3}) {{\n"
          "  %first = mul %g, 64 : s32\n  lanes(%l: 64) {{\n    %i = add %first, %l : s32\n"
          "    %inside = lt %i, {1} : s32\n    if %inside {{\n{4}    }}\n  }}\n}}\n",
          type, rows, count, (rows + 63) / 64, body),
      100);
}

TEST(ShortRows, LoadedAndStoredWhole) {
  std::vector<Case> cases;
  const std::string_view types[] = {"f32", "f64", "s8", "s16"};
  for (const int64_t count : {2, 3, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16}) {
    for (size_t type = 0; type < std::size(types); ++type) {
      // One that moves on every fourth number, so that each edge of squares comes with each.
      const auto turn = static_cast<size_t>(count + count / 4) % std::size(types);
      if (!tests_take_all() && type != turn) continue;
      cases.push_back(turned_rows(count, 150, types[type]));
      for (const int64_t bytes : {32, 64}) {
        const std::string ir = ir_of(cases.back().kernel, bytes);
        EXPECT_EQ(ir.find("masked.gather"), std::string::npos) << ir;
        EXPECT_EQ(ir.find("masked.scatter"), std::string::npos) << ir;
      }
    }
  }
  expect_interpreters_bits(cases, 0, every_width());
}

// A place that is loaded, the same for all lanes.
TEST(ShortRows, IndicesFromMemory) {
  std::vector<Case> cases;
  for (const int64_t count : {3, 5}) {
    const std::string text = fmt::format(
        R"(kernel @k(%x: in f32[4,48,{0}], %n: in s32[2], %y: out f32[48,{0}]) index s32 grid() {{
  lanes(%i: 48, %j: {0}) {{
    %m = load %n[1] : s32
    %u = bitcast %m : s32 -> u32
    %c = min %u, 3 : u32
    %k = convert %c : u32 -> s32
    %a = load %x[%k, %i, %j] : f32
    %w = load %x[%k, %i, 0] : f32
    %s = add %a, %w : f32
    store %s, %y[%i, %j] : f32
  }}
}}
)",
        count);
    const Kernel kernel = kernel::parse(text, "k").value();
    Case c = {kernel, kernel::testing::zero_buffers(kernel)};
    for (int64_t k = 0; k < c.buffers[0].element_count(); ++k)
      c.buffers[0].set_double(k, static_cast<double>(k));
    c.buffers[1].set_integer(1, 2);
    cases.push_back(c);
  }
  expect_interpreters_bits(cases);
}

// Small matrices, transposed: rows of whole vectors, whose places are no row of memory.
TEST(ShortRows, MatricesOfAFewElements) {
  std::vector<Case> cases;
  for (const auto& [rows, columns] :
       {std::pair(2, 16), std::pair(16, 2), std::pair(4, 4), std::pair(5, 5), std::pair(3, 7)}) {
    for (const int64_t count : {32, 19}) {
      const std::string text = fmt::format(
          R"(kernel @k(%x: in f32[{0},{1},{2}], %y: out f32[{0},{2},{1}]) index s32 grid(%0: 2) {{
  %g = mul %0, 16 : s32
  lanes(%i: 16, %j: {2}, %k: {1}) {{
    %r = add %g, %i : s32
    %in = lt %r, {0} : s32
    if %in {{
      %a = load %x[%r, %k, %j] : f32
      store %a, %y[%r, %j, %k] : f32
    }}
  }}
}}
)",
          count, rows, columns);
      cases.push_back(numbered_case(text, 1 << 20));
    }
  }
  expect_interpreters_bits(cases);
  EXPECT_EQ(ir_of(cases[0].kernel, 64).find("masked.gather"), std::string::npos);
}

// Sums of short rows, which lie one after the other in the lanes, and of a dimension between those
// of rows and within them.
TEST(ShortRows, ReductionsOfShortRows) {
  std::vector<Case> cases;
  for (const int64_t count : {2, 3, 5, 7}) {
    for (const int64_t rows : {48, 45, 5}) {
      for (const std::string form : {"[%r, %q]", "[%q, %r]", "[%r, %q, %j]"}) {
        const bool within = form.size() > 8;
        const std::string sizes = within               ? fmt::format("{}, {}, 3", rows, count)
                                  : form == "[%r, %q]" ? fmt::format("{}, {}", rows, count)
                                                       : fmt::format("{}, {}", count, rows);
        const std::string text = fmt::format(
            R"(kernel @k(%x: in f32[{0}], %y: out f32[{1}{2}]) index s32 grid() {{
  lanes(%r: 48{3}) {{
    %in = lt %r, {1} : s32
    if %in {{
      %sum = reduce serial(%q: {4}) init(0.0) : f32 {{
        %c = load %x{5} : f32
        yield %c
      }} combine(%d, %e) {{
        %f = add %d, %e : f32
        yield %f
      }}
      store %sum, %y[%r{6}] : f32
    }}
  }}
}}
)",
            sizes, rows, within ? ", 3" : "", within ? ", %j: 3" : "", count, form,
            within ? ", %j" : "");
        cases.push_back(numbered_case(text, 31));
      }
    }
  }
  expect_interpreters_bits(cases);
  EXPECT_EQ(ir_of(cases[0].kernel, 64).find("masked.gather"), std::string::npos);
  EXPECT_EQ(ir_of(cases[2].kernel, 64).find("masked.gather"), std::string::npos);
}

// Several dimensions become one where the accesses let them; the rows within the bound alone.
TEST(ShortRows, DimensionsThatAreOne) {
  std::vector<Case> cases;
  for (const int64_t rows : {64, 63, 20, 3}) {
    const std::string text = fmt::format(
        R"(kernel @k(%x: in f32[{0},2,3], %y: out f32[{0},2,3], %s: out f32[]) index s32 grid(%0: 2) {{
  %g = mul %0, 32 : s32
  lanes(%i: 32, %j: 2, %k: 3) {{
    %r = add %g, %i : s32
    %in = lt %r, {0} : s32
    if %in {{
      %a = load %x[%r, %j, %k] : f32
      %b = mul %a, 2.0 : f32
      store %b, %y[%r, %j, %k] : f32
    }}
  }}
  %first = lt %0, 1 : s32
  if %first {{
    %sum = reduce lanes(%l: {0}, %m: 2, %n: 3) init(0.0) : f32 commutative {{
      %c = load %x[%l, %m, %n] : f32
      yield %c
    }} combine(%d, %e) {{
      %f = add %d, %e : f32
      yield %f
    }}
    store %sum, %s[] : f32
  }}
}}
)",
        rows);
    const Kernel kernel = kernel::parse(text, "k").value();
    Case c = {kernel, kernel::testing::zero_buffers(kernel)};
    for (int64_t k = 0; k < 6 * rows; ++k) c.buffers[0].set_double(k, static_cast<double>(k));
    cases.push_back(c);
  }
  expect_interpreters_bits(cases);
  EXPECT_EQ(ir_of(cases[0].kernel).find("masked.gather"), std::string::npos);
}

}  // namespace
}  // namespace tenon::cpu
