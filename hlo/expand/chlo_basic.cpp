// The CHLO ops that are no special functions.
#include <algorithm>
#include <cmath>

#include "core/types/float_convert.h"
#include "hlo/expand/expand_util.h"
#include "hlo/inference/infer.h"

namespace tenon::hlo::expand {
namespace {

// The op that a broadcast_* op applies after broadcasting.
OpCode base_of(OpCode code) {
  switch (code) {
    case OpCode::kChloBroadcastAdd:
      return OpCode::kAdd;
    case OpCode::kChloBroadcastAnd:
      return OpCode::kAnd;
    case OpCode::kChloBroadcastAtan2:
      return OpCode::kAtan2;
    case OpCode::kChloBroadcastCompare:
      return OpCode::kCompare;
    case OpCode::kChloBroadcastComplex:
      return OpCode::kComplex;
    case OpCode::kChloBroadcastDivide:
      return OpCode::kDivide;
    case OpCode::kChloBroadcastMaximum:
      return OpCode::kMaximum;
    case OpCode::kChloBroadcastMinimum:
      return OpCode::kMinimum;
    case OpCode::kChloBroadcastMultiply:
      return OpCode::kMultiply;
    case OpCode::kChloBroadcastNextAfter:
      return OpCode::kChloNextAfter;
    case OpCode::kChloBroadcastOr:
      return OpCode::kOr;
    case OpCode::kChloBroadcastPolygamma:
      return OpCode::kChloPolygamma;
    case OpCode::kChloBroadcastPower:
      return OpCode::kPower;
    case OpCode::kChloBroadcastRemainder:
      return OpCode::kRemainder;
    case OpCode::kChloBroadcastSelect:
      return OpCode::kSelect;
    case OpCode::kChloBroadcastShiftLeft:
      return OpCode::kShiftLeft;
    case OpCode::kChloBroadcastShiftRightArithmetic:
      return OpCode::kShiftRightArithmetic;
    case OpCode::kChloBroadcastShiftRightLogical:
      return OpCode::kShiftRightLogical;
    case OpCode::kChloBroadcastSubtract:
      return OpCode::kSubtract;
    case OpCode::kChloBroadcastXor:
      return OpCode::kXor;
    case OpCode::kChloBroadcastZeta:
      return OpCode::kChloZeta;
    default:
      return OpCode::kReturn;
  }
}

Value compare_to_infinity(Builder& b, Value x, double infinity) {
  return b.compare(ComparisonDirection::kEq, x, b.splat_like(x, infinity));
}

}  // namespace

// Operands are aligned at their last dimensions, or placed by broadcast_dimensions.
Values chlo_broadcast(Builder& b, const Instruction& op) {
  TENON_TRY(require_static_result(op));
  const Dims& dims = op.result_type().dims();
  const auto rank = static_cast<int64_t>(dims.size());
  const auto* placed = op.attr<I64s>(AttrKey::broadcast_dimensions);
  std::vector<Value> operands;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const Type& type = op.operand_type(i);
    I64s places;
    for (int64_t d = 0; d < type.rank(); ++d) places.push_back(rank - type.rank() + d);
    // The attribute speaks of the operand of lower rank.
    if (placed != nullptr && static_cast<int64_t>(placed->size()) == type.rank() && type.rank() < rank) {
      places = *placed;
    }
    operands.push_back(type.dims() == dims ? op.operand(i)
                                           : b.broadcast_in_dim(op.operand(i), dims, places));
  }
  const OpCode base = base_of(op.code());
  if (base == OpCode::kReturn) return internal_error("{} has no base op", op.name());
  auto made = std::make_unique<Instruction>(base, std::move(operands), std::vector<Type>{});
  for (const auto& [key, value] : op.attributes()) {
    if (made->info().find_attribute(key) != nullptr) made->mutable_attributes().set(key, value);
  }
  if (!b.ok()) return done(b, {});
  Instruction* result = b.create(std::move(made));
  return done(b, {result ? result->result() : Value{}});
}

Values chlo_conj(Builder& b, const Instruction& op) {
  const Value x = op.operand(0);
  if (!is_complex(x.type().element_type())) return done(b, {x});
  return done(b, {b.make(OpCode::kComplex, {b.unary(OpCode::kReal, x), b.neg(b.unary(OpCode::kImag, x))})});
}

