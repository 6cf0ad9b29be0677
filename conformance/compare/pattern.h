// Patterns of names: of cases, ops and types.
#pragma once

#include <string>
#include <string_view>

namespace tenon::conformance {

/// Whether `pattern` with '*' (any text, '/' included) and '?' (one character) matches the whole
/// name. Every other character stands for itself.
bool matches(std::string_view pattern, const std::string& name);

}  // namespace tenon::conformance
