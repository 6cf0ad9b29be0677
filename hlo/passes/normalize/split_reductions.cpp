// Sums down short columns: [R, 3] to [3] reads every third element. In two steps each reads rows:
// [R/16, 48] to [48], then [16, 3] to [3].
#include <algorithm>

#include "hlo/ir/region.h"
#include "hlo/passes/constants.h"
#include "hlo/passes/normalize/layouts.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

constexpr int64_t kRow = 64;                // Elements that a row of the first step has at most,
constexpr int64_t kLeastRow = 24;           // and at least.
constexpr int64_t kLeastSteps = 4;          // Rows that the first step adds at least.
constexpr int64_t kLeastReduced = 1 << 12;  // Elements; smaller arrays take no time.
// Elements from which several workgroups share the rows, and the most of these.
constexpr int64_t kLeastShared = 1 << 17;
constexpr int64_t kMostShares = 16;

// The op by which it combines numbers in any order, with an init that may be taken several times;
// null if it does not.
const Instruction* combined_by(const Instruction& op) {
  const bool is_single = op.code() == OpCode::kReduce && op.operand_count() == 2;
  if (!is_single || !op.operand_type(0).is_tensor() || is_narrow_sum(op.region(0))) return nullptr;
  const Instruction* const combined = op_of_two_parameters(op.region(0));
  const ElementType type = op.operand_type(0).element_type();
  const bool same = op.result_type().element_type() == type && combines_accumulators(op.region(0));
  if (combined == nullptr || !same) return nullptr;
  switch (combined->code()) {
    case OpCode::kAdd:
      return is_number(op.operand(1), 0) ? combined : nullptr;
    case OpCode::kMultiply:
      return is_number(op.operand(1), 1) ? combined : nullptr;
    case OpCode::kMaximum:
    case OpCode::kMinimum:
    case OpCode::kAnd:
    case OpCode::kOr:
      return combined;
    default:
      return nullptr;
  }
}

// An array as [kept, reduced, short], if the reduced dimensions are adjacent, before a short one.
struct ShortColumns {
  int64_t kept = 1, reduced = 1, columns = 1;
  int64_t first = 0, last = 0;  // Of the reduced dimensions.
};

std::optional<ShortColumns> short_columns_of(const Instruction& op, int64_t most) {
  const Dims& dims = op.operand_type(0).dims();
  I64s reduced = op.i64s(AttrKey::dimensions);
  std::ranges::sort(reduced);
  if (reduced.empty()) return std::nullopt;
  const auto count = static_cast<int64_t>(reduced.size());
  if (reduced.back() - reduced.front() != count - 1) return std::nullopt;
  ShortColumns found;
  found.first = reduced.front();
  found.last = reduced.back();
  for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d) {
    int64_t& part = d < reduced.front()  ? found.kept
                    : d > reduced.back() ? found.columns
                                         : found.reduced;
    part *= dims[static_cast<size_t>(d)];
  }
  const bool is_short = found.columns > 1 && found.columns < most && found.reduced > 0;
  return is_short ? std::optional(found) : std::nullopt;
}

// The greatest divisor of `number` up to `most`.
int64_t greatest_divisor(int64_t number, int64_t most) {
  int64_t divisor = std::min(number, most);
  while (divisor > 1 && number % divisor != 0) --divisor;
  return divisor;
}

// How the rows are taken: `together` of them are one row of the first step, `parts` workgroups
// share those.
struct RowSplit {
  int64_t together = 1, parts = 1;
};

RowSplit split_of(const ShortColumns& array) {
  RowSplit split;
  const int64_t most = std::min(kRow / array.columns, array.reduced / kLeastSteps);
  if (most > 1) split.together = greatest_divisor(array.reduced, most);
  if (split.together * array.columns < kLeastRow) return {};
  const bool is_long = array.reduced * array.columns >= kLeastShared;
  if (array.kept == 1 && is_long)
    split.parts = greatest_divisor(array.reduced / split.together, kMostShares);
  return split;
}

// Brings what a reduction reads into the dimensions [kept * parts, steps, wide] of its first step.
class Reshaping {
 public:
  Reshaping(const ShortColumns& array, const RowSplit& rows)
      : array_(array), together_(rows.together) {
    dims_ = {array.kept * rows.parts, array.reduced / rows.together / rows.parts,
             rows.together * array.columns};
  }

