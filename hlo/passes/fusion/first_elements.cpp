// The pass `first-elements`: sorts of which the first elements of each row alone are used.
#include <algorithm>

#include "hlo/builder/builder.h"
#include "hlo/lower/elements/emitter.h"
#include "hlo/lower/schedules/own_kernels.h"
#include "hlo/passes/constants.h"
#include "hlo/passes/fusion/fuse.h"
#include "hlo/passes/parts/parts.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

// Selecting k elements of n takes n comparisons, and for each of the k about 32 in rows of up to
// 32 k elements; sorting takes n log^2 n.
constexpr int64_t kShortestRow = 64;
constexpr int64_t kMostKept = 1024;
constexpr int64_t kLeastFraction = 8;
// The elements of short rows, of which a few are found one after the other, each by two reductions.
constexpr int64_t kMostSearched = 8;
constexpr int64_t kMostCompared = 2048;

// The number of elements that `slice` keeps of each row, if those are the first of all rows.
int64_t kept_of_rows(const Instruction& slice, size_t axis) {
  const Dims& from = slice.operand_type(0).dims();
  const I64s& starts = slice.i64s(AttrKey::start_indices);
  const I64s& limits = slice.i64s(AttrKey::limit_indices);
  const I64s strides = slice.i64s_or(AttrKey::strides, from.size(), 1);
  for (size_t d = 0; d < from.size(); ++d) {
    if (starts[d] != 0 || strides[d] != 1 || (limits[d] != from[d] && d != axis)) return 0;
  }
  return limits[axis];
}

// Whether a comparison of the region is no order of NaNs. A sort by it gives some array, and its
// first elements are not those of a selection.
bool has_no_order(const Computation& region) {
  return std::ranges::any_of(region, [](const Instruction& op) {
    if (op.code() != OpCode::kCompare || !is_float(op.operand_type(0).element_type())) return false;
    const auto direction = op.enumeration<ComparisonDirection>(AttrKey::comparison_direction);
    return direction != ComparisonDirection::kEq && direction != ComparisonDirection::kNe &&
           op.enumeration<ComparisonType>(AttrKey::compare_type) != ComparisonType::kTotalOrder;
  });
}

// A sort of which slices take the first elements of each row, and nothing takes others.
struct RowSelection {
  std::vector<Instruction*> iotas;  ///< Which the sort alone reads.
  std::vector<Instruction*> slices;
  int64_t axis = 0;
  int64_t size = 0;  ///< The elements of a row.
  int64_t kept = 0;
};

std::optional<RowSelection> selection_at(Instruction& sort) {
  const Type& type = sort.operand_type(0);
  if (type.rank() == 0 || !type.shape().is_static() || sort.uses().empty()) return {};
  RowSelection found;
  found.axis = sort.integer(AttrKey::dimension, -1);
  if (found.axis < 0) found.axis += type.rank();
  found.size = type.dims()[static_cast<size_t>(found.axis)];
  if (element_count(type.dims()) == 0) return {};
  if (!lower::has_elemental_regions(sort) || has_no_order(sort.region(0))) return {};
  for (const Value operand : sort.operands()) {
    const bool own = operand.def->code() == OpCode::kIota && operand.def->uses().size() == 1 &&
                     operand.def->parent() == sort.parent();
    if (own) found.iotas.push_back(operand.def);
  }
  for (const Use& use : sort.uses()) {
    Instruction& slice = *use.user;
    if (slice.code() != OpCode::kSlice || slice.parent() != sort.parent()) return {};
    const int64_t mine = kept_of_rows(slice, static_cast<size_t>(found.axis));
    if (mine < 1 || (found.kept != 0 && mine != found.kept)) return {};
    found.kept = mine;
    if (std::ranges::find(found.slices, &slice) == found.slices.end())
      found.slices.push_back(&slice);
  }
  return found;
}

// The ops of a fusion that selects; none if sorting takes no longer.
std::vector<Instruction*> fused_selection(Instruction& sort, const RowSelection& selection) {
  if (selection.size < kShortestRow || selection.kept > kMostKept ||
      selection.kept * kLeastFraction > selection.size) {
    return {};
  }
  std::vector<Instruction*> ops = selection.iotas;
  ops.push_back(&sort);
  ops.insert(ops.end(), selection.slices.begin(), selection.slices.end());
  return ops;
}

