// The first elements of sorted rows.
#include "hlo/lower/library_calls.h"
#include "hlo/passes/idioms/idiom.h"

namespace tenon::hlo::idioms {
namespace {

// The number of elements that `slice` keeps of each row, if it keeps the first elements of all
// rows.
std::optional<int64_t> kept_elements(const Instruction& slice, size_t axis) {
  if (slice.code() != OpCode::kSlice) return {};
  const Dims& from = slice.operand_type(0).dims();
  const I64s& starts = slice.i64s(AttrKey::start_indices);
  const I64s& limits = slice.i64s(AttrKey::limit_indices);
  const I64s strides = slice.i64s_or(AttrKey::strides, from.size(), 1);
  for (size_t d = 0; d < from.size(); ++d) {
    const bool is_whole = limits[d] == from[d] || d == axis;
    if (starts[d] != 0 || strides[d] != 1 || !is_whole) return {};
  }
  return limits[axis];
}

// Whether the value contains the index of each element in its row.
bool counts(Value value, int64_t axis) {
  return value.def->code() == OpCode::kIota &&
         value.def->integer(AttrKey::iota_dimension) == axis &&
         is_integer(value.type().element_type());
}

}  // namespace

std::optional<Instance> top_k(Instruction& sort) {
  if (sort.operand_count() > 2) return {};
  const auto call = lower::library_call_of(sort);
  if (!call) return {};
  const auto& order = std::get<program::Sort>(*call);
  if (order.key != 0) return {};
  if (sort.operand_count() == 2 && !counts(sort.operand(1), order.dimension)) return {};
  Instance instance;
  std::optional<int64_t> k;
  for (uint32_t r = 0; r < sort.result_count(); ++r) {
    Instruction* user = nullptr;
    for (const Use& use : sort.uses()) {
      if (use.user->operand(use.operand) != sort.result(r)) continue;
      if (user != nullptr) return {};
      user = use.user;
    }
    if (user == nullptr && r == 1) continue;  // The indices are not used.
    if (user == nullptr || user->parent() != sort.parent()) return {};
    const auto kept = kept_elements(*user, static_cast<size_t>(order.dimension));
    if (!kept || (k && kept != k)) return {};
    k = kept;
    instance.results.push_back(user->result(0));
  }
  instance.operands = {sort.operand(0)};
  instance.attributes = {{"descending", Attribute(order.descending)},
                         {"dimension", Attribute(order.dimension)},
                         {"k", Attribute(*k)},
                         {"total_order", Attribute(order.total_order)}};
  instance.anchor = &sort;
  return instance;
}

}  // namespace tenon::hlo::idioms
