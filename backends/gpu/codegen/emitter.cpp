#include "backends/gpu/codegen/emitter.h"

#include <llvm/IR/ConstantRange.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>

#include "backends/gpu/codegen/remainder.h"
#include "backends/llvm/operations.h"

namespace tenon::gpu {

using kernel::Node;
using kernel::NodeId;
using kernel::OpCode;
using kernel::ValueId;
using kernel::ValueKind;

namespace {

constexpr unsigned kGlobal = 1;  // Address spaces.
constexpr unsigned kShared = 3;
constexpr int64_t kBlocksAlongX = INT32_MAX;

}  // namespace

GpuKernelEmitter::GpuKernelEmitter(llvm::Module& module, const kernel::Kernel& kernel)
    : KernelEmitter(module, kernel), plan_(kernel, ranges_) {}

GpuKernelFunction GpuKernelEmitter::run(const std::string& name) {
  make_function(name);
  make_shared_memory(name);
  thread_ = special(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, plan_.threads());
  grid_indices();
  block(kernel_.body);
  b_.CreateRetVoid();
  return {function_, plan_.threads(), plan_.shared_bytes(), plan_.private_bytes()};
}

void GpuKernelEmitter::make_function(const std::string& name) {
  std::vector<llvm::Type*> types(kernel_.buffer_count, b_.getPtrTy(kGlobal));
  for (const ValueId scalar : kernel_.scalars) {
    types.push_back(codegen::memory_type_of(context_, kernel_.value(scalar).type));
  }
  function_ = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), types, false),
                                     llvm::Function::ExternalLinkage, name, module_);
  function_->setCallingConv(llvm::CallingConv::PTX_Kernel);
  function_->setDoesNotThrow();
  llvm::Metadata* const bound[] = {llvm::ConstantAsMetadata::get(function_),
                                   llvm::MDString::get(context_, "maxntidx"),
                                   llvm::ConstantAsMetadata::get(b_.getInt32(plan_.threads()))};
  module_.getOrInsertNamedMetadata("nvvm.annotations")
      ->addOperand(llvm::MDNode::get(context_, bound));
  b_.SetInsertPoint(BasicBlock::Create(context_, "entry", function_));
  auto* argument = function_->arg_begin();
  for (kernel::MemoryId m = 0; m < kernel_.buffer_count; ++m) {
    const kernel::Memory& buffer = kernel_.memory(m);
    const bool only_read = buffer.access == kernel::Access::kIn;
    // A buffer that one thread stores to and another loads from must not be noalias: passes could
    // move its values across barriers.
    if (!may_alias(m) && buffer.access != kernel::Access::kInOut) {
      argument->addAttr(llvm::Attribute::NoAlias);
    }
    if (only_read) argument->addAttr(llvm::Attribute::ReadOnly);
    argument->addAttr(llvm::Attribute::getWithAlignment(context_, llvm::Align(64)));
    memories_[m] = &*argument++;
  }
  for (const ValueId scalar : kernel_.scalars) {
    Value* const given = &*argument++;
    const bool pred = is_pred(kernel_.value(scalar).type);
    values_[scalar] = {pred ? b_.CreateTrunc(given, b_.getInt1Ty()) : given};
  }
}

void GpuKernelEmitter::make_shared_memory(const std::string& name) {
  if (plan_.shared_bytes() == 0) return;
  auto* const type =
      llvm::ArrayType::get(b_.getInt8Ty(), static_cast<uint64_t>(plan_.shared_bytes()));
  shared_ = new llvm::GlobalVariable(module_, type, /*isConstant=*/false,
                                     llvm::GlobalValue::InternalLinkage,
                                     llvm::UndefValue::get(type), name + ".shared", nullptr,
                                     llvm::GlobalValue::NotThreadLocal, kShared);
  shared_->setAlignment(llvm::Align(16));
}

GpuKernelEmitter::Value* GpuKernelEmitter::special(llvm::Intrinsic::ID id, uint64_t below) {
  llvm::CallInst* const call = b_.CreateIntrinsic(id, {}, {});
  if (below != 0)
    call->addRangeRetAttr(llvm::ConstantRange(llvm::APInt(32, 0), llvm::APInt(32, below)));
  return call;
}

void GpuKernelEmitter::grid_indices() {
  const int64_t blocks = std::max<int64_t>(element_count(kernel_.grid), 1);
  Value* place = nullptr;
  if (blocks <= kBlocksAlongX) {
    place = special(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, static_cast<uint64_t>(blocks));
  } else {
    const auto wide = [&](llvm::Intrinsic::ID id) {
      return b_.CreateZExt(special(id, 0), b_.getInt64Ty());
    };
    place = b_.CreateAdd(b_.CreateMul(wide(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_y),
                                      wide(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x)),
                         wide(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x));
    BasicBlock* const inside = BasicBlock::Create(context_, "inside", function_);
    BasicBlock* const beyond = BasicBlock::Create(context_, "beyond", function_);
    b_.CreateCondBr(b_.CreateICmpULT(place, number(place->getType(), blocks)), inside, beyond);
    b_.SetInsertPoint(beyond);
    b_.CreateRetVoid();
    b_.SetInsertPoint(inside);
  }
  set_indices(kernel_.block(kernel_.body).arguments, kernel_.grid, place);
}

RunValues GpuKernelEmitter::index_from(Value* place) {
  return {b_.CreateZExtOrTrunc(place, codegen::type_of(context_, kernel_.index_type))};
}

// --- Values

size_t GpuKernelEmitter::width_of(ValueId value) const {
  if (runs_ == nullptr || runs_->same(value)) return 1;
  return static_cast<size_t>(runs_->width());
}

llvm::Value* GpuKernelEmitter::scalar(ValueId value, size_t i) {
  const RunValues list = form(value);
  return list[list.size() == 1 ? 0 : i];
}

codegen::LlvmValues GpuKernelEmitter::flatten(const Ids& like, const Many& lists) {
  codegen::LlvmValues values;
  for (size_t k = 0; k < like.size(); ++k) {
    const RunValues& list = lists[k];
    for (size_t i = 0; i < width_of(like[k]); ++i) values.push_back(list[list.size() == 1 ? 0 : i]);
  }
  return values;
}

GpuKernelEmitter::Many GpuKernelEmitter::unflatten(const Ids& like,
                                                   const codegen::LlvmValues& values) {
  Many lists;
  auto at = values.begin();
  for (const ValueId each : like) {
    const auto end = at + static_cast<std::ptrdiff_t>(width_of(each));
    lists.emplace_back(at, end);
    at = end;
  }
  return lists;
}

// --- Operations

void GpuKernelEmitter::operation(const Node& n) {
  const ValueId result = n.results[0];
  const ElementType from = operand_type(n);
  RunValues list;
  for (size_t i = 0; i < width_of(result); ++i) {
    std::vector<Value*> x;
    for (const ValueId operand : n.operands) x.push_back(scalar(operand, i));
    const bool real_remainder = n.op == OpCode::kRem && is_float(from);
    list.push_back(real_remainder ? remainder(from, x[0], x[1])
                                  : codegen::operation(b_, n, from, x, fits(n)));
  }
  values_[result] = std::move(list);
}

GpuKernelEmitter::Value* GpuKernelEmitter::remainder(ElementType type, Value* x, Value* y) {
  return b_.CreateCall(remainder_function(module_, codegen::type_of(context_, type)), {x, y});
}

}  // namespace tenon::gpu
