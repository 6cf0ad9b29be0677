// Processes that fork: the child has this process' memory, but none of its threads.
#pragma once

#include "core/base/status.h"

namespace tenon::runtime {

/// The process in which an object was made, in terms of forks. Its owner uses it in one process
/// only.
class Birth {
 public:
  Birth();
  /// Whether this process is a child of the one that it was made in: the threads that it relies on
  /// are not here.
  bool is_elsewhere() const;
  /// OK, or kFailedPrecondition that says so and what to do.
  Status check() const;

 private:
  int forks_;
};

}  // namespace tenon::runtime
