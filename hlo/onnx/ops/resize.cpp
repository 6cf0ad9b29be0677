// Resize: each dimension by itself.
#include <algorithm>
#include <cmath>

#include "hlo/onnx/lowering.h"

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

// Finite, and not so far beyond the axis that an integer cannot hold it.
double position_of(const ResizeAxis& a, const std::string& mode, int64_t i) {
  const double x = original_position(a, mode, static_cast<double>(i));
  if (!std::isfinite(x)) bad_onnx("element {} of the result is at the position {}", i, x);
  const auto length = static_cast<double>(a.length);
  return std::clamp(x, -4 * length - 4, 5 * length + 4);
}

// An element of the result is the sum of a run of elements, each by its weight.
struct Band {
  int64_t first = 0;
  std::vector<double> weights = {0};
};

struct ResizeFilter {
  double stretch, reach;

  ResizeFilter(const ResizeAxis& a, const ResizeMode& mode)
      : stretch(mode.antialias ? std::min(a.scale, 1.0) : 1),
        reach((mode.mode == "linear" ? 1 : 2) / stretch) {}

  double width() const { return 2 * reach; }
};

// Whether an axis is long beside the elements that a result takes: only those are read then. A
// product with zeros does the work of several elements in the time of one that is looked up.
bool is_sparse(const ResizeAxis& a, const ResizeMode& mode) {
  constexpr double kSparse = 8;
  return mode.mode == "nearest" ||
         static_cast<double>(a.length) > kSparse * ResizeFilter(a, mode).width();
}

// An element beyond the edge is that at the edge.
Band band_at(const ResizeAxis& a, const ResizeMode& mode, double x) {
  const ResizeFilter filter(a, mode);
  const auto first = static_cast<int64_t>(std::floor(x - filter.reach)),
             last = static_cast<int64_t>(std::ceil(x + filter.reach));
  const auto inside = [&](int64_t i) { return std::clamp<int64_t>(i, 0, a.length - 1); };
  Band band{inside(first),
            std::vector<double>(static_cast<size_t>(inside(last) - inside(first) + 1))};
  double total = 0;
  for (int64_t i = first; i <= last; ++i) {
    if (i != inside(i) && mode.excludes_outside) continue;
    const double weight = filter_at(mode, (static_cast<double>(i) - x) * filter.stretch);
    band.weights[static_cast<size_t>(inside(i) - band.first)] += weight;
    total += weight;
  }
  if (total != 0) {
    for (double& each : band.weights) each /= total;
  }
  while (band.weights.size() > 1 && band.weights.back() == 0) band.weights.pop_back();
  const auto zeros = std::ranges::find_if(band.weights, [](double each) { return each != 0; }) -
                     band.weights.begin();
  if (zeros < std::ssize(band.weights)) {
    band.weights.erase(band.weights.begin(), band.weights.begin() + zeros);
    band.first += zeros;
  }
  return band;
}

void check_weights(const ResizeAxis& a, double each) {
  constexpr double kMostWeights = 1 << 26;
  if (a.length < 1 || a.result < 0 || static_cast<double>(a.result) * each > kMostWeights)
    exceed_onnx("{} elements of {}", a.result, a.length);
}

Value resize_by_product(Lz& n, Value x, const ResizeAxis& a, const std::vector<Band>& bands) {
  Literal weights(Shape(n.type_of(x), {a.result, a.length}));
  for (size_t i = 0; i < bands.size(); ++i) {
    int64_t at = static_cast<int64_t>(i) * a.length + bands[i].first;
    for (const double each : bands[i].weights) weights.set_double(at++, each);
  }
  const Value product =
      n.dot_general(x, n.constant(std::move(weights)), DotDims{{}, {}, {a.axis}, {1}});
  I64s order = all_axes(n.rank_of(x) - 1);
  order.insert(order.begin() + a.axis, n.rank_of(x) - 1);
  return n.transpose(product, std::move(order));
}

