// Ops that combine elements with a region: reduce, reduce_window, select_and_scatter, sort, map.
#include <algorithm>
#include <numeric>

#include "hlo/evaluator/ops/index.h"
#include "hlo/evaluator/ops/promotion.h"
#include "hlo/evaluator/ops/rules.h"
#include "hlo/ir/region.h"

namespace tenon::hlo {
namespace {

using Frame = EvalFrame;

// Inputs 0 … n-1 and initial values n … 2n-1, promoted to the types of the accumulators, which are
// the first half of the body's parameters.
struct ReductionState {
  std::vector<Promotion> input_promotions;
  /// To the second half, whose types may be others.
  std::vector<Promotion> element_conversions;
  std::vector<Scalar> inits;
  std::vector<Tensor> results;
  /// Sums of narrow floats are kept as doubles and rounded once, at the end.
  bool is_narrow_sum = false;

  Status combine(RegionFunction& body, Scalar* x) const {
    if (!is_narrow_sum) return body(x, x);
    x[0] = Scalar(x[0].d + x[1].d);
    return {};
  }
  void finish() {
    if (!is_narrow_sum) return;
    Tensor& sums = results[0];
    for (int64_t i = 0; i < sums.count(); ++i) {
      sums.set(i, Scalar(round_to(sums.type(), sums.get(i).d)));
    }
  }
};

ReductionState prepare(Evaluator& e, const Instruction& op, Operands operands) {
  ReductionState r;
  const size_t n = operands.size() / 2;
  for (size_t k = 0; k < n; ++k) {
    const ElementType body = op.region(0).parameter(k).type().element_type();
    r.input_promotions.push_back(promotion(e, operands[k]->type(), body));
    r.element_conversions.push_back(element_conversion(e, op.region(0), k));
    r.inits.push_back(promotion(e, operands[n + k]->type(), body)(operands[n + k]->get(0)));
    r.results.push_back(e.tensor(body, op.result_type(k).dims()));
  }
  r.is_narrow_sum = !e.wide() && is_narrow_sum(op.region(0));
  return r;
}

std::vector<EvalValue> as_values(std::vector<Tensor> tensors) {
  std::vector<EvalValue> values;
  for (Tensor& tensor : tensors) values.push_back(EvalValue::of(std::move(tensor)));
  return values;
}

// Each result element is init combined with its elements in row-major order.
Evaluator::Values reduce(Evaluator& e, const Instruction& op, Operands operands,
                         const Frame& frame) {
  const size_t n = operands.size() / 2;
  const I64s& dimensions = op.i64s(AttrKey::dimensions);
  ReductionState r = prepare(e, op, operands);
  for (size_t k = 0; k < n; ++k) {
    for (int64_t i = 0; i < r.results[k].count(); ++i) r.results[k].set(i, r.inits[k]);
  }
  const Dims result_strides = row_major_strides(r.results[0].dims());
  RegionFunction body(e, op.region(0), frame);
  std::vector<Scalar> x(2 * n);
  for (IndexSpace at(operands[0]->dims()); !at.done(); at.next()) {
    int64_t to = 0;
    size_t kept = 0;
    for (size_t d = 0; d < (*at).size(); ++d) {
      if (!contains(dimensions, static_cast<int64_t>(d))) to += at[d] * result_strides[kept++];
    }
    for (size_t k = 0; k < n; ++k) {
      x[k] = r.results[k].get(to);
      x[n + k] = r.element_conversions[k](r.input_promotions[k](operands[k]->get(at.linear())));
    }
    TENON_TRY(r.combine(body, x.data()));
    for (size_t k = 0; k < n; ++k) r.results[k].set(to, x[k]);
  }
  r.finish();
  return as_values(std::move(r.results));
}

// The input position of window position `w` at output position `o`, or -1 in padding or a gap.
int64_t window_source(int64_t o, int64_t w, int64_t stride, int64_t window_dilation,
                      int64_t base_dilation, int64_t low, int64_t size) {
  const int64_t place = o * stride + w * window_dilation - low;
  if (place < 0 || place % base_dilation != 0) return -1;
  const int64_t index = place / base_dilation;
  return index < size ? index : -1;
}

// Positions out of range contribute the initial value, as padding would.
Evaluator::Values reduce_window(Evaluator& e, const Instruction& op, Operands operands,
                                const Frame& frame) {
  const size_t n = operands.size() / 2;
  const Dims& dims = operands[0]->dims();
  const size_t rank = dims.size();
  const I64s& window = op.i64s(AttrKey::window_dimensions);
  const I64s strides = op.i64s_or(AttrKey::window_strides, rank, 1);
  const I64s base = op.i64s_or(AttrKey::base_dilations, rank, 1);
  const I64s dilations = op.i64s_or(AttrKey::window_dilations, rank, 1);
  const I64Matrix padding = op.padding_or_zero(rank);
  ReductionState r = prepare(e, op, operands);
  RegionFunction body(e, op.region(0), frame);
  const Dims input_strides = row_major_strides(dims);
  std::vector<Scalar> x(2 * n);
  for (IndexSpace out(r.results[0].dims()); !out.done(); out.next()) {
    for (size_t k = 0; k < n; ++k) x[k] = r.inits[k];
    for (IndexSpace in(window); !in.done(); in.next()) {
      int64_t from = 0;
      for (size_t d = 0; d < rank && from >= 0; ++d) {
        const int64_t index = window_source(out[d], in[d], strides[d], dilations[d], base[d],
                                            padding.at(static_cast<int64_t>(d), 0), dims[d]);
        from = index < 0 ? -1 : from + index * input_strides[d];
      }
      for (size_t k = 0; k < n; ++k) {
        x[n + k] = r.element_conversions[k](
            from < 0 ? r.inits[k] : r.input_promotions[k](operands[k]->get(from)));
      }
      TENON_TRY(r.combine(body, x.data()));
    }
    for (size_t k = 0; k < n; ++k) r.results[k].set(out.linear(), x[k]);
  }
  r.finish();
  return as_values(std::move(r.results));
}

// `select` is true to keep the element found first; `scatter` adds the source at the selected
// position.
Evaluator::Values select_and_scatter(Evaluator& e, const Instruction& op, Operands operands,
                                     const Frame& frame) {
  const Tensor& operand = *operands[0];
  const Tensor& source = *operands[1];
  const size_t rank = operand.dims().size();
  const I64s window = op.i64s_or(AttrKey::window_dimensions, rank, 1);
  const I64s strides = op.i64s_or(AttrKey::window_strides, rank, 1);
  const I64Matrix padding = op.padding_or_zero(rank);
  const ElementType body = op.region(1).parameter(0).type().element_type();
  const Promotion promote = promotion(e, source.type(), body);
  const Promotion convert = element_conversion(e, op.region(1), 0);
  Tensor result = e.tensor(body, operand.dims());
  const Scalar init = promotion(e, operands[2]->type(), body)(operands[2]->get(0));
  for (int64_t i = 0; i < result.count(); ++i) result.set(i, init);
  RegionFunction select(e, op.region(0), frame);
  RegionFunction scatter(e, op.region(1), frame);
  const Dims input_strides = row_major_strides(operand.dims());
  Scalar x[2];
  for (IndexSpace out(source.dims()); !out.done(); out.next()) {
    int64_t chosen = -1;
    for (IndexSpace in(window); !in.done(); in.next()) {
      int64_t from = 0;
      for (size_t d = 0; d < rank && from >= 0; ++d) {
        const int64_t index =
            window_source(out[d], in[d], strides[d], 1, 1, padding.at(static_cast<int64_t>(d), 0),
                          operand.dims()[d]);
        from = index < 0 ? -1 : from + index * input_strides[d];
      }
      if (from < 0) continue;
      if (chosen < 0) {
        chosen = from;
        continue;
      }
      x[0] = operand.get(chosen);
      x[1] = operand.get(from);
      TENON_TRY(select(x, x));
      if (x[0].i == 0) chosen = from;
    }
    if (chosen < 0) continue;
    x[0] = result.get(chosen);
    x[1] = convert(promote(source.get(out.linear())));
    TENON_TRY(scatter(x, x));
    result.set(chosen, x[0]);
  }
  return one(std::move(result));
}

// A merge sort of `order`: stable, and safe for a comparator that is not an order.
template <class Less>
Status merge_sort(std::vector<int64_t>& order, Less less) {
  std::vector<int64_t> merged(order.size());
  for (size_t width = 1; width < order.size(); width *= 2) {
    for (size_t start = 0; start < order.size(); start += 2 * width) {
      const size_t middle = std::min(start + width, order.size());
      const size_t end = std::min(start + 2 * width, order.size());
      size_t left = start;
      size_t right = middle;
      for (size_t to = start; to < end; ++to) {
        bool take_right = left == middle;
        if (left < middle && right < end) {
          TENON_ASSIGN(take_right, less(order[right], order[left]));
        }
        merged[to] = order[take_right ? right++ : left++];
      }
    }
    order.swap(merged);
  }
  return {};
}

// Comparator arguments are interleaved: left and right of input 0, of input 1, ….
Evaluator::Values sort(Evaluator& e, const Instruction& op, Operands operands, const Frame& frame) {
  const Dims& dims = operands[0]->dims();
  std::vector<Tensor> results;
  for (const EvalValue& operand : operands) results.push_back(*operand);
  if (dims.empty() || results[0].count() == 0) return as_values(std::move(results));
  int64_t axis = op.integer(AttrKey::dimension, -1);
  if (axis < 0) axis += static_cast<int64_t>(dims.size());
  const int64_t size = dims[static_cast<size_t>(axis)];
  const int64_t stride = row_major_strides(dims)[static_cast<size_t>(axis)];
  Dims rows = dims;
  rows[static_cast<size_t>(axis)] = 1;
  const Dims strides = row_major_strides(dims);
  RegionFunction comparator(e, op.region(0), frame);
  std::vector<Scalar> x(2 * operands.size());
  std::vector<int64_t> order(static_cast<size_t>(size));
  for (IndexSpace row(rows); !row.done(); row.next()) {
    const int64_t base = dot(*row, strides);
    std::iota(order.begin(), order.end(), 0);
    TENON_TRY(merge_sort(order, [&](int64_t left, int64_t right) -> Result<bool> {
      for (size_t k = 0; k < operands.size(); ++k) {
        x[2 * k] = operands[k]->get(base + left * stride);
        x[2 * k + 1] = operands[k]->get(base + right * stride);
      }
      TENON_TRY(comparator(x.data(), x.data()));
      return x[0].i != 0;
    }));
    for (size_t k = 0; k < operands.size(); ++k) {
      for (int64_t i = 0; i < size; ++i) {
        results[k].copy(base + i * stride, *operands[k],
                        base + order[static_cast<size_t>(i)] * stride);
      }
    }
  }
  return as_values(std::move(results));
}

Evaluator::Values map(Evaluator& e, const Instruction& op, Operands operands, const Frame& frame) {
  Tensor result = e.tensor(op.result_type().element_type(), op.result_type().dims());
  RegionFunction body(e, op.region(0), frame);
  std::vector<Scalar> x(std::max<size_t>(operands.size(), 1));
  for (int64_t i = 0; i < result.count(); ++i) {
    for (size_t k = 0; k < operands.size(); ++k) x[k] = operands[k]->get(i);
    TENON_TRY(body(x.data(), x.data()));
    result.set(i, x[0]);
  }
  return one(std::move(result));
}

}  // namespace

namespace evaluate {

using Values = Evaluator::Values;

Values map(const EvalCall& c) { return hlo::map(c.e, c.op, c.operands, c.frame); }
Values reduce(const EvalCall& c) { return hlo::reduce(c.e, c.op, c.operands, c.frame); }
Values reduce_window(const EvalCall& c) {
  return hlo::reduce_window(c.e, c.op, c.operands, c.frame);
}
Values select_and_scatter(const EvalCall& c) {
  return hlo::select_and_scatter(c.e, c.op, c.operands, c.frame);
}
Values sort(const EvalCall& c) { return hlo::sort(c.e, c.op, c.operands, c.frame); }

}  // namespace evaluate
}  // namespace tenon::hlo