// Finds the first elements of short rows: the greatest (or least) of all, the lowest index at which
// it is, and the same of the others. Elements are compared as integers that have their order.
class RowSearch {
 public:
  RowSearch(Instruction& sort, int64_t kept)
      : sort_(sort),
        type_(sort.operand_type(0).element_type()),
        b_(*sort.parent(), sort.next()),
        kept_(kept) {
    b_.set_location(sort.location());
  }

  // Whether the order of the sort is that of one operand's elements of up to 32 bits along the last
  // dimension, with no other operand but their indices.
  static bool fits(const Instruction& sort, int64_t axis, int64_t kept) {
    const Type& type = sort.operand_type(0);
    const ElementType element = type.element_type();
    const int64_t size = type.dims().back();
    // Bytes are selected in half the time.
    const int64_t most_compared = bit_width(element) == 8 ? kMostCompared / 2 : kMostCompared;
    // Bits of a type without a sign have another order.
    const bool is_key =
        element != ElementType::kF8E8M0FNU && (is_integer(element) || is_float(element)) &&
        !type.is_quantized() &&
        (bit_width(element) == 8 || bit_width(element) == 16 || bit_width(element) == 32);
    if (axis + 1 != type.rank() || !is_key || kept > kMostSearched || kept * size > most_compared ||
        2 * kept > size || sort.operand_count() > 2) {
      return false;
    }
    const bool counts = sort.operand_count() == 1 ||
                        (sort.operand(1).def->code() == OpCode::kIota &&
                         sort.operand(1).def->integer(AttrKey::iota_dimension) == axis &&
                         is_integer(sort.operand_type(1).element_type()));
    return counts && direction_of(sort.region(0)) != 0;
  }

  Status run(const RowSelection& selection) {
    const Type& type = sort_.operand_type(0);
    const Dims& dims = type.dims();
    const bool descends = direction_of(sort_.region(0)) > 0;
    const Value key = key_of(sort_.operand(0), descends);
    const Value places = b_.iota(ElementType::kS32, dims, type.rank() - 1);
    const Value none = b_.splat(Shape(ElementType::kS32, dims), static_cast<double>(dims.back()));
    const Value least = b_.splat(Shape(ElementType::kS32, dims), INT32_MIN);
    Value others;  // Whether an element is not found yet.
    std::vector<Value> values, indices;
    for (int64_t k = 0; k < kept_; ++k) {
      const Value candidates = others ? b_.select(others, key, least) : key;
      const Value greatest = over_row(OpCode::kMaximum, candidates, INT32_MIN);
      Value here = b_.compare(ComparisonDirection::kEq, candidates, along_row(greatest));
      if (others) here = b_.binary(OpCode::kAnd, here, others);
      const Value index = over_row(OpCode::kMinimum, b_.select(here, places, none), INT32_MAX);
      const Value is_other = b_.compare(ComparisonDirection::kNe, places, along_row(index));
      others = others ? b_.binary(OpCode::kAnd, others, is_other) : is_other;
      values.push_back(greatest);
      indices.push_back(index);
    }
    TENON_TRY(Status(b_.status()));
    const Value first = element_of(stacked(b_, values), descends);
    Value second = stacked(b_, indices);
    if (sort_.operand_count() == 2)
      second = b_.convert(second, sort_.operand_type(1).element_type());
    TENON_TRY(Status(b_.status()));
    Computation& computation = *sort_.parent();
    for (Instruction* slice : selection.slices) {
      slice->replace_uses(0, slice->operand(0).index == 0 ? first : second);
      computation.erase(slice);
    }
    computation.erase(&sort_);
    for (Instruction* iota : selection.iotas) {
      if (iota->uses().empty()) computation.erase(iota);  // Not the array that was searched.
    }
    return {};
  }

