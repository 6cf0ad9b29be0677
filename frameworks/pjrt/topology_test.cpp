// Topologies without a client, and programs compiled for them.
#include <cstdlib>

#include "frameworks/pjrt/c_api/memory_descriptions_extension.h"
#include "frameworks/pjrt/plugin_test_util.h"

namespace tenon::pjrt::testing {
namespace {

using Floats = std::vector<float>;

struct TopologyDeleter {
  void operator()(PJRT_TopologyDescription* topology) const {
    PJRT_TopologyDescription_Destroy_Args args = {sizeof args, nullptr, topology};
    call(api().PJRT_TopologyDescription_Destroy, args);
  }
};
using Topology = std::unique_ptr<PJRT_TopologyDescription, TopologyDeleter>;

std::string create(const std::string& name, Topology* topology,
                   const std::vector<PJRT_NamedValue>& options = {}) {
  auto args = uninitialized<PJRT_TopologyDescription_Create_Args>();
  args.topology_name = name.data();
  args.topology_name_size = name.size();
  args.create_options = options.data();
  args.num_options = options.size();
  std::string error = take(api().PJRT_TopologyDescription_Create(&args));
  if (error.empty()) topology->reset(args.topology);
  return error;
}
Topology created(const std::string& name, const std::vector<PJRT_NamedValue>& options = {}) {
  Topology topology;
  EXPECT_EQ(create(name, &topology, options), "");
  return topology;
}

std::string serialized(PJRT_TopologyDescription* topology) {
  auto args = uninitialized<PJRT_TopologyDescription_Serialize_Args>();
  args.topology = topology;
  call(api().PJRT_TopologyDescription_Serialize, args);
  std::string bytes(args.serialized_bytes, args.serialized_bytes_size);
  args.serialized_topology_deleter(args.serialized_topology);
  return bytes;
}
std::string deserialize(const std::string& bytes, Topology* topology) {
  auto args = uninitialized<PJRT_TopologyDescription_Deserialize_Args>();
  args.serialized_topology = bytes.data();
  args.serialized_topology_size = bytes.size();
  std::string error = take(api().PJRT_TopologyDescription_Deserialize(&args));
  if (error.empty()) topology->reset(args.topology);
  return error;
}
uint64_t fingerprint(const PJRT_TopologyDescription* topology) {
  auto args = uninitialized<PJRT_TopologyDescription_Fingerprint_Args>();
  args.topology = topology;
  call(api().PJRT_TopologyDescription_Fingerprint, args);
  return args.fingerprint;
}
std::string platform_of(const PJRT_TopologyDescription* topology) {
  auto args = uninitialized<PJRT_TopologyDescription_PlatformName_Args>();
  args.topology = topology;
  call(api().PJRT_TopologyDescription_PlatformName, args);
  return {args.platform_name, args.platform_name_size};
}
std::vector<std::string> kinds_of(const PJRT_TopologyDescription* topology) {
  auto args = uninitialized<PJRT_TopologyDescription_GetDeviceDescriptions_Args>();
  args.topology = topology;
  call(api().PJRT_TopologyDescription_GetDeviceDescriptions, args);
  std::vector<std::string> kinds;
  for (PJRT_DeviceDescription* each : std::span(args.descriptions, args.num_descriptions)) {
    auto kind = uninitialized<PJRT_DeviceDescription_Kind_Args>();
    kind.device_description = each;
    call(api().PJRT_DeviceDescription_Kind, kind);
    kinds.emplace_back(kind.device_kind, kind.device_kind_size);
  }
  return kinds;
}
PJRT_TopologyDescription* topology_of(const Client& client) {
  auto args = uninitialized<PJRT_Client_TopologyDescription_Args>();
  args.client = client.get();
  call(api().PJRT_Client_TopologyDescription, args);
  return args.topology;
}

constexpr const char* kAheadTwice = R"(
module @jit_twice {
  func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.add %x, %x : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
})";

std::string compile(PJRT_TopologyDescription* topology, PJRT_Executable** executable,
                    std::string text = kAheadTwice) {
  PJRT_Program program = {};
  program.struct_size = sizeof program;
  program.code = text.data();
  program.code_size = text.size();
  program.format = "mlir";
  program.format_size = 4;
  auto args = uninitialized<PJRT_Compile_Args>();
  args.topology = topology;
  args.program = &program;
  args.compile_options = nullptr;
  args.compile_options_size = 0;
  args.client = nullptr;
  std::string error = take(api().PJRT_Compile(&args));
  if (error.empty()) *executable = args.executable;
  return error;
}

std::string load(const Client& client, PJRT_Executable* executable,
                 PJRT_LoadedExecutable** loaded) {
  auto args = uninitialized<PJRT_Client_Load_Args>();
  args.client = client.get();
  args.executable = executable;
  args.compile_options = nullptr;
  args.compile_options_size = 0;
  std::string error = take(api().PJRT_Client_Load(&args));
  if (error.empty()) *loaded = args.loaded_executable;
  return error;
}

void expect_twice(const Client& client, PJRT_LoadedExecutable* loaded) {
  PJRT_Buffer* x = client.floats({1, 2}, {2});
  std::vector<PJRT_Buffer*> results(1);
  ASSERT_EQ(execute(loaded, {x}, results), "");
  EXPECT_EQ(values<float>(results[0]), (Floats{2, 4}));
  destroy(x);
  destroy(results[0]);
}

TEST(Topologies, DescribeDevicesThatNobodyHasOpened) {
  const Topology two = created("interp", {option("device_count", "2")});
  EXPECT_EQ(kinds_of(two.get()), (std::vector<std::string>{"interp", "interp"}));
  EXPECT_EQ(platform_of(two.get()), "tenon");
  const Client client("interp", "", "2");
  EXPECT_EQ(fingerprint(two.get()), fingerprint(topology_of(client)));
  const Topology one = created("reference", {option("platform_name", "npu")});
  EXPECT_EQ(kinds_of(one.get()), std::vector<std::string>{"reference"});
  EXPECT_EQ(platform_of(one.get()), "npu");
  EXPECT_NE(fingerprint(one.get()), fingerprint(two.get()));
  Topology none;
  EXPECT_TRUE(create("nonesuch", &none).starts_with("5: "));
  EXPECT_TRUE(create("cpu:7", &none).starts_with("5: backend cpu has ")) << create("cpu:7", &none);
  EXPECT_EQ(create("interp", &none, {option("device_count", "none")}),
            "3: create option 'device_count' is not a number");
}

TEST(Topologies, AreReadAgain) {
  const Topology topology = created("gpu-sim", {option("platform_name", "npu")});
  const std::string bytes = serialized(topology.get());
  Topology again;
  ASSERT_EQ(deserialize(bytes, &again), "");
  EXPECT_EQ(platform_of(again.get()), "npu");
  EXPECT_EQ(fingerprint(again.get()), fingerprint(topology.get()));
  EXPECT_EQ(serialized(again.get()), bytes);
  {
    const Client client("interp", "", "1");
    ASSERT_EQ(deserialize(serialized(topology_of(client)), &again), "");
  }
  EXPECT_EQ(kinds_of(again.get()), std::vector<std::string>{"interp"});
  for (size_t size = 0; size < bytes.size(); size += 7) {
    EXPECT_NE(deserialize(bytes.substr(0, size), &again), "");
  }
}

TEST(Topologies, HaveRowMajorShapes) {
  const Topology topology = created("interp");
  auto kinds = uninitialized<PJRT_TopologyDescription_GetMemorySpaceKindIds_Args>();
  kinds.topology = topology.get();
  call(api().PJRT_TopologyDescription_GetMemorySpaceKindIds, kinds);
  ASSERT_EQ(kinds.num_memory_space_kind_ids, 2U);
  const std::vector<int64_t> dims = {2, 300};
  auto args = uninitialized<PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args>();
  args.topology = topology.get();
  args.memory_space_kind_id = kinds.memory_space_kind_ids[0];
  args.dims = dims.data();
  args.num_dims = 2;
  args.element_type = PJRT_Buffer_Type_BF16;
  args.layout = nullptr;
  call(api().PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace, args);
  // A ShapeProto: BF16 (16), [2, 300], a layout {1, 0}, no dynamic dimension.
  EXPECT_EQ(
      std::string(args.serialized_shape, args.serialized_shape_size),
      std::string("\x10\x10\x1a\x03\x02\xac\x02\x2a\x04\x0a\x02\x01\x00\x32\x02\x00\x00", 17));
  args.serialized_shape_deleter(args.serialized_shape);
  const std::vector<int64_t> column_order = {0, 1};
  PJRT_Buffer_MemoryLayout layout = {};
  layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout.tiled.minor_to_major = column_order.data();
  layout.tiled.minor_to_major_size = 2;
  args.layout = &layout;
  EXPECT_EQ(take(api().PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace(&args)),
            "12: bf16[2,300] on a device in a layout other than row-major");
}

TEST(Topologies, HaveTheMemoriesOfAClient) {
  const Topology topology = created("interp");
  const PJRT_Extension_Base* node = api().extension_start;
  while (node != nullptr && node->type != PJRT_Extension_Type_MemoryDescriptions) node = node->next;
  ASSERT_NE(node, nullptr);
  const auto& extension = *reinterpret_cast<const PJRT_MemoryDescriptions_Extension*>(node);
  auto devices = uninitialized<PJRT_TopologyDescription_GetDeviceDescriptions_Args>();
  devices.topology = topology.get();
  call(api().PJRT_TopologyDescription_GetDeviceDescriptions, devices);
  auto all = uninitialized<PJRT_DeviceDescription_MemoryDescriptions_Args>();
  all.device_description = devices.descriptions[0];
  call(extension.memory_descriptions, all);
  EXPECT_EQ(all.default_memory_index, 0U);
  const Client client("interp", "", "1");
  ASSERT_EQ(all.num_memory_descriptions, client.memories().size());
  for (size_t i = 0; i < all.num_memory_descriptions; ++i) {
    auto described = uninitialized<PJRT_MemoryDescription_Kind_Args>();
    described.memory_description = all.memory_descriptions[i];
    call(extension.memory_kind, described);
    auto kind = uninitialized<PJRT_Memory_Kind_Args>();
    kind.memory = client.memories()[i];
    call(api().PJRT_Memory_Kind, kind);
    EXPECT_EQ(std::string(described.kind, described.kind_size),
              std::string(kind.kind, kind.kind_size));
    EXPECT_EQ(described.kind_id,
              get(api().PJRT_Memory_Kind_Id, kind.memory, &PJRT_Memory_Kind_Id_Args::memory,
                  &PJRT_Memory_Kind_Id_Args::kind_id));
  }
}

// A client that cannot compile anything loads what was compiled for its topology.
TEST(AheadOfTime, ProgramsAreLoadedWithoutCompiling) {
  for (const char* const device : {"interp", "cpu", "template", "gpu-sim", "reference"}) {
    SCOPED_TRACE(device);
    const Topology topology = created(device);
    PJRT_Executable* executable = nullptr;
    ASSERT_EQ(compile(topology.get(), &executable), "");
    auto name = uninitialized<PJRT_Executable_Name_Args>();
    name.executable = executable;
    call(api().PJRT_Executable_Name, name);
    EXPECT_EQ(std::string(name.executable_name, name.executable_name_size), "jit_twice");
    auto outputs = uninitialized<PJRT_Executable_NumOutputs_Args>();
    outputs.executable = executable;
    call(api().PJRT_Executable_NumOutputs, outputs);
    EXPECT_EQ(outputs.num_outputs, 1U);
    setenv("TENON_FAULTS", "compile%1 plan%1", 1);
    const Client client(device, "faults", "1");
    unsetenv("TENON_FAULTS");
    PJRT_LoadedExecutable* loaded = nullptr;
    ASSERT_EQ(load(client, executable, &loaded), "");
    expect_twice(client, loaded);
    PJRT_Executable* const of_loaded = executable_of(loaded);
    for (PJRT_Executable* each : {executable, of_loaded}) {
      auto args = uninitialized<PJRT_Executable_Fingerprint_Args>();
      args.executable = each;
      call(api().PJRT_Executable_Fingerprint, args);
      EXPECT_EQ(args.executable_fingerprint_size, 32U);
    }
    destroy(of_loaded);
    destroy(loaded);
    destroy(executable);
  }
}

TEST(AheadOfTime, Refusals) {
  const Topology topology = created("interp");
  PJRT_Executable* executable = nullptr;
  EXPECT_TRUE(compile(topology.get(), &executable, "nonsense").starts_with("3: "));
  const std::string unknown = R"(
  func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.custom_call @nonesuch(%x) : (tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  })";
  EXPECT_TRUE(compile(topology.get(), &executable, unknown).starts_with("12: "));
  ASSERT_EQ(compile(topology.get(), &executable), "");
  const Client other("cpu", "", "1");
  PJRT_LoadedExecutable* loaded = nullptr;
  EXPECT_TRUE(load(other, executable, &loaded).starts_with("9: the executable is for interp"));
  destroy(executable);
  // A client's topology is one to compile for, too.
  ASSERT_EQ(compile(topology_of(other), &executable), "");
  ASSERT_EQ(load(other, executable, &loaded), "");
  expect_twice(other, loaded);
  destroy(loaded);
  destroy(executable);
}

}  // namespace
}  // namespace tenon::pjrt::testing
