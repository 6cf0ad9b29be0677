// The exact remainder of floats, for which a GPU has no instruction.
#pragma once

#include <llvm/IR/Module.h>

namespace tenon::gpu {

/// The function of `module` that computes x - trunc(x / y) y for two numbers of a type, float or
/// double; created by the first call. x rem 0 and inf rem y are NaN; x rem inf is x.
llvm::Function* remainder_function(llvm::Module& module, llvm::Type* type);

}  // namespace tenon::gpu
