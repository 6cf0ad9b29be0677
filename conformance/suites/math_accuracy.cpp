// Measures the error of each math function, for the tables of docs/numerics.md.
//
// The functions of the kernel IR, and CHLO's as the kernels of their decompositions, run as
// rendered C. f16 and bf16: every pattern. f32: every N-th pattern (--step=1: all of them);
// functions for which only binary128 is accurate enough, which is slow, are compared with it at
// every 1,009th of these, and with their own f64 form at all of them. f64: a dense sample. With two
// arguments: random pairs, by the interpreter. Every 1,009th result of a function of the kernel IR
// must also equal the interpreter's in every bit. Exit status 1 if a bound of the op tables is
// exceeded.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "conformance/generate/math_functions.h"
#include "conformance/suites/command_line.h"
#include "core/base/random.h"
#include "core/kernel/math/scalar.h"
#include "core/kernel/render/c_library.h"
#include "core/kernel/render/render.h"

namespace tenon::conformance {
namespace {

struct WorstMathError {
  double error = -1;
  double x = 0, y = 0;
  double got = 0, expected = 0;

  void take(const WorstMathError& other) {
    if (other.error > error) *this = other;
  }
};

constexpr double kWrong = 1e9;

/// |got - expected| in units in the last place of `expected` in the format, or of `terms` if that
/// is greater.
template <class R>
double error_in_ulp(ElementType type, double got, R expected, double terms) {
  const auto near = static_cast<double>(expected);
  const double rounded = round_to(type, near);
  if (std::isnan(near) || std::isnan(got)) return std::isnan(near) == std::isnan(got) ? 0 : kWrong;
  if (rounded == got) {
    if (got == 0 && near == 0 && std::signbit(got) != std::signbit(near)) return kWrong;
    if (std::isinf(got) || std::isinf(near)) return 0;
  }
  const double most = float_max(type);
  const auto& format = element_type_info(type).format;
  const int least = 1 - format.bias - format.mantissa_bits;
  int exponent = 0;
  static_cast<void>(std::frexp(std::max(std::abs(near), terms), &exponent));
  const double unit = std::ldexp(1.0, std::max(exponent - 1 - format.mantissa_bits, least));
  // The greatest number and infinity are neighbours.
  if (std::isinf(got) || std::isinf(near)) {
    const double a = std::clamp(got, -most, most);
    const double b = std::clamp(near, -most, most);
    return a == b ? 1 : kWrong;
  }
  const R distance = static_cast<R>(got) - expected;
  return static_cast<double>(distance < 0 ? -distance : distance) / unit;
}

/// The error of `got` for the function at (x, y).
template <class R>
void judge(const MathFunction& f, ElementType type, double x, double y, double got,
           WorstMathError& worst) {
  R expected;
  if constexpr (std::is_same_v<R, double>) {
    expected = f.exact(x, y);
    // A correctly rounded result has an error of at most half a unit.
    const double rounded =
        type == ElementType::kF32 ? static_cast<float>(expected) : round_to(type, expected);
    if (rounded == got && got != 0 && worst.error >= 0.5) return;
  } else {
    expected = f.exact128(x, y);
  }
  const double terms = f.size_of_terms == nullptr ? 0 : f.size_of_terms(x);
  const double error = error_in_ulp(type, got, expected, terms);
  if (error > worst.error) worst = {error, x, y, got, static_cast<double>(expected)};
}

void judge(bool wide, const MathFunction& f, ElementType type, double x, double y, double got,
           WorstMathError& worst) {
  if (wide) return judge<Float128>(f, type, x, y, got, worst);
  judge<double>(f, type, x, y, got, worst);
}

constexpr uint64_t kPart = 1 << 16;

/// Calls body(first, last, worst) for parts of [0, count), on all processors.
template <class Body>
WorstMathError over_parts(uint64_t count, const Body& body) {
  std::atomic<uint64_t> next = 0;
  std::mutex mutex;
  WorstMathError worst;
  const auto work = [&] {
    WorstMathError mine;
    for (uint64_t first = next.fetch_add(kPart); first < count; first = next.fetch_add(kPart)) {
      body(first, std::min(count, first + kPart), mine);
    }
    const std::lock_guard lock(mutex);
    worst.take(mine);
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back(work);
  }
  for (std::thread& thread : threads) thread.join();
  return worst;
}

std::string library_name(const MathFunction& f, ElementType type) {
  std::string name = fmt::format("math_{}_{}", f.name, name_of(type));
  std::ranges::replace(name, '.', '_');
  return name;
}

/// The functions of one argument in C, for each of `types`, compiled to native code.
Result<kernel::CLibrary> rendered_functions(const std::vector<const MathFunction*>& functions,
                                            const std::vector<ElementType>& types) {
  std::vector<kernel::Kernel> kernels;
  for (const MathFunction* f : functions) {
    for (const ElementType type : types) {
      if (f->operands != 1) continue;
      TENON_ASSIGN(kernel::Kernel kernel, kernel_of(*f, type, kPart, library_name(*f, type)));
      kernels.push_back(std::move(kernel));
    }
  }
  TENON_ASSIGN(const kernel::RenderedSource source, kernel::render(kernels));
  return kernel::CLibrary::compile(source.text, "-O2 -march=native");
}

/// Measures the patterns argument(i) for i = 0 … count - 1, through rendered C.
template <class Argument>
WorstMathError measure_rendered(const MathFunction& f, ElementType type,
                                const kernel::CLibrary& library, uint64_t count, bool wide,
                                const Argument& argument) {
  const std::string name = library_name(f, type);
  const size_t width = storage_bytes(type);
  return over_parts(count, [&](uint64_t first, uint64_t last, WorstMathError& worst) {
    std::vector<uint8_t> x(kPart * width);
    std::vector<uint8_t> y(kPart * width);
    for (uint64_t i = first; i < last; ++i) {
      const uint64_t pattern = argument(i);
      std::memcpy(&x[(i - first) * width], &pattern, width);
    }
    const std::vector<void*> pointers = {x.data(), y.data()};
    if (!library.call(name, pointers).ok()) worst.take({kWrong});
    for (uint64_t i = first; i < last; ++i) {
      uint64_t from = 0;
      uint64_t to = 0;
      std::memcpy(&from, &x[(i - first) * width], width);
      std::memcpy(&to, &y[(i - first) * width], width);
      const double a = decode_float(type, from);
      const double got = decode_float(type, to);
      if (f.is_op() && i % 1009 == 0) {
        const uint64_t bits = kernel::evaluate(f.op, type, type, from, 0);
        const double same = decode_float(type, bits);
        if (bits != to && !(std::isnan(got) && std::isnan(same)))
          worst.take({kWrong, a, 0, got, same});
      }
      judge(wide, f, type, a, 0, got, worst);
    }
  });
}

/// Compares the f32 patterns argument(i), i = 0 … count - 1, with the function's own f64 form.
template <class Argument>
WorstMathError measure_by_f64(const MathFunction& f, const kernel::CLibrary& library,
                              uint64_t count, const Argument& argument) {
  return over_parts(count, [&](uint64_t first, uint64_t last, WorstMathError& worst) {
    std::vector<float> x(kPart);
    std::vector<float> y(kPart);
    std::vector<double> wide_x(kPart);
    std::vector<double> wide_y(kPart);
    for (uint64_t i = first; i < last; ++i) {
      x[i - first] = std::bit_cast<float>(static_cast<uint32_t>(argument(i)));
      wide_x[i - first] = x[i - first];
    }
    const std::vector<void*> narrow = {x.data(), y.data()};
    const std::vector<void*> wide = {wide_x.data(), wide_y.data()};
    if (!library.call(library_name(f, ElementType::kF32), narrow).ok() ||
        !library.call(library_name(f, ElementType::kF64), wide).ok()) {
      worst.take({kWrong});
    }
    for (uint64_t i = 0; i < last - first; ++i) {
      const double terms = f.size_of_terms == nullptr ? 0 : f.size_of_terms(wide_x[i]);
      const double error = error_in_ulp(ElementType::kF32, y[i], wide_y[i], terms);
      if (error > worst.error) worst = {error, wide_x[i], 0, y[i], wide_y[i]};
    }
  });
}

/// The bits of sample i, alternating: any pattern; numbers of moderate size; ranges where arguments
/// are reduced (about 1, the ends of the range of a logarithm's significand, half of log 2 and
/// multiples).
uint64_t sample(ElementType type, uint64_t i) {
  Random random(i * 4 + 1);
  const uint64_t drawn = random.bits();
  const double unit = random.unit() * 2 - 1;
  switch (i % 7) {
    case 0:
      return kernel::pattern_of(type, drawn);
    case 1:
      return encode_float(type, unit * std::ldexp(1.0, static_cast<int>(drawn % 24) - 12));
    case 2:
      return encode_float(type, unit * 750);
    case 3:
      return encode_float(type, 1 + unit * std::ldexp(1.0, -static_cast<int>(drawn % 20)));
    case 4:
      return encode_float(type, (drawn % 2 == 0 ? 1.41421356 : 0.70710678) * (1 + unit / 64));
    case 5:
      return encode_float(type, 0.34657359 * static_cast<double>(drawn % 9) * (1 + unit / 32));
    default:
      return encode_float(type, unit);
  }
}

/// A number of the same order of magnitude as `x`.
uint64_t sample_near(ElementType type, uint64_t x, uint64_t i) {
  Random random(i + 7);
  return encode_float(type, decode_float(type, x) * (random.unit() * 8 - 4));
}

/// An exponent for which the power of x is a number of the format, mostly near the ends of its
/// range.
uint64_t sample_exponent(ElementType type, uint64_t x, uint64_t i) {
  if (i % 3 == 0) return sample(type, i * 7 + 3);
  const double log = std::log(std::abs(decode_float(type, x)));
  const double limit = std::log(float_max(type)) * 1.1;
  Random random(i + 99);
  const double part = i % 3 == 1 ? random.unit() * 2 - 1 : 1 - random.unit() / 8;
  return encode_float(type, (random.one_in(2) ? part : -part) * limit / log);
}

struct MathAccuracyOptions {
  uint64_t step = 1009;
  uint64_t samples = 200'000;
  std::string function;
};

WorstMathError measure_pairs(const MathFunction& f, ElementType type, uint64_t samples) {
  const bool wide = type == ElementType::kF64;
  return over_parts(samples, [&](uint64_t first, uint64_t last, WorstMathError& worst) {
    for (uint64_t i = first; i < last; ++i) {
      const uint64_t x = sample(type, i);
      const uint64_t other = i % 2 == 0 ? sample(type, i * 3 + 1) : sample_near(type, x, i);
      const uint64_t y = f.name == "pow" ? sample_exponent(type, x, i) : other;
      const double got = decode_float(type, kernel::evaluate(f.op, type, type, x, y));
      judge(wide, f, type, decode_float(type, x), decode_float(type, y), got, worst);
    }
  });
}

WorstMathError measure_all(const MathFunction& f, ElementType type, const kernel::CLibrary& library,
                           const MathAccuracyOptions& options) {
  if (f.operands == 2) return measure_pairs(f, type, options.samples);
  if (type == ElementType::kF64) {
    // Functions written by hand in binary128 are slow.
    const uint64_t count = f.exact == nullptr ? options.samples / 10 : options.samples;
    return measure_rendered(f, type, library, count, true,
                            [&](uint64_t i) { return sample(type, i); });
  }
  const bool wide = f.exact == nullptr;
  const uint64_t step = type == ElementType::kF32 ? options.step : 1;
  const auto count = [&](uint64_t by) { return ((uint64_t{1} << bit_width(type)) - 1) / by + 1; };
  const auto every = [](uint64_t by) { return [by](uint64_t i) { return i * by; }; };
  if (!wide || type != ElementType::kF32) {
    return measure_rendered(f, type, library, count(step), wide, every(step));
  }
  WorstMathError worst =
      measure_rendered(f, type, library, count(step * 1009), true, every(step * 1009));
  worst.take(measure_by_f64(f, library, count(step), every(step)));
  return worst;
}

int run(const MathAccuracyOptions& options) {
  const std::vector<ElementType> types = {ElementType::kF16, ElementType::kBF16, ElementType::kF32,
                                          ElementType::kF64};
  std::vector<const MathFunction*> functions;
  for (const MathFunction& f : math_functions()) {
    if (options.function.empty() || options.function == f.name) functions.push_back(&f);
  }
  if (functions.empty()) {
    fmt::print(stderr, "there is no function '{}'\n", options.function);
    return 2;
  }
  const auto library = rendered_functions(functions, types);
  if (!library) {
    fmt::print("FAIL rendered C: {}\n", library.error().to_string());
    return 1;
  }
  int failed = 0;
  fmt::print("| function | bound | f16 | bf16 | f32 | f64 |\n|---|---|---|---|---|---|\n");
  for (const MathFunction* f : functions) {
    std::string row = fmt::format("| {} | {} |", f->name, f->bound);
    std::string failure;
    for (const ElementType type : types) {
      const WorstMathError worst = measure_all(*f, type, *library, options);
      row += fmt::format(" {:.3f} |", worst.error);
      if (worst.error <= f->bound) continue;
      failure += fmt::format("FAIL {} {}: ({:a}, {:a}) gives {:a}, expected {:a}\n", f->name,
                             name_of(type), worst.x, worst.y, worst.got, worst.expected);
    }
    fmt::print("{}\n{}", row, failure);
    std::fflush(stdout);
    if (!failure.empty()) ++failed;
  }
  if (failed == 0) fmt::print("PASS {} math functions are within their bounds\n", functions.size());
  return failed == 0 ? 0 : 1;
}

int run(int argc, char** argv) {
  MathAccuracyOptions options;
  CLI::App app("Measures the error of each math function, for the tables of docs/numerics.md.");
  app.add_option("--step", options.step, "test every N-th pattern of f32")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--samples", options.samples,
                 "samples of f64, and pairs for functions of two arguments")
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
