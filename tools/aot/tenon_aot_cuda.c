/* Loads and runs a model of `tenon aot` on an NVIDIA GPU: NAME.c includes this file and has the
 * tables. */
#include "tenon_aot_cuda.h"

#include <string.h>

#ifndef TENON_AOT_LINK_CUDA
#include <dlfcn.h>
#endif

#define TENON_AOT_CUDA_OUT_OF_MEMORY 2
#define TENON_AOT_CUDA_NO_SYMBOL 302
#define TENON_AOT_CUDA_NO_LIBRARY 303
#define TENON_AOT_CUDA_MOST_PARAMETERS 512

/* The bytes of a file, and a 0 behind them, which the text of PTX ends with. A file of another size
 * is another model's. */
#define TENON_AOT_BLOB(symbol, file, bytes)                                                     \
  __asm__(".pushsection .rodata." #symbol ",\"a\",%progbits\n.balign 64\n.globl " #symbol       \
          "\n.hidden " #symbol "\n" #symbol ":\n.incbin \"" file "\"\n.if . - " #symbol        \
          " - " #bytes "\n.error \"" file " has not " #bytes " bytes\"\n.endif\n.byte 0\n"      \
          ".popsection\n");                                                                     \
  extern const unsigned char symbol[] __attribute__((visibility("hidden")));

typedef struct tenon_aot_kernel {
  const char* symbol;
  uint32_t x, y; /* the grid */
  uint32_t threads;
  uint32_t scalars;
} tenon_aot_kernel;

/* An address: an array by its number; then the constants, the arena, and no memory at all. */
typedef struct tenon_aot_place {
  uint64_t offset;
  uint32_t memory;
} tenon_aot_place;

enum { TENON_AOT_LAUNCH, TENON_AOT_COPY, TENON_AOT_LOOP, TENON_AOT_CHOICE, TENON_AOT_PRED_CHOICE };

/* LAUNCH: kernel a with `count` places from b on, and its scalars from c on.
 * COPY: the same, left out where both places are one: of an argument and the result that shares its
 * memory.
 * LOOP: sequence a; while that leaves an odd byte at place c, sequences b and a.
 * CHOICE: one of the `count` sequences that the list has from b on, by the s32 at place a; a pred,
 * one byte, chooses the first if it is true. */
typedef struct tenon_aot_step {
  uint32_t kind, a, b, c, count;
} tenon_aot_step;

/* The lists of a function. A sequence is the steps from sequences[i] to sequences[i + 1]. */
typedef struct tenon_aot_tables {
  const tenon_aot_kernel* kernels;
  const tenon_aot_step* steps;
  const uint32_t* sequences;
  const tenon_aot_place* places;
  const uint64_t* scalars;
  const uint32_t* branches;
  uint32_t arrays;
} tenon_aot_tables;

typedef struct tenon_aot_image_list {
  const void* images[2];
  uint32_t image_count;
  const tenon_aot_kernel* kernels;
  uint32_t kernel_count;
  const void* constants; /* The embedded ones; those of the file lie behind them. */
  uint64_t constant_bytes;
  uint64_t weights_bytes;
} tenon_aot_image_list;

typedef struct tenon_aot_work {
  const tenon_aot_cuda* gpu;
  void* const* functions;
  const tenon_aot_tables* tables;
  void* const* arrays;
  uint64_t arena;
  struct CUstream_st* stream;
} tenon_aot_work;

