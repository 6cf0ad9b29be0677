// Gathers, scatters, and ops whose results have as many elements as values decide.
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "hlo/onnx/lowering.h"

namespace tenon::hlo {
namespace {

using Li = OnnxLowering;

Values lower_gather(Li& n) {
  const Value x = n.in(0);
  return {n.take(x, n.in(1), normal_axis(n.integer("axis", 0), n.rank_of(x)))};
}

Values lower_gather_elements(Li& n) {
  const Value x = n.in(0);
  return {n.take_along(x, n.in(1), normal_axis(n.integer("axis", 0), n.rank_of(x)))};
}

Values lower_gather_nd(Li& n) {
  return {n.gather_nd(n.in(0), n.in(1), n.integer("batch_dims", 0))};
}

std::optional<OpCode> combiner_of(Li& n) {
  const std::string word = n.text("reduction", "none");
  if (word == "none") return std::nullopt;
  if (word == "add") return OpCode::kAdd;
  if (word == "mul") return OpCode::kMultiply;
  if (word == "max") return OpCode::kMaximum;
  if (word == "min") return OpCode::kMinimum;
  refuse_onnx("reduction '{}' is not supported", word);
}

Values lower_scatter_nd(Li& n) { return {n.scatter_nd(n.in(0), n.in(1), n.in(2), combiner_of(n))}; }

Values lower_scatter_elements(Li& n) {
  const Value x = n.in(0);
  const int64_t axis = normal_axis(n.integer("axis", 0), n.rank_of(x));
  const Dims& dims = n.dims_of(n.in(1));
  Dims column = dims;
  column.push_back(1);
  Values components;
  for (int64_t i = 0; i < std::ssize(dims); ++i) {
    components.push_back(i == axis ? n.reshape(n.convert(n.in(1), ElementType::kS64), column)
                                   : n.iota(ElementType::kS64, column, i));
  }
  if (std::ssize(dims) != n.rank_of(x)) bad_onnx("the indices have rank {}", dims.size());
  return {n.scatter_nd(x, n.concatenate(components, std::ssize(dims)), n.in(2), combiner_of(n))};
}

Values lower_one_hot(Li& n) {
  const Value values = n.in(2);
  const auto depth = n.known_integer(1);
  if (depth < 0) bad_onnx("depth is {}", depth);
  Value indices = n.wrapped(n.in(0), depth);
  const int64_t axis = normal_axis(n.integer("axis", -1), n.rank_of(indices) + 1);
  indices = n.unsqueeze(indices, {axis});
  Dims dims = n.dims_of(indices);
  dims[static_cast<size_t>(axis)] = depth;
  const Value hot = n.compare(Direction::kEq, n.iota(ElementType::kS64, dims, axis), indices);
  return {n.select(hot, n.reshape(n.slice_of(values, 0, 1, 2), {}),
                   n.reshape(n.slice_of(values, 0, 0, 1), {}))};
}

Values lower_reverse_sequence(Li& n) {
  const Value x = n.in(0);
  const int64_t batch = normal_axis(n.integer("batch_axis", 1), n.rank_of(x));
  const int64_t time = normal_axis(n.integer("time_axis", 0), n.rank_of(x));
  const Value lengths =
      n.broadcast_in_dim(n.convert(n.in(1), ElementType::kS64), n.dims_of(x), {batch});
  const Value step = n.iota(ElementType::kS64, n.dims_of(x), time);
  const Value turned = n.sub(n.sub(lengths, 1), step);
  return {n.take_along(x, n.select(n.compare(Direction::kLt, step, lengths), turned, step), time)};
}

// A cache whose elements from a position on are those of an update.
Values lower_tensor_scatter(Li& n) {
  const Value past = n.in(0);
  Value update = n.in(1);
  const int64_t axis = normal_axis(n.integer("axis", -2), n.rank_of(past));
  n.check_rank(update, n.rank_of(past), n.rank_of(past));
  const auto a = static_cast<size_t>(axis);
  const int64_t size = n.dims_of(past)[a], length = n.dims_of(update)[a];
  Value step = n.iota(ElementType::kS64, n.dims_of(past), axis);
  if (n.has(2)) {
    step = n.sub(step,
                 n.broadcast_in_dim(n.convert(n.in(2), ElementType::kS64), n.dims_of(past), {0}));
  }
  if (n.text("mode", "linear") == "circular") step = n.wrapped(step, size);
  const Value inside = n.logical_and(n.compare(Direction::kGe, step, 0),
                                     n.compare(Direction::kLt, step, static_cast<double>(length)));
  const Value place = n.select(inside, step, n.like(step, 0));
  return {n.select(inside, n.take_along(update, place, axis), past)};
}

Values lower_array_feature_extractor(Li& n) {
  const Value x = n.in(0);
  Value indices = n.in(1);
  indices = n.reshape(indices, {n.count_of(indices)});
  return {n.take(x, indices, n.rank_of(x) - 1)};
}

// --- Results whose sizes follow from values, which must be known

Values lower_non_zero(Li& n) {
  const Literal x = n.known(0);
  const Dims& dims = x.shape().dims();
  std::vector<I64s> places(dims.size());
  const Dims strides = row_major_strides(dims);
  int64_t count = 0;
  for (int64_t i = 0; i < x.element_count(); ++i) {
    if (x.get_complex(i) == std::complex<double>(0)) continue;
    ++count;
    for (size_t d = 0; d < dims.size(); ++d) places[d].push_back(i / strides[d] % dims[d]);
  }
  I64s all;
  for (const I64s& each : places) all.insert(all.end(), each.begin(), each.end());
  return {n.reshape(n.i64s(all), {std::ssize(places), count})};
}

Values lower_compress(Li& n) {
  Value x = n.in(0);
  const bool flat = !n.has_attribute("axis");
  if (flat) x = n.reshape(x, {n.count_of(x)});
  const int64_t axis = flat ? 0 : normal_axis(n.integer("axis", 0), n.rank_of(x));
  const I64s condition = n.known_i64s(1);
  I64s kept;
  for (int64_t i = 0; i < std::ssize(condition); ++i) {
    if (condition[static_cast<size_t>(i)] != 0 && i < n.dims_of(x)[static_cast<size_t>(axis)])
      kept.push_back(i);
  }
  return {n.take(x, n.i64s(kept), axis)};
}

// Numbers in the order of the elements: equal for equal ones, also for NaNs, which come last.
int64_t sort_key(const Literal& x, int64_t i) {
  if (!is_float(x.element_type())) {
    const int64_t value = x.get_integer(i);
    return x.element_type() == ElementType::kU64 ? value ^ INT64_MIN : value;
  }
  const double value = x.get_double(i);
  if (value == 0) return 0;
  if (std::isnan(value)) return INT64_MAX;
  const auto bits = std::bit_cast<int64_t>(value);
  return bits >= 0 ? bits : INT64_MIN - bits;
}

// Rows along an axis, or elements, each once.
Values lower_unique(Li& n) {
  Literal x = n.known(0);
  if (is_complex(x.element_type())) refuse_onnx("elements of {}", name_of(x.element_type()));
  const bool flat = !n.has_attribute("axis");
  if (flat) x = x.reshaped({x.element_count()});
  const int64_t axis = flat ? 0 : normal_axis(n.integer("axis", 0), x.shape().rank());
  const Dims& dims = x.shape().dims();
  const Dims strides = row_major_strides(dims);
  const auto a = static_cast<size_t>(axis);
  const int64_t rows = dims[a], inner = strides[a],
                outer = rows == 0 ? 0 : x.element_count() / rows / std::max<int64_t>(inner, 1);
  std::map<I64s, size_t> known;
  I64s first, inverse, counts;
  for (int64_t r = 0; r < rows; ++r) {
    I64s row;
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) row.push_back(sort_key(x, (o * rows + r) * inner + i));
    }
    const auto [at, added] = known.emplace(std::move(row), first.size());
    if (added) {
      first.push_back(r);
      counts.push_back(0);
    }
    ++counts[at->second];
    inverse.push_back(static_cast<int64_t>(at->second));
  }
  if (n.flag("sorted", true)) {
    I64s order, rank(first.size());
    for (const auto& [row, number] : known) {
      rank[number] = std::ssize(order);
      order.push_back(static_cast<int64_t>(number));
    }
    const auto sorted = [&](const I64s& values) {
      I64s moved;
      for (const int64_t each : order) moved.push_back(values[static_cast<size_t>(each)]);
      return moved;
    };
    first = sorted(first);
    counts = sorted(counts);
    for (int64_t& each : inverse) each = rank[static_cast<size_t>(each)];
  }
  return {n.take(n.constant(x), n.i64s(first), axis), n.i64s(first), n.i64s(inverse),
          n.i64s(counts)};
}

