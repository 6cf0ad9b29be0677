/* Runs files of `tenon compile` on a device: libtenon_runtime, pkg-config `tenon-runtime`
 * (docs/aot.md, "Other devices").
 *
 *   TenonRuntimeError error = TENON_RUNTIME_ERROR;
 *   TenonRuntimeOptions options = TENON_RUNTIME_OPTIONS;
 *   options.plugin = "/opt/npu/libnpu.so";
 *   TenonRuntimeDevice* device;
 *   TenonRuntimeProgram* program;
 *   if (tenon_runtime_open(&options, &device, &error) != TENON_RUNTIME_OK ||
 *       tenon_runtime_load_file(device, "model.tncp", &program, &error) != TENON_RUNTIME_OK) {
 *     fprintf(stderr, "%s\n", error.text);
 *     …
 *   }
 *   TenonRuntimeInput x = {samples, sizeof samples};
 *   TenonRuntimeOutput y = {scores, sizeof scores};
 *   tenon_runtime_run(program, &x, 1, &y, 1, &error);
 *
 * A device is a plug-in (docs/seam.md), a shared library, which this one opens. The library
 * compiles nothing: it has no compiler, and a file runs only on the backend, the version and the
 * target that it was compiled for. Files hold code of the device: load what you would run.
 *
 * Structs begin with their size, which the caller sets (the initialisers do); members are only
 * appended, and those beyond the size count as zero. (TenonRuntimeInput and TenonRuntimeOutput,
 * which never change, have no size.)
 *
 * Arrays are dense and row-major. An element takes the bytes of its type; one of less than a byte
 * takes a byte, a pred is a byte 0 or 1, a complex number is two floats.
 *
 * Errors are codes, with one sentence in `error`, which may be null. A call that fails has set no
 * output and changed nothing, but for results that were partly written. No call ends the process or
 * throws. A device that is lost answers TENON_RUNTIME_UNAVAILABLE: close it with all that is on it,
 * and open it again.
 *
 * Give up all handles before the process ends: the last one waits until the devices are closed, for
 * five seconds at most.
 *
 * Thread-safety: every function may be called from any thread, and several may run at once, also on
 * one program; a handle is given up by one call, after which it is not used. What a handle needs
 * lives as long as the handle, so that they may be given up in any order. A child process that was
 * forked uses no handle of its parent.
 */
#ifndef TENON_CORE_RUNTIME_LIBRARY_RUNTIME_H_
#define TENON_CORE_RUNTIME_LIBRARY_RUNTIME_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_RUNTIME_MAJOR 1
#define TENON_RUNTIME_MINOR 0

/* The numbers are those of PJRT_Error_Code. */
typedef enum TenonRuntimeCode {
  TENON_RUNTIME_OK = 0,
  TENON_RUNTIME_CANCELLED = 1,
  TENON_RUNTIME_UNKNOWN = 2,
  TENON_RUNTIME_INVALID_ARGUMENT = 3, /* An argument does not fit, or the bytes are no program. */
  TENON_RUNTIME_DEADLINE_EXCEEDED = 4,
  TENON_RUNTIME_NOT_FOUND = 5,      /* No such file, plug-in or device. */
  TENON_RUNTIME_ALREADY_EXISTS = 6, /* The device is open in this process already. */
  TENON_RUNTIME_PERMISSION_DENIED = 7,
  TENON_RUNTIME_RESOURCE_EXHAUSTED = 8,  /* No memory left, on the device or on the host. */
  TENON_RUNTIME_FAILED_PRECONDITION = 9, /* Compiled for another backend, version or target. */
  TENON_RUNTIME_ABORTED = 10,
  TENON_RUNTIME_OUT_OF_RANGE = 11,
  TENON_RUNTIME_UNIMPLEMENTED = 12, /* A step that needs a function of the host. */
  TENON_RUNTIME_INTERNAL = 13,
  TENON_RUNTIME_UNAVAILABLE = 14, /* The device is lost, or another process has it. */
  TENON_RUNTIME_DATA_LOSS = 15,   /* The file is damaged. */
  TENON_RUNTIME_UNAUTHENTICATED = 16
} TenonRuntimeCode;

/* A text that is too long ends with "...". */
typedef struct TenonRuntimeError {
  size_t size;
  char text[1016];
} TenonRuntimeError;
#define TENON_RUNTIME_ERROR {sizeof(TenonRuntimeError), {0}}

typedef struct TenonRuntimeDevice TenonRuntimeDevice;
typedef struct TenonRuntimeProgram TenonRuntimeProgram;
typedef struct TenonRuntimeBuffer TenonRuntimeBuffer;

/* The version of the library, major * 65536 + minor. It takes callers of its own major version and
 * of its own or an older minor one. */
uint32_t tenon_runtime_version(void);

/* ---- Devices ---- */

