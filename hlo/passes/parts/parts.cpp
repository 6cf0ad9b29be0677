#include "hlo/passes/parts/parts.h"

#include <algorithm>

#include "hlo/ir/region.h"
#include "hlo/lower/elements/prefix_windows.h"
#include "hlo/passes/constants.h"

namespace tenon::hlo {
namespace {

constexpr int64_t kMostPartsOfArray = 8;
constexpr int64_t kLeastRows = 8;  // Of fewer elements a kernel keeps arrays in registers.

int64_t last_of(const I64s& sizes) { return sizes.back(); }
Dims without_last(const Dims& dims) { return {dims.begin(), dims.end() - 1}; }
Dims part_dims(Value value) { return without_last(value.type().dims()); }
Type part_type(const Type& type) {
  return Type(Shape(type.element_type(), without_last(type.dims())));
}

// Whether the value ends in `count` elements.
bool ends_in(Value value, int64_t count) {
  return is_plain(value.type()) && value.type().rank() > 0 && last_of(value.type().dims()) == count;
}

// Whether a slice takes the whole last dimension in order.
bool takes_all(const Instruction& slice) {
  const int64_t size = last_of(slice.operand_type(0).dims());
  const I64s strides = slice.i64s_or(AttrKey::strides, slice.operand_type(0).dims().size(), 1);
  return slice.i64s(AttrKey::start_indices).back() == 0 && strides.back() == 1 &&
         slice.i64s(AttrKey::limit_indices).back() == size;
}

bool is_zero(const I64s& values, bool but_last) {
  return std::all_of(values.begin(), values.end() - (but_last ? 1 : 0),
                     [](int64_t value) { return value == 0; });
}

// The operands with the dimensions of the result; nothing if there are others that are no scalars.
std::optional<std::vector<uint32_t>> elementwise_operands(const Instruction& op) {
  std::vector<uint32_t> found;
  for (uint32_t i = 0; i < op.operand_count(); ++i) {
    const Type& type = op.operand_type(i);
    if (!is_plain(type)) return {};
    if (type.dims() == op.result_type().dims()) {
      found.push_back(i);
    } else if (type.rank() != 0) {
      return {};
    }
  }
  return found;
}

std::optional<std::vector<uint32_t>> if_true(bool holds, std::vector<uint32_t> operands) {
  if (!holds) return {};
  return operands;
}

// The number of the operand's dimension that becomes the last one of a broadcast; nothing: none.
std::optional<size_t> last_of_broadcast(const Instruction& op) {
  const I64s& to = op.i64s(AttrKey::broadcast_dimensions);
  const auto found = std::ranges::find(to, op.result_type().rank() - 1);
  if (found == to.end()) return {};
  return static_cast<size_t>(found - to.begin());
}

std::optional<std::vector<uint32_t>> broadcast_operands(const Instruction& op) {
  const std::optional<size_t> last = last_of_broadcast(op);
  if (!last || op.operand_type(0).dims()[*last] == 1) return std::vector<uint32_t>{};
  return if_true(*last + 1 == op.operand_type(0).dims().size(), {0});
}

// Along the last dimension each operand is one part or has parts of its own.
std::optional<std::vector<uint32_t>> concatenate_operands(const Instruction& op) {
  if (op.integer(AttrKey::dimension) + 1 == op.result_type().rank()) {
    return std::vector<uint32_t>{};
  }
  std::vector<uint32_t> all;
  for (uint32_t i = 0; i < op.operand_count(); ++i) all.push_back(i);
  return all;
}

bool pads_last(const Instruction& op) {
  return op.i64s(AttrKey::edge_padding_low).back() != 0 ||
         op.i64s(AttrKey::edge_padding_high).back() != 0 ||
         op.i64s(AttrKey::interior_padding).back() != 0;
}

// Sums of narrow floats are rounded once, at their end.
bool combines_by_parts(const Instruction& op) {
  for (size_t i = 0; i < op.result_count(); ++i) {
    const ElementType type = op.operand_type(i).element_type();
    const bool same = op.operand_type(op.result_count() + i).element_type() == type &&
                      op.result_type(i).element_type() == type;
    if (!same || !is_plain(op.operand_type(i))) return false;
  }
  return !is_narrow_sum(op.region(0));
}

// Whether each op of the region has an element of its own for each element of arrays.
bool is_elementwise_throughout(const Computation& region) {
  return std::ranges::all_of(region, [](const Instruction& op) {
    if (op.code() == OpCode::kConstant || op.code() == OpCode::kReturn) return true;
    return op.info().fusion == FusionKind::kElementwise && op.region_count() == 0 &&
           !op.is_ordered() && op.result_count() == 1 && is_plain(op.result_type());
  });
}

bool reduces_last(const Instruction& op) {
  const I64s& dimensions = op.i64s(AttrKey::dimensions);
  return std::ranges::find(dimensions, op.operand_type(0).rank() - 1) != dimensions.end();
}

// Whether each element combines some parts of its row, and places before and behind it, which have
// the initial value.
bool has_windows_of_parts(const Instruction& op) {
  const size_t rank = op.result_type().dims().size();
  const auto is_one = [](const I64s& sizes, bool but_last) {
    return std::all_of(sizes.begin(), sizes.end() - (but_last ? 1 : 0),
                       [](int64_t size) { return size == 1; });
  };
  const I64Matrix padding = op.padding_or_zero(rank);
  return op.operand_count() == 2 && combines_by_parts(op) &&
         is_elementwise_throughout(op.region(0)) &&
         op.operand_type(0).dims() == op.result_type().dims() &&
         is_one(op.i64s(AttrKey::window_dimensions), true) &&
         is_one(op.i64s_or(AttrKey::window_strides, rank, 1), false) &&
         is_one(op.i64s_or(AttrKey::base_dilations, rank, 1), false) &&
         is_one(op.i64s_or(AttrKey::window_dilations, rank, 1), false) &&
         is_zero(I64s(padding.values.begin(), padding.values.end() - 2), false);
}

// A copy of the op that computes one part.
Value copied(Builder& b, const Instruction& op, int64_t number, const PartOf& part) {
  Cloner cloner;
  const std::vector<uint32_t> operands = *operands_in_parts(op);
  for (const uint32_t i : operands) cloner.map(op.operand(i), part(op.operand(i), number));
  std::unique_ptr<Instruction> copy = cloner.clone(op);
  copy->set_result_type(0, part_type(op.result_type()));
  Instruction* const made = b.create(std::move(copy));
  return made == nullptr ? Value{} : made->result();
}

Value broadcast_part(Builder& b, const Instruction& op, int64_t number, const PartOf& part) {
  Value x = op.operand(0);
  I64s to = op.i64s(AttrKey::broadcast_dimensions);
  if (const std::optional<size_t> last = last_of_broadcast(op)) {
    const auto at = static_cast<std::ptrdiff_t>(*last);
    if (x.type().dims()[*last] == 1) {
      Dims dims = x.type().dims();
      dims.erase(dims.begin() + at);
      x = b.reshape(x, dims);
    } else {
      x = part(x, number);
    }
    to.erase(to.begin() + at);
  }
  return b.broadcast_in_dim(x, without_last(op.result_type().dims()), to);
}

Value concatenate_part(Builder& b, const Instruction& op, int64_t number, const PartOf& part) {
  if (!operands_in_parts(op)->empty()) {
    std::vector<Value> parts;
    for (const Value operand : op.operands()) parts.push_back(part(operand, number));
    return b.concatenate(parts, op.integer(AttrKey::dimension));
  }
  size_t i = 0;
  for (; number >= last_of(op.operand_type(i).dims()); ++i)
    number -= last_of(op.operand_type(i).dims());
  const Value operand = op.operand(i);
  return ends_in(operand, 1) ? b.reshape(operand, part_dims(operand)) : part(operand, number);
}

Value pad_part(Builder& b, const Instruction& op, int64_t number, const PartOf& part) {
  const Value x = op.operand(0);
  const I64s& low = op.i64s(AttrKey::edge_padding_low);
  const I64s& high = op.i64s(AttrKey::edge_padding_high);
  const I64s& interior = op.i64s(AttrKey::interior_padding);
  const int64_t place = number - low.back();
  const int64_t step = interior.back() + 1;
  if (place < 0 || place % step != 0 || place / step >= last_of(x.type().dims())) {
    return b.broadcast_scalar(op.operand(1), without_last(op.result_type().dims()));
  }
  const Value inner = ends_in(x, 1) ? b.reshape(x, part_dims(x)) : part(x, place / step);
  if (is_zero(low, true) && is_zero(high, true) && is_zero(interior, true)) return inner;
  return b.pad(inner, op.operand(1), without_last(low), without_last(high), without_last(interior));
}

// The results of the region for each element of arrays of these dimensions.
std::vector<Value> combined(Builder& b, const Computation& region, const std::vector<Value>& values,
                            const Dims& dims) {
  Cloner cloner;
  for (size_t i = 0; i < values.size(); ++i) cloner.map(region.parameter(i), values[i]);
  for (Instruction& op : region) {
    if (op.code() == OpCode::kReturn) break;
    const ElementType type = op.result_type().element_type();
    if (op.code() == OpCode::kConstant) {
      const Literal& value = op.attr<DenseAttr>(AttrKey::value)->values;
      cloner.map(op.result(), b.constant(DenseAttr::splat(Shape(type, dims), value)));
      continue;
    }
    for (const Value operand : op.operands()) {
      if (cloner(operand) == operand) cloner.map(operand, b.broadcast_scalar(operand, dims));
    }
    std::unique_ptr<Instruction> copy = cloner.clone(op);
    copy->set_result_type(0, Type(Shape(type, dims)));
    const Instruction* const made = b.create(std::move(copy));
    if (made == nullptr) return std::vector<Value>(values.size() / 2);
    cloner.map(op.result(), {const_cast<Instruction*>(made), 0});
  }
  std::vector<Value> results;
  for (const Value result : region.return_instruction()->operands()) {
    const Value made = cloner(result);
    results.push_back(made == result ? b.broadcast_scalar(result, dims) : made);
  }
  return results;
}

Value window_part(Builder& b, const Instruction& op, int64_t number, const PartOf& part) {
  const Dims dims = part_dims(op.operand(0));
  const int64_t count = last_of(op.result_type().dims());
  const int64_t low = op.padding_or_zero(dims.size() + 1).at(op.result_type().rank() - 1, 0);
  const int64_t first = number - low;
  const Value init = b.broadcast_scalar(op.operand(1), dims);
  Value sum = init;
  for (int64_t i = first; i < first + last_of(op.i64s(AttrKey::window_dimensions)); ++i) {
    const Value x = i >= 0 && i < count ? part(op.operand(0), i) : init;  // Padding is init.
    sum = combined(b, op.region(0), {sum, x}, dims)[0];
  }
  return sum;
}

// A slice of one part, along the other dimensions.
Value sliced(Builder& b, const Instruction& op, Value x) {
  return b.slice(x, without_last(op.i64s(AttrKey::start_indices)),
                 without_last(op.i64s(AttrKey::limit_indices)),
                 without_last(op.i64s_or(AttrKey::strides, op.operand_type(0).dims().size(), 1)));
}

std::vector<Value> starts_of(const Instruction& op, size_t first) {
  std::vector<Value> starts;
  for (size_t i = first; i + 1 < op.operand_count(); ++i) starts.push_back(op.operand(i));
  return starts;
}

}  // namespace

int64_t parts_of(const Type& type) {
  if (!is_plain(type) || type.rank() < 2) return 0;
  const int64_t count = last_of(type.dims());
  const bool few = count >= 2 && count <= kMostPartsOfArray;
  return few && element_count(type.dims()) >= count * kLeastRows ? count : 0;
}

std::optional<std::vector<uint32_t>> operands_in_parts(const Instruction& op) {
  if (op.result_count() != 1) return {};
  const int64_t count = parts_of(op.result_type());
  if (count == 0) return {};
  const bool of_same = op.operand_count() > 0 && ends_in(op.operand(0), count);
  switch (op.code()) {
    case OpCode::kConstant:
      return if_true(splat_of(Value{const_cast<Instruction*>(&op), 0}) != nullptr, {});
    case OpCode::kIota:
      return std::vector<uint32_t>{};
    case OpCode::kBroadcastInDim:
      return broadcast_operands(op);
    case OpCode::kConcatenate:
      return concatenate_operands(op);
    case OpCode::kPad:
      if (!pads_last(op)) return std::vector<uint32_t>{0};
      return if_true(last_of(op.operand_type(0).dims()) <= kMostPartsOfArray, {});
    case OpCode::kSlice:
      return if_true(takes_all(op), {0});
    case OpCode::kDynamicSlice:
    case OpCode::kReshape:
      return if_true(of_same, {0});
    case OpCode::kDynamicUpdateSlice:
      return if_true(ends_in(op.operand(1), count), {0, 1});
    case OpCode::kTranspose:
      return if_true(op.i64s(AttrKey::permutation).back() == op.result_type().rank() - 1, {0});
    case OpCode::kReverse: {
      const I64s& reversed = op.i64s(AttrKey::dimensions);
      return if_true(std::ranges::find(reversed, op.result_type().rank() - 1) == reversed.end(),
                     {0});
    }
    case OpCode::kReduce:
      return if_true(op.operand_count() == 2 && of_same && !reduces_last(op), {0});
    case OpCode::kReduceWindow:
      return if_true(has_windows_of_parts(op), {0});
    default:
      break;
  }
  const bool elementwise =
      op.info().fusion == FusionKind::kElementwise && op.region_count() == 0 && !op.is_ordered();
  if (!elementwise || op.operand_count() == 0) return {};
  return elementwise_operands(op);
}

bool stacks(const Instruction& op) {
  if (op.code() == OpCode::kPad) return pads_last(op);
  return op.code() == OpCode::kConcatenate &&
         op.integer(AttrKey::dimension) + 1 == op.result_type().rank();
}

Value part_of_result(Builder& b, const Instruction& op, int64_t number, const PartOf& part) {
  const Dims dims = without_last(op.result_type().dims());
  const ElementType type = op.result_type().element_type();
  const auto of = [&](size_t i) { return part(op.operand(i), number); };
  switch (op.code()) {
    case OpCode::kConstant:
      return b.constant(DenseAttr::splat(Shape(type, dims),
                                         op.attr<DenseAttr>(AttrKey::value)->values.reshaped({})));
    case OpCode::kIota:
      if (op.integer(AttrKey::iota_dimension) < static_cast<int64_t>(dims.size()))
        return b.iota(type, dims, op.integer(AttrKey::iota_dimension));
      return b.splat(Shape(type, dims), static_cast<double>(number));
    case OpCode::kBroadcastInDim:
      return broadcast_part(b, op, number, part);
    case OpCode::kConcatenate:
      return concatenate_part(b, op, number, part);
    case OpCode::kPad:
      return pad_part(b, op, number, part);
    case OpCode::kSlice:
      return sliced(b, op, of(0));
    case OpCode::kDynamicSlice:
      return b.dynamic_slice(of(0), starts_of(op, 1), dims);
    case OpCode::kDynamicUpdateSlice:
      return b.dynamic_update_slice(of(0), of(1), starts_of(op, 2));
    case OpCode::kReshape:
      return b.reshape(of(0), dims);
    case OpCode::kTranspose:
      return b.transpose(of(0), without_last(op.i64s(AttrKey::permutation)));
    case OpCode::kReduceWindow:
      return window_part(b, op, number, part);
    default:
      return copied(b, op, number, part);
  }
}

uint32_t arrays_taken_apart(const Instruction& op) {
  if (op.operand_count() == 0 || parts_of(op.operand_type(0)) == 0) return 0;
  if (op.code() == OpCode::kSlice) return takes_all(op) ? 0 : 1;
  if (op.code() != OpCode::kReduce || !reduces_last(op) || !combines_by_parts(op)) return 0;
  // Over several dimensions parts are combined in another order than their elements.
  const bool alone = op.i64s(AttrKey::dimensions).size() == 1;
  const bool fits = alone ? is_elementwise_throughout(op.region(0))
                          : op.operand_count() == 2 && lower::combiner_of(op.region(0)).has_value();
  return fits ? static_cast<uint32_t>(op.operand_count() / 2) : 0;
}

std::vector<Value> results_of_parts(Builder& b, const Instruction& op, const PartOf& part) {
  const Value x = op.operand(0);
  const int64_t count = parts_of(x.type());
  if (op.code() == OpCode::kSlice) {
    const int64_t step = op.i64s_or(AttrKey::strides, x.type().dims().size(), 1).back();
    std::vector<Value> taken;
    for (int64_t i = op.i64s(AttrKey::start_indices).back();
         i < op.i64s(AttrKey::limit_indices).back(); i += step) {
      taken.push_back(sliced(b, op, part(x, i)));
    }
    return {stacked(b, taken)};
  }
  I64s others = op.i64s(AttrKey::dimensions);
  std::erase(others, x.type().rank() - 1);
  if (!others.empty()) {
    const OpCode combiner = op_of_two_parameters(op.region(0))->code();
    Value sum = part(x, 0);
    for (int64_t i = 1; i < count; ++i) sum = b.binary(combiner, sum, part(x, i));
    return {b.reduce(combiner, sum, op.operand(1), others)};
  }
  const size_t arrays = op.result_count();
  const Dims dims = part_dims(x);
  std::vector<Value> sums;
  for (size_t a = 0; a < arrays; ++a)
    sums.push_back(b.broadcast_scalar(op.operand(arrays + a), dims));
  for (int64_t i = 0; i < count; ++i) {
    std::vector<Value> values = sums;
    for (size_t a = 0; a < arrays; ++a) values.push_back(part(op.operand(a), i));
    sums = combined(b, op.region(0), values, dims);
  }
  return sums;
}

Value stacked(Builder& b, const std::vector<Value>& parts) {
  std::vector<Value> columns;
  for (const Value part : parts) {
    if (!part) return {};
    Dims dims = part.type().dims();
    dims.push_back(1);
    columns.push_back(b.reshape(part, dims));
  }
  if (columns.size() == 1) return columns[0];
  return b.concatenate(columns, columns[0].type().rank() - 1);
}

}  // namespace tenon::hlo
