#include "tools/aot/write_files.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/base/child_process.h"
#include "core/base/file.h"

namespace tenon::tools {
namespace {

namespace fs = std::filesystem;

std::string quoted_for_shell(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

// By the C compiler, which finds the linker and the C library.
Status link_shared(const std::string& object, const std::string& path, const std::string& soname) {
  TENON_ASSIGN(const TemporaryFolder folder, TemporaryFolder::create("tenon-aot"));
  const std::string input = folder.file("model.o");
  TENON_TRY(write_file(input, object));
  const char* const given = std::getenv("CC");
  const std::string command =
      fmt::format("{} -shared -nostartfiles -Wl,--gc-sections -Wl,-soname,{} -o {} {} -lm 2>&1",
                  given != nullptr && *given != '\0' ? given : "cc", quoted_for_shell(soname),
                  quoted_for_shell(path), quoted_for_shell(input));
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return failed_precondition("cannot start a C compiler to link {}", path);
  std::string printed;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) printed += static_cast<char>(c);
  const int status = pclose(pipe);
  if (status == 0) return {};
  return failed_precondition("cannot link {} by '{}': {}", path, command,
                             describe_end(status, printed));
}

Status write_library(const AotReport& report, const std::string& path) {
  switch (report.project.library) {
    case AotLibrary::kObject:
      return write_file(path, report.model.object);
    case AotLibrary::kStatic: {
      TENON_ASSIGN(const std::string archive,
                   cpu::archive_of(report.model.object, report.project.name + ".o"));
      return write_file(path, archive);
    }
    case AotLibrary::kShared:
      return link_shared(report.model.object, path, report.project.library_file());
  }
  return {};
}

// A folder beside the files to write, which are moved when all of them are there: a failure leaves
// the folder as it was.
class StagedFiles {
 public:
  static Result<StagedFiles> create(const fs::path& folder) {
    std::error_code error;
    const bool is_new = fs::create_directories(folder, error);
    if (error) return failed_precondition("cannot make {}: {}", folder.string(), error.message());
    StagedFiles files(folder, (folder / ".tenon-aot-XXXXXX").string(), is_new);
    if (mkdtemp(files.staging_.data()) == nullptr) {
      const std::string why = std::strerror(errno);
      files.staging_.clear();
      return failed_precondition("cannot write to {}: {}", folder.string(), why);
    }
    return files;
  }
  StagedFiles(StagedFiles&& other) noexcept
      : folder_(std::move(other.folder_)),
        staging_(std::exchange(other.staging_, {})),
        is_new_(std::exchange(other.is_new_, false)),
        names_(std::move(other.names_)) {}
  StagedFiles& operator=(StagedFiles&&) = delete;
  ~StagedFiles() {
    std::error_code error;
    if (!staging_.empty()) fs::remove_all(staging_, error);
    if (is_new_) fs::remove(folder_, error);
  }

  /// Where to write the file `name`.
  std::string add(const std::string& name) {
    names_.push_back(name);
    return (fs::path(staging_) / name).string();
  }

  /// Moves all files into the folder, and returns their paths.
  Result<std::vector<std::string>> move() {
    std::vector<std::string> paths;
    for (const std::string& name : names_) {
      std::error_code error;
      fs::rename(fs::path(staging_) / name, folder_ / name, error);
      if (error) {
        return failed_precondition("cannot write {}: {}", (folder_ / name).string(),
                                   error.message());
      }
      is_new_ = false;
      paths.push_back((folder_ / name).string());
    }
    return paths;
  }

 private:
  StagedFiles(fs::path folder, std::string staging, bool is_new)
      : folder_(std::move(folder)), staging_(std::move(staging)), is_new_(is_new) {}

  fs::path folder_;
  std::string staging_;
  bool is_new_;
  std::vector<std::string> names_;
};

}  // namespace

Status write_files(AotReport& report, const std::string& folder) {
  TENON_ASSIGN(StagedFiles files, StagedFiles::create(folder));
  TENON_TRY(write_library(report, files.add(report.project.library_file())));
  if (report.project.weights_bytes > 0) {
    TENON_TRY(write_file(files.add(report.project.weights_file()), report.model.weights));
  }
  for (const ProjectFile& each : aot_files_of(report.project)) {
    TENON_TRY(write_file(files.add(each.path), each.text));
  }
  TENON_ASSIGN(report.files, files.move());
  return {};
}

}  // namespace tenon::tools
