#include "conformance/suites/forked.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <list>
#include <optional>

namespace tenon::conformance {
namespace {

using Clock = std::chrono::steady_clock;

struct RunningJob {
  size_t job = 0;
  pid_t process = -1;
  int input = -1;
  std::string text;
  Clock::time_point heard = Clock::now();
  bool timed_out = false;
};

void write_all(int to, std::string line) {
  line += '\n';
  for (size_t done = 0; done < line.size();) {
    const ssize_t written = ::write(to, line.data() + done, line.size() - done);
    if (written <= 0) ::_exit(1);
    done += static_cast<size_t>(written);
  }
}

RunningJob start(const std::vector<Job>& jobs, size_t job) {
  int ends[2] = {-1, -1};
  RunningJob started;
  started.job = job;
  if (::pipe(ends) != 0) return started;
  started.process = ::fork();
  if (started.process == 0) {
    ::close(ends[0]);
    jobs[job]([to = ends[1]](const std::string& line) { write_all(to, line); });
    ::_exit(0);
  }
  ::close(ends[1]);
  started.input = ends[0];
  return started;
}

// False at the end of its output.
bool read_some(RunningJob& running) {
  char buffer[4096];
  const ssize_t count = ::read(running.input, buffer, sizeof buffer);
  if (count <= 0) return false;
  running.text.append(buffer, static_cast<size_t>(count));
  running.heard = Clock::now();
  return true;
}

JobResult finished(RunningJob& running) {
  JobResult result;
  ::close(running.input);
  int status = 0;
  if (::waitpid(running.process, &status, 0) != running.process || status != 0)
    result.end = JobEnd::kCrashed;
  if (running.timed_out) result.end = JobEnd::kTimedOut;
  for (size_t begin = 0; begin < running.text.size();) {
    const size_t end = std::min(running.text.find('\n', begin), running.text.size());
    result.lines.push_back(running.text.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

}  // namespace

void run_forked(const std::vector<Job>& jobs, int at_once, double timeout,
                const std::function<void(size_t job, JobResult result)>& take) {
  std::list<RunningJob> running;
  size_t next = 0;
  while (next < jobs.size() || !running.empty()) {
    while (next < jobs.size() && std::ssize(running) < at_once)
      running.push_back(start(jobs, next++));
    std::vector<pollfd> inputs;
    for (const RunningJob& each : running) inputs.push_back({each.input, POLLIN, 0});
    ::poll(inputs.data(), inputs.size(), 500);
    auto input = inputs.begin();
    for (auto each = running.begin(); each != running.end(); ++input) {
      const std::chrono::duration<double> silent = Clock::now() - each->heard;
      if (input->revents == 0 && silent.count() > timeout && !each->timed_out) {
        each->timed_out = true;
        ::kill(each->process, SIGKILL);
      }
      if (input->revents == 0 || read_some(*each)) {
        ++each;
        continue;
      }
      take(each->job, finished(*each));
      each = running.erase(each);
    }
  }
}

}  // namespace tenon::conformance
