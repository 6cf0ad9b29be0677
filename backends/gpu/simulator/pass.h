// Converts GPU code to host code.
//
// Thread-safety: as for LLVM: a module from one thread at a time.
#pragma once

#include <llvm/IR/Module.h>

#include "backends/gpu/simulator/image.h"

namespace tenon::gpu {

/// Turns the kernels of a module in the form of docs/gpu.md into functions of type SimEntry, for
/// the host target that the caller then sets. `checks`: inserts a call before each memory access
/// that may be wrong. The object of the image is not set. Errors: kUnimplemented, with the name of
/// what the simulator does not support.
Result<SimImage> make_host_code(llvm::Module& module, bool checks);

/// The same, followed by compilation: an image for SimDriver. `dump`: as for compile_to_object, and
/// also the input module.
Result<std::string> assemble_for_host(llvm::Module& module, bool checks,
                                      const std::string& dump = "");

}  // namespace tenon::gpu
