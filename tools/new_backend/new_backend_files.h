// The files that `tenon new-backend` writes: the template's own sources, as compiled in this tree,
// and the other files of a project. scripts/embed generates their definition when Tenon is built.
#pragma once

#include <span>

#include "core/base/embedded_file.h"

namespace tenon::tools {

/// Their paths are relative to backends/template: "template.cpp", "project/README.md".
std::span<const EmbeddedFile> new_backend_files();

}  // namespace tenon::tools
