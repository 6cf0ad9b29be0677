#include "frameworks/pjrt/program/tokens.h"

#include <algorithm>

#include "hlo/builder/builder.h"

namespace tenon::pjrt {
namespace {

using hlo::Type;
using hlo::Value;

const Type& empty_array() {
  static const Type type = Type::tensor(ElementType::kPred, {0});
  return type;
}

void replace_parameter(hlo::Computation& entry, size_t i) {
  hlo::Instruction& parameter = entry.parameter_instruction(i);
  hlo::Builder builder(entry, entry.first());
  builder.set_location(parameter.location());
  const Value token = builder.make(hlo::OpCode::kAfterAll, {});
  parameter.replace_uses(0, token);
  parameter.set_result_type(0, empty_array());
}

void replace_results(hlo::Computation& entry) {
  hlo::Instruction& end = *entry.return_instruction();
  hlo::Builder builder(entry, &end);
  builder.set_location(end.location());
  std::vector<Type> types;
  for (size_t i = 0; i < end.operand_count(); ++i) {
    if (end.operand_type(i).is_token()) {
      end.set_operand(i, builder.constant(Literal(empty_array().shape())));
    }
    types.push_back(end.operand_type(i));
  }
  entry.set_declared_result_types(std::move(types));
}

}  // namespace

void replace_tokens(hlo::Module& module) {
  hlo::Computation* const entry = module.entry();
  if (entry == nullptr || entry->return_instruction() == nullptr) return;
  for (size_t i = 0; i < entry->parameter_count(); ++i) {
    if (entry->parameter(i).type().is_token()) replace_parameter(*entry, i);
  }
  const std::vector<Type> results = entry->result_types();
  if (std::ranges::any_of(results, &Type::is_token)) replace_results(*entry);
}

}  // namespace tenon::pjrt
