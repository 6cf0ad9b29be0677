// Products of matrices, Einsum, convolutions.
#include <algorithm>
#include <set>

#include "hlo/onnx/ops/windows.h"

namespace tenon::hlo {

OnnxWindow read_window(const OnnxLowering& n, Value x, I64s size) {
  const size_t rank = size.size();
  if (n.dims_of(x).size() != rank + 2)
    bad_onnx("windows of rank {} over an array of rank {}", rank, n.rank_of(x));
  OnnxWindow window;
  window.size = std::move(size);
  window.strides = n.integers("strides", rank, 1);
  window.dilations = n.integers("dilations", rank, 1);
  const I64s pads = n.integers("pads", 2 * rank, 0);
  const std::string automatic = n.text("auto_pad", "NOTSET");
  for (size_t i = 0; i < rank; ++i) {
    const int64_t stride = window.strides[i], length = n.dims_of(x)[i + 2];
    constexpr int64_t kMost = int64_t{1} << 31;
    if (stride < 1 || window.dilations[i] < 1 || window.size[i] < 1 || stride > kMost ||
        window.dilations[i] > kMost || window.size[i] > kMost || std::abs(pads[i]) > kMost ||
        std::abs(pads[i + rank]) > kMost)
      bad_onnx("windows of size {} with stride {} and dilation {}", window.size[i], stride,
               window.dilations[i]);
    int64_t low = pads[i], high = pads[i + rank];
    if (automatic.starts_with("SAME")) {
      const int64_t wanted = (length + stride - 1) / stride;
      const int64_t total = std::max<int64_t>((wanted - 1) * stride + window.extent(i) - length, 0);
      low = automatic == "SAME_LOWER" ? (total + 1) / 2 : total / 2;
      high = total - low;
    } else if (automatic == "VALID") {
      low = high = 0;
    }
    const int64_t room = length + low + high - window.extent(i);
    if (room < 0)
      bad_onnx("a window of {} is wider than {} elements", window.extent(i), length + low + high);
    int64_t count = room / stride + 1;
    if (n.flag("ceil_mode") && room % stride != 0 && count * stride < length + low) {
      high += stride - room % stride;
      ++count;
    }
    window.low.push_back(low);
    window.high.push_back(high);
    window.results.push_back(count);
  }
  return window;
}

Value onnx_convolve(const OnnxEmitter& e, Value x, Value weights, const OnnxWindow& window,
                    int64_t groups, std::optional<ElementType> result,
                    const I64s& input_dilations) {
  const size_t rank = window.rank();
  I64Matrix padding{static_cast<int64_t>(rank), 2, {}};
  Dims dims = {e.dims_of(x)[0], e.dims_of(weights)[0]};
  for (size_t i = 0; i < rank; ++i) {
    padding.values.push_back(window.low[i]);
    padding.values.push_back(window.high[i]);
    dims.push_back(window.results[i]);
  }
  ConvDims places;
  places.input_feature = places.output_feature = 1;
  places.kernel_input_feature = 1;
  places.input_spatial = places.kernel_spatial = places.output_spatial =
      all_axes(static_cast<int64_t>(rank) + 2, 2);
  const I64s ones(rank, 1);
  return e.checked(e.builder().make(
      OpCode::kConvolution, {x, weights},
      {{AttrKey::window_strides, Attribute(window.strides)},
       {AttrKey::padding, Attribute(std::move(padding))},
       {AttrKey::lhs_dilation, Attribute(input_dilations.empty() ? ones : input_dilations)},
       {AttrKey::rhs_dilation, Attribute(window.dilations)},
       {AttrKey::dimension_numbers, Attribute(std::move(places))},
       {AttrKey::feature_group_count, groups},
       {AttrKey::batch_group_count, int64_t{1}}},
      {Type::tensor(result.value_or(e.type_of(x)), std::move(dims))}));
}

Value onnx_convolution_of(const OnnxLowering& n, Value x, Value weights,
                          std::optional<ElementType> result) {
  if (n.rank_of(weights) < 3) bad_onnx("weights of rank {}", n.rank_of(weights));
  const I64s size(n.dims_of(weights).begin() + 2, n.dims_of(weights).end());
  return onnx_convolve(n, x, weights, read_window(n, x, size), n.integer("group", 1), result);
}

namespace {

using Lp = OnnxLowering;

Value with_bias(Lp& n, Value x, size_t input) {
  if (!n.has(input)) return x;
  return n.add(x, n.broadcast_in_dim(n.in(input), n.dims_of(x), {1}));
}

Values lower_conv(Lp& n) { return {with_bias(n, onnx_convolution_of(n, n.in(0), n.in(1)), 2)}; }

// The gradient of a convolution: its input is spread by the strides, its window turned.
Values lower_conv_transpose(Lp& n) {
  const Value x = n.in(0), weights = n.in(1);
  if (n.rank_of(weights) < 3 || n.rank_of(x) != n.rank_of(weights))
    bad_onnx("weights of rank {} for an input of rank {}", n.rank_of(weights), n.rank_of(x));
  const I64s size(n.dims_of(weights).begin() + 2, n.dims_of(weights).end());
  const size_t rank = size.size();
  const I64s strides = n.integers("strides", rank, 1), dilations = n.integers("dilations", rank, 1);
  I64s pads = n.integers("pads", 2 * rank, 0);
  const I64s extra = n.integers("output_padding", rank, 0), shape = n.integers("output_shape");
  if (!shape.empty() && shape.size() < rank) bad_onnx("output_shape has {} sizes", shape.size());
  const std::string automatic = n.text("auto_pad", "NOTSET");
  OnnxWindow window{size, I64s(rank, 1), dilations, {}, {}, {}};
  for (size_t i = 0; i < rank; ++i) {
    const int64_t length = n.dims_of(x)[i + 2];
    const int64_t whole = strides[i] * (length - 1) + extra[i] + window.extent(i);
    const bool same = automatic.starts_with("SAME");
    if (!shape.empty() || same) {
      const int64_t wanted = shape.empty() ? length * strides[i] : shape[shape.size() - rank + i];
      const int64_t total = std::max<int64_t>(whole - wanted, 0);
      // The begin has one more of an odd number, but for SAME_UPPER.
      pads[i] = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      pads[i + rank] = total - pads[i];
      // A longer result than the window gives has zeros at its end.
      pads[i + rank] -= std::max<int64_t>(wanted - whole, 0);
    }
    window.low.push_back(window.extent(i) - 1 - pads[i]);
    window.high.push_back(window.extent(i) - 1 - pads[i + rank] + extra[i]);
    window.results.push_back(whole - pads[i] - pads[i + rank]);
  }
  // [channel, feature of a group, …] becomes [feature, channel of a group, …].
  const int64_t groups = n.integer("group", 1);
  const Dims& d = n.dims_of(weights);
  if (groups < 1 || d[0] % groups != 0) bad_onnx("{} groups of {} channels", groups, d[0]);
  Dims split = {groups, d[0] / groups, d[1]};
  split.insert(split.end(), size.begin(), size.end());
  I64s order = all_axes(std::ssize(split));
  std::swap(order[1], order[2]);
  Value turned = n.transpose(n.reshape(weights, split), order);
  Dims merged = {groups * d[1], d[0] / groups};
  merged.insert(merged.end(), size.begin(), size.end());
  turned = n.reverse(n.reshape(turned, merged), all_axes(static_cast<int64_t>(rank) + 2, 2));
  return {with_bias(n, onnx_convolve(n, x, turned, window, groups, {}, strides), 2)};
}

Values lower_matmul(Lp& n) { return {n.matmul(n.in(0), n.in(1))}; }

Values lower_gemm(Lp& n) {
  const Value a = n.in(0), b = n.in(1);
  if (n.rank_of(a) != 2 || n.rank_of(b) != 2) bad_onnx("its factors are no matrices");
  const bool turn_a = n.flag("transA"), turn_b = n.flag("transB");
  Value product = n.dot_general(a, b, DotDims{{}, {}, {turn_a ? 0 : 1}, {turn_b ? 1 : 0}});
  const double alpha = n.real("alpha", 1), beta = n.real("beta", 1);
  if (alpha != 1) product = n.mul(product, alpha);
  if (n.has(2)) product = n.add(product, beta == 1 ? n.in(2) : n.mul(n.in(2), beta));
  return {product};
}

// --- Einsum

// Labels of a term's dimensions; those of an ellipsis are digits, counted from the last.
std::string labels_of(std::string term, int64_t rank) {
  std::erase(term, ' ');
  const size_t dots = term.find("...");
  if (dots == std::string::npos) return term;
  const int64_t more = rank - (std::ssize(term) - 3);
  if (more < 0 || more > 9) bad_onnx("the term '{}' does not fit rank {}", term, rank);
  std::string digits;
  for (int64_t i = more; i > 0; --i) digits += static_cast<char>('0' + i);
  return term.replace(dots, 3, digits);
}

struct EinsumTerm {
  std::string labels;
  Value value;
};

// Dimensions with the same label become one: its diagonal, of which alone the elements are read.
void take_diagonals(Lp& n, EinsumTerm& term) {
  for (size_t i = 0; i < term.labels.size(); ++i) {
    const size_t j = term.labels.find(term.labels[i], i + 1);
    if (j == std::string::npos) continue;
    Dims dims = n.dims_of(term.value);
    if (dims[i] != dims[j])
      bad_onnx("dimensions of {} and {} elements have the label {}", dims[i], dims[j],
               term.labels[i]);
    dims[j] = 1;
    const auto axis = static_cast<int64_t>(j);
    const Value places = n.iota(ElementType::kS64, std::move(dims), static_cast<int64_t>(i));
    term.value = n.squeeze(n.take_along(term.value, places, axis), {axis});
    term.labels.erase(j, 1);
    --i;
  }
}

void sum_unneeded(Lp& n, EinsumTerm& term, const std::string& needed) {
  I64s axes;
  std::string left;
  for (size_t i = 0; i < term.labels.size(); ++i) {
    if (needed.find(term.labels[i]) == std::string::npos) {
      axes.push_back(static_cast<int64_t>(i));
    } else {
      left += term.labels[i];
    }
  }
  if (!axes.empty()) term.value = n.sum(term.value, axes, false);
  term.labels = std::move(left);
}

EinsumTerm product_of(Lp& n, EinsumTerm x, EinsumTerm y, const std::string& needed) {
  // A dimension of one element that the other repeats is as good as none.
  const auto drop_ones = [&](EinsumTerm& a, const EinsumTerm& b) {
    for (size_t i = a.labels.size(); i-- > 0;) {
      const size_t j = b.labels.find(a.labels[i]);
      if (j == std::string::npos || n.dims_of(a.value)[i] == n.dims_of(b.value)[j] ||
          n.dims_of(a.value)[i] != 1)
        continue;
      a.value = n.squeeze(a.value, {static_cast<int64_t>(i)});
      a.labels.erase(i, 1);
    }
  };
  drop_ones(x, y);
  drop_ones(y, x);
  sum_unneeded(n, x, needed + y.labels);
  sum_unneeded(n, y, needed + x.labels);
  DotDims dims;
  std::string batch, left, right;
  for (size_t i = 0; i < x.labels.size(); ++i) {
    const size_t j = y.labels.find(x.labels[i]);
    if (j == std::string::npos) {
      left += x.labels[i];
    } else if (needed.find(x.labels[i]) != std::string::npos) {
      batch += x.labels[i];
      dims.lhs_batching.push_back(static_cast<int64_t>(i));
      dims.rhs_batching.push_back(static_cast<int64_t>(j));
    } else {
      dims.lhs_contracting.push_back(static_cast<int64_t>(i));
      dims.rhs_contracting.push_back(static_cast<int64_t>(j));
    }
  }
  for (const char label : y.labels) {
    if (x.labels.find(label) == std::string::npos) right += label;
  }
  return {batch + left + right, n.dot_general(x.value, y.value, std::move(dims))};
}

Values lower_einsum(Lp& n) {
  const std::string equation = n.text("equation", "");
  const size_t arrow = equation.find("->");
  std::vector<EinsumTerm> terms;
  std::string all;
  std::string inputs = equation.substr(0, arrow);
  for (size_t start = 0, t = 0; start <= inputs.size(); ++t) {
    const size_t comma = std::min(inputs.find(',', start), inputs.size());
    const Value x = n.in(t);
    terms.push_back({labels_of(inputs.substr(start, comma - start), n.rank_of(x)), x});
    if (std::ssize(terms.back().labels) != n.rank_of(x))
      bad_onnx("a term of '{}' does not fit rank {}", equation, n.rank_of(x));
    all += terms.back().labels;
    take_diagonals(n, terms.back());
    start = comma + 1;
  }
  std::string dots, output;
  for (char digit = '9'; digit > '0'; --digit) {
    if (all.find(digit) != std::string::npos) dots += digit;
  }
  if (arrow != std::string::npos) {
    output = equation.substr(arrow + 2);
    std::erase(output, ' ');
    const size_t at = output.find("...");
    if (at != std::string::npos) output.replace(at, 3, dots);
  } else {
    output = dots;
    for (const char label : std::set<char>(all.begin(), all.end())) {
      if (std::isalpha(static_cast<unsigned char>(label)) != 0 &&
          std::ranges::count(all, label) == 1)
        output += label;
    }
  }
  EinsumTerm result = terms[0];
  for (size_t t = 1; t < terms.size(); ++t) {
    std::string needed = output;
    for (size_t later = t + 1; later < terms.size(); ++later) needed += terms[later].labels;
    result = product_of(n, std::move(result), terms[t], needed);
  }
  sum_unneeded(n, result, output);
  I64s order;
  for (const char label : output) {
    const size_t at = result.labels.find(label);
    if (at == std::string::npos) bad_onnx("'{}': no term has the label {}", equation, label);
    order.push_back(static_cast<int64_t>(at));
  }
  return {n.transpose(result.value, std::move(order))};
}

// --- Determinants and columns

// By elimination with the greatest pivot of each column, unrolled: matrices are small.
Values lower_det(Lp& n) {
  Value x = n.in(0);
  const int64_t rank = n.rank_of(x);
  if (rank < 2) bad_onnx("its input has rank {}", rank);
  const int64_t size = n.dims_of(x).back();
  constexpr int64_t kMost = 64;
  if (size > kMost || n.dims_of(x)[static_cast<size_t>(rank) - 2] != size)
    refuse_onnx("determinants of [{}]", dims_to_string(n.dims_of(x)));
  Dims batch(n.dims_of(x).begin(), n.dims_of(x).end() - 2);
  int64_t count = 1;
  for (const int64_t each : batch) count *= each;
  x = n.reshape(x, {count, size, size});
  Value result = n.splat(n.type_of(x), {count}, 1);
  for (int64_t k = 0; k < size; ++k) {
    const int64_t left = size - k;
    const Value column = n.slice_of(x, 2, 0, 1);
    const Value pivot_row = n.arg_extreme(n.abs(column), 1, true, false);  // [count, 1, 1]
    const Value rows = n.iota(ElementType::kS64, {count, left, left}, 1);
    const Value first = n.slice_of(x, 1, 0, 1);
    const Value chosen = n.take_along(x, n.broadcast_to(pivot_row, {count, 1, left}), 1);
    const Value swapped = n.select(n.compare(Direction::kEq, rows, pivot_row), first, x);
    const Value pivot = n.slice_of(chosen, 2, 0, 1);
    const Value sign =
        n.select(n.compare(Direction::kEq, pivot_row, 0), n.like(x, 1), n.like(x, -1));
    result = n.mul(result, n.reshape(n.mul(pivot, sign), {count}));
    if (left == 1) break;
    const Value rest = n.slice(swapped, {0, 1, 0}, {count, left, left});
    const Value safe = n.select(n.compare(Direction::kEq, pivot, 0), n.like(pivot, 1), pivot);
    const Value factor = n.div(n.slice_of(rest, 2, 0, 1), safe);
    x = n.slice(n.sub(rest, n.mul(factor, chosen)), {0, 0, 1}, {count, left - 1, left});
  }
  return {n.reshape(result, batch)};
}

// Adds columns, each a window, where they were taken from.
Values lower_col2im(Lp& n) {
  const Value x = n.in(0);
  const I64s image = n.known_i64s(1), block = n.known_i64s(2);
  const size_t rank = block.size();
  if (image.size() != rank || n.rank_of(x) != 3) bad_onnx("columns of rank {}", n.rank_of(x));
  const I64s strides = n.integers("strides", rank, 1), dilations = n.integers("dilations", rank, 1);
  const I64s pads = n.integers("pads", 2 * rank, 0);
  constexpr int64_t kLargestWindow = 4096;
  int64_t window = 1;
  for (size_t i = 0; i < rank; ++i) {
    if (block[i] < 1 || strides[i] < 1 || dilations[i] < 1 || image[i] < 0 || pads[i] < 0 ||
        pads[i + rank] < 0)
      bad_onnx("a size, stride, dilation or pad of dimension {} is not positive", i);
    if (std::max({block[i], strides[i], dilations[i]}) > kLargestWindow / window)
      exceed_onnx("windows of more than {} elements", kLargestWindow);
    window *= block[i];
  }
  if (!checked_element_count(image, 16)) exceed_onnx("the image is too large");
  const int64_t batch = n.dims_of(x)[0];
  if (window < 1 || n.dims_of(x)[1] % window != 0)
    bad_onnx("{} rows for windows of {}", n.dims_of(x)[1], window);
  const int64_t channels = n.dims_of(x)[1] / window;
  Dims dims = {batch, channels};
  Dims padded = dims;
  Dims split = {batch, channels};
  split.insert(split.end(), block.begin(), block.end());
  for (size_t i = 0; i < rank; ++i) {
    dims.push_back(image[i]);
    padded.push_back(image[i] + pads[i] + pads[i + rank]);
    split.push_back((padded.back() - dilations[i] * (block[i] - 1) - 1) / strides[i] + 1);
  }
  const Value columns = n.reshape(x, split);
  Value sum = n.splat(n.type_of(x), padded, 0);
  for (int64_t w = 0; w < window; ++w) {
    I64s start(split.size(), 0), limit = split, low(2, 0), high(2, 0), interior(2, 0);
    Dims cut = {batch, channels};
    int64_t left = w;
    for (size_t i = rank; i-- > 0;) {
      start[2 + i] = left % block[i];
      limit[2 + i] = start[2 + i] + 1;
      left /= block[i];
    }
    for (size_t i = 0; i < rank; ++i) {
      const int64_t count = split[2 + rank + i];
      cut.push_back(count);
      low.push_back(start[2 + i] * dilations[i]);
      interior.push_back(strides[i] - 1);
      high.push_back(padded[2 + i] - low.back() - ((count - 1) * strides[i] + 1));
    }
    const Value part = n.reshape(n.slice(columns, start, limit), cut);
    sum = n.add(sum, n.pad(part, n.like(x, 0), low, high, interior));
  }
  I64s start(2, 0);
  I64s limit = {batch, channels};
  for (size_t i = 0; i < rank; ++i) {
    start.push_back(pads[i]);
    limit.push_back(pads[i] + image[i]);
  }
  return {n.slice(sum, start, limit)};
}

constexpr OnnxRow kProductRows[] = {
    {"Col2Im", 18, lower_col2im},
    {"Conv", 1, lower_conv},
    {"ConvTranspose", 1, lower_conv_transpose},
    {"Det", 11, lower_det},
    {"Einsum", 12, lower_einsum},
    {"Gemm", 7, lower_gemm},
    {"MatMul", 1, lower_matmul},
};

}  // namespace

std::span<const OnnxRow> onnx_product_rows() { return kProductRows; }

}  // namespace tenon::hlo
