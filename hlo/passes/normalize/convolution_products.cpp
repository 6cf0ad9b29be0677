// Convolutions with few places beside a large array, or with few outputs: products of matrices, for
// which the large array stays as it lies. A tiled convolution wants filters that end in their
// outputs, and gradients by a filter have few products a result: bringing a filter of megabytes
// into that order, or gathering a tile for each of its places, takes longer than the products. A
// few outputs fill no tile.
#include <algorithm>
#include <optional>

#include "hlo/passes/normalize/convolution_sides.h"
#include "hlo/passes/normalize/layouts.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

constexpr int64_t kLeastLarge = 1 << 14;  // Elements; smaller arrays are soon brought into order.
constexpr int64_t kMostParts = 16;        // of which a matrix of windows is made
constexpr int64_t kFewOutputs = 7;
constexpr int64_t kMostShifts = 49;       // of arrays with few outputs, or of their input
constexpr int64_t kLeastOfFew = 1 << 16;  // products for which shifting pays

int64_t product_of(const Dims& sizes) {
  int64_t product = 1;
  for (const int64_t size : sizes) product *= size;
  return product;
}

// The dimensions of a convolution's arrays stand for these; the numbers of places and of the
// window's dimensions follow.
enum LoopRole : uint8_t { kBatch, kFeature, kOutput, kPlace, kWindow };

// A dimension of the product: its role, and which of several.
struct ProductLoop {
  LoopRole role;
  size_t at = 0;
  bool operator==(const ProductLoop&) const = default;
};
using ProductLoops = std::vector<ProductLoop>;

class ProductOfConvolution {
 public:
  explicit ProductOfConvolution(Instruction& op)
      : op_(op),
        dims_(*op.attr<ConvDims>(AttrKey::dimension_numbers)),
        spatial_(dims_.input_spatial.size()),
        strides_(op.i64s_or(AttrKey::window_strides, spatial_, 1)),
        gaps_(op.i64s_or(AttrKey::lhs_dilation, spatial_, 1)),
        steps_(op.i64s_or(AttrKey::rhs_dilation, spatial_, 1)),
        padding_(op.padding_or_zero(spatial_)),
        reversed_(spatial_),
        b_(*op.parent(), &op) {
    if (const auto* flags = op.attr<BoolsAttr>(AttrKey::window_reversal)) reversed_ = flags->values;
    b_.set_location(op.location());
    for (size_t s = 0; s < spatial_; ++s) {
      from_.push_back(size_of(op.operand_type(0), dims_.input_spatial[s]));
      places_.push_back(size_of(op.result_type(), dims_.output_spatial[s]));
      window_.push_back(size_of(op.operand_type(1), dims_.kernel_spatial[s]));
    }
    batch_ = size_of(op.operand_type(0), dims_.input_batch);
    features_ = size_of(op.operand_type(0), dims_.input_feature);
    outputs_ = size_of(op.operand_type(1), dims_.kernel_output_feature);
  }

  // The result in the order of the op's, or null if it stays a convolution.
  Value run() {
    const int64_t depth = features_ * product_of(window_);
    const int64_t rows = batch_ * product_of(places_);
    if (depth * rows * outputs_ == 0) return {};
    if (outputs_ <= kFewOutputs && depth * rows * outputs_ >= kLeastOfFew) {
      if (adds_shifted()) return of_shifted_results();
      if (has_few_places()) return of_few_places();
    }
    const bool is_large = depth * outputs_ >= kLeastLarge && constant_filter() == nullptr;
    if (is_large && rows <= outputs_ && dims_.kernel_output_feature == 0) return of_windows();
    if (is_large && batch_ * product_of(from_) <= features_) return to_windows();
    if (rows * outputs_ >= kLeastLarge && depth <= 2 * outputs_) return of_few_products(depth);
    return {};
  }

 private:
  static int64_t size_of(const Type& type, int64_t d) {
    return type.dims()[static_cast<size_t>(d)];
  }
  const Instruction* constant_filter() const {
    const Instruction* const def = op_.operand(1).def;
    return def->code() == OpCode::kConstant ? def : nullptr;
  }

  // --- What the dimensions of an array are

