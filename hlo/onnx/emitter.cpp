// The functions of OnnxEmitter: NumPy's broadcasting and indexing in StableHLO.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/types/float_convert.h"
#include "hlo/onnx/lowering.h"

namespace tenon::hlo {

void fail_onnx(Error error) { throw OnnxFailure{std::move(error)}; }
void fail_onnx(ErrorCode code, fmt::string_view format, fmt::format_args arguments) {
  throw OnnxFailure{Status(code, fmt::vformat(format, arguments))};
}

Dims broadcast_dims(const std::vector<Dims>& shapes) {
  size_t rank = 0;
  for (const Dims& each : shapes) rank = std::max(rank, each.size());
  Dims dims(rank, 1);
  for (const Dims& each : shapes) {
    for (size_t i = 0; i < each.size(); ++i) {
      int64_t& size = dims[rank - each.size() + i];
      if (each[i] == size || each[i] == 1) continue;
      if (size != 1) {
        bad_onnx("shapes [{}] and [{}] cannot be broadcast", dims_to_string(dims),
                 dims_to_string(each));
      }
      size = each[i];
    }
  }
  return dims;
}

int64_t normal_axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) bad_onnx("axis {} is out of range for rank {}", axis, rank);
  return axis < 0 ? axis + rank : axis;
}

I64s normal_axes(I64s axes, int64_t rank) {
  for (int64_t& each : axes) each = normal_axis(each, rank);
  std::ranges::sort(axes);
  if (std::ranges::adjacent_find(axes) != axes.end()) bad_onnx("an axis is named twice");
  return axes;
}

