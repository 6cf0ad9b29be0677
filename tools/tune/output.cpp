#include "tools/tune/output.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/backend/registry/registry.h"
#include "core/backend/registry/tuning_file.h"
#include "core/base/file.h"

namespace tenon::tools {
namespace {

std::string milliseconds(double seconds) {
  return std::isfinite(seconds) ? fmt::format("{:.3g} ms", seconds * 1e3) : "does not run";
}

// A compiler's log has many lines, and a comment of the file must not go on in the next.
std::string first_line_of(const std::string& text) {
  return text.substr(0, std::min(text.find_first_of("\r\n"), text.size()));
}

}  // namespace

std::string output_of(const std::string& device) {
  const auto name = backend::parse_device_name(device);
  const std::string backend = name ? name->backend : device;
  if (backend.find('/') != std::string::npos) return backend::tuning_file_of(backend);
  for (const backend::Listed& each : backend::Registry::instance().list()) {
    if (each.name == backend && each.source != "built in") {
      return backend::tuning_file_of(each.source);
    }
  }
  return backend + ".tuning";
}

std::string table_of(const DeviceTrials& target, const TuningResult& result,
                     std::string_view prefix) {
  std::string text;
  for (size_t i = 0; i < result.before.size(); ++i) {
    text += fmt::format("{}{:<20} {:>12} {:>12}", prefix, target.programs()[i].name,
                        milliseconds(result.before[i]), milliseconds(result.after[i]));
    if (std::isfinite(result.after[i])) {
      text += fmt::format("  {:.2f}", result.before[i] / result.after[i]);
    } else {
      text += "  " + first_line_of(target.why_not(i));
    }
    text += '\n';
  }
  return text;
}

Status write_tuning(const std::string& path, const std::string& comment, const Tuning& best) {
  backend::TuningFile file;
  std::error_code none;
  if (std::filesystem::is_regular_file(path, none)) {
    TENON_ASSIGN(const std::string text, read_file(path));
    TENON_ASSIGN(file, backend::parse_tuning_file(text));
  }
  for (const auto& [name, value] : best) {
    std::erase_if(file.tuning, [&](const backend::TuningValue& each) { return each.name == name; });
    file.tuning.push_back({name, value});
  }
  const std::string text = comment + backend::to_string(file);
  // A file that is not read refuses the plug-in.
  TENON_TRY(backend::parse_tuning_file(text));
  return write_file(path, text);
}

}  // namespace tenon::tools
