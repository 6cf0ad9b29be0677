// What the tests of the readers and printers share.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "hlo/import/import.h"
#include "hlo/text/attribute_printer.h"
#include "hlo/text/printer.h"

namespace tenon::hlo::testing {

/// The error of reading `text` as RawModule, "" when there is none.
inline std::string parse_error(std::string_view text) {
  const auto raw = parse_mlir_text(text, "t");
  return raw ? "" : raw.error().to_string();
}

inline std::string import_error(std::string_view text) {
  const auto module = import_module(text, "t");
  return module ? "" : module.error().to_string();
}

/// The Module of `text`; a failure of the test, and null, when there is none.
inline std::unique_ptr<Module> read(std::string_view text) {
  auto module = import_module(text, "t");
  EXPECT_TRUE(module) << module.error().to_string() << "\n" << text;
  return module ? std::move(*module) : nullptr;
}

/// The first type of `func.func private @f(<text>)`, or its error.
inline Result<Type> parse_type(std::string_view text, bool hlo = false) {
  TENON_ASSIGN(const RawModule raw,
               parse_mlir_text(fmt::format(fmt::runtime(hlo ? "hlo_module {{ func.func private @f({}) }}"
                                                           : "func.func private @f({})"), text), "t"));
  const Attribute* type = find(raw.module.regions[0].ops[0].attributes, "function_type");
  return type->get<Type>()->elements()[0];
}

/// The attribute a of `func.func private @f() attributes {a = <text>}`, or its error.
inline Result<Attribute> parse_attribute(std::string_view text, bool hlo = false) {
  TENON_ASSIGN(const RawModule raw,
               parse_mlir_text(fmt::format(fmt::runtime(hlo ? "hlo_module {{ func.func private @f() attributes {{a = {}}} }}"
                                                           : "func.func private @f() attributes {{a = {}}}"), text), "t"));
  return *find(raw.module.regions[0].ops[0].attributes, "a");
}

}  // namespace tenon::hlo::testing
