/* Runs a function of a model for a GPU by its descriptor: FUNCTION ARGUMENTS RESULTS [TIMES]. Reads
 * the arguments from a file, one after the other, and writes the results to another. Compiled with
 * MODEL, the name of the descriptor, HEADER, and for a model with weights in a file WEIGHTS, its
 * path. With DONATE results have the memory of the arguments that they may share it with. An error
 * of the driver is printed, and 20 is the status. TIMES: how often it is called once more, by calls
 * and as a captured graph, whose medians are printed in microseconds. The graph's results are
 * compared with the first call's. Other statuses: 8, bytes beyond the arena or a result were
 * written; 11, an argument changed; 12, the graph has other results; 13, too many arrays. */
#define _POSIX_C_SOURCE 200809L
#include HEADER

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "harness_weights.h"
#include "tenon_aot_device.h"

#define SPARE 256
#define MOST_ARRAYS 64

static void* bytes_of(size_t bytes) {
  void* const memory = malloc(bytes + SPARE);
  if (memory == NULL) exit(3);
  memset(memory, 0xa5, bytes + SPARE);
  return memory;
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

/* The arrays on the host: arguments as they were given, results of the first call. */
typedef struct host_arrays {
  const tenon_aot_cuda_function* function;
  unsigned char* bytes[MOST_ARRAYS];
} host_arrays;

static const tenon_aot_array* array_of(const tenon_aot_cuda_function* function, int32_t number) {
  return number < function->argument_count ? &function->arguments[number]
                                           : &function->results[number - function->argument_count];
}

static int is_donated(const tenon_aot_cuda_function* function, int32_t number) {
#ifdef DONATE
  return array_of(function, number)->shared >= 0;
#else
  (void)function;
  (void)number;
  return 0;
#endif
}

/* Reads an array with what follows it, which must not have changed. */
static unsigned char* read_array(tenon_aot_device* device, const void* memory, size_t bytes) {
  unsigned char* const data = bytes_of(bytes);
  tenon_aot_device_read(device, data, memory, bytes + SPARE);
  check("array", device->error);
  for (int i = 0; i < SPARE; ++i) {
    if (data[bytes + (size_t)i] != 0xa5) _Exit(8);
  }
  return data;
}

/* Ends the program with a status if an array is not that of the host. */
static void expect_same(tenon_aot_device* device, const host_arrays* host, void* const* arrays,
                        int32_t number, int status) {
  const size_t bytes = array_of(host->function, number)->bytes;
  unsigned char* const data = read_array(device, arrays[number], bytes);
  if (memcmp(data, host->bytes[number], bytes) != 0) _Exit(status);
  free(data);
}

/* The arguments as they were given; results of no value. */
static void reset_arrays(tenon_aot_device* device, const host_arrays* host, void* const* arrays) {
  const tenon_aot_cuda_function* const function = host->function;
  for (int32_t i = 0; i < function->argument_count + function->result_count; ++i) {
    const int is_result = i >= function->argument_count;
    if (is_result && is_donated(function, i)) continue;
    const size_t bytes = array_of(function, i)->bytes;
    unsigned char* const filled = bytes_of(bytes);
    if (!is_result) memcpy(filled, host->bytes[i], bytes);
    check("reset", device->upload((uint64_t)(uintptr_t)arrays[i], filled, bytes + SPARE));
    free(filled);
  }
}

typedef struct timing {
  tenon_aot_device* device;
  const host_arrays* host;
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
  reset_arrays(t->device, t->host, t->arrays);
  check("launch", launch(executable, t->stream));
  check("synchronize", t->synchronize(t->stream));
  for (int32_t i = 0; i < t->function->result_count; ++i) {
    expect_same(t->device, t->host, t->arrays, t->function->argument_count + i, 12);
  }
  for (int i = 0; i < t->count; ++i) {
    const double begin = now();
    check("launch", launch(executable, t->stream));
    check("synchronize", t->synchronize(t->stream));
    t->times[i] = now() - begin;
  }
  qsort(t->times, (size_t)t->count, sizeof *t->times, compare);
  printf("graph %.2f least %.2f\n", t->times[t->count / 2], t->times[0]);
}

static void time_all(tenon_aot_device* device, const host_arrays* host, const void* gpu,
                     void** arrays, void* arena, int count) {
  timing t = {device, host, host->function, gpu, arrays, arena, count, NULL, NULL, NULL};
  int32_t (*create)(struct CUstream_st**, unsigned);
  tenon_aot_device_find(device, "cuStreamCreate", &create);
  tenon_aot_device_find(device, "cuStreamSynchronize", &t.synchronize);
  check("streams", device->error);
  check("stream", create(&t.stream, 1)); /* CU_STREAM_NON_BLOCKING */
  t.times = malloc((size_t)count * sizeof *t.times);
  if (t.times == NULL) exit(3);
  time_calls(&t);
  if (t.function->waits == 0) time_graph(&t);
  free(t.times);
}

int main(int argc, char** argv) {
  if (argc < 4 || MODEL.abi != TENON_AOT_ABI || MODEL.alignment != 64) return 2;
  const tenon_aot_cuda_function* function = NULL;
  for (int32_t i = 0; i < MODEL.function_count; ++i) {
    if (strcmp(MODEL.functions[i].name, argv[1]) == 0) function = &MODEL.functions[i];
  }
  if (function == NULL) return 2;
  if (function->argument_count + function->result_count > MOST_ARRAYS) return 13;
  tenon_aot_device device;
  tenon_aot_device_open(&device);
  check("open", device.error);
  void* const gpu = bytes_of(MODEL.gpu_bytes);
  void* const weights = weights_of(bytes_of);
  check("load", MODEL.load(gpu, weights));
  free(weights);
  void* arrays[MOST_ARRAYS];
  host_arrays host = {function, {NULL}};
  FILE* const in = fopen(argv[2], "rb");
  if (in == NULL) return 6;
  for (int32_t i = 0; i < function->argument_count; ++i) {
    const size_t bytes = function->arguments[i].bytes;
    unsigned char* const data = host.bytes[i] = bytes_of(bytes);
    if (bytes > 0 && fread(data, 1, bytes, in) != bytes) return 6;
    arrays[i] = tenon_aot_device_new(&device, data, bytes + SPARE);
  }
  fclose(in);
  for (int32_t i = 0; i < function->result_count; ++i) {
    void* const data = bytes_of(function->results[i].bytes);
    void* memory = tenon_aot_device_new(&device, data, function->results[i].bytes + SPARE);
#ifdef DONATE
    if (function->results[i].shared >= 0) memory = arrays[function->results[i].shared];
#endif
    free(data);
    arrays[function->argument_count + i] = memory;
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
    const int32_t number = function->argument_count + i;
    host.bytes[number] = read_array(&device, arrays[number], bytes);
    if (bytes > 0 && fwrite(host.bytes[number], 1, bytes, out) != bytes) return 9;
  }
  if (fclose(out) != 0) return 10;
  for (int32_t i = 0; i < function->argument_count; ++i) {
    if (!is_donated(function, i)) expect_same(&device, &host, arrays, i, 11);
  }
  if (argc > 4) time_all(&device, &host, gpu, arrays, arena, atoi(argv[4]));
  check("unload", MODEL.unload(gpu));
  free(gpu);
  for (int i = 0; i < MOST_ARRAYS; ++i) free(host.bytes[i]);
  tenon_aot_device_close(&device);
  return 0;
}
