// NVIDIA's assembler: PTX to a cubin.
//
// Thread-safety: all of it from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace tenon::gpu {

/// The path of ptxas: the value of TENON_PTXAS, or the one in CUDA_HOME, in PATH, in
/// /usr/local/cuda, or in the wheel that scripts/ptxas installs; empty if ptxas is not found.
std::string find_ptxas();

/// The version of ptxas, "12.8.93", as printed with --version: the same version gives the same code
/// for a text. Its path if it prints no version; empty if there is no ptxas.
std::string version_of(const std::string& ptxas);

/// The resources that a thread of a kernel uses.
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
