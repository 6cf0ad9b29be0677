#include "conformance/compare/bounds.h"

#include <algorithm>

#include "conformance/compare/pattern.h"
#include "conformance/compare/tolerance.h"

namespace tenon::conformance {
namespace {

using hlo::OpCode;

// A narrow result is that of f32, rounded: half a unit, and a little where the error of f32 crosses
// the middle between two numbers.
constexpr double kNarrow = 1;

// Functions for which OpenCL (C 3.0, section 7.4, full profile) asks less than the op's row does: a
// device whose library conforms to OpenCL is right.
struct OpenClBound {
  OpCode op;
  double ulp;  // Of f32 and f64.
};
constexpr OpenClBound kOpenClBounds[] = {
    {OpCode::kAtan2, 6},
    {OpCode::kCbrt, 2},
    {OpCode::kCosine, 4},
    {OpCode::kExponential, 3},
    {OpCode::kExponentialMinusOne, 3},
    {OpCode::kLog, 3},
    {OpCode::kLogPlusOne, 2},
    {OpCode::kPower, 16},
    {OpCode::kRsqrt, 2},
    {OpCode::kSine, 4},
    {OpCode::kTan, 5},
    {OpCode::kTanh, 5},
    {OpCode::kChloAcos, 4},
    {OpCode::kChloAcosh, 4},
    {OpCode::kChloAsin, 4},
    {OpCode::kChloAsinh, 4},
    {OpCode::kChloAtan, 5},
    {OpCode::kChloAtanh, 5},
    {OpCode::kChloCosh, 4},
    {OpCode::kChloErf, 16},
    {OpCode::kChloErfc, 16},
    {OpCode::kChloSinh, 4},
    {OpCode::kChloTan, 5},
};

// OpenCL's bound of hypot, which is the absolute value of a complex number.
constexpr double kHypot = 4;

// A complex function is made of several real ones, whose errors add up.
constexpr double kComplex = 8;

// Whether the op treats the two parts of complex numbers by exact operations, each for itself.
bool works_by_parts(OpCode op) {
  constexpr OpCode kByParts[] = {
      OpCode::kAdd,     OpCode::kSubtract, OpCode::kNegate,  OpCode::kSelect,  OpCode::kMaximum,
      OpCode::kMinimum, OpCode::kClamp,    OpCode::kComplex, OpCode::kConvert, OpCode::kChloConj};
  return std::ranges::find(kByParts, op) != std::end(kByParts);
}

double required_of_row(OpCode op, ElementType type) {
  const OpCode judged = judged_as(op);
  const double row = std::max(hlo::op_info(judged).ulp_bound, 0);
  const bool is_function = hlo::op_info(judged).category == hlo::Category::kElementwise;
  if (is_complex(type) && is_function)
    return works_by_parts(judged)
               ? 0
               : kComplex * std::max(1.0, required_of_row(op, complex_part(type)));
  if (row == 0) return 0;
  if (bit_width(complex_part(type)) < 32) return std::max(kNarrow, row);
  const auto* const found = std::ranges::find(kOpenClBounds, judged, &OpenClBound::op);
  return found == std::end(kOpenClBounds) ? row : std::max(row, found->ulp);
}

}  // namespace

double required_ulp(const hlo::Instruction& op, ElementType type) {
  const bool is_abs = op.code() == OpCode::kAbs;
  if (is_abs && is_complex(op.operand_type(0).element_type())) return kHypot;
  return required_of_row(op.code(), type);
}

std::optional<double> required_ulp(std::string_view op, ElementType type) {
  const auto code = hlo::op_from_name(op);
  if (!code) return std::nullopt;
  // The absolute value of a real number is exact, and is in no ledger.
  return *code == OpCode::kAbs ? kHypot : required_of_row(*code, type);
}

double relaxed_ulp(std::span<const RelaxedBound> relaxed, std::string_view op, ElementType type) {
  double ulp = 0;
  for (const RelaxedBound& each : relaxed) {
    if (!matches(each.op, std::string(op))) continue;
    if (matches(each.type, std::string(name_of(type)))) ulp = std::max(ulp, each.ulp);
  }
  return ulp;
}

}  // namespace tenon::conformance
