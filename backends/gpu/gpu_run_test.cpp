// Kernels of a GPU, run by the simulator with all of its checks, give the interpreter's bits.
#include <gtest/gtest.h>

#include "backends/gpu/compile.h"
#include "backends/gpu/sim_pass.h"
#include "backends/gpu/simulator.h"
#include "core/kernel/case_test_util.h"

namespace tenon::gpu {
namespace {

using enum ElementType;
using kernel::Kernel;
using kernel::testing::Case;

class CheckingAssembler final : public Assembler {
 public:
  Result<std::string> assemble(llvm::Module& module) override {
    return assemble_for_host(module, /*checks=*/true);
  }
};

// In memory that is aligned as a device's.
class Aligned {
 public:
  explicit Aligned(const Literal& value)
      : bytes_(value.data().size() + kAlignment), size_(value.data().size()) {
    const auto address = reinterpret_cast<uintptr_t>(bytes_.data());
    start_ = bytes_.data() + (kAlignment - address % kAlignment) % kAlignment;
    std::memcpy(start_, value.data().data(), size_);
  }
  std::byte* data() { return start_; }
  void copy_to(Literal& value) const { std::memcpy(value.mutable_data().data(), start_, size_); }

 private:
  static constexpr size_t kAlignment = 256;
  std::vector<std::byte> bytes_;
  size_t size_;
  std::byte* start_;
};

Status run(const SimProgram& program, const Code& code, size_t number,
           std::vector<Literal>& buffers) {
  std::vector<Aligned> memories(buffers.begin(), buffers.end());
  std::vector<std::byte*> addresses;
  for (Aligned& each : memories) addresses.push_back(each.data());
  std::vector<const void*> arguments;
  for (std::byte*& each : addresses) arguments.push_back(&each);
  const KernelCode& kernel = code.kernels[number];
  SimLaunch launch;
  launch.kernel = number;
  launch.shape = {kernel.blocks, kernel.threads, kernel.buffers};
  launch.arguments = arguments;
  TENON_TRY(simulate(program, launch));
  for (size_t m = 0; m < buffers.size(); ++m) memories[m].copy_to(buffers[m]);
  return {};
}

void expect_interpreters_bits(const std::vector<Case>& cases, double tolerance = 0) {
  std::vector<Kernel> legal;
  for (const Case& c : cases) {
    auto kernel = kernel::legalize(c.kernel, form_of_gpu());
    ASSERT_TRUE(kernel) << kernel.error().to_string();
    legal.push_back(*std::move(kernel));
  }
  std::vector<const Kernel*> kernels;
  for (const Kernel& each : legal) kernels.push_back(&each);
  CheckingAssembler assembler;
  const auto compiled = compile(target_of_gpu(90), kernels, assembler);
  ASSERT_TRUE(compiled) << compiled.error().to_string();
  ASSERT_TRUE(compiled->declined.empty()) << compiled->declined[0].text;
  const auto program = SimProgram::load(compiled->code.image);
  ASSERT_TRUE(program) << program.error().to_string();
  for (size_t k = 0; k < cases.size(); ++k) {
    std::vector<Literal> expected = cases[k].buffers;
    std::vector<Literal> actual = cases[k].buffers;
    ASSERT_TRUE(kernel::testing::run(cases[k].kernel, expected).ok());
    const Status status = run(**program, compiled->code, k, actual);
    ASSERT_TRUE(status.ok()) << cases[k].kernel.name << ": " << status.to_string();
    for (size_t m = 0; m < actual.size(); ++m) {
      kernel::testing::expect_same(cases[k].kernel.name, actual[m], expected[m], tolerance);
    }
  }
}

TEST(GpuRun, EveryOperation) {
  expect_interpreters_bits(kernel::testing::operation_cases(
      {kPred, kS4, kS8, kS16, kS32, kS64, kU8, kU16, kU32, kU64, kBF16, kF16, kF32, kF64}));
}

TEST(GpuRun, Examples) {
  expect_interpreters_bits(kernel::testing::example_cases(TENON_SOURCE), 1e-4);
}

TEST(GpuRun, ControlFlowAndCarriedValues) {
  expect_interpreters_bits(kernel::testing::loop_cases());
}

TEST(GpuRun, Atomics) {
  expect_interpreters_bits(kernel::testing::atomic_cases({kS8, kU16, kS32, kU32, kS64, kU64}));
}

}  // namespace
}  // namespace tenon::gpu
