// core/backend/layers/trace/: the layer `trace`: a timeline in Chrome's trace format.
//
// Each device has a row for each queue, with its launches and copies; a row for each host thread
// that called it; and a counter of the allocated bytes. A launch shows its label, its kernel, the
// bytes of the buffers that it reads and writes, and the flops of the kernel (cost.h; "roughly"
// instead of "counted" if iteration counts are unknown). The layer records an event after each
// launch and copy to get its time: that of event_time, or, on a row marked "host clock", the time
// at which the host saw the event. Work begins when it was given or when the previous work ended.
// Segments are declined, so that every launch is seen.
//
// The file is complete JSON at all times; it contains all work that the host knows to be done.
#pragma once

#include <memory>
#include <string>

#include "core/backend/backend.h"

namespace tenon::backend {

struct TraceOptions {
  std::string path = "tenon.trace.json";
  /// Whether to record an event after each piece of work; without events there are no rows for
  /// queues.
  bool events = true;

  /// TENON_TRACE is the path; TENON_TRACE_EVENTS=0 disables the events.
  static TraceOptions from_environment();
};

/// Errors: the file cannot be written.
Result<std::shared_ptr<Backend>> make_trace_layer(std::shared_ptr<Backend> inner,
                                                  const TraceOptions& options);

}  // namespace tenon::backend
