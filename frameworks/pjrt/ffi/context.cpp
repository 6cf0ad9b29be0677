#include "frameworks/pjrt/ffi/context.h"

#include <cxxabi.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <new>

#include "frameworks/pjrt/entries/table.h"
#include "frameworks/pjrt/ffi/execution_data.h"
#include "frameworks/pjrt/ffi/handler.h"

namespace tenon::pjrt {

FfiTypes& FfiTypes::instance() {
  static auto& types = *new FfiTypes();
  return types;
}

Result<int64_t> FfiTypes::add(std::string_view name, int64_t id, Deleter deletes) {
  const std::lock_guard lock(mutex_);
  int64_t last = 0;
  for (auto& [known, entry] : entries_) {
    last = std::max(last, entry.id);
    const bool same_name = known == name;
    if (same_name && id == 0) return entry.id;
    if (same_name && id == entry.id) {
      entry.deleter = deletes;
      return id;
    }
    if (same_name || (id != 0 && id == entry.id)) {
      return Error(Status(
          ErrorCode::kAlreadyExists,
          fmt::format("type {} with id {}: there is {} with id {}", name, id, known, entry.id)));
    }
  }
  const RegisteredType entry = {id != 0 ? id : last + 1, deletes};
  entries_.emplace(name, entry);
  return entry.id;
}

FfiTypes::Deleter FfiTypes::deleter(int64_t id) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, entry] : entries_) {
    if (entry.id == id) return entry.deleter;
  }
  return nullptr;
}

void FfiState::set(int64_t type, void* object) {
  reset();
  type_ = type;
  object_ = object;
}

void FfiState::reset() {
  if (object_ == nullptr) return;
  const FfiTypes::Deleter deleter = FfiTypes::instance().deleter(type_);
  if (deleter != nullptr) deleter(object_);
  object_ = nullptr;
}

Status take(XLA_FFI_Error* error) {
  if (error == nullptr) return {};
  const std::unique_ptr<XLA_FFI_Error> owned(error);
  const ErrorCode code = owned->code == ErrorCode::kOk ? ErrorCode::kUnknown : owned->code;
  return Status(code, std::move(owned->message));
}

XLA_FFI_Error* ffi_error_of(const Status& status) {
  return status.ok() ? nullptr : new XLA_FFI_Error{status.code(), status.message()};
}