struct ScoredBox {
  double score = 0, low[2] = {}, high[2] = {};
  int64_t number = 0;
  double area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
};

double overlap(const ScoredBox& a, const ScoredBox& b) {
  double common = 1;
  for (const int d : {0, 1})
    common *= std::max(0.0, std::min(a.high[d], b.high[d]) - std::max(a.low[d], b.low[d]));
  const double whole = a.area() + b.area() - common;
  return whole > 0 ? common / whole : 0;
}

// The boxes of a class that are not suppressed, the best first.
I64s kept_boxes(std::vector<ScoredBox> boxes, int64_t most, double threshold) {
  std::ranges::sort(boxes, [](const ScoredBox& a, const ScoredBox& b) {
    return a.score != b.score ? a.score > b.score : a.number < b.number;
  });
  constexpr int64_t kMostOverlaps = int64_t{1} << 28;
  int64_t overlaps = 0;
  std::vector<ScoredBox> kept;
  for (const ScoredBox& each : boxes) {
    if (std::ssize(kept) >= most) break;
    overlaps += std::ssize(kept);
    if (overlaps > kMostOverlaps)
      exceed_onnx("{} boxes, of which more than {} stay", boxes.size(), kept.size());
    if (std::ranges::all_of(
            kept, [&](const ScoredBox& other) { return overlap(each, other) <= threshold; }))
      kept.push_back(each);
  }
  I64s numbers;
  for (const ScoredBox& each : kept) numbers.push_back(each.number);
  return numbers;
}

