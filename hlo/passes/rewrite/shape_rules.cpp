// Rules of ops that move elements, and of tuples and complex numbers.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "hlo/ir/region.h"
#include "hlo/passes/constants.h"
#include "hlo/passes/rewrite/rule.h"

namespace tenon::hlo::rewrite {
namespace {

bool all_are(const I64s& list, int64_t value) {
  return std::ranges::all_of(list, [&](int64_t each) { return each == value; });
}

// 0, 1, 2 …
bool counts(const I64s& list) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

bool same_type(const Match& match) { return match.x().type() == match.root().result_type(); }

I64s sorted(I64s list) {
  std::ranges::sort(list);
  return list;
}

// --- Conditions

constexpr Condition kSameShape{"the result has the shape of x", same_type};
constexpr Condition kIdentityPermutation{"the permutation is 0, 1, 2, …", [](const Match& m) {
                                           return counts(m.root().i64s(AttrKey::permutation));
                                         }};
constexpr Condition kIdentityBroadcast{
    "the result has the shape of x, with its dimensions in order", [](const Match& m) {
      return same_type(m) && counts(m.root().i64s(AttrKey::broadcast_dimensions));
    }};
constexpr Condition kRepeatsNothing{
    "the broadcast adds no dimension but some of size 1, and keeps the order", [](const Match& m) {
      return std::ranges::is_sorted(m.inner().i64s(AttrKey::broadcast_dimensions)) &&
             element_count(m.inner().result_type().dims()) == element_count(m.x().type().dims());
    }};
constexpr Condition kWholeSlice{
    "the slice has all elements",
    [](const Match& m) { return same_type(m) && all_are(m.root().i64s(AttrKey::strides), 1); }};
constexpr Condition kNoPadding{"there is no padding", [](const Match& m) {
                                 return all_are(m.root().i64s(AttrKey::edge_padding_low), 0) &&
                                        all_are(m.root().i64s(AttrKey::edge_padding_high), 0) &&
                                        all_are(m.root().i64s(AttrKey::interior_padding), 0);
                               }};
constexpr Condition kGapsInLongRows{
    "elements of y are between those of x in the last dimension, more than 128 with them",
    [](const Match& m) {
      constexpr int64_t kLongRow = 128;  // Lanes of shorter ones know their places.
      const Dims& dims = m.x().type().dims();
      if (dims.empty()) return false;
      const int64_t gap = m.root().i64s(AttrKey::interior_padding).back();
      return gap > 0 && gap < kLongRow && dims.back() > 1 && dims.back() > kLongRow / (gap + 1);
    }};
constexpr Condition kShortDimensions{
    "the reversed dimensions have at most one element", [](const Match& m) {
      return std::ranges::all_of(m.root().i64s(AttrKey::dimensions), [&](int64_t d) {
        return m.root().result_type().dims()[static_cast<size_t>(d)] <= 1;
      });
    }};
constexpr Condition kSameDimensions{"both reverse the same dimensions", [](const Match& m) {
                                      return sorted(m.inner().i64s(AttrKey::dimensions)) ==
                                             sorted(m.root().i64s(AttrKey::dimensions));
                                    }};
constexpr Condition kSomeAreEmpty{
    "some of xs are empty, but not all", [](const Match& m) {
      const auto is_empty = [](Value part) { return element_count(part.type().dims()) == 0; };
      return std::ranges::any_of(m.rest, is_empty) && !std::ranges::all_of(m.rest, is_empty);
    }};
// The dimensions of `from` that each dimension of `to` joins, in order: an array of dimensions
// `from` reshaped to `to`. Nothing if one is split.
std::optional<std::vector<Dims>> joined_dimensions(const Dims& from, const Dims& to) {
  std::vector<Dims> groups;
  size_t next = 0;
  for (const int64_t size : to) {
    Dims& group = groups.emplace_back();
    int64_t product = 1;
    while (next < from.size() && (group.empty() || product < size)) {
      group.push_back(from[next]);
      product *= from[next++];
    }
    if (product != size || group.empty()) return {};
  }
  while (!groups.empty() && next < from.size() && from[next] == 1)
    groups.back().push_back(from[next++]);
  return next == from.size() ? std::optional(groups) : std::nullopt;
}
// As one broadcast: its dimensions, and the place among them of each dimension of x.
struct JoinedBroadcast {
  Dims dims;
  I64s places;
};
std::optional<JoinedBroadcast> joined_broadcast(const Match& m) {
  const Instruction &outer = *m.ops[1], &first = *m.ops[3];
  const Dims& to = outer.result_type().dims();
  const Dims& middle = m.ops[2]->result_type().dims();
  const auto groups = joined_dimensions(first.result_type().dims(), middle);
  if (!groups) return {};
  const I64s& outer_places = outer.i64s(AttrKey::broadcast_dimensions);
  JoinedBroadcast all;
  std::vector<I64s> place_of_group(middle.size());
  for (size_t d = 0; d < to.size(); ++d) {
    const auto found = std::ranges::find(outer_places, static_cast<int64_t>(d));
    const auto group = static_cast<size_t>(found - outer_places.begin());
    if (found == outer_places.end()) {
      all.dims.push_back(to[d]);
      continue;
    }
    if (middle[group] != to[d]) return {};
    for (const int64_t size : (*groups)[group]) {
      place_of_group[group].push_back(std::ssize(all.dims));
      all.dims.push_back(size);
    }
  }
  I64s flat;
  for (const I64s& each : place_of_group) flat.insert(flat.end(), each.begin(), each.end());
  for (const int64_t d : first.i64s(AttrKey::broadcast_dimensions))
    all.places.push_back(flat[static_cast<size_t>(d)]);
  constexpr size_t kMostRank = 10;
  return all.dims.size() <= kMostRank ? std::optional(all) : std::nullopt;
}
constexpr Condition kRepeatsInTwoDimensions{
    "both repeat elements, and the inner reshape splits no dimension", [](const Match& m) {
      const auto count = [](Value x) { return element_count(x.type().dims()); };
      return count(m.ops[1]->result()) > count(m.ops[2]->result()) &&
             count(m.ops[3]->result()) > count(m.x()) && joined_broadcast(m).has_value();
    }};
// The concatenated array that contains all elements of a slice, and its first index; null if there
// is none.
std::pair<Value, int64_t> part_of_slice(const Match& m) {
  const auto axis = static_cast<size_t>(m.inner().integer(AttrKey::dimension));
  const int64_t count = m.root().result_type().dims()[axis];
  const int64_t first = m.root().i64s(AttrKey::start_indices)[axis];
  const int64_t last = first + (count - 1) * m.root().i64s(AttrKey::strides)[axis];
  int64_t begin = 0;
  for (const Value part : m.rest) {
    const int64_t end = begin + part.type().dims()[axis];
    if (count > 0 && first >= begin && last < end) return {part, begin};
    begin = end;
  }
  return {};
}
constexpr Condition kWithinOnePart{"the slice lies within one of xs", [](const Match& m) {
                                     return part_of_slice(m).first.def != nullptr;
                                   }};
constexpr Condition kFewTogether{
    "both are along one dimension, nothing else reads the inner one, and xs are at most three",
    [](const Match& m) {
      constexpr size_t kMost = 3;  // Fusions take what moves elements of four arrays.
      return m.root().integer(AttrKey::dimension) == m.inner().integer(AttrKey::dimension) &&
             m.inner().uses().size() == 1 && m.rest.size() <= kMost;
    }};
constexpr Condition kKnownStarts{
    "the starts are constants", [](const Match& m) {
      return std::ranges::all_of(m.rest, [](Value start) { return splat_of(start) != nullptr; });
    }};
constexpr Condition kWholeUpdate{
    "y has the shape of x", [](const Match& m) { return m.variables[1].type() == m.x().type(); }};
constexpr Condition kReducesOne{
    "each sum is of one element, and the region one op of the operands' type", [](const Match& m) {
      const Instruction& op = m.root();
      const Computation& region = op.region(0);
      const bool same_types =
          region.parameter(0).type().element_type() == m.x().type().element_type();
      const Instruction* const combined = op_of_two_parameters(region);
      return op.operand_count() == 2 && combined != nullptr && same_types &&
             combined->info().attributes[0].kind == AttrKind::kNone &&
             element_count(op.result_type().dims()) == element_count(m.x().type().dims()) &&
             element_count(m.x().type().dims()) > 0;
    }};
constexpr Condition kPointwise{
    "the windows have one element, and there are no padding, dilation or groups",
    [](const Match& m) {
      const Instruction& op = m.root();
      const auto& dims = *op.attr<ConvDims>(AttrKey::dimension_numbers);
      const size_t spatial = dims.kernel_spatial.size();
      const bool one = std::ranges::all_of(dims.kernel_spatial, [&](int64_t axis) {
        return op.operand_type(1).dims()[static_cast<size_t>(axis)] == 1;
      });
      const auto ones = [&](AttrKey key) { return all_are(op.i64s_or(key, spatial, 1), 1); };
      return one && ones(AttrKey::lhs_dilation) && all_are(op.padding_or_zero(spatial).values, 0) &&
             op.integer(AttrKey::feature_group_count, 1) == 1 &&
             op.integer(AttrKey::batch_group_count, 1) == 1;
    }};

constexpr Condition kReversedWindow{
    "the reversed dimensions are places of the window, of several elements", [](const Match& m) {
      const I64s& window = m.root().attr<ConvDims>(AttrKey::dimension_numbers)->kernel_spatial;
      const I64s& reversed = m.inner().i64s(AttrKey::dimensions);
      return !reversed.empty() && std::ranges::all_of(reversed, [&](int64_t d) {
        return contains(window, d) && m.inner().result_type().dims()[static_cast<size_t>(d)] > 1;
      });
    }};

// Numbers first, first + step, …: the elements of an array, in order.
struct Counted {
  int64_t first = 0;
  int64_t step = 0;
};

bool fits_type(int64_t number, ElementType type) {
  const bool is_signed = is_signed_integer(type);
  const int bits = bit_width(type) - (is_signed ? 1 : 0);
  const int64_t end = bits >= 62 ? int64_t{1} << 62 : int64_t{1} << bits;
  return number < end && number >= (is_signed ? -end : 0);
}

bool is_line(const Type& type) {
  return std::ranges::count_if(type.dims(), [](int64_t size) { return size != 1; }) <= 1;
}

// The elements of an iota, times and plus constants, of an array with one dimension of several.
std::optional<Counted> counted(Value value, int depth = 0) {
  constexpr int kDeepest = 8;
  constexpr int64_t kLargest = int64_t{1} << 31;  // So that nothing overflows here.
  const Type& type = value.type();
  const int64_t count = element_count(type.dims());
  const bool fits =
      is_integer(type.element_type()) && is_line(type) && count > 0 && count < kLargest;
  if (!fits || depth == kDeepest) return std::nullopt;
  const Instruction& op = *value.def;
  const auto number = [&](size_t i) {
    const Literal* const splat = splat_of(op.operand(i));
    const int64_t known = splat == nullptr ? kLargest : splat->get_integer(0);
    return known > -kLargest && known < kLargest ? std::optional(known) : std::nullopt;
  };
  // The numbers of one operand, and the constant that is the other one.
  const auto with_constant = [&](bool either, const auto& made) -> std::optional<Counted> {
    for (const size_t i : {0, 1}) {
      if (i == 1 && !either) break;
      const auto constant = number(1 - i);
      const auto numbers = constant ? counted(op.operand(i), depth + 1) : std::nullopt;
      if (numbers) return made(*numbers, *constant);
    }
    return std::nullopt;
  };
  std::optional<Counted> found;
  switch (op.code()) {
    case OpCode::kIota:
      if (type.dims()[static_cast<size_t>(op.integer(AttrKey::iota_dimension))] != count) break;
      found = Counted{0, 1};
      break;
    case OpCode::kReshape:
    case OpCode::kConvert:
    case OpCode::kBroadcastInDim:
      if (element_count(op.operand_type(0).dims()) == count)
        found = counted(op.operand(0), depth + 1);
      break;
    case OpCode::kAdd:
      found =
          with_constant(true, [](Counted x, int64_t c) { return Counted{x.first + c, x.step}; });
      break;
    case OpCode::kSubtract:
      found =
          with_constant(false, [](Counted x, int64_t c) { return Counted{x.first - c, x.step}; });
      break;
    case OpCode::kMultiply:
      found = with_constant(true,
                            [](Counted x, int64_t c) { return Counted{x.first * c, x.step * c}; });
      break;
    default:
      break;
  }
  if (!found || std::abs(found->first) >= kLargest || std::abs(found->step) >= kLargest)
    return std::nullopt;
  const bool wraps = !fits_type(found->first, type.element_type()) ||
                     !fits_type(found->first + (count - 1) * found->step, type.element_type());
  return wraps ? std::nullopt : found;
}

// The axis of a scatter along which slices of y replace those of x at counted places.
std::optional<int64_t> axis_of_slices(const Match& m) {
  const Instruction& op = m.root();
  const auto& dims = *op.attr<ScatterDims>(AttrKey::scatter_dimension_numbers);
  if (dims.scatter_dims_to_operand_dims.size() != 1 || !dims.input_batching_dims.empty() ||
      dims.inserted_window_dims != dims.scatter_dims_to_operand_dims) {
    return std::nullopt;
  }
  const int64_t axis = dims.inserted_window_dims[0];
  const Dims& whole = op.operand_type(0).dims();
  const Dims& updates = op.operand_type(2).dims();
  if (whole.size() != updates.size()) return std::nullopt;
  I64s window;
  for (int64_t d = 0; d < static_cast<int64_t>(whole.size()); ++d) {
    if (d == axis) continue;
    if (whole[static_cast<size_t>(d)] != updates[static_cast<size_t>(d)]) return std::nullopt;
    window.push_back(d);
  }
  return dims.update_window_dims == window ? std::optional(axis) : std::nullopt;
}

constexpr int64_t kFewUpdates = 1024;  // which loops make in place
constexpr int64_t kFarApart = 8;       // places that are so far apart leave most of x as it is

constexpr Condition kReplacesCounted{
    "the region returns y, whose slices have all of x along other dimensions, and i counts up "
    "within "
    "x; x is a constant of one number, or the slices are many and close, and an eighth of x",
    [](const Match& m) {
      const Instruction& op = m.root();
      const Computation& region = op.region(0);
      const ElementType type = m.x().type().element_type();
      const bool replaces = region.first() == region.return_instruction() &&
                            region.return_instruction()->operand(0) == region.parameter(1) &&
                            region.parameter(1).type().element_type() == type;
      const auto axis = replaces ? axis_of_slices(m) : std::nullopt;
      const auto places = axis ? counted(m.variables[1]) : std::nullopt;
      if (!places) return false;
      const Dims& updates = m.variables[2].type().dims();
      const int64_t count = updates[static_cast<size_t>(*axis)];
      const int64_t last = places->first + (count - 1) * places->step;
      const bool within = places->first >= 0 && places->step >= 1 &&
                          last < m.x().type().dims()[static_cast<size_t>(*axis)] &&
                          element_count(m.variables[1].type().dims()) == count;
      const bool many = element_count(updates) > kFewUpdates && places->step <= kFarApart &&
                        element_count(m.x().type().dims()) <= kFarApart * element_count(updates);
      return within && (splat_of(m.x()) != nullptr || many);
    }};

// --- Replacements with attributes

Value spread_slices(Builder& b, const Match& match) {
  const Value x = match.x();
  const Value y = match.variables[2];
  const auto axis = static_cast<size_t>(*axis_of_slices(match));
  const Counted places = *counted(match.variables[1]);
  const size_t rank = x.type().dims().size();
  I64s low(rank, 0), high(rank, 0), interior(rank, 0);
  low[axis] = places.first;
  interior[axis] = places.step - 1;
  high[axis] = x.type().dims()[axis] - 1 - places.first - (y.type().dims()[axis] - 1) * places.step;
  const auto spread = [&](Value what, Value between) {
    return b.pad(what, between, low, high, interior);
  };
  const ElementType type = x.type().element_type();
  const Literal* const splat = splat_of(x);
  const Value between =
      splat != nullptr ? b.constant(DenseAttr::splat(Shape(type, {}), *splat)) : b.scalar(type, 0);
  const Value spread_y = spread(y, between);
  if (splat != nullptr) return spread_y;
  const ElementType pred = ElementType::kPred;
  const Value present = spread(b.splat(Shape(pred, y.type().dims()), 1), b.scalar(pred, 0));
  return b.select(present, spread_y, x);
}

// x at the places that windows of one element read.
Value places_read(Builder& b, const Match& match) {
  const Instruction& op = match.root();
  const auto& dims = *op.attr<ConvDims>(AttrKey::dimension_numbers);
  I64s limits = match.x().type().dims(), strides(limits.size(), 1);
  const I64s moves = op.i64s_or(AttrKey::window_strides, dims.input_spatial.size(), 1);
  if (all_are(moves, 1)) return match.x();
  for (size_t s = 0; s < moves.size(); ++s) {
    const auto axis = static_cast<size_t>(dims.input_spatial[s]);
    strides[axis] = moves[s];
  }
  return b.slice(match.x(), I64s(limits.size(), 0), std::move(limits), std::move(strides));
}

// The product has the dimensions of x without its features, in order, then the output features.
Value product_of_pointwise(Builder& b, const Match& match) {
  const Instruction& op = match.root();
  const auto& dims = *op.attr<ConvDims>(AttrKey::dimension_numbers);
  const Dims& weights = match.variables[1].type().dims();
  const bool outputs_first = dims.kernel_output_feature < dims.kernel_input_feature;
  const int64_t outputs = weights[static_cast<size_t>(dims.kernel_output_feature)];
  const int64_t inputs = weights[static_cast<size_t>(dims.kernel_input_feature)];
  const Value matrix =
      b.reshape(match.variables[1], outputs_first ? Dims{outputs, inputs} : Dims{inputs, outputs});
  DotDims contracted;
  contracted.lhs_contracting = {dims.input_feature};
  contracted.rhs_contracting = {outputs_first ? 1 : 0};
  const Value product =
      b.dot_general(places_read(b, match), matrix, contracted, op.result_type().element_type());
  // Where each dimension of the result is in the product.
  const auto in_product = [&](int64_t axis) { return axis - (axis > dims.input_feature ? 1 : 0); };
  I64s permutation(op.result_type().dims().size());
  permutation[static_cast<size_t>(dims.output_batch)] = in_product(dims.input_batch);
  permutation[static_cast<size_t>(dims.output_feature)] =
      static_cast<int64_t>(permutation.size()) - 1;
  for (size_t s = 0; s < dims.output_spatial.size(); ++s) {
    permutation[static_cast<size_t>(dims.output_spatial[s])] = in_product(dims.input_spatial[s]);
  }
  return product ? b.transpose(product, std::move(permutation)) : Value();
}

// The convolution goes through those dimensions of the window in the other direction.
Value reverse_window(Builder& b, const Match& match) {
  const Instruction& op = match.root();
  const I64s& window = op.attr<ConvDims>(AttrKey::dimension_numbers)->kernel_spatial;
  const auto* const before = op.attr<BoolsAttr>(AttrKey::window_reversal);
  BoolsAttr reversal = before != nullptr ? *before : BoolsAttr{};
  reversal.values.resize(window.size());
  for (size_t s = 0; s < window.size(); ++s) {
    if (contains(match.inner().i64s(AttrKey::dimensions), window[s])) reversal.values[s] ^= 1;
  }
  auto made = std::make_unique<Instruction>(
      OpCode::kConvolution, std::vector<Value>{match.x(), match.variables[1]}, op.result_types());
  made->mutable_attributes() = op.attributes();
  made->mutable_attributes().set(AttrKey::window_reversal, std::move(reversal));
  Instruction* const convolution = b.create(std::move(made));
  return convolution != nullptr ? convolution->result() : Value();
}

Value compose_transposes(Builder& b, const Match& match) {
  I64s both;
  for (const int64_t d : match.root().i64s(AttrKey::permutation)) {
    both.push_back(match.inner().i64s(AttrKey::permutation)[static_cast<size_t>(d)]);
  }
  return b.transpose(match.x(), std::move(both));
}
Value reshape_at_once(Builder& b, const Match& match) {
  return b.reshape(match.x(), match.root().result_type().dims());
}
Value combine_one(Builder& b, const Match& match) {
  const Instruction& op = match.root();
  const Dims& dims = op.result_type().dims();
  const Value init = b.broadcast_scalar(match.variables[1], dims);
  const Value one = b.reshape(match.x(), dims);
  const Instruction& combined = *op_of_two_parameters(op.region(0));
  const bool in_order = combined.operand(0) == op.region(0).parameter(0);
  return in_order ? b.binary(combined.code(), init, one) : b.binary(combined.code(), one, init);
}
Value compose_broadcasts(Builder& b, const Match& match) {
  I64s both;
  for (const int64_t d : match.inner().i64s(AttrKey::broadcast_dimensions)) {
    both.push_back(match.root().i64s(AttrKey::broadcast_dimensions)[static_cast<size_t>(d)]);
  }
  return b.broadcast_in_dim(match.x(), match.root().result_type().dims(), std::move(both));
}
Value broadcast_transposed(Builder& b, const Match& match) {
  const I64s& permutation = match.root().i64s(AttrKey::permutation);
  I64s dimensions;
  for (const int64_t d : match.inner().i64s(AttrKey::broadcast_dimensions)) {
    dimensions.push_back(std::ranges::find(permutation, d) - permutation.begin());
  }
  return b.broadcast_in_dim(match.x(), match.root().result_type().dims(), std::move(dimensions));
}
Value broadcast_slice(Builder& b, const Match& match) {
  const Instruction& op = match.root();
  const I64s& dimensions = match.inner().i64s(AttrKey::broadcast_dimensions);
  const Dims& dims = match.x().type().dims();
  I64s starts(dims.size(), 0), limits(dims.begin(), dims.end()), strides(dims.size(), 1);
  for (size_t d = 0; d < dims.size(); ++d) {
    const auto of = static_cast<size_t>(dimensions[d]);
    if (dims[d] == 1) continue;  // Each of its elements is the one.
    starts[d] = op.i64s(AttrKey::start_indices)[of];
    limits[d] = op.i64s(AttrKey::limit_indices)[of];
    strides[d] = op.i64s(AttrKey::strides)[of];
  }
  Value part = match.x();
  if (!dims.empty()) part = b.slice(part, std::move(starts), std::move(limits), std::move(strides));
  return b.broadcast_in_dim(part, op.result_type().dims(), dimensions);
}
Value compose_slices(Builder& b, const Match& match) {
  const Instruction& op = match.root();
  const I64s& first_start = match.inner().i64s(AttrKey::start_indices);
  const I64s& first_stride = match.inner().i64s(AttrKey::strides);
  const I64s& start = op.i64s(AttrKey::start_indices);
  const I64s& stride = op.i64s(AttrKey::strides);
  I64s starts, limits, strides;
  for (size_t d = 0; d < start.size(); ++d) {
    const int64_t size = op.result_type().dims()[d];
    // The last element must be the same for both; a stride that reaches no other element is
    // irrelevant.
    starts.push_back(size == 0 ? 0 : first_start[d] + start[d] * first_stride[d]);
    strides.push_back(size > 1 ? first_stride[d] * stride[d] : 1);
    limits.push_back(size == 0 ? 0 : starts[d] + (size - 1) * strides[d] + 1);
  }
  return b.slice(match.x(), std::move(starts), std::move(limits), std::move(strides));
}
Value concatenate_filled(Builder& b, const Match& match) {
  const int64_t axis = match.root().integer(AttrKey::dimension);
  std::vector<Value> parts;
  for (const Value part : match.rest) {
    if (part.type().dims()[static_cast<size_t>(axis)] != 0) parts.push_back(part);
  }
  return parts.empty() ? Value() : b.concatenate(parts, axis);
}
Value repeat_at_once(Builder& b, const Match& match) {
  JoinedBroadcast all = *joined_broadcast(match);
  const Value repeated = b.broadcast_in_dim(match.x(), std::move(all.dims), std::move(all.places));
  return repeated ? b.reshape(repeated, match.root().result_type().dims()) : Value();
}
// Each element of the last dimension becomes a row, with what is behind it.
Value pad_rows(Builder& b, const Match& match) {
  const Instruction& op = match.root();
  const I64s& lows = op.i64s(AttrKey::edge_padding_low);
  const I64s& highs = op.i64s(AttrKey::edge_padding_high);
  I64s interior = op.i64s(AttrKey::interior_padding), low = lows, high = highs;
  const size_t last = lows.size() - 1;
  const int64_t gap = std::exchange(interior[last], 0);
  low[last] = high[last] = 0;
  low.push_back(0);
  high.push_back(gap);
  interior.push_back(0);
  Dims rows = match.x().type().dims();
  rows.push_back(1);
  const Value y = match.variables[1];
  const Value padded = b.pad(b.reshape(match.x(), std::move(rows)), y, low, high, interior);
  if (!padded) return {};
  Dims joined = op.result_type().dims();
  joined[last] = match.x().type().dims()[last] * (gap + 1);
  const Value whole = b.reshape(padded, std::move(joined));
  if (lows[last] == 0 && highs[last] == gap) return whole;
  I64s before(last + 1), behind(last + 1);
  before[last] = lows[last];
  behind[last] = highs[last] - gap;
  return b.pad(whole, y, std::move(before), std::move(behind), I64s(last + 1));
}
Value slice_of_part(Builder& b, const Match& match) {
  const auto [part, begin] = part_of_slice(match);
  const auto axis = static_cast<size_t>(match.inner().integer(AttrKey::dimension));
  I64s starts = match.root().i64s(AttrKey::start_indices);
  I64s limits = match.root().i64s(AttrKey::limit_indices);
  const I64s& strides = match.root().i64s(AttrKey::strides);
  starts[axis] -= begin;
  limits[axis] = starts[axis] + (match.root().result_type().dims()[axis] - 1) * strides[axis] + 1;
  return b.slice(part, std::move(starts), std::move(limits), strides);
}
Value concatenate_nested_first(Builder& b, const Match& match) {
  std::vector<Value> parts = match.rest;
  parts.push_back(match.x());
  return b.concatenate(parts, match.root().integer(AttrKey::dimension));
}
Value concatenate_nested_second(Builder& b, const Match& match) {
  std::vector<Value> parts = {match.x()};
  parts.insert(parts.end(), match.rest.begin(), match.rest.end());
  return b.concatenate(parts, match.root().integer(AttrKey::dimension));
}
Value slice_at_known_start(Builder& b, const Match& match) {
  const Dims& dims = match.x().type().dims();
  I64s starts;
  I64s limits;
  for (size_t d = 0; d < dims.size(); ++d) {
    const Literal& start = *splat_of(match.rest[d]);
    const int64_t size = match.root().result_type().dims()[d];
    // A u64 number of at least 2^63 reads as negative.
    const int64_t number = start.get_integer(0);
    const bool huge = number < 0 && start.element_type() == ElementType::kU64;
    starts.push_back(huge ? dims[d] - size : std::clamp<int64_t>(number, 0, dims[d] - size));
    limits.push_back(starts[d] + size);
  }
  return b.slice(match.x(), std::move(starts), std::move(limits), I64s(dims.size(), 1));
}
Value element_of_tuple(Builder&, const Match& match) {
  return match.rest[static_cast<size_t>(match.root().integer(AttrKey::index))];
}

// clang-format off
constexpr Rule kRules[] = {
    {.name = "transpose-identity", .pattern = "transpose(x)", .where = kIdentityPermutation,
     .replacement = "x", .because = "no element moves"},
    {.name = "transpose-transpose", .pattern = "transpose(transpose(x))", .replacement = "transpose(x)",
     .build = compose_transposes, .because = "permutations compose"},
    {.name = "reshape-identity", .pattern = "reshape(x)", .where = kSameShape, .replacement = "x",
     .because = "no element moves"},
    {.name = "reshape-reshape", .pattern = "reshape(reshape(x))", .replacement = "reshape(x)",
     .build = reshape_at_once, .because = "the order of elements stays"},
    {.name = "reshape-broadcast", .pattern = "reshape(broadcast_in_dim(x))",
     .where = kRepeatsNothing, .replacement = "reshape(x)", .build = reshape_at_once,
     .because = "no element is repeated, and their order stays"},
    {.name = "repeat-repeat", .pattern = "reshape(broadcast_in_dim(reshape(broadcast_in_dim(x))))",
     .where = kRepeatsInTwoDimensions, .replacement = "reshape(broadcast_in_dim(x))",
     .build = repeat_at_once, .because = "elements are repeated in both dimensions at once"},
    {.name = "broadcast-identity", .pattern = "broadcast_in_dim(x)", .where = kIdentityBroadcast,
     .replacement = "x", .because = "no element moves"},
    {.name = "broadcast-broadcast", .pattern = "broadcast_in_dim(broadcast_in_dim(x))",
     .replacement = "broadcast_in_dim(x)", .build = compose_broadcasts,
     .because = "maps of dimensions compose"},
    {.name = "transpose-broadcast", .pattern = "transpose(broadcast_in_dim(x))",
     .replacement = "broadcast_in_dim(x)", .build = broadcast_transposed,
     .because = "the elements lie along other dimensions"},
    {.name = "slice-broadcast", .pattern = "slice(broadcast_in_dim(x))",
     .replacement = "broadcast_in_dim(slice(x))", .build = broadcast_slice,
     .because = "the others are not needed"},
    {.name = "slice-whole", .pattern = "slice(x)", .where = kWholeSlice, .replacement = "x",
     .because = "no element is left out"},
    {.name = "slice-slice", .pattern = "slice(slice(x))", .replacement = "slice(x)",
     .build = compose_slices, .because = "starts and strides compose"},
    {.name = "pad-nothing", .pattern = "pad(x, y)", .where = kNoPadding, .replacement = "x",
     .because = "no element is added"},
    {.name = "pad-rows", .pattern = "pad(x, y)", .where = kGapsInLongRows,
     .replacement = "pad(reshape(pad(reshape(x), y)), y)", .build = pad_rows,
     .because = "an element and what is behind it are a row", .is_late = true},
    {.name = "slice-of-part", .pattern = "slice(concatenate(xs...))", .where = kWithinOnePart,
     .replacement = "slice of one of xs", .build = slice_of_part, .because = "the others have none of its elements"},
    {.name = "concatenate-nested-first", .pattern = "concatenate(concatenate(xs...), x)", .where = kFewTogether,
     .replacement = "concatenate(xs..., x)", .build = concatenate_nested_first, .because = "the order of elements stays"},
    {.name = "concatenate-nested-second", .pattern = "concatenate(x, concatenate(xs...))", .where = kFewTogether,
     .replacement = "concatenate(x, xs...)", .build = concatenate_nested_second, .because = "the order of elements stays"},
    {.name = "concatenate-one", .pattern = "concatenate(x)", .replacement = "x",
     .because = "there is only one operand"},
    {.name = "concatenate-empty", .pattern = "concatenate(xs...)", .where = kSomeAreEmpty,
     .replacement = "concatenate(xs...)", .build = concatenate_filled,
     .because = "an empty array adds no element"},
    {.name = "dynamic-slice-whole", .pattern = "dynamic_slice(x, starts...)", .where = kSameShape,
     .replacement = "x", .because = "the starts are clamped to 0"},
    {.name = "dynamic-slice-known", .pattern = "dynamic_slice(x, starts...)", .where = kKnownStarts,
     .replacement = "slice(x)", .build = slice_at_known_start, .because = "the starts are clamped at compile time"},
    {.name = "dynamic-update-slice-whole", .pattern = "dynamic_update_slice(x, y, starts...)",
     .where = kWholeUpdate, .replacement = "y", .because = "the starts are clamped to 0"},
    {.name = "scatter-counted", .pattern = "scatter(x, i, y)", .where = kReplacesCounted,
     .replacement = "pad(y), or select(pad(true), pad(y), x)", .build = spread_slices,
     .because = "each place is written once, in order"},
    {.name = "reduce-one", .pattern = "reduce(x, y)", .where = kReducesOne, .replacement = "op(broadcast_in_dim(y), reshape(x))",
     .build = combine_one, .because = "the initial value enters once, before the element"},
    {.name = "reverse-short", .pattern = "reverse(x)", .where = kShortDimensions, .replacement = "x",
     .because = "no element moves"},
    {.name = "reverse-reverse", .pattern = "reverse(reverse(x))", .where = kSameDimensions,
     .replacement = "x", .because = "each element moves back"},
    {.name = "convolution-pointwise", .pattern = "convolution(x, y)", .where = kPointwise,
     .replacement = "transpose(dot_general(slice(x), reshape(y)))", .build = product_of_pointwise,
     .because = "each result is one product of features; sums run over them in the same order"},
    {.name = "convolution-of-reversed", .pattern = "convolution(x, reverse(y))", .where = kReversedWindow,
     .replacement = "convolution(x, y)", .build = reverse_window,
     .because = "the window is reversed in place of y: the same products, added in the same order"},
    {.name = "get-tuple-element-of-tuple", .pattern = "get_tuple_element(tuple(xs...))",
     .replacement = "the element of xs", .build = element_of_tuple, .because = "the tuple has this element"},
    {.name = "real-of-complex", .pattern = "real(complex(x, y))", .replacement = "x",
     .because = "the complex number has this part"},
    {.name = "imag-of-complex", .pattern = "imag(complex(x, y))", .replacement = "y",
     .because = "the complex number has this part"},
    {.name = "complex-of-parts", .pattern = "complex(real(z), imag(z))", .replacement = "z", .because = "z has these parts"},
};
// clang-format on

}  // namespace

std::span<const Rule> shape_rules() { return kRules; }

}  // namespace tenon::hlo::rewrite
