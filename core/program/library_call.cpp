#include "core/program/library_call.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace tenon::program {
namespace {

using Shapes = std::span<const Shape>;

constexpr std::array<std::string_view, std::variant_size_v<LibraryCall>> kNames = {
    "contraction", "convolution", "sort", "scan", "fft", "composite"};

// --- As text

class CallText {
 public:
  explicit CallText(std::string_view name) : text_(name) {}

  void list(std::string_view name, const Dims& values) {
    if (!values.empty()) text_ += fmt::format(" {}=[{}]", name, fmt::join(values, ","));
  }
  void number(std::string_view name, int64_t value, int64_t usual) {
    if (value != usual) text_ += fmt::format(" {}={}", name, value);
  }
  void flag(std::string_view name, bool value) {
    if (value) text_ += fmt::format(" {}", name);
  }
  void choice(std::string_view name, size_t value, std::span<const std::string_view> words) {
    text_ += fmt::format(" {}={}", name, words[value]);
  }
  void dims(std::string_view name, const ConvolutionDims& dims) {
    text_ += fmt::format(" {}=({},{},[{}])", name, dims.batch, dims.feature,
                         fmt::join(dims.spatial, ","));
  }
  void composite(const Composite& c) {
    text_ += fmt::format(" {}", c.name);
    number("version", c.version, 0);
    for (const CompositeAttribute& attribute : c.attributes) {
      text_ += fmt::format(" {}=", attribute.name);
      std::visit([&](const auto& value) { text_ += text_of(value); }, attribute.value);
    }
  }
  std::string take() && { return std::move(text_); }

 private:
  static std::string text_of(const std::string& text) { return fmt::format("{:?}", text); }
  template <class Number>
  static std::string text_of(const std::vector<Number>& numbers) {
    if (numbers.size() == 1) return fmt::format("{}", numbers[0]);
    return fmt::format("[{}]", fmt::join(numbers, ","));
  }

  std::string text_;
};

// The same members as numbers, all of them.
class Collector {
 public:
  void list(std::string_view name, const Dims& values) { add(name, values); }
  void number(std::string_view name, int64_t value, int64_t) { add(name, {value}); }
  void flag(std::string_view name, bool value) { add(name, {value ? 1 : 0}); }
  void choice(std::string_view name, size_t value, std::span<const std::string_view>) {
    add(name, {static_cast<int64_t>(value)});
  }
  void dims(std::string_view name, const ConvolutionDims& dims) {
    add(fmt::format("{}_batch", name), {dims.batch});
    add(fmt::format("{}_feature", name), {dims.feature});
    add(fmt::format("{}_spatial", name), dims.spatial);
  }
  void composite(const Composite&) {}
  std::vector<LibraryCallAttribute> take() && { return std::move(attributes_); }

