// The submission of a run: a folder with which a vendor shows that a device conforms, and its
// check, which needs no device.
//
//   statement.json     product, versions, date, tier, profile, seed, command
//   declaration.json   the declaration (conformance/terms/declaration.h)
//   waivers.json       the waivers, perhaps none
//   results.json       the report, as --json writes it
//   cases.txt          the names of the cases, one a line
//   DIGESTS            a line for each of these files: XXH3 of 128 bits, name
//
// The digests show that a file was damaged or replaced by accident; a signature of DIGESTS, made by
// other means, shows who vouches for it.
#pragma once

#include <string>
#include <vector>

#include "conformance/report/report.h"

namespace tenon::conformance {

/// Writes the folder, which may exist. Errors: the run proves nothing (its tier is not full, it was
/// interrupted or filtered), it has no declaration, or its profile is none that Tenon knows.
Status write_submission(const std::string& folder, const Report& report);
/// Those errors, as far as they are known before the run.
Status check_submittable(const Report& report);

struct SubmissionCheck {
  std::string statement;            ///< The device and its profile, for people.
  std::vector<std::string> faults;  ///< Empty: the submission shows that the device conforms.
};

/// Checks a submission against the suite of this Tenon: digests, each case of the profile once,
/// outcomes and bounds computed again from the ledgers, terms and steps, what the report and the
/// statement say of the whole run computed again from its cases, waivers valid on the day of the
/// statement, no failure. Errors: the folder is no submission, or of another suite.
Result<SubmissionCheck> verify_submission(const std::string& folder, std::string_view tenon);

// --- For the files of the folder

/// statement.json of a run with a declaration.
nlohmann::json statement_of(const Report& report);

inline constexpr const char* kSubmittedFiles[] = {"statement.json", "declaration.json",
                                                  "waivers.json", "results.json", "cases.txt"};
inline constexpr const char* kDigests = "DIGESTS";
inline constexpr int kSubmissionVersion = 1;

}  // namespace tenon::conformance