  ProductLoops loops_of(int64_t first, LoopRole of_first, int64_t second, LoopRole of_second,
                        const I64s& spatial, LoopRole of_spatial) const {
    ProductLoops loops(spatial_ + 2);
    loops[static_cast<size_t>(first)] = {of_first};
    loops[static_cast<size_t>(second)] = {of_second};
    for (size_t s = 0; s < spatial_; ++s) {
      loops[static_cast<size_t>(spatial[s])] = {of_spatial, s};
    }
    return loops;
  }
  ProductLoops of_input(LoopRole of_spatial) const {
    return loops_of(dims_.input_batch, kBatch, dims_.input_feature, kFeature, dims_.input_spatial,
                    of_spatial);
  }
  ProductLoops of_filter() const {
    return loops_of(dims_.kernel_output_feature, kOutput, dims_.kernel_input_feature, kFeature,
                    dims_.kernel_spatial, kWindow);
  }
  ProductLoops of_result() const {
    return loops_of(dims_.output_batch, kBatch, dims_.output_feature, kOutput, dims_.output_spatial,
                    kPlace);
  }
  int64_t extent(ProductLoop loop) const {
    switch (loop.role) {
      case kBatch:
        return batch_;
      case kFeature:
        return features_;
      case kOutput:
        return outputs_;
      case kPlace:
        return places_[loop.at];
      case kWindow:
        return window_[loop.at];
    }
    return 1;
  }
  Dims extents(const ProductLoops& loops) const {
    Dims sizes;
    for (const ProductLoop loop : loops) sizes.push_back(extent(loop));
    return sizes;
  }
  int64_t count(const ProductLoops& loops) const { return product_of(extents(loops)); }

  static ProductLoops without(ProductLoops loops, LoopRole role) {
    std::erase_if(loops, [&](ProductLoop loop) { return loop.role == role; });
    return loops;
  }
  static ProductLoops joined(const ProductLoops& first, const ProductLoops& second) {
    ProductLoops both = first;
    both.insert(both.end(), second.begin(), second.end());
    return both;
  }
  ProductLoops rows() const {  // Of results, features last.
    ProductLoops loops = {{kBatch}};
    for (size_t s = 0; s < spatial_; ++s) loops.push_back({kPlace, s});
    return loops;
  }
  ProductLoops depth() const {
    ProductLoops loops = {{kFeature}};
    for (size_t s = 0; s < spatial_; ++s) loops.push_back({kWindow, s});
    return loops;
  }

  // `value`, whose dimensions are `from`, with them in the order `to`.
  Value ordered(Value value, const ProductLoops& from, const ProductLoops& to) {
    I64s order;
    for (const ProductLoop loop : to) order.push_back(std::ranges::find(from, loop) - from.begin());
    return transposed(b_, value, order);
  }

  // --- Products

  // The sums over dimension `of_x` of x and `of_y` of y.
  Value product(Value x, int64_t of_x, Value y, int64_t of_y) {
    return product(x, of_x, y, of_y, op_.result_type().element_type());
  }
  Value product(Value x, int64_t of_x, Value y, int64_t of_y, ElementType type) {
    DotDims dims;
    dims.lhs_contracting = {of_x};
    dims.rhs_contracting = {of_y};
    const Value made = b_.dot_general(x, y, std::move(dims), type);
    const Attribute* const precision = op_.attribute(AttrKey::precision_config);
    if (made && precision != nullptr) {
      made.def->mutable_attributes().set(AttrKey::precision_config, *precision);
    }
    return made;
  }

  // Few places: a matrix of the windows times the filter as it lies, [outputs, depth].
  Value of_windows() {
    const ProductLoops deep = without(of_filter(), kOutput);
    const Value windows = windows_in(joined(rows(), deep), kWindow);
    if (!windows) return {};
    Dims sizes = extents(rows());
    sizes.push_back(count(deep));
    const Value filter = b_.reshape(op_.operand(1), {outputs_, count(deep)});
    const auto last = static_cast<int64_t>(sizes.size()) - 1;
    const Value found = product(b_.reshape(windows, sizes), last, filter, 1);
    return ordered(found, joined(rows(), {{kOutput}}), of_result());
  }

