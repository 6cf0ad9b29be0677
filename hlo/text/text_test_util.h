// Helpers for the tests of the readers and printers.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "hlo/import/import.h"
#include "hlo/text/attribute_printer.h"
#include "hlo/text/parse.h"
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

/// The Module of `text`; if reading fails, a test failure and null.
inline std::unique_ptr<Module> read(std::string_view text) {
  auto module = import_module(text, "t");
  EXPECT_TRUE(module) << module.error().to_string() << "\n" << text;
  return module ? std::move(*module) : nullptr;
}

/// The first type of `func.func private @f(<text>)`, or its error.
inline Result<Type> parse_type(std::string_view text, bool hlo = false) {
  TENON_ASSIGN(
      const RawModule raw,
      parse_mlir_text(fmt::format(fmt::runtime(hlo ? "hlo_module {{ func.func private @f({}) }}"
                                                   : "func.func private @f({})"),
                                  text),
                      "t"));
  const Attribute* type = find(raw.module.regions[0].ops[0].attributes, "function_type");
  return type->get<Type>()->elements()[0];
}

/// The attribute a of `func.func private @f() attributes {a = <text>}`, or its error.
inline Result<Attribute> parse_attribute(std::string_view text, bool hlo = false) {
  TENON_ASSIGN(
      const RawModule raw,
      parse_mlir_text(
          fmt::format(
              fmt::runtime(hlo ? "hlo_module {{ func.func private @f() attributes {{a = {}}} }}"
                               : "func.func private @f() attributes {{a = {}}}"),
              text),
          "t"));
  return *find(raw.module.regions[0].ops[0].attributes, "a");
}

/// A program of one op or a few, and the HLO text of its body.
struct Form {
  const char* name;
  const char* text;
  const char* hlo;
};

/// `@f` around `body`: %a, %b f32[2,3]; %p pred, %n s32, %c c64 of the same size; %s f32[], %i
/// s64[]; %t a token.
inline std::string program(std::string_view body) {
  return fmt::format(
      R"(func.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>, %p: tensor<2x3xi1>, %n: tensor<2x3xi32>, %s: tensor<f32>, %i: tensor<i64>, %c: tensor<2x3xcomplex<f32>>, %t: !stablehlo.token) {{
{}
return
}}
func.func private @g(%x: tensor<f32>) -> tensor<f32> {{ return %x : tensor<f32> }}
func.func private @g2(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {{ return %x : tensor<2x3xf32> }}
)",
      body);
}

/// The HLO text of the instructions of `@f` without its return, not indented.
inline std::string body_of(const Module& module) {
  std::string text = print_module(module);
  text = text.substr(text.find('\n', text.find("func.func")) + 1);
  text = text.substr(0, text.find("    stablehlo.return()\n  }\n"));
  std::string out;
  while (!text.empty()) {
    const size_t end = text.find('\n') + 1;
    out += text.substr(4, end - 4);
    text = text.substr(end);
  }
  return out;
}

/// Checks that both printed forms of a Module can be read back to an equal one.
inline void expect_round_trip(const Module& module) {
  for (const TextForm form : {TextForm::kHlo, TextForm::kStableHlo}) {
    const std::string text = print_module(module, {form, false});
    const auto again = read(text);
    if (again == nullptr) return;
    std::string why;
    EXPECT_TRUE(equal(module, *again, &why)) << why << "\n" << text;
    EXPECT_EQ(print_module(*again, {form, false}), text);
  }
}

}  // namespace tenon::hlo::testing
