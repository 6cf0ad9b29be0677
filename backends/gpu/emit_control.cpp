// Loops and branches.
#include "backends/gpu/emitter.h"
#include "backends/llvm/loops.h"
#include "backends/llvm/operations.h"

namespace tenon::gpu {

using kernel::Node;
using kernel::NodeId;

namespace {

constexpr int64_t kMostUnrolled = 64;  // Turns of a loop that must go, for registers.

}  // namespace

bool Emitter::touches_private(kernel::BlockId id) const {
  for (const NodeId n : kernel_.block(id).nodes) {
    const Node& node = kernel_.node(n);
    for (const kernel::MemoryId m : node.memories) {
      if (kernel_.memory(m).space == kernel::Space::kPrivate) return true;
    }
    for (const kernel::BlockId inner : node.blocks) {
      if (touches_private(inner)) return true;
    }
  }
  return false;
}

void Emitter::for_loop(const Node& n) {
  const Ids& arguments = kernel_.block(n.blocks[0]).arguments;
  const int64_t step = n.extents[0];
  // The last step may leave the type of indices.
  const bool narrow =
      kernel_.index_type == ElementType::kS32 && ranges_.of(n.operands[1]).high + step <= INT32_MAX;
  llvm::Type* const type = narrow ? b_.getInt32Ty() : b_.getInt64Ty();
  Value* const low = b_.CreateSExtOrTrunc(get(n.operands[0]), type);
  Value* const high = b_.CreateSExtOrTrunc(get(n.operands[1]), type);
  bool unrolled = false;
  const auto* from = llvm::dyn_cast<llvm::ConstantInt>(low);
  const auto* to = llvm::dyn_cast<llvm::ConstantInt>(high);
  if (from != nullptr && to != nullptr && in_lanes_) {
    unrolled = (to->getSExtValue() - from->getSExtValue()) / step <= kMostUnrolled &&
               touches_private(n.blocks[0]);
  }
  const Touched before = touched_;
  if (outside()) touched_.add(plan_.touched(n));
  const auto results = codegen::emit_loop(
      b_, low, high, step, flatten(n.results, get(n.operands, 2)),
      [&](Value* k, const std::vector<Value*>& carried) {
        values_[arguments[0]] = {b_.CreateTrunc(k, codegen::type_of(context_, kernel_.index_type))};
        set(arguments, unflatten(n.results, carried), 1);
        return flatten(n.results, block(n.blocks[0]));
      },
      unrolled);
  set(n.results, unflatten(n.results, results));
  touched_.add(before);
}

void Emitter::while_loop(const Node& n) {
  const std::vector<Value*> inits = flatten(n.results, get(n.operands));
  BasicBlock* const before = b_.GetInsertBlock();
  BasicBlock* const test = BasicBlock::Create(context_, "test", function_);
  BasicBlock* const turn = BasicBlock::Create(context_, "turn", function_);
  BasicBlock* const after = BasicBlock::Create(context_, "after", function_);
  b_.CreateBr(test);
  b_.SetInsertPoint(test);
  std::vector<llvm::PHINode*> phis;
  std::vector<Value*> carried;
  for (Value* const init : inits) {
    phis.push_back(b_.CreatePHI(init->getType(), 2));
    phis.back()->addIncoming(init, before);
    carried.push_back(phis.back());
  }
  for (const kernel::BlockId each : n.blocks) {
    set(kernel_.block(each).arguments, unflatten(n.results, carried));
  }
  if (outside()) touched_.add(plan_.touched(n));
  const Many go = block(n.blocks[0]);
  const Touched tested = touched_;
  b_.CreateCondBr(go[0][0], turn, after);
  b_.SetInsertPoint(turn);
  const std::vector<Value*> next = flatten(n.results, block(n.blocks[1]));
  for (size_t i = 0; i < phis.size(); ++i) phis[i]->addIncoming(next[i], b_.GetInsertBlock());
  b_.CreateBr(test);
  b_.SetInsertPoint(after);
  set(n.results, unflatten(n.results, carried));
  touched_ = tested;
}

void Emitter::if_else(const Node& n) {
  BasicBlock* const sides[] = {BasicBlock::Create(context_, "then", function_),
                               BasicBlock::Create(context_, "else", function_)};
  BasicBlock* const after = BasicBlock::Create(context_, "after", function_);
  b_.CreateCondBr(get(n.operands[0]), sides[0], sides[1]);
  const Touched before = touched_;
  Touched either;
  std::vector<llvm::PHINode*> phis;
  for (size_t s = 0; s < 2; ++s) {
    b_.SetInsertPoint(sides[s]);
    touched_ = before;
    const std::vector<Value*> given = flatten(n.results, block(n.blocks[s]));
    either.add(touched_);
    BasicBlock* const end = b_.GetInsertBlock();
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
    for (size_t i = 0; i < given.size(); ++i) {
      if (s == 0) phis.push_back(b_.CreatePHI(given[i]->getType(), 2));
      phis[i]->addIncoming(given[i], end);
    }
  }
  set(n.results, unflatten(n.results, {phis.begin(), phis.end()}));
  touched_ = std::move(either);
}

std::vector<llvm::Value*> Emitter::where(Value* condition, const std::vector<Value*>& otherwise,
                                         const std::function<std::vector<Value*>()>& body) {
  BasicBlock* const before = b_.GetInsertBlock();
  BasicBlock* const inside = BasicBlock::Create(context_, "inside", function_);
  BasicBlock* const after = BasicBlock::Create(context_, "after", function_);
  b_.CreateCondBr(condition, inside, after);
  b_.SetInsertPoint(inside);
  const std::vector<Value*> given = body();
  BasicBlock* const end = b_.GetInsertBlock();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
  std::vector<Value*> results;
  for (size_t i = 0; i < given.size(); ++i) {
    llvm::PHINode* const phi = b_.CreatePHI(given[i]->getType(), 2);
    phi->addIncoming(otherwise[i], before);
    phi->addIncoming(given[i], end);
    results.push_back(phi);
  }
  return results;
}

}  // namespace tenon::gpu
