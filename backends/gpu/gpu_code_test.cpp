// What the code generator makes of kernels, as PTX and as ptxas sees it.
#include <gtest/gtest.h>

#include "backends/gpu/nvptx.h"
#include "core/kernel/case_test_util.h"

namespace tenon::gpu {
namespace {

using enum ElementType;
using kernel::Kernel;
using kernel::testing::Case;

TEST(GpuCode, Smoke) {
  for (const Case& c : kernel::testing::example_cases(TENON_SOURCE)) {
    auto legal = kernel::legalize(c.kernel, form_of_gpu());
    ASSERT_TRUE(legal);
    const Kernel* const kernels[] = {&*legal};
    PtxAssembler assembler(90);
    const auto compiled = compile(target_of_gpu(90), kernels, assembler);
    ASSERT_TRUE(compiled) << compiled.error().to_string();
    EXPECT_TRUE(compiled->declined.empty());
  }
}

TEST(GpuCode, Ops) {
  const auto cases = kernel::testing::operation_cases(
      {kPred, kS4, kS8, kS16, kS32, kS64, kU8, kU16, kU32, kU64, kBF16, kF16, kF32, kF64});
  std::vector<Kernel> legal;
  for (const Case& c : cases) legal.push_back(kernel::legalize(c.kernel, form_of_gpu()).value());
  std::vector<const Kernel*> kernels;
  for (const Kernel& each : legal) kernels.push_back(&each);
  for (const int chip : {75, 80, 90}) {
    PtxAssembler assembler(chip);
    const auto compiled = compile(target_of_gpu(chip), kernels, assembler);
    ASSERT_TRUE(compiled) << compiled.error().to_string();
    EXPECT_TRUE(compiled->declined.empty());
  }
}

}  // namespace
}  // namespace tenon::gpu
