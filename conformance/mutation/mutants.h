// conformance/mutation/: devices that are wrong on purpose, to test the suite: a mutant that no
// case catches is a hole in it.
//
// A mutant wraps a backend. Kernel mutants change what a kernel computes before the backend
// compiles it, as if the device's unit for an operation were wrong; seam mutants change what a
// function of the interface does.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/backend/backend.h"
#include "core/kernel/ir/kernel.h"

namespace tenon::conformance {

struct Mutant {
  std::string name;  ///< "kernel/max/f32/drops_nan", "seam/copy/is_short"
  std::string text;  ///< The error: "max of f32 returns the other operand if one is NaN".
  /// Patterns of the cases that are likely to catch it, which are run first.
  std::vector<std::string> likely;
};

/// Every mutant; the names are unique.
const std::vector<Mutant>& all_mutants();

/// `inner`, made wrong. Counts the calls in which the mutant changed something, for tests that ask
/// whether it took part at all. Errors: there is no such mutant.
Result<std::shared_ptr<backend::Backend>> make_mutant(std::shared_ptr<backend::Backend> inner,
                                                      const std::string& name);
/// Changes made by all mutants of this process so far.
int64_t mutations_made();
void count_mutation();

// --- For the files of the folder

std::vector<Mutant> kernel_mutants();
/// The kernel as a mutant changes it; `*changes` counts the changed nodes.
/// Errors: the changed kernel does not verify.
Result<kernel::Kernel> mutated(const kernel::Kernel& kernel, const std::string& mutant,
                               int64_t* changes);

std::vector<Mutant> seam_mutants();
std::shared_ptr<backend::Backend> make_seam_mutant(std::shared_ptr<backend::Backend> inner,
                                                   const std::string& name);

}  // namespace tenon::conformance
