// Whole files in and out.
#pragma once

#include <string>
#include <string_view>

#include "core/types/status.h"

namespace tenon {

/// The bytes of a file. Errors name the path and the system's reason.
Result<std::string> read_file(const std::string& path);

/// Writes through a temporary file beside `path` and renames it, so that no reader sees half a file
/// and a failure leaves what was there before. A link is followed; a device or pipe is written to
/// as it is.
Status write_file(const std::string& path, std::string_view bytes);

}  // namespace tenon
