// The kernels that one compilation comes across, and what the backend says of each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/backend/backend.h"
#include "core/kernel/legalize/legalize.h"

namespace tenon::hlo {

/// Kernels with their legal forms and the backend's verdicts. A kernel that comes again, in another
/// lowering of the Module, keeps both: it is legalised once, and not offered to the backend again
/// to learn whether it takes it.
///
/// Thread-safety: none.
class KernelPool {
 public:
  using Id = uint32_t;

  KernelPool(backend::Backend& backend, const backend::TargetInfo& target,
             const kernel::TargetFeatures& features)
      : backend_(backend), target_(target), features_(features) {}

  /// The kernels of one lowering, whose names they take on; an Id stands there once. What has no
  /// legal form is declined and stays as it is. Errors: those of legalize, other than
  /// kUnimplemented.
  Result<std::vector<Id>> add(const std::vector<kernel::Kernel>& kernels);
  /// One more than the last Id.
  Id size() const { return static_cast<Id>(entries_.size()); }

  const kernel::Kernel& legal(Id id) const { return entries_[id].legal; }
  /// Null if it is not declined.
  const backend::Declined* declined(Id id) const {
    return entries_[id].declined ? &*entries_[id].declined : nullptr;
  }

  /// Lets the backend compile those of the kernels that it was not offered before.
  Status offer(const std::vector<Id>& ids);
  /// The binary of these kernels, in order; empty if there are none. Nothing if the backend
  /// declines some of them now: what it takes may depend on the kernels beside it.
  Result<std::optional<std::string>> binary(const std::vector<Id>& ids);

 private:
  struct Entry {
    kernel::Kernel legal;
    std::optional<backend::Declined> declined;
    bool offered = false;
  };

  Status legalize(const kernel::Kernel& kernel, Entry& entry) const;
  Status compile(const std::vector<Id>& ids);

  backend::Backend& backend_;
  const backend::TargetInfo& target_;
  const kernel::TargetFeatures features_;
  std::vector<Entry> entries_;
  std::unordered_map<std::string, Id> ids_;  // By the kernel's serial form without name and label.
  std::vector<Id> compiled_;                 // The kernels of `binary_`.
  std::optional<std::string> binary_;
};

}  // namespace tenon::hlo
