// Canonical attributes: one form for every spelling (hlo/types/attribute.h).
#pragma once

#include "hlo/ops/ops.h"

namespace tenon::hlo {

/// `raw`, as a reader gave it, in the form that `spec` names. The error says what was expected.
Result<Attribute> canonical_attribute(const AttrSpec& spec, const Attribute& raw);

/// The canonical form of an attribute that no row declares (and of the entries of dictionaries).
/// Artifacts have one form for array<i64: 1> and dense<1> : tensor<1xi64>; this gives the latter
/// for both.
Attribute canonical_undeclared(const Attribute& raw);
Dict canonical_undeclared(const Dict& raw);

}  // namespace tenon::hlo
