// A worker process: its requests, answers and output.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace tenon::conformance {

/// A child process in a process group of its own. It reads requests from standard input, writes
/// answers to descriptor 3, and its output is kept. The destructor kills the group.
class Child {
 public:
  Child() = default;
  /// The child is a copy of this process, which has one thread; it ends with what `program`
  /// returns.
  static Result<Child> start(const std::function<int()>& program);
  ~Child();
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;

  /// Descriptors to wait for; -1 once nothing comes any more.
  int answers() const { return answers_; }
  int output() const { return output_; }

  /// Takes what it has written; false if it has ended and nothing is left to read. A process that
  /// it started may still hold its descriptors.
  bool read();
  std::optional<std::string> next_answer();
  /// A child that has ended gets nothing.
  void write(const std::string& request);
  /// Ends its input: it has no more requests.
  void end_requests();
  void kill();

  struct ChildEnd {
    bool is_clean = false;  ///< Exit status 0.
    std::string text;       ///< "the process ended by signal 11 (Segmentation fault); …"
  };
  /// Waits for its end.
  ChildEnd await();

 private:
  void close_all();

  pid_t process_ = -1;
  std::optional<int> status_;  // Of waitpid(), if it has ended.
  int requests_ = -1;
  int answers_ = -1;
  int output_ = -1;
  std::string answered_;
  std::string printed_;  // The last few kilobytes.
};

}  // namespace tenon::conformance
