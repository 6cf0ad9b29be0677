#include "backends/cpu/codegen/emitter.h"

#include <llvm/TargetParser/Triple.h>

#include <algorithm>

#include "backends/llvm/operations.h"
#include "backends/llvm/remainder.h"

namespace tenon::cpu {

using kernel::Node;
using kernel::NodeId;
using kernel::OpCode;
using kernel::ValueId;

CpuKernelEmitter::CpuKernelEmitter(llvm::Module& module, const kernel::Kernel& kernel,
                                   int64_t vector_bytes)
    : KernelEmitter(module, kernel), vector_bytes_(vector_bytes) {}

CpuKernelFunction CpuKernelEmitter::run(const std::string& name) {
  make_function(name);
  grid_loop();
  return {function_, scratch_bytes_};
}

void CpuKernelEmitter::make_function(const std::string& name) {
  std::vector<llvm::Type*> types(kernel_.buffer_count, b_.getPtrTy());
  for (const ValueId scalar : kernel_.scalars) {
    types.push_back(codegen::type_of(context_, kernel_.value(scalar).type));
  }
  types.insert(types.end(), {b_.getInt64Ty(), b_.getInt64Ty(), b_.getPtrTy(), b_.getPtrTy()});
  function_ = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), types, false),
                                     llvm::Function::ExternalLinkage, name, module_);
  function_->setDoesNotThrow();
  function_->setVisibility(llvm::Function::HiddenVisibility);
  auto* argument = function_->arg_begin();
  for (kernel::MemoryId m = 0; m < kernel_.buffer_count; ++m) {
    const kernel::Memory& buffer = kernel_.memory(m);
    if (!may_alias(m)) argument->addAttr(llvm::Attribute::NoAlias);
    if (buffer.access == kernel::Access::kIn) argument->addAttr(llvm::Attribute::ReadOnly);
    memories_[m] = &*argument++;
  }
  for (const ValueId scalar : kernel_.scalars) values_[scalar] = {&*argument++, nullptr, 0};
  b_.SetInsertPoint(BasicBlock::Create(context_, "entry", function_));
}

void CpuKernelEmitter::grid_loop() {
  const size_t count = function_->arg_size();
  Value* const begin = function_->getArg(static_cast<unsigned>(count - 4));
  Value* const end = function_->getArg(static_cast<unsigned>(count - 3));
  scratch_ = function_->getArg(static_cast<unsigned>(count - 2));
  stops_ = function_->getArg(static_cast<unsigned>(count - 1));
  exit_ = BasicBlock::Create(context_, "exit", function_);
  const std::vector<ValueId>& indices = kernel_.block(kernel_.body).arguments;
  loop(begin, end, 1, [&](Value* place) {
    set_indices(indices, kernel_.grid, place);
    block(kernel_.body);
  });
  b_.CreateBr(exit_);
  b_.SetInsertPoint(exit_);
  b_.CreateRetVoid();
}

// --- Values

llvm::Type* CpuKernelEmitter::type_of(ElementType type, bool varying) {
  llvm::Type* const scalar = codegen::type_of(context_, type);
  if (!varying) return scalar;
  return llvm::FixedVectorType::get(scalar, static_cast<unsigned>(width_));
}

CpuKernelEmitter::Value* CpuKernelEmitter::index(int64_t value) {
  return codegen::constant(context_, kernel_.index_type, static_cast<uint64_t>(value));
}

// <0, stride, 2 * stride …>
CpuKernelEmitter::Value* CpuKernelEmitter::steps(llvm::Type* element, int64_t stride) {
  std::vector<llvm::Constant*> list;
  for (int64_t lane = 0; lane < width_; ++lane) {
    list.push_back(llvm::ConstantInt::getSigned(element, lane * stride));
  }
  return llvm::ConstantVector::get(list);
}

CpuKernelEmitter::Value* CpuKernelEmitter::vector_of(const Lanes& lanes) {
  if (lanes.vector != nullptr) return lanes.vector;
  Value* const splat = b_.CreateVectorSplat(static_cast<unsigned>(width_), lanes.scalar);
  if (lanes.stride == 0) return splat;
  return b_.CreateAdd(splat, steps(lanes.scalar->getType(), lanes.stride));
}

