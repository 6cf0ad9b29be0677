// Asks a backend how it runs library calls.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "core/backend/backend.h"

namespace tenon::hlo {

/// A backend's answer to Backend::plan.
struct CallAnswer {
  std::optional<backend::LibraryCallPlan> plan;
  /// The reason why there is no plan: "contraction declined: …"; empty if the backend takes no
  /// calls at all.
  std::string declined;
};

/// Plans of library calls, for one compilation: the backend is asked once for each distinct site,
/// however many ops have it and however often they are lowered.
///
/// Thread-safety: not thread-safe.
class CallPlanner {
 public:
  CallPlanner(backend::Backend& backend, const backend::TargetInfo& target)
      : backend_(backend), target_(target) {}

  /// The answer is valid as long as the planner. Errors: those of Backend::plan, except declining.
  Result<const CallAnswer*> plan(const backend::LibraryCallSite& site);

 private:
  backend::Backend& backend_;
  const backend::TargetInfo& target_;
  std::unordered_map<std::string, CallAnswer> answers_;
};

}  // namespace tenon::hlo
