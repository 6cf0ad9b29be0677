/* clang-format off */
/* The seam between Tenon and a device, as a stable C ABI.
 *
 * A plug-in is a shared library that exports one symbol, tenon_plugin, which returns a table of
 * functions. Fourteen functions of the table are required; the others may be null, and the host then
 * provides their defaults. A plug-in written in C++ implements backend.h instead and gets this table
 * from adapter.h; the two are equivalent. core/backend/interpreter is the smallest complete backend.
 *
 * Terms: the HOST is Tenon; the BACKEND is the plug-in; a QUEUE is a sequence of work on an open
 * device; an EVENT tells when work is done; a SINK takes bytes or text from the backend.
 *
 * THE RULES. Checks, conformance cases and messages cite them by number.
 *
 * Versions and structs
 *  B1  Every struct begins with its size in bytes as its writer knows it. A reader uses a member
 *      only if the size covers it; members are appended, never moved, and the comment of each states
 *      the version in which it appeared. An absent member counts as zero or null. In an array, the
 *      size of each struct is the distance to the next one. (TenonPlace, which never changes, has no
 *      size.)
 *  B2  tenon_plugin may be called any number of times and returns the same table. The table, and the
 *      data that it points to, live as long as the process. The plug-in exports no other symbol.
 *  B3  The backend states the ABI version that it was built for. The host loads a backend whose major
 *      version is its own and whose minor version is its own or older.
 *
 * Errors
 *  B4  A function that fails returns a code other than TENON_OK, has written one sentence to the text
 *      sink of its arguments, has set no output, and has changed nothing; only a failed copy or
 *      launch may have written a part of its destination.
 *  B5  No call ends the process, throws through the table, or writes to standard output. Every
 *      argument that the rules allow has a defined answer.
 *  B6  If work fails after it was accepted, the next event recorded on its queue fails, and no other
 *      event: that event is done with an error. The queue and the device stay usable.
 *
 * Threads and waiting
 *  B7  devices and compile may be called at any time, from several threads at once. open and close
 *      of one device, and load, unload, allocate, import_memory, map and free on it, are called one
 *      at a time. copy, launch, record, wait, fill and the like are called one at a time for each
 *      queue. await and release are called at any time from any thread. Apart from that, calls of
 *      these groups may overlap.
 *  B8  Only await, open, close, compile and load may wait for long. The other functions may wait for
 *      work given before (those of queues also for room in the queue), or may do the work before they
 *      return; none of them waits for the host.
 *
 * Devices
 *  B9  devices opens nothing and reports the same devices with the same TargetInfo in every call.
 *  B10 Handles (device, module, memory, event) are numbers that the backend chooses, never 0. A
 *      handle is valid from the call that returned it until close, unload, free or release is called
 *      with it.
 *  B11 A device is open at most once at a time. close ends the work of all queues, done or not, and
 *      frees everything of the device that has not been freed; the host makes no other call for the
 *      device meanwhile.
 *  B12 Once a device is lost, every function for it returns TENON_UNAVAILABLE at once, and every
 *      event that is not done becomes done with that code; close, free, unload and release succeed
 *      and never wait. After close, open brings the device back, or fails with the same code.
 *      An open device returns that code for no other reason. A lost device accesses no host memory.
 *
 * Compiling and loading
 *  B13 compile needs no open device, and its result depends only on its arguments and compiler_id. It
 *      is all or nothing: it writes bytes to the binary sink and declines no kernel, or it declines
 *      some kernels, each by its index, a reason and text, and writes no bytes. Whether it takes a
 *      kernel may depend on the other kernels of the call.
 *  B14 A binary of compile may be loaded in another process with the same compiler_id and TargetInfo.
 *      load gets the kernels again, in the same order; a kernel is launched by its index there.
 *  B15 Kernels and binaries are valid until the call returns; the backend copies what it keeps.
 *
 * Memory
 *  B16 allocate returns at least the requested bytes, which are more than 0, with the alignment of the
 *      space and any contents. When there is no room it returns TENON_RESOURCE_EXHAUSTED.
 *  B17 A place in device memory is (handle, offset), never a pointer; offset + bytes lies within the
 *      allocation. Offsets of buffers are multiples of the space's alignment.
 *  B18 The host frees memory only when no work that uses it is left.
 *  B19 The host memory of a copy stays valid until an event recorded after the copy is done; until
 *      then the host does not change a source, and does not touch a destination. The two ends of a
 *      copy do not overlap; a copy of 0 bytes is not requested.
 *
 * Work
 *  B20 Work given to one queue takes effect as if done in the order in which it was given; each piece
 *      of work sees the effects of all earlier ones. Only wait orders work of different queues.
 *  B21 A launch gives each buffer of the kernel a place with as many bytes as the kernel's buffer
 *      has, and each scalar its bits, extended to 64. Buffers overlap only where the kernel declares
 *      it (K4). The label may be shown to people.
 *  B22 The same binary on the same bytes gives the same bytes, in every run.
 *  B23 record returns an event that is done when all work given to the queue before is done. Its error
 *      is the first error of the work given since the last record on the queue (B6).
 *  B24 wait makes work given to the queue later wait for an event of the same device. An error of
 *      that event is not passed on to the waiting queue: the host checks each event.
 *  B25 await reports whether an event is pending, done, or done with an error, after waiting for at
 *      most `timeout` nanoseconds; 0 asks without waiting, less than 0 waits without limit. Its
 *      answer for a done event never changes.
 *  B26 release may be called before the event is done, and ends only the handle.
 *  B27 A backend that shares the host's process polls the `stop` of its launch or call, if that has
 *      one, at each backward jump of a while loop, and ends the work with TENON_CANCELLED once it is
 *      not 0. Other loops end by themselves; it may poll there too.
 *
 * Memory that host and device share
 *  B28 import_memory makes host bytes a memory of the device, without a copy. The host keeps them
 *      valid and unchanged until free or close has returned, or the device is lost (B12); free ends
 *      only the handle. Work only reads them. They need not have the alignment of the space: the
 *      backend declines bytes that it cannot use in place.
 *  B29 The pointer that map returns is to the memory itself, valid until free or close. The results of
 *      work are visible through it once an event recorded after the work is done. The host reads
 *      through it only while no work writes the memory. In a space that is host_writable it also
 *      writes, only while no work uses the memory; work given afterwards sees what it wrote.
 *
 * Thread-safety of the host's services (TenonHost): all may be called from any thread at any time.
 */
