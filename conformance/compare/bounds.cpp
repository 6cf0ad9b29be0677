#include "conformance/compare/bounds.h"

#include <algorithm>

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

}  // namespace

double required_ulp(const hlo::Instruction& op, ElementType type) {
  // The absolute value of a real number is exact, that of a complex number is OpenCL's hypot.
  constexpr double kHypot = 4;
  if (op.code() == OpCode::kAbs && is_complex(op.operand_type(0).element_type())) return kHypot;
  const OpCode judged = judged_as(op.code());
  const double row = std::max(hlo::op_info(judged).ulp_bound, 0);
  if (row == 0) return 0;
  const ElementType part = complex_part(type);
  if (bit_width(part) < 32) return std::max(kNarrow, row);
  const auto* const found = std::ranges::find(kOpenClBounds, judged, &OpenClBound::op);
  return found == std::end(kOpenClBounds) ? row : std::max(row, found->ulp);
}

}  // namespace tenon::conformance
