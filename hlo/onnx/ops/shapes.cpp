// Ops that move elements, and those that make arrays.
#include <algorithm>

#include "hlo/onnx/lowering.h"
#include "hlo/onnx/reader.h"

namespace tenon::hlo {
namespace {

using Ls = OnnxLowering;

Values lower_constant(Ls& n) {
  const auto floats = [&](const std::vector<float>& values, Dims dims) {
    Literal literal(Shape(ElementType::kF32, std::move(dims)));
    for (size_t i = 0; i < values.size(); ++i) literal.set(static_cast<int64_t>(i), values[i]);
    return n.constant(std::move(literal));
  };
  for (const auto& [name, value] : n.node().attributes) {
    if (name == "value" && value.tensor) return {n.constant(*value.tensor)};
    if (name == "value_int" && value.integer)
      return {n.constant(Literal::scalar_integer(ElementType::kS64, *value.integer))};
    if (name == "value_float" && value.real) return {floats({*value.real}, {})};
    if (name == "value_ints") return {n.i64s(value.integers)};
    if (name == "value_floats") return {floats(value.reals, {std::ssize(value.reals)})};
  }
  refuse_onnx("its value is no dense tensor of numbers");
}

Values lower_constant_of_shape(Ls& n) {
  Literal value = Literal::scalar(ElementType::kF32, 0);
  if (const OnnxAttribute* given = n.attribute("value"); given != nullptr) {
    if (!given->tensor || given->tensor->element_count() != 1)
      bad_onnx("value is no tensor of one element");
    value = given->tensor->reshaped({});
  }
  return {n.broadcast_to(n.constant(std::move(value)), n.known_i64s(0))};
}

Values lower_shape(Ls& n) {
  const Dims& dims = n.dims_of(n.in(0));
  const int64_t rank = std::ssize(dims);
  const auto bound = [&](const char* name, int64_t otherwise) {
    int64_t at = n.integer(name, otherwise);
    if (at < 0) at += rank;
    return std::clamp<int64_t>(at, 0, rank);
  };
  const int64_t start = bound("start", 0), end = std::max(start, bound("end", rank));
  return {n.i64s(I64s(dims.begin() + start, dims.begin() + end))};
}

Values lower_size(Ls& n) {
  return {n.constant(Literal::scalar_integer(ElementType::kS64, n.count_of(n.in(0))))};
}

Values lower_reshape(Ls& n) {
  const Value x = n.in(0);
  Dims dims = n.known_i64s(1);
  int64_t others = 1;
  std::optional<size_t> open;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && !n.flag("allowzero")) {
      if (i >= n.dims_of(x).size()) bad_onnx("size 0 at {} has no source", i);
      dims[i] = n.dims_of(x)[i];
    }
    if (dims[i] == -1 && !open) {
      open = i;
    } else if (dims[i] < 0) {
      bad_onnx("the shape [{}] is none", dims_to_string(dims));
    } else {
      constexpr int64_t kMost = int64_t{1} << 48;
      if (dims[i] != 0 && others > kMost / dims[i])
        exceed_onnx("the shape [{}] is too large", dims_to_string(dims));
      others *= dims[i];
    }
  }
  if (open) dims[*open] = others == 0 ? 0 : n.count_of(x) / others;
  return {n.reshape(x, std::move(dims))};
}

Values lower_flatten(Ls& n) {
  const Value x = n.in(0);
  int64_t axis = n.integer("axis", 1);
  if (axis < 0) axis += n.rank_of(x);
  if (axis < 0 || axis > n.rank_of(x)) bad_onnx("axis {} is out of range", axis);
  int64_t rows = 1, columns = 1;
  for (int64_t i = 0; i < n.rank_of(x); ++i) {
    (i < axis ? rows : columns) *= n.dims_of(x)[static_cast<size_t>(i)];
  }
  return {n.reshape(x, {rows, columns})};
}

