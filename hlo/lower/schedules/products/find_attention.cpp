// Finds the ops of an attention.
#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "hlo/lower/elements/contraction.h"
#include "hlo/lower/elements/prefix_windows.h"
#include "hlo/lower/elements/reduction.h"
#include "hlo/lower/lower_op.h"
#include "hlo/lower/schedules/products/attention.h"

namespace tenon::hlo::lower {
namespace {

constexpr size_t kMostOps = 48;
constexpr int kMostDepthOfMask = 8;

// The number that a constant of rank 0, or of equal elements, is.
std::optional<double> number_of(Value value) {
  if (value.def->code() != OpCode::kConstant || !is_inline_constant(*value.def)) return {};
  const Literal& literal = value.def->attr<DenseAttr>(AttrKey::value)->values;
  if (!is_float(literal.element_type())) return {};
  return literal.get_double(0);
}

// An elementwise op of integers or truth values.
bool is_simple(const Instruction& op) {
  if (op.info().fusion != FusionKind::kElementwise || op.result_count() != 1) return false;
  if (!op.result_type().is_tensor() || !op.result_type().shape().is_static()) return false;
  const ElementType type = op.result_type().element_type();
  return (is_integer(type) || is_pred(type)) && is_elemental(op);
}

// Whether the elements follow from their places, or from few numbers: those of a mask that hides
// later keys, or other sequences, which cost less than their places in memory. Collects the ops
// that make them.
bool is_of_places(Value value, std::vector<Instruction*>& ops, int depth = 0) {
  Instruction& op = *value.def;
  if (depth > kMostDepthOfMask || !value.type().is_tensor()) return false;
  const auto is_long = [](int64_t size) { return size != 1; };
  if (std::ranges::count_if(value.type().dims(), is_long) <= 1) return true;
  if (op.code() == OpCode::kConstant) return is_inline_constant(op);
  if (std::ranges::find(ops, &op) == ops.end()) ops.push_back(&op);
  if (op.code() == OpCode::kIota) return true;
  if (op.code() != OpCode::kBroadcastInDim && !is_simple(op)) return false;
  return std::ranges::all_of(op.operands(),
                             [&](Value operand) { return is_of_places(operand, ops, depth + 1); });
}

// The reduction along one dimension of whose results `value`, of dimensions `full`, has one for
// each row, in order: through ops that keep, add or repeat dimensions.
class RowSource {
 public:
  RowSource(const Dims& full, program::Combiner combiner) : full_(full), combiner_(combiner) {}

  const Instruction* find(Value value) const {
    std::vector<int64_t> from(full_.size());  // The dimension of `full_` of each of `value`'s.
    for (size_t d = 0; d < from.size(); ++d) from[d] = static_cast<int64_t>(d);
    while (true) {
      const Instruction& op = *value.def;
      if (op.code() == OpCode::kReduce) return is_in_order(op, from) ? &op : nullptr;
      if (const Value inner = bounded(op)) {
        value = inner;
        continue;
      }
      if (op.code() == OpCode::kBroadcastInDim) {
        from = before_broadcast(op, from);
      } else if (op.code() != OpCode::kReshape || !pass_reshape(op, from)) {
        return nullptr;
      }
      value = op.operand(0);
    }
  }

 private:
  // The value that `op` is the maximum of, and of -inf; null for other ops.
  Value bounded(const Instruction& op) const {
    if (op.code() != OpCode::kMaximum || combiner_ != program::Combiner::kMaximum) return {};
    for (const size_t side : {0, 1}) {
      const auto bound = number_of(op.operand(side));
      if (bound && std::isinf(*bound) && *bound < 0) return op.operand(1 - side);
    }
    return {};
  }

  static std::vector<int64_t> before_broadcast(const Instruction& op,
                                               const std::vector<int64_t>& from) {
    std::vector<int64_t> before;
    const Dims& dims = op.operand_type(0).dims();
    const I64s& to = op.i64s(AttrKey::broadcast_dimensions);
    for (size_t d = 0; d < dims.size(); ++d) {
      const auto place = static_cast<size_t>(to[d]);
      const bool repeats = dims[d] == 1 && op.result_type().dims()[place] != 1;
      before.push_back(repeats ? -1 : from[place]);
    }
    return before;
  }