Values lower_non_max_suppression(Li& n) {
  const Literal boxes = n.known(0), scores = n.known(1);
  const int64_t most = n.has(2) ? n.known_integer(2) : 0;
  const double threshold = n.has(3) ? n.known_number(3) : 0;
  const Dims &b = boxes.shape().dims(), &s = scores.shape().dims();
  if (b.size() != 3 || s.size() != 3 || b[0] != s[0] || b[1] != s[2] || b[2] != 4)
    bad_onnx("boxes [{}] and scores [{}]", dims_to_string(b), dims_to_string(s));
  const bool centered = n.flag("center_point_box");
  I64s results;
  for (int64_t row = 0; row < s[0] * s[1]; ++row) {
    std::vector<ScoredBox> candidates;
    for (int64_t i = 0; i < s[2]; ++i) {
      ScoredBox box;
      box.number = i;
      box.score = scores.get_double(row * s[2] + i);
      if (n.has(4) && box.score <= n.known_number(4)) continue;
      for (const int d : {0, 1}) {
        const int64_t at = (row / s[1] * b[1] + i) * 4 + d;
        const double x = boxes.get_double(at), y = boxes.get_double(at + 2);
        box.low[d] = centered ? x - y / 2 : std::min(x, y);
        box.high[d] = centered ? x + y / 2 : std::max(x, y);
      }
      candidates.push_back(box);
    }
    for (const int64_t number : kept_boxes(std::move(candidates), most, threshold)) {
      results.insert(results.end(), {row / s[1], row % s[1], number});
    }
  }
  return {n.reshape(n.i64s(results), {std::ssize(results) / 3, 3})};
}

// --- Counts of n-grams of integers

struct GramCount {
  int64_t column;
  double weight;  ///< Added for each occurrence.
};
// The grams of one length, each once and in order.
using GramCounts = std::map<I64s, GramCount>;

// All windows of `length` elements of a row of x [batch, …], of which each two have up to `skips`
// others between them: element i of them all is the result i [batch, window].
Values gram_windows(Li& n, Value x, int64_t length, int64_t skips) {
  std::vector<Values> parts(static_cast<size_t>(length));
  for (int64_t stride = 1; stride <= (length > 1 ? std::max<int64_t>(skips, 0) : 0) + 1; ++stride) {
    const int64_t starts = n.dims_of(x)[1] - (length - 1) * stride;
    if (starts < 1) break;
    for (int64_t i = 0; i < length; ++i) {
      parts[static_cast<size_t>(i)].push_back(n.slice_of(x, 1, i * stride, i * stride + starts));
    }
  }
  if (parts[0].empty()) return {};
  Values windows;
  for (const Values& each : parts) windows.push_back(n.concatenate(each, 1));
  return windows;
}

