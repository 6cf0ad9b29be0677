#include "conformance/compare/record.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace tenon::conformance {
namespace {

using nlohmann::json;

// JSON has no infinity: an error that is not a number of units.
json error_json(double error) {
  if (std::isinf(error)) return "inf";
  return error;
}
double error_from_json(const json& value) {
  return value.is_string() ? std::numeric_limits<double>::infinity() : value.get<double>();
}

// Members that most cases do not have are left out.
void set_if_given(json& object, const char* name, std::string_view text) {
  if (!text.empty()) object[name] = text;
}

std::string text_of(const json& object, const char* name) {
  return object.contains(name) ? object.at(name).get<std::string>() : std::string();
}

LedgerEntry ledger_from_json(const json& value) {
  LedgerEntry entry;
  entry.op = value.at("op").get<std::string>();
  entry.type = element_type_from_name(value.at("type").get<std::string>()).value_or(ElementType{});
  entry.error = error_from_json(value.at("error"));
  entry.bound = value.at("bound").get<double>();
  entry.elements = value.at("elements").get<int64_t>();
  entry.operands = text_of(value, "operands");
  entry.got = text_of(value, "got");
  entry.exact = text_of(value, "exact");
  entry.relaxed = value.value("relaxed", 0.0);
  const bool is_share = value.at("unit").get<std::string>() == name_of(ErrorUnit::kBound);
  entry.unit = is_share ? ErrorUnit::kBound : ErrorUnit::kUlp;
  return entry;
}

constexpr Blame kBlames[] = {Blame::kNone,       Blame::kLowering,  Blame::kKernel,
                             Blame::kNativeCall, Blame::kInterface, Blame::kHost};

}  // namespace

json to_json(const LedgerEntry& entry) {
  json made = {{"op", entry.op},
               {"type", std::string(name_of(entry.type))},
               {"error", error_json(entry.error)},
               {"unit", std::string(name_of(entry.unit))},
               {"bound", entry.bound},
               {"elements", entry.elements}};
  set_if_given(made, "operands", entry.operands);
  set_if_given(made, "got", entry.got);
  set_if_given(made, "exact", entry.exact);
  if (entry.relaxed > 0) made["relaxed"] = entry.relaxed;
  return made;
}

json to_json(const CaseRecord& record) {
  const CaseResult& result = record.result;
  json made = {{"name", record.name},
               {"outcome", std::string(name_of(result.outcome))},
               {"steps",
                {{"kernels", result.steps.kernels},
                 {"calls", result.steps.calls},
                 {"host", result.steps.host}}},
               {"seconds", record.seconds}};
  set_if_given(made, "message", result.message);
  set_if_given(made, "blame", name_of(result.blame));
  set_if_given(made, "step", result.step);
  set_if_given(made, "arguments", result.arguments);
  set_if_given(made, "reproducer", result.reproducer);
  set_if_given(made, "listing", result.listing);
  set_if_given(made, "excuse", result.excuse);
  if (result.found) made["found"] = std::string(name_of(*result.found));
  for (const LedgerEntry& entry : result.ledger) made["ledger"].push_back(to_json(entry));
  return made;
}

Result<CaseRecord> record_from_json(const json& value) {
  CaseRecord record;
  try {
    record.name = value.at("name").get<std::string>();
    const auto outcome = outcome_from_name(value.at("outcome").get<std::string>());
    if (!outcome) return invalid_argument("{}: no such outcome", value.at("outcome").dump());
    CaseResult& result = record.result;
    result.outcome = *outcome;
    const json& steps = value.at("steps");
    result.steps.kernels = steps.at("kernels").get<int64_t>();
    result.steps.calls = steps.at("calls").get<int64_t>();
    result.steps.host = steps.at("host").get<int64_t>();
    record.seconds = value.at("seconds").get<double>();
    result.message = text_of(value, "message");
    const std::string blame = text_of(value, "blame");
    for (const Blame each : kBlames) {
      if (name_of(each) == blame) result.blame = each;
    }
    result.step = text_of(value, "step");
    result.arguments = text_of(value, "arguments");
    result.reproducer = text_of(value, "reproducer");
    result.listing = text_of(value, "listing");
    result.excuse = text_of(value, "excuse");
    result.found = outcome_from_name(text_of(value, "found"));
    if (value.contains("ledger")) {
      for (const json& entry : value.at("ledger")) {
        result.ledger.push_back(ledger_from_json(entry));
      }
    }
  } catch (const json::exception& error) {
    return invalid_argument("not the record of a case: {}", error.what());
  }
  return record;
}

}  // namespace tenon::conformance
