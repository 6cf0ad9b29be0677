// reduce, reduce_window, select_and_scatter: elements combined by a region.
#include <limits>
#include <memory>

#include "core/kernel/math/scalar.h"
#include "core/types/float_convert.h"
#include "hlo/ir/region.h"
#include "hlo/lower/elements/index_math.h"
#include "hlo/lower/elements/reduction.h"
#include "hlo/lower/elements/rules.h"
#include "hlo/lower/library_calls.h"

namespace tenon::hlo::lower {

using kernel::Builder;

namespace {

// Elements of a row that lanes take apart in registers, and results that fill vectors.
constexpr int64_t kShortRow = 32;
constexpr int64_t kLeastLanes = 64;

// An op on the two parameters that f32 computes as narrower floats do: a sum, which is rounded
// once, and extremes, which are elements.
std::optional<K> widened_op(const Computation& region) {
  if (is_narrow_sum(region)) return K::kAdd;
  const Instruction* op = op_of_two_parameters(region);
  if (op == nullptr || !op->result_type().is_tensor() || op->result_type().is_quantized())
    return {};
  const ElementType type = op->result_type().element_type();
  if (!is_float(type) || bit_width(type) >= 32) return {};
  if (op->code() == OpCode::kMaximum) return K::kMax;
  return op->code() == OpCode::kMinimum ? std::optional(K::kMin) : std::nullopt;
}

}  // namespace

std::vector<ElementType> accumulator_types(const Computation& region) {
  std::vector<ElementType> types = parameter_types(region);
  types.resize(types.size() / 2);
  if (widened_op(region)) types[0] = ElementType::kF32;
  return types;
}

ReductionEmitter::ReductionEmitter(ElementEmitter& emitter, const Instruction& reduction,
                                   bool serially)
    : e(emitter),
      op(reduction),
      region(reduction.region(0)),
      count(reduction.operand_count() / 2),
      types(accumulator_types(region)),
      extremum(find_arg_extremum(reduction)),
      in_order(serially && extremum && places_ascend(reduction)) {
  // The value itself is not used: elements are converted once.
  if (in_order && is_float(types[0]) && bit_width(types[0]) < 32) types[0] = ElementType::kF32;
}

Element ReductionEmitter::promoted(size_t operand, const Values& index) const {
  return e.convert(e.element(op.operand(operand), index), op.operand_type(operand).element_type(),
                   types[operand % count]);
}

Elements ReductionEmitter::inits() const {
  Elements elements;
  for (size_t k = 0; k < count; ++k) elements.push_back(promoted(count + k, {}));
  return elements;
}

Elements ReductionEmitter::leaf(const Values& index) const {
  Elements elements;
  for (size_t k = 0; k < count; ++k) elements.push_back(promoted(k, index));
  return elements;
}

Values ReductionEmitter::combine(const Values& arguments) const {
  std::vector<ElementType> both = types;
  both.insert(both.end(), types.begin(), types.end());
  if (const std::optional<K> wide = widened_op(region))
    return {e.b.binary(*wide, arguments[0], arguments[1])};
  if (extremum) return in_order ? combine_in_order(arguments) : combine_places(arguments);
  Elements elements = ElementEmitter::unflat(arguments, both);
  // The region may take elements of another type than the accumulators'.
  for (size_t k = count; k < 2 * count; ++k) {
    elements[k] = e.convert(elements[k], both[k], region.parameter(k).type().element_type());
  }
  return ElementEmitter::flat(e.call(region, elements));
}

// In a form that proves that sides may be swapped (K5): the lower of the places that have the
// extreme value.
Values ReductionEmitter::combine_places(const Values& arguments) const {
  Builder& b = e.b;
  const bool floats = is_float(types[0]);
  const ValueId extreme = b.binary(*extremum == Extremum::kGreatest ? K::kMax : K::kMin,
                                   arguments[0], arguments[count]);
  const ValueId nowhere = b.constant(types[1], static_cast<uint64_t>(integer_max(types[1])));
  const auto place_of = [&](size_t side) {
    const ValueId value = arguments[side * count];
    ValueId has = b.compare(K::kEq, value, extreme);
    if (floats) has = b.logical_or(has, b.compare(K::kNe, value, value));
    return b.select(has, arguments[side * count + 1], nowhere);
  };
  return {extreme, b.min(place_of(0), place_of(1))};
}

// The left one's place is the lower: it is kept unless the right one is beyond it. A third of the
// ops of the form above.
Values ReductionEmitter::combine_in_order(const Values& arguments) const {
  Builder& b = e.b;
  const ValueId left = arguments[0];
  ValueId keep =
      b.compare(*extremum == Extremum::kGreatest ? K::kGe : K::kLe, left, arguments[count]);
  if (is_float(types[0])) keep = b.logical_or(keep, b.compare(K::kNe, left, left));
  return {b.select(keep, left, arguments[count]),
          b.select(keep, arguments[1], arguments[count + 1])};
}

Elements ReductionEmitter::rounded(const Elements& combined) const {
  Elements elements;
  for (size_t k = 0; k < count; ++k) {
    elements.push_back(e.convert(combined[k], types[k], region.parameter(k).type().element_type()));
  }
  return elements;
}

// Only an op on the two parameters, or two that find a place. Sums and products of complex numbers
// are so in each part (K5).
bool ReductionEmitter::is_commutative() const {
  if (extremum) return !in_order;
  const Instruction* inner = op_of_two_parameters(region);
  return inner != nullptr && inner->info().commutative;
}

std::optional<uint64_t> identity_of(const Computation& region, ElementType type) {
  const Instruction* inner = op_of_two_parameters(region);
  if (inner == nullptr) return std::nullopt;
  // Narrower floats lack -0 or infinities.
  const bool real = type == ElementType::kF16 || type == ElementType::kBF16 ||
                    type == ElementType::kF32 || type == ElementType::kF64;
  const bool whole = is_integer(type) || is_pred(type);
  if (!real && !whole) return std::nullopt;
  const auto number = [&](double of_floats, int64_t of_integers) {
    return real ? kernel::bits_of_real(type, of_floats) : static_cast<uint64_t>(of_integers);
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (inner->code()) {
    case OpCode::kAnd:
      return is_pred(type) ? 1 : ~uint64_t{0};
    case OpCode::kOr:
    case OpCode::kXor:
      return 0;
    default:
      break;
  }
  if (is_pred(type)) return std::nullopt;
  switch (inner->code()) {
    case OpCode::kAdd:
      return number(-0.0, 0);
    case OpCode::kMultiply:
      return number(1, 1);
    case OpCode::kMinimum:
      return number(kInfinity, real ? 0 : integer_max(type));
    case OpCode::kMaximum:
      return number(-kInfinity, real ? 0 : integer_min(type));
    default:
      return std::nullopt;
  }
}

Dims reduced_extents(const Instruction& reduce) {
  const I64s& dimensions = reduce.i64s(AttrKey::dimensions);
  const Dims& dims = reduce.operand_type(0).dims();
  Dims extents;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (contains(dimensions, static_cast<int64_t>(d))) extents.push_back(dims[d]);
  }
  return extents;
}

Values unreduced_index(const Instruction& reduce, const Values& kept, const Values& reduced) {
  const I64s& dimensions = reduce.i64s(AttrKey::dimensions);
  Values at;
  size_t outer = 0;
  size_t inner = 0;
  for (int64_t d = 0; d < reduce.operand_type(0).rank(); ++d) {
    at.push_back(contains(dimensions, d) ? reduced[inner++] : kept[outer++]);
  }
  return at;
}

namespace {

// The position of window position `w` of output position `o` in an input of `size`, and whether it
// is inside.
struct WindowPlace {
  ValueId index;
  ValueId inside;
};

WindowPlace window_place(Builder& b, ValueId o, ValueId w, int64_t stride, int64_t window_dilation,
                         int64_t base_dilation, int64_t low, int64_t size) {
  const ValueId from = b.add(b.mul(o, b.index(stride)), b.mul(w, b.index(window_dilation)));
  const ValueId place = b.sub(from, b.index(low));
  const int64_t extent = size == 0 ? 0 : (size - 1) * base_dilation + 1;
  ValueId inside = in_bounds(b, place, extent);
  if (base_dilation != 1) {
    const ValueId on_grid = b.compare(K::kEq, b.rem(place, b.index(base_dilation)), b.index(0));
    inside = b.logical_and(inside, on_grid);
  }
  return {b.div(place, b.index(base_dilation)), inside};
}

// Positions out of range contribute the initial value, as padding would.
Elements reduce_window(ElementEmitter& e, const Instruction& op, const Values& index) {
  Builder& b = e.b;
  const ReductionEmitter r(e, op);
  const Dims& dims = op.operand_type(0).dims();
  const size_t rank = dims.size();
  const I64s strides = op.i64s_or(AttrKey::window_strides, rank, 1);
  const I64s base = op.i64s_or(AttrKey::base_dilations, rank, 1);
  const I64s dilations = op.i64s_or(AttrKey::window_dilations, rank, 1);
  const I64Matrix padding = op.padding_or_zero(rank);
  Elements inits = r.inits();
  kernel::Builder::ReduceSpec reduction;
  reduction.extents = op.i64s(AttrKey::window_dimensions);
  reduction.commutative = r.is_commutative();
  reduction.inits = ElementEmitter::flat(inits);
  reduction.leaf = [&](const Values& window) {
    Values at(rank);
    ValueId inside = b.pred(true);
    for (size_t d = 0; d < rank; ++d) {
      const WindowPlace place =
          window_place(b, index[d], window[d], strides[d], dilations[d], base[d],
                       padding.at(static_cast<int64_t>(d), 0), dims[d]);
      at[d] = place.index;
      inside = b.logical_and(inside, place.inside);
    }
    return ElementEmitter::flat(
        e.if_else(inside, r.types, [&] { return r.leaf(at); }, [&] { return inits; }));
  };
  reduction.combine = [&](const Values& arguments) { return r.combine(arguments); };
  return r.rounded(ElementEmitter::unflat(b.reduce(reduction), r.types));
}

// For each element of the result, tests the windows that can contain it in the order of the
// source's elements, and combines the sources of those that select it.
class SelectAndScatter {
 public:
  SelectAndScatter(ElementEmitter& emitter, const Instruction& instruction)
      : e_(emitter),
        b_(emitter.b),
        op_(instruction),
        dims_(instruction.operand_type(0).dims()),
        source_dims_(instruction.operand_type(1).dims()),
        rank_(dims_.size()),
        window_(instruction.i64s_or(AttrKey::window_dimensions, rank_, 1)),
        strides_(instruction.i64s_or(AttrKey::window_strides, rank_, 1)),
        padding_(instruction.padding_or_zero(rank_)),
        type_(instruction.region(1).parameter(0).type().element_type()) {}

