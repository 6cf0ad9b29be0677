#include "core/backend/registry/tuning_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>

#include "core/backend/layers/forward.h"
#include "core/base/file.h"

namespace tenon::backend {
namespace {

struct RateMember {
  std::string_view name;
  double DeviceRates::* rate;
  double TargetInfo::* member;
};
constexpr RateMember kRates[] = {
    {"flops", &DeviceRates::flops, &TargetInfo::flops},
    {"bytes_per_second", &DeviceRates::bytes_per_second, &TargetInfo::bytes_per_second},
    {"launch_seconds", &DeviceRates::launch_seconds, &TargetInfo::launch_seconds},
};

class TunedBackend : public ForwardingBackend {
 public:
  TunedBackend(std::shared_ptr<Backend> inner, TuningFile file)
      : ForwardingBackend(std::move(inner)), file_(std::move(file)) {}

  Result<std::vector<DeviceInfo>> devices() override {
    TENON_ASSIGN(std::vector<DeviceInfo> devices, inner().devices());
    for (DeviceInfo& device : devices) {
      std::vector<TuningValue>& all = device.target.tuning;
      all.insert(all.end(), file_.tuning.begin(), file_.tuning.end());
      for (const RateMember& each : kRates) {
        if (file_.rates.*each.rate > 0) device.target.*each.member = file_.rates.*each.rate;
      }
    }
    return devices;
  }

 private:
  const TuningFile file_;
};

std::string_view trimmed(std::string_view part) {
  const size_t first = part.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return part.substr(first, part.find_last_not_of(" \t\r") - first + 1);
}

// A positive number, and nothing else.
std::optional<double> rate_from(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && std::isfinite(value) && value > 0 ? std::optional(value) : std::nullopt;
}

}  // namespace

Result<TuningFile> parse_tuning_file(std::string_view text) {
  TuningFile file;
  std::string parameters;  // A line for each line, so that errors name it.
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string_view stated = line.substr(0, line.find('#'));
    const size_t equals = std::min(stated.find('='), stated.size());
    const auto* const rate =
        std::ranges::find(kRates, trimmed(stated.substr(0, equals)), &RateMember::name);
    if (rate == std::end(kRates)) {
      parameters += line;
    } else {
      const auto value =
          rate_from(equals == stated.size() ? "" : trimmed(stated.substr(equals + 1)));
      if (!value) return invalid_argument("line {}: '{}' is not a rate", number, trimmed(stated));
      file.rates.*rate->rate = *value;
    }
    parameters += '\n';
  }
  TENON_ASSIGN(file.tuning, parse_tuning(parameters));
  return file;
}

std::string to_string(const TuningFile& file) {
  std::string text;
  for (const RateMember& each : kRates) {
    const double value = file.rates.*each.rate;
    if (value > 0) text += fmt::format("{} = {:.4g}\n", each.name, value);
  }
  return text + to_string(file.tuning);
}

std::string tuning_file_of(const std::string& plugin) {
  const std::filesystem::path path(plugin);
  const std::string name = path.filename().string();
  return (path.parent_path() / (name.substr(0, name.find(".so")) + ".tuning")).string();
}

Result<std::shared_ptr<Backend>> with_tuning_file(std::shared_ptr<Backend> backend,
                                                  const std::string& plugin) {
  const std::string file = tuning_file_of(plugin);
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return backend;
  TENON_ASSIGN(const std::string text, read_file(file));
  auto parsed = parse_tuning_file(text);
  if (!parsed) return tl::make_unexpected(Status(parsed.error()).with_context(file));
  return std::make_shared<TunedBackend>(std::move(backend), *std::move(parsed));
}

}  // namespace tenon::backend
