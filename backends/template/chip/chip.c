/* The chip itself. See chip.h. */
#define _GNU_SOURCE
#include "chip.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST_MODULES 4096

typedef void (*KernelFunction)(void* const* buffers, const uint64_t* scalars);

/* Allocations, by address; the free memory lies between them. */
typedef struct Piece {
  uint64_t address, bytes;
  struct Piece* next;
} Piece;

static ChipRegisters* registers;
static unsigned char* memory;
static uint64_t memory_bytes;
static Piece* pieces;
static void* modules[MOST_MODULES];
static int files[MOST_MODULES]; /* The code's files, kept open so that no number is used twice. */
static uint32_t failed; /* Since the last fence. */
static char failed_text[CHIP_TEXT_BYTES];

static uint32_t fail(ChipCommand* command, uint32_t status, const char* text) {
  snprintf(command->text, sizeof command->text, "%s", text);
  return status;
}

static int in_memory(uint64_t address, uint64_t bytes) {
  return bytes <= memory_bytes && address <= memory_bytes - bytes;
}

static uint32_t allocate(ChipCommand* c) {
  const uint64_t unit = CHIP_ALIGNMENT;
  if (c->bytes > memory_bytes) return fail(c, CHIP_NO_MEMORY, "larger than the chip's memory");
  const uint64_t bytes = (c->bytes + unit - 1) / unit * unit;
  uint64_t at = unit; /* Address 0 is never used. */
  Piece** link = &pieces;
  for (; *link != NULL; link = &(*link)->next) {
    if ((*link)->address - at >= bytes) break;
    at = (*link)->address + (*link)->bytes;
  }
  if (*link == NULL && !in_memory(at, bytes)) {
    return fail(c, CHIP_NO_MEMORY, "the chip's memory is full");
  }
  Piece* piece = malloc(sizeof *piece);
  if (piece == NULL) return fail(c, CHIP_NO_MEMORY, "the chip's memory table is full");
  piece->address = at;
  piece->bytes = bytes;
  piece->next = *link;
  *link = piece;
  c->result = at;
  return CHIP_OK;
}

static uint32_t release(ChipCommand* c) {
  for (Piece** link = &pieces; *link != NULL; link = &(*link)->next) {
    if ((*link)->address != c->address) continue;
    Piece* piece = *link;
    *link = piece->next;
    free(piece);
    return CHIP_OK;
  }
  return fail(c, CHIP_BAD_ADDRESS, "there is no allocation at the address");
}

static uint32_t move(ChipCommand* c) {
  const int window = c->opcode != CHIP_COPY;
  if (!in_memory(c->address, c->bytes) || (window && c->bytes > CHIP_WINDOW_BYTES) ||
      (!window && !in_memory(c->other, c->bytes))) {
    return fail(c, CHIP_BAD_ADDRESS, "a copy outside of memory");
  }
  unsigned char* at = memory + c->address;
  if (c->opcode == CHIP_WRITE) memcpy(at, registers->window, c->bytes);
  if (c->opcode == CHIP_READ) memcpy(registers->window, at, c->bytes);
  if (c->opcode == CHIP_COPY) memmove(at, memory + c->other, c->bytes);
  return CHIP_OK;
}

static uint32_t load(ChipCommand* c) {
  size_t free_one = 0;
  while (free_one < MOST_MODULES && modules[free_one] != NULL) ++free_one;
  if (!in_memory(c->address, c->bytes)) return fail(c, CHIP_BAD_ADDRESS, "code outside of memory");
  if (free_one == MOST_MODULES) return fail(c, CHIP_NO_MEMORY, "too many modules");
  const int file = memfd_create("code", 0);
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  const int written = file >= 0 && write(file, memory + c->address, c->bytes) == (ssize_t)c->bytes;
  void* module = written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (module == NULL) {
    if (file >= 0) close(file);
    return fail(c, CHIP_BAD_CODE, "the code cannot be loaded");
  }
  if (dlsym(module, CHIP_KERNEL_TABLE) == NULL) {
    dlclose(module);
    close(file);
    return fail(c, CHIP_BAD_CODE, "the code has no table of kernels");
  }
  modules[free_one] = module;
  files[free_one] = file;
  c->result = free_one + 1;
  return CHIP_OK;
}

