// The custom calls of linear algebra: what they give is multiplied out, and compared with the
// matrices that were factored.
#include "hlo/decomposition/linalg/custom_calls.h"

#include <algorithm>
#include <cmath>
#include <complex>

#include "hlo/decomposition/decomposition_test_util.h"
#include "hlo/lower/library_calls.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

using Complex = std::complex<double>;

// One matrix of complex numbers, row-major.
struct Matrix {
  size_t rows = 0, columns = 0;
  std::vector<Complex> elements;

  Matrix(size_t r, size_t c) : rows(r), columns(c), elements(r * c) {}
  Complex& operator()(size_t i, size_t j) { return elements[i * columns + j]; }
  Complex operator()(size_t i, size_t j) const { return elements[i * columns + j]; }
};

Matrix operator*(const Matrix& x, const Matrix& y) {
  Matrix z(x.rows, y.columns);
  for (size_t i = 0; i < x.rows; ++i) {
    for (size_t k = 0; k < x.columns; ++k) {
      for (size_t j = 0; j < y.columns; ++j) z(i, j) += x(i, k) * y(k, j);
    }
  }
  return z;
}
Matrix adjoint(const Matrix& x) {
  Matrix y(x.columns, x.rows);
  for (size_t i = 0; i < x.rows; ++i) {
    for (size_t j = 0; j < x.columns; ++j) y(j, i) = std::conj(x(i, j));
  }
  return y;
}
Matrix unit(size_t size) {
  Matrix x(size, size);
  for (size_t i = 0; i < size; ++i) x(i, i) = 1;
  return x;
}
// Where `keeps(row, column)` holds.
template <class Keeps>
Matrix part(const Matrix& x, size_t rows, size_t columns, Keeps keeps) {
  Matrix y(rows, columns);
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) y(i, j) = keeps(i, j) ? x(i, j) : 0;
  }
  return y;
}
void expect_equal(const Matrix& x, const Matrix& y, double tolerance = 1e-12) {
  ASSERT_EQ(x.rows, y.rows);
  ASSERT_EQ(x.columns, y.columns);
  double greatest = 1, off = 0;
  for (size_t i = 0; i < x.elements.size(); ++i) {
    greatest = std::max(greatest, std::abs(y.elements[i]));
    off = std::max(off, std::abs(x.elements[i] - y.elements[i]));
    EXPECT_FALSE(std::isnan(std::abs(x.elements[i])));
  }
  EXPECT_LE(off, tolerance * greatest);
}

// The batch of a test, as an array of f64 or c128.
struct Batch {
  size_t count = 1, rows = 1, columns = 1;
  bool is_complex = false;

  std::string type(const std::string& sizes, bool real = false) const {
    return fmt::format("{}x{}{}", count, sizes, is_complex && !real ? "xcomplex<f64>" : "xf64");
  }
  std::string matrix_type(size_t r, size_t c) const { return type(fmt::format("{}x{}", r, c)); }
  std::string text() const {
    return fmt::format("{} of {}x{}{}", count, rows, columns, is_complex ? " complex" : "");
  }
  Literal numbers(uint64_t seed) const {
    const size_t elements = count * rows * columns;
    const Reals re = some_reals(elements, seed), im = some_reals(elements, seed + 1);
    const Dims dims = {static_cast<int64_t>(count), static_cast<int64_t>(rows),
                       static_cast<int64_t>(columns)};
    if (!is_complex) return reals(dims, re);
    Complexes both;
    for (size_t i = 0; i < elements; ++i) both.emplace_back(re[i], im[i]);
    return complexes(dims, both);
  }
};

