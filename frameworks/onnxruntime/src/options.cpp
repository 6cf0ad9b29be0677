#include "frameworks/onnxruntime/src/options.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <vector>

namespace tenon::ort {
namespace {

std::string small_letters(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return std::tolower(c); });
  return small;
}

// The device behind "tenon", or nothing if another word begins so.
std::string device_behind_tenon(std::string_view rest) {
  constexpr std::string_view kDividers = "-_.:/";
  if (kDividers.find(rest[0]) != std::string_view::npos) return std::string(rest.substr(1));
  return std::isupper(static_cast<unsigned char>(rest[0])) != 0 ? small_letters(rest) : "";
}

Status set_flag(bool& flag, const std::string& key, const std::string& value) {
  const std::string small = small_letters(value);
  if (small != "0" && small != "1" && small != "true" && small != "false") {
    return invalid_argument("option '{}' is 0 or 1, not '{}'", key, value);
  }
  flag = small == "1" || small == "true";
  return {};
}

Status set_number(int64_t& number, const std::string& key, const std::string& value,
                  int64_t least) {
  int64_t read = 0;
  const char* const end = value.data() + value.size();
  const auto [at, error] = std::from_chars(value.data(), end, read);
  if (error != std::errc() || at != end || read < least) {
    return invalid_argument("option '{}' is a number from {}, not '{}'", key, least, value);
  }
  number = read;
  return {};
}

struct TextOption {
  std::string_view key;
  std::string ProviderOptions::* member;
};
constexpr TextOption kTexts[] = {
    {"device", &ProviderOptions::device},
    {"layers", &ProviderOptions::layers},
    {"pjrt_library", &ProviderOptions::plugin_library},
    {"cache_directory", &ProviderOptions::cache_directory},
    {"dump_directory", &ProviderOptions::dump_directory},
    {"report_file", &ProviderOptions::report_file},
};
struct FlagOption {
  std::string_view key;
  bool ProviderOptions::* member;
};
constexpr FlagOption kFlags[] = {
    {"strict", &ProviderOptions::strict},
    {"strict_device", &ProviderOptions::strict_device},
    {"native_math", &ProviderOptions::native_math},
    {"shape_values", &ProviderOptions::shape_values},
    {"small_groups", &ProviderOptions::small_groups},
};
struct NumberOption {
  std::string_view key;
  int64_t ProviderOptions::* member;
  int64_t least;
};
constexpr NumberOption kNumbers[] = {
    {"cache_size", &ProviderOptions::cache_size, 1},
    {"constant_elements", &ProviderOptions::constant_elements, 0},
    {"prepared_elements", &ProviderOptions::prepared_elements, 0},
};

Status set_option(ProviderOptions& options, const std::string& key, const std::string& value) {
  for (const TextOption& each : kTexts) {
    if (each.key != key) continue;
    options.*each.member = value;
    return {};
  }
  for (const FlagOption& each : kFlags) {
    if (each.key == key) return set_flag(options.*each.member, key, value);
  }
  for (const NumberOption& each : kNumbers) {
    if (each.key == key) return set_number(options.*each.member, key, value, each.least);
  }
  if (key == "time_limit") {
    int64_t limit = 0;
    TENON_TRY(set_number(limit, key, value, 1));
    options.time_limit = value;
    return {};
  }
  std::string known = "time_limit";
  const auto add = [&](std::string_view name) { known += ", " + std::string(name); };
  for (const TextOption& each : kTexts) add(each.key);
  for (const FlagOption& each : kFlags) add(each.key);
  for (const NumberOption& each : kNumbers) add(each.key);
  return invalid_argument("there is no option '{}'; there are {}", key, known);
}

}  // namespace

std::string environment_or(const char* name, std::string otherwise) {
  const char* const found = std::getenv(name);
  return found == nullptr || *found == '\0' ? std::move(otherwise) : found;
}

ProviderName provider_name_of(std::string_view registered, const std::string& folder) {
  constexpr std::string_view kTenon = "tenon", kProvider = "ExecutionProvider";
  const size_t equals = registered.find('=');
  if (equals != std::string_view::npos) {
    return {provider_name_of(registered.substr(0, equals), folder).provider,
            std::string(registered.substr(equals + 1))};
  }
  std::string_view word = registered;
  if (word.size() > kProvider.size() && word.ends_with(kProvider)) {
    word.remove_suffix(kProvider.size());
  }
  std::string device;
  const bool tenon = small_letters(word.substr(0, kTenon.size())) == kTenon;
  if (word.empty() || (tenon && word.size() == kTenon.size())) {
    return {"TenonExecutionProvider", environment_or("TENON_DEVICE", "cpu")};
  }
  if (tenon) device = device_behind_tenon(word.substr(kTenon.size()));
  if (device.empty()) device = word;
  for (const char* prefix : {"/libtenon_", "/lib"}) {
    const std::string file = folder + prefix + device + ".so";
    std::error_code ignored;
    if (std::filesystem::exists(file, ignored)) return {std::string(registered), file};
  }
  return {std::string(registered), device};
}

Result<ProviderOptions> provider_options_of(const std::map<std::string, std::string>& entries,
                                            const ProviderName& name) {
  ProviderOptions options;
  options.device = name.device;
  const std::string prefix = "ep." + small_letters(name.provider) + ".";
  for (const auto& [key, value] : entries) {
    if (!key.starts_with(prefix)) continue;
    TENON_TRY(set_option(options, key.substr(prefix.size()), value));
  }
  return options;
}

}  // namespace tenon::ort
