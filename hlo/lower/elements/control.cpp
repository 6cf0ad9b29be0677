// if, case and while on values of rank 0, in regions of reductions and sorts, or as whole loops of
// scalars: they become control flow of the kernel.
#include <algorithm>

#include "hlo/lower/counted_loop.h"
#include "hlo/lower/elements/branches.h"
#include "hlo/lower/elements/rules.h"

namespace tenon::hlo::lower {
namespace {

bool all_scalar(const std::vector<Type>& types) {
  return std::all_of(types.begin(), types.end(),
                     [](const Type& type) { return type.is_tensor() && type.rank() == 0; });
}

bool is_elemental_region(const Computation& region) {
  for (const Instruction& op : region) {
    if (op.code() != OpCode::kReturn && !is_elemental(op)) return false;
  }
  return true;
}

Elements emit_while(ElementEmitter& e, const Instruction& op) {
  Elements inits;
  for (size_t i = 0; i < op.operand_count(); ++i) inits.push_back(e.element(op.operand(i), {}));
  const std::vector<ElementType> types = parameter_types(op.region(0));
  const auto position = [&](size_t counter) {
    return ElementEmitter::flat(
               {inits.begin(), inits.begin() + static_cast<std::ptrdiff_t>(counter)})
        .size();
  };
  const Values results = emit_loop(
      e.b, op, ElementEmitter::flat(inits), position,
      [&](const Values& state) {
        return Values{e.call(op.region(0), ElementEmitter::unflat(state, types))[0].re};
      },
      [&](const Values& state) {
        return ElementEmitter::flat(e.call(op.region(1), ElementEmitter::unflat(state, types)));
      });
  return ElementEmitter::unflat(results, types);
}

Elements emit_case(ElementEmitter& e, const Instruction& op, ValueId taken, BranchRange range) {
  if (range.end - range.begin == 1) return e.call(op.region(range.begin), {});
  const auto [left, right] = range.halves();
  return e.if_else(
      e.b.compare(K::kLt, taken, e.b.integer(kBranchType, static_cast<int64_t>(right.begin))),
      result_types(op.region(0)), [&] { return emit_case(e, op, taken, left); },
      [&] { return emit_case(e, op, taken, right); });
}

}  // namespace

bool has_elemental_regions(const Instruction& op) {
  for (size_t i = 0; i < op.region_count(); ++i) {
    if (!is_elemental_region(op.region(i))) return false;
  }
  return true;
}

ValueId taken_branch(kernel::Builder& b, const Instruction& op, ValueId index) {
  const auto last = static_cast<int64_t>(op.region_count()) - 1;
  // As unsigned, a negative number is greater than any other.
  return b.min(b.bitcast(index, kBranchType), b.integer(kBranchType, last));
}

namespace {

bool gives_numbers(const Instruction& op) {
  return op.result_count() != 0 && all_scalar(op.result_types());
}

Elements case_at(ElementEmitter& e, const Instruction& op, const Values&) {
  const ValueId taken = taken_branch(e.b, op, e.element(op.operand(0), {}).re);
  return emit_case(e, op, taken, {0, op.region_count()});
}
Elements if_at(ElementEmitter& e, const Instruction& op, const Values&) {
  return e.if_else(
      e.element(op.operand(0), {}).re, result_types(op.region(0)),
      [&] { return e.call(op.region(0), {}); }, [&] { return e.call(op.region(1), {}); });
}
Elements while_at(ElementEmitter& e, const Instruction& op, const Values&) {
  return emit_while(e, op);
}

Value result_of_body(ElementEmitter& e, Value result) {
  e.enter(*result.def);
  return result.def->region(0).return_instruction()->operand(result.index);
}
Value operand_of_barrier(ElementEmitter&, Value result) {
  return result.def->operand(result.index);
}

}  // namespace

namespace emit {
constinit const ElementRule case_op = {.at = case_at, .fits = gives_numbers};
constinit const ElementRule fusion = {.same_as = result_of_body};
constinit const ElementRule if_op = {.at = if_at, .fits = gives_numbers};
constinit const ElementRule optimization_barrier = {.same_as = operand_of_barrier};
constinit const ElementRule while_op = {.at = while_at, .fits = gives_numbers};
}  // namespace emit

bool is_elemental(const Instruction& op) {
  const ElementRule* const rule = op.info().element;
  return rule != nullptr && !op.info().is_decomposable() && has_elemental_regions(op) &&
         std::ranges::all_of(op.result_types(),
                             [](const Type& type) { return type.is_tensor(); }) &&
         (rule->fits == nullptr || rule->fits(op));
}

}  // namespace tenon::hlo::lower