static void* module_of(uint64_t number) {
  return number >= 1 && number <= MOST_MODULES ? modules[number - 1] : NULL;
}

static uint32_t unload(ChipCommand* c) {
  if (module_of(c->other) == NULL) return fail(c, CHIP_BAD_COMMAND, "there is no such module");
  dlclose(modules[c->other - 1]);
  close(files[c->other - 1]);
  modules[c->other - 1] = NULL;
  return CHIP_OK;
}

static uint32_t launch(ChipCommand* c) {
  void* module = module_of(c->other);
  if (module == NULL) return fail(c, CHIP_BAD_COMMAND, "there is no such module");
  if (c->address_count > CHIP_ARGUMENTS || c->scalar_count > CHIP_ARGUMENTS - c->address_count) {
    return fail(c, CHIP_BAD_COMMAND, "too many arguments");
  }
  void* buffers[CHIP_ARGUMENTS];
  for (uint32_t i = 0; i < c->address_count; ++i) {
    if (!in_memory(c->arguments[i], 0)) return fail(c, CHIP_BAD_ADDRESS, "a buffer outside of memory");
    buffers[i] = memory + c->arguments[i];
  }
  const KernelFunction* table = dlsym(module, CHIP_KERNEL_TABLE);
  table[c->kernel](buffers, c->arguments + c->address_count);
  return CHIP_OK;
}

static void run(ChipCommand* c) {
  const int counted = c->opcode == CHIP_LAUNCH || c->opcode == CHIP_COPY;
  switch (c->opcode) {
    case CHIP_ALLOCATE: c->status = allocate(c); break;
    case CHIP_FREE: c->status = release(c); break;
    case CHIP_WRITE:
    case CHIP_READ:
    case CHIP_COPY: c->status = move(c); break;
    case CHIP_LOAD: c->status = load(c); break;
    case CHIP_UNLOAD: c->status = unload(c); break;
    case CHIP_LAUNCH: c->status = launch(c); break;
    case CHIP_FENCE:
      c->status = failed;
      memcpy(c->text, failed_text, sizeof c->text);
      failed = CHIP_OK;
      break;
    default: c->status = fail(c, CHIP_BAD_COMMAND, "there is no such command");
  }
  if (counted && c->status != CHIP_OK && failed == CHIP_OK) {
    failed = c->status;
    memcpy(failed_text, c->text, sizeof failed_text);
  }
}

/* Ends the chip at once when the host dies. */
static void* watch(void* unused) {
  struct pollfd line = {CHIP_LINE_FD, 0, 0};
  (void)unused;
  while (poll(&line, 1, -1) < 0 && errno == EINTR) {
  }
  _exit(0);
}

int main(int argc, char** argv) {
  memory_bytes = UINT64_C(256) << 20;
  for (int i = 1; i < argc; ++i) {
    if (strncmp(argv[i], "--memory=", 9) == 0) memory_bytes = strtoull(argv[i] + 9, NULL, 10);
  }
  const int shared = PROT_READ | PROT_WRITE;
  registers = mmap(NULL, sizeof *registers, shared, MAP_SHARED, CHIP_REGISTERS_FD, 0);
  memory = mmap(NULL, memory_bytes, shared, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (registers == MAP_FAILED || memory == MAP_FAILED) return 1;
  __atomic_store_n(&registers->version, CHIP_VERSION, __ATOMIC_RELEASE);
  pthread_t watcher;
  if (pthread_create(&watcher, NULL, watch, NULL) != 0) return 1;
  char byte = 0;
  if (write(CHIP_LINE_FD, &byte, 1) != 1) return 1;
  while (read(CHIP_LINE_FD, &byte, 1) == 1) {
    while (registers->done < __atomic_load_n(&registers->given, __ATOMIC_ACQUIRE)) {
      run(&registers->ring[registers->done % CHIP_SLOTS]);
      __atomic_store_n(&registers->done, registers->done + 1, __ATOMIC_RELEASE);
      /* A full line has already been signalled. */
      const int called = send(CHIP_LINE_FD, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
      if (!called && errno != EAGAIN) return 0;
    }
  }
  return 0;
}