 private:
  void add(std::string_view name, Dims values) {
    attributes_.push_back({std::string(name), std::move(values)});
  }
  std::vector<LibraryCallAttribute> attributes_;
};

template <class T>
void members(T& t, const Contraction& c) {
  t.list("lhs_batch", c.lhs_batch);
  t.list("rhs_batch", c.rhs_batch);
  t.list("lhs_contracting", c.lhs_contracting);
  t.list("rhs_contracting", c.rhs_contracting);
}
template <class T>
void members(T& t, const Convolution& c) {
  t.dims("input", c.input);
  t.dims("kernel", c.kernel);
  t.dims("output", c.output);
  t.list("strides", c.strides);
  t.list("padding_low", c.padding_low);
  t.list("padding_high", c.padding_high);
  t.list("input_dilation", c.input_dilation);
  t.list("kernel_dilation", c.kernel_dilation);
  t.list("reversed", c.reversed);
  t.number("feature_groups", c.feature_groups, 1);
  t.number("batch_groups", c.batch_groups, 1);
}
template <class T>
void members(T& t, const Sort& s) {
  t.number("dimension", s.dimension, -1);
  t.number("key", s.key, 0);
  t.flag("descending", s.descending);
  t.flag("total_order", s.total_order);
}
template <class T>
void members(T& t, const Scan& s) {
  static constexpr std::string_view kCombiners[] = {"add", "multiply", "minimum", "maximum",
                                                    "and", "or",       "xor"};
  t.choice("combiner", static_cast<size_t>(s.combiner), kCombiners);
  t.number("dimension", s.dimension, -1);
  t.flag("reverse", s.reverse);
}
template <class T>
void members(T& t, const Fft& f) {
  static constexpr std::string_view kKinds[] = {"forward", "inverse", "real_forward",
                                                "real_inverse"};
  t.choice("kind", static_cast<size_t>(f.kind), kKinds);
  t.list("lengths", f.lengths);
}
template <class T>
void members(T& t, const Composite& c) {
  t.composite(c);
}

// --- Checks

template <class... Args>
Status bad(fmt::format_string<Args...> format, Args&&... args) {
  return Status(invalid_argument(format, std::forward<Args>(args)...));
}

Status counts(Shapes operands, Shapes results, size_t operand_count, size_t result_count) {
  if (operands.size() == operand_count && results.size() == result_count) return {};
  return bad("{} operands and {} results, expected {} and {}", operands.size(), results.size(),
             operand_count, result_count);
}

int64_t rank_of(const Shape& shape) { return static_cast<int64_t>(shape.dims().size()); }
int64_t size_of(const Shape& shape, int64_t dimension) {
  return shape.dims()[static_cast<size_t>(dimension)];
}

// Each is a dimension of an array of `rank`, none comes twice.
Status distinct(Dims dims, int64_t rank, std::string_view what) {
  std::ranges::sort(dims);
  const bool in_range = dims.empty() || (dims.front() >= 0 && dims.back() < rank);
  if (in_range && std::ranges::adjacent_find(dims) == dims.end()) return {};
  return bad("{} [{}] are no dimensions of an array of rank {}", what, fmt::join(dims, ","), rank);
}

Status dimension(int64_t dimension, const Shape& shape) {
  if (dimension >= 0 && dimension < rank_of(shape)) return {};
  return bad("there is no dimension {} of {}", dimension, shape.to_string());
}

Dims joined(const Dims& a, const Dims& b) {
  Dims both = a;
  both.insert(both.end(), b.begin(), b.end());
  return both;
}

// Factors are of one type.
Status same_types(Shapes operands) {
  if (operands[0].element_type() == operands[1].element_type()) return {};
  return bad("operands of {} and {}", name_of(operands[0].element_type()),
             name_of(operands[1].element_type()));
}

Status check_call(const Contraction& c, Shapes operands, Shapes results) {
  TENON_TRY(counts(operands, results, 2, 1));
  TENON_TRY(same_types(operands));
  const Shape& lhs = operands[0];
  const Shape& rhs = operands[1];
  const Dims of_lhs = joined(c.lhs_batch, c.lhs_contracting);
  const Dims of_rhs = joined(c.rhs_batch, c.rhs_contracting);
  TENON_TRY(distinct(of_lhs, rank_of(lhs), "lhs_batch and lhs_contracting"));
  TENON_TRY(distinct(of_rhs, rank_of(rhs), "rhs_batch and rhs_contracting"));
  if (c.lhs_batch.size() != c.rhs_batch.size() || of_lhs.size() != of_rhs.size()) {
    return bad("lhs and rhs have different numbers of batch or contracting dimensions");
  }
  for (size_t i = 0; i < of_lhs.size(); ++i) {
    if (size_of(lhs, of_lhs[i]) == size_of(rhs, of_rhs[i])) continue;
    return bad("dimension {} of lhs is {}, dimension {} of rhs {}", of_lhs[i],
               size_of(lhs, of_lhs[i]), of_rhs[i], size_of(rhs, of_rhs[i]));
  }
  Dims expected;
  for (const int64_t d : c.lhs_batch) expected.push_back(size_of(lhs, d));
  for (const auto& [shape, taken] : {std::pair{&lhs, &of_lhs}, std::pair{&rhs, &of_rhs}}) {
    for (int64_t d = 0; d < rank_of(*shape); ++d) {
      if (std::ranges::find(*taken, d) == taken->end()) expected.push_back(size_of(*shape, d));
    }
  }
  if (results[0].dims() == expected) return {};
  return bad("the result is {}, expected dimensions [{}]", results[0].to_string(),
             fmt::join(expected, ","));
}

Status check_dims(const ConvolutionDims& dims, const Shape& shape, std::string_view what) {
  Dims all = dims.spatial;
  all.push_back(dims.batch);
  all.push_back(dims.feature);
  TENON_TRY(distinct(all, rank_of(shape), what));
  if (static_cast<int64_t>(all.size()) == rank_of(shape)) return {};
  return bad("{}: {} dimensions are named of {}", what, all.size(), shape.to_string());
}

// The elements from the first to the last of `size` that lie `apart` from each other.
int64_t spread(int64_t size, int64_t apart) { return size == 0 ? 0 : (size - 1) * apart + 1; }

Status check_window(const Convolution& c, Shapes operands, const Shape& result, size_t i) {
  constexpr int64_t kMost = int64_t{1} << 40;
  for (const Dims* list : {&c.strides, &c.input_dilation, &c.kernel_dilation}) {
    if ((*list)[i] < 1 || (*list)[i] > kMost) return bad("{} in a window", (*list)[i]);
  }
  for (const Dims* list : {&c.padding_low, &c.padding_high}) {
    if ((*list)[i] < -kMost || (*list)[i] > kMost) return bad("padding of {}", (*list)[i]);
  }
  int64_t input = 0;
  int64_t kernel = 0;
  const int64_t input_size = size_of(operands[0], c.input.spatial[i]);
  const int64_t kernel_size = size_of(operands[1], c.kernel.spatial[i]);
  if (__builtin_mul_overflow(std::max<int64_t>(input_size - 1, 0), c.input_dilation[i], &input) ||
      __builtin_mul_overflow(std::max<int64_t>(kernel_size - 1, 0), c.kernel_dilation[i],
                             &kernel) ||
      input > kMost || kernel > kMost) {
    return bad("a window of {} in {} is too large", kernel_size, input_size);
  }
  const int64_t whole =
      spread(input_size, c.input_dilation[i]) + c.padding_low[i] + c.padding_high[i];
  const int64_t window = spread(kernel_size, c.kernel_dilation[i]);
  const int64_t expected = whole < window || whole <= 0 ? 0 : (whole - window) / c.strides[i] + 1;
  const int64_t given = size_of(result, c.output.spatial[i]);
  if (given == expected) return {};
  return bad("spatial dimension {} of the result is {}, expected {}", i, given, expected);
}

Status check_call(const Convolution& c, Shapes operands, Shapes results) {
  TENON_TRY(counts(operands, results, 2, 1));
  TENON_TRY(same_types(operands));
  TENON_TRY(check_dims(c.input, operands[0], "input"));
  TENON_TRY(check_dims(c.kernel, operands[1], "kernel"));
  TENON_TRY(check_dims(c.output, results[0], "output"));
  const size_t spatial = c.input.spatial.size();
  for (const Dims* list : {&c.strides, &c.padding_low, &c.padding_high, &c.input_dilation,
                           &c.kernel_dilation, &c.kernel.spatial, &c.output.spatial}) {
    if (list->size() != spatial) return bad("{} entries for {} dimensions", list->size(), spatial);
  }
  TENON_TRY(distinct(c.reversed, static_cast<int64_t>(spatial), "reversed"));
  const int64_t batch = size_of(operands[0], c.input.batch);
  const int64_t input_features = size_of(operands[0], c.input.feature);
  const int64_t features = size_of(operands[1], c.kernel.batch);
  const bool grouped = c.feature_groups >= 1 && c.batch_groups >= 1 &&
                       (c.feature_groups == 1 || c.batch_groups == 1) &&
                       input_features % c.feature_groups == 0 && features % c.feature_groups == 0 &&
                       batch % c.batch_groups == 0 && features % c.batch_groups == 0 &&
                       size_of(operands[1], c.kernel.feature) == input_features / c.feature_groups;
  if (!grouped) return bad("the groups do not divide the features or the batch");
  if (size_of(results[0], c.output.feature) != features ||
      size_of(results[0], c.output.batch) != batch / c.batch_groups) {
    return bad("the result's batch or features differ: {}", results[0].to_string());
  }
  for (size_t i = 0; i < spatial; ++i) TENON_TRY(check_window(c, operands, results[0], i));
  return {};
}

Status check_call(const Sort& s, Shapes operands, Shapes results) {
  TENON_TRY(counts(operands, results, std::max<size_t>(operands.size(), 1), operands.size()));
  TENON_TRY(dimension(s.dimension, operands[0]));
  if (s.key >= operands.size()) return bad("there is no array {} to sort by", s.key);
  const ElementType type = operands[s.key].element_type();
  if (is_complex(type) || (s.total_order && !is_float(type))) {
    return bad("{} have no such order", name_of(type));
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i] == results[i] && operands[i].dims() == operands[0].dims()) continue;
    return bad("array {} is {} and becomes {}", i, operands[i].to_string(), results[i].to_string());
  }
  return {};
}

