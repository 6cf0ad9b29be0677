// The error of each math function of the kernel IR, as docs/numerics.md tabulates it.
//
//   math_accuracy [--step=N] [--samples=N] [--function=NAME]
//
// f16 and bf16: every pattern. f32: every N-th (--step=1: all of them), by the rendered C; every
// 1,009th of these also as the interpreter computes it, which must give the same bits. f64: a dense
// sample. Of two arguments: pairs drawn at random. Exit status 1 if a bound of core/kernel/ops.inc
// is exceeded.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/kernel/builder.h"
#include "core/kernel/render/c_library.h"
#include "core/kernel/render/render.h"
#include "core/kernel/scalar.h"
#include "core/types/float_convert.h"
#include "core/types/random.h"
#include "hlo/evaluator/real_math.h"

namespace tenon::conformance {
namespace {

using kernel::OpCode;

/// The function in more precision than the format: double for f32 and narrower, binary128 for f64.
template <class R>
R reference(OpCode code, R x, R y) {
  namespace real = hlo::real;
  const R one = 1;
  switch (code) {
    case OpCode::kExp:
      return real::exp(x);
    case OpCode::kExpm1:
      return real::expm1(x);
    case OpCode::kLog:
      return real::log(x);
    case OpCode::kLog1p:
      return real::log1p(x);
    case OpCode::kSin:
      return real::sin(x);
    case OpCode::kCos:
      return real::cos(x);
    case OpCode::kTan:
      return real::tan(x);
    case OpCode::kTanh:
      return real::tanh(x);
    case OpCode::kLogistic:
      return x < 0 ? real::exp(x) / (one + real::exp(x)) : one / (one + real::exp(-x));
    case OpCode::kCbrt:
      return real::cbrt(x);
    case OpCode::kRsqrt:
      return one / real::sqrt(x);
    case OpCode::kAtan2:
      return real::atan2(x, y);
    default:
      return real::pow(x, y);
  }
}

struct Worst {
  double error = -1;
  double x = 0, y = 0;
  double got = 0, expected = 0;