  // Few products a result, which lies as the matrix of windows and the outputs, or as outputs and
  // windows: the gradient by a filter, whose window is an array of few places.
  Value of_few_products(int64_t products) {
    const ProductLoops of = of_result(), rest = without(of, kOutput);
    const bool outputs_first = of.front().role == kOutput;
    // Tiles store results that end in outputs in rows.
    if (!outputs_first && (of.back().role != kOutput || products > outputs_)) return {};
    const ProductLoops deep = depth();
    const Value windows =
        windows_in(outputs_first ? joined(deep, rest) : joined(rest, deep), kPlace);
    if (!windows) return {};
    const ProductLoops outputs = {{kOutput}};
    const Value filter = ordered(op_.operand(1), of_filter(),
                                 outputs_first ? joined(outputs, deep) : joined(deep, outputs));
    const int64_t m = count(rest), k = count(deep);
    const Value found =
        outputs_first
            ? product(b_.reshape(filter, {outputs_, k}), 1, b_.reshape(windows, {k, m}), 0)
            : product(b_.reshape(windows, {m, k}), 1, b_.reshape(filter, {k, outputs_}), 0);
    return b_.reshape(found, op_.result_type().dims());
  }

  // --- Matrices of windows

  // The input at the places that each result's window reads, with the dimensions `loops`: parts,
  // one for each of `split` (places of the window, or of the result), which lie side by side. Null
  // if there are too many.
  Value windows_in(const ProductLoops& loops, LoopRole split, int64_t most = kMostParts) {
    const LoopRole rest = split == kWindow ? kPlace : kWindow;
    const Dims& of_split = split == kWindow ? window_ : places_;
    const auto is_split = [&](ProductLoop loop) { return loop.role == split; };
    const auto first = std::ranges::find_if(loops, is_split);
    for (size_t s = 0; s < spatial_; ++s) {
      const bool in_row = loops.end() - first > static_cast<std::ptrdiff_t>(s) &&
                          first[static_cast<std::ptrdiff_t>(s)] == ProductLoop{split, s};
      if (!in_row || (rest == kWindow && reversed_[s] != 0)) return {};
    }
    if (product_of(of_split) > most) return {};
    const ProductLoops others = without(loops, split);
    const Value input = ordered(op_.operand(0), of_input(rest), others);
    const auto along = first - loops.begin();
    Dims sizes = extents(others);
    sizes.insert(sizes.begin() + along, 1);
    std::vector<Value> parts;
    for (int64_t n = 0; n < product_of(of_split); ++n) {
      parts.push_back(b_.reshape(part(input, others, split, n), sizes));
    }
    const Value all = parts.size() == 1 ? parts[0] : b_.concatenate(parts, along);
    return b_.reshape(all, extents(loops));
  }

  // Part `n` of those, of an input with the dimensions `loops`: at each place along a dimension it
  // has the element `low` before it, or a zero.
  Value part(Value input, const ProductLoops& loops, LoopRole split, int64_t n) {
    const size_t rank = loops.size();
    I64s low(rank), high(rank), between(rank), strides(rank, 1);
    for (size_t s = spatial_; s-- > 0;) {
      const int64_t size = split == kWindow ? window_[s] : places_[s];
      const int64_t index = n % size;
      n /= size;
      const bool backwards = split == kWindow && reversed_[s] != 0;
      const int64_t first =
          (backwards ? size - 1 - index : index) * (split == kWindow ? steps_[s] : strides_[s]);
      const int64_t step = split == kWindow ? strides_[s] : steps_[s];
      const ProductLoop along{split == kWindow ? kPlace : kWindow, s};
      const auto d = static_cast<size_t>(std::ranges::find(loops, along) - loops.begin());
      low[d] = padding_.at(static_cast<int64_t>(s), 0) - first;
      high[d] = (extent(along) - 1) * step + 1 - low[d] - spread(s);
      between[d] = gaps_[s] - 1;
      strides[d] = step;
    }
    const Value padded = pad(input, low, high, between);
    if (std::ranges::all_of(strides, [](int64_t step) { return step == 1; })) return padded;
    return b_.slice(padded, I64s(rank, 0), padded.type().dims(), strides);
  }

  // The length of the input along a dimension, with its gaps.
  int64_t spread(size_t s) const { return from_[s] == 0 ? 0 : (from_[s] - 1) * gaps_[s] + 1; }

  Value pad(Value x, const I64s& low, const I64s& high, const I64s& between) {
    const auto none = [](const I64s& list) {
      return std::ranges::all_of(list, [](int64_t each) { return each == 0; });
    };
    if (none(low) && none(high) && none(between)) return x;
    return b_.pad(x, b_.scalar(x.type().element_type(), 0), low, high, between);
  }

