#include "conformance/run/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/base/process/child_process.h"

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

// Closes what a new program would not have: the pipes of other workers, which wait for their ends.
void close_private_files() {
  std::vector<int> files;
  std::error_code ignored;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd", ignored))
    files.push_back(std::atoi(each.path().filename().c_str()));
  for (const int file : files) {
    const int flags = fcntl(file, F_GETFD);
    if (flags >= 0 && (flags & FD_CLOEXEC) != 0) ::close(file);
  }
}

}  // namespace

Result<Child> Child::start(const std::function<int()>& program) {
  Pipe requests;
  Pipe answers;
  Pipe output;
  if (!requests.open() || !answers.open() || !output.open()) {
    return resource_exhausted("no worker can be started: {}", std::strerror(errno));
  }
  std::fflush(nullptr);  // Else the child would print what waits, too.
  Child child;
  child.process_ = ::fork();
  if (child.process_ == 0) {
    setpgid(0, 0);
    // Above the numbers that they get: none of them is closed by another one's copy.
    const int request = fcntl(requests.ends[0], F_DUPFD_CLOEXEC, kAnswers + 1);
    const int print = fcntl(output.ends[1], F_DUPFD_CLOEXEC, kAnswers + 1);
    const int answer = fcntl(answers.ends[1], F_DUPFD_CLOEXEC, kAnswers + 1);
    ::dup2(request, STDIN_FILENO);
    ::dup2(print, STDOUT_FILENO);
    ::dup2(print, STDERR_FILENO);
    ::dup2(answer, kAnswers);
    close_private_files();
    std::exit(program());
  }
  if (child.process_ < 0)
    return resource_exhausted("no worker can be started: {}", std::strerror(errno));
  setpgid(child.process_, child.process_);  // Whichever of the two is first.
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
