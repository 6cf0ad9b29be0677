// A device that declares less than it has, which shows that a plug-in copes with less.
#pragma once

#include <string>

#include "core/backend/target.h"

namespace tenon::backend {

/// Narrows what a device states, as variables of the environment say whose names begin with
/// `prefix`, "TENON_OPENCL":
///
///   PREFIX_LANES      lanes of a workgroup, preferred and at most
///   PREFIX_SCRATCH    bytes of memory of a workgroup
///   PREFIX_MEMORY     bytes of the first space
///   PREFIX_ALIGNMENT  bytes to which its buffers are aligned
///   PREFIX_QUEUES     number of queues
///   PREFIX_WITHOUT    a list of "f64", "s64" (u64 too), "f16" (conversions), "atomics" and "svm"
///                     (no space is visible to the host); other words are the plug-in's own
///
/// Where a variable is not set, what the target states stays. Errors: a value that is no number.
Status narrow(TargetInfo& target, const std::string& prefix);

}  // namespace tenon::backend
