// The ledger: the largest error of each op on each type, with the operands that made it.
//
// Thread-safety: one thread at a time.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "conformance/compare/outcome.h"
#include "core/types/float_convert.h"
#include "hlo/ir/instruction.h"

namespace tenon::conformance {

/// |got - exact| in units in the last place of the exact value in `type`; 0 if both are NaN or both
/// round to the same infinity. The successor of the greatest number counts as infinity. Infinite if
/// only one of the two is NaN. The unit is that of `size` if that is greater.
double ulp_error(ElementType type, double got, Float128 exact, double size = 0);

class Ledger {
 public:
  /// Adds one result. `describe` is called if it is the worst one so far.
  template <class Describe>
  void add(hlo::OpCode op, ElementType type, double error, ErrorUnit unit, double bound,
           const Describe& describe) {
    LedgerEntry& entry = entries_[{op, type}];
    if (entry.elements++ == 0) {
      entry.op = hlo::op_name(op);
      entry.type = type;
      entry.bound = bound;
      entry.unit = unit;
      entry.error = -1;
    }
    if (error <= entry.error) return;
    entry.error = error;
    describe(entry);
  }

  /// In the order of the op table, then of the types.
  std::vector<LedgerEntry> entries() const;

 private:
  std::map<std::pair<hlo::OpCode, ElementType>, LedgerEntry> entries_;
};

/// Keeps the worse of two entries of one op and type.
void merge(std::map<std::pair<std::string, ElementType>, LedgerEntry>& into,
           const LedgerEntry& entry);

}  // namespace tenon::conformance
