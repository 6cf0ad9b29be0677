// Uses the plug-in as a framework does: loads it as a library, and calls it through its table.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "frameworks/pjrt/c_api/pjrt_c_api.h"

namespace tenon::pjrt::testing {

inline const PJRT_Api& api() {
  static const PJRT_Api* const table = [] {
    void* library = dlopen(TENON_PJRT_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      fprintf(stderr, "%s\n", dlerror());
      abort();
    }
    return reinterpret_cast<const PJRT_Api* (*)()>(dlsym(library, "GetPjrtApi"))();
  }();
  return *table;
}

/// The numeric code and the text of an error; "" for null. Destroys it.
inline std::string take(PJRT_Error* error) {
  if (error == nullptr) return "";
  PJRT_Error_Message_Args message = {sizeof message, nullptr, error, nullptr, 0};
  api().PJRT_Error_Message(&message);
  PJRT_Error_GetCode_Args code = {sizeof code, nullptr, error, PJRT_Error_Code_OK};
  EXPECT_EQ(api().PJRT_Error_GetCode(&code), nullptr);
  std::string text =
      std::to_string(code.code) + ": " + std::string(message.message, message.message_size);
  PJRT_Error_Destroy_Args destroy = {sizeof destroy, nullptr, error};
  api().PJRT_Error_Destroy(&destroy);
  return text;
}

/// Arguments as callers pass them: outputs are not initialised.
template <class Args>
Args uninitialized() {
  Args args;
  std::memset(static_cast<void*>(&args), 0xa5, sizeof args);
  args.struct_size = sizeof args;
  args.extension_start = nullptr;
  return args;
}

/// Makes a call that must not fail.
template <class Args>
void call(PJRT_Error* (*function)(Args*), Args& args) {
  ASSERT_EQ(take(function(&args)), "");
}

/// Reads one property of an object.
template <class Args, class Handle, class Member, class Value>
Value get(PJRT_Error* (*function)(Args*), Handle* handle, Member Args::* subject,
          Value Args::* value) {
  Args args = uninitialized<Args>();
  args.*subject = handle;
  EXPECT_EQ(take(function(&args)), "");
  return args.*value;
}

inline void destroy(PJRT_Buffer* buffer) {
  PJRT_Buffer_Destroy_Args args = {sizeof args, nullptr, buffer};
  call(api().PJRT_Buffer_Destroy, args);
}

inline void destroy(PJRT_Event* event) {
  PJRT_Event_Destroy_Args args = {sizeof args, nullptr, event};
  call(api().PJRT_Event_Destroy, args);
}

/// Waits for the event and destroys it; returns its error.
inline std::string outcome(PJRT_Event* event) {
  PJRT_Event_Await_Args args = {sizeof args, nullptr, event};
  std::string text = take(api().PJRT_Event_Await(&args));
  destroy(event);
  return text;
}

inline PJRT_NamedValue option(const char* name, const char* value) {
  PJRT_NamedValue option = {};
  option.struct_size = sizeof option;
  option.name = name;
  option.name_size = std::strlen(name);
  option.type = PJRT_NamedValue_kString;
  option.string_value = value;
  option.value_size = std::strlen(value);
  return option;
}

/// A client of a device, destroyed with this object.
class Client {
 public:
  explicit Client(const char* device = "interp", const char* layers = "", const char* count = "2",
                  const std::vector<PJRT_NamedValue>& more = {}) {
    std::vector<PJRT_NamedValue> options = {option("device", device), option("layers", layers),
                                            option("device_count", count),
                                            option("of_another", "plug-in")};
    options.insert(options.end(), more.begin(), more.end());
    auto args = uninitialized<PJRT_Client_Create_Args>();
    args.create_options = options.data();
    args.num_options = options.size();
    call(api().PJRT_Client_Create, args);
    client_ = args.client;
  }
  ~Client() { end(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void end() {
    if (client_ == nullptr) return;
    PJRT_Client_Destroy_Args args = {sizeof args, nullptr, client_};
    client_ = nullptr;
    call(api().PJRT_Client_Destroy, args);
  }
  PJRT_Client* get() const { return client_; }

  std::span<PJRT_Device* const> devices() const {
    auto args = uninitialized<PJRT_Client_Devices_Args>();
    args.client = client_;
    call(api().PJRT_Client_Devices, args);
    return {args.devices, args.num_devices};
  }
  std::span<PJRT_Memory* const> memories(size_t device = 0) const {
    auto args = uninitialized<PJRT_Device_AddressableMemories_Args>();
    args.device = devices()[device];
    call(api().PJRT_Device_AddressableMemories, args);
    return {args.memories, args.num_memories};
  }

  PJRT_Client_BufferFromHostBuffer_Args host_args(const void* data, PJRT_Buffer_Type type,
                                                  const std::vector<int64_t>& dims) const {
    auto args = uninitialized<PJRT_Client_BufferFromHostBuffer_Args>();
    args.client = client_;
    args.data = data;
    args.type = type;
    args.dims = dims.data();
    args.num_dims = dims.size();
    args.byte_strides = nullptr;
    args.num_byte_strides = 0;
    args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
    args.device = nullptr;
    args.memory = memories()[0];
    args.device_layout = nullptr;
    return args;
  }
  /// A buffer of floats in a memory of the first device; memory 0 is the default.
  PJRT_Buffer* floats(const std::vector<float>& values, const std::vector<int64_t>& dims,
                      size_t memory = 0) const {
    auto args = host_args(values.data(), PJRT_Buffer_Type_F32, dims);
    args.memory = memories()[memory];
    call(api().PJRT_Client_BufferFromHostBuffer, args);
    EXPECT_EQ(outcome(args.done_with_host_buffer), "");
    return args.buffer;
  }

  /// Compiles text; returns the error, if there is one.
  std::string compile(const std::string& text, const std::string& options,
                      PJRT_LoadedExecutable** executable, const char* format = "mlir") const {
    PJRT_Program program = {};
    program.struct_size = sizeof program;
    program.code = const_cast<char*>(text.data());
    program.code_size = text.size();
    program.format = format;
    program.format_size = std::strlen(format);
    auto args = uninitialized<PJRT_Client_Compile_Args>();
    args.client = client_;
    args.program = &program;
    args.compile_options = options.data();
    args.compile_options_size = options.size();
    std::string error = take(api().PJRT_Client_Compile(&args));
    if (error.empty()) *executable = args.executable;
    return error;
  }
  PJRT_LoadedExecutable* compiled(const std::string& text) const {
    PJRT_LoadedExecutable* executable = nullptr;
    EXPECT_EQ(compile(text, "", &executable), "");
    return executable;
  }

 private:
  PJRT_Client* client_ = nullptr;
};

inline void destroy(PJRT_LoadedExecutable* executable) {
  PJRT_LoadedExecutable_Destroy_Args args = {sizeof args, nullptr, executable};
  call(api().PJRT_LoadedExecutable_Destroy, args);
}
/// The executable of a loaded one, for the caller to destroy.
inline PJRT_Executable* executable_of(PJRT_LoadedExecutable* loaded) {
  return get(api().PJRT_LoadedExecutable_GetExecutable, loaded,
             &PJRT_LoadedExecutable_GetExecutable_Args::loaded_executable,
             &PJRT_LoadedExecutable_GetExecutable_Args::executable);
}
inline void destroy(PJRT_Executable* executable) {
  PJRT_Executable_Destroy_Args args = {sizeof args, nullptr, executable};
  call(api().PJRT_Executable_Destroy, args);
}

/// Runs on one device; returns the error of the call. `results` must have room for all results.
inline std::string execute(PJRT_LoadedExecutable* executable, PJRT_ExecuteOptions& options,
                           const std::vector<PJRT_Buffer*>& arguments,
                           std::vector<PJRT_Buffer*>& results, PJRT_Event** done = nullptr) {
  PJRT_Buffer* const* lists[] = {arguments.data()};
  PJRT_Buffer** outputs[] = {results.data()};
  auto args = uninitialized<PJRT_LoadedExecutable_Execute_Args>();
  args.executable = executable;
  args.options = &options;
  args.argument_lists = lists;
  args.num_devices = 1;
  args.num_args = arguments.size();
  args.output_lists = outputs;
  args.device_complete_events = done;
  args.execute_device = nullptr;
  return take(api().PJRT_LoadedExecutable_Execute(&args));
}
inline std::string execute(PJRT_LoadedExecutable* executable,
                           const std::vector<PJRT_Buffer*>& arguments,
                           std::vector<PJRT_Buffer*>& results,
                           const std::vector<int64_t>& kept = {}, PJRT_Event** done = nullptr) {
  PJRT_ExecuteOptions options = {};
  // As callers of an early version pass it: up to the last member that they know.
  options.struct_size = offsetof(PJRT_ExecuteOptions, context);
  options.non_donatable_input_indices = kept.data();
  options.num_non_donatable_input_indices = kept.size();
  return execute(executable, options, arguments, results, done);
}

/// The elements in row-major order, or in the order of a layout.
template <class T>
std::vector<T> values(PJRT_Buffer* buffer, PJRT_Buffer_MemoryLayout* layout = nullptr) {
  auto args = uninitialized<PJRT_Buffer_ToHostBuffer_Args>();
  args.src = buffer;
  args.host_layout = layout;
  args.dst = nullptr;
  EXPECT_EQ(take(api().PJRT_Buffer_ToHostBuffer(&args)), "");
  const size_t count = args.dst_size / sizeof(T);
  std::vector<T> elements(count + 1);  // A valid address even without elements.
  args.dst = elements.data();
  EXPECT_EQ(take(api().PJRT_Buffer_ToHostBuffer(&args)), "");
  EXPECT_EQ(outcome(args.event), "");
  elements.resize(count);
  return elements;
}

inline bool is_deleted(PJRT_Buffer* buffer) {
  return get(api().PJRT_Buffer_IsDeleted, buffer, &PJRT_Buffer_IsDeleted_Args::buffer,
             &PJRT_Buffer_IsDeleted_Args::is_deleted);
}

// --- Memory that the host reads

inline void hold(PJRT_Buffer* buffer) {
  PJRT_Buffer_IncreaseExternalReferenceCount_Args args = {sizeof args, nullptr, buffer};
  call(api().PJRT_Buffer_IncreaseExternalReferenceCount, args);
}
inline void release(PJRT_Buffer* buffer) {
  PJRT_Buffer_DecreaseExternalReferenceCount_Args args = {sizeof args, nullptr, buffer};
  call(api().PJRT_Buffer_DecreaseExternalReferenceCount, args);
}
inline bool is_on_cpu(PJRT_Buffer* buffer) {
  return get(api().PJRT_Buffer_IsOnCpu, buffer, &PJRT_Buffer_IsOnCpu_Args::buffer,
             &PJRT_Buffer_IsOnCpu_Args::is_on_cpu);
}
inline const float* data_of(PJRT_Buffer* buffer) {
  return static_cast<const float*>(
      get(api().PJRT_Buffer_OpaqueDeviceMemoryDataPointer, buffer,
          &PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args::buffer,
          &PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args::device_memory_ptr));
}

}  // namespace tenon::pjrt::testing
