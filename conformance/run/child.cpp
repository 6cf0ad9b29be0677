#include "conformance/run/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "core/base/process/child_process.h"

extern char** environ;

namespace tenon::conformance {
namespace {

constexpr size_t kMostKept = 4096;
constexpr int kAnswers = 3;

struct Pipe {
  int ends[2] = {-1, -1};
  ~Pipe() {
    for (const int end : ends) {
      if (end >= 0) ::close(end);
    }
  }
  bool open() { return pipe2(ends, O_CLOEXEC) == 0; }
  int take(int end) { return std::exchange(ends[end], -1); }
};

}  // namespace

Result<Child> Child::start(const std::vector<std::string>& command) {
  Pipe requests;
  Pipe answers;
  Pipe output;
  if (!requests.open() || !answers.open() || !output.open()) {
    return resource_exhausted("no worker can be started: {}", std::strerror(errno));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, requests.ends[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.ends[1], STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&actions, answers.ends[1], kAnswers);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  std::vector<char*> arguments;
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  Child child;
  const int failed =
      posix_spawnp(&child.process_, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) {
    child.process_ = -1;
    return resource_exhausted("{} cannot be started: {}", command[0], std::strerror(failed));
  }
  child.requests_ = requests.take(1);
  child.answers_ = answers.take(0);
  child.output_ = output.take(0);
  for (const int file : {child.answers_, child.output_}) fcntl(file, F_SETFL, O_NONBLOCK);
  return child;
}

Child::~Child() {
  kill();
  if (process_ > 0 && !status_) waitpid(process_, nullptr, 0);
  close_all();
}

Child::Child(Child&& other) noexcept { *this = std::move(other); }

Child& Child::operator=(Child&& other) noexcept {
  std::swap(process_, other.process_);
  std::swap(status_, other.status_);
  std::swap(requests_, other.requests_);
  std::swap(answers_, other.answers_);
  std::swap(output_, other.output_);
  std::swap(answered_, other.answered_);
  std::swap(printed_, other.printed_);
  return *this;
}

void Child::close_all() {
  for (int* const file : {&requests_, &answers_, &output_}) {
    if (*file >= 0) ::close(*file);
    *file = -1;
  }
}

bool Child::read() {
  const auto take = [](int& file, std::string& text, size_t most) {
    if (file < 0 || read_available(file, text, most)) return;
    ::close(file);
    file = -1;
  };
  if (process_ > 0 && !status_) {
    int status = 0;
    if (waitpid(process_, &status, WNOHANG) == process_) status_ = status;
  }
  take(output_, printed_, kMostKept);
  take(answers_, answered_, std::string::npos);
  return answers_ >= 0 && !status_;
}

std::optional<std::string> Child::next_answer() {
  const size_t end = answered_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = answered_.substr(0, end);
  answered_.erase(0, end + 1);
  return line;
}

void Child::write(const std::string& request) {
  // Without MSG_NOSIGNAL for pipes: a child that has ended is found by read().
  struct sigaction ignore = {};
  struct sigaction before = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &before);
  const ssize_t written = ::write(requests_, request.data(), request.size());
  static_cast<void>(written);
  sigaction(SIGPIPE, &before, nullptr);
}

void Child::kill() {
  if (process_ <= 0) return;
  ::kill(-process_, SIGKILL);
  if (!status_) ::kill(process_, SIGKILL);
}

void Child::end_requests() {
  if (requests_ >= 0) ::close(requests_);
  requests_ = -1;
}

Child::ChildEnd Child::await() {
  int status = status_.value_or(0);
  if (process_ > 0 && !status_) waitpid(process_, &status, 0);
  ::kill(-process_, SIGKILL);  // Processes that it started.
  process_ = -1;
  read();
  return {WIFEXITED(status) && WEXITSTATUS(status) == 0,
          fmt::format("the process ended {} {}", WIFSIGNALED(status) ? "by" : "with",
                      describe_end(status, printed_))};
}

}  // namespace tenon::conformance
