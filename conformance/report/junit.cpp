#include <fmt/format.h>

#include <map>

#include "conformance/report/formats.h"

namespace tenon::conformance {
namespace {

// The length of the UTF-8 sequence at the start of `text`; 0 if there is no valid one.
size_t sequence_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t length = byte(0) < 0x80            ? 1
                        : byte(0) >> 5 == 0b110   ? 2
                        : byte(0) >> 4 == 0b1110  ? 3
                        : byte(0) >> 3 == 0b11110 ? 4
                                                  : 0;
  if (length == 0 || length > text.size()) return 0;
  uint32_t code = length == 1 ? byte(0) : byte(0) & (0x7FU >> length);
  for (size_t i = 1; i < length; ++i) {
    if (byte(i) >> 6 != 0b10) return 0;
    code = code << 6 | (byte(i) & 0x3FU);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xD800 && code < 0xE000;
  const bool is_character = code <= 0x10FFFF && code != 0xFFFE && code != 0xFFFF;
  return code >= kLeast[length] && !is_surrogate && is_character ? length : 0;
}

// Text for an attribute or an element. XML 1.0 has no other control characters than tab and line
// ends, not even escaped: they become U+FFFD, as bytes do that are not UTF-8.
std::string xml_text(std::string_view text) {
  std::string escaped;
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    const char c = text[0];
    if (length == 1) {
      switch (c) {
        case '&':
          escaped += "&amp;";
          break;
        case '<':
          escaped += "&lt;";
          break;
        case '>':
          escaped += "&gt;";
          break;
        case '"':
          escaped += "&quot;";
          break;
        case '\n':
        case '\r':
        case '\t':
          escaped += fmt::format("&#{};", static_cast<int>(c));
          break;
        default:
          escaped +=
              static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? "\uFFFD" : std::string(1, c);
      }
    } else {
      escaped += length == 0 ? "\uFFFD" : text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return escaped;
}

enum class JUnitKind : uint8_t { kPassed, kSkipped, kFailure, kError };

JUnitKind kind_of(const CaseResult& result) {
  if (is_pass(result.outcome)) return JUnitKind::kPassed;
  if (!is_failure(result)) return JUnitKind::kSkipped;
  switch (result.outcome) {
    case Outcome::kCrash:
    case Outcome::kTimeout:
    case Outcome::kDeviceLost:
    case Outcome::kHarnessError:
      return JUnitKind::kError;
    default:
      return JUnitKind::kFailure;
  }
}

// The members of a suite: cases whose names begin with the same two words.
struct JUnitSuite {
  std::string cases;
  size_t tests = 0;
  std::array<size_t, 4> kinds = {};
  double seconds = 0;
};

std::string suite_of(const std::string& name) {
  const size_t slash = name.find('/');
  return slash == std::string::npos ? name : name.substr(0, name.find('/', slash + 1));
}

std::string body_of(const CaseRecord& record, const std::string& command) {
  const CaseResult& result = record.result;
  const std::string outcome(name_of(result.outcome));
  const std::string message = xml_text(result.message);
  switch (kind_of(result)) {
    case JUnitKind::kPassed:
      return result.message.empty()
                 ? ""
                 : fmt::format("<system-out>{}: {}</system-out>", outcome, message);
    case JUnitKind::kSkipped:
      return fmt::format("<skipped message=\"{}: {}\"/>", outcome, xml_text(result.excuse));
    default:
      break;
  }
  std::string text = result.message + '\n';
  if (result.blame != Blame::kNone) text += fmt::format("to blame: {}\n", name_of(result.blame));
  if (!result.step.empty()) text += fmt::format("function: {}\n", result.step);
  if (!result.arguments.empty()) text += fmt::format("arguments: {}\n", result.arguments);
  if (!result.listing.empty()) text += result.listing + '\n';
  if (!result.reproducer.empty()) text += result.reproducer + '\n';
  text += fmt::format("again: {} '{}'", command, record.name);
  const std::string_view element = kind_of(result) == JUnitKind::kError ? "error" : "failure";
  return fmt::format("<{0} type=\"{1}\" message=\"{2}\">{3}</{0}>", element, outcome, message,
                     xml_text(text));
}

std::string attributes_of(const JUnitSuite& suite) {
  const auto count = [&](JUnitKind kind) { return suite.kinds[static_cast<size_t>(kind)]; };
  return fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.3f}\"",
                     suite.tests, count(JUnitKind::kFailure), count(JUnitKind::kError),
                     count(JUnitKind::kSkipped), suite.seconds);
}

void add(JUnitSuite& suite, const CaseRecord& record) {
  ++suite.tests;
  ++suite.kinds[static_cast<size_t>(kind_of(record.result))];
  suite.seconds += record.seconds;
}

}  // namespace

std::string to_junit(const Report& report) {
  std::map<std::string, JUnitSuite> suites;
  JUnitSuite all;
  for (const CaseRecord& record : report.records) {
    const std::string name = suite_of(record.name);
    JUnitSuite& suite = suites[name];
    add(suite, record);
    add(all, record);
    const std::string body = body_of(record, report.command);
    suite.cases += fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\"",
                               xml_text(name), xml_text(record.name), record.seconds);
    suite.cases += body.empty() ? "/>\n" : ">" + body + "</testcase>\n";
  }
  std::string text = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"tenon conform\" {}>\n",
      attributes_of(all));
  for (const auto& [name, suite] : suites) {
    text += fmt::format("  <testsuite name=\"{}\" {}>\n{}  </testsuite>\n", xml_text(name),
                        attributes_of(suite), suite.cases);
  }
  return text + "</testsuites>\n";
}

}  // namespace tenon::conformance
