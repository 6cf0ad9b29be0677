// Writing the files of a model that is compiled ahead of time.
#pragma once

#include <string>

#include "tools/aot/report.h"

namespace tenon::tools {

/// Writes the library, the weights, headers and all else to `folder`, which is made if it is not
/// there, and states their paths in the report. All files are complete before the first of them
/// takes its place, and none does after an error before that. Shared libraries are linked, and
/// models for GPUs compiled, by the command in the variable CC, else cc. Errors:
/// kFailedPrecondition, with the path and the reason.
Status write_files(AotReport& report, const std::string& folder);

}  // namespace tenon::tools
