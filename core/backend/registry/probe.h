// Starts a plug-in in a child process first, so that a plug-in that crashes, hangs or exits does
// not take the host with it.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "core/base/status.h"

namespace tenon::backend {

/// The time that a plug-in may take to start and to list its devices.
inline constexpr std::chrono::milliseconds kLongestProbe = std::chrono::seconds(20);

/// Calls `start` in a child process. OK if it returns, with any result: the host asks again
/// itself. Errors state how else the child ended, and its last printed line: kAborted if it ended
/// by a signal or by an exit; kDeadlineExceeded if it was killed after `limit`.
Status probe(const std::function<void()>& start, std::chrono::milliseconds limit = kLongestProbe);

/// `probe` with loading the plug-in and listing its devices. Errors name the path.
Status probe_plugin(const std::string& path, std::chrono::milliseconds limit = kLongestProbe);

}  // namespace tenon::backend
