// Ops that move elements.
#include <algorithm>

#include "hlo/evaluator/ops/index.h"
#include "hlo/evaluator/ops/rules.h"

namespace tenon::hlo {
namespace {

// result[i] = operand[map(i)] for every index i of the result.
template <class Map>
Tensor gather_by(Evaluator& e, const Instruction& op, const Tensor& operand, Map map) {
  Tensor result = e.tensor(op.result_type().element_type(), op.result_type().dims());
  const Dims strides = row_major_strides(operand.dims());
  for (IndexSpace at(result.dims()); !at.done(); at.next()) {
    result.copy(at.linear(), operand, map(*at, strides));
  }
  return result;
}

Tensor broadcast_in_dim(Evaluator& e, const Instruction& op, const Tensor& operand) {
  const I64s& dims = op.i64s(AttrKey::broadcast_dimensions);
  return gather_by(e, op, operand, [&](const Dims& at, const Dims& strides) {
    int64_t from = 0;
    for (size_t i = 0; i < dims.size(); ++i) {
      if (operand.dims()[i] != 1) from += at[static_cast<size_t>(dims[i])] * strides[i];
    }
    return from;
  });
}

Tensor transpose(Evaluator& e, const Instruction& op, const Tensor& operand) {
  const I64s& permutation = op.i64s(AttrKey::permutation);
  return gather_by(e, op, operand, [&](const Dims& at, const Dims& strides) {
    int64_t from = 0;
    for (size_t i = 0; i < permutation.size(); ++i) {
      from += at[i] * strides[static_cast<size_t>(permutation[i])];
    }
    return from;
  });
}

Tensor reverse(Evaluator& e, const Instruction& op, const Tensor& operand) {
  const I64s& dimensions = op.i64s(AttrKey::dimensions);
  return gather_by(e, op, operand, [&](const Dims& at, const Dims& strides) {
    int64_t from = 0;
    for (size_t i = 0; i < at.size(); ++i) {
      const bool reversed = contains(dimensions, static_cast<int64_t>(i));
      from += (reversed ? operand.dims()[i] - 1 - at[i] : at[i]) * strides[i];
    }
    return from;
  });
}

Tensor slice(Evaluator& e, const Instruction& op, const Tensor& operand) {
  const I64s& start = op.i64s(AttrKey::start_indices);
  const I64s& step = op.i64s(AttrKey::strides);
  return gather_by(e, op, operand, [&](const Dims& at, const Dims& strides) {
    int64_t from = 0;
    for (size_t i = 0; i < at.size(); ++i) from += (start[i] + at[i] * step[i]) * strides[i];
    return from;
  });
}

// Start indices, each a rank-0 operand, clamped so that `sizes` fits into `dims`.
Dims clamped_starts(Operands operands, size_t first, const Dims& dims, const Dims& sizes) {
  Dims starts(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    const Tensor& index = *operands[first + i];
    int64_t start = index.integer(0);
    if (index.type() == ElementType::kU64 && start < 0) start = std::numeric_limits<int64_t>::max();
    starts[i] = std::clamp<int64_t>(start, 0, dims[i] - sizes[i]);
  }
  return starts;
}

Tensor dynamic_slice(Evaluator& e, const Instruction& op, Operands operands) {
  const Tensor& operand = *operands[0];
  const Dims starts = clamped_starts(operands, 1, operand.dims(), op.i64s(AttrKey::slice_sizes));
  return gather_by(e, op, operand, [&](const Dims& at, const Dims& strides) {
    return dot(starts, strides) + dot(at, strides);
  });
}

Tensor dynamic_update_slice(const Instruction&, Operands operands) {
  Tensor result = *operands[0];
  const Tensor& update = *operands[1];
  const Dims starts = clamped_starts(operands, 2, result.dims(), update.dims());
  const Dims strides = row_major_strides(result.dims());
  const int64_t base = dot(starts, strides);
  for (IndexSpace at(update.dims()); !at.done(); at.next()) {
    result.copy(base + dot(*at, strides), update, at.linear());
  }
  return result;
}

// Interior padding first, then the edges, which may be negative and crop.
Tensor pad(Evaluator& e, const Instruction& op, const Tensor& operand, const Tensor& value) {
  const I64s& low = op.i64s(AttrKey::edge_padding_low);
  const I64s& interior = op.i64s(AttrKey::interior_padding);
  Tensor result = e.tensor(op.result_type().element_type(), op.result_type().dims());
  for (int64_t i = 0; i < result.count(); ++i) result.copy(i, value, 0);
  const Dims strides = row_major_strides(result.dims());
  for (IndexSpace at(operand.dims()); !at.done(); at.next()) {
    int64_t to = 0;
    bool inside = true;
    for (size_t i = 0; i < low.size(); ++i) {
      const int64_t index = low[i] + at[i] * (interior[i] + 1);
      inside &= index >= 0 && index < result.dims()[i];
      to += index * strides[i];
    }
    if (inside) result.copy(to, operand, at.linear());
  }
  return result;
}

Tensor concatenate(Evaluator& e, const Instruction& op, Operands operands) {
  const auto axis = static_cast<size_t>(op.integer(AttrKey::dimension));
  Tensor result = e.tensor(op.result_type().element_type(), op.result_type().dims());
  const Dims strides = row_major_strides(result.dims());
  int64_t offset = 0;
  for (const EvalValue& operand : operands) {
    for (IndexSpace at(operand->dims()); !at.done(); at.next()) {
      result.copy(offset * strides[axis] + dot(*at, strides), *operand, at.linear());
    }
    offset += operand->dims()[axis];
  }
  return result;
}

Tensor iota(Evaluator& e, const Instruction& op) {
  const auto axis = static_cast<size_t>(op.integer(AttrKey::iota_dimension));
  const Type& type = op.result_type();
  Tensor result = e.tensor(type.element_type(), type.dims());
  ElementContext context;
  context.operand_type = ElementType::kS64;
  context.result_type = type.element_type();
  context.wide = e.wide();
  const ElementFunction convert = scalar::convert.of(context);
  for (IndexSpace at(result.dims()); !at.done(); at.next()) {
    const Scalar index(at[axis]);
    result.set(at.linear(), convert(context, &index));
  }
  return result;
}

// Element 0 of a group of narrower elements has the lowest bits. A complex value is two reals.
Result<Tensor> bitcast_convert(Evaluator& e, const Instruction& op, const Tensor& operand) {
  const Type& type = op.result_type();
  const ElementType from = operand.type();
  const ElementType to = type.element_type();
  Tensor result = e.tensor(to, type.dims());
  if (from == to) return operand;
  if (is_complex(from) || is_complex(to)) {
    // Whole bytes on both sides: the stored bytes are the bits.
    const Literal bytes = literal_from_tensor(operand);
    TENON_ASSIGN(const Literal viewed, Literal::from_bytes(type.shape(), bytes.data()));
    return tensor_from_literal(viewed, e.wide());
  }
  const int from_bits = bit_width(from);
  const int to_bits = bit_width(to);
  if (from_bits >= to_bits) {
    const int64_t ratio = from_bits / to_bits;
    const uint64_t mask = to_bits == 64 ? ~uint64_t{0} : (uint64_t{1} << to_bits) - 1;
    for (int64_t i = 0; i < result.count(); ++i) {
      const uint64_t bits = scalar_to_bits(from, operand.storage(), operand.get(i / ratio));
      result.set(i,
                 scalar_from_bits(to, result.storage(), (bits >> ((i % ratio) * to_bits)) & mask));
    }
    return result;
  }
  const int64_t ratio = to_bits / from_bits;
  for (int64_t i = 0; i < result.count(); ++i) {
    uint64_t bits = 0;
    for (int64_t k = 0; k < ratio; ++k) {
      bits |= scalar_to_bits(from, operand.storage(), operand.get(i * ratio + k))
              << (k * from_bits);
    }
    result.set(i, scalar_from_bits(to, result.storage(), bits));
  }
  return result;
}

// One element repeated, or the whole stored array.
Tensor constant(Evaluator& e, const DenseAttr& value) {
  Tensor element = tensor_from_literal(value.values, e.wide());
  if (!value.is_splat()) return element;
  Tensor result = e.tensor(value.shape.element_type(), value.shape.dims());
  for (int64_t i = 0; i < result.count(); ++i) result.copy(i, element, 0);
  return result;
}

}  // namespace

namespace evaluate {

using Values = Evaluator::Values;

Values bitcast_convert(const EvalCall& c) {
  TENON_ASSIGN(Tensor result, hlo::bitcast_convert(c.e, c.op, *c.operands[0]));
  return one(std::move(result));
}
Values broadcast_in_dim(const EvalCall& c) {
  return one(hlo::broadcast_in_dim(c.e, c.op, *c.operands[0]));
}
Values concatenate(const EvalCall& c) { return one(hlo::concatenate(c.e, c.op, c.operands)); }
Values constant(const EvalCall& c) {
  return one(hlo::constant(c.e, *c.op.attr<DenseAttr>(AttrKey::value)));
}
Values dynamic_slice(const EvalCall& c) { return one(hlo::dynamic_slice(c.e, c.op, c.operands)); }
Values dynamic_update_slice(const EvalCall& c) {
  return one(hlo::dynamic_update_slice(c.op, c.operands));
}
Values iota(const EvalCall& c) { return one(hlo::iota(c.e, c.op)); }
Values pad(const EvalCall& c) { return one(hlo::pad(c.e, c.op, *c.operands[0], *c.operands[1])); }
Values reshape(const EvalCall& c) {
  return one(c.operands[0]->reshaped(c.op.result_type().dims()));
}
Values reverse(const EvalCall& c) { return one(hlo::reverse(c.e, c.op, *c.operands[0])); }
// Sizes are static here, so the op cannot change the size.
Values set_dimension_size(const EvalCall& c) { return std::vector<EvalValue>{c.operands[0]}; }
Values slice(const EvalCall& c) { return one(hlo::slice(c.e, c.op, *c.operands[0])); }
Values transpose(const EvalCall& c) { return one(hlo::transpose(c.e, c.op, *c.operands[0])); }

}  // namespace evaluate
}  // namespace tenon::hlo
