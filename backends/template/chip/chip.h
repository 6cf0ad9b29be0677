/* backends/template/chip/: the simulated chip that the template drives, a process of its own. */
/* The chip as its host sees it: layouts and numbers, no functions.
 *
 * A made-up accelerator that behaves like a real one: a separate process, with memory that the
 * host cannot access, a ring of commands that it runs in order, a window through which bytes are
 * copied, and code that it loads and runs natively. It has no f64 and does not depend on Tenon.
 *
 * The host starts it with two file descriptors: CHIP_REGISTERS_FD, shared memory that holds
 * ChipRegisters, and CHIP_LINE_FD, a socket. A byte to the chip is the doorbell: there are new
 * commands. A byte from it is the interrupt: some are done. When either end closes, the chip is
 * gone.
 *
 *   chip --memory=BYTES
 */
#ifndef TENON_CHIP_H_
#define TENON_CHIP_H_

#include <stdint.h>

#define CHIP_REGISTERS_FD 3
#define CHIP_LINE_FD 4
#define CHIP_VERSION 1
#define CHIP_SLOTS 64
#define CHIP_ARGUMENTS 112
#define CHIP_TEXT_BYTES 96
#define CHIP_WINDOW_BYTES (1 << 20)
#define CHIP_ALIGNMENT 64

typedef enum ChipOpcode {
  CHIP_ALLOCATE = 1, /* bytes -> result: an address */
  CHIP_FREE = 2,     /* address */
  CHIP_WRITE = 3,    /* window[0, bytes) to address */
  CHIP_READ = 4,     /* address to window[0, bytes) */
  CHIP_COPY = 5,     /* other to address, bytes */
  CHIP_LOAD = 6,     /* code at address, bytes -> result: a module */
  CHIP_UNLOAD = 7,   /* other: a module */
  CHIP_LAUNCH = 8,   /* other: a module, kernel, arguments: addresses, then scalars */
  CHIP_FENCE = 9     /* Its status is the first one other than CHIP_OK of the launches and copies
                      * since the last fence, whose own statuses are not awaited. */
} ChipOpcode;

typedef enum ChipStatus {
  CHIP_OK = 0,
  CHIP_NO_MEMORY = 1,
  CHIP_BAD_ADDRESS = 2,
  CHIP_BAD_CODE = 3,
  CHIP_BAD_COMMAND = 4
} ChipStatus;

typedef struct ChipCommand {
  uint32_t opcode;
  uint32_t kernel;
  uint32_t address_count; /* Addresses among the arguments. */
  uint32_t scalar_count;
  uint64_t address;
  uint64_t other;
  uint64_t bytes;
  uint64_t arguments[CHIP_ARGUMENTS];
  /* Written by the chip. */
  uint64_t result;
  uint32_t status;
  char text[CHIP_TEXT_BYTES]; /* The message if `status` is not CHIP_OK. */
} ChipCommand;

/* Command n, counted from 0, is in ring[n % CHIP_SLOTS]. Both counters only grow, by one 64-bit
 * store each. */
typedef struct ChipRegisters {
  uint64_t version; /* Written by the chip when it is ready. */
  uint64_t given;   /* Written by the host: commands in the ring so far. */
  uint64_t done;    /* Written by the chip: commands done so far. */
  ChipCommand ring[CHIP_SLOTS];
  unsigned char window[CHIP_WINDOW_BYTES];
} ChipRegisters;

/* Code is an ELF shared object that exports this table; buffers are pointers into the chip's
 * memory. void (*const kernel_table[])(void* const* buffers, const uint64_t* scalars); */
#define CHIP_KERNEL_TABLE "kernel_table"

#endif /* TENON_CHIP_H_ */
