// A recording in the form that profilers of XLA's frameworks read: the protobuf message
// tensorflow.profiler.XSpace (xplane.proto).
#pragma once

#include <string>

#include "frameworks/pjrt/profile/profile_recorder.h"

namespace tenon::pjrt {

/// A plane for each device, named as those of devices that TensorFlow does not know
/// ("/device:CUSTOM:…", which viewers show), with lines by XLA's names: "XLA Modules" has
/// executions of programs, "XLA Ops" steps, with another line for each further queue. Transfers and
/// compilations have lines of their own, as many as there were at once. A recording without spans
/// is the empty message.
std::string xspace_of(ProfileRecording recording);

}  // namespace tenon::pjrt
