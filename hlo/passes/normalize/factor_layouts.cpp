// Layouts of constant factors of products: a right factor whose rows are its columns' products, as
// of layers that keep [outputs, inputs], is transposed once, as the program is compiled, and not
// packed at each call.
#include "hlo/passes/constants.h"
#include "hlo/passes/normalize/layouts.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

constexpr int64_t kLeastFactorRows = 8;         // Of fewer, sums along memory are as fast.
constexpr int64_t kLeastFactorElements = 1024;  // Smaller factors stay in the nearest cache.

bool lay_out_factor(Instruction& op) {
  if (op.code() != OpCode::kDotGeneral || !is_plain(op.result_type())) return false;
  const Value x = op.operand(0), y = op.operand(1);
  const DenseAttr* const constant = constant_of(y);
  auto dims = *op.attr<DotDims>(AttrKey::dot_dimension_numbers);
  const bool fits = constant != nullptr && splat_of(y) == nullptr && is_plain(x.type()) &&
                    is_plain(y.type()) && y.type().rank() == 2 && dims.rhs_batching.empty() &&
                    dims.rhs_contracting == I64s{1};
  if (!fits) return false;
  const Dims& size = y.type().dims();
  const int64_t rows = element_count(x.type().dims()) / std::max<int64_t>(size[1], 1);
  if (rows < kLeastFactorRows || size[0] * size[1] < kLeastFactorElements) return false;
  Builder before(*op.parent(), &op);
  before.set_location(op.location());
  op.set_operand(1, transposed(before, y, {1, 0}));
  dims.rhs_contracting = {0};
  op.mutable_attributes().set(AttrKey::dot_dimension_numbers, dims);
  return true;
}

}  // namespace

Result<bool> lay_out_factors(Module& module, const PassOptions& options) {
  return options.cost.wide_tiles &&
         change_ops(module, [](Instruction& op) { return lay_out_factor(op); });
}

}  // namespace tenon::hlo
