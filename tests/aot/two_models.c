/* Two models in a program: two threads call both on streams of their own, by NAME_main and by
 * NAME_main_run. */
#include <pthread.h>
#include <stdio.h>

#include "one.h"
#include "tenon_aot_device.h"
#include "two.h"

#define COUNT ONE_MAIN_X0_COUNT
#define CALLS 20

typedef struct job {
  tenon_aot_device* device;
  const one_gpu* one;
  const two_gpu* two;
  int number;
  int32_t error;
  int wrong;
} job;

static void* work(void* data) {
  job* const it = data;
  tenon_aot_device device = *it->device;
  int32_t (*set)(void*);
  int32_t (*create)(struct CUstream_st**, unsigned);
  int32_t (*synchronize)(struct CUstream_st*);
  struct CUstream_st* stream = NULL;
  float x[COUNT];
  float sums[COUNT];
  float products[COUNT];
  tenon_aot_device_find(&device, "cuCtxSetCurrent", &set);
  tenon_aot_device_find(&device, "cuStreamCreate", &create);
  tenon_aot_device_find(&device, "cuStreamSynchronize", &synchronize);
  if (device.error == 0) device.error = set(device.context);
  if (device.error == 0) device.error = create(&stream, 1);
  for (int i = 0; i < COUNT; ++i) x[i] = (float)(i % 100 + it->number);
  float* const given = tenon_aot_device_new(&device, x, sizeof x);
  float* const sum = tenon_aot_device_new(&device, NULL, sizeof sums);
  float* const product = tenon_aot_device_new(&device, NULL, sizeof products);
  void* const arena = tenon_aot_device_new(
      &device, NULL, (size_t)ONE_MAIN_ARENA_BYTES + (size_t)TWO_MAIN_ARENA_BYTES);
  for (int i = 0; i < CALLS && device.error == 0; ++i) {
    if (i % 2 == it->number) {
      device.error = one_main(it->one, given, sum, arena, stream);
      if (device.error == 0) device.error = two_main(it->two, given, product, arena, stream);
    } else {
      device.error = one_main_run(it->one, (void*[]){given, sum}, arena, stream);
      if (device.error == 0) {
        device.error = two_main_run(it->two, (void*[]){given, product}, arena, stream);
      }
    }
  }
  if (device.error == 0) device.error = synchronize(stream);
  tenon_aot_device_read(&device, sums, sum, sizeof sums);
  tenon_aot_device_read(&device, products, product, sizeof products);
  for (int i = 0; i < COUNT; ++i) {
    it->wrong += sums[i] != x[i] + (float)i || products[i] != x[i] * (float)i;
  }
  it->error = device.error;
  return NULL;
}

int main(void) {
  static one_gpu one;
  static two_gpu two;
  tenon_aot_device device;
  tenon_aot_device_open(&device);
  int32_t error = device.error;
  if (error == 0) error = one_load(&one);
  if (error == 0) error = two_load(&two);
  if (error != 0) {
    fprintf(stderr, "load: %s\n", tenon_aot_cuda_error_name(error));
    return 1;
  }
  job jobs[2];
  pthread_t threads[2];
  int failed = 0;
  for (int i = 0; i < 2; ++i) {
    jobs[i] = (job){&device, &one, &two, i, 0, 0};
    if (pthread_create(&threads[i], NULL, work, &jobs[i]) != 0) return 2;
  }
  for (int i = 0; i < 2; ++i) {
    pthread_join(threads[i], NULL);
    failed += jobs[i].error != 0 || jobs[i].wrong != 0;
    if (jobs[i].error != 0) fprintf(stderr, "%s\n", tenon_aot_cuda_error_name(jobs[i].error));
    if (jobs[i].wrong != 0) fprintf(stderr, "%d other numbers\n", jobs[i].wrong);
  }
  failed += one_unload(&one) != 0;
  failed += two_unload(&two) != 0;
  tenon_aot_device_close(&device);
  return failed != 0;
}
