#include <algorithm>

#include "hlo/decomposition/linalg/custom_calls.h"
#include "hlo/decomposition/needs_decomposition.h"
#include "hlo/ir/inline.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

bool draws(const Computation& computation) {
  return any_instruction(computation,
                         [](const Instruction& op) { return op.code() == OpCode::kRng; });
}

bool draws(const Instruction& op) {
  for (size_t i = 0; i < op.region_count(); ++i) {
    if (draws(op.region(i))) return true;
  }
  return false;
}

Status error_at(const Instruction& op, Status status) {
  return std::move(status).at(position_of(op.location()));
}

// A loop whose condition draws random numbers carries the condition's value instead, computed
// before the loop and at the end of the body, where the random state can be carried.
void rotate(Instruction& loop) {
  Computation& condition = loop.region(0);
  Computation& body = loop.region(1);
  std::vector<Value> operands = loop.operands();
  operands.push_back(clone_body(condition, operands, loop)[0]);
  Instruction& end = *body.return_instruction();
  std::vector<Value> next = end.operands();
  next.push_back(clone_body(condition, next, end)[0]);
  end.set_operands(next);
  const Type truth = operands.back().type();
  body.add_parameter(truth);
  Instruction* const given = condition.return_instruction();
  given->set_operands({condition.add_parameter(truth)});
  while (given->previous() != nullptr) condition.erase(given->previous());
  loop.set_operands(operands);
  std::vector<Type> types = loop.result_types();
  types.push_back(truth);
  loop.set_result_types(std::move(types));
}

void rotate_loops(Computation& computation) {
  for (Instruction& op : computation) {
    for (size_t i = 0; i < op.region_count(); ++i) rotate_loops(op.region(i));
    if (op.code() == OpCode::kWhile && draws(op.region(0))) rotate(op);
  }
}

class Decomposer {
 public:
  explicit Decomposer(const PassOptions& options) : options_(options) {}

  bool changed() const { return changed_; }

  /// `state` is the random state at the start of the computation, and is set to the state at its
  /// end; null if no state can be carried.
  Status run(Computation& computation, Value* state) {
    Instruction* op = computation.first();
    while (op != nullptr) {
      if (decomposition::linalg_call(*op) != nullptr) {
        TENON_TRY(decomposition::check_linalg_call(*op));
        Instruction* const call = decomposition::without_tuple(*op);
        changed_ |= call != op;
        op = call;
      }
      TENON_ASSIGN(const bool is_due, needs_decomposition(*op));
      if (is_due) {
        Instruction* before = op->previous();
        TENON_TRY(replace(*op, state));
        // The ops that replace it may need decomposition too.
        op = before != nullptr ? before->next() : computation.first();
        continue;
      }
      TENON_TRY(regions(*op, state));
      op = op->next();
    }
    return {};
  }

 private:
  Result<bool> needs_decomposition(const Instruction& op) const {
    if (!decomposition::needs_decomposition(op)) return false;
    if (decomposition::linalg_call(op) == nullptr || options_.takes_composite == nullptr)
      return true;
    TENON_ASSIGN(const bool taken, options_.takes_composite(op));
    return !taken;
  }

  Status replace(Instruction& op, Value* state) {
    changed_ = true;
    Computation& parent = *op.parent();
    Builder builder(parent, &op);
    builder.set_location(op.location());
    const bool random = op.code() == OpCode::kRng;
    if (random && state == nullptr) {
      return error_at(op, Status(unimplemented(
                              "{}: no random state can be carried into this region", op.name())));
    }
    if (random) builder.set_random_state(*state);
    auto results = decomposition::decompose(builder, op);
    if (!results) return error_at(op, std::move(results.error()));
    if (!builder.ok()) return error_at(op, builder.status());
    if (random) *state = builder.random_state();
    op.replace_all_uses(*results);
    parent.erase(&op);
    return {};
  }

  Status regions(Instruction& op, Value* state) {
    const bool carried = draws(op);
    if (carried && state != nullptr && op.code() == OpCode::kWhile) return loop(op, *state);
    if (carried && state != nullptr && (op.code() == OpCode::kIf || op.code() == OpCode::kCase)) {
      return branches(op, *state);
    }
    for (size_t i = 0; i < op.region_count(); ++i) TENON_TRY(run(op.region(i), nullptr));
    return {};
  }

  static void append_result(Computation& region, Value value) {
    Instruction* end = region.return_instruction();
    std::vector<Value> values = end->operands();
    values.push_back(value);
    end->set_operands(values);
  }

  // Adds the state as another result of `op`.
  static Value add_state_result(Instruction& op, const Type& type) {
    std::vector<Type> types = op.result_types();
    types.push_back(type);
    op.set_result_types(std::move(types));
    return op.result(static_cast<uint32_t>(op.result_count() - 1));
  }

  Status loop(Instruction& op, Value& state) {
    const Type type = state.type();
    std::vector<Value> operands = op.operands();
    operands.push_back(state);
    op.set_operands(operands);
    op.region(0).add_parameter(type);
    Value inside = op.region(1).add_parameter(type);
    TENON_TRY(run(op.region(0), nullptr));
    TENON_TRY(run(op.region(1), &inside));
    append_result(op.region(1), inside);
    state = add_state_result(op, type);
    return {};
  }

  Status branches(Instruction& op, Value& state) {
    const Type type = state.type();
    for (size_t i = 0; i < op.region_count(); ++i) {
      Value inside = state;
      TENON_TRY(run(op.region(i), &inside));
      append_result(op.region(i), inside);
    }
    state = add_state_result(op, type);
    return {};
  }

  const PassOptions& options_;
  bool changed_ = false;
};

Value initial_state(Computation& function) {
  Builder builder(function, function.first());
  Literal state(Shape(ElementType::kU64, {2}));
  return builder.constant(std::move(state));
}

}  // namespace

Result<bool> decompose(Module& module, const PassOptions& options) {
  Decomposer decomposer(options);
  for (const auto& function : module.functions()) {
    if (function->is_declaration()) continue;
    Value state;
    if (draws(*function)) {
      rotate_loops(*function);
      state = initial_state(*function);
    }
    TENON_TRY(decomposer.run(*function, state ? &state : nullptr));
  }
  return decomposer.changed();
}

}  // namespace tenon::hlo
