// Finds cases that pass on every wrong device, and so prove nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "conformance/mutation/mutants.h"

namespace tenon::conformance {

/// A device that is a mutant, or the device itself if `mutant` is null. Only for one mutant in a
/// process: it sets the queues of `interp`.
Result<std::shared_ptr<backend::Backend>> backend_for_mutant(const std::string& device,
                                                             const Mutant* mutant);

/// Prints the cases that pass on every device that is wrong. Programs run on the evaluator, one
/// element of whose results is changed, several times; other cases on the mutants of `device`.
/// Returns 0, or 1 if there are such cases.
int list_insensitive(const std::string& device, const std::vector<size_t>& cases, int at_once);

}  // namespace tenon::conformance
