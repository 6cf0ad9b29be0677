// The results of `tenon tune`: the file of parameters, and a table of times.
#pragma once

#include <string>
#include <string_view>

#include "tools/tune/device_trials.h"

namespace tenon::tools {

/// The file beside the device's plug-in, which Tenon reads whenever it opens the plug-in; for a
/// device without a plug-in "NAME.tuning" in the working directory.
std::string output_of(const std::string& device);

/// A line for each program with its seconds before and after and their ratio, or why it does not
/// run; each line after `prefix`.
std::string table_of(const DeviceTrials& target, const TuningResult& result,
                     std::string_view prefix);

/// Writes `best` among the parameters that the file has, behind the lines of `comment`. Rates and
/// other parameters in the file stay, its comments go. Errors: the file has another form, or cannot
/// be written.
Status write_tuning(const std::string& path, const std::string& comment, const Tuning& best);

}  // namespace tenon::tools
