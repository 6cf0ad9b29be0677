/* The console of a machine with an operating system. */
#include <stdio.h>

void print(const char* text);
void print(const char* text) { fputs(text, stdout); }
