// Asks a backend how it does library calls.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "core/backend/backend.h"

namespace tenon::hlo {

/// The answer of a backend to Backend::plan.
struct CallAnswer {
  std::optional<backend::LibraryCallPlan> plan;
  /// Why there is no plan: "contraction declined: …"; empty of a backend that takes no calls at
  /// all.
  std::string declined;
};

/// Plans of library calls, for one compilation: the backend is asked once for each distinct site,
/// however many ops stand for it and however often they are lowered.
///
/// Thread-safety: none.
class CallPlanner {
 public:
  CallPlanner(backend::Backend& backend, const backend::TargetInfo& target)
      : backend_(backend), target_(target) {}

  /// The answer lives as long as the planner. Errors: those of Backend::plan, other than declining.
  Result<const CallAnswer*> plan(const backend::LibraryCallSite& site);

 private:
  backend::Backend& backend_;
  const backend::TargetInfo& target_;
  std::unordered_map<std::string, CallAnswer> answers_;
};

}  // namespace tenon::hlo
