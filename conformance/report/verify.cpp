// The check of a submission.
#include <algorithm>
#include <map>

#include "conformance/compare/bounds.h"
#include "conformance/compare/whole_result.h"
#include "conformance/report/submission.h"
#include "conformance/run/selection.h"
#include "conformance/terms/json_file.h"
#include "core/base/digest.h"
#include "core/base/file.h"

namespace tenon::conformance {
namespace {

using nlohmann::json;

// The members of statement.json that are read; all of them are compared with those of the results.
struct Statement {
  json document;
  std::string product;
  std::string vendor;
  std::string version;
  std::string tenon;
  std::string suite;
  std::string date;
  std::string tier;
  std::string profile;
};

Result<Statement> read_statement(const std::string& path) {
  TENON_ASSIGN(json document, read_json_file(path));
  Statement made;
  try {
    if (document.at("submission").get<int>() != kSubmissionVersion) {
      return invalid_argument("{}: a submission of another version", path);
    }
    const std::pair<const char*, std::string*> members[] = {
        {"product", &made.product}, {"vendor", &made.vendor},  {"version", &made.version},
        {"tenon", &made.tenon},     {"suite", &made.suite},    {"date", &made.date},
        {"tier", &made.tier},       {"profile", &made.profile}};
    for (const auto& [name, place] : members) *place = document.at(name).get<std::string>();
  } catch (const json::exception& error) {  // The library reports through exceptions.
    return invalid_argument("{}: not the statement of a submission: {}", path, error.what());
  }
  made.document = std::move(document);
  return made;
}

// The first member in which the documents differ: "/counts/fail"; empty if there is none.
std::string first_difference_of(const json& a, const json& b) {
  const json changes = json::diff(a, b);
  return changes.empty() ? "" : changes[0].at("path").get<std::string>();
}

class SubmissionChecker {
 public:
  explicit SubmissionChecker(std::string folder) : folder_(std::move(folder)) {}

  Result<SubmissionCheck> run(std::string_view tenon) {
    TENON_ASSIGN(statement_, read_statement(path("statement.json")));
    const std::string suite = suite_digest(all_cases());
    if (statement_.tenon != tenon || statement_.suite != suite) {
      return failed_precondition(
          "the submission is of Tenon {} with the suite {}, this is Tenon {} with the suite {}: "
          "verify it with the Tenon that it is of",
          statement_.tenon, statement_.suite, tenon, suite);
    }
    TENON_TRY(check_digests());
    TENON_ASSIGN(report_, read_report(path("results.json")));
    TENON_ASSIGN(results_, read_json_file(path("results.json")));
    TENON_ASSIGN(terms_.declaration, read_declaration(path("declaration.json")));
    TENON_ASSIGN(terms_.waivers, read_waivers(path("waivers.json")));
    check_statement();
    TENON_TRY(check_cases());
    for (const CaseRecord& each : report_.records) check_record(each);
    check_result();
    made_.statement =
        fmt::format("{} {} of {}, profile {}, {}, {} cases", statement_.product, statement_.version,
                    statement_.vendor, statement_.profile, statement_.date, report_.records.size());
    const auto counts = counts_of(report_.records);
    for (size_t i = 0; i < kOutcomeCount; ++i) {
      if (counts[i] == 0) continue;
      made_.statement += fmt::format(", {} {}", counts[i], name_of(static_cast<Outcome>(i)));
    }
    if (report_.has == CaseNeeds::kNothing) made_.statement += ", without cases of the interface";
    if (report_.has == CaseNeeds::kInterface)
      made_.statement += ", without cases of a plug-in's file";
    return made_;
  }

 private:
  std::string path(std::string_view name) const { return fmt::format("{}/{}", folder_, name); }

