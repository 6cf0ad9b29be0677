// cholesky and triangular_solve compared with formulas written as loops.
#include <algorithm>
#include <cmath>

#include "hlo/decomposition/decomposition_test_util.h"
#include "hlo/import/import.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

// --- Cholesky

OpCall cholesky(bool lower, const std::string& type) {
  return {"stablehlo.cholesky", fmt::format("lower = {}", lower), {type}, {}};
}

TEST(Cholesky, LowerReadsItsTriangleAlone) {
  // L = [2 0 0; 1 3 0; -1 2 1]
  const auto results =
      cholesky(true, "3x3xf64")({reals({3, 3}, {4, NAN, NAN, 2, 10, NAN, -2, 5, 6})});
  expect_near(reals_of(results[0]), {2, 0, 0, 1, 3, 0, -1, 2, 1});
}

TEST(Cholesky, UpperReadsItsTriangleAlone) {
  const auto results =
      cholesky(false, "3x3xf64")({reals({3, 3}, {4, 2, -2, NAN, 10, 5, NAN, NAN, 6})});
  expect_near(reals_of(results[0]), {2, 1, -1, 0, 3, 2, 0, 0, 1});
}

TEST(Cholesky, BatchesStandAlone) {
  // The second matrix is not positive definite; this does not affect the first.
  const auto results = cholesky(true, "2x2x2xf64")({reals({2, 2, 2}, {4, 2, 2, 5, 1, 2, 2, 1})});
  const Reals factor = reals_of(results[0]);
  expect_near({factor.begin(), factor.begin() + 4}, {2, 0, 1, 2});
  EXPECT_TRUE(std::isnan(factor[7]));
}

TEST(Cholesky, PivotsThatAreNotPositiveGiveNan) {
  for (const double pivot : {0.0, -0.0, -1.0, static_cast<double>(NAN)}) {
    const auto results = cholesky(true, "2x2xf64")({reals({2, 2}, {pivot, 0, 1, 1})});
    expect_near(reals_of(results[0]), {NAN, 0, NAN, NAN});
  }
}

TEST(Cholesky, OfAMatrixThatIsNotPositiveDefiniteEveryElementIsNan) {
  // The first pivot is positive, the second is not.
  for (const bool lower : {true, false}) {
    const auto results = cholesky(lower, "2x2xf64")({reals({2, 2}, {1, 1, 1, 1})});
    expect_near(reals_of(results[0]), lower ? Reals{NAN, 0, NAN, NAN} : Reals{NAN, NAN, 0, NAN});
  }
}

TEST(Cholesky, NarrowTypesAreComputedInF32) {
  // 1 + 2^-9 is not representable in bf16; it must not be rounded before the last pivot is
  // subtracted.
  const auto results =
      cholesky(true, "2x2xbf16")({reals({2, 2}, {1, 0, 0x1.1p-4, 1}, ElementType::kBF16)});
  const double exact = std::sqrt(1 - 0x1.1p-4 * 0x1.1p-4);
  EXPECT_EQ(reals_of(results[0])[3], round_to(ElementType::kBF16, exact));
}

TEST(Cholesky, Complex) {
  // L = [2 0; 1+i 3]: A = [4, 2-2i; 2+2i, 11]; imaginary parts on the diagonal are not read.
  const Complexes a = {{4, 7}, {2, -2}, {2, 2}, {11, -7}};
  const auto lower = cholesky(true, "2x2xcomplex<f64>")({complexes({2, 2}, a)});
  const auto upper = cholesky(false, "2x2xcomplex<f64>")({complexes({2, 2}, a)});
  const Complexes expected_lower = {2, 0, {1, 1}, 3}, expected_upper = {2, {1, -1}, 0, 3};
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_LT(std::abs(lower[0].get_complex(i) - expected_lower[static_cast<size_t>(i)]), 1e-14);
    EXPECT_LT(std::abs(upper[0].get_complex(i) - expected_upper[static_cast<size_t>(i)]), 1e-14);
  }
}

TEST(Cholesky, Empty) {
  EXPECT_EQ(cholesky(true, "0x0xf32")({reals({0, 0}, {}, ElementType::kF32)})[0].element_count(),
            0);
}

// --- Triangular solve: op(a) x = b, or x op(a) = b, for known x

