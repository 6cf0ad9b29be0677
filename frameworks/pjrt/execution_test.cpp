// The plug-in without a framework: compiling, saving and running programs.
#include <cstdlib>
#include <functional>
#include <optional>
#include <thread>

#include "core/base/archive.h"
#include "frameworks/pjrt/plugin_test_util.h"

namespace tenon::pjrt::testing {
namespace {

using Floats = std::vector<float>;

constexpr const char* kSum = R"(
module @jit_sum {
  func.func public @main(%x: tensor<3xf32> DONATED, %y: tensor<3xf32>)
      -> (tensor<3xf32>, tensor<i1>) {
    %0 = stablehlo.add %x, %y : tensor<3xf32>
    %1 = stablehlo.constant dense<true> : tensor<i1>
    return %0, %1 : tensor<3xf32>, tensor<i1>
  }
})";

std::string sum(const std::string& attributes = "") {
  std::string text = kSum;
  return text.replace(text.find("DONATED"), 7, attributes);
}

const std::string kDonated = "{jax.buffer_donor = true}";

// A field of a protocol buffers message whose value is bytes.
std::string field(int number, const std::string& bytes) {
  return std::string(1, static_cast<char>(number << 3 | 2)) +
         std::string(1, static_cast<char>(bytes.size())) + bytes;
}

// A CompileOptionsProto with these build options.
std::string build_options(const std::string& bytes) { return field(3, bytes); }

class OnDevice : public ::testing::TestWithParam<const char*> {
 protected:
  Client client_{GetParam()};
};

TEST_P(OnDevice, Runs) {
  PJRT_LoadedExecutable* executable = client_.compiled(sum());
  PJRT_Buffer* x = client_.floats({1, 2, 3}, {3});
  PJRT_Buffer* y = client_.floats({10, 20, 30}, {3});
  std::vector<PJRT_Buffer*> results(2);
  PJRT_Event* done = nullptr;
  ASSERT_EQ(execute(executable, {x, y}, results, {}, &done), "");
  EXPECT_EQ(outcome(done), "");
  destroy(executable);  // Its results outlive it.
  EXPECT_EQ(values<float>(results[0]), (Floats{11, 22, 33}));
  EXPECT_EQ(values<uint8_t>(results[1]), std::vector<uint8_t>{1});
  EXPECT_FALSE(is_deleted(x));
  for (PJRT_Buffer* buffer : {x, y, results[0], results[1]}) destroy(buffer);
}

// An endless loop: every waiting caller gets the error that the device is lost, and the process
// continues.
TEST(TimeLimit, EndsAnExecution) {
  for (const char* device : {"interp", "cpu"}) {
    Client client(device, "", "1", {option("time_limit", "100")});
    PJRT_LoadedExecutable* executable = client.compiled(R"(
      func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
        %0 = stablehlo.while(%a = %x) : tensor<2xf32>
        cond {
          %1 = stablehlo.constant dense<true> : tensor<i1>
          stablehlo.return %1 : tensor<i1>
        } do {
          %1 = stablehlo.add %a, %a : tensor<2xf32>
          stablehlo.return %1 : tensor<2xf32>
        }
        return %0 : tensor<2xf32>
      })");
    PJRT_Buffer* x = client.floats({1, 2}, {2});
    std::vector<PJRT_Buffer*> results(1);
    PJRT_Event* done = nullptr;
    ASSERT_EQ(execute(executable, {x}, results, {}, &done), "");
    const std::string text = outcome(done);
    EXPECT_TRUE(text.starts_with("14: ")) << device << ": " << text;
    for (PJRT_Buffer* buffer : {x, results[0]}) destroy(buffer);
    destroy(executable);
    client.end();
    // Another client of the device works normally.
    const Client after(device, "", "1");
    destroy(after.floats({1}, {1}));
  }
}