// The elements `from` … `to` of all bands: their places along the axis, and their weights.
std::pair<Value, Value> band_columns(Lz& n, ElementType type, const ResizeAxis& a,
                                     const std::vector<Band>& bands, size_t from, size_t to) {
  I64s places;
  Literal weights(Shape(type, {a.result, static_cast<int64_t>(to - from)}));
  for (const Band& each : bands) {
    for (size_t k = from; k < to; ++k) {
      const bool has_it = k < each.weights.size();
      weights.set_double(std::ssize(places), has_it ? each.weights[k] : 0);
      places.push_back(each.first + static_cast<int64_t>(has_it ? k : each.weights.size() - 1));
    }
  }
  return {n.i64s(places), n.constant(std::move(weights))};
}

// Reads the elements that have weights, and no others.
Value resize_by_bands(Lz& n, Value x, const ResizeAxis& a, const std::vector<Band>& bands,
                      size_t widest) {
  constexpr size_t kMostTerms = 32;
  Dims dims = n.dims_of(x);
  dims[static_cast<size_t>(a.axis)] = a.result;
  if (widest > kMostTerms) {
    const auto [places, weights] = band_columns(n, n.type_of(x), a, bands, 0, widest);
    const auto width = static_cast<int64_t>(widest);
    dims.insert(dims.begin() + a.axis + 1, width);
    const Value taken = n.take(x, n.reshape(places, {a.result, width}), a.axis);
    const Value factors = n.broadcast_in_dim(weights, std::move(dims), {a.axis, a.axis + 1});
    return n.sum(n.mul(taken, factors), {a.axis + 1}, false);
  }
  std::optional<Value> total;
  for (size_t k = 0; k < widest; ++k) {
    const auto [places, weights] = band_columns(n, n.type_of(x), a, bands, k, k + 1);
    const Value factors = n.broadcast_in_dim(n.reshape(weights, {a.result}), dims, {a.axis});
    const Value term = n.mul(n.take(x, places, a.axis), factors);
    total = total ? n.add(*total, term) : term;
  }
  return *total;
}

Value resize_axis(Lz& n, Value x, const ResizeAxis& a, const ResizeMode& mode) {
  if (mode.mode == "nearest") {
    check_weights(a, 1);
    I64s places;
    for (int64_t i = 0; i < a.result; ++i) {
      const double position = nearest_position(mode.nearest, position_of(a, mode.coordinates, i));
      places.push_back(
          static_cast<int64_t>(std::clamp(position, 0.0, static_cast<double>(a.length - 1))));
    }
    return n.take(x, n.i64s(places), a.axis);
  }
  check_weights(a, std::min(ResizeFilter(a, mode).width() + 2, static_cast<double>(a.length)));
  std::vector<Band> bands;
  size_t widest = 1;
  for (int64_t i = 0; i < a.result; ++i) {
    bands.push_back(band_at(a, mode, position_of(a, mode.coordinates, i)));
    widest = std::max(widest, bands.back().weights.size());
  }
  if (is_sparse(a, mode)) return resize_by_bands(n, x, a, bands, widest);
  return resize_by_product(n, x, a, bands);
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
      a.scale = a.result == a.length ? 1 : static_cast<double>(sizes[i]) / length;
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

// The dimension that shrinks most comes first: the others have less to do then. Of those that grow
// alike the last comes first, whose elements lie side by side and cost most to look up. Products
// stay in the order in which the last of them ends with the last dimension.
void in_good_order(std::vector<ResizeAxis>& axes, const ResizeMode& mode) {
  const auto products =
      std::ranges::stable_partition(axes, [&](const ResizeAxis& a) { return is_sparse(a, mode); });
  std::ranges::stable_sort(
      axes.begin(), products.begin(), [](const ResizeAxis& a, const ResizeAxis& b) {
        return a.scale != b.scale ? a.scale < b.scale : a.scale > 1 && a.axis > b.axis;
      });
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
  std::vector<ResizeAxis> axes = resize_axes(n, x);
  in_good_order(axes, mode);
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

constexpr OnnxRow kResizeRows[] = {
    {"Resize", 10, lower_resize, 1},
    {"Resize", 11, lower_resize, 0},
    {"Upsample", 7, lower_resize, 1},
};

}  // namespace

std::span<const OnnxRow> onnx_resize_rows() { return kResizeRows; }

}  // namespace tenon::hlo
