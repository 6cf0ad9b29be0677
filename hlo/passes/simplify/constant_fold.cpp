// Constant folding, by the evaluator.
//
// A splat stays a splat: an elementwise op on splats is computed once, and an op that moves
// elements only changes the shape. Other constants are computed only if they are small and cheap,
// or transposed; iota is not folded.
#include <algorithm>
#include <cstring>

#include "hlo/evaluator/evaluator.h"
#include "hlo/evaluator/work.h"
#include "hlo/ir/inline.h"
#include "hlo/passes/constants.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

constexpr int64_t kSmall = 1024;  // The number of elements that a constant may always have.
// The maximum number of elements that are read to compute one constant.
constexpr double kMostWork = 1 << 14;
constexpr int64_t kMostConditionOps = 16;
constexpr int64_t kMostMoved = 1 << 25;  // Elements of a constant that is transposed.

int64_t elements_of(const Type& type) { return element_count(type.dims()); }

bool are_plain(const std::vector<Type>& types) { return std::ranges::all_of(types, is_plain); }

// The elements in the order that `permutation` says.
Literal transposed(const Literal& x, const I64s& permutation) {
  const Dims strides = row_major_strides(x.shape().dims());
  Dims dims, steps;
  for (const int64_t d : permutation) {
    dims.push_back(x.shape().dims()[static_cast<size_t>(d)]);
    steps.push_back(strides[static_cast<size_t>(d)]);
  }
  Literal result(Shape(x.element_type(), dims));
  const auto unit = static_cast<size_t>(storage_bytes(x.element_type()));
  const std::byte* const from = x.data().data();
  std::byte* to = result.mutable_data().data();
  Dims index(dims.size());
  int64_t place = 0;
  for (int64_t i = 0; i < result.element_count(); ++i, to += unit) {
    std::memcpy(to, from + static_cast<size_t>(place) * unit, unit);
    for (size_t d = dims.size(); d-- > 0;) {
      place += steps[d];
      if (++index[d] < dims[d]) break;
      place -= steps[d] * dims[d];
      index[d] = 0;
    }
  }
  return result;
}

class Folder {
 public:
  explicit Folder(const Module& module) : evaluator_(module) {}

  int64_t folded() const { return folded_; }

  bool run(Computation& computation) {
    bool changed = false;
    for (Instruction* op = computation.first(); op != nullptr;) {
      for (size_t r = 0; r < op->region_count(); ++r) changed |= run(op->region(r));
      Instruction* const next = op->next();
      changed |= choose(*op) || skip_loop(*op) || fold_empty(*op) || fold_splat(*op) ||
                 fold_transpose(*op) || fold(*op);
      op = next;
    }
    return changed;
  }

 private:
  // --- Control flow with a known path

  void replace(Instruction& op, const std::vector<Value>& values) {
    ++folded_;
    op.replace_all_uses(values);
    op.parent()->erase(&op);
  }

  // A number out of range selects the last branch.
  bool choose(Instruction& op) {
    if (op.code() != OpCode::kIf && op.code() != OpCode::kCase) return false;
    const Literal* index = splat_of(op.operand(0));
    if (index == nullptr && op.region_count() > 1) return false;
    const int64_t number = index != nullptr ? index->get_integer(0) : 0;
    const auto last = static_cast<int64_t>(op.region_count()) - 1;
    int64_t branch = number < 0 || number > last ? last : number;
    if (op.code() == OpCode::kIf) branch = number != 0 ? 0 : 1;
    replace(op, clone_body(op.region(static_cast<size_t>(branch)), {}, op));
    return true;
  }

  // A loop that is never entered returns its initial values.
  bool skip_loop(Instruction& op) {
    if (op.code() != OpCode::kWhile || !never_enters(op)) return false;
    replace(op, op.operands());
    return true;
  }

