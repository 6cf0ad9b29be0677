// core/kernel/legalize/: turns a kernel into one that a narrower target can run.
//
// The legaliser: converts any kernel into one that a narrower target can run, with the same results
// in every bit (docs/kernel-ir.md, "Legal kernels").
#pragma once

#include <bitset>
#include <initializer_list>
#include <string_view>

#include "core/base/status.h"
#include "core/kernel/ir/kernel.h"
#include "core/kernel/ir/ops.h"

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

/// A set of math functions, each on some float types.
class MathFunctions {
 public:
  void insert(OpCode op, ElementType type) { bits_.set(at(op, type)); }
  bool contains(OpCode op, ElementType type) const { return bits_.test(at(op, type)); }

 private:
  static size_t at(OpCode op, ElementType type) {
    return static_cast<size_t>(op) * kElementTypeCount + static_cast<size_t>(type);
  }
  std::bitset<kScalarOpCount * kElementTypeCount> bits_;
};

/// The types, operations and statements that a target supports: kernels are legalised for these.
struct TargetFeatures {
  /// Types whose operations it supports. pred is always supported, as are loads and stores of s8,
  /// u8, s16 and u16, which are then only converted; f32, s32 and u32 must be supported.
  ElementTypes computed = {ElementType::kF32, ElementType::kS32, ElementType::kU32};
  /// Floats of 16 bits that it converts to f32 and back, rounding to nearest even with denormals
  /// kept, though it need not compute in them: f16, bf16. A pattern in u16 is bitcast to and from
  /// the type, which no other operation has.
  ElementTypes converted;
  bool math = false;       ///< exp and the other functions, on the supported float types, …
  MathFunctions expanded;  ///< … apart from these, which it lacks.
  bool fma = true;
  bool tiles = false;
  bool scans = false;
  bool private_memory = false;
  /// Memory of a workgroup. Without it no kernel has any, and lanes share no reduction, since a
  /// compiler would put their parts there.
  bool scratch = true;
  ElementTypes atomics;    ///< Integer types with atomics, among the supported ones.
  bool dimensions = true;  ///< Memory of several dimensions; else of one.

  bool computes(ElementType type) const { return is_pred(type) || computed.contains(type); }

  bool has_math(OpCode op, ElementType type) const {
    return math && computes(type) && !expanded.contains(op, type);
  }
  bool has_atomics(ElementType type) const { return computes(type) && atomics.contains(type); }

  /// Only f32 and 32-bit integers.
  static TargetFeatures least();
  bool converts(ElementType type) const { return converted.contains(type); }

  /// Parses a list of features beyond those: "f64,s64,u64,fma,dimensions". The words are names of
  /// element types and of the members above; "convert_f16" and "convert_bf16" are conversions,
  /// "atomics" means atomics on all supported integers, "no_scratch" takes that away, "least" adds
  /// nothing.
  static Result<TargetFeatures> parse(std::string_view text);
};

/// An equivalent kernel that is legal for `features`. A buffer keeps its bytes, but its type and
/// dimensions may change: 64-bit elements become two of u32, the low half first; narrow floats
/// become the integer of their width. Launches have the same arguments, but their grid is the legal
/// kernel's, which is one workgroup if `features` lacks an atomic of the kernel. The result has
/// been verified. Errors: kInvalidArgument for features that no target may have, kUnimplemented for
/// kernels that docs/kernel-ir.md lists as impossible to legalise, among them those with scratch
/// memory if the target has none.
Result<Kernel> legalize(const Kernel& kernel, const TargetFeatures& features);

/// The kernel with `functions` expanded, and everything else as it is: for a target that takes
/// kernels as they are written, but does not know these.
Kernel without(const Kernel& kernel, const MathFunctions& functions);

/// OK, or an error that names the first operation or statement that `features` lacks.
Status check_legal(const Kernel& kernel, const TargetFeatures& features);

}  // namespace tenon::kernel
