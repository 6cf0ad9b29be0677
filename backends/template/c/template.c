/* backends/template/c/: the template backend in C, by plugin.h alone. */
/* The template in C: a backend for the simulated chip (chip/chip.h), the starting point of a new one.
 *
 * It is complete: every op runs, by the functions of core/backend/plugin.h (rules B1 … B29) and the
 * host's services, which write the kernels as source. Replace the parts marked PORT.
 * `tenon new-backend --lang c` copies this file.
 *
 * Settings, from the environment: TENON_CHIP (the chip's program), TENON_CHIPS (number of
 * chips), TENON_CHIP_MEMORY (bytes of each), TENON_TEMPLATE_CC (the C compiler).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/backend/plugin.h"
#include "backends/template/chip/chip.h"

#define SLICE INT64_C(10000000) /* The longest single wait, in nanoseconds. */
#define LOST UINT32_MAX         /* In addition to ChipStatus: the chip is gone. */

static const TenonHost* host;
static int64_t chip_bytes; /* Memory of each chip. */

static void say(const TenonSink* sink, const char* text) {
  if (sink != NULL) sink->write(sink->context, text, strlen(text));
}

static TenonCode fail(const TenonSink* error, TenonCode code, const char* format, ...) {
  char text[512];
  va_list values;
  va_start(values, format);
  vsnprintf(text, sizeof text, format, values);
  va_end(values);
  say(error, text);
  return code;
}

static const char* setting(const char* name, const char* otherwise) {
  const char* value = getenv(name);
  return value == NULL ? otherwise : value;
}

/* The error in the settings; empty if they are valid. */
static char wrong_setting[256];

static int64_t number_setting(const char* name, const char* otherwise, int64_t most) {
  const char* text = setting(name, otherwise);
  char* end;
  errno = 0;
  const int64_t number = strtoll(text, &end, 10);
  if (errno == 0 && *end == '\0' && number >= 1 && number <= most) return number;
  snprintf(wrong_setting, sizeof wrong_setting, "%s is '%s', expected a number of 1 to %lld", name,
           text, (long long)most);
  return 0;
}

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static struct timespec timespec_of(int64_t nanoseconds) {
  const struct timespec time = {nanoseconds / 1000000000, nanoseconds % 1000000000};
  return time;
}

/* ---- PORT: your driver. A chip: its process, its registers, and the line on which it signals. ----
 */

/* The outcome of a command for which a thread waits. Tickets of fences are events; their addresses
 * are the handles. */
typedef struct Ticket {
  struct Ticket *next, **link; /* In the list of events. */
  int done, released;
  uint32_t status; /* ChipStatus or LOST */
  uint64_t result;
  char text[CHIP_TEXT_BYTES];
} Ticket;

typedef struct Chip {
  pid_t process;
  int line;
  ChipRegisters* registers;
  pthread_mutex_t window; /* Guards the registers' window; taken before `mutex`. */
  pthread_mutex_t mutex;  /* Guards the members below; never held while waiting for the chip. */
  pthread_cond_t heard;
  int listening, lost;
  uint64_t given, harvested;
  Ticket* watched[CHIP_SLOTS]; /* By slot of the ring; null if no thread waits. */
  Ticket* events;              /* All events that are not released, or not done. */
} Chip;

static void forget_event(Ticket* event) {
  *event->link = event->next;
  if (event->next != NULL) event->next->link = event->link;
  free(event);
}

static void end(Chip* chip, uint64_t slot, uint32_t status, uint64_t result, const char* text) {
  Ticket* ticket = chip->watched[slot];
  chip->watched[slot] = NULL;
  if (ticket == NULL) return;
  ticket->status = status;
  ticket->result = result;
  memcpy(ticket->text, text, sizeof ticket->text - 1);
  ticket->done = 1;
  if (ticket->released) forget_event(ticket);
}

/* Records the results of ended commands before their slots are reused. */
static void harvest(Chip* chip) {
  const uint64_t done = __atomic_load_n(&chip->registers->done, __ATOMIC_ACQUIRE);
  while (chip->harvested < done && chip->harvested < chip->given) {
    const uint64_t slot = chip->harvested++ % CHIP_SLOTS;
    const ChipCommand* c = &chip->registers->ring[slot];
    end(chip, slot, c->status, c->result, c->text);
  }
}

