// Loads, stores, atomics, and the memory of a workgroup.
#include <bit>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "backends/cpu/codegen/emitter.h"
#include "backends/llvm/operations.h"

namespace tenon::cpu {

using kernel::Memory;
using kernel::Node;

namespace {

constexpr int64_t kScratchAlignment = 64;
constexpr int64_t kMostOnStack = 4096;  // Size of one memory, in bytes.

llvm::Align align_of(ElementType type) { return llvm::Align(storage_bytes(type)); }

}  // namespace

// Small memories lie on the stack, where they may become registers.
void CpuKernelEmitter::declare(kernel::MemoryId memory) {
  memories_[memory] = memory_of(std::max<int64_t>(kernel_.memory(memory).bytes(), 1));
}

// The memory has whole words, which gathers of bytes read (gathered_in_words).
CpuKernelEmitter::Value* CpuKernelEmitter::memory_of(int64_t size) {
  constexpr int64_t kWord = 4;
  const int64_t bytes = (size + kWord - 1) / kWord * kWord;
  if (bytes <= kMostOnStack) {
    const llvm::IRBuilder<>::InsertPointGuard guard(b_);
    BasicBlock& entry = function_->getEntryBlock();
    b_.SetInsertPoint(&entry, entry.begin());
    llvm::AllocaInst* const place =
        b_.CreateAlloca(llvm::ArrayType::get(b_.getInt8Ty(), static_cast<uint64_t>(bytes)));
    place->setAlignment(llvm::Align(kScratchAlignment));
    return place;
  }
  Value* const place = b_.CreatePtrAdd(scratch_, number(scratch_bytes_));
  scratch_bytes_ += (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
  return place;
}

CpuKernelEmitter::Address CpuKernelEmitter::address(kernel::MemoryId memory, const Ids& indices,
                                                    size_t first) {
  const Memory& m = kernel_.memory(memory);
  const Dims strides = m.resolved_strides();
  llvm::Type* const element = codegen::memory_type_of(context_, m.type);
  Value* offset = number(0);
  int64_t stride = 0;
  std::vector<std::pair<Value*, int64_t>> vectors;
  for (size_t d = 0; d < strides.size(); ++d) {
    const Lanes at = form(indices[first + d]);
    if (at.vector != nullptr) {
      vectors.emplace_back(at.vector, strides[d]);
      continue;
    }
    offset = b_.CreateAdd(offset, b_.CreateMul(wide_of(at), number(strides[d]), "", false, true),
                          "", false, true);
    stride += at.stride * strides[d];
  }
  Value* const base = b_.CreateGEP(element, memories_[memory], offset);
  if (vectors.empty() && (std::abs(stride) <= 1 || width_ == 1)) return {base, stride, false};
  // The offsets of lanes from the first lane mostly fit 32 bits, which takes half the registers.
  // The first lane may be masked off, with an arbitrary address.
  const bool narrow = m.span() < INT32_MAX && std::abs(stride) < (INT32_MAX - m.span()) / width_;
  llvm::Type* const integer = narrow ? b_.getInt32Ty() : b_.getInt64Ty();
  Value* places = steps(integer, stride);
  // Bytes and words are gathered as the aligned 32 bits that they are part of: there are no other
  // gathers, and a branch for each lane would replace them.
  const bool in_words = narrow && storage_bytes(m.type) < 4;
  if (in_words) {
    places = b_.CreateAdd(places, b_.CreateVectorSplat(static_cast<unsigned>(width_),
                                                       b_.CreateTrunc(offset, integer)));
  }
  for (const auto& [vector, by] : vectors) {
    Value* const wide = b_.CreateSExtOrTrunc(vector, places->getType());
    Value* const factor = llvm::ConstantInt::getSigned(places->getType(), by);
    places = b_.CreateAdd(places, b_.CreateMul(wide, factor));
  }
  Address where = {b_.CreateGEP(element, in_words ? memories_[memory] : base, places), stride,
                   true};
  if (vectors.empty()) where.first = base;
  if (in_words) {
    where.base = memories_[memory];
    where.places = places;
  }
  return where;
}

CpuKernelEmitter::Value* CpuKernelEmitter::scalar_address(const Node& n, size_t first) {
  const Memory& m = kernel_.memory(n.memories[0]);
  const Dims strides = m.resolved_strides();
  Value* offset = number(0);
  for (size_t d = 0; d < strides.size(); ++d) {
    Value* const index = wide_of(form(n.operands[first + d]));
    offset = b_.CreateAdd(offset, b_.CreateMul(index, number(strides[d]), "", false, true), "",
                          false, true);
  }
  return b_.CreateGEP(codegen::memory_type_of(context_, m.type), memories_[n.memories[0]], offset);
}

namespace {

// Adjacent lanes, a power of two of them, which one access takes without a mask.
struct LanePiece {
  int64_t begin = 0;
  int64_t size = 0;
};

// Pieces that cover the active lanes of a mask and no other; nothing if it is not known, or if they
// are many. Adjacent lanes that are no power of two are two pieces that overlap.
std::vector<LanePiece> pieces_of(const llvm::Value* mask) {
  constexpr size_t kMostPieces = 4;
  const auto* const known = llvm::dyn_cast<llvm::Constant>(mask);
  if (known == nullptr) return {};
  const int64_t lanes = llvm::cast<llvm::FixedVectorType>(mask->getType())->getNumElements();
  const auto is_active = [&](int64_t lane) {
    const llvm::Constant* const one = known->getAggregateElement(static_cast<unsigned>(lane));
    return one == nullptr ? std::nullopt : std::optional(one->isOneValue());
  };
  std::vector<LanePiece> pieces;
  for (int64_t begin = 0, end = 0; begin < lanes; begin = end + 1) {
    for (end = begin; end < lanes; ++end) {
      const std::optional<bool> active = is_active(end);
      if (!active) return {};
      if (!*active) break;
    }
    if (end == begin) continue;
    const auto size = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(end - begin)));
    pieces.push_back({begin, size});
    if (size < end - begin) pieces.push_back({end - size, size});
  }
  return pieces.size() <= kMostPieces ? pieces : std::vector<LanePiece>();
}

}  // namespace

