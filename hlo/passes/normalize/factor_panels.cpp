// Panels of constant factors of products: as many columns as a tile of the target has side by side
// lie together, for all products of one after the other, so that a tile reads memory in a row and
// a call neither packs the factor nor keeps a copy of it. A product with panels is one of two
// dimensions of columns, [batch, panels, products, columns], whose result lies as before.
#include <algorithm>
#include <cstring>

#include "hlo/passes/constants.h"
#include "hlo/passes/normalize/layouts.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

constexpr int64_t kLeastBytes = 1 << 15;  // Smaller factors stay in the nearest cache.

// Columns of a panel of a factor of so many rows of results: with few rows, tiles have more
// columns (backends/cpu/contraction/tiling.h).
int64_t panel_columns(int64_t rows, int64_t panel_bytes, int64_t element_bytes) {
  const int64_t wider = rows >= 4 ? 1 : rows >= 2 ? 2 : 4;
  return wider * panel_bytes / element_bytes;
}

// Whether the dimensions are the first ones in order: of each batch the matrix is in a row.
bool are_first(const I64s& dimensions) {
  for (size_t d = 0; d < dimensions.size(); ++d) {
    if (dimensions[d] != static_cast<int64_t>(d)) return false;
  }
  return true;
}

// A product's right factor as matrices.
struct FactorSizes {
  int64_t batch = 1;
  int64_t products = 1;
  int64_t columns = 1;
  bool is_transposed = false;  // [columns, products]
  int64_t panel = 0;           // Columns of a panel; 0: it is none that may lie in panels.

  bool operator==(const FactorSizes&) const = default;
};

FactorSizes sizes_of(const Use& use, int64_t panel_bytes) {
  FactorSizes s;
  const Instruction& op = *use.user;
  if (op.code() != OpCode::kDotGeneral || use.operand != 1) return s;
  const Value x = op.operand(0), y = op.operand(1);
  const ElementType type = y.type().element_type();
  const bool same = is_plain(x.type()) && is_plain(op.result_type()) &&
                    x.type().element_type() == type && op.result_type().element_type() == type;
  const auto& dims = *op.attr<DotDims>(AttrKey::dot_dimension_numbers);
  const Dims& size = y.type().dims();
  const size_t rank = dims.rhs_batching.size();
  if (!same || !are_first(dims.rhs_batching) || dims.rhs_contracting.size() != 1 ||
      size.size() != rank + 2) {
    return s;
  }
  s.is_transposed = dims.rhs_contracting[0] != static_cast<int64_t>(rank);
  for (size_t d = 0; d < rank; ++d) s.batch *= size[d];
  s.products = size[rank + (s.is_transposed ? 1 : 0)];
  s.columns = size[rank + (s.is_transposed ? 0 : 1)];
  const int64_t rows = element_count(x.type().dims()) / std::max<int64_t>(s.products * s.batch, 1);
  const int64_t panel = panel_columns(rows, panel_bytes, storage_bytes(type));
  if (s.columns > panel && s.columns % panel == 0) s.panel = panel;
  return s;
}

// The elements as [batch, panels, products, columns of a panel].
Literal panels_of(const Literal& factor, const FactorSizes& s) {
  Dims dims = factor.shape().dims();
  dims.resize(dims.size() - 2);
  dims.insert(dims.end(), {s.columns / s.panel, s.products, s.panel});
  Literal result(Shape(factor.element_type(), dims));
  const auto unit = static_cast<size_t>(storage_bytes(factor.element_type()));
  const int64_t apart = s.is_transposed ? s.products : 1;
  const auto at_once = static_cast<size_t>(s.is_transposed ? 1 : s.panel);
  std::byte* to = result.mutable_data().data();
  for (int64_t line = 0; line < s.batch * s.columns / s.panel * s.products; ++line) {
    const int64_t k = line % s.products, panel = line / s.products % (s.columns / s.panel);
    const int64_t matrix = line / s.products / (s.columns / s.panel) * s.products * s.columns;
    const int64_t first = matrix + panel * s.panel * apart + k * (s.is_transposed ? 1 : s.columns);
    for (int64_t column = 0; column < s.panel; column += static_cast<int64_t>(at_once)) {
      const auto place = static_cast<size_t>(first + column * apart);
      std::memcpy(to, factor.data().data() + place * unit, at_once * unit);
      to += at_once * unit;
    }
  }
  return result;
}

