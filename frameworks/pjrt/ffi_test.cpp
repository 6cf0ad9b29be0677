// Functions of XLA's foreign function interface: registered by the extensions of the table, called
// by programs.
#include <atomic>
#include <thread>

#include "frameworks/pjrt/c_api/ffi_extension.h"
#include "frameworks/pjrt/c_api/xla_ffi.h"
#include "frameworks/pjrt/plugin_test_util.h"

namespace tenon::pjrt::testing {
namespace {

template <class Extension>
const Extension& extension(PJRT_Extension_Type type) {
  const PJRT_Extension_Base* node = api().extension_start;
  while (node != nullptr && node->type != type) node = node->next;
  EXPECT_NE(node, nullptr);
  return *reinterpret_cast<const Extension*>(node);
}

std::string add(const char* name, XLA_FFI_Handler* handler, const char* platform = "tenon") {
  PJRT_FFI_Register_Handler_Args args = {
      sizeof args,           name, std::strlen(name), reinterpret_cast<void*>(handler), platform,
      std::strlen(platform), 0};
  return take(extension<PJRT_FFI_Extension>(PJRT_Extension_Type_FFI).register_handler(&args));
}

std::string add_stages(const char* name, XLA_FFI_Handler* instantiate, XLA_FFI_Handler* prepare,
                       XLA_FFI_Handler* initialize, XLA_FFI_Handler* execute) {
  PJRT_Gpu_Register_Custom_Call_Args args = {sizeof args,
                                             name,
                                             std::strlen(name),
                                             1,
                                             reinterpret_cast<void*>(instantiate),
                                             reinterpret_cast<void*>(prepare),
                                             reinterpret_cast<void*>(initialize),
                                             reinterpret_cast<void*>(execute)};
  return take(
      extension<PJRT_Gpu_Custom_Call>(PJRT_Extension_Type_Gpu_Custom_Call).custom_call(&args));
}

XLA_FFI_Error* failure(const XLA_FFI_CallFrame& frame, const char* text) {
  XLA_FFI_Error_Create_Args args = {sizeof args, nullptr, text, 3};
  return frame.api->XLA_FFI_Error_Create(&args);
}

// Answers the question for the version; the handlers below begin with it.
bool asks_for_version(XLA_FFI_CallFrame& frame, int major = XLA_FFI_API_MAJOR) {
  if (frame.extension_start == nullptr) return false;
  auto& metadata = *reinterpret_cast<XLA_FFI_Metadata_Extension*>(frame.extension_start)->metadata;
  metadata.api_version.major_version = major;
  metadata.api_version.minor_version = XLA_FFI_API_MINOR;
  return true;
}

XLA_FFI_Buffer& argument(const XLA_FFI_CallFrame& frame, size_t i) {
  return *static_cast<XLA_FFI_Buffer*>(frame.args.args[i]);
}
XLA_FFI_Buffer& result(const XLA_FFI_CallFrame& frame, size_t i) {
  return *static_cast<XLA_FFI_Buffer*>(frame.rets.rets[i]);
}

std::string name_of(const XLA_FFI_Attrs& attributes, size_t i) {
  return {attributes.names[i]->ptr, attributes.names[i]->len};
}

// y = scale * x, with the attribute `scale`.
XLA_FFI_Error* scaled(XLA_FFI_CallFrame* frame) {
  if (asks_for_version(*frame)) return nullptr;
  const XLA_FFI_Attrs& attributes = frame->attrs;
  if (frame->stage != XLA_FFI_ExecutionStage_EXECUTE || frame->args.size != 1 ||
      frame->rets.size != 1 || attributes.size != 1 || name_of(attributes, 0) != "scale" ||
      attributes.types[0] != XLA_FFI_AttrType_SCALAR) {
    return failure(*frame, "not a call of this function");
  }
  const auto& scale = *static_cast<XLA_FFI_Scalar*>(attributes.attrs[0]);
  if (scale.dtype != XLA_FFI_DataType_F32) return failure(*frame, "scale is no float");
  const XLA_FFI_Buffer& x = argument(*frame, 0);
  int64_t count = 1;
  for (int64_t i = 0; i < x.rank; ++i) count *= x.dims[i];
  for (int64_t i = 0; i < count; ++i) {
    static_cast<float*>(result(*frame, 0).data)[i] =
        *static_cast<float*>(scale.value) * static_cast<float*>(x.data)[i];
  }
  return nullptr;
}

constexpr const char* kScaled = R"(
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.custom_call @test.scaled(%x) {backend_config = "", mhlo.backend_config = {scale = 2.0 : f32}} : (tensor<3xf32>) -> tensor<3xf32>
  %1 = stablehlo.negate %0 : tensor<3xf32>
  return %1 : tensor<3xf32>
})";

