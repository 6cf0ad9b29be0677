// Gradients of pools: each element asks every window that contains it which element that selects.
// Along a dimension in which windows move neighbours ask differently, so that vectors and
// neighbouring threads diverge; along one that they do not, such as channels, all ask the same.
#include <algorithm>

#include "hlo/passes/normalize/layouts.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

constexpr int64_t kFullRow = 16;          // Vectors of f32 have up to so many elements.
constexpr int64_t kLeastRow = 8;          // Shorter rows fill no vector.
constexpr int64_t kLeastElements = 2048;  // Below, transposes cost more than they save.

// Whether windows move along dimension d.
bool moves(const Instruction& op, size_t d) {
  const auto rank = static_cast<size_t>(op.operand_type(0).rank());
  const I64Matrix padding = op.padding_or_zero(rank);
  return op.i64s_or(AttrKey::window_dimensions, rank, 1)[d] != 1 ||
         op.i64s_or(AttrKey::window_strides, rank, 1)[d] != 1 ||
         padding.at(static_cast<int64_t>(d), 0) != 0 || padding.at(static_cast<int64_t>(d), 1) != 0;
}

// A dimension along which windows do not move as the last one: the innermost that fills a vector,
// or else the longest. The others keep their order, and with it that of elements within a window.
// Empty if nothing is won.
I64s better_order(const Instruction& op) {
  const Dims& dims = op.operand_type(0).dims();
  if (dims.size() < 2 || element_count(dims) < kLeastElements || !moves(op, dims.size() - 1))
    return {};
  size_t best = dims.size();
  for (size_t d = 0; d < dims.size(); ++d) {
    if (moves(op, d) || dims[d] < kLeastRow) continue;
    if (best == dims.size() || dims[d] >= std::min(dims[best], kFullRow)) best = d;
  }
  if (best == dims.size()) return {};
  I64s order;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (d != best) order.push_back(static_cast<int64_t>(d));
  }
  order.push_back(static_cast<int64_t>(best));
  return order;
}

bool move_still_dimension_last(Instruction& op) {
  const Type& type = op.result_type();
  if (!type.is_tensor() || type.is_quantized() || !type.shape().is_static()) return false;
  const I64s order = better_order(op);
  if (order.empty()) return false;
  Builder before(*op.parent(), &op);
  before.set_location(op.location());
  for (const size_t i : {0, 1}) op.set_operand(i, transposed(before, op.operand(i), order));
  // Attributes that are absent are alike for all dimensions.
  for (const AttrKey key : {AttrKey::window_dimensions, AttrKey::window_strides}) {
    if (const auto* sizes = op.attr<I64s>(key))
      op.mutable_attributes().set(key, in_order(I64s(*sizes), order));
  }
  if (const auto* padding = op.attr<I64Matrix>(AttrKey::padding)) {
    op.mutable_attributes().set(AttrKey::padding, in_order(*padding, order));
  }
  const std::vector<Use> uses = op.uses();
  op.set_result_type(0, op.operand_type(0));
  Builder after(*op.parent(), op.next());
  after.set_location(op.location());
  const Value result = transposed(after, op.result(0), inverse_order(order));
  for (const Use& use : uses) use.user->set_operand(use.operand, result);
  return true;
}

}  // namespace

Result<bool> lay_out_windows(Module& module) {
  return change_ops(module, [](Instruction& op) {
    return op.code() == OpCode::kSelectAndScatter && move_still_dimension_last(op);
  });
}

}  // namespace tenon::hlo
