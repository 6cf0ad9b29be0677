// A backend's project out of the template: the sources of backends/template, under another name.
//
// Thread-safety: all of it.
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

/// OK, or why no backend can be called so: names are lower-case identifiers that no backend of
/// Tenon's and no file of the project has. Errors: kInvalidArgument.
Status check_backend_name(std::string_view name);

/// "npu_2" as a type is called: "Npu2".
std::string type_name_of(std::string_view name);

/// The files of a project, in the order of their paths. `name` has passed check_backend_name.
std::vector<ProjectFile> backend_project(std::string_view name, BackendLanguage language);

/// All files or none: `folder` does not exist, or is empty. Errors: kAlreadyExists, and what the
/// file system says.
Status write_project(const std::vector<ProjectFile>& files, const std::string& folder);

}  // namespace tenon::tools
