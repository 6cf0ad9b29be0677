// PTX of LLVM IR, and cubins of PTX.
//
// Thread-safety: ptx_of() from any thread; a PtxAssembler from one at a time.
#pragma once

#include <string>
#include <vector>

#include "backends/gpu/codegen/compile.h"
#include "backends/gpu/codegen/ptxas.h"

namespace tenon::gpu {

/// Verifies the module and runs the passes that go before PTX, for the newest chip of LLVM's that
/// one of this compute capability can run. Errors and `dump`: as ptx_of().
Status optimize_for_chip(llvm::Module& module, int32_t compute_capability,
                         const std::string& dump = "");

/// The PTX text, for the newest chip of LLVM's whose code this compute capability can run. The
/// module is changed. Errors: kUnimplemented, a chip older than sm_75; kInternal, invalid IR. With
/// `dump` the module before and after the passes is written to files of that name and an ending.
Result<std::string> ptx_of(llvm::Module& module, int32_t compute_capability,
                           const std::string& dump = "");

/// Gives a cubin where there is a ptxas that takes the PTX, and the PTX, which any driver compiles:
/// a cubin may be newer than a driver, a ptxas older than the PTX. TENON_GPU_DUMP names a folder
/// for what is made on the way.
class PtxAssembler final : public Assembler {
 public:
  explicit PtxAssembler(int32_t compute_capability, std::string ptxas = find_ptxas())
      : compute_capability_(compute_capability), ptxas_(std::move(ptxas)) {}

  Result<std::vector<std::string>> assemble(llvm::Module& module) override;

 private:
  const int32_t compute_capability_;
  const std::string ptxas_;  // Empty: none.
};

}  // namespace tenon::gpu
