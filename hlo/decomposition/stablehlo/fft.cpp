// Fourier transforms of any length, from transforms of lengths that lowering takes as they are.
#include <bit>
#include <complex>

#include "core/base/roots_of_unity.h"
#include "hlo/decomposition/decomposition_util.h"
#include "hlo/ir/fft_lengths.h"

namespace tenon::hlo::decomposition {
namespace {

// Wider than any element type: constants are rounded once, at the end.
using Complexes = std::vector<std::complex<long double>>;

// Transforms in place and forward, for a power-of-two length; used for constants.
void host_fft(Complexes& x) {
  const size_t n = x.size();
  for (size_t i = 1, j = 0; i < n; ++i) {
    size_t bit = n >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
  Complexes roots(n / 2);
  for (size_t k = 0; k < roots.size(); ++k) {
    roots[k] = std::conj(root_of_unity(static_cast<int64_t>(k), static_cast<int64_t>(n)));
  }
  for (size_t size = 2; size <= n; size *= 2) {
    for (size_t k = 0; k < size / 2; ++k) {
      const std::complex<long double> root = roots[k * (n / size)];
      for (size_t i = k; i < n; i += size) {
        const std::complex<long double> odd = x[i + size / 2] * root;
        x[i + size / 2] = x[i] - odd;
        x[i] += odd;
      }
    }
  }
}

// The numbers along the last dimension of an array of `dims`, broadcast over the others.
Value along_last(Builder& b, ElementType type, const Complexes& numbers, const Dims& dims) {
  Literal list(Shape(type, {static_cast<int64_t>(numbers.size())}));
  for (size_t i = 0; i < numbers.size(); ++i) {
    list.set_complex(static_cast<int64_t>(i), static_cast<std::complex<double>>(numbers[i]));
  }
  return b.broadcast_in_dim(b.constant(std::move(list)), dims,
                            {static_cast<int64_t>(dims.size()) - 1});
}

Value direct(Builder& b, Value x, FftType type) {
  const int64_t n = b.ok() ? x.type().dims().back() : 0;
  return b.make(OpCode::kFft, {x},
                {{AttrKey::fft_type, EnumAttr{EnumKind::kFftType, static_cast<uint8_t>(type)}},
                 {AttrKey::fft_length, Attribute(I64s{n})}});
}

// Bluestein's algorithm: with w[k] = exp(∓pi i k^2 / n), 2 j k = j^2 + k^2 - (k - j)^2 implies X[k]
// = w[k] sum_j (x[j] w[j]) conj(w[k - j]), a convolution, which longer transforms compute.
Value bluestein(Builder& b, Value x, bool inverse) {
  const ElementType type = x.type().element_type();
  Dims dims = x.type().dims();
  const int64_t n = dims.back();
  const auto count = static_cast<size_t>(n);
  const size_t padded = std::bit_ceil(2 * count - 1);
  Complexes chirp(count);
  Complexes kernel(padded);
  for (size_t k = 0; k < count; ++k) {
    // k^2 modulo 2 n is the same angle, and loses few bits.
    const auto square = static_cast<int64_t>(static_cast<unsigned __int128>(k) * k % (2 * count));
    const std::complex<long double> root = root_of_unity(square, 2 * n);
    chirp[k] = inverse ? root : std::conj(root);
    kernel[k] = std::conj(chirp[k]);
    if (k != 0) kernel[padded - k] = kernel[k];
  }
  host_fft(kernel);
  I64s low(dims.size(), 0);
  I64s high(dims.size(), 0);
  high.back() = static_cast<int64_t>(padded) - n;
  const Value w = along_last(b, type, chirp, dims);
  const Value signal = b.pad(b.mul(x, w), b.scalar(type, 0), low, high);
  Dims wide = dims;
  wide.back() = static_cast<int64_t>(padded);
  const Value product = b.mul(direct(b, signal, FftType::kFft), along_last(b, type, kernel, wide));
  const Value convolved = b.slice(direct(b, product, FftType::kIfft), low, dims);
  const Value result = b.mul(convolved, w);
  return inverse ? b.div(result, b.splat_like(result, static_cast<double>(n))) : result;
}

// The transform of complex data along `axis`.
Value along(Builder& b, Value x, int64_t axis, bool inverse) {
  if (!b.ok()) return x;
  const int64_t rank = x.type().rank();
  const int64_t n = x.type().dims()[static_cast<size_t>(axis)];
  if (n == 1) return x;
  // Exchanging two dimensions is its own inverse.
  I64s exchange = counting(rank);
  std::swap(exchange[static_cast<size_t>(axis)], exchange.back());
  const bool last = axis == rank - 1;
  if (!last) x = b.transpose(x, exchange);
  if (!b.ok()) return x;
  x = is_direct_fft_length(n) ? direct(b, x, inverse ? FftType::kIfft : FftType::kFft)
                              : bluestein(b, x, inverse);
  return last ? x : b.transpose(x, exchange);
}

// The whole spectrum of real data of length n from its first half: X[k] = conj(X[n - k]).
Value complete(Builder& b, Value half, int64_t n) {
  if (!b.ok()) return half;
  const Dims dims = half.type().dims();
  const int64_t missing = n - dims.back();
  if (missing == 0) return half;
  const auto axis = static_cast<int64_t>(dims.size()) - 1;
  I64s start(dims.size(), 0);
  I64s limit = dims;
  start.back() = 1;
  limit.back() = 1 + missing;
  const Value mirrored = b.make(OpCode::kReverse, {b.slice(half, start, limit)},
                                {{AttrKey::dimensions, Attribute(I64s{axis})}});
  const Value conjugate = b.make(OpCode::kComplex, {b.unary(OpCode::kReal, mirrored),
                                                    b.neg(b.unary(OpCode::kImag, mirrored))});
  return b.concatenate({half, conjugate}, axis);
}

}  // namespace

Values fft(Builder& b, const Instruction& op) {
  TENON_TRY(check_static(op));
  const auto type = op.enumeration<FftType>(AttrKey::fft_type);
  const I64s& length = op.i64s(AttrKey::fft_length);
  const Type& result = op.result_type();
  if (result.shape().element_count() == 0) return finished(b, {b.splat(result.shape(), 0)});
  const int64_t rank = op.operand_type(0).rank();
  const int64_t first = rank - static_cast<int64_t>(length.size());
  Value x = op.operand(0);
  switch (type) {
    case FftType::kFft:
    case FftType::kIfft:
      for (int64_t axis = rank; axis-- > first;) x = along(b, x, axis, type == FftType::kIfft);
      break;
    case FftType::kRfft: {
      x = along(b, b.make(OpCode::kComplex, {x, b.splat_like(x, 0)}), rank - 1, false);
      Dims kept = op.operand_type(0).dims();
      kept.back() = kept.back() / 2 + 1;
      x = b.slice(x, I64s(kept.size(), 0), kept);
      for (int64_t axis = rank - 1; axis-- > first;) x = along(b, x, axis, false);
      break;
    }
    case FftType::kIrfft:
      // Transforms the outer dimensions first, while the spectrum is still half.
      for (int64_t axis = first; axis + 1 < rank; ++axis) x = along(b, x, axis, true);
      x = b.unary(OpCode::kReal, along(b, complete(b, x, length.back()), rank - 1, true));
      break;
  }
  return finished(b, {x});
}

}  // namespace tenon::hlo::decomposition
