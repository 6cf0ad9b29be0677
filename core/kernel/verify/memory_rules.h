// The verifier's rules on memory: declarations (K0, K4, K9) and accesses (K2, K3, K6), as far as
// the position of a statement decides them; indices are checked elsewhere (proofs.h). Private to
// core/kernel.
#pragma once

#include <vector>

#include "core/kernel/verify/verification.h"

namespace tenon::kernel {

/// Scopes are not checked here: the operands and memories of the statement are known to be in
/// scope.
class MemoryRules : protected Verification {
 protected:
  using Verification::Verification;

  // --- Declarations
  bool buffer(MemoryId id);
  bool declaration(const Node& node);  // scratch and private

  // --- Statements
  bool access(const Node& node, const BlockContext& context);  // load, store and atomic
  bool copy(const Node& node, const BlockContext& context);
  bool contract(const Node& node);

 private:
  /// K0: the memory spans at most `most` bytes.
  bool fits(const Memory& m, int64_t most);
  /// K4: `m` may take the memory of the buffer that it is over.
  bool may_be_over(MemoryId id);

  bool load(const Node& node, const Memory& m, const BlockContext& context);
  bool atomic(const Memory& m);
  /// K10: `rank` operands from `first` on are indices of `m`.
  bool indices(const Memory& m, const std::vector<ValueId>& operands, size_t first, size_t rank);
  /// K2: `m`, which is loaded from, must not be an 'out' buffer.
  bool readable(const Memory& m);
  /// K0: `m`, which is stored to, must not be an 'in' buffer.
  bool writable(const Memory& m);
  /// K3: the indices of private memory, operands from `first` on, must address the part of one
  /// lane.
  bool is_own_part(const Node& node, const Memory& m, size_t first, const BlockContext& context);
  /// K3: a store with indices from operand `first` on must not race in every execution.
  bool stores_race_free(const Node& node, const Memory& m, size_t first,
                        const BlockContext& context);
  bool copies_race_free(const Node& node, const BlockContext& context);
  /// K0: each dimension of a copy's box runs along a different dimension of the memory, on both
  /// sides.
  bool box_runs_along(const Node& node);

  int64_t scratch_bytes_ = 0;  // declared so far, including private memory
};

}  // namespace tenon::kernel
