/* A device for Tenon in the host's own process: its memory is the host's, its kernels are C. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#if STEP >= 3

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#endif
#if STEP >= 4

#include <pthread.h>
#include <time.h>
#endif
#if STEP >= 6

#include <math.h>
#endif

#include "core/backend/plugin.h"

#if STEP >= 3
static const TenonHost* host;

#endif
/* Writes the error text (B4). */
static TenonCode fail(const TenonSink* error, TenonCode code, const char* why) {
  error->write(error->context, why, strlen(why));
  return code;
}

/* [target] */
/* ---- Description of the device ---- */

#define ALIGNMENT 64

#if STEP >= 5
static TenonSpaceInfo space = {
    .size = sizeof space, .reachable = 1, .bytes = 1 << 30, .alignment = ALIGNMENT};
#else
static const TenonSpaceInfo space = {
    .size = sizeof space, .reachable = 1, .bytes = 1 << 30, .alignment = ALIGNMENT};
#endif
/* [types] */
#if STEP >= 5
/* f32, s32, u32 and pred are always computed. Loops run one iteration after the other, so every
 * integer type has atomics. */
#define INTEGER(name) \
  {.size = sizeof(TenonTypeInfo), .type = name, .computed = 1, .atomics = 1}
static const TenonTypeInfo types[] = {
    INTEGER("s8"),  INTEGER("u8"),  INTEGER("s16"),
    INTEGER("u16"), INTEGER("s32"), INTEGER("u32"),
    INTEGER("s64"), INTEGER("u64"),
    {.size = sizeof(TenonTypeInfo), .type = "f64", .computed = 1, .denormals = 1}};
#endif
/* [/types] */
#if STEP >= 7
static char compiler_id[64];
#endif
static const TenonTargetInfo target = {
    .size = sizeof target,
    .name = "host",
#if STEP >= 7
    .compiler_id = compiler_id,
#else
    .compiler_id = "guide-1",
#endif
#if STEP >= 5
    .types = types,
    .type_count = sizeof types / sizeof *types,
    .forms = TENON_FORM_FMA | TENON_FORM_DIMENSIONS,
#endif
    .spaces = &space,
    .space_count = 1,
};

#if STEP >= 5
/* [settings] */
static unsigned long device_count = 1;
static pthread_once_t settings_read = PTHREAD_ONCE_INIT;

/* [id] */
#if STEP >= 7
/* -march=native makes other code on another processor: its features are a part of the id. */
static void make_compiler_id(void) {
  char line[8192];
  uint32_t hash = 2166136261;
  FILE* file = fopen("/proc/cpuinfo", "re");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, "flags", 5) != 0 && strncmp(line, "Features", 8) != 0) continue;
    for (const char* c = line; *c != '\0'; ++c) hash = (hash ^ (unsigned char)*c) * 16777619;
    break;
  }
  if (file != NULL) fclose(file);
  snprintf(compiler_id, sizeof compiler_id, "guide-2 native %08x", hash);
}

#endif
/* [/id] */
/* Read once, so that every call reports the same devices (B9). */
static void read_settings(void) {
  const char* memory = getenv("GUIDE_MEMORY");
  const char* devices = getenv("GUIDE_DEVICES");
  if (memory != NULL) space.bytes = strtoll(memory, NULL, 10);
  if (devices != NULL) device_count = strtoul(devices, NULL, 10);
#if STEP >= 7
  make_compiler_id();
#endif
}
/* [/settings] */

#endif
static TenonCode devices(void* context, void (*found)(void* context, const TenonDeviceInfo* info),
                         const TenonSink* error) {
  (void)error;
#if STEP >= 5
  for (unsigned long i = 0; i < device_count; ++i) {
    char name[32];
    snprintf(name, sizeof name, "guide:%lu", i);
    const TenonDeviceInfo info = {sizeof info, name, &target};
    found(context, &info);
  }
#else
  const TenonDeviceInfo info = {sizeof info, "guide:0", &target};
  found(context, &info);
#endif
  return TENON_OK;
}
/* [/target] */

