// Counts of the steps of an execution by where they ran, for tests that assert that a device
// computed something.
#pragma once

#include <cstdint>

namespace tenon::program {

/// Copies are not counted, nor are loops and branches themselves. A step within a loop counts once
/// per iteration. Each step of a segment counts once, for any number of iterations of the loops
/// within the segment.
struct StepCounts {
  int64_t kernels = 0;  ///< Launches of kernels on the device.
  int64_t calls = 0;    ///< Library calls that the backend took.
  int64_t host = 0;     ///< Custom calls, and kernels that the host interpreted.

  int64_t on_device() const { return kernels + calls; }
  StepCounts& operator+=(const StepCounts& other) {
    kernels += other.kernels;
    calls += other.calls;
    host += other.host;
    return *this;
  }
  bool operator==(const StepCounts&) const = default;
};

}  // namespace tenon::program