namespace {

// The functions of the table, with all exceptions as errors.

template <auto function>
struct FfiEntry;
template <class Args, Status (*function)(Args&)>
struct FfiEntry<function> {
  static XLA_FFI_Error* call(Args* args) {
    try {
      return ffi_error_of(function(*args));
    } catch (const std::bad_alloc&) {
      return new XLA_FFI_Error{ErrorCode::kResourceExhausted, {}};
    } catch (const std::exception& error) {
      return new XLA_FFI_Error{ErrorCode::kInternal, error.what()};
    } catch (const abi::__forced_unwind&) {
      throw;  // The thread is being ended, in a task of the handler's.
    } catch (...) {
      return new XLA_FFI_Error{ErrorCode::kInternal, "an exception of a non-standard type"};
    }
  }
};

XLA_FFI_Error* error_create(XLA_FFI_Error_Create_Args* args) {
  const char* const message = args->message == nullptr ? "" : args->message;
  return new XLA_FFI_Error{code_of(static_cast<PJRT_Error_Code>(args->errc)), message};
}
void error_get_message(XLA_FFI_Error_GetMessage_Args* args) {
  args->message = args->error->message.c_str();
}
void error_destroy(XLA_FFI_Error_Destroy_Args* args) { delete args->error; }

Status stream_get(XLA_FFI_Stream_Get_Args&) {
  return unimplemented("functions run on the host, which has no streams");
}

Status type_register(XLA_FFI_Type_Register_Args& args) {
  const auto deleter = args.type_info == nullptr ? nullptr : args.type_info->deleter;
  TENON_ASSIGN(args.type_id->type_id, FfiTypes::instance().add({args.name.ptr, args.name.len},
                                                               args.type_id->type_id, deleter));
  return {};
}

Status execution_context_get(XLA_FFI_ExecutionContext_Get_Args& args) {
  const ExecutionData* const data = args.ctx->given;
  if (data != nullptr) {
    const auto found = data->objects.find(args.type_id->type_id);
    if (found != data->objects.end()) {
      args.data = found->second;
      return {};
    }
  }
  return not_found("the execution has no data of the type {}", args.type_id->type_id);
}

Result<FfiState*> state_of(const XLA_FFI_ExecutionContext& context, XLA_FFI_ExecutionStage stage) {
  const auto number = static_cast<size_t>(stage);
  if (number < context.states.size() && context.states[number] != nullptr) {
    return context.states[number];
  }
  return invalid_argument("stage {} has no state", number);
}

Status state_set(XLA_FFI_State_Set_Args& args) {
  TENON_ASSIGN(FfiState* const state, state_of(*args.ctx, args.stage));
  if (!state->empty()) return Status(ErrorCode::kAlreadyExists, "the state is set already");
  state->set(args.type_id->type_id, args.state);
  return {};
}

Status state_get(XLA_FFI_State_Get_Args& args) {
  TENON_ASSIGN(const FfiState* const state, state_of(*args.ctx, args.stage));
  if (state->empty()) return not_found("the state is not set");
  if (state->type() != args.type_id->type_id) {
    return invalid_argument("the state is of type {}, not of {}", state->type(),
                            args.type_id->type_id);
  }
  args.state = state->object();
  return {};
}

Status memory_allocate(XLA_FFI_DeviceMemory_Allocate_Args& args) {
  if (args.alignment != 0 && !std::has_single_bit(args.alignment)) {
    return invalid_argument("an alignment of {}, which is no power of two", args.alignment);
  }
  args.data = args.ctx->allocate(args.size, args.alignment);
  return {};
}
Status memory_free(XLA_FFI_DeviceMemory_Free_Args& args) {
  if (args.ctx->free(args.data)) return {};
  return invalid_argument("memory that this call did not allocate");
}

// On the caller's thread: nobody may rely on more than one.
Status schedule(XLA_FFI_ThreadPool_Schedule_Args& args) {
  args.task(args.data);
  return {};
}
Status thread_count(XLA_FFI_ThreadPool_NumThreads_Args& args) {
  *args.num_threads = 1;
  return {};
}

Status future_create(XLA_FFI_Future_Create_Args& args) {
  args.future = new XLA_FFI_Future();
  return {};
}
Status future_set_available(XLA_FFI_Future_SetAvailable_Args& args) {
  args.future->set({});
  return {};
}
Status future_set_error(XLA_FFI_Future_SetError_Args& args) {
  args.future->set(take(args.error));
  return {};
}

Status run_id_get(XLA_FFI_RunId_Get_Args& args) {
  args.run_id = args.ctx->execution;
  return {};
}
Status device_ordinal_get(XLA_FFI_DeviceOrdinal_Get_Args& args) {
  if (!args.ctx->has_device) return not_found("there is no device in this stage");
  args.device_ordinal = args.ctx->device;
  return {};
}

XLA_FFI_Api make_ffi_api(XLA_FFI_Error* (*handler_register)(XLA_FFI_Handler_Register_Args*)) {
  XLA_FFI_Api api = {};
  api.struct_size = sizeof(XLA_FFI_Api);
  api.api_version = {sizeof(XLA_FFI_Api_Version), nullptr, XLA_FFI_API_MAJOR, XLA_FFI_API_MINOR};
  api.XLA_FFI_Error_Create = error_create;
  api.XLA_FFI_Error_GetMessage = error_get_message;
  api.XLA_FFI_Error_Destroy = error_destroy;
  api.XLA_FFI_Handler_Register = handler_register;
  api.XLA_FFI_Stream_Get = &FfiEntry<stream_get>::call;
  api.XLA_FFI_Type_Register = &FfiEntry<type_register>::call;
  api.XLA_FFI_ExecutionContext_Get = &FfiEntry<execution_context_get>::call;
  api.XLA_FFI_State_Set = &FfiEntry<state_set>::call;
  api.XLA_FFI_State_Get = &FfiEntry<state_get>::call;
  api.XLA_FFI_DeviceMemory_Allocate = &FfiEntry<memory_allocate>::call;
  api.XLA_FFI_DeviceMemory_Free = &FfiEntry<memory_free>::call;
  api.XLA_FFI_ThreadPool_Schedule = &FfiEntry<schedule>::call;
  api.XLA_FFI_ThreadPool_NumThreads = &FfiEntry<thread_count>::call;
  api.XLA_FFI_Future_Create = &FfiEntry<future_create>::call;
  api.XLA_FFI_Future_SetAvailable = &FfiEntry<future_set_available>::call;
  api.XLA_FFI_Future_SetError = &FfiEntry<future_set_error>::call;
  api.XLA_FFI_RunId_Get = &FfiEntry<run_id_get>::call;
  api.XLA_FFI_DeviceOrdinal_Get = &FfiEntry<device_ordinal_get>::call;
  return api;
}

Status handler_register(XLA_FFI_Handler_Register_Args& args) {
  return add_handler({args.platform.ptr, args.platform.len}, {args.name.ptr, args.name.len},
                     args.bundle);
}

}  // namespace

const XLA_FFI_Api& ffi_api() {
  static const XLA_FFI_Api api = make_ffi_api(&FfiEntry<handler_register>::call);
  return api;
}

}  // namespace tenon::pjrt

tenon::Status XLA_FFI_Future::await() {
  std::unique_lock lock(mutex_);
  is_set_.wait(lock, [&] { return status_.has_value(); });
  return *status_;
}

// Notifies under the lock: the waiter destroys the future.
void XLA_FFI_Future::set(tenon::Status status) {
  const std::lock_guard lock(mutex_);
  if (!status_) status_ = std::move(status);
  is_set_.notify_all();
}

XLA_FFI_ExecutionContext::~XLA_FFI_ExecutionContext() {
  for (const auto& [data, alignment] : allocated_) {
    ::operator delete(data, std::align_val_t(alignment));
  }
}

void* XLA_FFI_ExecutionContext::allocate(size_t size, size_t alignment) {
  const size_t aligned = std::max<size_t>(alignment, sizeof(void*));
  void* const data = ::operator new(std::max<size_t>(size, 1), std::align_val_t(aligned));
  const std::lock_guard lock(mutex_);
  allocated_.emplace(data, aligned);
  return data;
}

bool XLA_FFI_ExecutionContext::free(void* data) {
  const std::lock_guard lock(mutex_);
  const auto found = allocated_.find(data);
  if (found == allocated_.end()) return false;
  ::operator delete(data, std::align_val_t(found->second));
  allocated_.erase(found);
  return true;
}
