#include "conformance/report/difference.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

namespace tenon::conformance {
namespace {

// 0 for a pass; greater is worse.
int badness(const CaseResult* result) {
  constexpr int kFailure = 3;
  if (result == nullptr) return 0;
  if (is_failure(*result)) return kFailure;
  if (result->outcome == Outcome::kPass) return 0;
  return result->outcome == Outcome::kQualityWarning ? 1 : 2;
}

using ByName = std::map<std::string, const CaseResult*>;

ByName by_name(const Report& report) {
  ByName found;
  for (const CaseRecord& each : report.records) found[each.name] = &each.result;
  return found;
}

const CaseResult* find(const ByName& results, const std::string& name) {
  const auto found = results.find(name);
  return found == results.end() ? nullptr : found->second;
}

void add_outcomes(const Report& before, const Report& after, ReportDifference& difference) {
  const ByName old_results = by_name(before);
  const ByName new_results = by_name(after);
  const auto add = [&](const std::string& name, const CaseResult* from, const CaseResult* to) {
    const bool is_worse = to == nullptr || badness(to) > badness(from);
    const bool is_same = from != nullptr && to != nullptr && from->outcome == to->outcome &&
                         is_failure(*from) == is_failure(*to);
    if (is_same) return;
    const bool is_better = !is_worse && badness(to) < badness(from);
    OutcomeChange change{name, {}, {}, is_worse, is_better};
    if (from != nullptr) change.before = from->outcome;
    if (to != nullptr) change.after = to->outcome;
    difference.outcomes.push_back(std::move(change));
  };
  for (const CaseRecord& each : before.records) {
    add(each.name, &each.result, find(new_results, each.name));
  }
  for (const CaseRecord& each : after.records) {
    if (find(old_results, each.name) == nullptr) add(each.name, nullptr, &each.result);
  }
}

void add_ledger(const Report& before, const Report& after, ReportDifference& difference) {
  using Key = std::tuple<std::string, ElementType, ErrorUnit>;
  std::map<Key, LedgerEntry> new_entries;
  for (const LedgerEntry& each : ledger_of(after.records))
    new_entries.insert({{each.op, each.type, each.unit}, each});
  for (const LedgerEntry& each : ledger_of(before.records)) {
    const auto found = new_entries.extract({each.op, each.type, each.unit});
    LedgerChange change{each.op, each.type, each.unit, each.error, {}, each.bound > 0};
    if (!found.empty()) {
      if (found.mapped().error == each.error) continue;
      change.after = found.mapped().error;
      change.is_worse = *change.after > each.error;
    }
    difference.ledger.push_back(std::move(change));
  }
  for (const auto& [key, each] : new_entries) {
    difference.ledger.push_back(
        {each.op, each.type, each.unit, {}, each.error, each.error > each.bound});
  }
}

std::vector<std::string> notes_of(const Report& before, const Report& after) {
  std::vector<std::string> notes;
  const auto note = [&](std::string_view what, const std::string& a, const std::string& b) {
    if (a != b) notes.push_back(fmt::format("the reports are of different {}: {}; {}", what, a, b));
  };
  note("devices", fmt::format("{}", fmt::join(before.device, ", ")),
       fmt::format("{}", fmt::join(after.device, ", ")));
  note("suites", before.suite, after.suite);
  note("tiers", before.tier, after.tier);
  note("values", fmt::format("seed {}", before.seed), fmt::format("seed {}", after.seed));
  return notes;
}

std::string_view text_of_outcome(const std::optional<Outcome>& outcome) {
  return outcome ? name_of(*outcome) : "absent";
}

nlohmann::json units_json(const std::optional<double>& error) {
  if (!error) return "absent";
  if (std::isinf(*error)) return "inf";
  return *error;
}

std::string units_text(const std::optional<double>& error, ErrorUnit unit) {
  return error ? error_text(*error, unit) : "absent";
}

}  // namespace

size_t ReportDifference::count_worse() const {
  return static_cast<size_t>(std::ranges::count(outcomes, true, &OutcomeChange::is_worse) +
                             std::ranges::count(ledger, true, &LedgerChange::is_worse));
}

ReportDifference difference_of(const Report& before, const Report& after) {
  ReportDifference difference;
  difference.notes = notes_of(before, after);
  add_outcomes(before, after, difference);
  add_ledger(before, after, difference);
  return difference;
}

nlohmann::json to_json(const ReportDifference& difference) {
  nlohmann::json outcomes = nlohmann::json::array();
  for (const OutcomeChange& each : difference.outcomes) {
    outcomes.push_back({{"name", each.name},
                        {"before", text_of_outcome(each.before)},
                        {"after", text_of_outcome(each.after)},
                        {"worse", each.is_worse}});
  }
  nlohmann::json ledger = nlohmann::json::array();
  for (const LedgerChange& each : difference.ledger) {
    ledger.push_back({{"op", each.op},
                      {"type", name_of(each.type)},
                      {"unit", name_of(each.unit)},
                      {"before", units_json(each.before)},
                      {"after", units_json(each.after)},
                      {"worse", each.is_worse}});
  }
  return {{"notes", difference.notes},
          {"worse", difference.count_worse()},
          {"outcomes", std::move(outcomes)},
          {"ledger", std::move(ledger)}};
}

std::string difference_text(const ReportDifference& difference) {
  std::string text;
  for (const std::string& note : difference.notes) text += note + "\n";
  for (const bool is_worse : {true, false}) {
    for (const OutcomeChange& each : difference.outcomes) {
      if (each.is_worse != is_worse) continue;
      const std::string_view word = is_worse ? "worse" : each.is_better ? "better" : "other";
      text += fmt::format("{} {}: {} -> {}\n", word, each.name, text_of_outcome(each.before),
                          text_of_outcome(each.after));
    }
    for (const LedgerChange& each : difference.ledger) {
      if (each.is_worse != is_worse) continue;
      const std::string_view word = is_worse ? "worse" : each.before ? "better" : "other";
      text += fmt::format("{} {} of {}: {} -> {}\n", word, each.op, name_of(each.type),
                          units_text(each.before, each.unit), units_text(each.after, each.unit));
    }
  }
  const size_t changes = difference.outcomes.size() + difference.ledger.size();
  return text + fmt::format("{} changes, {} worse\n", changes, difference.count_worse());
}

}  // namespace tenon::conformance