  // --- Few places of the input (the gradient by an input): the products of each with the whole
  // filter as it lies, of which those that meet at a place of the result are summed.

  Value to_windows() {
    const ProductLoops filter = of_filter(), right = without(filter, kFeature);
    const bool is_matrix = filter.front().role == kFeature || filter.back().role == kFeature;
    const bool one_step = std::ranges::all_of(strides_, [](int64_t each) { return each == 1; });
    const ElementType type = op_.result_type().element_type();
    // Narrower sums would be rounded before they are added.
    const bool is_wide = type == ElementType::kF32 || type == ElementType::kF64;
    if (!is_matrix || !one_step || !is_wide || product_of(window_) > kMostParts) return {};
    const Value input = ordered(op_.operand(0), of_input(kPlace), joined(rows(), {{kFeature}}));
    const bool first = filter.front().role == kFeature;
    const int64_t columns = count(right);
    const Value matrix =
        b_.reshape(op_.operand(1), first ? Dims{features_, columns} : Dims{columns, features_});
    Value found = product(input, static_cast<int64_t>(spatial_) + 1, matrix, first ? 0 : 1);
    Dims sizes = {batch_};
    sizes.insert(sizes.end(), from_.begin(), from_.end());
    const Dims of_right = extents(right);
    sizes.insert(sizes.end(), of_right.begin(), of_right.end());
    found = b_.reshape(found, sizes);
    Value sum;
    for (int64_t n = 0; n < product_of(window_); ++n) {
      const Value one = of_window_place(found, right, n);
      sum = sum ? b_.add(sum, one) : one;
    }
    return ordered(sum, joined(rows(), {{kOutput}}), of_result());
  }

  // The part of each result that place `n` of the window adds: [batch, places, outputs].
  Value of_window_place(Value found, const ProductLoops& right, int64_t n) {
    I64s start(found.type().dims().size(), 0), limit = found.type().dims();
    I64s low(spatial_ + 2), high(spatial_ + 2), between(spatial_ + 2);
    for (size_t s = spatial_; s-- > 0;) {
      const int64_t index = n % window_[s];
      n /= window_[s];
      const auto in_right = std::ranges::find(right, ProductLoop{kWindow, s}) - right.begin();
      const size_t d = spatial_ + 1 + static_cast<size_t>(in_right);
      start[d] = index;
      limit[d] = index + 1;
      const int64_t from = (reversed_[s] != 0 ? window_[s] - 1 - index : index) * steps_[s];
      low[s + 1] = padding_.at(static_cast<int64_t>(s), 0) - from;
      high[s + 1] = places_[s] - low[s + 1] - spread(s);
      between[s + 1] = gaps_[s] - 1;
    }
    Dims sizes = {batch_};
    sizes.insert(sizes.end(), from_.begin(), from_.end());
    sizes.push_back(outputs_);
    return pad(b_.reshape(b_.slice(found, start, limit), sizes), low, high, between);
  }

  // --- Few outputs: the products of each place of the input with the whole filter, planes of
  // results that are shifted and summed.

  bool adds_shifted() const {
    constexpr int64_t kLeastFeatures = 16;
    constexpr int64_t kMostPlanes = 4;  // as many as features
    const int64_t window = product_of(window_);
    const bool one_step = std::ranges::all_of(strides_, [](int64_t each) { return each == 1; });
    const bool is_small = window * outputs_ <= kMostPlanes * features_;
    return one_step && features_ >= kLeastFeatures && window > 1 && window <= kMostShifts &&
           is_small && product_of(from_) <= 2 * product_of(places_);
  }

  Value of_shifted_results() {
    ProductLoops deep;  // Planes.
    for (size_t s = 0; s < spatial_; ++s) deep.push_back({kWindow, s});
    const ProductLoops planes = joined(deep, {{kOutput}});
    const Value filter =
        ordered(op_.operand(1), of_filter(), joined(planes, ProductLoops{{kFeature}}));
    const ProductLoops rest = without(of_input(kPlace), kFeature);
    // Narrower sums would be rounded before they are added.
    const ElementType type = op_.result_type().element_type();
    const ElementType wide = type == ElementType::kF64 ? type : ElementType::kF32;
    const Value found = product(b_.reshape(filter, {count(planes), features_}), 1, op_.operand(0),
                                dims_.input_feature, wide);
    Value sum;
    for (int64_t n = 0; n < product_of(window_); ++n) {
      const Value one = shifted_result(found, rest, n);
      sum = sum ? b_.add(sum, one) : one;
    }
    return ordered(b_.convert(sum, type), joined({{kOutput}}, rest), of_result());
  }

