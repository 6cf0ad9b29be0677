// Rules of dot_general: transposes around it are other dimension numbers, which cost nothing.
#include <algorithm>
#include <functional>
#include <utility>

#include "hlo/passes/precision.h"
#include "hlo/passes/rewrite/rule.h"

namespace tenon::hlo::rewrite {
namespace {

const DotDims& dims_of(const Instruction& dot) {
  return *dot.attr<DotDims>(AttrKey::dot_dimension_numbers);
}

I64s free_dims(const Type& type, const I64s& batching, const I64s& contracting) {
  I64s list;
  for (int64_t d = 0; d < type.rank(); ++d) {
    if (!contains(batching, d) && !contains(contracting, d)) list.push_back(d);
  }
  return list;
}

int64_t elements_of(const Type& type, const I64s& dimensions) {
  int64_t count = 1;
  for (const int64_t d : dimensions) count *= type.dims()[static_cast<size_t>(d)];
  return count;
}

// An algorithm names types of the left and the right operand.
bool has_algorithm(const Instruction& dot) { return dot.attribute(AttrKey::algorithm) != nullptr; }

// `dot` of other factors, in the order of its own.
Value dot_like(Builder& b, const Instruction& dot, Value x, Value y, DotDims dims) {
  const Value made = b.dot_general(x, y, std::move(dims), dot.result_type().element_type());
  if (!made) return {};
  if (const Attribute* const precision = dot.attribute(AttrKey::precision_config)) {
    made.def->mutable_attributes().set(AttrKey::precision_config, *precision);
  }
  return made;
}

// `dot` with `x`, its left factor, and `y` in each other's place: the products are the same, and
// are added in the same order.
Value swapped(Builder& b, const Instruction& dot, Value x, Value y) {
  DotDims dims = dims_of(dot);
  std::swap(dims.lhs_batching, dims.rhs_batching);
  std::swap(dims.lhs_contracting, dims.rhs_contracting);
  const Value made = dot_like(b, dot, y, x, std::move(dims));
  if (made) exchange_precisions(*made.def);
  return made;
}

// --- A factor that is a transpose

I64s mapped(const I64s& dimensions, const I64s& permutation) {
  I64s list;
  for (const int64_t d : dimensions) list.push_back(permutation[static_cast<size_t>(d)]);
  return list;
}

// Rows or columns of so many elements need no others beside them to fill a tile.
constexpr int64_t kFillsATile = 64;

// Whether the free dimensions of the factor have the same order before its transpose, and fill
// tiles as before: they lie side by side, or the last has many elements. Loops over several
// contracting dimensions may not become one again.
bool keeps_order(const Match& m, const I64s& batching, const I64s& contracting) {
  const Type& type = m.inner().result_type();
  const I64s& permutation = m.inner().i64s(AttrKey::permutation);
  const auto several = [&](int64_t d) { return type.dims()[static_cast<size_t>(d)] != 1; };
  I64s free = free_dims(type, batching, contracting);
  const I64s places = mapped(free, permutation);
  std::erase_if(free, std::not_fn(several));
  const I64s wide = mapped(free, permutation);
  const auto is_apart = [](int64_t a, int64_t b) { return b != a + 1; };
  const bool fills = std::ranges::adjacent_find(wide, is_apart) == wide.end() ||
                     type.dims()[static_cast<size_t>(free.back())] >= kFillsATile;
  return std::ranges::count_if(contracting, several) <= 1 && !has_algorithm(m.root()) && fills &&
         std::ranges::is_sorted(places);
}
constexpr Condition kLeftInOrder{
    "the free dimensions of x stay in order and side by side, or the last has 64 elements; at most "
    "one of several elements is contracted",
    [](const Match& m) {
      return keeps_order(m, dims_of(m.root()).lhs_batching, dims_of(m.root()).lhs_contracting);
    }};
constexpr Condition kRightInOrder{
    "the free dimensions of y stay in order and side by side, or the last has 64 elements; at most "
    "one of several elements is contracted",
    [](const Match& m) {
      return keeps_order(m, dims_of(m.root()).rhs_batching, dims_of(m.root()).rhs_contracting);
    }};

// The product with x itself in place of its transpose, on the side of these dimensions.
Value with_untransposed(Builder& b, const Match& m, I64s DotDims::* batching,
                        I64s DotDims::* contracting) {
  DotDims dims = dims_of(m.root());
  const I64s& permutation = m.inner().i64s(AttrKey::permutation);
  dims.*batching = mapped(dims.*batching, permutation);
  dims.*contracting = mapped(dims.*contracting, permutation);
  return dot_like(b, m.root(), m.x(), m.variables[1], std::move(dims));
}
Value with_left(Builder& b, const Match& m) {
  return with_untransposed(b, m, &DotDims::lhs_batching, &DotDims::lhs_contracting);
}
Value with_right(Builder& b, const Match& m) {
  return with_untransposed(b, m, &DotDims::rhs_batching, &DotDims::rhs_contracting);
}

// --- A product that is transposed

constexpr Condition kSwapsFactors{
    "the transpose puts the free dimensions of y before those of x, and is the only use of the "
    "product, which is not complex",
    [](const Match& m) {
      const Instruction& dot = m.inner();
      const DotDims& dims = dims_of(dot);
      const auto batch = static_cast<int64_t>(dims.lhs_batching.size());
      const auto rows = static_cast<int64_t>(
          free_dims(dot.operand_type(0), dims.lhs_batching, dims.lhs_contracting).size());
      const auto rank = dot.result_type().rank();
      I64s wanted;
      for (int64_t d = 0; d < batch; ++d) wanted.push_back(d);
      for (int64_t d = batch + rows; d < rank; ++d) wanted.push_back(d);
      for (int64_t d = batch; d < batch + rows; ++d) wanted.push_back(d);
      // Where a backend fuses one of two products, complex factors in the other order round
      // otherwise.
      return dot.uses().size() == 1 && !has_algorithm(dot) && !is_complex(m.type()) &&
             !std::ranges::is_sorted(wanted) && m.root().i64s(AttrKey::permutation) == wanted;
    }};

Value swap_factors(Builder& b, const Match& m) {
  return swapped(b, m.inner(), m.x(), m.variables[1]);
}

// --- A vector times a matrix

// Products commute, and no algorithm names types of the left and the right operand.
bool may_swap(const Instruction& dot) {
  return !has_algorithm(dot) && !is_complex(dot.operand_type(0).element_type()) &&
         !is_complex(dot.operand_type(1).element_type());
}

constexpr Condition kRowsOfMatrix{
    "x has one free element, y has several, and y's last dimension is contracted; neither is "
    "complex",
    [](const Match& m) {
      const Instruction& dot = m.root();
      const DotDims& dims = dims_of(dot);
      const Type& x = dot.operand_type(0);
      const Type& y = dot.operand_type(1);
      return elements_of(x, free_dims(x, dims.lhs_batching, dims.lhs_contracting)) == 1 &&
             elements_of(y, free_dims(y, dims.rhs_batching, dims.rhs_contracting)) > 1 &&
             contains(dims.rhs_contracting, y.rank() - 1) && may_swap(dot);
    }};

Value matrix_first(Builder& b, const Match& m) {
  const Value product = swapped(b, m.root(), m.x(), m.variables[1]);
  return product ? b.reshape(product, m.root().result_type().dims()) : Value();
}

constexpr Condition kColumnsOfMatrix{
    "y has one free element, x has several, and they end x's shape; neither is complex",
    [](const Match& m) {
      const Instruction& dot = m.root();
      const DotDims& dims = dims_of(dot);
      const Type& x = dot.operand_type(0);
      const Type& y = dot.operand_type(1);
      const I64s free = free_dims(x, dims.lhs_batching, dims.lhs_contracting);
      return elements_of(y, free_dims(y, dims.rhs_batching, dims.rhs_contracting)) == 1 &&
             elements_of(x, free) > 1 && free.back() == x.rank() - 1 && x.dims().back() > 1 &&
             may_swap(dot);
    }};

// --- Products without free dimensions

// The type in which a sum of products is computed.
ElementType type_of_sums(const Instruction& dot) {
  const ElementType type = dot.result_type().element_type();
  return is_float(type) && storage_bytes(type) < 4 ? ElementType::kF32 : type;
}

constexpr Condition kColumnsAlone{
    "x and y have one shape, of real numbers, no free dimension, and end with a batch dimension",
    [](const Match& m) {
      const Instruction& dot = m.root();
      const DotDims& dims = dims_of(dot);
      const Type& x = dot.operand_type(0);
      const ElementType result = dot.result_type().element_type();
      const bool alike = x == dot.operand_type(1) && dims.lhs_batching == dims.rhs_batching &&
                         dims.lhs_contracting == dims.rhs_contracting;
      const size_t named = dims.lhs_batching.size() + dims.lhs_contracting.size();
      return alike && named == x.dims().size() && !dims.lhs_batching.empty() &&
             !dims.lhs_contracting.empty() && dims.lhs_batching.back() == x.rank() - 1 &&
             x.dims().back() > 1 && std::ranges::is_sorted(dims.lhs_batching) &&
             !has_algorithm(dot) && (is_float(result) || is_integer(result)) &&
             is_float(result) == is_float(x.element_type());
    }};

Value sums_of_products(Builder& b, const Match& m) {
  const Instruction& dot = m.root();
  const ElementType type = type_of_sums(dot);
  const Value products = b.mul(b.convert(m.x(), type), b.convert(m.variables[1], type));
  const Value sums =
      b.reduce(OpCode::kAdd, products, b.scalar(type, 0), dims_of(dot).lhs_contracting);
  return b.convert(sums, dot.result_type().element_type());
}

// --- Products without sums

constexpr Condition kNothingToSum{
    "x and y are of real numbers, and contract one element", [](const Match& m) {
      const Instruction& dot = m.root();
      const Type& x = dot.operand_type(0);
      const ElementType result = dot.result_type().element_type();
      return elements_of(x, dims_of(dot).lhs_contracting) == 1 && !has_algorithm(dot) &&
             (is_float(result) || is_integer(result)) &&
             is_float(result) == is_float(x.element_type()) &&
             x.element_type() == dot.operand_type(1).element_type();
    }};

// A factor in the type of products, with the result's dimensions, of which its free ones begin at
// `first_free`.
Value as_result(Builder& b, Value factor, const Instruction& dot, const I64s& batching,
                const I64s& contracting, size_t first_free) {
  const Type& type = factor.type();
  const I64s free = free_dims(type, batching, contracting);
  Dims kept;
  I64s places;
  for (int64_t d = 0; d < type.rank(); ++d) {
    if (contains(contracting, d)) continue;
    kept.push_back(type.dims()[static_cast<size_t>(d)]);
    const auto batch = std::ranges::find(batching, d);
    const auto place = batch != batching.end() ? batch - batching.begin()
                                               : static_cast<std::ptrdiff_t>(first_free) +
                                                     (std::ranges::find(free, d) - free.begin());
    places.push_back(place);
  }
  const Value wide = b.convert(b.reshape(factor, kept), type_of_sums(dot));
  return b.broadcast_in_dim(wide, dot.result_type().dims(), places);
}

// A sum begins at 0, so that a product of -0 becomes 0.
Value products_alone(Builder& b, const Match& m) {
  const Instruction& dot = m.root();
  const DotDims& dims = dims_of(dot);
  const size_t batches = dims.lhs_batching.size();
  const size_t of_x = free_dims(m.x().type(), dims.lhs_batching, dims.lhs_contracting).size();
  const Value x = as_result(b, m.x(), dot, dims.lhs_batching, dims.lhs_contracting, batches);
  const Value y =
      as_result(b, m.variables[1], dot, dims.rhs_batching, dims.rhs_contracting, batches + of_x);
  const Value products = b.mul(x, y);
  const Value sums =
      is_float(type_of_sums(dot)) ? b.add(products, b.splat_like(products, 0)) : products;
  return b.convert(sums, dot.result_type().element_type());
}

// clang-format off
constexpr Rule kProductRules[] = {
    {.name = "dot-of-transposed-x", .pattern = "dot_general(transpose(x), y)", .where = kLeftInOrder,
     .replacement = "dot_general(x, y)", .build = with_left, .because = "the same products, added in the same order"},
    {.name = "dot-of-transposed-y", .pattern = "dot_general(x, transpose(y))", .where = kRightInOrder,
     .replacement = "dot_general(x, y)", .build = with_right, .because = "the same products, added in the same order"},
    {.name = "transpose-of-dot", .pattern = "transpose(dot_general(x, y))", .where = kSwapsFactors,
     .replacement = "dot_general(y, x)", .build = swap_factors, .because = "products commute"},
    {.name = "dot-of-vector", .pattern = "dot_general(x, y)", .where = kRowsOfMatrix,
     .replacement = "reshape(dot_general(y, x))", .build = matrix_first,
     .because = "products commute; sums along rows are read as they lie in memory", .is_late = true},
    {.name = "dot-of-columns", .pattern = "dot_general(x, y)", .where = kColumnsOfMatrix,
     .replacement = "reshape(dot_general(y, x))", .build = matrix_first,
     .because = "products commute; results that lie side by side are columns", .is_late = true},
    {.name = "dot-without-free", .pattern = "dot_general(x, y)", .where = kColumnsAlone,
     .replacement = "reduce(multiply(x, y))", .build = sums_of_products,
     .because = "the same products; a fused reduction reads them as they lie in memory", .is_late = true},
    {.name = "dot-of-one-element", .pattern = "dot_general(x, y)", .where = kNothingToSum,
     .replacement = "add(multiply(broadcast_in_dim(x), broadcast_in_dim(y)), 0)", .build = products_alone,
     .because = "each sum has one product; what reads it computes it", .is_late = true},
};
// clang-format on

}  // namespace

std::span<const Rule> product_rules() { return kProductRules; }

}  // namespace tenon::hlo::rewrite
