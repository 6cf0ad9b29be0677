// `tenon kernel`: kernels as text, checked and printed after the core's transformations.
#include <optional>
#include <string>

#include "core/base/file.h"
#include "core/kernel/legalize/legalize.h"
#include "core/kernel/legalize/tiles.h"
#include "core/kernel/render/render.h"
#include "core/kernel/serial/serial.h"
#include "core/kernel/text/text.h"
#include "core/kernel/transform/simplify.h"
#include "core/kernel/verify/verifier.h"
#include "hlo/driver/target_model.h"
#include "tools/cli.h"
#include "tools/device_options.h"

namespace tenon::tools {
namespace {

constexpr int64_t kUsualLanes = 128;

struct KernelOptions {
  std::string file;
  bool check = false;
  bool simplify = false;
  bool expand_tiles = false;
  std::string legalize;
  std::string emit;
  std::string save;
  std::optional<int64_t> lanes;
  std::string device;
};

Result<std::string> render(const std::vector<kernel::Kernel>& kernels,
                           const KernelOptions& options) {
  kernel::RenderOptions render_options;
  render_options.lanes = options.lanes.value_or(kUsualLanes);
  if (options.emit == "opencl") render_options.language = kernel::Language::kOpenCl;
  if (options.emit == "cuda") render_options.language = kernel::Language::kCuda;
  TENON_ASSIGN(kernel::RenderedSource source, kernel::render(kernels, render_options));
  return std::move(source.text);
}

// Reads and verifies the kernels of the file.
Result<std::vector<kernel::Kernel>> read_kernels(const KernelOptions& options) {
  TENON_ASSIGN(const InputFile input, read_input(options.file));
  const auto& [text, name] = input;
  std::vector<kernel::Kernel> kernels;
  if (text.starts_with(kernel::kKernelFormat.letters)) {
    auto loaded = kernel::load_kernel(text);
    if (!loaded) return Error(std::move(loaded).error().with_context(name));
    kernels.push_back(*std::move(loaded));
  } else {
    TENON_ASSIGN(kernels, kernel::parse_all(text, name));
  }
  for (const kernel::Kernel& kernel : kernels) {
    if (const Status status = kernel::verify(kernel); !status.ok()) {
      // Kernel errors are located by kernel name; here the file is known.
      return Error(Status(status.code(), status.message()).at({name, status.position().line, 0}));
    }
  }
  return kernels;
}

// The kernels as the device gets them: in their legal form, as text or as its source.
Result<std::string> for_device(const std::vector<kernel::Kernel>& kernels,
                               const KernelOptions& options) {
  TENON_ASSIGN(const ChosenTarget device, choose_target({options.device, {}, {}}));
  const kernel::TargetFeatures features = hlo::features_of(device.target, /*native_math=*/false);
  std::vector<kernel::Kernel> legal;
  for (const kernel::Kernel& each : kernels) {
    TENON_ASSIGN(legal.emplace_back(), device.target.accepts_all
                                           ? Result<kernel::Kernel>(each)
                                           : kernel::legalize(each, features));
  }
  std::vector<const kernel::Kernel*> pointers;
  for (const kernel::Kernel& each : legal) pointers.push_back(&each);
  return text_of(pointers, device,
                 options.emit.empty() ? DeviceForm::kKernels : DeviceForm::kSource);
}

Status check_options(const KernelOptions& options) {
  const auto refused = [](std::string_view text) {
    return Status(invalid_argument("{}", text)).in_stage(kUsageStage);
  };
  if (options.device.empty()) {
    return options.emit == "source" ? refused("--emit=source needs a --device") : Status();
  }
  if (!options.legalize.empty()) return refused("--device states the form: omit --legalize");
  if (options.lanes) return refused("--device states the lanes: omit --lanes");
  if (!options.emit.empty() && options.emit != "source") {
    return refused("--device states the language: --emit=source");
  }
  return {};
}

Result<std::string> process(const KernelOptions& options) {
  TENON_TRY(check_options(options));
  TENON_ASSIGN(std::vector<kernel::Kernel> kernels, read_kernels(options));
  std::string printed;
  for (kernel::Kernel& kernel : kernels) {
    if (options.expand_tiles) kernel = kernel::expand_tiles(kernel);
    if (!options.legalize.empty()) {
      TENON_ASSIGN(const kernel::TargetFeatures form,
                   kernel::TargetFeatures::parse(options.legalize));
      TENON_ASSIGN(kernel, kernel::legalize(kernel, form));
    }
    if (options.simplify) kernel = kernel::simplify(kernel);
    if (options.emit.empty()) printed += kernel::print(kernel);
  }
  if (!options.save.empty()) {
    if (kernels.size() != 1)
      return invalid_argument("{}: {} kernels; --save takes one", options.file, kernels.size());
    TENON_TRY(write_file(options.save, kernel::save(kernels[0])));
  }
  if (!options.device.empty()) return for_device(kernels, options);
  if (!options.emit.empty()) return render(kernels, options);
  return printed;
}

int run(const KernelOptions& options) {
  const auto printed = process(options);
  if (!printed) return report(printed.error());
  if (!options.check) fmt::print("{}", *printed);
  return 0;
}

}  // namespace

void add_kernel_command(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<KernelOptions>();
  CLI::App* command = app.add_subcommand("kernel", "Check kernels written as text and print them");
  command
      ->add_option("FILE", options->file,
                   "Kernels as text, or a saved kernel; '-' is standard input")
      ->required();
  command->add_flag("--check", options->check, "Check only");
  command->add_flag("--expand-tiles", options->expand_tiles, "Expand copy and contract into loops");
  command->add_option(
      "--legalize", options->legalize,
      "Print the kernels legalised for a target with f32, 32-bit integers and these "
      "features: least, or a list of element types and fma, math, dimensions, …");
  command
      ->add_option("--emit", options->emit,
                   "Print source instead: of a C-like language, or with --device that which the "
                   "device's compiler gets")
      ->check(CLI::IsMember({"c", "opencl", "cuda", "source"}));
  command->add_option("--device", options->device,
                      "Print the kernels in the form that this device gets: a backend's NAME, or "
                      "the path of a plug-in");
  command->add_option("--lanes", options->lanes, "Lanes per workgroup in opencl and cuda")
      ->check(CLI::Range(1, 1024))
      ->default_str(std::to_string(kUsualLanes));
  command->add_option("--save", options->save, "Also write the kernel's serial form to FILE")
      ->type_name("FILE");
  command->add_flag("--simplify", options->simplify, "Print the simplified kernels");
  command->footer(
      "The language and its rules K0 … K10: docs/kernel-ir.md.\n\nExample:\n"
      "  tenon kernel core/kernel/examples/dot.kernel --expand-tiles --simplify\n"
      "  tenon kernel core/kernel/examples/softmax.kernel --emit=cuda\n"
      "  tenon kernel core/kernel/examples/softmax.kernel --device ./libchip.so --emit=source");
  command->callback([options, exit_code] { *exit_code = run(*options); });
}

}  // namespace tenon::tools