TEST(TriangularSolve, AllForms) {
  constexpr size_t kN = 3, kM = 2;
  const Reals parts = some_reals(40, 5);
  for (const bool left : {true, false}) {
    for (const bool lower : {true, false}) {
      for (const bool unit : {true, false}) {
        for (const std::string form : {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"}) {
          SCOPED_TRACE(fmt::format("left {} lower {} unit {} {}", left, lower, unit, form));
          // `a` as given, with NaN where it must not be read, and op(a) as used.
          Complexes given(kN * kN), used(kN * kN), x(kN * kM), b(kN * kM);
          for (size_t i = 0; i < kN; ++i) {
            for (size_t j = 0; j < kN; ++j) {
              const bool read = lower ? i >= j : i <= j;
              std::complex<double> value(parts[i * kN + j] + (i == j ? 3 : 0),
                                         parts[10 + i * kN + j]);
              given[i * kN + j] = !read || (unit && i == j) ? NAN : value;
              if (!read) value = 0;
              if (unit && i == j) value = 1;
              const size_t place = form == "NO_TRANSPOSE" ? i * kN + j : j * kN + i;
              used[place] = form == "ADJOINT" ? std::conj(value) : value;
            }
          }
          for (size_t i = 0; i < x.size(); ++i) x[i] = {parts[20 + i], parts[30 + i]};
          // x is 3x2 on the left side's right, 2x3 otherwise.
          for (size_t i = 0; i < kN; ++i) {
            for (size_t k = 0; k < kN; ++k) {
              for (size_t m = 0; m < kM; ++m) {
                if (left) b[i * kM + m] += used[i * kN + k] * x[k * kM + m];
                if (!left) b[m * kN + i] += x[m * kN + k] * used[k * kN + i];
              }
            }
          }
          const OpCall op{"stablehlo.triangular_solve",
                          fmt::format("left_side = {}, lower = {}, unit_diagonal = {}, transpose_a "
                                      "= #stablehlo<transpose {}>",
                                      left, lower, unit, form),
                          {left ? "3x2xcomplex<f64>" : "2x3xcomplex<f64>"},
                          {}};
          const auto solved =
              op({complexes({3, 3}, given), complexes(left ? Dims{3, 2} : Dims{2, 3}, b)});
          for (size_t i = 0; i < x.size(); ++i) {
            EXPECT_LT(std::abs(solved[0].get_complex(static_cast<int64_t>(i)) - x[i]), 1e-13);
          }
        }
      }
    }
  }
}

TEST(TriangularSolve, Empty) {
  const OpCall op{"stablehlo.triangular_solve",
                  "left_side = true, lower = true, unit_diagonal = false, transpose_a = "
                  "#stablehlo<transpose NO_TRANSPOSE>",
                  {"0x2xf64"},
                  {}};
  EXPECT_EQ(op({reals({0, 0}, {}), reals({0, 2}, {})})[0].element_count(), 0);
}

TEST(TriangularSolve, Batched) {
  const OpCall op{"stablehlo.triangular_solve",
                  "left_side = true, lower = true, unit_diagonal = false, transpose_a = "
                  "#stablehlo<transpose NO_TRANSPOSE>",
                  {"2x2x1xf32"},
                  {}};
  const auto solved = op({reals({2, 2, 2}, {2, 0, 1, 4, 1, 0, 3, 2}, ElementType::kF32),
                          reals({2, 2, 1}, {4, 10, 5, 1}, ElementType::kF32)});
  EXPECT_EQ(reals_of(solved[0]), (Reals{2, 2, 5, -7}));
}

// --- Blocks, and many small matrices

// `count` lower triangular matrices with diagonals near 2.
Reals triangles(size_t count, size_t n, uint64_t seed) {
  Reals l = some_reals(count * n * n, seed);
  for (size_t i = 0; i < l.size(); ++i) {
    const size_t row = i / n % n, column = i % n;
    l[i] = column > row ? 0 : column == row ? 2 + l[i] / 4 : l[i] / static_cast<double>(n);
  }
  return l;
}

// x y, or x y^T, of each of `count` pairs of matrices.
Reals products(size_t count, size_t n, size_t width, const Reals& x, const Reals& y,
               bool transposed) {
  Reals z(count * n * width);
  for (size_t i = 0; i < z.size(); ++i) {
    const size_t matrix = i / (n * width), row = i / width % n, column = i % width;
    for (size_t k = 0; k < n; ++k) {
      const size_t other = transposed ? column * n + k : k * width + column;
      z[i] += x[(matrix * n + row) * n + k] * y[matrix * n * width + other];
    }
  }
  return z;
}

int64_t count_ops(const std::string& text, OpCode code) {
  const auto module = import_module(text, "t");
  EXPECT_TRUE(module) << module.error().to_string();
  EXPECT_TRUE(decompose(**module));
  return std::ranges::count(*(*module)->entry(), code, &Instruction::code);
}

struct Blocks {
  int64_t batch;
  int64_t size;
  int64_t loops;     ///< The loops of its decomposition.
  int64_t products;  ///< The products outside of loops.
};
// Matrices are halved into loops of 32 columns; many of 8 rows have none.
constexpr Blocks kBlocks[] = {{1, 32, 1, 0},    {1, 64, 3, 1},  {1, 65, 5, 2},
                              {1, 200, 17, 10}, {16, 40, 2, 1}, {15, 40, 3, 1},
                              {16, 8, 0, 0},    {20, 3, 0, 0},  {16, 9, 1, 0}};

TEST(Cholesky, ByHalvesAndByElements) {
  for (const auto& [batch, size, loops, dots] : kBlocks) {
    SCOPED_TRACE(fmt::format("{} of {}", batch, size));
    const auto count = static_cast<size_t>(batch), n = static_cast<size_t>(size);
    const std::string type = fmt::format("{}x{}x{}xf64", batch, size, size);
    const Reals l = triangles(count, n, 5);
    Reals a = products(count, n, n, l, l, true);
    // The other triangle is not read.
    for (size_t i = 0; i < a.size(); ++i) {
      if (i % n > i / n % n) a[i] = NAN;
    }
    const std::string text = cholesky(true, type).text({reals({batch, size, size}, a)});
    EXPECT_EQ(count_ops(text, OpCode::kWhile), loops);
    EXPECT_EQ(count_ops(text, OpCode::kDotGeneral), dots);
    expect_near(reals_of(cholesky(true, type)({reals({batch, size, size}, a)})[0]), l, 1e-11);
    // One that is not positive definite.
    a[(n * n) - 1] = -1;
    const Reals bad = reals_of(cholesky(true, type)({reals({batch, size, size}, a)})[0]);
    EXPECT_TRUE(std::isnan(bad[0]) && std::isnan(bad[n * n - 1]));
    if (batch > 1) {
      EXPECT_NEAR(bad[n * n], l[n * n], 1e-11);
    }
  }
}

TEST(Cholesky, ByHalvesOfComplexNumbers) {
  constexpr size_t kN = 70;
  const Reals parts = some_reals(2 * kN * kN, 9);
  Complexes l(kN * kN), a(kN * kN);
  for (size_t i = 0; i < l.size(); ++i) {
    const size_t row = i / kN, column = i % kN;
    if (column < row) l[i] = std::complex(parts[i], parts[i + kN * kN]) / 70.0;
    if (column == row) l[i] = 2 + parts[i] / 4;
  }
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t k = 0; k < kN; ++k) a[i] += l[i / kN * kN + k] * std::conj(l[i % kN * kN + k]);
  }
  for (const bool lower : {true, false}) {
    const auto factor = cholesky(lower, "70x70xcomplex<f64>")({complexes({70, 70}, a)});
    for (size_t i = 0; i < a.size(); ++i) {
      const size_t mirrored = i % kN * kN + i / kN;
      const std::complex<double> expected = lower ? l[i] : std::conj(l[mirrored]);
      EXPECT_LT(std::abs(factor[0].get_complex(static_cast<int64_t>(i)) - expected), 1e-12) << i;
    }
  }
}

