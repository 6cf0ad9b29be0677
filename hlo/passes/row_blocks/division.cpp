#include "hlo/passes/row_blocks/division.h"

#include <algorithm>

#include "hlo/lower/elements/emitter.h"
#include "hlo/lower/elements/prefix_windows.h"

namespace tenon::hlo {
namespace {

using Divisions = std::vector<RowDivision>;

const Dims& dims_of(const Instruction& op) { return op.result_type().dims(); }
int64_t rank_of(const Instruction& op) { return static_cast<int64_t>(dims_of(op).size()); }
int64_t index_of(const I64s& dims, int64_t dimension) {
  const auto at = std::ranges::find(dims, dimension);
  return at == dims.end() ? RowDivision::kNone : at - dims.begin();
}

// Each element from those at the same index; scalars are the same for all of them.
Divisions of_elementwise(const Instruction& op) {
  Divisions found;
  for (int64_t d = 0; d < rank_of(op); ++d) {
    RowDivision& each = found.emplace_back(RowDivision{d, {}});
    for (const Value operand : op.operands()) {
      each.operands.push_back(operand.type().dims().empty() ? RowDivision::kNone : d);
    }
  }
  return found;
}

Divisions of_broadcast(const Instruction& op) {
  const I64s& to = op.i64s(AttrKey::broadcast_dimensions);
  const Dims& before = op.operand_type(0).dims();
  Divisions found;
  for (int64_t d = 0; d < rank_of(op); ++d) {
    int64_t from = index_of(to, d);
    const auto size = dims_of(op)[static_cast<size_t>(d)];
    if (from != RowDivision::kNone && before[static_cast<size_t>(from)] != size)
      from = RowDivision::kNone;
    found.push_back({d, {from}});
  }
  return found;
}

// Dimensions with as many elements before them as one of the operand has, and of its size.
Divisions of_reshape(const Instruction& op) {
  const Dims& before = op.operand_type(0).dims();
  Divisions found;
  int64_t outer = 1;
  for (int64_t d = 0; d < rank_of(op); ++d) {
    const int64_t size = dims_of(op)[static_cast<size_t>(d)];
    int64_t outer_before = 1;
    for (size_t i = 0; i < before.size() && outer_before <= outer; ++i) {
      if (size > 1 && outer_before == outer && before[i] == size) {
        found.push_back({d, {static_cast<int64_t>(i)}});
        break;
      }
      outer_before *= before[i];
    }
    outer *= size;
  }
  return found;
}

Divisions of_transpose(const Instruction& op) {
  const I64s& from = op.i64s(AttrKey::permutation);
  Divisions found;
  for (size_t d = 0; d < from.size(); ++d) found.push_back({static_cast<int64_t>(d), {from[d]}});
  return found;
}

bool is_zero(const Instruction& op) {
  if (op.code() != OpCode::kConstant) return false;
  const Literal& values = op.attr<DenseAttr>(AttrKey::value)->values;
  return values.shape().is_scalar() && is_float(values.element_type()) && values.get_double(0) == 0;
}

// The op that combines the results of a reduction's blocks, each of which begins with the init
// value.
std::optional<OpCode> combiner_of_blocks(const Instruction& reduce) {
  const auto combiner = lower::combiner_of(reduce.region(0));
  if (combiner == program::Combiner::kMaximum) return OpCode::kMaximum;
  if (combiner == program::Combiner::kMinimum) return OpCode::kMinimum;
  if (combiner == program::Combiner::kAdd && is_zero(*reduce.operand(1).def)) return OpCode::kAdd;
  return {};
}

Divisions of_reduce(const Instruction& op) {
  const I64s& reduced = op.i64s(AttrKey::dimensions);
  const auto combiner = op.result_count() == 1 ? combiner_of_blocks(op) : std::nullopt;
  // Operands are arrays, then init values.
  const auto by = [&](int64_t d) {
    std::vector<int64_t> operands(op.operand_count(), RowDivision::kNone);
    std::fill_n(operands.begin(), op.result_count(), d);
    return operands;
  };
  Divisions found;
  int64_t result = 0;
  for (int64_t d = 0; d < static_cast<int64_t>(op.operand_type(0).dims().size()); ++d) {
    const bool is_kept = index_of(reduced, d) == RowDivision::kNone;
    if (is_kept) {
      found.push_back({result++, by(d)});
    } else if (combiner) {
      found.push_back({RowDivision::kNone, by(d), *combiner});
    }
  }
  return found;
}

Divisions of_dot(const Instruction& op) {
  const auto& dims = *op.attr<DotDims>(AttrKey::dot_dimension_numbers);
  const auto rank = [&](size_t i) {
    return static_cast<int64_t>(op.operand_type(i).dims().size());
  };
  Divisions found;
  int64_t result = 0;
  for (size_t i = 0; i < dims.lhs_batching.size(); ++i) {
    found.push_back({result++, {dims.lhs_batching[i], dims.rhs_batching[i]}});
  }
  const auto is_free = [](int64_t d, const I64s& batching, const I64s& contracting) {
    return index_of(batching, d) == RowDivision::kNone &&
           index_of(contracting, d) == RowDivision::kNone;
  };
  for (int64_t d = 0; d < rank(0); ++d) {
    if (is_free(d, dims.lhs_batching, dims.lhs_contracting))
      found.push_back({result++, {d, RowDivision::kNone}});
  }
  for (int64_t d = 0; d < rank(1); ++d) {
    if (is_free(d, dims.rhs_batching, dims.rhs_contracting))
      found.push_back({result++, {RowDivision::kNone, d}});
  }
  if (!is_float(op.result_type().element_type())) return found;
  for (size_t i = 0; i < dims.lhs_contracting.size(); ++i) {
    found.push_back({RowDivision::kNone, {dims.lhs_contracting[i], dims.rhs_contracting[i]}});
  }
  return found;
}

// Along every other dimension than `own`.
Divisions beside(const Instruction& op, int64_t own) {
  Divisions found;
  for (int64_t d = 0; d < rank_of(op); ++d) {
    if (d != own) {
      found.push_back({d, std::vector<int64_t>(op.operand_count(), d)});
    }
  }
  return found;
}

// Dimensions that are read from end to end.
Divisions of_slice(const Instruction& op) {
  Divisions found;
  for (int64_t d = 0; d < rank_of(op); ++d) {
    const auto i = static_cast<size_t>(d);
    if (op.operand_type(0).dims()[i] == dims_of(op)[i] && op.i64s(AttrKey::strides)[i] == 1)
      found.push_back({d, {d}});
  }
  return found;
}

// The dimensions of the result, or of the updates, that go along those of the indices: without the
// vectors' and those of the window.
std::vector<int64_t> along_indices(int64_t rank, const I64s& window) {
  std::vector<int64_t> found;
  for (int64_t d = 0; d < rank; ++d) {
    if (index_of(window, d) == RowDivision::kNone) found.push_back(d);
  }
  return found;
}

int64_t before_vectors(int64_t dimension, int64_t vectors) {
  return dimension > vectors ? dimension - 1 : dimension;
}

// Each row of the operand with its own indices.
Divisions of_gather(const Instruction& op) {
  const auto& dims = *op.attr<GatherDims>(AttrKey::dimension_numbers);
  const std::vector<int64_t> places = along_indices(rank_of(op), dims.offset_dims);
  Divisions found;
  for (size_t i = 0; i < dims.operand_batching_dims.size(); ++i) {
    const int64_t of_indices = dims.start_indices_batching_dims[i];
    const auto place = static_cast<size_t>(before_vectors(of_indices, dims.index_vector_dim));
    found.push_back({places[place], {dims.operand_batching_dims[i], of_indices}});
  }
  return found;
}

Divisions of_scatter(const Instruction& op) {
  if (op.operand_count() != 3) return {};
  const auto& dims = *op.attr<ScatterDims>(AttrKey::scatter_dimension_numbers);
  const auto rank = static_cast<int64_t>(op.operand_type(2).dims().size());
  const std::vector<int64_t> places = along_indices(rank, dims.update_window_dims);
  Divisions found;
  for (size_t i = 0; i < dims.input_batching_dims.size(); ++i) {
    const int64_t of_indices = dims.scatter_indices_batching_dims[i];
    const auto place = static_cast<size_t>(before_vectors(of_indices, dims.index_vector_dim));
    const int64_t of_operand = dims.input_batching_dims[i];
    found.push_back({of_operand, {of_operand, of_indices, places[place]}});
  }
  return found;
}

}  // namespace

std::vector<RowDivision> divisions_of(const Instruction& op) {
  const auto is_static = [](const Type& type) {
    return type.is_tensor() && type.shape().is_static() && !type.is_quantized();
  };
  for (const Value operand : op.operands()) {
    if (!is_static(operand.type())) return {};
  }
  if (op.result_count() == 0 || !std::ranges::all_of(op.result_types(), is_static)) return {};
  // Values that a region captures are not divided.
  if (op.region_count() > 0 && !captured_values(op).empty()) return {};
  switch (op.code()) {
    case OpCode::kBroadcastInDim:
      return of_broadcast(op);
    case OpCode::kReshape:
      return of_reshape(op);
    case OpCode::kTranspose:
      return of_transpose(op);
    case OpCode::kReduce:
      return of_reduce(op);
    case OpCode::kDotGeneral:
      return of_dot(op);
    case OpCode::kConcatenate:
    case OpCode::kSort:
      return beside(op, op.integer(AttrKey::dimension));
    case OpCode::kSlice:
      return of_slice(op);
    case OpCode::kGather:
      return of_gather(op);
    case OpCode::kScatter:
      return of_scatter(op);
    case OpCode::kIota:
      return of_elementwise(op);
    default:
      break;
  }
  if (op.result_count() != 1) return {};
  const bool is_plain = op.info().fusion == FusionKind::kElementwise && op.region_count() == 0 &&
                        lower::is_elemental(op);
  const bool has_same_dims = std::ranges::all_of(op.operands(), [&](Value operand) {
    return operand.type().dims().empty() || operand.type().dims() == dims_of(op);
  });
  return is_plain && has_same_dims ? of_elementwise(op) : Divisions();
}

std::optional<RowDivision> division_by_result(const Instruction& op, int64_t dimension) {
  for (RowDivision& each : divisions_of(op)) {
    if (each.result == dimension) return std::move(each);
  }
  return {};
}

Value splat_block(Builder& b, const Instruction& splat, int64_t dimension, int64_t count) {
  const DenseAttr& value = *splat.attr<DenseAttr>(AttrKey::value);
  Dims dims = value.shape.dims();
  dims[static_cast<size_t>(dimension)] = count;
  return b.constant(DenseAttr::splat(Shape(value.shape.element_type(), dims), value.values));
}

std::vector<Value> block_of(Builder& b, const Instruction& op, const RowDivision& division,
                            const std::vector<Value>& operands, const RowBlock& rows) {
  if (!b.ok()) return {};
  Cloner cloner;
  for (size_t i = 0; i < operands.size(); ++i) cloner.map(op.operand(i), operands[i]);
  std::unique_ptr<Instruction> copy = cloner.clone(op);
  // One value as two operands, divided in two ways.
  copy->set_operands(operands);
  const auto d = static_cast<size_t>(division.result);
  if (!division.is_combined()) {
    for (size_t r = 0; r < op.result_count(); ++r) {
      Dims dims = op.result_type(r).dims();
      dims[d] = rows.count;
      copy->set_result_type(r, op.result_type(r).with_dims(dims));
    }
    if (op.code() == OpCode::kSlice) {
      I64s limits = op.i64s(AttrKey::limit_indices);
      limits[d] = rows.count;
      copy->mutable_attributes().set(AttrKey::limit_indices, limits);
    }
  }
  if (division.is_combined() && op.code() == OpCode::kDotGeneral) {
    copy->set_result_type(0, Type::tensor(sum_type(op, division), dims_of(op)));
  }
  Instruction* const block = b.create(std::move(copy));
  if (block == nullptr) return {};
  if (op.code() != OpCode::kIota || op.integer(AttrKey::iota_dimension) != division.result)
    return block->results();
  const Value first = b.convert(rows.first, op.result_type().element_type());
  return {b.add(block->result(), b.broadcast_scalar(first, block->result_type().dims()))};
}

Value neutral_of(Builder& b, const Instruction& op, const RowDivision& division,
                 const std::vector<Value>& operands) {
  const Dims& dims = dims_of(op);
  if (division.combiner != OpCode::kAdd) return b.broadcast_scalar(operands[1], dims);
  return b.splat(Shape(sum_type(op, division), dims), 0);
}

ElementType sum_type(const Instruction& op, const RowDivision& division) {
  const ElementType type = op.result_type().element_type();
  const bool is_narrow = is_float(type) && storage_bytes(type) < storage_bytes(ElementType::kF32);
  return is_narrow && division.combiner == OpCode::kAdd ? ElementType::kF32 : type;
}

}  // namespace tenon::hlo
