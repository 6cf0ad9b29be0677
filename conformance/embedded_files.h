// Files of this folder that the library has in it: profiles, the page of the HTML report.
// scripts/embed generates their definition when Tenon is built.
#pragma once

#include <span>

#include "core/base/embedded_file.h"

namespace tenon::conformance {

/// Their paths are relative to conformance/: "profiles/minimal.txt".
std::span<const EmbeddedFile> embedded_files();

/// The text of a file by its path; empty if it is not embedded.
inline std::string_view embedded_file(std::string_view path) {
  for (const EmbeddedFile& each : embedded_files()) {
    if (each.path == path) return each.text;
  }
  return {};
}

}  // namespace tenon::conformance
