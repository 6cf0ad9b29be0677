// Masked loads, stores, gathers and scatters on machines that have none of the type.
#pragma once

#include <llvm/IR/PassManager.h>

namespace llvm {
class TargetMachine;
}

namespace tenon::codegen {

/// x86 without AVX512BW masks no elements of 8 and 16 bits, and NEON none at all; LLVM would test
/// and copy each lane by code of its own, dozens of blocks an access. This pass makes a plain
/// access of it for the case that all lanes are on, and a loop over those that are for the rest.
/// Accesses that the machine has, of constant masks, and of fewer than kLeastExpandedLanes or more
/// than 64 lanes are left alone; but gathers of all lanes are a load for each where `loads_lanes`
/// (loads_lanes_of() says where that is faster).
class ExpandMaskedMemoryPass : public llvm::PassInfoMixin<ExpandMaskedMemoryPass> {
 public:
  static constexpr unsigned kLeastExpandedLanes = 4;

  explicit ExpandMaskedMemoryPass(bool loads_lanes) : loads_lanes_(loads_lanes) {}

  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

 private:
  bool loads_lanes_;
};

/// Whether a load for each lane is faster than a gather: on x86, unless LLVM calls the gathers of
/// the processor fast. Of AMD's Zen 4 a gather of 16 floats takes 1.2 times as long from the first
/// cache, and 1.5 times from memory, since fewer of its loads are under way at once.
bool loads_lanes_of(const llvm::TargetMachine& machine);

}  // namespace tenon::codegen
