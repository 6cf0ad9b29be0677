// The extension of the PJRT C API that states how the arrays of an executable are split (version
// 1).
#pragma once

#include "frameworks/pjrt/c_api/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct PJRT_Shardings_PJRT_Executable_ParameterShardings_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  size_t num_parameters;         // out
  const char* const* shardings;  // out; OpSharding messages, or null: nothing is known
  const size_t* sharding_sizes;  // out
} PJRT_Shardings_PJRT_Executable_ParameterShardings_Args;

typedef struct PJRT_Shardings_PJRT_Executable_OutputShardings_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  size_t num_outputs;            // out
  const char* const* shardings;  // out, as above
  const size_t* sharding_sizes;  // out
} PJRT_Shardings_PJRT_Executable_OutputShardings_Args;

typedef struct PJRT_Shardings_Extension {
  PJRT_Extension_Base base;
  PJRT_Error* (*parameter_shardings)(PJRT_Shardings_PJRT_Executable_ParameterShardings_Args* args);
  PJRT_Error* (*output_shardings)(PJRT_Shardings_PJRT_Executable_OutputShardings_Args* args);
} PJRT_Shardings_Extension;

#ifdef __cplusplus
}
#endif
