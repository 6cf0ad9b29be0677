// How the results of one op are judged: exactly, within units in the last place, as a sum, or as a
// whole (conformance/compare/whole_result.h). docs/conformance.md says where the bounds come from.
//
// Thread-safety: functions without state.
#pragma once

#include <complex>
#include <cstdint>
#include <string>

#include "core/types/literal.h"
#include "hlo/ir/instruction.h"

namespace tenon::conformance {

struct Tolerance {
  enum class ToleranceKind : uint8_t {
    kExact,   ///< Bit for bit.
    kUlps,    ///< Within `ulps` of the exact result, each element for itself.
    kSum,     ///< A sum of `terms` roundings: relative to the sum of the terms' magnitudes.
    kStored,  ///< A quantized result: stored integers differ by `ulps` at most.
    kWhole,   ///< By the op's own rule (whole_result.h).
  };
  ToleranceKind kind = ToleranceKind::kExact;
  double ulps = 0;
  double terms = 0;
  /// The type in which terms are added.
  ElementType accumulator{};
  /// A number of which every term is a multiple; 0: unknown. Sums of fewer than 2^24 of it are
  /// exact in an accumulator of f32.
  double quantum = 0;
};

/// The op whose bound and oracle apply: CHLO's broadcast_add is judged as add.
hlo::OpCode judged_as(hlo::OpCode op);

Tolerance tolerance_of(const hlo::Instruction& op, uint32_t result);

/// Half the distance from 1 to the next number of `type`.
double epsilon(ElementType type);

/// Equality of exact results, which includes the sign of zero.
bool same_bits(double a, double b);
/// Equality, where any NaN equals any other.
bool same_number(double a, double b);
/// Whether `a` may be a sum of which `b`, NaN or infinite, is the exact one, some of the terms
/// being so too. In no order do such terms add up to a finite number; to a NaN they may, where
/// partial sums overflow.
bool is_sum_of_special_terms(double a, double b);
/// The error of a sum as a share of its bound, which the sum of the terms' magnitudes gives. 0 also
/// where no bound applies, since terms may overflow.
double sum_error(const Tolerance& rule, ElementType type, double a, double b, double terms_size);
/// The distance of two complex numbers in units in the last place of the modulus of the exact one,
/// `b`; 0 also where parts may overflow.
double complex_error(ElementType part, std::complex<double> a, std::complex<double> b);

/// "3 ULP", for messages.
std::string to_string(const Tolerance& rule);

}  // namespace tenon::conformance