Values lower_squeeze(Ls& n) {
  const Value x = n.in(0);
  std::optional<I64s> axes = n.input_or_attribute(1, "axes");
  if (!axes) {
    axes.emplace();
    for (int64_t i = 0; i < n.rank_of(x); ++i) {
      if (n.dims_of(x)[static_cast<size_t>(i)] == 1) axes->push_back(i);
    }
  }
  return {n.squeeze(x, *axes)};
}

Values lower_unsqueeze(Ls& n) {
  const std::optional<I64s> axes = n.input_or_attribute(1, "axes");
  if (!axes) bad_onnx("axes are missing");
  return {n.unsqueeze(n.in(0), *axes)};
}

Values lower_transpose(Ls& n) {
  const Value x = n.in(0);
  I64s order = n.integers("perm");
  if (order.empty()) {
    order = all_axes(n.rank_of(x));
    std::ranges::reverse(order);
  }
  for (int64_t& each : order) each = normal_axis(each, n.rank_of(x));
  return {n.transpose(x, std::move(order))};
}

Values lower_concat(Ls& n) {
  for (size_t i = 0; i < n.input_count(); ++i) n.in(i);
  const int64_t axis = normal_axis(n.integer("axis", 1), n.rank_of(n.in(0)));
  return {n.concatenate(n.inputs(), axis)};
}

Values lower_split(Ls& n) {
  const Value x = n.in(0);
  const int64_t axis = normal_axis(n.integer("axis", 0), n.rank_of(x));
  const int64_t size = n.dims_of(x)[static_cast<size_t>(axis)];
  std::optional<I64s> parts = n.input_or_attribute(1, "split");
  if (!parts) {
    const int64_t count = n.integer("num_outputs", static_cast<int64_t>(n.output_count()));
    if (count != static_cast<int64_t>(n.output_count()))
      bad_onnx("it has {} outputs, and is told to have {}", n.output_count(), count);
    if (count < 1) bad_onnx("it has no outputs");
    const int64_t each = (size + count - 1) / count;
    parts.emplace();
    int64_t left = size;
    for (int64_t i = 0; i < count; ++i) {
      parts->push_back(std::min(each, left));
      left -= parts->back();
    }
  }
  if (parts->size() < n.output_count()) bad_onnx("it has too many outputs");
  int64_t rest = size;
  for (const int64_t each : *parts) {
    if (each < 0 || each > rest) bad_onnx("its parts are not those of {} elements", size);
    rest -= each;
  }
  if (rest != 0) bad_onnx("its parts are not those of {} elements", size);
  Values results;
  int64_t start = 0;
  for (const int64_t each : *parts) {
    results.push_back(n.slice_of(x, axis, start, start + each));
    start += each;
  }
  return results;
}

// A slice with bounds as Python has them.
Values lower_slice(Ls& n) {
  Value x = n.in(0);
  const bool old = n.row().since < 10;
  const I64s starts = old ? n.integers("starts") : n.known_i64s(1);
  const I64s ends = old ? n.integers("ends") : n.known_i64s(2);
  I64s axes = old ? n.integers("axes") : n.has(3) ? n.known_i64s(3) : I64s{};
  const I64s steps = !old && n.has(4) ? n.known_i64s(4) : I64s(starts.size(), 1);
  if (axes.empty()) axes = all_axes(std::ssize(starts));
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    bad_onnx("starts, ends, axes and steps differ in number");
  I64s low(n.dims_of(x).size(), 0), high = n.dims_of(x), strides(low.size(), 1), turned;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto a = static_cast<size_t>(normal_axis(axes[i], n.rank_of(x)));
    const int64_t size = n.dims_of(x)[a], step = steps[i];
    if (step == 0) bad_onnx("a step is 0");
    const auto bound = [&](int64_t at, int64_t least, int64_t most) {
      return std::clamp(at < 0 ? at + size : at, least, most);
    };
    if (step > 0) {
      low[a] = bound(starts[i], 0, size);
      high[a] = std::max(low[a], bound(ends[i], 0, size));
      strides[a] = step;
    } else {
      // The same elements from the other end.
      const int64_t first = bound(starts[i], -1, size - 1);
      const int64_t last = ends[i] < -size ? -1 : bound(ends[i], -1, size - 1);
      turned.push_back(static_cast<int64_t>(a));
      low[a] = size - 1 - first;
      high[a] = std::max(low[a], size - 1 - last);
      strides[a] = step == INT64_MIN ? INT64_MAX : -step;
    }
    if (strides[a] > size) strides[a] = std::max<int64_t>(size, 1);
  }
  if (!turned.empty()) x = n.reverse(x, turned);
  return {n.slice(x, std::move(low), std::move(high), std::move(strides))};
}

