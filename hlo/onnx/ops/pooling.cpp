// Pools.
#include <cmath>

#include "hlo/onnx/ops/windows.h"

namespace tenon::hlo {
namespace {

using Lw = OnnxLowering;

OnnxEmitter::EmittedWindow whole_window(const OnnxWindow& window) {
  OnnxEmitter::EmittedWindow all{{1, 1}, {1, 1}, {0, 0}, {0, 0}, {1, 1}};
  const auto add = [](I64s& to, const I64s& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  add(all.size, window.size);
  add(all.strides, window.strides);
  add(all.low, window.low);
  add(all.high, window.high);
  add(all.dilations, window.dilations);
  return all;
}

OnnxWindow pool_window(Lw& n, Value x) {
  const I64s size = n.integers("kernel_shape");
  if (size.empty()) bad_onnx("kernel_shape is missing");
  return read_window(n, x, size);
}

// For each element of all windows, in row-major order, that element of each window: `use` gets
// them one after the other.
void for_each_place(Lw& n, Value padded, const OnnxWindow& window,
                    const std::function<void(Value)>& use) {
  const Dims& dims = n.dims_of(padded);
  int64_t places = 1;
  for (const int64_t each : window.size) places *= each;
  constexpr int64_t kMost = 4096;
  if (places > kMost) refuse_onnx("windows of {} elements with positions", places);
  for (int64_t p = 0; p < places; ++p) {
    I64s start(2, 0), limit = {dims[0], dims[1]}, strides(2, 1);
    I64s place(window.rank());
    int64_t left = p;
    for (size_t i = window.rank(); i-- > 0; left /= window.size[i])
      place[i] = left % window.size[i];
    for (size_t i = 0; i < window.rank(); ++i) {
      start.push_back(place[i] * window.dilations[i]);
      limit.push_back(start.back() + (window.results[i] - 1) * window.strides[i] + 1);
      strides.push_back(window.strides[i]);
    }
    use(n.slice(padded, std::move(start), std::move(limit), std::move(strides)));
  }
}

// The position of each window's maximum within the batch and channel's array, row- or column-major.
Value max_positions(Lw& n, Value x, const OnnxWindow& window) {
  const Dims& dims = n.dims_of(x);
  const bool columns = n.integer("storage_order", 0) == 1;
  Value positions = n.splat(ElementType::kS64, dims, 0);
  int64_t stride = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    // Column-major: the spatial dimensions in order, then channels and batches.
    const size_t at = columns && i + 2 < dims.size() ? i + 2 : dims.size() - 1 - i;
    positions = n.add(positions, n.mul(n.iota(ElementType::kS64, dims, static_cast<int64_t>(at)),
                                       static_cast<double>(stride)));
    stride *= dims[at];
  }
  const OnnxEmitter::EmittedWindow all = whole_window(window);
  const Value least = n.constant(n.identity_of(OpCode::kMaximum, n.type_of(x)));
  const Value padded = n.pad(x, least, all.low, all.high);
  const Value places = n.pad(positions, n.number(ElementType::kS64, -1), all.low, all.high);
  Values values, indices;
  for_each_place(n, padded, window, [&](Value each) { values.push_back(each); });
  for_each_place(n, places, window, [&](Value each) { indices.push_back(each); });
  Value best = values[0], found = indices[0];
  for (size_t i = 1; i < values.size(); ++i) {
    const Value better = n.logical_or(n.compare(Direction::kGt, values[i], best),
                                      n.compare(Direction::kLt, found, 0));
    best = n.select(better, values[i], best);
    found = n.select(better, indices[i], found);
  }
  return found;
}

Values lower_max_pool(Lw& n) {
  const Value x = n.in(0);
  const OnnxWindow window = pool_window(n, x);
  Values results = {n.reduce_window(OpCode::kMaximum, x, whole_window(window))};
  if (n.wants(1)) results.push_back(max_positions(n, x, window));
  return results;
}

Values lower_average_pool(Lw& n) {
  const Value x = n.in(0);
  const OnnxWindow window = pool_window(n, x);
  const OnnxEmitter::EmittedWindow all = whole_window(window);
  // The elements of each window that count: with their padding, or without.
  const I64s pads = n.integers("pads", 2 * window.rank(), 0);
  const bool counts = n.flag("count_include_pad"),
             stated = n.text("auto_pad", "NOTSET") == "NOTSET";
  Literal ones(Shape(ElementType::kF32, {}));
  ones.set<float>(0, 1);
  Dims dims = n.dims_of(x);
  dims[0] = dims[1] = 1;
  Value one = n.broadcast_to(n.constant(std::move(ones)), dims);
  OnnxEmitter::EmittedWindow counted = all;
  if (counts) {
    I64s low(2, 0), high(2, 0);
    for (size_t i = 0; i < window.rank(); ++i) {
      low.push_back(window.low[i]);
      high.push_back(stated ? pads[i + window.rank()] : window.high[i]);
      counted.low[i + 2] = 0;
      counted.high[i + 2] = window.high[i] - high.back();
    }
    one = n.pad(one, n.like(one, 1), low, high);
  }
  const ElementType type = n.type_of(x);
  const Value wide = bit_width(type) < 32 ? n.convert(x, ElementType::kF32) : x;
  const Value number = n.reduce_window(OpCode::kAdd, one, counted);
  const Value sum = n.reduce_window(OpCode::kAdd, wide, all);
  return {n.convert(n.div(sum, n.convert(number, n.type_of(sum))), type)};
}

Value p_norm(Lw& n, Value x, double p, const std::function<Value(Value)>& sum) {
  if (p == 1) return sum(n.abs(x));
  if (p == 2) return n.sqrt(sum(n.mul(x, x)));
  const Value total = sum(n.binary(OpCode::kPower, n.abs(x), n.like(x, p)));
  return n.binary(OpCode::kPower, total, n.like(x, 1 / p));
}

Values lower_lp_pool(Lw& n) {
  const Value x = n.in(0);
  const OnnxEmitter::EmittedWindow all = whole_window(pool_window(n, x));
  return {p_norm(n, x, static_cast<double>(n.integer("p", 2)),
                 [&](Value each) { return n.reduce_window(OpCode::kAdd, each, all); })};
}

Values lower_global_pool(Lw& n) {
  const Value x = n.in(0);
  const I64s axes = all_axes(n.rank_of(x), 2);
  switch (n.row().parameter) {
    case 0:
      return {n.mean(x, axes, true)};
    case 1:
      return {n.reduce(OpCode::kMaximum, x, axes, true)};
    default:
      return {p_norm(n, x, static_cast<double>(n.integer("p", 2)),
                     [&](Value each) { return n.sum(each, axes, true); })};
  }
}

Values lower_max_unpool(Lw& n) {
  const Value x = n.in(0);
  const size_t rank = static_cast<size_t>(std::max<int64_t>(n.rank_of(x) - 2, 0));
  const I64s size = n.integers("kernel_shape", rank, 1), strides = n.integers("strides", rank, 1);
  const I64s pads = n.integers("pads", 2 * rank, 0);
  Dims natural = n.dims_of(x);
  for (size_t i = 0; i < rank; ++i) {
    natural[i + 2] = (natural[i + 2] - 1) * strides[i] + size[i] - pads[i] - pads[i + rank];
  }
  Dims wanted = n.has(2) ? n.known_i64s(2) : natural;
  if (wanted.size() != natural.size()) bad_onnx("output_shape has {} sizes", wanted.size());
  // Positions count within the whole array of the natural size.
  const auto scatter = [&](const Dims& dims) {
    const Value flat = n.splat(n.type_of(x), {element_count(dims)}, 0);
    const Value places = n.reshape(n.in(1), {n.count_of(x), 1});
    return n.reshape(n.scatter_nd(flat, places, n.reshape(x, {n.count_of(x)}), std::nullopt), dims);
  };
  Value result = scatter(natural);
  if (wanted != natural) {
    I64s low(natural.size(), 0), high(natural.size(), 0);
    for (size_t i = 0; i < natural.size(); ++i) high[i] = wanted[i] - natural[i];
    result = n.pad(result, n.like(x, 0), low, high);
  }
  return {result};
}

constexpr OnnxRow kPoolingRows[] = {
    {"AveragePool", 1, lower_average_pool},
    {"GlobalAveragePool", 1, lower_global_pool, 0},
    {"GlobalLpPool", 2, lower_global_pool, 2},
    {"GlobalMaxPool", 1, lower_global_pool, 1},
    {"LpPool", 2, lower_lp_pool},
    {"MaxPool", 1, lower_max_pool},
    {"MaxUnpool", 9, lower_max_unpool},
};

}  // namespace

std::span<const OnnxRow> onnx_pooling_rows() { return kPoolingRows; }

}  // namespace tenon::hlo
