// The simulator's image: host code compiled from a GPU's code, and the facts needed to launch each
// kernel. The image of `GpuCode` for SimDriver.
//
// Thread-safety: values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace tenon::gpu {

/// A parameter of a kernel.
struct SimParameter {
  std::string name;
  int64_t bytes = 0;       ///< Size of its value.
  bool is_buffer = false;  ///< An address of global memory.
  bool stored = false;     ///< Something may be stored behind it.
};

/// A variable in shared memory.
struct SimVariable {
  std::string name;
  int64_t offset = 0;  ///< In the block's shared memory.
  int64_t bytes = 0;
};

struct SimKernel {
  std::string symbol;
  std::vector<SimParameter> parameters;
  int64_t shared_bytes = 0;
  int64_t stack_bytes = 0;  ///< Size of a thread's own arrays.
  /// Has barriers or shuffles: its threads take turns. Else they run one after the other.
  bool synchronizes = false;
  /// Bytes that it always accesses together: a power of two.
  int64_t granule = 1;
};

struct SimImage {
  std::string object;  ///< Host object file; each kernel's symbol is a SimEntry (simulator.h).
  bool checks = false;
  std::vector<SimKernel> kernels;
  std::vector<SimVariable> variables;
  std::vector<std::string> sites;  ///< "barrier 2 of @k": where threads wait for each other.
};

std::string save(const SimImage& image);
/// Errors: kInvalidArgument or kDataLoss, bytes that save() did not write.
Result<SimImage> load_sim_image(std::string_view bytes);

/// How code says which memory an access is meant for: a parameter's number, one of `variables`, or
/// neither.
constexpr int32_t kUnknownObject = -1;
constexpr int32_t object_of_variable(size_t variable) {
  return -2 - static_cast<int32_t>(variable);
}
constexpr bool is_variable(int32_t object) { return object <= -2; }
constexpr size_t variable_of(int32_t object) { return static_cast<size_t>(-2 - object); }

}  // namespace tenon::gpu
