/* The types that the models of `tenon aot` share: those of their descriptors.
 *
 * A model NAME has for each function F of its program
 *
 *   NAME_F       the function: one pointer for each argument and result, then the arena
 *   NAME_F_run   the same, with the pointers in an array: for callers that find out at run time
 *
 * and NAME_model, the descriptor. Functions allocate nothing, keep no state, and may be called from
 * several threads at once, each with an arena of its own.
 */
#ifndef TENON_AOT_H
#define TENON_AOT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of these types: the member `abi` of a model. */
#define TENON_AOT_ABI 1

/* Calls task(data, i, worker) for each i from 0 to count - 1, in any order and on any threads, and
 * returns when all have returned. `worker` is a number below the model's `threads`; two calls that
 * run at the same time have different ones. `pool` is that of the context. */
typedef void (*tenon_aot_parallel_for)(void* pool, int64_t count,
                                       void (*task)(void* data, int64_t i, int64_t worker),
                                       void* data);

/* The inputs of a function beside its arrays and its arena. Members that a model does not need are
 * not read: weights are needed where weights_bytes is not 0, calls where call_count is not 0. */
typedef struct tenon_aot_context {
  const void* weights; /* the file of weights, at an address that is a multiple of `alignment` */
  const void* calls;   /* NAME_calls: the functions of custom calls */
  void* user;          /* is passed to them */
  tenon_aot_parallel_for parallel_for; /* NULL: the caller's thread does all work */
  void* pool;                          /* is passed to it */
} tenon_aot_context;

/* A custom call, with the arrays of its operands and results: 0, or an error, which the function
 * that made the call returns. */
typedef int (*tenon_aot_call)(void* user, const void* const* operands, void* const* results);

/* An argument or result: dense, the last dimension is the fastest. */
typedef struct tenon_aot_array {
  const char* name;
  const char* type; /* "f32", "bf16", "s8", "pred", "c64" … */
  const int64_t* dims;
  uint64_t bytes;
  int32_t rank;
  int32_t shared; /* the number of the result (of a result: the argument) that may have the same
                     memory; -1: none */
} tenon_aot_array;

typedef struct tenon_aot_function {
  const char* name;
  const tenon_aot_array* arguments;
  const tenon_aot_array* results;
  int32_t argument_count;
  int32_t result_count;
  uint64_t arena_bytes;
  /* arrays: the arguments, then the results. 0, or the error of a custom call. */
  int32_t (*run)(void* const* arrays, void* arena, const tenon_aot_context* context);
} tenon_aot_function;

typedef struct tenon_aot_model {
  uint32_t abi;
  uint32_t alignment; /* of arenas and weights */
  const char* name;
  const char* version; /* of Tenon */
  const char* hash;    /* of the program, the target and the compiler's version */
  const char* target;  /* triple and processor */
  uint64_t weights_bytes;
  const char* weights_hash; /* tenon_aot_hash of the file, in hexadecimal digits */
  const tenon_aot_function* functions;
  const char* const* calls; /* the targets of custom calls, in the order of NAME_calls */
  int32_t function_count;
  int32_t call_count;
  int32_t threads; /* the most workers of parallel_for; 0: it is not called */
  int32_t reserved;
} tenon_aot_model;

/* FNV-1a of 64 bits: that of a file of weights is the model's weights_hash. */
static inline uint64_t tenon_aot_hash(const void* bytes, size_t count) {
  const unsigned char* const at = (const unsigned char*)bytes;
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < count; ++i) hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
  return hash;
}

#ifdef __cplusplus
}
#endif
#endif
