// Functions of CHLO on lists of numbers, and the errors of results, for tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/types/float_convert.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/evaluator/scalars/real_math.h"
#include "hlo/import/import.h"

namespace tenon::hlo {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

inline std::string type_text(ElementType type, size_t count) {
  return "tensor<" + std::to_string(count) + "x" + std::string(element_type_info(type).mlir_name) +
         ">";
}

/// op(arguments...); each argument is a list of numbers of `type` (for complex types, alternating
/// parts).
inline std::vector<double> run_op(const std::string& op, ElementType type,
                                  const std::vector<std::vector<double>>& arguments) {
  const size_t parts = is_complex(type) ? 2 : 1;
  const size_t count = arguments[0].size() / parts;
  const std::string tensor = type_text(type, count);
  std::string parameters;
  std::string names;
  std::string types;
  std::vector<Literal> literals;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string comma = i == 0 ? "" : ", ";
    const std::string name = "%x" + std::to_string(i);
    names += comma + name;
    types += comma + tensor;
    parameters += comma + name + ": " + tensor;
    Literal literal(Shape(type, {static_cast<int64_t>(count)}));
    for (size_t k = 0; k < count; ++k) {
      const auto at = static_cast<int64_t>(k);
      if (parts == 1) {
        literal.set_double(at, arguments[i][k]);
      } else {
        literal.set_complex(at, {arguments[i][2 * k], arguments[i][2 * k + 1]});
      }
    }
    literals.push_back(std::move(literal));
  }
  const std::string text = "func.func @main(" + parameters + ") -> " + tensor + " {\n  %r = \"" +
                           op + "\"(" + names + ") : (" + types + ") -> " + tensor +
                           "\n  return %r : " + tensor + "\n}\n";
  auto module = import_module(text, "test.mlir");
  if (!module) {
    ADD_FAILURE() << module.error().to_string() << "\n" << text;
    return {};
  }
  Evaluator evaluator(**module);
  auto results = evaluator.run(*(*module)->find_function("main"), literals);
  if (!results) {
    ADD_FAILURE() << op << ": " << results.error().to_string();
    return {};
  }
  std::vector<double> numbers;
  for (size_t k = 0; k < count; ++k) {
    const auto at = static_cast<int64_t>(k);
    if (parts == 1) {
      numbers.push_back((*results)[0].get_double(at));
    } else {
      numbers.push_back((*results)[0].get_complex(at).real());
      numbers.push_back((*results)[0].get_complex(at).imag());
    }
  }
  return numbers;
}

/// The difference between a result and the exact value in units in the last place of `type`;
/// infinity if exactly one of them is NaN or overflows.
inline double ulps(ElementType type, double result, Float128 exact, double floor = 0) {
  const double rounded = round_to(type, exact);
  if (std::isnan(result) || std::isnan(rounded)) {
    return std::isnan(result) == std::isnan(rounded) ? 0 : kInf;
  }
  if (result == rounded) return std::isinf(result) ? 0 : 0.5;
  if (std::isinf(result) || std::isinf(rounded)) return kInf;
  const bool f64 = type == ElementType::kF64;
  const int digits = f64 ? 53 : type == ElementType::kF32 ? 24 : type == ElementType::kF16 ? 11 : 8;
  const int least = f64 ? -1074 : type == ElementType::kF16 ? -24 : digits == 24 ? -149 : -133;
  const double magnitude = std::max(std::abs(rounded), floor);
  const int exponent = magnitude == 0 ? least : std::max(std::ilogb(magnitude) + 1 - digits, least);
  const Float128 error = fabsf128(static_cast<Float128>(result) - exact);
  return static_cast<double>(ldexpf128(error, -exponent));
}

/// Arguments of a type: `count` spread evenly in [low, high], and as many spread evenly over its
/// bit patterns there.
inline std::vector<double> sample(ElementType type, double low, double high, int count) {
  std::mt19937_64 random(1);
  std::vector<double> numbers;
  const auto add = [&](double x) {
    x = round_to(type, x);
    if (x >= low && x <= high) numbers.push_back(x);
  };
  std::uniform_real_distribution<double> part(0, 1);
  for (int i = 0; i < count; ++i) add(low + (high - low) * part(random));
  const int bits = bit_width(type);
  for (int i = 0; i < count; ++i) {
    add(decode_float(type, bits == 64 ? random() : random() & ((uint64_t{1} << bits) - 1)));
  }
  return numbers;
}

}  // namespace tenon::hlo
