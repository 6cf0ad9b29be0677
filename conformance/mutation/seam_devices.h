// The devices of seam mutants: one is wrong in its work, the other in what it owns.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "conformance/mutation/mutants.h"
#include "core/backend/layers/forward.h"

namespace tenon::conformance {

/// The mutant that a device or backend is, if any.
class ChosenMutant {
 public:
  explicit ChosenMutant(std::string name) : name_(std::move(name)) {}
  /// Whether it is the mutant, or one of a function ("seam/fill/"), whether or not it changes
  /// something.
  bool has(std::string_view prefix) const { return name_.starts_with(prefix); }
  /// Whether this is the mutant; then the caller changes something.
  bool is(std::string_view name) const {
    if (name_ != name) return false;
    count_mutation();
    return true;
  }

 private:
  const std::string name_;
};

/// State that outlives an open device.
struct SessionState {
  std::atomic<int64_t> bytes = 0;
  std::atomic<bool> closed_with_work = false;
};

/// Copies, launches, events.
std::unique_ptr<backend::Device> make_work_mutant(std::unique_ptr<backend::Device> inner,
                                                  const std::string& name,
                                                  std::shared_ptr<SessionState> state);
/// Memory and modules.
std::unique_ptr<backend::Device> make_resource_mutant(std::unique_ptr<backend::Device> inner,
                                                      const std::string& name,
                                                      std::shared_ptr<SessionState> state);

}  // namespace tenon::conformance
