// A GPU's code as code of the host.
//
// Thread-safety: as LLVM's: a module from one thread at a time.
#pragma once

#include <llvm/IR/Module.h>

#include "backends/gpu/simulator/image.h"

namespace tenon::gpu {

/// Makes the kernels of a module, which is as docs/gpu.md says, functions of the type SimEntry, for
/// the target of the host that the caller then sets. `checks`: with a call before each access of
/// memory that may be wrong. The image is without its object.
/// Errors: kUnimplemented, what the simulator does not know, by name.
Result<SimImage> make_host_code(llvm::Module& module, bool checks);

/// The same, compiled: an image for SimDriver. `dump`: as compile_to_object; the module as it came,
/// too.
Result<std::string> assemble_for_host(llvm::Module& module, bool checks,
                                      const std::string& dump = "");

}  // namespace tenon::gpu
