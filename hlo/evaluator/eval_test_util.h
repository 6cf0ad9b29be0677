// Runs small programs in HLO text on the reference evaluator.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "hlo/evaluator/evaluator.h"
#include "hlo/import/import.h"

namespace tenon::hlo::testing {

/// "%name = constant of `type` with the elements `values`\n", as in HLO text: constant("x",
/// "f32[2]", "[1, nan]").
inline std::string constant(std::string_view name, std::string_view type, std::string_view values) {
  return fmt::format("%{} = stablehlo.constant() {{value = dense<{}> : {}}} : {}\n", name, values,
                     type, type);
}

/// A region `^bb0(%x0: type, …, %x<n-1>: type): body`.
inline std::string region(size_t parameters, std::string_view type, std::string_view body) {
  std::string text = "{\n^bb0(";
  for (size_t i = 0; i < parameters; ++i)
    text += fmt::format("{}%x{}: {}", i == 0 ? "" : ", ", i, type);
  return fmt::format("{}):\n{}\n}}", text, body);
}
/// The region of one op on %x0 and %x1.
inline std::string binary_region(std::string_view op, std::string_view type) {
  return region(2, type,
                fmt::format("%r = stablehlo.{}(%x0, %x1) : {}\nstablehlo.return(%r)", op, type));
}
/// The region that compares %x0 and %x1.
inline std::string compare_region(std::string_view attributes, std::string_view type,
                                  size_t parameters = 2) {
  return region(
      parameters, type,
      fmt::format("%r = stablehlo.compare(%x0, %x1) {{{}}} : pred[]\nstablehlo.return(%r)",
                  attributes));
}

/// The values `results` (with `types`) after `body`, or the error.
inline Result<std::vector<Literal>> run(std::string_view body, std::string_view results,
                                        std::string_view types,
                                        const EvaluatorOptions& options = {}) {
  const std::string text =
      fmt::format("hlo_module {{ func.func @f() -> ({}) {{\n{}\nstablehlo.return({}) }} }}", types,
                  body, results);
  TENON_ASSIGN(const std::unique_ptr<Module> module, import_module(text, "t"));
  Evaluator evaluator(*module, options);
  return evaluator.run(*module->entry(), std::vector<Literal>{});
}

/// The results as text, separated by "; ", or the error. The sign of a NaN is ignored.
inline std::string eval(std::string_view body, std::string_view results, std::string_view types,
                        const EvaluatorOptions& options = {}) {
  const auto values = run(body, results, types, options);
  if (!values) return values.error().to_string();
  std::string text;
  for (const Literal& value : *values) text += (text.empty() ? "" : "; ") + value.to_string();
  for (size_t at = text.find("-nan"); at != std::string::npos; at = text.find("-nan"))
    text.erase(at, 1);
  return text;
}

/// One elementwise op on constants of `type`; `result` defaults to the same type.
inline std::string unary(std::string_view op, std::string_view type, std::string_view x,
                         std::string_view result = "", std::string_view attributes = "") {
  const std::string_view to = result.empty() ? type : result;
  return eval(constant("x", type, x) +
                  fmt::format("%r = {}{}(%x) {} : {}", op.find('.') == op.npos ? "stablehlo." : "",
                              op, attributes.empty() ? "" : fmt::format("{{{}}}", attributes), to),
              "%r", to);
}
inline std::string binary(std::string_view op, std::string_view type, std::string_view x,
                          std::string_view y, std::string_view result = "",
                          std::string_view attributes = "") {
  const std::string_view to = result.empty() ? type : result;
  return eval(
      constant("x", type, x) + constant("y", type, y) +
          fmt::format("%r = {}{}(%x, %y) {} : {}", op.find('.') == op.npos ? "stablehlo." : "", op,
                      attributes.empty() ? "" : fmt::format("{{{}}}", attributes), to),
      "%r", to);
}

/// An op of one operand, and what it gives.
struct Unary {
  const char* op;
  const char* type;
  const char* x;
  const char* expected;
};
inline void check(const std::vector<Unary>& cases) {
  for (const Unary& c : cases)
    EXPECT_EQ(unary(c.op, c.type, c.x), c.expected) << c.op << " " << c.type;
}

/// An op of two operands, and what it gives.
struct Binary {
  const char* op;
  const char* type;
  const char* x;
  const char* y;
  const char* expected;
};
inline void check(const std::vector<Binary>& cases) {
  for (const Binary& c : cases)
    EXPECT_EQ(binary(c.op, c.type, c.x, c.y), c.expected) << c.op << " " << c.type;
}

}  // namespace tenon::hlo::testing
