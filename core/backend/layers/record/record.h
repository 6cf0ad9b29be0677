// core/backend/layers/record/: the layer `record`: writes down a run, and replays it.
//
// The layer `record`: writes down what every open device is asked, and what comes out, for a replay
// (replay.h; `tenon replay FILE`).
//
// Copies, fills and launches are written before they are given, and so are ends of memory and
// modules, so that a file ends with the work that a process died in; what gives a handle or bytes
// (open, compile, load, allocate, record) is written once it has. The bytes of copies from the host
// are in it, those that copies to the host brought, and, with `values`, what each launch left in
// the buffers that it writes: copies of the layer's own behind the launch. All of that is written
// when an event has shown it to be done: one of the host's, or, when much has been read back, one
// of the layer's own that a launch waits for. Memory begins with kUnwritten in each byte. Segments,
// library calls, boxes and `map` are declined: the host does them with kernels and copies, and no
// byte comes in unseen.
//
// A file that can no longer be written is a line in the host's log; the run goes on.
#pragma once

#include <memory>
#include <string>

#include "core/backend/backend.h"

namespace tenon::backend {

struct RecordOptions {
  std::string path = "tenon.record";
  /// Whether to record the bytes that each launch wrote.
  bool values = true;
  /// Bound on the bytes of values in host memory, for each queue; a single launch may exceed it.
  int64_t most_held_bytes = int64_t{256} << 20;

  /// TENON_RECORD is the path; TENON_RECORD_VALUES=0 leaves out the values.
  static RecordOptions from_environment();
};

/// Errors: the file cannot be written.
Result<std::shared_ptr<Backend>> make_record_layer(std::shared_ptr<Backend> inner,
                                                   const RecordOptions& options);

}  // namespace tenon::backend
