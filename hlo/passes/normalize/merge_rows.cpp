// Pads and concatenations that leave short last dimensions as they are: [H, W, 3] along W moves
// rows of 3 elements. With those dimensions in the one before, [H, W*3], rows are long.
#include "hlo/passes/normalize/layouts.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

constexpr int64_t kShortRest = 16;
constexpr int64_t kLeastMerged = 1 << 10;  // Elements; smaller arrays take no time.

// The last dimension that the op changes; -1: none.
int64_t changed_dimension(const Instruction& op) {
  if (op.code() == OpCode::kConcatenate) return op.integer(AttrKey::dimension);
  const I64s& low = op.i64s(AttrKey::edge_padding_low);
  const I64s& high = op.i64s(AttrKey::edge_padding_high);
  const I64s& interior = op.i64s(AttrKey::interior_padding);
  auto d = static_cast<int64_t>(low.size()) - 1;
  const auto is_plain = [&](size_t i) { return low[i] == 0 && high[i] == 0 && interior[i] == 0; };
  while (d >= 0 && is_plain(static_cast<size_t>(d))) --d;
  // Between the rows of a dimension no other elements may come.
  return d >= 0 && interior[static_cast<size_t>(d)] != 0 ? -1 : d;
}

Dims with_rest_in(const Dims& dims, int64_t last) {
  Dims made(dims.begin(), dims.begin() + last + 1);
  for (size_t d = static_cast<size_t>(last) + 1; d < dims.size(); ++d) made.back() *= dims[d];
  return made;
}

bool merge_rows_of(Instruction& op) {
  if (op.code() != OpCode::kPad && op.code() != OpCode::kConcatenate) return false;
  const Type& type = op.result_type();
  if (!type.is_tensor() || type.is_quantized() || !type.shape().is_static()) return false;
  const int64_t last = changed_dimension(op);
  if (last < 0 || last + 1 >= type.rank()) return false;
  const Dims rest(type.dims().begin() + last + 1, type.dims().end());
  const int64_t row = element_count(rest);
  if (row < 2 || row >= kShortRest || element_count(type.dims()) < kLeastMerged) return false;
  Builder b(*op.parent(), &op);
  b.set_location(op.location());
  const auto reshaped = [&](Value value) {
    return b.reshape(value, with_rest_in(value.type().dims(), last));
  };
  Value made;
  if (op.code() == OpCode::kConcatenate) {
    std::vector<Value> parts;
    for (size_t i = 0; i < op.operand_count(); ++i) parts.push_back(reshaped(op.operand(i)));
    made = b.concatenate(parts, last);
  } else {
    const auto of_rows = [&](AttrKey key) {
      const I64s& all = op.i64s(key);
      I64s kept(all.begin(), all.begin() + last + 1);
      kept.back() *= row;
      return kept;
    };
    made = b.pad(reshaped(op.operand(0)), op.operand(1), of_rows(AttrKey::edge_padding_low),
                 of_rows(AttrKey::edge_padding_high), of_rows(AttrKey::interior_padding));
  }
  op.replace_all_uses({b.reshape(made, type.dims())});
  op.parent()->erase(&op);
  return true;
}

}  // namespace

Result<bool> merge_rows(Module& module) {
  return change_ops(module, merge_rows_of, /*in_fusions=*/false);
}

}  // namespace tenon::hlo