std::vector<float> run(const Client& client, PJRT_LoadedExecutable* executable,
                       const std::vector<float>& x, std::string* error = nullptr) {
  PJRT_Buffer* const argument = client.floats(x, {static_cast<int64_t>(x.size())});
  std::vector<PJRT_Buffer*> results(1);
  PJRT_Event* done = nullptr;
  EXPECT_EQ(execute(executable, {argument}, results, {}, &done), "");
  const std::string text = outcome(done);
  std::vector<float> read;
  if (error != nullptr) {
    *error = text;
  } else {
    EXPECT_EQ(text, "");
    read = values<float>(results[0]);
  }
  destroy(results[0]);
  destroy(argument);
  return read;
}

TEST(Ffi, AHandlerIsCalledByName) {
  const Client client;
  PJRT_LoadedExecutable* executable = nullptr;
  EXPECT_EQ(client.compile(kScaled, "", &executable),
            "12: stablehlo.custom_call at program:3:8: there is no implementation of the custom "
            "call @test.scaled");
  EXPECT_EQ(add("test.scaled", scaled, "another"), "");
  EXPECT_NE(client.compile(kScaled, "", &executable), "");
  ASSERT_EQ(add("test.scaled", scaled), "");
  EXPECT_EQ(add("test.scaled", scaled), "") << "registered again";
  executable = client.compiled(kScaled);
  EXPECT_EQ(run(client, executable, {1, 2, 3}), (std::vector<float>{-2, -4, -6}));
  destroy(executable);
}

XLA_FFI_Error* for_the_future(XLA_FFI_CallFrame* frame) {
  asks_for_version(*frame, XLA_FFI_API_MAJOR + 1);
  return nullptr;
}

TEST(Ffi, WrongRegistrations) {
  EXPECT_EQ(add("test.nothing", nullptr), "3: @test.nothing: a handler without the stage EXECUTE");
  EXPECT_EQ(add("test.future", for_the_future),
            "12: @test.future: it is written for version 1.3 of the interface, this is 0.3");
  ASSERT_EQ(add("test.taken", scaled), "");
  EXPECT_EQ(add("test.taken", for_the_future).substr(0, 3), "12:");
}

// --- Attributes

std::string described(const XLA_FFI_Attrs& attributes) {
  std::string text;
  for (size_t i = 0; i < static_cast<size_t>(attributes.size); ++i) {
    text += name_of(attributes, i) + "=";
    void* const value = attributes.attrs[i];
    switch (attributes.types[i]) {
      case XLA_FFI_AttrType_STRING: {
        const auto& span = *static_cast<XLA_FFI_ByteSpan*>(value);
        text += std::string(span.ptr, span.len);
        break;
      }
      case XLA_FFI_AttrType_SCALAR:
        text += "scalar " + std::to_string(static_cast<XLA_FFI_Scalar*>(value)->dtype);
        break;
      case XLA_FFI_AttrType_ARRAY: {
        const auto& array = *static_cast<XLA_FFI_Array*>(value);
        text += std::to_string(array.size) + " of " + std::to_string(array.dtype);
        break;
      }
      case XLA_FFI_AttrType_DICTIONARY:
        text += "{" + described(*static_cast<XLA_FFI_Attrs*>(value)) + "}";
        break;
    }
    text += " ";
  }
  return text;
}

std::string& seen() {
  static std::string text;
  return text;
}

XLA_FFI_Error* describes(XLA_FFI_CallFrame* frame) {
  if (asks_for_version(*frame)) return nullptr;
  const XLA_FFI_Buffer& x = argument(*frame, 1);
  seen() = described(frame->attrs) + std::to_string(argument(*frame, 0).dtype) + " " +
           std::to_string(x.dims[0]) + "x" + std::to_string(x.dims[1]);
  std::memcpy(result(*frame, 0).data, x.data, 6 * sizeof(float));
  return nullptr;
}