// The client of a device that was lost goes on when the device has come back; what was on it is
// lost.
TEST(Loss, TheClientGoesOn) {
  setenv("TENON_FAULTS", "lost@60", 1);
  const Client client("interp", "faults", "1");
  unsetenv("TENON_FAULTS");
  PJRT_LoadedExecutable* executable = client.compiled(sum());
  PJRT_Buffer* x = client.floats({1, 2, 3}, {3});
  const auto run = [&](PJRT_Buffer* with) {
    std::vector<PJRT_Buffer*> results(2);
    PJRT_Event* done = nullptr;
    std::string error = execute(executable, {with, with}, results, {}, &done);
    if (error.empty()) error = outcome(done);
    Floats found(3);  // The device may be lost in the copy of the result, too.
    if (error.empty()) {
      auto args = uninitialized<PJRT_Buffer_ToHostBuffer_Args>();
      args.src = results[0];
      args.host_layout = nullptr;
      args.dst = found.data();
      args.dst_size = found.size() * sizeof(float);
      error = take(api().PJRT_Buffer_ToHostBuffer(&args));
      if (error.empty()) error = outcome(args.event);
    }
    for (PJRT_Buffer* each : results) {
      if (each != nullptr) destroy(each);
    }
    return error.empty() && found != Floats{2, 4, 6} ? "wrong" : error;
  };
  std::string error;
  int runs = 0;
  for (; error.empty() && runs < 100; ++runs) error = run(x);
  EXPECT_GT(runs, 1);
  EXPECT_TRUE(error.starts_with("14: ")) << error;
  error = run(x);
  EXPECT_TRUE(error.starts_with("14: main: argument 0 was on a device that is lost: ")) << error;
  PJRT_Buffer* y = client.floats({1, 2, 3}, {3});
  EXPECT_EQ(run(y), "");
  PJRT_LoadedExecutable* other = client.compiled(sum());  // New programs, too.
  destroy(other);
  for (PJRT_Buffer* buffer : {x, y}) destroy(buffer);
  destroy(executable);
}

TEST_P(OnDevice, DonatedArgumentsAreGone) {
  PJRT_LoadedExecutable* executable = client_.compiled(sum(kDonated));
  PJRT_Buffer* x = client_.floats({1, 2, 3}, {3});
  PJRT_Buffer* y = client_.floats({10, 20, 30}, {3});
  std::vector<PJRT_Buffer*> results(2);
  ASSERT_EQ(execute(executable, {x, y}, results, {0}), "");  // Not donated this time.
  EXPECT_FALSE(is_deleted(x));
  for (PJRT_Buffer* buffer : results) destroy(buffer);
  ASSERT_EQ(execute(executable, {x, y}, results), "");
  EXPECT_TRUE(is_deleted(x));
  EXPECT_FALSE(is_deleted(y));
  EXPECT_EQ(values<float>(results[0]), (Floats{11, 22, 33}));
  std::vector<PJRT_Buffer*> nothing(2);
  EXPECT_EQ(execute(executable, {x, y}, nothing),
            "9: the buffer of f32[3] has been deleted or donated");
  EXPECT_EQ(nothing[0], nullptr);
  for (PJRT_Buffer* buffer : {x, y, results[0], results[1]}) destroy(buffer);
  destroy(executable);
}

TEST_P(OnDevice, FailedCallsTakeNothing) {
  PJRT_LoadedExecutable* executable = client_.compiled(sum(kDonated));
  PJRT_Buffer* x = client_.floats({1, 2, 3}, {3});
  PJRT_Buffer* small = client_.floats({1, 2}, {2});
  std::vector<PJRT_Buffer*> results(2);
  EXPECT_EQ(execute(executable, {x, small}, results),
            "3: main: argument 1 is f32[2], expected f32[3]");
  EXPECT_EQ(execute(executable, {x}, results), "3: 1 arguments, the program takes 2");
  EXPECT_EQ(execute(executable, {x, nullptr}, results), "3: argument 1 is null");
  EXPECT_EQ(execute(executable, {x, x}, results),
            "3: main: argument 0 is donated and passed twice");
  EXPECT_FALSE(is_deleted(x));
  EXPECT_EQ(values<float>(x), (Floats{1, 2, 3}));
  for (PJRT_Buffer* buffer : {x, small}) destroy(buffer);
  destroy(executable);
}

// A buffer with an external reference may be donated: it is deleted for other users, and not
// written.
TEST_P(OnDevice, DonatedArgumentsThatAreHeldStay) {
  for (const size_t memory : {size_t{0}, size_t{1}}) {
    PJRT_LoadedExecutable* executable = client_.compiled(sum(kDonated));
    PJRT_Buffer* x = client_.floats({1, 2, 3}, {3}, memory);
    PJRT_Buffer* y = client_.floats({10, 20, 30}, {3});
    std::vector<PJRT_Buffer*> results(2);
    hold(x);
    const float* const seen = is_on_cpu(x) ? data_of(x) : nullptr;
    ASSERT_EQ(execute(executable, {x, y}, results), "");
    EXPECT_TRUE(is_deleted(x));
    EXPECT_EQ(values<float>(results[0]), (Floats{11, 22, 33}));
    if (seen != nullptr) {
      EXPECT_EQ(Floats(seen, seen + 3), (Floats{1, 2, 3}));
    }
    release(x);
    for (PJRT_Buffer* buffer : {x, y, results[0], results[1]}) destroy(buffer);
    destroy(executable);
  }
}

