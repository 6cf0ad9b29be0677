// The files that `tenon new-backend` writes: the template's own sources, as compiled in this tree,
// and the other files of a project. scripts/embed generates their definition when Tenon is built.
#pragma once

#include <span>
#include <string_view>

namespace tenon::tools {

struct EmbeddedFile {
  std::string_view path;  ///< Below backends/template: "template.cpp", "project/README.md".
  std::string_view text;
};

std::span<const EmbeddedFile> new_backend_files();

}  // namespace tenon::tools
