#include "conformance/compare/whole_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "conformance/compare/tolerance.h"
#include "core/types/float_convert.h"

namespace tenon::conformance {
namespace {

using hlo::AttrKey;
using hlo::OpCode;
using Complex = std::complex<double>;
using Wrong = std::optional<WrongElement>;

// Half a unit of 1 in the result's type; 0 for integers.
double rounding(const WholeResult& result) {
  const ElementType part = complex_part(result.actual.element_type());
  return is_float(part) ? epsilon(part) : 0;
}

// The least number that a rounding near zero may lose.
double least(const WholeResult& result) {
  const ElementType part = complex_part(result.actual.element_type());
  return is_float(part) ? decode_float(part, 1) : 0;
}

// Whether intermediate results of this size may overflow: then the result is unspecified.
bool may_overflow(const WholeResult& result, double size) {
  return !(size <= float_max(complex_part(result.actual.element_type())) / 4);
}

// Judges one error, and notes the worst. That of a NaN, too, is beyond every bound.
Wrong judge(WholeResult::WorstElement& worst, int64_t element, std::string_view measure,
            double error, double bound) {
  const double share = error == 0 ? 0 : error / bound;
  if (worst.element < 0 || !(share <= worst.share)) {
    worst = {element, std::isnan(share) ? std::numeric_limits<double>::infinity() : share};
  }
  if (error <= bound) return {};
  return WrongElement{element,
                      fmt::format("{} is {:.3g}, its bound is {:.3g}", measure, error, bound)};
}

// --- Relative to the norm of the result

// The 2-norm of each transform; elements of a transform are adjacent.
Wrong check_fft(WholeResult& result) {
  const auto& lengths = result.op.i64s(AttrKey::fft_length);
  const int64_t points = element_count(lengths);
  int64_t elements = 1;
  const Dims& dims = result.actual.shape().dims();
  for (size_t d = dims.size() - lengths.size(); d < dims.size(); ++d) elements *= dims[d];
  const double steps = std::log2(static_cast<double>(points)) + 2;
  for (int64_t first = 0; first < result.actual.element_count(); first += elements) {
    double square = 0;
    for (int64_t i = first; i < first + elements; ++i) {
      square += std::norm(result.exact[static_cast<size_t>(i)]);
    }
    const double bound = 4 * steps * 2 * rounding(result) * std::sqrt(square);
    if (!std::isfinite(bound)) continue;
    for (int64_t i = first; i < first + elements; ++i) {
      const double error =
          std::abs(result.actual.get_complex(i) - result.exact[static_cast<size_t>(i)]);
      if (auto found = judge(result.worst, i, "the error", error, bound)) return found;
    }
  }
  return {};
}

// Statistics are sums over a feature's elements, and each function of them rounds a few times.
Wrong check_normalization(WholeResult& result) {
  double greatest = 0;
  for (const Complex& each : result.exact) greatest = std::max(greatest, std::abs(each));
  const Literal& x = result.operands[0];
  const double summed =
      static_cast<double>(x.element_count()) /
      static_cast<double>(std::max<int64_t>(1, result.operands[1].element_count()));
  // A statistic may be small beside the terms of its sum.
  const bool is_statistic = result.actual.shape().rank() < x.shape().rank();
  const double roundings = 8 + (result.op.code() == OpCode::kBatchNormInference ? 0 : summed);
  const double bound =
      4 * roundings * rounding(result) * std::max(greatest, is_statistic ? 1.0 : 0.0);
  if (may_overflow(result, greatest)) return {};
  for (int64_t i = 0; i < result.actual.element_count(); ++i) {
    const Complex got = result.actual.get_complex(i);
    const Complex exact = result.exact[static_cast<size_t>(i)];
    const double error = std::abs(got - exact);
    if (same_number(got.real(), exact.real())) continue;
    if (auto found = judge(result.worst, i, "the error", error, bound)) return found;
  }
  return {};
}

// --- Residuals

// MatrixView number `batch` of an array's last two dimensions.
class MatrixView {
 public:
  MatrixView(const Literal& array, int64_t batch)
      : array_(array),
        rows_(array.shape().dims()[array.shape().dims().size() - 2]),
        columns_(array.shape().dims().back()),
        first_(batch * rows_ * columns_) {}
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  int64_t index(int64_t i, int64_t j) const { return first_ + i * columns_ + j; }
  Complex operator()(int64_t i, int64_t j) const { return array_.get_complex(index(i, j)); }

