// conformance/terms/: what a vendor states about a device (its declaration, waivers), profiles, and
// how they change the outcomes of cases.
//
// Thread-safety: values.
#pragma once

#include <span>

#include "conformance/compare/record.h"
#include "conformance/terms/declaration.h"
#include "conformance/terms/waivers.h"

namespace tenon::conformance {

struct Terms {
  std::optional<Declaration> declaration;
  std::vector<Waiver> waivers;

  /// The bounds that the declaration relaxes.
  std::span<const RelaxedBound> relaxed() const;
};

/// Applies the terms to the outcome of a case as it ran:
///
/// - declared as not supported: kNotSupported is excused, a pass becomes kUnexpectedPass;
/// - outside of the declared profile: kNotSupported is excused;
/// - waived: a failure becomes kWaived, a pass kUnexpectedPass. kHarnessError stays: no device is
///   to blame for it.
void apply_terms(const Terms& terms, CaseRecord& record);

/// Waivers that match none of these cases.
std::vector<Waiver> unused_waivers(const Terms& terms, std::span<const std::string> names);

}  // namespace tenon::conformance