/* [open] */
/* ---- An open device, and its resources ---- */

/* A link of a list; the first member of each element. */
typedef struct Link {
  struct Link *next, **from;
} Link;

static void add(Link** list, Link* link) {
  link->next = *list;
  link->from = list;
  if (*list != NULL) (*list)->from = &link->next;
  *list = link;
}

static void take_out(Link* link) {
  *link->from = link->next;
  if (link->next != NULL) link->next->from = link->from;
}

/* Precedes each piece of memory; it takes at most ALIGNMENT bytes. */
typedef struct Block {
  Link link;
  int64_t bytes;
} Block;

/* [queue] */
#if STEP >= 3
typedef void (*Kernel)(void* const* buffers, const uint64_t* scalars);

typedef struct Module {
  Link link;
  void* library;
  const Kernel* kernels;
} Module;

#endif
#if STEP >= 4
typedef struct Event {
  Link link;
  int done, released;
  TenonCode code; /* The first error of the work before it (B23). */
} Event;

/* [sizes] */
#if STEP >= 6
/* The sizes of a product: result[rows, columns] = lhs[rows, inner] x rhs[inner, columns]. For a
 * softmax of rows `inner` is 0. */
typedef struct Sizes {
  int64_t rows, inner, columns;
} Sizes;

#endif
/* [/sizes] */
/* A piece of work, with copies of its arguments. */
typedef struct Work {
  struct Work* next;
  Event* event; /* Set by record; the other members are then unused. */
  void (*run)(const struct Work* work);
  const volatile uint32_t* stop;
  Kernel kernel;
  int64_t bytes;
#if STEP >= 6
  Sizes sizes;
#endif
  void** places;
  uint64_t* scalars;
} Work;

#endif
typedef struct Device {
  Link* blocks;
  int64_t bytes_in_use;
#if STEP >= 3
  Link* modules;
#endif
#if STEP >= 4
  pthread_t thread;
  pthread_mutex_t mutex; /* Guards the members below. */
  pthread_cond_t given, done;
  Link* events;
  Work *first, **last;
  TenonCode code; /* The first error since the last event. */
  int closing;
#elif STEP >= 2
  uint64_t events;
#endif
} Device;
/* [/queue] */

static Device* device_of(TenonDevice device) { return (Device*)(uintptr_t)device; }

static void free_memory(TenonDevice device, TenonMemory memory) {
  Block* block = (Block*)(uintptr_t)(memory - ALIGNMENT);
  device_of(device)->bytes_in_use -= block->bytes;
  take_out(&block->link);
  free(block);
}

static TenonCode allocate(TenonDevice handle, uint32_t number, int64_t bytes, TenonMemory* memory,
                          const TenonSink* error) {
  (void)number; /* There is only one space. */
  Device* device = device_of(handle);
  void* block = NULL;
  if (bytes > space.bytes - device->bytes_in_use ||
      posix_memalign(&block, ALIGNMENT, ALIGNMENT + (size_t)bytes) != 0) {
    return fail(error, TENON_RESOURCE_EXHAUSTED, "the device has no memory left");
  }
  ((Block*)block)->bytes = bytes;
  device->bytes_in_use += bytes;
  add(&device->blocks, block);
  *memory = (uintptr_t)block + ALIGNMENT;
  return TENON_OK;
}
/* [/open] */

/* [start] */
#if STEP >= 3
static void unload(TenonDevice device, TenonModule handle) {
  (void)device;
  Module* module = (Module*)(uintptr_t)handle;
  dlclose(module->library);
  take_out(&module->link);
  free(module);
}

#endif
#if STEP >= 4
/* [worker] */
/* The mutex must be held. The second of queue and host to release an event frees it (B26). */
static void forget_event(Event* event) {
  if (!event->done || !event->released) return;
  take_out(&event->link);
  free(event);
}