TEST_P(OnDevice, ArgumentsAndResultsInHostMemory) {
  PJRT_LoadedExecutable* executable = client_.compiled(R"(
    func.func public @main(%x: tensor<2xf32> {mhlo.memory_kind = "pinned_host"})
        -> (tensor<2xf32> {mhlo.memory_kind = "pinned_host"}) {
      %0 = stablehlo.negate %x : tensor<2xf32>
      return %0 : tensor<2xf32>
    })");
  PJRT_Buffer* x = client_.floats({1, -2}, {2}, 1);
  std::vector<PJRT_Buffer*> results(1);
  ASSERT_EQ(execute(executable, {x}, results), "");
  EXPECT_EQ(values<float>(results[0]), (Floats{-1, 2}));
  EXPECT_EQ(get(api().PJRT_Buffer_Memory, results[0], &PJRT_Buffer_Memory_Args::buffer,
                &PJRT_Buffer_Memory_Args::memory),
            client_.memories()[1]);
  destroy(x);
  destroy(results[0]);
  destroy(executable);
}

TEST_P(OnDevice, DonatedArgumentsInHostMemory) {
  PJRT_LoadedExecutable* executable = client_.compiled(sum(kDonated));
  PJRT_Buffer* x = client_.floats({1, 2, 3}, {3}, 1);
  PJRT_Buffer* y = client_.floats({10, 20, 30}, {3});
  PJRT_Buffer* small = client_.floats({1, 2}, {2});
  std::vector<PJRT_Buffer*> results(2);
  EXPECT_EQ(execute(executable, {x, x}, results),
            "3: main: argument 0 is donated and passed twice");
  EXPECT_EQ(execute(executable, {x, small}, results),
            "3: main: argument 1 is f32[2], expected f32[3]");
  EXPECT_EQ(values<float>(x), (Floats{1, 2, 3}));  // No call has taken it.
  ASSERT_EQ(execute(executable, {x, y}, results), "");
  EXPECT_TRUE(is_deleted(x));
  EXPECT_EQ(values<float>(results[0]), (Floats{11, 22, 33}));
  for (PJRT_Buffer* buffer : {x, y, small, results[0], results[1]}) destroy(buffer);
  destroy(executable);
}

TEST_P(OnDevice, FromSeveralThreads) {
  PJRT_LoadedExecutable* executable = client_.compiled(sum());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      PJRT_LoadedExecutable* own = client_.compiled(sum(kDonated));
      PJRT_Buffer* y = client_.floats({1, 1, 1}, {3});
      PJRT_Buffer* x = client_.floats(Floats(3, static_cast<float>(t)), {3});
      std::vector<PJRT_Buffer*> results(2);
      for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(execute(i % 2 == 0 ? own : executable, {x, y}, results), "");
        destroy(results[1]);
        destroy(x);
        x = results[0];
      }
      EXPECT_EQ(values<float>(x), Floats(3, static_cast<float>(t + 10)));
      destroy(x);
      destroy(y);
      destroy(own);
    });
  }
  for (std::thread& thread : threads) thread.join();
  destroy(executable);
}

INSTANTIATE_TEST_SUITE_P(Devices, OnDevice, ::testing::Values("interp", "template", "reference"),
                         [](const auto& given) { return std::string(given.param); });

// --- Compiling