Values chlo_square(Builder& b, const Instruction& op) {
  const Value x = op.operand(0);
  if (!is_complex(x.type().element_type())) return done(b, {b.mul(x, x)});
  // (a + b)(a - b) keeps the real part exact where a^2 - b^2 cancels.
  const Value re = b.unary(OpCode::kReal, x);
  const Value im = b.unary(OpCode::kImag, x);
  const Value product = b.mul(re, im);
  const Value equal_parts = b.compare(ComparisonDirection::kEq, b.abs(re), b.abs(im));
  const Value difference = b.mul(b.add(re, im), b.sub(re, im));
  return done(b, {b.make(OpCode::kComplex,
                         {b.select(equal_parts, b.splat_like(re, 0), difference),
                          b.add(product, product)})});
}

Values chlo_constant(Builder& b, const Instruction& op) {
  return done(b, {b.constant(*op.attr<DenseAttr>(AttrKey::value))});
}

Values chlo_constant_like(Builder& b, const Instruction& op) {
  TENON_TRY(require_static_result(op));
  const Type& type = op.result_type();
  const ElementType element = type.element_type();
  const Attribute* value = op.attribute(AttrKey::value);
  Literal scalar;
  if (const auto* real = value->get<FloatAttr>()) {
    scalar = Literal::scalar(element, real->value());
  } else if (const auto* integer = value->get<IntegerAttr>()) {
    scalar = Literal::scalar_integer(element, integer->value);
  } else if (const auto* flag = value->get<bool>()) {
    scalar = Literal::scalar_integer(element, *flag ? 1 : 0);
  } else if (const auto* parts = value->get<ArrayAttr>(); parts != nullptr && parts->size() == 2) {
    // A complex number as the list of its parts.
    const auto* re = (*parts)[0].get<FloatAttr>();
    const auto* im = (*parts)[1].get<FloatAttr>();
    if (re == nullptr || im == nullptr) return invalid_argument("{}: value is no number", op.name());
    scalar = Literal(Shape(element, {}));
    scalar.set_complex(0, {re->value(), im->value()});
  } else {
    return invalid_argument("{}: value is no number", op.name());
  }
  return done(b, {b.constant(DenseAttr::splat(type.shape(), std::move(scalar)))});
}

Values chlo_is_inf(Builder& b, const Instruction& op) {
  const Value x = op.operand(0);
  if (!has_infinity(x.type().element_type())) {
    return done(b, {b.splat(Shape(ElementType::kPred, x.type().dims()), 0)});
  }
  return done(b, {compare_to_infinity(b, b.abs(x), HUGE_VAL)});
}
Values chlo_is_pos_inf(Builder& b, const Instruction& op) {
  const Value x = op.operand(0);
  if (!has_infinity(x.type().element_type())) {
    return done(b, {b.splat(Shape(ElementType::kPred, x.type().dims()), 0)});
  }
  return done(b, {compare_to_infinity(b, x, HUGE_VAL)});
}
Values chlo_is_neg_inf(Builder& b, const Instruction& op) {
  const Value x = op.operand(0);
  if (!has_infinity(x.type().element_type())) {
    return done(b, {b.splat(Shape(ElementType::kPred, x.type().dims()), 0)});
  }
  return done(b, {compare_to_infinity(b, x, -HUGE_VAL)});
}

// Narrow products are computed in twice the width; 64-bit ones from 32-bit halves.
Values chlo_mulhi(Builder& b, const Instruction& op) {
  const Value x = op.operand(0);
  const Value y = op.operand(1);
  const ElementType type = x.type().element_type();
  const int width = bit_width(type);
  const bool is_signed = is_signed_integer(type);
  if (width <= 32) {
    const ElementType wide = is_signed ? ElementType::kS64 : ElementType::kU64;
    const Value product = b.mul(b.convert(x, wide), b.convert(y, wide));
    const Value high = b.binary(is_signed ? OpCode::kShiftRightArithmetic : OpCode::kShiftRightLogical,
                                product, b.splat_like(product, width));
    return done(b, {b.convert(high, type)});
  }
  const Value ux = b.convert(x, ElementType::kU64);
  const Value uy = b.convert(y, ElementType::kU64);
  if (!b.ok()) return done(b, {});
  const Value thirty_two = b.splat_like(ux, 32);
  const Value mask = b.splat_like(ux, 4294967295.0);
  const auto low = [&](Value v) { return b.binary(OpCode::kAnd, v, mask); };
  const auto high = [&](Value v) { return b.binary(OpCode::kShiftRightLogical, v, thirty_two); };
  const Value ll = b.mul(low(ux), low(uy));
  const Value lh = b.mul(low(ux), high(uy));
  const Value hl = b.mul(high(ux), low(uy));
  const Value middle = b.add(b.add(high(ll), low(lh)), low(hl));
  Value result = b.add(b.add(b.mul(high(ux), high(uy)), high(lh)), b.add(high(hl), high(middle)));
  if (!is_signed) return done(b, {result});
  // As unsigned, a negative factor counts 2^64 too much.
  const auto correction = [&](Value sign_of, Value other) {
    const Value negative = b.compare(ComparisonDirection::kLt, sign_of, b.splat_like(sign_of, 0));
    return b.select(negative, other, b.splat_like(other, 0));
  };
  result = b.sub(b.sub(result, correction(x, uy)), correction(y, ux));
  return done(b, {b.convert(result, type)});
}

