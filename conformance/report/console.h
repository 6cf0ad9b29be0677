// The results of a run as text for a terminal.
#pragma once

#include <string>

#include "conformance/report/report.h"

namespace tenon::conformance {

/// A failure in full: name, outcome, the first wrong element, the component to blame, the device's
/// function, arguments, the kernel, the reduced program, how to run it alone.
std::string failure_text(const CaseRecord& record, const std::string& command, bool colour);
/// A failure on one line.
std::string failure_line(const CaseRecord& record, bool colour);

/// The last lines of a run: the first failure in full, counts by outcome, quality warnings, the
/// worst errors, waivers without a case, whether it proves anything; with `verbose`, the slowest
/// cases.
std::string summary_text(const Report& report, bool colour, bool verbose);

}  // namespace tenon::conformance
