/* samples/aot/lstm/: a recurrent network as a small executable. */
/* Feeds a sine to the network that `tenon aot` compiled, and prints its last output and the time of a call. */
#include "lstm.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

int main(void) {
  enum { kCalls = 2000 };
  static _Alignas(LSTM_ALIGNMENT) float sequence[LSTM_MAIN_X0_COUNT];
  static _Alignas(LSTM_ALIGNMENT) float output[LSTM_MAIN_Y0_COUNT];
  static _Alignas(LSTM_ALIGNMENT) unsigned char arena[LSTM_MAIN_ARENA_BYTES];
  for (int i = 0; i < LSTM_MAIN_X0_COUNT; ++i) sequence[i] = sinf(0.1f * (float)i);
  const clock_t start = clock();
  for (int call = 0; call < kCalls; ++call) lstm_main(sequence, output, arena);
  const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
  for (int i = 0; i < 4; ++i) printf("%.6f ", (double)output[i]);
  printf("… of %d\n%.1f us a call\n", (int)LSTM_MAIN_Y0_COUNT, seconds / kCalls * 1e6);
  return 0;
}
