// How groups add cases: a program for each op, type, variant and class of values.
#pragma once

#include <span>

#include "conformance/cases/program_maker.h"

namespace tenon::conformance {

/// "add", "chlo_tan": the name of an op in the names of cases.
std::string case_name_of(hlo::OpCode op);
/// Whether the row of `op` admits the type.
bool admits(hlo::OpCode op, ElementType type);
/// Whether the program verifies.
bool is_valid(const MakeProgram& make);

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
void add(std::vector<ConformanceCase>& cases, const ProgramCases& added);

inline constexpr ValueClass kOrdinaryValues[] = {ValueClass::kOrdinary};

/// A variant of an op: attributes and shapes for any element type.
struct Variant {
  std::string_view name;
  void (*make)(ProgramMaker& maker, ElementType type);
};
/// Adds the cases of every variant of `op` on every type of its row on which it verifies. The first
/// variant represents the op in smaller runs.
void add_variants(std::vector<ConformanceCase>& cases, hlo::OpCode op,
                  std::span<const Variant> variants,
                  std::span<const ValueClass> values = ProgramCases::kDefaultValues);

}  // namespace tenon::conformance