  // Dimensions of more than one element stay as they are.
  static bool pass_reshape(const Instruction& op, std::vector<int64_t>& from) {
    const Dims& after = op.result_type().dims();
    const Dims& before = op.operand_type(0).dims();
    std::vector<int64_t> found;
    size_t next = 0;
    for (const int64_t size : before) {
      if (size == 1) {
        found.push_back(-1);
        continue;
      }
      while (next < after.size() && after[next] == 1) ++next;
      if (next == after.size() || after[next] != size) return false;
      found.push_back(from[next++]);
    }
    while (next < after.size() && after[next] == 1) ++next;
    from = found;
    return next == after.size();
  }

  bool is_in_order(const Instruction& reduce, const std::vector<int64_t>& from) const {
    const I64s& reduced = reduce.i64s(AttrKey::dimensions);
    if (reduce.operand_count() != 2 || reduced.size() != 1) return false;
    if (reduce.operand_type(0).dims() != full_) return false;
    if (combiner_of(reduce.region(0)) != combiner_) return false;
    for (size_t i = 0; i < from.size(); ++i) {
      const size_t d = static_cast<int64_t>(i) < reduced[0] ? i : i + 1;
      if (full_[d] != 1 && from[i] != static_cast<int64_t>(d)) return false;
    }
    return true;
  }

  const Dims& full_;
  const program::Combiner combiner_;
};

// The softmax that ends with `divide`: sets its logits, its axis and the least maximum.
bool find_softmax(const Instruction& divide, Attention& attention) {
  if (divide.code() != OpCode::kDivide) return false;
  const Value weights = divide.operand(0);
  if (weights.def->code() != OpCode::kExponential) return false;
  const Instruction& centred = *weights.def->operand(0).def;
  if (centred.code() != OpCode::kSubtract) return false;
  const Dims& full = divide.result_type().dims();
  const Instruction* const sum = RowSource(full, program::Combiner::kAdd).find(divide.operand(1));
  const Instruction* const maximum =
      RowSource(full, program::Combiner::kMaximum).find(centred.operand(1));
  if (sum == nullptr || maximum == nullptr || sum->operand(0) != weights) return false;
  if (number_of(sum->operand(1)) != 0.0 || !number_of(maximum->operand(1))) return false;
  if (sum->i64s(AttrKey::dimensions) != maximum->i64s(AttrKey::dimensions)) return false;
  attention.logits = centred.operand(0);
  attention.least = maximum->operand(1);
  attention.axis = sum->i64s(AttrKey::dimensions)[0];
  return maximum->operand(0) == attention.logits;
}

// Collects the ops between the scores and the output, and ops that the scores are combined with.
class AttentionOps {
 public:
  explicit AttentionOps(Attention& attention) : attention_(attention) {}

  bool run() {
    take_softmax(attention_.output->operand(attention_.weights_side));
    if (!leads_to_scores(attention_.logits) || visited_ > kMostOps || !is_apart()) return false;
    take_free_ops();
    return attention_.ops.size() <= kMostOps;
  }

 private:
  const Dims& dims() const { return attention_.logits.type().dims(); }
  bool is_near(const Instruction& op) const {
    return op.parent() == attention_.output->parent() && op.code() != OpCode::kParameter &&
           op.code() != OpCode::kConstant;
  }
  bool is_elementwise(const Instruction& op) const {
    return op.info().fusion == FusionKind::kElementwise && op.result_count() == 1 &&
           op.result_type().dims() == dims() && is_elemental(op);
  }

  void add(Instruction* op) {
    if (inside_.insert(op).second) attention_.ops.push_back(op);
  }

  // The ops from the weights to the logits; the softmax is known to have this form.
  void take_softmax(Value value) {
    if (value == attention_.logits || !is_near(*value.def) || inside_.contains(value.def)) return;
    add(value.def);
    for (const Value operand : value.def->operands()) take_softmax(operand);
  }

  // Elementwise ops on the way to the scores.
  bool leads_to_scores(Value value) {
    Instruction& op = *value.def;
    if (!is_near(op) || ++visited_ > kMostOps) return false;
    if (op.code() == OpCode::kDotGeneral && op.result_type().dims() == dims()) {
      if (attention_.scores == nullptr) attention_.scores = &op;
      if (attention_.scores == &op) add(&op);
      return attention_.scores == &op;
    }
    if (!is_elementwise(op)) return false;
    bool leads = false;
    for (const Value operand : op.operands()) leads |= leads_to_scores(operand);
    if (leads) add(&op);
    return leads;
  }

