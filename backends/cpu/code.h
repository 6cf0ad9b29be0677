// Compiled kernels: object files and what a launch needs to know of each kernel.
//
// Thread-safety: compile from any thread; a value otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/backend/backend.h"

namespace tenon::cpu {

/// Of one kernel.
struct CpuKernelCode {
  std::string symbol;
  int64_t workgroups = 1;
  int64_t scratch_bytes = 0;
  /// Workgroups that are worth a task of their own.
  int64_t grain = 1;
  double nanoseconds = 0;  ///< Of all workgroups on one thread, about.
  /// Bytes of each buffer.
  std::vector<int64_t> buffers;
  uint32_t scalars = 0;
};

struct CpuCode {
  std::vector<std::string> objects;
  std::vector<CpuKernelCode> kernels;
};

/// So many workgroups that they take some tens of microseconds, of all that take `nanoseconds`:
/// handing out a task costs about one. All of them if they are over before other threads come.
int64_t grain_of(double nanoseconds, int64_t workgroups);

/// What each of the symbols is. `stops`: two words, of which either ends the loops (B27).
using Entry = void (*)(std::byte* const* buffers, const uint64_t* scalars, int64_t begin,
                       int64_t end, std::byte* scratch, const volatile uint32_t* const* stops);

/// What the CPU computes with: kernels are legalised for it.
kernel::TargetFeatures host_features();

/// Kernels that are legal for host_features(). `vector_bytes`: of the registers that are used, 0
/// for the widest.
Result<CpuCode> compile(backend::Kernels kernels, int64_t vector_bytes = 0);

/// A Program as one kernel, of which the buffers are its memories (Backend::compile_segment). Its
/// kernels are legal for host_features().
/// `threads`: that may run it.
Result<CpuCode> compile_segment(const program::Program& program, int64_t threads);

std::string save(const CpuCode& code);
/// Errors: kDataLoss of bytes that are not what save() gave.
Result<CpuCode> load_code(std::string_view bytes);

}  // namespace tenon::cpu