Complex element_of(const Literal& x, int64_t i) {
  return is_complex(x.shape().element_type()) ? x.get_complex(i) : x.get_double(i);
}
Matrix matrix_of(const Literal& x, size_t number) {
  const Dims& dims = x.shape().dims();
  Matrix m(static_cast<size_t>(dims[1]), static_cast<size_t>(dims[2]));
  for (size_t i = 0; i < m.elements.size(); ++i) {
    m.elements[i] = element_of(x, static_cast<int64_t>(number * m.elements.size() + i));
  }
  return m;
}
Complexes vector_of(const Literal& x, size_t number) {
  Complexes list;
  const int64_t size = x.shape().dims()[1];
  for (int64_t i = 0; i < size; ++i) {
    list.push_back(element_of(x, static_cast<int64_t>(number) * size + i));
  }
  return list;
}

OpCall custom_call(const std::string& name, const std::vector<std::string>& results,
                   const std::string& configuration = "") {
  return {"stablehlo.custom_call",
          fmt::format("call_target_name = \"{}\", backend_config = \"{}\"", name, configuration),
          results,
          {}};
}

// One panel and several, wide and tall matrices, many.
const Batch kBatches[] = {{2, 1, 1, false},  {2, 5, 5, false},   {1, 6, 3, true},
                          {1, 3, 6, false},  {1, 40, 20, false}, {1, 20, 40, true},
                          {20, 4, 3, false}, {17, 3, 3, true},   {16, 8, 4, false},
                          {16, 2, 8, false}, {16, 7, 6, true},   {16, 1, 1, true}};
const Batch kHalves = {1, 300, 270, false};

void expect_qr(const Batch& batch) {
  SCOPED_TRACE(batch.text());
  const size_t least = std::min(batch.rows, batch.columns);
  const Literal a = batch.numbers(3);
  const auto qr = custom_call(
      "Qr", {batch.matrix_type(batch.rows, batch.columns), batch.type(std::to_string(least))})({a});
  // Q whole: the vectors with columns of zeros behind them.
  Batch square = batch;
  square.columns = batch.rows;
  Literal vectors(square.numbers(0).shape());
  for (size_t n = 0; n < batch.count; ++n) {
    const Matrix factored = matrix_of(qr[0], n);
    for (size_t i = 0; i < batch.rows; ++i) {
      for (size_t j = 0; j < least; ++j) {
        const auto to = static_cast<int64_t>((n * batch.rows + i) * batch.rows + j);
        const Complex value = factored(i, j);
        if (batch.is_complex) {
          vectors.set_complex(to, value);
        } else {
          vectors.set_double(to, value.real());
        }
      }
    }
  }
  const std::string type = batch.matrix_type(batch.rows, batch.rows);
  const auto q = custom_call("ProductOfElementaryHouseholderReflectors", {type})({vectors, qr[1]});
  const auto back =
      custom_call("tenon.apply_reflections", {batch.matrix_type(batch.rows, batch.columns)})(
          {qr[0], qr[1],
           custom_call("tenon.apply_reflections", {batch.matrix_type(batch.rows, batch.columns)},
                       "adjoint")({qr[0], qr[1], a})[0]});
  for (size_t n = 0; n < batch.count; n += 7) {
    const Matrix whole = matrix_of(q[0], n), factored = matrix_of(qr[0], n);
    const Matrix r =
        part(factored, batch.rows, batch.columns, [](size_t i, size_t j) { return i <= j; });
    expect_equal(whole * r, matrix_of(a, n));
    expect_equal(adjoint(whole) * whole, unit(batch.rows));
    expect_equal(matrix_of(back[0], n), matrix_of(a, n));
  }
}

TEST(LinalgCalls, QrAndProductsOfReflections) {
  for (const Batch& batch : kBatches) expect_qr(batch);
}
TEST(LinalgCalls, QrByHalves) { expect_qr({1, 270, 262, false}); }

// LAPACK's geqrf of [3 1; 4 2]: beta is -5, tau 1.6, v 0.5.
TEST(LinalgCalls, QrHasTheSignsOfLapack) {
  const auto qr = custom_call("Qr", {"2x2xf64", "2xf64"})({reals({2, 2}, {3, 1, 4, 2})});
  expect_near(reals_of(qr[0]), {-5, -2.2, 0.5, 0.4});
  expect_near(reals_of(qr[1]), {1.6, 0});
}

