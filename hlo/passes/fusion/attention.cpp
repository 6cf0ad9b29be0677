// The pass `attention`: attentions whose scores need not be in memory become fusions.
#include <unordered_set>

#include "hlo/lower/schedules/products/attention.h"
#include "hlo/passes/fusion/fuse.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

bool has_scores(const Computation& computation, const lower::CostModel& cost) {
  for (const Instruction& op : computation) {
    if (op.code() != OpCode::kDotGeneral || !op.result_type().is_tensor()) continue;
    const Shape& shape = op.result_type().shape();
    if (shape.is_static() && element_count(shape.dims()) >= cost.attention_scores) return true;
  }
  return false;
}

// Gives each elementwise reader of a repeated array, such as a mask that several attentions share,
// a copy of its own: nothing but the attention uses what it takes.
void repeat_for_each_reader(Computation& computation, const lower::CostModel& cost) {
  std::vector<Instruction*> repeated;
  for (Instruction& op : computation) {
    const bool repeats = op.code() == OpCode::kBroadcastInDim || op.code() == OpCode::kIota;
    const Type* const type = repeats && op.uses().size() > 1 ? &op.result_type() : nullptr;
    if (type != nullptr && type->shape().is_static() &&
        element_count(type->dims()) >= cost.attention_scores)
      repeated.push_back(&op);
  }
  for (Instruction* op : repeated) {
    const std::vector<Use> uses = op->uses();
    for (size_t i = 1; i < uses.size(); ++i) {
      Instruction& user = *uses[i].user;
      if (user.parent() != &computation || user.info().fusion != FusionKind::kElementwise) continue;
      Instruction* const copy = computation.insert(Cloner().clone(*op), op->next());
      user.set_operand(uses[i].operand, copy->result());
    }
  }
}

Result<bool> fuse_attention_in(Computation& computation, const lower::CostModel& cost) {
  bool changed = false;
  if (has_scores(computation, cost)) repeat_for_each_reader(computation, cost);
  std::vector<Instruction*> products;
  for (Instruction& op : computation) {
    if (op.code() == OpCode::kFusion) continue;
    if (op.code() == OpCode::kDotGeneral) products.push_back(&op);
    for (size_t r = 0; r < op.region_count(); ++r) {
      TENON_ASSIGN(const bool inner, fuse_attention_in(op.region(r), cost));
      changed |= inner;
    }
  }
  // The scores of an attention are products too, which are gone with it.
  std::unordered_set<const Instruction*> fused;
  for (auto output = products.rbegin(); output != products.rend(); ++output) {
    if (fused.contains(*output)) continue;
    const auto attention = lower::attention_of(**output);
    if (!attention || !lower::is_long_attention(*attention, cost)) continue;
    if (!fuse(attention->ops, std::string(lower::kAttentionKind))) continue;
    fused.insert(attention->ops.begin(), attention->ops.end());
    changed = true;
  }
  return changed;
}

}  // namespace

Result<bool> fuse_attention(Module& module, const PassOptions& options) {
  bool changed = false;
  for (const auto& function : module.functions()) {
    TENON_ASSIGN(const bool here, fuse_attention_in(*function, options.cost));
    changed |= here;
  }
  return changed;
}

}  // namespace tenon::hlo
