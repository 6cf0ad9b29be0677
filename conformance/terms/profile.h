// Profiles: which cases a kind of device must pass. The folder conformance/profiles/ has those that
// Tenon knows by name.
//
// A profile is a text: a pattern of names a line; '-' before it leaves out the cases that match;
// "without TYPE …" leaves out those with one of these types in their names, conversions included,
// in any order of the lines; '#' begins a comment.
//
// Thread-safety: values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace tenon::conformance {

struct Profile {
  std::string name;
  std::vector<std::string> patterns;
  std::vector<std::string> excluded;
  std::vector<std::string> without;  ///< Names of element types.

  bool has(const std::string& case_name) const;
};

/// Errors: it has no pattern.
Result<Profile> parse_profile(std::string name, std::string_view text);

/// "minimal", "inference", "training", "full": each has the cases of those before it.
const std::vector<std::string_view>& profile_names();
/// Errors: there is no such profile; the message lists them.
Result<Profile> builtin_profile(std::string_view name);
/// A profile by its name, or else from the file of this path.
Result<Profile> find_profile(const std::string& name_or_path);

}  // namespace tenon::conformance
