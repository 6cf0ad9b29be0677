// Buffers whose contents come later, and the calls for bytes as they lie.
#include <thread>

#include "frameworks/pjrt/plugin_test_util.h"

namespace tenon::pjrt::testing {
namespace {

using Floats = std::vector<float>;

PJRT_Event* ready_event(PJRT_Buffer* buffer) {
  return get(api().PJRT_Buffer_ReadyEvent, buffer, &PJRT_Buffer_ReadyEvent_Args::buffer,
             &PJRT_Buffer_ReadyEvent_Args::event);
}
std::string contents_of(PJRT_Buffer* buffer) { return outcome(ready_event(buffer)); }
bool is_there(PJRT_Buffer* buffer) {
  PJRT_Event* const event = ready_event(buffer);
  const bool ready = get(api().PJRT_Event_IsReady, event, &PJRT_Event_IsReady_Args::event,
                         &PJRT_Event_IsReady_Args::is_ready);
  destroy(event);
  return ready;
}

/// A transfer manager of arrays, and its calls.
class Manager {
 public:
  Manager(const Client& client, const std::vector<PJRT_ShapeSpec>& specs, size_t memory = 0) {
    std::vector<PJRT_ShapeSpec> given = specs;
    auto args = uninitialized<PJRT_Client_CreateBuffersForAsyncHostToDevice_Args>();
    args.client = client.get();
    args.shape_specs = given.data();
    args.num_shape_specs = given.size();
    args.device_layouts = nullptr;
    args.num_device_layouts = 0;
    args.memory = client.memories()[memory];
    call(api().PJRT_Client_CreateBuffersForAsyncHostToDevice, args);
    manager_ = args.transfer_manager;
  }
  ~Manager() { end(); }
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  void end() {
    if (manager_ == nullptr) return;
    PJRT_AsyncHostToDeviceTransferManager_Destroy_Args args = {sizeof args, nullptr, manager_};
    manager_ = nullptr;
    call(api().PJRT_AsyncHostToDeviceTransferManager_Destroy, args);
  }
  PJRT_AsyncHostToDeviceTransferManager* get() const { return manager_; }

  std::string retrieve(int index, PJRT_Buffer** buffer) const {
    auto args = uninitialized<PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args>();
    args.transfer_manager = manager_;
    args.buffer_index = index;
    std::string error = take(api().PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer(&args));
    if (error.empty()) *buffer = args.buffer_out;
    return error;
  }
  PJRT_Buffer* buffer(int index = 0) const {
    PJRT_Buffer* retrieved = nullptr;
    EXPECT_EQ(retrieve(index, &retrieved), "");
    return retrieved;
  }
  /// The bytes are the caller's again when it returns.
  std::string transfer(const void* data, int64_t offset, int64_t size, bool is_last,
                       int index = 0) const {
    auto args = uninitialized<PJRT_AsyncHostToDeviceTransferManager_TransferData_Args>();
    args.transfer_manager = manager_;
    args.buffer_index = index;
    args.data = data;
    args.offset = offset;
    args.transfer_size = size;
    args.is_last_transfer = is_last;
    std::string error = take(api().PJRT_AsyncHostToDeviceTransferManager_TransferData(&args));
    return error.empty() ? outcome(args.done_with_h2d_transfer) : error;
  }

 private:
  PJRT_AsyncHostToDeviceTransferManager* manager_ = nullptr;
};

const std::vector<int64_t> kSix = {2, 3};
PJRT_ShapeSpec six(PJRT_Buffer_Type type = PJRT_Buffer_Type_F32) {
  return {sizeof(PJRT_ShapeSpec), nullptr, kSix.data(), kSix.size(), type};
}
const Floats kPieces = {1, 2, 3, 4, 5, 6};

constexpr const char* kLateTwice = R"(
  func.func public @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %0 = stablehlo.add %x, %x : tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  })";

class LateBuffers : public ::testing::TestWithParam<const char*> {
 protected:
  Client client_{GetParam(), "validate", "1"};
};

