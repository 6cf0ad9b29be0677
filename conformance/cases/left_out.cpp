// Ops of the table that no case covers, each with the reason. A test asks that each op and type of
// the table has a case or an entry (cases_test.cpp).
#include <fmt/format.h>
#include <algorithm>

#include "conformance/cases/case_list.h"

namespace tenon::conformance {
namespace {

using hlo::OpCode;
using hlo::OpInfo;

struct OpReason {
  OpCode op;
  const char* text;
};
constexpr OpReason kReasons[] = {
    {OpCode::kReturn, "it ends every program"},
    {OpCode::kParameter, "every program has parameters"},
    {OpCode::kFusion, "passes make it; the random fused graphs have it (random/fused_graph)"},
    {OpCode::kCustomCall, "it names a function of the host"},
    {OpCode::kGetTupleElement, "the cases of tuple have it (op/tuple)"},
    {OpCode::kSetDimensionSize, "its result has a size that is not known when it is compiled"},
    {OpCode::kChloConstant, "it is a constant (op/constant)"},
    {OpCode::kChloAsinAcosKernel, "it is a part of the expansions of asin and acos"},
};

bool has_case(const CaseList& list, std::string_view prefix, std::string_view part = "") {
  return std::ranges::any_of(list.cases, [&](const ConformanceCase& each) {
    return each.name.starts_with(prefix) && each.name.find(part) != std::string::npos;
  });
}

void leave_out_op(CaseList& list, const OpInfo& op) {
  const std::string cell = "op/" + case_name_of(op.code);
  if (has_case(list, cell + "/")) return;
  const auto* const reason = std::ranges::find(kReasons, op.code, &OpReason::op);
  if (op.category == hlo::Category::kCommunication) {
    list.left_out.push_back({cell, "it needs several processes, or a host that feeds it"});
  } else if (reason != std::end(kReasons)) {
    list.left_out.push_back({cell, reason->text});
  }
}

void leave_out_quantized(CaseList& list, const OpInfo& op) {
  const std::string cell = "op/" + case_name_of(op.code);
  if ((op.types & hlo::kTypesQuantized) == 0 || op.category == hlo::Category::kCommunication ||
      has_case(list, cell + "/", "/quantized") || op.code == OpCode::kUniformQuantize ||
      op.code == OpCode::kUniformDequantize) {
    return;
  }
  list.left_out.push_back(
      {cell + "/*/quantized",
       "it moves stored integers, or is computed in the expressed type between dequantize and "
       "quantize, whose rounding its error may cross"});
}

}  // namespace

void add_left_out(CaseList& list) {
  for (const OpInfo& op : hlo::all_ops()) {
    leave_out_op(list, op);
    leave_out_quantized(list, op);
  }
}

}  // namespace tenon::conformance
