// Where this Tenon is installed: found from the running program, so that the prefix may be moved.
//
// Thread-safety: all of it.
#pragma once

#include <filesystem>
#include <optional>

namespace tenon::tools {

struct Installation {
  std::filesystem::path chip;        ///< The simulated chip's program.
  std::filesystem::path pkg_config;  ///< The folder of tenon.pc.
};

/// The installation; nothing if the program runs from a build folder.
std::optional<Installation> installation();

/// The folder that `tool` lies in BINDIR/tenon below; nothing if it lies elsewhere.
std::optional<std::filesystem::path> prefix_of(const std::filesystem::path& tool,
                                               const std::filesystem::path& bindir);

}  // namespace tenon::tools
