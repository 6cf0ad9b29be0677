#include "tools/installation.h"

namespace tenon::tools {

namespace fs = std::filesystem;

std::optional<Installation> installation() {
  std::error_code error;
  const fs::path tool = fs::read_symlink("/proc/self/exe", error);
  if (error) return std::nullopt;
  // From PREFIX/bin/tenon, as many folders up as bin is below the prefix.
  fs::path prefix = tool.parent_path();
  for (const fs::path& part : fs::path(TENON_BINDIR)) {
    if (prefix.filename() != part) return std::nullopt;
    prefix = prefix.parent_path();
  }
  Installation found = {prefix / TENON_LIBEXECDIR / "tenon/tenon-chip",
                        prefix / TENON_LIBDIR / "pkgconfig"};
  if (!fs::exists(found.chip, error)) return std::nullopt;
  return found;
}

}  // namespace tenon::tools
