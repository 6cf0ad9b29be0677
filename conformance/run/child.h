// A worker process: its requests, answers and output.
#pragma once

#include <sys/types.h>

#include <chrono>
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
  static Result<Child> start(const std::vector<std::string>& command);
  ~Child();
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;

  int answers() const { return answers_; }
  int output() const { return output_; }

  /// Takes what it has written; false if it has ended and nothing is left to read.
  bool read();
  std::optional<std::string> next_answer();
  /// A child that has ended gets nothing.
  void write(const std::string& request);
  void kill();
  /// Waits for its end: "it ended by signal 11 (Segmentation fault); it printed: …".
  std::string await();

 private:
  void close_all();

  pid_t process_ = -1;
  int requests_ = -1;
  int answers_ = -1;
  int output_ = -1;
  std::string answered_;
  std::string printed_;  // The last few kilobytes.
};

}  // namespace tenon::conformance