TEST(Compile, Refusals) {
  const Client client;
  PJRT_LoadedExecutable* none = nullptr;
  const auto options = [&](const std::string& bytes) {
    return client.compile(sum(), bytes, &none);
  };
  EXPECT_EQ(options(build_options("\x28\x02")),
            "12: a program of 1 replicas and 2 partitions: programs run on one device, and none is "
            "partitioned yet");
  EXPECT_EQ(options("\x10\x01"), "12: arguments in a tuple are not supported");
  EXPECT_EQ(options("\x3a\x0b\x0a\x05speed\x12\x02\x10\x01"),
            "3: No such compile option: 'speed'; there are tenon_strict, tenon_native_math and "
            "tenon_disable_rules, and those of XLA (xla_...), which have no effect");
  EXPECT_EQ(options("\x3a\x0b\x0a\x05xla_a\x12\x02\x10\x01"), "");
  destroy(std::exchange(none, nullptr));
  const auto disable = [](const std::string& rules) {
    const std::string key = "tenon_disable_rules";
    const std::string value = {'\x0a', static_cast<char>(rules.size())};
    const std::string entry = std::string{'\x0a', static_cast<char>(key.size())} + key +
                              std::string{'\x12', static_cast<char>(rules.size() + 2)} + value +
                              rules;
    return std::string{'\x3a', static_cast<char>(entry.size())} + entry;
  };
  EXPECT_EQ(options(disable("add-zero,slice-slice")), "");
  destroy(std::exchange(none, nullptr));
  EXPECT_EQ(options(disable("add-nought")), "5: there is no rule 'add-nought'");
  EXPECT_TRUE(
      options("\x1a\x7f").starts_with("3: the compile options are not a CompileOptionsProto"));
  // A device assignment of one replica and one partition, to device 7.
  EXPECT_EQ(options(build_options(std::string("\x4a\x09\x08\x01\x10\x01\x1a\x03\x0a\x01\x07", 11))),
            "3: a device assignment to 1 devices, the first 7; there are 2");
  EXPECT_EQ(client.compile(sum(), "", &none, "hlo"), "3: the program is no HloModuleProto");
  EXPECT_EQ(
      client.compile(sum(), "", &none, "onnx"),
      "12: a program of format 'onnx'; 'mlir', as an artifact or as text, and 'hlo' are read");
  EXPECT_EQ(client.compile(sum("{mhlo.memory_kind = \"moon\"}"), "", &none),
            "12: there is no memory of kind 'moon'; there are device and pinned_host");
  EXPECT_EQ(client.compile("func.func @main(%x: tensor<2x2xf32> {mhlo.layout_mode = \"{0,1}\"}) {\n"
                           "  return\n}",
                           "", &none),
            "12: layout {0,1}: arrays lie dense and row-major");
  EXPECT_TRUE(client.compile("func.func @main(", "", &none).starts_with("3: program:1:"));
  EXPECT_EQ(client.compile("func.func @main() -> tensor<f32> {\n"
                           "  %0 = stablehlo.custom_call @nobody() : () -> tensor<f32>\n"
                           "  return %0 : tensor<f32>\n}",
                           "", &none),
            "12: stablehlo.custom_call at program:2:8: there is no implementation of the custom "
            "call @nobody");
}

// A field of this number in each wire type: one varint, some bytes.
std::vector<std::string> in_each_wire_type(int number) {
  std::vector<std::string> fields;
  for (const auto& [type, value] : {std::pair(0, std::string(1, '\0')),
                                    {1, std::string(8, '\0')},
                                    {2, std::string(1, '\0')},
                                    {5, std::string(4, '\0')}}) {
    fields.push_back(std::string(1, static_cast<char>(number << 3 | type)) + value);
  }
  return fields;
}

// Each field that is read, within its enclosing messages: with another wire type it is an unknown
// field, and is never misread.
TEST(Compile, OptionsInAnyWireType) {
  const Client client;
  PJRT_LoadedExecutable* none = nullptr;
  const auto options = [&](const std::string& bytes) {
    return client.compile("nonsense", bytes, &none);
  };
  const std::string read = options("");
  ASSERT_TRUE(read.starts_with("3: program:1:")) << read;
  const std::vector<std::vector<int>> paths = {{1},       {2},       {3},         {1, 4}, {1, 5},
                                               {1, 5, 1}, {3, 1},    {3, 2},      {3, 4}, {3, 5},
                                               {3, 9},    {3, 9, 3}, {3, 9, 3, 1}};
  for (const std::vector<int>& path : paths) {
    for (std::string bytes : in_each_wire_type(path.back())) {
      for (size_t i = path.size() - 1; i-- > 0;) bytes = field(path[i], bytes);
      EXPECT_EQ(options(bytes), read) << ::testing::PrintToString(path);
    }
  }
  for (const std::vector<int>& path : {std::vector<int>{7}, {7, 1}, {7, 2}, {7, 2, 2}}) {
    for (std::string bytes : in_each_wire_type(path.back())) {
      for (size_t i = path.size() - 1; i-- > 0;) bytes = field(path[i], bytes);
      const std::string error = options(bytes);
      EXPECT_TRUE(error == read || error.starts_with("3: No such compile option: ''")) << error;
    }
  }
}

TEST(Compile, OptionsThatAreNone) {
  const Client client;
  PJRT_LoadedExecutable* none = nullptr;
  const auto options = [&](const std::string& bytes) {
    return client.compile("nonsense", bytes, &none);
  };
  for (const std::string& bytes :
       {std::string("\x0b\x0c"), std::string("\x1e"), std::string("\x1f"), std::string("\x10\xff"),
        std::string("\x10") + std::string(11, '\xff'), std::string("\x1a\x05\x20"),
        build_options("\x23\x24"), field(1, field(5, field(1, "\xff")))}) {
    EXPECT_TRUE(options(bytes).starts_with("3: the compile options are not a CompileOptionsProto"))
        << options(bytes);
  }
  const std::string whole =
      field(1, field(5, field(1, std::string("\1\0", 2)))) +
      build_options("\x20\x01\x28\x01" + field(9, "\x08\x01\x10\x01" + field(3, "\x08\x01"))) +
      field(7, field(1, "tenon_strict") + field(2, "\x10\x01"));
  ASSERT_TRUE(options(whole).starts_with("3: program:1:")) << options(whole);
  for (size_t size = 0; size < whole.size();
       ++size) {  // Truncated anywhere: one of several errors.
    EXPECT_TRUE(options(whole.substr(0, size)).starts_with("3: "));
  }
}

