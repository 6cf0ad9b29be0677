// Compiled kernels: object files, and the data that a launch of each kernel needs.
//
// Thread-safety: compile from any thread; a value otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/backend/backend.h"

namespace tenon::cpu {

/// A kernel's symbol and the data that a launch of it needs.
struct CpuKernelCode {
  std::string symbol;
  int64_t workgroups = 1;
  int64_t scratch_bytes = 0;
  /// The number of workgroups per task.
  int64_t grain = 1;
  double nanoseconds = 0;  ///< Estimated time of all workgroups on one thread.
  /// Bytes of each buffer.
  std::vector<int64_t> buffers;
  uint32_t scalars = 0;
};

struct CpuCode {
  std::vector<std::string> objects;
  std::vector<CpuKernelCode> kernels;
};

/// The number of workgroups in a task, if all `workgroups` take `nanoseconds`. A task takes some
/// tens of microseconds, because starting one costs about one. Returns all workgroups if they would
/// end before other threads could help.
int64_t grain_of(double nanoseconds, int64_t workgroups);

/// The type of each symbol. `stops`: two words; the loops end when either becomes nonzero (B27).
using Entry = void (*)(std::byte* const* buffers, const uint64_t* scalars, int64_t begin,
                       int64_t end, std::byte* scratch, const volatile uint32_t* const* stops);

/// The target features of the CPU: kernels are legalised for them.
kernel::TargetFeatures host_features();

/// Compiles kernels that are legal for host_features(). `vector_bytes`: the size of the vector
/// registers to use, 0 for the widest.
Result<CpuCode> compile(backend::Kernels kernels, int64_t vector_bytes = 0);

/// Compiles a Program as one kernel whose buffers are the Program's memories
/// (Backend::compile_segment). Its kernels are legal for host_features(). `threads`: the number of
/// threads that may run it.
Result<CpuCode> compile_segment(const program::Program& program, int64_t threads);

std::string save(const CpuCode& code);
/// Errors: kDataLoss for bytes that save() did not write.
Result<CpuCode> load_code(std::string_view bytes);

}  // namespace tenon::cpu
