// gather and scatter, in the notation of the specification.
#include <algorithm>

#include "hlo/evaluator/ops/index.h"
#include "hlo/evaluator/ops/promotion.h"
#include "hlo/evaluator/ops/rules.h"

namespace tenon::hlo {
namespace {

// The start index vector at batch position `batch` of the index tensor: component i.
class IndexVectors {
 public:
  IndexVectors(const Tensor& indices, int64_t vector_dim)
      : indices_(indices), vector_dim_(vector_dim), strides_(row_major_strides(indices.dims())) {}

  int64_t component(const Dims& batch, int64_t i) const {
    int64_t at = 0;
    size_t next = 0;
    for (int64_t d = 0; d < indices_.rank(); ++d) {
      at += (d == vector_dim_ ? i : batch[next++]) * strides_[static_cast<size_t>(d)];
    }
    const int64_t value = indices_.integer(at);
    // An unsigned index above the signed range is always out of range.
    if (indices_.type() == ElementType::kU64 && value < 0)
      return std::numeric_limits<int64_t>::max();
    return value;
  }

 private:
  const Tensor& indices_;
  int64_t vector_dim_;
  Dims strides_;
};

// The coordinate of `batch` (a position in the index tensor without its vector dimension) along
// dimension `d` of the index tensor.
int64_t batch_coordinate(const Dims& batch, int64_t d, int64_t vector_dim) {
  return batch[static_cast<size_t>(d > vector_dim ? d - 1 : d)];
}

Evaluator::Values gather(Evaluator& e, const Instruction& op, Operands operands) {
  const Tensor& operand = *operands[0];
  const auto& dims = *op.attr<GatherDims>(AttrKey::dimension_numbers);
  const I64s& sizes = op.i64s(AttrKey::slice_sizes);
  Tensor result = e.tensor(operand.type(), op.result_type().dims());
  const Dims batch_dims = complement(result.rank(), dims.offset_dims);
  Dims not_offset = dims.collapsed_slice_dims;
  not_offset.insert(not_offset.end(), dims.operand_batching_dims.begin(),
                    dims.operand_batching_dims.end());
  const Dims offset_operand_dims = complement(operand.rank(), not_offset);
  const IndexVectors starts(*operands[1], dims.index_vector_dim);
  const Dims strides = row_major_strides(operand.dims());
  Dims batch(batch_dims.size());
  for (IndexSpace at(result.dims()); !at.done(); at.next()) {
    for (size_t i = 0; i < batch.size(); ++i) batch[i] = at[static_cast<size_t>(batch_dims[i])];
    Dims index(operand.dims().size(), 0);
    for (size_t i = 0; i < dims.start_index_map.size(); ++i) {
      const auto d = static_cast<size_t>(dims.start_index_map[i]);
      index[d] = std::clamp<int64_t>(starts.component(batch, static_cast<int64_t>(i)), 0,
                                     operand.dims()[d] - sizes[d]);
    }
    for (size_t i = 0; i < dims.operand_batching_dims.size(); ++i) {
      index[static_cast<size_t>(dims.operand_batching_dims[i])] =
          batch_coordinate(batch, dims.start_indices_batching_dims[i], dims.index_vector_dim);
    }
    for (size_t i = 0; i < offset_operand_dims.size(); ++i) {
      index[static_cast<size_t>(offset_operand_dims[i])] +=
          at[static_cast<size_t>(dims.offset_dims[i])];
    }
    result.copy(at.linear(), operand, dot(index, strides));
  }
  return one(std::move(result));
}

struct ScatterPlan {
  const ScatterDims& dims;
  Dims update_batch_dims;  // of the updates
  Dims window_input_dims;  // of the inputs
};

ScatterPlan plan_scatter(const ScatterDims& dims, const Tensor& input, const Tensor& update) {
  ScatterPlan plan{dims, complement(update.rank(), dims.update_window_dims), {}};
  Dims not_window = dims.inserted_window_dims;
  not_window.insert(not_window.end(), dims.input_batching_dims.begin(),
                    dims.input_batching_dims.end());
  plan.window_input_dims = complement(input.rank(), not_window);
  return plan;
}

// Out of bounds for any array, but far from overflow.
constexpr int64_t kFar = int64_t{1} << 62;

// The start of the window at batch position `batch`.
void window_start(const ScatterPlan& plan, const IndexVectors& starts, const Dims& batch,
                  Dims& start) {
  const ScatterDims& dims = plan.dims;
  std::fill(start.begin(), start.end(), 0);
  for (size_t i = 0; i < dims.scatter_dims_to_operand_dims.size(); ++i) {
    start[static_cast<size_t>(dims.scatter_dims_to_operand_dims[i])] =
        std::clamp(starts.component(batch, static_cast<int64_t>(i)), -kFar, kFar);
  }
  for (size_t i = 0; i < dims.input_batching_dims.size(); ++i) {
    start[static_cast<size_t>(dims.input_batching_dims[i])] =
        batch_coordinate(batch, dims.scatter_indices_batching_dims[i], dims.index_vector_dim);
  }
}

bool in_bounds(const Dims& index, const Dims& dims) {
  for (size_t d = 0; d < dims.size(); ++d) {
    if (index[d] < 0 || index[d] >= dims[d]) return false;
  }
  return true;
}

Tensor promoted(Evaluator& e, const Tensor& from, ElementType type) {
  if (from.type() == type) return from;
  const Promotion promote = promotion(e, from.type(), type);
  Tensor result = e.tensor(type, from.dims());
  for (int64_t i = 0; i < from.count(); ++i) result.set(i, promote(from.get(i)));
  return result;
}

Evaluator::Values scatter(Evaluator& e, const Instruction& op, Operands operands,
                          const EvalFrame& frame) {
  const size_t n = (operands.size() - 1) / 2;
  const auto& dims = *op.attr<ScatterDims>(AttrKey::scatter_dimension_numbers);
  const Tensor& indices = *operands[n];
  const Tensor& first_update = *operands[n + 1];
  const ScatterPlan plan = plan_scatter(dims, *operands[0], first_update);
  std::vector<Tensor> results;
  std::vector<Promotion> promote_updates;
  std::vector<Promotion> conversions;
  for (size_t k = 0; k < n; ++k) {
    const ElementType type = op.result_type(k).element_type();
    promote_updates.push_back(promotion(e, operands[n + 1 + k]->type(), type));
    conversions.push_back(element_conversion(e, op.region(0), k));
    results.push_back(promoted(e, *operands[k], type));
  }
  const IndexVectors starts(indices, dims.index_vector_dim);
  const Dims& input_dims = operands[0]->dims();
  const Dims strides = row_major_strides(input_dims);
  RegionFunction update(e, op.region(0), frame);
  std::vector<Scalar> x(2 * n);
  Dims batch(plan.update_batch_dims.size());
  Dims index(input_dims.size());
  // A window is within bounds if it starts before these.
  const bool whole_windows = op.flag(AttrKey::whole_windows);
  Dims last_starts = input_dims;
  for (size_t i = 0; i < plan.window_input_dims.size(); ++i) {
    last_starts[static_cast<size_t>(plan.window_input_dims[i])] -=
        first_update.dims()[static_cast<size_t>(dims.update_window_dims[i])] - 1;
  }
  // Colliding updates are applied in row-major order, each to the result of the previous one.
  for (IndexSpace at(first_update.dims()); !at.done(); at.next()) {
    for (size_t i = 0; i < batch.size(); ++i) {
      batch[i] = at[static_cast<size_t>(plan.update_batch_dims[i])];
    }
    window_start(plan, starts, batch, index);
    if (whole_windows && !in_bounds(index, last_starts)) continue;
    for (size_t i = 0; i < plan.window_input_dims.size(); ++i) {
      index[static_cast<size_t>(plan.window_input_dims[i])] +=
          at[static_cast<size_t>(dims.update_window_dims[i])];
    }
    // If a window is partly out of bounds, its elements inside are updated.
    if (!in_bounds(index, input_dims)) continue;
    const int64_t to = dot(index, strides);
    for (size_t k = 0; k < n; ++k) {
      x[k] = results[k].get(to);
      x[n + k] = conversions[k](promote_updates[k](operands[n + 1 + k]->get(at.linear())));
    }
    TENON_TRY(update(x.data(), x.data()));
    for (size_t k = 0; k < n; ++k) results[k].set(to, x[k]);
  }
  std::vector<EvalValue> values;
  for (Tensor& result : results) values.push_back(EvalValue::of(std::move(result)));
  return values;
}

}  // namespace

namespace evaluate {

using Values = Evaluator::Values;

Values gather(const EvalCall& c) { return hlo::gather(c.e, c.op, c.operands); }
Values scatter(const EvalCall& c) { return hlo::scatter(c.e, c.op, c.operands, c.frame); }

}  // namespace evaluate
}  // namespace tenon::hlo