  Elements emit(const Values& index) {
    const Element init =
        e_.convert(e_.element(op_.operand(2), {}), op_.operand_type(2).element_type(), type_);
    // As many windows as meet at an element, at most.
    Dims most(rank_);
    for (size_t d = 0; d < rank_; ++d) {
      most[d] = std::min((window_[d] - 1) / strides_[d] + 1, source_dims_[d]);
    }
    const Values result = b_.for_loop(b_.index(0), b_.index(element_count(most)), 1,
                                      ElementEmitter::flat({init}), [&](const Values& arguments) {
                                        const Values each = delinearize(b_, arguments[0], most);
                                        const Element sum =
                                            ElementEmitter::unflat(arguments, {type_}, 1)[0];
                                        return step(index, each, sum);
                                      });
    return ElementEmitter::unflat(result, {type_});
  }

 private:
  // Adds the source of the window that is `each` windows behind the first one that reaches `index`.
  Values step(const Values& index, const Values& each, const Element& sum) {
    Values source(rank_);
    Values w(rank_);
    ValueId valid = b_.pred(true);
    for (size_t d = 0; d < rank_; ++d) {
      const ValueId stride = b_.index(strides_[d]);
      const int64_t low = padding_.at(static_cast<int64_t>(d), 0);
      const ValueId end = b_.add(index[d], b_.index(low));
      if (window_[d] == 1 && strides_[d] == 1 && low == 0) {
        source[d] = end;
        w[d] = b_.index(0);
        continue;
      }
      if (source_dims_[d] <= 1) {
        source[d] = b_.index(0);
        w[d] = end;
        valid = b_.logical_and(valid, in_bounds(b_, end, window_[d]));
        continue;
      }
      const ValueId room = b_.add(end, b_.index(strides_[d] - window_[d]));
      const ValueId first = b_.div(b_.max(room, b_.index(0)), stride);
      source[d] = b_.add(first, each[d]);
      w[d] = b_.sub(end, b_.mul(source[d], stride));
      valid = b_.logical_and(valid, in_bounds(b_, source[d], source_dims_[d]));
      valid = b_.logical_and(valid, in_bounds(b_, w[d], window_[d]));
    }
    return ElementEmitter::flat({e_.if_else(
        valid, type_,
        [&] {
          const ValueId mine = linear_index(b_, w, window_);
          const ValueId chosen = selected(source);
          return e_.if_else(
              b_.compare(K::kEq, chosen, mine), type_,
              [&] {
                const Element x = e_.convert(e_.element(op_.operand(1), source),
                                             op_.operand_type(1).element_type(), type_);
                const ElementType taken = op_.region(1).parameter(1).type().element_type();
                return e_.call(op_.region(1), {sum, e_.convert(x, type_, taken)})[0];
              },
              [&] { return sum; });
        },
        [&] { return sum; })});
  }

