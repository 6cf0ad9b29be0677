/* Runs compiled programs by tenon/runtime.h: HOW PLUGIN FILE [ARGUMENTS RESULTS]. Reads the
 * arguments from a file, one after the other, and writes the results to another. How: `describe`,
 * `run`, `buffers` (each run takes buffers, twice), `donate`, `threads` (many runs at once),
 * `misuse` (every wrong call is an error, and a right one still works). */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/runtime.h>

static TenonRuntimeDevice* device;
static TenonRuntimeProgram* program;
static TenonRuntimeProgramInfo info;
static TenonRuntimeInput inputs[64];
static TenonRuntimeOutput outputs[64];

static void check(TenonRuntimeCode code, const TenonRuntimeError* error) {
  if (code == TENON_RUNTIME_OK) return;
  printf("error %d: %s\n", (int)code, error->text);
  exit(1);
}

static void expect(int condition, const char* text) {
  if (condition) return;
  printf("failed: %s\n", text);
  exit(3);
}

static const TenonRuntimeArray* array_at(const TenonRuntimeArray* arrays, size_t i) {
  return (const TenonRuntimeArray*)((const char*)arrays + i * info.array_size);
}

static void print_arrays(const char* what, const TenonRuntimeArray* arrays, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const TenonRuntimeArray* const array = array_at(arrays, i);
    printf("%s %s %s", what, array->name, array->type);
    for (size_t d = 0; d < array->rank; ++d) printf(" %lld", (long long)array->dims[d]);
    printf(", %zu bytes%s\n", array->bytes, array->donated ? ", donated" : "");
  }
}

static void describe(void) {
  TenonRuntimeError error = TENON_RUNTIME_ERROR;
  TenonRuntimeDeviceInfo about = {0};
  about.size = sizeof about;
  check(tenon_runtime_device_info(device, &about, &error), &error);
  printf("device %s of %s %s\n%s", about.name, about.backend, about.version, about.target);
  printf("program %s by %s\n", info.name, info.made_by);
  print_arrays("argument", info.arguments, info.argument_count);
  print_arrays("result", info.results, info.result_count);
}

static void read_arguments(const char* path) {
  FILE* const in = fopen(path, "rb");
  expect(in != NULL && info.argument_count <= 64 && info.result_count <= 64, "the files");
  for (size_t i = 0; i < info.argument_count; ++i) {
    const size_t bytes = array_at(info.arguments, i)->bytes;
    void* const data = malloc(bytes + 1);
    expect(fread(data, 1, bytes, in) == bytes, "the arguments");
    inputs[i].data = data;
    inputs[i].bytes = bytes;
  }
  fclose(in);
  for (size_t i = 0; i < info.result_count; ++i) {
    outputs[i].bytes = array_at(info.results, i)->bytes;
    outputs[i].data = malloc(outputs[i].bytes + 1);
  }
}

static void write_results(const char* path) {
  FILE* const out = fopen(path, "wb");
  expect(out != NULL, "the results");
  for (size_t i = 0; i < info.result_count; ++i) fwrite(outputs[i].data, 1, outputs[i].bytes, out);
  expect(fclose(out) == 0, "the results");
}

static void run_once(const TenonRuntimeOutput* results) {
  TenonRuntimeError error = TENON_RUNTIME_ERROR;
  check(tenon_runtime_run(program, inputs, info.argument_count, results, info.result_count, &error),
        &error);
}

static void run_on_buffers(uint32_t flags) {
  TenonRuntimeError error = TENON_RUNTIME_ERROR;
  TenonRuntimeBuffer* arguments[64];
  TenonRuntimeBuffer* results[64];
  for (size_t i = 0; i < info.argument_count; ++i) {
    check(tenon_runtime_upload(program, i, inputs[i], &arguments[i], &error), &error);
  }
  if (flags == 0) {  // The arguments are as they were for a second run.
    check(tenon_runtime_run_on_device(program, arguments, info.argument_count, results,
                                      info.result_count, flags, &error),
          &error);
    for (size_t i = 0; i < info.result_count; ++i) tenon_runtime_free(results[i]);
  }
  check(tenon_runtime_run_on_device(program, arguments, info.argument_count, results,
                                    info.result_count, flags, &error),
        &error);
  for (size_t i = 0; i < info.argument_count; ++i) {
    const uint8_t donated = array_at(info.arguments, i)->donated;
    const TenonRuntimeOutput back = {malloc(inputs[i].bytes + 1), inputs[i].bytes};
    const TenonRuntimeCode code = tenon_runtime_download(arguments[i], back, &error);
    if (flags != 0 && donated) {
      expect(code != TENON_RUNTIME_OK, "a donated buffer is empty");
    } else {
      check(code, &error);
      expect(memcmp(back.data, inputs[i].data, back.bytes) == 0, "an argument was changed");
    }
    free(back.data);
    tenon_runtime_free(arguments[i]);
  }
  for (size_t i = 0; i < info.result_count; ++i) {
    check(tenon_runtime_download(results[i], outputs[i], &error), &error);
    tenon_runtime_free(results[i]);
  }
}

