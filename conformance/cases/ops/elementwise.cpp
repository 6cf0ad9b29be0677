// Elementwise ops. Those of one operand type follow from their rows; a few have attributes or
// operands of several types.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>

#include "conformance/cases/case_list.h"
#include "conformance/cases/ops/elementwise.h"

namespace tenon::conformance {

bool is_ill_conditioned(hlo::OpCode op, ElementType type) {
  return is_complex(type) &&
         (op == hlo::OpCode::kPower || op == hlo::OpCode::kAtan2 || op == hlo::OpCode::kRemainder);
}

bool is_defined(hlo::OpCode op, ElementType type) {
  if (op != hlo::OpCode::kChloNextAfter || !is_float(type)) return true;
  const FloatSpecials specials = element_type_info(type).format.specials;
  return specials == FloatSpecials::kIeee || specials == FloatSpecials::kNanOnly;
}

bool takes_any_value(hlo::OpCode op) {
  return op != hlo::OpCode::kChloPolygamma && op != hlo::OpCode::kChloZeta;
}

namespace {

using hlo::AttrKey;
using hlo::OpCode;
using hlo::OpInfo;
using hlo::Type;
using hlo::Value;
using enum ElementType;

// --- Ops with operands of one type and no attributes

bool is_plain(const OpInfo& op) {
  const bool attributes = std::ranges::any_of(op.attribute_specs(), [](const auto& spec) {
    return spec.default_value == hlo::AttrDefault::kRequired;
  });
  return op.category == hlo::Category::kElementwise && op.region_names().empty() && !attributes &&
         op.code != OpCode::kSelect && op.code != OpCode::kConvert &&
         op.code != OpCode::kBitcastConvert && op.name.find("broadcast") == std::string_view::npos;
}

// Numbers between the poles of the logistic function of complex numbers, at multiples of pi i, near
// which no bound holds.
Literal between_poles(ProgramMaker& m, ElementType type, const Dims& dims) {
  Literal z = random_values(Shape(type, dims), m.values(), m.random());
  for (int64_t i = 0; i < z.element_count(); ++i) {
    const auto value = z.get_complex(i);
    if (std::abs(value) < 16) {
      z.set_complex(i, value / 8.0);
    } else if (std::abs(value.real()) < 2) {
      // The imaginary part may be near a pole, which are at a real part of 0.
      z.set_complex(i, {std::copysign(2, value.real()), value.imag()});
    }
  }
  return z;
}

void make_plain(ProgramMaker& m, OpCode op, ElementType type, const Dims& dims) {
  std::vector<Value> operands;
  for (size_t i = 0; i < hlo::op_info(op).operand_names().size(); ++i) {
    const bool has_poles = op == OpCode::kLogistic && is_complex(type);
    const Value x = has_poles ? m.argument(between_poles(m, type, dims)) : m.data(type, dims);
    // Between its poles on the negative axis polygamma has zeros, near which no bound holds.
    operands.push_back(op == OpCode::kChloPolygamma ? m.b().abs(x) : x);
  }
  const Value y = m.b().make(op, operands);
  const bool is_identity = op == OpCode::kChloConj && !is_complex(type);
  if (y && (element_count(dims) == 0 || is_identity)) m.consume(y);
}

void make_patterns(ProgramMaker& m, OpCode op, ElementType type) {
  const size_t count = hlo::op_info(op).operand_names().size();
  std::vector<Value> operands;
  for (size_t i = 0; i < count; ++i) {
    operands.push_back(m.argument(patterns(type, i, count, m.random())));
  }
  const Value y = m.b().make(op, operands);
  if (y && op == OpCode::kChloConj) m.consume(y);
}

constexpr ValueClass kSpecialValues[] = {ValueClass::kZero,     ValueClass::kNan,
                                         ValueClass::kInfinity, ValueClass::kDenormal,
                                         ValueClass::kExtreme,  ValueClass::kMixed};

// Special values also behind the last whole vector, in an array of several workgroups, and in small
// dimensions.
bool takes_mixed_values(const ShapeClass& shape) {
  return shape.name == "unaligned" || shape.name == "large" || shape.name == "rank3";
}

void add_plain(CaseList& list, OpCode op, ElementType type) {
  const std::string prefix = fmt::format("op/{}/{}", case_name_of(op), name_of(type));
  ProgramCases added;
  added.type = type;
  for (const ShapeClass& shape : shape_classes()) {
    added.prefix = fmt::format("{}/{}", prefix, shape.name);
    added.make =
        built_by([op, type, &shape](ProgramMaker& m) { make_plain(m, op, type, shape.dims); });
    added.values = kOrdinaryValues;
    if (takes_any_value(op) && takes_mixed_values(shape))
      added.values = ProgramCases::kDefaultValues;
    added.is_typical = shape.name == "prime";
    add(list, added);
    if (!added.is_typical) continue;
    if (!takes_any_value(op)) continue;
    added.is_typical = false;
    added.values = kSpecialValues;
    add(list, added);
  }
  if (!takes_any_value(op)) return;
  constexpr ValueClass kPatternValues[] = {ValueClass::kPatterns};
  added.prefix = prefix + "/all";
  added.make = built_by([op, type](ProgramMaker& m) { make_patterns(m, op, type); });
  added.values = kPatternValues;
  add(list, added);
}

// --- The others

void make_compare(ProgramMaker& m, ElementType type, hlo::ComparisonDirection direction,
                  hlo::ComparisonType by) {
  const Value x = m.data(type, {37});
  // Equal pairs too.
  const Value y = m.b().select(m.integers(kPred, {37}, 0, 1), x, m.data(type, {37}));
  m.b().compare(direction, x, y, by);
}

void add_compare(CaseList& list) {
  constexpr std::string_view kDirections[] = {"eq", "ne", "ge", "gt", "le", "lt"};
  constexpr ValueClass kValues[] = {ValueClass::kOrdinary, ValueClass::kZero,
                                    ValueClass::kNan,      ValueClass::kDenormal,
                                    ValueClass::kExtreme,  ValueClass::kMixed};
  for (const ElementTypeInfo& info : element_types()) {
    for (size_t d = 0; d < std::size(kDirections); ++d) {
      for (const bool total : {false, true}) {
        const ElementType type = info.type;
        const auto direction = static_cast<hlo::ComparisonDirection>(d);
        const auto by = total ? hlo::ComparisonType::kTotalOrder : hlo::ComparisonType::kNoType;
        ProgramCases added;
        added.prefix = fmt::format("op/compare/{}/{}{}", info.name, kDirections[d],
                                   total ? "_total_order" : "");
        added.make = built_by([=](ProgramMaker& m) { make_compare(m, type, direction, by); });
        added.values = kValues;
        added.type = type;
        added.is_typical = d == 0 && !total;
        add_if_valid(list, added);
      }
    }
  }
}

void add_convert(CaseList& list) {
  constexpr ValueClass kValues[] = {ValueClass::kOrdinary, ValueClass::kMixed,
                                    ValueClass::kPatterns};
  for (const ElementTypeInfo& from : element_types()) {
    for (const ElementTypeInfo& to : element_types()) {
      ProgramCases added;
      added.prefix = fmt::format("op/convert/{}/to_{}", from.name, to.name);
      added.make = built_by([from = from.type, to = to.type](ProgramMaker& m) {
        const Value x = m.values() == ValueClass::kPatterns
                            ? m.argument(patterns(from, 0, 1, m.random()))
                            : m.data(from, {41});
        const Value y = m.b().convert(x, to);
        if (from == to) m.consume(y);
      });
      added.values = kValues;
      added.type = from.type;
      added.is_typical = to.type == (from.type == kF32 ? kS32 : kF32);
      add_if_valid(list, added);
    }
  }
}

bool keeps_bits(ElementType from, ElementType to) {
  // A NaN has no bits of its own (docs/kernel-ir.md, "Operations").
  return !is_float(from) || is_float(to);
}

void add_bitcast_convert(CaseList& list) {
  for (const ElementType type : {kC64, kC128})
    list.left_out.push_back({cell_of(OpCode::kBitcastConvert, type), "it only becomes itself"});
  for (const ElementTypeInfo& from : element_types()) {
    for (const ElementTypeInfo& to : element_types()) {
      const bool computes = !is_complex(from.type) && !is_complex(to.type) && from.type != to.type;
      if (!computes) continue;
      ProgramCases added;
      added.prefix = fmt::format("op/bitcast_convert/{}/to_{}", from.name, to.name);
      added.make = built_by([from = from.type, to = to.type](ProgramMaker& m) {
        const int wide = bit_width(from);
        const int narrow = bit_width(to);
        Dims dims = {5, 3};
        Dims result = {5, 3};
        if (wide > narrow) result.push_back(wide / narrow);
        if (wide < narrow) dims.push_back(narrow / wide);
        const Value x = m.data(from, dims);
        const Value y = m.b().bitcast(m.consume(x), Type::tensor(to, result));
        if (!is_pred(to)) m.consume(y);
      });
      added.values = keeps_bits(from.type, to.type) ? ProgramCases::kDefaultValues
                                                    : std::span<const ValueClass>(kOrdinaryValues);
      added.type = from.type;
      added.is_typical = from.type == kF32 && to.type == kS32;
      add_if_valid(list, added);
    }
  }
}

constexpr Variant kSelect[] = {
    {"array",
     [](ProgramMaker& m, ElementType t) {
       m.b().select(m.integers(kPred, {3, 13}, 0, 1), m.data(t, {3, 13}), m.data(t, {3, 13}));
     }},
    {"scalar", [](ProgramMaker& m, ElementType t) {
       m.b().select(m.integers(kPred, {}, 0, 1), m.data(t, {3, 13}), m.data(t, {3, 13}));
     }}};

constexpr Variant kClamp[] = {
    {"arrays",
     [](ProgramMaker& m, ElementType t) {
       m.b().make(OpCode::kClamp, {m.data(t, {29}), m.data(t, {29}), m.data(t, {29})});
     }},
    {"scalars", [](ProgramMaker& m, ElementType t) {
       m.b().make(OpCode::kClamp, {m.data(t, {}), m.data(t, {29}), m.data(t, {})});
     }}};

template <int64_t kExponent, int64_t kMantissa>
void make_reduce_precision(ProgramMaker& m, ElementType t) {
  m.b().make(OpCode::kReducePrecision, {m.data(t, {61})},
             {{AttrKey::exponent_bits, kExponent}, {AttrKey::mantissa_bits, kMantissa}});
}
constexpr Variant kReducePrecision[] = {
    {"e5m10", make_reduce_precision<5, 10>}, {"e8m7", make_reduce_precision<8, 7>},
    {"e4m3", make_reduce_precision<4, 3>},   {"e2m0", make_reduce_precision<2, 0>},
    {"e8m23", make_reduce_precision<8, 23>}, {"e11m52", make_reduce_precision<11, 52>}};

constexpr Variant kComplex[] = {{"vector", [](ProgramMaker& m, ElementType t) {
                                   m.b().make(OpCode::kComplex, {m.data(t, {23}), m.data(t, {23})});
                                 }}};

constexpr ValueClass kExactValues[] = {
    ValueClass::kOrdinary, ValueClass::kZero,    ValueClass::kNan,  ValueClass::kInfinity,
    ValueClass::kDenormal, ValueClass::kExtreme, ValueClass::kMixed};

}  // namespace

void add_elementwise_cases(CaseList& list) {
  for (const OpInfo& op : hlo::all_ops()) {
    if (!is_plain(op)) continue;
    for (const ElementTypeInfo& info : element_types()) {
      const ElementType type = info.type;
      if (!admits(op.code, type)) continue;
      const std::string cell = cell_of(op.code, type);
      const auto make = built_by([&](ProgramMaker& m) { make_plain(m, op.code, type, {2}); });
      if (is_ill_conditioned(op.code, type)) {
        list.left_out.push_back({cell, "its error depends on the operands: no bound is stated"});
      } else if (!is_defined(op.code, type)) {
        list.left_out.push_back({cell, "the op is not defined on a type without infinities"});
      } else if (is_valid(list, cell, make)) {
        add_plain(list, op.code, type);
      }
    }
  }
  add_compare(list);
  add_convert(list);
  add_bitcast_convert(list);
  add_variants(list, OpCode::kSelect, kSelect, kExactValues);
  add_variants(list, OpCode::kClamp, kClamp, kExactValues);
  add_variants(list, OpCode::kReducePrecision, kReducePrecision, kExactValues);
  add_variants(list, OpCode::kComplex, kComplex, kExactValues);
}

}  // namespace tenon::conformance
