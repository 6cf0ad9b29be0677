/* tests/aot/: tests of `tenon aot`: models that are compiled, linked and run. */
/* Runs a function of a model by its descriptor: FUNCTION ARGUMENTS RESULTS. Reads the arguments from
 * a file, one after the other, and writes the results to another. Compiled with MODEL, the name of
 * the descriptor, HEADER, and for a model with weights in a file WEIGHTS, its path. */
#define _POSIX_C_SOURCE 200809L
#include HEADER

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness_weights.h"

static void* block(size_t bytes) {
  const size_t alignment = MODEL.alignment;
  void* const memory = aligned_alloc(alignment, (bytes / alignment + 1) * alignment);
  if (memory == NULL) exit(3);
  memset(memory, 0xa5, (bytes / alignment + 1) * alignment);
  return memory;
}

int main(int argc, char** argv) {
  if (argc != 4 || MODEL.abi != TENON_AOT_ABI) return 2;
  const tenon_aot_function* function = NULL;
  for (int32_t i = 0; i < MODEL.function_count; ++i) {
    if (strcmp(MODEL.functions[i].name, argv[1]) == 0) function = &MODEL.functions[i];
  }
  if (function == NULL) return 2;
  void* arrays[64];
  FILE* const in = fopen(argv[2], "rb");
  int32_t next = 0;
  for (int32_t i = 0; i < function->argument_count; ++i) {
    const size_t bytes = function->arguments[i].bytes;
    arrays[next] = block(bytes);
    if (bytes > 0 && fread(arrays[next], 1, bytes, in) != bytes) return 6;
    ++next;
  }
  fclose(in);
  for (int32_t i = 0; i < function->result_count; ++i) arrays[next++] = block(function->results[i].bytes);
  tenon_aot_context context = {0};
  context.weights = weights_of(block);
  void* const arena = block(function->arena_bytes);
  unsigned char* const end = (unsigned char*)arena + function->arena_bytes;
  const int32_t error = function->run(arrays, arena, &context);
  if (error != 0) return 7;
  for (size_t i = 0; i < 64 - function->arena_bytes % 64; ++i) {
    if (end[i] != 0xa5) return 8; /* written beyond the arena */
  }
  FILE* const out = fopen(argv[3], "wb");
  for (int32_t i = 0; i < function->result_count; ++i) {
    const size_t bytes = function->results[i].bytes;
    const void* const array = arrays[function->argument_count + i];
    if (bytes > 0 && fwrite(array, 1, bytes, out) != bytes) return 9;
  }
  return fclose(out) == 0 ? 0 : 10;
}