/* clang-format on */
#ifndef TENON_CORE_BACKEND_PLUGIN_H_
#define TENON_CORE_BACKEND_PLUGIN_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_ABI_MAJOR 1
#define TENON_ABI_MINOR 8

/* The numbers are those of PJRT_Error_Code. */
typedef enum TenonCode {
  TENON_OK = 0,
  TENON_CANCELLED = 1,
  TENON_UNKNOWN = 2,
  TENON_INVALID_ARGUMENT = 3,
  TENON_DEADLINE_EXCEEDED = 4,
  TENON_NOT_FOUND = 5,
  TENON_ALREADY_EXISTS = 6,
  TENON_PERMISSION_DENIED = 7,
  TENON_RESOURCE_EXHAUSTED = 8,
  TENON_FAILED_PRECONDITION = 9,
  TENON_ABORTED = 10,
  TENON_OUT_OF_RANGE = 11,
  TENON_UNIMPLEMENTED = 12,
  TENON_INTERNAL = 13,
  TENON_UNAVAILABLE = 14, /* The open device is lost (B12). */
  TENON_DATA_LOSS = 15,
  TENON_UNAUTHENTICATED = 16
} TenonCode;

typedef uint64_t TenonDevice;
typedef uint64_t TenonModule;
typedef uint64_t TenonMemory;
typedef uint64_t TenonEvent;

/* Takes bytes, in one or more calls, until the call that got the sink returns. Text is UTF-8. */
typedef struct TenonSink {
  size_t size;
  void* context;
  void (*write)(void* context, const char* bytes, size_t count);
} TenonSink;

/* ---- Description of a device (docs/backend-guide.md says how the host uses each member) ---- */

