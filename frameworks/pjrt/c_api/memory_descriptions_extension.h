// The extension of the PJRT C API that states the memories of a device that is not open (version
// 1).
#pragma once

#include "frameworks/pjrt/c_api/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct PJRT_MemoryDescription PJRT_MemoryDescription;

typedef struct PJRT_DeviceDescription_MemoryDescriptions_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_DeviceDescription* device_description;
  const PJRT_MemoryDescription* const* memory_descriptions;  // out
  size_t num_memory_descriptions;                            // out
  size_t default_memory_index;                               // out; -1: there is none
} PJRT_DeviceDescription_MemoryDescriptions_Args;

typedef struct PJRT_MemoryDescription_Kind_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_MemoryDescription* memory_description;
  const char* kind;  // out
  size_t kind_size;  // out
  int kind_id;       // out
} PJRT_MemoryDescription_Kind_Args;

typedef struct PJRT_MemoryDescriptions_Extension {
  PJRT_Extension_Base base;
  PJRT_Error* (*memory_descriptions)(PJRT_DeviceDescription_MemoryDescriptions_Args* args);
  PJRT_Error* (*memory_kind)(PJRT_MemoryDescription_Kind_Args* args);
} PJRT_MemoryDescriptions_Extension;

#ifdef __cplusplus
}
#endif
