// Compiles kernels, runs them on Literals and compares them with the interpreter.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/cpu/codegen/emitter.h"
#include "backends/cpu/jit.h"
#include "backends/llvm/host.h"
#include "core/base/process/full_test_util.h"
#include "core/base/random.h"
#include "core/kernel/legalize/legalize.h"
#include "core/kernel/testing/case_test_util.h"
#include "core/types/literal.h"

namespace tenon::cpu::testing {

inline void run(const Library& library, size_t number, std::vector<Literal>& buffers) {
  const CpuKernelCode& kernel = library.code().kernels[number];
  std::vector<std::byte*> data;
  for (Literal& buffer : buffers) data.push_back(buffer.mutable_data().data());
  std::vector<std::byte> scratch(static_cast<size_t>(kernel.scratch_bytes) + 64);
  std::byte* aligned = scratch.data();
  while (reinterpret_cast<uintptr_t>(aligned) % 64 != 0) ++aligned;
  const volatile uint32_t go = 0;
  const volatile uint32_t* const stops[] = {&go, &go};
  // In two parts, as two tasks would run it.
  const int64_t half = kernel.workgroups / 2;
  library.entry(number)(data.data(), nullptr, half, kernel.workgroups, aligned, stops);
  library.entry(number)(data.data(), nullptr, 0, half, aligned, stops);
}

// The vector width of the host, and narrower ones that it also supports, in bytes.
inline std::vector<int64_t> widths() {
  std::vector<int64_t> list;
  for (const int64_t bytes : {4, 16, 32, 64}) {
    if (bytes <= codegen::host().vector_bytes) list.push_back(bytes);
  }
  return list;
}

// The same and those of wider registers, whose vectors LLVM takes apart here: not for every op of
// vectors.
inline std::vector<int64_t> every_width() { return {4, 16, 32, 64}; }

// The code of a kernel before LLVM's passes.
inline std::string ir_of(const kernel::Kernel& kernel, int64_t vector_bytes = 16) {
  llvm::LLVMContext context;
  llvm::Module module("m", context);
  CpuKernelEmitter(module, kernel, vector_bytes).run("k");
  std::string ir;
  llvm::raw_string_ostream out(ir);
  module.print(out, nullptr);
  return ir;
}

// The kernel `k` of a text, whose first buffer has the numbers below `modulus`, in turn.
inline kernel::testing::Case numbered_case(const std::string& text, int64_t modulus) {
  const kernel::Kernel kernel = kernel::parse(text, "k").value();
  kernel::testing::Case c = {kernel, kernel::testing::zero_buffers(kernel)};
  for (int64_t k = 0; k < c.buffers[0].element_count(); ++k)
    c.buffers[0].set_double(k, static_cast<double>(k % modulus));
  return c;
}

// The numbers of the cases that are compiled for vectors of a width. Where there are many, each is
// for those of the host and for one of the narrower widths, which its number picks; with TENON_FULL
// for all of them.
inline std::vector<size_t> cases_for(int64_t bytes, size_t count) {
  constexpr size_t kMany = 40;
  std::vector<int64_t> narrower = widths();
  narrower.pop_back();
  const bool all =
      count < kMany || bytes == widths().back() || narrower.empty() || tests_take_all();
  std::vector<size_t> numbers;
  for (size_t k = 0; k < count; ++k) {
    if (all || narrower[mix_bits(k) % narrower.size()] == bytes) numbers.push_back(k);
  }
  return numbers;
}

inline void expect_interpreters_bits(const std::vector<kernel::testing::Case>& cases,
                                     double tolerance = 0,
                                     const std::vector<int64_t>& in_widths = widths()) {
  std::vector<kernel::Kernel> legal;
  std::vector<std::vector<Literal>> expected;
  for (const kernel::testing::Case& c : cases) {
    auto kernel = kernel::legalize(c.kernel, host_features());
    ASSERT_TRUE(kernel) << kernel.error().to_string();
    legal.push_back(*std::move(kernel));
    expected.push_back(c.buffers);
    const Status ran = kernel::testing::run(c.kernel, expected.back());
    ASSERT_TRUE(ran.ok()) << ran.to_string();
  }
  for (const int64_t bytes : in_widths) {
    SCOPED_TRACE(bytes);
    const std::vector<size_t> numbers = cases_for(bytes, cases.size());
    std::vector<const kernel::Kernel*> kernels;
    for (const size_t k : numbers) kernels.push_back(&legal[k]);
    auto code = compile(kernels, bytes);
    ASSERT_TRUE(code) << code.error().to_string();
    const auto library = load_library(*std::move(code));
    ASSERT_TRUE(library) << library.error().to_string();
    for (size_t at = 0; at < numbers.size(); ++at) {
      const size_t k = numbers[at];
      std::vector<Literal> actual = cases[k].buffers;
      run(**library, at, actual);
      for (size_t m = 0; m < actual.size(); ++m) {
        kernel::testing::expect_same(cases[k].kernel.name, actual[m], expected[k][m], tolerance);
      }
    }
  }
}

}  // namespace tenon::cpu::testing
