/* samples/aot/digits/: a quantized classifier on a microcontroller. */
/* Classifies the images of images.h and prints how many are right. */
#include "digits.h"

#include "images.h"

/* Prints a text on the host's console: board.c, or host.c. */
void print(const char* text);

static void print_number(uint32_t number) {
  char digits[11];
  char* at = digits + sizeof digits - 1;
  *at = 0;
  do {
    *--at = (char)('0' + number % 10);
    number /= 10;
  } while (number > 0);
  print(at);
}

static int class_of(const float* scores) {
  int best = 0;
  for (int k = 1; k < DIGITS_MAIN_Y0_COUNT; ++k) {
    if (scores[k] > scores[best]) best = k;
  }
  return best;
}

int main(void) {
  static _Alignas(DIGITS_ALIGNMENT) float scores[DIGITS_MAIN_Y0_COUNT];
  static _Alignas(DIGITS_ALIGNMENT) unsigned char arena[DIGITS_MAIN_ARENA_BYTES + 1];
  uint32_t right = 0;
  for (int i = 0; i < kImages; ++i) {
    digits_main(images[i], scores, arena);
    right += class_of(scores) == labels[i];
  }
  print_number(right);
  print(" of ");
  print_number(kImages);
  print(" images are right\n");
  return right * 100 > kImages * 95 ? 0 : 1;
}
