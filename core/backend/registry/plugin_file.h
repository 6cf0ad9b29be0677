// Whether a file can be a plug-in at all, before the system's loader maps it.
#pragma once

#include <string>

#include "core/base/status.h"

namespace tenon::backend {

/// The loader waits for the writer of a pipe for ever, and ends the process at a page that a
/// truncated file lacks. Errors name the path: kNotFound; kFailedPrecondition if it is no regular
/// file, no shared library in ELF, or ends before what its headers announce.
Status check_plugin_file(const std::string& path);

}  // namespace tenon::backend
