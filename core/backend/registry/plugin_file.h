// Checks whether a file can be a plug-in, before the system's loader maps it.
#pragma once

#include <string>

#include "core/base/status.h"

namespace tenon::backend {

/// The loader waits forever for the writer of a pipe, and crashes the process at a page that a
/// truncated file lacks. Errors name the path: kNotFound; kFailedPrecondition if it is not a
/// regular file, not an ELF shared library, or shorter than its headers state.
Status check_plugin_file(const std::string& path);

}  // namespace tenon::backend
