#include "core/base/process/child_process.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tenon {

bool read_available(int file, std::string& text, size_t most) {
  char buffer[4096];
  while (true) {
    const ssize_t got = ::read(file, buffer, sizeof buffer);
    if (got > 0) {
      text.append(buffer, static_cast<size_t>(got));
      if (text.size() > most) text.erase(0, text.size() - most);
    } else if (got == 0) {
      return false;
    } else if (errno != EINTR) {
      return errno == EAGAIN;
    }
  }
}

std::string describe_end(int status, std::string printed) {
  const std::string note = last_line_note(std::move(printed));
  if (!WIFSIGNALED(status)) return fmt::format("exit status {}{}", WEXITSTATUS(status), note);
  const int signal = WTERMSIG(status);
  return fmt::format("signal {} ({}){}", signal, strsignal(signal), note);
}

std::string last_line_note(std::string printed) {
  while (!printed.empty() && printed.back() == '\n') printed.pop_back();
  const size_t begin = printed.rfind('\n');
  if (begin != std::string::npos) printed.erase(0, begin + 1);
  return printed.empty() ? "" : fmt::format("; it printed: {}", printed);
}

}  // namespace tenon
