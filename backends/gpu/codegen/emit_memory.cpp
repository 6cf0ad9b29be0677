// Loads, stores, atomics, and the memory of a block and of a thread.
#include <algorithm>

#include "backends/gpu/codegen/emitter.h"
#include "backends/llvm/operations.h"

namespace tenon::gpu {

using kernel::Memory;
using kernel::Node;
using kernel::Space;

namespace {

llvm::Align align_of(ElementType type) { return llvm::Align(storage_bytes(type)); }

}  // namespace

llvm::Value* GpuKernelEmitter::shared_place(int64_t offset) {
  return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), shared_, static_cast<uint64_t>(offset));
}

// A thread's array has an instance for each of its iterations of the lanes loop.
void GpuKernelEmitter::declare(kernel::MemoryId memory) {
  const Memory& m = kernel_.memory(memory);
  if (m.space == Space::kScratch) {
    memories_[memory] = shared_place(plan_.offset(memory));
    return;
  }
  int64_t elements = plan_.instances(memory);
  for (size_t d = m.lane_rank; d < m.dims.size(); ++d) elements *= m.dims[d];
  const llvm::IRBuilder<>::InsertPointGuard guard(b_);
  BasicBlock& entry = function_->getEntryBlock();
  b_.SetInsertPoint(&entry, entry.begin());
  llvm::AllocaInst* const array =
      b_.CreateAlloca(llvm::ArrayType::get(codegen::memory_type_of(context_, m.type),
                                           static_cast<uint64_t>(std::max<int64_t>(elements, 1))));
  array->setAlignment(align_of(m.type));
  memories_[memory] = array;
}

llvm::Value* GpuKernelEmitter::address(kernel::MemoryId memory, const Ids& indices, size_t first,
                                       size_t i) {
  const Memory& m = kernel_.memory(memory);
  const Dims strides = m.resolved_strides();
  // Addresses mostly fit 32 bits, the size of a register.
  const bool narrow = m.span() < INT32_MAX && kernel_.index_type == ElementType::kS32;
  llvm::Type* const type = narrow ? b_.getInt32Ty() : b_.getInt64Ty();
  Value* place = number(type, 0);
  const auto add = [&](Value* index, int64_t stride) {
    place = b_.CreateAdd(place, b_.CreateMul(index, number(type, stride), "", false, true), "",
                         false, true);
  };
  const bool own = m.space == Space::kPrivate;
  if (own) {
    int64_t elements = 1;
    for (size_t d = m.lane_rank; d < m.dims.size(); ++d) elements *= m.dims[d];
    add(b_.CreateZExtOrTrunc(turn_, type), elements);
  }
  for (size_t d = own ? m.lane_rank : 0; d < strides.size(); ++d) {
    add(b_.CreateSExt(scalar(indices[first + d], i), type), strides[d]);
  }
  return b_.CreateInBoundsGEP(codegen::memory_type_of(context_, m.type), memories_[memory], place);
}

// A vector with the elements of a run.
llvm::FixedVectorType* GpuKernelEmitter::run_type(ElementType type) const {
  const auto width = static_cast<unsigned>(runs_->width());
  return llvm::FixedVectorType::get(codegen::memory_type_of(context_, type), width);
}

// The type of an access to a run: a vector of its elements, or of 32-bit words if elements are
// narrower, because an access moves at most four values.
llvm::Type* GpuKernelEmitter::access_type(ElementType type) {
  const int64_t bytes = runs_->width() * static_cast<int64_t>(storage_bytes(type));
  if (storage_bytes(type) >= 4) return run_type(type);
  if (bytes <= 4) return b_.getIntNTy(static_cast<unsigned>(bytes) * 8);
  return llvm::FixedVectorType::get(b_.getInt32Ty(), static_cast<unsigned>(bytes / 4));
}

void GpuKernelEmitter::load(const Node& n) {
  const kernel::ValueId result = n.results[0];
  const bool own = kernel_.memory(n.memories[0]).space == Space::kPrivate;
  if (outside() && !own) touch(plan_.touched(n));
  Value* const place = address(n.memories[0], n.operands, 0);
  const auto value_of = [&](Value* loaded) {
    return is_pred(n.type) ? b_.CreateTrunc(loaded, b_.getInt1Ty()) : loaded;
  };
  const size_t width = width_of(result);
  if (width == 1) {
    values_[result] = {value_of(
        b_.CreateAlignedLoad(codegen::memory_type_of(context_, n.type), place, align_of(n.type)))};
    return;
  }
  Value* const run =
      b_.CreateAlignedLoad(run_type(n.type), place, llvm::Align(width * storage_bytes(n.type)));
  RunValues list;
  for (size_t i = 0; i < width; ++i) list.push_back(value_of(b_.CreateExtractElement(run, i)));
  values_[result] = std::move(list);
}

void GpuKernelEmitter::store(const Node& n) {
  const auto in_memory = [&](Value* value) {
    return is_pred(n.type) ? b_.CreateZExt(value, b_.getInt8Ty()) : value;
  };
  if (runs_ != nullptr) {
    const auto width = static_cast<size_t>(runs_->width());
    Value* run = llvm::PoisonValue::get(run_type(n.type));
    for (size_t i = 0; i < width; ++i) {
      run = b_.CreateInsertElement(run, in_memory(scalar(n.operands[0], i)), i);
    }
    run = b_.CreateBitCast(run, access_type(n.type));
    b_.CreateAlignedStore(run, address(n.memories[0], n.operands, 1),
                          llvm::Align(width * storage_bytes(n.type)));
    return;
  }
  const auto emit = [&] {
    b_.CreateAlignedStore(in_memory(scalar(n.operands[0])), address(n.memories[0], n.operands, 1),
                          align_of(n.type));
  };
  if (!outside()) return emit();
  touch(plan_.touched(n));
  as_first(emit);
}

void GpuKernelEmitter::atomic(const Node& n) {
  const auto emit = [&] {
    b_.CreateAtomicRMW(codegen::atomic_operation(n.atomic, n.type),
                       address(n.memories[0], n.operands, 1), scalar(n.operands[0]),
                       align_of(n.type), llvm::AtomicOrdering::Monotonic);
  };
  if (!outside()) return emit();
  touch(plan_.touched(n));
  as_first(emit);
}

}  // namespace tenon::gpu
