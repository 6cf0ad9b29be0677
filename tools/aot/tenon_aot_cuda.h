/* The types that models of `tenon aot --target nvptx64-nvidia-cuda` share.
 *
 * A model NAME is loaded into the current context by NAME_load, which fills in a NAME_gpu, and has
 * for each function F of its program
 *
 *   NAME_F       puts the work on a stream: an address of the GPU's memory for each argument and
 *                result, then for the arena
 *   NAME_F_run   the same, with the addresses in an array: for callers that find out at run time
 *
 * and NAME_model, the descriptor. All return a CUresult: 0 is success. Nothing allocates memory of
 * the host or keeps state outside of NAME_gpu, which several threads may use at once, each call
 * with an arena and a stream that no other call uses at that time.
 *
 * The CUDA driver is libcuda.so.1, opened by NAME_load; with TENON_AOT_LINK_CUDA defined, NAME.c is
 * linked with it (-lcuda).
 */
#ifndef TENON_AOT_CUDA_H
#define TENON_AOT_CUDA_H

#include "tenon_aot.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A CUstream, which is a cudaStream_t too; NULL is the default stream. */
struct CUstream_st;

/* The functions of the driver that models call. X(member, symbol, parameters) */
#define TENON_AOT_CUDA_FUNCTIONS(X)                                                              \
  X(load_module, cuModuleLoadData, (void** module, const void* image))                           \
  X(unload_module, cuModuleUnload, (void* module))                                               \
  X(function, cuModuleGetFunction, (void** function, void* module, const char* symbol))          \
  X(allocate, cuMemAlloc_v2, (uint64_t* memory, size_t bytes))                                   \
  X(free, cuMemFree_v2, (uint64_t memory))                                                       \
  X(copy_to_device, cuMemcpyHtoD_v2, (uint64_t to, const void* from, size_t bytes))              \
  X(read, cuMemcpyDtoHAsync_v2, (void* to, uint64_t from, size_t bytes, struct CUstream_st* on)) \
  X(synchronize, cuStreamSynchronize, (struct CUstream_st * stream))                             \
  X(launch, cuLaunchKernel,                                                                      \
    (void* function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned threads_y,   \
     unsigned threads_z, unsigned shared, struct CUstream_st* stream, void** parameters,         \
     void** extra))

/* A loaded model: the first member of NAME_gpu. Its members are those of the model alone. */
#define TENON_AOT_CUDA_MEMBER(member, symbol, parameters) int32_t(*member) parameters;
typedef struct tenon_aot_cuda {
  TENON_AOT_CUDA_FUNCTIONS(TENON_AOT_CUDA_MEMBER)
  void* library;
  void* module;
  uint64_t constants; /* in the GPU's memory */
} tenon_aot_cuda;
#undef TENON_AOT_CUDA_MEMBER

typedef struct tenon_aot_cuda_function {
  const char* name;
  const tenon_aot_array* arguments;
  const tenon_aot_array* results;
  int32_t argument_count;
  int32_t result_count;
  uint64_t arena_bytes;
  /* 1: it has loops or branches, and a call waits for the values that decide them; 0: a call only
     puts work on the stream, which may be capturing a graph. */
  int32_t waits;
  int32_t reserved;
  /* gpu: a loaded NAME_gpu; arrays: the arguments, then the results. */
  int32_t (*run)(const void* gpu, void* const* arrays, void* arena, struct CUstream_st* stream);
} tenon_aot_cuda_function;

typedef struct tenon_aot_cuda_model {
  uint32_t abi;       /* TENON_AOT_ABI */
  uint32_t alignment; /* of arrays and arenas */
  const char* name;
  const char* version; /* of Tenon */
  const char* hash;    /* of the program, the target and the compiler's version */
  const char* target;  /* triple and processor */
  uint64_t weights_bytes;
  const char* weights_hash; /* tenon_aot_hash of the file, in hexadecimal digits */
  const tenon_aot_cuda_function* functions;
  int32_t function_count;
  int32_t reserved;
  uint64_t gpu_bytes; /* of NAME_gpu */
  /* weights: the bytes of the file, which are copied; not read where weights_bytes is 0. */
  int32_t (*load)(void* gpu, const void* weights);
  int32_t (*unload)(void* gpu);
} tenon_aot_cuda_model;

/* The name of a CUresult that may be expected. */
static inline const char* tenon_aot_cuda_error_name(int32_t error) {
  static const struct {
    int32_t error;
    const char* name;
  } names[] = {
      {0, "CUDA_SUCCESS"},
      {1, "CUDA_ERROR_INVALID_VALUE"},
      {2, "CUDA_ERROR_OUT_OF_MEMORY"},
      {3, "CUDA_ERROR_NOT_INITIALIZED"},
      {4, "CUDA_ERROR_DEINITIALIZED"},
      {100, "CUDA_ERROR_NO_DEVICE"},
      {200, "CUDA_ERROR_INVALID_IMAGE"},
      {201, "CUDA_ERROR_INVALID_CONTEXT"},
      {209, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
      {218, "CUDA_ERROR_INVALID_PTX"},
      {221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND"},
      {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
      {302, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND"},
      {303, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED"},
      {400, "CUDA_ERROR_INVALID_HANDLE"},
      {500, "CUDA_ERROR_NOT_FOUND"},
      {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
      {702, "CUDA_ERROR_LAUNCH_TIMEOUT"},
      {716, "CUDA_ERROR_MISALIGNED_ADDRESS"},
      {719, "CUDA_ERROR_LAUNCH_FAILED"},
      {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"},
      {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
      {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
  };
  for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
    if (names[i].error == error) return names[i].name;
  }
  return "an error that cuda.h names";
}

#ifdef __cplusplus
}
#endif
#endif
