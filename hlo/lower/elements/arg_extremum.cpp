#include "hlo/lower/elements/arg_extremum.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "core/types/float_convert.h"
#include "hlo/ir/region.h"
#include "hlo/types/comparison.h"

namespace tenon::hlo::lower {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kMostInstructions = 24;

bool is_value(const Type& type) {
  return type.is_tensor() && !type.is_quantized() &&
         (is_integer(type.element_type()) || is_float(type.element_type()));
}

enum class RoleInPair : uint8_t { kValue, kPlace, kTruth };

struct RoledNumber {
  double number;
  RoleInPair role;
};

// The result of an op of a region; nothing if it may depend on more than the order of the two
// values, and that of the two places.
std::optional<RoledNumber> compute(const Instruction& op, const std::vector<RoledNumber>& x) {
  const auto truth = [](bool value) { return RoledNumber{value ? 1.0 : 0.0, RoleInPair::kTruth}; };
  const bool truths =
      std::ranges::all_of(x, [](RoledNumber each) { return each.role == RoleInPair::kTruth; });
  const bool alike = x.size() == 2 && x[0].role == x[1].role && !truths;
  switch (op.code()) {
    case OpCode::kCompare:
      if (!alike ||
          op.enumeration<ComparisonType>(AttrKey::compare_type) == ComparisonType::kTotalOrder) {
        return std::nullopt;
      }
      return truth(holds(op.enumeration<ComparisonDirection>(AttrKey::comparison_direction),
                         x[0].number, x[1].number));
    case OpCode::kSelect:
      if (x[0].role != RoleInPair::kTruth || x[1].role != x[2].role) return std::nullopt;
      return x[0].number != 0 ? x[1] : x[2];
    case OpCode::kMinimum:
      if (!alike) return std::nullopt;
      return std::isnan(x[0].number) || x[0].number < x[1].number ? x[0] : x[1];
    case OpCode::kMaximum:
      if (!alike) return std::nullopt;
      return std::isnan(x[0].number) || x[0].number > x[1].number ? x[0] : x[1];
    case OpCode::kAnd:
      return truths ? std::optional(truth(x[0].number * x[1].number != 0)) : std::nullopt;
    case OpCode::kOr:
      return truths ? std::optional(truth(x[0].number + x[1].number != 0)) : std::nullopt;
    case OpCode::kNot:
      return truths ? std::optional(truth(x[0].number == 0)) : std::nullopt;
    default:
      return std::nullopt;
  }
}

using Pair = std::array<double, 2>;  // A value and its place.

// The combination of two pairs by the region.
std::optional<Pair> combine(const Computation& region, const Pair& left, const Pair& right) {
  std::map<std::pair<const Instruction*, uint32_t>, RoledNumber> known;
  for (uint32_t k = 0; k < 4; ++k) {
    const Value parameter = region.parameter(k);
    const double number = k < 2 ? left[k] : right[k - 2];
    known[{parameter.def, parameter.index}] = {
        number, k % 2 == 0 ? RoleInPair::kValue : RoleInPair::kPlace};
  }
  const auto operands_of = [&](const Instruction& op) -> std::optional<std::vector<RoledNumber>> {
    std::vector<RoledNumber> operands;
    for (const Value operand : op.operands()) {
      const auto found = known.find({operand.def, operand.index});
      if (found == known.end()) return std::nullopt;
      operands.push_back(found->second);
    }
    return operands;
  };
  for (const Instruction* op = region.first(); op != region.return_instruction(); op = op->next()) {
    const auto operands = operands_of(*op);
    if (!operands || operands->empty() || op->result_count() != 1) return std::nullopt;
    const auto result = compute(*op, *operands);
    if (!result) return std::nullopt;
    known[{op, 0}] = *result;
  }
  const auto results = operands_of(*region.return_instruction());
  if (!results || results->size() != 2 || (*results)[0].role != RoleInPair::kValue ||
      (*results)[1].role != RoleInPair::kPlace) {
    return std::nullopt;
  }
  return Pair{(*results)[0].number, (*results)[1].number};
}

// Whether `got` has the lower place of the greatest value, or of the least; equal numbers and two
// NaNs are as great as each other.
bool is_extreme(const Pair& got, const Pair& left, const Pair& right, bool greatest) {
  const bool nan_left = std::isnan(left[0]);
  const bool nan_right = std::isnan(right[0]);
  const bool same = (nan_left && nan_right) || left[0] == right[0];
  const bool is_left =
      nan_left || (!nan_right && (greatest ? left[0] > right[0] : left[0] < right[0]));
  const Pair& taken = same ? (left[1] < right[1] ? left : right) : is_left ? left : right;
  const bool equal = std::isnan(taken[0]) ? std::isnan(got[0]) : got[0] == taken[0];
  return equal && got[1] == taken[1];
}

// Every order of two values and of two places.
bool finds(const Computation& region, bool greatest, bool floats, bool ascending) {
  std::vector<double> values = {0, 1};
  if (floats) values.push_back(kNan);
  std::vector<std::array<double, 2>> places = {{0, 1}, {0, 0}};
  if (!ascending) places.push_back({1, 0});
  for (const double x : values) {
    for (const double y : values) {
      for (const auto& [i, j] : places) {
        const Pair left = {x, i};
        const Pair right = {y, j};
        const auto got = combine(region, left, right);
        if (!got || !is_extreme(*got, left, right, greatest)) return false;
      }
    }
  }
  return true;
}

}  // namespace

