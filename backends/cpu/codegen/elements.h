// Elements that memory holds in one type and that are computed in another: narrow floats in f32,
// narrow integers in 32 bits.
//
// Thread-safety: that of the builder's LLVMContext.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <optional>
#include <vector>

#include "core/types/element_type.h"

namespace tenon::cpu {

/// The accumulator type of sums of products: f64 if any of the three types is f64, else f32, also
/// if one operand is an integer of a byte; for integers alone the result's type, widened to at
/// least 32 bits, since they wrap around. Nothing if no code is generated for the types, and for
/// sums of f64 with a bf16 or f16 result: converted through f32, they would be rounded twice.
std::optional<ElementType> sum_type(ElementType lhs, ElementType rhs, ElementType result);

class Elements {
 public:
  Elements(llvm::IRBuilderBase& builder, ElementType stored, ElementType computed);

  int64_t bytes() const { return static_cast<int64_t>(storage_bytes(stored_)); }
  bool converts() const { return stored_ != computed_; }
  /// The type in which elements are computed.
  llvm::Type* type() const { return type_; }

  /// The address `elements` elements after `base`.
  llvm::Value* at(llvm::Value* base, llvm::Value* elements) const;
  llvm::Value* at(llvm::Value* base, int64_t elements) const;
  /// Load one element; `width` adjacent elements; `width` elements with a distance of `stride`
  /// elements. Lanes whose mask is false are 0.
  llvm::Value* load(llvm::Value* from) const;
  llvm::Value* load(llvm::Value* from, int64_t width, llvm::Value* mask = nullptr) const;
  llvm::Value* gather(llvm::Value* from, int64_t stride, int64_t width, llvm::Value* mask) const;
  /// Stores an element, or a vector of adjacent elements.
  void store(llvm::Value* value, llvm::Value* to, llvm::Value* mask = nullptr) const;
  /// x * y + z, rounded once.
  llvm::Value* multiply_add(llvm::Value* x, llvm::Value* y, llvm::Value* z) const;
  /// The sum of all lanes, in any order.
  llvm::Value* total(llvm::Value* lanes) const;
  /// A vector with the total of each vector's lanes, in any order, and zeros up to a power of two.
  /// There are at most as many vectors as one has lanes, which are a power of two.
  llvm::Value* totals(std::vector<llvm::Value*> vectors) const;
  llvm::Value* zeros(int64_t width) const;

 private:
  llvm::Align align() const { return llvm::Align(storage_bytes(stored_)); }
  llvm::Value* widen(llvm::Value* x) const;
  llvm::Value* narrow(llvm::Value* x) const;
  llvm::Value* folded(llvm::Value* x, llvm::Value* y, size_t group) const;

  llvm::IRBuilderBase& b_;
  const ElementType stored_;
  const ElementType computed_;
  llvm::Type* memory_;
  llvm::Type* type_;
};

inline constexpr int64_t kCacheLineBytes = 64;

/// How near a cache is that memory is fetched into, as llvm.prefetch numbers them.
enum class CacheLevel : uint32_t { kNearest = 3, kNear = 2 };
/// Fetches the cache line of an address, which need not be one of memory.
void prefetch(llvm::IRBuilderBase& builder, llvm::Value* place, CacheLevel level);

/// The vector 0, stride, 2 · stride …
llvm::Constant* steps(llvm::IRBuilderBase& builder, int64_t stride, int64_t width);
/// The mask for the first `left` of `width` lanes.
llvm::Value* mask_of(llvm::IRBuilderBase& builder, llvm::Value* left, int64_t width);

}  // namespace tenon::cpu
