// A running program exchanges data with its caller: send, recv, and data of executions.
#include <atomic>
#include <thread>

#include "frameworks/pjrt/c_api/ffi_extension.h"
#include "frameworks/pjrt/c_api/xla_ffi.h"
#include "frameworks/pjrt/plugin_test_util.h"

namespace tenon::pjrt::testing {
namespace {

using Floats = std::vector<float>;

// Sends its argument, receives another array, and returns the sum.
constexpr const char* kExchange = R"(
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.create_token : !stablehlo.token
  %1 = "stablehlo.send"(%x, %0) {channel_handle = #stablehlo.channel_handle<handle = 7, type = 2>,
    is_host_transfer = true} : (tensor<3xf32>, !stablehlo.token) -> !stablehlo.token
  %2:2 = "stablehlo.recv"(%1) {channel_handle = #stablehlo.channel_handle<handle = 8, type = 3>,
    is_host_transfer = true} : (!stablehlo.token) -> (tensor<3xf32>, !stablehlo.token)
  %3 = stablehlo.add %x, %2#0 : tensor<3xf32>
  return %3 : tensor<3xf32>
})";

/// The other side of the exchange: what is sent comes back, times ten.
struct Partner {
  Floats got;
  PJRT_Error_Code answer = PJRT_Error_Code_OK;
  bool gives_up = false;
  bool on_a_thread = false;
  std::thread thread;

  ~Partner() {
    if (thread.joinable()) thread.join();
  }
};

PJRT_Error* sent(PJRT_Chunk* chunk, PJRT_CallbackError* make_error, size_t total, bool done,
                 void* user) {
  auto& partner = *static_cast<Partner*>(user);
  EXPECT_EQ(chunk->size, total);
  EXPECT_TRUE(done);
  partner.got.resize(chunk->size / sizeof(float));
  std::memcpy(partner.got.data(), chunk->data, chunk->size);
  chunk->deleter(chunk->data, chunk->deleter_arg);
  if (partner.answer == PJRT_Error_Code_OK) return nullptr;
  return (*make_error)(partner.answer, "not now", 7);
}

void give(PJRT_CopyToDeviceStream* stream, Partner& partner) {
  auto total = uninitialized<PJRT_CopyToDeviceStream_TotalBytes_Args>();
  total.stream = stream;
  call(api().PJRT_CopyToDeviceStream_TotalBytes, total);
  EXPECT_EQ(total.total_bytes, 12);
  auto granule = uninitialized<PJRT_CopyToDeviceStream_GranuleSize_Args>();
  granule.stream = stream;
  call(api().PJRT_CopyToDeviceStream_GranuleSize, granule);
  EXPECT_EQ(granule.granule_size_in_bytes, 1);
  static std::atomic<int> deleted = 0;
  deleted = 0;
  Floats answer = partner.got;
  for (float& each : answer) each *= 10;
  const size_t count = partner.gives_up ? 2 : 3;
  for (size_t i = 0; i < count; ++i) {
    PJRT_Chunk chunk = {&answer[i], 4, [](void*, void*) { ++deleted; }, nullptr};
    auto add = uninitialized<PJRT_CopyToDeviceStream_AddChunk_Args>();
    add.stream = stream;
    add.chunk = &chunk;
    EXPECT_EQ(take(api().PJRT_CopyToDeviceStream_AddChunk(&add)), "");
    EXPECT_EQ(outcome(add.transfer_complete), "");
  }
  EXPECT_EQ(deleted, static_cast<int>(count));
  auto current = uninitialized<PJRT_CopyToDeviceStream_CurrentBytes_Args>();
  current.stream = stream;
  call(api().PJRT_CopyToDeviceStream_CurrentBytes, current);
  EXPECT_EQ(current.current_bytes, static_cast<int64_t>(4 * count));
  PJRT_Chunk beyond = {answer.data(), 12, nullptr, nullptr};
  auto add = uninitialized<PJRT_CopyToDeviceStream_AddChunk_Args>();
  add.stream = stream;
  add.chunk = &beyond;
  EXPECT_TRUE(take(api().PJRT_CopyToDeviceStream_AddChunk(&add)).starts_with("3: a chunk of 12"));
  PJRT_CopyToDeviceStream_Destroy_Args destroy = {sizeof destroy, nullptr, stream};
  call(api().PJRT_CopyToDeviceStream_Destroy, destroy);
}

void asked(PJRT_CopyToDeviceStream* stream, void* user) {
  auto& partner = *static_cast<Partner*>(user);
  if (!partner.on_a_thread) return give(stream, partner);
  partner.thread = std::thread([stream, &partner] { give(stream, partner); });
}

// The error of the execution, or "" and its result.
std::string exchange(const Client& client, PJRT_LoadedExecutable* executable, Partner* partner,
                     Floats* result) {
  PJRT_SendCallbackInfo send = {7, partner, &sent};
  PJRT_RecvCallbackInfo receive = {8, partner, &asked};
  PJRT_SendCallbackInfo* sends[] = {&send};
  PJRT_RecvCallbackInfo* receives[] = {&receive};
  PJRT_ExecuteOptions options = {};
  options.struct_size = sizeof options;
  if (partner != nullptr) {
    options.send_callbacks = sends;
    options.recv_callbacks = receives;
    options.num_send_ops = 1;
    options.num_recv_ops = 1;
  }
  PJRT_Buffer* x = client.floats({1, 2, 3}, {3});
  std::vector<PJRT_Buffer*> results(1);
  PJRT_Event* done = nullptr;
  EXPECT_EQ(execute(executable, options, {x}, results, &done), "");
  std::string error = outcome(done);
  if (error.empty()) *result = values<float>(results[0]);
  destroy(results[0]);
  destroy(x);
  return error;
}

