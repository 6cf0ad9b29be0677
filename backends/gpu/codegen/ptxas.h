// NVIDIA's assembler: PTX to a cubin.
//
// Thread-safety: all of it from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace tenon::gpu {

/// The path of ptxas: what TENON_PTXAS names, or that of CUDA_HOME, of PATH, of /usr/local/cuda, or
/// of the wheel that scripts/ptxas installs; empty if there is none.
std::string find_ptxas();

/// "12.8.93": what it says of itself with --version, which decides what it makes of a text. Its
/// path if it says nothing; empty if there is none.
std::string version_of(const std::string& ptxas);

/// What a kernel takes of a thread.
struct Resources {
  std::string symbol;
  int64_t registers = 0;
  int64_t stack_bytes = 0;
  int64_t spill_stores = 0;  ///< Bytes.
  int64_t spill_loads = 0;
};

struct Cubin {
  std::string bytes;
  std::vector<Resources> kernels;
  std::string report;  ///< As ptxas printed it.
};

/// Errors: kInternal, with what ptxas says of the text; kUnavailable, it cannot be run.
Result<Cubin> run_ptxas(const std::string& ptxas, const std::string& ptx,
                        int32_t compute_capability);

/// Reads what `ptxas -v` prints.
std::vector<Resources> parse_report(std::string_view report);

}  // namespace tenon::gpu
