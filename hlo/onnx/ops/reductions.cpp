// Reductions, positions of extremes, cumulative sums, the first elements of sorted rows.
#include "hlo/onnx/lowering.h"

namespace tenon::hlo {
namespace {

using Lr = OnnxLowering;

enum OnnxReduction : int64_t {
  kReduceSum,
  kReduceMean,
  kReduceMax,
  kReduceMin,
  kReduceProd,
  kReduceL1,
  kReduceL2,
  kReduceLogSum,
  kReduceLogSumExp,
  kReduceSumSquare,
};

Value reduce_with(Lr& n, Value x, const I64s& axes, bool keep) {
  switch (n.row().parameter) {
    case kReduceMean:
      return n.mean(x, axes, keep);
    case kReduceMax:
      return n.reduce(OpCode::kMaximum, x, axes, keep);
    case kReduceMin:
      return n.reduce(OpCode::kMinimum, x, axes, keep);
    case kReduceProd:
      return n.reduce(OpCode::kMultiply, x, axes, keep);
    case kReduceL1:
      return n.sum(n.abs(x), axes, keep);
    case kReduceL2: {
      if (is_float(n.type_of(x))) return n.sqrt(n.sum(n.mul(x, x), axes, keep));
      const Value wide = n.convert(x, ElementType::kF32);
      return n.convert(n.sqrt(n.sum(n.mul(wide, wide), axes, keep)), n.type_of(x));
    }
    case kReduceLogSum:
      return n.log(n.sum(x, axes, keep));
    case kReduceSumSquare:
      return n.sum(n.mul(x, x), axes, keep);
    case kReduceLogSumExp: {
      const Value most = n.reduce(OpCode::kMaximum, x, axes, true);
      const Value base = n.select(n.unary(OpCode::kIsFinite, most), most, n.like(most, 0));
      const Value sum = n.add(n.log(n.sum(n.exp(n.sub(x, base)), axes, true)), base);
      return keep ? sum : n.squeeze(sum, axes);
    }
    default:
      return n.sum(x, axes, keep);
  }
}

Values lower_reduce(Lr& n) {
  const Value x = n.in(0);
  I64s axes = n.input_or_attribute(1, "axes").value_or(I64s{});
  if (axes.empty() && !n.flag("noop_with_empty_axes")) axes = all_axes(n.rank_of(x));
  return {reduce_with(n, x, normal_axes(std::move(axes), n.rank_of(x)), n.flag("keepdims", true))};
}

Values lower_arg(Lr& n) {
  const Value x = n.in(0);
  const int64_t axis = normal_axis(n.integer("axis", 0), n.rank_of(x));
  const Value found = n.arg_extreme(x, axis, n.row().parameter == 1, n.flag("select_last_index"));
  return {n.flag("keepdims", true) ? found : n.squeeze(found, {axis})};
}

Values lower_cumulative(Lr& n) {
  const Value x = n.in(0);
  const I64s axis = n.known_i64s(1);
  if (axis.size() != 1) bad_onnx("axis is not one number");
  return {n.cumulative(n.row().code(), x, normal_axis(axis[0], n.rank_of(x)), n.flag("exclusive"),
                       n.flag("reverse"))};
}

Values lower_top_k(Lr& n) {
  const Value x = n.in(0);
  const int64_t axis = normal_axis(n.integer("axis", -1), n.rank_of(x));
  const I64s k = n.row().since < 10 ? I64s{n.integer("k", 0)} : n.known_i64s(1);
  if (k.size() != 1 || k[0] < 0 || k[0] > n.dims_of(x)[static_cast<size_t>(axis)])
    bad_onnx("k is out of range");
  const auto [sorted, positions] = n.sort(x, axis, n.flag("largest", true));
  const Value places = n.slice_of(positions, axis, 0, k[0]);
  // Floats are ordered with one NaN and one zero; the results are the elements as they are.
  return {
      is_float(n.type_of(x)) ? n.take_along(x, places, axis) : n.slice_of(sorted, axis, 0, k[0]),
      places};
}

constexpr OnnxRow kReductionRows[] = {
    {"ArgMax", 1, lower_arg, 1},
    {"ArgMin", 1, lower_arg, 0},
    {"CumProd", 26, lower_cumulative, static_cast<int64_t>(OpCode::kMultiply)},
    {"CumSum", 11, lower_cumulative, static_cast<int64_t>(OpCode::kAdd)},
    {"ReduceL1", 1, lower_reduce, kReduceL1},
    {"ReduceL2", 1, lower_reduce, kReduceL2},
    {"ReduceLogSum", 1, lower_reduce, kReduceLogSum},
    {"ReduceLogSumExp", 1, lower_reduce, kReduceLogSumExp},
    {"ReduceMax", 1, lower_reduce, kReduceMax},
    {"ReduceMean", 1, lower_reduce, kReduceMean},
    {"ReduceMin", 1, lower_reduce, kReduceMin},
    {"ReduceProd", 1, lower_reduce, kReduceProd},
    {"ReduceSum", 1, lower_reduce, kReduceSum},
    {"ReduceSumSquare", 1, lower_reduce, kReduceSumSquare},
    {"TopK", 1, lower_top_k},
    {"TopK", 10, lower_top_k},
};

}  // namespace

std::span<const OnnxRow> onnx_reduction_rows() { return kReductionRows; }

}  // namespace tenon::hlo
