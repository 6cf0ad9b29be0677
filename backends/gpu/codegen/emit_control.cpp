// Loops and branches.
#include <algorithm>

#include "backends/gpu/codegen/emitter.h"
#include "backends/llvm/loops.h"
#include "backends/llvm/operations.h"
#include "core/kernel/ir/visitor.h"

namespace tenon::gpu {

using kernel::Node;
using kernel::NodeId;
using kernel::OpCode;

namespace {

constexpr int64_t kMostTurns = 64;  // Iterations of a loop that may be unrolled.
// Size of an unrolled loop that does not index private memory itself but encloses accesses to it.
constexpr int64_t kMostNodes = 1 << 15;

}  // namespace

bool GpuKernelEmitter::touches_private(kernel::BlockId id) const {
  return any_node(kernel_, id, [&](const Node& node) { return names_private(node); });
}

bool GpuKernelEmitter::names_private(const Node& n) const {
  return std::ranges::any_of(n.memories, [&](kernel::MemoryId m) {
    return kernel_.memory(m).space == kernel::Space::kPrivate;
  });
}

// Whether an index into private memory depends on one of `values`; adds the values of the block
// that depend on them.
bool GpuKernelEmitter::indexes_private(kernel::BlockId id,
                                       std::set<kernel::ValueId>& values) const {
  const auto known = [&](kernel::ValueId value) { return values.contains(value); };
  return any_node(kernel_, id, [&](const Node& node) {
    if (!std::ranges::any_of(node.operands, known)) return false;
    if (kernel::is_scalar_op(node.op)) values.insert(node.results[0]);
    return names_private(node);
  });
}

// Nodes of a block whose loops of constant bounds have all been unrolled.
int64_t GpuKernelEmitter::unrolled_size(kernel::BlockId id) const {
  int64_t size = 0;
  for (const NodeId n : kernel_.block(id).nodes) {
    const Node& node = kernel_.node(n);
    int64_t inner = 1;
    for (const kernel::BlockId each : node.blocks) inner += unrolled_size(each);
    size += inner * (node.op == OpCode::kFor ? turns_of(node).value_or(1) : 1);
    size = std::min(size, kMostNodes + 1);
  }
  return size;
}

std::optional<int64_t> GpuKernelEmitter::turns_of(const Node& n) const {
  const kernel::Value& low = kernel_.value(n.operands[0]);
  const kernel::Value& high = kernel_.value(n.operands[1]);
  if (low.kind != kernel::ValueKind::kConstant || high.kind != kernel::ValueKind::kConstant) {
    return std::nullopt;
  }
  const auto first = static_cast<int64_t>(low.bits);
  const auto end = static_cast<int64_t>(high.bits);
  return end <= first ? 0 : (end - first - 1) / n.extents[0] + 1;
}

// Loops that index a thread's own array must be unrolled, so that the array becomes registers; it
// pays to unroll loops around these as well, since equal loads of different iterations become one.
bool GpuKernelEmitter::is_unrolled(const Node& n) const {
  const auto turns = turns_of(n);
  if (!in_lanes_ || !turns || *turns > kMostTurns) return false;
  std::set<kernel::ValueId> index = {kernel_.block(n.blocks[0]).arguments[0]};
  if (indexes_private(n.blocks[0], index)) return true;
  return touches_private(n.blocks[0]) && *turns * unrolled_size(n.blocks[0]) <= kMostNodes;
}

void GpuKernelEmitter::for_loop(const Node& n) {
  const Ids& arguments = kernel_.block(n.blocks[0]).arguments;
  const int64_t step = n.extents[0];
  // The last step may leave the type of indices.
  const bool narrow =
      kernel_.index_type == ElementType::kS32 && ranges_.of(n.operands[1]).high + step <= INT32_MAX;
  llvm::Type* const type = narrow ? b_.getInt32Ty() : b_.getInt64Ty();
  Value* const low = b_.CreateSExtOrTrunc(get(n.operands[0]), type);
  Value* const high = b_.CreateSExtOrTrunc(get(n.operands[1]), type);
  const AccessSummary before = touched_;
  if (outside()) touched_.add(plan_.touched(n));
  const auto results = codegen::emit_loop(
      b_, low, high, step, flatten(n.results, get(n.operands, 2)),
      [&](Value* k, const std::vector<Value*>& carried) {
        values_[arguments[0]] = {b_.CreateTrunc(k, codegen::type_of(context_, kernel_.index_type))};
        set(arguments, unflatten(n.results, carried), 1);
        return flatten(n.results, block(n.blocks[0]));
      },
      is_unrolled(n));
  set(n.results, unflatten(n.results, results));
  touched_.add(before);
}

void GpuKernelEmitter::while_loop(const Node& n) {
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
  const AccessSummary tested = touched_;
  b_.CreateCondBr(go[0][0], turn, after);
  b_.SetInsertPoint(turn);
  const std::vector<Value*> next = flatten(n.results, block(n.blocks[1]));
  for (size_t i = 0; i < phis.size(); ++i) phis[i]->addIncoming(next[i], b_.GetInsertBlock());
  b_.CreateBr(test);
  b_.SetInsertPoint(after);
  set(n.results, unflatten(n.results, carried));
  touched_ = tested;
}

void GpuKernelEmitter::if_else(const Node& n) {
  BasicBlock* const sides[] = {BasicBlock::Create(context_, "then", function_),
                               BasicBlock::Create(context_, "else", function_)};
  BasicBlock* const after = BasicBlock::Create(context_, "after", function_);
  b_.CreateCondBr(get(n.operands[0]), sides[0], sides[1]);
  const AccessSummary before = touched_;
  AccessSummary either;
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

std::vector<llvm::Value*> GpuKernelEmitter::where(
    Value* condition, const std::vector<Value*>& otherwise,
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