static void lose(Chip* chip) {
  static const char nothing[CHIP_TEXT_BYTES];
  harvest(chip); /* Commands that ended before the loss keep their outcome. */
  chip->lost = 1;
  for (uint64_t slot = 0; slot < CHIP_SLOTS; ++slot) end(chip, slot, LOST, 0, nothing);
}

/* Reads the chip's signals off the line; returns whether it has hung up. */
static int listen_at(int line, int64_t nanoseconds) {
  struct pollfd poll_line = {line, POLLIN, 0};
  const struct timespec timeout = timespec_of(nanoseconds);
  if (ppoll(&poll_line, 1, &timeout, NULL) <= 0) return 0;
  char bytes[256];
  const ssize_t count = recv(line, bytes, sizeof bytes, MSG_DONTWAIT);
  return count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
}

/* Waits for a signal. One thread listens for all waiting ones, without the mutex. Then all of them
 * check again and another one listens, so that no signal is lost. */
static void hear(Chip* chip, int64_t nanoseconds) {
  if (nanoseconds > SLICE) nanoseconds = SLICE;
  if (chip->listening) {
    const struct timespec until = timespec_of(now() + nanoseconds);
    pthread_cond_timedwait(&chip->heard, &chip->mutex, &until);
    return;
  }
  chip->listening = 1;
  pthread_mutex_unlock(&chip->mutex);
  const int gone = listen_at(chip->line, nanoseconds);
  pthread_mutex_lock(&chip->mutex);
  chip->listening = 0;
  harvest(chip);
  if (gone) lose(chip);
  pthread_cond_broadcast(&chip->heard);
}

static TenonCode gone(const TenonSink* error) {
  return fail(error, TENON_UNAVAILABLE, "the chip is gone");
}

/* Puts a command into the ring, when there is room. `ticket` may be null. */
static TenonCode give(Chip* chip, const ChipCommand* command, Ticket* ticket,
                      const TenonSink* error) {
  pthread_mutex_lock(&chip->mutex);
  harvest(chip);
  while (!chip->lost && chip->given - chip->harvested == CHIP_SLOTS) hear(chip, SLICE);
  if (!chip->lost) {
    const uint64_t slot = chip->given % CHIP_SLOTS;
    chip->registers->ring[slot] = *command;
    chip->watched[slot] = ticket;
    __atomic_store_n(&chip->registers->given, ++chip->given, __ATOMIC_RELEASE);
    /* A full line has signals that the chip has not read yet. */
    const ssize_t sent = send(chip->line, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN) lose(chip);
  }
  const int lost = chip->lost;
  pthread_mutex_unlock(&chip->mutex);
  return lost ? gone(error) : TENON_OK;
}

static TenonCode outcome_of(const Ticket* ticket, const TenonSink* error) {
  if (ticket->status == CHIP_OK) return TENON_OK;
  if (ticket->status == LOST) return gone(error);
  return fail(error, ticket->status == CHIP_NO_MEMORY ? TENON_RESOURCE_EXHAUSTED : TENON_INTERNAL,
              "chip: %s", ticket->text);
}

/* Gives a command and waits until it has ended. */
static TenonCode finish(Chip* chip, const ChipCommand* command, uint64_t* result,
                        const TenonSink* error) {
  Ticket ticket = {0};
  const TenonCode code = give(chip, command, &ticket, error);
  if (code != TENON_OK) return code;
  pthread_mutex_lock(&chip->mutex);
  while (!ticket.done) hear(chip, SLICE);
  pthread_mutex_unlock(&chip->mutex);
  if (ticket.status == CHIP_OK && result != NULL) *result = ticket.result;
  return outcome_of(&ticket, error);
}

static ChipCommand command_of(ChipOpcode opcode, uint64_t address, uint64_t other, uint64_t bytes) {
  ChipCommand command = {0};
  command.opcode = opcode;
  command.address = address;
  command.other = other;
  command.bytes = bytes;
  return command;
}