/* Element types are named as in the text of kernels: "f32", "bf16", "s8", "pred" … */
typedef struct TenonTypeInfo {
  size_t size;
  const char* type;
  uint8_t computed;  /* Operations on it; bytes of every type can be loaded and stored. */
  uint8_t atomics;   /* Integer atomics on it. */
  uint8_t denormals; /* For floats: denormals are kept, not flushed to zero. */
  /* For f16 and bf16: it converts them to and from f32, to nearest even, with denormals kept;
   * kernels then have these conversions, and bitcasts from and to u16. Since 1.5; of 64 bits, so
   * that it is no padding of older releases. */
  uint64_t converted;
} TenonTypeInfo;

/* A math function of the kernel IR that the device has, with its maximum error; kernels have no
 * function that it does not list. "erf" and "erfc" are functions since 1.6: no kernel that an older
 * plug-in gets has them. */
typedef struct TenonMathInfo {
  size_t size;
  const char* function; /* "exp" */
  const char* type;     /* "f32" */
  double ulp;           /* 0: the same bits as the shared expansion. */
} TenonMathInfo;

typedef enum TenonSpaceKind { TENON_SPACE_DEVICE = 0, TENON_SPACE_PINNED_HOST = 1 } TenonSpaceKind;

typedef struct TenonSpaceInfo {
  size_t size;
  TenonSpaceKind kind;
  uint8_t reachable;    /* By kernels. */
  uint8_t host_visible; /* map gives the host a pointer to it. */
  int64_t bytes;        /* Total; 0: unknown. */
  int64_t alignment;    /* Alignment of allocations and of buffers in them: a power of two. */
  /* The host may write through the pointer of map, too (B29). Since 1.7; 0: it only reads. */
  uint8_t host_writable;
} TenonSpaceInfo;

/* Features of kernels that the device supports; the host legalises kernels for them. */
typedef enum TenonForm {
  TENON_FORM_FMA = 1 << 0,            /* fma that rounds once. */
  TENON_FORM_TILES = 1 << 1,          /* copy and contract statements. */
  TENON_FORM_SCANS = 1 << 2,          /* scan statements. */
  TENON_FORM_PRIVATE_MEMORY = 1 << 3, /* private memory. */
  TENON_FORM_DIMENSIONS = 1 << 4,     /* Memory of several dimensions. */
  TENON_FORM_AS_WRITTEN = 1 << 5      /* Everything: kernels are not legalised at all. */
} TenonForm;

/* A value of TenonTargetInfo::scratch_bytes: workgroups have no memory of their own, so no kernel
 * uses any. Since 1.4. */
#define TENON_NO_SCRATCH (-1)

typedef struct TenonTargetInfo {
  size_t size;
  const char* name; /* Name of the kind of device: "chip", "sm_90". */
  const char*
      compiler_id; /* Changes whenever compile would give other bytes for the same kernels. */
  const TenonTypeInfo* types;
  size_t type_count; /* pred, s32, u32 and f32 are computed even if not listed. */
  const TenonMathInfo* math;
  size_t math_count;
  uint64_t forms;          /* TenonForm */
  int64_t compute_units;   /* Workgroups that run at the same time; 0: 1. */
  int64_t preferred_lanes; /* Lanes of a workgroup; 0: 1. */
  int64_t most_lanes;      /* 0: no bound. */
  int64_t vector_bytes;    /* Width of one access, or of a register; 0: that of an element. */
  int64_t scratch_bytes;   /* Bytes for a workgroup; 0: the host's own choice of 48 KiB.
                              TENON_NO_SCRATCH: none. */
  int64_t private_bytes;   /* Bytes for a lane; 0: no bound. */
  int64_t most_parameters; /* Bound on a kernel's buffers and scalars; 0: no bound. */
  int64_t largest_buffer;  /* In bytes; 0: no bound. */
  const TenonSpaceInfo* spaces;
  size_t space_count; /* Buffers lie in spaces[0]. At least 1. */
  /* 0: 1. With more, copies between host and device have queues of their own. */
  uint32_t queues;
  /* Costs, for the choice of schedules; 0: unknown. */
  double flops;            /* f32 operations per second. */
  double bytes_per_second; /* Bandwidth of spaces[0]. */
  double launch_seconds;
  double copy_seconds; /* Not read. */
  /* Tuning parameters that the vendor sets, one per line: "tile_k = 64". `tenon schedules` lists
     their names; null: none. Since 1.2. */
  const char* tuning;
  /* Rows and columns, one loop each, from which contractions of integers of 8 bits, and of 16, into
     sums of 32 are faster than of f32: then they reach `plan`, with factors of one type each (s8,
     u8 or s16; numbers of 9 bits, and bytes of different signs, as s16). Else the host computes
     them in f32 where that is exact. 0: never. Since 1.8. */
  int64_t narrow_products;
  /* Those of 8 bits are several times as fast as those of 16: the host subtracts zero points behind
     a product, not before it. Of 64 bits, so that it is no padding of other releases. Since 1.8. */
  uint64_t byte_products;
} TenonTargetInfo;

