// The extension of the PJRT C API by which a framework's profiler starts and stops the plug-in's,
// and takes what it recorded.
//
// The inner table has a size of its own. jaxlib up to 0.10 takes a table of exactly this size and
// crashes with any other; later versions take any that is at least as large, and do without the
// three functions that were added at its end.
#pragma once

#include "frameworks/pjrt/c_api/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct PLUGIN_Profiler PLUGIN_Profiler;
typedef struct PLUGIN_Profiler_Error PLUGIN_Profiler_Error;

typedef struct PLUGIN_Profiler_Error_Destroy_Args {
  size_t struct_size;
  void* priv;
  PLUGIN_Profiler_Error* error;  // may be null
} PLUGIN_Profiler_Error_Destroy_Args;
typedef void PLUGIN_Profiler_Error_Destroy(PLUGIN_Profiler_Error_Destroy_Args* args);

typedef struct PLUGIN_Profiler_Error_Message_Args {
  size_t struct_size;
  void* priv;
  const PLUGIN_Profiler_Error* error;
  const char* message;  // out; lives as long as the error
  size_t message_size;  // out
} PLUGIN_Profiler_Error_Message_Args;
typedef void PLUGIN_Profiler_Error_Message(PLUGIN_Profiler_Error_Message_Args* args);

typedef struct PLUGIN_Profiler_Error_GetCode_Args {
  size_t struct_size;
  void* priv;
  const PLUGIN_Profiler_Error* error;
  int code;  // out; as PJRT_Error_Code
} PLUGIN_Profiler_Error_GetCode_Args;
typedef PLUGIN_Profiler_Error* PLUGIN_Profiler_Error_GetCode(
    PLUGIN_Profiler_Error_GetCode_Args* args);

// Callers leave `struct_size` of the following arguments uninitialised.

typedef struct PLUGIN_Profiler_Create_Args {
  size_t struct_size;
  const char* options;  // a tensorflow.ProfileOptions
  size_t options_size;
  PLUGIN_Profiler* profiler;  // out
} PLUGIN_Profiler_Create_Args;
typedef PLUGIN_Profiler_Error* PLUGIN_Profiler_Create(PLUGIN_Profiler_Create_Args* args);

typedef struct PLUGIN_Profiler_Destroy_Args {
  size_t struct_size;
  PLUGIN_Profiler* profiler;
} PLUGIN_Profiler_Destroy_Args;
typedef PLUGIN_Profiler_Error* PLUGIN_Profiler_Destroy(PLUGIN_Profiler_Destroy_Args* args);

typedef struct PLUGIN_Profiler_Start_Args {
  size_t struct_size;
  PLUGIN_Profiler* profiler;
} PLUGIN_Profiler_Start_Args;
typedef PLUGIN_Profiler_Error* PLUGIN_Profiler_Start(PLUGIN_Profiler_Start_Args* args);

typedef struct PLUGIN_Profiler_Stop_Args {
  size_t struct_size;
  PLUGIN_Profiler* profiler;
} PLUGIN_Profiler_Stop_Args;
typedef PLUGIN_Profiler_Error* PLUGIN_Profiler_Stop(PLUGIN_Profiler_Stop_Args* args);

typedef struct PLUGIN_Profiler_CollectData_Args {
  size_t struct_size;
  PLUGIN_Profiler* profiler;
  uint8_t* buffer;              // in: null, or room for the data; out, if it was null: the data
  size_t buffer_size_in_bytes;  // out
} PLUGIN_Profiler_CollectData_Args;
// Called twice: without a buffer for the size, then with one. The data is a
// tensorflow.profiler.XSpace.
typedef PLUGIN_Profiler_Error* PLUGIN_Profiler_CollectData(PLUGIN_Profiler_CollectData_Args* args);

typedef struct PLUGIN_Profiler_Api {
  size_t struct_size;
  void* priv;
  PLUGIN_Profiler_Error_Destroy* error_destroy;
  PLUGIN_Profiler_Error_Message* error_message;
  PLUGIN_Profiler_Error_GetCode* error_get_code;
  PLUGIN_Profiler_Create* create;
  PLUGIN_Profiler_Destroy* destroy;
  PLUGIN_Profiler_Start* start;
  PLUGIN_Profiler_Stop* stop;
  PLUGIN_Profiler_CollectData* collect_data;
} PLUGIN_Profiler_Api;

typedef struct PJRT_Profiler_Extension {
  PJRT_Extension_Base base;
  PLUGIN_Profiler_Api* profiler_api;
  int64_t traceme_context_id;  // used in arguments alone
} PJRT_Profiler_Extension;

#ifdef __cplusplus
}
#endif
