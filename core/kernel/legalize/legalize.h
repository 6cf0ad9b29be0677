// core/kernel/legalize/: turns a kernel into one that a narrower target can run.
//
// The legaliser: any kernel as one that a narrower target can run, with the same results in every
// bit (docs/kernel-ir.md, "Legal kernels").
#pragma once

#include <bitset>
#include <initializer_list>
#include <string_view>

#include "core/base/status.h"
#include "core/kernel/ir/kernel.h"

namespace tenon::kernel {

/// A set of element types.
class ElementTypes {
 public:
  ElementTypes() = default;
  ElementTypes(std::initializer_list<ElementType> types) {
    for (const ElementType type : types) insert(type);
  }
  void insert(ElementType type) { bits_.set(static_cast<size_t>(type)); }
  bool contains(ElementType type) const { return bits_.test(static_cast<size_t>(type)); }

 private:
  std::bitset<kElementTypeCount> bits_;
};

/// The types, operations and statements that a target has: kernels are legalised to these.
struct TargetFeatures {
  /// Types whose operations it has. pred is always among them, as are loads and stores of s8, u8,
  /// s16 and u16, which are then only converted; f32, s32 and u32 must be.
  ElementTypes computed = {ElementType::kF32, ElementType::kS32, ElementType::kU32};
  bool math = false;  ///< exp and the other functions, on the float types it computes with.
  bool fma = true;
  bool tiles = false;
  bool scans = false;
  bool private_memory = false;
  ElementTypes atomics;    ///< Integers that it has them on, of those that it computes with.
  bool dimensions = true;  ///< Memory of several dimensions; else of one.

  bool computes(ElementType type) const { return is_pred(type) || computed.contains(type); }

  bool has_atomics(ElementType type) const { return computes(type) && atomics.contains(type); }

  /// f32, 32-bit integers and nothing else.
  static TargetFeatures least();
  /// From a list of what a target has besides those: "f64,s64,u64,fma,dimensions". The words are
  /// the names of element types and of the members above; "atomics" are on all its integers,
  /// "least" adds none of them.
  static Result<TargetFeatures> parse(std::string_view text);
};

/// The same kernel, legal for `features`. A buffer keeps its bytes, though its type and dimensions
/// may change: 64-bit elements become two of u32, the low half first, narrow floats the integer of
/// their width. Launches have the same arguments; their grid is the legal kernel's, which is one
/// workgroup where `features` lacks an atomic of it. The result has been verified. Errors:
/// kInvalidArgument for features that no target may have, kUnimplemented for what docs/kernel-ir.md
/// says that no form exists of.
Result<Kernel> legalize(const Kernel& kernel, const TargetFeatures& features);

/// An error that names the first operation or statement that `features` does not have.
Status check_legal(const Kernel& kernel, const TargetFeatures& features);

}  // namespace tenon::kernel