TEST_P(LateBuffers, ComeInPieces) {
  for (const size_t memory : {size_t{0}, size_t{1}}) {
    const Manager manager(client_, {six(), six()}, memory);
    PJRT_Buffer* const buffer = manager.buffer(1);
    EXPECT_EQ(manager.transfer(&kPieces[4], 16, 8, false, 1), "");
    EXPECT_EQ(manager.transfer(kPieces.data(), 0, 4, false, 1), "");
    EXPECT_FALSE(is_there(buffer));
    EXPECT_EQ(manager.transfer(&kPieces[1], 4, 12, true, 1), "");
    EXPECT_EQ(contents_of(buffer), "");
    EXPECT_EQ(values<float>(buffer), kPieces);
    destroy(buffer);
  }
}

// An execution, a copy and a read that are asked for before the contents are there get them.
TEST_P(LateBuffers, AreWaitedFor) {
  PJRT_LoadedExecutable* const executable = client_.compiled(kLateTwice);
  const Manager manager(client_, {six()});
  PJRT_Buffer* const buffer = manager.buffer();
  Floats read(6);
  auto to_host = uninitialized<PJRT_Buffer_ToHostBuffer_Args>();
  to_host.src = buffer;
  to_host.host_layout = nullptr;
  to_host.dst = read.data();
  to_host.dst_size = 24;
  call(api().PJRT_Buffer_ToHostBuffer, to_host);  // Does not block.
  std::thread giver([&] {
    for (int i = 0; i < 6; ++i) {
      EXPECT_EQ(manager.transfer(&kPieces[static_cast<size_t>(i)], 4 * i, 4, i == 5), "");
    }
  });
  std::vector<PJRT_Buffer*> results(1);
  EXPECT_EQ(execute(executable, {buffer}, results), "");
  giver.join();
  EXPECT_EQ(values<float>(results[0]), (Floats{2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(outcome(to_host.event), "");
  EXPECT_EQ(read, kPieces);
  destroy(results[0]);
  destroy(buffer);
  destroy(executable);
}

TEST_P(LateBuffers, HaveTheErrorsOfTheCaller) {
  PJRT_LoadedExecutable* const executable = client_.compiled(kLateTwice);
  Manager manager(client_, {six(), six()});
  PJRT_Buffer* const failed = manager.buffer(0);
  PJRT_Buffer* const forgotten = manager.buffer(1);
  EXPECT_EQ(manager.transfer(kPieces.data(), 0, 8, false, 0), "");
  auto error = uninitialized<PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args>();
  error.transfer_manager = manager.get();
  error.buffer_index = 0;
  error.error_code = PJRT_Error_Code_ABORTED;
  error.error_message = "the file ends";
  error.error_message_size = std::strlen(error.error_message);
  call(api().PJRT_AsyncHostToDeviceTransferManager_SetBufferError, error);
  EXPECT_EQ(contents_of(failed), "10: the file ends");
  std::vector<PJRT_Buffer*> results(1);
  ASSERT_EQ(execute(executable, {failed}, results), "");
  EXPECT_EQ(contents_of(results[0]), "10: the file ends");
  EXPECT_EQ(manager.transfer(kPieces.data(), 0, 8, true, 0),
            "9: f32[2,3] is complete: a piece comes behind the last one");
  EXPECT_EQ(manager.transfer(kPieces.data(), 0, 8, false, 1), "");
  manager.end();
  EXPECT_EQ(contents_of(forgotten), "1: the contents of the array were never handed over");
  for (PJRT_Buffer* buffer : {failed, forgotten, results[0]}) destroy(buffer);
  destroy(executable);
}

TEST_P(LateBuffers, AreAliasesOfOthers) {
  const auto made = [&](PJRT_FulfillAliasBufferCallback** fulfill) {
    auto args = uninitialized<PJRT_Client_CreateAliasBuffer_Args>();
    args.client = client_.get();
    args.memory = client_.memories()[0];
    args.shape_dims = kSix.data();
    args.shape_num_dims = 2;
    args.shape_element_type = PJRT_Buffer_Type_F32;
    args.shape_layout = nullptr;
    EXPECT_EQ(take(api().PJRT_Client_CreateAliasBuffer(&args)), "");
    *fulfill = args.fulfill_alias_buffer_cb;
    return args.alias_buffer;
  };
  const auto fulfilled = [&](PJRT_FulfillAliasBufferCallback* fulfill, PJRT_Buffer* buffer) {
    auto args = uninitialized<PJRT_Client_FulfillAliasBuffer_Args>();
    args.client = client_.get();
    args.buffer = buffer;
    args.status_code = buffer == nullptr ? PJRT_Error_Code_NOT_FOUND : PJRT_Error_Code_OK;
    args.error_message = "lost";
    args.error_message_size = 4;
    args.fulfill_alias_buffer_cb = fulfill;
    return take(api().PJRT_Client_FulfillAliasBuffer(&args));
  };
  PJRT_FulfillAliasBufferCallback* fulfill = nullptr;
  PJRT_Buffer* const alias = made(&fulfill);
  EXPECT_FALSE(is_there(alias));
  PJRT_Buffer* const source = client_.floats(kPieces, kSix);
  EXPECT_EQ(fulfilled(fulfill, source), "");
  destroy(source);
  EXPECT_EQ(values<float>(alias), kPieces);
  PJRT_Buffer* const lost = made(&fulfill);
  EXPECT_EQ(fulfilled(fulfill, nullptr), "");
  EXPECT_EQ(contents_of(lost), "5: lost");
  PJRT_Buffer* const wrong = made(&fulfill);
  PJRT_Buffer* const other = client_.floats({1}, {});
  EXPECT_EQ(fulfilled(fulfill, other), "3: an array of f32[] for one of f32[2,3]");
  EXPECT_EQ(contents_of(wrong), "1: the contents of the array were never handed over");
  for (PJRT_Buffer* buffer : {alias, lost, wrong, other}) destroy(buffer);
}

TEST_P(LateBuffers, AreDonatedWhenTheCallerSaysSo) {
  const auto donated = [&](PJRT_Error_Code code) {
    PJRT_Buffer* const from = client_.floats(kPieces, kSix);
    auto args = uninitialized<PJRT_Buffer_DonateWithControlDependency_Args>();
    args.buffer = from;
    EXPECT_EQ(take(api().PJRT_Buffer_DonateWithControlDependency(&args)), "");
    EXPECT_TRUE(is_deleted(from));
    destroy(from);
    EXPECT_FALSE(is_there(args.out_buffer));
    PJRT_Buffer_DonateWithControlDependency_Callback_Args ready = {sizeof ready, args.callback_data,
                                                                   code, "no", 2};
    args.dependency_ready_callback(&ready);
    return args.out_buffer;
  };
  PJRT_Buffer* const given = donated(PJRT_Error_Code_OK);
  EXPECT_EQ(values<float>(given), kPieces);
  PJRT_Buffer* const failed = donated(PJRT_Error_Code_UNAVAILABLE);
  EXPECT_EQ(contents_of(failed), "14: no");
  destroy(given);
  destroy(failed);
}

TEST_P(LateBuffers, BytesAreReadInPart) {
  PJRT_Buffer* const buffer = client_.floats(kPieces, kSix);
  Floats read(2);
  auto raw = uninitialized<PJRT_Buffer_CopyRawToHost_Args>();
  raw.buffer = buffer;
  raw.dst = read.data();
  raw.offset = 8;
  raw.transfer_size = 8;
  call(api().PJRT_Buffer_CopyRawToHost, raw);
  EXPECT_EQ(outcome(raw.event), "");
  EXPECT_EQ(read, (Floats{3, 4}));
  raw.offset = 20;
  EXPECT_EQ(take(api().PJRT_Buffer_CopyRawToHost(&raw)),
            "3: 8 bytes at 20 of f32[2,3], which has 24");
  auto later = uninitialized<PJRT_Buffer_CopyRawToHostFuture_Args>();
  later.buffer = buffer;
  later.offset = 16;
  later.transfer_size = 8;
  const auto answered = [&](PJRT_Error_Code code) {
    EXPECT_EQ(take(api().PJRT_Buffer_CopyRawToHostFuture(&later)), "");
    EXPECT_FALSE(get(api().PJRT_Event_IsReady, later.event, &PJRT_Event_IsReady_Args::event,
                     &PJRT_Event_IsReady_Args::is_ready));
    PJRT_Buffer_CopyRawToHostFuture_Callback_Args args = {
        sizeof args, later.callback_data, code, "none", 4, read.data()};
    later.future_ready_callback(&args);
    return outcome(later.event);
  };
  EXPECT_EQ(answered(PJRT_Error_Code_OK), "");
  EXPECT_EQ(read, (Floats{5, 6}));
  EXPECT_EQ(answered(PJRT_Error_Code_RESOURCE_EXHAUSTED), "8: none");
  destroy(buffer);
}

TEST_P(LateBuffers, BytesAreOfAnotherType) {
  PJRT_Buffer* const buffer = client_.floats({1, 2}, {2});
  const std::vector<int64_t> dims = {2, 2};
  auto args = uninitialized<PJRT_Buffer_Bitcast_Args>();
  args.buffer = buffer;
  args.element_type = PJRT_Buffer_Type_U16;
  args.dims = dims.data();
  args.num_dims = 2;
  args.device_layout = nullptr;
  call(api().PJRT_Buffer_Bitcast, args);
  EXPECT_EQ(values<uint16_t>(args.out_buffer), (std::vector<uint16_t>{0, 0x3f80, 0, 0x4000}));
  destroy(args.out_buffer);
  args.num_dims = 1;
  EXPECT_EQ(take(api().PJRT_Buffer_Bitcast(&args)),
            "3: a bitcast from f32[2] of 8 bytes to u16[2] of 4");
  args.element_type = PJRT_Buffer_Type_S4;
  EXPECT_EQ(take(api().PJRT_Buffer_Bitcast(&args)), "12: a bitcast from f32[2] to s4[2]");
  destroy(buffer);
}

INSTANTIATE_TEST_SUITE_P(Devices, LateBuffers,
                         ::testing::Values("interp", "cpu", "gpu-sim", "template", "reference"));

TEST(TransferManagers, SayWhatTheyHold) {
  const Client client;
  const Manager manager(client, {six(), six(PJRT_Buffer_Type_S8)});
  auto device = uninitialized<PJRT_AsyncHostToDeviceTransferManager_Device_Args>();
  device.transfer_manager = manager.get();
  call(api().PJRT_AsyncHostToDeviceTransferManager_Device, device);
  EXPECT_EQ(device.device_out, client.devices()[0]);
  auto count = uninitialized<PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args>();
  count.transfer_manager = manager.get();
  call(api().PJRT_AsyncHostToDeviceTransferManager_BufferCount, count);
  EXPECT_EQ(count.buffer_count, 2U);
  auto size = uninitialized<PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args>();
  size.transfer_manager = manager.get();
  size.buffer_index = 1;
  call(api().PJRT_AsyncHostToDeviceTransferManager_BufferSize, size);
  EXPECT_EQ(size.buffer_size, 6U);
  size.buffer_index = 2;
  EXPECT_EQ(take(api().PJRT_AsyncHostToDeviceTransferManager_BufferSize(&size)),
            "3: buffer 2 of a transfer manager of 2");
  const PJRT_NamedValue hint = option("priority", "low");
  auto metadata = uninitialized<PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args>();
  metadata.transfer_manager = manager.get();
  metadata.transfer_metadata = &hint;
  metadata.num_metadata = 1;
  call(api().PJRT_AsyncHostToDeviceTransferManager_AddMetadata, metadata);
}

TEST(TransferManagers, WrongCalls) {
  const Client client;
  const Manager manager(client, {six()});
  PJRT_Buffer* buffer = manager.buffer();
  EXPECT_EQ(manager.retrieve(0, &buffer), "9: buffer 0 has been retrieved");
  EXPECT_EQ(manager.retrieve(-1, &buffer), "3: buffer -1 of a transfer manager of 1");
  EXPECT_EQ(manager.transfer(kPieces.data(), 20, 8, false),
            "3: 8 bytes at 20 of f32[2,3], which has 24");
  EXPECT_EQ(manager.transfer(kPieces.data(), -4, 8, false),
            "3: 8 bytes at -4 of f32[2,3], which has 24");
  EXPECT_EQ(manager.transfer(kPieces.data(), 0, -1, false), "3: a piece of -1 bytes");
  EXPECT_EQ(manager.transfer(kPieces.data(), 0, 24, true), "");
  EXPECT_EQ(values<float>(buffer), kPieces);
  destroy(buffer);
}

TEST(TransferManagers, WholeArraysInTheLayoutOfTheHost) {
  const Client client;
  const Manager manager(client, {six(), six(PJRT_Buffer_Type_PRED)});
  const std::vector<int64_t> column_order = {0, 1};
  PJRT_Buffer_MemoryLayout layout = {};
  layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout.tiled.minor_to_major = column_order.data();
  layout.tiled.minor_to_major_size = 2;
  auto args = uninitialized<PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args>();
  args.transfer_manager = manager.get();
  args.buffer_index = 0;
  args.data = kPieces.data();
  args.shape_dims = kSix.data();
  args.shape_num_dims = 2;
  args.shape_element_type = PJRT_Buffer_Type_F32;
  args.shape_layout = &layout;
  call(api().PJRT_AsyncHostToDeviceTransferManager_TransferLiteral, args);
  EXPECT_EQ(outcome(args.done_with_h2d_transfer), "");
  PJRT_Buffer* const buffer = manager.buffer(0);
  EXPECT_EQ(values<float>(buffer), (Floats{1, 3, 5, 2, 4, 6}));
  args.buffer_index = 1;
  EXPECT_EQ(take(api().PJRT_AsyncHostToDeviceTransferManager_TransferLiteral(&args)),
            "3: an array of f32[2,3] for one of pred[2,3]");
  // Any byte but 0 is true.
  const std::vector<uint8_t> flags = {0, 1, 2, 0, 255, 1};
  EXPECT_EQ(manager.transfer(flags.data(), 0, 3, false, 1), "");
  EXPECT_EQ(manager.transfer(&flags[3], 3, 3, true, 1), "");
  PJRT_Buffer* const normal = manager.buffer(1);
  EXPECT_EQ(values<uint8_t>(normal), (std::vector<uint8_t>{0, 1, 1, 0, 1, 1}));
  destroy(normal);
  destroy(buffer);
}

// Memory of the caller that a device reads as it lies, until the buffer is gone.
TEST(Views, GiveTheMemoryBack) {
  alignas(64) static const float kData[] = {1, 2, 3, 4, 5, 6};
  static std::atomic<int> given_back = 0;
  const Client client("cpu", "", "1");
  auto args = uninitialized<PJRT_Client_CreateViewOfDeviceBuffer_Args>();
  args.client = client.get();
  args.device_buffer_ptr = const_cast<float*>(kData);
  args.dims = kSix.data();
  args.num_dims = 2;
  args.element_type = PJRT_Buffer_Type_F32;
  args.layout = nullptr;
  args.device = client.devices()[0];
  args.on_delete_callback = [](void* data, void* user) {
    if (data != kData) return;
    *static_cast<std::atomic<int>*>(user) += 1;
    given_back.notify_all();
  };
  args.on_delete_callback_arg = &given_back;
  args.stream = 0;
  args.memory = nullptr;
  call(api().PJRT_Client_CreateViewOfDeviceBuffer, args);
  EXPECT_EQ(data_of(args.buffer), kData);
  EXPECT_EQ(values<float>(args.buffer), kPieces);
  EXPECT_EQ(given_back, 0);
  destroy(args.buffer);
  given_back.wait(0);
  const Client without("template", "", "1");
  args.client = without.get();
  args.device = without.devices()[0];
  EXPECT_TRUE(take(api().PJRT_Client_CreateViewOfDeviceBuffer(&args)).starts_with("12: "));
}

TEST(HostMemory, NeedsNoMapping) {
  const Client client;
  int memory = 0;
  PJRT_Client_DmaMap_Args map = {sizeof map, nullptr, client.get(), &memory, sizeof memory};
  EXPECT_EQ(take(api().PJRT_Client_DmaMap(&map)), "");
  EXPECT_EQ(take(api().PJRT_Client_DmaMap(&map)), "6: the memory is mapped already");
  PJRT_Client_DmaUnmap_Args unmap = {sizeof unmap, nullptr, client.get(), &memory};
  EXPECT_EQ(take(api().PJRT_Client_DmaUnmap(&unmap)), "");
  EXPECT_EQ(take(api().PJRT_Client_DmaUnmap(&unmap)), "5: the memory is not mapped");
}

}  // namespace
}  // namespace tenon::pjrt::testing
