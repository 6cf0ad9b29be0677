// Lanes over the last dimensions together, as vectors whose lanes have known places: moves of
// elements, which give the interpreter's bits without gathers and scatters.
#include <gtest/gtest.h>

#include "backends/cpu/codegen/row_pattern.h"
#include "backends/cpu/cpu_test_util.h"
#include "core/base/random.h"

namespace tenon::cpu {
namespace {

using kernel::Kernel;
using kernel::testing::Case;
using testing::expect_interpreters_bits;
using testing::ir_of;
using testing::numbered_case;

// %x [{rows}, h, w] of `type`, %i s32[{rows}] with rows and %n s32[w] with columns, 48 rows a
// workgroup; the body sees %r, %j, %k below `extents`, and stores to %y.
struct Moved {
  int64_t rows, h, w, to_h, to_w;
  std::string body;
};

Case case_of(const Moved& m, const std::string& type) {
  std::string body = m.body;
  for (size_t at = 0; (at = body.find('T', at)) != std::string::npos; at += type.size())
    body.replace(at, 1, type);
  const std::string text = fmt::format(
      R"(kernel @k(%x: in {0}[{1},{2},{3}], %i: in s32[{1}], %n: in s32[{3}], %y: out {0}[{1},{4},{5}]) index s32 grid(%0: {6}) {{
  %g = mul %0, 48 : s32
  lanes(%l: 48, %j: {4}, %k: {5}) {{
    %r = add %g, %l : s32
    %in = lt %r, {1} : s32
    if %in {{
{7}      store %v, %y[%r, %j, %k] : {0}
    }}
  }}
}}
)",
      type, m.rows, m.h, m.w, m.to_h, m.to_w, (m.rows + 47) / 48, body);
  const Kernel kernel = kernel::parse(text, "k").value();
  Case c = {kernel, kernel::testing::zero_buffers(kernel)};
  Random random(7);
  for (int64_t k = 0; k < c.buffers[0].element_count(); ++k)
    c.buffers[0].set_double(k, static_cast<double>(random.below(100)));
  for (int64_t k = 0; k < m.rows; ++k)
    c.buffers[1].set_integer(k, static_cast<int64_t>(random.below(static_cast<uint64_t>(m.rows))));
  for (int64_t k = 0; k < m.w; ++k)
    c.buffers[2].set_integer(k, static_cast<int64_t>(random.below(static_cast<uint64_t>(m.w))));
  return c;
}

// A frame of zeros around each matrix; elements of every other row and column, with zeros between
// them; each element twice and three times; backwards; transposed.
std::vector<Moved> moves(int64_t rows) {
  const std::string pad = R"(      %a = sub %j, 1 : s32
      %b = ge %a, 0 : s32
      %c = lt %a, 7 : s32
      %d = and %b, %c : pred
      %e = sub %k, 1 : s32
      %f = ge %e, 0 : s32
      %h = lt %e, 3 : s32
      %m = and %f, %h : pred
      %o = and %d, %m : pred
      %v = if %o : T {
        %p = load %x[%r, %a, %e] : T
        yield %p
      } else {
        yield 0
      }
)";
  const std::string gaps = R"(      %a = rem %j, 2 : s32
      %b = eq %a, 0 : s32
      %c = rem %k, 2 : s32
      %d = eq %c, 0 : s32
      %e = and %b, %d : pred
      %f = div %j, 2 : s32
      %h = div %k, 2 : s32
      %v = if %e : T {
        %p = load %x[%r, %f, %h] : T
        yield %p
      } else {
        yield 0
      }
)";
  const std::string repeat = R"(      %a = div %j, 2 : s32
      %b = div %k, 3 : s32
      %v = load %x[%r, %a, %b] : T
)";
  const std::string backwards = R"(      %a = sub 4, %j : s32
      %b = sub 5, %k : s32
      %v = load %x[%r, %a, %b] : T
)";
  const std::string transposed = "      %v = load %x[%r, %k, %j] : T\n";
  const std::string every_other = R"(      %a = mul %j, 2 : s32
      %b = mul %k, 2 : s32
      %v = load %x[%r, %a, %b] : T
)";
  return {{rows, 7, 3, 9, 5, pad},        {rows, 3, 4, 6, 8, gaps},
          {rows, 5, 7, 10, 21, repeat},   {rows, 5, 6, 5, 6, backwards},
          {rows, 7, 3, 3, 7, transposed}, {rows, 11, 5, 6, 3, every_other}};
}

std::string with_double_zero(std::string body, const std::string& type) {
  if (type[0] != 'f') return body;
  for (size_t at = 0; (at = body.find("yield 0\n", at)) != std::string::npos; at += 8)
    body.replace(at, 8, "yield 0.0\n");
  return body;
}

