#include "conformance/compare/bounds.h"

#include <algorithm>
#include <optional>

namespace tenon::conformance {
namespace {

using hlo::OpCode;

constexpr std::string_view kOpenCl = "OpenCL C 3.0, 7.4, full profile";
constexpr std::string_view kRow = "the op's row";
// A narrow result is that of f32, rounded: half a unit, and a little where the error of f32 crosses
// the middle between two numbers.
constexpr double kNarrow = 1;

// Functions for which OpenCL's full profile asks less than the op's row does: a device whose
// library conforms to OpenCL is right.
struct OpenClBound {
  OpCode op;
  double f32;
  double f64;
};
constexpr OpenClBound kOpenClBounds[] = {
    {OpCode::kAtan2, 6, 6},
    {OpCode::kCbrt, 2, 2},
    {OpCode::kCosine, 4, 4},
    {OpCode::kExponential, 3, 3},
    {OpCode::kExponentialMinusOne, 3, 3},
    {OpCode::kLog, 3, 3},
    {OpCode::kLogPlusOne, 2, 2},
    {OpCode::kPower, 16, 16},
    {OpCode::kRsqrt, 2, 2},
    {OpCode::kSine, 4, 4},
    {OpCode::kTan, 5, 5},
    {OpCode::kTanh, 5, 5},
    {OpCode::kChloAcos, 4, 4},
    {OpCode::kChloAcosh, 4, 4},
    {OpCode::kChloAsin, 4, 4},
    {OpCode::kChloAsinh, 4, 4},
    {OpCode::kChloAtan, 5, 5},
    {OpCode::kChloAtanh, 5, 5},
    {OpCode::kChloCosh, 4, 4},
    {OpCode::kChloErf, 16, 16},
    {OpCode::kChloErfc, 16, 16},
    {OpCode::kChloSinh, 4, 4},
    {OpCode::kChloTan, 5, 5},
};

RequiredBound bound_of(OpCode op) {
  const double row = std::max(hlo::op_info(op).ulp_bound, 0);
  const auto* const found = std::ranges::find(kOpenClBounds, op, &OpenClBound::op);
  RequiredBound bound{op, row, row, row == 0 ? 0 : std::max(kNarrow, row), kRow};
  if (found == std::end(kOpenClBounds)) return bound;
  if (found->f32 > row || found->f64 > row) bound.source = kOpenCl;
  bound.f32 = std::max(row, found->f32);
  bound.f64 = std::max(row, found->f64);
  bound.narrow = std::max(kNarrow, row);
  return bound;
}

}  // namespace

double required_ulp(const hlo::Instruction& op, ElementType type) {
  // The absolute value of a real number is exact, that of a complex number is OpenCL's hypot.
  constexpr double kHypot = 4;
  if (op.code() == OpCode::kAbs && is_complex(op.operand_type(0).element_type())) return kHypot;
  const RequiredBound bound = bound_of(op.code());
  const ElementType part = complex_part(type);
  if (part == ElementType::kF64) return bound.f64;
  return part == ElementType::kF32 ? bound.f32 : bound.narrow;
}

std::vector<RequiredBound> required_bounds() {
  std::vector<RequiredBound> bounds;
  for (const hlo::OpInfo& op : hlo::all_ops()) {
    if (op.ulp_bound > 0) bounds.push_back(bound_of(op.code));
  }
  return bounds;
}

}  // namespace tenon::conformance