Values lower_expand(Ls& n) {
  const Value x = n.in(0);
  return {n.broadcast_to(x, broadcast_dims({n.dims_of(x), n.known_i64s(1)}))};
}

Values lower_tile(Ls& n) {
  const Value x = n.in(0);
  const I64s repeats = n.known_i64s(1);
  if (std::ssize(repeats) != n.rank_of(x))
    bad_onnx("{} repeats for rank {}", repeats.size(), n.rank_of(x));
  Dims wide, flat;
  I64s places;
  for (size_t i = 0; i < repeats.size(); ++i) {
    const int64_t size = n.dims_of(x)[i];
    if (repeats[i] < 0) bad_onnx("a repeat is negative");
    wide.push_back(repeats[i]);
    places.push_back(std::ssize(wide));
    wide.push_back(size);
    flat.push_back(repeats[i] * size);
  }
  if (!checked_element_count(flat, 16)) exceed_onnx("the result is too large");
  return {n.reshape(n.broadcast_in_dim(x, std::move(wide), std::move(places)), std::move(flat))};
}

// --- Padding

// The elements of one dimension that mirror or repeat others.
Value pad_by_elements(Ls& n, Value x, int64_t axis, int64_t low, int64_t high,
                      const std::string& mode) {
  const int64_t size = n.dims_of(x)[static_cast<size_t>(axis)];
  if (size == 0) bad_onnx("dimension {} has no elements to repeat", axis);
  constexpr int64_t kMostPlaces = int64_t{1} << 28;
  if (std::max({low, high, size}) > kMostPlaces) exceed_onnx("a pad of {} elements", low);
  if (std::min(low, high) < -size) bad_onnx("dimension {} has {} elements", axis, size);
  // Negative pads take elements away first; what is left repeats itself, as in ONNX Runtime.
  const int64_t first = std::max<int64_t>(-low, 0);
  const int64_t left = size - first - std::max<int64_t>(-high, 0);
  if (mode == "wrap" && left <= 0) bad_onnx("dimension {} has no elements left to repeat", axis);
  I64s places;
  for (int64_t i = -low; i < size + high; ++i) {
    int64_t place = i;
    if (mode == "edge") {
      place = std::clamp<int64_t>(i, 0, size - 1);
    } else if (mode == "wrap") {
      place = first + (((i - first) % left) + left) % left;
    } else {
      const int64_t period = std::max<int64_t>(2 * (size - 1), 1);
      place = ((i % period) + period) % period;
      if (place >= size) place = period - place;
    }
    places.push_back(place);
  }
  return n.take(x, n.i64s(places), axis);
}

Values lower_pad(Ls& n) {
  Value x = n.in(0);
  const bool old = n.row().since < 11;
  const I64s pads = old ? n.integers("pads") : n.known_i64s(1);
  I64s axes = n.has(3) ? n.known_i64s(3) : all_axes(n.rank_of(x));
  for (int64_t& each : axes) each = normal_axis(each, n.rank_of(x));
  const size_t count = axes.size();
  if (pads.size() != 2 * count) bad_onnx("{} pads for {} axes", pads.size(), count);
  I64s low(n.dims_of(x).size(), 0), high(low.size(), 0);
  for (size_t i = 0; i < count; ++i) {
    low[static_cast<size_t>(axes[i])] = pads[i];
    high[static_cast<size_t>(axes[i])] = pads[i + count];
  }
  const std::string mode = n.text("mode", "constant");
  if (mode == "constant") {
    Value value = n.has(2) ? n.reshape(n.in(2), {}) : n.like(x, old ? n.real("value", 0) : 0);
    return {n.pad(x, value, std::move(low), std::move(high))};
  }
  if (mode != "edge" && mode != "reflect" && mode != "wrap")
    refuse_onnx("mode '{}' is not supported", mode);
  for (size_t i = 0; i < low.size(); ++i) {
    if (low[i] != 0 || high[i] != 0)
      x = pad_by_elements(n, x, static_cast<int64_t>(i), low[i], high[i], mode);
  }
  return {x};
}

