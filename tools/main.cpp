// tools/: the command `tenon`.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "backends/backends.h"
#include "core/backend/registry/registry.h"
#include "core/runtime/client.h"
#include "tools/cli.h"
#include "tools/installation.h"

namespace {

int run(int argc, char** argv) {
  CLI::App app{"Tenon: compile and run StableHLO programs on any device"};
  app.name("tenon");
  app.set_version_flag("--version", "tenon " TENON_VERSION);
  app.require_subcommand(1);
  const std::string first = argc > 1 ? argv[1] : "";
  app.failure_message([&](const CLI::App*, const CLI::Error& error) {
    const bool is_command =
        !app.get_subcommands([&](const CLI::App* each) { return each->get_name() == first; })
             .empty();
    if (!is_command && !first.empty() && !first.starts_with('-')) {
      return fmt::format("tenon: error: there is no command '{}'; see 'tenon --help'\n", first);
    }
    return fmt::format("tenon: error: {}; see 'tenon{} --help'\n", error.what(),
                       is_command ? " " + first : "");
  });
  app.footer(
      "'tenon COMMAND --help' lists the options of a command.\n"
      "Exit codes: 0 success, 1 an error in the program or its input, 2 wrong usage.");
  int exit_code = 0;
  // The simulated chip installed with this tool; in a build folder, the one that was built.
  if (const auto installed = tenon::tools::installation()) {
    setenv("TENON_CHIP", installed->chip.c_str(), 0);
  }
  tenon::backend::add_backends(tenon::backend::Registry::instance());
  tenon::tools::add_run_command(app, &exit_code);
  tenon::tools::add_compile_command(app, &exit_code);
  tenon::tools::add_opt_command(app, &exit_code);
  tenon::tools::add_devices_command(app, &exit_code);
  tenon::tools::add_ops_command(app, &exit_code);
  tenon::tools::add_passes_command(app, &exit_code);
  tenon::tools::add_rules_command(app, &exit_code);
  tenon::tools::add_idioms_command(app, &exit_code);
  tenon::tools::add_schedules_command(app, &exit_code);
  tenon::tools::add_explain_command(app, &exit_code);
  tenon::tools::add_kernel_command(app, &exit_code);
  tenon::tools::add_conform_command(app, &exit_code);
  tenon::tools::add_replay_command(app, &exit_code);
  tenon::tools::add_tune_command(app, &exit_code);
  tenon::tools::add_aot_command(app, &exit_code);
  tenon::tools::add_new_backend_command(app, &exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 reports through exceptions; help and version count as success.
    return app.exit(error) == 0 ? 0 : tenon::tools::kExitUsage;
  }
  // Devices close on threads of their own, and layers complete their files then.
  constexpr int64_t kLongest = 5'000'000'000;
  static_cast<void>(tenon::runtime::await_all_closed(kLongest));
  if (std::fflush(stdout) != 0) {
    return tenon::tools::report(
        tenon::Status(tenon::ErrorCode::kDataLoss, "cannot write to standard output"));
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    // All errors are values; the only exception left is running out of memory.
    std::fprintf(stderr, "tenon: error: %s\n", error.what());
    return tenon::tools::kExitError;
  }
}
