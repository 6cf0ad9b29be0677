#include "conformance/terms/declaration.h"

#include <algorithm>

#include "conformance/compare/pattern.h"
#include "conformance/terms/json_file.h"

namespace tenon::conformance {

const UnsupportedCases* Declaration::not_supporting(const std::string& name) const {
  const auto found = std::ranges::find_if(
      not_supported, [&](const UnsupportedCases& each) { return matches(each.cases, name); });
  return found == not_supported.end() ? nullptr : &*found;
}

bool Declaration::promises(const std::string& name) const {
  return (!profile || profile->has(name)) && not_supporting(name) == nullptr;
}

namespace {

Result<UnsupportedCases> unsupported_from_json(const nlohmann::json& value,
                                               const std::string& place) {
  MemberReader reader(value, place);
  UnsupportedCases read{reader.text("cases"), reader.text("reason")};
  TENON_TRY(reader.finish());
  return read;
}

Result<RelaxedBound> relaxed_from_json(const nlohmann::json& value, const std::string& place) {
  MemberReader reader(value, place);
  RelaxedBound read{reader.text("op"), reader.text("type"), reader.number("ulp")};
  if (!(read.ulp > 0)) reader.fail("ulp", "expected a number of units above 0");
  TENON_TRY(reader.finish());
  return read;
}

}  // namespace

Result<Declaration> declaration_from_json(const nlohmann::json& document) {
  MemberReader reader(document, "");
  Declaration made;
  made.device = reader.text("device");
  made.vendor = reader.text("vendor");
  made.version = reader.text("version");
  if (const std::string name = reader.optional_text("profile"); !name.empty()) {
    auto profile = builtin_profile(name);
    if (profile) {
      made.profile = std::move(*profile);
    } else {
      reader.fail("profile", profile.error().message());
    }
  }
  reader.each("not_supported", [&](const nlohmann::json& value, const std::string& at) -> Status {
    TENON_ASSIGN(UnsupportedCases read, unsupported_from_json(value, at));
    made.not_supported.push_back(std::move(read));
    return {};
  });
  reader.each("relaxed", [&](const nlohmann::json& value, const std::string& at) -> Status {
    TENON_ASSIGN(RelaxedBound read, relaxed_from_json(value, at));
    made.relaxed.push_back(std::move(read));
    return {};
  });
  TENON_TRY(reader.finish());
  return made;
}

Result<Declaration> read_declaration(const std::string& path) {
  TENON_ASSIGN(const nlohmann::json document, read_json_file(path));
  auto read = declaration_from_json(document);
  if (!read) return Error(std::move(read.error()).with_context(path));
  return read;
}

nlohmann::json to_json(const Declaration& declaration) {
  nlohmann::json made = {{"device", declaration.device},
                         {"vendor", declaration.vendor},
                         {"version", declaration.version}};
  if (declaration.profile) made["profile"] = declaration.profile->name;
  for (const UnsupportedCases& each : declaration.not_supported) {
    made["not_supported"].push_back({{"cases", each.cases}, {"reason", each.reason}});
  }
  for (const RelaxedBound& each : declaration.relaxed) {
    made["relaxed"].push_back({{"op", each.op}, {"type", each.type}, {"ulp", each.ulp}});
  }
  return made;
}

}  // namespace tenon::conformance