typedef struct TenonDeviceInfo {
  size_t size;
  const char* name; /* "chip:0" */
  const TenonTargetInfo* target;
} TenonDeviceInfo;

/* ---- Kernels ---- */

typedef struct TenonKernel TenonKernel; /* Owned by the host; see TenonHost. */

typedef enum TenonReason {
  TENON_TOO_MUCH_SCRATCH = 1,
  TENON_TOO_MUCH_PRIVATE = 2,
  TENON_TOO_MANY_PARAMETERS = 3,
  TENON_TOO_MUCH_CODE = 4,
  TENON_NO_SUCH_OPERATION = 5,
  TENON_NO_SUCH_TYPE = 6,
  TENON_OTHER_REASON = 7
} TenonReason;

/* ---- Services of the host ---- */

typedef enum TenonLanguage { TENON_C = 0, TENON_OPENCL = 1, TENON_CUDA = 2 } TenonLanguage;

typedef struct TenonBufferInfo {
  size_t size;
  const char* type;
  int64_t bytes;
  uint8_t reads;
  uint8_t writes;
} TenonBufferInfo;

typedef struct TenonKernelInfo {
  size_t size;
  const char* name;  /* Name of its function in rendered source: the kernel's, or a
                        similar one if that is reserved in one of the languages. */
  const char* label; /* Source of the kernel: op names and locations. */
  const TenonBufferInfo* buffers;
  size_t buffer_count;
  size_t scalar_count;
  const int64_t* grid;
  size_t grid_rank;
} TenonKernelInfo;

/* How a compiler wants its source (core/kernel/render/render.h). Since 1.5. */
typedef struct TenonRenderOptions {
  size_t size;
  TenonLanguage language;
  int64_t lanes;        /* Of a workgroup, in languages that have them; 0: 128. */
  int64_t vector_bytes; /* The width of the vectors that its compiler makes; 0: none. */
  uint32_t
      offset_bits;   /* 32 or 64: a buffer is an allocation and an offset in bytes; 0: a pointer. */
  uint8_t fit_lanes; /* Small kernels have fewer lanes: a power of two. */
  uint8_t stop;      /* The last parameter is the word that while loops poll (B27). */
  uint8_t rename;    /* Kernels of one name get names of their own; else they are an error. */
} TenonRenderOptions;

/* How to launch a function of rendered source. Since 1.5. */
typedef struct TenonRenderedKernel {
  size_t size;
  const char* function;
  int64_t workgroups; /* At least; more do nothing. */
  int64_t lanes;      /* Exactly. */
} TenonRenderedKernel;

/* A library call (core/program/library_call.h): owned by the host, valid until the function that
 * got it returns. */
typedef struct TenonCall TenonCall;

/* Dense, row-major. */
typedef struct TenonArrayInfo {
  size_t size;
  const char* type;
  const int64_t* dims;
  size_t rank;
  uint8_t constant; /* The same bytes in each run; it may be packed once. */
} TenonArrayInfo;

/* An attribute of the call; a number, flag or word has one value. A backend must decline calls with
 * attributes that it does not know. */
typedef struct TenonAttribute {
  size_t size;
  const char* name; /* "lhs_contracting" */
  const int64_t* values;
  size_t count;
} TenonAttribute;

/* An attribute of a composite: `integers` (a flag is 0 or 1), `reals`, or `text`, which is also the
 * form of attributes of any other kind; the other two are null. For an empty list all are null. */
