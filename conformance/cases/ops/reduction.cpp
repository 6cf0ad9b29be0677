// Reductions: each combiner, along each kind of axis, over windows.
#include <cmath>
#include <limits>

#include "conformance/cases/case_list.h"
#include "core/types/float_convert.h"

namespace tenon::conformance {
namespace {

using hlo::AttrKey;
using hlo::I64Matrix;
using hlo::I64s;
using hlo::OpCode;
using hlo::Type;
using hlo::Value;
using enum ElementType;

// --- reduce

// The least number of a float type.
double least(ElementType t) {
  if (has_infinity(t)) return -HUGE_VAL;
  // Without a sign and a zero, the smallest power of two, to which zero is rounded.
  return t == kF8E8M0FNU ? 0 : -float_max(t);
}

Literal neutral_element(OpCode combiner, ElementType t) {
  Literal value(Shape(t, {}));
  switch (combiner) {
    case OpCode::kMaximum:
      if (is_float(t)) value.set_double(0, least(t));
      if (is_complex(t)) value.set_complex(0, {-HUGE_VAL, -HUGE_VAL});
      if (is_integer(t)) value.set_integer(0, integer_min(t));
      break;
    case OpCode::kMinimum:
      if (is_float(t)) value.set_double(0, has_infinity(t) ? HUGE_VAL : float_max(t));
      if (is_complex(t)) value.set_complex(0, {HUGE_VAL, HUGE_VAL});
      if (is_integer(t)) value.set_integer(0, integer_max(t));
      if (is_pred(t)) value.set_integer(0, 1);
      break;
    case OpCode::kMultiply:
    case OpCode::kAnd:
      value = combiner == OpCode::kAnd && is_integer(t) ? Literal::scalar_integer(t, -1)
              : is_complex(t)                           ? value
                                                        : Literal::scalar(t, 1);
      if (is_complex(t)) value.set_complex(0, {1, 0});
      break;
    default:
      break;
  }
  return value;
}

// The neutral element of a combiner, a parameter: no pass may know it. An implementation may leave
// it out, so no other value is admitted.
Value neutral(ProgramMaker& m, OpCode combiner, ElementType t) {
  return m.argument(neutral_element(combiner, t));
}

// Factors whose products are not rounded and do not overflow: signs and a few twos.
Value factors(ProgramMaker& m, ElementType t, const Dims& dims) {
  Literal value(Shape(t, dims));
  const bool halves = is_float(complex_part(t)) && element_type_info(t).format.mantissa_bits > 0;
  int twos = 8;
  for (int64_t i = 0; i < value.element_count(); ++i) {
    const double sign = m.random().one_in(2) ? -1 : 1;
    const double size = halves && twos > 0 && m.random().one_in(40) ? 2 : 1;
    if (size == 2) --twos;
    if (is_complex(t)) value.set_complex(i, {sign * size, 0});
    if (is_float(t))
      value.set_double(i, element_type_info(t).format.mantissa_bits > 0 ? sign * size : 1);
    if (is_integer(t)) value.set_integer(i, wrap_integer(t, m.random().between(-3, 3) | 1));
    if (is_pred(t)) value.set_integer(i, m.random().one_in(9) ? 0 : 1);
  }
  return m.argument(std::move(value));
}

template <OpCode kCombiner>
void make_reduce(ProgramMaker& m, ElementType t, const Dims& dims, const I64s& axes) {
  const bool is_product = kCombiner == OpCode::kMultiply;
  const Value x = is_product ? factors(m, t, dims) : m.data(t, dims);
  m.b().reduce(kCombiner, x, neutral(m, kCombiner, t), axes);
}

template <OpCode kCombiner>
constexpr Variant kReduceOf[] = {
    {"rows", [](ProgramMaker& m, ElementType t) { make_reduce<kCombiner>(m, t, {7, 33}, {1}); }},
    {"columns", [](ProgramMaker& m, ElementType t) { make_reduce<kCombiner>(m, t, {33, 7}, {0}); }},
    {"all", [](ProgramMaker& m, ElementType t) { make_reduce<kCombiner>(m, t, {13, 5}, {0, 1}); }},
    {"middle",
     [](ProgramMaker& m, ElementType t) { make_reduce<kCombiner>(m, t, {3, 17, 5}, {1}); }},
    {"outer_and_inner",
     [](ProgramMaker& m, ElementType t) { make_reduce<kCombiner>(m, t, {3, 4, 5}, {0, 2}); }},
    {"long", [](ProgramMaker& m, ElementType t) { make_reduce<kCombiner>(m, t, {4099}, {0}); }},
    {"one", [](ProgramMaker& m, ElementType t) { make_reduce<kCombiner>(m, t, {1, 9}, {0}); }},
    {"of_empty", [](ProgramMaker& m, ElementType t) {
       const Value x = m.data(t, {5, 0});
       m.consume(m.b().reduce(kCombiner, x, m.data(t, {}), {1}));
     }}};

template <OpCode kCombiner>
void add_reduce(CaseList& list) {
  for (const Variant& variant : kReduceOf<kCombiner>) {
    const std::string name = case_name_of(kCombiner) + "_" + std::string(variant.name);
    const Variant named[] = {{name, variant.make}};
    // A product of special values depends on the order, where overflow gives NaN.
    const bool is_product = kCombiner == OpCode::kMultiply;
    add_variants(list, OpCode::kReduce, named,
                 is_product ? std::span<const ValueClass>(kOrdinaryValues)
                            : std::span<const ValueClass>(ProgramCases::kDefaultValues));
  }
}

// The greatest element and its first position: two values at once.
void make_argmax(ProgramMaker& m, ElementType t, const Dims& dims, int64_t axis) {
  const Value x = m.data(t, dims);
  const Value positions = m.b().iota(kS32, dims, axis);
  const Value first = neutral(m, OpCode::kMaximum, t);
  const Value zero = m.argument(Literal::scalar_integer(kS32, 0));
  auto region = std::make_unique<hlo::Computation>();
  const Value a = region->add_parameter(Type::tensor(t, {}));
  const Value i = region->add_parameter(Type::tensor(kS32, {}));
  const Value b = region->add_parameter(Type::tensor(t, {}));
  const Value j = region->add_parameter(Type::tensor(kS32, {}));
  hlo::Builder body(*region);
  // The first NaN counts as the greatest, as in JAX: else the result would depend on the order.
  const Value greater = body.binary(OpCode::kOr, body.compare(hlo::ComparisonDirection::kGt, a, b),
                                    body.compare(hlo::ComparisonDirection::kNe, a, a));
  const Value equal = body.compare(hlo::ComparisonDirection::kEq, a, b);
  const Value earlier = body.compare(hlo::ComparisonDirection::kLt, i, j);
  const Value keep = body.binary(OpCode::kOr, greater, body.binary(OpCode::kAnd, equal, earlier));
  m.b().fail(body.finish({body.select(keep, a, b), body.select(keep, i, j)}));
  std::vector<std::unique_ptr<hlo::Computation>> regions;
  regions.push_back(std::move(region));
  m.b().create(OpCode::kReduce, {x, positions, first, zero}, {{AttrKey::dimensions, I64s{axis}}},
               {}, std::move(regions));
}
constexpr Variant kArgmax[] = {
    {"argmax_rows", [](ProgramMaker& m, ElementType t) { make_argmax(m, t, {5, 19}, 1); }},
    {"argmax_columns", [](ProgramMaker& m, ElementType t) { make_argmax(m, t, {19, 5}, 0); }},
    {"argmax_long", [](ProgramMaker& m, ElementType t) { make_argmax(m, t, {2051}, 0); }}};

// --- reduce_window

struct WindowAttributes {
  I64s size;
  I64s strides;
  I64s base_dilations;
  I64s window_dilations;
  I64Matrix padding;
};

Value reduce_window(ProgramMaker& m, OpCode combiner, Value x, Value init,
                    const WindowAttributes& w) {
  std::vector<std::unique_ptr<hlo::Computation>> regions;
  regions.push_back(hlo::binary_region(combiner, Type::tensor(x.type().element_type(), {})));
  hlo::Instruction* const op = m.b().create(OpCode::kReduceWindow, {x, init},
                                            {{AttrKey::window_dimensions, w.size},
                                             {AttrKey::window_strides, w.strides},
                                             {AttrKey::base_dilations, w.base_dilations},
                                             {AttrKey::window_dilations, w.window_dilations},
                                             {AttrKey::padding, w.padding}},
                                            {}, std::move(regions));
  return op == nullptr ? Value() : op->result();
}

I64Matrix pairs(int64_t rows, I64s values) { return {rows, 2, std::move(values)}; }

// A cumulative op. Its init value is known, so that an implementation may scan.
void make_cumulative(ProgramMaker& m, OpCode combiner, Value x, int64_t axis, bool reverse) {
  const Dims& dims = x.type().dims();
  const size_t rank = dims.size();
  const I64s ones(rank, 1);
  I64s window = ones;
  window[static_cast<size_t>(axis)] = dims[static_cast<size_t>(axis)];
  I64s padding(2 * rank, 0);
  padding[static_cast<size_t>(2 * axis + (reverse ? 1 : 0))] = dims[static_cast<size_t>(axis)] - 1;
  const Value init = m.b().constant(neutral_element(combiner, x.type().element_type()));
  reduce_window(m, combiner, x, init,
                {window, ones, ones, ones, pairs(static_cast<int64_t>(rank), padding)});
}

template <OpCode kCombiner>
constexpr Variant kWindowOf[] = {
    {"pool",
     [](ProgramMaker& m, ElementType t) {
       reduce_window(m, kCombiner, m.data(t, {2, 8, 9, 3}), neutral(m, kCombiner, t),
                     {{1, 2, 3, 1},
                      {1, 2, 3, 1},
                      {1, 1, 1, 1},
                      {1, 1, 1, 1},
                      pairs(4, {0, 0, 0, 0, 0, 0, 0, 0})});
     }},
    {"same_padding",
     [](ProgramMaker& m, ElementType t) {
       reduce_window(m, kCombiner, m.data(t, {7, 9}), neutral(m, kCombiner, t),
                     {{3, 3}, {1, 1}, {1, 1}, {1, 1}, pairs(2, {1, 1, 1, 1})});
     }},
    {"dilated",
     [](ProgramMaker& m, ElementType t) {
       reduce_window(m, kCombiner, m.data(t, {7, 9}), neutral(m, kCombiner, t),
                     {{2, 3}, {2, 1}, {2, 1}, {1, 2}, pairs(2, {1, 0, 2, 2})});
     }},
    {"prefix",
     [](ProgramMaker& m, ElementType t) {
       reduce_window(m, kCombiner, m.data(t, {3, 21}), neutral(m, kCombiner, t),
                     {{1, 21}, {1, 1}, {1, 1}, {1, 1}, pairs(2, {0, 0, 20, 0})});
     }},
    {"cumulative_rows",
     [](ProgramMaker& m, ElementType t) {
       make_cumulative(m, kCombiner, m.data(t, {5, 71}), 1, false);
     }},
    {"cumulative_rows_backwards",
     [](ProgramMaker& m, ElementType t) {
       make_cumulative(m, kCombiner, m.data(t, {5, 71}), 1, true);
     }},
    {"cumulative_columns", [](ProgramMaker& m, ElementType t) {
       make_cumulative(m, kCombiner, m.data(t, {71, 3}), 0, false);
     }}};

template <OpCode kCombiner>
void add_reduce_window(CaseList& list) {
  for (const Variant& variant : kWindowOf<kCombiner>) {
    const std::string name = case_name_of(kCombiner) + "_" + std::string(variant.name);
    const Variant named[] = {{name, variant.make}};
    add_variants(list, OpCode::kReduceWindow, named);
  }
}

// --- select_and_scatter

void make_select_and_scatter(ProgramMaker& m, ElementType t, const Dims& dims, const Dims& source,
                             const I64s& window, const I64s& strides, I64Matrix padding) {
  const Type scalar = Type::tensor(t, {});
  auto select = std::make_unique<hlo::Computation>();
  const Value a = select->add_parameter(scalar);
  const Value b = select->add_parameter(scalar);
  hlo::Builder body(*select);
  m.b().fail(body.finish({body.compare(hlo::ComparisonDirection::kGe, a, b)}));
  std::vector<std::unique_ptr<hlo::Computation>> regions;
  regions.push_back(std::move(select));
  regions.push_back(hlo::binary_region(OpCode::kAdd, scalar));
  const Value x = m.data(t, dims);
  const Value updates = m.data(t, source);
  m.b().create(OpCode::kSelectAndScatter, {x, updates, m.argument(Literal(Shape(t, {})))},
               {{AttrKey::window_dimensions, window},
                {AttrKey::window_strides, strides},
                {AttrKey::padding, std::move(padding)}},
               {}, std::move(regions));
}
constexpr Variant kSelectAndScatter[] = {
    {"pool",
     [](ProgramMaker& m, ElementType t) {
       make_select_and_scatter(m, t, {6, 8}, {3, 4}, {2, 2}, {2, 2}, pairs(2, {0, 0, 0, 0}));
     }},
    {"padded", [](ProgramMaker& m, ElementType t) {
       make_select_and_scatter(m, t, {5, 7}, {3, 4}, {2, 2}, {2, 2}, pairs(2, {0, 1, 1, 0}));
     }}};

}  // namespace

void add_reduction_cases(CaseList& list) {
  add_reduce<OpCode::kAdd>(list);
  add_reduce<OpCode::kMultiply>(list);
  add_reduce<OpCode::kMaximum>(list);
  add_reduce<OpCode::kMinimum>(list);
  add_reduce<OpCode::kAnd>(list);
  add_reduce<OpCode::kOr>(list);
  add_reduce<OpCode::kXor>(list);
  add_variants(list, OpCode::kReduce, kArgmax);
  add_reduce_window<OpCode::kAdd>(list);
  add_reduce_window<OpCode::kMaximum>(list);
  add_variants(list, OpCode::kSelectAndScatter, kSelectAndScatter, kOrdinaryValues);
}

}  // namespace tenon::conformance
