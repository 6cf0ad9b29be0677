#include "hlo/lower/schedules/control_form.h"

#include <algorithm>
#include <set>

#include "hlo/lower/elements/contraction.h"
#include "hlo/lower/elements/emitter.h"
#include "hlo/lower/uses.h"

namespace tenon::hlo::lower {
namespace {

bool combines(const Instruction& op) {
  const Category category = op.info().category;
  return category == Category::kReduction || category == Category::kContraction;
}

// --- In one lane

// Whether the work of the region is too small for more than one lane. `combining` counts the ops
// that combine elements.
bool is_small(const Computation& region, int& combining) {
  constexpr int64_t kMost = 16;
  for (const Instruction& op : region) {
    for (const Type& type : op.result_types()) {
      if (type.is_tensor() && element_count(type.dims()) > kMost) return false;
    }
    for (size_t i = 0; combines(op) && i < op.operand_count(); ++i) {
      if (element_count(op.operand_type(i).dims()) > kMost) return false;
    }
    // A nested one is computed again for each element.
    if (combines(op) && ++combining > 1) return false;
    for (size_t i = 0; i < op.region_count(); ++i) {
      int inside = 0;
      // Combining ops in a fusion count together with those around it.
      if (!is_small(op.region(i), op.code() == OpCode::kFusion ? combining : inside)) return false;
    }
  }
  return true;
}

bool fits_lane(const Instruction& op) {
  if (!is_elemental(op)) return false;
  for (size_t i = 0; i < op.region_count(); ++i) {
    int combining = 0;
    if (!is_small(op.region(i), combining)) return false;
  }
  return true;
}

// --- In one workgroup

// Whether an array is so large that it should use more than one workgroup.
bool is_long(const Type& type, const CostModel& cost) {
  return element_count(type.dims()) > cost.workgroup_elements;
}

bool has_few_updates(const Instruction& scatter, const CostModel& cost) {
  return !is_long(scatter.operand_type(scatter.result_count()), cost) &&
         !is_long(scatter.operand_type(scatter.result_count() + 1), cost);
}

// Whether the op that defines `value` changes no more of it than a single workgroup should.
bool changes_small_part(Value value, const CostModel& cost) {
  const Instruction& op = *value.def;
  if (op.code() == OpCode::kDynamicUpdateSlice) return !is_long(op.operand_type(1), cost);
  return op.code() != OpCode::kScatter || (has_elemental_regions(op) && has_few_updates(op, cost));
}

// Whether array `i` of the state of `op`, a while, may use the memory of the result: each iteration
// changes a small part of it.
bool may_lie_in_result(const Instruction& op, uint32_t i, const CostModel& cost) {
  const Type& type = op.result_type(i);
  if (!type.is_tensor() || !type.shape().is_static() || is_number(type)) return false;
  const auto chain = update_chain(op, i);
  return chain &&
         std::ranges::all_of(*chain, [&](Value value) { return changes_small_part(value, cost); });
}

// Counts the scratch memory for the arrays in the region.
class WorkgroupSizer {
 public:
  /// For a top-level op. `in_results` states which arrays of a loop's state use the memory of its
  /// results.
  WorkgroupSizer(const Instruction& op, const std::vector<bool>& in_results, const CostModel& cost)
      : cost_(cost) {
    for (uint32_t i = 0; i < in_results.size(); ++i) {
      if (!in_results[i]) continue;
      const auto chain = update_chain(op, i);
      for (const Value value : *chain) in_place_.insert({value.def, value.index});
      in_place_.insert({&op, i});
    }
  }

  /// False if `op` cannot be lowered in a workgroup.
  bool add(const Instruction& op) {
    for (uint32_t r = 0; r < op.result_count(); ++r) {
      const Type& type = op.result_type(r);
      if (!type.is_tensor() || !type.shape().is_static()) return false;
      if (in_place_.contains({&op, r})) continue;
      if (is_long(type, cost_)) return false;
      // Once as a value and once as the result of the control flow.
      bytes_ += is_number(type) ? 0 : 2 * type.shape().byte_size();
    }
    if (is_control(op.code())) return add_regions(op);
    if (op.code() == OpCode::kScatter)
      return changes_small_part({const_cast<Instruction*>(&op), 0}, cost_);
    return op.code() == OpCode::kConstant || (is_elemental(op) && is_cheap(op));
  }
  int64_t bytes() const { return bytes_; }

