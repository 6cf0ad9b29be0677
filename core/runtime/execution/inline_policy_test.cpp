// Which executions run on the caller's thread.
#include "core/runtime/execution/inline_policy.h"

#include <atomic>
#include <thread>

#include "core/backend/layers/forward.h"
#include "core/runtime/runtime_test_util.h"

namespace tenon::runtime {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using program::testing::control_flow;
using program::testing::four;
using program::testing::twice;

constexpr int64_t kShortTime = InlinePolicy::kMostNanoseconds;
constexpr int64_t kLongTime = InlinePolicy::kMostNanoseconds + 1;

CompiledProgram compiled(program::Program program) {
  const std::vector<KernelPlacement> placements(program.kernels.size(), KernelPlacement::kDevice);
  return {std::move(program), "", placements, {}, {}};
}

InlinePolicy& decided(InlinePolicy& policy, const CompiledProgram& compiled, bool sees = true) {
  policy.decide(compiled, sees);
  return policy;
}

TEST(InlinePolicy, KnownShortWorkNeedsNoMeasurement) {
  InlinePolicy policy;
  decided(policy, compiled(twice()), /*sees=*/false);
  EXPECT_TRUE(policy.runs_inline());
  EXPECT_FALSE(policy.measures());
}

TEST(InlinePolicy, LoopsAreMeasured) {
  InlinePolicy policy;
  decided(policy, compiled(control_flow()));
  EXPECT_TRUE(policy.measures());
  for (int i = 0; i < InlinePolicy::kShort; ++i) {
    EXPECT_FALSE(policy.runs_inline()) << i;
    policy.add(kShortTime);
  }
  EXPECT_TRUE(policy.runs_inline());
  policy.add(kShortTime);
  EXPECT_TRUE(policy.runs_inline());
  // A longer one, and it takes many short ones.
  policy.add(kLongTime);
  for (int i = InlinePolicy::kAfterLong; i < InlinePolicy::kShort; ++i) {
    EXPECT_FALSE(policy.runs_inline()) << i;
    policy.add(kShortTime);
  }
  EXPECT_TRUE(policy.runs_inline());
}

TEST(InlinePolicy, WhereALoopsTimeSaysNothingItIsNotMeasured) {
  InlinePolicy policy;
  // The caller's processors do other work meanwhile.
  EXPECT_FALSE(decided(policy, compiled(control_flow()), /*sees=*/false).measures());
  // A kernel of the host, and one that has its loop within it.
  CompiledProgram of_the_host = compiled(control_flow());
  of_the_host.kernel_placements[0] = KernelPlacement::kHost;
  EXPECT_FALSE(decided(policy, of_the_host).measures());
  EXPECT_TRUE(decided(policy, compiled(endless())).measures());
  // Functions of the host may wait for the caller.
  program::Program calls = control_flow();
  calls.sequences[0].steps.push_back({program::CustomCall{"mine", {}, {0}, {2}}, {}, "the call"});
  EXPECT_FALSE(decided(policy, compiled(calls)).measures());
  for (int i = 0; i < InlinePolicy::kShort; ++i) policy.add(kShortTime);
  EXPECT_FALSE(policy.runs_inline());
}

// Notes on which threads launches come.
class ThreadsOfLaunches final : public backend::ForwardingBackend {
 public:
  ThreadsOfLaunches() : ForwardingBackend(backend::make_interpreter_backend()) {}
  Result<std::unique_ptr<backend::Device>> open(size_t index) override;
  std::atomic<std::thread::id> last;
};

class ThreadsOfDevice final : public backend::ForwardingDevice {
 public:
  ThreadsOfDevice(std::unique_ptr<backend::Device> device, ThreadsOfLaunches& threads)
      : ForwardingDevice(std::move(device)), threads_(threads) {}
  Status launch(uint32_t queue, const backend::KernelLaunch& launch) override {
    threads_.last = std::this_thread::get_id();
    return ForwardingDevice::launch(queue, launch);
  }

 private:
  ThreadsOfLaunches& threads_;
};

Result<std::unique_ptr<backend::Device>> ThreadsOfLaunches::open(size_t index) {
  TENON_ASSIGN(std::unique_ptr<backend::Device> device, ForwardingBackend::open(index));
  return std::make_unique<ThreadsOfDevice>(std::move(device), *this);
}

TEST(InlinePolicy, ShortLoopsComeToRunOnTheCallersThread) {
  const auto backend = std::make_shared<ThreadsOfLaunches>();
  const auto client = Client::open(backend).value();
  const auto executable = load(*client, control_flow());
  const std::vector arguments = {put(client->devices()[0], four(3))};
  const auto runs_here = [&] {
    const auto run = executable->execute(arguments);
    EXPECT_EQ(get(run->results[0]), four(12));
    EXPECT_TRUE(run->done.await().ok());
    return backend->last.load() == std::this_thread::get_id();
  };
  for (int i = 0; i < InlinePolicy::kShort; ++i) EXPECT_FALSE(runs_here());
  // On a busy machine an execution may take long.
  int tries = 0;
  while (!runs_here()) ASSERT_LT(++tries, 10000);
}

}  // namespace
}  // namespace tenon::runtime