  void take(const Worst& other) {
    if (other.error > error) *this = other;
  }
};

constexpr double kWrong = 1e9;

/// |got - expected| in units in the last place of `expected` in the format.
template <class R>
double error_in_ulp(ElementType type, double got, R expected) {
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
  static_cast<void>(std::frexp(near, &exponent));
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

template <class R>
void measure(OpCode code, ElementType type, uint64_t x, uint64_t y, Worst& worst) {
  const double a = decode_float(type, x);
  const double b = decode_float(type, y);
  const double got = decode_float(type, kernel::evaluate(code, type, type, x, y));
  const R expected = reference<R>(code, a, b);
  const double error = error_in_ulp(type, got, expected);
  if (error > worst.error) worst = {error, a, b, got, static_cast<double>(expected)};
}

constexpr uint64_t kPart = 1 << 16;

/// Calls body(first, last, worst) for parts of [0, count), on all processors.
template <class Body>
Worst over_parts(uint64_t count, const Body& body) {
  std::atomic<uint64_t> next = 0;
  std::mutex mutex;
  Worst worst;
  const auto work = [&] {
    Worst mine;
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

/// Calls body(i, worst) for i = 0 … count - 1, on all processors.
template <class Body>
Worst over(uint64_t count, const Body& body) {
  return over_parts(count, [&](uint64_t first, uint64_t last, Worst& worst) {
    for (uint64_t i = first; i < last; ++i) body(i, worst);
  });
}

std::string name_of_kernel(OpCode code) { return fmt::format("math_{}", kernel::op_name(code)); }

/// y[i] = op(x[i]) of kPart f32.
kernel::Kernel kernel_of(OpCode code) {
  kernel::Builder b(name_of_kernel(code));
  const Dims dims = {kPart};
  const auto x = b.buffer("x", ElementType::kF32, dims, kernel::Access::kIn);
  const auto y = b.buffer("y", ElementType::kF32, dims, kernel::Access::kOut);
  b.grid({});
  b.lanes(dims, [&](const kernel::Values& i) { b.store(b.unary(code, b.load(x, i)), y, i); });
  return b.finish();
}

/// The math functions of one argument in C, at the speed of the machine.
Result<kernel::CLibrary> rendered_functions() {
  std::vector<kernel::Kernel> kernels;
  for (int c = 0; c < kernel::kScalarOpCount; ++c) {
    const auto code = static_cast<OpCode>(c);
    if (!kernel::is_math(code) || kernel::scalar_op(code).operands != 1) continue;
    kernels.push_back(kernel_of(code));
  }
  return kernel::render(kernels).and_then([](const std::string& source) {
    return kernel::CLibrary::compile(source, "-O3 -march=native");
  });
}

/// Every step-th f32 by rendered C.
Worst measure_rendered(OpCode code, const kernel::CLibrary& library, uint64_t step) {
  const std::string name = name_of_kernel(code);
  const uint64_t count = ((uint64_t{1} << 32) - 1) / step + 1;
  return over_parts(count, [&](uint64_t first, uint64_t last, Worst& worst) {
    std::vector<float> x(kPart);
    std::vector<float> y(kPart);
    for (uint64_t i = first; i < last; ++i) {
      x[i - first] = std::bit_cast<float>(static_cast<uint32_t>(i * step));
    }
    const std::vector<void*> pointers = {x.data(), y.data()};
    if (!library.call(name, pointers).ok()) worst.take({kWrong});
    for (uint64_t i = first; i < last; ++i) {
      const float a = x[i - first];
      const float got = y[i - first];
      const auto expected = reference<double>(code, a, 0);
      if (i % 1009 == 0) {
        const uint64_t bits = kernel::evaluate(code, ElementType::kF32, ElementType::kF32,
                                               std::bit_cast<uint32_t>(a), 0);
        const bool nans = std::isnan(got) && std::isnan(decode_float(ElementType::kF32, bits));
        if (bits != std::bit_cast<uint32_t>(got) && !nans)
          worst.take({kWrong, a, 0, got, expected});
      }
      // Rounded as it should be: the error is at most half a unit.
      if (static_cast<float>(expected) == got && got != 0 && worst.error >= 0.5) continue;
      const double error = error_in_ulp(ElementType::kF32, got, expected);
      worst.take({error, a, 0, got, expected});
    }
  });
}

/// Bits of sample i, in turns: any pattern; numbers of moderate size; where functions are reduced
/// (about 1, the ends of the range of a logarithm's significand, half of log 2 and multiples).
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

/// A number of like size, whatever that is.
uint64_t sample_near(ElementType type, uint64_t x, uint64_t i) {
  Random random(i + 7);
  return encode_float(type, decode_float(type, x) * (random.unit() * 8 - 4));
}

/// The exponent of a power of x whose value is a number of the format, mostly near the ends of
/// them.
uint64_t sample_exponent(ElementType type, uint64_t x, uint64_t i) {
  if (i % 3 == 0) return sample(type, i * 7 + 3);
  const double log = std::log(std::abs(decode_float(type, x)));
  const double limit = std::log(float_max(type)) * 1.1;
  Random random(i + 99);
  const double part = i % 3 == 1 ? random.unit() * 2 - 1 : 1 - random.unit() / 8;
  return encode_float(type, (random.one_in(2) ? part : -part) * limit / log);
}

struct Options {
  uint64_t step = 1009;
  uint64_t samples = 200'000;
  std::string function;
};

Worst measure_all(OpCode code, ElementType type, const kernel::CLibrary& library,
                  const Options& options) {
  const int operands = kernel::scalar_op(code).operands;
  const bool wide = type == ElementType::kF64;
  if (operands == 2) {
    return over(options.samples, [&](uint64_t i, Worst& worst) {
      const uint64_t x = sample(type, i);
      const uint64_t other = i % 2 == 0 ? sample(type, i * 3 + 1) : sample_near(type, x, i);
      const uint64_t y = code == OpCode::kPow ? sample_exponent(type, x, i) : other;
      wide ? measure<Float128>(code, type, x, y, worst) : measure<double>(code, type, x, y, worst);
    });
  }
  if (wide) {
    return over(options.samples, [&](uint64_t i, Worst& worst) {
      measure<Float128>(code, type, sample(type, i), 0, worst);
    });
  }
  if (type == ElementType::kF32) return measure_rendered(code, library, options.step);
  return over(uint64_t{1} << bit_width(type),
              [&](uint64_t i, Worst& worst) { measure<double>(code, type, i, 0, worst); });
}

int run(const Options& options) {
  const std::vector<ElementType> types = {ElementType::kF16, ElementType::kBF16, ElementType::kF32,
                                          ElementType::kF64};
  const auto library = rendered_functions();
  if (!library) {
    fmt::print("FAIL rendered C: {}\n", library.error().to_string());
    return 1;
  }
  int failed = 0;
  int passed = 0;
  fmt::print("| function | bound | f16 | bf16 | f32 | f64 |\n|---|---|---|---|---|---|\n");
  for (int c = 0; c < kernel::kScalarOpCount; ++c) {
    const auto code = static_cast<OpCode>(c);
    const kernel::ScalarOp& op = kernel::scalar_op(code);
    if (!kernel::is_math(code)) continue;
    if (!options.function.empty() && options.function != op.name) continue;
    std::string row = fmt::format("| {} | {} |", op.name, op.ulp_bound);
    std::string failure;
    for (const ElementType type : types) {
      const Worst worst = measure_all(code, type, *library, options);
      row += fmt::format(" {:.3f} |", worst.error);
      if (worst.error <= op.ulp_bound) continue;
      failure += fmt::format("FAIL {} {}: ({:a}, {:a}) gives {:a}, expected {:a}\n", op.name,
                             name_of(type), worst.x, worst.y, worst.got, worst.expected);
    }
    fmt::print("{}\n{}", row, failure);
    std::fflush(stdout);
    ++(failure.empty() ? passed : failed);
  }
  if (failed == 0) fmt::print("PASS {} math functions are within their bounds\n", passed);
  return failed == 0 ? 0 : 1;
}

bool read_number(std::string_view text, std::string_view name, uint64_t* value) {
  if (!text.starts_with(name)) return false;
  *value = std::max(1ull, std::strtoull(text.data() + name.size(), nullptr, 10));
  return true;
}

}  // namespace
}  // namespace tenon::conformance

int main(int argc, char** argv) {
  tenon::conformance::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view text = argv[i];
    if (tenon::conformance::read_number(text, "--step=", &options.step)) continue;
    if (tenon::conformance::read_number(text, "--samples=", &options.samples)) continue;
    if (text.starts_with("--function=")) {
      options.function = text.substr(11);
      continue;
    }
    fmt::print("usage: math_accuracy [--step=N] [--samples=N] [--function=NAME]\n");
    return 2;
  }
  return run(options);
}
