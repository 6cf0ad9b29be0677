#include "hlo/lower/elements/prefix_windows.h"

#include <algorithm>
#include <complex>

#include "hlo/ir/region.h"

namespace tenon::hlo::lower {

using program::Combiner;

std::optional<Combiner> combiner_of(const Computation& region) {
  const Instruction* op = op_of_two_parameters(region);
  if (op == nullptr) return {};
  switch (op->code()) {
    case OpCode::kAdd:
      return Combiner::kAdd;
    case OpCode::kMultiply:
      return Combiner::kMultiply;
    case OpCode::kMinimum:
      return Combiner::kMinimum;
    case OpCode::kMaximum:
      return Combiner::kMaximum;
    case OpCode::kAnd:
      return Combiner::kAnd;
    case OpCode::kOr:
      return Combiner::kOr;
    case OpCode::kXor:
      return Combiner::kXor;
    default:
      return {};
  }
}

namespace {

// The value of an init operand, if it is a constant.
const DenseAttr* init_constant(const Instruction& op, size_t operand) {
  const Instruction& def = *op.operand(operand).def;
  return def.code() == OpCode::kConstant ? def.attr<DenseAttr>(AttrKey::value) : nullptr;
}

bool is_idempotent(Combiner combiner) {
  return combiner == Combiner::kMinimum || combiner == Combiner::kMaximum ||
         combiner == Combiner::kAnd || combiner == Combiner::kOr;
}

// Padding is combined as often as there is of it, which shows unless it changes nothing.
bool padding_changes_nothing(const Instruction& op) {
  const size_t count = op.operand_count() / 2;
  const std::optional<Combiner> combiner = combiner_of(op.region(0));
  const bool is_named = count == 1 && combiner.has_value();
  if (is_named && is_idempotent(*combiner)) return true;
  for (size_t k = count; k < 2 * count; ++k) {
    const DenseAttr* const init = init_constant(op, k);
    if (init == nullptr) return false;
    if (!is_named) continue;
    const std::complex<double> identity = *combiner == Combiner::kMultiply ? 1 : 0;
    if (init->values.get_complex(0) != identity) return false;
  }
  return true;
}

}  // namespace

std::optional<PrefixWindows> prefix_windows(const Instruction& op) {
  if (op.code() != OpCode::kReduceWindow || !combines_accumulators(op.region(0))) return {};
  const Dims& dims = op.operand_type(0).dims();
  const size_t rank = dims.size();
  const I64s& window = op.i64s(AttrKey::window_dimensions);
  const I64s ones(rank, 1);
  const bool is_plain = op.i64s_or(AttrKey::window_strides, rank, 1) == ones &&
                        op.i64s_or(AttrKey::base_dilations, rank, 1) == ones &&
                        op.i64s_or(AttrKey::window_dilations, rank, 1) == ones;
  const auto wide = std::ranges::find_if(window, [](int64_t size) { return size != 1; });
  if (!is_plain || wide == window.end() ||
      std::ranges::count(window, 1) + 1 != static_cast<int64_t>(window.size())) {
    return {};
  }
  const int64_t dimension = wide - window.begin();
  const int64_t size = dims[static_cast<size_t>(dimension)];
  const I64Matrix padding = op.padding_or_zero(rank);
  for (int64_t d = 0; d < static_cast<int64_t>(rank); ++d) {
    if (d != dimension && (padding.at(d, 0) != 0 || padding.at(d, 1) != 0)) return {};
  }
  const bool forward = padding.at(dimension, 0) == size - 1 && padding.at(dimension, 1) == 0;
  const bool backward = padding.at(dimension, 0) == 0 && padding.at(dimension, 1) == size - 1;
  if (*wide != size || (!forward && !backward) || !padding_changes_nothing(op)) return {};
  return PrefixWindows{dimension, backward};
}

}  // namespace tenon::hlo::lower