static void* run_often(void* unused) {
  TenonRuntimeOutput own[64];
  for (size_t i = 0; i < info.result_count; ++i) {
    own[i].bytes = outputs[i].bytes;
    own[i].data = malloc(own[i].bytes + 1);
  }
  for (int turn = 0; turn < 20; ++turn) {
    run_once(own);
    for (size_t i = 0; i < info.result_count; ++i) {
      expect(memcmp(own[i].data, outputs[i].data, own[i].bytes) == 0, "a thread has other results");
    }
  }
  for (size_t i = 0; i < info.result_count; ++i) free(own[i].data);
  return unused;
}

static void run_on_threads(void) {
  pthread_t threads[8];
  run_once(outputs);
  for (int i = 0; i < 8; ++i) pthread_create(&threads[i], NULL, run_often, NULL);
  for (int i = 0; i < 8; ++i) pthread_join(threads[i], NULL);
}

static void misuse(const char* plugin, const char* file) {
  TenonRuntimeError error = TENON_RUNTIME_ERROR;
  TenonRuntimeOptions options = TENON_RUNTIME_OPTIONS;
  TenonRuntimeDevice* other = NULL;
  TenonRuntimeProgram* loaded = NULL;
  TenonRuntimeBuffer* buffer = NULL;
  const size_t arguments = info.argument_count;
  const size_t results = info.result_count;
  expect(arguments > 0 && results > 0, "a program with arguments and results");
#define FAILS(call, code, words)                                   \
  do {                                                             \
    error.text[0] = '\0';                                          \
    const TenonRuntimeCode got = (call);                           \
    if (got != (code) || strstr(error.text, words) == NULL) {      \
      printf("failed: %s: %d, %s\n", #call, (int)got, error.text); \
      exit(3);                                                     \
    }                                                              \
  } while (0)
  FAILS(tenon_runtime_open(NULL, &other, &error), TENON_RUNTIME_INVALID_ARGUMENT, "is null");
  FAILS(tenon_runtime_open(&options, &other, &error), TENON_RUNTIME_INVALID_ARGUMENT,
        "the plug-in is null");
  options.plugin = "/nowhere/libnone.so";
  FAILS(tenon_runtime_open(&options, &other, &error), TENON_RUNTIME_NOT_FOUND,
        "there is no plug-in /nowhere/libnone.so");
  options.plugin = file;
  FAILS(tenon_runtime_open(&options, &other, &error), TENON_RUNTIME_FAILED_PRECONDITION, file);
  options.plugin = plugin;
  options.device = 1000;
  FAILS(tenon_runtime_open(&options, &other, &error), TENON_RUNTIME_NOT_FOUND, "1000");
  options.device = 0;
  options.minor = 77;
  FAILS(tenon_runtime_open(&options, &other, &error), TENON_RUNTIME_FAILED_PRECONDITION,
        "version 1.77");
  options.minor = 0;
  options.time_limit = (uint64_t)-1;
  FAILS(tenon_runtime_open(&options, &other, &error), TENON_RUNTIME_INVALID_ARGUMENT, "time limit");
  FAILS(tenon_runtime_load(device, "TNCP", 4, &loaded, &error), TENON_RUNTIME_DATA_LOSS, "");
  FAILS(tenon_runtime_load(device, "x", 1, &loaded, &error), TENON_RUNTIME_INVALID_ARGUMENT, "");
  FAILS(tenon_runtime_load(device, NULL, 1, &loaded, &error), TENON_RUNTIME_INVALID_ARGUMENT,
        "is null");
  FAILS(tenon_runtime_load_file(device, "/nowhere/x.tncp", &loaded, &error),
        TENON_RUNTIME_NOT_FOUND, "/nowhere/x.tncp");
  FAILS(tenon_runtime_load_file(NULL, file, &loaded, &error), TENON_RUNTIME_INVALID_ARGUMENT,
        "the device is null");
  FAILS(tenon_runtime_run(program, inputs, arguments + 1, outputs, results, &error),
        TENON_RUNTIME_INVALID_ARGUMENT, "arguments");
  FAILS(tenon_runtime_run(program, inputs, arguments, outputs, results - 1, &error),
        TENON_RUNTIME_INVALID_ARGUMENT, "results");
  FAILS(tenon_runtime_run(program, NULL, arguments, outputs, results, &error),
        TENON_RUNTIME_INVALID_ARGUMENT, "is null");
  FAILS(tenon_runtime_run(NULL, inputs, arguments, outputs, results, &error),
        TENON_RUNTIME_INVALID_ARGUMENT, "the program is null");
  --inputs[0].bytes;
  FAILS(tenon_runtime_run(program, inputs, arguments, outputs, results, &error),
        TENON_RUNTIME_INVALID_ARGUMENT, "argument 0 is");
  FAILS(tenon_runtime_upload(program, 0, inputs[0], &buffer, &error),
        TENON_RUNTIME_INVALID_ARGUMENT, "argument 0 is");
  ++inputs[0].bytes;
  ++outputs[0].bytes;
  FAILS(tenon_runtime_run(program, inputs, arguments, outputs, results, &error),
        TENON_RUNTIME_INVALID_ARGUMENT, "result 0 is");
  --outputs[0].bytes;
  FAILS(tenon_runtime_upload(program, arguments, inputs[0], &buffer, &error),
        TENON_RUNTIME_INVALID_ARGUMENT, "there is no number");
  FAILS(tenon_runtime_download(NULL, outputs[0], &error), TENON_RUNTIME_INVALID_ARGUMENT,
        "the buffer is null");
  TenonRuntimeBuffer* none[64] = {0};
  TenonRuntimeBuffer* made[64] = {0};
  FAILS(tenon_runtime_run_on_device(program, none, arguments, made, results, 0, &error),
        TENON_RUNTIME_INVALID_ARGUMENT, "argument 0 is null");
  FAILS(tenon_runtime_run_on_device(program, none, arguments, made, results, 6, &error),
        TENON_RUNTIME_INVALID_ARGUMENT, "unknown flags 0x6");
  expect(other == NULL && loaded == NULL && buffer == NULL && made[0] == NULL, "an output was set");
  /* Errors may be null, short, or of a caller with fewer members. */
  expect(tenon_runtime_run(program, NULL, 0, NULL, 0, NULL) == TENON_RUNTIME_INVALID_ARGUMENT,
         "no error");
  error.size = offsetof(TenonRuntimeError, text) + 8;
  memset(error.text, 'z', sizeof error.text);
  tenon_runtime_run(NULL, inputs, arguments, outputs, results, &error);
  expect(memcmp(error.text, "the ...\0zz", 10) == 0, "a short text");
  TenonRuntimeProgramInfo little = {0};
  little.size = offsetof(TenonRuntimeProgramInfo, array_size);
  check(tenon_runtime_program_info(program, &little, NULL), &error);
  expect(strcmp(little.name, info.name) == 0 && little.arguments == NULL, "an older caller");
  expect(tenon_runtime_version() >> 16 == TENON_RUNTIME_MAJOR, "the version");
  tenon_runtime_free(NULL);
  tenon_runtime_unload(NULL);
  tenon_runtime_close(NULL);
  run_once(outputs);
}

int main(int argc, char** argv) {
  if (argc != 4 && argc != 6) return 2;
  TenonRuntimeError error = TENON_RUNTIME_ERROR;
  TenonRuntimeOptions options = TENON_RUNTIME_OPTIONS;
  options.plugin = argv[2];
  check(tenon_runtime_open(&options, &device, &error), &error);
  check(tenon_runtime_load_file(device, argv[3], &program, &error), &error);
  info.size = sizeof info;
  check(tenon_runtime_program_info(program, &info, &error), &error);
  if (strcmp(argv[1], "describe") == 0) describe();
  if (argc == 6) {
    read_arguments(argv[4]);
    if (strcmp(argv[1], "run") == 0) run_once(outputs);
    if (strcmp(argv[1], "buffers") == 0) run_on_buffers(0);
    if (strcmp(argv[1], "donate") == 0) run_on_buffers(TENON_RUNTIME_DONATE);
    if (strcmp(argv[1], "threads") == 0) run_on_threads();
    if (strcmp(argv[1], "misuse") == 0) misuse(argv[2], argv[3]);
    write_results(argv[5]);
  }
  /* In any order: the program keeps its device. */
  tenon_runtime_close(device);
  tenon_runtime_unload(program);
  for (size_t i = 0; i < 64; ++i) {
    free((void*)(size_t)inputs[i].data);
    free(outputs[i].data);
  }
  /* The device can be opened again. */
  check(tenon_runtime_open(&options, &device, &error), &error);
  tenon_runtime_close(device);
  return 0;
}