/* The thread of a device: runs work in the order in which it was given. */
static void* work_off(void* context) {
  Device* device = context;
  pthread_mutex_lock(&device->mutex);
  while (!device->closing) {
    Work* work = device->first;
    if (work == NULL) {
      pthread_cond_wait(&device->given, &device->mutex);
      continue;
    }
    device->first = work->next;
    if (device->first == NULL) device->last = &device->first;
    if (work->event != NULL) {
      work->event->code = device->code;
      work->event->done = 1;
      device->code = TENON_OK;
      forget_event(work->event);
      pthread_cond_broadcast(&device->done);
    } else if (work->stop != NULL && *work->stop != 0) {
      if (device->code == TENON_OK) device->code = TENON_CANCELLED;
    } else {
      pthread_mutex_unlock(&device->mutex);
      work->run(work);
      pthread_mutex_lock(&device->mutex);
    }
    free(work);
  }
  pthread_mutex_unlock(&device->mutex);
  return NULL;
}

static int start(Device* device) {
  device->last = &device->first;
  pthread_condattr_t clock;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(&device->done, &clock);
  pthread_condattr_destroy(&clock);
  pthread_cond_init(&device->given, NULL);
  pthread_mutex_init(&device->mutex, NULL);
  return pthread_create(&device->thread, NULL, work_off, device) == 0;
}

/* Drops the remaining work (B11). */
static void stop(Device* device) {
  pthread_mutex_lock(&device->mutex);
  device->closing = 1;
  pthread_cond_signal(&device->given);
  pthread_mutex_unlock(&device->mutex);
  pthread_join(device->thread, NULL);
  while (device->first != NULL) {
    Work* work = device->first;
    device->first = work->next;
    free(work);
  }
  while (device->events != NULL) {
    Link* event = device->events;
    take_out(event);
    free(event);
  }
  pthread_mutex_destroy(&device->mutex);
  pthread_cond_destroy(&device->given);
  pthread_cond_destroy(&device->done);
}
/* [/worker] */

#endif
static TenonCode open_device(size_t index, TenonDevice* handle, const TenonSink* error) {
  (void)index;
  Device* device = calloc(1, sizeof *device);
#if STEP >= 4
  if (device != NULL && !start(device)) {
    free(device);
    device = NULL;
  }
#endif
  if (device == NULL) return fail(error, TENON_RESOURCE_EXHAUSTED, "the host has no room for one");
  *handle = (uintptr_t)device;
  return TENON_OK;
}

/* Also frees what the host has not freed (B11). */
static void close_device(TenonDevice handle) {
  Device* device = device_of(handle);
#if STEP >= 4
  stop(device);
#endif
#if STEP >= 3
  while (device->modules != NULL) unload(handle, (uintptr_t)device->modules);
#endif
  while (device->blocks != NULL) free_memory(handle, (uintptr_t)device->blocks + ALIGNMENT);
  free(device);
}
/* [/start] */

#if STEP >= 2
/* ---- Work ---- */

/* [place] */
static void* at(TenonPlace place) {
  return place.memory == 0 ? place.host : (char*)(uintptr_t)place.memory + place.offset;
}
/* [/place] */

#endif
#if STEP >= 4
/* [give] */
/* Allocates work with `count` places and `scalars`, and copies the places. */
static Work* new_work(const TenonPlace* places, size_t count, size_t scalars) {
  Work* work = calloc(1, sizeof *work + count * sizeof(void*) + scalars * sizeof(uint64_t));
  if (work == NULL) return NULL;
  work->scalars = (uint64_t*)(work + 1);
  work->places = (void**)(work->scalars + scalars);
  for (size_t i = 0; i < count; ++i) work->places[i] = at(places[i]);
  return work;
}

static TenonCode give(TenonDevice handle, Work* work, const TenonSink* error) {
  if (work == NULL) return fail(error, TENON_RESOURCE_EXHAUSTED, "the host has no room for work");
  Device* device = device_of(handle);
  pthread_mutex_lock(&device->mutex);
  *device->last = work;
  device->last = &work->next;
  if (work->event != NULL) add(&device->events, &work->event->link);
  pthread_cond_signal(&device->given);
  pthread_mutex_unlock(&device->mutex);
  return TENON_OK;
}

