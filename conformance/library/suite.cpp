// conformance/library/: the conformance suite as a library with a C interface, that of suite.h.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "conformance/library/suite.h"
#include "conformance/report/console.h"
#include "conformance/report/formats.h"
#include "conformance/run/selection.h"
#include "conformance/run/worker.h"
#include "conformance/terms/json_file.h"
#include "core/backend/adapter/adapter.h"
#include "core/base/file.h"

namespace conf = tenon::conformance;
using tenon::Result;
using tenon::Status;

struct TenonSuite {
  TenonPluginFunction plugin = nullptr;
  size_t device = 0;
  std::string plugin_path;
  conf::WorkerOptions worker;
  conf::Report report;  // Without records.
  std::vector<size_t> chosen;
  std::unique_ptr<conf::Target> target;
  std::map<size_t, conf::CaseRecord> records;  // By index in `chosen`.
  // The texts of the last result.
  std::string outcome;
  std::string text;
  std::string record;
};

namespace {

void write(const TenonSink* sink, std::string_view text) {
  if (sink != nullptr && sink->write != nullptr)
    sink->write(sink->context, text.data(), text.size());
}

// Runs what may allocate, and turns its error into a code and a text.
template <class Action>
TenonCode guarded(const TenonSink* error, const Action& action) noexcept {
  try {
    const Status status = action();
    if (status.ok()) return TENON_OK;
    write(error, status.to_string());
    return static_cast<TenonCode>(status.code());
  } catch (const std::bad_alloc&) {
    write(error, "the host has no memory left");
    return TENON_RESOURCE_EXHAUSTED;
  } catch (const std::exception& e) {  // No exception crosses the interface.
    write(error, e.what());
    return TENON_INTERNAL;
  }
}

// As much as both sides know of a struct that begins with its size.
template <class Struct>
Struct known_part(const Struct* given) {
  Struct known{};
  if (given != nullptr) std::memcpy(&known, given, std::min(given->size, sizeof known));
  return known;
}

std::string text_or_empty(const char* text) { return text == nullptr ? "" : text; }

std::vector<std::string> texts_of(const char* const* texts, size_t count) {
  return texts == nullptr ? std::vector<std::string>()
                          : std::vector<std::string>(texts, texts + count);
}

Status read_terms(const TenonSuiteOptions& options, conf::Terms& terms) {
  if (options.declaration != nullptr) {
    TENON_ASSIGN(terms.declaration, conf::read_declaration(options.declaration));
  }
  if (options.waivers == nullptr) return {};
  TENON_ASSIGN(terms.waivers, conf::read_waivers(options.waivers));
  Status valid = conf::check_expiry(terms.waivers, conf::today());
  return valid.ok() ? valid : Status(std::move(valid).with_context(options.waivers));
}

Status select_cases(const TenonSuiteOptions& options, TenonSuite& suite) {
  conf::Selection selection;
  selection.patterns = texts_of(options.patterns, options.pattern_count);
  selection.excluded = texts_of(options.excluded, options.excluded_count);
  const std::string tier = options.tier == nullptr ? "full" : options.tier;
  TENON_ASSIGN(selection.tier, conf::tier_from_name(tier));
  selection.has =
      options.plugin_path == nullptr ? conf::CaseNeeds::kInterface : conf::CaseNeeds::kPlugin;
  if (options.profile != nullptr) {
    TENON_ASSIGN(selection.profile, conf::find_profile(options.profile));
  }
  suite.chosen = conf::select(conf::all_cases(), selection);
  if (suite.chosen.empty()) return tenon::not_found("no case matches");
  conf::Report& report = suite.report;
  report.tenon = TENON_VERSION;
  report.suite = conf::suite_digest(conf::all_cases());
  report.has = selection.has;
  report.command = "tenon conform --device " +
                   (options.plugin_path == nullptr ? "DEVICE" : std::string(options.plugin_path));
  report.date = conf::to_string(conf::today());
  report.seed = options.seed;
  report.tier = tier;
  report.profile = text_or_empty(options.profile);
  report.filtered = !selection.patterns.empty() || !selection.excluded.empty();
  return {};
}

Status prepare(const TenonSuiteOptions& options, TenonSuite& suite) {
  suite.plugin_path = text_or_empty(options.plugin_path);
  TENON_TRY(read_terms(options, suite.report.terms));
  TENON_TRY(select_cases(options, suite));
  suite.worker.seed = options.seed;
  suite.worker.reduce = options.no_reduce == 0;
  const auto relaxed = suite.report.terms.relaxed();
  suite.worker.relaxed.assign(relaxed.begin(), relaxed.end());
  return {};
}

Status open_device(TenonSuite& suite) {
  if (suite.plugin == nullptr)
    return tenon::failed_precondition(
        "the suite was opened without a plug-in: it lists cases only");
  std::string said;
  const TenonSink sink = {sizeof sink, &said, [](void* context, const char* bytes, size_t count) {
                            static_cast<std::string*>(context)->append(bytes, count);
                          }};
  const TenonBackend* const table = suite.plugin(tenon::backend::host_services(), &sink);
  if (table == nullptr) return tenon::failed_precondition("the plug-in has no table: {}", said);
  TENON_ASSIGN(auto backend, tenon::backend::import_backend(table));
  TENON_ASSIGN(suite.target,
               conf::make_device_target({std::move(backend), suite.device, suite.plugin_path}));
  suite.report.device = suite.target->description();
  suite.report.counts_steps = suite.target->counts_steps();
  return {};
}

Status run(TenonSuite& suite, size_t index) {
  if (index >= suite.chosen.size())
    return tenon::make_error(tenon::ErrorCode::kOutOfRange, "case {} of {}", index,
                             suite.chosen.size());
  if (suite.target == nullptr) TENON_TRY(open_device(suite));
  const conf::ConformanceCase& one = conf::all_cases()[suite.chosen[index]];
  const auto begin = std::chrono::steady_clock::now();
  conf::CaseRecord record;
  record.name = one.name;
  record.result = conf::run_case(one, *suite.target, suite.worker);
  record.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  // Nothing can run on a lost device: the next case opens it again.
  if (record.result.outcome == conf::Outcome::kDeviceLost) suite.target = nullptr;
  conf::apply_terms(suite.report.terms, record);
  suite.outcome = conf::name_of(record.result.outcome);
  const bool is_plain = conf::is_pass(record.result.outcome) && record.result.message.empty();
  suite.text = is_plain ? "" : conf::failure_text(record, suite.report.command, false);
  suite.record =
      conf::to_json(record).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  suite.records[index] = std::move(record);
  return {};
}

void give_result(const TenonSuite& suite, size_t index, TenonSuiteResult* to) {
  TenonSuiteResult all{};
  all.failed = conf::is_failure(suite.records.at(index).result) ? 1 : 0;
  all.outcome = suite.outcome.c_str();
  all.text = suite.text.c_str();
  all.record = suite.record.c_str();
  const size_t size = std::min(to->size, sizeof all);
  all.size = to->size;
  std::memcpy(to, &all, size);
}

Status write_report(const TenonSuite& suite, const std::string& path) {
  conf::Report report = suite.report;
  for (const auto& [index, record] : suite.records) {
    report.records.push_back(record);
    report.seconds += record.seconds;
  }
  report.filtered |= report.records.size() < suite.chosen.size();
  if (path.ends_with(".json")) return conf::write_json_file(path, conf::to_json(report));
  if (path.ends_with(".xml")) return tenon::write_file(path, conf::to_junit(report));
  if (path.ends_with(".html")) return tenon::write_file(path, conf::to_html(report));
  return tenon::invalid_argument("{}: a report's name ends with .json, .xml or .html", path);
}

}  // namespace

