#include "conformance/generate/math_functions.h"

#include <cmath>

#include "core/kernel/ir/builder.h"
#include "hlo/builder/builder.h"
#include "hlo/evaluator/scalars/math_reference.h"
#include "hlo/evaluator/scalars/real_math.h"
#include "hlo/lower/lower.h"
#include "hlo/passes/fusion/fuse.h"
#include "hlo/passes/pass.h"

// The C library declares it only for GCC.
extern "C" __float128 lgammaf128_r(__float128, int*) noexcept;

namespace tenon::conformance {
namespace {

namespace real = hlo::real;
namespace reference = hlo::reference;

// Avoids the C library's global variable for the sign, which threads would share.
double log_gamma(double x) {
  int sign = 0;
  return lgamma_r(x, &sign);
}
Float128 wide_log_gamma(Float128 x) {
  int sign = 0;
  return lgammaf128_r(x, &sign);
}

// Both have zeros between the poles on the negative axis, where the terms of the reflection formula
// cancel: log gamma(1 - x) and log(sin(pi x)); digamma(1 - x), about log |x|, and pi / tan(pi x).
double size_of_log_gamma(double x) { return x < 0 ? std::max(1.0, log_gamma(1 - x)) : 0; }
double size_of_digamma(double x) { return x < 0 ? std::max(1.0, std::log(-x)) : 0; }

/// A function of one argument, from its double and binary128 forms.
template <auto kDouble, auto kWide>
MathFunction unary(std::string name) {
  MathFunction function;
  function.name = std::move(name);
  if constexpr (!std::is_null_pointer_v<decltype(kDouble)>) {
    function.exact = [](double x, double) -> double { return kDouble(x); };
  }
  function.exact128 = [](Float128 x, Float128) -> Float128 { return kWide(x); };
  return function;
}

template <auto kBody>
MathFunction generic(std::string name, int operands = 1) {
  MathFunction function;
  function.name = std::move(name);
  function.operands = operands;
  function.exact = [](double x, double y) { return kBody(x, y); };
  function.exact128 = [](Float128 x, Float128 y) { return kBody(x, y); };
  return function;
}

std::vector<MathFunction> kernel_functions() {
  std::vector<MathFunction> list = {
      generic<[](auto x, auto) { return real::exp(x); }>("exp"),
      generic<[](auto x, auto) { return real::expm1(x); }>("expm1"),
      generic<[](auto x, auto) { return real::log(x); }>("log"),
      generic<[](auto x, auto) { return real::log1p(x); }>("log1p"),
      generic<[](auto x, auto) { return real::sin(x); }>("sin"),
      generic<[](auto x, auto) { return real::cos(x); }>("cos"),
      generic<[](auto x, auto) { return real::tan(x); }>("tan"),
      generic<[](auto x, auto) { return real::tanh(x); }>("tanh"),
      generic<[](auto x, auto) { return real::logistic(x); }>("logistic"),
      generic<[](auto x, auto) { return real::erf(x); }>("erf"),
      generic<[](auto x, auto) { return real::erfc(x); }>("erfc"),
      generic<[](auto x, auto) { return real::cbrt(x); }>("cbrt"),
      generic<[](auto x, auto) { return real::rsqrt(x); }>("rsqrt"),
      generic<[](auto x, auto y) { return real::atan2(x, y); }>("atan2", 2),
      generic<[](auto x, auto y) { return real::pow(x, y); }>("pow", 2)};
  for (MathFunction& function : list) {
    function.op = *kernel::op_from_name(function.name);
    function.bound = kernel::scalar_op(function.op).ulp_bound;
  }
  return list;
}

std::vector<MathFunction> chlo_functions() {
  using D = double (*)(double);
  std::vector<MathFunction> list = {unary<static_cast<D>(std::acos), acosf128>("chlo.acos"),
                                    unary<static_cast<D>(std::acosh), acoshf128>("chlo.acosh"),
                                    unary<static_cast<D>(std::asin), asinf128>("chlo.asin"),
                                    unary<static_cast<D>(std::asinh), asinhf128>("chlo.asinh"),
                                    unary<static_cast<D>(std::atan), atanf128>("chlo.atan"),
                                    unary<static_cast<D>(std::atanh), atanhf128>("chlo.atanh"),
                                    unary<static_cast<D>(std::cosh), coshf128>("chlo.cosh"),
                                    unary<static_cast<D>(std::sinh), sinhf128>("chlo.sinh"),
                                    unary<nullptr, reference::erf_inv>("chlo.erf_inv"),
                                    unary<log_gamma, wide_log_gamma>("chlo.lgamma"),
                                    unary<nullptr, reference::digamma>("chlo.digamma"),
                                    unary<nullptr, reference::bessel_i1e>("chlo.bessel_i1e")};
  for (MathFunction& function : list) {
    function.bound = hlo::op_info(*hlo::op_from_name(function.name)).ulp_bound;
    if (function.name == "chlo.lgamma") function.size_of_terms = size_of_log_gamma;
    if (function.name == "chlo.digamma") function.size_of_terms = size_of_digamma;
  }
  return list;
}

// The kernel of a decomposed op: its decomposition as one fusion.
Result<kernel::Kernel> expanded_kernel(const MathFunction& function, ElementType type,
                                       int64_t count) {
  hlo::Module module;
  hlo::Computation& main = module.add_function("main");
  const hlo::Value x = main.add_parameter(hlo::Type::tensor(type, {count}));
  hlo::Builder builder(main);
  const hlo::Value y = builder.make(*hlo::op_from_name(function.name), {x});
  TENON_TRY(builder.finish({y}));
  main.set_declared_result_types({x.type()});
  TENON_TRY(hlo::run_passes(module, hlo::lowering_passes()));
  std::vector<hlo::Instruction*> ops;
  for (hlo::Instruction& op : main) {
    if (op.code() != hlo::OpCode::kReturn) ops.push_back(&op);
  }
  TENON_ASSIGN(hlo::Instruction * fusion, hlo::fuse(ops));
  static_cast<void>(fusion);
  TENON_ASSIGN(program::Program program, hlo::lower_module(module));
  if (program.kernels.size() == 1) return std::move(program.kernels[0]);
  return internal_error("{} became {} kernels", function.name, program.kernels.size());
}

}  // namespace

const std::vector<MathFunction>& math_functions() {
  static const std::vector<MathFunction> all = [] {
    std::vector<MathFunction> list = kernel_functions();
    for (MathFunction& function : chlo_functions()) list.push_back(std::move(function));
    return list;
  }();
  return all;
}

Result<kernel::Kernel> kernel_of(const MathFunction& function, ElementType type, int64_t count,
                                 const std::string& name) {
  if (!function.is_op()) {
    TENON_ASSIGN(kernel::Kernel kernel, expanded_kernel(function, type, count));
    kernel.name = name;
    return kernel;
  }
  kernel::Builder b(name);
  const Dims dims = {count};
  const auto x = b.buffer("x", type, dims, kernel::Access::kIn);
  const auto y = b.buffer("y", type, dims, kernel::Access::kOut);
  b.grid({});
  b.lanes(dims,
          [&](const kernel::Values& i) { b.store(b.unary(function.op, b.load(x, i)), y, i); });
  return b.finish();
}

}  // namespace tenon::conformance
