// A GPU's code as code of the host.
//
// Thread-safety: as LLVM's: a module from one thread at a time.
#pragma once

#include <llvm/IR/Module.h>

#include "backends/gpu/simulator/image.h"

namespace tenon::gpu {

/// Turns the kernels of a module in the form of docs/gpu.md into functions of the type SimEntry,
/// for the host target that the caller then sets. `checks`: inserts a call before each memory
/// access that may be wrong. The image lacks its object. Errors: kUnimplemented, naming what the
/// simulator does not support.
Result<SimImage> make_host_code(llvm::Module& module, bool checks);

/// The same, compiled: an image for SimDriver. `dump`: as for compile_to_object, and the input
/// module.
Result<std::string> assemble_for_host(llvm::Module& module, bool checks,
                                      const std::string& dump = "");

}  // namespace tenon::gpu
