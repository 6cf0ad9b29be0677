// The exact remainder of floats, which no instruction of a GPU gives.
#pragma once

#include <llvm/IR/Module.h>

namespace tenon::gpu {

/// The function of `module` that gives x - trunc(x / y) y of two numbers of a type, float or
/// double, made when it is first asked for. x rem 0 and inf rem y are NaN; x rem inf is x.
llvm::Function* remainder_function(llvm::Module& module, llvm::Type* type);

}  // namespace tenon::gpu
