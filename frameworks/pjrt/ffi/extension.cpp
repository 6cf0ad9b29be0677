#include "frameworks/pjrt/ffi/extension.h"

#include "frameworks/pjrt/entries/table.h"
#include "frameworks/pjrt/ffi/context.h"
#include "frameworks/pjrt/ffi/execution_data.h"
#include "frameworks/pjrt/ffi/handler.h"
#include "frameworks/pjrt/objects.h"

namespace tenon::pjrt {
namespace {

XLA_FFI_Handler* handler_of(void* handler) { return reinterpret_cast<XLA_FFI_Handler*>(handler); }

Status register_type(PJRT_FFI_Type_Register_Args& args) {
  const auto deleter = args.type_info == nullptr ? nullptr : args.type_info->deleter;
  TENON_ASSIGN(args.type_id, FfiTypes::instance().add(view_of(args.type_name, args.type_name_size),
                                                      args.type_id, deleter));
  return {};
}

// Executions that began before do not see it.
Status add_user_data(PJRT_FFI_UserData_Add_Args& args) {
  if (args.context == nullptr) return invalid_argument("there is no execution context");
  const std::lock_guard lock(args.context->mutex);
  const auto& before = args.context->data;
  auto data = before == nullptr ? std::make_shared<ExecutionData>()
                                : std::make_shared<ExecutionData>(*before);
  if (!data->objects.emplace(args.user_data.type_id, args.user_data.data).second) {
    return Status(ErrorCode::kAlreadyExists,
                  fmt::format("the execution context has data of the type {} already",
                              args.user_data.type_id));
  }
  args.context->data = std::move(data);
  return {};
}

Status register_handler(PJRT_FFI_Register_Handler_Args& args) {
  XLA_FFI_Handler_Bundle bundle = {};
  bundle.execute = handler_of(args.handler);
  return add_handler(view_of(args.platform_name, args.platform_name_size),
                     view_of(args.target_name, args.target_name_size), bundle);
}

Status register_stages(PJRT_Gpu_Register_Custom_Call_Args& args) {
  const std::string_view name = view_of(args.function_name, args.function_name_size);
  if (args.api_version != 1) {
    return unimplemented("@{}: a function of the untyped interface (api_version {})", name,
                         args.api_version);
  }
  return add_handler(kPlatformName, name,
                     {handler_of(args.handler_instantiate), handler_of(args.handler_prepare),
                      handler_of(args.handler_initialize), handler_of(args.handler_execute)});
}

}  // namespace

PJRT_Extension_Base* ffi_extensions() {
  static PJRT_Gpu_Custom_Call stages = {
      {sizeof(PJRT_Gpu_Custom_Call), PJRT_Extension_Type_Gpu_Custom_Call, nullptr},
      entry<register_stages>};
  static PJRT_FFI_Extension ffi = {
      {sizeof(PJRT_FFI_Extension), PJRT_Extension_Type_FFI, &stages.base},
      entry<register_type>,
      entry<add_user_data>,
      entry<register_handler>};
  return &ffi.base;
}

}  // namespace tenon::pjrt
