// How groups add cases: a program for each op, type, variant and class of values.
#pragma once

#include <span>

#include "conformance/cases/program_maker.h"

namespace tenon::conformance {

/// "add", "chlo_tan": the name of an op in the names of cases.
std::string case_name_of(hlo::OpCode op);
/// Whether the row of `op` admits the type.
bool admits(hlo::OpCode op, ElementType type);
/// "op/add/f32"
std::string cell_of(hlo::OpCode op, ElementType type);
/// Whether the program verifies; if not, the cell is left out with the verifier's message.
bool is_valid(CaseList& list, const std::string& cell, const MakeProgram& make);
/// The type of `types` that represents an op in the smoke tier.
ElementType typical_type(const std::vector<ElementType>& types);

/// One program, with each of some classes of values.
struct ProgramCases {
  std::string prefix;  ///< "op/add/f32/prime"
  MakeProgram make;
  /// Those that `type` lacks are left out.
  std::span<const ValueClass> values = kDefaultValues;
  ElementType type{};
  /// Whether the case of the first class is the one that represents the op in smaller runs.
  bool is_typical = false;

  static constexpr ValueClass kDefaultValues[] = {ValueClass::kOrdinary, ValueClass::kMixed};
};
/// Adds a case for each class. A program of the type f32, or else the one type that stands for the
/// op, is in the smoke tier if `is_typical`; of any other type in the quick tier.
void add(CaseList& list, const ProgramCases& added);
/// The same if the program verifies; else its cell is left out.
void add_if_valid(CaseList& list, const ProgramCases& added);

inline constexpr ValueClass kOrdinaryValues[] = {ValueClass::kOrdinary};

/// A variant of an op: attributes and shapes for any element type.
struct Variant {
  std::string_view name;
  void (*make)(ProgramMaker& maker, ElementType type);
};
/// The same, whichever way its program is made.
struct TypedVariant {
  std::string name;
  std::function<MakeProgram(ElementType type)> make;
};
struct VariantCases {
  std::string prefix;  ///< "op/dot_general"
  std::vector<TypedVariant> variants;
  std::vector<ElementType> types;
  std::span<const ValueClass> values = ProgramCases::kDefaultValues;
};
/// The types of the op's row.
std::vector<ElementType> types_of(hlo::OpCode op);
/// Adds the cases of every variant on every type on which it verifies; the others are left out. The
/// first variant represents the prefix in smaller runs.
void add_variants(CaseList& list, const VariantCases& added);
/// The same for variants of `op` on the types of its row.
void add_variants(CaseList& list, hlo::OpCode op, std::span<const Variant> variants,
                  std::span<const ValueClass> values = ProgramCases::kDefaultValues);

}  // namespace tenon::conformance
