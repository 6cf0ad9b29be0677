/* Runs a function of a model for a GPU by its descriptor: FUNCTION ARGUMENTS RESULTS [TIMES]. Reads
 * the arguments from a file, one after the other, and writes the results to another. Compiled with
 * MODEL, the name of the descriptor, HEADER, and for a model with weights in a file WEIGHTS, its
 * path. With DONATE results have the memory of the arguments that they may share it with. An error
 * of the driver is printed, and 20 is the status. TIMES: how often it is called once more, by calls
 * and as a captured graph, whose medians are printed in microseconds. */
#define _POSIX_C_SOURCE 200809L
#include HEADER

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tenon_aot_device.h"

#define SPARE 256

static void* bytes_of(size_t bytes) {
  void* const memory = malloc(bytes + SPARE);
  if (memory == NULL) exit(3);
  memset(memory, 0xa5, bytes + SPARE);
  return memory;
}

static void* weights_of(void) {
#ifdef WEIGHTS
  void* const weights = bytes_of(MODEL.weights_bytes);
  FILE* const file = fopen(WEIGHTS, "rb");
  if (file == NULL || fread(weights, 1, MODEL.weights_bytes, file) != MODEL.weights_bytes) exit(4);
  fclose(file);
  char hash[17];
  snprintf(hash, sizeof hash, "%016llx",
           (unsigned long long)tenon_aot_hash(weights, MODEL.weights_bytes));
  if (strcmp(hash, MODEL.weights_hash) != 0) exit(5);
  return weights;
#else
  return NULL;
#endif
}

static void check(const char* what, int32_t error) {
  if (error == 0) return;
  fprintf(stderr, "%s: %d %s\n", what, (int)error, tenon_aot_cuda_error_name(error));
  fflush(stderr);
  _Exit(20); /* The simulated GPU may be at work, and needs what exit() ends. */
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return x < y ? -1 : x > y;
}

typedef struct timing {
  tenon_aot_device* device;
  const tenon_aot_cuda_function* function;
  const void* gpu;
  void** arrays;
  void* arena;
  int count;
  double* times;
  struct CUstream_st* stream;
  int32_t (*synchronize)(struct CUstream_st*);
} timing;

/* Each call with the wait for its end. */
static void time_calls(timing* t) {
  for (int i = 0; i < t->count; ++i) {
    const double begin = now();
    check("run", t->function->run(t->gpu, t->arrays, t->arena, t->stream));
    check("synchronize", t->synchronize(t->stream));
    t->times[i] = now() - begin;
  }
  qsort(t->times, (size_t)t->count, sizeof *t->times, compare);
  printf("call %.2f least %.2f\n", t->times[t->count / 2], t->times[0]);
}

static void time_graph(timing* t) {
  int32_t (*begin_capture)(struct CUstream_st*, int32_t);
  int32_t (*end_capture)(struct CUstream_st*, void**);
  int32_t (*instantiate)(void**, void*, unsigned long long);
  int32_t (*launch)(void*, struct CUstream_st*);
  void* graph = NULL;
  void* executable = NULL;
  tenon_aot_device_find(t->device, "cuStreamBeginCapture_v2", &begin_capture);
  tenon_aot_device_find(t->device, "cuStreamEndCapture", &end_capture);
  tenon_aot_device_find(t->device, "cuGraphInstantiateWithFlags", &instantiate);
  tenon_aot_device_find(t->device, "cuGraphLaunch", &launch);
  check("graphs", t->device->error);
  check("capture", begin_capture(t->stream, 2)); /* CU_STREAM_CAPTURE_MODE_RELAXED */
  check("captured run", t->function->run(t->gpu, t->arrays, t->arena, t->stream));
  check("end of the capture", end_capture(t->stream, &graph));
  check("instantiate", instantiate(&executable, graph, 0));
  for (int i = 0; i < t->count; ++i) {
    const double begin = now();
    check("launch", launch(executable, t->stream));
    check("synchronize", t->synchronize(t->stream));
    t->times[i] = now() - begin;
  }
  qsort(t->times, (size_t)t->count, sizeof *t->times, compare);
  printf("graph %.2f least %.2f\n", t->times[t->count / 2], t->times[0]);
}