typedef struct TenonRuntimeOptions {
  size_t size;
  uint32_t major, minor; /* Those of this header. */
  const char* plugin;    /* The plug-in's file. */
  uint32_t device;       /* An index into its devices. */
  /* Milliseconds that a run may take before the device counts as lost; 0: any time. */
  uint64_t time_limit;
} TenonRuntimeOptions;
#define TENON_RUNTIME_OPTIONS \
  {sizeof(TenonRuntimeOptions), TENON_RUNTIME_MAJOR, TENON_RUNTIME_MINOR, NULL, 0, 0}

/* A device is open once in a process; waits up to five seconds for one that is being closed. */
TenonRuntimeCode tenon_runtime_open(const TenonRuntimeOptions* options, TenonRuntimeDevice** device,
                                    TenonRuntimeError* error);
/* Null is allowed. The device is closed when nothing on it is left. */
void tenon_runtime_close(TenonRuntimeDevice* device);

/* Texts are valid as long as the device. */
typedef struct TenonRuntimeDeviceInfo {
  size_t size;
  const char* name;    /* "npu:0" */
  const char* backend; /* "npu" */
  const char* version; /* Of the backend. */
  const char* target;  /* What `tenon compile --target-info` reads. */
} TenonRuntimeDeviceInfo;
TenonRuntimeCode tenon_runtime_device_info(const TenonRuntimeDevice* device,
                                           TenonRuntimeDeviceInfo* info, TenonRuntimeError* error);

/* ---- Programs ---- */

/* Reads a compiled program, which is checked, and puts its code and constants on the device. The
 * bytes are not used afterwards. */
TenonRuntimeCode tenon_runtime_load(TenonRuntimeDevice* device, const void* bytes, size_t size,
                                    TenonRuntimeProgram** program, TenonRuntimeError* error);
/* The file is mapped while it is read: it must not be made shorter meanwhile; another may take its
 * place. */
TenonRuntimeCode tenon_runtime_load_file(TenonRuntimeDevice* device, const char* path,
                                         TenonRuntimeProgram** program, TenonRuntimeError* error);
/* Null is allowed. */
void tenon_runtime_unload(TenonRuntimeProgram* program);

typedef struct TenonRuntimeArray {
  size_t size;
  const char* name; /* As the source has it, or "x0", "y0" … */
  const char* type; /* "f32", "bf16", "s8", "pred", "c64" … */
  const int64_t* dims;
  size_t rank;
  size_t bytes;
  uint8_t donated; /* Of an argument: whether a run may take its memory (TENON_RUNTIME_DONATE). */
} TenonRuntimeArray;

/* Texts and arrays are valid as long as the program. The elements of `arguments` and `results` are
 * `array_size` bytes apart. */
typedef struct TenonRuntimeProgramInfo {
  size_t size;
  const char* name;    /* Of the function. */
  const char* made_by; /* What compiled it: "tenon 0.1.0". */
  size_t array_size;
  const TenonRuntimeArray* arguments;
  size_t argument_count;
  const TenonRuntimeArray* results;
  size_t result_count;
} TenonRuntimeProgramInfo;
TenonRuntimeCode tenon_runtime_program_info(const TenonRuntimeProgram* program,
                                            TenonRuntimeProgramInfo* info,
                                            TenonRuntimeError* error);

/* ---- Runs on arrays of the host ---- */

typedef struct TenonRuntimeInput {
  const void* data;
  size_t bytes;
} TenonRuntimeInput;

typedef struct TenonRuntimeOutput {
  void* data;
  size_t bytes;
} TenonRuntimeOutput;

/* Runs the program on one array for each argument, and waits until the results are written. */
TenonRuntimeCode tenon_runtime_run(TenonRuntimeProgram* program, const TenonRuntimeInput* arguments,
                                   size_t argument_count, const TenonRuntimeOutput* results,
                                   size_t result_count, TenonRuntimeError* error);

/* ---- Runs on buffers, which stay on the device between runs ---- */

/* A buffer with an array for this argument of the program. It fits any program of the device with
 * an argument of this type and these sizes. */
TenonRuntimeCode tenon_runtime_upload(TenonRuntimeProgram* program, size_t argument,
                                      TenonRuntimeInput array, TenonRuntimeBuffer** buffer,
                                      TenonRuntimeError* error);
TenonRuntimeCode tenon_runtime_download(const TenonRuntimeBuffer* buffer, TenonRuntimeOutput array,
                                        TenonRuntimeError* error);
/* Null is allowed. */
void tenon_runtime_free(TenonRuntimeBuffer* buffer);

/* A flag of a run: arguments that are `donated` give their memory to results. After a run without
 * an error their buffers are empty, and can only be freed. */
#define TENON_RUNTIME_DONATE 1u

/* The same as tenon_runtime_run on buffers; makes a buffer for each result. */
TenonRuntimeCode tenon_runtime_run_on_device(TenonRuntimeProgram* program,
                                             TenonRuntimeBuffer* const* arguments,
                                             size_t argument_count, TenonRuntimeBuffer** results,
                                             size_t result_count, uint32_t flags,
                                             TenonRuntimeError* error);

#ifdef __cplusplus
}
#endif

#endif /* TENON_CORE_RUNTIME_LIBRARY_RUNTIME_H_ */