/* Copies bytes through the window, a piece at a time. */
static TenonCode transfer(Chip* chip, ChipOpcode opcode, uint64_t address, char* bytes,
                          uint64_t count, const TenonSink* error) {
  TenonCode code = TENON_OK;
  pthread_mutex_lock(&chip->window);
  for (uint64_t at = 0; at < count && code == TENON_OK; at += CHIP_WINDOW_BYTES) {
    const uint64_t piece = count - at < CHIP_WINDOW_BYTES ? count - at : CHIP_WINDOW_BYTES;
    const ChipCommand command = command_of(opcode, address + at, 0, piece);
    if (opcode == CHIP_WRITE) memcpy(chip->registers->window, bytes + at, piece);
    code = finish(chip, &command, NULL, error);
    if (opcode == CHIP_READ && code == TENON_OK) memcpy(bytes + at, chip->registers->window, piece);
  }
  pthread_mutex_unlock(&chip->window);
  return code;
}

/* Moves a descriptor above the numbers that the chip uses, and those that a host may have closed: no
 * dup2 closes another one, and writing to a former stderr does not write to the chip. */
static int moved_up(int file) {
  const int moved = file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, CHIP_LINE_FD + 1);
  if (file >= 0) close(file);
  return moved;
}

static int spawn_chip(Chip* chip, const char* path, int memory, int line) {
  char bytes[64];
  snprintf(bytes, sizeof bytes, "--memory=%lld", (long long)chip_bytes);
  char* arguments[] = {(char*)path, bytes, NULL};
  posix_spawn_file_actions_t files;
  if (posix_spawn_file_actions_init(&files) != 0) return 0;
  const int spawned = posix_spawn_file_actions_adddup2(&files, memory, CHIP_REGISTERS_FD) == 0 &&
                      posix_spawn_file_actions_adddup2(&files, line, CHIP_LINE_FD) == 0 &&
                      posix_spawn(&chip->process, path, &files, NULL, arguments, environ) == 0;
  posix_spawn_file_actions_destroy(&files);
  if (!spawned) chip->process = 0;
  return spawned;
}

/* Until it is awaited, its process id is not reused. */
static void kill_chip(Chip* chip) {
  if (chip->process > 0) kill(chip->process, SIGKILL);
}

static void stop_chip(Chip* chip) {
  kill_chip(chip);
  while (chip->process > 0 && waitpid(chip->process, NULL, 0) < 0 && errno == EINTR) continue;
  while (chip->events != NULL) forget_event(chip->events);
  if (chip->registers != NULL) munmap(chip->registers, sizeof *chip->registers);
  if (chip->line >= 0) close(chip->line);
  pthread_cond_destroy(&chip->heard);
  pthread_mutex_destroy(&chip->mutex);
  pthread_mutex_destroy(&chip->window);
  free(chip);
}

static Chip* new_chip(void) {
  Chip* chip = calloc(1, sizeof *chip);
  if (chip == NULL) return NULL;
  chip->line = -1;
  pthread_condattr_t clock;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(&chip->heard, &clock);
  pthread_condattr_destroy(&clock);
  pthread_mutex_init(&chip->mutex, NULL);
  pthread_mutex_init(&chip->window, NULL);
  return chip;
}

/* A chip with its registers and its line, not started: `files` are the chip's ends of them. */
static int connect_chip(Chip* chip, int* memory, int* line) {
  int ends[2] = {-1, -1};
  *memory = moved_up(memfd_create("chip", MFD_CLOEXEC));
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) ends[0] = ends[1] = -1;
  chip->line = moved_up(ends[0]);
  *line = moved_up(ends[1]);
  if (*memory < 0 || chip->line < 0 || *line < 0 || ftruncate(*memory, sizeof(ChipRegisters)) != 0)
    return 0;
  void* mapped = mmap(NULL, sizeof(ChipRegisters), PROT_READ | PROT_WRITE, MAP_SHARED, *memory, 0);
  chip->registers = mapped == MAP_FAILED ? NULL : mapped;
  return chip->registers != NULL;
}

