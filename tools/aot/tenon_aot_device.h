/* The first GPU and its memory, for programs that have no other code for CUDA. Of the functions
 * that follow an error none does anything: tenon_aot_device.error is the first one. */
#ifndef TENON_AOT_DEVICE_H
#define TENON_AOT_DEVICE_H

#include <dlfcn.h>
#include <string.h>

#include "tenon_aot_cuda.h"

typedef struct tenon_aot_device {
  int32_t error; /* a CUresult */
  int32_t number;
  void* library;
  void* context;
  int32_t (*allocate)(uint64_t*, size_t);
  int32_t (*upload)(uint64_t, const void*, size_t);
  int32_t (*download)(void*, uint64_t, size_t);
  int32_t (*release)(int32_t);
} tenon_aot_device;

/* Sets a pointer to a function of the driver. */
static inline void tenon_aot_device_find(tenon_aot_device* device, const char* name, void* to) {
  void* const found = device->library == NULL ? NULL : dlsym(device->library, name);
  if (found == NULL && device->error == 0) device->error = 302;
  memcpy(to, &found, sizeof found);
}

/* Makes the primary context of the first GPU the current one. */
static inline void tenon_aot_device_open(tenon_aot_device* device) {
  int32_t (*init)(unsigned);
  int32_t (*get)(int32_t*, int32_t);
  int32_t (*retain)(void**, int32_t);
  int32_t (*set)(void*);
  memset(device, 0, sizeof *device);
  device->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (device->library == NULL) device->error = 303;
  tenon_aot_device_find(device, "cuInit", &init);
  tenon_aot_device_find(device, "cuDeviceGet", &get);
  tenon_aot_device_find(device, "cuDevicePrimaryCtxRetain", &retain);
  tenon_aot_device_find(device, "cuDevicePrimaryCtxRelease_v2", &device->release);
  tenon_aot_device_find(device, "cuCtxSetCurrent", &set);
  tenon_aot_device_find(device, "cuMemAlloc_v2", &device->allocate);
  tenon_aot_device_find(device, "cuMemcpyHtoD_v2", &device->upload);
  tenon_aot_device_find(device, "cuMemcpyDtoH_v2", &device->download);
  if (device->error == 0) device->error = init(0);
  if (device->error == 0) device->error = get(&device->number, 0);
  if (device->error == 0) device->error = retain(&device->context, device->number);
  if (device->error == 0) device->error = set(device->context);
}

/* Memory of the GPU, with a copy of the bytes at `from` if that is not NULL. */
static inline void* tenon_aot_device_new(tenon_aot_device* device, const void* from, size_t bytes) {
  uint64_t memory = 0;
  if (device->error == 0) device->error = device->allocate(&memory, bytes == 0 ? 1 : bytes);
  if (device->error == 0 && from != NULL && bytes > 0) {
    device->error = device->upload(memory, from, bytes);
  }
  return (void*)(uintptr_t)memory;
}

/* Waits for the default stream, and copies bytes to the host. */
static inline void tenon_aot_device_read(tenon_aot_device* device, void* to, const void* from,
                                         size_t bytes) {
  if (device->error == 0 && bytes > 0) {
    device->error = device->download(to, (uint64_t)(uintptr_t)from, bytes);
  }
}

/* Gives back the context with all its memory, if nobody else has it. */
static inline void tenon_aot_device_close(tenon_aot_device* device) {
  if (device->context != NULL) (void)device->release(device->number);
  if (device->library != NULL) dlclose(device->library);
  device->library = device->context = NULL;
}

#endif
