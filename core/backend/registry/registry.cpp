#include "core/backend/registry/registry.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "core/backend/interpreter/interpreter.h"
#include "core/backend/registry/plugin_file.h"
#include "core/backend/registry/probe.h"

namespace tenon::backend {
namespace {

namespace fs = std::filesystem;

std::string absolute(const std::string& path) {
  std::error_code error;
  const fs::path whole = fs::canonical(path, error);
  return error ? path : whole.string();
}

}  // namespace

Result<DeviceName> parse_device_name(std::string_view text) {
  DeviceName name;
  const size_t colon = text.rfind(':');
  name.backend = text.substr(0, colon);
  if (colon == std::string_view::npos) return name;
  const std::string_view number = text.substr(colon + 1);
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), name.index);
  if (error == std::errc() && end == number.data() + number.size()) return name;
  return invalid_argument("'{}' is not a device: the text after the ':' is not a number", text);
}

Registry& Registry::instance() {
  static Registry registry;
  return registry;
}

Registry::Registry()
    : Registry(std::getenv("TENON_PLUGIN_PATH") == nullptr ? ""
                                                           : std::getenv("TENON_PLUGIN_PATH")) {}

Registry::Registry(std::string plugin_path) : plugin_path_(std::move(plugin_path)) {
  static_cast<void>(add("interp", [] {
    InterpreterConfig config;
    config.devices = 65;  // One for a program, the others for processes that it starts.
    return Result<std::shared_ptr<Backend>>(make_interpreter_backend(config));
  }));
}

Status Registry::add(std::string name, BackendFactory make) {
  const std::lock_guard lock(mutex_);
  const auto [at, added] =
      entries_.try_emplace(name, RegistryEntry{"built in", std::move(make), {}});
  if (added) return {};
  return make_error(ErrorCode::kAlreadyExists, "there is a backend {} already ({})", name,
                    at->second.source);
}

Result<std::shared_ptr<Backend>> Registry::make(RegistryEntry& entry) {
  if (!entry.made) entry.made = entry.make();
  return *entry.made;
}

Result<std::shared_ptr<Backend>> Registry::get_file(const std::string& path, Start start) {
  const std::string whole = absolute(path);
  RegistryEntry& entry = files_.try_emplace(whole, RegistryEntry{whole, nullptr, {}}).first->second;
  entry.make = [whole, start]() -> Result<std::shared_ptr<Backend>> {
    if (start == Start::kProbed && check_plugin_file(whole).ok()) TENON_TRY(probe_plugin(whole));
    return load_plugin(whole);
  };
  return make(entry);
}

// The name of a plug-in is known only after loading it. A plug-in that cannot start must not affect
// the ones that the caller asked for.
void Registry::look_for_plugins() {
  if (looked_) return;
  looked_ = true;
  std::vector<std::string> files;
  std::string_view rest = plugin_path_;
  while (!rest.empty()) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    const std::string part(rest.substr(0, colon));
    rest.remove_prefix(std::min(colon + 1, rest.size()));
    std::error_code error;
    if (!fs::is_directory(part, error)) {
      if (!part.empty()) files.push_back(part);
      continue;
    }
    std::vector<std::string> inside;
    for (fs::directory_iterator at(part, error), end; !error && at != end; at.increment(error)) {
      if (at->path().extension() == ".so") inside.push_back(at->path().string());
    }
    std::ranges::sort(inside);
    files.insert(files.end(), inside.begin(), inside.end());
  }
  for (const std::string& file : files) {
    auto backend = get_file(file, Start::kProbed);
    const std::string name =
        backend ? std::string((*backend)->name()) : fs::path(file).filename().string();
    const auto [at, added] =
        entries_.try_emplace(name, RegistryEntry{absolute(file), nullptr, backend});
    if (added || at->second.source == absolute(file)) continue;
    // It is unknown which of them was meant.
    const Status twice = make_error(
        ErrorCode::kAlreadyExists, "backend {} is {} and in {}; name one by its path", name,
        at->second.source == "built in" ? "built in" : "in " + at->second.source, absolute(file));
    if (at->second.source != "built in") at->second.made = tl::make_unexpected(twice);
    entries_.try_emplace(
        fs::path(file).filename().string(),
        RegistryEntry{absolute(file), nullptr,
                      Result<std::shared_ptr<Backend>>(tl::make_unexpected(twice))});
  }
}

Result<std::shared_ptr<Backend>> Registry::get(const std::string& name_or_path) {
  const std::lock_guard lock(mutex_);
  if (name_or_path.find('/') != std::string::npos) return get_file(name_or_path, Start::kDirect);
  auto found = entries_.find(name_or_path);
  if (found == entries_.end()) {
    look_for_plugins();
    found = entries_.find(name_or_path);
  }
  if (found != entries_.end()) return make(found->second);
  std::vector<std::string_view> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return not_found(
      "there is no backend '{}'; there are {} (TENON_PLUGIN_PATH names plug-ins, or "
      "give the path of one)",
      name_or_path, fmt::join(names, ", "));
}

bool Registry::is_built_in(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(name);
  return found != entries_.end() && found->second.source == "built in";
}

std::vector<Listed> Registry::list() {
  const std::lock_guard lock(mutex_);
  look_for_plugins();
  std::vector<Listed> all;
  for (auto& [name, entry] : entries_) all.push_back({name, entry.source, make(entry)});
  return all;
}

}  // namespace tenon::backend
