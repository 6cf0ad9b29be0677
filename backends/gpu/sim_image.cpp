#include "backends/gpu/sim_image.h"

#include "core/serial/archive.h"

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

std::string save(const SimImage& image) {
  serial::Writer writer;
  serialize(writer, image);
  return serial::seal(kImageFormat, std::move(writer).take());
}

Result<SimImage> load_sim_image(std::string_view bytes) {
  TENON_ASSIGN(const serial::Unsealed file, serial::unseal(bytes, kImageFormat));
  serial::Reader reader(file.payload, file.version);
  SimImage image;
  serialize(reader, image);
  TENON_TRY(Status(reader.status()));
  return image;
}

}  // namespace tenon::gpu