// The neighbour in the order of representable numbers, by a step of the magnitude's bits.
Values chlo_next_after(Builder& b, const Instruction& op) {
  const Value x = op.operand(0);
  const Value y = op.operand(1);
  const ElementType type = x.type().element_type();
  const ElementType integer = bit_width(type) == 64   ? ElementType::kS64
                              : bit_width(type) == 32 ? ElementType::kS32
                              : bit_width(type) == 16 ? ElementType::kS16
                                                      : ElementType::kS8;
  if (bit_width(type) != bit_width(integer)) {
    return unimplemented("{}: not defined on {}", op.name(), name_of(type));
  }
  using enum ComparisonDirection;
  const Type bits_type = Type::tensor(integer, x.type().dims());
  const Value bits = b.bitcast(x, bits_type);
  const Value zero = b.splat_like(x, 0);
  const Value one = b.splat(bits_type.shape(), 1);
  const Value up = b.compare(kGt, y, x);
  const Value positive = b.compare(kGt, x, zero);
  // Away from zero the magnitude grows.
  const Value grows = b.compare(kEq, up, positive);
  const Value stepped = b.bitcast(b.select(grows, b.add(bits, one), b.sub(bits, one)), x.type());
  const Value least = b.bitcast(one, x.type());
  const Value from_zero = b.select(up, least, b.neg(least));
  const Value moved = b.select(b.compare(kEq, x, zero), from_zero, stepped);
  const Value same = b.compare(kEq, x, y);
  const Value nan = b.binary(OpCode::kOr, b.compare(kNe, x, x), b.compare(kNe, y, y));
  return done(b, {b.select(nan, b.add(x, y), b.select(same, y, moved))});
}

// Sort of (value, index) pairs, greatest first, equal ones in their order; then the first k.
Values chlo_top_k(Builder& b, const Instruction& op) {
  const Value x = op.operand(0);
  const Dims& dims = x.type().dims();
  const auto axis = static_cast<int64_t>(dims.size()) - 1;
  const ElementType type = x.type().element_type();
  const Value indices = b.iota(ElementType::kS32, dims, axis);
  auto comparator = std::make_unique<Computation>();
  const Value left = comparator->add_parameter(Type::tensor(type, {}));
  const Value right = comparator->add_parameter(Type::tensor(type, {}));
  comparator->add_parameter(Type::tensor(ElementType::kS32, {}));
  comparator->add_parameter(Type::tensor(ElementType::kS32, {}));
  Builder inner(*comparator);
  const Value greater = inner.compare(ComparisonDirection::kGt, left, right,
                                      is_float(type) ? ComparisonType::kTotalOrder
                                                     : ComparisonType::kNoType);
  b.fail(inner.finish({greater}));
  std::vector<std::unique_ptr<Computation>> regions;
  regions.push_back(std::move(comparator));
  Instruction* sorted = b.create(OpCode::kSort, {x, indices},
                                 {{AttrKey::dimension, axis}, {AttrKey::is_stable, Attribute(true)}},
                                 {}, std::move(regions));
  if (sorted == nullptr) return done(b, {});
  const I64s start(dims.size(), 0);
  I64s limit = dims;
  limit.back() = op.integer(AttrKey::k);
  return done(b, {b.slice(sorted->result(0), start, limit), b.slice(sorted->result(1), start, limit)});
}