  // The sums' part of place `n` of the window: the outputs, then the dimensions `rest` of the
  // result.
  Value shifted_result(Value found, const ProductLoops& rest, int64_t n) {
    const size_t rank = rest.size() + 1;
    I64s start(rank, 0), limit = found.type().dims();
    start[0] = n * outputs_;
    limit[0] = start[0] + outputs_;
    I64s low(rank), high(rank), between(rank);
    for (size_t s = spatial_; s-- > 0;) {
      const int64_t index = n % window_[s];
      n /= window_[s];
      const auto at = std::ranges::find(rest, ProductLoop{kPlace, s}) - rest.begin();
      const auto d = static_cast<size_t>(at) + 1;
      const int64_t from = (reversed_[s] != 0 ? window_[s] - 1 - index : index) * steps_[s];
      low[d] = padding_.at(static_cast<int64_t>(s), 0) - from;
      high[d] = places_[s] - low[d] - spread(s);
      between[d] = gaps_[s] - 1;
    }
    return pad(b_.slice(found, start, limit), low, high, between);
  }

  // --- Few outputs and places, which is a gradient by a filter: a matrix of the input at each
  // place of the result, whose elements lie along the products, as those of the filter (the
  // gradient of the results) do. Zeros in place of what a place does not read would make NaN of
  // infinities.

  bool has_few_places() const {
    constexpr int64_t kLeastBatch = 8, kLeastProducts = 256;
    constexpr int64_t kMostElements = 1 << 23;  // of the matrix
    const int64_t places = product_of(places_), products = features_ * product_of(window_);
    return places <= kMostShifts && batch_ >= kLeastBatch && products >= kLeastProducts &&
           places * batch_ * products <= kMostElements;
  }

  Value of_few_places() {
    const ProductLoops places = without(rows(), kBatch);
    const ProductLoops from = joined(places, {{kBatch}});
    const Value windows = windows_in(joined(from, depth()), kPlace, kMostShifts);
    if (!windows) return {};
    const int64_t products = count(depth());
    const Value filter = ordered(op_.operand(1), of_filter(), joined({{kOutput}}, depth()));
    const Value found = product(b_.reshape(filter, {outputs_, products}), 1,
                                b_.reshape(windows, {count(from), products}), 1);
    const ProductLoops loops = joined({{kOutput}}, from);
    return ordered(b_.reshape(found, extents(loops)), loops, of_result());
  }

  Instruction& op_;
  const ConvDims dims_;
  const size_t spatial_;
  const I64s strides_, gaps_, steps_;
  const I64Matrix padding_;
  std::vector<uint8_t> reversed_;
  Dims from_, places_, window_;
  int64_t batch_ = 1, features_ = 1, outputs_ = 1;
  Builder b_;
};

bool may_be_product(const Instruction& op) {
  if (op.code() != OpCode::kConvolution) return false;
  const auto plain = [&](const Type& type) {
    return type.is_tensor() && !type.is_quantized() && type.shape().is_static() &&
           type.element_type() == op.result_type().element_type() && is_float(type.element_type());
  };
  return plain(op.result_type()) && plain(op.operand_type(0)) && plain(op.operand_type(1)) &&
         op.integer(AttrKey::feature_group_count, 1) == 1 &&
         op.integer(AttrKey::batch_group_count, 1) == 1 && op.operand_type(0).rank() > 2;
}

}  // namespace

Result<bool> make_convolution_products(Module& module, const PassOptions& options) {
  const auto replace = [](Instruction& op, Value value) {
    if (!value) return false;
    op.replace_uses(0, value);
    op.parent()->erase(&op);
    return true;
  };
  const bool exchanged = change_ops(module, [&](Instruction& op) {
    return may_be_product(op) && replace(op, exchange_sides(op));
  });
  if (!options.cost.wide_tiles) return exchanged;
  const bool made = change_ops(module, [&](Instruction& op) {
    return may_be_product(op) && replace(op, ProductOfConvolution(op).run());
  });
  return exchanged || made;
}

}  // namespace tenon::hlo
