// Contractions of every type, in every layout, with sizes near those of tiles and blocks. Operands
// are small integers, so that sums are exact and results are rounded once.
#include "backends/cpu/contraction/contraction.h"
#include "backends/cpu/contraction/tiling.h"

#include <gtest/gtest.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Verifier.h>

#include <map>
#include <tuple>

#include "backends/cpu/compiling.h"
#include "backends/cpu/cpu_test_util.h"
#include "backends/llvm/host.h"
#include "core/base/process/full_test_util.h"
#include "core/base/random.h"

namespace tenon::cpu {
namespace {

using enum ElementType;

struct Types {
  ElementType lhs, rhs, result;
};

// [batch, m, k] and [batch, k, n], either transposed.
struct Sizes {
  int64_t batch, m, n, k;
  bool lhs_transposed = false;
  bool rhs_transposed = false;
};

Literal small_numbers(ElementType type, const Dims& dims, Random& random) {
  Literal literal(Shape(type, dims));
  const bool is_signed = is_float(type) || is_signed_integer(type);
  for (int64_t i = 0; i < literal.element_count(); ++i) {
    literal.set_double(i, static_cast<double>(random.below(5)) - (is_signed ? 2 : 0));
  }
  return literal;
}

std::vector<double> numbers_of(const Literal& literal) {
  std::vector<double> list;
  for (int64_t i = 0; i < literal.element_count(); ++i) list.push_back(literal.get_double(i));
  return list;
}

double exact_sum(const Sizes& s, const std::vector<double>& lhs, const std::vector<double>& rhs,
                 int64_t b, int64_t i, int64_t j) {
  double sum = 0;
  for (int64_t k = 0; k < s.k; ++k) {
    const int64_t in_lhs = b * s.m * s.k + (s.lhs_transposed ? k * s.m + i : i * s.k + k);
    const int64_t in_rhs = b * s.k * s.n + (s.rhs_transposed ? j * s.k + k : k * s.n + j);
    sum += lhs[static_cast<size_t>(in_lhs)] * rhs[static_cast<size_t>(in_rhs)];
  }
  return sum;
}

void expect_right(const Types& types, const Sizes& s, int64_t vector_bytes,
                  MatrixUnit unit = MatrixUnit::kNone, bool multiplies_two = false) {
  SCOPED_TRACE(fmt::format("{} x {} -> {}, batch {} m {} n {} k {} {}{}", name_of(types.lhs),
                           name_of(types.rhs), name_of(types.result), s.batch, s.m, s.n, s.k,
                           s.lhs_transposed ? "lhs transposed " : "",
                           s.rhs_transposed ? "rhs transposed" : ""));
  const auto dims = [&](int64_t rows, int64_t columns, bool transposed) {
    return transposed ? Dims{s.batch, columns, rows} : Dims{s.batch, rows, columns};
  };
  program::Contraction call;
  call.lhs_batch = call.rhs_batch = {0};
  call.lhs_contracting = {s.lhs_transposed ? 1 : 2};
  call.rhs_contracting = {s.rhs_transposed ? 2 : 1};
  Random random(static_cast<uint64_t>(s.m * 31 + s.n * 7 + s.k));
  std::vector<Literal> buffers = {
      small_numbers(types.lhs, dims(s.m, s.k, s.lhs_transposed), random),
      small_numbers(types.rhs, dims(s.k, s.n, s.rhs_transposed), random),
      Literal(Shape(types.result, {s.batch, s.m, s.n}))};
  const Shape shapes[] = {buffers[0].shape(), buffers[1].shape()};
  auto loops = loops_of(call, shapes, buffers[2].shape());
  ASSERT_TRUE(loops);
  loops->unit = unit;
  loops->multiplies_two = multiplies_two;
  auto code = compile_contraction(*loops, "contraction", vector_bytes);
  ASSERT_TRUE(code) << code.error().to_string();
  const auto library = load_library(*std::move(code));
  ASSERT_TRUE(library) << library.error().to_string();
  testing::run(**library, 0, buffers);
  Literal rounded(buffers[2].shape());
  const std::vector<double> lhs = numbers_of(buffers[0]);
  const std::vector<double> rhs = numbers_of(buffers[1]);
  for (int64_t at = 0; at < rounded.element_count(); ++at) {
    const int64_t i = at / s.n % s.m;
    rounded.set_double(at, exact_sum(s, lhs, rhs, at / (s.m * s.n), i, at % s.n));
    ASSERT_EQ(buffers[2].get_double(at), rounded.get_double(at)) << "element " << at;
  }
}

// Vectors of the host, and narrower ones that it also supports: one of these, which the types and
// the layout pick, or all with TENON_FULL.
std::vector<int64_t> widths_for(const Types& types, const Sizes& s) {
  const int64_t widest = codegen::host().vector_bytes;
  std::vector<int64_t> narrower;
  for (const int64_t bytes : {4, 16, 32}) {
    if (bytes < widest) narrower.push_back(bytes);
  }
  if (!tests_take_all() && !narrower.empty()) {
    const int picked = static_cast<int>(types.lhs) + 5 * static_cast<int>(types.rhs) +
                       7 * static_cast<int>(types.result) + (s.lhs_transposed ? 1 : 0) +
                       (s.rhs_transposed ? 2 : 0) + static_cast<int>(s.m + s.k);
    narrower = {narrower[static_cast<size_t>(picked) % narrower.size()]};
  }
  narrower.push_back(widest);
  return narrower;
}

void expect_right(const Types& types, const Sizes& s) {
  for (const int64_t bytes : widths_for(types, s)) {
    SCOPED_TRACE(bytes);
    expect_right(types, s, bytes);
  }
}

std::vector<Types> all_types() {
  std::vector<Types> list = {{kF32, kF32, kF32},   {kF64, kF64, kF64},   {kBF16, kBF16, kBF16},
                             {kBF16, kBF16, kF32}, {kBF16, kBF16, kF64}, {kF32, kF32, kBF16},
                             {kS32, kS32, kS32},   {kS8, kS8, kS32},     {kU8, kU8, kU32},
                             {kS64, kS64, kS64},   {kU16, kU16, kU16},   {kF32, kS8, kF32},
                             {kU8, kF32, kF32},    {kBF16, kS8, kBF16},  {kF64, kS8, kF64}};
  if (codegen::host().converts_half) {
    list.push_back({kF16, kF16, kF16});
    list.push_back({kF16, kF16, kF32});
    list.push_back({kF16, kF16, kF64});
  }
  return list;
}

TEST(Contraction, EveryTypeInEveryLayout) {
  for (const Types& types : all_types()) {
    for (const bool lhs : {false, true}) {
      for (const bool rhs : {false, true}) {
        expect_right(types, {2, 21, 37, 45, lhs, rhs});
        expect_right(types, {1, 1, 70, 33, lhs, rhs});
        expect_right(types, {1, 70, 1, 33, lhs, rhs});
      }
    }
  }
}

// The units that this processor has, each with the types that it multiplies.
std::vector<std::pair<MatrixUnit, Types>> all_units() {
  const codegen::TargetCpu& host = codegen::host();
  std::vector<std::pair<MatrixUnit, Types>> list;
  const auto add = [&](bool has, MatrixUnit unit, const std::vector<Types>& types) {
    for (const Types& each : types) {
      if (has) list.emplace_back(unit, each);
    }
  };
  add(host.tiles, MatrixUnit::kTilesBf16, {{kBF16, kBF16, kBF16}, {kBF16, kBF16, kF32}});
  add(host.tiles, MatrixUnit::kTilesBytes,
      {{kS8, kS8, kS32}, {kU8, kS8, kS32}, {kS8, kU8, kS32}, {kU8, kU8, kU32}, {kS8, kS8, kS8}});
  add(host.dots_words, MatrixUnit::kDotsWords,
      {{kS8, kS8, kS32}, {kS16, kU8, kS32}, {kS8, kS16, kS16}, {kU8, kU8, kU32}});
  return list;
}

// Tiles and blocks that are full and those that are not, in every layout: of the first types of
// each unit all of them, of others one.
TEST(MatrixUnits, EveryTypeInEveryLayout) {
  const auto units = all_units();
  if (units.empty()) GTEST_SKIP() << "this processor has none";
  MatrixUnit last = MatrixUnit::kNone;
  for (const auto& [unit, types] : units) {
    SCOPED_TRACE(static_cast<int>(unit));
    const bool is_first = unit != last || tests_take_all();
    last = unit;
    for (const bool lhs : {false, true}) {
      for (const bool rhs : {false, true}) {
        expect_right(types, {2, 21, 37, 45, lhs, rhs}, 64, unit);
        if (!is_first) continue;
        expect_right(types, {1, 64, 96, 128, lhs, rhs}, 64, unit);
        expect_right(types, {1, 8, 10, 17, lhs, rhs}, 64, unit);
        expect_right(types, {1, 48, 16, 64, lhs, rhs}, 64, unit);
        expect_right(types, {1, 33, 49, 1030, lhs, rhs}, 64, unit);
      }
    }
    if (!is_first) continue;
    expect_right(types, {1, 40, 24, 8300}, 64, unit);    // Several blocks of products,
    expect_right(types, {1, 520, 20, 8256}, 64, unit);   // and of rows,
    expect_right(types, {1, 150, 1100, 200}, 64, unit);  // and of columns.
  }
}

// The code of each unit, on any processor: it is valid, and its own instruction adds the products.
TEST(MatrixUnits, EachHasItsInstruction) {
  const std::tuple<MatrixUnit, Types, const char*> all[] = {
      {MatrixUnit::kTilesBf16, {kBF16, kBF16, kBF16}, "llvm.x86.tdpbf16ps"},
      {MatrixUnit::kTilesBytes, {kS8, kS8, kS32}, "llvm.x86.tdpbssd"},
      {MatrixUnit::kTilesBytes, {kU8, kU8, kU32}, "llvm.x86.tdpbuud"},
      {MatrixUnit::kDotsWords, {kS16, kS16, kS32}, "llvm.x86.avx512.vpdpwssd.512"}};
  for (const auto& [unit, types, instruction] : all) {
    const Shape shapes[] = {Shape(types.lhs, {40, 70}), Shape(types.rhs, {70, 24})};
    auto loops = loops_of({{}, {}, {1}, {0}}, shapes, Shape(types.result, {40, 24}));
    ASSERT_TRUE(loops);
    loops->unit = unit;
    llvm::LLVMContext context;
    llvm::Module module("units", context);
    const ContractionFunction made = emit_contraction(module, *loops, "contraction", 64);
    EXPECT_FALSE(llvm::verifyModule(module)) << instruction;
    EXPECT_GT(made.kernel.scratch_bytes, 0);
    std::map<std::string, size_t> calls;
    for (const llvm::Function& function : module) {
      for (const llvm::Instruction& each : llvm::instructions(function)) {
        const auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&each);
        if (call != nullptr) ++calls[call->getCalledFunction()->getName().str()];
      }
    }
    EXPECT_GT(calls[instruction], 0U) << instruction;
    EXPECT_EQ(calls["llvm.fma.v16f32"], 0U) << instruction;
    EXPECT_EQ(calls["llvm.x86.tilerelease"], has_tiles(unit) ? 1U : 0U) << instruction;
  }
}

// The largest products, whose sums of pairs leave 16 bits.
TEST(MatrixUnits, TheLargestIntegersOfWords) {
  if (!codegen::host().dots_words) GTEST_SKIP() << "this processor has no AVX512-VNNI";
  const Shape shapes[] = {Shape(kS16, {8, 34}), Shape(kS8, {34, 8})};
  auto loops = loops_of({{}, {}, {1}, {0}}, shapes, Shape(kS32, {8, 8}));
  ASSERT_TRUE(loops);
  loops->unit = MatrixUnit::kDotsWords;
  auto code = compile_contraction(*loops, "contraction", 64);
  ASSERT_TRUE(code) << code.error().to_string();
  const auto library = load_library(*std::move(code));
  ASSERT_TRUE(library) << library.error().to_string();
  std::vector<Literal> buffers = {Literal(shapes[0]), Literal(shapes[1]),
                                  Literal(Shape(kS32, {8, 8}))};
  for (int64_t i = 0; i < buffers[0].element_count(); ++i) buffers[0].set_integer(i, -32768);
  for (int64_t i = 0; i < buffers[1].element_count(); ++i) buffers[1].set_integer(i, -128);
  testing::run(**library, 0, buffers);
  for (int64_t i = 0; i < 64; ++i) EXPECT_EQ(buffers[2].get_integer(i), 34 * 32768 * 128);
}

// A processor's features, types and sizes choose.
TEST(MatrixUnits, AreChosenWhereTheyGain) {
  codegen::TargetCpu cpu;
  const auto chosen = [&](const Types& types, const Sizes& s) {
    const Shape shapes[] = {Shape(types.lhs, {s.m, s.k}), Shape(types.rhs, {s.k, s.n})};
    const auto loops = loops_of({{}, {}, {1}, {0}}, shapes, Shape(types.result, {s.m, s.n}));
    return loops ? matrix_unit_of(cpu, *loops) : MatrixUnit::kNone;
  };
  const Types halves{kBF16, kBF16, kF32}, bytes{kS8, kU8, kS32}, words{kS16, kU8, kS32};
  const Sizes large{1, 64, 64, 64};
  for (const Types& types : {halves, bytes, words})
    EXPECT_EQ(chosen(types, large), MatrixUnit::kNone);
  cpu.dots_words = true;
  EXPECT_EQ(chosen(halves, large), MatrixUnit::kNone);
  EXPECT_EQ(chosen(bytes, large), MatrixUnit::kDotsWords);
  cpu.tiles = true;
  EXPECT_EQ(chosen(halves, large), MatrixUnit::kTilesBf16);
  EXPECT_EQ(chosen(bytes, large), MatrixUnit::kTilesBytes);
  EXPECT_EQ(chosen(words, large), MatrixUnit::kDotsWords);
  EXPECT_EQ(chosen({kS8, kS8, kS64}, large), MatrixUnit::kNone);
  EXPECT_EQ(chosen({kU16, kU16, kU32}, large), MatrixUnit::kNone);
  EXPECT_EQ(chosen({kF16, kF16, kF32}, large), MatrixUnit::kNone);
  EXPECT_EQ(chosen(halves, {1, 7, 64, 64}), MatrixUnit::kNone);
  EXPECT_EQ(chosen(halves, {1, 64, 64, 15}), MatrixUnit::kNone);
}

// Several blocks of products, workgroups and panels.
TEST(Contraction, LargerThanABlock) {
  for (const Types& types : all_types()) {
    expect_right(types, {1, 150, 200, 600});
    expect_right(types, {1, 60, 70, 1030, true, true});
    expect_right(types, {1, 20, 40, 530});
  }
}

// Tiles of three vectors of columns, where two vectors are multiplied at a time.
TEST(Contraction, ThreeVectorsAbreast) {
  const int64_t widest = codegen::host().vector_bytes;
  if (widest < 64) GTEST_SKIP() << "this processor has no vectors of 64 bytes";
  const auto vectors = [](int64_t columns, bool two) {
    const Shape shapes[] = {Shape(kF32, {64, 32}), Shape(kF32, {32, columns})};
    auto loops = loops_of({{}, {}, {1}, {0}}, shapes, Shape(kF32, {64, columns}));
    if (!loops) return int64_t{0};
    loops->multiplies_two = two;
    return tiling_of(*loops, 64).vectors;
  };
  EXPECT_EQ(vectors(128, false), 2);
  EXPECT_EQ(vectors(128, true), 3);
  EXPECT_EQ(vectors(64, true), 2) << "one vector would be left";
  EXPECT_EQ(vectors(256, true), 3) << "one of many is left";
  for (const Types& types : {Types{kF32, kF32, kF32}, Types{kBF16, kBF16, kBF16}}) {
    for (const Sizes& s : {Sizes{2, 21, 37, 45}, Sizes{1, 150, 200, 600, true}, Sizes{1, 9, 48, 33},
                           Sizes{1, 40, 24, 530, false, true}, Sizes{1, 60, 100, 1030, true, true}})
      expect_right(types, s, widest, MatrixUnit::kNone, true);
  }
}

// Lines along memory, of which one operand has few: tiles of dot products, nothing is packed.
TEST(Contraction, FewLinesTimesManyAlongMemory) {
  const std::vector<Sizes> all = {{2, 40, 3, 33, false, true},   {1, 5, 200, 70, false, true},
                                  {1, 70, 9, 600, false, true},  {1, 9, 150, 1030, false, true},
                                  {1, 37, 48, 530, false, true}, {3, 8, 8, 16, false, true},
                                  {1, 2, 31, 2049, false, true}, {1, 50, 2, 17, false, true}};
  for (const Sizes& s : all) {
    const Shape shapes[] = {Shape(kF32, {s.batch, s.m, s.k}), Shape(kF32, {s.batch, s.n, s.k})};
    const auto loops = loops_of({{0}, {0}, {2}, {2}}, shapes, Shape(kF32, {s.batch, s.m, s.n}));
    ASSERT_TRUE(loops);
    const Tiling tiling = tiling_of(*loops, 64);
    EXPECT_TRUE(tiling.is_dots);
    EXPECT_FALSE(tiling.packs_rhs || tiling.packs_lhs);
    EXPECT_GE(tiling.rows * tiling.dots, 6);
    for (const Types& types : all_types()) expect_right(types, s);
  }
}

// Few rows times a matrix that no cache holds: some of its lines at a time, along memory.
TEST(Contraction, FewRowsTimesALargeMatrix) {
  for (const int64_t rows : {1, 3}) {
    const Shape shapes[] = {Shape(kF32, {1, rows, 130}), Shape(kF32, {1, 130, 2100})};
    const auto loops = loops_of({{0}, {0}, {2}, {1}}, shapes, Shape(kF32, {1, rows, 2100}));
    ASSERT_TRUE(loops);
    const Tiling tiling = tiling_of(*loops, 64);
    EXPECT_EQ(tiling.sums_a_block, 8);
    EXPECT_FALSE(tiling.packs_rhs);
    EXPECT_TRUE(tiling.streams && tiling.joins);
    expect_right({kF32, kF32, kF32}, {1, rows, 2100, 130});
    expect_right({kF32, kF32, kBF16}, {1, rows, 2100, 131});
  }
}

// Adjacent workgroups of such columns are computed as one, in any range that a thread gets.
TEST(Contraction, AnyRangeOfJoinedWorkgroups) {
  const Shape shapes[] = {Shape(kF32, {2, 130}), Shape(kF32, {130, 2100})};
  const Shape result(kF32, {2, 2100});
  const auto loops = loops_of({{}, {}, {1}, {0}}, shapes, result);
  ASSERT_TRUE(loops);
  auto code = compile_contraction(*loops, "contraction", codegen::host().vector_bytes);
  ASSERT_TRUE(code) << code.error().to_string();
  const int64_t workgroups = code->kernels[0].workgroups;
  ASSERT_GE(workgroups, 8);
  const auto library = load_library(*std::move(code));
  ASSERT_TRUE(library) << library.error().to_string();
  Random random(1);
  Literal lhs(shapes[0]), rhs(shapes[1]);
  for (Literal* each : {&lhs, &rhs}) {
    for (int64_t i = 0; i < each->element_count(); ++i) {
      each->set_double(i, static_cast<double>(random.below(2001)) / 999 - 1);
    }
  }
  const uint32_t go = 0;
  const volatile uint32_t* const stops[] = {&go, &go};
  const auto in_parts_of = [&](int64_t part) {
    Literal to(result);
    std::byte* const buffers[] = {lhs.mutable_data().data(), rhs.mutable_data().data(),
                                  to.mutable_data().data()};
    for (int64_t begin = 0; begin < workgroups; begin += part) {
      (*library)->entry(0)(buffers, nullptr, begin, std::min(begin + part, workgroups), nullptr,
                           stops);
    }
    return to;
  };
  const Literal whole = in_parts_of(workgroups);
  for (const int64_t part : {1, 3, 5}) EXPECT_EQ(in_parts_of(part), whole) << part;
}

// Short lines of a matrix that no cache holds are read one by one, others eight at a time.
TEST(Contraction, LinesOfALargeMatrixTimesAVector) {
  const auto rows = [](int64_t m, int64_t k) {
    const Shape shapes[] = {Shape(kF32, {m, k}), Shape(kF32, {k})};
    const auto loops = loops_of({{}, {}, {1}, {0}}, shapes, Shape(kF32, {m}));
    return loops ? tiling_of(*loops, 64).rows : 0;
  };
  EXPECT_EQ(rows(4000, 600), 1);
  EXPECT_EQ(rows(1000, 600), 8);
  EXPECT_EQ(rows(4000, 2000), 8);
  expect_right({kF32, kF32, kF32}, {1, 4000, 1, 600});
}

// With sixteen registers packing pays from fewer rows on.
TEST(Contraction, TilesOfSixteenRegisters) {
  const auto tiling = [](const Sizes& s, int64_t vector_bytes) {
    const Shape rhs = s.rhs_transposed ? Shape(kF32, {s.n, s.k}) : Shape(kF32, {s.k, s.n});
    const Shape shapes[] = {Shape(kF32, {s.m, s.k}), rhs};
    const auto loops =
        loops_of({{}, {}, {1}, {s.rhs_transposed ? 1 : 0}}, shapes, Shape(kF32, {s.m, s.n}));
    return loops ? tiling_of(*loops, vector_bytes) : Tiling();
  };
  const Sizes some_rows = {1, 32, 256, 1024};
  EXPECT_FALSE(tiling(some_rows, 64).packs_rhs);
  EXPECT_TRUE(tiling(some_rows, 32).packs_rhs);
  EXPECT_FALSE(tiling({1, 12, 256, 1024}, 32).packs_rhs);
  const Sizes some_lines = {1, 16, 768, 3072, false, true};
  EXPECT_TRUE(tiling(some_lines, 64).is_dots);
  EXPECT_FALSE(tiling(some_lines, 32).is_dots);
  EXPECT_TRUE(tiling({1, 8, 768, 3072, false, true}, 32).is_dots);
}

// Lines that are whole pages apart share few sets of a cache: several tiles of few rows pack them,
// and fewer of them are read side by side.
TEST(Contraction, CrowdedLines) {
  const auto tiling = [](int64_t m, int64_t n) {
    const Shape shapes[] = {Shape(kF32, {m, 300}), Shape(kF32, {300, n})};
    const auto loops = loops_of({{}, {}, {1}, {0}}, shapes, Shape(kF32, {m, n}));
    return loops ? tiling_of(*loops, 32) : Tiling();
  };
  EXPECT_TRUE(tiling(8, 3072).packs_rhs);
  EXPECT_TRUE(tiling(8, 512).packs_rhs);
  EXPECT_TRUE(tiling(6, 3072).packs_rhs);
  EXPECT_FALSE(tiling(6, 512).packs_rhs);
  EXPECT_FALSE(tiling(8, 1000).packs_rhs);
  EXPECT_EQ(tiling(4, 3072).sums_a_block, 4);
  EXPECT_EQ(tiling(4, 3000).sums_a_block, 8);
  EXPECT_TRUE(tiling(4, 3072).joins);
  for (const int64_t rows : {1, 4, 6, 8, 11}) {
    expect_right({kF32, kF32, kF32}, {1, rows, 1024, 300});
    expect_right({kF64, kF64, kF64}, {1, rows, 512, 300});
  }
}

// Rows that are adjacent in memory, of lines far apart: as many tiles are packed together as a line
// of a cache holds, and at the edge one by one. Rows that are lines are read where they lie.
TEST(Contraction, TilesOfAdjacentRowsArePackedTogether) {
  const auto tiling = [](int64_t m, bool transposed, int64_t vector_bytes) {
    const Shape lhs = transposed ? Shape(kF32, {300, m}) : Shape(kF32, {m, 300});
    const Shape shapes[] = {lhs, Shape(kF32, {300, 280})};
    const auto loops = loops_of({{}, {}, {transposed ? 0 : 1}, {0}}, shapes, Shape(kF32, {m, 280}));
    return loops ? tiling_of(*loops, vector_bytes) : Tiling();
  };
  EXPECT_GT(tiling(150, true, 32).tiles_packed, 1);
  EXPECT_LT(tiling(150, true, 32).sums_a_block, 300);
  EXPECT_FALSE(tiling(150, false, 32).packs_lhs);
  EXPECT_EQ(tiling(128, true, 32).panels, 5);  // of 18: four groups, for several threads
  EXPECT_FALSE(tiling(300, true, 64).packs_lhs);
  EXPECT_TRUE(tiling(300, false, 64).packs_lhs);
  for (const int64_t bytes : {32, 64}) {
    if (bytes > codegen::host().vector_bytes) continue;
    for (const int64_t m : {150, 144, 97}) {
      expect_right({kF32, kF32, kF32}, {1, m, 280, 300, true}, bytes);
      expect_right({kBF16, kBF16, kBF16}, {1, m, 100, 300, true}, bytes);
    }
  }
}

// Panels of columns are shared out evenly, among several workgroups if there is enough work.
TEST(Contraction, WorkgroupsForSeveralThreads) {
  const auto panels = [](int64_t m, int64_t n, int64_t k, int64_t batch = 1) {
    const Shape shapes[] = {Shape(kF32, {batch, m, k}), Shape(kF32, {batch, k, n})};
    const auto loops = loops_of({{0}, {0}, {2}, {1}}, shapes, Shape(kF32, {batch, m, n}));
    return loops ? tiling_of(*loops, 64).panels : 0;
  };
  EXPECT_EQ(panels(32, 256, 1024), 2);     // of 8
  EXPECT_EQ(panels(128, 64, 256), 1);      // of 2
  EXPECT_EQ(panels(64, 256, 64), 4);       // too little work for more than two groups
  EXPECT_EQ(panels(32, 256, 1024, 8), 4);  // enough by the batch
  EXPECT_EQ(panels(1024, 1024, 64), 6);    // 32 of them in 6 groups
  expect_right({kF32, kF32, kF32}, {1, 30, 250, 300});
}

Literal run_contraction(const program::Contraction& call, const Literal& lhs, const Literal& rhs,
                        const Shape& result, int64_t vector_bytes) {
  const Shape shapes[] = {lhs.shape(), rhs.shape()};
  auto code =
      compile_contraction(*loops_of(call, shapes, result), "contraction", vector_bytes).value();
  std::vector<Literal> buffers = {lhs, rhs, Literal(result)};
  testing::run(*load_library(std::move(code)).value(), 0, buffers);
  return buffers[2];
}

// A right operand in panels, [panels, products, columns], is read in place, and gives the bits of
// the same one as a matrix; sums are rounded, so that their order shows.
void expect_bits_of_panels(ElementType type, int64_t panel, const Sizes& s, int64_t vector_bytes) {
  SCOPED_TRACE(fmt::format("{} m {} n {} k {} panels of {}, vectors of {}{}", name_of(type), s.m,
                           s.n, s.k, panel, vector_bytes, s.lhs_transposed ? ", lhs across" : ""));
  Random random(static_cast<uint64_t>(s.m + s.k));
  Literal lhs(Shape(type, s.lhs_transposed ? Dims{s.k, s.m} : Dims{s.m, s.k}));
  Literal matrix(Shape(type, {s.k, s.n})), panels(Shape(type, {s.n / panel, s.k, panel}));
  const auto number = [&] { return static_cast<double>(random.below(2001)) / 999 - 1; };
  for (int64_t i = 0; i < lhs.element_count(); ++i) lhs.set_double(i, number());
  for (int64_t i = 0; i < matrix.element_count(); ++i) {
    const int64_t k = i / s.n, column = i % s.n;
    matrix.set_double(i, number());
    panels.set_double((column / panel * s.k + k) * panel + column % panel, matrix.get_double(i));
  }
  const int64_t contracted = s.lhs_transposed ? 0 : 1;
  const program::Contraction of_panels = {{}, {}, {contracted}, {1}};
  const Shape split(type, {s.m, s.n / panel, panel});
  const Shape shapes[] = {lhs.shape(), panels.shape()};
  const auto loops = loops_of(of_panels, shapes, split);
  ASSERT_TRUE(loops);
  EXPECT_EQ(loops->panel, panel);
  EXPECT_EQ(loops->columns.size(), 1U);
  EXPECT_FALSE(tiling_of(*loops, vector_bytes).packs_rhs);
  EXPECT_EQ(panel % tiling_of(*loops, vector_bytes).columns(), 0);
  EXPECT_EQ(run_contraction(of_panels, lhs, panels, split, vector_bytes).reshaped({s.m, s.n}),
            run_contraction({{}, {}, {contracted}, {0}}, lhs, matrix, Shape(type, {s.m, s.n}),
                            vector_bytes));
}

TEST(Contraction, PanelsAreReadInPlace) {
  for (const int64_t bytes : {4, 16, 32, 64}) {
    if (bytes > codegen::host().vector_bytes) continue;
    for (const int64_t rows : {1, 2, 3, 4, 13, 49, 150}) {
      expect_bits_of_panels(kF32, 32, {1, rows, 96, 45}, bytes);
      expect_bits_of_panels(kF32, 128, {1, rows, 256, 9, true}, bytes);
      expect_bits_of_panels(kF64, 16, {1, rows, 48, 33}, bytes);
    }
    // Several blocks of products and groups of panels; fetched ahead, the last ones of others.
    expect_bits_of_panels(kF32, 32, {1, 150, 480, 1030}, bytes);
    expect_bits_of_panels(kF32, 32, {1, 300, 320, 900, true}, bytes);
    expect_bits_of_panels(kS32, 32, {1, 20, 96, 530}, bytes);
  }
}

// Calls of llvm.prefetch in a product of m rows with panels, by the cache that they fetch to.
std::map<std::string, int> fetches_of_panels(int64_t m, int64_t n, int64_t k, int64_t panel) {
  const Shape shapes[] = {Shape(kF32, {m, k}), Shape(kF32, {n / panel, k, panel})};
  const auto loops = loops_of({{}, {}, {1}, {1}}, shapes, Shape(kF32, {m, n / panel, panel}));
  llvm::LLVMContext context;
  llvm::Module module("m", context);
  emit_contraction(module, *loops, "contraction", 64);
  std::map<std::string, int> counts;
  for (const llvm::Function& function : module) {
    for (const llvm::Instruction& each : llvm::instructions(function)) {
      const auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&each);
      if (call == nullptr || call->getIntrinsicID() != llvm::Intrinsic::prefetch) continue;
      const auto locality = llvm::cast<llvm::ConstantInt>(call->getArgOperand(2))->getZExtValue();
      ++counts[locality == 3 ? "nearest" : "near"];
    }
  }
  return counts;
}