// Vectors of bytes and words under a mask are slow or single elements on most processors, stores of
// larger elements on those whose masks are vectors (12 cycles on AMD's without AVX-512): lanes that
// are known are whole vectors.
CpuKernelEmitter::Value* CpuKernelEmitter::masked_load(llvm::FixedVectorType* vector, Value* from,
                                                       llvm::Align align, Value* mask) {
  constexpr int64_t kMaskedLoads = 32;  // The least bytes of a register of a target that has them.
  const auto lanes = static_cast<int64_t>(vector->getNumElements());
  const bool is_slow = vector->getScalarSizeInBits() < 32 || vector_bytes_ < kMaskedLoads;
  const std::vector<LanePiece> pieces = is_slow ? pieces_of(mask) : std::vector<LanePiece>();
  if (pieces.empty()) {
    return b_.CreateMaskedLoad(vector, from, align, mask, llvm::Constant::getNullValue(vector));
  }
  Value* all = llvm::Constant::getNullValue(vector);
  for (const auto [begin, size] : pieces) {
    auto* const type =
        llvm::FixedVectorType::get(vector->getElementType(), static_cast<unsigned>(size));
    Value* const piece = b_.CreateAlignedLoad(
        type, b_.CreateGEP(vector->getElementType(), from, number(begin)), align);
    std::vector<int> widened(static_cast<size_t>(lanes), -1), joined(static_cast<size_t>(lanes));
    std::iota(widened.begin(), widened.begin() + size, 0);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const bool mine = lane >= begin && lane < begin + size;
      joined[static_cast<size_t>(lane)] = static_cast<int>(mine ? lanes + lane - begin : lane);
    }
    all = b_.CreateShuffleVector(all, b_.CreateShuffleVector(piece, widened), joined);
  }
  return all;
}

