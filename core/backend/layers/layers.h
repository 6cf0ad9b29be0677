// core/backend/layers/: layers: Backends that wrap a Backend, written once for every device.
//
// clang-format off
//   validate   checks the numbered rules on both sides: what the host asks, what the backend answers
//   faults     fails the n-th call of a kind, delays, loses the device (faults.h)
//   cache      keeps what was compiled (cache.h)
//   record     writes down all calls and results, for a replay (record.h, replay.h)
//   trace      a timeline of launches, copies and calls (trace.h)
// clang-format on
//
// `--layer=validate,faults` and TENON_LAYERS name them from the outermost to the one at the
// backend.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/backend/backend.h"

namespace tenon::backend {

/// Wraps `inner` in the layers of a comma-separated list; an empty list returns `inner`. Errors: an
/// unknown name; a plan of faults (TENON_FAULTS) that does not parse; TENON_CACHE_BYTES that is not
/// a number; a file (TENON_RECORD, TENON_TRACE) that cannot be written. If there is no folder for
/// the cache, a warning is logged (set_log).
Result<std::shared_ptr<Backend>> with_layers(std::shared_ptr<Backend> inner,
                                             std::string_view names);

/// A violated rule, on either side of the seam, is an error of the call that cites the rule, with
/// kInternal: no program can cause one.
std::shared_ptr<Backend> make_validate_layer(std::shared_ptr<Backend> inner);

}  // namespace tenon::backend
