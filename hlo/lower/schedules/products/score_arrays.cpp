#include "hlo/lower/schedules/products/score_arrays.h"

#include <algorithm>

namespace tenon::hlo::lower {
namespace {

// The array that `value`, of the scores' dimensions, is read from, if that is a parameter whose
// last dimension counts keys.
std::optional<ScoreArray> array_of(Value value, int64_t queries, int64_t keys) {
  ScoreArray array;
  array.value = array.source = value;
  const Dims& full = value.type().dims();
  for (size_t d = 0; d < full.size(); ++d) array.dims.push_back(static_cast<int64_t>(d));
  if (value.def->code() == OpCode::kBroadcastInDim) {
    array.source = value.def->operand(0);
    array.dims = value.def->i64s(AttrKey::broadcast_dimensions);
  }
  if (array.source.def->code() != OpCode::kParameter) return {};
  if (is_complex(array.source.type().element_type())) return {};
  const Dims& own = array.source.type().dims();
  int64_t last = -1;
  bool has_queries = false;
  for (size_t d = 0; d < own.size(); ++d) {
    if (own[d] == 1) {
      array.dims[d] = -1;
      continue;
    }
    last = array.dims[d];
    if (last == queries) array.queries_dim = static_cast<uint32_t>(d);
    if (last == keys) array.keys_dim = static_cast<uint32_t>(d);
    has_queries |= last == queries;
  }
  return has_queries && last == keys ? std::optional(std::move(array)) : std::nullopt;
}

}  // namespace

std::vector<ScoreArray> arrays_along_keys(const Attention& attention) {
  std::vector<ScoreArray> arrays;
  const DotShape scores(*attention.scores);
  if (scores.free[attention.queries_side].size() != 1) return arrays;
  const auto batches = static_cast<int64_t>(scores.batch.size());
  const int64_t queries = attention.axis == batches ? batches + 1 : batches;
  const Dims& full = attention.logits.type().dims();
  for (const Instruction* const op : attention.ops) {
    const bool is_elementwise = op->info().fusion == FusionKind::kElementwise;
    if (!is_elementwise || op->result_type().dims() != full) continue;
    for (const Value operand : op->operands()) {
      const auto is_same = [&](const ScoreArray& known) { return known.value == operand; };
      if (operand.type().dims() != full || std::ranges::any_of(arrays, is_same)) continue;
      if (auto array = array_of(operand, queries, attention.axis)) {
        arrays.push_back(std::move(*array));
      }
    }
  }
  return arrays;
}

}  // namespace tenon::hlo::lower
