#include "hlo/lower/schedules/schedules.h"

#include <algorithm>

namespace tenon::hlo::lower {

FusedOp::FusedOp(const Instruction& instruction) : op(instruction) {
  if (op.code() != OpCode::kFusion) {
    inner = {&op};
    for (uint32_t r = 0; r < op.result_count(); ++r) {
      results.push_back({const_cast<Instruction*>(&op), r});
    }
    return;
  }
  for (const Instruction& each : op.region(0)) {
    if (each.code() == OpCode::kReturn) break;
    if (each.code() != OpCode::kConstant) inner.push_back(&each);
  }
  results = op.region(0).return_instruction()->operands();
}

const Instruction* FusedOp::only(OpCode code) const {
  const Instruction* found = nullptr;
  for (const Instruction* each : inner) {
    if (each->code() != code) continue;
    if (found != nullptr) return nullptr;
    found = each;
  }
  return found;
}

bool FusedOp::combines(const Instruction* except) const {
  return std::ranges::any_of(inner, [&](const Instruction* each) {
    const Category category = each->info().category;
    return each != except &&
           (category == Category::kReduction || category == Category::kContraction);
  });
}

void store_results(KernelMaker& maker, const FusedOp& fused, const std::vector<uint32_t>& which,
                   const std::vector<kernel::MemoryId>& memories, const Values& index) {
  for (size_t i = 0; i < which.size(); ++i) {
    maker.e().store(maker.e().element(fused.results[which[i]], index), memories[i], index);
  }
}

void for_each_serially(kernel::Builder& b, const Dims& dims,
                       const std::function<void(const Values&)>& body) {
  Values index;
  const std::function<void()> nest = [&] {
    if (index.size() == dims.size()) return body(index);
    b.for_loop(b.index(0), b.index(dims[index.size()]), 1, {}, [&](const Values& at) {
      index.push_back(at[0]);
      nest();
      index.pop_back();
      return Values{};
    });
  };
  nest();
}

}  // namespace tenon::hlo::lower
