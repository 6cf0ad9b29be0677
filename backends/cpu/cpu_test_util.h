// Runs compiled kernels on Literals.
#pragma once

#include <vector>

#include "backends/cpu/jit.h"
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

}  // namespace tenon::cpu::testing