bool places_ascend(const Instruction& reduce) {
  const I64s& dimensions = reduce.i64s(AttrKey::dimensions);
  const Instruction& places = *reduce.operand(1).def;
  const Instruction& first = *reduce.operand(3).def;
  if (dimensions.size() != 1 || places.code() != OpCode::kIota ||
      places.integer(AttrKey::iota_dimension) != dimensions[0] ||
      first.code() != OpCode::kConstant) {
    return false;
  }
  const Type& type = reduce.operand_type(1);
  const int64_t count = type.dims()[static_cast<size_t>(dimensions[0])];
  // Places of 64 bits hold the number of every element.
  const bool fits =
      bit_width(type.element_type()) == 64 || count - 1 <= integer_max(type.element_type());
  const int64_t init = first.attr<DenseAttr>(AttrKey::value)->values.get_integer(0);
  return fits && (init == 0 || (init < 0 && is_signed_integer(type.element_type())));
}

std::optional<Extremum> find_arg_extremum(const Instruction& reduce) {
  const Computation& region = reduce.region(0);
  if (reduce.code() != OpCode::kReduce || reduce.operand_count() != 4) return std::nullopt;
  const Type& type = reduce.operand_type(0);
  if (!is_value(type) || !is_value(reduce.operand_type(1)) ||
      !is_integer(reduce.operand_type(1).element_type()) || !combines_accumulators(region) ||
      region.parameter(0).type().element_type() != type.element_type() ||
      region.parameter(1).type().element_type() != reduce.operand_type(1).element_type()) {
    return std::nullopt;
  }
  size_t instructions = 0;
  for (const Instruction* op = region.first(); op != region.return_instruction(); op = op->next()) {
    if (++instructions > kMostInstructions) return std::nullopt;
  }
  const bool floats = is_float(type.element_type());
  const bool is_used = std::ranges::any_of(
      reduce.uses(), [&](const Use& use) { return use.user->operand(use.operand).index == 0; });
  if (floats && is_used) return std::nullopt;
  for (const bool ascending : {false, true}) {
    // JAX takes the left one of two NaNs, whose place is the lower if places ascend.
    if (ascending && !places_ascend(reduce)) break;
    if (finds(region, true, floats, ascending)) return Extremum::kGreatest;
    if (finds(region, false, floats, ascending)) return Extremum::kLeast;
  }
  return std::nullopt;
}

}  // namespace tenon::hlo::lower
