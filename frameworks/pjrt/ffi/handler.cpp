#include "frameworks/pjrt/ffi/handler.h"

#include <cxxabi.h>

#include <cstddef>
#include <map>
#include <mutex>

#include "frameworks/pjrt/ffi/context.h"
#include "frameworks/pjrt/ffi/frame.h"

namespace tenon::pjrt {
namespace {

// The size of the version before `future`, which handlers compare with theirs.
constexpr size_t kFrameSize = offsetof(XLA_FFI_CallFrame, attrs) + sizeof(XLA_FFI_Attrs);

// Handlers are C functions, but one written in C++ may throw.
Status call(XLA_FFI_Handler* handler, XLA_FFI_CallFrame& frame) {
  try {
    TENON_TRY(take(handler(&frame)));
  } catch (const std::exception& error) {
    return Status(internal_error("an exception: {}", error.what()));
  } catch (const abi::__forced_unwind&) {
    throw;  // The thread is being ended: CPython does that to threads that outlive it.
  } catch (...) {
    return Status(internal_error("an exception of a non-standard type"));
  }
  if (frame.future == nullptr) return {};
  const std::unique_ptr<XLA_FFI_Future> future(frame.future);
  return future->await();
}

XLA_FFI_CallFrame frame_of(XLA_FFI_ExecutionContext& context, XLA_FFI_ExecutionStage stage) {
  XLA_FFI_CallFrame frame = {};
  frame.struct_size = kFrameSize;
  frame.api = &ffi_api();
  frame.ctx = &context;
  frame.stage = stage;
  frame.args.struct_size = sizeof(XLA_FFI_Args);
  frame.rets.struct_size = sizeof(XLA_FFI_Rets);
  frame.attrs.struct_size = sizeof(XLA_FFI_Attrs);
  return frame;
}

// One call of a program, with the state that INSTANTIATE made.
class FfiCall {
 public:
  explicit FfiCall(const XLA_FFI_Handler_Bundle& bundle) : bundle_(bundle) {}

  Status instantiate(const program::ForeignCall& foreign) {
    TENON_TRY(attributes_.add(foreign.attributes));
    if (bundle_.instantiate == nullptr) return {};
    XLA_FFI_ExecutionContext context;
    context.states[XLA_FFI_ExecutionStage_INSTANTIATE] = &state_;
    XLA_FFI_CallFrame frame = frame_of(context, XLA_FFI_ExecutionStage_INSTANTIATE);
    frame.attrs = attributes_.view();
    return call(bundle_.instantiate, frame);
  }

  Status run(const runtime::HostCallFrame& arrays) {
    FfiArrays buffers;
    TENON_TRY(buffers.add(arrays));
    FfiState prepared;
    FfiState initialized;
    XLA_FFI_ExecutionContext context;
    context.states = {&state_, &prepared, &initialized};
    context.execution = arrays.origin.execution;
    context.given = static_cast<const ExecutionData*>(arrays.origin.context);
    context.device = static_cast<int32_t>(arrays.device);
    context.has_device = true;
    const std::pair<XLA_FFI_Handler*, XLA_FFI_ExecutionStage> stages[] = {
        {bundle_.prepare, XLA_FFI_ExecutionStage_PREPARE},
        {bundle_.initialize, XLA_FFI_ExecutionStage_INITIALIZE},
        {bundle_.execute, XLA_FFI_ExecutionStage_EXECUTE}};
    for (const auto& [handler, stage] : stages) {
      if (handler == nullptr) continue;
      XLA_FFI_CallFrame frame = frame_of(context, stage);
      frame.args = buffers.arguments();
      frame.rets = buffers.results();
      frame.attrs = attributes_.view();
      TENON_TRY(call(handler, frame));
    }
    return {};
  }

 private:
  const XLA_FFI_Handler_Bundle bundle_;
  FfiAttributes attributes_;
  FfiState state_;
};

// Asks a handler for the version of its interface.
Status check_version(XLA_FFI_Handler* handler) {
  XLA_FFI_Metadata metadata = {};
  metadata.struct_size = sizeof(XLA_FFI_Metadata);
  metadata.api_version.struct_size = sizeof(XLA_FFI_Api_Version);
  XLA_FFI_Metadata_Extension extension = {};
  extension.extension_base = {sizeof(XLA_FFI_Metadata_Extension), XLA_FFI_Extension_Metadata,
                              nullptr};
  extension.metadata = &metadata;
  XLA_FFI_ExecutionContext context;
  XLA_FFI_CallFrame frame = frame_of(context, XLA_FFI_ExecutionStage_EXECUTE);
  frame.extension_start = &extension.extension_base;
  TENON_TRY(call(handler, frame));
  const XLA_FFI_Api_Version& version = metadata.api_version;
  if (version.major_version == XLA_FFI_API_MAJOR) return {};
  return unimplemented("it is written for version {}.{} of the interface, this is {}.{}",
                       version.major_version, version.minor_version,
                       static_cast<int>(XLA_FFI_API_MAJOR), static_cast<int>(XLA_FFI_API_MINOR));
}

bool operator==(const XLA_FFI_Handler_Bundle& a, const XLA_FFI_Handler_Bundle& b) {
  return a.instantiate == b.instantiate && a.prepare == b.prepare && a.initialize == b.initialize &&
         a.execute == b.execute;
}

// The handlers that are registered, to know one that is registered again.
struct Registered {
  std::mutex mutex;
  std::map<std::pair<std::string, std::string>, XLA_FFI_Handler_Bundle> bundles;
};
Registered& registered() {
  static auto& all = *new Registered();
  return all;
}

}  // namespace

runtime::HostFunction function_of(const XLA_FFI_Handler_Bundle& bundle) {
  return [bundle](const program::CustomCall&,
                  const program::ForeignCall& foreign) -> Result<runtime::HostCall> {
    auto prepared = std::make_shared<FfiCall>(bundle);
    TENON_TRY(prepared->instantiate(foreign));
    return [prepared](const runtime::HostCallFrame& frame) { return prepared->run(frame); };
  };
}

Status add_handler(std::string_view platform, std::string_view name,
                   const XLA_FFI_Handler_Bundle& bundle) {
  if (bundle.execute == nullptr) {
    return invalid_argument("@{}: a handler without the stage EXECUTE", name);
  }
  Registered& all = registered();
  const std::lock_guard lock(all.mutex);
  const std::pair<std::string, std::string> key(platform, name);
  if (const auto found = all.bundles.find(key);
      found != all.bundles.end() && found->second == bundle) {
    return {};
  }
  if (const Status status = check_version(bundle.execute); !status.ok()) {
    return Status(status.code(), fmt::format("@{}: {}", name, status.message()));
  }
  TENON_TRY(runtime::HostFunctions::instance().add(platform, name, function_of(bundle)));
  all.bundles.emplace(key, bundle);
  return {};
}

}  // namespace tenon::pjrt
