#include "tools/new_backend/new_backend.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "core/backend/registry/registry.h"
#include "core/base/file.h"
#include "tools/new_backend/new_backend_files.h"

namespace tenon::tools {
namespace {

namespace fs = std::filesystem;

// Names of files of the project, or of devices without a backend.
constexpr std::array<std::string_view, 3> kTaken = {"plugin", "reference", "tenon"};
// Names that Meson reserves for its own targets.
constexpr std::array<std::string_view, 11> kOfMeson = {
    "all",     "benchmark", "clean",       "coverage", "dist",     "distcheck",
    "install", "phony",     "reconfigure", "test",     "uninstall"};

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

std::string upper_case(std::string_view name) {
  std::string upper(name);
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
  return upper;
}

// Removes the line that describes the folder in Tenon's tree.
std::string_view without_folder_line(std::string_view text) {
  const size_t end = text.find('\n');
  if (text.substr(0, end).find("backends/template/") == std::string_view::npos ||
      text.substr(0, end).find("/: ") == std::string_view::npos) {
    return text;
  }
  text.remove_prefix(end + 1);
  if (text.starts_with("//\n")) text.remove_prefix(3);
  return text;
}

// Renames the template's names for this backend. Its headers are in the same folder of the project.
std::string renamed(std::string_view text, std::string_view name) {
  constexpr std::string_view kKeyword = "template <";
  constexpr std::string_view kKept = "\x01 <";
  std::string result(without_folder_line(text));
  replace_all(result, "backends/template/", "");
  replace_all(result, kKeyword, kKept);
  replace_all(result, "TEMPLATE", upper_case(name));
  replace_all(result, "Template", type_name_of(name));
  replace_all(result, "template", name);
  replace_all(result, kKept, kKeyword);
  return result;
}

// The path of a template file in a project; empty if it is for the other language.
std::string place_of(std::string_view path, BackendLanguage language) {
  const bool c = language == BackendLanguage::kC;
  for (const std::string_view prefix : {"project/cpp/", "project/c/", "project/", "c/", ""}) {
    if (!path.starts_with(prefix)) continue;
    const bool of_c = prefix == "project/c/" || prefix == "c/";
    const bool of_both = prefix == "project/";
    return of_both || of_c == c ? std::string(path.substr(prefix.size())) : "";
  }
  return "";
}

}  // namespace

Status check_backend_name(std::string_view name) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const bool well_formed =
      !name.empty() && is_letter(name[0]) && std::ranges::all_of(name, [&](char c) {
        return is_letter(c) || c == '_' || (c >= '0' && c <= '9');
      });
  if (!well_formed) {
    return invalid_argument(
        "'{}' is not a valid backend name: lower-case letters, digits and '_', a letter first",
        name);
  }
  if (std::ranges::find(kTaken, name) != kTaken.end() ||
      backend::Registry::instance().is_built_in(name)) {
    return invalid_argument("the name '{}' is taken; choose another", name);
  }
  if (std::ranges::find(kOfMeson, name) != kOfMeson.end()) {
    return invalid_argument("the name '{}' is one of Meson's own targets; choose another", name);
  }
  return {};
}

std::string type_name_of(std::string_view name) {
  std::string type;
  bool upper = true;
  for (const char c : name) {
    if (c != '_')
      type += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = c == '_';
  }
  return type;
}

std::vector<ProjectFile> backend_project(std::string_view name, BackendLanguage language) {
  const bool c = language == BackendLanguage::kC;
  std::vector<ProjectFile> files;
  for (const EmbeddedFile& file : new_backend_files()) {
    const std::string place = place_of(file.path, language);
    if (place.empty()) continue;
    std::string text = renamed(file.text, name);
    replace_all(text, "@SOURCE@", fmt::format("{}.{}", name, c ? "c" : "cpp"));
    replace_all(text, "@SKIN@",
                c ? "the functions of `core/backend/plugin.h`, in C99"
                  : "two classes of `core/backend/backend.h`, made a plug-in by `plugin.cpp`");
    const bool executable = text.starts_with("#!");
    files.push_back({renamed(place, name), std::move(text), executable});
  }
  std::ranges::sort(files, {}, &ProjectFile::path);
  return files;
}

Status write_project(const std::vector<ProjectFile>& files, const std::string& folder) {
  std::error_code error;
  const fs::path whole = fs::absolute(folder).lexically_normal();
  const fs::path target = whole.has_filename() ? whole : whole.parent_path();
  const bool exists = fs::exists(target, error);
  if (exists && (!fs::is_directory(target, error) || !fs::is_empty(target, error))) {
    return make_error(ErrorCode::kAlreadyExists,
                      "{} is there already; name a folder that is empty or does not exist",
                      target.string());
  }
  const auto failed = [&](std::string_view what) {
    return failed_precondition("cannot {} {}: {}", what, target.string(), error.message());
  };
  // Written to a temporary folder beside it, then renamed.
  const fs::path staging = target.string() + fmt::format(".new-{}", getpid());
  Status status;
  for (const ProjectFile& file : files) {
    const fs::path path = staging / file.path;
    fs::create_directories(path.parent_path(), error);
    if (error) status = failed("make");
    if (status.ok()) status = write_file(path.string(), file.text);
    if (status.ok() && file.executable) {
      fs::permissions(path, fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
                      fs::perm_options::add, error);
    }
    if (!status.ok()) break;
  }
  if (status.ok()) {
    fs::rename(staging, target, error);
    if (error) status = failed("make");
  }
  std::error_code ignored;
  if (!status.ok()) fs::remove_all(staging, ignored);
  return status;
}

}  // namespace tenon::tools
