#include "core/backend/registry/probe.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "core/backend/registry/registry.h"
#include "core/base/process/child_process.h"

namespace tenon::backend {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostKept = 4096;

// Runs the child: its output goes to the pipe, and no state of the host is flushed or destroyed.
[[noreturn]] void run_child(const std::function<void()>& start, int said, int returned) {
  setpgid(0, 0);  // Its child processes join the group, and end with it.
  dup2(said, STDOUT_FILENO);
  dup2(said, STDERR_FILENO);
  start();
  // A plug-in that calls exit() itself does not reach this.
  const ssize_t written = ::write(returned, "r", 1);
  _exit(written == 1 ? 0 : 1);
}

// Whether the child ends by `deadline`; it stays a zombie, so that its process id is not reused.
bool ends(pid_t child, Clock::time_point deadline, int said, std::string& text) {
  constexpr int kTick = 20;  // Milliseconds.
  while (true) {
    read_available(said, text, kMostKept);
    siginfo_t info = {};
    const int found = waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT);
    if (found == 0 && info.si_pid == child) return true;
    if (found != 0 && errno != EINTR) return true;  // Another thread awaited it.
    if (Clock::now() >= deadline) return false;
    pollfd wait = {said, POLLIN, 0};
    // A child that has closed the pipe may still be running.
    if (poll(&wait, 1, kTick) > 0 && (wait.revents & POLLIN) == 0) poll(nullptr, 0, kTick);
  }
}

}  // namespace

Status probe(const std::function<void()>& start, std::chrono::milliseconds limit) {
  int said[2] = {-1, -1};
  int returned[2] = {-1, -1};
  const auto close_all = [&] {
    for (const int each : {said[0], said[1], returned[0], returned[1]}) {
      if (each >= 0) ::close(each);
    }
  };
  if (pipe2(said, O_CLOEXEC) != 0 || pipe2(returned, O_CLOEXEC) != 0) {
    const int reason = errno;
    close_all();
    return {ErrorCode::kResourceExhausted, std::strerror(reason)};
  }
  for (const int each : {said[0], returned[0]}) fcntl(each, F_SETFL, O_NONBLOCK);
  std::fflush(nullptr);  // Else the child would print buffered output of this process.
  const pid_t child = fork();
  if (child == 0) run_child(start, said[1], returned[1]);
  if (child < 0) {
    const int reason = errno;
    close_all();
    return {ErrorCode::kResourceExhausted,
            fmt::format("no process can be started: {}", std::strerror(reason))};
  }
  ::close(said[1]);
  said[1] = -1;
  std::string text;
  const bool in_time = ends(child, Clock::now() + limit, said[0], text);
  kill(-child, SIGKILL);  // Also the processes that it started.
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  read_available(said[0], text, kMostKept);
  char mark = 0;
  const bool has_returned = ::read(returned[0], &mark, 1) == 1;
  close_all();
  if (has_returned) return {};
  if (!in_time) {
    return {ErrorCode::kDeadlineExceeded,
            fmt::format("it has not ended after {} ms{}", limit.count(),
                        last_line_note(std::move(text)))};
  }
  return {ErrorCode::kAborted,
          fmt::format("it ends the process {} {}", WIFSIGNALED(status) ? "by" : "with",
                      describe_end(status, std::move(text)))};
}

Status probe_plugin(const std::string& path, std::chrono::milliseconds limit) {
  Status status = probe(
      [&] {
        const auto backend = load_plugin(path);
        if (backend) static_cast<void>((*backend)->devices());
      },
      limit);
  if (status.ok()) return status;
  return {status.code(), fmt::format("{} cannot start: {}", path, status.message())};
}

}  // namespace tenon::backend
