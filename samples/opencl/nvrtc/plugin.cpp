// The backend: which GPUs there are, and their compiler.
#include <algorithm>

#include "core/backend/adapter/adapter.h"
#include "core/backend/adapter/rendering.h"
#include "core/backend/driver/narrowing.h"
#include "nvrtc.h"

namespace tenon::nvrtc {
namespace {

Result<backend::TargetInfo> describe(int number) {
  constexpr int64_t kLanes = 128;
  constexpr int64_t kParameters = 4096 / sizeof(GpuAddress);
  int device = 0;
  TENON_TRY(cuda().device(&device, number));
  const auto attribute = [&](CudaAttribute which) -> Result<int64_t> {
    int value = 0;
    TENON_TRY(cuda().attribute(&value, which, device));
    return value;
  };
  TENON_ASSIGN(const int64_t major, attribute(kCapabilityMajor));
  TENON_ASSIGN(const int64_t minor, attribute(kCapabilityMinor));
  int compiler_major = 0, compiler_minor = 0;
  TENON_TRY(compiler().version(&compiler_major, &compiler_minor));

  backend::TargetInfo target;
  target.name = fmt::format("sm_{}{}", major, minor);
  target.compiler_id = fmt::format("nvrtc-1 {}.{} {}", compiler_major, compiler_minor, target.name);
  target.features = kernel::TargetFeatures::parse("s8,u8,s16,u16,s64,u64,f64,fma").value();
  target.features.atomics = {ElementType::kS32, ElementType::kU32, ElementType::kS64,
                             ElementType::kU64};
  TENON_ASSIGN(target.compute_units, attribute(kMultiprocessors));
  TENON_ASSIGN(target.most_lanes, attribute(kThreadsPerBlock));
  target.preferred_lanes = std::min(kLanes, target.most_lanes);
  target.vector_bytes = 16;
  TENON_ASSIGN(target.scratch_bytes, attribute(kSharedBytesPerBlock));
  target.private_bytes = 640;  // Of 255 registers.
  target.most_parameters = kParameters - 1;
  target.spaces[0].alignment = 256;
  size_t bytes = 0;
  TENON_TRY(cuda().device_memory(&bytes, device));
  target.spaces[0].bytes = static_cast<int64_t>(bytes);
  target.queues = 3;
  TENON_TRY(backend::narrow(target, "TENON_NVRTC"));
  backend::declare_rendering(target);
  return target;
}

/// The machine code of an architecture, "sm_90".
Result<std::string> build(const std::string& architecture, const std::string& source) {
  SourceProgram program = nullptr;
  TENON_TRY(compiler().create(&program, source.c_str(), "kernels.cu", 0, nullptr, nullptr));
  const auto destroy = [](SourceProgram* made) { static_cast<void>(compiler().destroy(made)); };
  const std::unique_ptr<SourceProgram, decltype(destroy)> guard(&program, destroy);
  const std::string chosen = "--gpu-architecture=" + architecture;
  // Results have the same bits on every device: no contraction, no approximation.
  const char* const options[] = {chosen.c_str(), "--std=c++17",     "--fmad=false",
                                 "--ftz=false",  "--prec-div=true", "--prec-sqrt=true"};
  const Status compiled = compiler().compile(program, std::size(options), options);
  size_t size = 0;
  if (!compiled.ok()) {
    TENON_TRY(compiler().log_size(program, &size));
    std::string log(size, '\0');
    TENON_TRY(compiler().log(program, log.data()));
    return internal_error("{}: {}", compiled.message(),
                          backend::explain_messages(log.c_str(), source));
  }
  TENON_TRY(compiler().cubin_size(program, &size));
  std::string code(size, '\0');
  TENON_TRY(compiler().cubin(program, code.data()));
  return code;
}

class NvrtcBackend final : public backend::Backend {
 public:
  std::string_view name() const override { return "nvrtc"; }
  std::string_view version() const override { return "1"; }

  Result<std::vector<backend::DeviceInfo>> devices() override {
    TENON_TRY(cuda().state());
    TENON_TRY(compiler().state());
    TENON_TRY(cuda().init(0));
    int count = 0;
    TENON_TRY(cuda().device_count(&count));
    std::vector<backend::DeviceInfo> devices;
    for (int i = 0; i < count; ++i) {
      TENON_ASSIGN(backend::TargetInfo target, describe(i));
      devices.push_back({fmt::format("nvrtc:{}", i), std::move(target)});
    }
    return devices;
  }

  Result<std::unique_ptr<backend::Device>> open(size_t index) override {
    TENON_ASSIGN(const auto all, devices());
    return open_device(static_cast<int>(index), all[index].target.queues);
  }

  Result<backend::Compiled> compile(const backend::TargetInfo& target,
                                    backend::Kernels kernels) override {
    TENON_TRY(compiler().state());
    auto options = backend::render_options(target, kernel::Language::kCuda);
    options.stop = true;
    return backend::compile_rendered(target, kernels, options, [&](const std::string& source) {
      return build(target.name, source);
    });
  }
};

}  // namespace
}  // namespace tenon::nvrtc

extern "C" const TenonBackend* tenon_plugin(const TenonHost* host, const TenonSink* error) {
  return tenon::backend::export_backend(host, error, [] {
    return tenon::Result<std::shared_ptr<tenon::backend::Backend>>(
        std::make_shared<tenon::nvrtc::NvrtcBackend>());
  });
}