// With one tile of rows the panel's own products, with several the next panels, if they are in no
// near cache.
TEST(Contraction, PanelsAreFetchedAhead) {
  const std::map<std::string, int> own = fetches_of_panels(1, 768, 512, 128);
  EXPECT_GE(own.at("nearest"), 128 * 4 / 64) << "each line of a row of the panel";
  EXPECT_FALSE(own.contains("near"));
  const std::map<std::string, int> next = fetches_of_panels(150, 768, 512, 32);
  EXPECT_GE(next.at("near"), 1);
  EXPECT_FALSE(next.contains("nearest"));
  EXPECT_TRUE(fetches_of_panels(150, 192, 512, 32).empty()) << "less than 1 MiB";
}

TEST(Contraction, OtherColumnsAreNoPanels) {
  const auto panel_of = [](ElementType type, const Dims& rhs, int64_t contracted) {
    const Shape shapes[] = {Shape(type, {20, rhs[static_cast<size_t>(contracted)]}),
                            Shape(type, rhs)};
    Dims dims = rhs;
    dims.erase(dims.begin() + contracted);
    dims.insert(dims.begin(), 20);
    const auto loops = loops_of({{}, {}, {1}, {contracted}}, shapes, Shape(type, dims));
    return loops ? loops->panel : -1;
  };
  EXPECT_EQ(panel_of(kF32, {3, 40, 32}, 1), 32);
  EXPECT_EQ(panel_of(kF32, {3, 40, 24}, 1), 0) << "no power of two";
  EXPECT_EQ(panel_of(kF32, {3, 40, 8}, 1), 0) << "narrow";
  EXPECT_EQ(panel_of(kF32, {3, 40, 256}, 1), 0) << "wide";
  EXPECT_EQ(panel_of(kF32, {3, 32, 40}, 2), 0) << "columns apart";
  EXPECT_EQ(panel_of(kBF16, {3, 40, 64}, 1), 0) << "widened";
  EXPECT_EQ(panel_of(kF32, {40, 96}, 0), 0);
}