Values lower_center_crop_pad(Ls& n) {
  Value x = n.in(0);
  const I64s sizes = n.known_i64s(1);
  I64s axes = n.has_attribute("axes") ? n.integers("axes") : all_axes(n.rank_of(x));
  if (axes.size() != sizes.size()) bad_onnx("{} sizes for {} axes", sizes.size(), axes.size());
  I64s low(n.dims_of(x).size(), 0), high(low.size(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto a = static_cast<size_t>(normal_axis(axes[i], n.rank_of(x)));
    const int64_t size = n.dims_of(x)[a];
    if (sizes[i] < size) {
      const int64_t start = (size - sizes[i]) / 2;
      low[a] = -start;
      high[a] = sizes[i] + start - size;
    } else {
      low[a] = (sizes[i] - size) / 2;
      high[a] = sizes[i] - size - low[a];
    }
  }
  return {n.pad(x, n.like(x, 0), std::move(low), std::move(high))};
}

// --- Blocks

Values lower_space_to_depth(Ls& n) {
  const Value x = n.in(0);
  const int64_t block = n.integer("blocksize", 1);
  if (n.rank_of(x) != 4 || block < 1) bad_onnx("its input has rank {}, expected 4", n.rank_of(x));
  const Dims& d = n.dims_of(x);
  if (d[2] % block != 0 || d[3] % block != 0)
    bad_onnx("[{}] is no multiple of blocks of {}", dims_to_string(d), block);
  const bool row_first = n.text("mode", "DCR") == "DCR";
  const Value split = n.reshape(x, {d[0], d[1], d[2] / block, block, d[3] / block, block});
  const Value moved =
      n.transpose(split, row_first ? I64s{0, 3, 5, 1, 2, 4} : I64s{0, 1, 3, 5, 2, 4});
  return {n.reshape(moved, {d[0], d[1] * block * block, d[2] / block, d[3] / block})};
}

Values lower_depth_to_space(Ls& n) {
  const Value x = n.in(0);
  const int64_t block = n.integer("blocksize", 1);
  if (n.rank_of(x) != 4 || block < 1) bad_onnx("its input has rank {}, expected 4", n.rank_of(x));
  const Dims& d = n.dims_of(x);
  const int64_t depth = d[1] / (block * block);
  if (depth * block * block != d[1])
    bad_onnx("{} channels are no multiple of blocks of {}", d[1], block);
  const bool columns = n.text("mode", "DCR") == "CRD";
  const Value split = columns ? n.reshape(x, {d[0], depth, block, block, d[2], d[3]})
                              : n.reshape(x, {d[0], block, block, depth, d[2], d[3]});
  const Value moved = n.transpose(split, columns ? I64s{0, 1, 4, 2, 5, 3} : I64s{0, 3, 4, 1, 5, 2});
  return {n.reshape(moved, {d[0], depth, d[2] * block, d[3] * block})};
}

// --- Arrays of positions

// Whether column - row is at most (lower) or at least (upper) `offset`.
Value triangle(Ls& n, const Dims& dims, Value offset, bool upper) {
  const int64_t rank = std::ssize(dims);
  const Value rows = n.iota(ElementType::kS64, dims, rank - 2);
  const Value columns = n.iota(ElementType::kS64, dims, rank - 1);
  return n.compare(upper ? Direction::kGe : Direction::kLe, n.sub(columns, rows), offset);
}

Values lower_trilu(Ls& n) {
  const Value x = n.in(0);
  if (n.rank_of(x) < 2) bad_onnx("its input has rank {}", n.rank_of(x));
  const Value offset = n.has(1) ? n.reshape(n.convert(n.in(1), ElementType::kS64), {})
                                : n.number(ElementType::kS64, 0);
  return {n.select(triangle(n, n.dims_of(x), offset, n.flag("upper", true)), x, n.like(x, 0))};
}

Values lower_eye_like(Ls& n) {
  const Value x = n.in(0);
  if (n.rank_of(x) != 2) bad_onnx("its input has rank {}, expected 2", n.rank_of(x));
  const Value rows = n.iota(ElementType::kS64, n.dims_of(x), 0);
  const Value columns = n.iota(ElementType::kS64, n.dims_of(x), 1);
  const Value same =
      n.compare(Direction::kEq, n.add(rows, static_cast<double>(n.integer("k", 0))), columns);
  return {n.convert(same, n.type_attribute("dtype", n.type_of(x)))};
}

// How many of start, start + delta … are before the limit; exact, since the distance may be up to
// 2^64.
double steps_between(int64_t start, int64_t limit, int64_t delta) {
  const bool up = delta > 0;
  if (start == limit || (start < limit) != up) return 0;
  const auto from = static_cast<uint64_t>(start), to = static_cast<uint64_t>(limit),
             by = static_cast<uint64_t>(delta);
  const uint64_t distance = up ? to - from : from - to;
  return static_cast<double>((distance - 1) / (up ? by : 0 - by) + 1);
}

Values lower_range(Ls& n) {
  const ElementType type = n.type_of(n.in(0));
  double count = 0;
  if (is_float(type)) {
    const double start = n.known_number(0), limit = n.known_number(1), delta = n.known_number(2);
    if (delta == 0) bad_onnx("delta is 0");
    count = std::max(0.0, std::ceil((limit - start) / delta));
  } else {
    I64s numbers;
    for (const size_t i : {0, 1, 2}) {
      const Literal value = n.known(i);
      if (value.element_count() != 1) bad_onnx("input {} is not one number", i);
      numbers.push_back(value.get_integer(0));
    }
    if (numbers[2] == 0) bad_onnx("delta is 0");
    count = steps_between(numbers[0], numbers[1], numbers[2]);
  }
  if (!(count < 1e9)) exceed_onnx("a range of {} elements", count);
  const Value steps = n.iota(type, {static_cast<int64_t>(count)}, 0);
  return {n.add(n.mul(steps, n.reshape(n.in(2), {})), n.reshape(n.in(0), {}))};
}

constexpr OnnxRow kShapeRows[] = {
    {"CenterCropPad", 18, lower_center_crop_pad},
    {"Concat", 4, lower_concat},
    {"Constant", 1, lower_constant},
    {"ConstantOfShape", 9, lower_constant_of_shape},
    {"DepthToSpace", 1, lower_depth_to_space},
    {"Expand", 8, lower_expand},
    {"EyeLike", 9, lower_eye_like},
    {"Flatten", 1, lower_flatten},
    {"Pad", 2, lower_pad},
    {"Pad", 11, lower_pad},
    {"Range", 11, lower_range},
    {"Reshape", 5, lower_reshape},
    {"Shape", 1, lower_shape},
    {"Size", 1, lower_size},
    {"Slice", 1, lower_slice},
    {"Slice", 10, lower_slice},
    {"SpaceToDepth", 1, lower_space_to_depth},
    {"Split", 2, lower_split},
    {"Squeeze", 1, lower_squeeze},
    {"Tile", 6, lower_tile},
    {"Transpose", 1, lower_transpose},
    {"Trilu", 14, lower_trilu},
    {"Unsqueeze", 1, lower_unsqueeze},
};

}  // namespace

std::span<const OnnxRow> onnx_shape_rows() { return kShapeRows; }

}  // namespace tenon::hlo
