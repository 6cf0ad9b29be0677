// tools/new_backend/: the project for a new backend, made from the template: the sources of
// backends/template, renamed.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace tenon::tools {

enum class BackendLanguage { kCpp, kC };

struct ProjectFile {
  std::string path;  ///< Relative to the project's folder.
  std::string text;
  bool executable = false;
};

/// OK, or the reason why a backend cannot have this name: names are lower-case identifiers that
/// differ from Tenon's backends and from the files of the project. Errors: kInvalidArgument.
Status check_backend_name(std::string_view name);

/// "npu_2" as a type name: "Npu2".
std::string type_name_of(std::string_view name);

/// The files of a project, in the order of their paths. `name` must have passed check_backend_name.
std::vector<ProjectFile> backend_project(std::string_view name, BackendLanguage language);

/// Writes all files or none: `folder` must not exist, or be empty. Errors: kAlreadyExists, and
/// those of the file system.
Status write_project(const std::vector<ProjectFile>& files, const std::string& folder);

}  // namespace tenon::tools
