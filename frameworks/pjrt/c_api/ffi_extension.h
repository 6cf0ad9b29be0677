// The extensions of the PJRT C API that register functions of the host: FFI (version 3), and
// Gpu_Custom_Call (version 2), which despite its name is the only one that takes a handler for each
// stage. Argument structures without `extension_start` are published so.
#pragma once

#include "frameworks/pjrt/c_api/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct PJRT_FFI_Type_Info {
  void (*deleter)(void* object);
  void (*serialize)(void);
  void (*deserialize)(void);
} PJRT_FFI_Type_Info;

typedef struct PJRT_FFI_Type_Register_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const char* type_name;
  size_t type_name_size;
  int64_t type_id;  // in and out: 0 asks for a new one
  PJRT_FFI_Type_Info* type_info;
} PJRT_FFI_Type_Register_Args;

typedef struct PJRT_FFI_UserData {
  int64_t type_id;
  void* data;
} PJRT_FFI_UserData;

typedef struct PJRT_FFI_UserData_Add_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_ExecuteContext* context;
  PJRT_FFI_UserData user_data;
} PJRT_FFI_UserData_Add_Args;

typedef struct PJRT_FFI_Register_Handler_Args {
  size_t struct_size;
  const char* target_name;
  size_t target_name_size;
  void* handler;  // XLA_FFI_Handler*
  const char* platform_name;
  size_t platform_name_size;
  int traits;
} PJRT_FFI_Register_Handler_Args;

typedef struct PJRT_FFI_Extension {
  PJRT_Extension_Base base;
  PJRT_Error* (*type_register)(PJRT_FFI_Type_Register_Args* args);
  PJRT_Error* (*user_data_add)(PJRT_FFI_UserData_Add_Args* args);
  PJRT_Error* (*register_handler)(PJRT_FFI_Register_Handler_Args* args);
} PJRT_FFI_Extension;

typedef struct PJRT_Gpu_Register_Custom_Call_Args {
  size_t struct_size;
  const char* function_name;
  size_t function_name_size;
  int api_version;            // 1: the handlers are XLA_FFI_Handler*
  void* handler_instantiate;  // may be null
  void* handler_prepare;      // may be null
  void* handler_initialize;   // may be null
  void* handler_execute;
} PJRT_Gpu_Register_Custom_Call_Args;

typedef struct PJRT_Gpu_Custom_Call {
  PJRT_Extension_Base base;
  PJRT_Error* (*custom_call)(PJRT_Gpu_Register_Custom_Call_Args* args);
} PJRT_Gpu_Custom_Call;

#ifdef __cplusplus
}
#endif
