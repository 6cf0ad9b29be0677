// `tenon tune`: finds the tuning parameters with which a device is fastest.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/backend/registry/registry.h"
#include "core/backend/registry/tuning_file.h"
#include "core/base/digest.h"
#include "core/base/file.h"
#include "hlo/lower/schedules/schedules.h"
#include "tools/arguments.h"
#include "tools/cli.h"
#include "tools/device_options.h"
#include "tools/tune/device_trials.h"
#include "tools/tune/output.h"
#include "tools/tune/tune_programs.h"

namespace tenon::tools {
namespace {

struct TuneOptions {
  std::vector<std::string> files;
  DeviceOptions device;
  std::string output;
  std::vector<std::string> parameters;
  std::vector<std::string> shapes;
  std::vector<std::string> args;
  double minutes = 10;
  bool fresh = false;
  bool quiet = false;
};

// Trials of a model with other sizes are not these.
std::string digest_of(std::string_view bytes, const ProgramInputs& inputs) {
  std::string all(bytes);
  for (const auto* texts : {&inputs.shapes, &inputs.arguments}) {
    for (const std::string& each : *texts) all += '\n' + each;
  }
  return serial::digest_of(all).substr(0, 16);
}

Result<TunedProgram> tuned_program(std::string_view bytes, const std::string& path,
                                   const ProgramInputs& inputs) {
  TunedProgram program;
  program.name = std::filesystem::path(path).stem().string();
  program.digest = digest_of(bytes, inputs);
  TENON_ASSIGN(program.module, import_program(bytes, path, inputs));
  const hlo::Computation* const entry = program.module->entry();
  if (entry == nullptr) return invalid_argument("{} has no @main", path);
  program.entry = entry->name();
  // Arguments that are not given are random.
  std::vector<std::string> texts = inputs.arguments;
  for (size_t i = 0; i < entry->parameter_count(); ++i) {
    const std::string number = fmt::format("{}=", i);
    const auto is_of_it = [&](const std::string& text) { return text.starts_with(number); };
    if (std::ranges::none_of(inputs.arguments, is_of_it))
      texts.push_back(fmt::format("{}random:{}", number, i + 1));
  }
  auto arguments = parse_arguments(*entry, texts);
  if (!arguments) return Error(Status(arguments.error()).with_context(path));
  program.arguments = *std::move(arguments);
  return program;
}

Result<std::vector<TunedProgram>> tuned_programs(const TuneOptions& options) {
  std::vector<TunedProgram> programs;
  for (const std::string& file : options.files) {
    TENON_ASSIGN(const std::string bytes, read_file(file));
    TENON_ASSIGN(programs.emplace_back(),
                 tuned_program(bytes, file, {options.shapes, options.args}));
  }
  if (!options.files.empty()) return programs;
  for (const EmbeddedFile& file : tune_programs()) {
    TENON_ASSIGN(programs.emplace_back(), tuned_program(file.text, std::string(file.path), {}));
  }
  return programs;
}

// The parameters to search: those named, else all but the schedules' own, whose best choice
// depends on the size more than on the device.
Result<std::vector<hlo::lower::TuningParameterInfo>> searched(const TuneOptions& options) {
  const std::vector<hlo::lower::TuningParameterInfo> all = hlo::lower::all_tuning_parameters();
  std::vector<hlo::lower::TuningParameterInfo> chosen;
  for (const std::string& name : options.parameters) {
    const auto found = std::ranges::find(all, name, &hlo::lower::TuningParameterInfo::name);
    if (found == all.end()) {
      return Error(Status(not_found("there is no tuning parameter '{}'; 'tenon schedules' lists "
                                    "them",
                                    name))
                       .in_stage(kUsageStage));
    }
    chosen.push_back(*found);
  }
  if (!chosen.empty()) return chosen;
  std::ranges::copy_if(all, std::back_inserter(chosen), [](const auto& each) {
    return std::ranges::none_of(hlo::lower::schedules(),
                                [&](const auto& schedule) { return schedule.name == each.name; });
  });
  return chosen;
}

std::string output_path_of(const TuneOptions& options) {
  return options.output.empty() ? output_of(options.device.device) : options.output;
}

class TuneProgress {
 public:
  TuneProgress(bool quiet, double minutes)
      : quiet_(quiet), is_terminal_(isatty(fileno(stderr)) != 0), seconds_(minutes * 60) {}

  void show(const TuningStep& step) {
    if (quiet_) return;
    const double passed =
        std::chrono::duration<double>(DeviceTrials::Clock::now() - start_).count();
    if (step.improved) {
      clear();
      fmt::print(stderr, "{:>5.0f} s  {}\n", passed, to_string(step.best));
    } else if (is_terminal_) {
      constexpr size_t kWidth = 24;
      const double part = std::max(
          passed / seconds_, static_cast<double>(step.done) / static_cast<double>(step.count));
      const auto full = static_cast<size_t>(std::min(part, 1.0) * kWidth);
      fmt::print(stderr, "\r\x1b[K[{:#<{}}{:.<{}}] {:.0f} of {:.0f} s, {}", "", full, "",
                 kWidth - full, passed, seconds_, step.parameter);
      std::fflush(stderr);
    } else {
      fmt::print(stderr, "{:>5.0f} s  {} ({} of {})\n", passed, step.parameter, step.done + 1,
                 step.count);
    }
  }
  void clear() const {
    if (is_terminal_ && !quiet_) fmt::print(stderr, "\r\x1b[K");
  }

