// Resize, and samples at positions.
#include <algorithm>
#include <cmath>

#include "hlo/onnx/ops/windows.h"

namespace tenon::hlo {
namespace {

using Lz = OnnxLowering;

struct ResizeAxis {
  int64_t axis = 0, length = 0, result = 0;
  double scale = 1, start = 0, end = 1;
};

struct ResizeMode {
  std::string mode, coordinates, nearest;
  double cubic = -0.75;
  bool excludes_outside = false, antialias = false;
};

double original_position(const ResizeAxis& a, const std::string& mode, double x) {
  const auto length = static_cast<double>(a.length), result = static_cast<double>(a.result);
  // The length that the scale gives, which may be no whole number.
  const double scaled = a.scale * length;
  if (mode == "align_corners") return scaled == 1 ? 0 : x * (length - 1) / (scaled - 1);
  if (mode == "asymmetric") return x / a.scale;
  if (mode == "tf_half_pixel_for_nn") return (x + 0.5) / a.scale;
  if (mode == "pytorch_half_pixel" && a.result <= 1) return 0;
  if (mode == "half_pixel_symmetric") {
    const double adjusted = result / scaled;
    return length / 2 * (1 - adjusted) + (x + 0.5) / a.scale - 0.5;
  }
  if (mode == "tf_crop_and_resize") {
    if (scaled <= 1) return 0.5 * (a.start + a.end) * (length - 1);
    return a.start * (length - 1) + x * (a.end - a.start) * (length - 1) / (scaled - 1);
  }
  if (mode != "half_pixel" && mode != "pytorch_half_pixel")
    refuse_onnx("coordinate_transformation_mode '{}' is not supported", mode);
  return (x + 0.5) / a.scale - 0.5;
}

double nearest_position(const std::string& mode, double x) {
  if (mode == "floor") return std::floor(x);
  if (mode == "ceil") return std::ceil(x);
  if (mode == "round_prefer_ceil") return std::floor(x + 0.5);
  return std::ceil(x - 0.5);
}

double filter_at(const ResizeMode& mode, double x) {
  x = std::fabs(x);
  if (mode.mode == "linear") return std::max(1 - x, 0.0);
  const double a = mode.cubic;
  if (x <= 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
  return x < 2 ? a * (x * x * x - 5 * x * x + 8 * x - 4) : 0;
}

// The weights of an axis's elements for one element of the result; an element beyond the edge is
// that at the edge.
void add_weights(const ResizeAxis& a, const ResizeMode& mode, double x, std::vector<double>& row) {
  const double stretch = mode.antialias ? std::min(a.scale, 1.0) : 1;
  const double reach = (mode.mode == "linear" ? 1 : 2) / stretch;
  const auto first = static_cast<int64_t>(std::floor(x - reach)),
             last = static_cast<int64_t>(std::ceil(x + reach));
  double total = 0;
  for (int64_t i = first; i <= last; ++i) {
    const bool outside = i < 0 || i >= a.length;
    if (outside && mode.excludes_outside) continue;
    const double weight = filter_at(mode, (static_cast<double>(i) - x) * stretch);
    row[static_cast<size_t>(std::clamp<int64_t>(i, 0, a.length - 1))] += weight;
    total += weight;
  }
  if (total != 0) {
    for (double& each : row) each /= total;
  }
}

Value resize_axis(Lz& n, Value x, const ResizeAxis& a, const ResizeMode& mode) {
  constexpr int64_t kMostWeights = int64_t{1} << 28;
  if (a.length < 1 || a.result < 0 || a.result > kMostWeights / a.length)
    exceed_onnx("{} elements of {}", a.result, a.length);
  if (mode.mode == "nearest") {
    I64s places;
    for (int64_t i = 0; i < a.result; ++i) {
      const double position = nearest_position(
          mode.nearest, original_position(a, mode.coordinates, static_cast<double>(i)));
      places.push_back(
          static_cast<int64_t>(std::clamp(position, 0.0, static_cast<double>(a.length - 1))));
    }
    return n.take(x, n.i64s(places), a.axis);
  }
  Literal weights(Shape(ElementType::kF32, {a.result, a.length}));
  for (int64_t i = 0; i < a.result; ++i) {
    std::vector<double> row(static_cast<size_t>(a.length), 0);
    add_weights(a, mode, original_position(a, mode.coordinates, static_cast<double>(i)), row);
    for (int64_t j = 0; j < a.length; ++j)
      weights.set(i * a.length + j, static_cast<float>(row[static_cast<size_t>(j)]));
  }
  const Value matrix = n.convert(n.constant(std::move(weights)), n.type_of(x));
  const Value product = n.dot_general(x, matrix, DotDims{{}, {}, {a.axis}, {1}});
  I64s order = all_axes(n.rank_of(x) - 1);
  order.insert(order.begin() + a.axis, n.rank_of(x) - 1);
  return n.transpose(product, std::move(order));
}

// Cropped elements beyond the input are one number.
Value extrapolate(Lz& n, Value x, const ResizeAxis& a, double number) {
  Literal inside(Shape(ElementType::kPred, {a.result}));
  for (int64_t i = 0; i < a.result; ++i) {
    const double at = original_position(a, "tf_crop_and_resize", static_cast<double>(i));
    inside.set_integer(i, at >= 0 && at <= static_cast<double>(a.length - 1) ? 1 : 0);
  }
  return n.select(n.broadcast_in_dim(n.constant(std::move(inside)), n.dims_of(x), {a.axis}), x,
                  n.like(x, number));
}

std::vector<double> reals_of(const Literal& literal) {
  std::vector<double> values;
  for (int64_t i = 0; i < literal.element_count(); ++i) values.push_back(literal.get_double(i));
  return values;
}

// Resize since 11: roi, scales, sizes. Before, and Upsample: scales alone.
std::vector<ResizeAxis> resize_axes(Lz& n, Value x) {
  const bool old = n.row().parameter == 1;
  I64s axes = n.has_attribute("axes") ? n.integers("axes") : all_axes(n.rank_of(x));
  const size_t scale_input = old ? 1 : 2;
  std::vector<double> scales;
  if (n.has(scale_input)) scales = reals_of(n.known(scale_input));
  if (const OnnxAttribute* given = n.attribute("scales"))
    scales.assign(given->reals.begin(), given->reals.end());
  const I64s sizes = !old && n.has(3) ? n.known_i64s(3) : I64s{};
  std::vector<double> roi;
  if (!old && n.has(1) &&
      n.text("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize")
    roi = reals_of(n.known(1));
  const size_t count = axes.size();
  if ((scales.empty() ? sizes.size() : scales.size()) != count ||
      (!roi.empty() && roi.size() != 2 * count))
    bad_onnx("scales or sizes do not fit {} axes", count);
  std::vector<ResizeAxis> read;
  const std::string policy = n.text("keep_aspect_ratio_policy", "stretch");
  double common = policy == "not_larger" ? HUGE_VAL : 0;
  for (size_t i = 0; i < count; ++i) {
    ResizeAxis a;
    a.axis = normal_axis(axes[i], n.rank_of(x));
    a.length = n.dims_of(x)[static_cast<size_t>(a.axis)];
    if (!roi.empty()) {
      a.start = roi[i];
      a.end = roi[i + count];
    }
    const auto length = static_cast<double>(a.length);
    if (!scales.empty()) {
      a.scale = scales[i];
      const double result = std::floor(length * a.scale);
      if (!(a.scale > 0) || !(result < 1e12)) bad_onnx("the scale is {}", a.scale);
      a.result = static_cast<int64_t>(result);
    } else {
      a.result = sizes[i];
      a.scale = static_cast<double>(sizes[i]) / length;
      common = policy == "not_larger" ? std::min(common, a.scale) : std::max(common, a.scale);
    }
    read.push_back(a);
  }
  if (scales.empty() && policy != "stretch") {
    for (ResizeAxis& a : read) {
      a.scale = common;
      a.result = static_cast<int64_t>(std::floor(common * static_cast<double>(a.length) + 0.5));
    }
  }
  return read;
}

Values lower_resize(Lz& n) {
  Value x = n.in(0);
  const bool old = n.row().parameter == 1;
  ResizeMode mode;
  mode.mode = n.text("mode", "nearest");
  mode.coordinates = old ? "asymmetric" : n.text("coordinate_transformation_mode", "half_pixel");
  mode.nearest = old ? "floor" : n.text("nearest_mode", "round_prefer_floor");
  mode.cubic = n.real("cubic_coeff_a", -0.75);
  mode.excludes_outside = n.flag("exclude_outside");
  mode.antialias = n.flag("antialias");
  if (mode.mode == "bilinear") mode.mode = "linear";
  if (mode.mode != "nearest" && mode.mode != "linear" && mode.mode != "cubic")
    refuse_onnx("mode '{}' is not supported", mode.mode);
  const ElementType type = n.type_of(x);
  const bool widened = mode.mode != "nearest" && (!is_float(type) || bit_width(type) < 32);
  if (widened) x = n.convert(x, ElementType::kF32);
  const bool crops = mode.coordinates == "tf_crop_and_resize";
  const std::vector<ResizeAxis> axes = resize_axes(n, x);
  for (const ResizeAxis& a : axes) {
    if (a.result == a.length && a.scale == 1 && !crops) continue;
    x = resize_axis(n, x, a, mode);
  }
  for (const ResizeAxis& a : axes) {
    if (crops) x = extrapolate(n, x, a, n.real("extrapolation_value", 0));
  }
  if (!widened) return {x};
  if (!is_float(type)) x = n.unary(OpCode::kRoundNearestEven, x);
  return {n.convert(x, type)};
}

// --- Samples at positions

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

SampleAxis neighbours(Lz& n, Value x, int64_t length, const std::string& mode) {
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

// The weighted sum of the neighbours in all dimensions. `x` is [batch, …, channel].
Value weighted_samples(Lz& n, Value x, const std::vector<SampleAxis>& axes, const SampleMode& mode,
                       OpCode combiner = OpCode::kAdd) {
  size_t combinations = 1;
  for (const SampleAxis& each : axes) combinations *= each.places.size();
  std::optional<Value> sum;
  for (size_t c = 0; c < combinations; ++c) {
    size_t left = c;
    Values components;
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
    const Value sample = n.gather_nd(x, n.concatenate(components, n.rank_of(components[0]) - 1), 1);
    const Value part = n.mul(sample, n.convert(n.unsqueeze(*weight, {-1}), n.type_of(sample)));
    sum = sum ? n.binary(combiner, *sum, part) : part;
  }
  return *sum;
}

Value channels_to(Lz& n, Value x, bool last) {
  I64s order = all_axes(n.rank_of(x));
  if (last) {
    std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  } else {
    std::rotate(order.begin() + 1, order.end() - 1, order.end());
  }
  return n.transpose(x, std::move(order));
}

Values lower_grid_sample(Lz& n) {
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
Values lower_affine_grid(Lz& n) {
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

Values lower_roi_align(Lz& n) {
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
  const Value chosen = n.take(x, n.in(2), 0);
  const Value samples = weighted_samples(n, channels_to(n, chosen, true), axes, {"border", true},
                                         greatest ? OpCode::kMaximum : OpCode::kAdd);
  const Value split =
      n.reshape(samples, {count, sizes[0], ratio, sizes[1], ratio, n.dims_of(x)[1]});
  const Value pooled =
      greatest ? n.reduce(OpCode::kMaximum, split, {2, 4}, false) : n.mean(split, {2, 4}, false);
  return {n.transpose(pooled, {0, 3, 1, 2})};
}

// For each element of the kernel, the elements of x that it meets: [batch, element, …, channel].
Value deformed_samples(Lz& n, Value x, Value offsets, const OnnxWindow& window, int64_t elements) {
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
Values lower_deform_conv(Lz& n) {
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

constexpr OnnxRow kResizeRows[] = {
    {"AffineGrid", 20, lower_affine_grid}, {"DeformConv", 19, lower_deform_conv},
    {"GridSample", 16, lower_grid_sample}, {"Resize", 10, lower_resize, 1},
    {"Resize", 11, lower_resize, 0},       {"RoiAlign", 10, lower_roi_align},
    {"RoiAlign", 16, lower_roi_align},     {"Upsample", 7, lower_resize, 1},
};

}  // namespace

std::span<const OnnxRow> onnx_resize_rows() { return kResizeRows; }

}  // namespace tenon::hlo