void CpuKernelEmitter::masked_store(Value* value, Value* to, llvm::Align align, Value* mask) {
  llvm::Type* const element = value->getType()->getScalarType();
  const bool is_slow = element->getScalarSizeInBits() < 32 || vector_bytes_ < kMaskRegisters;
  const std::vector<LanePiece> pieces = is_slow ? pieces_of(mask) : std::vector<LanePiece>();
  if (pieces.empty()) {
    b_.CreateMaskedStore(value, to, align, mask);
    return;
  }
  for (const auto [begin, size] : pieces) {
    std::vector<int> which(static_cast<size_t>(size));
    std::iota(which.begin(), which.end(), static_cast<int>(begin));
    b_.CreateAlignedStore(b_.CreateShuffleVector(value, which),
                          b_.CreateGEP(element, to, number(begin)), align);
  }
}

CpuKernelEmitter::Value* CpuKernelEmitter::mask_or_all() {
  if (mask_ != nullptr) return mask_;
  return llvm::Constant::getAllOnesValue(
      llvm::FixedVectorType::get(b_.getInt1Ty(), static_cast<unsigned>(width_)));
}

CpuKernelEmitter::Value* CpuKernelEmitter::reversed(Value* vector) {
  return vector == nullptr ? nullptr : b_.CreateVectorReverse(vector);
}

CpuKernelEmitter::Value* CpuKernelEmitter::lowest(const Address& where, llvm::Type* element) {
  return where.stride < 0 ? b_.CreateGEP(element, where.pointer, number(1 - width_))
                          : where.pointer;
}

// Memories are aligned to 32 bits and more, and so end within a word that can be read (scratch
// memory has whole words, and no page ends within one). Elements of a word lie in the order of its
// bits on little-endian machines, the only ones that the backend compiles for.
CpuKernelEmitter::Value* CpuKernelEmitter::gathered_in_words(const Address& where,
                                                             llvm::Type* element) {
  const unsigned bits = element->getScalarSizeInBits();
  llvm::Type* const type = where.places->getType();
  const auto splat = [&](uint64_t value) { return llvm::ConstantInt::get(type, value); };
  const unsigned shift = bits == 8 ? 2 : 1;
  Value* const words =
      b_.CreateGEP(b_.getInt32Ty(), where.base, b_.CreateLShr(where.places, splat(shift)));
  Value* const gathered = b_.CreateMaskedGather(type, words, llvm::Align(4), mask_or_all(),
                                                llvm::Constant::getNullValue(type));
  Value* const within = b_.CreateAnd(where.places, splat((1U << shift) - 1));
  Value* const shifted = b_.CreateLShr(gathered, b_.CreateMul(within, splat(bits)));
  const auto width = static_cast<unsigned>(width_);
  Value* const narrow =
      b_.CreateTrunc(shifted, llvm::FixedVectorType::get(b_.getIntNTy(bits), width));
  return b_.CreateBitCast(narrow, llvm::FixedVectorType::get(element, width));
}

void CpuKernelEmitter::load(const Node& n) {
  if (load_by_pattern(n)) return;
  if (!provided_.empty()) {
    const auto found = provided_.find(static_cast<kernel::NodeId>(&n - kernel_.nodes.data()));
    if (found != provided_.end()) {
      Value* const known = found->second;
      values_[n.results[0]] = {
          nullptr, is_pred(n.type) ? b_.CreateTrunc(known, type_of(n.type, true)) : known, 0};
      return;
    }
  }
  Value* value = is_pred(n.type) ? nullptr : load_apart(n);
  if (value != nullptr) {
    values_[n.results[0]] = {nullptr, value, 0};
    return;
  }
  const Address where = address(n.memories[0], n.operands, 0);
  llvm::Type* const element = codegen::memory_type_of(context_, n.type);
  const llvm::Align align = align_of(n.type);
  auto* const vector = llvm::FixedVectorType::get(element, static_cast<unsigned>(width_));
  if (where.places != nullptr) {
    value = gathered_in_words(where, element);
  } else if (where.scattered) {
    value = b_.CreateMaskedGather(vector, where.pointer, align, mask_or_all(),
                                  llvm::Constant::getNullValue(vector));
  } else if (where.stride == 0 || width_ == 1) {
    value = b_.CreateAlignedLoad(element, where.pointer, align);
  } else {
    const bool is_reversed = where.stride < 0;
    Value* const from = lowest(where, element);
    Value* const mask = is_reversed ? reversed(mask_) : mask_;
    value = mask == nullptr ? static_cast<Value*>(b_.CreateAlignedLoad(vector, from, align))
                            : masked_load(vector, from, align, mask);
    if (is_reversed) value = reversed(value);
  }
  if (is_pred(n.type)) {
    llvm::Type* const bits =
        value->getType()->isVectorTy() ? type_of(n.type, true) : codegen::type_of(context_, n.type);
    value = b_.CreateTrunc(value, bits);
  }
  values_[n.results[0]] =
      value->getType()->isVectorTy() ? Lanes{nullptr, value, 0} : Lanes{value, nullptr, 0};
}

