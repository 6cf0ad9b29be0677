#include "backends/llvm/loops.h"

namespace tenon::codegen {
namespace {

// The id of a loop is a node whose first operand is itself.
llvm::MDNode* fully_unrolled(llvm::LLVMContext& context) {
  llvm::MDNode* const wish =
      llvm::MDNode::get(context, llvm::MDString::get(context, "llvm.loop.unroll.full"));
  llvm::MDNode* const loop = llvm::MDNode::getDistinct(context, {nullptr, wish});
  loop->replaceOperandWith(0, loop);
  return loop;
}

}  // namespace

LlvmValues emit_loop(llvm::IRBuilderBase& b, llvm::Value* low, llvm::Value* high, int64_t step,
                     const LlvmValues& inits,
                     const std::function<LlvmValues(llvm::Value* i, const LlvmValues&)>& body,
                     bool unrolled) {
  llvm::BasicBlock* const before = b.GetInsertBlock();
  llvm::Function* const function = before->getParent();
  llvm::BasicBlock* const turn = llvm::BasicBlock::Create(b.getContext(), "turn", function);
  llvm::BasicBlock* const after = llvm::BasicBlock::Create(b.getContext(), "after", function);
  b.CreateCondBr(b.CreateICmpSLT(low, high), turn, after);
  b.SetInsertPoint(turn);
  llvm::PHINode* const i = b.CreatePHI(low->getType(), 2);
  i->addIncoming(low, before);
  LlvmValues carried;
  std::vector<llvm::PHINode*> phis;
  for (llvm::Value* const init : inits) {
    phis.push_back(b.CreatePHI(init->getType(), 2));
    phis.back()->addIncoming(init, before);
    carried.push_back(phis.back());
  }
  const LlvmValues next = body(i, carried);
  llvm::Value* const after_step =
      b.CreateAdd(i, llvm::ConstantInt::getSigned(i->getType(), step), "", false, /*HasNSW=*/true);
  llvm::Value* const more = b.CreateICmpSLT(after_step, high);
  llvm::BasicBlock* const end = b.GetInsertBlock();
  llvm::BranchInst* const back = b.CreateCondBr(more, turn, after);
  if (unrolled) back->setMetadata(llvm::LLVMContext::MD_loop, fully_unrolled(b.getContext()));
  i->addIncoming(after_step, end);
  b.SetInsertPoint(after);
  LlvmValues results;
  for (size_t k = 0; k < inits.size(); ++k) {
    phis[k]->addIncoming(next[k], end);
    llvm::PHINode* const result = b.CreatePHI(inits[k]->getType(), 2);
    result->addIncoming(inits[k], before);
    result->addIncoming(next[k], end);
    results.push_back(result);
  }
  return results;
}

LlvmValues emit_while(llvm::IRBuilderBase& b, const LlvmValues& inits,
                      const std::function<llvm::Value*(const LlvmValues&)>& condition,
                      const std::function<LlvmValues()>& body) {
  llvm::BasicBlock* const before = b.GetInsertBlock();
  llvm::Function* const function = before->getParent();
  llvm::BasicBlock* const test = llvm::BasicBlock::Create(b.getContext(), "test", function);
  llvm::BasicBlock* const turn = llvm::BasicBlock::Create(b.getContext(), "turn", function);
  llvm::BasicBlock* const after = llvm::BasicBlock::Create(b.getContext(), "after", function);
  b.CreateBr(test);
  b.SetInsertPoint(test);
  std::vector<llvm::PHINode*> phis;
  for (llvm::Value* const init : inits) {
    phis.push_back(b.CreatePHI(init->getType(), 2));
    phis.back()->addIncoming(init, before);
  }
  LlvmValues carried(phis.begin(), phis.end());
  b.CreateCondBr(condition(carried), turn, after);
  b.SetInsertPoint(turn);
  const LlvmValues next = body();
  for (size_t i = 0; i < phis.size(); ++i) phis[i]->addIncoming(next[i], b.GetInsertBlock());
  b.CreateBr(test);
  b.SetInsertPoint(after);
  return carried;
}

LlvmValues emit_if(llvm::IRBuilderBase& b, llvm::Value* condition,
                   const std::function<LlvmValues(size_t)>& side) {
  llvm::Function* const function = b.GetInsertBlock()->getParent();
  llvm::BasicBlock* const sides[] = {llvm::BasicBlock::Create(b.getContext(), "then", function),
                                     llvm::BasicBlock::Create(b.getContext(), "else", function)};
  llvm::BasicBlock* const after = llvm::BasicBlock::Create(b.getContext(), "after", function);
  b.CreateCondBr(condition, sides[0], sides[1]);
  std::vector<llvm::PHINode*> phis;
  for (size_t s = 0; s < 2; ++s) {
    b.SetInsertPoint(sides[s]);
    const LlvmValues given = side(s);
    llvm::BasicBlock* const end = b.GetInsertBlock();
    b.CreateBr(after);
    b.SetInsertPoint(after);
    for (size_t i = 0; i < given.size(); ++i) {
      if (s == 0) phis.push_back(b.CreatePHI(given[i]->getType(), 2));
      phis[i]->addIncoming(given[i], end);
    }
  }
  return {phis.begin(), phis.end()};
}

void emit_branch(llvm::IRBuilderBase& b, llvm::Value* condition, const std::function<void()>& then,
                 const std::function<void()>& otherwise) {
  emit_if(b, condition, [&](size_t side) {
    side == 0 ? then() : otherwise();
    return LlvmValues();
  });
}

LlvmValues emit_where(llvm::IRBuilderBase& b, llvm::Value* condition, const LlvmValues& otherwise,
                      const std::function<LlvmValues()>& body) {
  llvm::BasicBlock* const before = b.GetInsertBlock();
  llvm::Function* const function = before->getParent();
  llvm::BasicBlock* const inside = llvm::BasicBlock::Create(b.getContext(), "inside", function);
  llvm::BasicBlock* const after = llvm::BasicBlock::Create(b.getContext(), "after", function);
  b.CreateCondBr(condition, inside, after);
  b.SetInsertPoint(inside);
  const LlvmValues given = body();
  llvm::BasicBlock* const end = b.GetInsertBlock();
  b.CreateBr(after);
  b.SetInsertPoint(after);
  LlvmValues results;
  for (size_t i = 0; i < given.size(); ++i) {
    llvm::PHINode* const phi = b.CreatePHI(given[i]->getType(), 2);
    phi->addIncoming(otherwise[i], before);
    phi->addIncoming(given[i], end);
    results.push_back(phi);
  }
  return results;
}

namespace {

// Each round interleaves the rows of both halves: the bits of a row's and a column's number rotate
// by one.
void transpose_by_interleaving(llvm::IRBuilderBase& b, LlvmValues& rows) {
  const size_t count = rows.size();
  std::vector<int> low;
  for (size_t j = 0; j < count; ++j) low.push_back(static_cast<int>(j / 2 + j % 2 * count));
  std::vector<int> high = low;
  for (int& place : high) place += static_cast<int>(count / 2);
  for (size_t round = 1; round < count; round *= 2) {
    LlvmValues next;
    for (size_t i = 0; i < count / 2; ++i) {
      next.push_back(b.CreateShuffleVector(rows[i], rows[i + count / 2], low));
      next.push_back(b.CreateShuffleVector(rows[i], rows[i + count / 2], high));
    }
    rows = std::move(next);
  }
}

}  // namespace

// In step s each pair of vectors 2^s apart exchanges runs of 2^s lanes, so that rows become
// columns. Registers of 16 bytes interleave by one instruction.
void transpose(llvm::IRBuilderBase& b, LlvmValues& rows) {
  const size_t count = rows.size();
  if (rows[0]->getType()->getPrimitiveSizeInBits() <= 128) {
    return transpose_by_interleaving(b, rows);
  }
  for (size_t step = 1; step < count; step *= 2) {
    std::vector<int> low;
    std::vector<int> high;
    for (size_t j = 0; j < count; ++j) {
      const bool from_second = (j & step) != 0;
      low.push_back(static_cast<int>(from_second ? count + j - step : j));
      high.push_back(static_cast<int>(from_second ? count + j : j + step));
    }
    for (size_t i = 0; i < count; ++i) {
      if ((i & step) != 0) continue;
      llvm::Value* const first = rows[i];
      llvm::Value* const second = rows[i + step];
      rows[i] = b.CreateShuffleVector(first, second, low);
      rows[i + step] = b.CreateShuffleVector(first, second, high);
    }
  }
}

}  // namespace tenon::codegen