// The number of each window's gram, or, if there is none, at least that of all grams: found by
// halves, in as many steps as that number has bits.
Value grams_of_windows(Li& n, const Values& windows, const GramCounts& grams) {
  std::vector<I64s> sorted(windows.size());
  for (const auto& [gram, count] : grams) {
    for (size_t i = 0; i < gram.size(); ++i) sorted[i].push_back(gram[i]);
  }
  // The last gram again, up to a power of two.
  const size_t size = std::bit_ceil(grams.size());
  Values elements;
  for (I64s& each : sorted) {
    each.resize(size, each.back());
    elements.push_back(n.i64s(each));
  }
  Value at = n.splat(ElementType::kS64, n.dims_of(windows[0]), 0);
  for (size_t step = size / 2; step > 0; step /= 2) {
    const Value last = n.add(at, static_cast<double>(step - 1));
    std::optional<Value> less;
    for (size_t i = windows.size(); i-- > 0;) {
      const Value element = n.take(elements[i], last, 0);
      const Value lower = n.compare(Direction::kLt, element, windows[i]);
      const Value equal = n.compare(Direction::kEq, element, windows[i]);
      less = less ? n.logical_or(lower, n.logical_and(equal, *less)) : lower;
    }
    at = n.select(*less, n.add(at, static_cast<double>(step)), at);
  }
  std::optional<Value> found;
  for (size_t i = 0; i < windows.size(); ++i) {
    const Value equal = n.compare(Direction::kEq, n.take(elements[i], at, 0), windows[i]);
    found = found ? n.logical_and(*found, equal) : equal;
  }
  return n.select(*found, at, n.like(at, static_cast<double>(size)));
}

// Adds the weights of grams [batch, window] to `result` [batch, column].
Value count_grams(Li& n, Value result, const Values& windows, const GramCounts& grams) {
  // A column outside the result counts nothing.
  const size_t size = std::bit_ceil(grams.size()) + 1;
  I64s columns(size, n.dims_of(result)[1]);
  Literal weights(Shape(ElementType::kF32, {static_cast<int64_t>(size)}));
  int64_t i = 0;
  for (const auto& [gram, count] : grams) {
    if (count.column >= 0) columns[static_cast<size_t>(i)] = count.column;
    weights.set_double(i++, count.weight);
  }
  const Value gram = grams_of_windows(n, windows, grams);
  const Value column = n.take(n.i64s(columns), gram, 0);
  const Value row = n.iota(ElementType::kS64, n.dims_of(column), 0);
  const Value places = n.concatenate({n.unsqueeze(row, {2}), n.unsqueeze(column, {2})}, 2);
  const bool plain =
      std::ranges::all_of(grams, [](const auto& each) { return each.second.weight == 1; });
  const Value updates = plain ? n.splat(ElementType::kF32, n.dims_of(column), 1)
                              : n.take(n.constant(std::move(weights)), gram, 0);
  return n.scatter_nd(result, places, updates, OpCode::kAdd);
}

// A gram that is there more than once has a column each time.
std::vector<GramCounts> counts_of_grams(const I64s& pool, int64_t begin, int64_t length,
                                        std::span<const int64_t> columns,
                                        std::span<const float> weights) {
  constexpr size_t kMostTimes = 64;
  std::vector<GramCounts> grams;
  auto at = pool.begin() + begin;
  for (size_t number = 0; number < columns.size(); ++number) {
    const I64s gram(at, at + length);
    at += length;
    size_t i = 0;
    while (i < grams.size() && grams[i].contains(gram)) ++i;
    if (i == kMostTimes) exceed_onnx("a gram is there more than {} times", kMostTimes);
    if (i == grams.size()) grams.emplace_back();
    grams[i].emplace(gram, GramCount{columns[number], weights[number]});
  }
  return grams;
}