typedef struct TenonCompositeAttribute {
  size_t size;
  const char* name; /* "dimension" */
  const int64_t* integers;
  const double* reals;
  const char* text;
  size_t count; /* Of integers or reals. */
} TenonCompositeAttribute;

/* A named op with a decomposition, which the host runs instead if the backend declines the call: an
 * idiom that the host recognizes (docs/idioms.md), or a composite that the program states. */
typedef struct TenonComposite {
  size_t size;
  const char* name; /* "tenon.softmax", "vendor.flash_attention" */
  int64_t version;
  const TenonCompositeAttribute* attributes;
  size_t attribute_count;
} TenonComposite;

typedef struct TenonCallInfo {
  size_t size;
  const char* kind; /* "contraction" */
  const TenonArrayInfo* operands;
  size_t operand_count;
  const TenonArrayInfo* results;
  size_t result_count;
  const TenonAttribute* attributes;
  size_t attribute_count;
  const TenonComposite* composite; /* For the kind "composite", else null. Since 1.3. */
} TenonCallInfo;

/* A part of a program (core/program/segment.h); valid as long as a TenonCall. */
typedef struct TenonSegment TenonSegment;

typedef struct TenonHost {
  size_t size;
  uint32_t abi_major, abi_minor;
  /* The description is valid until the function that got the kernel returns. */
  TenonCode (*describe)(const TenonKernel* kernel, TenonKernelInfo* info);
  /* Source of kernels for a compiler of a C-like language (core/kernel/render/render.h): one
   * function per kernel, named by TenonKernelInfo, whose parameters are pointers to the buffers and
   * then the scalars. In C, a table holds a function of one signature for each of `kernels`, in
   * order: void (*const kernel_table[])(void* const* buffers, const uint64_t* scalars). `lanes` is
   * the number of lanes of a workgroup, in languages that have them. Launch the grid of
   * TenonKernelInfo. Errors: a kernel that the language cannot express. */
  TenonCode (*render)(const TenonKernel* const* kernels, size_t count, TenonLanguage language,
                      int64_t lanes, const TenonSink* source, const TenonSink* error);
  /* The kernel as text (docs/kernel-ir.md), and in its serial form. */
  void (*print)(const TenonKernel* kernel, const TenonSink* text);
  void (*serialize)(const TenonKernel* kernel, const TenonSink* bytes);
  /* Writes a line to the host's log: for unusual conditions, not for normal operation. */
  void (*log)(const char* text);
  /* Calls body(context, i) for 0 <= i < count on the host's threads; returns when all are done. */
  void (*parallel_for)(size_t count, void (*body)(void* context, size_t index), void* context);
  /* The description is valid until the function that got the library call returns. */
  TenonCode (*describe_call)(const TenonCall* call, TenonCallInfo* info);
  /* Write the serial forms. */
  void (*serialize_call)(const TenonCall* call, const TenonSink* bytes);
  void (*serialize_segment)(const TenonSegment* segment, const TenonSink* bytes);
  /* Since 1.5. As render, with options; `rendered` is called for each kernel in order, once the
   * source has been written, and may be null. */
  TenonCode (*render_as)(const TenonKernel* const* kernels, size_t count,
                         const TenonRenderOptions* options, const TenonSink* source, void* context,
                         void (*rendered)(void* context, size_t kernel,
                                          const TenonRenderedKernel* how),
                         const TenonSink* error);
} TenonHost;

/* ---- Functions of a backend ---- */

typedef struct TenonCompileArgs {
  size_t size;
  const TenonTargetInfo* target;
  const TenonKernel* const* kernels; /* Legal for the target. */
  size_t kernel_count;
  const TenonSink* binary;
  void* declined_context;
  void (*declined)(void* context, size_t kernel, TenonReason reason, const char* text);
  const TenonSink* error;
} TenonCompileArgs;

typedef struct TenonLoadArgs {
  size_t size;
  TenonDevice device;
  const char* binary;
  size_t binary_size;
  const TenonKernel* const* kernels;
  size_t kernel_count;
  const TenonSink* error;
} TenonLoadArgs;

/* An address in device memory, or in host memory if `memory` is 0. */
typedef struct TenonPlace {
  TenonMemory memory;
  int64_t offset;
  void* host;
} TenonPlace;

