// The kinds of attributes, one row each: name, canonical form, check.
#pragma once

#include "hlo/ops/ops.h"

namespace tenon::hlo {

/// A kind of attribute. Readers produce one of several spellings; a Module holds the canonical form
/// (hlo/types/attribute.h), so that equal attributes are equal values.
struct AttrKindInfo {
  AttrKind kind{};
  std::string_view name;      ///< In docs/ops.md: "list of i64".
  std::string_view expected;  ///< In errors: "a list of integers".
  /// The canonical form of an attribute; nothing if the attribute is not of this kind.
  std::optional<Attribute> (*canonical)(const AttrSpec& spec, const Attribute& raw) = nullptr;
  /// Whether an attribute has the canonical form.
  bool (*holds)(const AttrSpec& spec, const Attribute& value) = nullptr;
};
const AttrKindInfo& attr_kind_info(AttrKind kind);

/// Converts `raw`, as a reader produced it, to the form that `spec` states. The error says what was
/// expected.
Result<Attribute> canonical_attribute(const AttrSpec& spec, const Attribute& raw);

/// The canonical form of an attribute that no row declares (and of entries of dictionaries).
/// Artifacts do not distinguish array<i64: 1> and dense<1> : tensor<1xi64>; this function returns
/// the latter for both.
Attribute canonical_undeclared(const Attribute& raw);
Dict canonical_undeclared(const Dict& raw);

}  // namespace tenon::hlo