TEST(LinalgCalls, ReflectionsOfTinyAndOfGreatNumbers) {
  for (const double scale : {1e-320, 1e-200, 1e200, 1e308}) {
    SCOPED_TRACE(scale);
    const auto qr =
        custom_call("Qr", {"2x1xf64", "1xf64"})({reals({2, 1}, {0.6 * scale, 0.8 * scale})});
    EXPECT_NEAR(qr[0].get_double(0) / scale, -1, 1e-3);
    EXPECT_NEAR(qr[1].get_double(0), 1.6, 1e-3);
  }
}

void expect_lu(const Batch& batch) {
  SCOPED_TRACE(batch.text());
  const size_t least = std::min(batch.rows, batch.columns);
  const Literal a = batch.numbers(5);
  const std::string type = batch.matrix_type(batch.rows, batch.columns);
  const auto lu =
      custom_call("LuDecomposition", {type, fmt::format("{}x{}xi32", batch.count, least),
                                      fmt::format("{}x{}xi32", batch.count, batch.rows)})({a});
  for (size_t n = 0; n < batch.count; n += 7) {
    const Matrix both = matrix_of(lu[0], n), of = matrix_of(a, n);
    Matrix lower = part(both, batch.rows, least, [](size_t i, size_t j) { return i > j; });
    for (size_t i = 0; i < least; ++i) lower(i, i) = 1;
    Matrix expected(batch.rows, batch.columns);
    std::vector<size_t> order(batch.rows);
    for (size_t i = 0; i < batch.rows; ++i) order[i] = i;
    for (size_t i = 0; i < least; ++i) {
      const auto other =
          static_cast<size_t>(lu[1].get_integer(static_cast<int64_t>(n * least + i)));
      ASSERT_GE(other, i);
      ASSERT_LT(other, batch.rows);
      std::swap(order[i], order[other]);
    }
    for (size_t i = 0; i < batch.rows; ++i) {
      EXPECT_EQ(static_cast<size_t>(lu[2].get_integer(static_cast<int64_t>(n * batch.rows + i))),
                order[i]);
      for (size_t j = 0; j < batch.columns; ++j) expected(i, j) = of(order[i], j);
    }
    for (const Complex& each : lower.elements) {  // By |re| + |im|.
      EXPECT_LE(std::abs(each), batch.is_complex ? std::sqrt(2) : 1);
    }
    expect_equal(
        lower * part(both, least, batch.columns, [](size_t i, size_t j) { return i <= j; }),
        expected);
  }
}

TEST(LinalgCalls, Lu) {
  for (const Batch& batch : kBatches) expect_lu(batch);
}
TEST(LinalgCalls, LuByHalves) { expect_lu(kHalves); }

TEST(LinalgCalls, LuOfASingularMatrixLeavesTheColumn) {
  const auto lu = custom_call("LuDecomposition", {"3x3xf64", "3xi32", "3xi32"})(
      {reals({3, 3}, {0, 1, 2, 0, 3, 4, 0, 5, 7})});
  expect_near(reals_of(lu[0]), {0, 1, 2, 0, 5, 7, 0, 0.6, -0.2}, 1e-12);
  Reals many;
  for (int i = 0; i < 16; ++i) many.insert(many.end(), {0, 1, 2, 0, 3, 4, 0, 5, 7});
  const auto each = custom_call("LuDecomposition",
                                {"16x3x3xf64", "16x3xi32", "16x3xi32"})({reals({16, 3, 3}, many)});
  for (int64_t i = 0; i < each[0].element_count(); ++i) {
    EXPECT_NEAR(each[0].get_double(i), lu[0].get_double(i % 9), 1e-12);
  }
  const auto plain =
      custom_call("tenon.lu_without_exchanges", {"2x2xf64"})({reals({2, 2}, {2, 1, 4, 5})});
  expect_near(reals_of(plain[0]), {2, 1, 2, 3});
}

