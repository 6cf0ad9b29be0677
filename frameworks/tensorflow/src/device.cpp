// frameworks/tensorflow/: the Python package `tenon-tensorflow`, TensorFlow on Tenon's devices.
// frameworks/tensorflow/src/: TensorFlow's device "TENON", a library that TensorFlow loads.
//
// A next pluggable device (TFNPD): TensorFlow asks TFNPD_InitPlugin what the device is and
// GetPjrtApi for the table of Tenon's PJRT plug-in, and from then on calls that table. Two C++
// functions of TensorFlow make the client; no header of its wheel declares them in a form that
// compiles. The library therefore fits the one version of TensorFlow that it is compiled with, and
// says so to others.
//
// Thread-safety: tenon_tf_configure before the library is given to TensorFlow; TensorFlow calls the
// rest.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/c/kernels.h"
#include "tensorflow/core/common_runtime/next_pluggable_device/c/plugin_c_api.h"
#include "xla/tsl/framework/device_type.h"

// Declared as TensorFlow defines them; xla/pjrt/pjrt_client.h includes headers of MLIR, which the
// wheel lacks.
namespace xla {

class PjRtClient {
 public:
  virtual ~PjRtClient() = default;
};
class KeyValueStoreInterface;
using PjRtValueType = std::variant<std::string, bool, int64_t, std::vector<int64_t>, float>;

absl::StatusOr<std::unique_ptr<PjRtClient>> GetCApiClient(
    std::string_view device_type,
    const absl::flat_hash_map<std::string, PjRtValueType>& create_options,
    std::shared_ptr<KeyValueStoreInterface> key_value_store);

}  // namespace xla

namespace tensorflow {

absl::Status SetPjRtClientInTFGlobalResourceManager(const tsl::DeviceType& type,
                                                    std::unique_ptr<xla::PjRtClient> client);

}  // namespace tensorflow

namespace {

constexpr const char* kDeviceType = "TENON";
// The name under which TensorFlow knows which ops XLA compiles; its table has none for further
// devices. With that of GPUs the wheel for CPUs alone has no convolutions.
constexpr const char* kCompilationDevice = "XLA_CPU_JIT";

struct Configuration {
  std::string library;          // Tenon's PJRT plug-in.
  std::string device;           // Of Tenon; empty: TENON_DEVICE, else the plug-in's default.
  std::string compile_options;  // Fields of CompileOptionsProto, which follow TensorFlow's.
};

Configuration& configuration() {
  static Configuration value;
  return value;
}

std::string& failure() {
  static std::string text;
  return text;
}

const PJRT_Api* load_plugin() {
  const std::string& path = configuration().library;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    failure() = std::string("Tenon's PJRT plug-in cannot be loaded: ") + dlerror();
    return nullptr;
  }
  using Entry = const PJRT_Api* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "GetPjrtApi"));
  if (entry == nullptr) {
    failure() = path + " is no PJRT plug-in: it has no GetPjrtApi";
    return nullptr;
  }
  return entry();
}

// Calls of the plug-in, for tenon_tf_counts.
std::atomic<int64_t> programs{0}, executions{0};

// The plug-in's table, cut to what TensorFlow knows of it, with two functions that count.
const PJRT_Api* counting_table() {
  static PJRT_Api table;
  static const PJRT_Api* const original = load_plugin();
  if (original == nullptr) return nullptr;
  const size_t size = std::min(sizeof table, original->struct_size);
  std::memcpy(&table, original, size);
  table.struct_size = size;
  table.PJRT_Client_Compile = [](PJRT_Client_Compile_Args* arguments) {
    PJRT_Client_Compile_Args with_ours = *arguments;
    const std::string options =
        std::string(arguments->compile_options, arguments->compile_options_size) +
        configuration().compile_options;
    with_ours.compile_options = options.data();
    with_ours.compile_options_size = options.size();
    PJRT_Error* error = original->PJRT_Client_Compile(&with_ours);
    arguments->executable = with_ours.executable;
    programs += error == nullptr;
    return error;
  };
  table.PJRT_LoadedExecutable_Execute = [](PJRT_LoadedExecutable_Execute_Args* arguments) {
    PJRT_Error* error = original->PJRT_LoadedExecutable_Execute(arguments);
    executions += error == nullptr;
    return error;
  };
  return &table;
}

const PJRT_Api* plugin() {
  static const PJRT_Api* const table = counting_table();
  return table;
}

void fail(TF_Status* status, TF_Code code, const std::string& text) {
  TF_SetStatus(status, code, text.c_str());
}

