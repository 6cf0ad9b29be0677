// Functions shared by the commands of `tenon`: exit codes, diagnostics, colours, input files.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "hlo/import/import.h"

namespace tenon::tools {

inline constexpr int kExitError = 1;  ///< The input or its execution is wrong.
inline constexpr int kExitUsage = 2;  ///< The command line is wrong.
/// The stage of errors of the command line.
inline constexpr std::string_view kUsageStage = "usage";

/// Adds the subcommands to `app`. Each sets `*exit_code` when it runs.
void add_run_command(CLI::App& app, int* exit_code);
void add_compile_command(CLI::App& app, int* exit_code);
void add_opt_command(CLI::App& app, int* exit_code);
void add_devices_command(CLI::App& app, int* exit_code);
void add_ops_command(CLI::App& app, int* exit_code);
void add_passes_command(CLI::App& app, int* exit_code);
void add_rules_command(CLI::App& app, int* exit_code);
void add_idioms_command(CLI::App& app, int* exit_code);
void add_schedules_command(CLI::App& app, int* exit_code);
void add_explain_command(CLI::App& app, int* exit_code);
void add_kernel_command(CLI::App& app, int* exit_code);
void add_conform_command(CLI::App& app, int* exit_code);
/// Subcommands of `conform` that need no device.
void add_conform_checks(CLI::App& conform, int* exit_code);
void add_replay_command(CLI::App& app, int* exit_code);
void add_tune_command(CLI::App& app, int* exit_code);
void add_aot_command(CLI::App& app, int* exit_code);
void add_new_backend_command(CLI::App& app, int* exit_code);

/// Whether to colour output to `stream`: it is a terminal, and NO_COLOR is not set.
bool use_colour(FILE* stream);

/// Prints "file:line:col: error: …" on stderr, the source line and a caret below it if the file can
/// be read. Returns kExitError, or kExitUsage for an error of the stage kUsageStage.
int report(const Status& status);

/// Prints on stdout, on one line if `indent` is -1. Names and labels may contain any bytes of a
/// file: invalid UTF-8 is shown as U+FFFD.
void print_json(const nlohmann::json& document, int indent = 2);

/// A file as it was read, and its name in errors.
struct InputFile {
  std::string bytes;
  std::string name;
};
/// Reads a file; "-" is standard input, whose name is "<stdin>".
Result<InputFile> read_input(const std::string& path);

/// For the import of an ONNX model: the values of --shape and --arg.
struct ProgramInputs {
  std::vector<std::string> shapes;
  std::vector<std::string> arguments;
};

/// Imports a program in any form but a saved one. `path` is used in errors, and its folder has the
/// external data of an ONNX model.
Result<std::unique_ptr<hlo::Module>> import_program(std::string_view bytes, const std::string& path,
                                                    const ProgramInputs& inputs = {});

/// Reads and imports a program; "-" is standard input.
Result<std::unique_ptr<hlo::Module>> load_module(const std::string& path,
                                                 const ProgramInputs& inputs = {});

/// A line on stderr that is overwritten, only on a terminal and only after a second.
class ProgressLine {
 public:
  explicit ProgressLine(std::string what);
  ~ProgressLine();
  void update(int64_t done);

 private:
  std::string what_;
  bool active_ = false;
  bool shown_ = false;
  double start_ = 0;
  double last_ = 0;
};

/// --shape and --arg, for commands that compile a program without running it.
void add_input_options(CLI::App& command, std::vector<std::string>& shapes,
                       std::vector<std::string>& args);

}  // namespace tenon::tools