TEST(LinalgCalls, Eigenvalues) {
  for (Batch batch : kBatches) {
    batch.columns = batch.rows;
    for (const bool lower : {true, false}) {
      SCOPED_TRACE(fmt::format("{} lower {}", batch.text(), lower));
      const size_t size = batch.rows;
      const Literal a = batch.numbers(7);
      const auto eigen = custom_call(
          "Eigh", {batch.matrix_type(size, size), batch.type(std::to_string(size), true)},
          lower ? "1,1,100,1e-6" : "0,1,100,1e-6")({a});
      for (size_t n = 0; n < batch.count; n += 7) {
        const Matrix given = matrix_of(a, n), vectors = matrix_of(eigen[0], n);
        Matrix whole(size, size), by_values = vectors;
        const Complexes values = vector_of(eigen[1], n);
        for (size_t i = 0; i < size; ++i) {
          for (size_t j = 0; j < size; ++j) {
            const bool is_kept = lower ? i > j : i < j;
            whole(i, j) = i == j    ? given(i, i).real()
                          : is_kept ? given(i, j)
                                    : std::conj(given(j, i));
            by_values(i, j) *= values[j];
          }
          if (i > 0) EXPECT_LE(values[i - 1].real(), values[i].real());
        }
        expect_equal(whole * vectors, by_values);
        expect_equal(adjoint(vectors) * vectors, unit(size));
      }
    }
  }
}

TEST(LinalgCalls, EigenvaluesThatAreNotSortedStayWithTheirVectors) {
  const auto eigen = custom_call("Eigh", {"3x3xf64", "3xf64"},
                                 "1,0,100,1e-6")({reals({3, 3}, {3, 0, 0, 0, 1, 0, 0, 0, 2})});
  expect_near(reals_of(eigen[1]), {3, 1, 2});
  expect_near(reals_of(eigen[0]), {1, 0, 0, 0, 1, 0, 0, 0, 1});
}

TEST(LinalgCalls, WhatIsNotFiniteHasNoEigenvaluesAndOtherMatricesHave) {
  const auto eigen = custom_call("Eigh", {"2x2x2xf64", "2x2xf64"},
                                 "1,1,100,1e-6")({reals({2, 2, 2}, {1, 0, NAN, 1, 2, 0, 0, 1})});
  expect_near(reals_of(eigen[1]), {NAN, NAN, 1, 2});
  const auto singular = custom_call(
      "tenon.svd", {"2x2xf64", "2xf64", "2x2xf64"})({reals({2, 2}, {INFINITY, 0, 0, 1})});
  expect_near(reals_of(singular[1]), {NAN, NAN});
}

void expect_singular_values(const Batch& batch, const Literal& a, bool full) {
  SCOPED_TRACE(fmt::format("{} full {}", batch.text(), full));
  const size_t least = std::min(batch.rows, batch.columns);
  const size_t left = full ? batch.rows : least, right = full ? batch.columns : least;
  const auto svd = custom_call(
      "tenon.svd", {batch.matrix_type(batch.rows, left), batch.type(std::to_string(least), true),
                    batch.matrix_type(right, batch.columns)})({a});
  for (size_t n = 0; n < batch.count; n += 7) {
    const Matrix u = matrix_of(svd[0], n), vh = matrix_of(svd[2], n);
    const Complexes s = vector_of(svd[1], n);
    Matrix scaled(batch.rows, right);
    for (size_t j = 0; j < least; ++j) {
      EXPECT_GE(s[j].real(), 0);
      if (j > 0) EXPECT_LE(s[j].real(), s[j - 1].real());
      for (size_t i = 0; i < batch.rows; ++i) scaled(i, j) = u(i, j) * s[j];
    }
    expect_equal(scaled * vh, matrix_of(a, n));
    expect_equal(adjoint(u) * u, unit(left));
    expect_equal(vh * adjoint(vh), unit(right));
  }
}

