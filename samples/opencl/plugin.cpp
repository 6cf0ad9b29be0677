// The backend: which devices there are, and its compiler.
#include <algorithm>

#include "calls.h"
#include "core/backend/adapter/adapter.h"
#include "core/backend/adapter/rendering.h"
#include "core/backend/driver/kept.h"
#include "core/kernel/render/rendered_binary.h"
#include "driver.h"

namespace tenon::opencl {
namespace {

using backend::Compiled;
using backend::Kernels;

class OpenClBackend final : public backend::Backend {
 public:
  explicit OpenClBackend(std::vector<Found> found) : found_(std::move(found)) {}

  std::string_view name() const override { return "opencl"; }
  std::string_view version() const override { return "1"; }

  Result<std::vector<backend::DeviceInfo>> devices() override {
    std::vector<backend::DeviceInfo> devices;
    for (size_t i = 0; i < found_.size(); ++i) {
      devices.push_back({fmt::format("opencl:{}", i), found_[i].target});
    }
    return devices;
  }

  Result<std::unique_ptr<backend::Device>> open(size_t index) override {
    TENON_ASSIGN(const cl::Context context, context_of(index));
    return open_device(found_[index], context);
  }

  Result<Compiled> compile(const backend::TargetInfo& target, Kernels kernels) override {
    TENON_ASSIGN(const size_t index, index_of(target));
    auto options = backend::render_options(target, kernel::Language::kOpenCl);
    options.offset_bits = found_[index].offset_bits();
    options.stop = found_[index].shares_memory();
    return backend::compile_rendered(target, kernels, options, [&](const std::string& source) {
      return program_of(index, source);
    });
  }

  Result<backend::LibraryCallPlan> plan(const backend::TargetInfo& target,
                                        const backend::LibraryCallSite& site) override {
    TENON_ASSIGN(const size_t index, index_of(target));
    if (is_without("calls")) return unimplemented("library calls are not wanted");
    backend::LibraryCallPlan plan;
    if (auto product = clblast_plan(found_[index], site)) {
      plan.plan = *std::move(product);
      return plan;
    }
    TENON_ASSIGN(const kernel::RenderedSource own, own_kernel(found_[index], site));
    TENON_ASSIGN(const std::string program, program_of(index, own.text));
    plan.plan = kernel::RenderedBinary{own.kernels, program}.save();
    return plan;
  }

 private:
  static Result<std::string> build(const Found& found, const cl::Context& context,
                                   const std::string& source) {
    cl_int code = CL_SUCCESS;
    const cl::Program program(context, source, /*build=*/false, &code);
    TENON_TRY(status_of(code, "clCreateProgramWithSource"));
    code = program.build({found.device}, found.build_options.c_str());
    if (code == CL_BUILD_PROGRAM_FAILURE) {
      const std::string log = program.getBuildInfo<CL_PROGRAM_BUILD_LOG>(found.device);
      return internal_error("the OpenCL compiler refused: {}",
                            backend::explain_messages(log, source));
    }
    TENON_TRY(status_of(code, "clBuildProgram"));
    const auto binaries = program.getInfo<CL_PROGRAM_BINARIES>(&code);
    TENON_TRY(status_of(code, "clGetProgramInfo"));
    return std::string(binaries[0].begin(), binaries[0].end());
  }

  Result<size_t> index_of(const backend::TargetInfo& target) const {
    const auto same = [&](const Found& found) {
      return found.target.compiler_id == target.compiler_id;
    };
    const auto found = std::ranges::find_if(found_, same);
    if (found == found_.end()) return internal_error("no device is a {}", target.name);
    return static_cast<size_t>(found - found_.begin());
  }

  // The driver may give other bytes for the same source (B13), but not for long.
  Result<std::string> program_of(size_t index, const std::string& source) {
    TENON_ASSIGN(const cl::Context context, context_of(index));
    return programs_.get({index, source}, [&] { return build(found_[index], context, source); });
  }

  // A context for each device, made when it is first needed: it may start a driver.
  Result<cl::Context> context_of(size_t index) {
    return contexts_.get(index, [&]() -> Result<cl::Context> {
      cl_int code = CL_SUCCESS;
      cl::Context context(found_[index].device, nullptr, nullptr, nullptr, &code);
      TENON_TRY(status_of(code, "clCreateContext"));
      return context;
    });
  }

  static constexpr size_t kMostKept = 256;
  const std::vector<Found> found_;
  backend::KeptValues<size_t, cl::Context> contexts_;
  backend::KeptValues<std::pair<size_t, std::string>, std::string> programs_{kMostKept};
};

}  // namespace
}  // namespace tenon::opencl

extern "C" const TenonBackend* tenon_plugin(const TenonHost* host, const TenonSink* error) {
  return tenon::backend::export_backend(
      host, error, []() -> tenon::Result<std::shared_ptr<tenon::backend::Backend>> {
        TENON_ASSIGN(std::vector<tenon::opencl::Found> found, tenon::opencl::find_devices());
        return std::make_shared<tenon::opencl::OpenClBackend>(std::move(found));
      });
}
