// The calls that check each memory access, for make_host_code.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <set>

#include "backends/gpu/simulator/simulator.h"

namespace tenon::gpu {

/// Declares a function of the simulator in the module.
llvm::FunctionCallee declare(llvm::Module& module, SimFunction function);

/// The variables of shared memory, with their indices in SimImage::variables.
using SharedVariables = llvm::DenseMap<const llvm::GlobalVariable*, size_t>;

/// Facts about the memory accesses of a function.
struct AccessFacts {
  int64_t granule = 16;          ///< As in SimKernel.
  std::set<unsigned> stored;     ///< Arguments through which something is stored.
  bool stores_anywhere = false;  ///< There is a store to an unknown address.
};

/// Inserts a call before each load, store and atomic operation of the function, except for accesses
/// at constant offsets in a thread's arrays and to constants. `thread`: the SimThread, defined
/// before the first access.
AccessFacts add_checks(llvm::Function& function, llvm::Value* thread,
                       const SharedVariables& variables);

}  // namespace tenon::gpu