static Chip* start_chip(const TenonSink* error, TenonCode* code) {
  const char* path = setting("TENON_CHIP", TENON_CHIP_PATH);
  int memory = -1;
  int line = -1;
  Chip* chip = new_chip();
  *code = TENON_OK;
  if (chip == NULL || !connect_chip(chip, &memory, &line)) {
    *code = fail(error, TENON_RESOURCE_EXHAUSTED, "the host has no memory or files for a chip");
  } else if (!spawn_chip(chip, path, memory, line)) {
    *code = fail(error, TENON_UNAVAILABLE, "the chip %s does not start", path);
  }
  if (memory >= 0) close(memory);
  if (line >= 0) close(line);
  /* It signals when it is ready, or hangs up. */
  while (*code == TENON_OK && !chip->lost && chip->registers->version == 0) {
    chip->lost = listen_at(chip->line, SLICE);
  }
  if (*code == TENON_OK && chip->registers->version == 0) {
    *code = fail(error, TENON_UNAVAILABLE, "the chip %s does not start", path);
  } else if (*code == TENON_OK && chip->registers->version != CHIP_VERSION) {
    *code = fail(error, TENON_FAILED_PRECONDITION, "the chip is of version %llu",
                 (unsigned long long)chip->registers->version);
  }
  if (*code == TENON_OK || chip == NULL) return chip;
  stop_chip(chip);
  return NULL;
}

/* ---- The device: each function is one or two commands. ---- */

static Chip* chip_of(TenonDevice device) { return (Chip*)(uintptr_t)device; }

static uint64_t address_of(TenonPlace place) { return place.memory + (uint64_t)place.offset; }

/* PORT: loading code onto the chip. */
static TenonCode load(const TenonLoadArgs* args, TenonModule* module) {
  Chip* chip = chip_of(args->device);
  const uint64_t bytes = args->binary_size;
  uint64_t at = 0;
  ChipCommand command = command_of(CHIP_ALLOCATE, 0, 0, bytes);
  TenonCode code = finish(chip, &command, &at, args->error);
  if (code != TENON_OK) return code;
  code = transfer(chip, CHIP_WRITE, at, (char*)args->binary, bytes, args->error);
  if (code == TENON_OK) {
    command = command_of(CHIP_LOAD, at, 0, bytes);
    code = finish(chip, &command, module, args->error);
  }
  command = command_of(CHIP_FREE, at, 0, 0);
  give(chip, &command, NULL, NULL);
  return code;
}

static void unload(TenonDevice device, TenonModule module) {
  const ChipCommand command = command_of(CHIP_UNLOAD, 0, module, 0);
  give(chip_of(device), &command, NULL, NULL);
}

static TenonCode allocate(TenonDevice device, uint32_t space, int64_t bytes, TenonMemory* memory,
                          const TenonSink* error) {
  (void)space; /* There is only one. */
  const ChipCommand command = command_of(CHIP_ALLOCATE, 0, 0, (uint64_t)bytes);
  return finish(chip_of(device), &command, memory, error);
}

static void release_memory(TenonDevice device, TenonMemory memory) {
  const ChipCommand command = command_of(CHIP_FREE, memory, 0, 0);
  give(chip_of(device), &command, NULL, NULL);
}

static TenonCode copy(const TenonCopyArgs* args) {
  Chip* chip = chip_of(args->device);
  const TenonPlace to = args->destination;
  const TenonPlace from = args->source;
  const uint64_t bytes = (uint64_t)args->bytes;
  if (to.memory != 0 && from.memory != 0) {
    const ChipCommand command = command_of(CHIP_COPY, address_of(to), address_of(from), bytes);
    return give(chip, &command, NULL, args->error);
  }
  if (from.memory == 0) {
    return transfer(chip, CHIP_WRITE, address_of(to), from.host, bytes, args->error);
  }
  return transfer(chip, CHIP_READ, address_of(from), to.host, bytes, args->error);
}

