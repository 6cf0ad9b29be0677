// Patterns of names: of cases, ops and types.
#pragma once

#include <string>
#include <string_view>

namespace tenon::conformance {

/// Whether `pattern` with '*' (any text, '/' included) and '?' matches the whole name.
bool matches(std::string_view pattern, const std::string& name);

}  // namespace tenon::conformance
