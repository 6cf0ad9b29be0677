// `tenon devices` and `tenon ops`: what there is.
#include <nlohmann/json.hpp>

#include "tools/cli.h"

namespace tenon::tools {
namespace {

struct DeviceRow {
  std::string_view name;
  std::string_view state;
  std::string_view description;
};

constexpr DeviceRow kDevices[] = {
    {"reference", "available", "evaluates the Module op by op: the oracle, slow on purpose"},
    {"interp", "available", "lowers to kernels and interprets them, checking every rule"},
};

void print_devices(bool json) {
  if (json) {
    nlohmann::json document = nlohmann::json::array();
    for (const DeviceRow& row : kDevices) {
      document.push_back(
          {{"name", row.name}, {"state", row.state}, {"description", row.description}});
    }
    fmt::print("{}\n", document.dump(2));
    return;
  }
  for (const DeviceRow& row : kDevices) {
    fmt::print("{:<12} {:<12} {}\n", row.name, row.state, row.description);
  }
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

}  // namespace

void add_devices_command(CLI::App& app, int* exit_code) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("devices", "List the devices");
  command->add_flag("--json", *json, "Print JSON");
  command->callback([json, exit_code] {
    print_devices(*json);
    *exit_code = 0;
  });
}

void add_ops_command(CLI::App& app, int* exit_code) {
  auto markdown = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("ops", "List the op set");
  command->add_flag("--markdown", *markdown, "Print docs/ops.md");
  command->callback([markdown, exit_code] {
    print_ops(*markdown);
    *exit_code = 0;
  });
}

}  // namespace tenon::tools
