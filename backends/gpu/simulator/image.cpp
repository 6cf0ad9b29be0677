#include "backends/gpu/simulator/image.h"

#include "core/base/sealed.h"

namespace tenon::gpu {

template <class A>
void serialize(A& a, serial::Of<A, SimParameter>& parameter) {
  a(parameter.name, parameter.bytes, parameter.is_buffer, parameter.stored);
}
template <class A>
void serialize(A& a, serial::Of<A, SimVariable>& variable) {
  a(variable.name, variable.offset, variable.bytes);
}
template <class A>
void serialize(A& a, serial::Of<A, SimKernel>& kernel) {
  a(kernel.symbol, kernel.parameters, kernel.shared_bytes, kernel.stack_bytes, kernel.synchronizes,
    kernel.granule);
}
template <class A>
void serialize(A& a, serial::Of<A, SimImage>& image) {
  a(image.object, image.checks, image.kernels, image.variables, image.sites);
}

namespace {
constexpr serial::Format kImageFormat = {"TNGS", "image of gpu-sim", 1, 1};
}  // namespace

std::string save(const SimImage& image) { return serial::save_sealed(kImageFormat, image); }

Result<SimImage> load_sim_image(std::string_view bytes) {
  return serial::load_sealed<SimImage>(kImageFormat, bytes);
}

}  // namespace tenon::gpu
