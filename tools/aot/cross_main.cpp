// `tenon-aot-cross`: `tenon aot` with every target of LLVM. `tenon` has the code of this machine's
// targets alone, which is a third of its size; it runs this program for others.
#include <fmt/format.h>
#include <llvm/Support/TargetSelect.h>

#include <cstdio>
#include <exception>

#include "tools/cli.h"

namespace {

int run(int argc, char** argv) {
  llvm::InitializeAllTargetInfos();
  llvm::InitializeAllTargets();
  llvm::InitializeAllTargetMCs();
  llvm::InitializeAllAsmPrinters();
  CLI::App app{"Tenon: compile programs ahead of time for any machine"};
  app.name("tenon-aot-cross");
  app.set_version_flag("--version", "tenon-aot-cross " TENON_VERSION);
  app.require_subcommand(1);
  int exit_code = 0;
  tenon::tools::add_aot_command(app, &exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : tenon::tools::kExitUsage;
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tenon: error: %s\n", error.what());
    return tenon::tools::kExitError;
  }
}