CpuKernelEmitter::Value* CpuKernelEmitter::as(ValueId like, const Lanes& lanes) {
  return varies(like) ? vector_of(lanes) : lanes.scalar;
}

Lanes CpuKernelEmitter::from(ValueId like, Value* value) {
  if (varies(like)) return {nullptr, value, 0};
  return {value, nullptr, 0};
}

codegen::LlvmValues CpuKernelEmitter::flatten(const Ids& like, const Many& lanes) {
  codegen::LlvmValues list;
  for (size_t k = 0; k < like.size(); ++k) list.push_back(as(like[k], lanes[k]));
  return list;
}

CpuKernelEmitter::Many CpuKernelEmitter::unflatten(const Ids& like,
                                                   const codegen::LlvmValues& values) {
  Many list;
  for (size_t k = 0; k < like.size(); ++k) list.push_back(from(like[k], values[k]));
  return list;
}

// --- Operations

CpuKernelEmitter::Many CpuKernelEmitter::block(kernel::BlockId id) {
  const std::vector<NodeId>& nodes = kernel_.block(id).nodes;
  std::set<NodeId> done;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = kernel_.node(nodes[i]);
    if (node.op == OpCode::kYield) return forms(node.operands);
    if (nodes[i] == taken_) {
      // Further conditions that include it become simpler: constant masks of a pattern.
      values_[node.operands[0]] = {b_.getTrue(), nullptr, 0};
      block(node.blocks[0]);
      continue;
    }
    if (done.contains(nodes[i])) continue;
    if (width_ == 1 && kernel::is_scalar_op(node.op) && kernel::is_math(node.op)) {
      math_at_once(nodes, i, done);
    }
    const bool accesses = node.op == OpCode::kLoad || node.op == OpCode::kStore;
    if (accesses && joined(nodes, i, done)) continue;
    if (!done.contains(nodes[i])) statement(node);
  }
  return {};
}

void CpuKernelEmitter::operation(const Node& n) {
  if (known_by_pattern(n)) return;
  const ValueId result = n.results[0];
  const Many operands = forms(n.operands);
  const bool same = std::ranges::all_of(operands, [](const Lanes& each) { return each.same(); });
  if (!same) {
    if (auto in_lanes = linear(n)) {
      values_[result] = *in_lanes;
      return;
    }
  }
  std::vector<Value*> x;
  for (const Lanes& each : operands) x.push_back(same ? each.scalar : vector_of(each));
  if (kernel::is_math(n.op)) {
    Value* const value = math(n, x[0], x.size() > 1 ? x[1] : nullptr);
    values_[result] = same ? Lanes{value, nullptr, 0} : Lanes{nullptr, value, 0};
    return;
  }
  if (n.op == OpCode::kRem && divides_in_vectors(operand_type(n))) {
    Value* const value = codegen::exact_remainder(b_, x[0], x[1]);
    values_[result] = same ? Lanes{value, nullptr, 0} : Lanes{nullptr, value, 0};
    return;
  }
  if (same && (n.op == OpCode::kMin || n.op == OpCode::kMax)) {
    if (Value* const found = extremum(n, x[0], x[1])) {
      values_[result] = {found, nullptr, 0};
      return;
    }
  }
  // Inactive lanes may compute any value, so only scalars are known not to wrap around.
  Value* const value = codegen::operation(b_, n, operand_type(n), x, fits(n) && same);
  values_[result] = same ? Lanes{value, nullptr, 0} : Lanes{nullptr, value, 0};
  if (same && fits(n)) values_[result].wide = wide(n);
}

// Whether remainders of a type are taken by divisions of f64: on targets that have vectors of them,
// and for f64 itself fma, as processors with long vectors and those of AArch64 do.
bool CpuKernelEmitter::divides_in_vectors(ElementType type) const {
  const bool is_fused = vector_bytes_ >= 32 || llvm::Triple(module_.getTargetTriple()).isAArch64();
  return (type == ElementType::kF32 && vector_bytes_ >= 16) ||
         (type == ElementType::kF64 && is_fused);
}

