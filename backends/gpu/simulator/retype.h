// Functions of a GPU, as functions of the host by their types.
#pragma once

#include <llvm/IR/Module.h>

#include <map>
#include <span>

namespace tenon::gpu {

/// A function without parameters that stands for the thread, a pointer, until
/// retype_for_host() makes it a parameter.
llvm::FunctionCallee declare_thread(llvm::Module& module);

/// Makes of each function one of the same name that takes the thread first, passes it to the others
/// of the list, and knows pointers of one address space alone; so do constants of the module. Gives
/// the functions by the old ones, which stay without a body or a name.
std::map<llvm::Function*, llvm::Function*> retype_for_host(
    llvm::Module& module, std::span<llvm::Function* const> functions);

}  // namespace tenon::gpu
