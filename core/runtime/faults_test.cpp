// Planned faults in every call: a run returns an error or the right result, and the client
// continues.
#include <gtest/gtest.h>

#include "core/backend/interpreter/interpreter.h"
#include "core/backend/layers/faults/faults.h"
#include "core/backend/layers/layers.h"
#include "core/base/random.h"
#include "core/program/program_test_util.h"
#include "core/runtime/client.h"

namespace tenon::runtime {
namespace {

using backend::FaultKind;
using backend::FaultPlan;
using program::testing::four;

struct Case {
  std::string name;
  program::Program program;
  Literal argument;
  Literal expected;
  HostLifetime lifetime = HostLifetime::kDuringCall;
};

// A program that calls the host and donates, besides the others.
program::Program with_a_call() {
  program::Program p = program::testing::twice();
  p.constants = {four(1)};
  p.buffers.push_back(program::testing::buffer(program::BufferKind::kConstant, 0));
  p.buffers.push_back(program::testing::buffer(program::BufferKind::kTemporary, 0, 64));
  p.temporary_bytes = 128;
  p.sequences[0].steps = {{program::Launch{0, {0, 3, 1}, {}}, {}, "first"},
                          {program::CustomCall{"mine", {}, {1}, {4}}, {}, "call"},
                          {program::Launch{0, {4, 3, 2}, {}}, {}, "last"}};
  p.donated = {0};
  find_dependencies(p);
  return p;
}

std::vector<Case> cases() {
  return {{"twice", program::testing::twice(), four(2), four(6)},
          {"control flow", program::testing::control_flow(), four(3), four(12)},
          {"call", with_a_call(), four(3), four(41)},
          {"in place", program::testing::twice_in_place(), four(3), four(6),
           HostLifetime::kUntilDeleted}};
}

const CustomCalls kCalls = {
    {"mine", [](const program::Step&, const program::CustomCall&,
                const std::vector<Literal>& operands, const std::vector<Shape>&) {
       return Result<std::vector<Literal>>(std::vector{four(operands[0].get_double(0) * 10)});
     }}};

// The device uses the argument until `host_done`, even if the run fails.
struct UntilDone {
  Event host_done = Event::ready();
  ~UntilDone() { EXPECT_TRUE(host_done.await().ok()); }
};

// Everything from opening a client to the result.
Result<Literal> whole_run(const std::shared_ptr<backend::Backend>& backend, const Case& c,
                          std::shared_ptr<Client>* opened = nullptr) {
  TENON_ASSIGN(const auto client, Client::open(backend));
  if (opened != nullptr) *opened = client;
  const auto& device = client->devices()[0];
  std::vector<const kernel::Kernel*> kernels;
  for (const kernel::Kernel& kernel : c.program.kernels) kernels.push_back(&kernel);
  TENON_ASSIGN(auto compiled, backend->compile(device->info().target, kernels));
  CompiledProgram program = {
      c.program, std::move(compiled.binary), std::vector<KernelPlacement>(kernels.size()), {}, {}};
  TENON_ASSIGN(const auto executable, Executable::load(device, std::move(program), kCalls));
  HostArray array;
  array.data = c.argument.data().data();
  array.shape = c.argument.shape();
  array.lifetime = c.lifetime;
  UntilDone until_done;
  TENON_ASSIGN(const FromHost argument, buffer_from_host(device, MemoryKind::kDevice, array));
  until_done.host_done = argument.host_done;
  TENON_ASSIGN(const Execution execution, executable->execute(std::vector{argument.buffer}));
  TENON_TRY(execution.done.await());
  return execution.results[0]->to_literal();
}

constexpr FaultKind kSingle[] = {FaultKind::kOpen,     FaultKind::kCompile, FaultKind::kLoad,
                                 FaultKind::kAllocate, FaultKind::kImport,  FaultKind::kCopy,
                                 FaultKind::kLaunch,   FaultKind::kRecord,  FaultKind::kWait,
                                 FaultKind::kEvent,    FaultKind::kLost};

// The 1st, the 2nd, … call of each kind fails, until a run has no failing call.
TEST(Faults, EachCallOfEachKind) {
  for (const Case& c : cases()) {
    for (const FaultKind kind : kSingle) {
      for (int64_t n = 1; n < 200; ++n) {
        SCOPED_TRACE(fmt::format("{}: {}@{}", c.name, name_of(kind), n));
        FaultPlan plan;
        plan.nth[static_cast<size_t>(kind)] = n;
        const auto layer = make_faults_layer(
            backend::make_validate_layer(backend::make_interpreter_backend()), plan);
        const auto result = whole_run(layer.backend, c);
        if (layer.counts->faults(kind) == 0) {
          ASSERT_TRUE(result) << result.error().to_string();
          EXPECT_EQ(*result, c.expected);
          break;
        }
        // If there is no room for the first block, a smaller one may be allocated.
        if (!result) {
          EXPECT_NE(result.error().message().find("a planned fault"), std::string::npos)
              << result.error().to_string();
        } else {
          EXPECT_EQ(*result, c.expected);
        }
        // The fault has passed: a new client of the backend runs.
        const auto again = whole_run(layer.backend, c);
        ASSERT_TRUE(again) << again.error().to_string();
        EXPECT_EQ(*again, c.expected);
      }
    }
  }
}

// After a fault other than the loss of the device, the same client continues.
TEST(Faults, TheClientGoesOn) {
  const Case c = cases()[1];
  for (const FaultKind kind : {FaultKind::kCopy, FaultKind::kLaunch, FaultKind::kEvent}) {
    for (int64_t n = 1; n < 20; ++n) {
      SCOPED_TRACE(fmt::format("{}@{}", name_of(kind), n));
      FaultPlan plan;
      plan.nth[static_cast<size_t>(kind)] = n;
      const auto layer = make_faults_layer(backend::make_interpreter_backend(), plan);
      const auto client = Client::open(layer.backend).value();
      const auto& device = client->devices()[0];
      std::vector<const kernel::Kernel*> kernels;
      for (const kernel::Kernel& kernel : c.program.kernels) kernels.push_back(&kernel);
      auto compiled = layer.backend->compile(device->info().target, kernels).value();
      const auto executable =
          Executable::load(
              device,
              {c.program, compiled.binary, std::vector<KernelPlacement>(kernels.size()), {}, {}},
              {})
              .value();
      int right = 0;
      for (int i = 0; i < 4; ++i) {
        HostArray array;
        array.data = c.argument.data().data();
        array.shape = c.argument.shape();
        const auto argument = buffer_from_host(device, MemoryKind::kDevice, array);
        ASSERT_TRUE(argument);
        const auto run = executable->execute(std::vector{argument->buffer});
        ASSERT_TRUE(run);
        const auto result = run->results[0]->to_literal();
        if (!result) continue;
        EXPECT_EQ(*result, c.expected);
        ++right;
      }
      EXPECT_GE(right, 3);
    }
  }
}

// If a host function throws, its work fails; that work is still awaited.
TEST(Faults, FunctionsThatThrow) {
  const auto client = Client::open(backend::make_interpreter_backend()).value();
  const CustomCalls throws = {
      {"mine",
       [](const program::Step&, const program::CustomCall&, const std::vector<Literal>&,
          const std::vector<Shape>&) -> Result<std::vector<Literal>> {
         throw std::runtime_error("there is no such file");
       }}};
  const program::Program p = with_a_call();
  std::vector<const kernel::Kernel*> kernels;
  for (const kernel::Kernel& kernel : p.kernels) kernels.push_back(&kernel);
  const auto& device = client->devices()[0];
  auto compiled = client->backend().compile(device->info().target, kernels).value();
  const auto executable =
      Executable::load(device,
                       {p, compiled.binary, std::vector<KernelPlacement>(kernels.size()), {}, {}},
                       throws)
          .value();
  const Literal x = four(3);
  const auto argument =
      buffer_from_host(device, MemoryKind::kDevice, {x.data().data(), x.shape(), {}, {}}).value();
  const auto run = executable->execute(std::vector{argument.buffer}).value();
  EXPECT_EQ(run.done.await(),
            Status(ErrorCode::kInternal, "interp:0: it threw: there is no such file"));
}

// Random faults and delays: every run ends, with the right result or an error; with delays only,
// with the right result.
TEST(Faults, AtRandom) {
  int64_t right = 0;
  int64_t wrong = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    tenon::Random random(seed);
    FaultPlan plan;
    plan.seed = seed;
    plan.one_in[static_cast<size_t>(FaultKind::kDelay)] = 8;
    const bool delays_only = seed % 4 == 0;
    for (const FaultKind kind : kSingle) {
      if (!delays_only && random.one_in(2)) {
        plan.one_in[static_cast<size_t>(kind)] = random.between(5, 100);
      }
    }
    const auto layer = make_faults_layer(backend::make_interpreter_backend(), plan);
    const Case c = cases()[seed % 4];
    const auto result = whole_run(layer.backend, c);
    if (delays_only) {
      ASSERT_TRUE(result) << result.error().to_string();
    }
    if (result) {
      EXPECT_EQ(*result, c.expected);
    }
    ++(result ? right : wrong);
  }
  EXPECT_GT(right, 75);
  EXPECT_GT(wrong, 50);
}

}  // namespace
}  // namespace tenon::runtime
