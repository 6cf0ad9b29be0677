// The simulator's image: host code compiled from GPU code, and the data needed to launch each
// kernel. It is the image in `GpuCode` for SimDriver.
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
  bool stored = false;     ///< The kernel may store through it.
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
  /// Whether it has barriers or shuffles: its threads then run in turn. Otherwise they run one
  /// after the other.
  bool synchronizes = false;
  /// The number of bytes that are always accessed together: a power of two.
  int64_t granule = 1;
};

struct SimImage {
  std::string object;  ///< Host object file; each kernel's symbol is a SimEntry (simulator.h).
  bool checks = false;
  std::vector<SimKernel> kernels;
  std::vector<SimVariable> variables;
  /// "barrier 2 of @k": positions where threads wait for each other.
  std::vector<std::string> sites;
};

std::string save(const SimImage& image);
/// Errors: kInvalidArgument or kDataLoss for bytes that save() did not write.
Result<SimImage> load_sim_image(std::string_view bytes);

/// How code states the memory that an access is meant for: the index of a parameter, of one of
/// `variables`, or unknown.
constexpr int32_t kUnknownObject = -1;
constexpr int32_t object_of_variable(size_t variable) {
  return -2 - static_cast<int32_t>(variable);
}
constexpr bool is_variable(int32_t object) { return object <= -2; }
constexpr size_t variable_of(int32_t object) { return static_cast<size_t>(-2 - object); }

}  // namespace tenon::gpu