namespace {

// What a loop iteration of a scan takes out of an input: slice `i` along the dimension, without it.
Value scan_slice(Builder& b, Value x, Value i, int64_t dimension) {
  const Dims& dims = x.type().dims();
  const Value zero = b.i64_constant(0);
  std::vector<Value> starts(dims.size(), zero);
  starts[static_cast<size_t>(dimension)] = i;
  I64s sizes = dims;
  sizes[static_cast<size_t>(dimension)] = 1;
  Dims without = dims;
  without.erase(without.begin() + dimension);
  return b.reshape(b.dynamic_slice(x, starts, sizes), without);
}

Value scan_store(Builder& b, Value into, Value x, Value i, int64_t dimension) {
  Dims dims = x.type().dims();
  dims.insert(dims.begin() + dimension, 1);
  const Value zero = b.i64_constant(0);
  std::vector<Value> starts(dims.size(), zero);
  starts[static_cast<size_t>(dimension)] = i;
  return b.dynamic_update_slice(into, b.reshape(x, dims), starts);
}

}  // namespace

// A while loop over the steps; its state is the counter, the inputs, the outputs so far, the carries.
Values chlo_scan(Builder& b, const Instruction& op) {
  const size_t inputs = infer::scan_input_count(op);
  const size_t carries = op.operand_count() - inputs;
  const size_t outputs = op.result_count() - carries;
  const int64_t dimension = op.integer(AttrKey::dimension);
  const bool reversed = op.flag(AttrKey::is_reverse);
  const Type& counted = inputs != 0 ? op.operand_type(0) : op.result_type();
  int64_t steps = op.integer(AttrKey::scan_dim_size, -1);
  if (steps < 0) steps = counted.dims()[static_cast<size_t>(dimension)];
  for (const Type& type : op.result_types()) {
    if (!type.is_tensor() || !type.shape().is_static()) {
      return failed_precondition("{}: the result shape {} is not known; refine the program first",
                                 op.name(), type.to_string());
    }
  }
  std::vector<Value> state = {b.i64_constant(0)};
  for (size_t i = 0; i < inputs; ++i) state.push_back(op.operand(i));
  for (size_t i = 0; i < outputs; ++i) {
    state.push_back(b.splat(op.result_type(i).shape(), 0));
  }
  for (size_t i = 0; i < carries; ++i) state.push_back(op.operand(inputs + i));
  const std::vector<Value> end = b.while_loop(
      state,
      [&](Builder& inner, const std::vector<Value>& s) {
        return inner.compare(ComparisonDirection::kLt, s[0], inner.i64_constant(steps));
      },
      [&](Builder& inner, const std::vector<Value>& s) -> std::vector<Value> {
        const Value i = reversed ? inner.sub(inner.i64_constant(steps - 1), s[0]) : s[0];
        Cloner cloner;
        const Computation& body = op.region(0);
        for (size_t k = 0; k < inputs; ++k) {
          cloner.map(body.parameter(k), scan_slice(inner, s[1 + k], i, dimension));
        }
        for (size_t k = 0; k < carries; ++k) {
          cloner.map(body.parameter(inputs + k), s[1 + inputs + outputs + k]);
        }
        std::vector<Value> results;
        for (const Instruction& step : body) {
          if (!inner.ok()) break;
          if (step.code() == OpCode::kReturn) {
            for (size_t k = 0; k < step.operand_count(); ++k) {
              results.push_back(cloner(step.operand(k)));
            }
          } else {
            inner.create(cloner.clone(step));
          }
        }
        std::vector<Value> next = {inner.add(s[0], inner.i64_constant(1))};
        for (size_t k = 0; k < inputs; ++k) next.push_back(s[1 + k]);
        if (!inner.ok() || results.size() != outputs + carries) {
          return std::vector<Value>(s.size());
        }
        for (size_t k = 0; k < outputs; ++k) {
          next.push_back(scan_store(inner, s[1 + inputs + k], results[k], i, dimension));
        }
        next.insert(next.end(), results.begin() + static_cast<ptrdiff_t>(outputs), results.end());
        return next;
      });
  if (!b.ok()) return done(b, {});
  std::vector<Value> results(end.begin() + 1 + static_cast<ptrdiff_t>(inputs), end.end());
  return done(b, results);
}

}  // namespace tenon::hlo::expand
