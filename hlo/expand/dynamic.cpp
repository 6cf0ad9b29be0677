// Ops whose shape is an operand, once the result shape is known; and small ops outside the
// specification.
#include <algorithm>

#include "hlo/expand/expand_util.h"

namespace tenon::hlo::expand {

Values broadcast(Builder& b, const Instruction& op) {
  const I64s& sizes = op.i64s(AttrKey::broadcast_sizes);
  Dims dims = sizes;
  I64s places;
  for (int64_t d = 0; d < op.operand_type(0).rank(); ++d) {
    places.push_back(static_cast<int64_t>(sizes.size()) + d);
    dims.push_back(op.operand_type(0).dims()[static_cast<size_t>(d)]);
  }
  return done(b, {b.broadcast_in_dim(op.operand(0), dims, places)});
}

Values create_token(Builder& b, const Instruction&) {
  return done(b, {b.make(OpCode::kAfterAll, {})});
}

Values get_dimension_size(Builder& b, const Instruction& op) {
  const int64_t size = op.operand_type(0).dims()[static_cast<size_t>(op.integer(AttrKey::dimension))];
  if (size == kDynamic) {
    return failed_precondition("{}: the size of {} is not known; refine the program first", op.name(),
                               op.operand_type(0).to_string());
  }
  return done(b, {b.constant(Literal::scalar_integer(op.result_type().element_type(), size))});
}

Values dynamic_broadcast_in_dim(Builder& b, const Instruction& op) {
  TENON_TRY(require_static_result(op));
  return done(b, {b.broadcast_in_dim(op.operand(0), op.result_type().dims(),
                                     op.i64s(AttrKey::broadcast_dimensions))});
}

Values dynamic_iota(Builder& b, const Instruction& op) {
  TENON_TRY(require_static_result(op));
  return done(b, {b.iota(op.result_type().element_type(), op.result_type().dims(),
                         op.integer(AttrKey::iota_dimension))});
}

Values dynamic_reshape(Builder& b, const Instruction& op) {
  TENON_TRY(require_static_result(op));
  return done(b, {b.reshape(op.operand(0), op.result_type().dims())});
}

// Slice sizes are a constant's, or follow from the result: offset dimensions have their size there,
// collapsed and batching ones are 1.
Values dynamic_gather(Builder& b, const Instruction& op) {
  TENON_TRY(require_static_result(op));
  const auto& dims = *op.attr<GatherDims>(AttrKey::dimension_numbers);
  std::optional<I64s> sizes = constant_integers(op.operand(2));
  if (!sizes) {
    sizes.emplace(op.operand_type(0).dims().size(), 1);
    size_t next = 0;
    for (size_t d = 0; d < sizes->size(); ++d) {
      const auto listed = [&](const I64s& list) {
        return std::find(list.begin(), list.end(), static_cast<int64_t>(d)) != list.end();
      };
      if (listed(dims.collapsed_slice_dims) || listed(dims.operand_batching_dims)) continue;
      if (next == dims.offset_dims.size()) {
        return internal_error("{}: offset_dims are too few", op.name());
      }
      (*sizes)[d] = op.result_type().dims()[static_cast<size_t>(dims.offset_dims[next++])];
    }
  }
  return done(b, {b.make(OpCode::kGather, {op.operand(0), op.operand(1)},
                         {{AttrKey::dimension_numbers, Attribute(dims)},
                          {AttrKey::slice_sizes, Attribute(*sizes)},
                          {AttrKey::indices_are_sorted,
                           Attribute(op.flag(AttrKey::indices_are_sorted))}})});
}

namespace {

// Component `i` of a rank-1 integer value, as rank-0 s64.
Value component(Builder& b, Value list, int64_t i) {
  return b.convert(b.reshape(b.slice(list, {i}, {i + 1}), {}), ElementType::kS64);
}

// For each place of `result` dimensions the linear element of `x` that `source(axis, coordinate)`
// names by axis, or `fill` where `inside(axis, coordinate)` is false for some axis. Everything that
// depends on run-time amounts is arithmetic on coordinates; one gather moves the elements.
struct Place {
  Value source;  // s64 of the result's dimensions: coordinate in x
  Value inside;  // pred, or null when always
};

Value gather_places(Builder& b, Value x, const Dims& result, const std::vector<Place>& places,
                    Value fill) {
  if (!b.ok()) return {};
  const auto rank = static_cast<int64_t>(places.size());
  Value inside;
  std::vector<Value> columns;
  Dims column_dims = result;
  column_dims.push_back(1);
  for (const Place& place : places) {
    columns.push_back(b.reshape(place.source, column_dims));
    if (place.inside) {
      inside = inside ? b.binary(OpCode::kAnd, inside, place.inside) : place.inside;
    }
  }
  GatherDims dims;
  for (int64_t d = 0; d < rank; ++d) {
    dims.collapsed_slice_dims.push_back(d);
    dims.start_index_map.push_back(d);
  }
  dims.index_vector_dim = static_cast<int64_t>(result.size());
  const Value moved = b.make(OpCode::kGather, {x, b.concatenate(columns, dims.index_vector_dim)},
                             {{AttrKey::dimension_numbers, Attribute(dims)},
                              {AttrKey::slice_sizes, Attribute(I64s(static_cast<size_t>(rank), 1))}});
  if (!inside || !b.ok()) return moved;
  return b.select(inside, moved, b.broadcast_scalar(fill, result));
}

}  // namespace

Values dynamic_pad(Builder& b, const Instruction& op) {
  const Value x = op.operand(0);
  const auto low = constant_integers(op.operand(2));
  const auto high = constant_integers(op.operand(3));
  const auto interior = constant_integers(op.operand(4));
  if (low && high && interior) {
    return done(b, {b.pad(x, op.operand(1), *low, *high, *interior)});
  }
  TENON_TRY(require_static_result(op));
  const Dims& dims = op.result_type().dims();
  if (dims.empty()) return done(b, {x});
  if (std::count(x.type().dims().begin(), x.type().dims().end(), 0) != 0) {
    return done(b, {b.broadcast_scalar(op.operand(1), dims)});
  }
  // Place i holds element (i - low) / (interior + 1) where that is whole and in range.
  std::vector<Place> places;
  for (int64_t d = 0; d < x.type().rank(); ++d) {
    const Value at = b.iota(ElementType::kS64, dims, d);
    const auto spread = [&](Value scalar) { return b.broadcast_scalar(scalar, dims); };
    const Value moved = b.sub(at, spread(component(b, op.operand(2), d)));
    const Value step = spread(b.add(component(b, op.operand(4), d), b.i64_constant(1)));
    const Value zero = b.splat(Shape(ElementType::kS64, dims), 0);
    const Value size = b.splat(Shape(ElementType::kS64, dims),
                               static_cast<double>(x.type().dims()[static_cast<size_t>(d)]));
    const Value source = b.div(moved, step);
    const Value whole = b.compare(ComparisonDirection::kEq, b.binary(OpCode::kRemainder, moved, step), zero);
    const Value in_range = b.binary(OpCode::kAnd, b.compare(ComparisonDirection::kGe, moved, zero),
                                    b.compare(ComparisonDirection::kLt, source, size));
    places.push_back({source, b.binary(OpCode::kAnd, whole, in_range)});
  }
  return done(b, {gather_places(b, x, dims, places, op.operand(1))});
}

Values real_dynamic_slice(Builder& b, const Instruction& op) {
  const Value x = op.operand(0);
  const auto start = constant_integers(op.operand(1));
  const auto limit = constant_integers(op.operand(2));
  const auto strides = constant_integers(op.operand(3));
  if (start && limit && strides) return done(b, {b.slice(x, *start, *limit, *strides)});
  TENON_TRY(require_static_result(op));
  const Dims& dims = op.result_type().dims();
  if (dims.empty()) return done(b, {x});
  std::vector<Place> places;
  for (int64_t d = 0; d < x.type().rank(); ++d) {
    const Value step = b.broadcast_scalar(component(b, op.operand(3), d), dims);
    const Value first = b.broadcast_scalar(component(b, op.operand(1), d), dims);
    places.push_back({b.add(first, b.mul(b.iota(ElementType::kS64, dims, d), step)), {}});
  }
  return done(b, {gather_places(b, x, dims, places, {})});
}

// Run-time padding is done first, on the dilated input; what is left is a convolution without any.
Values dynamic_conv(Builder& b, const Instruction& op) {
  const auto& dims = *op.attr<ConvDims>(AttrKey::dimension_numbers);
  const size_t spatial = dims.input_spatial.size();
  auto conv = std::make_unique<Instruction>(OpCode::kConvolution,
                                            std::vector<Value>{op.operand(0), op.operand(1)},
                                            op.result_types());
  for (const auto& [key, value] : op.attributes()) conv->mutable_attributes().set(key, value);
  if (const auto* strides = op.attr<I64s>(AttrKey::window_strides)) {
    conv->mutable_attributes().set(AttrKey::window_strides,
                                   I64s(strides->begin(), strides->begin() + static_cast<ptrdiff_t>(spatial)));
  }
  if (const auto padding = constant_integers(op.operand(2))) {
    conv->mutable_attributes().set(
        AttrKey::padding, Attribute(I64Matrix{static_cast<int64_t>(spatial), 2, *padding}));
    Instruction* made = b.create(std::move(conv));
    return done(b, {made ? made->result() : Value{}});
  }
  TENON_TRY(require_static_result(op));
  // The result's sizes say how large the padded input must be: (outputs - 1) * stride + window.
  const Type& lhs = op.operand_type(0);
  const I64s strides = op.i64s_or(AttrKey::window_strides, spatial, 1);
  const I64s lhs_dilation = op.i64s_or(AttrKey::lhs_dilation, spatial, 1);
  const I64s rhs_dilation = op.i64s_or(AttrKey::rhs_dilation, spatial, 1);
  const auto count = static_cast<int64_t>(2 * spatial);
  const Value amounts = b.reshape(op.operand(2), {count});
  const Value none = b.i64_constant(0);
  std::vector<Value> low(lhs.dims().size(), none);
  std::vector<Value> interior(lhs.dims().size(), none);
  Dims padded = lhs.dims();
  for (size_t s = 0; s < spatial; ++s) {
    const auto axis = static_cast<size_t>(dims.input_spatial[s]);
    const int64_t window =
        (op.operand_type(1).dims()[static_cast<size_t>(dims.kernel_spatial[s])] - 1) * rhs_dilation[s] + 1;
    const int64_t outputs = op.result_type().dims()[static_cast<size_t>(dims.output_spatial[s])];
    padded[axis] = std::max<int64_t>(outputs - 1, 0) * strides[s] + window;
    low[axis] = component(b, amounts, static_cast<int64_t>(2 * s));
    interior[axis] = b.i64_constant(lhs_dilation[s] - 1);
  }
  const auto list = [&](std::vector<Value> scalars) {
    for (Value& scalar : scalars) scalar = b.reshape(scalar, {1});
    return b.concatenate(std::move(scalars), 0);
  };
  const Value lows = list(low);
  const Value zero = b.scalar(lhs.element_type(), 0);
  // What lies beyond the result's reach needs no padding; dynamic_pad goes by the stated shape.
  const Value input = b.make(OpCode::kDynamicPad, {op.operand(0), zero, lows, lows, list(interior)}, {},
                             {lhs.with_dims(padded)});
  if (!b.ok()) return done(b, {});
  conv->set_operand(0, input);
  conv->mutable_attributes().erase(AttrKey::lhs_dilation);
  Instruction* made = b.create(std::move(conv));
  return done(b, {made ? made->result() : Value{}});
}

// Elements along `dim` by index, for each of the leading `batch_dims`.
Values torch_index_select(Builder& b, const Instruction& op) {
  const Type& operand = op.operand_type(0);
  const Type& index = op.operand_type(1);
  const int64_t dim = op.integer(AttrKey::dim);
  const int64_t batch = op.integer(AttrKey::batch_dims);
  GatherDims dims;
  I64s sizes;
  const int64_t result_rank = operand.rank() - 1 + index.rank() - batch;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    const bool selected = d == dim;
    const bool batching = d < batch;
    sizes.push_back(selected || batching ? 1 : operand.dims()[static_cast<size_t>(d)]);
    if (batching) {
      dims.operand_batching_dims.push_back(d);
      dims.start_indices_batching_dims.push_back(d);
    } else if (selected) {
      dims.collapsed_slice_dims.push_back(d);
    }
  }
  dims.start_index_map = {dim};
  dims.index_vector_dim = index.rank();
  // The result has the operand's dimensions up to `dim`, the indices', then the rest.
  for (int64_t d = batch; d < result_rank; ++d) {
    const bool of_index = d >= dim && d < dim + index.rank() - batch;
    if (!of_index) dims.offset_dims.push_back(d);
  }
  return done(b, {b.make(OpCode::kGather, {op.operand(0), op.operand(1)},
                         {{AttrKey::dimension_numbers, Attribute(dims)},
                          {AttrKey::slice_sizes, Attribute(sizes)}})});
}

}  // namespace tenon::hlo::expand
