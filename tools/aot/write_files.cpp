#include "tools/aot/write_files.h"

#include <cstdlib>

#include "core/base/child_process.h"
#include "core/base/file.h"
#include "tools/run/staged_files.h"

namespace tenon::tools {
namespace {

std::string quoted_for_shell(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

// The C compiler links, which finds the linker and the C library.
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

}  // namespace

Status write_files(AotReport& report, const std::string& folder) {
  TENON_ASSIGN(StagedFiles files, StagedFiles::create(folder));
  TENON_TRY(files.named(write_library(report, files.add(report.project.library_file()))));
  if (report.project.weights_bytes > 0) {
    TENON_TRY(
        files.named(write_file(files.add(report.project.weights_file()), report.model.weights)));
  }
  for (const ProjectFile& each : aot_files_of(report.project)) {
    TENON_TRY(files.named(write_file(files.add(each.path), each.text)));
  }
  TENON_ASSIGN(report.files, files.move());
  return {};
}

}  // namespace tenon::tools
