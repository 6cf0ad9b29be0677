#include "conformance/terms/pattern.h"

#include <fnmatch.h>

namespace tenon::conformance {

bool matches(std::string_view pattern, const std::string& name) {
  return fnmatch(std::string(pattern).c_str(), name.c_str(), 0) == 0;
}

}  // namespace tenon::conformance
