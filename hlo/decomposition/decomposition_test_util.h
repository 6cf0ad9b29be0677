// Runs one op on given arrays, for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hlo/evaluator/evaluator.h"
#include "hlo/import/import.h"

namespace tenon::hlo {

using Reals = std::vector<double>;
using Complexes = std::vector<std::complex<double>>;
using Integers = std::vector<int64_t>;

inline Literal reals(Dims dims, const Reals& values, ElementType type = ElementType::kF64) {
  Literal literal(Shape(type, std::move(dims)));
  for (size_t i = 0; i < values.size(); ++i) literal.set_double(static_cast<int64_t>(i), values[i]);
  return literal;
}
inline Literal integers(Dims dims, const Integers& values, ElementType type = ElementType::kS64) {
  Literal literal(Shape(type, std::move(dims)));
  for (size_t i = 0; i < values.size(); ++i)
    literal.set_integer(static_cast<int64_t>(i), values[i]);
  return literal;
}
inline Literal complexes(Dims dims, const Complexes& values) {
  Literal literal(Shape(ElementType::kC128, std::move(dims)));
  for (size_t i = 0; i < values.size(); ++i)
    literal.set_complex(static_cast<int64_t>(i), values[i]);
  return literal;
}

inline Reals reals_of(const Literal& literal) {
  Reals list;
  for (int64_t i = 0; i < literal.element_count(); ++i) list.push_back(literal.get_double(i));
  return list;
}
inline Integers integers_of(const Literal& literal) {
  Integers list;
  for (int64_t i = 0; i < literal.element_count(); ++i) list.push_back(literal.get_integer(i));
  return list;
}

/// Numbers in [-1, 1) that depend only on `seed`.
inline Reals some_reals(size_t count, uint64_t seed) {
  Reals list;
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    list.push_back(static_cast<double>(seed >> 11) / 4503599627370496.0 - 1);
  }
  return list;
}

inline void expect_near(const Reals& actual, const Reals& expected, double tolerance = 1e-12) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(actual[i])) << "element " << i << " is " << actual[i];
    } else if (std::isinf(expected[i])) {
      EXPECT_EQ(actual[i], expected[i]) << "element " << i;
    } else {
      EXPECT_NEAR(actual[i], expected[i], tolerance) << "element " << i;
    }
  }
}

inline Result<std::vector<Literal>> run_text(const std::string& text,
                                             const std::vector<Literal>& arguments,
                                             EvaluatorOptions options = {}) {
  TENON_ASSIGN(const std::unique_ptr<Module> module, import_module(text, "test.mlir"));
  Evaluator evaluator(*module, std::move(options));
  return evaluator.run(*module->find_function("main"), arguments);
}

/// "tensor<2x3xf32>" for "2x3xf32".
inline std::string tensor_type(const std::string& type) { return "tensor<" + type + ">"; }

/// @main with the single op `op`, in generic form, on arrays.
struct OpCall {
  std::string name;
  std::string attributes;            ///< The text inside { }.
  std::vector<std::string> results;  ///< Types such as "2x3xf32".
  std::string region;                ///< With its parentheses.

  std::string text(const std::vector<Literal>& arguments) const {
    std::string names, types, parameters, result_types, results_named;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const std::string comma = i == 0 ? "" : ", ";
      const std::string type = Type(arguments[i].shape()).to_mlir();
      names += fmt::format("{}%a{}", comma, i);
      types += comma + type;
      parameters += fmt::format("{}%a{}: {}", comma, i, type);
    }
    for (size_t i = 0; i < results.size(); ++i) {
      result_types += (i == 0 ? "" : ", ") + tensor_type(results[i]);
      results_named += fmt::format("{}%r#{}", i == 0 ? "" : ", ", i);
    }
    return fmt::format(
        "func.func @main({0}) -> ({1}) {{\n  %r:{2} = \"{3}\"({4}) {5} {{{6}}} : ({7}) -> ({1})\n"
        "  return {8} : {1}\n}}\n",
        parameters, result_types, results.size(), name, names, region, attributes, types,
        results_named);
  }
  Result<std::vector<Literal>> try_run(const std::vector<Literal>& arguments,
                                       EvaluatorOptions options = {}) const {
    return run_text(text(arguments), arguments, std::move(options));
  }
  std::vector<Literal> operator()(const std::vector<Literal>& arguments) const {
    auto values = try_run(arguments);
    if (!values) {
      ADD_FAILURE() << values.error().to_string() << "\n" << text(arguments);
      return std::vector<Literal>(results.size());
    }
    return std::move(*values);
  }
};

/// The message of the error with which the run ends.
inline std::string error_of(const OpCall& op, const std::vector<Literal>& arguments) {
  const auto values = op.try_run(arguments);
  return values ? "no error" : values.error().message();
}

}  // namespace tenon::hlo
