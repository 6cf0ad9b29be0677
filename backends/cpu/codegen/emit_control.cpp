// Loops and branches.
#include "backends/cpu/codegen/emitter.h"
#include "backends/cpu/compiling.h"
#include "backends/llvm/loops.h"
#include "backends/llvm/operations.h"

namespace tenon::cpu {

using kernel::Node;
using kernel::NodeId;
using kernel::OpCode;

void CpuKernelEmitter::loop(Value* low, Value* high, int64_t step,
                            const std::function<void(Value*)>& body) {
  loop(low, high, step, {}, {}, [&](Value* i, const Many&) {
    body(i);
    return Many{};
  });
}

CpuKernelEmitter::Many CpuKernelEmitter::loop(
    Value* low, Value* high, int64_t step, const Ids& like, const Many& inits,
    const std::function<Many(Value*, const Many&)>& body) {
  // Indices nearly always have 32 bits; those of 64 bits are places in memory: no step overflows.
  const auto lanes_of = [&](const codegen::LlvmValues& values) {
    Many list;
    for (size_t k = 0; k < like.size(); ++k) list.push_back(from(like[k], values[k]));
    return list;
  };
  const auto values_of = [&](const Many& lanes) {
    codegen::LlvmValues list;
    for (size_t k = 0; k < like.size(); ++k) list.push_back(as(like[k], lanes[k]));
    return list;
  };
  return lanes_of(codegen::emit_loop(b_, low, high, step, values_of(inits),
                                     [&](Value* i, const codegen::LlvmValues& carried) {
                                       return values_of(body(i, lanes_of(carried)));
                                     }));
}

void CpuKernelEmitter::for_loop(const Node& n) {
  const Ids& arguments = kernel_.block(n.blocks[0]).arguments;
  set(n.results, loop(wide_of(get(n.operands[0])), wide_of(get(n.operands[1])), n.extents[0],
                      n.results, get(n.operands, 2), [&](Value* k, const Many& carried) {
                        values_[arguments[0]] = index_from(k);
                        set(arguments, carried, 1);
                        return block(n.blocks[0]);
                      }));
}

// The loop belongs to a workgroup, or to one iteration of a lanes loop: several lanes never go
// through it together.
void CpuKernelEmitter::while_loop(const Node& n) {
  const Many inits = get(n.operands);
  BasicBlock* const before = b_.GetInsertBlock();
  BasicBlock* const test = BasicBlock::Create(context_, "test", function_);
  BasicBlock* const turn = BasicBlock::Create(context_, "turn", function_);
  BasicBlock* const after = BasicBlock::Create(context_, "after", function_);
  b_.CreateBr(test);
  b_.SetInsertPoint(test);
  std::vector<llvm::PHINode*> phis;
  Many carried;
  for (const Lanes& init : inits) {
    phis.push_back(b_.CreatePHI(init.scalar->getType(), 2));
    phis.back()->addIncoming(init.scalar, before);
    carried.push_back({phis.back(), nullptr, 0});
  }
  for (const kernel::BlockId each : n.blocks) set(kernel_.block(each).arguments, carried);
  const Many go = block(n.blocks[0]);
  b_.CreateCondBr(go[0].scalar, turn, after);
  b_.SetInsertPoint(turn);
  const Many next = block(n.blocks[1]);
  poll_stop();
  for (size_t i = 0; i < phis.size(); ++i)
    phis[i]->addIncoming(next[i].scalar, b_.GetInsertBlock());
  b_.CreateBr(test);
  b_.SetInsertPoint(after);
  set(n.results, carried);
}

// Ends the function at this point when the work is to stop (B27).
void CpuKernelEmitter::poll_stop() {
  BasicBlock* const on = BasicBlock::Create(context_, "on", function_);
  b_.CreateCondBr(emit_poll(b_, stops_), on, exit_);
  b_.SetInsertPoint(on);
}

void CpuKernelEmitter::if_else(const Node& n) {
  const Lanes condition = get(n.operands[0]);
  if (!condition.same()) return divergent_if(n);
  BasicBlock* const sides[] = {BasicBlock::Create(context_, "then", function_),
                               BasicBlock::Create(context_, "else", function_)};
  BasicBlock* const after = BasicBlock::Create(context_, "after", function_);
  b_.CreateCondBr(condition.scalar, sides[0], sides[1]);
  std::vector<llvm::PHINode*> phis;
  for (size_t s = 0; s < 2; ++s) {
    b_.SetInsertPoint(sides[s]);
    const Many given = block(n.blocks[s]);
    std::vector<Value*> list;
    for (size_t i = 0; i < n.results.size(); ++i) list.push_back(as(n.results[i], given[i]));
    BasicBlock* const end = b_.GetInsertBlock();
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
    for (size_t i = 0; i < list.size(); ++i) {
      if (s == 0) phis.push_back(b_.CreatePHI(list[i]->getType(), 2));
      phis[i]->addIncoming(list[i], end);
    }
  }
  for (size_t i = 0; i < phis.size(); ++i) values_[n.results[i]] = from(n.results[i], phis[i]);
}

bool CpuKernelEmitter::only_computes(kernel::BlockId id) const {
  for (const NodeId n : kernel_.block(id).nodes) {
    const Node& node = kernel_.node(n);
    if (!kernel::is_scalar_op(node.op) && node.op != OpCode::kYield) return false;
  }
  return true;
}

// Emits the block with more lanes masked off; it is skipped if no lane remains active. The results
// of the block, or zeros. (Not poison: the values of inactive lanes enter conditions, which masks
// and branches follow from.)
CpuKernelEmitter::Many CpuKernelEmitter::masked_block(kernel::BlockId id, Value* mask,
                                                      const Ids& like) {
  BasicBlock* const before = b_.GetInsertBlock();
  BasicBlock* const some = BasicBlock::Create(context_, "some", function_);
  BasicBlock* const after = BasicBlock::Create(context_, "after", function_);
  b_.CreateCondBr(b_.CreateOrReduce(mask), some, after);
  b_.SetInsertPoint(some);
  Value* const outer = std::exchange(mask_, mask);
  const Many given = block(id);
  mask_ = outer;
  std::vector<Value*> list;
  for (size_t i = 0; i < like.size(); ++i) list.push_back(vector_of(given[i]));
  BasicBlock* const end = b_.GetInsertBlock();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
  Many results;
  for (Value* const value : list) {
    llvm::PHINode* const phi = b_.CreatePHI(value->getType(), 2);
    phi->addIncoming(llvm::Constant::getNullValue(value->getType()), before);
    phi->addIncoming(value, end);
    results.push_back({nullptr, phi, 0});
  }
  return results;
}

void CpuKernelEmitter::divergent_if(const Node& n) {
  Value* const condition = vector_of(get(n.operands[0]));
  const auto side = [&](size_t which) -> Many {
    const kernel::BlockId id = n.blocks[which];
    if (only_computes(id)) return block(id);
    Value* const mine = which == 0 ? condition : b_.CreateNot(condition);
    return masked_block(id, mask_ == nullptr ? mine : b_.CreateAnd(mask_, mine), n.results);
  };
  const Many then = side(0);
  const Many otherwise = side(1);
  for (size_t i = 0; i < n.results.size(); ++i) {
    values_[n.results[i]] = {
        nullptr, b_.CreateSelect(condition, vector_of(then[i]), vector_of(otherwise[i])), 0};
  }
}

}  // namespace tenon::cpu