TEST(Compile, ForTheDeviceAssigned) {
  const Client client;
  PJRT_LoadedExecutable* executable = nullptr;
  const std::string second =
      build_options(std::string("\x4a\x09\x08\x01\x10\x01\x1a\x03\x0a\x01\x01", 11));
  ASSERT_EQ(client.compile(sum(), second, &executable), "");
  auto devices = uninitialized<PJRT_LoadedExecutable_AddressableDevices_Args>();
  devices.executable = executable;
  call(api().PJRT_LoadedExecutable_AddressableDevices, devices);
  ASSERT_EQ(devices.num_addressable_devices, 1);
  EXPECT_EQ(devices.addressable_devices[0], client.devices()[1]);
  auto assignment = uninitialized<PJRT_LoadedExecutable_GetDeviceAssignment_Args>();
  assignment.executable = executable;
  call(api().PJRT_LoadedExecutable_GetDeviceAssignment, assignment);
  EXPECT_EQ(std::string(assignment.serialized_bytes, assignment.serialized_bytes_size),
            std::string("\x08\x01\x10\x01\x1a\x03\x0a\x01\x01", 9));
  assignment.serialized_device_assignment_deleter(assignment.serialized_device_assignment);
  PJRT_Buffer* elsewhere = client.floats({1, 2, 3}, {3});
  std::vector<PJRT_Buffer*> results(2);
  EXPECT_EQ(execute(executable, {elsewhere, elsewhere}, results),
            "3: main: argument 0 is on interp:0, expected interp:1");
  destroy(elsewhere);
  destroy(executable);
}

TEST(Executables, SayWhatTheyAre) {
  const Client client;
  PJRT_LoadedExecutable* loaded = client.compiled(sum());
  PJRT_Executable* executable = executable_of(loaded);
  testing::destroy(loaded);  // Its description remains.
  auto name = uninitialized<PJRT_Executable_Name_Args>();
  name.executable = executable;
  call(api().PJRT_Executable_Name, name);
  EXPECT_EQ(std::string(name.executable_name, name.executable_name_size), "jit_sum");
  auto types = uninitialized<PJRT_Executable_OutputElementTypes_Args>();
  types.executable = executable;
  call(api().PJRT_Executable_OutputElementTypes, types);
  EXPECT_EQ(std::vector(types.output_types, types.output_types + types.num_output_types),
            (std::vector{PJRT_Buffer_Type_F32, PJRT_Buffer_Type_PRED}));
  auto dims = uninitialized<PJRT_Executable_OutputDimensions_Args>();
  dims.executable = executable;
  call(api().PJRT_Executable_OutputDimensions, dims);
  EXPECT_EQ(std::vector(dims.dim_sizes, dims.dim_sizes + dims.num_outputs),
            (std::vector<size_t>{1, 0}));
  EXPECT_EQ(dims.dims[0], 3);
  auto kinds = uninitialized<PJRT_Executable_OutputMemoryKinds_Args>();
  kinds.executable = executable;
  call(api().PJRT_Executable_OutputMemoryKinds, kinds);
  ASSERT_EQ(kinds.num_outputs, 2);
  EXPECT_EQ(std::string(kinds.memory_kinds[1], kinds.memory_kind_sizes[1]), "device");
  // A caller of a version without the later members.
  auto memory = uninitialized<PJRT_Executable_GetCompiledMemoryStats_Args>();
  memory.executable = executable;
  memory.struct_size = offsetof(PJRT_Executable_GetCompiledMemoryStats_Args, peak_memory_in_bytes);
  call(api().PJRT_Executable_GetCompiledMemoryStats, memory);
  EXPECT_EQ(memory.argument_size_in_bytes, 24);
  EXPECT_EQ(memory.output_size_in_bytes, 13);
  EXPECT_EQ(memory.peak_memory_in_bytes, int64_t(0xa5a5a5a5a5a5a5a5));
  memory.struct_size = sizeof memory + 64;  // And one of a later version.
  call(api().PJRT_Executable_GetCompiledMemoryStats, memory);
  EXPECT_GE(memory.peak_memory_in_bytes, 37);
  destroy(executable);
}

