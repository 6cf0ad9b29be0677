// The pass `attention`: attentions whose scores need not be in memory become fusions.
#include <unordered_set>

#include "hlo/lower/schedules/products/attention.h"
#include "hlo/passes/fusion/fuse.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

Result<bool> fuse_attention_in(Computation& computation, const lower::CostModel& cost) {
  bool changed = false;
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