  /// Elementwise ops that `user` alone reads compute it so, since a fusion through a reshape would
  /// divide indices.
  Value run(const Instruction& user, Value x, Builder& b, int depth = 0) const {
    constexpr int kMostDepth = 64;
    if (x.type().rank() == 0 || x.type().dims() == dims_) return x;
    Instruction* const op = x.def;
    const bool is_own =
        op != nullptr && op->parent() == user.parent() && op->result_count() == 1 &&
        op->region_count() == 0 && depth < kMostDepth &&
        std::ranges::all_of(op->uses(), [&](const Use& use) { return use.user == &user; });
    if (is_own && op->code() == OpCode::kBroadcastInDim && is_same_down_columns(*op))
      return repeated(*op, x.type().dims(), b);
    const bool computes = is_own && op->info().fusion == FusionKind::kElementwise &&
                          std::ranges::all_of(op->operands(), [&](Value operand) {
                            const Type& type = operand.type();
                            return type.is_tensor() && !type.is_quantized() &&
                                   (type.rank() == 0 || type.dims() == x.type().dims());
                          });
    if (!computes) return b.reshape(x, dims_);
    Builder before(*op->parent(), op);
    before.set_location(op->location());
    for (size_t i = 0; i < op->operand_count(); ++i)
      op->set_operand(i, run(*op, op->operand(i), before, depth + 1));
    op->set_result_type(0, Type::tensor(op->result_type().element_type(), dims_));
    return x;
  }

 private:
  // Whether a broadcast has the same elements in each of the rows that are reduced.
  bool is_same_down_columns(const Instruction& op) const {
    const Dims& dims = op.operand_type(0).dims();
    const I64s& to = op.i64s(AttrKey::broadcast_dimensions);
    for (size_t d = 0; d < to.size(); ++d) {
      if (to[d] >= array_.first && to[d] <= array_.last && dims[d] != 1) return false;
    }
    return true;
  }

  // A long row of it is in memory, and is repeated.
  Value repeated(const Instruction& op, Dims dims, Builder& b) const {
    if (op.operand_type(0).rank() == 0) return b.broadcast_in_dim(op.operand(0), dims_, {});
    for (int64_t d = array_.first; d <= array_.last; ++d) dims[static_cast<size_t>(d)] = 1;
    const Value once =
        b.broadcast_in_dim(op.operand(0), dims, op.i64s(AttrKey::broadcast_dimensions));
    const Value rows = b.reshape(once, {array_.kept, array_.columns});
    const Value many = b.broadcast_in_dim(rows, {array_.kept, together_, array_.columns}, {0, 2});
    const bool is_all = array_.kept == 1;
    const Value row = b.reshape(many, is_all ? Dims{dims_[2]} : Dims{array_.kept, dims_[2]});
    const Value kept = b.make(OpCode::kOptimizationBarrier, {row});
    return b.broadcast_in_dim(kept, dims_, is_all ? I64s{2} : I64s{0, 2});
  }

  const ShortColumns& array_;
  int64_t together_;
  Dims dims_;
};

bool split_reduction(Instruction& op, int64_t most) {
  const Instruction* const combined = combined_by(op);
  if (combined == nullptr) return false;
  const Type& type = op.operand_type(0);
  if (type.is_quantized() || !type.shape().is_static() ||
      element_count(type.dims()) < kLeastReduced)
    return false;
  const auto array = short_columns_of(op, most);
  const RowSplit rows = array ? split_of(*array) : RowSplit();
  if (rows.together * rows.parts == 1) return false;
  Builder b(*op.parent(), &op);
  b.set_location(op.location());
  const Value init = op.operand(1);
  const Value wide = Reshaping(*array, rows).run(op, op.operand(0), b);
  const Value sums = b.reduce(combined->code(), wide, init, {1});
  const Dims few = {array->kept, rows.parts * rows.together, array->columns};
  const Value whole = b.reduce(combined->code(), b.reshape(sums, few), init, {1});
  op.replace_all_uses({b.reshape(whole, op.result_type().dims())});
  op.parent()->erase(&op);
  return true;
}

}  // namespace

Result<bool> split_reductions(Module& module, const PassOptions& options) {
  const int64_t most = options.cost.short_columns;
  if (most == 0) return false;
  return change_ops(module, [&](Instruction& op) { return split_reduction(op, most); });
}

}  // namespace tenon::hlo
