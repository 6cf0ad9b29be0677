// A plug-in's start tried in a child process: one that crashes, hangs or ends its process there
// must not take the host along.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "core/base/status.h"

namespace tenon::backend {

/// How long a plug-in may take to start and to say which devices there are.
inline constexpr std::chrono::milliseconds kLongestProbe = std::chrono::seconds(20);

/// Calls `start` in a child process. OK if it returns, with any result: the host asks again and
/// gets the answer itself. Errors say how the child ended otherwise, and the last line that it
/// printed: kAborted, by a signal or by an exit; kDeadlineExceeded, ended after `limit`.
Status probe(const std::function<void()>& start, std::chrono::milliseconds limit = kLongestProbe);

/// `probe` of loading the plug-in and listing its devices. Errors name the path.
Status probe_plugin(const std::string& path, std::chrono::milliseconds limit = kLongestProbe);

}  // namespace tenon::backend
