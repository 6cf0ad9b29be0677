// The headers that every model has beside its own. scripts/embed generates their definition when
// Tenon is built.
#pragma once

#include <span>

#include "core/base/embedded_file.h"

namespace tenon::tools {

/// "tenon_aot.h", "tenon_aot.hpp" …
std::span<const EmbeddedFile> aot_headers();

}  // namespace tenon::tools
