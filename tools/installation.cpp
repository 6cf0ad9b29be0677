#include "tools/installation.h"

namespace tenon::tools {

namespace fs = std::filesystem;

std::optional<fs::path> prefix_of(const fs::path& tool, const fs::path& bindir) {
  if (bindir.is_absolute()) return std::nullopt;
  fs::path prefix = tool.parent_path();
  for (fs::path below = bindir; !below.empty(); below = below.parent_path()) {
    if (prefix.filename() != below.filename()) return std::nullopt;
    prefix = prefix.parent_path();
  }
  return prefix;
}

std::optional<Installation> installation() {
  std::error_code error;
  const fs::path tool = fs::read_symlink("/proc/self/exe", error);
  if (error) return std::nullopt;
  const std::optional<fs::path> prefix = prefix_of(tool, TENON_BINDIR);
  if (!prefix) return std::nullopt;
  Installation found = {*prefix / TENON_LIBEXECDIR / "tenon/tenon-chip",
                        *prefix / TENON_LIBDIR / "pkgconfig"};
  if (!fs::exists(found.chip, error)) return std::nullopt;
  return found;
}

}  // namespace tenon::tools
