// The constraint of an op's section that determines its result types; cited if a stated type
// differs.
#include <algorithm>

#include "hlo/inference/infer_util.h"

namespace tenon::hlo::infer {
namespace {

struct ResultClauseRow {
  OpCode code;
  ResultClause clause;
};

// Elementwise ops, whose only constraint is C1, are not listed.
constexpr ResultClauseRow kRows[] = {
    {OpCode::kAbs, {"C2", {"C1"}}},
    {OpCode::kAllGather, {"C6", {"C6"}}},
    {OpCode::kAllReduce, {"C7", {"C6"}}},
    {OpCode::kAllToAll, {"C9", {"C9"}}},
    {OpCode::kAsyncDone, {"C1", {"C1"}}},
    {OpCode::kAsyncStart, {"C4", {"C4"}}},
    {OpCode::kBatchNormGrad, {"C2", {"C3", "C4", "C4"}}},
    {OpCode::kBatchNormInference, {"C2", {"C7"}}},
    {OpCode::kBatchNormTraining, {"C2", {"C7", "C5", "C6"}}},
    {OpCode::kBitcastConvert, {"C1", {"C1"}}},
    {OpCode::kCase, {"C4", {"C4"}}},
    {OpCode::kCholesky, {"C1", {"C1"}}},
    {OpCode::kClamp, {"C4", {"C4"}}},
    {OpCode::kCollectiveBroadcast, {"C3", {"C3"}}},
    {OpCode::kCollectivePermute, {"C5", {"C5"}}},
    {OpCode::kCollectiveReduce, {"C4", {"C3"}}},
    {OpCode::kCompare, {"", {"C2"}}},
    {OpCode::kComplex, {"C3", {"C2"}}},
    {OpCode::kComposite, {"C4", {"C4"}}},
    {OpCode::kConcatenate, {"C5", {"C6"}}},
    {OpCode::kConstant, {"C1", {"C1"}}},
    {OpCode::kConvert, {"C1", {"C1"}}},
    {OpCode::kConvolution, {"C27", {"C25"}}},
    {OpCode::kDotGeneral, {"", {"C12"}}},
    {OpCode::kDynamicBroadcastInDim, {"C1", {"C7"}}},
    {OpCode::kDynamicConv, {"C27", {"C25"}}},
    {OpCode::kDynamicGather, {"C14", {"C13"}}},
    {OpCode::kDynamicIota, {"", {"C2"}}},
    {OpCode::kDynamicPad, {"C1", {"C4"}}},
    {OpCode::kDynamicReshape, {"C1", {"C4"}}},
    {OpCode::kDynamicSlice, {"C1", {"C5"}}},
    {OpCode::kDynamicUpdateSlice, {"C1", {"C1"}}},
    {OpCode::kFft, {"C2", {"C5"}}},
    {OpCode::kGather, {"C23", {"C22"}}},
    {OpCode::kGetTupleElement, {"C2", {"C2"}}},
    {OpCode::kIf, {"C3", {"C3"}}},
    {OpCode::kImag, {"C2", {"C1"}}},
    {OpCode::kIsFinite, {"", {"C1"}}},
    {OpCode::kMap, {"C4", {"C1"}}},
    {OpCode::kOptimizationBarrier, {"C1", {"C1"}}},
    {OpCode::kPad, {"C1", {"C4"}}},
    {OpCode::kReal, {"C2", {"C1"}}},
    {OpCode::kReduce, {"C8", {"C7"}}},
    {OpCode::kReducePrecision, {"C1", {"C1"}}},
    {OpCode::kReduceScatter, {"C9", {"C8"}}},
    {OpCode::kReduceWindow, {"C16", {"C15"}}},
    {OpCode::kReverse, {"C1", {"C1"}}},
    {OpCode::kRng, {"C1", {"C3"}}},
    {OpCode::kRngBitGenerator, {"C1", {"C1"}}},
    {OpCode::kScatter, {"C25", {"C24"}}},
    {OpCode::kSelect, {"C2", {"C2"}}},
    {OpCode::kSelectAndScatter, {"C12", {"C11"}}},
    {OpCode::kSlice, {"C1", {"C5"}}},
    {OpCode::kSort, {"C2", {"C2"}}},
    {OpCode::kTranspose, {"C1", {"C3"}}},
    {OpCode::kTriangularSolve, {"C4", {"C4"}}},
    {OpCode::kTuple, {"C1", {"C1"}}},
    {OpCode::kUniformDequantize, {"C2", {"C1"}}},
    {OpCode::kWhile, {"C3", {"C3"}}},
};

}  // namespace

ResultClause result_clause(const Instruction& op) {
  const auto* found =
      std::find_if(std::begin(kRows), std::end(kRows),
                   [&](const ResultClauseRow& row) { return row.code == op.code(); });
  if (found != std::end(kRows)) return found->clause;
  if (op.info().infer == unary || op.info().infer == binary) return {"C1", {"C1"}};
  return {};
}

}  // namespace tenon::hlo::infer