typedef struct TenonCopyArgs {
  size_t size;
  TenonDevice device;
  uint32_t queue;
  TenonPlace destination;
  TenonPlace source;
  int64_t bytes;
  const TenonSink* error;
} TenonCopyArgs;

typedef struct TenonLaunchArgs {
  size_t size;
  TenonDevice device;
  uint32_t queue;
  TenonModule module;
  uint32_t kernel;
  const TenonPlace* buffers;
  size_t buffer_count;
  const uint64_t* scalars;
  size_t scalar_count;
  const char* label;
  const volatile uint32_t* stop; /* Null, or what B27 polls. */
  const TenonSink* error;
} TenonLaunchArgs;

/* An array to copy between two places; each dimension has its own stride in bytes on either side.
 */
typedef struct TenonBox {
  size_t size;
  int64_t element_bytes;
  size_t rank;
  const int64_t* sizes;
  const int64_t* destination_strides;
  const int64_t* source_strides;
} TenonBox;

typedef struct TenonPlanArgs {
  size_t size;
  const TenonTargetInfo* target;
  const TenonCall* call;
  const TenonSink* plan;    /* Its bytes are passed to each call. */
  int64_t* workspace_bytes; /* 0, unless the backend sets it. */
  int64_t* packed_bytes;    /* For each operand; 0, not packed, unless the backend sets it. */
  double* seconds;          /* 0: unknown. */
  const TenonSink* error;   /* The reason if it is declined. */
} TenonPlanArgs;

typedef struct TenonCallArgs {
  size_t size;
  TenonDevice device;
  uint32_t queue;
  const char* plan; /* Valid until the work is done. */
  size_t plan_size;
  const TenonPlace* operands; /* Constants that the plan packs are in their packed form. */
  size_t operand_count;
  const TenonPlace* results;
  size_t result_count;
  TenonPlace workspace;
  const char* label;
  const volatile uint32_t* stop;
  const TenonSink* error;
} TenonCallArgs;

typedef struct TenonPackArgs {
  size_t size;
  TenonDevice device;
  uint32_t queue;
  const char* plan; /* Valid until the work is done. */
  size_t plan_size;
  uint32_t operand;
  TenonPlace destination;
  TenonPlace source;
  const TenonSink* error;
} TenonPackArgs;

typedef struct TenonSegmentArgs {
  size_t size;
  const TenonTargetInfo* target;
  const TenonSegment* segment;
  const TenonSink* binary;
  const TenonSink* error;
} TenonSegmentArgs;

typedef enum TenonEventState {
  TENON_EVENT_PENDING = 0,
  TENON_EVENT_DONE = 1,
  TENON_EVENT_ERROR = 2
} TenonEventState;

