// Masked loads, stores, gathers and scatters on machines that have none of the type.
#pragma once

#include <llvm/IR/PassManager.h>

namespace tenon::codegen {

/// x86 without AVX512BW masks no elements of 8 and 16 bits, and NEON none at all; LLVM would test
/// and copy each lane by code of its own, dozens of blocks an access. This pass makes a plain
/// access of it for the case that all lanes are on, and a loop over those that are for the rest.
/// Accesses that the machine has, of constant masks, and of fewer than kLeastExpandedLanes or more
/// than 64 lanes are left alone.
class ExpandMaskedMemoryPass : public llvm::PassInfoMixin<ExpandMaskedMemoryPass> {
 public:
  static constexpr unsigned kLeastExpandedLanes = 4;

  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace tenon::codegen