TEST(Contraction, TypesWithoutCode) {
  const program::Contraction call = {{}, {}, {1}, {0}};
  const auto loops = [&](ElementType operand, ElementType result) {
    const Shape shapes[] = {Shape(operand, {2, 2}), Shape(operand, {2, 2})};
    return loops_of(call, shapes, Shape(result, {2, 2})).has_value();
  };
  EXPECT_TRUE(loops(kBF16, kF32));
  EXPECT_FALSE(loops(kPred, kPred));
  EXPECT_FALSE(loops(kC64, kC64));
  EXPECT_FALSE(loops(kF8E4M3FN, kF32));
  EXPECT_FALSE(loops(kS4, kS32));
  EXPECT_FALSE(loops(kS64, kS32));
  EXPECT_FALSE(loops(kS32, kF32));
  EXPECT_FALSE(loops(kS8, kF32));
  EXPECT_FALSE(loops(kF64, kF16));
  EXPECT_FALSE(loops(kF64, kBF16));
}

TEST(Contraction, LoopsComeBack) {
  const program::Contraction call = {{0}, {0}, {2}, {1}};
  const Shape shapes[] = {Shape(kBF16, {3, 4, 5}), Shape(kBF16, {3, 5, 7})};
  const auto loops = loops_of(call, shapes, Shape(kF32, {3, 4, 7}));
  ASSERT_TRUE(loops);
  const auto back = load_loops(save(*loops));
  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_EQ(save(*back), save(*loops));
  EXPECT_FALSE(load_loops("TNCL"));
}

}  // namespace
}  // namespace tenon::cpu
