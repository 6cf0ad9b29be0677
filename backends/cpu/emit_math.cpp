// Math functions of scalars: those of one block that do not wait for each other become the lanes of
// a vector, as in a loop over the scalars of a model's state.
#include <algorithm>

#include "backends/cpu/emitter.h"
#include "backends/llvm/math.h"
#include "backends/llvm/operations.h"

namespace tenon::cpu {

using kernel::Node;
using kernel::NodeId;
using kernel::ValueId;

namespace {

constexpr size_t kFewest = 3;  // that are worth it

}  // namespace

Emitter::Value* Emitter::math(const Node& n, Value* x, Value* y) {
  return codegen::math_function(b_, n.op, n.type, x, y, {vector_bytes_ >= 64});
}

// What of the nodes from `first` on can be computed at once with it, `most` at most, and what of
// the nodes between has to be computed before, in order.
Emitter::Batch Emitter::batch_of(const std::vector<NodeId>& nodes, size_t first, size_t most,
                                 const std::set<NodeId>& done) const {
  Batch batch;
  const Node& like = kernel_.node(nodes[first]);
  std::set<ValueId> waiting;             // for what is not pure, or for a math function.
  std::map<ValueId, NodeId> computable;  // before its turn.
  for (size_t i = first; i < nodes.size() && batch.functions.size() < most; ++i) {
    const Node& n = kernel_.node(nodes[i]);
    if (done.contains(nodes[i])) continue;
    const bool waits =
        std::ranges::any_of(n.operands, [&](ValueId each) { return waiting.contains(each); });
    const bool pure = kernel::is_scalar_op(n.op);
    if (pure && !waits && n.op == like.op && n.type == like.type) {
      batch.functions.push_back(nodes[i]);
    } else if (pure && !waits && !kernel::is_math(n.op)) {
      computable[n.results[0]] = nodes[i];
      continue;
    }
    waiting.insert(n.results.begin(), n.results.end());
  }
  std::set<NodeId> before;
  const std::function<void(NodeId)> need = [&](NodeId id) {
    for (const ValueId operand : kernel_.node(id).operands) {
      const auto found = computable.find(operand);
      if (found != computable.end() && before.insert(found->second).second) need(found->second);
    }
  };
  for (const NodeId function : batch.functions) need(function);
  for (size_t i = first; i < nodes.size(); ++i) {
    if (before.contains(nodes[i])) batch.before.push_back(nodes[i]);
  }
  return batch;
}

void Emitter::math_at_once(const std::vector<NodeId>& nodes, size_t first, std::set<NodeId>& done) {
  const Node& like = kernel_.node(nodes[first]);
  const auto most = static_cast<size_t>(vector_bytes_) / storage_bytes(like.type);
  const Batch batch = batch_of(nodes, first, most, done);
  const size_t count = batch.functions.size();
  if (count < kFewest) return;
  for (const NodeId each : batch.before) operation(kernel_.node(each));
  done.insert(batch.before.begin(), batch.before.end());
  // Lanes that nobody asks for are as the first.
  auto* const vector = llvm::FixedVectorType::get(codegen::type_of(context_, like.type),
                                                  static_cast<unsigned>(most));
  const auto gather = [&](size_t operand) {
    Value* packed =
        b_.CreateVectorSplat(static_cast<unsigned>(most), get(like.operands[operand]).scalar);
    for (size_t i = 1; i < count; ++i) {
      const Node& n = kernel_.node(batch.functions[i]);
      packed = b_.CreateInsertElement(packed, get(n.operands[operand]).scalar, i);
    }
    return b_.CreateBitCast(packed, vector);
  };
  Value* const x = gather(0);
  Value* const results = math(like, x, like.operands.size() > 1 ? gather(1) : nullptr);
  for (size_t i = 0; i < count; ++i) {
    const Node& n = kernel_.node(batch.functions[i]);
    values_[n.results[0]] = {b_.CreateExtractElement(results, i), nullptr, 0};
  }
  done.insert(batch.functions.begin(), batch.functions.end());
}

}  // namespace tenon::cpu
