#include "backends/cpu/codegen/elements.h"

#include <algorithm>
#include <bit>

#include "backends/llvm/host.h"
#include "backends/llvm/operations.h"

namespace tenon::cpu {
namespace {

using enum ElementType;
using llvm::Value;

llvm::Type* like(const Value* value, llvm::Type* element) {
  const auto* vector = llvm::dyn_cast<llvm::VectorType>(value->getType());
  return vector == nullptr ? element : llvm::VectorType::get(element, vector->getElementCount());
}

bool has_code(ElementType type) {
  switch (type) {
    case kF16:
      return codegen::host().converts_half;
    case kBF16:
    case kF32:
    case kF64:
      return true;
    default:
      return is_integer(type) && bit_width(type) >= 8;
  }
}

// bf16 is the upper half of f32.
llvm::Type* memory_type(llvm::LLVMContext& context, ElementType type) {
  if (type == kBF16) return llvm::Type::getInt16Ty(context);
  if (type == kF16) return llvm::Type::getHalfTy(context);
  return codegen::type_of(context, type);
}

}  // namespace

std::optional<ElementType> sum_type(ElementType lhs, ElementType rhs, ElementType result) {
  const ElementType all[] = {lhs, rhs, result};
  if (!std::ranges::all_of(all, has_code)) return std::nullopt;
  // Weights of float products may be stored as short integers, which are exact in f32.
  const auto is_real = [](ElementType type) { return is_float(type) || bit_width(type) <= 8; };
  if ((is_float(lhs) || is_float(rhs)) && is_float(result) && is_real(lhs) && is_real(rhs)) {
    const bool wide = std::ranges::find(all, kF64) != std::end(all);
    if (wide && bit_width(result) < 32) return std::nullopt;
    return wide ? kF64 : kF32;
  }
  const auto fits = [&](ElementType type) {
    return is_integer(type) && bit_width(type) <= std::max(bit_width(result), 32);
  };
  if (!std::ranges::all_of(all, fits)) return std::nullopt;
  return bit_width(result) < 32 ? kS32 : result;
}

Elements::Elements(llvm::IRBuilderBase& builder, ElementType stored, ElementType computed)
    : b_(builder),
      stored_(stored),
      computed_(computed),
      memory_(memory_type(builder.getContext(), stored)),
      type_(codegen::type_of(builder.getContext(), computed)) {}

Value* Elements::at(Value* base, Value* elements) const {
  return b_.CreateGEP(memory_, base, elements);
}

Value* Elements::at(Value* base, int64_t elements) const {
  return at(base, b_.getInt64(static_cast<uint64_t>(elements)));
}

Value* Elements::widen(Value* x) const {
  llvm::Type* const to = like(x, type_);
  if (x->getType() == to) return x;
  if (stored_ == kBF16) {
    Value* const real = codegen::from_bf16(b_, x);
    return computed_ == kF64 ? b_.CreateFPExt(real, to) : real;
  }
  if (is_float(stored_)) return b_.CreateFPExt(x, to);
  if (is_float(computed_)) {
    return is_signed_integer(stored_) ? b_.CreateSIToFP(x, to) : b_.CreateUIToFP(x, to);
  }
  return is_signed_integer(stored_) ? b_.CreateSExt(x, to) : b_.CreateZExt(x, to);
}

Value* Elements::narrow(Value* x) const {
  llvm::Type* const to = like(x, memory_);
  if (x->getType() == to) return x;
  if (stored_ == kBF16) return codegen::to_bf16(b_, x);
  return is_float(stored_) ? b_.CreateFPTrunc(x, to) : b_.CreateTrunc(x, to);
}

Value* Elements::load(Value* from) const {
  return widen(b_.CreateAlignedLoad(memory_, from, align()));
}

Value* Elements::load(Value* from, int64_t width, Value* mask) const {
  auto* const vector = llvm::FixedVectorType::get(memory_, static_cast<unsigned>(width));
  if (mask == nullptr) return widen(b_.CreateAlignedLoad(vector, from, align()));
  Value* const zero = llvm::Constant::getNullValue(vector);
  return widen(b_.CreateMaskedLoad(vector, from, align(), mask, zero));
}

Value* Elements::gather(Value* from, int64_t stride, int64_t width, Value* mask) const {
  auto* const vector = llvm::FixedVectorType::get(memory_, static_cast<unsigned>(width));
  Value* const places = b_.CreateGEP(memory_, from, steps(b_, stride, width));
  if (mask == nullptr) {
    auto* const all = llvm::FixedVectorType::get(b_.getInt1Ty(), static_cast<unsigned>(width));
    mask = llvm::Constant::getAllOnesValue(all);
  }
  return widen(
      b_.CreateMaskedGather(vector, places, align(), mask, llvm::Constant::getNullValue(vector)));
}

void Elements::store(Value* value, Value* to, Value* mask) const {
  Value* const numbers = narrow(value);
  if (mask == nullptr) {
    b_.CreateAlignedStore(numbers, to, align());
  } else {
    b_.CreateMaskedStore(numbers, to, align(), mask);
  }
}

Value* Elements::multiply_add(Value* x, Value* y, Value* z) const {
  if (!is_float(computed_)) return b_.CreateAdd(b_.CreateMul(x, y), z);
  return b_.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, z});
}

