// The drivers and the device that uses them: their results and errors.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <type_traits>

#include "backends/gpu/codegen/code.h"
#include "backends/gpu/cuda/cuda_api.h"
#include "backends/gpu/cuda/cuda_driver.h"
#include "backends/gpu/device.h"
#include "backends/gpu/gpu.h"
#include "backends/gpu/simulator/driver.h"
#include "core/backend/layers/layers.h"
#include "core/backend/testing/backend_test_util.h"
#include "core/backend/testing/counting_backend.h"

#if defined(TENON_CUDA_H)
// Our own declarations must equal those of the toolkit.
namespace ours {
#include "backends/gpu/cuda/cuda_declarations.h"
}
namespace {
using tenon::gpu::CudaApi;

template <class A, class B>
constexpr bool same_layout = sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>;
static_assert(same_layout<ours::CUdevice, CUdevice> && same_layout<ours::CUdeviceptr, CUdeviceptr>);
static_assert(same_layout<ours::CUcontext, CUcontext> && same_layout<ours::CUmodule, CUmodule>);
static_assert(same_layout<ours::CUfunction, CUfunction> && same_layout<ours::CUstream, CUstream>);
static_assert(same_layout<ours::CUevent, CUevent> && same_layout<ours::CUresult, CUresult>);
static_assert(same_layout<ours::CUdevice_attribute, CUdevice_attribute> &&
              same_layout<ours::CUjit_option, CUjit_option>);

// One of our numbers and the toolkit's.
struct Pair {
  int ours;
  int theirs;
};
constexpr Pair kNumbers[] = {
    {ours::CUDA_SUCCESS, CUDA_SUCCESS},
    {ours::CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY},
    {ours::CUDA_ERROR_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED},
    {ours::CUDA_ERROR_DEINITIALIZED, CUDA_ERROR_DEINITIALIZED},
    {ours::CUDA_ERROR_NO_DEVICE, CUDA_ERROR_NO_DEVICE},
    {ours::CUDA_ERROR_NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU},
    {ours::CUDA_ERROR_ECC_UNCORRECTABLE, CUDA_ERROR_ECC_UNCORRECTABLE},
    {ours::CUDA_ERROR_INVALID_PTX, CUDA_ERROR_INVALID_PTX},
    {ours::CUDA_ERROR_NOT_FOUND, CUDA_ERROR_NOT_FOUND},
    {ours::CUDA_ERROR_NOT_READY, CUDA_ERROR_NOT_READY},
    {ours::CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS},
    {ours::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES},
    {ours::CUDA_ERROR_LAUNCH_TIMEOUT, CUDA_ERROR_LAUNCH_TIMEOUT},
    {ours::CUDA_ERROR_CONTEXT_IS_DESTROYED, CUDA_ERROR_CONTEXT_IS_DESTROYED},
    {ours::CUDA_ERROR_ASSERT, CUDA_ERROR_ASSERT},
    {ours::CUDA_ERROR_HARDWARE_STACK_ERROR, CUDA_ERROR_HARDWARE_STACK_ERROR},
    {ours::CUDA_ERROR_ILLEGAL_INSTRUCTION, CUDA_ERROR_ILLEGAL_INSTRUCTION},
    {ours::CUDA_ERROR_MISALIGNED_ADDRESS, CUDA_ERROR_MISALIGNED_ADDRESS},
    {ours::CUDA_ERROR_INVALID_ADDRESS_SPACE, CUDA_ERROR_INVALID_ADDRESS_SPACE},
    {ours::CUDA_ERROR_INVALID_PC, CUDA_ERROR_INVALID_PC},
    {ours::CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED},
    {ours::CUDA_ERROR_UNKNOWN, CUDA_ERROR_UNKNOWN},
    {ours::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
    {ours::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,
     CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK},
    {ours::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
    {ours::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
     CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
    {ours::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
     CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
    {ours::CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER},
    {ours::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES},
    {ours::CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING},
    {ours::CU_EVENT_DEFAULT, CU_EVENT_DEFAULT},
};
static_assert([] {
  for (const Pair& each : kNumbers) {
    if (each.ours != each.theirs) return false;
  }
  return true;
}());

// The functions have the types that the toolkit declares.
template <class F>
constexpr bool is(F* /*declared*/, F* CudaApi::* /*member*/) {
  return true;
}
static_assert(
    is(cuInit, &CudaApi::init) && is(cuGetErrorName, &CudaApi::error_name) &&
    is(cuGetErrorString, &CudaApi::error_text) && is(cuDeviceGetCount, &CudaApi::device_count) &&
    is(cuDeviceGet, &CudaApi::device) && is(cuDeviceGetName, &CudaApi::device_name) &&
    is(cuDeviceTotalMem, &CudaApi::device_memory) &&
    is(cuDeviceGetAttribute, &CudaApi::device_attribute) &&
    is(cuCtxDestroy, &CudaApi::destroy_context) && is(cuCtxPushCurrent, &CudaApi::push_context) &&
    is(cuCtxPopCurrent, &CudaApi::pop_context) && is(cuMemAlloc, &CudaApi::allocate) &&
    is(cuMemFree, &CudaApi::free) && is(cuStreamCreate, &CudaApi::create_stream) &&
    is(cuStreamDestroy, &CudaApi::destroy_stream) && is(cuStreamWaitEvent, &CudaApi::wait_stream) &&
    is(cuMemcpyHtoDAsync, &CudaApi::copy_to_device) &&
    is(cuMemcpyDtoHAsync, &CudaApi::copy_to_host) &&
    is(cuMemcpyDtoDAsync, &CudaApi::copy_on_device) && is(cuMemsetD8Async, &CudaApi::fill_8) &&
    is(cuMemsetD16Async, &CudaApi::fill_16) && is(cuMemsetD32Async, &CudaApi::fill_32) &&
    is(cuMemsetD2D32Async, &CudaApi::fill_rows_32) &&
    is(cuModuleLoadDataEx, &CudaApi::load_module) && is(cuModuleUnload, &CudaApi::unload_module) &&
    is(cuModuleGetFunction, &CudaApi::function) && is(cuLaunchKernel, &CudaApi::launch) &&
    is(cuEventCreate, &CudaApi::create_event) && is(cuEventDestroy, &CudaApi::destroy_event) &&
    is(cuEventRecord, &CudaApi::record) && is(cuEventQuery, &CudaApi::query) &&
    is(cuEventSynchronize, &CudaApi::synchronize) && is(cuEventElapsedTime, &CudaApi::elapsed));

static_assert(same_layout<ours::CUgraph, CUgraph> && same_layout<ours::CUgraphNode, CUgraphNode> &&
              same_layout<ours::CUgraphExec, CUgraphExec>);
#if CUDA_VERSION >= 12040
// Our structs of graphs lie in memory as the toolkit's.
using tenon::gpu::CudaConditionalNode;
using tenon::gpu::CudaGraphApi;
using tenon::gpu::CudaKernelNode;
using tenon::gpu::CudaNodeParams;
static_assert(sizeof(CudaKernelNode) == sizeof(CUDA_KERNEL_NODE_PARAMS_v2) &&
              offsetof(CudaKernelNode, grid) == offsetof(CUDA_KERNEL_NODE_PARAMS_v2, gridDimX) &&
              offsetof(CudaKernelNode, block) == offsetof(CUDA_KERNEL_NODE_PARAMS_v2, blockDimX) &&
              offsetof(CudaKernelNode, arguments) ==
                  offsetof(CUDA_KERNEL_NODE_PARAMS_v2, kernelParams) &&
              offsetof(CudaKernelNode, context) == offsetof(CUDA_KERNEL_NODE_PARAMS_v2, ctx));
static_assert(sizeof(CudaConditionalNode) == sizeof(CUDA_CONDITIONAL_NODE_PARAMS) &&
              offsetof(CudaConditionalNode, type) == offsetof(CUDA_CONDITIONAL_NODE_PARAMS, type) &&
              offsetof(CudaConditionalNode, graphs) ==
                  offsetof(CUDA_CONDITIONAL_NODE_PARAMS, phGraph_out) &&
              offsetof(CudaConditionalNode, context) ==
                  offsetof(CUDA_CONDITIONAL_NODE_PARAMS, ctx));
static_assert(sizeof(CudaNodeParams) == sizeof(CUgraphNodeParams) &&
              offsetof(CudaNodeParams, conditional) == offsetof(CUgraphNodeParams, conditional) &&
              offsetof(CudaNodeParams, zero) == offsetof(CUgraphNodeParams, reserved2));
static_assert(int{CudaNodeParams::kConditional} == int{CU_GRAPH_NODE_TYPE_CONDITIONAL} &&
              int{tenon::gpu::kCudaIf} == int{CU_GRAPH_COND_TYPE_IF} &&
              int{tenon::gpu::kCudaWhile} == int{CU_GRAPH_COND_TYPE_WHILE});
template <class F>
constexpr bool is_of_graphs(F* /*declared*/, F* CudaGraphApi::* /*member*/) {
  return true;
}
static_assert(is_of_graphs(cuGraphCreate, &CudaGraphApi::create) &&
              is_of_graphs(cuGraphDestroy, &CudaGraphApi::destroy) &&
              is_of_graphs(cuGraphConditionalHandleCreate, &CudaGraphApi::create_condition) &&
              is_of_graphs(cuGraphInstantiate, &CudaGraphApi::instantiate) &&
              is_of_graphs(cuGraphLaunch, &CudaGraphApi::launch) &&
              is_of_graphs(cuGraphExecDestroy, &CudaGraphApi::destroy_executable));
#endif
}  // namespace
#endif

namespace tenon::gpu {
namespace {

using backend::EventHandle;
using backend::MemoryAddress;

TEST(CudaDriver, SaysWhatIsNotThere) {
  const auto none = make_cuda_driver("libtenon-no-such-driver.so.1")->chips();
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(none.error().message().find("there is no CUDA driver: libtenon-no-such-driver.so.1: "),
            0);
  // A library other than CUDA's.
  const auto other = make_cuda_driver("libm.so.6")->open(0);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message(), "the CUDA driver libm.so.6 has no function cuInit");
}

// Uses a driver that works on host memory (test_cuda_driver.cpp).
class CudaContextTest : public testing::Test {
 protected:
  std::unique_ptr<Driver> driver = make_cuda_driver(TENON_TEST_CUDA_DRIVER);
  std::unique_ptr<Context> context = driver->open(0).value();
  Stream stream = context->create_stream().value();
};

TEST_F(CudaContextTest, SaysWhatTheGpuIs) {
  const auto chips = driver->chips().value();
  ASSERT_EQ(chips.size(), 1U);
  EXPECT_EQ(chips[0].name, "GPU of a test");
  EXPECT_EQ(chips[0].compute_capability, 86);
  EXPECT_EQ(chips[0].memory_bytes, int64_t{1} << 32);
  EXPECT_EQ(chips[0].multiprocessors, 7);
  EXPECT_EQ(chips[0].shared_bytes, 48 << 10);
  EXPECT_EQ(chips[0].most_threads, 1024);
  EXPECT_FALSE(driver->open(1));
}

TEST_F(CudaContextTest, LaunchesCopiesAndFills) {
  const Address memory = context->allocate(256).value();
  const Module module = context->load("a module").value();
  const Function add = context->function(module, "add").value();
  const std::array<std::byte, 4> seven = {std::byte{7}};
  ASSERT_TRUE(context->fill(stream, memory, 256, seven).ok());
  const int32_t n = 5;
  const void* const arguments[] = {&memory, &n};
  ASSERT_TRUE(context->launch(stream, add, {1, 32, {}}, arguments, nullptr).ok());
  const std::array<std::byte, 8> words = {std::byte{1}, {}, {}, {}, std::byte{2}};
  ASSERT_TRUE(context->fill(stream, memory + 8, 16, words).ok());
  ASSERT_TRUE(context->fill(stream, memory + 128, 2, std::span(words).first(2)).ok());
  ASSERT_TRUE(context->fill(stream, memory + 132, 4, std::span(words).first(1)).ok());
  ASSERT_TRUE(context->copy_on_device(stream, memory + 136, memory, 4).ok());
  std::array<int32_t, 64> to = {};
  ASSERT_TRUE(
      context->copy_to_host(stream, reinterpret_cast<std::byte*>(to.data()), memory, 256).ok());
  const Event event = context->record(stream).value();
  ASSERT_TRUE(context->wait(stream, event).ok());
  ASSERT_TRUE(context->synchronize(event).ok());
  EXPECT_TRUE(context->query(event).value());
  std::array<int32_t, 64> expected;
  expected.fill(7);
  std::fill_n(expected.begin(), 32, 12);
  std::copy_n(std::array{1, 2, 1, 2}.begin(), 4, expected.begin() + 2);
  expected[32] = 1;
  expected[33] = 0x01010101;
  expected[34] = 12;
  EXPECT_EQ(to, expected);
  context->release(event);
  EXPECT_EQ(context->query(event).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(context->function(module, "other").error().code(), ErrorCode::kNotFound);
  EXPECT_TRUE(context->unload(module).ok());
  EXPECT_TRUE(context->free(memory).ok());
}

TEST_F(CudaContextTest, TellsTheTime) {
  const Event first = context->record(stream).value();
  std::this_thread::sleep_for(std::chrono::milliseconds(600));  // Through another reference event.
  const Event second = context->record(stream).value();
  const double between = context->seconds(second).value() - context->seconds(first).value();
  EXPECT_GE(between, 0.59);
  EXPECT_LT(between, 30);
  EXPECT_EQ(context->seconds(second).value(), context->seconds(second).value());
}

TEST_F(CudaContextTest, ErrorsAreTheDrivers) {
  const auto large = context->allocate(int64_t{1} << 40);
  EXPECT_EQ(large.error().code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(large.error().message(),
            "the CUDA driver cannot allocate memory: CUDA_ERROR_OUT_OF_MEMORY (2): as the test "
            "wants");
  const auto module = context->load("no module");
  EXPECT_EQ(module.error().code(), ErrorCode::kInternal);
  EXPECT_EQ(module.error().message(),
            "the CUDA driver cannot load a module: CUDA_ERROR_OTHER (218): as the test wants: line "
            "1: this is not a module");
}

// A kernel that accesses an invalid address loses its context; other contexts are not affected.
TEST_F(CudaContextTest, IsLostByWhatAKernelDoes) {
  const Module module = context->load("a module").value();
  const Function lose = context->function(module, "lose").value();
  ASSERT_TRUE(context->launch(stream, lose, {1, 32, {}}, {}, nullptr).ok());
  EXPECT_EQ(context->allocate(64).error().code(), ErrorCode::kUnavailable);
  static_cast<void>(context->unload(module));
  context = driver->open(0).value();
  const Address memory = context->allocate(64).value();
  EXPECT_TRUE(context->free(memory).ok());
}

// A context that the caller has made current stays current across every call.
TEST(CudaContext, LeavesTheCallersContextCurrent) {
  void* const library = dlopen(TENON_TEST_CUDA_DRIVER, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto create = reinterpret_cast<CUresult (*)(CUcontext*, unsigned, CUdevice)>(
      dlsym(library, "cuCtxCreate_v2"));
  const auto destroy = reinterpret_cast<CUresult (*)(CUcontext)>(dlsym(library, "cuCtxDestroy_v2"));
  const auto current =
      reinterpret_cast<CUresult (*)(CUcontext*)>(dlsym(library, "cuCtxGetCurrent"));
  CUcontext mine = nullptr;
  ASSERT_EQ(create(&mine, 0, 0), CUDA_SUCCESS);
  const auto is_mine = [&] {
    CUcontext found = nullptr;
    return current(&found) == CUDA_SUCCESS && found == mine;
  };
  {
    const auto driver = make_cuda_driver(TENON_TEST_CUDA_DRIVER);
    const auto context = driver->open(0).value();
    EXPECT_TRUE(is_mine());
    const Stream stream = context->create_stream().value();
    const Address memory = context->allocate(256).value();
    EXPECT_TRUE(is_mine());
    EXPECT_FALSE(context->load("no module"));
    const Module module = context->load("a module").value();
    EXPECT_TRUE(context->function(module, "add"));
    std::array<std::byte, 4> bytes = {};
    EXPECT_TRUE(context->copy_to_device(stream, memory, bytes.data(), 4).ok());
    EXPECT_TRUE(context->fill(stream, memory, 4, bytes).ok());
    const Event event = context->record(stream).value();
    EXPECT_TRUE(context->query(event).value());
    EXPECT_TRUE(context->synchronize(event).ok());
    context->release(event);
    EXPECT_TRUE(context->unload(module).ok());
    EXPECT_TRUE(context->free(memory).ok());
    EXPECT_TRUE(is_mine());
  }
  EXPECT_TRUE(is_mine());
  destroy(mine);
}

// A device takes PTX where the driver does not know the cubin.
// Released events are recorded again, also while another stream waits for one and while one is what
// the times of others count from.
TEST(CudaContext, KeepsItsEvents) {
  void* const library = dlopen(TENON_TEST_CUDA_DRIVER, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const int& created = *static_cast<int*>(dlsym(library, "tenon_test_events"));
  const auto context = make_cuda_driver(TENON_TEST_CUDA_DRIVER)->open(0).value();
  const Stream one = context->create_stream().value();
  const Stream other = context->create_stream().value();
  const int before = created;
  double last = -1;
  for (int i = 0; i < 50; ++i) {
    const Event early = context->record(one).value();
    EXPECT_TRUE(context->wait(other, early).ok());
    context->release(early);
    const Event late = context->record(other).value();
    EXPECT_TRUE(context->synchronize(late).ok());
    const double time = context->seconds(late).value();
    EXPECT_GE(time, last);
    last = time;
    context->release(late);
  }
  EXPECT_LE(created - before, 4);
}

TEST(GpuDevice, LoadsTheFirstImageThatTheDriverTakes) {
  const auto driver = make_cuda_driver(TENON_TEST_CUDA_DRIVER);
  auto context = driver->open(0).value();
  const auto device = make_gpu_device("gpu:0", std::move(context)).value();
  GpuCode code;
  code.kernels.push_back({"add", 1, 32, {128}, {ElementType::kS32}});
  const kernel::Kernel kernel;
  const kernel::Kernel* const kernels[] = {&kernel};
  code.images = {"a cubin of tomorrow", "a module"};
  const auto module = device->load(save(code), kernels);
  ASSERT_TRUE(module) << module.error().to_string();
  device->unload(*module);
  code.images = {"a cubin of tomorrow"};
  EXPECT_EQ(device->load(save(code), kernels).error().code(), ErrorCode::kInternal);
  code.images = {};
  EXPECT_EQ(device->load(save(code), kernels).error().message(), "gpu: the code has no image");
}

// A different ptxas, or none, gives other bytes (B13).
TEST(GpuBackend, SaysWhichPtxasItHas) {
  std::string folder = testing::TempDir() + "/tenon-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const auto id_with = [&](const std::string& ptxas) {
    setenv("TENON_PTXAS", ptxas.c_str(), 1);
    const auto backend = backend::make_gpu_backend(TENON_TEST_CUDA_DRIVER);
    const std::string id = backend->devices().value()[0].target.compiler_id;
    unsetenv("TENON_PTXAS");
    return id;
  };
  const auto of_version = [&](const std::string& version) {
    const std::string path = folder + "/ptxas-" + version;
    std::ofstream(path) << "#!/bin/sh\necho ptxas: a test\necho tools, release 1, V" << version
                        << "\necho Build\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  };
  EXPECT_EQ(id_with("/nowhere/ptxas").find("ptxas  gpu "), 0U);
  EXPECT_EQ(id_with(of_version("12.8.93")).find("ptxas 12.8.93 gpu "), 0U);
  EXPECT_EQ(id_with(of_version("13.0.1")).find("ptxas 13.0.1 gpu "), 0U);
  EXPECT_EQ(id_with("/bin/false").find("ptxas /bin/false gpu "), 0U);
  std::filesystem::remove_all(folder);
}

TEST(CudaDriver, OpensWhatItFinds) {
  const auto driver = make_cuda_driver();
  const auto chips = driver->chips();
  if (!chips) {
    EXPECT_EQ(chips.error().code(), ErrorCode::kUnavailable);
    GTEST_SKIP() << chips.error().message();
  }
  ASSERT_FALSE(chips->empty());
  EXPECT_GE((*chips)[0].compute_capability, 50);
  ASSERT_TRUE(driver->open(0));
}

TEST(Grid, HoldsEveryBlock) {
  EXPECT_EQ(grid_of(1).x, 1U);
  constexpr int64_t kMost = (int64_t{1} << 31) - 1;
  EXPECT_EQ(grid_of(kMost).x, static_cast<uint32_t>(kMost));
  EXPECT_EQ(grid_of(kMost).y, 1U);
  for (const int64_t blocks : {kMost + 1, 3 * kMost, 3 * kMost + 1, int64_t{1} << 40}) {
    const Grid grid = grid_of(blocks);
    EXPECT_GE(int64_t{grid.x} * grid.y, blocks);
    EXPECT_LT(int64_t{grid.x} * (grid.y - 1), blocks);
    EXPECT_LE(grid.x, kMost);
  }
}

class GpuDeviceTest : public backend::OnDevice {
 protected:
  void SetUp() override { open(backend::make_gpu_sim_backend({1, true}), 64, 64); }

  static std::byte* bytes_of(auto& array) { return reinterpret_cast<std::byte*>(array.data()); }
};

TEST_F(GpuDeviceTest, RunsAKernel) {
  std::array<float, 4> from = {1, 2, 3, 4};
  std::array<float, 4> to = {};
  ASSERT_TRUE(device->copy(0, {x, 0, nullptr}, MemoryAddress::of_host(bytes_of(from)), 16).ok());
  ASSERT_TRUE(launch({{x, 0, nullptr}, {y, 16, nullptr}}).ok());
  ASSERT_TRUE(device->copy(0, {x, 32, nullptr}, {y, 16, nullptr}, 16).ok());
  ASSERT_TRUE(device->copy(0, MemoryAddress::of_host(bytes_of(to)), {x, 32, nullptr}, 16).ok());
  const EventHandle event = device->record(0).value();
  EXPECT_TRUE(device->await(event, -1).value());
  EXPECT_EQ(to, (std::array<float, 4>{2, 3, 4, 5}));
  EXPECT_GT(device->event_times(event).value().end, 0);
  EXPECT_EQ(device->map(x).error().code(), ErrorCode::kUnimplemented);
  const auto statistics = device->statistics().value();
  EXPECT_EQ(statistics[0].value, 128);
  EXPECT_EQ(statistics[1].value, 1);
  device->release(event);
}

TEST_F(GpuDeviceTest, Fills) {
  const auto filled = [&](int64_t offset, int64_t bytes, std::vector<uint8_t> pattern) {
    std::array<uint8_t, 16> to = {};
    const std::array<uint8_t, 16> zeros = {};
    EXPECT_TRUE(device
                    ->copy(0, {x, 0, nullptr},
                           MemoryAddress::of_host(reinterpret_cast<const std::byte*>(zeros.data())),
                           16)
                    .ok());
    const Status status =
        device->fill(0, {x, offset, nullptr}, bytes,
                     {reinterpret_cast<const std::byte*>(pattern.data()), pattern.size()});
    EXPECT_TRUE(device->copy(0, MemoryAddress::of_host(bytes_of(to)), {x, 0, nullptr}, 16).ok());
    EXPECT_TRUE(backend::finish(*device).ok());
    return status.ok() ? to : std::array<uint8_t, 16>{};
  };
  using Bytes = std::array<uint8_t, 16>;
  EXPECT_EQ(filled(1, 3, {7}), (Bytes{0, 7, 7, 7}));
  EXPECT_EQ(filled(2, 4, {1, 2}), (Bytes{0, 0, 1, 2, 1, 2}));
  EXPECT_EQ(filled(8, 8, {1, 2, 3, 4, 5, 6, 7, 8}),
            (Bytes{0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}));
  // A pattern of equal bytes may begin anywhere; the host writes other patterns.
  EXPECT_EQ(filled(3, 4, {9, 9, 9, 9}), (Bytes{0, 0, 0, 9, 9, 9, 9}));
  EXPECT_EQ(device->fill(0, {x, 3, nullptr}, 4, std::array<std::byte, 2>{std::byte{1}}).code(),
            ErrorCode::kUnimplemented);
}

TEST(GpuDevice, IsPaintedByFills) {
  backend::CallCounts counts;
  const auto counting = std::make_shared<backend::CountingBackend>(
      std::shared_ptr(backend::make_gpu_sim_backend(backend::GpuSimConfig())), counts);
  const auto device = backend::make_validate_layer(counting)->open(0).value();
  const auto memory = device->allocate(0, 1 << 20).value();
  std::array<std::byte, 4> seen = {};
  ASSERT_TRUE(
      device->copy(0, MemoryAddress::of_host(seen.data()), {memory, 1 << 19, nullptr}, 4).ok());
  EXPECT_EQ(backend::finish(*device).message(), "");
  EXPECT_EQ(seen[0], std::byte{0xA5});
  EXPECT_EQ(counts.fills, 3);  // The canaries, and the poison between them.
  EXPECT_EQ(counts.copies, 0);
}

TEST_F(GpuDeviceTest, CallsThatBreakRulesAreErrors) {
  EXPECT_EQ(launch({{x, 0, nullptr}}).message(), "B21: the kernel takes 2 buffers and 0 scalars");
  EXPECT_EQ(launch({{x, 52, nullptr}, {y, 0, nullptr}}).message(), "B17: 16 bytes at 52 of 64");
  EXPECT_EQ(launch({{77, 0, nullptr}, {y, 0, nullptr}}).message(), "B10: no such memory");
  backend::KernelLaunch other;
  other.module = module;
  other.kernel = 1;
  EXPECT_EQ(device->launch(0, other).message(), "B14: a launch of a kernel that is not loaded");
  EXPECT_EQ(device->record(3).error().message(), "B10: there is no queue 3");
  EXPECT_EQ(device->await(9, 0).error().message(), "B10: no such event");
  EXPECT_EQ(device->allocate(0, 0).error().message(),
            "B16: an allocation of 0 bytes, or in an unknown space");
  EXPECT_EQ(backend->open(1).error().message(), "gpu-sim: there is no device 1");
  EXPECT_EQ(device->load(binary, {}).error().message(),
            "B14: the binary has a different number of kernels");
  EXPECT_EQ(device->load("nothing", {}).error().code(), ErrorCode::kInvalidArgument);
  backend::TargetInfo cpu = target;
  cpu.name = "znver4";
  EXPECT_EQ(backend->compile(cpu, {}).error().message(),
            "gpu: the target 'znver4' is not a GPU: expected sm_ and a number");
}

// The same kernels give the same bytes (B13); with checks, other bytes than without.
TEST_F(GpuDeviceTest, CompilesToTheSameBytes) {
  const kernel::Kernel* const kernels[] = {&kernel, &kernel};
  const std::string once = backend->compile(target, kernels)->binary;
  EXPECT_EQ(backend->compile(target, kernels)->binary, once);
  const auto unchecked = backend::make_gpu_sim_backend({1, false});
  EXPECT_NE(unchecked->compile(target, kernels)->binary, once);
  EXPECT_NE(unchecked->devices().value()[0].target.compiler_id, target.compiler_id);
}

// An error of work belongs to the next event, and to no other (B6, B23): here a race in a launch
// whose buffers overlap (K4).
TEST_F(GpuDeviceTest, AnErrorIsTheNextEvents) {
  ASSERT_TRUE(launch({{x, 4, nullptr}, {x, 0, nullptr}}).ok());
  const EventHandle first = device->record(0).value();
  const EventHandle second = device->record(0).value();
  const auto outcome = device->await(first, -1);
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().message().find("a race"), std::string::npos)
      << outcome.error().message();
  EXPECT_FALSE(device->await(first, 0));  // Still pending.
  EXPECT_TRUE(device->await(second, -1).value());
}

TEST_F(GpuDeviceTest, ClosingEndsWorkThatIsLeft) {
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(launch({{x, 0, nullptr}, {y, 0, nullptr}}).ok());
  device = nullptr;
}

// A context that works until a test makes it fail, like a GPU that falls off the bus.
class FailingContext final : public Context {
 public:
  explicit FailingContext(const bool* gone) : gone_(gone) {}

  Result<Address> allocate(int64_t) override { return give<Address>(4096); }
  Status free(Address) override { return say(); }
  Result<Stream> create_stream() override { return give<Stream>(1); }
  Status copy_to_device(Stream, Address, const std::byte*, int64_t) override { return say(); }
  Status copy_to_host(Stream, std::byte*, Address, int64_t) override { return say(); }
  Status copy_on_device(Stream, Address, Address, int64_t) override { return say(); }
  Status fill(Stream, Address, int64_t, std::span<const std::byte>) override { return say(); }
  Result<Module> load(std::string_view) override { return give<Module>(1); }
  Status unload(Module) override { return say(); }
  Result<Function> function(Module, const std::string&) override { return give<Function>(1); }
  Status launch(Stream, Function, const LaunchShape&, std::span<const void* const>,
                const volatile uint32_t*) override {
    return say();
  }
  Result<Event> record(Stream) override { return give<Event>(1); }
  Status wait(Stream, Event) override { return say(); }
  Result<bool> query(Event) override { return give<bool>(false); }
  Status synchronize(Event) override { return say(); }
  Result<double> seconds(Event) override { return give<double>(1); }
  void release(Event) override {}

 private:
  Status say() const {
    return *gone_ ? Status(ErrorCode::kUnavailable, "it fell off the bus") : Status();
  }
  template <class T>
  Result<T> give(T value) const {
    if (*gone_) return tl::make_unexpected(say());
    return value;
  }
  const bool* const gone_;
};

TEST(LostGpu, AnswersSoAtOnce) {
  bool gone = false;
  const auto device = make_gpu_device("gpu:0", std::make_unique<FailingContext>(&gone)).value();
  const auto memory = device->allocate(0, 64).value();
  const EventHandle done = device->record(0).value();
  const EventHandle pending = device->record(0).value();
  EXPECT_TRUE(device->await(done, -1).value());
  EXPECT_FALSE(device->await(pending, 1000000).value());
  gone = true;
  std::array<std::byte, 64> bytes{};
  const std::string text = "gpu:0 is lost: it fell off the bus";
  EXPECT_EQ(device->copy(0, {memory, 0, nullptr}, MemoryAddress::of_host(bytes.data()), 64).code(),
            ErrorCode::kUnavailable);
  // The device stays lost even if the context works again (B12).
  gone = false;
  EXPECT_EQ(device->allocate(0, 64).error().message(), text);
  EXPECT_EQ(device->record(0).error().message(), text);
  EXPECT_EQ(device->await(pending, 0).error().message(), text);
  EXPECT_EQ(device->await(pending, 0).error().code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(device->await(done, 0).value());
  device->release(done);
  device->release(pending);
  device->free(memory);
}

TEST(SimDriver, Alone) {
  const auto driver = make_sim_driver({2, 80});
  EXPECT_EQ(driver->chips()->size(), 2U);
  EXPECT_EQ((*driver->chips())[1].compute_capability, 80);
  const auto context = driver->open(1).value();
  const Stream one = context->create_stream().value();
  const Stream two = context->create_stream().value();
  const Address memory = context->allocate(8).value();
  std::array<uint32_t, 2> from = {1, 2};
  std::array<uint32_t, 2> to = {};
  ASSERT_TRUE(
      context->copy_to_device(one, memory, reinterpret_cast<std::byte*>(from.data()), 8).ok());
  const Event written = context->record(one).value();
  ASSERT_TRUE(context->wait(two, written).ok());
  ASSERT_TRUE(context->copy_to_host(two, reinterpret_cast<std::byte*>(to.data()), memory, 8).ok());
  const Event read = context->record(two).value();
  ASSERT_TRUE(context->synchronize(read).ok());
  EXPECT_EQ(to, from);
  EXPECT_TRUE(context->query(written).value());
  EXPECT_GE(context->seconds(read).value(), context->seconds(written).value());
  EXPECT_EQ(context->launch(one, 77, {}, {}, nullptr).message(),
            "gpu-sim: there is no function 77");
  EXPECT_EQ(context->load("").error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(context->record(3).error().message(), "gpu-sim: there is no stream 3");
  EXPECT_TRUE(context->free(memory).ok());
  EXPECT_FALSE(context->free(memory).ok());
}

}  // namespace
}  // namespace tenon::gpu
