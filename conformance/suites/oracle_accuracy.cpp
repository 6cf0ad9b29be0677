// Measures the error of every math function of the evaluator against an independent oracle (Arb's
// ball arithmetic), for the table of docs/numerics.md.
//
// f16 and bf16: every N-th pattern (--step=1: all). f32 and f64: special values, neighbourhoods of
// zeros, poles and overflow, and a sample of bit patterns and of moderate numbers. Exit status 1 if
// a bound of the op table is exceeded.
#include <flint/flint.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "conformance/compare/oracle.h"
#include "conformance/suites/command_line.h"
#include "core/base/random.h"
#include "core/kernel/math/scalar.h"
#include "hlo/builder/builder.h"
#include "hlo/evaluator/evaluator.h"

namespace tenon::conformance {
namespace {

struct OracleAccuracyOptions {
  uint64_t step = 37;
  uint64_t samples = 1'500;
  std::string function;
};

/// For complex types, alternating parts.
using Numbers = std::vector<double>;

// --- Running one op

Result<Numbers> run_op(const std::string& op, ElementType type,
                       const std::vector<Numbers>& arguments) {
  const size_t parts = is_complex(type) ? 2 : 1;
  const auto count = static_cast<int64_t>(arguments[0].size() / parts);
  hlo::Module module;
  hlo::Computation& main = module.add_function("main");
  std::vector<hlo::Value> operands;
  std::vector<Literal> literals;
  for (const Numbers& numbers : arguments) {
    operands.push_back(main.add_parameter(hlo::Type::tensor(type, {count})));
    Literal literal(Shape(type, {count}));
    for (int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      if (parts == 1) literal.set_double(i, numbers[at]);
      if (parts == 2) literal.set_complex(i, {numbers[2 * at], numbers[2 * at + 1]});
    }
    literals.push_back(std::move(literal));
  }
  hlo::Builder builder(main);
  const hlo::Value y = builder.make(*hlo::op_from_name(op), operands);
  TENON_TRY(builder.finish({y}));
  main.set_declared_result_types({y.type()});
  hlo::Evaluator evaluator(module);
  TENON_ASSIGN(const std::vector<Literal> results, evaluator.run(main, literals));
  Numbers numbers;
  for (int64_t i = 0; i < count; ++i) {
    if (!is_complex(results[0].shape().element_type())) {
      numbers.push_back(results[0].get_double(i));
      if (parts == 2) numbers.push_back(0);  // the magnitude
      continue;
    }
    numbers.push_back(results[0].get_complex(i).real());
    numbers.push_back(results[0].get_complex(i).imag());
  }
  return numbers;
}

// --- Arguments

Numbers special_values(ElementType type) {
  const double inf = std::numeric_limits<double>::infinity();
  const double least = decode_float(type, 1);
  const double normal = std::ldexp(1.0, 1 - element_type_info(type).format.bias);
  const double most = float_max(type);
  Numbers numbers;
  for (const double x : {0.0, least, normal, normal - least, 1e-3, 0.5, 1.0, 1.5, 2.0, 3.0, 10.0,
                         25.0, most / 2, most, inf}) {
    numbers.push_back(round_to(type, x));
    numbers.push_back(round_to(type, -x));
  }
  numbers.push_back(std::nan(""));
  return numbers;
}

/// Alternating: a bit pattern, or a number of magnitude 2^-8 to 2^8.
double sample(ElementType type, Random& random, uint64_t i) {
  const uint64_t drawn = random.bits();
  if (i % 2 == 0) return decode_float(type, kernel::pattern_of(type, drawn));
  return round_to(type,
                  (random.unit() * 2 - 1) * std::ldexp(1.0, static_cast<int>(drawn % 17) - 8));
}

Numbers arguments_of(const OracleFunction& f, ElementType type,
                     const OracleAccuracyOptions& options) {
  Numbers x = special_values(type);
  const double epsilon = std::ldexp(1.0, -element_type_info(type).format.mantissa_bits);
  Random random(bit_width(type));
  for (const double at : f.near) {
    for (int k = -20; k <= 20; ++k) x.push_back(round_to(type, at * (1 + k * epsilon)));
    for (uint64_t k = 0; k < options.samples / 10; ++k) {
      const double away = std::ldexp(random.unit() * 2 - 1, -static_cast<int>(random.below(30)));
      x.push_back(round_to(type, at * (1 + away)));
    }
  }
  if (bit_width(type) == 16) {
    for (uint64_t i = 0; i < 0x10000; i += options.step) x.push_back(decode_float(type, i));
    return x;
  }
  for (uint64_t i = 0; i < options.samples; ++i) x.push_back(sample(type, random, i));
  return x;
}

/// Pairs of special values, and random pairs; for ops with a small domain, pairs from it.
std::vector<Numbers> pairs_of(const OracleFunction& f, ElementType type,
                              const OracleAccuracyOptions& options) {
  std::vector<Numbers> pairs(2);
  const auto add = [&](double x, double y) {
    pairs[0].push_back(round_to(type, x));
    pairs[1].push_back(round_to(type, y));
  };
  Random random(bit_width(type) + 1);
  const uint64_t samples = options.samples * 2;
  if (f.op == "chlo.zeta" || f.op == "chlo.polygamma") {
    for (uint64_t i = 0; i < samples / 4; ++i) {
      const double at = std::exp(random.unit() * 9 - 4);
      f.op == "chlo.zeta" ? add(1.01 + random.unit() * 29, at)
                          : add(static_cast<double>(random.below(17)), at);
    }
    return pairs;
  }
  for (const double x : special_values(type)) {
    for (const double y : special_values(type)) add(x, y);
  }
  for (uint64_t i = 0; i < samples; ++i) {
    const double x = sample(type, random, i);
    const double log = std::log(std::abs(x));
    const double near_ends = (random.unit() * 2 - 1) * std::log(float_max(type)) * 1.1 / log;
    const bool is_power = f.op == "stablehlo.power";
    add(is_power && i % 3 != 0 ? std::abs(x) : x,
        is_power && i % 3 != 0 ? near_ends : sample(type, random, i / 2));
  }
  return pairs;
}

// --- Measuring

struct WorstOracleError {
  double error = 0;
  std::string at;
};

/// The greatest error of `count` results; computes error(i) on all processors, and describe(i) for
/// the worst.
template <class Error, class Describe>
WorstOracleError worst_of(size_t count, const Error& error, const Describe& describe) {
  std::vector<double> errors(count);
  std::atomic<size_t> next = 0;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < std::max(1u, std::thread::hardware_concurrency()); ++t) {
    threads.emplace_back([&] {
      for (size_t i = next++; i < count; i = next++) errors[i] = error(i);
      flint_cleanup();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const size_t worst = std::ranges::max_element(errors) - errors.begin();
  return {std::max(errors[worst], 0.0), describe(worst)};
}

Result<WorstOracleError> measure(const OracleFunction& f, ElementType type,
                                 const OracleAccuracyOptions& options) {
  const std::vector<Numbers> arguments = f.operands == 2
                                             ? pairs_of(f, type, options)
                                             : std::vector<Numbers>{arguments_of(f, type, options)};
  TENON_ASSIGN(const Numbers got, run_op(f.op, type, arguments));
  const Numbers& x = arguments[0];
  const auto second = [&](size_t i) { return f.operands == 2 ? arguments[1][i] : 0; };
  return worst_of(
      got.size(), [&](size_t i) { return oracle_error(f, type, x[i], second(i), got[i]); },
      [&](size_t i) {
        return fmt::format("({:.17g}, {:.17g}) gives {:.17g}", x[i], second(i), got[i]);
      });
}

Result<WorstOracleError> measure(const ComplexOracleFunction& f, ElementType type,
                                 const OracleAccuracyOptions& options) {
  const ElementType part = complex_part(type);
  Random random(bit_width(type) + 2);
  std::vector<Numbers> arguments(static_cast<size_t>(f.operands));
  const auto finite = [&](uint64_t i) {
    double x = sample(part, random, i);
    while (!std::isfinite(x)) x = sample(part, random, i);
    return x;
  };
  for (uint64_t i = 0; i < options.samples * 2; ++i) {
    for (Numbers& numbers : arguments) {
      numbers.push_back(finite(i));
      numbers.push_back(finite(i / 2));
    }
  }
  TENON_ASSIGN(const Numbers got, run_op(f.op, type, arguments));
  const auto number = [&](const Numbers& list, size_t i) {
    return std::span<const double>(list).subspan(2 * i, 2);
  };
  const auto z = [&](size_t i) { return number(arguments[0], i); };
  const auto z1 = [&](size_t i) { return number(arguments.back(), i); };
  return worst_of(
      got.size() / 2,
      [&](size_t i) { return complex_oracle_error(f, part, z(i), z1(i), number(got, i)); },
      [&](size_t i) {
        return fmt::format("({:.17g}, {:.17g}), ({:.17g}, {:.17g}) gives ({:.17g}, {:.17g})",
                           z(i)[0], z(i)[1], z1(i)[0], z1(i)[1], got[2 * i], got[2 * i + 1]);
      });
}

/// Prints a function's row; returns whether every error is within the bound.
template <class Function>
bool print_row(const Function& f, const std::vector<ElementType>& types, double bound,
               const OracleAccuracyOptions& options) {
  std::string row = fmt::format("| {} | {} |", f.op, bound);
  std::string failures;
  for (const ElementType type : types) {
    const auto worst = measure(f, type, options);
    if (!worst) {
      failures += fmt::format("FAIL {} {}: {}\n", f.op, name_of(type), worst.error().to_string());
      continue;
    }
    row += fmt::format(" {:.3f} |", worst->error);
    if (worst->error <= bound) continue;
    failures +=
        fmt::format("FAIL {} {}: {:.2f} units: {}\n", f.op, name_of(type), worst->error, worst->at);
  }
  fmt::print("{}\n{}", row, failures);
  std::fflush(stdout);
  return failures.empty();
}

/// A correctly rounded result has an error of half a unit; a bound below a unit allows no ties.
double bound_of(const std::string& op) {
  const int bound = hlo::op_info(*hlo::op_from_name(op)).ulp_bound;
  return bound == 0 ? 0.5 : bound;
}

/// All complex functions have the same bound, normwise.
constexpr double kComplexBound = 8;

int run(const OracleAccuracyOptions& options) {
  const auto chosen = [&](const std::string& op) {
    return options.function.empty() || options.function == op;
  };
  int failed = 0;
  int passed = 0;
  fmt::print("| function | bound | f16 | bf16 | f32 | f64 |\n|---|---|---|---|---|---|\n");
  for (const OracleFunction& f : oracle_functions()) {
    if (!chosen(f.op)) continue;
    print_row(f, {ElementType::kF16, ElementType::kBF16, ElementType::kF32, ElementType::kF64},
              bound_of(f.op), options)
        ? ++passed
        : ++failed;
  }
  fmt::print("\n| complex function | bound | c64 | c128 |\n|---|---|---|---|\n");
  for (const ComplexOracleFunction& f : complex_oracle_functions()) {
    if (!chosen(f.op)) continue;
    print_row(f, {ElementType::kC64, ElementType::kC128}, kComplexBound, options) ? ++passed
                                                                                  : ++failed;
  }
  if (failed == 0) fmt::print("PASS {} math functions agree with the oracle\n", passed);
  return failed == 0 ? 0 : 1;
}

int run(int argc, char** argv) {
  OracleAccuracyOptions options;
  CLI::App app("Measures the error of every math function of the evaluator with Arb.");
  app.add_option("--step", options.step, "test every N-th pattern of f16 and bf16")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--samples", options.samples, "arguments of f32 and f64")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--function", options.function, "only this one");
  if (const auto status = parse(app, argc, argv)) return *status;
  return run(options);
}

}  // namespace
}  // namespace tenon::conformance

int main(int argc, char** argv) {
  return tenon::conformance::guarded([&] { return tenon::conformance::run(argc, argv); });
}
