// core/backend/layers/trace/: the layer `trace`: a timeline in Chrome's trace format.
//
// The layer `trace`: a timeline of what devices did, as a file in Chrome's trace format.
//
// Each device has a row for each queue, with its launches and copies, a row for each thread of the
// host that called it, and a counter of the bytes allocated. A launch says its label, its kernel,
// the bytes of the buffers that it reads and writes, and the flops that the kernel was counted to
// have (cost.h; "counted" is "roughly" where turns are not known). The layer records an
// event behind each launch and copy, so that the times are theirs: those of event_time, or, on a
// row marked "host clock", those at which the host saw the event. Work begins when it was given or
// when what came before it ended. Segments are declined, so that every launch is seen.
//
// The file is whole JSON at all times; it has all work that the host knows to be done.
#pragma once

#include <memory>
#include <string>

#include "core/backend/backend.h"

namespace tenon::backend {

struct TraceOptions {
  std::string path = "tenon.trace.json";
  /// Whether to record an event behind each piece of work; without events there are no rows of
  /// queues.
  bool events = true;

  /// TENON_TRACE is the path; TENON_TRACE_EVENTS=0 leaves out the events.
  static TraceOptions from_environment();
};

/// Errors: the file cannot be written.
Result<std::shared_ptr<Backend>> make_trace_layer(std::shared_ptr<Backend> inner,
                                                  const TraceOptions& options);

}  // namespace tenon::backend