// Events, contexts and memory of TensorFlow's own interface: transfers go through PJRT, so that
// none is used.
TFNPD_DeviceEvent* new_event() { return nullptr; }
void await_event(TFNPD_DeviceEvent*, TF_Status*) {}
bool is_event_ready(TFNPD_DeviceEvent*) { return true; }
void call_after_event(TFNPD_DeviceEvent*, void (*callback)(void*), void* argument) {
  callback(argument);
}
void delete_event(TFNPD_DeviceEvent*) {}

TFNPD_DeviceAllocator* create_allocator(int) { return nullptr; }
void* allocate(TFNPD_DeviceAllocator*, size_t alignment, size_t bytes) {
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
void deallocate(TFNPD_DeviceAllocator*, void* address) { std::free(address); }
TF_StringView allocator_name(TFNPD_DeviceAllocator*) { return {"tenon", 5}; }
bool allocates_handles(TFNPD_DeviceAllocator*) { return true; }
void delete_allocator(TFNPD_DeviceAllocator*) {}

TFNPD_DeviceContext* create_context(int) { return nullptr; }
void delete_context(TFNPD_DeviceContext*) {}

// Lists of more than six elements lie on the heap, and TensorFlow deletes those of both shapes.
template <class List>
void own_elements(List& list) {
  if (list.size <= TPU_C_API_MAX_INLINED) return;
  const auto* const shared = list.heap;
  list.heap = new std::remove_reference_t<decltype(*list.heap)>[static_cast<size_t>(list.size)];
  std::copy_n(shared, list.size, list.heap);
}

void copy_shape(const XLA_Shape& from, XLA_Shape& to) {
  std::memcpy(&to, &from, sizeof to);
  own_elements(to.dimensions);
  own_elements(to.dynamic_dimensions);
  own_elements(to.layout.minor_to_major);
  own_elements(to.layout.tiles);
  for (int64_t i = 0; i < to.layout.tiles.size; ++i) {
    own_elements((to.layout.tiles.size > TPU_C_API_MAX_INLINED ? to.layout.tiles.heap
                                                               : to.layout.tiles.inlined)[i]
                     .dimensions);
  }
  if (to.ntuple_shapes == 0) return;
  to.tuple_shapes = new XLA_Shape[static_cast<size_t>(to.ntuple_shapes)];
  for (int i = 0; i < to.ntuple_shapes; ++i) copy_shape(from.tuple_shapes[i], to.tuple_shapes[i]);
}

// Arrays of the device are row-major, as those of the program.
void device_shape(XLA_Shape* shape, int, bool, XLA_LayoutPreference, XLA_Shape* of_device,
                  TF_Status*) {
  copy_shape(*shape, *of_device);
}

int32_t device_count(TF_Status*) { return 1; }

void create_client(TF_Status* status) {
  absl::flat_hash_map<std::string, xla::PjRtValueType> options;
  if (!configuration().device.empty()) {
    options.emplace("device", configuration().device);
  }
  auto client = xla::GetCApiClient(kDeviceType, options, nullptr);
  absl::Status done = client.status();
  if (done.ok()) {
    done = tensorflow::SetPjRtClientInTFGlobalResourceManager(tsl::DeviceType(kDeviceType),
                                                              *std::move(client));
  }
  if (!done.ok()) {
    failure() = std::string(done.message());
    fail(status, static_cast<TF_Code>(done.code()), failure());
  }
}

// Ops that TensorFlow has for every further device (DEVICE_DEFAULT), and that read and write the
// elements of tensors in memory of the host: on this device they would read handles.
constexpr const char* kOpsOnMemory[] = {
    "AssignAddVariableOp", "AssignSubVariableOp",  "TensorListConcat",
    "TensorListConcatV2",  "TensorListFromTensor", "TensorListGather",
    "TensorListGetItem",   "TensorListPopBack",    "TensorListPushBackBatch",
    "TensorListScatter",   "TensorListScatterV2",  "TensorListScatterIntoExistingList",
    "TensorListSetItem",   "TensorListSplit",      "TensorListStack"};

void* create_refusal(TF_OpKernelConstruction*) { return nullptr; }

void refuse(void*, TF_OpKernelContext* context) {
  TF_Status* const status = TF_NewStatus();
  const TF_StringView name = TF_GetOpKernelName(context);
  fail(status, TF_UNIMPLEMENTED,
       "tenon: the op " + std::string(name.data, name.len) +
           " runs on /device:TENON:0 in functions with jit_compile=True alone");
  TF_OpKernelContext_Failure(context, status);
  TF_DeleteStatus(status);
}

// Kernels of this device come before those of every device.
void add_refusals(TF_Status* status) {
  for (const char* const op : kOpsOnMemory) {
    TF_KernelBuilder* const builder =
        TF_NewKernelBuilder(op, kDeviceType, create_refusal, refuse, nullptr);
    if (std::string_view(op).substr(0, 6) == "Assign")
      TF_KernelBuilder_HostMemory(builder, "resource");
    TF_RegisterKernelBuilder(op, builder, status);
    if (TF_GetCode(status) != TF_OK) return;
  }
}

TFNPD_Api make_table() {
  TFNPD_Api table{};
  table.struct_size = TFNPD_Api_STRUCT_SIZE;
  table.TFNPD_NewDeviceEvent = new_event;
  table.TFNPD_DeviceEventAwait = await_event;
  table.TFNPD_DeviceEventIsReady = is_event_ready;
  table.TFNPD_DeviceEventAndThen = call_after_event;
  table.TFNPD_DeviceEventDelete = delete_event;
  table.TFNPD_DeviceAllocatorCreate = create_allocator;
  table.TFNPD_DeviceAllocateRaw = allocate;
  table.TFNPD_DeviceDeallocateRaw = deallocate;
  table.TFNPD_DeviceAllocatorName = allocator_name;
  table.TFNPD_DeviceAllocatorAllocatesOpaqueHandle = allocates_handles;
  table.TFNPD_DeviceAllocatorDelete = delete_allocator;
  table.TFNPD_DeviceContextCreate = create_context;
  table.TFNPD_DeviceContextDelete = delete_context;
  table.TFNPD_XlaShapeToDeviceShapeRepresentation = device_shape;
  table.TFNPD_GetDeviceCount = device_count;
  table.TFNPD_InitPluginInternalDeviceStates = create_client;
  return table;
}

}  // namespace

