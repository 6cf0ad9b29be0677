// Fourier transforms by their definition, along each dimension in turn.
#include <vector>

#include "hlo/evaluator/ops/index.h"
#include "hlo/evaluator/ops/rules.h"
#include "hlo/evaluator/scalars/complex_math.h"

namespace tenon::hlo {
namespace {

using C = cplx::C;

// exp(sign * 2 pi i k / n) for k = 0 … n-1.
std::vector<C> roots_of_unity(int64_t n, int sign) {
  // pi to 113 bits
  const Float128 pi = ::acosf128(-1);
  std::vector<C> roots(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; ++k) {
    const Float128 angle = 2 * pi * static_cast<Float128>(k) / static_cast<Float128>(n);
    C& root = roots[static_cast<size_t>(k)];
    root = {real::cos(angle), sign * real::sin(angle)};
    // At quarter turns one part is exactly 0, which the rounded angle does not give.
    if (4 * k % n == 0) (4 * k / n % 2 == 0 ? root.im : root.re) = 0;
  }
  return roots;
}

class Transform {
 public:
  Transform(std::vector<C> data, Dims dims) : data_(std::move(data)), dims_(std::move(dims)) {}

  // Transforms along `axis`, and keeps the first `kept` elements.
  void along(size_t axis, int sign, int64_t kept) {
    const int64_t n = dims_[axis];
    const std::vector<C> roots = roots_of_unity(n, sign);
    Dims new_dims = dims_;
    new_dims[axis] = kept;
    const Dims strides = row_major_strides(dims_);
    std::vector<C> out;
    for (IndexSpace at(new_dims); !at.done(); at.next()) {
      Dims row = *at;
      row[axis] = 0;
      const int64_t base = dot(row, strides);
      C sum{0, 0};
      for (int64_t k = 0; k < n; ++k) {
        const C& x = data_[static_cast<size_t>(base + k * strides[axis])];
        sum = cplx::add(sum, cplx::mul(x, roots[static_cast<size_t>(k * at[axis] % n)]));
      }
      if (sign > 0) sum = {sum.re / static_cast<Float128>(n), sum.im / static_cast<Float128>(n)};
      out.push_back(sum);
    }
    data_ = std::move(out);
    dims_ = std::move(new_dims);
  }

  // Completes a half spectrum of real data along the last axis to `n` elements: X[k] = conj(X[n -
  // k]).
  void complete(int64_t n) {
    const size_t axis = dims_.size() - 1;
    const int64_t half = dims_[axis];
    Dims new_dims = dims_;
    new_dims[axis] = n;
    const Dims strides = row_major_strides(dims_);
    std::vector<C> out;
    for (IndexSpace at(new_dims); !at.done(); at.next()) {
      Dims from = *at;
      const bool mirrored = from[axis] >= half;
      if (mirrored) from[axis] = n - from[axis];
      C x = data_[static_cast<size_t>(dot(from, strides))];
      if (mirrored) x.im = -x.im;
      out.push_back(x);
    }
    data_ = std::move(out);
    dims_ = std::move(new_dims);
  }

  const std::vector<C>& data() const { return data_; }
  const Dims& dims() const { return dims_; }

 private:
  std::vector<C> data_;
  Dims dims_;
};

std::vector<C> complex_elements(const Tensor& x) {
  std::vector<C> out;
  for (int64_t i = 0; i < x.count(); ++i) {
    const Scalar value = x.get(i);
    switch (x.storage()) {
      case ScalarStorage::kReal:
        out.push_back({value.d, 0});
        break;
      case ScalarStorage::kWide:
        out.push_back({value.w, 0});
        break;
      case ScalarStorage::kComplexWide:
        out.push_back(value.cw);
        break;
      default:
        out.push_back({value.c.re, value.c.im});
    }
  }
  return out;
}

}  // namespace

Evaluator::Values evaluate::fft(const EvalCall& c) {
  const auto& [e, op, operands, frame] = c;
  const auto type = op.enumeration<FftType>(AttrKey::fft_type);
  const I64s& length = op.i64s(AttrKey::fft_length);
  const Type& result_type = op.result_type();
  Tensor result = e.tensor(result_type.element_type(), result_type.dims());
  if (result.count() == 0) return one(std::move(result));
  const size_t rank = operands[0]->dims().size();
  const size_t first = rank - length.size();
  Transform transform(complex_elements(*operands[0]), operands[0]->dims());
  const bool inverse = type == FftType::kIfft || type == FftType::kIrfft;
  const int sign = inverse ? 1 : -1;
  if (type == FftType::kIrfft) {
    // The outer dimensions first, while the spectrum is still half; then the last dimension, which
    // becomes real.
    for (size_t axis = first; axis + 1 < rank; ++axis) {
      transform.along(axis, sign, transform.dims()[axis]);
    }
    transform.complete(length.back());
    transform.along(rank - 1, sign, length.back());
  } else {
    // A real transform keeps the first half of the last dimension.
    for (size_t axis = rank; axis-- > first;) {
      const bool halved = type == FftType::kRfft && axis == rank - 1;
      transform.along(axis, sign, halved ? transform.dims()[axis] / 2 + 1 : transform.dims()[axis]);
    }
  }
  const ElementType part = complex_part(result.type());
  for (int64_t i = 0; i < result.count(); ++i) {
    const C x = transform.data()[static_cast<size_t>(i)];
    switch (result.storage()) {
      case ScalarStorage::kReal:
        result.set(i, Scalar(e.wide() ? static_cast<double>(x.re) : round_to(part, x.re)));
        break;
      case ScalarStorage::kWide:
        result.set(i, Scalar(x.re));
        break;
      case ScalarStorage::kComplexWide:
        result.set(i, Scalar(x));
        break;
      default:
        result.set(i, Scalar(ComplexOf<double>{
                          e.wide() ? static_cast<double>(x.re) : round_to(part, x.re),
                          e.wide() ? static_cast<double>(x.im) : round_to(part, x.im)}));
    }
  }
  return one(std::move(result));
}

}  // namespace tenon::hlo