  // The position, in the window of `source`, of the element that the window selects, or -1.
  ValueId selected(const Values& source) {
    const ElementType type = op_.operand_type(0).element_type();
    Values inits = {b_.index(-1)};
    for (const ValueId part : ElementEmitter::flat({e_.constant(type, 0)})) inits.push_back(part);
    const Values result = b_.for_loop(
        b_.index(0), b_.index(element_count(window_)), 1, inits, [&](const Values& arguments) {
          const Values w = delinearize(b_, arguments[0], window_);
          Values kept(arguments.begin() + 1, arguments.end());
          Values at(rank_);
          ValueId inside = b_.pred(true);
          for (size_t d = 0; d < rank_; ++d) {
            const WindowPlace place =
                window_place(b_, source[d], w[d], strides_[d], 1, 1,
                             padding_.at(static_cast<int64_t>(d), 0), dims_[d]);
            at[d] = place.index;
            inside = b_.logical_and(inside, place.inside);
          }
          return b_.if_else(
              inside, [&] { return better(type, arguments[0], at, kept); }, [&] { return kept; });
        });
    return result[0];
  }

  // `kept`, or the element at `at` if there is none yet or `kept` is not selected.
  Values better(ElementType type, ValueId position, const Values& at, const Values& kept) {
    const Element candidate = e_.element(op_.operand(0), at);
    const Element best = ElementEmitter::unflat(kept, {type}, 1)[0];
    const ValueId none = b_.compare(K::kLt, kept[0], b_.index(0));
    const ValueId keep = b_.if_else(
        none, [&] { return Values{b_.pred(false)}; },
        [&] { return Values{e_.call(op_.region(0), {best, candidate})[0].re}; })[0];
    Values result = {b_.select(keep, kept[0], position)};
    for (const ValueId part : ElementEmitter::flat({e_.select(keep, best, candidate)})) {
      result.push_back(part);
    }
    return result;
  }

