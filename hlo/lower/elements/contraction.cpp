// dot_general and convolution: sums of products.
//
// Products and sums have the accumulator's type: f32 for floats of at most 32 bits, f64 for f64;
// integers wrap in the result's type.
#include "hlo/lower/elements/contraction.h"
#include "hlo/lower/elements/index_math.h"
#include "hlo/lower/elements/reduction.h"
#include "hlo/lower/elements/rules.h"
#include "hlo/lower/library_calls.h"

namespace tenon::hlo::lower {

using kernel::Builder;

Element add(ElementEmitter& e, const Element& x, const Element& y, ElementType type) {
  if (is_pred(type)) return {e.b.logical_or(x.re, y.re)};
  Element sum = {e.b.add(x.re, y.re)};
  if (x.is_complex()) sum.im = e.b.add(x.im, y.im);
  return sum;
}

Element multiply(ElementEmitter& e, const Element& x, const Element& y, ElementType type) {
  Builder& b = e.b;
  if (is_pred(type)) return {b.logical_and(x.re, y.re)};
  if (!x.is_complex()) return {b.mul(x.re, y.re)};
  return {b.sub(b.mul(x.re, y.re), b.mul(x.im, y.im)), b.add(b.mul(x.re, y.im), b.mul(x.im, y.re))};
}

// Floats of operands may be wider than the result.
ElementType accumulator(const Instruction& op) {
  ElementType widest = op.result_type().element_type();
  for (size_t i = 0; i < 2; ++i) {
    const ElementType type = op.operand_type(i).element_type();
    if (is_float(type) && !is_float(widest) && !is_complex(widest)) widest = type;
  }
  if (is_float(widest) && widest != ElementType::kF64) return ElementType::kF32;
  return widest;
}

DotShape::DotShape(const Instruction& dot) {
  const auto& dims = *dot.attr<DotDims>(AttrKey::dot_dimension_numbers);
  batching = {dims.lhs_batching, dims.rhs_batching};
  contracting = {dims.lhs_contracting, dims.rhs_contracting};
  for (size_t side = 0; side < 2; ++side) {
    const Dims& sizes = dot.operand_type(side).dims();
    for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d) {
      if (contains(batching[side], d) || contains(contracting[side], d)) continue;
      free[side].push_back(d);
      (side == 0 ? m : n).push_back(sizes[static_cast<size_t>(d)]);
    }
  }
  const Dims& lhs = dot.operand_type(0).dims();
  for (const int64_t d : batching[0]) batch.push_back(lhs[static_cast<size_t>(d)]);
  for (const int64_t d : contracting[0]) k.push_back(lhs[static_cast<size_t>(d)]);
}

Values DotShape::factor(size_t operand, const Values& in_batch, const Values& of_free,
                        const Values& of_contracting) const {
  Values at(in_batch.size() + of_free.size() + of_contracting.size());
  const auto put = [&](const I64s& where, const Values& what) {
    for (size_t i = 0; i < what.size(); ++i) at[static_cast<size_t>(where[i])] = what[i];
  };
  put(batching[operand], in_batch);
  put(free[operand], of_free);
  put(contracting[operand], of_contracting);
  return at;
}

Values input_index(Builder& b, const Instruction& op, const program::Convolution& c,
                   const WindowElement& of, const I64s& multiples, ValueId& inside) {
  const Dims& dims = op.operand_type(0).dims();
  const auto size = [&](int64_t axis) { return dims[static_cast<size_t>(axis)]; };
  Values index(dims.size());
  const bool by_batch = c.batch_groups > 1;
  const bool by_feature = c.feature_groups > 1;
  const int64_t batches = size(c.input.batch) / c.batch_groups;
  const int64_t features = size(c.input.feature) / c.feature_groups;
  index[static_cast<size_t>(c.input.batch)] =
      by_batch ? b.add(of.batch, b.mul(of.group, b.index(batches))) : of.batch;
  index[static_cast<size_t>(c.input.feature)] =
      by_feature ? b.add(b.mul(of.group, b.index(features)), of.feature) : of.feature;
  for (size_t s = 0; s < c.strides.size(); ++s) {
    const ValueId scaled = b.add(b.mul(of.spatial[s], b.index(c.strides[s])),
                                 b.mul(of.in_window[s], b.index(c.kernel_dilation[s])));
    const ValueId place = b.sub(scaled, b.index(c.padding_low[s]));
    const ValueId dilation = b.index(c.input_dilation[s]);
    const int64_t length = size(c.input.spatial[s]);
    inside = b.logical_and(
        inside, in_bounds(b, place, length == 0 ? 0 : (length - 1) * c.input_dilation[s] + 1));
    if (c.input_dilation[s] != multiples[s]) {
      inside = b.logical_and(inside, b.compare(K::kEq, b.rem(place, dilation), b.index(0)));
    }
    index[static_cast<size_t>(c.input.spatial[s])] = b.div(place, dilation);
  }
  return index;
}

Values kernel_index(Builder& b, const Instruction& op, const program::Convolution& c,
                    const WindowElement& of, ValueId output) {
  const Dims& dims = op.operand_type(1).dims();
  Values index(dims.size());
  index[static_cast<size_t>(c.kernel.batch)] = output;
  index[static_cast<size_t>(c.kernel.feature)] = of.feature;
  for (size_t s = 0; s < c.kernel.spatial.size(); ++s) {
    const auto axis = static_cast<size_t>(c.kernel.spatial[s]);
    index[axis] = contains(c.reversed, static_cast<int64_t>(s))
                      ? b.sub(b.index(dims[axis] - 1), of.in_window[s])
                      : of.in_window[s];
  }
  return index;
}

