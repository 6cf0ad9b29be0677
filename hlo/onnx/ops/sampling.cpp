// Samples of an array at positions between its elements.
#include <algorithm>

#include "hlo/onnx/ops/windows.h"

namespace tenon::hlo {
namespace {

using Lv = OnnxLowering;

struct SampleMode {
  std::string padding;
  bool aligned = false;
};

// Positions beyond [low, high] mirrored into it.
Value reflected(const OnnxEmitter& e, Value x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return e.mul(x, 0);
  const Value t = e.binary(OpCode::kRemainder, e.abs(e.sub(x, low)), e.like(x, 2 * range));
  return e.add(e.min(t, e.sub(e.number(e.type_of(x), 2 * range), t)), low);
}

Value sample_position(const OnnxEmitter& e, Value x, int64_t length, const SampleMode& mode) {
  const auto size = static_cast<double>(length);
  if (mode.padding == "border") return e.min(e.max(x, 0), size - 1);
  if (mode.padding != "reflection") return x;
  return mode.aligned ? reflected(e, x, 0, size - 1) : reflected(e, x, -0.5, size - 0.5);
}

struct SampleAxis {
  int64_t length;
  std::vector<Value> places, weights;  // Floats: neighbours, and how much they count.
};

SampleAxis neighbours(Lv& n, Value x, int64_t length, const std::string& mode) {
  SampleAxis axis{length, {}, {}};
  if (mode == "nearest") {
    axis.places = {n.unary(OpCode::kRoundNearestEven, x)};
    axis.weights = {n.splat(n.type_of(x), n.dims_of(x), 1)};
    return axis;
  }
  const Value floor = n.floor(x), t = n.sub(x, floor);
  if (mode == "linear") {
    axis.places = {floor, n.add(floor, 1)};
    axis.weights = {n.sub(n.like(t, 1), t), t};
    return axis;
  }
  constexpr double kA = -0.75;
  const auto polynomial = [&](Value v, double a, double b, double c, double d) {
    return n.add(n.mul(n.add(n.mul(n.add(n.mul(v, a), b), v), c), v), d);
  };
  const auto outer = [&](Value v) { return polynomial(v, kA, -5 * kA, 8 * kA, -4 * kA); };
  const auto inner = [&](Value v) { return polynomial(v, kA + 2, -(kA + 3), 0, 1); };
  for (int64_t i = -1; i < 3; ++i) axis.places.push_back(n.add(floor, static_cast<double>(i)));
  const Value one_less = n.sub(n.like(t, 1), t);
  axis.weights = {outer(n.add(t, 1)), inner(t), inner(one_less), outer(n.add(one_less, 1))};
  return axis;
}

// The weighted sum of the neighbours in all dimensions. `x` is [batch, …, channel]; `batches` has
// the batch of each sample, and without it the samples begin with a dimension of batches.
Value weighted_samples(Lv& n, Value x, const std::vector<SampleAxis>& axes, const SampleMode& mode,
                       OpCode combiner = OpCode::kAdd, std::optional<Value> batches = {}) {
  size_t combinations = 1;
  for (const SampleAxis& each : axes) combinations *= each.places.size();
  std::optional<Value> sum;
  for (size_t c = 0; c < combinations; ++c) {
    size_t left = c;
    Values components;
    if (batches) components.push_back(n.unsqueeze(*batches, {-1}));
    std::optional<Value> weight, inside;
    for (const SampleAxis& axis : axes) {
      const size_t i = left % axis.places.size();
      left /= axis.places.size();
      Value place = axis.places[i];
      const auto most = static_cast<double>(axis.length - 1);
      if (mode.padding == "zeros") {
        const Value within = n.logical_and(n.compare(Direction::kGe, place, 0),
                                           n.compare(Direction::kLe, place, most));
        inside = inside ? n.logical_and(*inside, within) : within;
      } else {
        place = sample_position(n, place, axis.length, mode);
      }
      place = n.min(n.max(place, 0), most);
      Dims column = n.dims_of(place);
      column.push_back(1);
      components.push_back(n.reshape(
          n.convert(n.unary(OpCode::kRoundNearestEven, place), ElementType::kS64), column));
      weight = weight ? n.mul(*weight, axis.weights[i]) : axis.weights[i];
    }
    if (inside) weight = n.select(*inside, *weight, n.like(*weight, 0));
    const Value places = n.concatenate(components, n.rank_of(components[0]) - 1);
    const Value sample = n.gather_nd(x, places, batches ? 0 : 1);
    const Value part = n.mul(sample, n.convert(n.unsqueeze(*weight, {-1}), n.type_of(sample)));
    sum = sum ? n.binary(combiner, *sum, part) : part;
  }
  return *sum;
}

Value channels_to(Lv& n, Value x, bool last) {
  I64s order = all_axes(n.rank_of(x));
  if (last) {
    std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  } else {
    std::rotate(order.begin() + 1, order.end() - 1, order.end());
  }
  return n.transpose(x, std::move(order));
}

Values lower_grid_sample(Lv& n) {
  const Value x = n.in(0), grid = n.in(1);
  const int64_t rank = n.rank_of(x) - 2;
  constexpr int64_t kMostRank = 3;
  if (rank < 1 || rank > kMostRank || n.rank_of(grid) != rank + 2 || n.dims_of(grid).back() != rank)
    refuse_onnx("a grid of rank {} for rank {}", n.rank_of(grid), n.rank_of(x));
  std::string mode = n.text("mode", "linear");
  if (mode == "bilinear") mode = "linear";
  if (mode == "bicubic") mode = "cubic";
  const SampleMode sample{n.text("padding_mode", "zeros"), n.flag("align_corners")};
  std::vector<SampleAxis> axes;
  for (int64_t i = 0; i < rank; ++i) {
    // The last dimension comes first in a position.
    const int64_t length = n.dims_of(x)[static_cast<size_t>(i) + 2];
    const auto size = static_cast<double>(length);
    const Value g = n.squeeze(n.slice_of(grid, rank + 1, rank - 1 - i, rank - i), {-1});
    Value position = sample.aligned ? n.mul(n.add(g, 1), (size - 1) / 2)
                                    : n.mul(n.sub(n.mul(n.add(g, 1), size), 1), 0.5);
    if (mode == "nearest") position = n.unary(OpCode::kRoundNearestEven, position);
    if (mode != "cubic") position = sample_position(n, position, length, sample);
    axes.push_back(neighbours(n, position, length, mode));
  }
  return {channels_to(n, weighted_samples(n, channels_to(n, x, true), axes, sample), false)};
}

// Positions in [-1, 1] of an array of `size`, moved by a matrix for each batch.
Values lower_affine_grid(Lv& n) {
  const Value theta = n.in(0);
  const I64s size = n.known_i64s(1);
  const bool aligned = n.flag("align_corners");
  const int64_t rank = std::ssize(size) - 2;
  if (rank < 1 || n.rank_of(theta) != 3) bad_onnx("{} sizes", size.size());
  const Dims space(size.begin() + 2, size.end());
  Dims column = space;
  column.push_back(1);
  Values components;
  for (int64_t i = rank - 1; i >= 0; --i) {
    const auto length = static_cast<double>(space[static_cast<size_t>(i)]);
    const Value step = n.iota(n.type_of(theta), column, i);
    const double width = aligned ? std::max(length - 1, 1.0) : length;
    components.push_back(aligned ? n.sub(n.mul(step, 2 / width), 1)
                                 : n.sub(n.mul(n.add(step, 0.5), 2 / width), 1));
  }
  components.push_back(n.splat(n.type_of(theta), column, 1));
  const Value base = n.concatenate(components, rank);
  const Value moved = n.dot_general(theta, base, DotDims{{}, {}, {2}, {rank}});  // [N, rank, …]
  return {channels_to(n, moved, true)};
}

Values lower_roi_align(Lv& n) {
  const Value x = n.in(0), rois = n.in(1);
  const int64_t ratio = n.integer("sampling_ratio", 0);
  if (ratio < 1) refuse_onnx("sampling_ratio {} is not supported", ratio);
  // The greatest of all neighbours, each by its weight.
  const bool greatest = n.text("mode", "avg") == "max";
  if (n.rank_of(x) != 4 || n.rank_of(rois) != 2) bad_onnx("its input has rank {}", n.rank_of(x));
  const bool half =
      n.row().since >= 16 && n.text("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const int64_t count = n.dims_of(rois)[0];
  const int64_t sizes[] = {n.integer("output_height", 1), n.integer("output_width", 1)};
  const double scale = n.real("spatial_scale", 1);
  const Dims all = {count, sizes[0] * ratio, sizes[1] * ratio};
  std::vector<SampleAxis> axes;
  std::optional<Value> inside;
  for (int64_t i = 0; i < 2; ++i) {
    const auto bound = [&](int64_t at) {
      return n.sub(n.mul(n.slice_of(rois, 1, at, at + 1), scale), half ? 0.5 : 0.0);
    };
    const Value start = bound(1 - i);
    Value extent = n.sub(bound(3 - i), start);
    if (!half) extent = n.max(extent, 1);
    const auto steps = static_cast<double>(sizes[i] * ratio);
    const Value step = n.add(n.iota(n.type_of(rois), {1, sizes[i] * ratio}, 1), 0.5);
    Value at = n.broadcast_in_dim(n.add(start, n.mul(step, n.div(extent, steps))), all, {0, i + 1});
    const int64_t length = n.dims_of(x)[static_cast<size_t>(i) + 2];
    const auto size = static_cast<double>(length);
    const Value within =
        n.logical_and(n.compare(Direction::kGe, at, -1), n.compare(Direction::kLe, at, size));
    inside = inside ? n.logical_and(*inside, within) : within;
    axes.push_back(neighbours(n, n.min(n.max(at, 0), size - 1), length, "linear"));
  }
  axes[0].weights[0] = n.select(*inside, axes[0].weights[0], n.like(x, 0));
  axes[0].weights[1] = n.select(*inside, axes[0].weights[1], n.like(x, 0));
  // Regions read the map of their batch in its place: a copy for each would be much more.
  const Value batches = n.broadcast_in_dim(n.convert(n.in(2), ElementType::kS64), all, {0});
  const Value samples = weighted_samples(n, channels_to(n, x, true), axes, {"border", true},
                                         greatest ? OpCode::kMaximum : OpCode::kAdd, batches);
  const Value split =
      n.reshape(samples, {count, sizes[0], ratio, sizes[1], ratio, n.dims_of(x)[1]});
  const Value pooled =
      greatest ? n.reduce(OpCode::kMaximum, split, {2, 4}, false) : n.mean(split, {2, 4}, false);
  return {n.transpose(pooled, {0, 3, 1, 2})};
}

// For each element of the kernel, the elements of x that it meets: [batch, element, …, channel].
Value deformed_samples(Lv& n, Value x, Value offsets, const OnnxWindow& window, int64_t elements) {
  const auto rank = static_cast<int64_t>(window.rank());
  const Dims& d = n.dims_of(offsets);  // [batch, element, dimension, …]
  Dims dims = {d[0], elements};
  dims.insert(dims.end(), d.begin() + 3, d.end());
  std::vector<SampleAxis> axes;
  int64_t inner = elements;
  for (int64_t i = 0; i < rank; ++i) {
    const auto a = static_cast<size_t>(i);
    inner /= window.size[a];
    // The kernel's elements count row by row.
    const Value element = n.iota(ElementType::kS64, dims, 1);
    const Value row = n.binary(OpCode::kRemainder, n.div(element, static_cast<double>(inner)),
                               n.like(element, static_cast<double>(window.size[a])));
    const Value step =
        n.mul(n.iota(ElementType::kS64, dims, i + 2), static_cast<double>(window.strides[a]));
    const Value start = n.sub(n.add(step, n.mul(row, static_cast<double>(window.dilations[a]))),
                              static_cast<double>(window.low[a]));
    const Value offset = n.squeeze(n.slice_of(offsets, 2, i, i + 1), {2});
    const Value position = n.add(n.convert(start, n.type_of(offsets)), offset);
    axes.push_back(neighbours(n, position, n.dims_of(x)[a + 2], "linear"));
  }
  return weighted_samples(n, channels_to(n, x, true), axes, {"zeros", false});
}

// Inputs: x, weights, offsets of the kernel's elements, a bias, a mask.
Values lower_deform_conv(Lv& n) {
  const Value x = n.in(0), weights = n.in(1);
  n.check_rank(weights, 3);
  n.check_rank(x, n.rank_of(weights), n.rank_of(weights));
  n.check_rank(n.in(2), n.rank_of(x), n.rank_of(x));
  const I64s size(n.dims_of(weights).begin() + 2, n.dims_of(weights).end());
  const OnnxWindow window = read_window(n, x, size);
  const auto rank = static_cast<int64_t>(size.size());
  const int64_t groups = n.integer("group", 1), parts = n.integer("offset_group", 1);
  const int64_t channels = n.dims_of(x)[1], features = n.dims_of(weights)[0],
                elements = element_count(size);
  if (groups < 1 || parts < 1 || channels % parts != 0 || channels % groups != 0 ||
      features % groups != 0)
    bad_onnx("{} groups and {} of offsets for {} channels", groups, parts, channels);
  Dims split = {n.dims_of(x)[0], parts, elements, rank};
  split.insert(split.end(), window.results.begin(), window.results.end());
  const Value offsets = n.reshape(n.in(2), split);
  Values samples;
  for (int64_t p = 0; p < parts; ++p) {
    const int64_t width = channels / parts;
    const Value own = n.squeeze(n.slice_of(offsets, 1, p, p + 1), {1});
    Value sample =
        deformed_samples(n, n.slice_of(x, 1, p * width, (p + 1) * width), own, window, elements);
    if (n.has(4)) {
      Dims masks = split;
      masks[3] = 1;
      const Value mask = n.slice_of(n.reshape(n.in(4), masks), 1, p, p + 1);
      sample = n.mul(sample, n.unsqueeze(n.squeeze(mask, {1, 3}), {-1}));
    }
    samples.push_back(sample);
  }
  const int64_t last = rank + 2;
  const Value all = n.concatenate(samples, last);
  Values results;
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t width = channels / groups, count = features / groups;
    const Value own = n.slice_of(all, last, g * width, (g + 1) * width);
    const Value kernel =
        n.reshape(n.slice_of(weights, 0, g * count, (g + 1) * count), {count, width, elements});
    results.push_back(n.dot_general(own, kernel, DotDims{{}, {}, {last, 1}, {1, 2}}));
  }
  const Value y = channels_to(n, n.concatenate(results, rank + 1), false);
  return {n.has(3) ? n.add(y, n.broadcast_in_dim(n.in(3), n.dims_of(y), {1})) : y};
}

constexpr OnnxRow kSamplingRows[] = {
    {"AffineGrid", 20, lower_affine_grid}, {"DeformConv", 19, lower_deform_conv},
    {"GridSample", 16, lower_grid_sample}, {"RoiAlign", 10, lower_roi_align},
    {"RoiAlign", 16, lower_roi_align},
};

}  // namespace

std::span<const OnnxRow> onnx_sampling_rows() { return kSamplingRows; }

}  // namespace tenon::hlo
