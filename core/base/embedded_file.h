// Files that an executable has in it (scripts/embed).
#pragma once

#include <string_view>

namespace tenon {

struct EmbeddedFile {
  std::string_view path;  ///< Relative to a folder that the list of files states.
  std::string_view text;
};

}  // namespace tenon
