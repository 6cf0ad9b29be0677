// Compiles LLVM IR to PTX, and PTX to cubins.
//
// Thread-safety: ptx_of() from any thread; a PtxAssembler from one at a time.
#pragma once

#include <string>
#include <vector>

#include "backends/gpu/codegen/compile.h"
#include "backends/gpu/codegen/ptxas.h"

namespace tenon::gpu {

/// A processor that LLVM's code is for, and the multiprocessors of a common card that has it.
struct PtxChip {
  int32_t compute_capability = 0;
  int64_t multiprocessors = 0;
};
inline constexpr PtxChip kPtxChips[] = {{75, 40}, {80, 108}, {86, 82}, {89, 128}, {90, 132}};

/// Verifies the module and runs the passes that precede PTX, for LLVM's newest chip whose code this
/// compute capability can run. Errors and `dump`: as for ptx_of().
Status optimize_for_chip(llvm::Module& module, int32_t compute_capability,
                         const std::string& dump = "");

/// The PTX text, for LLVM's newest chip whose code this compute capability can run. Modifies the
/// module. Errors: kUnimplemented for a chip older than sm_75; kInternal for invalid IR. With
/// `dump`, the module before and after the passes is written to files with that name and a suffix.
Result<std::string> ptx_of(llvm::Module& module, int32_t compute_capability,
                           const std::string& dump = "");

/// Makes a cubin if there is a ptxas that accepts the PTX, and the PTX itself, which any driver
/// compiles: a cubin may be too new for a driver, and the PTX too new for ptxas. TENON_GPU_DUMP
/// names a folder for intermediate results.
class PtxAssembler final : public Assembler {
 public:
  explicit PtxAssembler(int32_t compute_capability, std::string ptxas = find_ptxas())
      : compute_capability_(compute_capability), ptxas_(std::move(ptxas)) {}

  Result<std::vector<std::string>> assemble(llvm::Module& module) override;
  /// Why the last images have no cubin.
  const Status& no_cubin() const { return no_cubin_; }

 private:
  const int32_t compute_capability_;
  const std::string ptxas_;  // Empty: no ptxas.
  Status no_cubin_;
};

}  // namespace tenon::gpu
