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
  // Indices mostly have 32 bits; those of 64 bits are positions in memory: no step overflows.
  return unflatten(like, codegen::emit_loop(b_, low, high, step, flatten(like, inits),
                                            [&](Value* i, const codegen::LlvmValues& carried) {
                                              return flatten(like,
                                                             body(i, unflatten(like, carried)));
                                            }));
}

void CpuKernelEmitter::for_loop(const Node& n) {
  count(n, wide_of(form(n.operands[0])), wide_of(form(n.operands[1])));
}

// The loop belongs to a workgroup, or to one iteration of a lanes loop: several lanes never run it
// together.
void CpuKernelEmitter::while_loop(const Node& n) {
  const auto condition = [&] { return block(n.blocks[0])[0].scalar; };
  repeat(n, condition, [&] {
    Many next = block(n.blocks[1]);
    poll_stop();
    return next;
  });
}

// Ends the function at this point when the work is to stop (B27).
void CpuKernelEmitter::poll_stop() {
  BasicBlock* const on = BasicBlock::Create(context_, "on", function_);
  b_.CreateCondBr(emit_poll(b_, stops_), on, exit_);
  b_.SetInsertPoint(on);
}

void CpuKernelEmitter::if_else(const Node& n) {
  const Lanes condition = form(n.operands[0]);
  if (!condition.same()) return divergent_if(n);
  choose(n, condition.scalar, [&](size_t side) { return block(n.blocks[side]); });
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
  // Lanes that are known need no branch: above all those of a pattern (emit_patterns.cpp).
  if (const auto* known = llvm::dyn_cast<llvm::Constant>(mask); known && known->isNullValue()) {
    Many none;
    for (const kernel::ValueId value : like) {
      llvm::Type* const type = type_of(kernel_.value(value).type, true);
      none.push_back({nullptr, llvm::Constant::getNullValue(type), 0});
    }
    return none;
  } else if (known) {
    Value* const outer = std::exchange(mask_, known->isAllOnesValue() ? nullptr : mask);
    const Many given = block(id);
    mask_ = outer;
    return given;
  }
  codegen::LlvmValues zeros;
  for (const kernel::ValueId value : like) {
    zeros.push_back(llvm::Constant::getNullValue(type_of(kernel_.value(value).type, true)));
  }
  const codegen::LlvmValues results = codegen::emit_where(b_, b_.CreateOrReduce(mask), zeros, [&] {
    Value* const outer = std::exchange(mask_, mask);
    const Many given = block(id);
    mask_ = outer;
    codegen::LlvmValues list;
    for (size_t i = 0; i < like.size(); ++i) list.push_back(vector_of(given[i]));
    return list;
  });
  Many vectors;
  for (Value* const each : results) vectors.push_back({nullptr, each, 0});
  return vectors;
}

void CpuKernelEmitter::divergent_if(const Node& n) {
  Value* const condition = vector_of(form(n.operands[0]));
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
