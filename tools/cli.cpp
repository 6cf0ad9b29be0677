#include "tools/cli.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "core/runtime/serial.h"
#include "hlo/onnx/importer.h"
#include "hlo/onnx/reader.h"
#include "tools/arguments.h"

namespace tenon::tools {
namespace {

double seconds_now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// The text of line `line` of a file, without its newline; empty if there is no such line.
std::string source_line(const std::string& path, uint32_t line) {
  const auto bytes = read_file(path);
  if (!bytes) return {};
  size_t start = 0;
  for (uint32_t i = 1; i < line && start != std::string::npos; ++i) {
    start = bytes->find('\n', start);
    if (start != std::string::npos) ++start;
  }
  if (start == std::string::npos || start >= bytes->size()) return {};
  return bytes->substr(start, bytes->find('\n', start) - start);
}

}  // namespace

bool use_colour(FILE* stream) {
  return isatty(fileno(stream)) != 0 && std::getenv("NO_COLOR") == nullptr;
}

int report(const Status& status) {
  const bool colour = use_colour(stderr);
  const std::string_view red = colour ? "\x1b[1;31m" : "";
  const std::string_view bold = colour ? "\x1b[1m" : "";
  const std::string_view plain = colour ? "\x1b[0m" : "";
  const SourcePosition& at = status.position();
  std::string where = at.file.empty() ? "tenon: " : fmt::format("{}: ", at.file);
  if (at.known()) {
    where = at.column == 0 ? fmt::format("{}:{}: ", at.file, at.line)
                           : fmt::format("{}:{}:{}: ", at.file, at.line, at.column);
  }
  fmt::print(stderr, "{}{}{}error:{} {}\n", bold, where, red, plain, status.message());
  if (!at.known()) return status.stage() == kUsageStage ? kExitUsage : kExitError;
  std::string line = source_line(at.file, at.line);
  // A caret below a very long line is no help.
  if (line.empty() || at.column > 160) return kExitError;
  if (line.size() > 200) line = line.substr(0, 200) + " …";
  fmt::print(stderr, "{}\n", line);
  if (at.column != 0) fmt::print(stderr, "{:>{}}\n", "^", at.column);
  return kExitError;
}

void print_json(const nlohmann::json& document, int indent) {
  fmt::print("{}\n", document.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace));
}

namespace {

Result<std::unique_ptr<hlo::Module>> import_onnx_program(std::string_view bytes,
                                                         const std::string& path,
                                                         const ProgramInputs& inputs) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const bool is_file = path != "<stdin>";
  TENON_ASSIGN(const hlo::OnnxModel model, hlo::read_onnx(bytes, !is_file         ? ""
                                                                 : folder.empty() ? "."
                                                                                  : folder));
  TENON_ASSIGN(const std::unique_ptr<hlo::Module> signature, hlo::onnx_signature(model));
  hlo::OnnxKnowledge known;
  TENON_ASSIGN(known.shapes, parse_shapes(inputs.shapes));
  TENON_ASSIGN(const GivenArguments given,
               GivenArguments::read(*signature->entry(), inputs.arguments));
  TENON_ASSIGN(known.values, given.values(*signature->entry(), known.shapes));
  TENON_ASSIGN(hlo::OnnxImport imported, hlo::import_onnx(model, known));
  for (const size_t number : imported.used_values) {
    fmt::print(stderr, "{}: note: the program is right for this value of argument {} alone\n", path,
               number);
  }
  return std::move(imported.module);
}

}  // namespace

Result<InputFile> read_input(const std::string& path) {
  if (path == "-") return InputFile{{std::istreambuf_iterator<char>(std::cin), {}}, "<stdin>"};
  TENON_ASSIGN(std::string bytes, read_file(path));
  return InputFile{std::move(bytes), path};
}

Result<std::unique_ptr<hlo::Module>> import_program(std::string_view bytes, const std::string& path,
                                                    const ProgramInputs& inputs) {
  if (bytes.starts_with(runtime::kCompiledProgramFormat.letters)) {
    return invalid_argument("{} is compiled already; 'tenon run' runs it", path);
  }
  return hlo::is_onnx(bytes) ? import_onnx_program(bytes, path, inputs)
                             : hlo::import_module(bytes, path);
}

Result<std::unique_ptr<hlo::Module>> load_module(const std::string& path,
                                                 const ProgramInputs& inputs) {
  TENON_ASSIGN(const InputFile file, read_input(path));
  return import_program(file.bytes, file.name, inputs);
}

ProgressLine::ProgressLine(std::string what)
    : what_(std::move(what)), active_(isatty(fileno(stderr)) != 0), start_(seconds_now()) {}

ProgressLine::~ProgressLine() {
  if (shown_) fmt::print(stderr, "\r\x1b[K");
}

void ProgressLine::update(int64_t done) {
  if (!active_) return;
  const double now = seconds_now();
  if (now - start_ < 1 || now - last_ < 0.2) return;
  last_ = now;
  shown_ = true;
  fmt::print(stderr, "\r\x1b[K{}: {} ops, {:.0f} s", what_, done, now - start_);
  std::fflush(stderr);
}

void add_input_options(CLI::App& command, std::vector<std::string>& shapes,
                       std::vector<std::string>& args) {
  command.add_option("--shape", shapes, "Refine a dynamic program: sizes of parameter N as N=2x3")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      .add_option(
          "--arg", args,
          "For an ONNX model: a value of argument N that decides a shape, as for 'tenon run'")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace tenon::tools
