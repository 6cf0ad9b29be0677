// Transposes whose rows are too short for tiles: [O, I, 3, 3] to [3, 3, I, O] reads three elements
// in a row. In two steps each moves long rows: [O, I*9] to [I*9, O], then [I, 9, O] to [9, I, O].
#include <algorithm>

#include "hlo/passes/normalize/layouts.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

constexpr int64_t kShortRow = 16;
constexpr int64_t kLeastSplit = 1 << 14;  // Elements; smaller arrays lie in the cache.

// A transpose without dimensions of size 1, where dimensions that stay together are one.
struct MergedTranspose {
  Dims dims;  // Of the operand.
  I64s order;
};

MergedTranspose merged(const Dims& dims, const I64s& order) {
  // Runs of the result's dimensions that follow one another in the operand too.
  std::vector<std::pair<int64_t, int64_t>> runs;  // The operand's first dimension, and the size.
  int64_t last = -2;
  I64s kept;  // The operand's dimensions of more than one element, numbered without the others.
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] != 1) kept.push_back(static_cast<int64_t>(d));
  }
  for (const int64_t d : order) {
    const auto found = std::ranges::find(kept, d);
    if (found == kept.end()) continue;
    const int64_t number = found - kept.begin();
    if (number == last + 1) {
      runs.back().second *= dims[static_cast<size_t>(d)];
    } else {
      runs.emplace_back(number, dims[static_cast<size_t>(d)]);
    }
    last = number;
  }
  std::vector<std::pair<int64_t, int64_t>> sorted = runs;
  std::ranges::sort(sorted);
  MergedTranspose found;
  for (const auto& run : sorted) found.dims.push_back(run.second);
  for (const auto& run : runs)
    found.order.push_back(std::ranges::find(sorted, run) - sorted.begin());
  return found;
}

// The order of a first step, after which rows are long in both steps; empty if there is none, or
// one step is as good.
I64s first_step(const MergedTranspose& t) {
  const auto rank = static_cast<int64_t>(t.dims.size());
  if (rank < 3 || t.order.back() == rank - 1) return {};
  const auto size = [&](int64_t d) { return t.dims[static_cast<size_t>(d)]; };
  const int64_t moved = t.order.back(), minor = rank - 1;
  I64s first;
  if (size(minor) < kShortRow && size(moved) >= kShortRow && moved + 1 != minor) {
    // The dimension that becomes the last one goes there; the others stay, and are a long row.
    for (int64_t d = 0; d < rank; ++d) {
      if (d != moved) first.push_back(d);
    }
    first.push_back(moved);
  } else if (size(moved) < kShortRow && size(minor) >= kShortRow &&
             t.order[t.order.size() - 2] != minor) {
    // Rows of the last dimension are brought into the result's order, where they become columns.
    for (const int64_t d : t.order) {
      if (d != minor) first.push_back(d);
    }
    first.push_back(minor);
  }
  return first;
}

bool split(Instruction& op) {
  const Type& type = op.operand_type(0);
  if (!type.is_tensor() || type.is_quantized() || !type.shape().is_static() ||
      element_count(type.dims()) < kLeastSplit)
    return false;
  const MergedTranspose t = merged(type.dims(), op.i64s(AttrKey::permutation));
  const I64s first = first_step(t);
  if (first.empty()) return false;
  I64s second;
  for (const int64_t d : t.order) second.push_back(std::ranges::find(first, d) - first.begin());
  Builder b(*op.parent(), &op);
  b.set_location(op.location());
  const auto reshaped = [&](Value value, Dims dims) {
    return value.type().dims() == dims ? value : b.reshape(value, std::move(dims));
  };
  // Dimensions that a step keeps together are one, so that its rows are long.
  const auto step = [&](Value value, const Dims& dims, const I64s& order) {
    const MergedTranspose s = merged(dims, order);
    return transposed(b, reshaped(value, s.dims), s.order);
  };
  const Value halfway = step(op.operand(0), t.dims, first);
  const Value whole = step(halfway, in_order(t.dims, first), second);
  op.replace_all_uses({reshaped(whole, op.result_type().dims())});
  op.parent()->erase(&op);
  return true;
}

}  // namespace

Result<bool> split_transposes(Module& module) {
  return change_ops(
      module, [](Instruction& op) { return op.code() == OpCode::kTranspose && split(op); },
      /*in_fusions=*/false);
}

}  // namespace tenon::hlo