TEST(LinalgCalls, SingularValues) {
  for (const Batch& batch : kBatches) {
    for (const bool full : {false, true}) expect_singular_values(batch, batch.numbers(9), full);
  }
}

// Matrices of ranks 0, 1 and 2: vectors of singular values that are zero are orthonormal too.
TEST(LinalgCalls, SingularValuesOfMatricesWithoutFullRank) {
  const Batch batch = {1, 5, 4, false};
  Literal two = batch.numbers(1);
  for (int64_t i = 0; i < 20; ++i) {
    const auto row = static_cast<double>(i / 4), column = static_cast<double>(i % 4);
    two.set_double(i, (row + 1) * (column - 1) + row * row * 0.5);
  }
  for (const bool full : {false, true}) {
    expect_singular_values(batch, reals({1, 5, 4}, Reals(20, 0)), full);
    expect_singular_values(batch, reals({1, 5, 4}, Reals(20, -2)), full);
    expect_singular_values(batch, two, full);
  }
}

// As many as are computed side by side: those of zeros, of equal values, not finite.
TEST(LinalgCalls, ManyMatricesStandAlone) {
  constexpr size_t kCount = 18, kSize = 3;
  const std::vector<Reals> kinds = {Reals(9, 0),
                                    {1, 0, 0, 0, 1, 0, 0, 0, 1},
                                    Reals(9, 1),
                                    {1, 0, 0, 0, 1e-3, 0, 0, 0, 0},
                                    Reals(9, 1),
                                    {0, 1, 0, 1, 0, 0, 0, 0, 0},
                                    {3, 0, 0, 0, -3, 0, 0, 0, 3}};
  Reals all;
  for (size_t i = 0; i < kCount; ++i) {
    const Reals& kind = kinds[i % kinds.size()];
    all.insert(all.end(), kind.begin(), kind.end());
  }
  const Literal sound = reals({kCount, kSize, kSize}, all);
  const Batch batch = {kCount, kSize, kSize, false};
  expect_singular_values(batch, sound, true);
  all[9] = NAN;
  all[18] = INFINITY;
  const Literal a = reals({kCount, kSize, kSize}, all);
  const auto eigen = custom_call("Eigh", {"18x3x3xf64", "18x3xf64"})({a});
  const auto svd = custom_call("tenon.svd", {"18x3x3xf64", "18x3xf64", "18x3x3xf64"})({a});
  const auto clean = custom_call("Eigh", {"18x3x3xf64", "18x3xf64"})({sound});
  for (size_t n = 0; n < kCount; ++n) {
    const Complexes values = vector_of(eigen[1], n), expected = vector_of(clean[1], n);
    for (size_t i = 0; i < kSize; ++i) {
      const bool is_lost = n == 1 || n == 2;
      EXPECT_EQ(std::isnan(values[i].real()), is_lost) << n;
      EXPECT_EQ(std::isnan(vector_of(svd[1], n)[i].real()), is_lost) << n;
      if (!is_lost) EXPECT_EQ(values[i], expected[i]) << n;
    }
  }
}

// The columns that are left are rounding of rounding, down to the smallest numbers.
TEST(LinalgCalls, FactorsOfMatricesOfRankOneAreOrthogonal) {
  const Batch batch = {1, 24, 20, false};
  const Literal ones = reals({1, 24, 20}, Reals(480, 1));
  const auto qr = custom_call("Qr", {"1x24x20xf64", "1x20xf64"})({ones});
  const auto q =
      custom_call("ProductOfElementaryHouseholderReflectors", {"1x24x20xf64"})({qr[0], qr[1]});
  const Matrix columns = matrix_of(q[0], 0);
  expect_equal(adjoint(columns) * columns, unit(20));
  expect_singular_values(batch, ones, true);
}

