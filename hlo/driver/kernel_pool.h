// The kernels of one compilation, with the backend's verdict on each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/backend/backend.h"
#include "core/kernel/legalize/legalize.h"

namespace tenon::hlo {

/// Kernels with their legal forms and the backend's verdicts. If another lowering of the Module
/// makes the same kernel again, both are reused: a kernel is legalised once, and is not offered to
/// the backend again to learn whether the backend takes it.
///
/// Thread-safety: not thread-safe.
class KernelPool {
 public:
  using Id = uint32_t;

  KernelPool(backend::Backend& backend, const backend::TargetInfo& target,
             const kernel::TargetFeatures& features)
      : backend_(backend), target_(target), features_(features) {}

  /// Adds the kernels of one lowering, and adopts their names; each Id is returned once. A kernel
  /// that cannot be legalised counts as declined and keeps its original form. Errors: those of
  /// legalize, except kUnimplemented.
  Result<std::vector<Id>> add(const std::vector<kernel::Kernel>& kernels);
  /// One more than the last Id.
  Id size() const { return static_cast<Id>(entries_.size()); }

  const kernel::Kernel& legal(Id id) const { return entries_[id].legal; }
  /// The reason; null if the kernel is not declined.
  const backend::Declined* declined(Id id) const {
    return entries_[id].declined ? &*entries_[id].declined : nullptr;
  }

  /// Asks the backend to compile those of the kernels that were not offered before.
  Status offer(const std::vector<Id>& ids);
  /// The binary of these kernels, in order; empty if there are none. Returns nothing if the backend
  /// declines some of them now: whether it takes a kernel may depend on the other kernels.
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