typedef struct TenonBackend {
  size_t size;
  uint32_t abi_major, abi_minor;
  const char* name;    /* Lower case, one word; used in --device and TENON_DEVICE. */
  const char* version; /* Version of the backend, for people. */

  /* Calls found(context, info) for each device, in an order that does not change. */
  TenonCode (*devices)(void* context, void (*found)(void* context, const TenonDeviceInfo* info),
                       const TenonSink* error);
  TenonCode (*open)(size_t index, TenonDevice* device, const TenonSink* error);
  void (*close)(TenonDevice device);
  TenonCode (*compile)(const TenonCompileArgs* args);
  TenonCode (*load)(const TenonLoadArgs* args, TenonModule* module);
  void (*unload)(TenonDevice device, TenonModule module);
  TenonCode (*allocate)(TenonDevice device, uint32_t space, int64_t bytes, TenonMemory* memory,
                        const TenonSink* error);
  void (*free)(TenonDevice device, TenonMemory memory);
  TenonCode (*copy)(const TenonCopyArgs* args);
  TenonCode (*launch)(const TenonLaunchArgs* args);
  TenonCode (*record)(TenonDevice device, uint32_t queue, TenonEvent* event,
                      const TenonSink* error);
  TenonCode (*wait)(TenonDevice device, uint32_t queue, TenonEvent event, const TenonSink* error);
  /* With the state ERROR, the code and text are the event's; else they are the call's, and the host
   * asks again. */
  TenonCode (*await)(TenonDevice device, TenonEvent event, int64_t timeout, TenonEventState* state,
                     const TenonSink* error);
  void (*release)(TenonDevice device, TenonEvent event);

  /* ---- Optional: if null, the host uses the functions above instead ---- */

  /* Fills with copies of `pattern`, of 1, 2, 4 or 8 bytes that divide `bytes`; `pattern` is read
   * before the call returns. If null: the host copies. */
  TenonCode (*fill)(TenonDevice device, uint32_t queue, TenonPlace destination, int64_t bytes,
                    const void* pattern, size_t pattern_bytes, const TenonSink* error);
  /* The host's pointer to memory of a host-visible space, until free or close (B29). If null: the
   * host uses no pointers. */
  TenonCode (*map)(TenonDevice device, TenonMemory memory, void** host, const TenonSink* error);
  /* The time of a done event, in seconds from a point that is fixed while the device is open. If
   * null: the host's clock when await answers. */
  TenonCode (*event_time)(TenonDevice device, TenonEvent event, double* seconds,
                          const TenonSink* error);
  /* Makes the device lost (B12) in any state: waiting calls return, its work ends. Called at any
   * time, from any thread. If null: a device that hangs is closed when its calls have returned. */
  TenonCode (*abort)(TenonDevice device, const TenonSink* error);
  /* Copies a strided array between device and host or on the device; the places are those of the
   * first element. If null: the host makes the array dense before a copy. */
  TenonCode (*copy_box)(TenonDevice device, uint32_t queue, TenonPlace destination,
                        TenonPlace source, const TenonBox* box, const TenonSink* error);
  /* Whether and how the backend runs a library call; called like compile, at any time.
   * TENON_UNIMPLEMENTED declines. If null: kernels. A backend with plan has call and pack too. */
  TenonCode (*plan)(const TenonPlanArgs* args);
  TenonCode (*call)(const TenonCallArgs* args);
  /* Writes the packed form of an operand. */
  TenonCode (*pack)(const TenonPackArgs* args);
  /* Like compile: writes a binary with one kernel that runs a whole part of a program, including
   * loops and branches. TENON_UNIMPLEMENTED declines. Its buffers are the memories of the program:
   * parameters, results, constants, each by its index, and the block of temporaries if there is
   * one. Calls that plan() took may be among its steps. It is loaded with no kernels, and launched
   * like any other. If null: the host runs the steps one by one. */
  TenonCode (*compile_segment)(const TenonSegmentArgs* args);
  /* Calls found for statistics of the device, for people. If null: the host's own. */
  TenonCode (*statistics)(TenonDevice device, void* context,
                          void (*found)(void* context, const char* name, double value),
                          const TenonSink* error);
  /* Since 1.1. Makes the `bytes` from `host` on, more than 0, a memory of the space (B28).
   * TENON_INVALID_ARGUMENT and TENON_RESOURCE_EXHAUSTED decline this one, TENON_UNIMPLEMENTED also
   * all later ones. If null or declined: the host copies. */
  TenonCode (*import_memory)(TenonDevice device, uint32_t space, const void* host, int64_t bytes,
                             TenonMemory* memory, const TenonSink* error);
  /* Since 1.4. Like compile, but writes the source that the device's compiler gets to `binary`, for
   * people. If null: what compile had rendered by TenonHost::render, or TENON_UNIMPLEMENTED. */
  TenonCode (*source)(const TenonCompileArgs* args);
  /* Since 1.5. For a done event, the time at which the work between it and the event before it in
   * its queue began, by the clock of event_time. If null: traces suppose that it began when it was
   * given, or when the work before it was done. */
  TenonCode (*event_start)(TenonDevice device, TenonEvent event, double* seconds,
                           const TenonSink* error);
} TenonBackend;

/* The symbol that a plug-in exports. `host` lives as long as the process. Returns null, after
 * writing a text to `error`, if the backend cannot start at all. */
const TenonBackend* tenon_plugin(const TenonHost* host, const TenonSink* error);
typedef const TenonBackend* (*TenonPluginFunction)(const TenonHost* host, const TenonSink* error);
#define TENON_PLUGIN_SYMBOL "tenon_plugin"

#ifdef __cplusplus
}
#endif

#endif /* TENON_CORE_BACKEND_PLUGIN_H_ */
