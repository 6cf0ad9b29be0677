#include "conformance/compare/pattern.h"

namespace tenon::conformance {

// Greedy: where the rest does not match, the last '*' takes one character more.
bool matches(std::string_view pattern, const std::string& name) {
  size_t p = 0;
  size_t star = std::string_view::npos;
  size_t taken = 0;
  for (size_t n = 0; n < name.size();) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

}  // namespace tenon::conformance
