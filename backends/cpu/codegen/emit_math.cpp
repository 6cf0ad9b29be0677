// Math functions on scalars: independent calls in one block become the lanes of a vector, as in a
// loop over the scalars of a model's state.
#include <algorithm>

#include "backends/cpu/codegen/emitter.h"
#include "backends/llvm/abreast.h"
#include "backends/llvm/math.h"
#include "backends/llvm/operations.h"

namespace tenon::cpu {

using kernel::Node;
using kernel::NodeId;
using kernel::ValueId;

namespace {

constexpr size_t kFewest = 3;        // for which it pays
constexpr int64_t kMostInPlace = 4;  // expansions of a function; further uses call a shared body.

}  // namespace

CpuKernelEmitter::Value* CpuKernelEmitter::math(const Node& n, Value* x, Value* y) {
  const codegen::MathTarget target = {vector_bytes_ >= 64};
  const auto is_alike = [&](const Node& other) { return other.op == n.op && other.type == n.type; };
  // Scalars are computed together, as many as a vector has lanes.
  const int64_t uses = width_ == 1 ? ++math_in_place_[{n.op, n.type}]
                                   : std::ranges::count_if(kernel_.nodes, is_alike);
  if (uses <= kMostInPlace) return codegen::math_function(b_, n.op, n.type, x, y, target);
  llvm::SmallVector<Value*, 2> arguments = {x};
  if (y != nullptr) arguments.push_back(y);
  return b_.CreateCall(math_body(n, arguments, target), arguments);
}

llvm::Function* CpuKernelEmitter::math_body(const Node& n, llvm::ArrayRef<Value*> arguments,
                                            const codegen::MathTarget& target) {
  llvm::Type* const type = arguments[0]->getType();
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  const std::string name =
      fmt::format("tenon.{}.{}.{}", kernel::op_name(n.op), tenon::name_of(n.type),
                  vector ? vector->getNumElements() : 1);
  if (llvm::Function* const made = module_.getFunction(name)) return made;
  const llvm::SmallVector<llvm::Type*, 2> types(arguments.size(), type);
  auto* const body = llvm::Function::Create(llvm::FunctionType::get(type, types, false),
                                            llvm::Function::InternalLinkage, name, module_);
  body->setDoesNotThrow();
  body->addFnAttr(llvm::Attribute::NoInline);
  body->setDoesNotAccessMemory();
  codegen::keep_abreast(*body);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(context_, "entry", body));
  Value* const y = arguments.size() > 1 ? body->getArg(1) : nullptr;
  b.CreateRet(codegen::math_function(b, n.op, n.type, body->getArg(0), y, target));
  return body;
}

// The math functions from node `first` on that can be computed together with it, at most `most`,
// and the nodes between them that must be computed first, in order.
CpuKernelEmitter::Batch CpuKernelEmitter::batch_of(const std::vector<NodeId>& nodes, size_t first,
                                                   size_t most,
                                                   const std::set<NodeId>& done) const {
  Batch batch;
  const Node& like = kernel_.node(nodes[first]);
  std::set<ValueId> waiting;             // that depend on impure nodes, or on a math function.
  std::map<ValueId, NodeId> computable;  // before its position.
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

void CpuKernelEmitter::math_at_once(const std::vector<NodeId>& nodes, size_t first,
                                    std::set<NodeId>& done) {
  const Node& like = kernel_.node(nodes[first]);
  const auto most = static_cast<size_t>(vector_bytes_) / storage_bytes(like.type);
  const Batch batch = batch_of(nodes, first, most, done);
  const size_t count = batch.functions.size();
  if (count < kFewest) return;
  for (const NodeId each : batch.before) operation(kernel_.node(each));
  done.insert(batch.before.begin(), batch.before.end());
  // Unused lanes repeat the first one.
  auto* const vector = llvm::FixedVectorType::get(codegen::type_of(context_, like.type),
                                                  static_cast<unsigned>(most));
  const auto gather = [&](size_t operand) {
    Value* packed =
        b_.CreateVectorSplat(static_cast<unsigned>(most), form(like.operands[operand]).scalar);
    for (size_t i = 1; i < count; ++i) {
      const Node& n = kernel_.node(batch.functions[i]);
      packed = b_.CreateInsertElement(packed, form(n.operands[operand]).scalar, i);
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