// Corners of the smallest numbers have a direction, too.
TEST(LinalgCalls, EigenvaluesBesideTheSmallestNumbers) {
  for (const size_t count : {1, 16}) {
    Reals all;
    for (size_t i = 0; i < count; ++i) {
      all.insert(all.end(), {1, 0.5, 1e-310, 0.5, 1, 1e-310, 1e-310, 1e-310, 1});
    }
    const auto eigen =
        custom_call("Eigh", {fmt::format("{}x3x3xf64", count), fmt::format("{}x3xf64", count)})(
            {reals({static_cast<int64_t>(count), 3, 3}, all)});
    for (size_t n = 0; n < count; ++n) {
      const Complexes values = vector_of(eigen[1], n);
      EXPECT_NEAR(values[0].real(), 0.5, 1e-14);
      EXPECT_NEAR(values[1].real(), 1, 1e-14);
      EXPECT_NEAR(values[2].real(), 1.5, 1e-14);
    }
  }
}

TEST(LinalgCalls, AMatrixThatIsNotFiniteDoesNotSpoilTheOthers) {
  const Batch batch = {2, 6, 6, false};
  Literal a = batch.numbers(21);
  const auto clean = custom_call("tenon.svd", {"2x6x6xf64", "2x6xf64", "2x6x6xf64"})({a});
  a.set_double(40, NAN);
  const auto svd = custom_call("tenon.svd", {"2x6x6xf64", "2x6xf64", "2x6x6xf64"})({a});
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(vector_of(svd[1], 0)[i].real(), vector_of(clean[1], 0)[i].real(), 1e-13);
    EXPECT_TRUE(std::isnan(vector_of(svd[1], 1)[i].real()));
  }
}

TEST(LinalgCalls, OtherConfigurationsAreRefused) {
  const Literal a = reals({2, 2}, {2, 1, 1, 2});
  EXPECT_EQ(error_of(custom_call("Eigh", {"2x2xf64", "2xf64"}, "lower"), {a}),
            "custom_call @Eigh: the configuration is \"lower\", expected "
            "\"lower,sorts,sweeps,tolerance\", the first two 0 or 1");
  EXPECT_EQ(error_of(custom_call("Qr", {"2x2xf64", "2xf64"}, "full"), {a}),
            "custom_call @Qr: the configuration is \"full\", expected none");
  const OpCall typed{
      "stablehlo.custom_call",
      "call_target_name = \"Eigh\", api_version = 4 : i32, backend_config = {lower = "
      "false}",
      {"2x2xf64", "2xf64"},
      {}};
  EXPECT_NE(error_of(typed, {a}).find("the configuration is no text"), std::string::npos);
}

TEST(LinalgCalls, MatricesWithoutElements) {
  const auto svd = custom_call(
      "tenon.svd", {"3x3xf32", "0xf32", "0x0xf32"})({reals({3, 0}, {}, ElementType::kF32)});
  EXPECT_EQ(reals_of(svd[0]), (Reals{1, 0, 0, 0, 1, 0, 0, 0, 1}));
  EXPECT_EQ(custom_call("Qr", {"0x2x2xf64", "0x2xf64"})({reals({0, 2, 2}, {})})[1].element_count(),
            0);
  EXPECT_EQ(custom_call("Eigh", {"0x0xf64", "0xf64"})({reals({0, 0}, {})})[1].element_count(), 0);
  const auto none = custom_call("ProductOfElementaryHouseholderReflectors",
                                {"2x2xf64"})({reals({2, 2}, {5, 6, 7, 8}), reals({0}, {})});
  EXPECT_EQ(reals_of(none[0]), (Reals{1, 0, 0, 1}));
}

TEST(LinalgCalls, ShortFloatsAreComputedInF32) {
  const auto eigen = custom_call(
      "Eigh", {"2x2xbf16", "2xbf16"})({reals({2, 2}, {2, 1, 1, 2}, ElementType::kBF16)});
  EXPECT_EQ(reals_of(eigen[1]), (Reals{1, 3}));
}

