// Canonical attributes: one form for every spelling (hlo/ir/attribute.h).
#pragma once

#include "hlo/ops/ops.h"

namespace tenon::hlo {

/// `raw`, as a reader gave it, in the form that `spec` names. The error says what was expected.
Result<Attribute> canonical_attribute(const AttrSpec& spec, const Attribute& raw);

}  // namespace tenon::hlo
