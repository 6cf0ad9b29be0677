// Reads JSON files that people write, with the place of each error.
//
// Thread-safety: values.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace tenon::conformance {

/// The document in a file. Errors: the file's, and syntax, with line and column.
Result<nlohmann::json> read_json_file(const std::string& path);
/// The same for text of `path`.
Result<nlohmann::json> parse_json(std::string_view text, const std::string& path);

/// Writes a document, indented. Bytes that are not UTF-8 become U+FFFD.
Status write_json_file(const std::string& path, const nlohmann::json& document);

/// Reads the members of one object. The first error is kept, with its place as a JSON pointer
/// ("/relaxed/1/ulp: expected a number, found a string"), and later reads give empty values.
class MemberReader {
 public:
  MemberReader(const nlohmann::json& object, std::string place);

  /// Text that is not empty.
  std::string text(const char* name);
  /// Empty if there is no such member.
  std::string optional_text(const char* name);
  double number(const char* name);
  /// Calls `read` for each element of a list, which is empty if there is no such member.
  void each(const char* name,
            const std::function<Status(const nlohmann::json&, const std::string& place)>& read);

  /// Keeps an error about a member, if it is the first one.
  void fail(const char* name, std::string_view message);
  /// The first error. A member that was not read is one.
  Status finish();

 private:
  const nlohmann::json* member(const char* name, bool is_required);

  const nlohmann::json& object_;
  const std::string place_;
  std::vector<std::string> read_;
  Status status_;
};

}  // namespace tenon::conformance