TEST(RowPatterns, MovesWithinMatrices) {
  std::vector<Case> cases;
  for (const int64_t rows : {48, 67, 7}) {
    for (const std::string type : {"f32", "f64", "s8", "s16"}) {
      for (Moved m : moves(rows)) {
        m.body = with_double_zero(m.body, type);
        cases.push_back(case_of(m, type));
      }
    }
  }
  expect_interpreters_bits(cases);
}

TEST(RowPatterns, MovesAreShuffles) {
  for (Moved m : moves(96)) {
    m.body = with_double_zero(m.body, "f32");
    for (const int64_t bytes : {32, 64}) {
      const std::string ir = ir_of(case_of(m, "f32").kernel, bytes);
      EXPECT_NE(ir.find("shufflevector"), std::string::npos) << ir;
      EXPECT_EQ(ir.find("masked.gather"), std::string::npos) << ir;
      EXPECT_EQ(ir.find("masked.scatter"), std::string::npos) << ir;
      // Without registers for masks, known lanes are stored without them.
      if (bytes == 32) EXPECT_EQ(ir.find("masked.store"), std::string::npos) << ir;
    }
  }
}

// Rows of a table are vectors of memory; columns of one are gathered, into whole vectors.
TEST(RowPatterns, PlacesFromMemory) {
  const std::string rows = R"(      %q = load %i[%r] : s32
      %a = min %q, 66 : s32
      %b = max %a, 0 : s32
      %v = load %x[%b, %j, %k] : T
)";
  const std::string columns = R"(      %q = load %n[%k] : s32
      %a = min %q, 4 : s32
      %b = max %a, 0 : s32
      %v = load %x[%r, %j, %b] : T
)";
  std::vector<Case> cases;
  for (const std::string type : {"f32", "f64", "s8"}) {
    cases.push_back(case_of({67, 7, 3, 7, 3, rows}, type));
    cases.push_back(case_of({67, 4, 5, 4, 5, columns}, type));
  }
  expect_interpreters_bits(cases);
  EXPECT_EQ(ir_of(cases[0].kernel, 64).find("masked.gather"), std::string::npos);
  EXPECT_NE(ir_of(cases[1].kernel, 64).find("masked.gather"), std::string::npos);
}

// Every third element of rows, of which the last vector has fewer lanes.
TEST(RowPatterns, ElementsApartUnderAMask) {
  std::vector<Case> cases;
  for (const std::string type : {"f32", "f64", "s8"}) {
    for (const int64_t count : {150, 141}) {
      for (const std::string place : {"mul %k, 3", "sub 447, %m"}) {
        const std::string text = fmt::format(
            R"(kernel @k(%x: in {0}[2,448], %y: out {0}[2,{1}]) index s32 grid() {{
  lanes(%j: 2, %k: {1}) {{
    %m = mul %k, 3 : s32
    %a = {2} : s32
    %v = load %x[%j, %a] : {0}
    store %v, %y[%j, %k] : {0}
  }}
}}
)",
            type, count, place);
        cases.push_back(numbered_case(text, 101));
      }
    }
  }
  expect_interpreters_bits(cases);
  EXPECT_EQ(ir_of(cases[0].kernel, 64).find("masked.gather"), std::string::npos);
}

// Transposes in squares of a register, those at the edges of fewer rows and columns.
TEST(RowPatterns, SquaresAtTheEdges) {
  std::vector<Case> cases;
  for (const auto& [rows, columns] : {std::pair(33, 65), std::pair(12, 40), std::pair(40, 12),
                                      std::pair(16, 9), std::pair(50, 50)}) {
    for (const std::string type : {"f32", "f64", "s8", "s16"}) {
      const std::string text = fmt::format(
          R"(kernel @k(%x: in {2}[{0},{1}], %y: out {2}[{1},{0}]) index s32 grid() {{
  lanes(%j: {1}, %k: {0}) {{
    %a = load %x[%k, %j] : {2}
    %b = add %a, %a : {2}
    store %b, %y[%j, %k] : {2}
  }}
}}
)",
          rows, columns, type);
      cases.push_back(numbered_case(text, 61));
    }
  }
  expect_interpreters_bits(cases);
  for (const size_t f32 : {0, 4, 8, 12, 16})
    EXPECT_EQ(ir_of(cases[f32].kernel, 64).find("masked.gather"), std::string::npos);
}