void read_panels(Instruction& op, Value panels) {
  op.set_operand(1, panels);
  auto dims = *op.attr<DotDims>(AttrKey::dot_dimension_numbers);
  dims.rhs_contracting = {panels.type().rank() - 2};
  op.mutable_attributes().set(AttrKey::dot_dimension_numbers, dims);
  const std::vector<Use> uses = op.uses();
  const Type type = op.result_type();
  Dims split = type.dims();
  split.back() = panels.type().dims()[static_cast<size_t>(panels.type().rank()) - 3];
  split.push_back(panels.type().dims().back());
  op.set_result_type(0, Type::tensor(type.element_type(), split));
  Builder after(*op.parent(), op.next());
  after.set_location(op.location());
  const Value result = after.make(OpCode::kReshape, {op.result(0)}, {}, {type});
  for (const Use& each : uses) each.user->set_operand(each.operand, result);
}

bool is_large_constant(Instruction& op) {
  if (op.code() != OpCode::kConstant || op.uses().empty()) return false;
  const Type& type = op.result_type();
  return constant_of(op.result(0)) != nullptr && splat_of(op.result(0)) == nullptr &&
         (type.element_type() == ElementType::kF32 || type.element_type() == ElementType::kF64) &&
         type.shape().byte_size() >= kLeastBytes;
}

bool lay_out(Instruction& op, int64_t panel_bytes) {
  if (!is_large_constant(op)) return false;
  const DenseAttr* const constant = constant_of(op.result(0));
  const Type& type = op.result_type();
  const std::vector<Use> uses = op.uses();
  const FactorSizes sizes = sizes_of(uses[0], panel_bytes);
  if (sizes.panel == 0) return false;
  // A constant that others read too would be in memory twice.
  const bool all_alike = std::ranges::all_of(
      uses, [&](const Use& use) { return sizes_of(use, panel_bytes) == sizes; });
  if (!all_alike) return false;
  Literal panels = panels_of(constant->values, sizes);
  const Type laid_out = Type::tensor(type.element_type(), panels.shape().dims());
  const Value value = insert_constant(DenseAttr::of(std::move(panels)), laid_out, op);
  for (const Use& use : uses) read_panels(*use.user, value);
  op.parent()->erase(&op);
  return true;
}

// A factor may be a constant of other dimensions: a filter of one place.
bool reshape_constant(Instruction& op) {
  if (op.code() != OpCode::kReshape || op.uses().empty()) return false;
  const Value before = op.operand(0);
  const DenseAttr* const constant = constant_of(before);
  const bool is_factor = std::ranges::all_of(op.uses(), [](const Use& use) {
    return use.user->code() == OpCode::kDotGeneral && use.operand == 1;
  });
  if (!is_factor || constant == nullptr || splat_of(before) != nullptr ||
      before.def->uses().size() != 1 || !is_plain(op.result_type())) {
    return false;
  }
  DenseAttr value = DenseAttr::of(constant->values.reshaped(op.result_type().dims()));
  op.replace_all_uses({insert_constant(std::move(value), op.result_type(), op)});
  op.parent()->erase(&op);
  before.def->parent()->erase(before.def);
  return true;
}

}  // namespace

Result<bool> lay_out_panels(Module& module, const PassOptions& options) {
  const int64_t bytes = options.cost.panel_bytes;
  if (bytes <= 0) return false;
  bool is_any_large = false;
  const auto look = [&](Instruction& op) {
    is_any_large |= is_large_constant(op);
    return false;
  };
  change_ops(module, look, false);
  if (!is_any_large) return false;
  if (options.reads_panels != nullptr) {
    TENON_ASSIGN(const bool taken, options.reads_panels());
    if (!taken) return false;
  }
  const bool reshaped = change_ops(module, reshape_constant, false);
  const auto change = [&](Instruction& op) { return lay_out(op, bytes); };
  return change_ops(module, change, false) || reshaped;
}

}  // namespace tenon::hlo