 private:
  bool add_regions(const Instruction& op) {
    for (size_t i = 0; i < op.region_count(); ++i) {
      const Computation& region = op.region(i);
      if (op.code() == OpCode::kWhile && i == 0 && !is_condition(region)) return false;
      for (size_t p = 0; p < region.parameter_count(); ++p) {
        if (!region.parameter(p).type().is_tensor()) return false;
      }
      for (const Instruction& inner : region) {
        if (inner.code() != OpCode::kReturn && !add(inner)) return false;
      }
    }
    return true;
  }

  // A condition contains only computation: its ops are emitted where they are used, so that nested
  // loops would multiply the work.
  static bool is_condition(const Computation& region) {
    const auto holds = [&](auto what) { return std::count_if(region.begin(), region.end(), what); };
    return holds([](const Instruction& op) { return is_control(op.code()); }) == 0 &&
           holds(combines) <= 1;
  }

  bool is_cheap(const Instruction& op) const {
    if (op.code() == OpCode::kFusion) {
      const Computation& body = op.region(0);
      return std::count_if(body.begin(), body.end(), combines) <= 1 &&
             std::all_of(body.begin(), body.end(),
                         [&](const Instruction& inner) { return is_cheap(inner); });
    }
    // Where lanes are many, one workgroup computes a product sooner than the host launches it, if
    // each result, which is a lane's, has few leaves.
    if (op.code() == OpCode::kDotGeneral && cost_.busy_lanes >= cost_.many_lanes) {
      const int64_t leaves = element_count(DotShape(op).k);
      return leaves <= cost_.workgroup_leaves &&
             leaves * element_count(op.result_type().dims()) <= cost_.workgroup_products;
    }
    int64_t work = 1;
    for (size_t i = 0; combines(op) && i < op.operand_count(); ++i) {
      work *= std::max<int64_t>(1, element_count(op.operand_type(i).dims()));
      if (work > cost_.workgroup_products) return false;
    }
    return true;
  }

  const CostModel& cost_;
  int64_t bytes_ = 0;
  std::set<std::pair<const Instruction*, uint32_t>> in_place_;  // Values in the memory of results.
};

}  // namespace

bool is_control(OpCode code) {
  return code == OpCode::kWhile || code == OpCode::kIf || code == OpCode::kCase;
}

bool is_number(const Type& type) { return element_count(type.dims()) == 1; }

std::optional<WorkgroupForm> workgroup_form(const Instruction& op, const LowerLimits& limits) {
  if (op.result_count() == 0) return std::nullopt;
  const uint32_t states = op.code() == OpCode::kWhile ? op.result_count() : 0;
  std::vector<bool> may(states);
  for (uint32_t i = 0; i < states; ++i) may[i] = may_lie_in_result(op, i, limits.cost);
  // Short arrays are better in scratch memory, as long as there is enough, because they need no
  // initialisation.
  for (const bool only_long : {true, false}) {
    WorkgroupForm form;
    for (uint32_t i = 0; i < states; ++i) {
      form.in_results.push_back(may[i] && (!only_long || is_long(op.result_type(i), limits.cost)));
    }
    WorkgroupSizer sizer(op, form.in_results, limits.cost);
    if (!sizer.add(op)) return std::nullopt;
    if (sizer.bytes() <= limits.scratch_bytes) return form;
  }
  return std::nullopt;
}

ControlForm control_form(const Instruction& op, const LowerLimits& limits) {
  if (fits_lane(op)) return ControlForm::kLane;
  return workgroup_form(op, limits) ? ControlForm::kWorkgroup : ControlForm::kSteps;
}

}  // namespace tenon::hlo::lower
