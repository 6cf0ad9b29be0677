#include "conformance/compare/tolerance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "conformance/compare/bounds.h"
#include "conformance/compare/whole_result.h"
#include "core/types/float_convert.h"

namespace tenon::conformance {
namespace {

using hlo::Instruction;
using hlo::OpCode;
using Kind = Tolerance::ToleranceKind;

// Whether the op adds narrow floats in f32, and rounds the sum once (docs/numerics.md, "Exact
// operations"): products of two arrays, and sums by a region that is one `add`.
bool accumulates_in_f32(const Instruction& op) {
  if (op.info().category == hlo::Category::kContraction) return true;
  if (op.code() != OpCode::kReduce && op.code() != OpCode::kReduceWindow) return false;
  const hlo::Computation& body = op.region(0);
  const Instruction* const first = body.first();
  return first != nullptr && first->code() == OpCode::kAdd && first->next() != nullptr &&
         first->next()->code() == OpCode::kReturn && first->result_count() == 1;
}

// The least number of the operands' types, squared: products and single numbers are multiples of
// it.
double quantum_of(const Instruction& op) {
  double least = 1;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const ElementType type = op.operand(i).type().element_type();
    if (is_float(type)) least = std::min(least, decode_float(type, 1));
  }
  return least * least;
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double greatest(ElementType type) { return decode_float(type, encode_float(type, HUGE_VAL) - 1); }

}  // namespace

OpCode judged_as(OpCode op) {
  constexpr std::string_view kPrefix = "broadcast_";
  const std::string_view name = hlo::op_info(op).short_name();
  if (hlo::op_info(op).dialect() != "chlo" || !name.starts_with(kPrefix)) return op;
  const std::string_view base = name.substr(kPrefix.size());
  if (const auto found = hlo::op_from_name(fmt::format("stablehlo.{}", base))) return *found;
  return hlo::op_from_name(fmt::format("chlo.{}", base)).value_or(op);
}

Tolerance tolerance_of(const Instruction& op, uint32_t result) {
  Tolerance rule;
  const hlo::Type& type = op.result_type(result);
  const ElementType element = type.element_type();
  const hlo::OpInfo& info = hlo::op_info(judged_as(op.code()));
  if (has_rule_of_its_own(op.code())) {
    rule.kind = Kind::kWhole;
    return rule;
  }
  if (type.is_quantized()) {
    // An inexact function may cross the middle between two stored integers.
    const bool exact = info.ulp_bound == 0;
    rule.kind = exact ? Kind::kExact : Kind::kStored;
    rule.ulps = 1;
    return rule;
  }
  if (!is_float(element) && !is_complex(element)) return rule;
  if (info.terms != nullptr) {
    rule.terms = info.terms(op);
    if (rule.terms == 0) return rule;
    rule.kind = Kind::kSum;
    const ElementType part = complex_part(element);
    rule.accumulator = bit_width(part) < 32 && accumulates_in_f32(op) ? ElementType::kF32 : part;
    if (rule.accumulator != part) rule.quantum = quantum_of(op);
    return rule;
  }
  rule.ulps = required_ulp(op, element);
  if (rule.ulps > 0) rule.kind = Kind::kUlps;
  return rule;
}

double epsilon(ElementType type) {
  const double above = decode_float(type, encode_float(type, 1.0) + 1);
  return (above - 1) / 2;
}

bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

bool same_bits(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

double complex_error(ElementType part, std::complex<double> a, std::complex<double> b) {
  if (same_number(a.real(), b.real()) && same_number(a.imag(), b.imag())) return 0;
  const double size = std::abs(b);
  // If parts overflow in intermediate results, the result is unspecified.
  if (!(size < greatest(part) / 16)) return 0;
  const double error = std::abs(a - b) / (2 * epsilon(part) * size + 2 * decode_float(part, 1));
  return std::isnan(error) ? kInfinity : error;
}

bool is_sum_of_special_terms(double a, double b) {
  if (std::isnan(b)) return std::isnan(a);
  return a == b || std::isnan(a);
}

double sum_error(const Tolerance& rule, ElementType type, double a, double b, double terms_size) {
  if (same_number(a, b)) return 0;
  // Rounded once, in every order.
  constexpr double kExactInF32 = 1 << 24;
  if (rule.quantum > 0 && terms_size <= kExactInF32 * rule.quantum) return kInfinity;
  // A sum of special values may combine infinities in another order.
  if (!std::isfinite(terms_size) || std::isnan(b)) return 0;
  // Partial sums may overflow; in a wider accumulator only the result may.
  if (terms_size > greatest(rule.accumulator) / 4) return 0;
  if (rule.accumulator != type && !(std::abs(b) <= greatest(type) / 4)) return 0;
  const double least = decode_float(type, 1);
  double bound = (rule.terms + 1) * 2 * epsilon(rule.accumulator) * terms_size;
  if (rule.accumulator == type) {
    bound += least * (rule.terms + 1);
  } else {
    // `b` is rounded too, so that two roundings lie between it and `a`.
    bound += 2 * epsilon(type) * std::max(std::abs(a), std::abs(b)) + least;
  }
  const double error = std::abs(a - b) / bound;
  return std::isnan(error) ? kInfinity : error;
}

std::string to_string(const Tolerance& rule) {
  switch (rule.kind) {
    case Kind::kExact:
      return "exact";
    case Kind::kUlps:
      return fmt::format("{:g} ULP", rule.ulps);
    case Kind::kSum:
      return "n eps sum|terms|";
    case Kind::kStored:
      return fmt::format("{:g} stored", rule.ulps);
    case Kind::kWhole:
      return "of the op";
  }
  return {};
}

}  // namespace tenon::conformance