// Constants lie on the device as long as the executable does.
TEST(Executables, MemoryOfConstants) {
  const Client client;
  PJRT_LoadedExecutable* loaded = client.compiled(R"(
    func.func @main() -> tensor<4xf32> {
      %0 = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
      return %0 : tensor<4xf32>
    })");
  PJRT_Executable* executable = executable_of(loaded);
  auto memory = uninitialized<PJRT_Executable_GetCompiledMemoryStats_Args>();
  memory.executable = executable;
  call(api().PJRT_Executable_GetCompiledMemoryStats, memory);
  EXPECT_GE(memory.generated_code_size_in_bytes, 16);
  EXPECT_EQ(memory.total_size_in_bytes,
            memory.argument_size_in_bytes + memory.output_size_in_bytes +
                memory.temp_size_in_bytes + memory.generated_code_size_in_bytes);
  EXPECT_EQ(memory.alias_size_in_bytes, 0);
  destroy(executable);
  testing::destroy(loaded);
}

// A result that takes over an argument's memory is not counted twice.
TEST(Executables, MemoryOfDonatedArguments) {
  const Client client;
  PJRT_LoadedExecutable* loaded = client.compiled(R"(
    func.func @main(%x: tensor<64xf32> {tf.aliasing_output = 0 : i32}, %i: tensor<i32>) -> tensor<64xf32> {
      %u = stablehlo.constant dense<7.0> : tensor<1xf32>
      %r = stablehlo.dynamic_update_slice %x, %u, %i
          : (tensor<64xf32>, tensor<1xf32>, tensor<i32>) -> tensor<64xf32>
      return %r : tensor<64xf32>
    })");
  PJRT_Executable* executable = executable_of(loaded);
  auto memory = uninitialized<PJRT_Executable_GetCompiledMemoryStats_Args>();
  memory.executable = executable;
  call(api().PJRT_Executable_GetCompiledMemoryStats, memory);
  EXPECT_EQ(memory.alias_size_in_bytes, 256);
  EXPECT_EQ(memory.total_size_in_bytes, memory.argument_size_in_bytes + memory.temp_size_in_bytes +
                                            memory.generated_code_size_in_bytes);
  destroy(executable);
  testing::destroy(loaded);
}

TEST(Executables, DeletedOnesDoNotRun) {
  const Client client;
  PJRT_LoadedExecutable* executable = client.compiled(sum());
  PJRT_LoadedExecutable_Delete_Args remove = {sizeof remove, nullptr, executable};
  call(api().PJRT_LoadedExecutable_Delete, remove);
  EXPECT_TRUE(get(api().PJRT_LoadedExecutable_IsDeleted, executable,
                  &PJRT_LoadedExecutable_IsDeleted_Args::executable,
                  &PJRT_LoadedExecutable_IsDeleted_Args::is_deleted));
  std::vector<PJRT_Buffer*> results(2);
  EXPECT_EQ(execute(executable, {}, results), "9: jit_sum has been deleted");
  testing::destroy(executable);
}

std::string serialized(PJRT_LoadedExecutable* loaded) {
  PJRT_Executable* executable = executable_of(loaded);
  auto args = uninitialized<PJRT_Executable_Serialize_Args>();
  args.executable = executable;
  call(api().PJRT_Executable_Serialize, args);
  std::string bytes(args.serialized_bytes, args.serialized_bytes_size);
  args.serialized_executable_deleter(args.serialized_executable);
  destroy(executable);
  return bytes;
}

// "" and `loaded`, or the error. `options`, if given, replace the saved ones.
std::string load(const Client& by, const std::string& from, PJRT_LoadedExecutable*& loaded,
                 const std::optional<std::string>& options = {}) {
  auto given = uninitialized<PJRT_Executable_DeserializeAndLoad_Args>();
  if (options) {
    given.overridden_serialized_compile_options = options->data();
    given.overridden_serialized_compile_options_size = options->size();
  } else {
    // The size of the structure in versions without overridden options.
    given.struct_size =
        offsetof(PJRT_Executable_DeserializeAndLoad_Args, overridden_serialized_compile_options);
  }
  given.client = by.get();
  given.serialized_executable = from.data();
  given.serialized_executable_size = from.size();
  std::string error = take(api().PJRT_Executable_DeserializeAndLoad(&given));
  loaded = error.empty() ? given.loaded_executable : nullptr;
  return error;
}

void expect_sum(const Client& client, PJRT_LoadedExecutable* loaded) {
  PJRT_Buffer* x = client.floats({1, 2, 3}, {3});
  std::vector<PJRT_Buffer*> results(2);
  EXPECT_EQ(execute(loaded, {x, x}, results), "");
  EXPECT_EQ(values<float>(results[0]), (Floats{2, 4, 6}));
  for (PJRT_Buffer* buffer : {x, results[0], results[1]}) testing::destroy(buffer);
}

