/* Files of weights, for the harnesses of models. */
#ifndef TENON_AOT_TEST_WEIGHTS_H
#define TENON_AOT_TEST_WEIGHTS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The file WEIGHTS, if the model has one, in memory of `allocate`. The program ends if it has not
 * the model's hash. */
static void* weights_of(void* (*allocate)(size_t bytes)) {
#ifdef WEIGHTS
  void* const weights = allocate(MODEL.weights_bytes);
  FILE* const file = fopen(WEIGHTS, "rb");
  if (file == NULL || fread(weights, 1, MODEL.weights_bytes, file) != MODEL.weights_bytes) exit(4);
  fclose(file);
  char hash[17];
  snprintf(hash, sizeof hash, "%016llx",
           (unsigned long long)tenon_aot_hash(weights, MODEL.weights_bytes));
  if (strcmp(hash, MODEL.weights_hash) != 0) exit(5);
  return weights;
#else
  (void)allocate;
  return NULL;
#endif
}

#endif