static void run_copy(const Work* work) {
  memcpy(work->places[0], work->places[1], (size_t)work->bytes);
}

static TenonCode copy(const TenonCopyArgs* args) {
  const TenonPlace places[] = {args->destination, args->source};
  Work* work = new_work(places, 2, 0);
  if (work != NULL) {
    work->run = run_copy;
    work->bytes = args->bytes;
  }
  return give(args->device, work, args->error);
}

static void run_kernel(const Work* work) { work->kernel(work->places, work->scalars); }

static TenonCode launch(const TenonLaunchArgs* args) {
  const Module* module = (const Module*)(uintptr_t)args->module;
  Work* work = new_work(args->buffers, args->buffer_count, args->scalar_count);
  if (work != NULL) {
    work->run = run_kernel;
    work->stop = args->stop;
    work->kernel = module->kernels[args->kernel];
    for (size_t i = 0; i < args->scalar_count; ++i) work->scalars[i] = args->scalars[i];
  }
  return give(args->device, work, args->error);
}
/* [/give] */

/* [events] */
static TenonCode record(TenonDevice device, uint32_t queue, TenonEvent* event,
                        const TenonSink* error) {
  (void)queue;
  Event* made = calloc(1, sizeof *made);
  Work* work = made == NULL ? NULL : new_work(NULL, 0, 0);
  if (work != NULL) work->event = made;
  const TenonCode code = give(device, work, error);
  if (code == TENON_OK) {
    *event = (uintptr_t)made;
  } else {
    free(made);
  }
  return code;
}

/* There is one queue, and it is in order. */
static TenonCode wait_for(TenonDevice device, uint32_t queue, TenonEvent event,
                          const TenonSink* error) {
  (void)device, (void)queue, (void)event, (void)error;
  return TENON_OK;
}

static TenonCode await(TenonDevice handle, TenonEvent number, int64_t timeout,
                       TenonEventState* state, const TenonSink* error) {
  Device* device = device_of(handle);
  const Event* event = (const Event*)(uintptr_t)number;
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  const int64_t nanoseconds = until.tv_nsec + (timeout > 0 ? timeout % 1000000000 : 0);
  until.tv_sec += (timeout > 0 ? timeout / 1000000000 : 0) + nanoseconds / 1000000000;
  until.tv_nsec = nanoseconds % 1000000000;
  int late = timeout == 0;
  pthread_mutex_lock(&device->mutex);
  while (!event->done && !late) {
    if (timeout < 0) {
      pthread_cond_wait(&device->done, &device->mutex);
    } else {
      late = pthread_cond_timedwait(&device->done, &device->mutex, &until) != 0;
    }
  }
  const int done = event->done;
  const TenonCode code = event->code;
  pthread_mutex_unlock(&device->mutex);
  *state = !done ? TENON_EVENT_PENDING : code == TENON_OK ? TENON_EVENT_DONE : TENON_EVENT_ERROR;
  return code == TENON_OK ? code : fail(error, code, "the work was stopped");
}

static void release(TenonDevice handle, TenonEvent number) {
  Device* device = device_of(handle);
  Event* event = (Event*)(uintptr_t)number;
  pthread_mutex_lock(&device->mutex);
  event->released = 1;
  forget_event(event);
  pthread_mutex_unlock(&device->mutex);
}
/* [/events] */

#else
#if STEP >= 2
/* [copy] */
static TenonCode copy(const TenonCopyArgs* args) {
  memcpy(at(args->destination), at(args->source), (size_t)args->bytes);
  return TENON_OK;
}

/* All work is done when its call returns, so an event is only a number that was not used before.
 */
static TenonCode record(TenonDevice device, uint32_t queue, TenonEvent* event,
                        const TenonSink* error) {
  (void)queue, (void)error;
  *event = ++device_of(device)->events;
  return TENON_OK;
}