static TenonCode launch(const TenonLaunchArgs* args) {
  if (args->buffer_count > CHIP_ARGUMENTS ||
      args->scalar_count > CHIP_ARGUMENTS - args->buffer_count) {
    return fail(args->error, TENON_INVALID_ARGUMENT, "more than %d arguments", CHIP_ARGUMENTS);
  }
  ChipCommand command = command_of(CHIP_LAUNCH, 0, args->module, 0);
  command.kernel = args->kernel;
  command.address_count = (uint32_t)args->buffer_count;
  command.scalar_count = (uint32_t)args->scalar_count;
  uint64_t* next = command.arguments;
  for (size_t i = 0; i < args->buffer_count; ++i) *next++ = address_of(args->buffers[i]);
  for (size_t i = 0; i < args->scalar_count; ++i) *next++ = args->scalars[i];
  return give(chip_of(args->device), &command, NULL, args->error);
}

/* An event is the ticket of a fence. */
static TenonCode record(TenonDevice device, uint32_t queue, TenonEvent* event,
                        const TenonSink* error) {
  (void)queue;
  Chip* chip = chip_of(device);
  Ticket* ticket = calloc(1, sizeof *ticket);
  if (ticket == NULL) return fail(error, TENON_RESOURCE_EXHAUSTED, "no memory for an event");
  pthread_mutex_lock(&chip->mutex);
  ticket->link = &chip->events;
  ticket->next = chip->events;
  if (chip->events != NULL) chip->events->link = &ticket->next;
  chip->events = ticket;
  pthread_mutex_unlock(&chip->mutex);
  const ChipCommand command = command_of(CHIP_FENCE, 0, 0, 0);
  const TenonCode code = give(chip, &command, ticket, error);
  if (code == TENON_OK) {
    *event = (uintptr_t)ticket;
    return code;
  }
  pthread_mutex_lock(&chip->mutex);
  forget_event(ticket);
  pthread_mutex_unlock(&chip->mutex);
  return code;
}

static TenonCode wait_for(TenonDevice device, uint32_t queue, TenonEvent event,
                          const TenonSink* error) {
  (void)queue, (void)event; /* There is only one queue. */
  Chip* chip = chip_of(device);
  pthread_mutex_lock(&chip->mutex);
  const int lost = chip->lost;
  pthread_mutex_unlock(&chip->mutex);
  return lost ? gone(error) : TENON_OK;
}

static TenonCode await(TenonDevice device, TenonEvent event, int64_t timeout,
                       TenonEventState* state, const TenonSink* error) {
  Chip* chip = chip_of(device);
  const Ticket* ticket = (const Ticket*)(uintptr_t)event;
  const int64_t start = now();
  const int endless = timeout < 0 || timeout > INT64_MAX - start;
  pthread_mutex_lock(&chip->mutex);
  harvest(chip);
  for (int over = 0; !ticket->done && !over;) {
    const int64_t left = endless ? SLICE : start + timeout - now();
    over = left <= 0; /* It checks the line once even so. */
    hear(chip, over ? 0 : left);
  }
  const int done = ticket->done;
  pthread_mutex_unlock(&chip->mutex);
  const TenonCode code = done ? outcome_of(ticket, error) : TENON_OK; /* It is final. */
  *state = !done ? TENON_EVENT_PENDING : code == TENON_OK ? TENON_EVENT_DONE : TENON_EVENT_ERROR;
  return code;
}

static void release(TenonDevice device, TenonEvent event) {
  Chip* chip = chip_of(device);
  Ticket* ticket = (Ticket*)(uintptr_t)event;
  pthread_mutex_lock(&chip->mutex);
  ticket->released = 1; /* harvest() removes it. */
  if (ticket->done) forget_event(ticket);
  pthread_mutex_unlock(&chip->mutex);
}

static TenonCode abort_device(TenonDevice device, const TenonSink* error) {
  (void)error;
  Chip* chip = chip_of(device);
  kill_chip(chip);
  pthread_mutex_lock(&chip->mutex);
  lose(chip);
  pthread_cond_broadcast(&chip->heard);
  pthread_mutex_unlock(&chip->mutex);
  return TENON_OK;
}

/* ---- PORT: the description of your devices. ---- */

#define COMPUTED(name) \
  {.size = sizeof(TenonTypeInfo), .type = name, .computed = 1, .denormals = 1}