TEST(LinalgCalls, ATupleOfResults) {
  const std::string text =
      "func.func @main(%x: tensor<2x2xf64>) -> tensor<2xf64> {\n"
      "  %t = stablehlo.custom_call @Eigh(%x) {backend_config = \"1,1,4,0.000001\", xla_shape = "
      "\"(f64[2,2]{1,0}, f64[2]{0})\"} : (tensor<2x2xf64>) -> tuple<tensor<2x2xf64>, "
      "tensor<2xf64>>\n"
      "  %w = stablehlo.get_tuple_element %t[1] : (tuple<tensor<2x2xf64>, tensor<2xf64>>) -> "
      "tensor<2xf64>\n  return %w : tensor<2xf64>\n}\n";
  const auto values = run_text(text, {reals({2, 2}, {2, 1, 1, 2})});
  ASSERT_TRUE(values) << values.error().to_string();
  expect_near(reals_of((*values)[0]), {1, 3});
}

TEST(LinalgCalls, OtherShapesAreRefused) {
  EXPECT_EQ(error_of(custom_call("Qr", {"3x3xf64", "2xf64"}), {reals({3, 3}, Reals(9, 1))}),
            "custom_call @Qr: results are f64[3,3], f64[2]; expected a [m, n] -> a [m, n], taus "
            "[least] of batched matrices of floats");
  EXPECT_EQ(error_of(custom_call("Eigh", {"2x3xf64", "2xf64"}), {reals({2, 3}, Reals(6, 1))}),
            "custom_call @Eigh: operands are f64[2,3]; expected a [n, n] -> vectors [n, n], values "
            "[n] of batched matrices of floats");
  EXPECT_NE(error_of(custom_call("Qr", {"3xi32"}), {integers({3}, {1, 2, 3}, ElementType::kS32)})
                .find("operands are s32[3]"),
            std::string::npos);
  EXPECT_NE(error_of(custom_call("ProductOfElementaryHouseholderReflectors", {"2x2xf64"}),
                     {reals({2, 2}, Reals(4, 1)), reals({3}, {1, 1, 1})})
                .find("expected a [m, n], taus [k] -> q [m, n]"),
            std::string::npos);
}

// A device that takes a call by its name gets it whole, with its configuration.
TEST(LinalgCalls, ADeviceMayTakeThem) {
  const std::string text =
      "func.func @main(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>) {\n"
      "  %e:2 = stablehlo.custom_call @Eigh(%x) {backend_config = \"0,1,9,0.1\"} : "
      "(tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>)\n"
      "  %q:2 = stablehlo.custom_call @Qr(%e#0) : (tensor<4x4xf32>) -> (tensor<4x4xf32>, "
      "tensor<4xf32>)\n  return %q#0, %q#1, %e#1 : tensor<4x4xf32>, tensor<4xf32>, "
      "tensor<4xf32>\n}\n";
  auto module = import_module(text, "test.mlir");
  ASSERT_TRUE(module) << module.error().to_string();
  std::vector<std::string> offers;
  PassOptions options;
  options.takes_composite = [&](const Instruction& op) -> Result<bool> {
    const auto site = lower::call_site_of(op);
    if (!site) return internal_error("no library call");
    offers.push_back(to_string(site->call));
    return op.text(AttrKey::call_target_name) == "Eigh";
  };
  const Status status = run_passes(**module, lowering_passes(), options);
  ASSERT_TRUE(status.ok()) << status.to_string();
  std::vector<std::string> calls;
  any_instruction(*(*module)->entry(), [&](const Instruction& op) {
    if (op.code() == OpCode::kCustomCall) calls.emplace_back(op.text(AttrKey::call_target_name));
    return false;
  });
  EXPECT_EQ(calls, (std::vector<std::string>{"Eigh"}));
  ASSERT_EQ(offers.size(), 2u);
  EXPECT_NE(offers[0].find("0,1,9,0.1"), std::string::npos) << offers[0];
}

}  // namespace
}  // namespace tenon::hlo
