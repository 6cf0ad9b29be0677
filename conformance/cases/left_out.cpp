// Ops of the table that no case covers, each with the reason. A test asks that each op and type of
// the table has a case or an entry (cases_test.cpp).
#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>

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

// The ops that have cases ("add"), by a walk of the list, which every process of a run makes.
struct Covered {
  explicit Covered(const CaseList& list) {
    for (const ConformanceCase& each : list.cases) {
      const std::string_view name = each.name;
      if (!name.starts_with(kGroup)) continue;
      const size_t end = name.find('/', kGroup.size());
      if (end == std::string_view::npos) continue;
      const std::string_view op = name.substr(kGroup.size(), end - kGroup.size());
      ops.insert(op);
      if (name.find("/quantized", end) != std::string_view::npos) quantized.insert(op);
    }
  }

  static constexpr std::string_view kGroup = "op/";
  std::unordered_set<std::string_view> ops, quantized;
};

void leave_out_op(CaseList& list, const Covered& covered, const OpInfo& op) {
  const std::string name = case_name_of(op.code);
  if (covered.ops.contains(name)) return;
  const std::string cell = "op/" + name;
  const auto* const reason = std::ranges::find(kReasons, op.code, &OpReason::op);
  if (op.category == hlo::Category::kCommunication) {
    list.left_out.push_back({cell, "it needs several processes, or a host that feeds it"});
  } else if (reason != std::end(kReasons)) {
    list.left_out.push_back({cell, reason->text});
  }
}

void leave_out_quantized(CaseList& list, const Covered& covered, const OpInfo& op) {
  const std::string name = case_name_of(op.code);
  if ((op.types & hlo::kTypesQuantized) == 0 || op.category == hlo::Category::kCommunication ||
      covered.quantized.contains(name) || op.code == OpCode::kUniformQuantize ||
      op.code == OpCode::kUniformDequantize) {
    return;
  }
  list.left_out.push_back(
      {"op/" + name + "/*/quantized",
       "it moves stored integers, or is computed in the expressed type between dequantize and "
       "quantize, whose rounding its error may cross"});
}

}  // namespace

void add_left_out(CaseList& list) {
  const Covered covered(list);
  for (const OpInfo& op : hlo::all_ops()) {
    leave_out_op(list, covered, op);
    leave_out_quantized(list, covered, op);
  }
}

}  // namespace tenon::conformance
