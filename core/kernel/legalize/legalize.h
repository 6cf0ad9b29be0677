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

/// What a target runs, as far as the form of kernels is concerned.
struct LegalForm {
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
  static LegalForm least();
  /// From a list of what a target has besides those: "f64,s64,u64,fma,dimensions". The words are
  /// the names of element types and of the members above; "atomics" are on all its integers,
  /// "least" is none of them.
  static Result<LegalForm> parse(std::string_view text);
};

/// The same kernel, legal for `form`. A buffer keeps its bytes, though its type and dimensions may
/// change: 64-bit elements become two of u32, the low half first, narrow floats the integer of
/// their width. Launches have the same arguments; their grid is the legal kernel's, which is one
/// workgroup where `form` lacks an atomic of it. The result has been verified. Errors:
/// kInvalidArgument for a form that is none, kUnimplemented for what docs/kernel-ir.md says that no
/// form exists of.
Result<Kernel> legalize(const Kernel& kernel, const LegalForm& form);

/// An error that names the first operation or statement that `form` does not have.
Status check_legal(const Kernel& kernel, const LegalForm& form);

}  // namespace tenon::kernel