static TenonCode wait_for(TenonDevice device, uint32_t queue, TenonEvent event,
                          const TenonSink* error) {
  (void)device, (void)queue, (void)event, (void)error;
  return TENON_OK;
}

static TenonCode await(TenonDevice device, TenonEvent event, int64_t timeout,
                       TenonEventState* state, const TenonSink* error) {
  (void)device, (void)event, (void)timeout, (void)error;
  *state = TENON_EVENT_DONE;
  return TENON_OK;
}

static void release(TenonDevice device, TenonEvent event) { (void)device, (void)event; }
/* [/copy] */

#endif
#if STEP >= 3
/* [launch] */
static TenonCode launch(const TenonLaunchArgs* args) {
  const Module* module = (const Module*)(uintptr_t)args->module;
  void** buffers = malloc((args->buffer_count + 1) * sizeof *buffers);
  if (buffers == NULL) return fail(args->error, TENON_RESOURCE_EXHAUSTED, "no room for a launch");
  for (size_t i = 0; i < args->buffer_count; ++i) buffers[i] = at(args->buffers[i]);
  module->kernels[args->kernel](buffers, args->scalars);
  free(buffers);
  return TENON_OK;
}
/* [/launch] */

#endif
#endif
#if STEP >= 3
/* ---- The compiler ---- */

/* [compile] */
/* Files of one compilation, in a folder of its own. */
typedef struct Files {
  char folder[4000];
  char source[4096], object[4096], log[4096];
} Files;

static int make_files(Files* files) {
  const char* where = getenv("TMPDIR");
  snprintf(files->folder, sizeof files->folder, "%s/guide_XXXXXX", where == NULL ? "/tmp" : where);
  if (mkdtemp(files->folder) == NULL) return 0;
  snprintf(files->source, sizeof files->source, "%s/kernels.c", files->folder);
  snprintf(files->object, sizeof files->object, "%s/kernels.so", files->folder);
  snprintf(files->log, sizeof files->log, "%s/log", files->folder);
  return 1;
}

static void remove_files(const Files* files) {
  unlink(files->source);
  unlink(files->object);
  unlink(files->log);
  rmdir(files->folder);
}

static void write_to_file(void* context, const char* bytes, size_t count) {
  fwrite(bytes, 1, count, context);
}

/* Writes the whole file to the sink, or nothing. */
static int send_file(const char* path, const TenonSink* sink) {
  FILE* file = fopen(path, "re");
  if (file == NULL) return 0;
  fseek(file, 0, SEEK_END);
  const long size = ftell(file);
  rewind(file);
  char* bytes = size < 0 ? NULL : malloc((size_t)size + 1);
  const int read = bytes != NULL && fread(bytes, 1, (size_t)size, file) == (size_t)size;
  if (read) sink->write(sink->context, bytes, (size_t)size);
  free(bytes);
  fclose(file);
  return read;
}

/* [flags] */
#if STEP >= 7
/* When GCC 12 vectorizes a product of complex numbers, it contracts products and sums in spite of
 * -ffp-contract: kernels are therefore not vectorized. */
#define OPTIMIZED "-O3", "-march=native", "-fno-tree-vectorize"
#else
#define OPTIMIZED "-O1"
#endif
/* [/flags] */