  bool are_inside(const std::vector<Use>& uses) const {
    return std::ranges::all_of(uses, [&](const Use& use) {
      return use.user == attention_.output || inside_.contains(use.user);
    });
  }
  // The values are none of what is between the scores and the output.
  bool is_apart() const {
    if (inside_.contains(attention_.output->operand(1 - attention_.weights_side).def)) return false;
    return std::ranges::all_of(attention_.ops,
                               [&](const Instruction* op) { return are_inside(op->uses()); });
  }

  // Adds the ops that make a mask of places, if nothing else uses them: in the body of the fusion
  // an op that was left outside is a parameter, of which nothing is known.
  void take_mask(Value value) {
    std::vector<Instruction*> made;
    if (!is_simple(*value.def) || !is_of_places(value, made)) return;
    const auto is_own = [&](const Use& use) {
      return inside_.contains(use.user) || std::ranges::find(made, use.user) != made.end();
    };
    const bool are_own = std::ranges::all_of(made, [&](const Instruction* op) {
      return is_near(*op) && std::ranges::all_of(op->uses(), is_own);
    });
    if (!are_own || attention_.ops.size() + made.size() > kMostOps) return;
    for (Instruction* const op : made) add(op);
  }

  // Masks and biases that nothing else uses, as far as no element is computed more than once, but
  // for those that follow from their places.
  void take_free_ops() {
    for (size_t i = 0; i < attention_.ops.size(); ++i) {
      if (attention_.ops[i] == attention_.scores) continue;
      for (const Value operand : attention_.ops[i]->operands()) {
        Instruction& op = *operand.def;
        if (!is_near(op) || inside_.contains(&op)) continue;
        const bool repeats = op.info().fusion == FusionKind::kRepeats && is_elemental(op);
        const bool is_free = is_elementwise(op) || repeats || op.code() == OpCode::kIota;
        if (is_free && are_inside(op.uses()) && attention_.ops.size() < kMostOps) {
          add(&op);
        } else if (!is_free) {
          take_mask(operand);
        }
      }
    }
  }

  Attention& attention_;
  std::unordered_set<const Instruction*> inside_;
  size_t visited_ = 0;
};

bool has_numbers(const Instruction& dot, ElementType type) {
  const auto fits = [&](const Type& each) {
    return each.is_tensor() && each.shape().is_static() && each.element_type() == type &&
           element_count(each.dims()) > 0;
  };
  return fits(dot.operand_type(0)) && fits(dot.operand_type(1)) && fits(dot.result_type());
}

// Sets which operands have the queries; false if the dimensions have other roles.
bool find_sides(Attention& attention) {
  const DotShape scores(*attention.scores);
  const DotShape output(*attention.output);
  const auto batches = static_cast<int64_t>(scores.batch.size());
  const int64_t first_of_rhs = batches + static_cast<int64_t>(scores.m.size());
  if (attention.axis < batches) return false;
  attention.queries_side = attention.axis < first_of_rhs ? 1 : 0;
  if (scores.free[1 - attention.queries_side].size() != 1) return false;
  I64s same = output.batching[attention.weights_side];
  std::ranges::sort(same);
  for (int64_t d = 0; d < batches; ++d) {
    if (same.size() != scores.batch.size() || same[static_cast<size_t>(d)] != d) return false;
  }
  return output.contracting[attention.weights_side] == I64s{attention.axis};
}

}  // namespace

std::optional<Attention> attention_of(const Instruction& output) {
  if (output.code() != OpCode::kDotGeneral || !output.result_type().is_tensor()) return {};
  const ElementType type = output.result_type().element_type();
  if (type != ElementType::kF32 && type != ElementType::kF64) return {};
  if (!has_numbers(output, type)) return {};
  for (const size_t side : {0, 1}) {
    Attention attention;
    attention.output = &output;
    attention.weights_side = side;
    if (!find_softmax(*output.operand(side).def, attention) || !AttentionOps(attention).run())
      continue;
    if (!has_numbers(*attention.scores, type) || !find_sides(attention)) continue;
    attention.ops.push_back(const_cast<Instruction*>(&output));
    return attention;
  }
  return {};
}

bool is_long_attention(const Attention& attention, const CostModel& cost) {
  const DotShape shape(*attention.scores);
  const int64_t queries = element_count(attention.queries_side == 0 ? shape.m : shape.n);
  return queries >= cost.tiled_product &&
         element_count(attention.logits.type().dims()) >= cost.attention_scores;
}

bool is_attention(const Instruction& fusion) {
  return fusion.code() == OpCode::kFusion && fusion.text(AttrKey::fusion_kind) == kAttentionKind;
}

}  // namespace tenon::hlo::lower
