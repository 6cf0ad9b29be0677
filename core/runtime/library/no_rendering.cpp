// The library has no renderer of kernels' source, nor the legaliser that it needs: a third of its
// size for what plug-ins ask of a host while they compile (B13), which this one never lets them do.
#include "core/kernel/legalize/legalize.h"
#include "core/kernel/render/render.h"

namespace tenon::kernel {

Result<RenderedSource> render(std::span<const Kernel>, const RenderOptions&) {
  return unimplemented(
      "libtenon_runtime renders no kernels: it loads what was compiled, and compiles nothing");
}

// For plug-ins of older versions, as they compile.
Kernel without(const Kernel& kernel, const MathFunctions&) { return kernel; }

RenderCapture::RenderCapture() : outer_(nullptr) {}
RenderCapture::~RenderCapture() = default;

}  // namespace tenon::kernel
