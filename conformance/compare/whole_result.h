// Rules for ops whose results are judged as a whole: factors by their product, solutions by their
// residual, transforms and normalizations relative to the norm of the result, random numbers by
// their moments.
//
// The bounds are the backward errors of the textbook algorithms: N. Higham, Accuracy and Stability
// of Numerical Algorithms, 2nd ed., theorems 8.5 (triangular systems), 10.3 (Cholesky), 24.2 (fast
// Fourier transform).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/types/literal.h"
#include "hlo/ir/instruction.h"

namespace tenon::conformance {

/// One result of an op, with the operands that the device had.
struct WholeResult {
  const hlo::Instruction& op;
  uint32_t index = 0;
  const std::vector<Literal>& operands;
  const Literal& actual;
  /// The evaluator's in a wider type, not rounded to the result's type.
  std::vector<std::complex<double>> exact;
  /// The element with the greatest error as a share of its bound; -1: none was compared.
  struct WorstElement {
    int64_t element = -1;
    double share = 0;
  };
  WorstElement worst{};
};

/// The first element out of its bound.
struct WrongElement {
  int64_t element = 0;
  std::string reason;  ///< "the residual is 3.1e-5, its bound is 1.2e-6"
};

bool has_rule_of_its_own(hlo::OpCode op);
/// Sets `worst` too.
std::optional<WrongElement> check_whole_result(WholeResult& result);

/// A result of a program of several ops: `exact` is the evaluator's in a wider type, `narrow` the
/// evaluator's with each op rounded to its type.
std::optional<WrongElement> check_program_result(const Literal& exact, const Literal& narrow,
                                                 const Literal& actual);

}  // namespace tenon::conformance