static int run_compiler(const Files* files) {
  /* Only the kernel's fma is contracted (K8). */
  const char* command[] = {"cc",          "-std=c99", OPTIMIZED,     "-ffp-contract=off",
                           "-fPIC",       "-shared",  files->source, "-o",
                           files->object, "-lm",      NULL};
  posix_spawn_file_actions_t output;
  pid_t process;
  int status = -1;
  if (posix_spawn_file_actions_init(&output) != 0) return 0;
  if (posix_spawn_file_actions_addopen(&output, 1, files->log, O_WRONLY | O_CREAT, 0600) == 0 &&
      posix_spawn_file_actions_adddup2(&output, 1, 2) == 0 &&
      posix_spawnp(&process, command[0], &output, NULL, (char**)command, environ) == 0) {
    while (waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  }
  posix_spawn_file_actions_destroy(&output);
  return status == 0;
}

/* Every kernel can be compiled: the host has legalised it for the features of the target. */
static TenonCode compile(const TenonCompileArgs* args) {
  Files files;
  if (!make_files(&files)) {
    return fail(args->error, TENON_RESOURCE_EXHAUSTED, "no temporary folder can be made");
  }
  TenonCode code = TENON_OK;
  FILE* file = fopen(files.source, "we");
  if (file != NULL) {
    const TenonSink source = {sizeof source, file, write_to_file};
    code = host->render(args->kernels, args->kernel_count, TENON_C, 1, &source, args->error);
  }
  const int failed = file == NULL || ferror(file);
  if (file != NULL && (fclose(file) != 0 || failed) && code == TENON_OK) file = NULL;
  if (code == TENON_OK && file == NULL) {
    code = fail(args->error, TENON_RESOURCE_EXHAUSTED, "the kernels' source cannot be written");
  } else if (code == TENON_OK && !run_compiler(&files)) {
    code = fail(args->error, TENON_INTERNAL, "the C compiler refused:\n");
    send_file(files.log, args->error);
  } else if (code == TENON_OK && !send_file(files.object, args->binary)) {
    code = fail(args->error, TENON_RESOURCE_EXHAUSTED, "the kernels' code cannot be read");
  }
  remove_files(&files);
  return code;
}
/* [/compile] */

/* [load] */
static TenonCode load(const TenonLoadArgs* args, TenonModule* handle) {
  Files files;
  Module* module = calloc(1, sizeof *module);
  if (module == NULL || !make_files(&files)) {
    free(module);
    return fail(args->error, TENON_RESOURCE_EXHAUSTED, "no temporary folder can be made");
  }
  FILE* file = fopen(files.object, "we");
  if (file != NULL) {
    const int written = fwrite(args->binary, 1, args->binary_size, file) == args->binary_size;
    if ((fclose(file) == 0) & written) module->library = dlopen(files.object, RTLD_NOW);
  }
  remove_files(&files); /* The library stays mapped. */
  if (module->library != NULL) module->kernels = dlsym(module->library, "kernel_table");
  if (module->kernels == NULL) {
    const char* why = file == NULL ? NULL : dlerror();
    fail(args->error, TENON_INTERNAL, why == NULL ? "the kernels' code cannot be written" : why);
    if (module->library != NULL) dlclose(module->library);
    free(module);
    return TENON_INTERNAL;
  }
  add(&device_of(args->device)->modules, &module->link);
  *handle = (uintptr_t)module;
  return TENON_OK;
}
/* [/load] */

#endif
/* [calls] */
#if STEP >= 6
/* ---- Library calls ---- */

/* An element of an array of structs, which may be longer in a newer host (B1). */
static const void* element(const void* array, size_t index) {
  const char* at = array;
  while (index-- > 0) at += *(const size_t*)at;
  return at;
}

static int is_matrix(const TenonArrayInfo* array) {
  return strcmp(array->type, "f32") == 0 && array->rank == 2;
}

/* Whether it is a product of two matrices, neither transposed. */
static int is_product(const TenonCallInfo* call) {
  if (strcmp(call->kind, "contraction") != 0 || !is_matrix(call->operands) ||
      !is_matrix(element(call->operands, 1)) || !is_matrix(call->results)) {
    return 0;
  }
  for (size_t i = 0; i < call->attribute_count; ++i) {
    const TenonAttribute* a = element(call->attributes, i);
    const int lhs = strcmp(a->name, "lhs_contracting") == 0;
    const int rhs = strcmp(a->name, "rhs_contracting") == 0;
    const int fits = lhs || rhs ? a->count == 1 && a->values[0] == lhs : a->count == 0;
    if (!fits) return 0; /* A batch, another dimension, or an attribute of a later version. */
  }
  return 1;
}

/* Whether the call is the softmax of each row of a matrix: an idiom that Tenon recognizes (docs/idioms.md).
 * Composites that a program states come in the same way, by name. */
static int is_softmax(const TenonCallInfo* call) {
  const TenonComposite* composite = call->composite;
  if (composite == NULL || strcmp(composite->name, "tenon.softmax") != 0) return 0;
  const TenonCompositeAttribute* dimension = composite->attributes; /* The only one. */
  return is_matrix(call->operands) && composite->attribute_count == 1 && dimension->count == 1 &&
         dimension->integers != NULL && dimension->integers[0] == 1;
}

static TenonCode plan(const TenonPlanArgs* args) {
  TenonCallInfo call = {.size = sizeof call};
  const TenonCode code = host->describe_call(args->call, &call);
  if (code != TENON_OK) return fail(args->error, code, "the host cannot describe a call");
  const TenonArrayInfo* lhs = call.operands;
  Sizes sizes = {lhs->rank > 0 ? lhs->dims[0] : 0, 0, lhs->rank > 1 ? lhs->dims[1] : 0};
  if (is_product(&call)) {
    const TenonArrayInfo* rhs = element(call.operands, 1);
    sizes.inner = lhs->dims[1];
    sizes.columns = rhs->dims[1];
  } else if (!is_softmax(&call)) {
    return fail(args->error, TENON_UNIMPLEMENTED, "neither a product nor a softmax of f32 matrices");
  }
  args->plan->write(args->plan->context, (const char*)&sizes, sizeof sizes);
  return TENON_OK;
}

/* [multiply] */
#if STEP >= 7
/* Rows that one thread computes together, so that they share each load of a row of rhs. */
#define ROWS 4
#define ROWS_OF_A_PIECE 32

static void multiply_rows(const Work* work, int64_t row, int64_t count) {
  const int64_t inner = work->sizes.inner;
  const int64_t columns = work->sizes.columns;
  const float* lhs = (const float*)work->places[0] + row * inner;
  float* restrict result = (float*)work->places[2] + row * columns;
  memset(result, 0, (size_t)(count * columns) * sizeof *result);
  for (int64_t k = 0; k < inner; ++k) {
    const float* restrict rhs = (const float*)work->places[1] + k * columns;
    if (count == ROWS) {
      const float a = lhs[k], b = lhs[inner + k], c = lhs[2 * inner + k], d = lhs[3 * inner + k];
      for (int64_t j = 0; j < columns; ++j) {
        const float x = rhs[j];
        result[j] += a * x;
        result[columns + j] += b * x;
        result[2 * columns + j] += c * x;
        result[3 * columns + j] += d * x;
      }
    } else {
      for (int64_t i = 0; i < count; ++i) {
        const float a = lhs[i * inner + k];
        for (int64_t j = 0; j < columns; ++j) result[i * columns + j] += a * rhs[j];
      }
    }
  }
}

static void multiply_piece(void* context, size_t index) {
  const Work* work = context;
  const int64_t begin = (int64_t)index * ROWS_OF_A_PIECE;
  const int64_t left = work->sizes.rows - begin;
  const int64_t end = begin + (left < ROWS_OF_A_PIECE ? left : ROWS_OF_A_PIECE);
  for (int64_t row = begin; row < end; row += ROWS) {
    multiply_rows(work, row, end - row < ROWS ? end - row : ROWS);
  }
}

/* Threads would cost more than a small product. */
static void run_call(const Work* work) {
  const Sizes* sizes = &work->sizes;
  const size_t pieces = (size_t)((sizes->rows + ROWS_OF_A_PIECE - 1) / ROWS_OF_A_PIECE);
  if (sizes->rows * sizes->inner >= (1 << 22) / (sizes->columns + 1)) {
    host->parallel_for(pieces, multiply_piece, (void*)work);
  } else {
    for (size_t i = 0; i < pieces; ++i) multiply_piece((void*)work, i);
  }
}
#else
static void run_call(const Work* work) {
  const Sizes* sizes = &work->sizes;
  const float* lhs = work->places[0];
  float* result = work->places[2];
  memset(result, 0, (size_t)(sizes->rows * sizes->columns) * sizeof *result);
  for (int64_t i = 0; i < sizes->rows; ++i) {
    const float* rhs = work->places[1];
    for (int64_t k = 0; k < sizes->inner; ++k, rhs += sizes->columns) {
      for (int64_t j = 0; j < sizes->columns; ++j) {
        result[i * sizes->columns + j] += lhs[i * sizes->inner + k] * rhs[j];
      }
    }
  }
}
#endif
/* [/multiply] */

static void run_softmax(const Work* work) {
  const Sizes* sizes = &work->sizes;
  const float* x = work->places[0];
  float* y = work->places[2];
  for (int64_t i = 0; i < sizes->rows; ++i, x += sizes->columns, y += sizes->columns) {
    float most = x[0], sum = 0;
    for (int64_t j = 0; j < sizes->columns; ++j) most = x[j] > most || x[j] != x[j] ? x[j] : most;
    for (int64_t j = 0; j < sizes->columns; ++j) sum += y[j] = expf(x[j] - most);
    for (int64_t j = 0; j < sizes->columns; ++j) y[j] /= sum;
  }
}

static TenonCode call(const TenonCallArgs* args) {
  const TenonPlace places[] = {args->operands[0], args->operands[args->operand_count - 1],
                               args->results[0]};
  Work* work = new_work(places, 3, 0);
  if (work != NULL) {
    memcpy(&work->sizes, args->plan, sizeof work->sizes);
    work->run = work->sizes.inner == 0 ? run_softmax : run_call;
    work->stop = args->stop;
  }
  return give(args->device, work, args->error);
}

#endif
/* [/calls] */
/* [later] */
#if STEP < 3
/* ---- Functions of later steps ---- */

static TenonCode later(const TenonSink* error) {
  return fail(error, TENON_UNIMPLEMENTED, "this device cannot do that yet");
}

#if STEP < 2
static TenonCode copy(const TenonCopyArgs* args) { return later(args->error); }

static TenonCode record(TenonDevice device, uint32_t queue, TenonEvent* event,
                        const TenonSink* error) {
  (void)device, (void)queue, (void)event;
  return later(error);
}

static TenonCode wait_for(TenonDevice device, uint32_t queue, TenonEvent event,
                          const TenonSink* error) {
  (void)device, (void)queue, (void)event;
  return later(error);
}

static TenonCode await(TenonDevice device, TenonEvent event, int64_t timeout,
                       TenonEventState* state, const TenonSink* error) {
  (void)device, (void)event, (void)timeout, (void)state;
  return later(error);
}

static void release(TenonDevice device, TenonEvent event) { (void)device, (void)event; }

#endif
static TenonCode compile(const TenonCompileArgs* args) { return later(args->error); }

static TenonCode load(const TenonLoadArgs* args, TenonModule* module) {
  (void)module;
  return later(args->error);
}

static void unload(TenonDevice device, TenonModule module) { (void)device, (void)module; }

static TenonCode launch(const TenonLaunchArgs* args) { return later(args->error); }

#endif
/* [/later] */
/* [table] */
/* ---- The table ---- */

static const TenonBackend table = {
    .size = sizeof table,
    .abi_major = TENON_ABI_MAJOR,
    .abi_minor = TENON_ABI_MINOR,
    .name = "guide",
    .version = "1",
    .devices = devices,
    .open = open_device,
    .close = close_device,
    .allocate = allocate,
    .free = free_memory,
    .copy = copy,
    .record = record,
    .wait = wait_for,
    .await = await,
    .release = release,
    .compile = compile,
    .load = load,
    .unload = unload,
    .launch = launch,
#if STEP >= 6
    .plan = plan,
    .call = call,
#endif
};

const TenonBackend* tenon_plugin(const TenonHost* services, const TenonSink* error) {
#if STEP >= 3
  host = services;
#else
  (void)services;
#endif
  (void)error;
#if STEP >= 5
  pthread_once(&settings_read, read_settings);
#endif
  return &table;
}
/* [/table] */
