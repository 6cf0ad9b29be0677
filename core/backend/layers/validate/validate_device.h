// core/backend/layers/validate/: the layer `validate`: checks the seam's numbered rules at each
// call.
//
// An open device within the layer `validate`. Part of validate.cpp.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/backend/backend.h"

namespace tenon::backend {

/// The error of a call that breaks a rule.
template <class... Args>
Status rule_violation(std::string_view rule, fmt::format_string<Args...> format, Args&&... args) {
  return Status(
      internal_error("validate: {}: {}", rule, fmt::format(format, std::forward<Args>(args)...)));
}

/// Bytes that a library call uses.
struct PlannedCall {
  std::vector<int64_t> operands;
  std::vector<int64_t> results;
  int64_t workspace = 0;
};

/// The calls that the backend planned, by the text of the plan; calls with the same plan have one
/// entry, with the least bytes that any of them uses.
///
/// Thread-safety: everything, from any thread.
class PlannedCalls {
 public:
  void add(const LibraryCallSite& site, const LibraryCallPlan& plan);
  /// The call planned as `plan`; empty if it was planned elsewhere.
  PlannedCall find(std::string_view plan) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, PlannedCall, std::less<>> calls_;
};

/// `closed` is called when the device has been closed.
std::unique_ptr<Device> make_validate_device(std::unique_ptr<Device> inner,
                                             const TargetInfo& target,
                                             std::shared_ptr<const PlannedCalls> planned,
                                             std::function<void()> closed);

}  // namespace tenon::backend
