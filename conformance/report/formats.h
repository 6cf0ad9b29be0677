// Reports in formats of other programs.
#pragma once

#include <string>

#include "conformance/report/report.h"

namespace tenon::conformance {

/// JUnit XML, as CI systems read it: a suite for each op. Excused and waived cases are skipped
/// ones; crashes, timeouts and harness errors are errors, other failures failures.
std::string to_junit(const Report& report);

/// A page of its own, without references to others: outcomes, a matrix of ops and types, the
/// ledger, the device, the slowest cases, failures.
std::string to_html(const Report& report);

}  // namespace tenon::conformance
