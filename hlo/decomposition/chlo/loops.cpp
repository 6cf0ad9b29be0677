// CHLO ops over rows: top_k by sorting, scans by a loop.
#include <algorithm>

#include "hlo/decomposition/decomposition_util.h"
#include "hlo/inference/infer.h"

namespace tenon::hlo::decomposition {
namespace {

// A comparator of (value, value, index, index) for descending order. Floats are in total order, in
// which a positive NaN is greater than everything.
std::unique_ptr<Computation> descending(Builder& b, ElementType value, ElementType index) {
  auto region = std::make_unique<Computation>();
  std::vector<Value> parameters;
  for (const ElementType type : {value, value, index, index}) {
    parameters.push_back(region->add_parameter(Type::tensor(type, {})));
  }
  Builder inner(*region);
  const ComparisonType order =
      is_float(value) ? ComparisonType::kTotalOrder : ComparisonType::kNoType;
  b.fail(
      inner.finish({inner.compare(ComparisonDirection::kGt, parameters[0], parameters[1], order)}));
  return region;
}

}  // namespace

Values chlo_top_k(Builder& b, const Instruction& op) {
  TENON_TRY(check_static(op));
  const Type& type = op.operand_type(0);
  const int64_t axis = type.rank() - 1;
  const ElementType index = op.result_type(1).element_type();
  std::vector<std::unique_ptr<Computation>> regions;
  regions.push_back(descending(b, type.element_type(), index));
  Instruction* sorted =
      b.create(OpCode::kSort, {op.operand(0), b.iota(index, type.dims(), axis)},
               {{AttrKey::dimension, axis},
                {AttrKey::is_stable, Attribute(op.flag(AttrKey::is_stable, true))}},
               {}, std::move(regions));
  if (sorted == nullptr) return Error(b.status());
  std::vector<Value> results;
  for (uint32_t i = 0; i < 2; ++i) {
    results.push_back(
        b.slice(sorted->result(i), I64s(at(type.rank()), 0), op.result_type(i).dims()));
  }
  return finished(b, std::move(results));
}

namespace {

class ScanLoop {
 public:
  explicit ScanLoop(const Instruction& op)
      : op_(op),
        axis_(op.integer(AttrKey::dimension)),
        inputs_(infer::scan_input_count(op)),
        carries_(op.operand_count() - inputs_),
        outputs_(op.result_count() - carries_),
        steps_(step_count()) {}

  Values decompose(Builder& b) const {
    std::vector<Value> outputs;
    for (size_t i = 0; i < outputs_; ++i) {
      const Type& type = op_.result_type(i);
      const Value zeros = b.splat(type.shape(), 0);
      outputs.push_back(type.is_quantized() ? b.bitcast(zeros, type) : zeros);
    }
    std::vector<Value> carries;
    for (size_t i = 0; i < carries_; ++i) carries.push_back(op_.operand(inputs_ + i));
    if (steps_ != 0) {
      std::vector<Value> state = {b.i64_constant(0)};
      state.insert(state.end(), carries.begin(), carries.end());
      state.insert(state.end(), outputs.begin(), outputs.end());
      state = b.while_loop(
          state,
          [this](Builder& inner, const std::vector<Value>& s) {
            return inner.compare(ComparisonDirection::kLt, s[0], inner.i64_constant(steps_));
          },
          [this](Builder& inner, const std::vector<Value>& s) { return step(inner, s); });
      const auto first_output = state.begin() + 1 + static_cast<int64_t>(carries_);
      carries.assign(state.begin() + 1, first_output);
      outputs.assign(first_output, state.end());
    }
    outputs.insert(outputs.end(), carries.begin(), carries.end());
    return finished(b, std::move(outputs));
  }

 private:
  int64_t step_count() const {
    if (inputs_ != 0) return op_.operand_type(0).dims()[at(axis_)];
    if (outputs_ != 0) return op_.result_type(0).dims()[at(axis_)];
    return op_.integer(AttrKey::scan_dim_size);
  }

  std::vector<Value> starts(Builder& b, int64_t rank, Value position) const {
    std::vector<Value> starts = zero_starts(b, at(rank));
    starts[at(axis_)] = position;
    return starts;
  }

  // The state after a step: index of the step, carries, outputs.
  std::vector<Value> step(Builder& b, const std::vector<Value>& state) const {
    const Value position =
        op_.flag(AttrKey::is_reverse) ? b.sub(b.i64_constant(steps_ - 1), state[0]) : state[0];
    std::vector<Value> arguments;
    for (size_t i = 0; i < inputs_; ++i) {
      const Value input = op_.operand(i);
      Dims sizes = input.type().dims();
      sizes[at(axis_)] = 1;
      const Value slice = b.dynamic_slice(input, starts(b, input.type().rank(), position), sizes);
      sizes.erase(sizes.begin() + axis_);
      arguments.push_back(b.reshape(slice, sizes));
    }
    for (size_t i = 0; i < carries_; ++i) arguments.push_back(state[1 + i]);
    const std::vector<Value> made = call_body(b, arguments);
    if (!b.ok()) return {};
    std::vector<Value> next = {b.add(state[0], b.i64_constant(1))};
    next.insert(next.end(), made.begin() + static_cast<int64_t>(outputs_), made.end());
    for (size_t i = 0; i < outputs_; ++i) {
      const Value output = state[1 + carries_ + i];
      Dims dims = made[i].type().dims();
      dims.insert(dims.begin() + axis_, 1);
      next.push_back(b.dynamic_update_slice(output, b.reshape(made[i], dims),
                                            starts(b, output.type().rank(), position)));
    }
    return next;
  }

  // Copies the body's instructions in place.
  std::vector<Value> call_body(Builder& b, const std::vector<Value>& arguments) const {
    if (!b.ok()) return {};
    const Computation& body = op_.region(0);
    Cloner cloner;
    for (size_t i = 0; i < arguments.size(); ++i) cloner.map(body.parameter(i), arguments[i]);
    std::vector<Value> results;
    for (const Instruction& inner : body) {
      if (inner.code() != OpCode::kReturn) {
        if (b.create(cloner.clone(inner)) == nullptr) return {};
        continue;
      }
      for (const Value value : inner.operands()) results.push_back(cloner(value));
    }
    return results;
  }

  const Instruction& op_;
  int64_t axis_;
  size_t inputs_;
  size_t carries_;
  size_t outputs_;
  int64_t steps_;
};

}  // namespace

Values chlo_scan(Builder& b, const Instruction& op) {
  TENON_TRY(check_static(op));
  return ScanLoop(op).decompose(b);
}

}  // namespace tenon::hlo::decomposition
