#include "hlo/lower/counted_loop.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "core/kernel/analysis/ranges.h"
#include "hlo/inference/infer_util.h"
#include "hlo/lower/elements/contraction.h"

namespace tenon::hlo::lower {
namespace {

using kernel::Builder;
using kernel::ValueId;
using kernel::Values;

// The most turns of a `for`, and the most operations on elements between two looks at the stop
// flag: tens of milliseconds.
constexpr int64_t kMostTurns = 1 << 16;
constexpr double kMostWork = 1 << 24;

std::optional<int64_t> constant_number(Value value) {
  const std::optional<I64s> all = infer::constant_integers(value);
  if (!all || all->size() != 1) return std::nullopt;
  // The bits of an unsigned number that no int64_t holds.
  const bool is_huge = all->front() < 0 && is_unsigned_integer(value.type().element_type());
  return is_huge ? std::nullopt : std::optional(all->front());
}

std::optional<size_t> parameter_number(const Computation& region, Value value) {
  for (size_t i = 0; i < region.parameter_count(); ++i) {
    if (region.parameter(i) == value) return i;
  }
  return std::nullopt;
}

// A condition `counter direction limit`.
struct Limit {
  size_t counter;
  ComparisonDirection direction;
  int64_t limit;
};

ComparisonDirection mirrored(ComparisonDirection direction) {
  switch (direction) {
    case ComparisonDirection::kLt:
      return ComparisonDirection::kGt;
    case ComparisonDirection::kLe:
      return ComparisonDirection::kGe;
    case ComparisonDirection::kGt:
      return ComparisonDirection::kLt;
    case ComparisonDirection::kGe:
      return ComparisonDirection::kLe;
    default:
      return direction;
  }
}

std::optional<Limit> limit_of(const Computation& condition) {
  const Instruction& compare = *condition.return_instruction()->operand(0).def;
  if (compare.code() != OpCode::kCompare) return std::nullopt;
  const auto direction = compare.enumeration<ComparisonDirection>(AttrKey::comparison_direction);
  for (const size_t side : {0u, 1u}) {
    const auto counter = parameter_number(condition, compare.operand(side));
    const auto limit = constant_number(compare.operand(1 - side));
    if (counter && limit)
      return Limit{*counter, side == 0 ? direction : mirrored(direction), *limit};
  }
  return std::nullopt;
}

// The number that a turn adds to part `counter` of the state.
std::optional<int64_t> step_of(const Computation& body, size_t counter) {
  const Instruction& next = *body.return_instruction()->operand(counter).def;
  const bool subtracts = next.code() == OpCode::kSubtract;
  if (next.code() != OpCode::kAdd && !subtracts) return std::nullopt;
  for (const size_t side : {0u, 1u}) {
    const auto step = constant_number(next.operand(1 - side));
    if (!step || next.operand(side) != body.parameter(counter)) continue;
    if (!subtracts) return step;
    const bool negates = side == 0 && *step != std::numeric_limits<int64_t>::min();
    return negates ? std::optional(-*step) : std::nullopt;
  }
  return std::nullopt;
}

// Turns while `first + turns * step` is less (or no greater) than `limit`. If the loop counts down,
// all signs are turned first. Nothing for other comparisons.
std::optional<__int128> turns_of(const Limit& to, __int128 first, __int128 step) {
  __int128 limit = to.limit;
  ComparisonDirection direction = to.direction;
  if (step < 0) {
    direction = mirrored(direction);
    first = -first;
    step = -step;
    limit = -limit;
  }
  if (direction == ComparisonDirection::kLe) ++limit;
  const bool ascends =
      direction == ComparisonDirection::kLt || direction == ComparisonDirection::kLe;
  if (!ascends || step == 0) return std::nullopt;
  return std::max<__int128>(0, (limit - first + step - 1) / step);
}

std::optional<CountedLoop> count_of(const Instruction& op) {
  const std::optional<Limit> limit = limit_of(op.region(0));
  if (!limit) return std::nullopt;
  const auto first = constant_number(op.operand(limit->counter));
  const auto step = step_of(op.region(1), limit->counter);
  if (!first || !step) return std::nullopt;
  const std::optional<__int128> turns = turns_of(*limit, *first, *step);
  if (!turns || *turns > INT64_MAX) return std::nullopt;
  const kernel::IntegerRange type =
      kernel::range_of_type(op.operand_type(limit->counter).element_type());
  const __int128 last = *first + *turns * *step;
  if (last < type.low || last > type.high) return std::nullopt;
  return CountedLoop{limit->counter, *first, *step, static_cast<int64_t>(*turns),
                     static_cast<int64_t>(last)};
}

double most_elements(const std::vector<Type>& types) {
  int64_t most = 1;
  for (const Type& type : types) {
    if (type.is_tensor()) most = std::max(most, element_count(type.dims()));
  }
  return static_cast<double>(most);
}

std::vector<Type> operand_types(const Instruction& op) {
  std::vector<Type> types;
  for (size_t i = 0; i < op.operand_count(); ++i) types.push_back(op.operand_type(i));
  return types;
}

// How often the ops around `op`, up to the next loop, may run it: at most once for each element.
double times_around(const Instruction& op) {
  double times = 1;
  for (const Instruction* at = op.parent()->owner(); at != nullptr; at = at->parent()->owner()) {
    if (at->code() == OpCode::kWhile) break;
    if (at->code() == OpCode::kIf || at->code() == OpCode::kCase) continue;
    times *= std::max(most_elements(operand_types(*at)), most_elements(at->result_types()));
  }
  return times;
}

// An upper estimate of the operations of an op without its regions.
double own_work(const Instruction& op) {
  const double results = most_elements(op.result_types());
  if (op.code() == OpCode::kDotGeneral) {
    return results * static_cast<double>(element_count(DotShape(op).k));
  }
  const auto elements_of = [&](size_t operand) {
    return most_elements({op.operand_type(operand)});
  };
  // Only the part that changes: long arrays are updated in place.
  if (op.code() == OpCode::kDynamicUpdateSlice) return elements_of(1);
  if (op.code() == OpCode::kScatter) return elements_of(op.result_count() + 1);
  const double operands = most_elements(operand_types(op));
  if (op.code() == OpCode::kReduce) return std::max(results, operands);
  const Category category = op.info().category;
  const bool combines = category == Category::kReduction || category == Category::kContraction;
  return combines ? results * operands : results;
}

bool is_brief(const Instruction& op, const CountedLoop& loop, double work_of_turn) {
  return loop.turns <= kMostTurns &&
         times_around(op) * static_cast<double>(loop.turns) * work_of_turn <= kMostWork;
}

// The operations of the regions of `op`, each once, both branches of a choice too. A loop within
// them that counts runs all of its turns; another polls the stop flag in each.
double work_within(const Instruction& op) {
  double work = 0;
  for (size_t r = 0; r < op.region_count(); ++r) {
    for (const Instruction& inner : op.region(r)) {
      const double within = work_within(inner);
      if (inner.code() == OpCode::kWhile) {
        const std::optional<CountedLoop> loop = count_of(inner);
        const bool counts = loop && is_brief(inner, *loop, within);
        work += counts ? static_cast<double>(std::max<int64_t>(loop->turns, 1)) * within : within;
      } else if (inner.code() == OpCode::kFusion || inner.code() == OpCode::kIf ||
                 inner.code() == OpCode::kCase) {
        work += within;
      } else if (inner.code() != OpCode::kConstant && inner.code() != OpCode::kReturn) {
        work += own_work(inner) * (1 + within);
      }
    }
  }
  return work;
}

Values without(Values values, size_t position) {
  values.erase(values.begin() + static_cast<std::ptrdiff_t>(position));
  return values;
}
Values with(Values values, size_t position, ValueId value) {
  values.insert(values.begin() + static_cast<std::ptrdiff_t>(position), value);
  return values;
}

}  // namespace

std::optional<CountedLoop> counted_loop(const Instruction& op) {
  const std::optional<CountedLoop> loop = count_of(op);
  return loop && is_brief(op, *loop, work_within(op)) ? loop : std::nullopt;
}

std::optional<int64_t> known_turns(const Instruction& op) {
  const std::optional<CountedLoop> loop = count_of(op);
  return loop ? std::optional(loop->turns) : std::nullopt;
}

Values emit_loop(Builder& b, const Instruction& op, const Values& inits,
                 const std::function<size_t(size_t counter)>& position,
                 const Builder::ValueBody& condition, const Builder::ValueBody& body) {
  const std::optional<CountedLoop> loop = counted_loop(op);
  if (!loop) return b.while_loop(inits, condition, body);
  const size_t at = position(loop->counter);
  const ElementType type = b.type_of(inits[at]);
  const auto counter = [&](ValueId turn) {
    ValueId value = b.convert(turn, type);
    if (loop->step != 1) value = b.mul(value, b.integer(type, loop->step));
    return loop->first == 0 ? value : b.add(value, b.integer(type, loop->first));
  };
  const Values results = b.for_loop(
      b.index(0), b.index(loop->turns), 1, without(inits, at), [&](const Values& arguments) {
        const Values state = with(without(arguments, 0), at, counter(arguments[0]));
        return without(body(state), at);
      });
  return with(results, at, b.integer(type, loop->last));
}

}  // namespace tenon::hlo::lower
