#include "conformance/report/submission.h"

#include <algorithm>
#include <filesystem>

#include "conformance/terms/json_file.h"
#include "core/base/digest.h"
#include "core/base/file.h"

namespace tenon::conformance {
nlohmann::json statement_of(const Report& report) {
  const Declaration& declaration = *report.terms.declaration;
  return {{"submission", kSubmissionVersion},
          {"product", declaration.device},
          {"vendor", declaration.vendor},
          {"version", declaration.version},
          {"tenon", report.tenon},
          {"suite", report.suite},
          {"device", report.device},
          {"date", report.date},
          {"tier", report.tier},
          {"profile", report.profile.empty() ? "full" : report.profile},
          {"seed", report.seed},
          {"command", report.command},
          {"cases", report.records.size()},
          {"passed", has_passed(report)}};
}

Status check_submittable(const Report& report) {
  if (report.tier != "full") {
    return failed_precondition("a submission is of the tier full, not {}", report.tier);
  }
  if (report.filtered) {
    return failed_precondition(
        "a submission has every case of its profile: no patterns, --exclude or --shard");
  }
  if (!report.terms.declaration) {
    return failed_precondition("a submission has a declaration: --declaration");
  }
  if (!report.profile.empty() && std::ranges::count(profile_names(), report.profile) == 0) {
    return failed_precondition("a submission is of a profile that Tenon knows, not of '{}'",
                               report.profile);
  }
  return {};
}

Status write_submission(const std::string& folder, const Report& report) {
  TENON_TRY(check_submittable(report));
  if (report.interrupted) {
    return failed_precondition("there is no submission of a run that was interrupted");
  }
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return invalid_argument("{}: {}", folder, error.message());
  const auto path = [&](const char* name) { return fmt::format("{}/{}", folder, name); };
  std::string names;
  for (const CaseRecord& each : report.records) names += each.name + '\n';
  TENON_TRY(write_json_file(path("statement.json"), statement_of(report)));
  TENON_TRY(write_json_file(path("declaration.json"), to_json(*report.terms.declaration)));
  TENON_TRY(write_json_file(path("waivers.json"), to_json(report.terms.waivers)));
  TENON_TRY(write_json_file(path("results.json"), to_json(report)));
  TENON_TRY(write_file(path("cases.txt"), names));
  std::string digests;
  for (const char* const name : kSubmittedFiles) {
    TENON_ASSIGN(const std::string bytes, read_file(path(name)));
    digests += fmt::format("{}  {}\n", serial::digest_of(bytes), name);
  }
  return write_file(path(kDigests), digests);
}

}  // namespace tenon::conformance