Status check_call(const Scan& s, Shapes operands, Shapes results) {
  TENON_TRY(counts(operands, results, 2, 1));
  TENON_TRY(dimension(s.dimension, operands[0]));
  const ElementType type = operands[0].element_type();
  const bool bits = s.combiner >= Combiner::kAnd;
  const bool order = s.combiner == Combiner::kMinimum || s.combiner == Combiner::kMaximum;
  if ((bits && !is_integer(type) && !is_pred(type)) || (order && is_complex(type))) {
    return bad("{} cannot be combined so", name_of(type));
  }
  if (operands[0] == results[0] && operands[1] == Shape(operands[0].element_type(), {})) return {};
  return bad("{} with {} becomes {}", operands[0].to_string(), operands[1].to_string(),
             results[0].to_string());
}

Status check_call(const Fft& f, Shapes operands, Shapes results) {
  TENON_TRY(counts(operands, results, 1, 1));
  const size_t rank = operands[0].dims().size();
  if (f.lengths.empty() || f.lengths.size() > 3 || f.lengths.size() > rank) {
    return bad("{} lengths of {}", f.lengths.size(), operands[0].to_string());
  }
  const auto is_half = [&](FftKind kind, size_t d) { return f.kind == kind && d + 1 == rank; };
  for (size_t d = 0; d < rank; ++d) {
    const size_t first = rank - f.lengths.size();
    const int64_t full = d < first ? operands[0].dims()[d] : f.lengths[d - first];
    const int64_t from = is_half(FftKind::kRealInverse, d) ? full / 2 + 1 : full;
    const int64_t to = is_half(FftKind::kRealForward, d) ? full / 2 + 1 : full;
    if (full < 0 || results[0].dims().size() != rank || operands[0].dims()[d] != from ||
        results[0].dims()[d] != to) {
      return bad("{} becomes {} by lengths [{}]", operands[0].to_string(), results[0].to_string(),
                 fmt::join(f.lengths, ","));
    }
  }
  const bool real_from = f.kind == FftKind::kRealForward;
  const bool real_to = f.kind == FftKind::kRealInverse;
  const ElementType from = operands[0].element_type();
  const ElementType to = results[0].element_type();
  const bool one_width = complex_part(from) == complex_part(to) && is_float(complex_part(from));
  if (one_width && is_complex(from) != real_from && is_complex(to) != real_to) return {};
  return bad("{} becomes {}", operands[0].to_string(), results[0].to_string());
}

Status check_call(const Composite& c, Shapes, Shapes) {
  return c.name.empty() ? bad("it has no name") : Status();
}

}  // namespace

std::string_view name_of(const LibraryCall& call) { return kNames[call.index()]; }
std::span<const std::string_view> library_call_names() { return kNames; }

std::string to_string(const LibraryCall& call) {
  CallText text(name_of(call));
  std::visit([&](const auto& each) { members(text, each); }, call);
  return std::move(text).take();
}

std::vector<LibraryCallAttribute> attributes_of(const LibraryCall& call) {
  Collector collector;
  std::visit([&](const auto& each) { members(collector, each); }, call);
  return std::move(collector).take();
}

Status check(const LibraryCall& call, Shapes operands, Shapes results) {
  Status status =
      std::visit([&](const auto& each) { return check_call(each, operands, results); }, call);
  if (status.ok()) return status;
  return std::move(status).with_context(name_of(call));
}

}  // namespace tenon::program
