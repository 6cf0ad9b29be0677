// Functions of a GPU, as functions of the host by their types.
#pragma once

#include <llvm/IR/Module.h>

#include <map>
#include <span>

namespace tenon::gpu {

/// A function without parameters that stands for the thread, a pointer, until
/// retype_for_host() makes it a parameter.
llvm::FunctionCallee declare_thread(llvm::Module& module);

/// Replaces each function by one of the same name that takes the thread as its first parameter,
/// passes it to the others of the list, and has pointers of a single address space only, as have
/// the module's constants. Gives a map from the old functions, which keep neither body nor name, to
/// the new ones.
std::map<llvm::Function*, llvm::Function*> retype_for_host(
    llvm::Module& module, std::span<llvm::Function* const> functions);

}  // namespace tenon::gpu
