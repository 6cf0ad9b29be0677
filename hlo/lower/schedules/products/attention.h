// Attention: softmax(scores of q and k) · v, with the scores of a block of queries and keys at a
// time.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "hlo/ir/instruction.h"
#include "hlo/lower/cost_model.h"

namespace tenon::hlo::lower {

/// The ops of an attention, in a function or in the body of a fusion.
struct Attention {
  const Instruction* scores = nullptr;  ///< The dot_general of the queries and the keys.
  const Instruction* output = nullptr;  ///< The dot_general of the weights and the values.
  Value logits;  ///< The operand of the softmax: the scores, or elementwise ops of them, of their
                 ///< dimensions.
  Value least;   ///< The init value of the maximum, a constant.
  int64_t axis = 0;         ///< The dimension of the scores that counts keys.
  size_t queries_side = 0;  ///< The operand of `scores` that has the queries.
  size_t weights_side = 0;  ///< The operand of `output` that has the weights.
  /// From the scores to the output, without constants.
  std::vector<Instruction*> ops;
};

/// The attention whose last product is `output`: nothing if it is none, if something else uses a
/// value in between, or if its numbers are not all f32 or all f64.
std::optional<Attention> attention_of(const Instruction& output);

/// Whether keeping none of the scores in memory pays.
bool is_long_attention(const Attention& attention, const CostModel& cost);

/// The kind of a fusion that is one attention.
inline constexpr std::string_view kAttentionKind = "attention";
bool is_attention(const Instruction& fusion);

}  // namespace tenon::hlo::lower
