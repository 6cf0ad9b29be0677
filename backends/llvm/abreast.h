// The order of instructions of several vectors that are computed abreast.
#pragma once

namespace llvm {
class Function;
}

namespace tenon::codegen {

/// Marks a function whose loops compute several vectors at a time: an operation of all of them
/// stands before the next operation of any, so that the processor finds independent instructions
/// near each other. LLVM's scheduler, which saves registers, would compute one vector after
/// another.
void keep_abreast(llvm::Function& function);

/// Makes LLVM's instruction scheduler heed the marks, in all threads. Thread-safe.
void heed_abreast();

}  // namespace tenon::codegen