  ElementEmitter& e_;
  Builder& b_;
  const Instruction& op_;
  const Dims& dims_;
  const Dims& source_dims_;
  size_t rank_;
  I64s window_;
  I64s strides_;
  I64Matrix padding_;
  ElementType type_;
};

}  // namespace

LeafReduction leaves_of_reduce(ElementEmitter& e, const Instruction& op, const Values& index,
                               bool serially) {
  const auto r = std::make_shared<const ReductionEmitter>(e, op, serially);
  LeafReduction reduction;
  reduction.types = r->types;
  reduction.spec.extents = reduced_extents(op);
  reduction.spec.commutative = r->is_commutative();
  reduction.spec.inits = ElementEmitter::flat(r->inits());
  reduction.spec.leaf = [r, &op, index](const Values& reduced) {
    return ElementEmitter::flat(r->leaf(unreduced_index(op, index, reduced)));
  };
  reduction.spec.combine = [r](const Values& arguments) { return r->combine(arguments); };
  reduction.rounded = [r](const Elements& combined) { return r->rounded(combined); };
  if (r->types.size() == 1 && !is_complex(r->types[0])) {
    if (const auto identity = identity_of(r->region, r->types[0])) {
      reduction.identities = {{e.b.constant(r->types[0], *identity)}};
    }
  }
  return reduction;
}

LeafReduction leaves_of(ElementEmitter& e, const Instruction& op, const Values& index) {
  return op.code() == OpCode::kReduce ? leaves_of_reduce(e, op, index)
                                      : leaves_of_dot(e, op, index);
}

namespace {

// Whether the lane of a result takes its leaves one after the other on every device: those of a
// short row lie in registers, those of a column are rows for the lanes. Else a lane may share its
// leaves out among the elements of a vector.
bool lanes_take_leaves_serially(const Instruction& reduce) {
  const I64s& dimensions = reduce.i64s(AttrKey::dimensions);
  const bool fills = element_count(reduce.result_type(0).dims()) >= kLeastLanes;
  return fills && (!contains(dimensions, reduce.operand_type(0).rank() - 1) ||
                   element_count(reduced_extents(reduce)) <= kShortRow);
}

}  // namespace

Elements emit_reduce(ElementEmitter& e, const Instruction& op, const Values& index,
                     bool over_lanes) {
  LeafReduction reduction =
      leaves_of_reduce(e, op, index, !over_lanes && lanes_take_leaves_serially(op));
  // Lanes combine accumulators.
  reduction.spec.over_lanes = over_lanes && combines_accumulators(op.region(0));
  return reduction.rounded(ElementEmitter::unflat(e.b.reduce(reduction.spec), reduction.types));
}

namespace {

Elements reduce_at(ElementEmitter& e, const Instruction& op, const Values& index) {
  return emit_reduce(e, op, index, false);
}
Elements select_and_scatter_at(ElementEmitter& e, const Instruction& op, const Values& index) {
  return SelectAndScatter(e, op).emit(index);
}

}  // namespace

namespace emit {
constinit const ElementRule reduce = {.at = reduce_at};
constinit const ElementRule reduce_window = {.at = lower::reduce_window};
constinit const ElementRule select_and_scatter = {.at = select_and_scatter_at};
}  // namespace emit

}  // namespace tenon::hlo::lower
