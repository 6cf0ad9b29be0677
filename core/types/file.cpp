#include "core/types/file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace tenon {
namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

}  // namespace

Result<std::string> read_file(const std::string& path) {
  const File file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return not_found("cannot read {}: {}", path, std::strerror(errno));
  std::string bytes;
  char buffer[65536];
  size_t got = 0;
  while ((got = std::fread(buffer, 1, sizeof buffer, file.get())) != 0) bytes.append(buffer, got);
  if (std::ferror(file.get()) != 0) {
    return make_error(ErrorCode::kDataLoss, "cannot read {}: {}", path, std::strerror(errno));
  }
  return bytes;
}

Status write_file(const std::string& path, std::string_view bytes) {
  const std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
  const auto failed = [&] {
    const int reason = errno;
    std::remove(temporary.c_str());
    return failed_precondition("cannot write {}: {}", path, std::strerror(reason));
  };
  File file(std::fopen(temporary.c_str(), "wb"));
  if (file == nullptr) return failed();
  if (std::fwrite(bytes.data(), 1, bytes.size(), file.get()) != bytes.size()) return failed();
  if (std::fclose(file.release()) != 0) return failed();
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return failed();
  return {};
}

}  // namespace tenon
