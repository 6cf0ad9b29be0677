#include "conformance/generate/inputs.h"

#include <algorithm>

#include "hlo/evaluator/checks.h"
#include "hlo/ir/inline.h"
#include "hlo/passes/pass.h"

namespace tenon::conformance {
namespace {

using hlo::AttrKey;
using hlo::Instruction;
using hlo::OpCode;

bool is_check(const Instruction& op) {
  return op.code() == OpCode::kCustomCall &&
         std::ranges::count(hlo::Checks::targets(), op.text(AttrKey::call_target_name)) > 0;
}

// Whether operand `i` of `op` is a size, which must be known at compile time.
bool is_size(const Instruction& op, uint32_t i) {
  constexpr std::string_view kArrays[] = {"operand", "lhs", "rhs", "padding_value",
                                          "start_indices"};
  if (op.code() == OpCode::kRng) return i == 2;
  if (op.info().category != hlo::Category::kDynamic) return false;
  return std::ranges::find(kArrays, op.info().operands[i]) == std::end(kArrays);
}

bool is_input(const Instruction& op) {
  if (op.code() != OpCode::kConstant || !op.result_type().is_tensor()) return false;
  const std::vector<hlo::Use>& uses = op.uses();
  return std::ranges::none_of(
             uses, [](const hlo::Use& use) { return is_size(*use.user, use.operand); }) &&
         !std::ranges::all_of(uses, [](const hlo::Use& use) { return is_check(*use.user); });
}

}  // namespace

Result<WithInputs> inputs_as_arguments(const hlo::Module& module, std::string_view entry) {
  WithInputs made{module.clone(), {}};
  TENON_TRY(hlo::select_entry(*made.module, entry));
  TENON_TRY(hlo::inline_all_calls(*made.module));
  hlo::Computation* const body = made.module->entry();
  if (body == nullptr) return invalid_argument("there is no function to run");
  for (Instruction* op = body->first(); op != nullptr;) {
    Instruction* const next = op->next();
    if (is_input(*op)) {
      made.inputs.push_back(op->attr<hlo::DenseAttr>(AttrKey::value)->expanded());
      op->replace_uses(0, body->add_parameter(op->result_type(), op->location()));
      body->erase(op);
    }
    op = next;
  }
  if (!body->parameter_attributes().empty()) {
    body->parameter_attributes().resize(body->parameter_count());
  }
  return made;
}

}  // namespace tenon::conformance