  template <class... Args>
  void fault(fmt::format_string<Args...> format, Args&&... args) {
    made_.faults.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  Status check_digests() {
    TENON_ASSIGN(const std::string listed, read_file(path(kDigests)));
    for (const char* const name : kSubmittedFiles) {
      TENON_ASSIGN(const std::string bytes, read_file(path(name)));
      const std::string line = fmt::format("{}  {}\n", serial::digest_of(bytes), name);
      if (listed.find(line) == std::string::npos) fault("{} is not that of {}", name, kDigests);
    }
    return {};
  }

  // The statement, the declaration, the waivers and the results are of one run.
  void check_statement() {
    const Declaration& declaration = *terms_.declaration;
    const bool is_same = statement_.product == declaration.device &&
                         statement_.vendor == declaration.vendor &&
                         statement_.version == declaration.version;
    if (!is_same) fault("statement.json is of another device than declaration.json");
    // The members follow from the cases.
    if (const auto at = first_difference_of(results_, to_json(report_)); !at.empty())
      fault("results.json: {} is not that of its cases", at);
    if (!report_.counts_steps && report_.has != CaseNeeds::kNothing)
      fault("results.json is of a device with an interface that counts no steps");
    if (report_.terms.declaration) {
      const auto at = first_difference_of(statement_.document, statement_of(report_));
      if (!at.empty()) fault("statement.json is of another run than results.json: {}", at);
    }
    const bool has_terms = report_.terms.declaration &&
                           to_json(*report_.terms.declaration) == to_json(declaration) &&
                           to_json(report_.terms.waivers) == to_json(terms_.waivers);
    if (!has_terms) fault("results.json is of another declaration, or of other waivers");
    if (report_.interrupted) fault("the run was interrupted");
    if (const Status status = check_submittable(report_); !status.ok()) {
      fault("{}", status.message());
    }
    const auto date = date_from_text(statement_.date);
    const Status valid = date ? check_expiry(terms_.waivers, *date) : date.error();
    if (!valid.ok()) fault("{}", valid.message());
  }

  // Each case of the profile is there once.
  Status check_cases() {
    TENON_ASSIGN(const Profile profile, builtin_profile(statement_.profile));
    Selection selection;
    selection.profile = profile;
    selection.has = report_.has;
    std::map<std::string, int> missing;
    std::string names;
    for (const size_t i : select(all_cases(), selection)) {
      missing[all_cases()[i].name] = 1;
      names += all_cases()[i].name + '\n';
    }
    for (const CaseRecord& each : report_.records) {
      const auto found = missing.find(each.name);
      if (found == missing.end()) {
        fault("{} is no case of the profile {}", each.name, profile.name);
      } else if (--found->second < 0) {
        fault("{} has more than one result", each.name);
      }
    }
    for (const auto& [name, count] : missing) {
      if (count > 0) fault("{} has no result", name);
    }
    TENON_ASSIGN(const std::string listed, read_file(path("cases.txt")));
    if (listed != names) fault("cases.txt does not have the cases of the profile {}", profile.name);
    check_promises(profile);
    return {};
  }

  // The run has every case that the declaration promises.
  void check_promises(const Profile& profile) {
    if (!terms_.declaration->profile) return;
    for (const ConformanceCase& each : all_cases()) {
      if (!terms_.declaration->promises(each.name) || profile.has(each.name)) continue;
      fault("the declaration promises the profile {}, and the run is of {}",
            terms_.declaration->profile->name, profile.name);
      return;
    }
  }

  void check_record(const CaseRecord& record) {
    CaseRecord raw = record;
    CaseResult& result = raw.result;
    if (result.found) result.outcome = *result.found;
    result.found.reset();
    result.excuse.clear();
    check_evidence(raw);
    apply_terms(terms_, raw);
    const bool is_same =
        result.outcome == record.result.outcome && result.excuse == record.result.excuse;
    if (is_same) return;
    fault("{} is {}, but by the declaration and the waivers it is {}", record.name,
          name_of(record.result.outcome), name_of(result.outcome));
  }

  // 1 for an op whose bound depends on its operands; nothing for others.
  static std::optional<double> required_share(const std::string& op) {
    const auto code = hlo::op_from_name(op);
    const bool has_share =
        code && (hlo::op_info(*code).terms != nullptr || has_rule_of_its_own(*code));
    return has_share ? std::optional<double>(1) : std::nullopt;
  }

  // Whether the ledger and the steps allow the outcome of the run.
  void check_evidence(const CaseRecord& record) {
    const CaseResult& result = record.result;
    if (!is_pass(result.outcome)) return;
    if (report_.counts_steps && result.steps.on_device() == 0) {
      fault("{} is {}, but the device ran none of its steps", record.name, name_of(result.outcome));
    }
    const bool is_warning = result.outcome == Outcome::kQualityWarning;
    if (is_warning && terms_.relaxed().empty()) {
      fault("{} is quality-warning, but the declaration relaxes no bound", record.name);
    }
    for (const LedgerEntry& each : result.ledger) {
      const bool is_share = each.unit == ErrorUnit::kBound;
      const auto required = is_share ? required_share(each.op) : required_ulp(each.op, each.type);
      if (!required || *required != each.bound) {
        fault("{}: the bound of {} of {} is {:g}, not {:g}", record.name, each.op,
              name_of(each.type), required.value_or(0), each.bound);
        continue;
      }
      const double relaxed = is_share ? 0 : relaxed_ulp(terms_.relaxed(), each.op, each.type);
      const double bound = is_warning ? std::max(*required, relaxed) : *required;
      if (each.error <= bound) continue;
      fault("{} is {}, but {} of {} has an error of {}, and its bound is {:g}", record.name,
            name_of(result.outcome), each.op, name_of(each.type), error_text(each.error, each.unit),
            bound);
    }
  }

  void check_result() {
    size_t failures = 0;
    for (const CaseRecord& each : report_.records) {
      if (!is_failure(each.result)) continue;
      if (++failures <= 10) fault("{}: {}", each.name, name_of(each.result.outcome));
    }
    if (failures > 10) fault("{} cases failed", failures);
    if (failures == 0 && !has_passed(report_)) fault("no case passed");
  }

  const std::string folder_;
  Statement statement_;
  Report report_;
  json results_;
  Terms terms_;
  SubmissionCheck made_;
};

}  // namespace

Result<SubmissionCheck> verify_submission(const std::string& folder, std::string_view tenon) {
  return SubmissionChecker(folder).run(tenon);
}

}  // namespace tenon::conformance
