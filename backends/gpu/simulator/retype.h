// Changes the types of GPU functions to those of host functions.
#pragma once

#include <llvm/IR/Module.h>

#include <map>
#include <span>

namespace tenon::gpu {

/// A function without parameters whose result represents the thread, a pointer, until
/// retype_for_host() makes it a parameter.
llvm::FunctionCallee declare_thread(llvm::Module& module);

/// Replaces each function by one of the same name that takes the thread as its first parameter and
/// passes it to other functions of the list. All pointers, also in the module's constants, get a
/// single address space. Returns a map from the old functions, which have neither body nor name any
/// more, to the new ones.
std::map<llvm::Function*, llvm::Function*> retype_for_host(
    llvm::Module& module, std::span<llvm::Function* const> functions);

}  // namespace tenon::gpu