 private:
  bool quiet_;
  bool is_terminal_;
  double seconds_;
  DeviceTrials::Clock::time_point start_ = DeviceTrials::Clock::now();
};

void print_outcome(const DeviceTrials& target, const TuningResult& result,
                   const TuneOptions& options, const std::string& path) {
  fmt::print("{:<20} {:>12} {:>12}  before / after\n{}", "program", "before", "after",
             table_of(target, result, ""));
  for (const std::string& each : target.wrong()) fmt::print(stderr, "warning: {}\n", each);
  if (!result.is_complete) {
    fmt::print("the time was over before the last parameter; the same command goes on\n");
  }
  if (result.best.empty()) {
    fmt::print("no parameter is faster than the device's own values\n");
    return;
  }
  for (const auto& [name, value] : result.best) fmt::print("{} = {}\n", name, value);
  const bool is_read = options.output.empty() && path.find('/') != std::string::npos;
  fmt::print("written to {}{}\n", path,
             is_read ? "" : ", whose lines --tune and TenonTargetInfo::tuning take");
}

Result<int> tune(const TuneOptions& options) {
  TENON_ASSIGN(const auto parameters, searched(options));
  TENON_ASSIGN(std::vector<TunedProgram> programs, tuned_programs(options));
  TENON_ASSIGN(const ChosenDevice chosen, choose_device(options.device));
  TENON_ASSIGN(const auto devices, chosen.backend->devices());
  if (chosen.index >= devices.size()) {
    return not_found("{} has {} devices", options.device.device, devices.size());
  }
  const backend::TargetInfo& info = devices[chosen.index].target;
  const std::string path = output_path_of(options);
  TENON_ASSIGN(Trials trials,
               Trials::open(path + ".trials", fmt::format("{} {}", info.name, info.compiler_id),
                            options.fresh));
  Tuning own;
  for (const backend::TuningValue& each : info.tuning) own[each.name] = each.value;
  const size_t known = trials.count();
  if (known > 0 && !options.quiet) {
    fmt::print(stderr, "{} trials are known from {}.trials; --fresh forgets them\n", known, path);
  }
  const auto end = DeviceTrials::Clock::now() +
                   std::chrono::duration_cast<DeviceTrials::Clock::duration>(
                       std::chrono::duration<double, std::ratio<60>>(options.minutes));
  TENON_ASSIGN(const auto target, DeviceTrials::open(chosen.backend, chosen.index, std::move(own),
                                                     std::move(programs), std::move(trials), end));
  std::string head = fmt::format("# By `tenon tune --device {}`: {}", info.name, info.compiler_id);
  std::ranges::replace_if(head, [](unsigned char c) { return c < ' '; }, ' ');
  head += '\n';
  TuneProgress progress(options.quiet, options.minutes);
  Status written;
  TENON_ASSIGN(const TuningResult result, search(*target, parameters, [&](const TuningStep& step) {
                 progress.show(step);
                 if (step.improved && written.ok()) written = write_tuning(path, head, step.best);
               }));
  progress.clear();
  TENON_TRY(written);
  if (!result.best.empty()) {
    TENON_TRY(write_tuning(path, head + table_of(*target, result, "# "), result.best));
  }
  print_outcome(*target, result, options, path);
  return 0;
}

}  // namespace

void add_tune_command(CLI::App& app, int* exit_code) {
  const auto options = std::make_shared<TuneOptions>();
  CLI::App* command =
      app.add_subcommand("tune", "Find the tuning parameters with which a device is fastest");
  command->add_option("PROGRAM", options->files,
                      "Programs to be fast on, with random arguments; default: those of "
                      "bench/devices, which are built in");
  command
      ->add_option("--device", options->device.device,
                   "a device of `tenon devices`, or the path of a plug-in")
      ->required();
  command
      ->add_option("-o,--output", options->output,
                   "The file of parameters; default: that beside the plug-in, which Tenon reads "
                   "whenever it opens the plug-in")
      ->type_name("FILE");
  add_input_options(*command, options->shapes, options->args);
  command->add_option("--minutes", options->minutes, "Ends the search after this time")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      ->add_option("--parameter", options->parameters,
                   "Search only these parameters; a schedule's name also tries it always and "
                   "never")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("NAME");
  command->add_flag("--fresh", options->fresh,
                    "Forget the trials of earlier runs, which are kept in FILE.trials");
  command->add_flag("--quiet", options->quiet, "Print no progress");
  add_layer_option(*command, options->device);
  command->footer(
      "Each trial compiles the programs with other parameters, runs them, and compares their\n"
      "results with those of the device's own values. FILE is written whenever something faster\n"
      "is found; every trial is a line of FILE.trials, so that an interrupted search goes on.\n\n"
      "Example:\n  tenon tune --device ./libtenon_chip.so --minutes 30");
  command->callback([options, exit_code] {
    const Result<int> done = tune(*options);
    *exit_code = done ? *done : report(done.error());
  });
}

}  // namespace tenon::tools
