// core/backend/layers/trace/: the layer `trace`: a timeline in Chrome's trace format.
//
// Each device has a row for each queue, with its launches and copies; a row for each host thread
// that called it; and a counter of the allocated bytes. A launch shows its label, its kernel, the
// bytes of the buffers that it reads and writes, and the flops of the kernel (cost.h; "roughly"
// instead of "counted" if iteration counts are unknown). The layer records an event after each
// launch and copy to get its time: that of event_time, or, on a row marked "host clock", the time
// at which the host saw the event. Work begins when the device says so (event_start), else when it
// was given or when the previous work ended. Segments are declined, so that every launch is seen.
//
// The file is complete JSON at all times; it contains all work that the host knows to be done.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/backend/backend.h"
#include "core/kernel/analysis/cost.h"

namespace tenon::backend {

/// Work of a queue that is done.
struct TracedSlice {
  enum class TracedKind : uint8_t { kLaunch, kCall, kToDevice, kToHost, kOnDevice, kFill, kPack };
  TracedKind kind = TracedKind::kLaunch;
  std::string name;    ///< Its label, else what it is.
  std::string kernel;  ///< For launches.
  int64_t bytes = 0;   ///< For copies and fills.
  kernel::Cost cost;   ///< For launches: that of the kernel.
  size_t device = 0;   ///< Its index among the backend's devices.
  uint32_t queue = 0;
  double begin = 0;  ///< Seconds of std::chrono::steady_clock.
  double seconds = 0;
  uint64_t tag = 0;
};

struct TraceOptions {
  /// Empty: no file is written.
  std::string path = "tenon.trace.json";
  /// Whether to record an event after each piece of work; without events there are no rows for
  /// queues.
  bool events = true;
  /// For callers in the process. `tag` is called on the queue's thread when work has been given,
  /// `seen` on any thread when that work is done, with what `tag` returned; both may be empty.
  std::function<uint64_t()> tag;
  std::function<void(const TracedSlice&)> seen;

  /// TENON_TRACE is the path; TENON_TRACE_EVENTS=0 disables the events.
  static TraceOptions from_environment();
};

/// Errors: the file cannot be written.
Result<std::shared_ptr<Backend>> make_trace_layer(std::shared_ptr<Backend> inner,
                                                  const TraceOptions& options);

}  // namespace tenon::backend
