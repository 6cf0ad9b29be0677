// Roots of unity, and transforms whose lengths are decomposed.
#include <bit>
#include <cmath>

#include "core/base/roots_of_unity.h"
#include "hlo/decomposition/decomposition_test_util.h"
#include "hlo/evaluator/scalars/real_math.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

// binary128 is precise enough to check the last bit of long double.
TEST(RootsOfUnity, AreRightToTheLastBits) {
  const Float128 two_pi = 2 * acosf128(-1);
  for (const int64_t n : {1, 2, 3, 8, 12, 97, 4096, 1 << 20, 999'983}) {
    const int64_t step = std::max<int64_t>(n / 997, 1);
    for (int64_t k = 0; k < n; k += step) {
      const std::complex<long double> root = root_of_unity(k, n);
      const auto angle = two_pi * k / n;
      EXPECT_LT(std::abs(static_cast<double>(root.real() - cosf128(angle))), 2e-19)
          << k << "/" << n;
      EXPECT_LT(std::abs(static_cast<double>(root.imag() - sinf128(angle))), 2e-19)
          << k << "/" << n;
    }
  }
}

TEST(RootsOfUnity, AreSymmetric) {
  using C = std::complex<long double>;
  for (const int64_t n : {4, 8, 24, 1000, 4096}) {
    EXPECT_EQ(root_of_unity(0, n), C(1, 0));
    EXPECT_EQ(root_of_unity(n / 4, n), C(0, 1));
    EXPECT_EQ(root_of_unity(n / 2, n), C(-1, 0));
    EXPECT_EQ(root_of_unity(3 * n / 4, n), C(0, -1));
    EXPECT_EQ(root_of_unity(n / 8, n).real() == root_of_unity(n / 8, n).imag(), n % 8 == 0);
    for (int64_t k = 1; k < n; ++k) {
      const C root = root_of_unity(k, n);
      EXPECT_EQ(root, std::conj(root_of_unity(n - k, n)));
      EXPECT_EQ(root, -root_of_unity((k + n / 2) % n, n));
      EXPECT_EQ(C(-root.imag(), root.real()), root_of_unity((k + n / 4) % n, n));
    }
  }
}

// Bluestein's constants are transforms themselves: computed in double with a root for each factor,
// they would lose bits with each doubling of the length.
TEST(Fft, OfPrimeLengthsKeepsItsBits) {
  for (const int64_t n : {17, 97, 509}) {
    const std::string type = fmt::format("tensor<{}xcomplex<f64>>", n);
    const std::string text = fmt::format(
        "func.func @main(%x: {0}) -> {0} {{\n  %0 = stablehlo.fft %x, type = FFT, length = [{1}] : "
        "({0}) -> {0}\n  return %0 : {0}\n}}",
        type, n);
    const auto module = import_module(text, "t").value();
    const Reals parts = some_reals(static_cast<size_t>(2 * n), 7);
    Complexes values;
    for (size_t i = 0; i < parts.size(); i += 2) values.emplace_back(parts[i], parts[i + 1]);
    const std::vector<Literal> x = {complexes({n}, values)};
    Evaluator as_written(*module);
    const Literal expected = as_written.run(*module->entry(), x).value()[0];
    ASSERT_TRUE(run_passes(*module, std::vector<std::string_view>{"decompose"}).ok());
    Evaluator decomposed(*module);
    const Literal actual = decomposed.run(*module->entry(), x).value()[0];
    double error = 0;
    double norm = 0;
    for (int64_t i = 0; i < n; ++i) {
      error += std::norm(actual.get_complex(i) - expected.get_complex(i));
      norm += std::norm(expected.get_complex(i));
    }
    EXPECT_LT(std::sqrt(error / norm), 1.5e-15) << n << ": " << std::sqrt(error / norm);
  }
}

}  // namespace
}  // namespace tenon::hlo