  bool never_enters(const Instruction& loop) {
    const Computation& condition = loop.region(0);
    EvalFrame outer(nullptr);
    std::vector<EvalValue> arguments;
    for (size_t i = 0; i < loop.operand_count(); ++i) {
      const bool used = !condition.parameter_instruction(i).uses().empty();
      const DenseAttr* init = used ? constant_of(loop.operand(i)) : nullptr;
      if (used && !is_small(init)) return false;
      arguments.push_back(used ? value_of(*init) : EvalValue{});
    }
    int64_t ops = 0;
    for (const Instruction& op : condition) {
      const bool computes = op.region_count() == 0 && !op.has_side_effect() &&
                            op.info().category == Category::kElementwise;
      const bool simple = computes || op.code() == OpCode::kConstant;
      if (op.code() != OpCode::kReturn && (!simple || ++ops > kMostConditionOps)) return false;
      for (const Value operand : op.operands()) {
        if (operand.def->parent() == &condition) continue;
        const DenseAttr* captured = constant_of(operand);
        if (!is_small(captured)) return false;
        outer.set(operand.def, {value_of(*captured)});
      }
    }
    auto results = evaluator_.run_computation(condition, arguments, &outer);
    for (const Instruction& op : condition) evaluator_.forget(op);
    return results && (*results)[0].tensor->integer(0) == 0;
  }

  static bool is_small(const DenseAttr* constant) {
    return constant != nullptr && constant->shape.element_count() <= kSmall;
  }

  // --- Empty arrays

  bool fold_empty(Instruction& op) {
    if (!computes(op) || op.result_count() != 1 || !is_plain(op.result_type()) ||
        elements_of(op.result_type()) != 0) {
      return false;
    }
    DenseAttr nothing = DenseAttr::of(Literal(op.result_type().shape()));
    replace(op, {insert_constant(std::move(nothing), op.result_type(), op)});
    return true;
  }

  // Whether the op returns arrays that are used, and has no other effect.
  static bool computes(const Instruction& op) {
    switch (op.info().category) {
      case Category::kElementwise:
      case Category::kShape:
      case Category::kReduction:
      case Category::kContraction:
        return op.code() != OpCode::kConstant && !op.uses().empty() && !op.has_side_effect();
      default:
        return false;
    }
  }

  // --- Splats

  bool fold_splat(Instruction& op) {
    if (op.result_count() != 1 || op.uses().empty() || !is_plain(op.result_type()) ||
        elements_of(op.result_type()) == 0) {
      return false;
    }
    const std::optional<Literal> element = splat_result(op);
    if (!element) return false;
    auto value = DenseAttr::splat(op.result_type().shape(), *element);
    replace(op, {insert_constant(std::move(value), op.result_type(), op)});
    return true;
  }

  std::optional<Literal> splat_result(const Instruction& op) {
    switch (op.code()) {
      case OpCode::kBroadcastInDim:
      case OpCode::kReshape:
      case OpCode::kTranspose:
      case OpCode::kSlice:
      case OpCode::kReverse:
      case OpCode::kDynamicSlice:
      case OpCode::kGather:
        return one_element(op, 1);
      case OpCode::kPad:
      case OpCode::kDynamicUpdateSlice:
        return one_element(op, 2);
      case OpCode::kConcatenate:
        return one_element(op, op.operand_count());
      default:
        return computed_once(op);
    }
  }

  // The number that equals all elements of the first `count` operands.
  static std::optional<Literal> one_element(const Instruction& op, size_t count) {
    std::optional<Literal> element;
    for (size_t i = 0; i < count; ++i) {
      const Literal* splat = splat_of(op.operand(i));
      if (splat == nullptr) return std::nullopt;
      Literal scalar = splat->reshaped({});
      if (element && !(*element == scalar)) return std::nullopt;
      element = std::move(scalar);
    }
    return element;
  }

