#include <algorithm>

#include "hlo/lower/foreign_calls.h"
#include "hlo/passes/normalize/layouts.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

// The orders of dimensions that a custom call states for its operands or results, if one of them is
// not row-major.
std::vector<I64s> stated_orders(const Instruction& op, AttrKey key) {
  const auto* layouts = op.attr<ArrayAttr>(key);
  if (layouts == nullptr) return {};
  std::vector<I64s> orders;
  bool any = false;
  for (const Attribute& layout : *layouts) {
    orders.push_back(*layout.get<I64s>());
    any = any || !std::ranges::is_sorted(orders.back(), std::greater());
  }
  return any ? orders : std::vector<I64s>();
}

// For each dimension of the array in memory, the slowest first, the dimension that the call sees.
I64s slowest_first(const I64s& minor_to_major) {
  return {minor_to_major.rbegin(), minor_to_major.rend()};
}

Attribute orders_attribute(const std::vector<I64s>& orders) {
  ArrayAttr list;
  for (const I64s& order : orders) list.emplace_back(order);
  return list;
}

Type in_memory(const Type& type, const I64s& minor_to_major) {
  if (!type.is_tensor()) return type;
  return Type::tensor(type.element_type(), in_order(type.dims(), slowest_first(minor_to_major)));
}

void lay_out_operands(Instruction& op, const std::vector<I64s>& orders) {
  Builder before(*op.parent(), &op);
  before.set_location(op.location());
  for (size_t i = 0; i < orders.size(); ++i) {
    op.set_operand(i, transposed(before, op.operand(i), slowest_first(orders[i])));
  }
  insert(op.mutable_discardable(), std::string(lower::kOperandLayouts), orders_attribute(orders));
}

void lay_out_results(Instruction& op, const std::vector<I64s>& orders) {
  Builder after(*op.parent(), op.next());
  after.set_location(op.location());
  for (uint32_t r = 0; r < orders.size(); ++r) {
    const I64s back = inverse_order(slowest_first(orders[r]));
    if (!op.result_type(r).is_tensor() || std::ranges::is_sorted(back)) continue;
    std::vector<Use> uses = op.uses();
    std::erase_if(uses, [&](const Use& use) { return use.user->operand(use.operand).index != r; });
    op.set_result_type(r, in_memory(op.result_type(r), orders[r]));
    const Value given = transposed(after, op.result(r), back);
    for (const Use& use : uses) use.user->set_operand(use.operand, given);
  }
  insert(op.mutable_discardable(), std::string(lower::kResultLayouts), orders_attribute(orders));
}

bool lay_out(Instruction& op) {
  const std::vector<I64s> operands = stated_orders(op, AttrKey::operand_layouts);
  const std::vector<I64s> results = stated_orders(op, AttrKey::result_layouts);
  if (operands.empty() && results.empty()) return false;
  // The elements of a tuple, which no call of a function has.
  if (!results.empty() && results.size() != op.result_count()) return false;
  if (!operands.empty() && operands.size() != op.operand_count()) return false;
  if (!operands.empty()) lay_out_operands(op, operands);
  if (!results.empty()) lay_out_results(op, results);
  op.mutable_attributes().erase(AttrKey::operand_layouts);
  op.mutable_attributes().erase(AttrKey::result_layouts);
  return true;
}

}  // namespace

Result<bool> lay_out_calls(Module& module) {
  return change_ops(
      module, [](Instruction& op) { return op.code() == OpCode::kCustomCall && lay_out(op); });
}

}  // namespace tenon::hlo