TEST(Ffi, AttributesTokensAndLayouts) {
  ASSERT_EQ(add("test.describes", describes), "");
  const Client client;
  PJRT_LoadedExecutable* const executable = client.compiled(R"(
func.func @main(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %t = stablehlo.create_token : !stablehlo.token
  %0 = stablehlo.custom_call @test.describes(%t, %x) {backend_config = "", mhlo.backend_config = {d = {in = "side", n = 1 : i8}, f = 1.0 : f64, i = 1 : i32, list = array<i64: 1, 2, 3>, p = true, s = "text"}, operand_layouts = [dense<> : tensor<0xindex>, dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[1, 0]> : tensor<2xindex>]} : (!stablehlo.token, tensor<2x3xf32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
})");
  PJRT_Buffer* const x = client.floats({0, 1, 2, 3, 4, 5}, {2, 3});
  std::vector<PJRT_Buffer*> results(1);
  ASSERT_EQ(execute(executable, {x}, results), "");
  // The function sees columns one after the other, and gives rows.
  EXPECT_EQ(values<float>(results[0]), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(seen(),
            "d={in=side n=scalar 2 } f=scalar 12 i=scalar 4 list=3 of 5 p=scalar 1 s=text 17 2x3");
  for (PJRT_Buffer* buffer : {x, results[0]}) destroy(buffer);
  destroy(executable);
}

// --- Stages, states, services

std::atomic<int> states_alive = 0;
void delete_state(void* state) {
  delete static_cast<int*>(state);
  --states_alive;
}

XLA_FFI_TypeId& state_type() {
  static XLA_FFI_TypeId id = {0};
  return id;
}

XLA_FFI_Error* sets_state(XLA_FFI_CallFrame* frame) {
  ++states_alive;
  XLA_FFI_State_Set_Args args = {sizeof args,  nullptr,       frame->ctx,
                                 frame->stage, &state_type(), new int(frame->stage)};
  return frame->api->XLA_FFI_State_Set(&args);
}

XLA_FFI_Error* uses_everything(XLA_FFI_CallFrame* frame) {
  if (asks_for_version(*frame)) return nullptr;
  const XLA_FFI_Api& ffi = *frame->api;
  int sum = 0;
  for (const auto stage : {XLA_FFI_ExecutionStage_INSTANTIATE, XLA_FFI_ExecutionStage_PREPARE,
                           XLA_FFI_ExecutionStage_INITIALIZE}) {
    XLA_FFI_State_Get_Args state = {sizeof state, nullptr,       frame->ctx,
                                    stage,        &state_type(), nullptr};
    if (XLA_FFI_Error* error = ffi.XLA_FFI_State_Get(&state)) return error;
    sum = 10 * sum + *static_cast<int*>(state.state);
  }
  XLA_FFI_DeviceMemory_Allocate_Args memory = {sizeof memory, nullptr, frame->ctx,
                                               100,           256,     nullptr};
  if (XLA_FFI_Error* error = ffi.XLA_FFI_DeviceMemory_Allocate(&memory)) return error;
  std::memset(memory.data, 1, 100);
  if (reinterpret_cast<uintptr_t>(memory.data) % 256 != 0) return failure(*frame, "not aligned");
  XLA_FFI_DeviceOrdinal_Get_Args ordinal = {sizeof ordinal, nullptr, frame->ctx, -1};
  if (XLA_FFI_Error* error = ffi.XLA_FFI_DeviceOrdinal_Get(&ordinal)) return error;
  XLA_FFI_ThreadPool_Schedule_Args task = {
      sizeof task, nullptr, frame->ctx, [](void* data) { *static_cast<int*>(data) *= 10; }, &sum};
  if (XLA_FFI_Error* error = ffi.XLA_FFI_ThreadPool_Schedule(&task)) return error;
  static_cast<float*>(result(*frame, 0).data)[0] = static_cast<float>(sum + ordinal.device_ordinal);
  XLA_FFI_Future_Create_Args future = {sizeof future, nullptr, nullptr};
  if (XLA_FFI_Error* error = ffi.XLA_FFI_Future_Create(&future)) return error;
  frame->future = future.future;
  std::thread([&ffi, set = future.future] {
    XLA_FFI_Future_SetAvailable_Args args = {sizeof args, nullptr, set};
    ffi.XLA_FFI_Future_SetAvailable(&args);
  }).detach();
  return nullptr;
}

TEST(Ffi, StagesStatesAndServices) {
  PJRT_FFI_Type_Info info = {delete_state, nullptr, nullptr};
  PJRT_FFI_Type_Register_Args type = {sizeof type, nullptr, "state", 5, 0, &info};
  ASSERT_EQ(take(extension<PJRT_FFI_Extension>(PJRT_Extension_Type_FFI).type_register(&type)), "");
  EXPECT_GT(type.type_id, 0);
  state_type().type_id = type.type_id;
  ASSERT_EQ(add_stages("test.stages", sets_state, sets_state, sets_state, uses_everything), "");
  const Client client;
  PJRT_LoadedExecutable* const executable = client.compiled(R"(
func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {
  %0 = stablehlo.custom_call @test.stages(%x) : (tensor<1xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
})");
  EXPECT_EQ(states_alive, 1);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(run(client, executable, {1}), std::vector<float>{120});
  }
  EXPECT_EQ(states_alive, 1) << "those of executions are gone";
  destroy(executable);
  EXPECT_EQ(states_alive, 0);
}

// --- Errors

XLA_FFI_Error* fails(XLA_FFI_CallFrame* frame) {
  return asks_for_version(*frame) ? nullptr : failure(*frame, "it does not converge");
}
XLA_FFI_Error* throws(XLA_FFI_CallFrame* frame) {
  if (asks_for_version(*frame)) return nullptr;
  throw std::runtime_error("thrown");
}
XLA_FFI_Error* fails_later(XLA_FFI_CallFrame* frame) {
  if (asks_for_version(*frame)) return nullptr;
  XLA_FFI_Future_Create_Args future = {sizeof future, nullptr, nullptr};
  frame->api->XLA_FFI_Future_Create(&future);
  frame->future = future.future;
  XLA_FFI_Future_SetError_Args args = {sizeof args, nullptr, future.future,
                                       failure(*frame, "later")};
  return frame->api->XLA_FFI_Future_SetError(&args);
}
XLA_FFI_Error* allocates_badly(XLA_FFI_CallFrame* frame) {
  if (asks_for_version(*frame)) return nullptr;
  XLA_FFI_DeviceMemory_Allocate_Args memory = {sizeof memory, nullptr, frame->ctx, 4, 48, nullptr};
  return frame->api->XLA_FFI_DeviceMemory_Allocate(&memory);
}
XLA_FFI_Error* schedules_a_throw(XLA_FFI_CallFrame* frame) {
  if (asks_for_version(*frame)) return nullptr;
  XLA_FFI_ThreadPool_Schedule_Args task = {sizeof task, nullptr, frame->ctx,
                                           [](void* data) { throw *static_cast<int*>(data); },
                                           frame->args.args};
  return frame->api->XLA_FFI_ThreadPool_Schedule(&task);
}

TEST(Ffi, ErrorsAreThoseOfTheExecution) {
  const Client client;
  const std::pair<XLA_FFI_Handler*, std::string> cases[] = {
      {fails, "3: it does not converge"},
      {throws, "13: an exception: thrown"},
      {fails_later, "3: later"},
      {allocates_badly, "3: an alignment of 48, which is no power of two"},
      {schedules_a_throw, "13: an exception of a non-standard type"}};
  int number = 0;
  for (const auto& [handler, expected] : cases) {
    const std::string name = "test.error" + std::to_string(number++);
    ASSERT_EQ(add(name.c_str(), handler), "");
    PJRT_LoadedExecutable* const executable = client.compiled(
        "func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {\n%0 = stablehlo.custom_call @" +
        name + "(%x) : (tensor<1xf32>) -> tensor<1xf32>\nreturn %0 : tensor<1xf32>\n}");
    std::string error;
    run(client, executable, {1}, &error);
    EXPECT_EQ(error, expected + " (in stablehlo.custom_call at program:2:6)");
    destroy(executable);
  }
}

// --- Tokens of the interface

TEST(Ffi, TokensOfAProgramAreEmptyArrays) {
  const Client client;
  PJRT_LoadedExecutable* const executable = client.compiled(R"(
func.func @main(%t: !stablehlo.token, %x: tensor<2xf32>) -> (!stablehlo.token, tensor<2xf32>) {
  %0 = stablehlo.after_all %t, %t : !stablehlo.token
  return %0, %x : !stablehlo.token, tensor<2xf32>
})");
  const std::vector<int64_t> none = {0};
  auto args = client.host_args("", PJRT_Buffer_Type_PRED, none);
  call(api().PJRT_Client_BufferFromHostBuffer, args);
  EXPECT_EQ(outcome(args.done_with_host_buffer), "");
  PJRT_Buffer* const x = client.floats({1, 2}, {2});
  std::vector<PJRT_Buffer*> results(2);
  ASSERT_EQ(execute(executable, {args.buffer, x}, results), "");
  EXPECT_EQ(values<float>(results[1]), (std::vector<float>{1, 2}));
  EXPECT_EQ(values<char>(results[0]).size(), 0U);
  for (PJRT_Buffer* buffer : {args.buffer, x, results[0], results[1]}) destroy(buffer);
  destroy(executable);
}

}  // namespace
}  // namespace tenon::pjrt::testing