// On x86 llvm.maximum finds the sign of a zero in an integer register, from where it takes long to
// come back. Of equal numbers, both bits of the sign make that of the result.
CpuKernelEmitter::Value* CpuKernelEmitter::extremum(const Node& n, Value* x, Value* y) {
  const ElementType type = operand_type(n);
  const bool is_real = type == ElementType::kF32 || type == ElementType::kF64;
  const bool known = llvm::isa<llvm::Constant>(x) || llvm::isa<llvm::Constant>(y);
  if (!is_real || known || !llvm::Triple(module_.getTargetTriple()).isX86()) return nullptr;
  const bool greater = n.op == OpCode::kMax;
  llvm::Type* const bits = type == ElementType::kF32 ? b_.getInt32Ty() : b_.getInt64Ty();
  Value* const left = b_.CreateBitCast(x, bits);
  Value* const right = b_.CreateBitCast(y, bits);
  Value* const both = greater ? b_.CreateAnd(left, right) : b_.CreateOr(left, right);
  Value* const takes_x = greater ? b_.CreateFCmpOGT(x, y) : b_.CreateFCmpOLT(x, y);
  Value* const of_equal = b_.CreateSelect(
      b_.CreateFCmpOEQ(x, y), b_.CreateBitCast(both, x->getType()), b_.CreateSelect(takes_x, x, y));
  return b_.CreateSelect(b_.CreateFCmpUNO(x, x), x, of_equal);
}

Lanes CpuKernelEmitter::index_from(Value* wide, int64_t stride) {
  return {b_.CreateTrunc(wide, codegen::type_of(context_, kernel_.index_type)), nullptr, stride,
          wide};
}

CpuKernelEmitter::Value* CpuKernelEmitter::wide_of(const Lanes& lanes) {
  return lanes.wide != nullptr ? lanes.wide : b_.CreateSExt(lanes.scalar, b_.getInt64Ty());
}

// The same sum, difference or product in 64 bits, so that an address needs no extension in a loop.
CpuKernelEmitter::Value* CpuKernelEmitter::wide(const Node& n) {
  if (kernel_.value(n.results[0]).type != kernel_.index_type) return nullptr;
  if (n.op != OpCode::kAdd && n.op != OpCode::kSub && n.op != OpCode::kMul) return nullptr;
  Value* x[2];
  for (size_t i = 0; i < 2; ++i) x[i] = wide_of(form(n.operands[i]));
  if (n.op == OpCode::kAdd) return b_.CreateAdd(x[0], x[1], "", false, true);
  if (n.op == OpCode::kSub) return b_.CreateSub(x[0], x[1], "", false, true);
  return b_.CreateMul(x[0], x[1], "", false, true);
}

// Index arithmetic that provably does not wrap, as scalar and stride: sums, differences, products
// with a constant.
std::optional<Lanes> CpuKernelEmitter::linear(const Node& n) {
  const ValueId result = n.results[0];
  const ElementType type = kernel_.value(result).type;
  if (!is_signed_integer(type) || ranges_.may_overflow(result)) return std::nullopt;
  const Many x = forms(n.operands);
  for (const Lanes& each : x) {
    if (each.vector != nullptr) return std::nullopt;
  }
  switch (n.op) {
    case OpCode::kAdd:
      return Lanes{b_.CreateAdd(x[0].scalar, x[1].scalar), nullptr, x[0].stride + x[1].stride,
                   wide(n)};
    case OpCode::kSub:
      return Lanes{b_.CreateSub(x[0].scalar, x[1].scalar), nullptr, x[0].stride - x[1].stride,
                   wide(n)};
    case OpCode::kMul: {
      const size_t which = x[0].same() ? 0 : 1;
      const auto* by = llvm::dyn_cast<llvm::ConstantInt>(x[which].scalar);
      if (by == nullptr || !x[which].same()) return std::nullopt;
      return Lanes{b_.CreateMul(x[0].scalar, x[1].scalar), nullptr,
                   x[1 - which].stride * by->getSExtValue(), wide(n)};
    }
    case OpCode::kConvert: {
      const ElementType from = kernel_.value(n.operands[0]).type;
      if (!is_signed_integer(from)) return std::nullopt;
      return Lanes{b_.CreateSExtOrTrunc(x[0].scalar, codegen::type_of(context_, type)), nullptr,
                   x[0].stride};
    }
    default:
      return std::nullopt;
  }
}

}  // namespace tenon::cpu