// Rows of three elements from places that memory tells, within lines of 21: without scattered
// stores lane by lane. Numbers that are computed stay in vectors.
TEST(RowPatterns, ElementsFarApartAreMovedLaneByLane) {
  const auto text = [](const std::string& type, const std::string& computed) {
    std::string k =
        R"(kernel @k(%x: in T[96,7,3], %i: in s32[7], %y: out T[96,7,3]) index s32 grid(%0: 3) {
  %g = mul %0, 32 : s32
  lanes(%l: 32, %j: 7) {
    %r = add %g, %l : s32
    %q = load %i[%j] : s32
    %a = min %q, 6 : s32
    %b = max %a, 0 : s32
    %u = load %x[%r, %b, 0] : T
    %v = load %x[%r, %b, 1] : T
    %w = load %x[%r, %b, 2] : T
)" + computed +
        R"(
    store %u, %y[%r, %j, 0] : T
    store %v, %y[%r, %j, 1] : T
    store %s, %y[%r, %j, 2] : T
  }
}
)";
    for (size_t at = 0; (at = k.find('T', at)) != std::string::npos; at += type.size())
      k.replace(at, 1, type);
    return k;
  };
  std::vector<Case> cases;
  for (const std::string type : {"f32", "f64", "s8"}) {
    std::string moved = text(type, "");
    moved.replace(moved.find("%s"), 2, "%w");
    cases.push_back(numbered_case(moved, 100));
    cases.push_back(numbered_case(text(type, "    %s = add %w, %v : T"), 50));
    for (size_t k = cases.size() - 2; k < cases.size(); ++k) {
      for (int64_t j = 0; j < 7; ++j) cases[k].buffers[1].set_integer(j, (5 * j + 3) % 7);
    }
  }
  expect_interpreters_bits(cases);
  const auto has_vectors = [&](size_t number, int64_t bytes) {
    return ir_of(cases[number].kernel, bytes).find(" x float>") != std::string::npos;
  };
  EXPECT_FALSE(has_vectors(0, 32));
  EXPECT_TRUE(has_vectors(0, 64));
  EXPECT_TRUE(has_vectors(1, 32));
}

// A body of more nodes than are emitted twice, over rows whose last vector has fewer lanes.
std::string long_body(const std::string& buffers, const std::string& from,
                      const std::string& type) {
  std::string body;
  for (int i = 0; i < 120; ++i)
    body += fmt::format("    %a{1} = mul %a{0}, %v : {2}\n    %b{1} = add %a{1}, %v : {2}\n", i,
                        i + 1, type);
  std::string text = fmt::format(
      R"(kernel @k({0}) index s32 grid() {{
  lanes(%j: 3, %k: 50) {{
    %v = load %{1}[%j, %k] : {2}
    %a0 = add %v, %v : {2}
{3}    store %b120, %y[%j, %k] : {2}
  }}
}}
)",
      buffers, from, type, body);
  for (size_t at = 0; (at = text.find('T', at)) != std::string::npos; at += type.size())
    text.replace(at, 1, type);
  return text;
}

// Where a store under a mask is slow, the last lanes are computed in two vectors, unless that would
// read what was stored.
TEST(RowPatterns, LanesOfLongBodiesRunTwice) {
  std::vector<Case> cases;
  for (const std::string type : {"f32", "f64", "s32", "s8"}) {
    for (const std::string buffers :
         {"%x: in T[3,50], %y: out T[3,50]", "%x: in T[3,50], %y: out T[3,50] over %x"})
      cases.push_back(numbered_case(long_body(buffers, "x", type), 3));
    cases.push_back(numbered_case(long_body("%y: inout T[3,50]", "y", type), 3));
  }
  expect_interpreters_bits(cases);
  const auto has_masks = [&](size_t number, int64_t bytes) {
    return ir_of(cases[number].kernel, bytes).find("masked.store") != std::string::npos;
  };
  EXPECT_FALSE(has_masks(0, 32));
  EXPECT_TRUE(has_masks(1, 32));
  EXPECT_TRUE(has_masks(2, 32));
  EXPECT_TRUE(has_masks(0, 64));
}

TEST(RowPatterns, WindowsOfMemory) {
  const std::vector<MemoryWindow> windows = windows_of({9, 0, 3, 2, 8, 20}, 4);
  ASSERT_EQ(windows.size(), 3U);
  EXPECT_EQ(windows[0].begin, 0);
  EXPECT_EQ(windows[0].size, 4);
  EXPECT_EQ(windows[1].begin, 8);
  EXPECT_EQ(windows[1].size, 2);
  EXPECT_EQ(windows[2].begin, 20);
  EXPECT_EQ(place_within(23, {2, 4, 5}), (std::vector<int64_t>{1, 0, 3}));
}

}  // namespace
}  // namespace tenon::cpu
