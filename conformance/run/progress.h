// Progress of a run, a bar on the terminal; prints nothing if standard error is not a terminal.
//
// Thread-safety: one thread at a time.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <string>

namespace tenon::conformance {

class SuiteProgress {
 public:
  SuiteProgress(std::string what, int64_t total)
      : what_(std::move(what)), total_(total), shown_(::isatty(STDERR_FILENO) == 1) {}
  SuiteProgress(const SuiteProgress&) = delete;
  SuiteProgress& operator=(const SuiteProgress&) = delete;
  ~SuiteProgress() { clear(); }

  /// Shows the number done, with `note`.
  void done(int64_t count, std::string_view note = "") {
    using std::chrono::steady_clock;
    const auto now = steady_clock::now();
    if (!shown_ || (now < next_ && count < total_)) return;
    next_ = now + std::chrono::milliseconds(200);
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    const double left =
        count == 0 ? 0 : seconds / static_cast<double>(count) * static_cast<double>(total_ - count);
    constexpr int64_t kWidth = 30;
    const int64_t full = total_ == 0 ? kWidth : kWidth * count / total_;
    fmt::print(stderr, "\r\x1b[K{} [{:#<{}}{:.<{}}] {} of {}{}{}, {:.0f} s left", what_, "", full,
               "", kWidth - full, count, total_, note.empty() ? "" : ", ", note, left);
    std::fflush(stderr);
  }
  /// Must be called before other output is printed.
  void clear() {
    if (shown_) fmt::print(stderr, "\r\x1b[K");
  }

 private:
  const std::string what_;
  const int64_t total_;
  const bool shown_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point next_ = begin_;
};

}  // namespace tenon::conformance
