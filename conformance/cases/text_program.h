// Cases whose program is StableHLO text for any element type: ops with many attributes or regions.
//
// A template has the types of @main's parameters and results, how to fill the arguments, and the
// body. `$T` is the element type (`$Q` in a
// quantized type), `$A`, `$B`, … are the types of the parameters %a, %b, …; `$R`,
// `$S`, … those of the results %r, %s, %u, %v, %w.
//
//   {.variant = "rows", .parameters = "4x5x$T, 5x3x$T", .results = "4x3x$T",
//    .body = "%r = stablehlo.dot %a, %b : ($A, $B) -> $R"}
//
// Thread-safety: values.
#pragma once

#include <string_view>

#include "conformance/cases/case_list.h"

namespace tenon::conformance {

struct TextTemplate {
  std::string_view variant;     ///< The last part but one of the case's name.
  std::string_view parameters;  ///< "4x5x$T, i32": dimensions and element type of each.
  std::string_view results;
  /// How each argument is filled (fill_argument), separated by spaces; absent, and the last for
  /// all that follow, is "data".
  std::string_view arguments;
  std::string_view body;
  std::string_view functions{};  ///< Other functions of the module.
  Comparison comparison = Comparison::kEachOp;
};

/// An argument, filled as one of these words says:
///   data        the case's class of values          small    integers of -3 … 3, or such floats
///   ints:L:H    integers in [L, H]                  positive numbers in [0.5, 2]
///   spd         symmetric positive definite         triangular  with a dominant diagonal
///   list:1,2,3  these integers                      ordinary moderate numbers
///   unit        numbers in (-1, 1)                  sign:N:D N/D and -N/D
///   steps:L:H:D multiples of 1/D in [L/D, H/D]      weights  of a layer: variance 1 / inputs,
///   where
///                                                            all dimensions but the last are
///                                                            inputs
/// Errors: another word, or one that does not fit the shape.
Result<Literal> fill_argument(std::string_view how, const Shape& shape, ValueClass values,
                              Random& random);

/// The module's text for an element type.
std::string text_of(const TextTemplate& program, ElementType type);
/// The program of @main, which must verify, with arguments.
Result<CaseProgram> make_text_program(const TextTemplate& program, ElementType type,
                                      ValueClass values, uint64_t seed);

/// Adds a case for each template, type of the op's row (or of `types`) on which it verifies, and
/// class of values. The first template represents the op in smaller runs.
void add_text_cases(CaseList& list, hlo::OpCode op, std::span<const TextTemplate> templates,
                    std::span<const ValueClass> values = ProgramCases::kDefaultValues);
void add_text_cases(CaseList& list, hlo::OpCode op, std::span<const TextTemplate> templates,
                    std::span<const ValueClass> values, const std::vector<ElementType>& types);

}  // namespace tenon::conformance
