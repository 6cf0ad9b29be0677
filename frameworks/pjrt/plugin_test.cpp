// The plug-in without a framework: the table, errors, events, clients, buffers.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <set>
#include <thread>

#include "core/base/process/sanitizers.h"
#include "frameworks/pjrt/plugin_test_util.h"

namespace tenon::pjrt::testing {
namespace {

using Floats = std::vector<float>;

// --- The table

TEST(Table, IsFilled) {
  EXPECT_EQ(api().struct_size, sizeof(PJRT_Api));
  EXPECT_EQ(api().pjrt_api_version.major_version, 0);
  EXPECT_EQ(api().pjrt_api_version.minor_version, PJRT_API_MINOR);
  const auto* slots = reinterpret_cast<void* const*>(&api().PJRT_Error_Destroy);
  for (size_t i = 0; i < 138; ++i) EXPECT_NE(slots[i], nullptr) << "function " << i;
}

// A function that is refused looks at no argument; others fail, or crash, with addresses that are
// none. Each is called in a child.
bool is_refused(size_t function) {
  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    close(STDERR_FILENO);  // Of a sanitizer that reports the crash.
    using Function = PJRT_Error* (*)(void*);
    const auto* slots = reinterpret_cast<const Function*>(&api().PJRT_Error_Destroy);
    std::array<uint64_t, 128> ones = {};
    ones.fill(1);
    PJRT_Error* const error = slots[function](ones.data());
    if (error == nullptr) _exit(0);
    PJRT_Error_GetCode_Args code = {sizeof code, nullptr, error, PJRT_Error_Code_OK};
    api().PJRT_Error_GetCode(&code);
    _exit(code.code == PJRT_Error_Code_UNIMPLEMENTED ? 12 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 12;
}

// docs/pjrt.md has the reasons.
TEST(Table, RefusesWhatItsPageLists) {
  if (TENON_ASAN) GTEST_SKIP() << "it calls functions with addresses that the sanitizer refuses";
  constexpr size_t kPoisonExecution = 121;
  std::vector<size_t> refused;
  for (size_t i = 2; i < 138; ++i) {  // The first two return nothing.
    if (is_refused(i)) refused.push_back(i);
  }
  EXPECT_EQ(refused, std::vector<size_t>{kPoisonExecution});
}

TEST(Table, IsAllThatTheLibraryExports) {
  void* library = dlopen(TENON_PJRT_PLUGIN, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr);
  EXPECT_NE(dlsym(library, "GetPjrtApi"), nullptr);
  EXPECT_EQ(dlsym(library, "_ZN5tenon15error_code_nameENS_9ErrorCodeE"), nullptr);
  dlclose(library);
}

TEST(Table, RefusesWithAReason) {
  auto args = uninitialized<PJRT_Device_PoisonExecution_Args>();
  EXPECT_EQ(take(api().PJRT_Device_PoisonExecution(&args)),
            "12: Device_PoisonExecution: executions are not poisoned");
}

TEST(Plugin, StatesTheVersionsOfStableHlo) {
  auto args = uninitialized<PJRT_Plugin_Attributes_Args>();
  call(api().PJRT_Plugin_Attributes, args);
  std::map<std::string, std::vector<int64_t>> versions;
  for (const PJRT_NamedValue& value : std::span(args.attributes, args.num_attributes)) {
    ASSERT_EQ(value.type, PJRT_NamedValue_kInt64List);
    versions[std::string(value.name, value.name_size)] = {
        value.int64_array_value, value.int64_array_value + value.value_size};
  }
  EXPECT_EQ(versions.at("stablehlo_current_version"), (std::vector<int64_t>{1, 20, 0}));
  EXPECT_EQ(versions.at("stablehlo_minimum_version"), (std::vector<int64_t>{0, 9, 0}));
}

// --- Errors

PJRT_Error* an_error() {
  const PJRT_NamedValue device = option("device", "nonesuch");
  auto args = uninitialized<PJRT_Client_Create_Args>();
  args.create_options = &device;
  args.num_options = 1;
  return api().PJRT_Client_Create(&args);
}

TEST(Errors, SayWhatWasWrong) {
  const std::string text = take(an_error());
  EXPECT_TRUE(text.starts_with(
      "5: there is no backend 'nonesuch'; there are cpu, gpu, gpu-sim, interp, template"))
      << text;
}

TEST(Errors, HaveNoPayloads) {
  PJRT_Error* error = an_error();
  auto args = uninitialized<PJRT_Error_ForEachPayload_Args>();
  args.error = error;
  args.visitor = [](const char*, size_t, const char*, size_t, void*) { FAIL(); };
  EXPECT_EQ(api().PJRT_Error_ForEachPayload(&args), nullptr);
  take(error);
}

// Code without a table uses the function pointers at the start of an error.
TEST(Errors, AnswerThroughTheirOwnFunctions) {
  PJRT_Error* error = an_error();
  EXPECT_EQ(error->vtable->get_code(error), PJRT_Error_Code_NOT_FOUND);
  const char* text = nullptr;
  size_t size = 0;
  error->vtable->message(error, &text, &size);
  EXPECT_TRUE(std::string(text, size).starts_with("there is no backend"));
  error->vtable->destroy(error);
}

TEST(Errors, DestroyOfNull) {
  PJRT_Error_Destroy_Args args = {sizeof args, nullptr, nullptr};
  api().PJRT_Error_Destroy(&args);
}

// --- Clients, devices, memories

TEST(Clients, OptionsAreChecked) {
  const auto create = [](std::vector<PJRT_NamedValue> options) {
    auto args = uninitialized<PJRT_Client_Create_Args>();
    args.create_options = options.data();
    args.num_options = options.size();
    return take(api().PJRT_Client_Create(&args));
  };
  EXPECT_EQ(create({option("device_count", "two")}),
            "3: create option 'device_count' is not a number");
  EXPECT_EQ(create({option("device_count", "0")}), "3: 0 devices; expected at least one");
  for (const char* device : {"interp", "reference"}) {
    EXPECT_EQ(create({option("device", device), option("device_count", "4611686018427387904")}),
              "3: 4611686018427387904 devices; 1024 at most");
  }
  EXPECT_EQ(create({option("time_limit", "soon")}),
            "3: create option 'time_limit' is not a number");
  EXPECT_EQ(create({option("time_limit", "-1")}),
            "3: a time limit of -1 milliseconds; 0 (none) to 1099511627776");
  EXPECT_EQ(create({option("device", "interp:x")}),
            "3: 'interp:x' is not a device: the text after the ':' is not a number");
  EXPECT_TRUE(create({option("layers", "glaze")}).starts_with("5: there is no layer 'glaze'; "));
}

// Without a name the device is the CPU, as in the other frameworks.
TEST(Clients, AreOfTheCpuUnlessAnotherIsNamed) {
  const char* const named = std::getenv("TENON_DEVICE");
  const std::string kept = named == nullptr ? "" : named;
  unsetenv("TENON_DEVICE");
  auto created = uninitialized<PJRT_Client_Create_Args>();
  created.num_options = 0;
  call(api().PJRT_Client_Create, created);
  if (named != nullptr) setenv("TENON_DEVICE", kept.c_str(), 1);
  auto version = uninitialized<PJRT_Client_PlatformVersion_Args>();
  version.client = created.client;
  call(api().PJRT_Client_PlatformVersion, version);
  const std::string text(version.platform_version, version.platform_version_size);
  EXPECT_NE(text.find(", cpu "), std::string::npos) << text;
  PJRT_Client_Destroy_Args destroyed = {sizeof destroyed, nullptr, created.client};
  call(api().PJRT_Client_Destroy, destroyed);
}

// A framework that lets go of its client may keep arrays, and open the device again.
TEST(Clients, ShareADeviceThatIsOpen) {
  Client first;
  PJRT_Buffer* const x = first.floats({1, 2}, {2});
  first.end();
  const Client second;
  PJRT_Buffer* const y = second.floats({3, 4}, {2});
  EXPECT_EQ(values<float>(x), (std::vector<float>{1, 2}));
  EXPECT_EQ(values<float>(y), (std::vector<float>{3, 4}));
  const Client third;
  EXPECT_NE(third.devices()[0], second.devices()[0]) << "each describes its devices itself";
  for (PJRT_Buffer* buffer : {x, y}) destroy(buffer);
}

// While a thread opens a device, for which it waits because another client has it, the process
// forks: the child opens a device of its own.
TEST(Clients, AreCreatedInChildrenWhileAnotherThreadCreatesOne) {
  auto holder = std::make_unique<Client>("interp:40", "", "1");
  std::atomic<bool> has_begun = false;
  std::thread opener([&has_begun] {
    has_begun = true;
    has_begun.notify_all();
    const std::vector<PJRT_NamedValue> options = {option("device", "interp:40"),
                                                  option("layers", "validate")};
    auto args = uninitialized<PJRT_Client_Create_Args>();
    args.create_options = options.data();
    args.num_options = options.size();
    PJRT_Error* const error = api().PJRT_Client_Create(&args);
    if (error != nullptr) return static_cast<void>(take(error));  // It has waited long enough.
    PJRT_Client_Destroy_Args destroy = {sizeof destroy, nullptr, args.client};
    call(api().PJRT_Client_Destroy, destroy);
  });
  has_begun.wait(false);
  for (int i = 0; i < 10; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // Some forks hit it within.
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);  // Ends a child that hangs.
      {
        const Client own("interp:41", "", "1");
      }
      _exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  holder = nullptr;
  opener.join();
}

// Threads that create a client with the same options get one engine.
TEST(Clients, AreCreatedAtOnce) {
  std::vector<std::unique_ptr<Client>> clients(8);
  std::vector<std::thread> threads;
  for (auto& client : clients) {
    threads.emplace_back([&client] { client = std::make_unique<Client>("interp:42", "", "1"); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& client : clients) EXPECT_NE(client->get(), nullptr);
}

TEST(Clients, DescribeTheirDevices) {
  const Client client;
  ASSERT_EQ(client.devices().size(), 2);
  for (int i = 0; i < 2; ++i) {
    auto look_up = uninitialized<PJRT_Client_LookupDevice_Args>();
    look_up.client = client.get();
    look_up.id = i;
    call(api().PJRT_Client_LookupDevice, look_up);
    EXPECT_EQ(look_up.device, client.devices()[static_cast<size_t>(i)]);
    PJRT_DeviceDescription* description = get(api().PJRT_Device_GetDescription, look_up.device,
                                              &PJRT_Device_GetDescription_Args::device,
                                              &PJRT_Device_GetDescription_Args::device_description);
    EXPECT_EQ(get(api().PJRT_DeviceDescription_Id, description,
                  &PJRT_DeviceDescription_Id_Args::device_description,
                  &PJRT_DeviceDescription_Id_Args::id),
              i);
  }
  auto look_up = uninitialized<PJRT_Client_LookupDevice_Args>();
  look_up.client = client.get();
  look_up.id = 2;
  EXPECT_EQ(take(api().PJRT_Client_LookupDevice(&look_up)), "5: there is no device 2; there are 2");
}

std::string platform_of(const Client& client) {
  auto name = uninitialized<PJRT_Client_PlatformName_Args>();
  name.client = client.get();
  call(api().PJRT_Client_PlatformName, name);
  return {name.platform_name, name.platform_name_size};
}

// A package for one device has a platform by that device's name; the device is the same.
TEST(Clients, HaveThePlatformThatTheyAreCreatedFor) {
  const Client first;
  const Client second("interp", "", "2", {option("platform_name", "npu")});
  EXPECT_EQ(platform_of(first), "tenon");
  EXPECT_EQ(platform_of(second), "npu");
  auto get_topology = uninitialized<PJRT_Client_TopologyDescription_Args>();
  get_topology.client = second.get();
  call(api().PJRT_Client_TopologyDescription, get_topology);
  auto name = uninitialized<PJRT_TopologyDescription_PlatformName_Args>();
  name.topology = get_topology.topology;
  call(api().PJRT_TopologyDescription_PlatformName, name);
  EXPECT_EQ(std::string(name.platform_name, name.platform_name_size), "npu");
  PJRT_Buffer* const x = first.floats({1, 2}, {2});
  EXPECT_EQ(values<float>(x), (std::vector<float>{1, 2}));
  destroy(x);
}

TEST(Memories, EachBelongsToOneDevice) {
  const Client client;
  std::set<int> ids;
  for (size_t d = 0; d < 2; ++d) {
    std::vector<std::string> kinds;
    for (PJRT_Memory* memory : client.memories(d)) {
      auto kind = uninitialized<PJRT_Memory_Kind_Args>();
      kind.memory = memory;
      call(api().PJRT_Memory_Kind, kind);
      kinds.emplace_back(kind.kind, kind.kind_size);
      ids.insert(get(api().PJRT_Memory_Id, memory, &PJRT_Memory_Id_Args::memory,
                     &PJRT_Memory_Id_Args::id));
      auto devices = uninitialized<PJRT_Memory_AddressableByDevices_Args>();
      devices.memory = memory;
      call(api().PJRT_Memory_AddressableByDevices, devices);
      ASSERT_EQ(devices.num_devices, 1);
      EXPECT_EQ(devices.devices[0], client.devices()[d]);
    }
    EXPECT_EQ(kinds, (std::vector<std::string>{"device", "pinned_host"}));
  }
  EXPECT_EQ(ids.size(), 4);
}

TEST(Memories, KeepWhatCallersGiveThem) {
  static int destroyed = 0;
  const auto count = [](void* data) { destroyed += *static_cast<int*>(data); };
  int one = 1;
  int ten = 10;
  int key = 0;
  {
    const Client client;
    PJRT_Memory* memory = client.memories()[0];
    EXPECT_EQ(memory->vtable->get_user_data(memory, &key), nullptr);
    memory->vtable->set_user_data(memory, &key, &one, count);
    memory->vtable->set_user_data(memory, &key, &ten, count);
    EXPECT_EQ(destroyed, 1);
    EXPECT_EQ(memory->vtable->get_user_data(memory, &key), &ten);
  }
  EXPECT_EQ(destroyed, 11);
}

TEST(Memories, StatisticsForCallersOfAnyVersion) {
  const Client client;
  auto args = uninitialized<PJRT_Device_MemoryStats_Args>();
  args.device = client.devices()[0];
  args.struct_size = offsetof(PJRT_Device_MemoryStats_Args, peak_allocated_bytes);
  call(api().PJRT_Device_MemoryStats, args);
  EXPECT_EQ(args.bytes_in_use, 0);
  EXPECT_TRUE(args.peak_bytes_in_use_is_set);
  EXPECT_FALSE(args.bytes_limit_is_set);
  unsigned char behind = 0;
  std::memcpy(&behind, &args.peak_allocated_bytes_is_set, 1);
  EXPECT_EQ(behind, 0xa5);  // Not written: this caller lacks it.
}

TEST(Devices, StatisticsBeginAgain) {
  const Client client("interp", "", "1");
  const auto counted = [&] {
    auto args = uninitialized<PJRT_Device_MemoryStats_Args>();
    args.device = client.devices()[0];
    EXPECT_EQ(take(api().PJRT_Device_MemoryStats(&args)), "");
    return std::pair(args.num_allocs, args.largest_alloc_size);
  };
  destroy(client.floats(Floats(2000), {2000}));  // Small ones lie in memory of the host.
  EXPECT_EQ(counted().first, 1);
  EXPECT_GE(counted().second, 8000);
  PJRT_Device_ClearMemoryStats_Args clear = {sizeof clear, nullptr, client.devices()[0]};
  call(api().PJRT_Device_ClearMemoryStats, clear);
  EXPECT_EQ(counted(), std::pair(int64_t{0}, int64_t{0}));
}

TEST(Devices, HaveTheAttributesOfTheirDescriptions) {
  const Client client;
  auto args = uninitialized<PJRT_Device_GetAttributes_Args>();
  args.device = client.devices()[0];
  call(api().PJRT_Device_GetAttributes, args);
  std::set<std::string> names;
  for (const PJRT_NamedValue& value : std::span(args.attributes, args.num_attributes)) {
    names.emplace(value.name, value.name_size);
  }
  EXPECT_EQ(names, (std::set<std::string>{"backend_device", "host_visible"}));
  args.attributes_deleter(args.device_attributes);
}

// --- Buffers

TEST(Buffers, StridesOfAnySign) {
  const Client client;
  const Floats data = {0, 1, 2, 3, 4, 5};
  const auto made = [&](const float* from, const std::vector<int64_t>& dims,
                        std::vector<int64_t> strides) {
    auto args = client.host_args(from, PJRT_Buffer_Type_F32, dims);
    args.byte_strides = strides.data();
    args.num_byte_strides = strides.size();
    EXPECT_EQ(take(api().PJRT_Client_BufferFromHostBuffer(&args)), "");
    EXPECT_EQ(outcome(args.done_with_host_buffer), "");
    Floats read = values<float>(args.buffer);
    destroy(args.buffer);
    return read;
  };
  EXPECT_EQ(made(data.data(), {2, 3}, {12, 4}), data);
  EXPECT_EQ(made(data.data(), {3, 2}, {4, 12}), (Floats{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(made(data.data() + 5, {6}, {-4}), (Floats{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(made(data.data() + 2, {2, 2}, {0, 4}), (Floats{2, 3, 2, 3}));
  EXPECT_EQ(made(data.data(), {0, 2}, {8, 4}), Floats());
  EXPECT_EQ(made(data.data() + 4, {}, {}), (Floats{4}));
  std::vector<int64_t> none;  // An empty list, also at a non-null address, means a dense array.
  none.reserve(1);
  const std::vector<int64_t> dims = {6};
  auto args = client.host_args(data.data(), PJRT_Buffer_Type_F32, dims);
  args.byte_strides = none.data();
  ASSERT_EQ(take(api().PJRT_Client_BufferFromHostBuffer(&args)), "");
  EXPECT_EQ(outcome(args.done_with_host_buffer), "");
  EXPECT_EQ(values<float>(args.buffer), data);
  destroy(args.buffer);
}

TEST(Buffers, WrongArguments) {
  const Client client;
  const float data = 0;
  const auto fails = [&](auto change) {
    auto args = client.host_args(&data, PJRT_Buffer_Type_F32, {});
    change(args);
    return take(api().PJRT_Client_BufferFromHostBuffer(&args));
  };
  EXPECT_EQ(fails([](auto& args) { args.type = PJRT_Buffer_Type_TOKEN; }),
            "12: element type 23 of the PJRT C API is not supported");
  EXPECT_EQ(fails([](auto& args) { args.memory = nullptr; }),
            "3: neither a memory nor a device is named");
  const Client other("reference");
  EXPECT_EQ(fails([&](auto& args) { args.memory = other.memories()[0]; }),
            "3: the memory is one of another client");
  EXPECT_EQ(fails([&](auto& args) {
              args.memory = nullptr;
              args.device = other.devices()[0];
            }),
            "3: the memory is one of another client");
  const std::vector<int64_t> huge = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_TRUE(fails([&](auto& args) {
                args.dims = huge.data();
                args.num_dims = 2;
              }).starts_with("3: "));
  const int64_t stride = 4;
  EXPECT_EQ(fails([&](auto& args) {
              args.byte_strides = &stride;
              args.num_byte_strides = 1;
            }),
            "3: 1 strides of 0 dimensions");
}

// The high bits that a framework leaves are ignored.
TEST(Buffers, FourBitIntegersTakeAByte) {
  const Client client;
  const std::vector<uint8_t> data = {0xf7, 0x08, 0xff, 0x10};
  const auto made = [&](PJRT_Buffer_Type type) {
    const std::vector<int64_t> dims = {4};
    auto args = client.host_args(data.data(), type, dims);
    EXPECT_EQ(take(api().PJRT_Client_BufferFromHostBuffer(&args)), "");
    EXPECT_EQ(outcome(args.done_with_host_buffer), "");
    auto read = values<int8_t>(args.buffer);
    destroy(args.buffer);
    return read;
  };
  EXPECT_EQ(made(PJRT_Buffer_Type_S4), (std::vector<int8_t>{7, -8, -1, 0}));
  EXPECT_EQ(made(PJRT_Buffer_Type_U4), (std::vector<int8_t>{7, 8, 15, 0}));
}

TEST(Buffers, ToTheHostInItsLayout) {
  const Client client;
  PJRT_Buffer* buffer = client.floats({0, 1, 2, 3, 4, 5}, {2, 3});
  const std::vector<int64_t> column_order = {0, 1};
  PJRT_Buffer_MemoryLayout layout = {};
  layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout.tiled.minor_to_major = column_order.data();
  layout.tiled.minor_to_major_size = 2;
  EXPECT_EQ(values<float>(buffer, &layout), (Floats{0, 3, 1, 4, 2, 5}));
  const std::vector<int64_t> strides = {4, 8};
  layout = {};
  layout.type = PJRT_Buffer_MemoryLayout_Type_Strides;
  layout.strides.byte_strides = strides.data();
  layout.strides.num_byte_strides = 2;
  EXPECT_EQ(values<float>(buffer, &layout), (Floats{0, 3, 1, 4, 2, 5}));
  auto short_of_room = uninitialized<PJRT_Buffer_ToHostBuffer_Args>();
  float room[5];
  short_of_room.src = buffer;
  short_of_room.host_layout = nullptr;
  short_of_room.dst = room;
  short_of_room.dst_size = sizeof room;
  EXPECT_EQ(take(api().PJRT_Buffer_ToHostBuffer(&short_of_room)),
            "3: f32[2,3] has 24 bytes, there is room for 20");
  const std::vector<int64_t> wide = {16, 4};
  layout.strides.byte_strides = wide.data();
  auto room_for = uninitialized<PJRT_Buffer_ToHostBuffer_Args>();
  room_for.src = buffer;
  room_for.host_layout = &layout;
  room_for.dst = nullptr;
  call(api().PJRT_Buffer_ToHostBuffer, room_for);
  EXPECT_EQ(room_for.dst_size, 28U);
  auto beyond = uninitialized<PJRT_Buffer_ToHostBuffer_Args>();
  float exact[6];
  beyond.src = buffer;
  beyond.host_layout = &layout;
  beyond.dst = exact;
  beyond.dst_size = sizeof exact;
  EXPECT_EQ(take(api().PJRT_Buffer_ToHostBuffer(&beyond)), "");
  EXPECT_EQ(outcome(beyond.event),
            "3: elements of f32[2,3], 16 and 4 bytes apart, do not all lie within 24 bytes");
  destroy(buffer);
}

TEST(Buffers, AnswerWhenDeleted) {
  const Client client;
  PJRT_Buffer* buffer = client.floats({1, 2}, {2, 1});
  PJRT_Buffer_Delete_Args remove = {sizeof remove, nullptr, buffer};
  call(api().PJRT_Buffer_Delete, remove);
  call(api().PJRT_Buffer_Delete, remove);  // Deleting again has no effect.
  EXPECT_TRUE(is_deleted(buffer));
  EXPECT_EQ(get(api().PJRT_Buffer_ElementType, buffer, &PJRT_Buffer_ElementType_Args::buffer,
                &PJRT_Buffer_ElementType_Args::type),
            PJRT_Buffer_Type_F32);
  auto dims = uninitialized<PJRT_Buffer_Dimensions_Args>();
  dims.buffer = buffer;
  call(api().PJRT_Buffer_Dimensions, dims);
  EXPECT_EQ(std::vector(dims.dims, dims.dims + dims.num_dims), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(get(api().PJRT_Buffer_Device, buffer, &PJRT_Buffer_Device_Args::buffer,
                &PJRT_Buffer_Device_Args::device),
            client.devices()[0]);
  EXPECT_EQ(get(api().PJRT_Buffer_Memory, buffer, &PJRT_Buffer_Memory_Args::buffer,
                &PJRT_Buffer_Memory_Args::memory),
            client.memories()[0]);
  EXPECT_EQ(outcome(get(api().PJRT_Buffer_ReadyEvent, buffer, &PJRT_Buffer_ReadyEvent_Args::buffer,
                        &PJRT_Buffer_ReadyEvent_Args::event)),
            "");
  auto layout = uninitialized<PJRT_Buffer_GetMemoryLayout_Args>();
  layout.buffer = buffer;
  call(api().PJRT_Buffer_GetMemoryLayout, layout);
  EXPECT_EQ(layout.layout.tiled.minor_to_major[0], 1);
  auto to_host = uninitialized<PJRT_Buffer_ToHostBuffer_Args>();
  float room[2];
  to_host.src = buffer;
  to_host.host_layout = nullptr;
  to_host.dst = room;
  to_host.dst_size = sizeof room;
  EXPECT_EQ(take(api().PJRT_Buffer_ToHostBuffer(&to_host)),
            "9: the buffer of f32[2,1] has been deleted or donated");
  destroy(buffer);
}

TEST(Buffers, CopiesToOtherMemories) {
  const Client client;
  PJRT_Buffer* buffer = client.floats({1, 2, 3}, {3});
  for (PJRT_Memory* memory :
       {client.memories(0)[1], client.memories(1)[0], client.memories(1)[1]}) {
    auto copy = uninitialized<PJRT_Buffer_CopyToMemory_Args>();
    copy.buffer = buffer;
    copy.dst_memory = memory;
    call(api().PJRT_Buffer_CopyToMemory, copy);
    EXPECT_EQ(values<float>(copy.dst_buffer), (Floats{1, 2, 3}));
    destroy(copy.dst_buffer);
  }
  const Client other("reference");
  auto copy = uninitialized<PJRT_Buffer_CopyToMemory_Args>();
  copy.buffer = buffer;
  copy.dst_memory = other.memories()[0];
  EXPECT_EQ(take(api().PJRT_Buffer_CopyToMemory(&copy)), "3: the memory is one of another client");
  destroy(buffer);
}

TEST(Buffers, OutliveTheClient) {
  Client client;
  PJRT_Buffer* buffer = client.floats({1, 2, 3}, {3});
  client.end();
  EXPECT_EQ(values<float>(buffer), (Floats{1, 2, 3}));
  destroy(buffer);
}

TEST(Buffers, OfAnError) {
  const Client client;
  auto args = uninitialized<PJRT_Client_CreateErrorBuffer_Args>();
  const int64_t dim = 2;
  args.client = client.get();
  args.error_code = PJRT_Error_Code_ABORTED;
  args.error_message = "no luck";
  args.error_message_size = 7;
  args.shape_dims = &dim;
  args.shape_num_dims = 1;
  args.shape_element_type = PJRT_Buffer_Type_F32;
  args.shape_layout = nullptr;
  args.memory = client.memories()[0];
  call(api().PJRT_Client_CreateErrorBuffer, args);
  EXPECT_EQ(outcome(get(api().PJRT_Buffer_ReadyEvent, args.buffer,
                        &PJRT_Buffer_ReadyEvent_Args::buffer, &PJRT_Buffer_ReadyEvent_Args::event)),
            "10: no luck");
  destroy(args.buffer);
}

// --- Events

struct Heard {
  PJRT_Event* event = nullptr;
  std::atomic<int> times = 0;
  std::string error;
};

// As the client does: the callback destroys the event that calls it.
void hear(PJRT_Error* error, void* user) {
  auto* heard = static_cast<Heard*>(user);
  heard->error = take(error);
  if (heard->event != nullptr) destroy(heard->event);
  ++heard->times;
  heard->times.notify_all();
}

void on_ready(PJRT_Event* event, Heard& heard) {
  PJRT_Event_OnReady_Args args = {sizeof args, nullptr, event, &hear, &heard};
  call(api().PJRT_Event_OnReady, args);
}

TEST(Events, CallbacksMayDestroyTheEvent) {
  const Client client;
  const Floats data(1 << 16, 1);
  for (int i = 0; i < 50; ++i) {
    const std::vector<int64_t> dims = {1 << 16};
    auto args = client.host_args(data.data(), PJRT_Buffer_Type_F32, dims);
    args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes;
    call(api().PJRT_Client_BufferFromHostBuffer, args);
    Heard first;
    Heard last;
    last.event = args.done_with_host_buffer;
    on_ready(args.done_with_host_buffer, first);
    first.times.wait(0);
    on_ready(args.done_with_host_buffer, last);  // Already done: it is called before this returns.
    EXPECT_EQ(last.times, 1);
    EXPECT_EQ(first.error + last.error, "");
    Heard ready;
    ready.event = get(api().PJRT_Buffer_ReadyEvent, args.buffer,
                      &PJRT_Buffer_ReadyEvent_Args::buffer, &PJRT_Buffer_ReadyEvent_Args::event);
    on_ready(ready.event, ready);
    destroy(args.buffer);
    ready.times.wait(0);
    EXPECT_EQ(ready.error, "");
  }
}

TEST(Events, DestroyedWhileSomebodyHasYetToHear) {
  const Client client;
  PJRT_Buffer* buffer = client.floats(Floats(1000, 1), {1000});
  Heard heard;
  PJRT_Event* event =
      get(api().PJRT_Buffer_ReadyEvent, buffer, &PJRT_Buffer_ReadyEvent_Args::buffer,
          &PJRT_Buffer_ReadyEvent_Args::event);
  on_ready(event, heard);
  destroy(event);
  heard.times.wait(0);
  EXPECT_EQ(heard.error, "");
  destroy(buffer);
}

TEST(Events, OfTheCaller) {
  const auto made = [] {
    auto args = uninitialized<PJRT_Event_Create_Args>();
    EXPECT_EQ(take(api().PJRT_Event_Create(&args)), "");
    return args.event;
  };
  const auto set = [](PJRT_Event* event, PJRT_Error_Code code) {
    PJRT_Event_Set_Args args = {sizeof args, nullptr, event, code, "torn", 4};
    return take(api().PJRT_Event_Set(&args));
  };
  PJRT_Event* event = made();
  EXPECT_FALSE(get(api().PJRT_Event_IsReady, event, &PJRT_Event_IsReady_Args::event,
                   &PJRT_Event_IsReady_Args::is_ready));
  Heard heard;
  on_ready(event, heard);
  std::thread waiter([event] {
    PJRT_Event_Await_Args args = {sizeof args, nullptr, event};
    EXPECT_EQ(take(api().PJRT_Event_Await(&args)), "10: torn");
  });
  EXPECT_EQ(set(event, PJRT_Error_Code_ABORTED), "");
  waiter.join();
  EXPECT_EQ(heard.times, 1);  // On the thread that set it.
  EXPECT_EQ(heard.error, "10: torn");
  EXPECT_EQ(set(event, PJRT_Error_Code_OK), "9: the event is set already");
  destroy(event);
  event = made();
  EXPECT_EQ(set(event, PJRT_Error_Code_OK), "");
  EXPECT_EQ(outcome(event), "");
  const Client client;
  PJRT_Buffer* buffer = client.floats({1}, {});
  event = get(api().PJRT_Buffer_ReadyEvent, buffer, &PJRT_Buffer_ReadyEvent_Args::buffer,
              &PJRT_Buffer_ReadyEvent_Args::event);
  EXPECT_EQ(set(event, PJRT_Error_Code_OK), "3: the event is not one of the caller's");
  destroy(event);
  destroy(buffer);
}

TEST(Events, FromSeveralThreads) {
  const Client client;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&client, t] {
      for (int i = 0; i < 50; ++i) {
        const Floats data(100, static_cast<float>(t * 1000 + i));
        PJRT_Buffer* buffer = client.floats(data, {10, 10});
        EXPECT_EQ(values<float>(buffer), data);
        destroy(buffer);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tenon::pjrt::testing
