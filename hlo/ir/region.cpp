#include "hlo/ir/region.h"

#include <algorithm>

namespace tenon::hlo {

const Instruction* op_of_two_parameters(const Computation& region) {
  const Instruction* inner = region.first();
  const Instruction* end = region.return_instruction();
  if (region.parameter_count() != 2 || inner == end || inner->next() != end) return nullptr;
  const Value first = region.parameter(0);
  const Value second = region.parameter(1);
  const bool of_both =
      inner->operand_count() == 2 && ((inner->operand(0) == first && inner->operand(1) == second) ||
                                      (inner->operand(0) == second && inner->operand(1) == first));
  return of_both && end->operand(0).def == inner ? inner : nullptr;
}

bool combines_accumulators(const Computation& region) {
  const std::vector<Type> types = region.parameter_types();
  const auto elements = types.begin() + static_cast<std::ptrdiff_t>(types.size() / 2);
  return std::equal(types.begin(), elements, elements, types.end());
}

bool is_narrow_sum(const Computation& region) {
  const Instruction* op = op_of_two_parameters(region);
  if (op == nullptr || op->code() != OpCode::kAdd || !op->result_type().is_tensor()) return false;
  const Type& type = op->result_type();
  return !type.is_quantized() && is_float(type.element_type()) &&
         bit_width(type.element_type()) < 32;
}

}  // namespace tenon::hlo
