// Custom calls of linear algebra that XLA's compilers expand, by XLA's names, which TensorFlow and
// JAX emit, and Tenon's own. A device that takes a call of that name by `plan` gets it whole.
#pragma once

#include "hlo/decomposition/decomposition.h"

namespace tenon::hlo::decomposition {

/// A call by name, of batched matrices: all dimensions but the last two are equal in operands and
/// results. Types of elements are floats and complex numbers.
struct LinalgCall {
  std::string_view name;
  std::string_view operands;  ///< The shapes of operands and results, for errors and the page.
  std::string_view results;
  std::string_view summary;
  std::string_view owner;  ///< XLA or Tenon, which has named it.
};

/// All of them, by name.
std::vector<LinalgCall> linalg_calls();
/// docs/linalg.md.
std::string linalg_documentation();
/// Null unless `op` is a custom call of one of these names.
const LinalgCall* linalg_call(const Instruction& op);
/// OK if its types, shapes and configuration are as the row of its name says; else an error, at its
/// place, that says what is expected.
Status check_linalg_call(const Instruction& op);
/// A call whose result is a tuple, as XLA's frontends have it, becomes one with the tuple's
/// elements as results, and a tuple of them. Returns the call.
Instruction* without_tuple(Instruction& call);
/// Its results by other ops. Errors: those of check_linalg_call.
Values expand_linalg_call(Builder& b, const Instruction& op);

}  // namespace tenon::hlo::decomposition