I64s all_axes(int64_t rank, int64_t first) {
  I64s axes(static_cast<size_t>(std::max<int64_t>(rank - first, 0)));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

namespace {

// Shapes that a model computes may be anything.
void check_dims(const Dims& dims) {
  constexpr int64_t kWidest = 16;
  const auto count = checked_element_count(dims, kWidest);
  if (!count) throw OnnxFailure{count.error()};
}

}  // namespace

// --- Elements

void OnnxEmitter::check_rank(Value x, int64_t least, int64_t most) {
  if (rank_of(x) < least || rank_of(x) > most)
    bad_onnx("an array of rank {} where one of rank {} is taken", rank_of(x), least);
}

Value OnnxEmitter::checked(Value value) const {
  if (!builder_->ok()) throw OnnxFailure{builder_->status()};
  return value;
}

Value OnnxEmitter::number(ElementType type, double value) const {
  if (is_complex(type)) {
    Literal literal{Shape(type, {})};
    literal.set_complex(0, {value, 0});
    return constant(std::move(literal));
  }
  return constant(Literal::scalar(type, value));
}

Value OnnxEmitter::splat(ElementType type, Dims dims, double value) const {
  return broadcast_to(number(type, value), dims);
}

Value OnnxEmitter::iota(ElementType type, Dims dims, int64_t dimension) const {
  check_dims(dims);
  return checked(builder_->iota(type, std::move(dims), dimension));
}

Value OnnxEmitter::binary(OpCode code, Value x, Value y) const {
  const Dims dims = broadcast_dims({dims_of(x), dims_of(y)});
  return checked(builder_->binary(code, broadcast_to(x, dims), broadcast_to(y, dims)));
}

Value OnnxEmitter::compare(Direction direction, Value x, Value y) const {
  const Dims dims = broadcast_dims({dims_of(x), dims_of(y)});
  return checked(builder_->compare(direction, broadcast_to(x, dims), broadcast_to(y, dims)));
}

Value OnnxEmitter::select(Value condition, Value x, Value y) const {
  const Dims dims = broadcast_dims({dims_of(condition), dims_of(x), dims_of(y)});
  return checked(builder_->select(broadcast_to(condition, dims), broadcast_to(x, dims),
                                  broadcast_to(y, dims)));
}

Value OnnxEmitter::convert(Value x, ElementType type) const {
  if (is_pred(type) && !is_pred(type_of(x))) return compare(Direction::kNe, x, 0);
  return checked(builder_->convert(x, type));
}

// --- Shapes

Value OnnxEmitter::reshape(Value x, Dims dims) const {
  check_dims(dims);
  return checked(builder_->reshape(x, std::move(dims)));
}

Value OnnxEmitter::broadcast_in_dim(Value x, Dims dims, I64s dimensions) const {
  check_dims(dims);
  return checked(builder_->broadcast_in_dim(x, std::move(dims), std::move(dimensions)));
}

Value OnnxEmitter::broadcast_to(Value x, const Dims& dims) const {
  if (dims_of(x) == dims) return x;
  check_dims(dims);
  const auto* constant = x.def->attr<DenseAttr>(AttrKey::value);
  if (rank_of(x) == 0 && x.def->code() == OpCode::kConstant && constant != nullptr) {
    return checked(builder_->constant(
        DenseAttr::splat(Shape(type_of(x), dims), constant->values.reshaped({}))));
  }
  return broadcast_in_dim(x, dims, all_axes(std::ssize(dims), std::ssize(dims) - rank_of(x)));
}

Value OnnxEmitter::transpose(Value x, I64s permutation) const {
  return checked(builder_->transpose(x, std::move(permutation)));
}

Value OnnxEmitter::slice(Value x, I64s start, I64s limit, I64s strides) const {
  return checked(builder_->slice(x, std::move(start), std::move(limit), std::move(strides)));
}

Value OnnxEmitter::slice_of(Value x, int64_t axis, int64_t start, int64_t limit,
                            int64_t stride) const {
  check_rank(x, axis + 1);
  I64s starts(dims_of(x).size(), 0), limits = dims_of(x), strides(dims_of(x).size(), 1);
  const auto a = static_cast<size_t>(axis);
  starts[a] = start;
  limits[a] = limit;
  strides[a] = stride;
  return slice(x, std::move(starts), std::move(limits), std::move(strides));
}

Value OnnxEmitter::concatenate(const Values& parts, int64_t axis) const {
  return parts.size() == 1 ? parts[0] : checked(builder_->concatenate(parts, axis));
}

Value OnnxEmitter::pad(Value x, Value padding, I64s low, I64s high, I64s interior) const {
  return checked(builder_->pad(x, padding, std::move(low), std::move(high), std::move(interior)));
}

Value OnnxEmitter::reverse(Value x, I64s dimensions) const {
  return checked(builder_->make(OpCode::kReverse, {x},
                                {{AttrKey::dimensions, Attribute(std::move(dimensions))}}));
}

Value OnnxEmitter::unsqueeze(Value x, I64s axes) const {
  const int64_t rank = rank_of(x) + std::ssize(axes);
  axes = normal_axes(std::move(axes), rank);
  Dims dims = dims_of(x);
  for (const int64_t each : axes) dims.insert(dims.begin() + each, 1);
  return reshape(x, std::move(dims));
}

Value OnnxEmitter::squeeze(Value x, I64s axes) const {
  axes = normal_axes(std::move(axes), rank_of(x));
  Dims dims;
  for (int64_t i = 0; i < rank_of(x); ++i) {
    const int64_t size = dims_of(x)[static_cast<size_t>(i)];
    if (!contains(axes, i)) {
      dims.push_back(size);
    } else if (size != 1) {
      bad_onnx("dimension {} has {} elements, and cannot be squeezed", i, size);
    }
  }
  return reshape(x, std::move(dims));
}

// --- Reductions

namespace {

double lowest_of(ElementType type) {
  const FloatSpecials specials = element_type_info(type).format.specials;
  return specials == FloatSpecials::kIeee ? -std::numeric_limits<double>::infinity()
                                          : -float_max(type);
}

bool is_half(ElementType type) { return is_float(type) && bit_width(type) <= 16; }

}  // namespace

Literal OnnxEmitter::identity_of(OpCode combiner, ElementType type) const {
  const bool greatest = combiner == OpCode::kMaximum;
  if (greatest || combiner == OpCode::kMinimum) {
    if (is_float(type)) return Literal::scalar(type, greatest ? lowest_of(type) : -lowest_of(type));
    if (is_pred(type)) return Literal::scalar_integer(type, greatest ? 0 : 1);
    const int bits = bit_width(type);
    if (is_unsigned_integer(type))
      return Literal::scalar_integer(
          type, greatest ? 0 : static_cast<int64_t>(~uint64_t{0} >> (64 - bits)));
    const int64_t most = static_cast<int64_t>(~uint64_t{0} >> (65 - bits));
    return Literal::scalar_integer(type, greatest ? -most - 1 : most);
  }
  const double start = combiner == OpCode::kMultiply || combiner == OpCode::kAnd ? 1 : 0;
  return Literal::scalar(type, start);
}

// Sums of floats of 16 bits and fewer are made in f32.
Value OnnxEmitter::reduce(OpCode combiner, Value x, const I64s& axes, bool keep) const {
  const ElementType type = type_of(x);
  const bool widened = is_half(type) && (combiner == OpCode::kAdd || combiner == OpCode::kMultiply);
  const Value wide = widened ? convert(x, ElementType::kF32) : x;
  Value reduced = checked(
      builder_->reduce(combiner, wide, constant(identity_of(combiner, type_of(wide))), axes));
  reduced = convert(reduced, type);
  return keep ? unsqueeze(reduced, axes) : reduced;
}

Value OnnxEmitter::mean(Value x, const I64s& axes, bool keep) const {
  int64_t count = 1;
  for (const int64_t each : axes) count *= dims_of(x)[static_cast<size_t>(each)];
  // The sum of many short floats is none of them.
  const Value wide = is_half(type_of(x)) ? convert(x, ElementType::kF32) : x;
  return convert(div(sum(wide, axes, keep), static_cast<double>(count)), type_of(x));
}

Value OnnxEmitter::reduce_window(OpCode combiner, Value x, const EmittedWindow& window) const {
  const Value init = constant(identity_of(combiner, type_of(x)));
  I64Matrix padding{rank_of(x), 2, {}};
  for (size_t i = 0; i < window.low.size(); ++i) {
    padding.values.push_back(window.low[i]);
    padding.values.push_back(window.high[i]);
  }
  std::vector<std::unique_ptr<Computation>> regions;
  regions.push_back(binary_region(combiner, init.type()));
  Instruction* op = builder_->create(OpCode::kReduceWindow, {x, init},
                                     {{AttrKey::window_dimensions, Attribute(window.size)},
                                      {AttrKey::window_strides, Attribute(window.strides)},
                                      {AttrKey::window_dilations, Attribute(window.dilations)},
                                      {AttrKey::padding, Attribute(std::move(padding))}},
                                     {}, std::move(regions));
  return checked(op == nullptr ? Value{} : op->result());
}

Value OnnxEmitter::softmax(Value x, int64_t axis) const {
  const Value powers = exp(sub(x, reduce(OpCode::kMaximum, x, {axis}, true)));
  return div(powers, sum(powers, {axis}, true));
}

Value OnnxEmitter::cumulative(OpCode combiner, Value x, int64_t axis, bool exclusive,
                              bool reversed) const {
  const auto a = static_cast<size_t>(axis);
  const int64_t size = dims_of(x)[a];
  if (size == 0) return x;
  if (reversed) x = reverse(x, {axis});
  const I64s zeros(dims_of(x).size(), 0), ones(dims_of(x).size(), 1);
  if (exclusive) {
    I64s low = zeros;
    low[a] = 1;
    x = slice_of(pad(x, constant(identity_of(combiner, type_of(x))), low, zeros), axis, 0, size);
  }
  EmittedWindow window{ones, ones, zeros, zeros, ones};
  window.size[a] = size;
  window.low[a] = size - 1;
  x = reduce_window(combiner, x, window);
  return reversed ? reverse(x, {axis}) : x;
}

Value OnnxEmitter::arg_extreme(Value x, int64_t axis, bool greatest, bool last) const {
  const int64_t size = dims_of(x)[static_cast<size_t>(axis)];
  if (size == 0) bad_onnx("dimension {} has no elements", axis);
  const Value extreme = reduce(greatest ? OpCode::kMaximum : OpCode::kMinimum, x, {axis}, true);
  Value found = compare(Direction::kEq, x, extreme);
  if (is_float(type_of(x))) found = logical_or(found, compare(Direction::kNe, x, x));
  const Value positions = iota(ElementType::kS64, dims_of(x), axis);
  const Value other = number(ElementType::kS64, last ? -1 : static_cast<double>(size));
  return reduce(last ? OpCode::kMaximum : OpCode::kMinimum, select(found, positions, other), {axis},
                true);
}

std::pair<Value, Value> OnnxEmitter::sort(Value x, int64_t axis, bool descending) const {
  const Value positions = iota(ElementType::kS64, dims_of(x), axis);
  const bool has_nans = is_float(type_of(x));
  if (has_nans) {
    // One NaN and one zero: the total order tells their signs apart.
    const double nan = std::numeric_limits<double>::quiet_NaN();
    x = select(compare(Direction::kNe, x, x), like(x, nan), x);
    x = select(compare(Direction::kEq, x, 0), like(x, 0), x);
  }
  const ComparisonType order = has_nans ? ComparisonType::kTotalOrder : ComparisonType::kNoType;
  auto region = std::make_unique<Computation>();
  const Type element(Shape(type_of(x), {})), index(Shape(ElementType::kS64, {}));
  const Value lhs = region->add_parameter(element), rhs = region->add_parameter(element);
  region->add_parameter(index);
  region->add_parameter(index);
  Builder inner(*region);
  const Status built =
      inner.finish({inner.compare(descending ? Direction::kGt : Direction::kLt, lhs, rhs, order)});
  if (!built.ok()) throw OnnxFailure{built};
  std::vector<std::unique_ptr<Computation>> regions;
  regions.push_back(std::move(region));
  Instruction* op = builder_->create(
      OpCode::kSort, {x, positions},
      {{AttrKey::dimension, axis}, {AttrKey::is_stable, Attribute(true)}}, {}, std::move(regions));
  checked({});
  return {op->result(0), op->result(1)};
}

// --- Products

Value OnnxEmitter::dot_general(Value x, Value y, DotDims dims,
                               std::optional<ElementType> result) const {
  return checked(builder_->dot_general(x, y, std::move(dims), result.value_or(type_of(x))));
}

Value OnnxEmitter::matmul(Value x, Value y, std::optional<ElementType> result) const {
  if (rank_of(x) == 0 || rank_of(y) == 0) bad_onnx("a factor of a product of matrices has rank 0");
  const bool is_row = rank_of(x) == 1, is_column = rank_of(y) == 1;
  if (is_row) x = unsqueeze(x, {0});
  if (is_column) y = unsqueeze(y, {1});
  Dims left = dims_of(x), right = dims_of(y);
  const Dims x_batch(left.begin(), left.end() - 2), y_batch(right.begin(), right.end() - 2);
  const Dims batch = broadcast_dims({x_batch, y_batch});
  const auto broadcast = [&](Value v, const Dims& own) {
    if (own == batch) return v;
    Dims dims = batch;
    dims.insert(dims.end(), dims_of(v).end() - 2, dims_of(v).end());
    return broadcast_to(v, dims);
  };
  // A matrix for all batches: one product of more rows.
  const bool shared = y_batch.empty() && !x_batch.empty();
  if (!shared) {
    x = broadcast(x, x_batch);
    y = broadcast(y, y_batch);
  }
  const I64s batches = shared ? I64s{} : all_axes(std::ssize(batch));
  DotDims dims{batches, batches, {rank_of(x) - 1}, {rank_of(y) - 2}};
  Value product = dot_general(x, y, std::move(dims), result);
  if (is_column) product = squeeze(product, {rank_of(product) - 1});
  if (is_row) product = squeeze(product, {rank_of(product) - (is_column ? 1 : 2)});
  return product;
}

// --- Indices

Value OnnxEmitter::wrapped(Value indices, int64_t size) const {
  indices = convert(indices, ElementType::kS64);
  return select(compare(Direction::kLt, indices, 0), add(indices, static_cast<double>(size)),
                indices);
}

namespace {

Value gather_op(const OnnxEmitter& e, Value x, Value indices, GatherDims dims, I64s sizes) {
  return e.checked(e.builder().make(OpCode::kGather, {x, indices},
                                    {{AttrKey::dimension_numbers, Attribute(std::move(dims))},
                                     {AttrKey::slice_sizes, Attribute(std::move(sizes))}}));
}

// Adds the size of a dimension to negative components of index vectors.
Value wrapped_vectors(const OnnxEmitter& e, Value indices, const Dims& sizes) {
  indices = e.convert(indices, ElementType::kS64);
  return e.select(e.compare(Direction::kLt, indices, 0), e.add(indices, e.i64s(sizes)), indices);
}

}  // namespace

Value OnnxEmitter::take(Value x, Value indices, int64_t axis) const {
  const int64_t rank = rank_of(x), index_rank = rank_of(indices);
  check_rank(x, std::max<int64_t>(axis, 0) + 1);
  GatherDims dims;
  for (int64_t i = 0; i < rank - 1; ++i) dims.offset_dims.push_back(i < axis ? i : i + index_rank);
  dims.collapsed_slice_dims = {axis};
  dims.start_index_map = {axis};
  dims.index_vector_dim = index_rank;
  I64s sizes = dims_of(x);
  const int64_t size = std::exchange(sizes[static_cast<size_t>(axis)], 1);
  return gather_op(*this, x, wrapped(indices, size), std::move(dims), std::move(sizes));
}

Value OnnxEmitter::take_along(Value x, Value indices, int64_t axis) const {
  if (rank_of(x) != rank_of(indices))
    bad_onnx("the indices have rank {}, expected {}", rank_of(indices), rank_of(x));
  I64s limits = dims_of(indices);
  const auto a = static_cast<size_t>(axis);
  const int64_t size = limits[a] = dims_of(x)[a];
  if (limits != dims_of(x)) x = slice(x, I64s(limits.size(), 0), limits);
  GatherDims dims;
  dims.collapsed_slice_dims = {axis};
  dims.operand_batching_dims = complement(rank_of(x), {{axis}});
  dims.start_indices_batching_dims = dims.operand_batching_dims;
  dims.start_index_map = {axis};
  dims.index_vector_dim = rank_of(x);
  return gather_op(*this, x, wrapped(indices, size), std::move(dims), I64s(limits.size(), 1));
}

Value OnnxEmitter::gather_nd(Value x, Value indices, int64_t batch) const {
  const int64_t rank = rank_of(x), index_rank = rank_of(indices);
  const int64_t length = index_rank == 0 ? 0 : dims_of(indices).back();
  if (batch < 0 || batch >= index_rank || length + batch > rank)
    bad_onnx("index vectors of {} elements for rank {}", length, rank);
  GatherDims dims;
  I64s sizes = dims_of(x);
  Dims wraps;
  for (int64_t i = 0; i < batch + length; ++i) {
    const int64_t size = std::exchange(sizes[static_cast<size_t>(i)], 1);
    if (i < batch) {
      dims.operand_batching_dims.push_back(i);
    } else {
      dims.collapsed_slice_dims.push_back(i);
      wraps.push_back(size);
    }
  }
  dims.start_indices_batching_dims = dims.operand_batching_dims;
  dims.start_index_map = dims.collapsed_slice_dims;
  dims.index_vector_dim = index_rank - 1;
  dims.offset_dims = all_axes(index_rank - 1 + rank - batch - length, index_rank - 1);
  return gather_op(*this, x, wrapped_vectors(*this, indices, wraps), std::move(dims),
                   std::move(sizes));
}

Value OnnxEmitter::scatter_nd(Value x, Value indices, Value updates, std::optional<OpCode> combiner,
                              bool unique) const {
  const int64_t rank = rank_of(x), index_rank = rank_of(indices);
  const int64_t length = index_rank == 0 ? 0 : dims_of(indices).back();
  if (index_rank == 0 || length > rank)
    bad_onnx("index vectors of {} elements for rank {}", length, rank);
  ScatterDims dims;
  dims.update_window_dims = all_axes(index_rank - 1 + rank - length, index_rank - 1);
  dims.inserted_window_dims = all_axes(length);
  dims.scatter_dims_to_operand_dims = dims.inserted_window_dims;
  dims.index_vector_dim = index_rank - 1;
  const Type element(Shape(type_of(x), {}));
  std::unique_ptr<Computation> region;
  if (combiner) {
    region = binary_region(*combiner, element);
  } else {
    region = std::make_unique<Computation>();
    region->add_parameter(element);
    const Value update = region->add_parameter(element);
    const Status built = Builder(*region).finish({update});
    if (!built.ok()) throw OnnxFailure{built};
  }
  std::vector<std::unique_ptr<Computation>> regions;
  regions.push_back(std::move(region));
  const Dims sizes(dims_of(x).begin(), dims_of(x).begin() + length);
  Instruction* op =
      builder_->create(OpCode::kScatter, {x, wrapped_vectors(*this, indices, sizes), updates},
                       {{AttrKey::scatter_dimension_numbers, Attribute(std::move(dims))},
                        {AttrKey::unique_indices, Attribute(unique)}},
                       {}, std::move(regions));
  return checked(op == nullptr ? Value{} : op->result());
}

}  // namespace tenon::hlo
