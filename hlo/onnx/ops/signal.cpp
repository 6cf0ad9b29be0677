// Fourier transforms, windows, filters of mel frequencies.
#include <algorithm>
#include <cmath>

#include "hlo/onnx/lowering.h"

namespace tenon::hlo {
namespace {

using Lf = OnnxLowering;

Value complex_of_parts(Lf& n, Value x) {
  const int64_t last = n.rank_of(x) - 1;
  const Value real = n.squeeze(n.slice_of(x, last, 0, 1), {last});
  const Value imaginary = n.dims_of(x).back() == 2 ? n.squeeze(n.slice_of(x, last, 1, 2), {last})
                                                   : n.splat(n.type_of(x), n.dims_of(real), 0);
  return n.binary(OpCode::kComplex, real, imaginary);
}

Value parts_of_complex(Lf& n, Value x) {
  const Value real = n.unsqueeze(n.unary(OpCode::kReal, x), {-1});
  return n.concatenate({real, n.unsqueeze(n.unary(OpCode::kImag, x), {-1})}, n.rank_of(real) - 1);
}

Value fft_of_rows(Lf& n, Value x, FftType type, int64_t length) {
  return n.checked(n.builder().make(
      OpCode::kFft, {x},
      {{AttrKey::fft_type, EnumAttr{EnumKind::kFftType, static_cast<uint8_t>(type)}},
       {AttrKey::fft_length, Attribute(I64s{length})}}));
}

// `size` elements of a dimension: the first ones, or zeros behind them.
Value resized(Lf& n, Value x, int64_t axis, int64_t size) {
  const auto a = static_cast<size_t>(axis);
  I64s low(n.dims_of(x).size(), 0), high(low.size(), 0);
  high[a] = size - n.dims_of(x)[a];
  return high[a] == 0 ? x : n.pad(x, n.like(x, 0), low, high);
}

Values lower_dft(Lf& n) {
  Value x = n.in(0);
  const ElementType type = n.type_of(x);
  if (n.rank_of(x) < 2 || n.dims_of(x).back() > 2)
    bad_onnx("its input is [{}]", dims_to_string(n.dims_of(x)));
  if (bit_width(type) < 32) x = n.convert(x, ElementType::kF32);
  int64_t axis = n.row().since < 20 ? n.integer("axis", 1) : -2;
  if (n.has(2)) axis = n.known_integer(2);
  axis = normal_axis(axis, n.rank_of(x));
  if (axis == n.rank_of(x) - 1) bad_onnx("the axis is that of real and imaginary parts");
  const bool inverse = n.flag("inverse"), onesided = n.flag("onesided");
  const int64_t given = n.dims_of(x)[static_cast<size_t>(axis)];
  int64_t length = inverse && onesided ? 2 * (given - 1) : given;
  if (n.has(1)) length = n.known_integer(1);
  if (length < 1) bad_onnx("dft_length is {}", length);
  x = resized(n, x, axis, inverse && onesided ? length / 2 + 1 : length);
  // The transformed dimension last.
  I64s order = all_axes(n.rank_of(x) - 1);
  std::swap(order[static_cast<size_t>(axis)], order.back());
  Value y = n.transpose(complex_of_parts(n, x), order);
  if (inverse && onesided) {
    y = n.unsqueeze(n.transpose(fft_of_rows(n, y, FftType::kIrfft, length), order), {-1});
    return {n.convert(y, type)};
  }
  y = fft_of_rows(n, y, inverse ? FftType::kIfft : FftType::kFft, length);
  if (onesided) y = n.slice_of(y, n.rank_of(y) - 1, 0, length / 2 + 1);
  return {n.convert(parts_of_complex(n, n.transpose(y, order)), type)};
}

// Inputs: the signal [batch, length, 1 or 2], the step of frames, a window, their length.
Values lower_stft(Lf& n) {
  Value x = n.in(0);
  const ElementType type = n.type_of(x);
  const auto step = n.known_integer(1);
  int64_t length = n.has(3) ? n.known_integer(3) : 0;
  if (n.has(2) && length == 0) length = n.count_of(n.in(2));
  if (n.rank_of(x) == 2) x = n.unsqueeze(x, {2});
  if (n.rank_of(x) != 3 || step < 1 || length < 1 || length > n.dims_of(x)[1])
    bad_onnx("frames of {} by {} of [{}]", length, step, dims_to_string(n.dims_of(x)));
  if (bit_width(type) < 32) x = n.convert(x, ElementType::kF32);
  const int64_t frames = (n.dims_of(x)[1] - length) / step + 1;
  const Dims dims = {frames, length};
  const Value places = n.add(n.mul(n.iota(ElementType::kS64, dims, 0), static_cast<double>(step)),
                             n.iota(ElementType::kS64, dims, 1));
  Value y = n.take(x, places, 1);  // [batch, frames, length, parts]
  if (n.has(2))
    y = n.mul(y, n.broadcast_in_dim(n.convert(n.in(2), n.type_of(y)), n.dims_of(y), {2}));
  const bool onesided = n.flag("onesided", true) && n.dims_of(x)[2] == 1;
  y = fft_of_rows(n, complex_of_parts(n, y), FftType::kFft, length);
  if (onesided) y = n.slice_of(y, 2, 0, length / 2 + 1);
  return {n.convert(parts_of_complex(n, y), type)};
}

// parameter: 0 Hann, 1 Hamming, 2 Blackman.
Values lower_window(Lf& n) {
  static constexpr double kCosines[][3] = {
      {0.5, 0.5, 0}, {25.0 / 46, 21.0 / 46, 0}, {0.42, 0.5, 0.08}};
  const double* c = kCosines[n.row().parameter];
  const double size = n.known_number(0);
  if (!(size >= 0 && size < 1e8)) bad_onnx("a window of {} elements", size);
  const double period = n.flag("periodic", true) ? size : size - 1;
  Literal window(
      Shape(n.type_attribute("output_datatype", ElementType::kF32), {static_cast<int64_t>(size)}));
  for (int64_t i = 0; i < window.element_count(); ++i) {
    const double angle = 2 * M_PI * static_cast<double>(i) / period;
    window.set_double(i, c[0] - c[1] * std::cos(angle) + c[2] * std::cos(2 * angle));
  }
  return {n.constant(std::move(window))};
}

// Triangles whose corners lie at equal distances of mel.
Values lower_mel_weights(Lf& n) {
  const double bins = n.known_number(0), length = n.known_number(1), rate = n.known_number(2);
  const double lowest = n.known_number(3), highest = n.known_number(4);
  constexpr double kMost = 1e5;
  if (!(bins >= 1 && bins < kMost && length >= 1 && length < kMost && rate >= 1 && lowest >= 0 &&
        highest >= 0))
    bad_onnx("{} bins of a transform of {}", bins, length);
  const auto count = static_cast<int64_t>(bins), rows = static_cast<int64_t>(length) / 2 + 1;
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double step = (mel(highest) - mel(lowest)) / (bins + 2);
  I64s corners;
  for (int64_t i = 0; i < count + 2; ++i) {
    const double hertz =
        700 * (std::pow(10, (static_cast<double>(i) * step + mel(lowest)) / 2595) - 1);
    corners.push_back(
        std::min(static_cast<int64_t>(std::floor((length + 1) * hertz / rate)), rows));
  }
  Literal weights(Shape(n.type_attribute("output_datatype", ElementType::kF32), {rows, count}));
  const auto set = [&](int64_t row, int64_t column, double value) {
    if (row >= 0 && row < rows) weights.set_double(row * count + column, value);
  };
  for (int64_t i = 0; i < count; ++i) {
    const int64_t low = corners[static_cast<size_t>(i)],
                  center = corners[static_cast<size_t>(i) + 1],
                  high = corners[static_cast<size_t>(i) + 2];
    if (low == center) set(center, i, 1);
    for (int64_t j = low; low != center && j <= center; ++j)
      set(j, i, static_cast<double>(j - low) / static_cast<double>(center - low));
    for (int64_t j = center; high > center && j < high; ++j)
      set(j, i, static_cast<double>(high - j) / static_cast<double>(high - center));
  }
  return {n.constant(std::move(weights))};
}

constexpr OnnxRow kSignalRows[] = {
    {"BlackmanWindow", 17, lower_window, 2},
    {"DFT", 17, lower_dft},
    {"DFT", 20, lower_dft},
    {"HammingWindow", 17, lower_window, 1},
    {"HannWindow", 17, lower_window, 0},
    {"MelWeightMatrix", 17, lower_mel_weights},
    {"STFT", 17, lower_stft},
};

}  // namespace

std::span<const OnnxRow> onnx_signal_rows() { return kSignalRows; }

}  // namespace tenon::hlo
