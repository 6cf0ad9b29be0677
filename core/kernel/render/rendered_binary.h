// The binary of a backend that compiles rendered source: how each kernel is launched, in front of
// the compiler's bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/kernel/render/render.h"

namespace tenon::kernel {

/// The binary that `compile` gives the host (B14) and `load` gets back, in this or another process:
/// a line "FUNCTION WORKGROUPS LANES" for each kernel, an empty line, and the program.
struct RenderedBinary {
  std::vector<RenderedKernel> kernels;
  std::string program;  ///< The bytes of the device's compiler.

  std::string save() const;
  /// Safe on any bytes. Errors: kDataLoss, if they are not those of save().
  static Result<RenderedBinary> load(std::string_view bytes);
};

}  // namespace tenon::kernel