TEST(Executables, SerialForm) {
  const Client client;
  PJRT_LoadedExecutable* loaded = client.compiled(sum());
  std::string bytes = serialized(loaded);
  testing::destroy(loaded);
  ASSERT_EQ(load(client, bytes, loaded), "");
  expect_sum(client, loaded);
  // Saving the loaded executable gives the same bytes.
  EXPECT_EQ(serialized(loaded), bytes);
  testing::destroy(loaded);
  const Client reference("reference");
  EXPECT_EQ(load(reference, bytes, loaded), "9: the executable is for interp, not for reference");
  const std::string whole = bytes;
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  EXPECT_TRUE(load(client, bytes, loaded).starts_with("15: "));
  EXPECT_TRUE(load(client, "nonsense", loaded).starts_with("3: "));
  for (size_t size = 0; size < whole.size(); size += 37) {
    EXPECT_NE(load(client, whole.substr(0, size), loaded), "");
  }
}

// A client that cannot compile anything loads executables that another client compiled, on each
// device.
TEST(Executables, AreLoadedWithoutCompiling) {
  for (const char* const device : {"interp", "cpu", "template", "gpu-sim"}) {
    SCOPED_TRACE(device);
    std::string bytes;
    std::string fingerprint;
    const auto fingerprint_of = [](PJRT_LoadedExecutable* loaded) {
      auto args = uninitialized<PJRT_LoadedExecutable_Fingerprint_Args>();
      args.executable = loaded;
      call(api().PJRT_LoadedExecutable_Fingerprint, args);
      return std::string(args.executable_fingerprint, args.executable_fingerprint_size);
    };
    {
      const Client client(device, "", "1");
      PJRT_LoadedExecutable* const loaded = client.compiled(sum());
      bytes = serialized(loaded);
      fingerprint = fingerprint_of(loaded);
      testing::destroy(loaded);
    }
    setenv("TENON_FAULTS", "compile%1 plan%1", 1);
    const Client client(device, "faults", "1");
    unsetenv("TENON_FAULTS");
    PJRT_LoadedExecutable* loaded = nullptr;
    EXPECT_EQ(client.compile(sum(), "", &loaded), "13: a planned fault: compile");
    ASSERT_EQ(load(client, bytes, loaded), "");
    expect_sum(client, loaded);
    EXPECT_EQ(fingerprint_of(loaded), fingerprint);
    testing::destroy(loaded);
    // Options with the same meaning but other bytes: with an unknown field.
    ASSERT_EQ(load(client, bytes, loaded, "\xa0\x06\x01"), "");
    testing::destroy(loaded);
  }
}

std::string platform_version(const Client& client) {
  auto args = uninitialized<PJRT_Client_PlatformVersion_Args>();
  args.client = client.get();
  call(api().PJRT_Client_PlatformVersion, args);
  return {args.platform_version, args.platform_version_size};
}

// A compiled form that this release does not accept, because it has other sources or another
// format, is ignored in favour of the source after it. `change` modifies the payload; the file
// around it is sealed again.
std::string changed(const std::string& bytes, const std::function<void(std::string&)>& change) {
  constexpr serial::Format kExecutable = {"TNEX", "executable", 1, 3};
  std::string payload(serial::unseal(bytes, kExecutable)->payload);
  change(payload);
  return serial::seal(kExecutable, std::move(payload));
}

TEST(Executables, AreCompiledFromTheSourceWhereTheCompiledFormIsNotRead) {
  std::string bytes;
  std::string version;
  {
    const Client client;
    version = platform_version(client);
    PJRT_LoadedExecutable* const loaded = client.compiled(sum());
    bytes = serialized(loaded);
    testing::destroy(loaded);
  }
  // "tenon 0.1.0 0123456789abcdef, interp 1": the hash is of the sources of the whole compiler.
  const std::string hash = version.substr(version.find(',') - 16, 16);
  EXPECT_EQ(hash.find_first_not_of("0123456789abcdef"), std::string::npos) << version;
  EXPECT_NE(bytes.find(hash), std::string::npos);
  const std::string other = changed(bytes, [&](std::string& payload) {
    const size_t begin = payload.find("TNCP");  // The compiled form is a file of its own.
    ASSERT_NE(begin, std::string::npos);
    payload[payload.find(hash, begin)] ^= 1;  // So that its checksum is wrong, too.
  });
  PJRT_LoadedExecutable* loaded = nullptr;
  {
    setenv("TENON_FAULTS", "compile%1", 1);
    const Client client("interp", "faults");
    unsetenv("TENON_FAULTS");
    EXPECT_EQ(load(client, other, loaded), "13: a planned fault: compile");
  }
  const Client client;
  ASSERT_EQ(load(client, other, loaded), "");
  expect_sum(client, loaded);
  testing::destroy(loaded);
}