TEST(TriangularSolve, ByHalvesAndByElements) {
  struct System {
    Blocks blocks;
    int64_t width;
  };
  // Where the right side has few columns, each row is a step, else 32 rows are one; those of more
  // than 16 such blocks end in a loop over blocks.
  constexpr System kSystems[] = {{{1, 128, 1, 0}, 2},  {{1, 130, 2, 1}, 2},  {{1, 300, 3, 2}, 2},
                                 {{1, 32, 1, 0}, 16},  {{1, 128, 4, 3}, 16}, {{1, 70, 3, 2}, 20},
                                 {{1, 520, 5, 4}, 16}, {{16, 33, 1, 1}, 2},  {{16, 8, 0, 0}, 2},
                                 {{20, 3, 0, 0}, 2},   {{15, 8, 1, 0}, 2}};
  for (const auto& [blocks, width] : kSystems) {
    const auto& [batch, size, loops, dots] = blocks;
    for (const bool lower : {true, false}) {
      SCOPED_TRACE(fmt::format("{} of {}, {} columns, lower {}", batch, size, width, lower));
      const auto count = static_cast<size_t>(batch), n = static_cast<size_t>(size);
      Reals m = triangles(count, n, 5);
      if (!lower) std::ranges::reverse(m);
      const Reals x = some_reals(count * n * static_cast<size_t>(width), 6);
      const Reals r = products(count, n, static_cast<size_t>(width), m, x, false);
      for (size_t i = 0; i < m.size(); ++i) {
        if (lower ? i % n > i / n % n : i % n < i / n % n) m[i] = NAN;
      }
      const std::string tall = fmt::format("{}x{}x{}xf64", batch, size, width);
      const std::string form = fmt::format(
          "left_side = true, lower = {}, unit_diagonal = false, transpose_a = "
          "#stablehlo<transpose NO_TRANSPOSE>",
          lower);
      const OpCall op{"stablehlo.triangular_solve", form, {tall}, {}};
      const std::vector<Literal> arguments = {reals({batch, size, size}, m),
                                              reals({batch, size, width}, r)};
      EXPECT_EQ(count_ops(op.text(arguments), OpCode::kWhile), loops);
      EXPECT_EQ(count_ops(op.text(arguments), OpCode::kDotGeneral), dots);
      expect_near(reals_of(op(arguments)[0]), x, 1e-11);
    }
  }
}

}  // namespace
}  // namespace tenon::hlo
