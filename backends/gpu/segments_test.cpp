// Segments on the drivers: as graphs of the CUDA driver and of the simulator, and launch by launch.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>

#include "backends/gpu/codegen/nvptx.h"
#include "backends/gpu/codegen/segment.h"
#include "backends/gpu/cuda/cuda_driver.h"
#include "backends/gpu/cuda/cuda_graph.h"
#include "backends/gpu/gpu.h"
#include "backends/gpu/loaded_segment.h"
#include "core/backend/testing/backend_test_util.h"
#include "core/program/interpreter.h"
#include "core/program/program_test_util.h"
#include "core/program/segment.h"

namespace tenon::gpu {
namespace {

using backend::MemoryAddress;

// The counts of the test driver (test_cuda_driver.cpp).
struct TestCounts {
  explicit TestCounts(const char* name)
      : value(static_cast<const int*>(
            dlsym(dlopen(TENON_TEST_CUDA_DRIVER, RTLD_NOW | RTLD_LOCAL), name))),
        before(*value) {}
  int since() const { return *value - before; }

  const int* value;
  int before;
};

// Kernels of the test driver: add(numbers, n), less(number, pred, n), lose().
constexpr uint32_t kAdd = 0;
constexpr uint32_t kLess = 1;
constexpr uint32_t kLose = 2;

SegmentLaunch add(SegmentPlace numbers, uint64_t n) { return {kAdd, {numbers}, {n}}; }
SegmentLaunch less(SegmentPlace number, SegmentPlace pred, uint64_t n) {
  return {kLess, {number, pred}, {n}};
}

// Memory 0 holds numbers of four bytes, at 256 bytes from each other; memory 1 preds.
constexpr SegmentPlace number(int64_t i) { return {0, 256 * i}; }
constexpr SegmentPlace pred(int64_t i) { return {1, 256 * i}; }

class CudaSegmentTest : public testing::Test {
 protected:
  void open(const char* library) {
    close();
    context = make_cuda_driver(library)->open(0).value();
    stream = context->create_stream().value();
    module = context->load("a module").value();
    for (const char* name : {"add", "less", "lose"}) {
      functions.push_back(context->function(module, name).value());
    }
    for (int i = 0; i < 8; ++i) places.push_back({memory(), memory()});
  }

  Address memory() {
    const Address address = context->allocate(1024).value();
    EXPECT_TRUE(context->fill(stream, address, 1024, std::array<std::byte, 1>{}).ok());
    return address;
  }

  std::unique_ptr<GpuLoadedSegment> load(std::vector<std::vector<SegmentStep>> sequences) {
    GpuCode code;
    code.kernels.push_back({"add", 1, 1, {4}, {ElementType::kS32}});
    code.kernels.push_back({"less", 1, 1, {4, 1}, {ElementType::kS32}});
    code.kernels.push_back({"lose", 1, 1, {}, {}});
    code.segment = {{1024, 1024}, std::move(sequences)};
    return std::make_unique<GpuLoadedSegment>(*context, std::move(code), functions, has_graphs);
  }

  // The numbers at `place` after a call of the segment there.
  std::array<int32_t, 4> run(GpuLoadedSegment& segment, size_t place) {
    const Status given = segment.launch(stream, places[place], nullptr);
    EXPECT_TRUE(given.ok()) << given.message();
    std::array<std::byte, 1024> bytes{};
    EXPECT_TRUE(context->copy_to_host(stream, bytes.data(), places[place][0], 1024).ok());
    std::array<int32_t, 4> numbers{};
    for (size_t i = 0; i < 4; ++i) std::memcpy(&numbers[i], bytes.data() + 256 * i, 4);
    return numbers;
  }

  void TearDown() override { close(); }

  void close() {
    if (context == nullptr) return;
    // A lost GPU says so here, too.
    for (const std::vector<Address>& each : std::exchange(places, {}))
      for (const Address address : each) static_cast<void>(context->free(address));
    if (module != 0) static_cast<void>(context->unload(std::exchange(module, 0)));
    functions.clear();
  }

