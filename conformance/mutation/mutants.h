// conformance/mutation/: devices that are wrong on purpose, to test the suite: a mutant that no
// case catches is a hole in it.
//
// A mutant wraps a backend. Kernel mutants change what a kernel computes before the backend
// compiles it, as if the device's unit for an operation or statement were wrong; seam mutants
// change what a function of the interface does.
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
  /// Queues that the device must have for the error to show.
  uint32_t queues = 1;
};

/// Every mutant; the names are unique.
const std::vector<Mutant>& all_mutants();
/// Null if there is no such mutant.
const Mutant* find_mutant(std::string_view name);

/// A mutant that the suite must catch: one of each kind of mistake.
struct NamedMutant {
  std::string_view mistake;  ///< "the source of a copy is read too late"
  std::string_view mutant;
};
const std::vector<NamedMutant>& named_mutants();

/// `inner`, made wrong. Errors: there is no such mutant.
Result<std::shared_ptr<backend::Backend>> make_mutant(std::shared_ptr<backend::Backend> inner,
                                                      const std::string& name);
/// Changes made by all mutants of this process so far: whether a mutant took part at all.
int64_t mutations_made();
void count_mutation();
/// Changed kernels of this process that do not verify; they run unchanged.
int64_t mutations_refused();

// --- For the files of the folder

class KernelEditor;

/// Mutants of one kind of change of kernels.
struct KernelMutants {
  std::vector<Mutant> (*list)();
  /// Applies the mutant to each node that it concerns; returns how many it changed.
  int64_t (*change)(KernelEditor& editor, const std::string& mutant);
};
extern const KernelMutants kOperationMutants;
extern const KernelMutants kConversionMutants;
extern const KernelMutants kStatementMutants;

std::vector<Mutant> seam_mutants();
std::shared_ptr<backend::Backend> make_seam_mutant(std::shared_ptr<backend::Backend> inner,
                                                   const std::string& name);

}  // namespace tenon::conformance
