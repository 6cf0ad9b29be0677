// The layer `record`: writes down what every open device is asked, and what comes out, for a replay
// (replay.h; `tenon replay FILE`).
//
// Every call is written before it is made, so that a file ends with the call that a process died
// in. The bytes of copies from the host are in it, those that copies to the host brought, and, with
// `values`, what each launch left in the buffers that it writes: copies of the layer's own behind
// the launch. All of that is written when an event of the host's has shown it to be done. Memory
// begins with kUnwritten in each byte. Segments, library calls, boxes and `map` are declined: the
// host does them with kernels and copies, and no byte comes in unseen.
//
// A file that can no longer be written is a line in the host's log; the run goes on.
#pragma once

#include <memory>
#include <string>

#include "core/backend/backend.h"

namespace tenon::backend {

struct RecordOptions {
  std::string path = "tenon.record";
  /// What each launch wrote.
  bool values = true;

  /// TENON_RECORD is the path; TENON_RECORD_VALUES=0 leaves out the values.
  static RecordOptions from_environment();
};

/// Errors: the file cannot be written.
Result<std::shared_ptr<Backend>> make_record_layer(std::shared_ptr<Backend> inner,
                                                   const RecordOptions& options);

}  // namespace tenon::backend