 private:
  // 1: the greatest come first, -1: the least, 0: another order.
  static int direction_of(const Computation& region) {
    const Instruction& compare = *region.first();
    const bool alone = compare.code() == OpCode::kCompare &&
                       region.return_instruction()->operand(0).def == &compare &&
                       compare.operand(0) == region.parameter(0) &&
                       compare.operand(1) == region.parameter(1);
    if (!alone) return 0;
    const auto direction = compare.enumeration<ComparisonDirection>(AttrKey::comparison_direction);
    if (direction == ComparisonDirection::kGt) return 1;
    return direction == ComparisonDirection::kLt ? -1 : 0;
  }

  // Integers in the total order of the elements, reversed unless the greatest come first.
  Value key_of(Value x, bool descends) {
    const int64_t bits = bit_width(type_);
    if (is_float(type_)) {
      const ElementType integer = *integer_of_width(static_cast<int>(bits), true);
      x = b_.bitcast(x, Type(Shape(integer, x.type().dims())));
      x = flipped_below_zero(x, bits);
    }
    const bool is_wide = type_ == ElementType::kU32;
    if (is_wide)
      x = with_other_sign(b_.bitcast(x, Type(Shape(ElementType::kS32, x.type().dims()))));
    x = b_.convert(x, ElementType::kS32);
    return descends ? x : b_.unary(OpCode::kNot, x);
  }
  Value element_of(Value key, bool descends) {
    if (!descends) key = b_.unary(OpCode::kNot, key);
    const Dims dims = key.type().dims();
    if (type_ == ElementType::kU32)
      return b_.bitcast(with_other_sign(key), Type(Shape(type_, dims)));
    if (!is_float(type_)) return b_.convert(key, type_);
    const int64_t bits = bit_width(type_);
    const Value x = b_.convert(key, *integer_of_width(static_cast<int>(bits), true));
    return b_.bitcast(flipped_below_zero(x, bits), Type(Shape(type_, dims)));
  }
  // All bits but the sign, of negative numbers.
  Value flipped_below_zero(Value x, int64_t bits) {
    const Value sign = b_.binary(OpCode::kShiftRightArithmetic, x,
                                 b_.splat_like(x, static_cast<double>(bits - 1)));
    const Value rest = b_.splat_like(x, static_cast<double>((int64_t{1} << (bits - 1)) - 1));
    return b_.binary(OpCode::kXor, x, b_.binary(OpCode::kAnd, sign, rest));
  }
  Value with_other_sign(Value x) { return b_.binary(OpCode::kXor, x, b_.splat_like(x, INT32_MIN)); }

  Value over_row(OpCode combiner, Value x, double init) {
    return b_.reduce(combiner, x, b_.scalar(ElementType::kS32, init), {x.type().rank() - 1});
  }
  Value along_row(Value x) {
    I64s to;
    for (int64_t d = 0; d < x.type().rank(); ++d) to.push_back(d);
    return b_.broadcast_in_dim(x, sort_.operand_type(0).dims(), to);
  }
  Instruction& sort_;
  const ElementType type_;
  Builder b_;
  const int64_t kept_;
};

Result<bool> first_elements_in(Computation& computation) {
  bool changed = false;
  std::vector<Instruction*> sorts;
  for (Instruction& op : computation) {
    if (op.code() == OpCode::kFusion) continue;
    if (op.code() == OpCode::kSort) sorts.push_back(&op);
    for (size_t r = 0; r < op.region_count(); ++r) {
      TENON_ASSIGN(const bool inner, first_elements_in(op.region(r)));
      changed |= inner;
    }
  }
  for (Instruction* const sort : sorts) {
    const std::optional<RowSelection> selection = selection_at(*sort);
    if (!selection) continue;
    if (RowSearch::fits(*sort, selection->axis, selection->kept)) {
      TENON_TRY(RowSearch(*sort, selection->kept).run(*selection));
      changed = true;
      continue;
    }
    const std::vector<Instruction*> ops = fused_selection(*sort, *selection);
    if (ops.empty()) continue;
    // Ops that cannot be fused stay as they are.
    changed |= fuse(ops, std::string(lower::kSelectionKind)).has_value();
  }
  return changed;
}

}  // namespace

Result<bool> first_elements(Module& module) {
  bool changed = false;
  for (const auto& function : module.functions()) {
    TENON_ASSIGN(const bool here, first_elements_in(*function));
    changed |= here;
  }
  return changed;
}

}  // namespace tenon::hlo