static const TenonTypeInfo types[] = {COMPUTED("s8"),  COMPUTED("u8"),  COMPUTED("s16"),
                                      COMPUTED("u16"), COMPUTED("s64"), COMPUTED("u64")};
static TenonSpaceInfo space = {.size = sizeof space, .reachable = 1, .alignment = CHIP_ALIGNMENT};
static TenonTargetInfo target;
static size_t device_count;
static char compiler_id[512];
static const char* compiler;

/* Settings are read once, so that every call reports the same devices (B9). */
static void read_settings(void) {
  const char* command = strdup(setting("TENON_TEMPLATE_CC", "cc"));
  compiler = command == NULL ? "cc" : command;
  snprintf(compiler_id, sizeof compiler_id, "template-c-1 %s", compiler);
  device_count = (size_t)number_setting("TENON_CHIPS", "4", 1024);
  chip_bytes = number_setting("TENON_CHIP_MEMORY", "268435456", INT64_MAX);
  space.bytes = chip_bytes;
  target.size = sizeof target;
  target.name = "chip";
  target.compiler_id = compiler_id;
  target.types = types;
  target.type_count = sizeof types / sizeof *types;
  target.forms = TENON_FORM_FMA | TENON_FORM_DIMENSIONS;
  target.most_parameters = CHIP_ARGUMENTS;
  target.spaces = &space;
  target.space_count = 1;
}

static TenonCode devices(void* context, void (*found)(void* context, const TenonDeviceInfo* info),
                         const TenonSink* error) {
  if (wrong_setting[0] != '\0') return fail(error, TENON_INVALID_ARGUMENT, "%s", wrong_setting);
  for (size_t i = 0; i < device_count; ++i) {
    char name[64];
    snprintf(name, sizeof name, "template:%zu", i);
    const TenonDeviceInfo info = {sizeof info, name, &target};
    found(context, &info);
  }
  return TENON_OK;
}

static TenonCode open_device(size_t index, TenonDevice* device, const TenonSink* error) {
  if (index >= device_count) return fail(error, TENON_INVALID_ARGUMENT, "no chip %zu", index);
  TenonCode code;
  Chip* chip = start_chip(error, &code);
  if (chip != NULL) *device = (uintptr_t)chip;
  return code;
}

static void close_device(TenonDevice device) { stop_chip(chip_of(device)); }

/* ---- PORT: your compiler. This one takes source in C. ---- */

/* A growing buffer; `failed` if it could not grow. */
typedef struct Bytes {
  char* data;
  size_t count, room;
  int failed;
} Bytes;

static void append(void* context, const char* data, size_t count) {
  Bytes* bytes = context;
  if (bytes->failed) return;
  if (bytes->room - bytes->count < count) {
    const size_t room = 2 * bytes->room + count;
    char* larger = realloc(bytes->data, room);
    bytes->failed = larger == NULL;
    if (bytes->failed) return;
    bytes->data = larger;
    bytes->room = room;
  }
  if (count != 0) memcpy(bytes->data + bytes->count, data, count);
  bytes->count += count;
}

static int write_file(const char* path, const Bytes* bytes) {
  FILE* file = fopen(path, "we");
  if (file == NULL) return 0;
  const size_t written = fwrite(bytes->data, 1, bytes->count, file);
  return (fclose(file) == 0) & (written == bytes->count);
}

static int read_file(const char* path, const TenonSink* sink) {
  FILE* file = fopen(path, "re");
  if (file == NULL) return 0;
  char piece[16384];
  size_t count;
  while ((count = fread(piece, 1, sizeof piece, file)) != 0) {
    sink->write(sink->context, piece, count);
  }
  const int read = !ferror(file);
  fclose(file);
  return read;
}

