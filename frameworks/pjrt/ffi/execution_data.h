// Data that a caller gives to one execution, for the functions of the host that it calls.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "frameworks/pjrt/c_api/pjrt_c_api.h"

namespace tenon::pjrt {

/// The runtime's ExecuteOptions::context, immutable: executions share it with the context that it
/// came from.
struct ExecutionData {
  std::map<int64_t, void*> objects;                ///< The caller's, by the id of their type.
  std::map<int64_t, PJRT_SendCallbackInfo> sends;  ///< By channel.
  std::map<int64_t, PJRT_RecvCallbackInfo> receives;
};

}  // namespace tenon::pjrt

/// The caller's, who may use it in several executions and add to it in between.
struct PJRT_ExecuteContext {
  std::mutex mutex;
  std::shared_ptr<const tenon::pjrt::ExecutionData> data;  ///< Null: nothing was added.
};
