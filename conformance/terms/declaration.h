// The declaration of a device: a vendor's statement of what it supports, and how accurately.
//
//   {"device": "X1", "vendor": "Example Inc.", "version": "2.0",
//    "profile": "inference",
//    "not_supported": [{"cases": "op/*/f64/*", "reason": "X1 has no f64"}],
//    "relaxed": [{"op": "stablehlo.tan", "type": "f32", "ulp": 16}]}
//
// Thread-safety: values.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "conformance/compare/bounds.h"
#include "conformance/terms/profile.h"

namespace tenon::conformance {

/// Cases that a device does not support.
struct UnsupportedCases {
  std::string cases;  ///< A pattern of names.
  std::string reason;
};

struct Declaration {
  std::string device;
  std::string vendor;
  std::string version;
  /// The cases that the device promises to support; absent: all but `not_supported`.
  std::optional<Profile> profile;
  std::vector<UnsupportedCases> not_supported;
  std::vector<RelaxedBound> relaxed;

  /// The statement about a case that it says is not supported; null for others.
  const UnsupportedCases* not_supporting(const std::string& name) const;
  /// Whether the device promises to support the case.
  bool promises(const std::string& name) const;
};

/// Errors name the member by its place ("/relaxed/1/ulp"): it is missing, unknown, of another type
/// or out of range.
Result<Declaration> declaration_from_json(const nlohmann::json& document);
/// Reads a file. Errors name it too.
Result<Declaration> read_declaration(const std::string& path);
nlohmann::json to_json(const Declaration& declaration);

}  // namespace tenon::conformance
