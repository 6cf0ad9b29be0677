// The location of this installation: computed from the running program, so that the prefix may be
// moved.
//
// Thread-safety: all functions may be called from any thread.
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

/// The prefix for a `tool` at BINDIR/tenon below it; nothing if it is elsewhere.
std::optional<std::filesystem::path> prefix_of(const std::filesystem::path& tool,
                                               const std::filesystem::path& bindir);

}  // namespace tenon::tools