#define TENON_EXPORT extern "C" __attribute__((visibility("default")))

/// The version of TensorFlow that the library was compiled with; device.py finds the text in the
/// file.
TENON_EXPORT const char* tenon_tf_version() {
  static const char text[] = "tenon_tf made for TensorFlow " TENON_TF_VERSION;
  return text;
}

/// Names Tenon's PJRT plug-in, a device, and options of each compilation, before TensorFlow loads
/// this library: when TFNPD_InitPlugin fails, TensorFlow ends the process. Returns what would fail
/// there, or null.
TENON_EXPORT const char* tenon_tf_configure(const char* library, const char* device,
                                            const char* compile_options, size_t options_size) {
  configuration() = {library, device, std::string(compile_options, options_size)};
  if (std::strcmp(TF_Version(), TENON_TF_VERSION) != 0) {
    failure() = std::string("this device is made for TensorFlow " TENON_TF_VERSION ", not for ") +
                TF_Version();
  }
  if (failure().empty()) plugin();
  return failure().empty() ? nullptr : failure().c_str();
}

/// How many programs were compiled for the device, and how many executions began.
TENON_EXPORT void tenon_tf_counts(int64_t* compiled, int64_t* executed) {
  *compiled = programs;
  *executed = executions;
}

TENON_EXPORT const PJRT_Api* GetPjrtApi() { return plugin(); }

TENON_EXPORT const TFNPD_Api* TFNPD_InitPlugin(TFNPD_PluginParams* parameters, TF_Status* status) {
  static const TFNPD_Api table = make_table();
  if (std::strcmp(TF_Version(), TENON_TF_VERSION) != 0) {
    fail(status, TF_FAILED_PRECONDITION,
         std::string("tenon: this device is made for TensorFlow " TENON_TF_VERSION ", not for ") +
             TF_Version());
    return nullptr;
  }
  if (plugin() == nullptr) {
    fail(status, TF_NOT_FOUND, "tenon: " + failure());
    return nullptr;
  }
  add_refusals(status);
  if (TF_GetCode(status) != TF_OK) return nullptr;
  parameters->struct_size = TFNPD_PLUGIN_PARAMS_STRUCT_SIZE;
  parameters->device_type = kDeviceType;
  parameters->compilation_device_name = kCompilationDevice;
  parameters->priority = 0;  // Below the CPU's: ops run there only on request.
  parameters->is_pluggable_device = true;
  parameters->use_pjrt_on_demand_compile = false;
  return &table;
}
