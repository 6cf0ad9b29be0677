// if, case and while on values of rank 0, as they stand in regions of reductions and sorts, or as
// whole loops of scalars: control flow of the kernel.
#include <algorithm>

#include "hlo/lower/elements/branches.h"
#include "hlo/lower/elements/emitter.h"

namespace tenon::hlo::lower {
namespace {

using K = kernel::OpCode;

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
  const Values results = e.b.while_loop(
      ElementEmitter::flat(inits),
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
  // As an unsigned number a negative one is greater than any.
  return b.min(b.bitcast(index, kBranchType), b.integer(kBranchType, last));
}

Elements emit_control(ElementEmitter& e, const Instruction& op, const Values&) {
  if (!is_elemental(op)) {
    e.fail(op, "there is no rule for one element");
    return {};
  }
  switch (op.code()) {
    case OpCode::kWhile:
      return emit_while(e, op);
    case OpCode::kIf:
      return e.if_else(
          e.element(op.operand(0), {}).re, result_types(op.region(0)),
          [&] { return e.call(op.region(0), {}); }, [&] { return e.call(op.region(1), {}); });
    case OpCode::kCase:
      return emit_case(e, op, taken_branch(e.b, op, e.element(op.operand(0), {}).re),
                       {0, op.region_count()});
    default:
      e.fail(op, "there is no rule for one element");
      return {};
  }
}

bool is_elemental(const Instruction& op) {
  switch (op.code()) {
    case OpCode::kSort:
    case OpCode::kScatter:
    case OpCode::kSetDimensionSize:
      return false;
    case OpCode::kGather:
    case OpCode::kRngBitGenerator:
    case OpCode::kOptimizationBarrier:
    case OpCode::kFusion:
      return has_elemental_regions(op) &&
             std::all_of(op.result_types().begin(), op.result_types().end(),
                         [](const Type& type) { return type.is_tensor(); });
    case OpCode::kWhile:
    case OpCode::kIf:
    case OpCode::kCase:
      return all_scalar(op.result_types()) && op.result_count() != 0 && has_elemental_regions(op);
    default:
      break;
  }
  switch (op.info().category) {
    case Category::kElementwise:
    case Category::kShape:
    case Category::kReduction:
    case Category::kContraction:
      return !op.info().is_decomposable() && has_elemental_regions(op);
    default:
      return false;
  }
}

}  // namespace tenon::hlo::lower
