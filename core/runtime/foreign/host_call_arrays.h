// The arrays of one call of a function of the host. Used by who calls it.
#pragma once

#include <memory>
#include <vector>

#include "core/runtime/foreign/host_functions.h"

namespace tenon::runtime {

/// Memory of the host, aligned for vectors.
class AlignedBytes {
 public:
  explicit AlignedBytes(int64_t bytes);
  std::span<std::byte> bytes() const { return {data_.get(), bytes_}; }

 private:
  struct Delete {
    void operator()(std::byte* data) const;
  };
  size_t bytes_;
  std::unique_ptr<std::byte, Delete> data_;
};

/// Collects operands and results as they lie in memory, row-major, and shows them as the function
/// sees them.
///
/// Thread-safety: not thread-safe.
class HostCallArrays {
 public:
  /// `foreign` must outlive it.
  explicit HostCallArrays(const program::ForeignCall& foreign) : foreign_(foreign) {}

  /// The next operand that is no token, at `view`.
  void add_operand(const Shape& shape, std::span<const std::byte> view);
  /// The same in memory of its own, which the caller fills.
  std::span<std::byte> add_operand(const Shape& shape);
  /// The next result that is no token, at `place`.
  void add_result(const Shape& shape, std::span<std::byte> place);
  /// The same in memory of its own.
  void add_result(const Shape& shape);

  /// Everything that was added, for one call. Results that are aliased with operands hold them.
  HostCallFrame frame(int64_t device, HostCallOrigin origin);
  /// The results that are no tokens, in order.
  std::span<const HostResult> results() const { return results_; }

 private:
  const program::ForeignCall& foreign_;
  std::vector<AlignedBytes> memory_;
  std::vector<HostOperand> operands_;
  std::vector<HostResult> results_;
  std::vector<HostOperand> seen_operands_;  // With tokens, in the function's order of dimensions.
  std::vector<HostResult> seen_results_;
};

}  // namespace tenon::runtime
