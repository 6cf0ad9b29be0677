// Doing again what a recording says, on any device, and comparing what comes out.
//
// Calls are made in the order of the file, each waited for. A module is loaded from the recorded
// binary if the device has the compiler and the target of the recording; otherwise its kernels are
// legalised and compiled for the device. They were legal for the target of the recording: what was
// an f64 there may be two u32 now, and is compared as that. A recorded binary runs as it is: the
// author of the file chooses the code that runs on a device of that target.
//
// The replay compares the bytes of each copy to the host and of each buffer that a launch writes,
// as far as the recording has them: bit for bit, NaNs of float elements equal to each other. Bytes
// that differ are replaced by the recorded ones, so that no launch is blamed for an earlier one.
#pragma once

#include <string>
#include <vector>

#include "core/backend/layers/record/recording.h"

namespace tenon::backend {

struct ReplayOptions {
  /// Compares on after the first entry that differs, until so many do.
  size_t most_differences = 1;
};

/// An entry that came out otherwise.
struct Difference {
  uint64_t entry = 0;  ///< Its number in the recording.
  std::string label;   ///< Label of the launch.
  std::string kernel;  ///< Empty for a copy.
  std::string buffer;
  ElementType type{};   ///< u8 for a copy of bytes that no launch wrote.
  int64_t element = 0;  ///< The first that differs, in the order of memory.
  int64_t elements = 0;
  int64_t differing = 0;
  std::string recorded;
  std::string replayed;

  /// "entry 9: launch 'add at m.mlir:3' of @add: %y f32[4] element 2 is 3.5, recorded 3 (…)"
  std::string to_string() const;
};

struct ReplayReport {
  int64_t launches = 0;
  int64_t copies = 0;
  int64_t modules_loaded = 0;    ///< From the recorded binary.
  int64_t modules_compiled = 0;  ///< From the recorded kernels.
  int64_t compared = 0;          ///< Entries.
  int64_t compared_bytes = 0;
  int64_t skipped = 0;  ///< Entries whose work was refused, cancelled, or lost with its device.
  std::vector<std::string> errors;  ///< Errors of work that failed both times.
  std::vector<Difference> differences;
  bool stopped = false;  ///< Whether the replay ended at the last difference.
};

/// Errors: those of the device, with the entry; kUnimplemented for a kernel that cannot be
/// legalised for it, kFailedPrecondition for one that it declines, with its reason.
Result<ReplayReport> replay(const Recording& recording, Backend& backend, size_t device,
                            const ReplayOptions& options = {});

}  // namespace tenon::backend