  // The result of the equivalent elementwise op of rank 0.
  std::optional<Literal> computed_once(const Instruction& op) {
    if (op.info().category != Category::kElementwise || op.region_count() != 0 ||
        op.code() == OpCode::kConstant || op.operand_count() == 0) {
      return std::nullopt;
    }
    std::vector<std::unique_ptr<Instruction>> scalars;
    std::vector<Value> operands;
    std::vector<EvalValue> values;
    for (const Value operand : op.operands()) {
      const Literal* splat = splat_of(operand);
      if (splat == nullptr) return std::nullopt;
      values.push_back(EvalValue::of(tensor_from_literal(splat->reshaped({}), false)));
      const Type type(Shape(operand.type().element_type(), {}));
      scalars.push_back(std::make_unique<Instruction>(OpCode::kConstant, std::vector<Value>{},
                                                      std::vector<Type>{type}));
      operands.push_back(scalars.back()->result());
    }
    Instruction scalar(op.code(), operands, {Type(Shape(op.result_type().element_type(), {}))});
    scalar.mutable_attributes() = op.attributes();
    auto results = evaluate(scalar, values);
    if (!results) return std::nullopt;
    return std::move((*results)[0]);
  }

  // --- Small constants

  // Weights in the order that a kernel wants them: however large, as long as no other op needs
  // them.
  bool fold_transpose(Instruction& op) {
    if (op.code() != OpCode::kTranspose || !is_plain(op.result_type())) return false;
    const DenseAttr* constant = constant_of(op.operand(0));
    if (constant == nullptr || constant->is_splat() || op.operand(0).def->uses().size() != 1 ||
        elements_of(op.result_type()) > kMostMoved) {
      return false;
    }
    auto value = DenseAttr::of(transposed(constant->values, op.i64s(AttrKey::permutation)));
    replace(op, {insert_constant(std::move(value), op.result_type(), op)});
    return true;
  }

  bool fold(Instruction& op) {
    if (!is_foldable(op)) return false;
    std::vector<EvalValue> operands;
    for (const Value operand : op.operands()) operands.push_back(value_of(*constant_of(operand)));
    auto results = evaluate(op, operands);
    if (!results) return false;
    std::vector<Value> constants;
    for (uint32_t r = 0; r < op.result_count(); ++r) {
      constants.push_back(
          insert_constant(DenseAttr::of(std::move((*results)[r])), op.result_type(r), op));
    }
    replace(op, constants);
    return true;
  }

  static bool is_foldable(const Instruction& op) {
    if (!computes(op) || op.operand_count() == 0 || !are_plain(op.result_types()) ||
        !captured_values(op).empty() || has_loops(op)) {
      return false;
    }
    double work = 0;
    int64_t held = 0;  // Bytes of constants that will no longer be needed.
    for (const Value operand : op.operands()) {
      const DenseAttr* constant = constant_of(operand);
      if (constant == nullptr) return false;
      work += static_cast<double>(constant->shape.element_count());
      if (operand.def->uses().size() == 1) held += constant->values.element_count();
    }
    int64_t made = 0;
    for (const Type& type : op.result_types()) made += elements_of(type);
    return made <= std::max(kSmall, held) && work <= kMostWork &&
           static_cast<double>(made) * std::max(work_of_element(op), 1.0) <= kMostWork;
  }

  static bool has_loops(const Instruction& op) {
    for (size_t r = 0; r < op.region_count(); ++r) {
      if (any_instruction(op.region(r), [](const Instruction& inner) {
            return inner.code() == OpCode::kWhile;
          })) {
        return true;
      }
    }
    return false;
  }

  static EvalValue value_of(const DenseAttr& constant) {
    return EvalValue::of(tensor_from_literal(constant.expanded(), false));
  }

  // Nothing if the evaluator returns an error: running the op reports it.
  std::optional<std::vector<Literal>> evaluate(const Instruction& op,
                                               const std::vector<EvalValue>& operands) {
    const EvalFrame frame(nullptr);
    auto results = evaluator_.evaluate(op, operands, frame);
    evaluator_.forget(op);
    if (!results) return std::nullopt;
    std::vector<Literal> literals;
    for (const EvalValue& result : *results) {
      literals.push_back(literal_from_tensor(*result.tensor));
    }
    return literals;
  }

  Evaluator evaluator_;
  int64_t folded_ = 0;
};

}  // namespace

Result<bool> fold_constants(Module& module, const PassOptions& options) {
  Folder folder(module);
  bool changed = false;
  for (const auto& function : module.functions()) changed |= folder.run(*function);
  if (options.folded != nullptr) *options.folded += folder.folded();
  return changed;
}

}  // namespace tenon::hlo
