/* Start, console and end of a program on an Arm Cortex-M board, by semihosting: the debugger, or QEMU, does what the program asks
 * for by a breakpoint (Semihosting for AArch32 and AArch64, Arm). There is no C library. */
#include <stddef.h>
#include <stdint.h>

int main(void);
void print(const char* text);
_Noreturn void start(void);

extern unsigned char stack_top[]; /* board.ld */

/* A Cortex-M core reads the stack and the start at its reset. */
__attribute__((section(".vectors"), used)) static const void* const vectors[2] = {stack_top, (const void*)start};

static uint32_t host(uint32_t operation, uintptr_t argument) {
  register uint32_t r0 __asm__("r0") = operation;
  register uintptr_t r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

void print(const char* text) { host(0x04, (uintptr_t)text); }

_Noreturn void start(void) {
  *(volatile uint32_t*)0xE000ED88 |= 0xFu << 20; /* The register CPACR: the floating-point unit is on. */
  __asm__ volatile("dsb\nisb");
  const uint32_t end[2] = {0x20026 /* the application ended */, (uint32_t)main()};
  host(0x20, (uintptr_t)end);
  for (;;) {}
}

/* Compilers call these without being asked. */
void* memcpy(void* to, const void* from, size_t count);
void* memset(void* to, int value, size_t count);
void* memcpy(void* to, const void* from, size_t count) {
  unsigned char* target = to;
  const unsigned char* source = from;
  while (count-- > 0) *target++ = *source++;
  return to;
}
void* memset(void* to, int value, size_t count) {
  unsigned char* target = to;
  while (count-- > 0) *target++ = (unsigned char)value;
  return to;
}
