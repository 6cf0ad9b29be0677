// Exact values of the math functions of StableHLO and CHLO, by ball arithmetic (Arb): an oracle
// that shares no code with the evaluator, which uses the C library's functions in binary128.
#pragma once

#include <acb.h>
#include <arb.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/types/element_type.h"

namespace tenon::conformance {

/// A real number as a ball that contains it.
class Ball {
 public:
  Ball() { arb_init(ball_); }
  explicit Ball(double x) : Ball() { arb_set_d(ball_, x); }
  Ball(const Ball&) = delete;
  Ball& operator=(const Ball&) = delete;
  ~Ball() { arb_clear(ball_); }

  arb_struct* get() { return ball_; }
  const arb_struct* get() const { return ball_; }

 private:
  arb_t ball_;
};

/// One math function of an op. `exact` gets the arguments, exactly, and a precision in bits.
struct OracleFunction {
  std::string op;  ///< "stablehlo.tanh"
  int operands = 1;
  std::function<void(Ball& y, const Ball& x, const Ball& x1, slong bits)> exact;
  /// The C library's function, for arguments at which `exact` has no finite value: infinities, NaN,
  /// poles, overflow. Null: such arguments are not compared.
  double (*at_limits)(double x, double x1) = nullptr;
  /// Arguments near which the function has zeros or poles, or switches formulas.
  std::vector<double> near = {};
  /// If the exact value is closer to zero than the terms whose difference it is, the unit is that
  /// of this number; null if every value is accurate to its own unit.
  double (*size_of_terms)(double x) = nullptr;
};

const std::vector<OracleFunction>& oracle_functions();

/// |got - f(x, x1)| in units in the last place of the exact value in `type`; 0 if both are NaN or
/// the same infinity, infinity if only one of them is. Negative: the oracle has no answer.
double oracle_error(const OracleFunction& f, ElementType type, double x, double x1, double got);

/// One function of an op on complex numbers.
struct ComplexOracleFunction {
  std::string op;
  int operands = 1;
  std::function<void(acb_t w, const acb_t z, const acb_t z1, slong bits)> exact;
};

const std::vector<ComplexOracleFunction>& complex_oracle_functions();

/// |got - f(z, z1)| in units in the last place of |f(z, z1)|, for parts of type `part`: normwise,
/// because a part that is a difference of products has no error bound of its own. Negative: no
/// answer (the value is not finite or its magnitude overflows).
double complex_oracle_error(const ComplexOracleFunction& f, ElementType part,
                            std::span<const double> z, std::span<const double> z1,
                            std::span<const double> got);

}  // namespace tenon::conformance