// [1, column]: the last one of a column's grams.
Value column_weights(Li& n, const I64s& columns, const std::vector<float>& weights, int64_t width) {
  Literal row(Shape(ElementType::kF32, {1, width}));
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] >= 0) row.set(columns[i], weights[i]);
  }
  return n.constant(std::move(row));
}

Values lower_tf_idf(Li& n) {
  Value x = n.in(0);
  n.check_rank(x, 1, 2);
  const bool flat = n.rank_of(x) == 1;
  if (flat) x = n.unsqueeze(x, {0});
  x = n.convert(x, ElementType::kS64);
  const I64s pool = n.integers("pool_int64s"), places = n.integers("ngram_indexes"),
             begins = n.integers("ngram_counts");
  if (pool.empty() || places.empty()) refuse_onnx("a pool without integers is not supported");
  const int64_t shortest = n.integer("min_gram_length", 1),
                longest = n.integer("max_gram_length", 1);
  const int64_t skips = n.integer("max_skip_count", 0);
  constexpr int64_t kMost = 64;
  if (longest > kMost || skips > kMost)
    refuse_onnx("grams of {} elements with {} skipped", longest, skips);
  const int64_t width = *std::ranges::max_element(places) + 1;
  constexpr int64_t kWidest = int64_t{1} << 24;
  if (width < 1 || width > kWidest) bad_onnx("a result of {} columns", width);
  const std::string mode = n.text("mode", "TF");
  std::vector<float> weights(places.size(), 1);
  if (const OnnxAttribute* given = n.attribute("weights"); given != nullptr && mode != "TF")
    std::copy_n(given->reals.begin(), std::min(given->reals.size(), weights.size()),
                weights.begin());
  const std::vector<float> each_time =
      mode == "IDF" ? std::vector<float>(places.size(), 1) : weights;
  Value result = n.splat(ElementType::kF32, {n.dims_of(x)[0], width}, 0);
  size_t gram = 0;  // Grams of all lengths are numbered in order.
  for (size_t l = 0; l < begins.size(); ++l) {
    const int64_t length = static_cast<int64_t>(l) + 1, begin = begins[l];
    const int64_t end = l + 1 < begins.size() ? begins[l + 1] : std::ssize(pool);
    if (begin < 0 || end < begin || end > std::ssize(pool) || (end - begin) % length != 0)
      bad_onnx("ngram_counts do not fit a pool of {}", pool.size());
    const int64_t count = (end - begin) / length;
    if (count == 0) continue;
    const size_t first = std::exchange(gram, gram + static_cast<size_t>(count));
    if (gram > places.size()) bad_onnx("{} places for more grams", places.size());
    if (length < shortest || length > longest) continue;
    const Values windows = gram_windows(n, x, length, skips);
    if (windows.empty()) continue;
    const auto columns = std::span(places).subspan(first, static_cast<size_t>(count));
    const auto factors = std::span(each_time).subspan(first, static_cast<size_t>(count));
    for (const GramCounts& each : counts_of_grams(pool, begin, length, columns, factors))
      result = count_grams(n, result, windows, each);
  }
  if (mode == "IDF") result = n.mul(n.min(result, 1), column_weights(n, places, weights, width));
  return {flat ? n.squeeze(result, {0}) : result};
}

constexpr OnnxRow kIndexingRows[] = {
    {"TfIdfVectorizer", 9, lower_tf_idf},
    {"ArrayFeatureExtractor", 1, lower_array_feature_extractor, 0, "ai.onnx.ml"},
    {"Compress", 9, lower_compress},
    {"Gather", 1, lower_gather},
    {"GatherElements", 11, lower_gather_elements},
    {"GatherND", 11, lower_gather_nd},
    {"NonMaxSuppression", 10, lower_non_max_suppression},
    {"NonZero", 9, lower_non_zero},
    {"OneHot", 9, lower_one_hot},
    {"ReverseSequence", 10, lower_reverse_sequence},
    {"Scatter", 9, lower_scatter_elements},
    {"ScatterElements", 11, lower_scatter_elements},
    {"ScatterND", 11, lower_scatter_nd},
    {"TensorScatter", 24, lower_tensor_scatter},
    {"Unique", 11, lower_unique},
};

}  // namespace

std::span<const OnnxRow> onnx_indexing_rows() { return kIndexingRows; }

}  // namespace tenon::hlo
