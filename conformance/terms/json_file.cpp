#include "conformance/terms/json_file.h"

#include <algorithm>

#include "core/base/file.h"

namespace tenon::conformance {
namespace {

std::string kind_of(const nlohmann::json& value) {
  const std::string name = value.type_name();
  return name == "null" ? name : (name[0] == 'a' || name[0] == 'o' ? "an " : "a ") + name;
}

SourcePosition position_of(std::string_view text, size_t byte, const std::string& path) {
  const std::string_view before = text.substr(0, std::min(byte == 0 ? 0 : byte - 1, text.size()));
  SourcePosition at;
  at.file = path;
  at.line = static_cast<uint32_t>(std::ranges::count(before, '\n')) + 1;
  const size_t begin = before.rfind('\n') + 1;  // 0 if there is no newline.
  at.column = static_cast<uint32_t>(before.size() - begin) + 1;
  return at;
}

}  // namespace

Result<nlohmann::json> parse_json(std::string_view text, const std::string& path) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {  // The library reports through exceptions.
    const std::string what = error.what();
    const size_t reason = what.find("syntax error");
    return invalid_argument("not JSON: {}",
                            reason == std::string::npos ? what : what.substr(reason))
        .at(position_of(text, error.byte, path));
  } catch (const nlohmann::json::exception& error) {  // A number out of range.
    return invalid_argument("{}: not JSON: {}", path, error.what());
  }
}

Result<nlohmann::json> read_json_file(const std::string& path) {
  TENON_ASSIGN(const std::string text, read_file(path));
  return parse_json(text, path);
}

Status write_json_file(const std::string& path, const nlohmann::json& document) {
  return write_file(path,
                    document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

MemberReader::MemberReader(const nlohmann::json& object, std::string place)
    : object_(object), place_(std::move(place)) {
  if (!object.is_object()) {
    status_ = invalid_argument("{}: expected an object, found {}", place_.empty() ? "/" : place_,
                               kind_of(object));
  }
}

void MemberReader::fail(const char* name, std::string_view message) {
  if (status_.ok()) status_ = invalid_argument("{}/{}: {}", place_, name, message);
}

const nlohmann::json* MemberReader::member(const char* name, bool is_required) {
  read_.emplace_back(name);
  if (!status_.ok()) return nullptr;
  const auto found = object_.find(name);
  if (found != object_.end()) return &*found;
  if (is_required) fail(name, "this member is missing");
  return nullptr;
}

std::string MemberReader::text(const char* name) {
  const nlohmann::json* const value = member(name, true);
  if (value == nullptr) return {};
  if (!value->is_string()) {
    fail(name, "expected text, found " + kind_of(*value));
    return {};
  }
  const auto& text = value->get_ref<const std::string&>();
  if (text.empty()) fail(name, "expected text, found an empty one");
  return text;
}

std::string MemberReader::optional_text(const char* name) {
  return object_.is_object() && object_.contains(name) ? text(name) : std::string();
}

double MemberReader::number(const char* name) {
  const nlohmann::json* const value = member(name, true);
  if (value == nullptr) return 0;
  if (value->is_number()) return value->get<double>();
  fail(name, "expected a number, found " + kind_of(*value));
  return 0;
}

void MemberReader::each(
    const char* name,
    const std::function<Status(const nlohmann::json&, const std::string& place)>& read) {
  const nlohmann::json* const value = member(name, false);
  if (value == nullptr) return;
  if (!value->is_array()) return fail(name, "expected a list, found " + kind_of(*value));
  for (size_t i = 0; i < value->size() && status_.ok(); ++i) {
    status_ = read((*value)[i], fmt::format("{}/{}/{}", place_, name, i));
  }
}

Status MemberReader::finish() {
  if (!status_.ok()) return status_;
  for (const auto& [name, value] : object_.items()) {
    if (std::ranges::count(read_, name) == 0) fail(name.c_str(), "there is no such member");
  }
  return status_;
}

}  // namespace tenon::conformance