// With options that change the code, it is compiled again from the source in the file.
// y = -x of f32[2,3] as an HloModuleProto; with `donates`, y may lie where x does.
std::string negation_proto(bool donates) {
  const std::string shape = "\x10\x0b" + field(3, "\x02\x03");
  const auto op = [&](const std::string& opcode, char id, const std::string& more) {
    return field(2, field(1, opcode) + field(2, opcode) + field(3, shape) + "\x98\x02" + id + more);
  };
  const std::string computation = field(1, "main") + op("parameter", 1, std::string("\x48\0", 2)) +
                                  op("negate", 2, std::string("\xa2\x02\x01\x01")) +
                                  "\x28\x07\x30\x02";
  const std::string alias = field(8, field(1, std::string("\x10\0\x20\x01", 4)));
  return field(1, "m") + field(3, computation) + "\x30\x07" + (donates ? alias : "");
}

// TensorFlow, which sends HLO protos, reshapes arrays without telling the device.
TEST(Executables, OfHloProtosTakeReshapedArrays) {
  for (const bool donates : {false, true}) {
    const Client client("interp");
    PJRT_LoadedExecutable* executable = nullptr;
    ASSERT_EQ(client.compile(negation_proto(donates), "", &executable, "hlo"), "");
    PJRT_Buffer* x = client.floats({1, 2, 3, 4, 5, 6}, {3, 2});
    PJRT_Buffer* small = client.floats({1, 2, 3}, {3});
    std::vector<PJRT_Buffer*> results(1);
    EXPECT_EQ(execute(executable, {small}, results),
              "3: main: argument 0 is f32[3], expected f32[2,3]");
    ASSERT_EQ(execute(executable, {x}, results), "");
    EXPECT_EQ(values<float>(results[0]), (Floats{-1, -2, -3, -4, -5, -6}));
    EXPECT_EQ(is_deleted(x), donates);
    if (!donates) {
      EXPECT_EQ(values<float>(x), (Floats{1, 2, 3, 4, 5, 6}));
      // A layout of the host that is row-major for other sizes.
      const int64_t order[] = {0};
      PJRT_Buffer_MemoryLayout flat = {};
      flat.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
      flat.tiled.minor_to_major = order;
      flat.tiled.minor_to_major_size = 1;
      EXPECT_EQ(values<float>(x, &flat), (Floats{1, 2, 3, 4, 5, 6}));
    }
    for (PJRT_Buffer* buffer : {x, small, results[0]}) destroy(buffer);
    destroy(executable);
  }
}

TEST(Executables, AreCompiledAgainWhereTheyMust) {
  std::string bytes;
  {
    const Client client;
    PJRT_LoadedExecutable* const loaded = client.compiled(sum());
    bytes = serialized(loaded);
    testing::destroy(loaded);
  }
  const std::string strict = field(7, field(1, "tenon_strict") + field(2, "\x10\x01"));
  PJRT_LoadedExecutable* loaded = nullptr;
  {
    setenv("TENON_FAULTS", "compile%1", 1);
    const Client client("interp", "faults");
    unsetenv("TENON_FAULTS");
    EXPECT_EQ(load(client, bytes, loaded, strict), "13: a planned fault: compile");
    EXPECT_EQ(load(client, bytes, loaded), "");
    testing::destroy(loaded);
  }
  const Client client;
  ASSERT_EQ(load(client, bytes, loaded, strict), "");
  expect_sum(client, loaded);
  testing::destroy(loaded);
}

// A failed check is an error of the execution, in its event and its results.
TEST(Execution, ErrorsThatComeLater) {
  const Client client;
  PJRT_LoadedExecutable* executable = client.compiled(R"(
    func.func public @main(%x: tensor<i1>) -> tensor<i1> {
      stablehlo.custom_call @shape_assertion(%x) {
        error_message = "that is false", has_side_effect = true} : (tensor<i1>) -> ()
      return %x : tensor<i1>
    })");
  for (const bool holds : {false, true}) {
    auto args = client.host_args(&holds, PJRT_Buffer_Type_PRED, {});
    call(api().PJRT_Client_BufferFromHostBuffer, args);
    testing::destroy(args.done_with_host_buffer);
    std::vector<PJRT_Buffer*> results(1);
    PJRT_Event* done = nullptr;
    ASSERT_EQ(execute(executable, {args.buffer}, results, {}, &done), "");
    const std::string error = outcome(done);
    EXPECT_EQ(error.find("that is false") == std::string::npos, holds) << error;
    EXPECT_EQ(
        outcome(get(api().PJRT_Buffer_ReadyEvent, results[0], &PJRT_Buffer_ReadyEvent_Args::buffer,
                    &PJRT_Buffer_ReadyEvent_Args::event)),
        error);
    testing::destroy(results[0]);
    testing::destroy(args.buffer);
  }
  testing::destroy(executable);
}

}  // namespace
}  // namespace tenon::pjrt::testing
