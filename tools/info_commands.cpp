// `tenon devices`, `tenon ops` and `tenon passes`.
#include <nlohmann/json.hpp>

#include "core/backend/registry/registry.h"
#include "core/base/lines.h"
#include "hlo/decomposition/linalg/custom_calls.h"
#include "hlo/onnx/lowering.h"
#include "hlo/passes/pass.h"
#include "tools/cli.h"
#include "tools/device_options.h"

namespace tenon::tools {
namespace {

struct DeviceRow {
  std::string name;
  std::string state;
  std::string description;
  std::string target;  ///< The target of the first device, one line per property; or empty.
};

// The row of a backend: its devices, or the reason why there are none.
DeviceRow row_of(const backend::Listed& listed) {
  DeviceRow row = {listed.name, "unavailable", ""};
  if (!listed.backend) {
    row.description = listed.backend.error().message();
    return row;
  }
  const auto devices = (*listed.backend)->devices();
  if (!devices) {
    row.description = devices.error().message();
    return row;
  }
  row.state = devices->empty() ? "unavailable" : "available";
  row.description =
      fmt::format("{} {}{}", devices->size(), devices->size() == 1 ? "device" : "devices",
                  devices->empty() ? "" : " of target " + devices->front().target.name);
  if (!devices->empty()) row.target = backend::to_string(devices->front().target);
  if (listed.source != "built in") row.description += fmt::format(", from {}", listed.source);
  return row;
}

void print_indented(std::string_view text) {
  for (const std::string& line : lines_of(text)) fmt::print("    {}\n", line);
}

void print_devices(bool json, bool verbose) {
  std::vector<DeviceRow> rows = {
      {"reference", "available",
       "evaluates the Module op by op: the oracle, which favours obviousness over speed"}};
  for (const backend::Listed& each : backend::Registry::instance().list()) {
    rows.push_back(row_of(each));
  }
  if (json) {
    nlohmann::json document = nlohmann::json::array();
    for (const DeviceRow& row : rows) {
      document.push_back(
          {{"name", row.name}, {"state", row.state}, {"description", row.description}});
      if (!row.target.empty()) document.back()["target"] = lines_of(row.target);
    }
    print_json(document);
    return;
  }
  for (const DeviceRow& row : rows) {
    fmt::print("{:<12} {:<12} {}\n", row.name, row.state, row.description);
    if (verbose) print_indented(row.target);
  }
}

// The target of a device, as `tenon compile --target-info` reads it.
int print_target(const std::string& device) {
  const auto chosen = choose_target({device, "", ""});
  if (!chosen) return report(chosen.error());
  fmt::print("{}", backend::to_string(chosen->target));
  return 0;
}

void print_ops(bool markdown) {
  if (markdown) {
    fmt::print("{}", hlo::ops_documentation());
    return;
  }
  for (const hlo::OpInfo& op : hlo::all_ops()) {
    fmt::print("{:<40} {:<14} {}\n", op.name, op.is_decomposable() ? "decomposable" : "primitive",
               op.summary);
  }
}

// Custom calls that are expanded.
void print_linalg_calls(bool markdown) {
  if (markdown) {
    fmt::print("{}", hlo::decomposition::linalg_documentation());
    return;
  }
  for (const auto& call : hlo::decomposition::linalg_calls()) {
    fmt::print("{:<42} {} -> {}\n", call.name, call.operands, call.results);
  }
}

void print_passes(bool json) {
  const auto runs = [](const hlo::Pass& pass) {
    return std::ranges::find(hlo::optimizing_passes(), pass.name) != hlo::optimizing_passes().end();
  };
  if (!json) {
    for (const hlo::Pass& pass : hlo::all_passes()) {
      fmt::print("{:<18} {}\n", pass.name, pass.summary);
    }
    return;
  }
  nlohmann::json document = nlohmann::json::array();
  for (const hlo::Pass& pass : hlo::all_passes()) {
    document.push_back(
        {{"name", pass.name}, {"summary", pass.summary}, {"optimizing", runs(pass)}});
  }
  print_json(document);
}

// The ops of ONNX, domain by domain, with the versions from which each row of the table holds.
void print_onnx_ops() {
  constexpr size_t kWidth = 110;
  std::string_view domain = "none";
  std::string line;
  std::string_view name;
  const auto flush = [&] {
    if (!line.empty()) fmt::print("  {}\n", line);
    line.clear();
  };
  for (const hlo::OnnxRow* row : hlo::all_onnx_rows()) {
    if (row->domain != domain) {
      flush();
      domain = row->domain;
      fmt::print("{}:\n", domain.empty() ? "ai.onnx" : domain);
    }
    const bool again = name == row->name && !line.empty();
    if (!again && line.size() > kWidth) flush();
    line += again ? fmt::format("/{}", row->since)
                  : fmt::format("{}{} {}", line.empty() ? "" : ", ", row->name, row->since);
    name = row->name;
  }
  flush();
}

}  // namespace

void add_devices_command(CLI::App& app, int* exit_code) {
  auto json = std::make_shared<bool>(false);
  auto verbose = std::make_shared<bool>(false);
  auto target = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("devices", "List the devices");
  command->footer("TENON_PLUGIN_PATH lists plug-ins: files and folders, separated by colons.");
  CLI::Option* const as_json =
      command->add_flag("--json", *json, "Print JSON, including the targets");
  CLI::Option* const more = command->add_flag(
      "--verbose", *verbose,
      "Print the members of the target of each backend's first device that differ from "
      "their defaults");
  command
      ->add_option("--target", *target,
                   "Print the target of one device alone: the file for 'tenon compile "
                   "--target-info' on a machine without it")
      ->type_name("DEVICE")
      ->excludes(as_json)
      ->excludes(more);
  command->callback([json, verbose, target, exit_code] {
    if (!target->empty()) {
      *exit_code = print_target(*target);
      return;
    }
    print_devices(*json, *verbose);
    *exit_code = 0;
  });
}

void add_ops_command(CLI::App& app, int* exit_code) {
  auto markdown = std::make_shared<bool>(false);
  auto onnx = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("ops", "List the op set");
  command->add_flag("--onnx", *onnx, "List the ops of ONNX that models may have, with versions");
  auto linalg = std::make_shared<bool>(false);
  command->add_flag("--linalg", *linalg, "List the custom calls of linear algebra");
  command->add_flag("--markdown", *markdown, "Print docs/ops.md; with --linalg docs/linalg.md");
  command->callback([markdown, onnx, linalg, exit_code] {
    if (*onnx) {
      print_onnx_ops();
    } else if (*linalg) {
      print_linalg_calls(*markdown);
    } else {
      print_ops(*markdown);
    }
    *exit_code = 0;
  });
}

void add_passes_command(CLI::App& app, int* exit_code) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("passes", "List the passes");
  command->add_flag("--json", *json,
                    "Print JSON: also whether the pass is used in compiling for devices");
  command->footer("'tenon opt FILE --passes=NAME,…' runs them.");
  command->callback([json, exit_code] {
    print_passes(*json);
    *exit_code = 0;
  });
}

}  // namespace tenon::tools
