#include "backends/gpu/codegen/ptxas.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "core/base/file.h"
#include "core/base/process/environment.h"

// The path of ptxas in the wheel; set by the build.
#ifndef TENON_PTXAS_OF_WHEEL
#define TENON_PTXAS_OF_WHEEL ""
#endif

namespace tenon::gpu {
namespace {

bool can_run(const std::string& path) { return !path.empty() && access(path.c_str(), X_OK) == 0; }

// The exit status, or 0 if another part of the process collected it; `output` receives the printed
// text.
Result<int> run(std::vector<std::string> command, const std::string& output) {
  std::vector<char*> arguments;
  for (std::string& each : command) arguments.push_back(each.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, output.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  pid_t process = 0;
  const int error =
      posix_spawn(&process, command[0].c_str(), &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0)
    return make_error(ErrorCode::kUnavailable, "gpu: {} cannot be run: {}", command[0],
                      std::strerror(error));
  int status = 0;
  while (waitpid(process, &status, 0) < 0) {
    // The host ignores SIGCHLD or awaits every child: the output of the command shows the result.
    if (errno == ECHILD) return 0;
    if (errno != EINTR)
      return make_error(ErrorCode::kUnavailable, "gpu: {}: {}", command[0], std::strerror(errno));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The number before `what`, or after it.
int64_t number_before(std::string_view line, std::string_view what) {
  const size_t end = line.find(what);
  if (end == std::string_view::npos) return 0;
  size_t begin = end;
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(line[begin - 1])) != 0) --begin;
  int64_t number = 0;
  std::from_chars(line.data() + begin, line.data() + end, number);
  return number;
}

std::optional<std::string_view> between(std::string_view line, std::string_view before,
                                        std::string_view after) {
  const size_t begin = line.find(before);
  if (begin == std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(begin + before.size());
  return rest.substr(0, rest.find(after));
}

}  // namespace

std::string find_ptxas() {
  const auto variable = [](const char* name) { return environment_or(name, ""); };
  if (const std::string named = variable("TENON_PTXAS"); !named.empty()) {
    return can_run(named) ? named : "";
  }
  std::vector<std::string> paths;
  if (const std::string home = variable("CUDA_HOME"); !home.empty()) {
    paths.push_back(home + "/bin/ptxas");
  }
  const std::string path = variable("PATH");
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find(':', at), path.size());
    if (end > at) paths.push_back(path.substr(at, end - at) + "/ptxas");
    at = end + 1;
  }
  paths.insert(paths.end(), {"/usr/local/cuda/bin/ptxas", TENON_PTXAS_OF_WHEEL});
  for (const std::string& each : paths) {
    if (can_run(each)) return each;
  }
  return "";
}

std::string version_of(const std::string& ptxas) {
  if (ptxas.empty()) return "";
  const auto printed = [&]() -> Result<std::string> {
    TENON_ASSIGN(const TemporaryFolder folder, TemporaryFolder::create("tenon-ptxas"));
    TENON_ASSIGN(const int status, run({ptxas, "--version"}, folder.file("version")));
    if (status != 0) return internal_error("gpu: {} ends with {}", ptxas, status);
    return read_file(folder.file("version"));
  }();
  const auto version = printed ? between(*printed, ", V", "\n") : std::nullopt;
  return version ? std::string(*version) : ptxas;
}

std::vector<Resources> parse_report(std::string_view report) {
  std::vector<Resources> kernels;
  while (!report.empty()) {
    const std::string_view line = report.substr(0, report.find('\n'));
    report.remove_prefix(std::min(report.size(), line.size() + 1));
    if (const auto name = between(line, "Compiling entry function '", "'")) {
      kernels.push_back({std::string(*name)});
    }
    if (kernels.empty()) continue;
    Resources& last = kernels.back();
    if (line.find("bytes stack frame") != std::string_view::npos) {
      last.stack_bytes = number_before(line, " bytes stack frame");
      last.spill_stores = number_before(line, " bytes spill stores");
      last.spill_loads = number_before(line, " bytes spill loads");
    }
    if (line.find("Used ") != std::string_view::npos) {
      last.registers = number_before(line, " registers");
    }
  }
  return kernels;
}

Result<Cubin> run_ptxas(const std::string& ptxas, const std::string& ptx,
                        int32_t compute_capability) {
  TENON_ASSIGN(const TemporaryFolder folder, TemporaryFolder::create("tenon-ptxas"));
  TENON_TRY(write_file(folder.file("kernels.ptx"), ptx));
  TENON_ASSIGN(const int status,
               run({ptxas, fmt::format("-arch=sm_{}", compute_capability), "-v", "-fmad=false",
                    "-o", folder.file("kernels.cubin"), folder.file("kernels.ptx")},
                   folder.file("report")));
  Cubin cubin;
  TENON_ASSIGN(cubin.report, read_file(folder.file("report")));
  if (status != 0) {
    return internal_error("gpu: {} ends with {}: {}", ptxas, status, cubin.report);
  }
  auto bytes = read_file(folder.file("kernels.cubin"));
  if (!bytes || bytes->empty()) {
    return internal_error("gpu: {} made no cubin: {}", ptxas, cubin.report);
  }
  cubin.bytes = *std::move(bytes);
  cubin.kernels = parse_report(cubin.report);
  return cubin;
}

}  // namespace tenon::gpu