 private:
  const Literal& array_;
  int64_t rows_;
  int64_t columns_;
  int64_t first_;
};

int64_t matrices_in(const Literal& array) {
  const auto& dims = array.shape().dims();
  const int64_t size = dims[dims.size() - 2] * dims.back();
  return size == 0 ? 0 : array.element_count() / size;
}

// `size` is that of what the device computed, so that it may be infinite.
Wrong check_residual(WholeResult& result, int64_t at, int64_t rows, Complex residual, double size) {
  const double bound =
      4 * static_cast<double>(rows + 2) * (rounding(result) * size + least(result));
  if (!std::isfinite(bound)) return WrongElement{at, "the residual is beyond every bound"};
  return judge(result.worst, at, "the residual", std::abs(residual), bound);
}

// |A - L L^H| against |L| |L^H|; the other triangle is not defined. Of the factors with this
// residual one has a real and positive diagonal.
Wrong check_cholesky(WholeResult& result) {
  const bool lower = result.op.flag(AttrKey::lower);
  for (int64_t batch = 0; batch < matrices_in(result.actual); ++batch) {
    const MatrixView a(result.operands[0], batch);
    const MatrixView factor(result.actual, batch);
    // Element (i, k) of the lower factor.
    const auto l = [&](int64_t i, int64_t k) {
      return lower ? factor(i, k) : std::conj(factor(k, i));
    };
    const auto exact = [&](int64_t i, int64_t k) {
      return result.exact[static_cast<size_t>(lower ? factor.index(i, k) : factor.index(k, i))];
    };
    for (int64_t i = 0; i < a.rows(); ++i) {
      for (int64_t j = 0; j <= i; ++j) {
        const int64_t at = lower ? factor.index(i, j) : factor.index(j, i);
        if (!std::isfinite(std::abs(result.exact[static_cast<size_t>(at)]))) continue;
        if (i == j && (l(i, i).real() < 0 || l(i, i).imag() != 0))
          return WrongElement{at, "the diagonal of a factor is real and positive"};
        Complex residual = lower ? a(i, j) : std::conj(a(j, i));
        double size = std::abs(residual);
        double exact_size = size;
        for (int64_t k = 0; k <= j; ++k) {
          residual -= l(i, k) * std::conj(l(j, k));
          size += std::abs(l(i, k)) * std::abs(l(j, k));
          exact_size += std::abs(exact(i, k)) * std::abs(exact(j, k));
        }
        if (may_overflow(result, exact_size)) continue;
        if (auto found = check_residual(result, at, a.rows(), residual, size)) return found;
      }
    }
  }
  return {};
}

// |B - op(A) X| against |op(A)| |X|, or with the factors in the other order.
Wrong check_triangular_solve(WholeResult& result) {
  const bool left = result.op.flag(AttrKey::left_side);
  const bool lower = result.op.flag(AttrKey::lower);
  const bool unit = result.op.flag(AttrKey::unit_diagonal);
  const auto transpose = result.op.enumeration<hlo::Transpose>(AttrKey::transpose_a);
  for (int64_t batch = 0; batch < matrices_in(result.actual); ++batch) {
    const MatrixView a(result.operands[0], batch);
    const MatrixView b(result.operands[1], batch);
    const MatrixView x(result.actual, batch);
    const auto stored = [&](int64_t i, int64_t j) -> Complex {
      if (i == j) return unit ? Complex(1) : a(i, j);
      return (i > j) == lower ? a(i, j) : Complex(0);
    };
    const auto op_a = [&](int64_t i, int64_t j) {
      if (transpose == hlo::Transpose::kNoTranspose) return stored(i, j);
      return transpose == hlo::Transpose::kAdjoint ? std::conj(stored(j, i)) : stored(j, i);
    };
    for (int64_t i = 0; i < b.rows(); ++i) {
      for (int64_t j = 0; j < b.columns(); ++j) {
        Complex residual = b(i, j);
        double size = std::abs(residual);
        double exact_size = size;
        for (int64_t k = 0; k < (left ? b.rows() : b.columns()); ++k) {
          const Complex factor = left ? op_a(i, k) : op_a(k, j);
          const int64_t at = left ? x.index(k, j) : x.index(i, k);
          const Complex product = factor * result.actual.get_complex(at);
          residual -= product;
          size += std::abs(product);
          exact_size += std::abs(factor) * std::abs(result.exact[static_cast<size_t>(at)]);
        }
        if (may_overflow(result, exact_size)) continue;
        if (auto found = check_residual(result, x.index(i, j), a.rows(), residual, size))
          return found;
      }
    }
  }
  return {};
}

// --- Random numbers

// The mean and the variance are within six standard deviations of their estimates: that of the
// variance of n numbers is the variance times sqrt((kurtosis - 1) / n).
Wrong check_rng(WholeResult& result) {
  const bool uniform = result.op.enumeration<hlo::RngDistribution>(AttrKey::rng_distribution) ==
                       hlo::RngDistribution::kUniform;
  const double a = result.operands[0].get_double(0);
  const double b = result.operands[1].get_double(0);
  // Empty intervals and negative deviations are undefined (StableHLO, rng).
  if (uniform ? !(a < b) : !(b >= 0)) return {};
  const auto count = static_cast<double>(result.actual.element_count());
  const bool integer = is_integer(result.actual.element_type());
  double sum = 0;
  double square = 0;
  for (int64_t i = 0; i < result.actual.element_count(); ++i) {
    const double x = result.actual.get_double(i);
    // A narrow type may round to the end of the interval.
    const bool is_inside = x >= a && (integer ? x < b : x <= b);
    if (uniform && !is_inside)
      return WrongElement{i, fmt::format("{:g} is not in [{:g}, {:g})", x, a, b)};
    if (!std::isfinite(x)) return WrongElement{i, "not a finite number"};
    sum += x;
    square += x * x;
  }
  const double mean = uniform ? (integer ? (a + b - 1) / 2 : (a + b) / 2) : a;
  const double width = b - a;
  const double variance = !uniform  ? b * b
                          : integer ? (width * width - 1) / 12
                                    : width * width / 12;
  const double mean_error = std::abs(sum / count - mean);
  const double mean_bound = 6 * std::sqrt(variance / count) + 2 * rounding(result);
  WholeResult::WorstElement estimate;
  if (auto found = judge(estimate, 0, "the mean's error", mean_error, mean_bound)) return found;
  const double second = square / count - (sum / count) * (sum / count);
  const double variance_error = std::abs(second - variance);
  const double kurtosis = uniform ? 1.8 : 3;
  const double variance_bound =
      variance * (6 * std::sqrt((kurtosis - 1) / count) + 4 * rounding(result));
  return judge(estimate, 0, "the variance's error", variance_error, variance_bound);
}

struct OwnRule {
  OpCode op;
  Wrong (*check)(WholeResult&);
};
constexpr OwnRule kRules[] = {
    {OpCode::kFft, check_fft},
    {OpCode::kCholesky, check_cholesky},
    {OpCode::kTriangularSolve, check_triangular_solve},
    {OpCode::kBatchNormInference, check_normalization},
    {OpCode::kBatchNormTraining, check_normalization},
    {OpCode::kBatchNormGrad, check_normalization},
    {OpCode::kRng, check_rng},
};

}  // namespace

bool has_rule_of_its_own(OpCode op) { return std::ranges::count(kRules, op, &OwnRule::op) > 0; }

std::optional<WrongElement> check_whole_result(WholeResult& result) {
  const auto* const rule = std::ranges::find(kRules, result.op.code(), &OwnRule::op);
  return rule == std::end(kRules) ? std::nullopt : rule->check(result);
}

std::optional<WrongElement> check_program_result(const Literal& exact, const Literal& narrow,
                                                 const Literal& actual) {
  const ElementType part = complex_part(actual.element_type());
  double own_error = 0;
  double greatest = 0;
  for (int64_t i = 0; i < exact.element_count(); ++i) {
    const double error = std::abs(exact.get_complex(i) - narrow.get_complex(i));
    const double size = std::abs(exact.get_complex(i));
    if (std::isfinite(error)) own_error = std::max(own_error, error);
    if (std::isfinite(size)) greatest = std::max(greatest, size);
  }
  const double bound = is_float(part) ? 4 * own_error + 16 * epsilon(part) * greatest : 0;
  WholeResult::WorstElement worst;
  for (int64_t i = 0; i < actual.element_count(); ++i) {
    if (!is_float(part)) {
      if (actual.get_integer(i) != narrow.get_integer(i)) return WrongElement{i, "integers differ"};
      continue;
    }
    const Complex a = actual.get_complex(i);
    const Complex b = exact.get_complex(i);
    if (same_number(a.real(), b.real()) && same_number(a.imag(), b.imag())) continue;
    if (auto found = judge(worst, i, "the error", std::abs(a - b), bound)) return found;
  }
  return {};
}

}  // namespace tenon::conformance