extern "C" {

TenonCode tenon_suite_open(TenonPluginFunction plugin, size_t device,
                           const TenonSuiteOptions* options, TenonSuite** suite,
                           const TenonSink* error) {
  return guarded(error, [&]() -> Status {
    auto made = std::make_unique<TenonSuite>();
    made->plugin = plugin;
    made->device = device;
    TENON_TRY(prepare(known_part(options), *made));
    *suite = made.release();
    return {};
  });
}

void tenon_suite_close(TenonSuite* suite) { delete suite; }

size_t tenon_suite_size(const TenonSuite* suite) { return suite->chosen.size(); }

const char* tenon_suite_case(const TenonSuite* suite, size_t index) {
  return index < suite->chosen.size() ? conf::all_cases()[suite->chosen[index]].name.c_str()
                                      : nullptr;
}

TenonCode tenon_suite_run(TenonSuite* suite, size_t index, TenonSuiteResult* result,
                          const TenonSink* error) {
  return guarded(error, [&]() -> Status {
    TENON_TRY(run(*suite, index));
    if (result != nullptr) give_result(*suite, index, result);
    return {};
  });
}

TenonCode tenon_suite_write(const TenonSuite* suite, const char* path, const TenonSink* error) {
  return guarded(error, [&] { return write_report(*suite, path); });
}

}  // extern "C"