static void time_all(tenon_aot_device* device, const tenon_aot_cuda_function* function,
                     const void* gpu, void** arrays, void* arena, int count) {
  timing t = {device, function, gpu, arrays, arena, count, NULL, NULL, NULL};
  int32_t (*create)(struct CUstream_st**, unsigned);
  tenon_aot_device_find(device, "cuStreamCreate", &create);
  tenon_aot_device_find(device, "cuStreamSynchronize", &t.synchronize);
  check("streams", device->error);
  check("stream", create(&t.stream, 1)); /* CU_STREAM_NON_BLOCKING */
  t.times = malloc((size_t)count * sizeof *t.times);
  if (t.times == NULL) exit(3);
  time_calls(&t);
  if (function->waits == 0) time_graph(&t);
  free(t.times);
}

int main(int argc, char** argv) {
  if (argc < 4 || MODEL.abi != TENON_AOT_ABI || MODEL.alignment != 64) return 2;
  const tenon_aot_cuda_function* function = NULL;
  for (int32_t i = 0; i < MODEL.function_count; ++i) {
    if (strcmp(MODEL.functions[i].name, argv[1]) == 0) function = &MODEL.functions[i];
  }
  if (function == NULL) return 2;
  tenon_aot_device device;
  tenon_aot_device_open(&device);
  check("open", device.error);
  void* const gpu = bytes_of(MODEL.gpu_bytes);
  void* const weights = weights_of();
  check("load", MODEL.load(gpu, weights));
  free(weights);
  void* arrays[64];
  FILE* const in = fopen(argv[2], "rb");
  int32_t next = 0;
  for (int32_t i = 0; i < function->argument_count; ++i) {
    const size_t bytes = function->arguments[i].bytes;
    void* const data = bytes_of(bytes);
    if (bytes > 0 && fread(data, 1, bytes, in) != bytes) return 6;
    arrays[next++] = tenon_aot_device_new(&device, data, bytes);
    free(data);
  }
  fclose(in);
  for (int32_t i = 0; i < function->result_count; ++i) {
    void* const data = bytes_of(function->results[i].bytes);
    void* memory = tenon_aot_device_new(&device, data, function->results[i].bytes + SPARE);
#ifdef DONATE
    if (function->results[i].shared >= 0) memory = arrays[function->results[i].shared];
#endif
    free(data);
    arrays[next++] = memory;
  }
  void* const filled = bytes_of(function->arena_bytes);
  void* const arena = tenon_aot_device_new(&device, filled, function->arena_bytes + SPARE);
  check("memory", device.error);
  check("run", function->run(gpu, arrays, arena, NULL));
  unsigned char end[SPARE];
  tenon_aot_device_read(&device, end, (unsigned char*)arena + function->arena_bytes, SPARE);
  check("arena", device.error);
  for (int i = 0; i < SPARE; ++i) {
    if (end[i] != 0xa5) return 8; /* written beyond the arena */
  }
  free(filled);
  FILE* const out = fopen(argv[3], "wb");
  for (int32_t i = 0; i < function->result_count; ++i) {
    const size_t bytes = function->results[i].bytes;
    void* const data = bytes_of(bytes);
    tenon_aot_device_read(&device, data, arrays[function->argument_count + i], bytes);
    check("result", device.error);
    if (bytes > 0 && fwrite(data, 1, bytes, out) != bytes) return 9;
    free(data);
  }
  if (fclose(out) != 0) return 10;
  if (argc > 4) time_all(&device, function, gpu, arrays, arena, atoi(argv[4]));
  check("unload", MODEL.unload(gpu));
  free(gpu);
  tenon_aot_device_close(&device);
  return 0;
}
