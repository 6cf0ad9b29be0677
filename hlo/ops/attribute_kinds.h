// The kinds of attributes, one row each: name, canonical form, check.
#pragma once

#include "hlo/ops/ops.h"

namespace tenon::hlo {

/// A kind of attribute. Readers give an attribute in one of several spellings; a Module holds the
/// canonical one (hlo/types/attribute.h), so that equal attributes are equal values.
struct AttrKindInfo {
  AttrKind kind{};
  std::string_view name;      ///< In docs/ops.md: "list of i64".
  std::string_view expected;  ///< In errors: "a list of integers".
  /// The canonical form of a spelling; nothing if it is none of this kind.
  std::optional<Attribute> (*canonical)(const AttrSpec& spec, const Attribute& raw) = nullptr;
  /// Whether an attribute has the canonical form.
  bool (*holds)(const AttrSpec& spec, const Attribute& value) = nullptr;
};
const AttrKindInfo& attr_kind_info(AttrKind kind);

/// `raw`, as a reader gave it, in the form that `spec` names. The error says what was expected.
Result<Attribute> canonical_attribute(const AttrSpec& spec, const Attribute& raw);

/// The canonical form of an attribute that no row declares (and of the entries of dictionaries).
/// Artifacts have one form for array<i64: 1> and dense<1> : tensor<1xi64>; this gives the latter
/// for both.
Attribute canonical_undeclared(const Attribute& raw);
Dict canonical_undeclared(const Dict& raw);

}  // namespace tenon::hlo