class HostTransfers : public ::testing::TestWithParam<const char*> {
 protected:
  Client client_{GetParam(), "", "1"};
};

TEST_P(HostTransfers, AreWithTheCallbacksOfTheExecution) {
  PJRT_LoadedExecutable* const executable = client_.compiled(kExchange);
  for (const bool on_a_thread : {false, true}) {
    Partner partner;
    partner.on_a_thread = on_a_thread;
    Floats result;
    EXPECT_EQ(exchange(client_, executable, &partner, &result), "");
    EXPECT_EQ(partner.got, (Floats{1, 2, 3}));
    EXPECT_EQ(result, (Floats{11, 22, 33}));
  }
  destroy(executable);
}

TEST_P(HostTransfers, ErrorsAreThoseOfTheExecution) {
  PJRT_LoadedExecutable* const executable = client_.compiled(kExchange);
  Floats result;
  const auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(exchange(client_, executable, nullptr, &result),
      "the execution has no callback for the send on channel 7");
  Partner busy;
  busy.answer = PJRT_Error_Code_UNAVAILABLE;
  has(exchange(client_, executable, &busy, &result), "not now");
  Partner tired;
  tired.gives_up = true;
  has(exchange(client_, executable, &tired, &result),
      "the caller gave 8 of the 12 bytes that are received on channel 8");
  destroy(executable);
}

INSTANTIATE_TEST_SUITE_P(Devices, HostTransfers,
                         ::testing::Values("interp", "cpu", "gpu-sim", "template"));

// --- Data of executions

int64_t data_type = 0;

XLA_FFI_Error* adds_data(XLA_FFI_CallFrame* frame) {
  if (frame->extension_start != nullptr) {
    auto& metadata =
        *reinterpret_cast<XLA_FFI_Metadata_Extension*>(frame->extension_start)->metadata;
    metadata.api_version.major_version = XLA_FFI_API_MAJOR;
    metadata.api_version.minor_version = XLA_FFI_API_MINOR;
    return nullptr;
  }
  XLA_FFI_TypeId type = {data_type};
  XLA_FFI_ExecutionContext_Get_Args args = {sizeof args, nullptr, frame->ctx, &type, nullptr};
  if (XLA_FFI_Error* error = frame->api->XLA_FFI_ExecutionContext_Get(&args)) return error;
  const auto* x = static_cast<XLA_FFI_Buffer*>(frame->args.args[0]);
  const auto* y = static_cast<XLA_FFI_Buffer*>(frame->rets.rets[0]);
  for (int i = 0; i < 3; ++i) {
    static_cast<float*>(y->data)[i] =
        static_cast<const float*>(x->data)[i] + *static_cast<const float*>(args.data);
  }
  return nullptr;
}

TEST(ExecutionData, ReachesHandlers) {
  const PJRT_Extension_Base* node = api().extension_start;
  while (node->type != PJRT_Extension_Type_FFI) node = node->next;
  const auto& ffi = *reinterpret_cast<const PJRT_FFI_Extension*>(node);
  PJRT_FFI_Type_Info info = {};
  PJRT_FFI_Type_Register_Args type = {sizeof type, nullptr, "execution-data", 14, 0, &info};
  ASSERT_EQ(take(ffi.type_register(&type)), "");
  data_type = type.type_id;
  PJRT_FFI_Register_Handler_Args handler = {
      sizeof handler, "test.adds_data", 14, reinterpret_cast<void*>(&adds_data), "tenon", 5, 0};
  ASSERT_EQ(take(ffi.register_handler(&handler)), "");
  const Client client("cpu", "", "1");
  PJRT_LoadedExecutable* const executable = client.compiled(R"(
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.custom_call @test.adds_data(%x) : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
})");
  auto context = uninitialized<PJRT_ExecuteContext_Create_Args>();
  call(api().PJRT_ExecuteContext_Create, context);
  float hundred = 100;
  PJRT_FFI_UserData_Add_Args add = {sizeof add, nullptr, context.context, {data_type, &hundred}};
  ASSERT_EQ(take(ffi.user_data_add(&add)), "");
  EXPECT_TRUE(take(ffi.user_data_add(&add)).starts_with("6: "));
  PJRT_Buffer* x = client.floats({1, 2, 3}, {3});
  const auto run = [&](PJRT_ExecuteContext* with, PJRT_Buffer** result) {
    PJRT_ExecuteOptions options = {};
    options.struct_size = sizeof options;
    options.context = with;
    std::vector<PJRT_Buffer*> results(1);
    PJRT_Event* done = nullptr;
    EXPECT_EQ(execute(executable, options, {x}, results, &done), "");
    *result = results[0];
    return outcome(done);
  };
  PJRT_Buffer* result = nullptr;
  EXPECT_EQ(run(context.context, &result), "");
  EXPECT_EQ(values<float>(result), (Floats{101, 102, 103}));
  destroy(result);
  EXPECT_NE(run(nullptr, &result).find("the execution has no data of the type"), std::string::npos);
  destroy(result);
  PJRT_ExecuteContext_Destroy_Args end = {sizeof end, nullptr, context.context};
  call(api().PJRT_ExecuteContext_Destroy, end);
  destroy(x);
  destroy(executable);
}

}  // namespace
}  // namespace tenon::pjrt::testing
