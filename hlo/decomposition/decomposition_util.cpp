#include "hlo/decomposition/decomposition_util.h"

#include <algorithm>
#include <numeric>

#include "hlo/inference/infer_util.h"

namespace tenon::hlo::decomposition {

Values finished(Builder& b, std::vector<Value> results) {
  if (!b.ok()) return Error(b.status());
  return results;
}

Status check_static(const Instruction& op) {
  for (const Type& type : op.result_types()) {
    if (type.is_tensor() && !type.shape().is_static()) {
      return failed_precondition("{}: the result shape {} is not known; refine the program first",
                                 op.name(), type.to_string())
          .at(position_of(op.location()));
    }
  }
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const Type& type = op.operand_type(i);
    if (type.is_tensor() && !type.shape().is_static()) {
      return failed_precondition(
                 "{}: the shape {} of operand {} is not known; refine the program first", op.name(),
                 type.to_string(), i)
          .at(position_of(op.location()));
    }
  }
  return {};
}

Value take(Builder& b, Value x, Value indices, int64_t axis) {
  if (!b.ok()) return {};
  const int64_t rank = x.type().rank();
  GatherDims dims;
  for (int64_t d = 0; d < rank; ++d) {
    if (d != axis) dims.offset_dims.push_back(d);
  }
  dims.collapsed_slice_dims = {axis};
  dims.start_index_map = {axis};
  dims.index_vector_dim = 1;
  I64s sizes = x.type().dims();
  sizes[at(axis)] = 1;
  return b.make(OpCode::kGather, {x, indices},
                {{AttrKey::dimension_numbers, dims}, {AttrKey::slice_sizes, sizes}});
}

Value exact_dot(Builder& b, Value lhs, Value rhs, DotDims dims) {
  const Attribute highest =
      EnumAttr{EnumKind::kPrecision, static_cast<uint8_t>(Precision::kHighest)};
  return b.make(OpCode::kDotGeneral, {lhs, rhs},
                {{AttrKey::dot_dimension_numbers, std::move(dims)},
                 {AttrKey::precision_config, ArrayAttr{highest, highest}}});
}

std::vector<Value> zero_starts(Builder& b, size_t count) {
  return std::vector<Value>(count, b.i64_constant(0));
}

I64s counting(int64_t count) {
  I64s list(at(count));
  std::iota(list.begin(), list.end(), 0);
  return list;
}

std::optional<I64s> constant_list(Value value) { return infer::constant_integers(value); }

}  // namespace tenon::hlo::decomposition
