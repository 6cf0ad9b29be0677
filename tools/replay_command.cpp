// `tenon replay`: repeats a recorded run, here or on another device, or prints its entries.
#include <nlohmann/json.hpp>

#include "core/backend/layers/record/replay.h"
#include "core/base/file.h"
#include "tools/cli.h"
#include "tools/device_options.h"

namespace tenon::tools {
namespace {

struct ReplayCommand {
  std::string file;
  DeviceOptions device;
  bool list = false;
  bool json = false;
  bool keep_going = false;
  size_t most = 20;
};

void print_cut(const backend::Recording& recording) {
  if (recording.cut == 0) return;
  fmt::print("the file is truncated: it ends within an entry, of which it has {} bytes\n",
             recording.cut);
}

void print_entries(const backend::Recording& recording, bool json) {
  nlohmann::json list = nlohmann::json::array();
  for (size_t i = 0; i < recording.entries.size(); ++i) {
    const std::string text = to_string(recording, recording.entries[i]);
    if (json) {
      list.push_back({{"entry", i}, {"text", text}});
    } else {
      fmt::print("{:>6}  {}\n", i, text);
    }
  }
  if (json) {
    print_json({{"entries", list}, {"cut", recording.cut}});
  } else {
    print_cut(recording);
  }
}

void print_report(const backend::Recording& recording, const backend::ReplayReport& report) {
  for (const std::string& error : report.errors) fmt::print("failed again: {}\n", error);
  for (const backend::Difference& each : report.differences) fmt::print("{}\n", each.to_string());
  fmt::print("{} launches, {} copies; modules: {} loaded, {} compiled; ", report.launches,
             report.copies, report.modules_loaded, report.modules_compiled);
  if (report.skipped != 0) fmt::print("{} entries skipped; ", report.skipped);
  fmt::print("{} values of {} bytes compared, {} differ{}\n", report.compared,
             report.compared_bytes, report.differences.size(),
             report.stopped ? "; stopped there" : "");
  print_cut(recording);
}

void print_report_json(const backend::Recording& recording, const backend::ReplayReport& report) {
  nlohmann::json differences = nlohmann::json::array();
  for (const backend::Difference& each : report.differences) {
    differences.push_back({{"entry", each.entry},
                           {"label", each.label},
                           {"kernel", each.kernel},
                           {"buffer", each.buffer},
                           {"type", name_of(each.type)},
                           {"element", each.element},
                           {"elements", each.elements},
                           {"differing", each.differing},
                           {"recorded", each.recorded},
                           {"replayed", each.replayed}});
  }
  const nlohmann::json document = {{"launches", report.launches},
                                   {"copies", report.copies},
                                   {"modules_loaded", report.modules_loaded},
                                   {"modules_compiled", report.modules_compiled},
                                   {"compared", report.compared},
                                   {"compared_bytes", report.compared_bytes},
                                   {"left_out", report.skipped},
                                   {"errors", report.errors},
                                   {"stopped", report.stopped},
                                   {"cut", recording.cut},
                                   {"differences", differences}};
  print_json(document);
}

Result<int> run(const ReplayCommand& command) {
  TENON_ASSIGN(const MappedFile file, MappedFile::open(command.file));
  auto recording = backend::read_recording(file.bytes());
  if (!recording) return Error(std::move(recording).error().with_context(command.file));
  if (command.list) {
    print_entries(*recording, command.json);
    return 0;
  }
  TENON_ASSIGN(const ChosenDevice chosen, choose_device(command.device));
  backend::ReplayOptions options;
  options.most_differences = command.keep_going ? command.most : 1;
  TENON_ASSIGN(const backend::ReplayReport report,
               backend::replay(*recording, *chosen.backend, chosen.index, options));
  command.json ? print_report_json(*recording, report) : print_report(*recording, report);
  return report.differences.empty() ? 0 : kExitError;
}

}  // namespace

void add_replay_command(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<ReplayCommand>();
  CLI::App* command = app.add_subcommand(
      "replay", "Repeat a run that the layer record recorded, and compare the values");
  command->add_option("FILE", options->file, "A recording: TENON_RECORD=FILE … --layer=record")
      ->required();
  command->add_option("--device", options->device.device,
                      "Device, as for 'tenon run' (default: interp)");
  add_layer_option(*command, options->device);
  command->add_flag("--list", options->list, "Print the entries, one per line, and run nothing");
  command->add_flag("--keep-going", options->keep_going,
                    "Continue after the first value that differs, with the recorded value");
  command
      ->add_option("--most", options->most, "With --keep-going, stop after this many differences")
      ->check(CLI::Range(size_t{1}, size_t{1} << 32))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "A device of the recording's target loads the recorded binary; for any other device the "
      "recorded kernels are compiled.\nValues are equal if their bits are, or if both are NaN. The "
      "exit code is "
      "1 if one differs.\n\nExample:\n"
      "  TENON_RECORD=add.record tenon run add.mlir --device=interp --layer=record --arg 0=1 --arg "
      "1=2\n"
      "  tenon replay add.record --device=template");
  command->callback([options, exit_code] {
    const Result<int> code = run(*options);
    *exit_code = code ? *code : report(code.error());
  });
}

}  // namespace tenon::tools
