#include "conformance/run/suite.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/base/digest.h"

namespace tenon::conformance {
namespace {

class SuiteRun {
 public:
  SuiteRun(const std::vector<ConformanceCase>& cases, const std::vector<size_t>& chosen,
           SuiteOptions options, const std::function<void(const CaseRecord&)>& on_record)
      : cases_(cases), chosen_(chosen), options_(std::move(options)), on_record_(on_record) {}

  Result<SuiteResult> run(const volatile bool* stop) {
    contents_.identity = options_.identity;
    std::string names;
    for (const size_t i : chosen_) names += cases_[i].name + '\n';
    contents_.identity.cases = serial::digest_of(names);
    if (options_.resume) TENON_TRY(resume());
    options_.runner.on_open = [this](const RunnerSummary& opened) { return open(opened); };
    const auto add = [this](CaseRecord record) { take(std::move(record)); };
    TENON_ASSIGN(made_.summary, run_cases(requests(), options_.runner, add, stop));
    if (made_.summary.device.empty()) {  // The journal had every case.
      made_.summary.device = contents_.identity.device;
      made_.summary.counts_steps = contents_.identity.counts_steps;
    }
    std::ranges::sort(made_.records, {},
                      [&](const CaseRecord& record) { return order_.at(record.name); });
    return std::move(made_);
  }

 private:
  // The cases that have no record yet.
  std::vector<Request> requests() {
    std::vector<Request> list;
    for (const size_t i : chosen_) order_[cases_[i].name] = i;
    std::map<std::string, size_t> missing = order_;
    for (const CaseRecord& each : made_.records) missing.erase(each.name);
    for (const size_t i : chosen_) {
      if (missing.contains(cases_[i].name)) list.push_back({i, cases_[i].name, cases_[i].alone});
    }
    return list;
  }

  Status resume() {
    TENON_ASSIGN(JournalContents found, read_journal(options_.journal));
    TENON_TRY(check_same_run(found.identity, contents_.identity));
    contents_ = std::move(found);
    for (const size_t i : chosen_) order_[cases_[i].name] = i;
    std::set<std::string> seen;
    for (const CaseRecord& each : contents_.records) {
      if (!order_.contains(each.name) || !seen.insert(each.name).second)
        return invalid_argument("{}: a result of {}, which is no case or has one already",
                                options_.journal, each.name);
    }
    for (const CaseRecord& each : contents_.records) {
      on_record_(each);
      made_.records.push_back(each);
    }
    made_.resumed = contents_.records.size();
    return {};
  }

  Status open(const RunnerSummary& opened) {
    if (options_.resume) TENON_TRY(check_same_device(contents_.identity, opened.device));
    contents_.identity.device = opened.device;
    contents_.identity.counts_steps = opened.counts_steps;
    if (options_.journal.empty()) return {};
    TENON_ASSIGN(journal_, Journal::create(options_.journal, contents_));
    return {};
  }

  void take(CaseRecord record) {
    if (journal_ && made_.journal.ok()) made_.journal = journal_->add(record);
    on_record_(record);
    made_.records.push_back(std::move(record));
  }

  const std::vector<ConformanceCase>& cases_;
  const std::vector<size_t>& chosen_;
  SuiteOptions options_;
  const std::function<void(const CaseRecord&)>& on_record_;
  JournalContents contents_;
  std::optional<Journal> journal_;
  std::map<std::string, size_t> order_;
  SuiteResult made_;
};

}  // namespace

Result<SuiteResult> run_suite(const std::vector<ConformanceCase>& cases,
                              const std::vector<size_t>& chosen, SuiteOptions options,
                              const std::function<void(const CaseRecord&)>& on_record,
                              const volatile bool* stop) {
  return SuiteRun(cases, chosen, std::move(options), on_record).run(stop);
}

}  // namespace tenon::conformance
