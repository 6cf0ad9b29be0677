// NVIDIA's assembler ptxas, which compiles PTX to a cubin.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace tenon::gpu {

/// The path of ptxas: the value of TENON_PTXAS, or the one in CUDA_HOME, in PATH, in
/// /usr/local/cuda, or in the wheel that scripts/ptxas installs; empty if ptxas is not found.
std::string find_ptxas();

/// The version that ptxas prints with --version, "12.8.93": the same version gives the same code
/// for a text. Its path if it prints no version; empty if there is no ptxas.
std::string version_of(const std::string& ptxas);

/// The resources that each thread of a kernel uses.
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

/// Errors: kInternal, with ptxas's message about the text; kUnavailable if it cannot be run.
Result<Cubin> run_ptxas(const std::string& ptxas, const std::string& ptx,
                        int32_t compute_capability);

/// Parses the output of `ptxas -v`.
std::vector<Resources> parse_report(std::string_view report);

}  // namespace tenon::gpu