  bool has_graphs = true;
  std::unique_ptr<Context> context;
  Module module = 0;
  Stream stream = 0;
  std::vector<Function> functions;
  std::vector<std::vector<Address>> places;
};

// Adds 10 to number 0 while it is less than 95, and each time 1 to number 1 three times.
std::vector<std::vector<SegmentStep>> nested_loops() {
  return {{add(number(0), 5), SegmentLoop{1, 2, pred(0)}},
          {less(number(0), pred(0), 95)},
          {add(number(0), 10), add(number(2), ~uint64_t{2}), SegmentLoop{3, 4, pred(1)}},
          {less(number(2), pred(1), 0)},
          {add(number(1), 1), add(number(2), 1)}};
}

using Numbers = std::array<int32_t, 4>;

TEST_F(CudaSegmentTest, LoopsAreOneGraph) {
  open(TENON_TEST_CUDA_DRIVER);
  const TestCounts made("tenon_test_executables");
  const TestCounts set("tenon_test_nodes_set");
  const TestCounts alive("tenon_test_graphs");
  {
    const auto segment = load(nested_loops());
    EXPECT_EQ(run(*segment, 0), (Numbers{95, 27, 0, 0}));
    EXPECT_EQ(run(*segment, 0), (Numbers{100, 27, 0, 0}));  // 95 + 5 is not less than 95.
    EXPECT_EQ(segment->graph_launches(), 2);
    EXPECT_EQ(segment->kernel_launches(), 0);
    EXPECT_EQ(made.since(), 1);
    EXPECT_EQ(set.since(), 0);
  }
  EXPECT_EQ(alive.since(), 0);
}

// Four sets of addresses have a graph each; a fifth takes the one that was not used for longest.
TEST_F(CudaSegmentTest, OtherMemoryChangesAGraph) {
  open(TENON_TEST_CUDA_DRIVER);
  const TestCounts made("tenon_test_executables");
  const TestCounts set("tenon_test_nodes_set");
  const auto segment = load(nested_loops());
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(run(*segment, i), (Numbers{95, 27, 0, 0})) << i;
  EXPECT_EQ(made.since(), 4);
  EXPECT_EQ(set.since(), 0);
  for (size_t i = 4; i < 8; ++i) EXPECT_EQ(run(*segment, i), (Numbers{95, 27, 0, 0})) << i;
  EXPECT_EQ(made.since(), 4);
  EXPECT_EQ(set.since(), 4 * 13);  // All of its kernels, those that set conditions too.
  for (size_t i = 4; i < 8; ++i) EXPECT_EQ(run(*segment, i), (Numbers{100, 27, 0, 0})) << i;
  EXPECT_EQ(set.since(), 4 * 13);
  EXPECT_EQ(segment->graph_launches(), 12);
}

// Where there is no room for a third, two take turns; where there is none at all, none is kept.
TEST_F(CudaSegmentTest, WithoutRoomTheGraphsThatAreThereTakeTurns) {
  open(TENON_TEST_CUDA_DRIVER);
  const TestCounts made("tenon_test_executables");
  const TestCounts alive("tenon_test_graphs");
  const TestCounts room("tenon_test_most_graphs");
  auto& most = *const_cast<int*>(room.value);
  most = *alive.value + 5;  // A graph and its executable for each of two, and the next graph.
  const auto segment = load(nested_loops());
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(run(*segment, i), (Numbers{95, 27, 0, 0})) << i;
  EXPECT_EQ(segment->graph_launches(), 5) << segment->refusal().message();
  EXPECT_EQ(made.since(), 2);
  most = *alive.value;
  const auto another = load(nested_loops());
  EXPECT_EQ(run(*another, 5), (Numbers{95, 27, 0, 0}));
  EXPECT_EQ(another->graph_launches(), 0);
  EXPECT_EQ(another->refusal().code(), ErrorCode::kResourceExhausted);
  most = room.before;
}

TEST_F(CudaSegmentTest, LaunchesAreAGraphFromTheSecondCallOn) {
  open(TENON_TEST_CUDA_DRIVER);
  const auto segment = load({{add(number(0), 1), add(number(1), 2), add(number(0), 3)}});
  EXPECT_EQ(run(*segment, 0), (Numbers{4, 2, 0, 0}));
  EXPECT_EQ(segment->kernel_launches(), 3);
  EXPECT_EQ(run(*segment, 0), (Numbers{8, 4, 0, 0}));
  EXPECT_EQ(run(*segment, 1), (Numbers{4, 2, 0, 0}));
  EXPECT_EQ(segment->kernel_launches(), 3);
  EXPECT_EQ(segment->graph_launches(), 2);
  const auto few = load({{add(number(0), 1), add(number(1), 2)}});
  for (int i = 0; i < 3; ++i) run(*few, 2);
  EXPECT_EQ(few->graph_launches(), 0);
  EXPECT_EQ(few->kernel_launches(), 6);
}

// Number 1 becomes 10 + i if branch i ran, by a pred or by the number `index`.
std::vector<std::vector<SegmentStep>> branches_by(SegmentPlace index, bool is_pred) {
  std::vector<std::vector<SegmentStep>> sequences(4);
  SegmentChoice choice = {index, is_pred, {1, 2}};
  if (!is_pred) choice.branches.push_back(3);
  // The branches change the index too.
  for (uint64_t i = 0; i < 3; ++i) sequences[i + 1] = {add(number(1), 10 + i), add(number(0), 1)};
  sequences[0] = {less(number(0), pred(0), 7), choice};
  return sequences;
}

TEST_F(CudaSegmentTest, BranchesAreConditionalNodes) {
  for (const char* library : {TENON_TEST_CUDA_DRIVER, TENON_OLD_CUDA_DRIVER}) {
    functions.clear();
    places.clear();
    open(library);
    const auto by_pred = load(branches_by(pred(0), true));
    EXPECT_EQ(run(*by_pred, 0), (Numbers{1, 10, 0, 0})) << library;
    const int32_t nine = 9;
    ASSERT_TRUE(context
                    ->launch(stream, functions[kAdd], {1, 1, {}},
                             std::array<const void*, 2>{&places[1][0], &nine}, nullptr)
                    .ok());
    EXPECT_EQ(run(*by_pred, 1), (Numbers{10, 11, 0, 0})) << library;
    const auto by_number = load(branches_by(number(0), false));
    EXPECT_EQ(run(*by_number, 2), (Numbers{1, 10, 0, 0})) << library;
    EXPECT_EQ(run(*by_number, 2), (Numbers{2, 21, 0, 0})) << library;
    EXPECT_EQ(run(*by_number, 2), (Numbers{3, 33, 0, 0})) << library;
    EXPECT_EQ(run(*by_number, 2), (Numbers{4, 45, 0, 0}))
        << library;  // No branch has the number 3.
    const int32_t minus = -9;
    ASSERT_TRUE(context
                    ->launch(stream, functions[kAdd], {1, 1, {}},
                             std::array<const void*, 2>{&places[2][0], &minus}, nullptr)
                    .ok());
    EXPECT_EQ(run(*by_number, 2), (Numbers{-4, 57, 0, 0})) << library;
    EXPECT_EQ(by_number->graph_launches(), library == std::string(TENON_TEST_CUDA_DRIVER) ? 5 : 0);
  }
}

// A driver without graphs: the host gives the launches, reads the conditions, and can be stopped.
TEST_F(CudaSegmentTest, AnOldDriverGetsTheLaunches) {
  open(TENON_OLD_CUDA_DRIVER);
  EXPECT_EQ(context->make_graph({{{}}}).error().code(), ErrorCode::kUnimplemented);
  const auto segment = load(nested_loops());
  EXPECT_EQ(run(*segment, 0), (Numbers{95, 27, 0, 0}));
  EXPECT_EQ(segment->graph_launches(), 0);
  EXPECT_EQ(segment->kernel_launches(), 1 + 10 + 9 * (2 + 4 + 3 * 2));
  EXPECT_EQ(segment->refusal().code(), ErrorCode::kUnimplemented);
  const auto endless = load({{SegmentLoop{1, 2, pred(0)}}, {less(number(0), pred(0), 1)}, {}});
  const uint32_t stop = 1;
  EXPECT_EQ(endless->launch(stream, places[1], &stop).code(), ErrorCode::kCancelled);
}

// TENON_GPU_GRAPHS=0 has the same results.
TEST_F(CudaSegmentTest, GraphsCanBeSwitchedOff) {
  open(TENON_TEST_CUDA_DRIVER);
  has_graphs = false;
  const auto segment = load(nested_loops());
  EXPECT_EQ(run(*segment, 0), (Numbers{95, 27, 0, 0}));
  EXPECT_EQ(segment->graph_launches(), 0);
}

TEST_F(CudaSegmentTest, ALostGpuIsAnError) {
  open(TENON_TEST_CUDA_DRIVER);
  const auto segment = load({{SegmentLaunch{kLose, {}, {}}, SegmentLoop{1, 2, pred(0)}},
                             {less(number(0), pred(0), 0)},
                             {}});
  static_cast<void>(segment->launch(stream, places[0], nullptr));
  EXPECT_EQ(segment->launch(stream, places[0], nullptr).code(), ErrorCode::kUnavailable);
  EXPECT_EQ(segment->launch(stream, places[1], nullptr).code(), ErrorCode::kUnavailable);
  EXPECT_EQ(segment->kernel_launches(), 0);
}

// A condition that nothing set, an order that is none, and a condition that no node has are errors
// of the test driver, so the graphs above have none of these.
TEST_F(CudaSegmentTest, TheTestDriverChecksGraphs) {
  open(TENON_TEST_CUDA_DRIVER);
  const CudaApi& api = *find_cuda(TENON_TEST_CUDA_DRIVER).value();
  CUcontext cuda = nullptr;
  ASSERT_EQ(api.create_context(&cuda, 0, 0), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  ASSERT_EQ(api.graphs->create(&graph, 0), CUDA_SUCCESS);
  CudaCondition condition = 0;
  ASSERT_EQ(api.graphs->create_condition(&condition, graph, cuda, 0, 0), CUDA_SUCCESS);
  CUgraphExec executable = nullptr;
  EXPECT_NE(api.graphs->instantiate(&executable, graph, 0), CUDA_SUCCESS);
  CudaNodeParams params;
  params.conditional.condition = condition;
  params.conditional.context = cuda;
  CUgraphNode node = nullptr;
  ASSERT_EQ(api.graphs->add_node(&node, graph, nullptr, nullptr, 0, &params), CUDA_SUCCESS);
  EXPECT_NE(api.graphs->add_node(&node, graph, nullptr, nullptr, 0, &params), CUDA_SUCCESS);
  ASSERT_EQ(api.graphs->instantiate(&executable, graph, 0), CUDA_SUCCESS);
  EXPECT_NE(api.graphs->launch(executable, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(api.graphs->destroy_executable(executable), CUDA_SUCCESS);
  EXPECT_EQ(api.graphs->destroy(graph), CUDA_SUCCESS);
  EXPECT_EQ(api.destroy_context(cuda), CUDA_SUCCESS);
}

// --- Compiled segments, on a GPU if this machine has one

// A segment of a Program, loaded on the first GPU.
class OnThisMachine : public testing::Test {
 protected:
  void SetUp() override {
    const auto chips = driver->chips();
    if (!chips) GTEST_SKIP() << chips.error().message();
    capability = (*chips)[0].compute_capability;
    context = driver->open(0).value();
    stream = context->create_stream().value();
  }

  std::unique_ptr<GpuLoadedSegment> load(const program::Program& program) {
    PtxAssembler assembler(capability);
    CompiledKernels made = compile_segment(target_of_gpu(capability), program, assembler).value();
    Result<Module> module = internal_error("no image");
    for (const std::string& image : made.code.images) {
      if (!module) module = context->load(image);
    }
    EXPECT_TRUE(module) << module.error().message();
    std::vector<Function> functions;
    for (const GpuKernelCode& each : made.code.kernels) {
      functions.push_back(context->function(*module, each.symbol).value());
    }
    return std::make_unique<GpuLoadedSegment>(*context, std::move(made.code), std::move(functions));
  }

  // Four floats: the result for x, in memory of the call's own.
  std::vector<float> run(GpuLoadedSegment& segment, float x) {
    std::vector<Address> memories;
    for (const int64_t bytes : segment.memories()) {
      memories.push_back(context->allocate(bytes).value());
    }
    const std::array<float, 4> from = {x, x, x, x};
    std::vector<float> to(4);
    EXPECT_TRUE(
        context->copy_to_device(stream, memories[0], std::as_bytes(std::span(from)).data(), 16)
            .ok());
    const Status given = segment.launch(stream, memories, nullptr);
    EXPECT_TRUE(given.ok()) << given.message();
    EXPECT_TRUE(
        context->copy_to_host(stream, std::as_writable_bytes(std::span(to)).data(), memories[1], 16)
            .ok());
    const Event done = context->record(stream).value();
    const Status outcome = context->synchronize(done);
    EXPECT_TRUE(outcome.ok()) << outcome.message();
    context->release(done);
    return to;
  }

  std::unique_ptr<Driver> driver = make_cuda_driver();
  std::unique_ptr<Context> context;
  Stream stream = 0;
  int32_t capability = 0;
};

// Seven sets of addresses: four graphs are made, and then changed.
TEST_F(OnThisMachine, LoopsAndBranchesAreGraphs) {
  const program::Program program = program::testing::control_flow();
  const auto segment = load(program);
  for (const float x : {3.0F, 20.0F, 1.0F, 0.001F, 5.0F, 7.0F, 12.0F}) {
    const std::vector<Literal> arguments = {program::testing::four(x)};
    const Literal expected = (*program::ProgramInterpreter(program).run(arguments))[0];
    std::vector<float> numbers(4);
    std::memcpy(numbers.data(), expected.data().data(), 16);
    EXPECT_EQ(run(*segment, x), numbers) << x;
  }
  EXPECT_EQ(segment->graph_launches(), 7) << segment->refusal().message();
}

TEST_F(OnThisMachine, LaunchesAreGraphs) {
  program::Program program = program::testing::twice();
  auto& steps = program.sequences[0].steps;
  for (int i = 0; i < 8; ++i) steps.push_back(steps[1]);
  program::find_dependencies(program);
  const auto segment = load(program);
  for (const float x : {1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F, 7.0F}) {
    EXPECT_EQ(run(*segment, x), (std::vector<float>(4, 3 * x)));
  }
  EXPECT_EQ(segment->graph_launches(), 6) << segment->refusal().message();
}

// --- Compiled segments, on the simulator

class SimSegmentTest : public testing::Test {
 protected:
  // The results of the Program as a segment; `calls` calls of it in the same memory.
  std::vector<std::byte> run(const program::Program& program, std::span<const float> x,
                             const volatile uint32_t* stop = nullptr, int calls = 1) {
    const program::Segment segment = program::segment_of(
        program, {0, 0, static_cast<uint32_t>(program.sequences[0].steps.size())});
    auto binary = backend->compile_segment(target, segment.program);
    EXPECT_TRUE(binary) << binary.error().to_string();
    const auto module = device->load(*binary, {}).value();
    backend::KernelLaunch work;
    work.module = module;
    std::vector<MemoryAddress> memories;
    for (const int64_t bytes : program::memory_sizes(segment.program)) {
      memories.push_back({device->allocate(0, bytes).value(), 0, nullptr});
    }
    const auto bytes = std::as_bytes(x);
    EXPECT_TRUE(device
                    ->copy(0, memories[0], MemoryAddress::of_host(bytes.data()),
                           static_cast<int64_t>(bytes.size()))
                    .ok());
    work.buffers = memories;
    work.stop = stop;
    std::vector<std::byte> result(static_cast<size_t>(program::memory_sizes(segment.program)[1]));
    for (int i = 0; i < calls; ++i) {
      outcome = device->launch(0, work);
      EXPECT_TRUE(outcome.ok()) << outcome.message();
      outcome = backend::finish(*device);
    }
    EXPECT_TRUE(device
                    ->copy(0, MemoryAddress::of_host(result.data()), memories[1],
                           static_cast<int64_t>(result.size()))
                    .ok());
    EXPECT_TRUE(backend::finish(*device).ok());
    device->unload(module);
    return result;
  }

  std::unique_ptr<backend::Backend> backend = backend::make_gpu_sim_backend({1, true});
  backend::TargetInfo target = backend->devices().value()[0].target;
  std::unique_ptr<backend::Device> device = backend->open(0).value();
  Status outcome;
};

std::vector<std::byte> bytes_of(const Literal& literal) {
  return {literal.data().begin(), literal.data().end()};
}

TEST_F(SimSegmentTest, RunsLoopsAndBranches) {
  const program::Program program = program::testing::control_flow();
  for (const float x : {3.0F, 20.0F}) {
    const std::array<float, 4> from = {x, x, x, x};
    const std::vector<Literal> arguments = {program::testing::four(x)};
    const Literal expected = (*program::ProgramInterpreter(program).run(arguments))[0];
    EXPECT_EQ(run(program, from), bytes_of(expected)) << x;
    EXPECT_TRUE(outcome.ok()) << outcome.message();
  }
  // The Program is one launch for the device.
  EXPECT_EQ(device->statistics().value()[1].value, 2);
}

TEST_F(SimSegmentTest, IsAGraphAtTheThirdCallToo) {
  const program::Program program = program::testing::twice();
  const std::array<float, 4> from = {1, 2, 3, 4};
  const std::array<float, 4> expected = {3, 6, 9, 12};
  const auto bytes = std::as_bytes(std::span(expected));
  EXPECT_EQ(run(program, from, nullptr, 3), std::vector(bytes.begin(), bytes.end()));
}

// Copies of any size, in words and in bytes.
TEST_F(SimSegmentTest, Copies) {
  for (const int64_t count : {1, 3, 5, 255, 1024, 1025, 5000}) {
    for (const ElementType type : {ElementType::kF32, ElementType::kU8}) {
      program::Program program;
      program.name = "copies";
      program::Buffer buffer = {type, {count}};
      for (const auto kind : {program::BufferKind::kParameter, program::BufferKind::kTemporary,
                              program::BufferKind::kResult}) {
        buffer.kind = kind;
        program.buffers.push_back(buffer);
      }
      program.parameters = {0};
      program.results = {2};
      program.temporary_bytes = buffer.bytes();
      program.sequences.resize(1);
      program.sequences[0].steps = {{program::Copy{1, 0}, {}, ""}, {program::Copy{2, 1}, {}, ""}};
      program::find_dependencies(program);
      std::vector<float> from(static_cast<size_t>((buffer.bytes() + 3) / 4));
      for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i) + 0.7F;
      const auto bytes = std::as_bytes(std::span(from)).first(static_cast<size_t>(buffer.bytes()));
      const size_t whole = from.size() * 4;
      program.buffers[0].dims = {type == ElementType::kU8 ? static_cast<int64_t>(whole) : count};
      if (type == ElementType::kU8) {
        program.buffers[1].dims = program.buffers[2].dims = program.buffers[0].dims;
        program.temporary_bytes = static_cast<int64_t>(whole);
        const auto all = std::as_bytes(std::span(from));
        EXPECT_EQ(run(program, from), std::vector(all.begin(), all.end())) << count;
      } else {
        EXPECT_EQ(run(program, from), std::vector(bytes.begin(), bytes.end())) << count;
      }
      EXPECT_TRUE(outcome.ok()) << outcome.message();
    }
  }
}

// A loop that does not end is ended by the stop flag (B27).
TEST_F(SimSegmentTest, StopsALoop) {
  program::Program program = program::testing::control_flow();
  program.kernels[0] = program::testing::kernel_of(
      "kernel @forever(%x: in f32[4], %p: out pred[]) index s32 grid() {\n"
      "store true, %p[] : pred\n}");
  const std::array<float, 4> from = {1, 1, 1, 1};
  const uint32_t stop = 1;
  run(program, from, &stop);
  EXPECT_EQ(outcome.code(), ErrorCode::kCancelled) << outcome.message();
}

// A kernel that the GPU declines makes the segment declined, so that the host offers it alone.
TEST_F(SimSegmentTest, DeclinesWhatItsKernelsDecline) {
  program::Program program = program::testing::twice();
  program.kernels[0] = program::testing::kernel_of(
      "kernel @big(%x: in f32[4], %z: in f32[4], %y: out f32[4]) index s32 grid(%i: 4) {\n"
      "scratch %s : f32[20000]\n%a = load %x[%i] : f32\nstore %a, %s[0] : f32\n"
      "%b = load %s[0] : f32\nstore %b, %y[%i] : f32\n}");
  const auto binary = backend->compile_segment(target, program);
  ASSERT_FALSE(binary);
  EXPECT_EQ(binary.error().code(), ErrorCode::kUnimplemented);
  EXPECT_NE(binary.error().message().find("bytes of shared memory"), std::string::npos)
      << binary.error().message();
}

TEST_F(SimSegmentTest, TakesTheBuffersOfItsMemories) {
  const auto binary = backend->compile_segment(target, program::testing::twice()).value();
  const auto module = device->load(binary, {}).value();
  backend::KernelLaunch work;
  work.module = module;
  EXPECT_EQ(device->launch(0, work).message(), "B21: the segment takes 3 buffers");
  const kernel::Kernel kernel = backend::add_one();
  const kernel::Kernel* const kernels[] = {&kernel};
  EXPECT_EQ(device->load(binary, kernels).error().message(),
            "B14: the binary has a different number of kernels");
}

}  // namespace
}  // namespace tenon::gpu
