// Ops that move elements: each element of the result is an element of an operand at another index.
#include <utility>

#include "hlo/lower/elements/bit_patterns.h"
#include "hlo/lower/elements/index_math.h"
#include "hlo/lower/elements/rules.h"

namespace tenon::hlo::lower {
namespace {

using kernel::Builder;

Values broadcast_index(Builder& b, const Instruction& op, const Values& index) {
  const I64s& to = op.i64s(AttrKey::broadcast_dimensions);
  const Dims& dims = op.operand_type(0).dims();
  Values from(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    from[i] = dims[i] == 1 ? b.index(0) : index[static_cast<size_t>(to[i])];
  }
  return from;
}

Values transposed_index(const Instruction& op, const Values& index) {
  const I64s& permutation = op.i64s(AttrKey::permutation);
  Values from(index.size());
  for (size_t i = 0; i < index.size(); ++i) from[static_cast<size_t>(permutation[i])] = index[i];
  return from;
}

Values reversed_index(Builder& b, const Instruction& op, const Values& index) {
  const Dims& dims = op.operand_type(0).dims();
  Values from = index;
  for (const int64_t d : op.i64s(AttrKey::dimensions)) {
    const auto at = static_cast<size_t>(d);
    from[at] = b.sub(b.index(dims[at] - 1), index[at]);
  }
  return from;
}

Values sliced_index(Builder& b, const Instruction& op, const Values& index) {
  const I64s& start = op.i64s(AttrKey::start_indices);
  const I64s& strides = op.i64s(AttrKey::strides);
  Values from(index.size());
  for (size_t i = 0; i < index.size(); ++i) {
    from[i] = b.add(b.mul(index[i], b.index(strides[i])), b.index(start[i]));
  }
  return from;
}

Element dynamic_slice(ElementEmitter& e, const Instruction& op, const Values& index) {
  Values from = clamped_starts(e, op, 1, op.operand_type(0).dims(), op.i64s(AttrKey::slice_sizes));
  for (size_t i = 0; i < from.size(); ++i) from[i] = e.b.add(from[i], index[i]);
  return e.element(op.operand(0), from);
}

Element dynamic_update_slice(ElementEmitter& e, const Instruction& op, const Values& index) {
  Builder& b = e.b;
  const Dims& sizes = op.operand_type(1).dims();
  const Values starts = clamped_starts(e, op, 2, op.operand_type(0).dims(), sizes);
  Values inner(index.size());
  ValueId inside = b.pred(true);
  for (size_t i = 0; i < index.size(); ++i) {
    inner[i] = b.sub(index[i], starts[i]);
    if (sizes[i] != op.operand_type(0).dims()[i]) {
      inside = b.logical_and(inside, in_bounds(b, inner[i], sizes[i]));
    }
  }
  return e.if_else(
      inside, op.result_type().element_type(), [&] { return e.element(op.operand(1), inner); },
      [&] { return e.element(op.operand(0), index); });
}

// Interior padding first, then the edges, which may be negative and crop.
Element pad(ElementEmitter& e, const Instruction& op, const Values& index) {
  Builder& b = e.b;
  const Dims& dims = op.operand_type(0).dims();
  const I64s& low = op.i64s(AttrKey::edge_padding_low);
  const I64s& interior = op.i64s(AttrKey::interior_padding);
  Values from(index.size());
  // Lanes mostly differ in the last dimension alone, so that they share the other condition.
  ValueId row = b.pred(true), inside = b.pred(true);
  for (size_t i = 0; i < index.size(); ++i) {
    if (i + 1 == index.size()) row = std::exchange(inside, b.pred(true));
    const ValueId moved = b.sub(index[i], b.index(low[i]));
    const ValueId step = b.index(interior[i] + 1);
    const int64_t extent = dims[i] == 0 ? 0 : (dims[i] - 1) * (interior[i] + 1) + 1;
    inside = b.logical_and(inside, in_bounds(b, moved, extent));
    if (interior[i] != 0) {
      inside = b.logical_and(inside, b.compare(K::kEq, b.rem(moved, step), b.index(0)));
    }
    from[i] = b.div(moved, step);
  }
  const ElementType type = op.result_type().element_type();
  const auto padding = [&] { return e.element(op.operand(1), {}); };
  const auto within_row = [&] {
    return e.if_else(inside, type, [&] { return e.element(op.operand(0), from); }, padding);
  };
  return e.if_else(row, type, within_row, padding);
}

// A non-empty operand of a concatenation, and its start.
struct Part {
  Value value;
  int64_t begin;
};

// The element at `index`, which belongs to one of the parts; selected by bisection, because the
// nesting depth of ifs is limited.
Element of_parts(ElementEmitter& e, const Instruction& op, const Values& index,
                 std::span<const Part> parts) {
  const auto axis = static_cast<size_t>(op.integer(AttrKey::dimension));
  if (parts.size() == 1) {
    Values within = index;
    if (parts[0].begin != 0) within[axis] = e.b.sub(index[axis], e.b.index(parts[0].begin));
    return e.element(parts[0].value, within);
  }
  const size_t half = parts.size() / 2;
  return e.if_else(
      e.b.compare(K::kLt, index[axis], e.b.index(parts[half].begin)),
      op.result_type().element_type(),
      [&] { return of_parts(e, op, index, parts.subspan(0, half)); },
      [&] { return of_parts(e, op, index, parts.subspan(half)); });
}

Element concatenate(ElementEmitter& e, const Instruction& op, const Values& index) {
  const auto axis = static_cast<size_t>(op.integer(AttrKey::dimension));
  std::vector<Part> parts;
  int64_t begin = 0;
  for (const Value value : op.operands()) {
    const int64_t size = value.type().dims()[axis];
    if (size > 0) parts.push_back({value, begin});
    begin += size;
  }
  return of_parts(e, op, index, parts);
}

Element constant(ElementEmitter& e, const Instruction& op, const Values& index) {
  const auto& value = *op.attr<DenseAttr>(AttrKey::value);
  const ElementType type = value.shape.element_type();
  const Literal& values = value.values;
  if (values.element_count() != 1) {
    e.fail(op, "an array of different elements must lie in memory");
    return e.constant(type, 0);
  }
  static_cast<void>(index);
  if (is_complex(type)) {
    const ElementType part = complex_part(type);
    const Literal parts = [&] {
      Literal two(Shape(part, {2}));
      std::memcpy(two.mutable_data().data(), values.data().data(), two.data().size());
      return two;
    }();
    return {e.b.literal(parts, 0), e.b.literal(parts, 1)};
  }
  return {e.b.literal(values, 0)};
}

// --- bitcast_convert

// The bits of `x` from `piece` * width on, where width is that of `type`, which is narrower.
ValueId piece_of(Builder& b, ValueId x, ValueId piece, ElementType type) {
  const ValueId bits = bits_of(b, x);
  const ElementType wide = b.type_of(bits);
  const ValueId by = b.mul(b.convert(piece, wide), b.integer(wide, bit_width(type)));
  return from_bits(b, b.binary(K::kShr, bits, by), type);
}

// The number with the bits of `parts`, lowest first.
ValueId joined(Builder& b, const Values& parts, ElementType type) {
  if (parts.size() == 1) return from_bits(b, bits_of(b, parts[0]), type);
  const ElementType wide = bits_type(type);
  ValueId bits = b.integer(wide, 0);
  for (size_t i = 0; i < parts.size(); ++i) {
    const ValueId part = b.convert(bits_of(b, parts[i]), wide);
    const auto by = static_cast<int64_t>(i) * bit_width(b.type_of(parts[i]));
    bits = b.logical_or(bits, b.binary(K::kShl, part, b.integer(wide, by)));
  }
  return from_bits(b, bits, type);
}

Element bitcast_convert(ElementEmitter& e, const Instruction& op, const Values& index) {
  Builder& b = e.b;
  const ElementType from = op.operand_type(0).element_type();
  const ElementType to = op.result_type().element_type();
  if (from == to) return e.element(op.operand(0), index);
  const int from_part = bit_width(complex_part(from));
  const int to_part = bit_width(complex_part(to));
  const int from_bits = is_complex(from) ? 2 * from_part : from_part;
  const int to_bits = is_complex(to) ? 2 * to_part : to_part;
  if (from_bits == to_bits && !is_complex(from) && !is_complex(to)) {
    return {b.bitcast(e.element(op.operand(0), index).re, to)};
  }
  if (from_bits <= to_bits) {
    // Several elements of the operand make one number, or parts of one element make several.
    Values pieces;
    const int64_t ratio = to_bits / from_bits;
    for (int64_t k = 0; k < ratio; ++k) {
      Values at = index;
      if (ratio > 1) at.push_back(b.index(k));
      for (const ValueId part : ElementEmitter::flat({e.element(op.operand(0), at)})) {
        pieces.push_back(part);
      }
    }
    if (!is_complex(to)) return {joined(b, pieces, to)};
    if (pieces.size() == 1) {
      const ElementType part = complex_part(to);
      return {piece_of(b, pieces[0], b.index(0), part), piece_of(b, pieces[0], b.index(1), part)};
    }
    const auto middle = pieces.begin() + static_cast<std::ptrdiff_t>(pieces.size() / 2);
    return {joined(b, Values(pieces.begin(), middle), complex_part(to)),
            joined(b, Values(middle, pieces.end()), complex_part(to))};
  }
  Values at = index;
  ValueId piece = at.back();
  at.pop_back();
  const Element x = e.element(op.operand(0), at);
  ValueId whole = x.re;
  if (x.is_complex()) {
    const ValueId half = b.index(from_part / to_bits);
    whole = b.select(b.compare(K::kLt, piece, half), x.re, x.im);
    piece = b.rem(piece, half);
    if (from_part == to_bits) return {b.bitcast(whole, to)};
  }
  if (is_complex(to)) {  // c128 as two of c64
    const ElementType part = complex_part(to);
    return {piece_of(b, whole, b.index(0), part), piece_of(b, whole, b.index(1), part)};
  }
  return {piece_of(b, whole, piece, to)};
}

// In the notation of the specification.
Element gather(ElementEmitter& e, const Instruction& op, const Values& index) {
  Builder& b = e.b;
  const Type& operand = op.operand_type(0);
  const Type& indices = op.operand_type(1);
  const auto& dims = *op.attr<GatherDims>(AttrKey::dimension_numbers);
  const I64s& sizes = op.i64s(AttrKey::slice_sizes);
  Values batch;
  for (const int64_t d : complement(op.result_type().rank(), dims.offset_dims)) {
    batch.push_back(index[static_cast<size_t>(d)]);
  }
  I64s not_offset = dims.collapsed_slice_dims;
  not_offset.insert(not_offset.end(), dims.operand_batching_dims.begin(),
                    dims.operand_batching_dims.end());
  const Dims offset_operand_dims = complement(operand.rank(), not_offset);
  Values from(operand.dims().size(), b.index(0));
  for (size_t i = 0; i < dims.start_index_map.size(); ++i) {
    const auto d = static_cast<size_t>(dims.start_index_map[i]);
    const int64_t limit = operand.dims()[d] - sizes[d];
    if (limit == 0) continue;
    Values at;
    size_t next = 0;
    for (int64_t k = 0; k < indices.rank(); ++k) {
      at.push_back(k == dims.index_vector_dim ? b.index(static_cast<int64_t>(i)) : batch[next++]);
    }
    from[d] = clamped_index(b, e.element(op.operand(1), at).re, limit);
  }
  for (size_t i = 0; i < dims.operand_batching_dims.size(); ++i) {
    const int64_t d = dims.start_indices_batching_dims[i];
    from[static_cast<size_t>(dims.operand_batching_dims[i])] =
        batch[static_cast<size_t>(d > dims.index_vector_dim ? d - 1 : d)];
  }
  for (size_t i = 0; i < offset_operand_dims.size(); ++i) {
    ValueId& at = from[static_cast<size_t>(offset_operand_dims[i])];
    at = b.add(at, index[static_cast<size_t>(dims.offset_dims[i])]);
  }
  return e.element(op.operand(0), from);
}

Element iota(ElementEmitter& e, const Instruction& op, const Values& index) {
  const ValueId at = index[static_cast<size_t>(op.integer(AttrKey::iota_dimension))];
  return e.convert({at}, e.b.index_type(), op.result_type().element_type());
}

Values reshape_index(Builder& b, const Instruction& op, const Values& index) {
  return reshaped_index(b, index, op.result_type().dims(), op.operand_type(0).dims());
}
Values transpose_index(Builder&, const Instruction& op, const Values& index) {
  return transposed_index(op, index);
}

// An op that returns elements of its operand from other indices: `from` maps an index of the
// result.
template <Values (*from)(Builder&, const Instruction&, const Values&)>
Elements moved(ElementEmitter& e, const Instruction& op, const Values& index) {
  return {e.element(op.operand(0), from(e.b, op, index))};
}
template <Element (*element)(ElementEmitter&, const Instruction&, const Values&)>
Elements single(ElementEmitter& e, const Instruction& op, const Values& index) {
  return {element(e, op, index)};
}

}  // namespace

namespace emit {

constinit const ElementRule bitcast_convert = {.at = single<lower::bitcast_convert>};
constinit const ElementRule broadcast_in_dim = {.at = moved<broadcast_index>};
constinit const ElementRule concatenate = {.at = single<lower::concatenate>};
constinit const ElementRule constant = {.at = single<lower::constant>};
constinit const ElementRule dynamic_slice = {.at = single<lower::dynamic_slice>};
constinit const ElementRule dynamic_update_slice = {.at = single<lower::dynamic_update_slice>};
constinit const ElementRule gather = {.at = single<lower::gather>};
constinit const ElementRule iota = {.at = single<lower::iota>};
constinit const ElementRule pad = {.at = single<lower::pad>};
constinit const ElementRule reshape = {.at = moved<reshape_index>};
constinit const ElementRule reverse = {.at = moved<reversed_index>};
constinit const ElementRule slice = {.at = moved<sliced_index>};
constinit const ElementRule transpose = {.at = moved<transpose_index>};

}  // namespace emit

Values clamped_starts(ElementEmitter& e, const Instruction& op, size_t first, const Dims& dims,
                      const Dims& sizes) {
  Values starts(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t limit = dims[i] - sizes[i];
    starts[i] = limit == 0 ? e.b.index(0)
                           : clamped_index(e.b, e.element(op.operand(first + i), {}).re, limit);
  }
  return starts;
}

}  // namespace tenon::hlo::lower