#ifdef TENON_AOT_LINK_CUDA
#define TENON_AOT_CUDA_DECLARE(member, symbol, parameters) extern int32_t symbol parameters;
TENON_AOT_CUDA_FUNCTIONS(TENON_AOT_CUDA_DECLARE)
static int32_t tenon_aot_open_driver(tenon_aot_cuda* gpu) {
#define TENON_AOT_CUDA_FIND(member, symbol, parameters) gpu->member = symbol;
  TENON_AOT_CUDA_FUNCTIONS(TENON_AOT_CUDA_FIND)
  return 0;
}
static void tenon_aot_close_driver(tenon_aot_cuda* gpu) { (void)gpu; }
#else
static int32_t tenon_aot_open_driver(tenon_aot_cuda* gpu) {
  gpu->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (gpu->library == NULL) return TENON_AOT_CUDA_NO_LIBRARY;
  void* found;
#define TENON_AOT_CUDA_FIND(member, symbol, parameters) \
  found = dlsym(gpu->library, #symbol);                 \
  if (found == NULL) return TENON_AOT_CUDA_NO_SYMBOL;   \
  memcpy(&gpu->member, &found, sizeof found);
  TENON_AOT_CUDA_FUNCTIONS(TENON_AOT_CUDA_FIND)
  return 0;
}
static void tenon_aot_close_driver(tenon_aot_cuda* gpu) {
  if (gpu->library != NULL) dlclose(gpu->library);
}
#endif

static int32_t tenon_aot_load_kernels(tenon_aot_cuda* gpu, void** functions,
                                      const tenon_aot_image_list* list) {
  int32_t error = 0;
  if (list->kernel_count == 0) return 0;
  /* A driver that does not know the machine code compiles the PTX. */
  for (uint32_t i = 0; i < list->image_count; ++i) {
    error = gpu->load_module(&gpu->module, list->images[i]);
    if (error == 0 || error == TENON_AOT_CUDA_OUT_OF_MEMORY) break;
  }
  if (error != 0) gpu->module = NULL;
  for (uint32_t i = 0; error == 0 && i < list->kernel_count; ++i) {
    error = gpu->function(&functions[i], gpu->module, list->kernels[i].symbol);
  }
  return error;
}

static int32_t tenon_aot_load_constants(tenon_aot_cuda* gpu, const tenon_aot_image_list* list,
                                        const void* weights) {
  const uint64_t bytes = list->constant_bytes + list->weights_bytes;
  if (bytes == 0) return 0;
  int32_t error = gpu->allocate(&gpu->constants, (size_t)bytes);
  if (error != 0) gpu->constants = 0;
  if (error == 0 && list->constant_bytes > 0) {
    error = gpu->copy_to_device(gpu->constants, list->constants, (size_t)list->constant_bytes);
  }
  if (error == 0 && list->weights_bytes > 0) {
    error = gpu->copy_to_device(gpu->constants + list->constant_bytes, weights,
                                (size_t)list->weights_bytes);
  }
  /* The last part of a copy may still be on its way, and other streams do not wait for it. */
  return error == 0 ? gpu->synchronize(NULL) : error;
}

static int32_t tenon_aot_cuda_unload(tenon_aot_cuda* gpu) {
  int32_t error = 0;
  if (gpu->constants != 0) error = gpu->free(gpu->constants);
  if (gpu->module != NULL) {
    const int32_t unloaded = gpu->unload_module(gpu->module);
    if (error == 0) error = unloaded;
  }
  tenon_aot_close_driver(gpu);
  memset(gpu, 0, sizeof *gpu);
  return error;
}

static int32_t tenon_aot_cuda_load(tenon_aot_cuda* gpu, void** functions,
                                   const tenon_aot_image_list* list, const void* weights) {
  memset(gpu, 0, sizeof *gpu);
  int32_t error = tenon_aot_open_driver(gpu);
  if (error == 0) error = tenon_aot_load_kernels(gpu, functions, list);
  if (error == 0) error = tenon_aot_load_constants(gpu, list, weights);
  if (error != 0) (void)tenon_aot_cuda_unload(gpu);
  return error;
}

static uint64_t tenon_aot_address(const tenon_aot_work* call, uint32_t number) {
  const tenon_aot_place* const place = &call->tables->places[number];
  const uint32_t arrays = call->tables->arrays;
  if (place->memory < arrays) {
    return (uint64_t)(uintptr_t)call->arrays[place->memory] + place->offset;
  }
  if (place->memory == arrays) return call->gpu->constants + place->offset;
  return place->memory == arrays + 1 ? call->arena + place->offset : 0;
}

static int32_t tenon_aot_launch(const tenon_aot_work* call, const tenon_aot_step* step) {
  if (step->kind == TENON_AOT_COPY &&
      tenon_aot_address(call, step->b) == tenon_aot_address(call, step->b + 1)) {
    return 0;
  }
  const tenon_aot_kernel* const kernel = &call->tables->kernels[step->a];
  uint64_t values[TENON_AOT_CUDA_MOST_PARAMETERS];
  void* parameters[TENON_AOT_CUDA_MOST_PARAMETERS];
  for (uint32_t i = 0; i < step->count + kernel->scalars; ++i) {
    values[i] = i < step->count ? tenon_aot_address(call, step->b + i)
                                : call->tables->scalars[step->c + i - step->count];
    parameters[i] = &values[i];
  }
  return call->gpu->launch(call->functions[step->a], kernel->x, kernel->y, 1, kernel->threads, 1, 1,
                           0, call->stream, parameters, NULL);
}

static int32_t tenon_aot_read(const tenon_aot_work* call, void* to, uint32_t place, size_t bytes) {
  const int32_t error = call->gpu->read(to, tenon_aot_address(call, place), bytes, call->stream);
  return error == 0 ? call->gpu->synchronize(call->stream) : error;
}

static int32_t tenon_aot_sequence(const tenon_aot_work* call, uint32_t number);

static int32_t tenon_aot_loop(const tenon_aot_work* call, const tenon_aot_step* step) {
  for (;;) {
    unsigned char go = 0;
    int32_t error = tenon_aot_sequence(call, step->a);
    if (error == 0) error = tenon_aot_read(call, &go, step->c, 1);
    if (error != 0 || (go & 1) == 0) return error;
    error = tenon_aot_sequence(call, step->b);
    if (error != 0) return error;
  }
}

static int32_t tenon_aot_choice(const tenon_aot_work* call, const tenon_aot_step* step) {
  int32_t index = 0;
  int32_t error;
  if (step->kind == TENON_AOT_PRED_CHOICE) {
    unsigned char first = 0;
    error = tenon_aot_read(call, &first, step->a, 1);
    index = first != 0 ? 0 : 1;
  } else {
    error = tenon_aot_read(call, &index, step->a, sizeof index);
  }
  if (error != 0) return error;
  const uint32_t last = step->count - 1;
  const uint32_t chosen = index < 0 || (uint32_t)index > last ? last : (uint32_t)index;
  return tenon_aot_sequence(call, call->tables->branches[step->b + chosen]);
}

static int32_t tenon_aot_sequence(const tenon_aot_work* call, uint32_t number) {
  const uint32_t* const bounds = &call->tables->sequences[number];
  int32_t error = 0;
  for (uint32_t i = bounds[0]; error == 0 && i < bounds[1]; ++i) {
    const tenon_aot_step* const step = &call->tables->steps[i];
    error = step->kind <= TENON_AOT_COPY   ? tenon_aot_launch(call, step)
            : step->kind == TENON_AOT_LOOP ? tenon_aot_loop(call, step)
                                           : tenon_aot_choice(call, step);
  }
  return error;
}
