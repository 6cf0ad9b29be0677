// The `tenon` command.
#include <cstdio>
#include <exception>

#include "tools/cli.h"

int main(int argc, char** argv) {
  CLI::App app{"Tenon: compile and run StableHLO programs on any device"};
  app.name("tenon");
  app.set_version_flag("--version", "tenon " TENON_VERSION);
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  app.footer(
      "'tenon COMMAND --help' tells the options of a command.\n"
      "Exit codes: 0 done, 1 the program or its input is at fault, 2 wrong usage.");
  int exit_code = 0;
  tenon::tools::add_run_command(app, &exit_code);
  tenon::tools::add_opt_command(app, &exit_code);
  tenon::tools::add_devices_command(app, &exit_code);
  tenon::tools::add_ops_command(app, &exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 reports through exceptions; help and version are successes.
    return app.exit(error) == 0 ? 0 : tenon::tools::kExitUsage;
  } catch (const std::exception& error) {
    // Errors are values everywhere below; what is left is the memory running out.
    std::fprintf(stderr, "error: %s\n", error.what());
    return tenon::tools::kExitError;
  }
  return exit_code;
}