/* The compiler's command may have flags: the shell splits it, but not the file names. */
static int run_compiler(char* source, char* object, char* log) {
  static char script[] =
      "exec $0 -O1 -std=c99 -ffp-contract=off -fPIC -shared \"$1\" -o \"$2\" -lm >\"$3\" 2>&1";
  char* arguments[] = {"sh", "-c", script, (char*)compiler, source, object, log, NULL};
  pid_t process;
  int status = 0;
  if (posix_spawn(&process, "/bin/sh", NULL, NULL, arguments, environ) != 0) return 0;
  while (waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) return 0;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static TenonCode compile_in(const char* folder, const Bytes* source, const TenonSink* binary,
                            const TenonSink* error) {
  char files[3][4096];
  static const char* const endings[3] = {"c", "so", "log"};
  for (int i = 0; i < 3; ++i) {
    snprintf(files[i], sizeof files[i], "%s/kernels.%s", folder, endings[i]);
  }
  Bytes object = {0};
  const TenonSink to_object = {sizeof to_object, &object, append};
  TenonCode code = TENON_OK;
  if (!write_file(files[0], source)) {
    code = fail(error, TENON_RESOURCE_EXHAUSTED, "cannot write %s", files[0]);
  } else if (!run_compiler(files[0], files[1], files[2])) {
    code = fail(error, TENON_INTERNAL, "the C compiler refused (%s):\n", compiler);
    if (error != NULL) read_file(files[2], error);
  } else if (!read_file(files[1], &to_object) || object.failed) {
    code = fail(error, TENON_RESOURCE_EXHAUSTED, "cannot read %s", files[1]);
  } else {
    binary->write(binary->context, object.data, object.count);
  }
  for (int i = 0; i < 3; ++i) unlink(files[i]);
  free(object.data);
  return code;
}

static TenonCode compile_source(const Bytes* source, const TenonSink* binary,
                                const TenonSink* error) {
  char folder[4000];
  const int length =
      snprintf(folder, sizeof folder, "%s/template_XXXXXX", setting("TMPDIR", "/tmp"));
  if (length < 0 || (size_t)length >= sizeof folder || mkdtemp(folder) == NULL) {
    return fail(error, TENON_RESOURCE_EXHAUSTED, "no temporary folder can be made");
  }
  const TenonCode code = compile_in(folder, source, binary, error);
  rmdir(folder);
  return code;
}

static TenonCode compile(const TenonCompileArgs* args) {
  int declined = 0;
  for (size_t k = 0; k < args->kernel_count; ++k) {
    TenonKernelInfo info = {0};
    info.size = sizeof info;
    const TenonCode code = host->describe(args->kernels[k], &info);
    if (code != TENON_OK) return fail(args->error, code, "the host cannot describe kernel %zu", k);
    if (info.buffer_count + info.scalar_count <= CHIP_ARGUMENTS) continue;
    declined = 1;
    args->declined(args->declined_context, k, TENON_TOO_MANY_PARAMETERS,
                   "more than the chip takes");
  }
  if (declined) return TENON_OK;
  Bytes source = {0};
  const TenonSink to_source = {sizeof to_source, &source, append};
  TenonCode code =
      host->render(args->kernels, args->kernel_count, TENON_C, 1, &to_source, args->error);
  if (code == TENON_OK && source.failed) {
    code = fail(args->error, TENON_RESOURCE_EXHAUSTED, "no memory for the kernels' source");
  }
  if (code == TENON_OK) code = compile_source(&source, args->binary, args->error);
  free(source.data);
  return code;
}

/* ---- The table. ---- */

static const TenonBackend table = {
    .size = sizeof table,
    .abi_major = TENON_ABI_MAJOR,
    .abi_minor = TENON_ABI_MINOR,
    .name = "template",
    .version = "1",
    .devices = devices,
    .open = open_device,
    .close = close_device,
    .compile = compile,
    .load = load,
    .unload = unload,
    .allocate = allocate,
    .free = release_memory,
    .copy = copy,
    .launch = launch,
    .record = record,
    .wait = wait_for,
    .await = await,
    .release = release,
    .abort = abort_device,
};

const TenonBackend* tenon_plugin(const TenonHost* services, const TenonSink* error) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (services->abi_major != TENON_ABI_MAJOR) {
    fail(error, TENON_FAILED_PRECONDITION,
         "built for version %d of the interface, the host is of %u", TENON_ABI_MAJOR,
         (unsigned)services->abi_major);
    return NULL;
  }
  __atomic_store_n(&host, services, __ATOMIC_RELEASE);
  pthread_once(&once, read_settings);
  return &table;
}