void CpuKernelEmitter::store(const Node& n) {
  if (store_by_pattern(n)) return;
  const Address where = address(n.memories[0], n.operands, 1);
  const Lanes lanes = form(n.operands[0]);
  const llvm::Align align = align_of(n.type);
  const auto in_memory = [&](Value* value) {
    if (!is_pred(n.type)) return value;
    llvm::Type* const byte = b_.getInt8Ty();
    return b_.CreateZExt(value,
                         value->getType()->isVectorTy()
                             ? llvm::FixedVectorType::get(byte, static_cast<unsigned>(width_))
                             : byte);
  };
  const bool one_place = !where.scattered && where.stride == 0;
  if (width_ == 1 || (one_place && lanes.same())) {
    b_.CreateAlignedStore(in_memory(lanes.scalar), where.pointer, align);
    return;
  }
  Value* const value = in_memory(vector_of(lanes));
  if (where.first != nullptr && mask_ == nullptr && vector_bytes_ < kMaskRegisters) {
    // There are no scattered stores: these are single ones, whose addresses are constants apart.
    for (int64_t lane = 0; lane < width_; ++lane) {
      b_.CreateAlignedStore(
          b_.CreateExtractElement(value, static_cast<uint64_t>(lane)),
          b_.CreateGEP(value->getType()->getScalarType(), where.first, number(lane * where.stride)),
          align);
    }
  } else if (where.scattered || one_place) {
    Value* const places = where.scattered
                              ? where.pointer
                              : b_.CreateVectorSplat(static_cast<unsigned>(width_), where.pointer);
    b_.CreateMaskedScatter(value, places, align, mask_or_all());
  } else {
    const bool is_reversed = where.stride < 0;
    Value* const to = lowest(where, codegen::memory_type_of(context_, n.type));
    Value* const mask = is_reversed ? reversed(mask_) : mask_;
    Value* const ordered = is_reversed ? reversed(value) : value;
    if (mask != nullptr) {
      masked_store(ordered, to, align, mask);
    } else {
      b_.CreateAlignedStore(ordered, to, align);
    }
  }
}

void CpuKernelEmitter::atomic(const Node& n) {
  const Address where = address(n.memories[0], n.operands, 1);
  if (kernel_.memory(n.memories[0]).space != kernel::Space::kBuffer) {
    // One thread runs a workgroup.
    Value* const old = b_.CreateAlignedLoad(codegen::memory_type_of(context_, n.type),
                                            where.pointer, align_of(n.type));
    b_.CreateAlignedStore(codegen::combination(b_, kernel::combination_of(n.atomic), n.type, old,
                                               form(n.operands[0]).scalar),
                          where.pointer, align_of(n.type));
    return;
  }
  b_.CreateAtomicRMW(codegen::atomic_operation(n.atomic, n.type), where.pointer,
                     form(n.operands[0]).scalar, align_of(n.type), llvm::AtomicOrdering::Monotonic);
}

}  // namespace tenon::cpu
