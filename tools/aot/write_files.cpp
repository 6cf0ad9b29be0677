#include "tools/aot/write_files.h"

#include <sys/wait.h>

#include <algorithm>

#include "core/base/file.h"
#include "core/base/process/child_process.h"
#include "core/base/process/environment.h"
#include "tools/aot/gpu_source.h"
#include "tools/run/staged_files.h"

namespace tenon::tools {
namespace {

std::string quoted_for_shell(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

// The first error in the output of a compiler or linker; all of it if none is known.
std::string first_error(const std::string& printed) {
  const size_t found = printed.find("error:");
  if (found == std::string::npos) return printed;
  const size_t begin = printed.rfind('\n', found) + 1;
  const std::string line = printed.substr(begin, printed.find('\n', found) - begin);
  // GCC's own line follows those of the linker.
  return line.starts_with("collect2") ? printed.substr(0, printed.find('\n')) : line;
}

// Runs the C compiler, which finds the linker and the C library, to make a file at `path` of, or
// as, the library `library`.
Status run_c_compiler(std::string_view what, const std::string& library,
                      const std::string& arguments, const std::string& path) {
  const std::string compiler = environment_or("CC", "cc");
  const std::string command =
      fmt::format("{} {} -o {} 2>&1", compiler, arguments, quoted_for_shell(path));
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return failed_precondition("cannot start a C compiler for {}", library);
  std::string printed;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) printed += static_cast<char>(c);
  const int status = pclose(pipe);
  if (status == 0) return {};
  constexpr int kNotFound = 127;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotFound) {
    return failed_precondition(
        "cannot {} {}: there is no C compiler '{}'; the variable CC names one", what, library,
        compiler);
  }
  return failed_precondition("cannot {} {} by '{}': {}", what, library, compiler,
                             describe_end(status, first_error(printed)));
}

Status link_shared(const AotProject& project, const std::string& object, const std::string& path) {
  return run_c_compiler("link", path,
                        fmt::format("-shared {} -Wl,-soname,{} {} {}",
                                    project.is_gpu ? "" : "-nostartfiles -Wl,--gc-sections",
                                    quoted_for_shell(project.library_file()),
                                    quoted_for_shell(object), project.is_gpu ? "-ldl" : "-lm"),
                        path);
}

// The form that the model is to have, of an object.
Status write_form(const AotReport& report, const std::string& object, const std::string& path) {
  if (report.project.library == AotLibrary::kObject) return write_file(path, object);
  if (report.project.library == AotLibrary::kStatic) {
    TENON_ASSIGN(const std::string archive, cpu::archive_of(object, report.project.name + ".o"));
    return write_file(path, archive);
  }
  TENON_ASSIGN(const TemporaryFolder folder, TemporaryFolder::create("tenon-aot"));
  const std::string input = folder.file("model.o");
  TENON_TRY(write_file(input, object));
  return link_shared(report.project, input, path);
}

// The host's part of a model for a GPU: a source, and the bytes that become a part of it.
std::vector<std::pair<std::string, std::string_view>> host_files(const AotReport& report,
                                                                 const std::string& source) {
  auto files = gpu_blobs(report.project, *report.gpu);
  files.insert(files.begin(), {report.project.name + ".c", source});
  return files;
}

Status write_gpu_library(const AotReport& report, const std::string& path) {
  AotProject project = report.project;
  project.library = AotLibrary::kSource;
  TENON_ASSIGN(const TemporaryFolder folder, TemporaryFolder::create("tenon-aot"));
  const std::string source = gpu_source(project, *report.gpu);
  for (const auto& [name, bytes] : host_files(report, source)) {
    TENON_TRY(write_file(folder.file(name), bytes));
  }
  for (const ProjectFile& each : aot_files_of(project)) {
    TENON_TRY(write_file(folder.file(each.path), each.text));
  }
  const std::string object = folder.file("model.o");
  TENON_TRY(run_c_compiler("compile", path,
                           // .incbin, and the index of an archive, are of machine code.
                           fmt::format("-std=c11 -O2 -fPIC -c {} -fno-lto",
                                       quoted_for_shell(folder.file(project.name + ".c"))),
                           object));
  TENON_ASSIGN(const std::string bytes, read_file(object));
  const auto symbols = cpu::symbols_of(bytes);
  if (!symbols || std::ranges::count(*symbols, project.name + "_model", &cpu::AotSymbol::name) == 0)
    return failed_precondition("cannot compile {}: the object of the C compiler has no {}_model",
                               path, project.name);
  return write_form(report, bytes, path);
}

Status write_library(const AotReport& report, StagedFiles& files) {
  const std::string path = files.add(report.project.library_file());
  if (!report.gpu) return write_form(report, report.model.object, path);
  if (report.project.library != AotLibrary::kSource) return write_gpu_library(report, path);
  const std::string source = gpu_source(report.project, *report.gpu);
  TENON_TRY(write_file(path, source));
  for (const auto& [name, bytes] : gpu_blobs(report.project, *report.gpu)) {
    TENON_TRY(write_file(files.add(name), bytes));
  }
  return {};
}

}  // namespace

Status write_files(AotReport& report, const std::string& folder) {
  TENON_ASSIGN(StagedFiles files, StagedFiles::create(folder));
  TENON_TRY(files.named(write_library(report, files)));
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