Value* Elements::total(Value* lanes) const {
  if (!is_float(computed_)) return b_.CreateAddReduce(lanes);
  auto* const sum = llvm::cast<llvm::CallInst>(
      b_.CreateFAddReduce(llvm::ConstantFP::getNegativeZero(type_), lanes));
  sum->setHasAllowReassoc(true);
  return sum;
}

// The lanes of x, then those of y (which may be null), are groups of adjacent ones: the second half
// of each group is added to its first half.
Value* Elements::folded(Value* x, Value* y, size_t group) const {
  const auto lanes =
      static_cast<size_t>(llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements());
  std::vector<int> first, second;
  for (size_t lane = 0; lane < (y == nullptr ? lanes : 2 * lanes); ++lane) {
    const bool is_first = lane % group < group / 2;
    (is_first ? first : second).push_back(static_cast<int>(lane));
  }
  if (y == nullptr) y = x;
  Value* const a = b_.CreateShuffleVector(x, y, first);
  Value* const b = b_.CreateShuffleVector(x, y, second);
  return is_float(computed_) ? b_.CreateFAdd(a, b) : b_.CreateAdd(a, b);
}

Value* Elements::totals(std::vector<Value*> vectors) const {
  const auto lanes = static_cast<size_t>(
      llvm::cast<llvm::FixedVectorType>(vectors[0]->getType())->getNumElements());
  vectors.resize(std::bit_ceil(vectors.size()), zeros(static_cast<int64_t>(lanes)));
  size_t group = lanes;
  for (; vectors.size() > 1; group /= 2) {
    std::vector<Value*> pairs;
    for (size_t i = 0; i < vectors.size(); i += 2)
      pairs.push_back(folded(vectors[i], vectors[i + 1], group));
    vectors = std::move(pairs);
  }
  for (; group > 1; group /= 2) vectors[0] = folded(vectors[0], nullptr, group);
  return vectors[0];
}

Value* Elements::zeros(int64_t width) const {
  return llvm::Constant::getNullValue(
      llvm::FixedVectorType::get(type_, static_cast<unsigned>(width)));
}

void prefetch(llvm::IRBuilderBase& b, Value* place, CacheLevel level) {
  Value* const reads = b.getInt32(0);
  Value* const data = b.getInt32(1);
  b.CreateIntrinsic(llvm::Intrinsic::prefetch, {place->getType()},
                    {place, reads, b.getInt32(static_cast<uint32_t>(level)), data});
}

llvm::Constant* steps(llvm::IRBuilderBase& b, int64_t stride, int64_t width) {
  std::vector<llvm::Constant*> list;
  for (int64_t i = 0; i < width; ++i) {
    list.push_back(llvm::ConstantInt::getSigned(b.getInt64Ty(), i * stride));
  }
  return llvm::ConstantVector::get(list);
}

Value* mask_of(llvm::IRBuilderBase& b, Value* left, int64_t width) {
  Value* const splat = b.CreateVectorSplat(static_cast<unsigned>(width), left);
  return b.CreateICmpSLT(steps(b, 1, width), splat);
}

}  // namespace tenon::cpu