namespace {

// An operand's element, converted to the accumulator's type.
Element factor(ElementEmitter& e, const Instruction& op, size_t operand, const Values& at,
               ElementType type) {
  return e.convert(e.element(op.operand(operand), at), op.operand_type(operand).element_type(),
                   type);
}

// The sum over `extents` of the values of `term`, in the result's type.
LeafReduction sum_of(ElementEmitter& e, const Instruction& op, const Dims& extents,
                     ElementType type, std::function<Element(const Values&)> term) {
  LeafReduction reduction;
  reduction.types = {type};
  reduction.identities = {e.constant(type, 0)};
  reduction.spec.extents = extents;
  reduction.spec.commutative = true;
  reduction.spec.inits = ElementEmitter::flat(reduction.identities);
  reduction.spec.leaf = [term = std::move(term)](const Values& at) {
    return ElementEmitter::flat({term(at)});
  };
  reduction.spec.combine = [&e, type](const Values& arguments) {
    const Elements both = ElementEmitter::unflat(arguments, {type, type});
    return ElementEmitter::flat({add(e, both[0], both[1], type)});
  };
  reduction.rounded = [&e, &op, type](const Elements& sum) {
    return Elements{e.convert(sum[0], type, op.result_type().element_type())};
  };
  return reduction;
}

Elements emit_sum(ElementEmitter& e, const LeafReduction& sum) {
  return sum.rounded(ElementEmitter::unflat(e.b.reduce(sum.spec), sum.types));
}

int64_t size_of(const Type& type, int64_t axis) { return type.dims()[static_cast<size_t>(axis)]; }

// Sums over kernel positions and the input features of the output's group; padding and gaps between
// dilated elements count as zero.
Elements emit_convolution(ElementEmitter& e, const Instruction& op, const Values& index) {
  Builder& b = e.b;
  const program::Convolution c = convolution_of(op);
  const Type& rhs = op.operand_type(1);
  const ElementType type = accumulator(op);
  const int64_t outputs = size_of(rhs, c.kernel.batch);
  const int64_t features = size_of(rhs, c.kernel.feature);
  const ValueId output = index[static_cast<size_t>(c.output.feature)];
  const int64_t groups = std::max(c.feature_groups, c.batch_groups);
  WindowElement element;
  element.batch = index[static_cast<size_t>(c.output.batch)];
  for (const int64_t axis : c.output.spatial) {
    element.spatial.push_back(index[static_cast<size_t>(axis)]);
  }
  element.group =
      groups == 1 ? b.index(0) : b.div(output, b.index(std::max<int64_t>(outputs / groups, 1)));
  Dims extents;
  for (const int64_t axis : c.kernel.spatial) extents.push_back(size_of(rhs, axis));
  extents.push_back(features);
  const LeafReduction sum = sum_of(e, op, extents, type, [&](const Values& at) {
    element.in_window = Values(at.begin(), at.end() - 1);
    element.feature = at.back();
    ValueId inside = b.pred(true);
    const Values from = input_index(b, op, c, element, I64s(c.input_dilation.size(), 1), inside);
    const Values weight = kernel_index(b, op, c, element, output);
    return e.if_else(
        inside, type,
        [&] {
          return multiply(e, factor(e, op, 0, from, type), factor(e, op, 1, weight, type), type);
        },
        [&] { return e.constant(type, 0); });
  });
  return emit_sum(e, sum);
}

}  // namespace

LeafReduction leaves_of_dot(ElementEmitter& e, const Instruction& op, const Values& index) {
  const DotShape shape(op);
  const ElementType type = accumulator(op);
  const auto part = [&](size_t first, size_t count) {
    const auto begin = index.begin() + static_cast<std::ptrdiff_t>(first);
    return Values(begin, begin + static_cast<std::ptrdiff_t>(count));
  };
  const size_t rows = shape.batch.size() + shape.m.size();
  const Values batch = part(0, shape.batch.size());
  const std::array<Values, 2> free = {part(shape.batch.size(), shape.m.size()),
                                      part(rows, shape.n.size())};
  return sum_of(e, op, shape.k, type, [&e, &op, shape, type, batch, free](const Values& k) {
    const Element x = factor(e, op, 0, shape.factor(0, batch, free[0], k), type);
    const Element y = factor(e, op, 1, shape.factor(1, batch, free[1], k), type);
    return multiply(e, x, y, type);
  });
}

Elements emit_dot(ElementEmitter& e, const Instruction& op, const Values& index, bool over_lanes) {
  LeafReduction sum = leaves_of_dot(e, op, index);
  sum.spec.over_lanes = over_lanes;
  return emit_sum(e, sum);
}

namespace {

Elements dot_at(ElementEmitter& e, const Instruction& op, const Values& index) {
  return emit_dot(e, op, index, false);
}

}  // namespace

namespace emit {
constinit const ElementRule convolution = {.at = emit_convolution};
constinit const ElementRule dot_general = {.at = dot_at};
}  // namespace emit

}  // namespace tenon::hlo::lower
