#include "hlo/evaluator/error_bound.h"

#include <algorithm>

namespace tenon::hlo::error_bound {
namespace {

// The error bound of one application of a combiner, in half ULP; 0 if it is exact, as a maximum is.
int64_t roundings(const Computation& combiner) {
  int64_t count = 0;
  for (const Instruction& op : combiner) {
    switch (op.code()) {
      case OpCode::kAdd:
      case OpCode::kSubtract:
      case OpCode::kMultiply:
      case OpCode::kDivide:
      case OpCode::kSqrt:
        ++count;
        break;
      default:
        count += 2 * std::max(op.info().ulp_bound, 0);
    }
  }
  return count;
}

double count(const Type& type) { return static_cast<double>(element_count(type.dims())); }

}  // namespace

// An upper bound of the number of terms; the products round too.
double contraction(const Instruction& op) { return count(op.operand_type(0)) + 2; }

double elements(const Instruction& op) { return count(op.operand_type(0)); }

double reduce(const Instruction& op) {
  const double combined = count(op.operand_type(0)) / std::max(1.0, count(op.result_type()));
  return combined * static_cast<double>(roundings(op.region(0)));
}

double reduce_window(const Instruction& op) {
  const auto combined = static_cast<double>(element_count(op.i64s(AttrKey::window_dimensions)));
  return combined * static_cast<double>(roundings(op.region(0)));
}

double scan(const Instruction& op) {
  const auto length =
      op.operand_type(0).dims()[static_cast<size_t>(op.integer(AttrKey::dimension))];
  return static_cast<double>(length * roundings(op.region(0)));
}

double in_stated_order(const Instruction&) { return 0; }

}  // namespace tenon::hlo::error_bound
