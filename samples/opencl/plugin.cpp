// The backend: which devices there are, and its compiler.
#include <map>
#include <mutex>
#include <regex>
#include <set>
#include <sstream>

#include "core/backend/adapter/adapter.h"
#include "core/kernel/render/render.h"
#include "driver.h"
#include "module.h"

namespace tenon::opencl {
namespace {

using backend::Compiled;
using backend::Kernels;

/// The compiler's messages: for the first error also the line of the source, and the op that the
/// kernel around it is from.
std::string explain(const std::string& log, const std::string& source) {
  std::smatch match;
  if (!std::regex_search(log, match, std::regex(":(\\d+):(\\d+): error: ([^\n]*)"))) return log;
  std::istringstream lines(source);
  std::string line;
  std::string label;
  for (int i = std::stoi(match[1]); i > 0 && std::getline(lines, line); --i) {
    if (line.starts_with("// ")) label = line.substr(3);
  }
  return fmt::format("{} (line {}: \"{}\", of {})\n{}", match[3].str(), match[1].str(), line,
                     label.empty() ? "no op" : label, log);
}

/// Copies of the kernels; of those with one name all but the first get another.
std::vector<kernel::Kernel> with_own_names(Kernels kernels) {
  std::vector<kernel::Kernel> copies;
  std::set<std::string> names;
  for (const kernel::Kernel* each : kernels) {
    copies.push_back(*each);
    std::string& name = copies.back().name;
    for (int i = 2; !names.insert(name).second; ++i) name = fmt::format("{}_{}", each->name, i);
  }
  return copies;
}

/// The kernels that the device or the language cannot express (B13).
std::vector<backend::Declined> declined(const std::vector<kernel::Kernel>& kernels,
                                        const backend::TargetInfo& target,
                                        const kernel::RenderOptions& options, bool all_rendered) {
  std::vector<backend::Declined> list;
  for (uint32_t k = 0; k < kernels.size(); ++k) {
    const size_t parameters = kernels[k].buffer_count + kernels[k].scalars.size();
    if (static_cast<int64_t>(parameters) > target.most_parameters) {
      list.push_back({k, backend::Reason::kTooManyParameters, std::to_string(parameters)});
    } else if (!all_rendered) {
      const auto alone = kernel::render(std::span(&kernels[k], 1), options);
      if (!alone) list.push_back({k, backend::Reason::kOther, alone.error().message()});
    }
  }
  return list;
}

class OpenClBackend final : public backend::Backend {
 public:
  explicit OpenClBackend(std::vector<Found> found)
      : found_(std::move(found)), contexts_(found_.size()) {}

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
    size_t index = 0;
    while (found_[index].target.compiler_id != target.compiler_id) {
      if (++index == found_.size()) return internal_error("no device is a {}", target.name);
    }
    const Found& found = found_[index];
    TENON_ASSIGN(const cl::Context context, context_of(index));
    kernel::RenderOptions options;
    options.language = kernel::Language::kOpenCl;
    options.lanes = found.lanes;
    options.fit_lanes = true;
    options.offset_bits = found.offset_bits;
    options.stop = found.shares_memory;
    options.vector_bytes = target.vector_bytes;
    const std::vector<kernel::Kernel> copies = with_own_names(kernels);
    Compiled compiled;
    const auto rendered = kernel::render(copies, options);
    compiled.declined = declined(copies, target, options, rendered.has_value());
    if (!compiled.declined.empty()) return compiled;
    TENON_ASSIGN(const kernel::RenderedSource source, rendered);
    // The driver may give other bytes for the same source (B13), but not for long.
    const std::lock_guard lock(compiling_);
    if (compiled_.size() > kMostKept) compiled_.clear();
    std::string& binary = compiled_[{index, source.text}];
    if (binary.empty()) {
      TENON_ASSIGN(binary, build(found, context, source));
    }
    compiled.binary = binary;
    return compiled;
  }

 private:
  static Result<std::string> build(const Found& found, const cl::Context& context,
                                   const kernel::RenderedSource& source) {
    cl_int code = CL_SUCCESS;
    const cl::Program program(context, source.text, /*build=*/false, &code);
    TENON_TRY(status_of(code, "clCreateProgramWithSource"));
    code = program.build({found.device}, found.build_options.c_str());
    if (code == CL_BUILD_PROGRAM_FAILURE) {
      return internal_error(
          "the OpenCL compiler refused: {}",
          explain(program.getBuildInfo<CL_PROGRAM_BUILD_LOG>(found.device), source.text));
    }
    TENON_TRY(status_of(code, "clBuildProgram"));
    const auto binaries = program.getInfo<CL_PROGRAM_BINARIES>(&code);
    TENON_TRY(status_of(code, "clGetProgramInfo"));
    return ModuleBinary{source.kernels, {binaries[0].begin(), binaries[0].end()}}.save();
  }

  // A context for each device, made when it is first needed: it may start a driver.
  Result<cl::Context> context_of(size_t index) {
    const std::lock_guard lock(mutex_);
    if (contexts_[index]() != nullptr) return contexts_[index];
    cl_int code = CL_SUCCESS;
    cl::Context context(found_[index].device, nullptr, nullptr, nullptr, &code);
    TENON_TRY(status_of(code, "clCreateContext"));
    return contexts_[index] = context;
  }

  const std::vector<Found> found_;
  std::mutex mutex_;
  std::vector<cl::Context> contexts_;
  static constexpr size_t kMostKept = 256;
  std::mutex compiling_;
  std::map<std::pair<size_t, std::string>, std::string> compiled_;
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
