// The command lines of the programs of this folder.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include "hlo/ops/ops.h"

namespace tenon::conformance {

constexpr int kExitUsage = 2;

/// The exit status of `main`: that of `program()`. `program` reports errors as values; an exception
/// (mainly out of memory) is printed on standard error and gives status 1.
template <class Program>
int guarded(const Program& program) {
  try {
    return program();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}

/// Parses the command line. Returns an exit status if the program must end: 0 after --help, 2 after
/// an error.
inline std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {  // CLI11 reports through exceptions.
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  return {};
}

/// Validators of option values.
inline CLI::Validator is_element_type() {
  return {[](const std::string& name) {
            return element_type_from_name(name) ? "" : "'" + name + "' is not an element type";
          },
          "TYPE"};
}
inline CLI::Validator is_op() {
  return {[](const std::string& name) {
            return hlo::op_from_name(name) ? "" : "there is no op '" + name + "'";
          },
          "OP"};
}

}  // namespace tenon::conformance
