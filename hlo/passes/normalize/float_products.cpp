// Products of small integers in floats: where every sum of a dot_general or a convolution of
// integers is an integer that f32 has exactly, in any order of its additions, processors compute it
// several times as fast in f32, whose multiplications and additions are one instruction. So a
// quantized product costs what a product of floats costs. A large right factor of 8 bits stays as
// small as it is. Where the target multiplies small integers faster than floats, a product keeps
// them, in the fewest bits that have its factors.
#include <algorithm>

#include "hlo/passes/constants.h"
#include "hlo/passes/normalize/layouts.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

constexpr int64_t kMostExact = int64_t{1} << 24;  // All smaller integers are numbers of f32.
constexpr double kLeastProducts = 1 << 12;        // Fewer are not worth converting their factors.
constexpr int64_t kMostSummands = 4;              // Into which a longer sum is cut.
constexpr int64_t kFewElements = 1 << 18;  // Of a constant: four bytes each are read as soon.
constexpr int kMostSteps = 12;             // Back from a factor to what bounds it.

/// Numbers from `least` to `most`, both within 32 bits.
struct IntegerBounds {
  int64_t least = 0;
  int64_t most = 0;

  int64_t magnitude() const { return std::max(-least, most); }
  bool fits(int64_t low, int64_t high) const { return least >= low && most <= high; }
};

std::optional<IntegerBounds> bounded(int64_t least, int64_t most) {
  if (least < INT32_MIN || most > INT32_MAX) return std::nullopt;
  return IntegerBounds{least, most};
}

std::optional<IntegerBounds> range_of_constant(const Literal& literal) {
  constexpr int64_t kMostRead = int64_t{1} << 24;
  if (literal.element_count() == 0 || literal.element_count() > kMostRead) return std::nullopt;
  IntegerBounds range{INT64_MAX, INT64_MIN};
  for (int64_t i = 0; i < literal.element_count(); ++i) {
    const int64_t value = literal.get_integer(i);
    range.least = std::min(range.least, value);
    range.most = std::max(range.most, value);
  }
  return bounded(range.least, range.most);
}

std::optional<IntegerBounds> range_of_type(ElementType type) {
  if (is_pred(type)) return IntegerBounds{0, 1};
  if (!is_integer(type) || bit_width(type) > 16) return std::nullopt;
  const int64_t count = int64_t{1} << bit_width(type);
  if (is_unsigned_integer(type)) return IntegerBounds{0, count - 1};
  return IntegerBounds{-count / 2, count / 2 - 1};
}

// The numbers within 32 bits that a type has.
IntegerBounds bounds_of_type(ElementType type) {
  return range_of_type(type).value_or(is_unsigned_integer(type)
                                          ? IntegerBounds{0, INT32_MAX}
                                          : IntegerBounds{INT32_MIN, INT32_MAX});
}

std::optional<IntegerBounds> joined(const std::optional<IntegerBounds>& a,
                                    const std::optional<IntegerBounds>& b) {
  if (!a || !b) return std::nullopt;
  return IntegerBounds{std::min(a->least, b->least), std::max(a->most, b->most)};
}

std::optional<IntegerBounds> range_of(Value value, int steps = kMostSteps);

std::optional<IntegerBounds> range_of_op(const Instruction& op, int steps) {
  const auto operand = [&](size_t i) { return range_of(op.operand(i), steps - 1); };
  switch (op.code()) {
    case OpCode::kBroadcastInDim:
    case OpCode::kReshape:
    case OpCode::kReverse:
    case OpCode::kSlice:
    case OpCode::kTranspose:
      return operand(0);
    case OpCode::kConvert:
      return is_integer(op.operand_type(0).element_type()) ||
                     is_pred(op.operand_type(0).element_type())
                 ? operand(0)
                 : std::nullopt;
    case OpCode::kPad:
      return joined(operand(0), operand(1));
    case OpCode::kConcatenate: {
      std::optional<IntegerBounds> all = operand(0);
      for (size_t i = 1; all && i < op.operand_count(); ++i) all = joined(all, operand(i));
      return all;
    }
    case OpCode::kAdd:
    case OpCode::kSubtract: {
      const auto a = operand(0), b = a ? operand(1) : std::nullopt;
      if (!b) return std::nullopt;
      if (op.code() == OpCode::kAdd) return bounded(a->least + b->least, a->most + b->most);
      return bounded(a->least - b->most, a->most - b->least);
    }
    case OpCode::kNegate: {
      const auto a = operand(0);
      return a ? bounded(-a->most, -a->least) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

// The numbers that an array of integers may have; nothing if that is not known, or if numbers of
// its type may have wrapped.
std::optional<IntegerBounds> range_of(Value value, int steps) {
  if (!is_plain(value.type())) return std::nullopt;
  const ElementType type = value.type().element_type();
  if (!is_integer(type) && !is_pred(type)) return std::nullopt;
  const std::optional<IntegerBounds> of_type = range_of_type(type);
  std::optional<IntegerBounds> range;
  const DenseAttr* const constant = constant_of(value);
  if (constant != nullptr && of_type && constant->values.element_count() > kFewElements) {
    return of_type;  // To read so many numbers takes longer than it gains.
  }
  if (constant != nullptr) {
    range = range_of_constant(constant->values);
  } else if (value.def != nullptr && steps > 0) {
    range = range_of_op(*value.def, steps);
  }
  // A conversion or a sum that the type cannot hold wraps.
  const IntegerBounds held = bounds_of_type(type);
  if (range && range->fits(held.least, held.most)) return range;
  return of_type;
}

// --- Products

/// A dot_general or a convolution of integers.
struct IntegerProduct {
  int64_t depth = 1;    ///< Products of a result.
  double products = 0;  ///< In all.
  IntegerBounds x, y;

  int64_t most_sum() const { return x.magnitude() * y.magnitude(); }  ///< That one product adds.
};

int64_t depth_of(const Instruction& op) {
  int64_t depth = 1;
  if (op.code() == OpCode::kDotGeneral) {
    const Dims& dims = op.operand_type(0).dims();
    for (const int64_t d : op.attr<DotDims>(AttrKey::dot_dimension_numbers)->lhs_contracting)
      depth *= dims[static_cast<size_t>(d)];
    return depth;
  }
  const Dims& dims = op.operand_type(1).dims();
  const int64_t features = op.attr<ConvDims>(AttrKey::dimension_numbers)->kernel_output_feature;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (static_cast<int64_t>(d) != features) depth *= dims[d];
  }
  return depth;
}

std::optional<IntegerProduct> integer_product(const Instruction& op) {
  const bool is_dot = op.code() == OpCode::kDotGeneral;
  if ((!is_dot && op.code() != OpCode::kConvolution) || !is_plain(op.result_type()) ||
      (is_dot && op.attribute(AttrKey::algorithm) != nullptr))
    return std::nullopt;
  const ElementType type = op.result_type().element_type();
  if (!is_integer(type) || bit_width(type) < 32) return std::nullopt;
  const auto x = range_of(op.operand(0)), y = x ? range_of(op.operand(1)) : std::nullopt;
  if (!y) return std::nullopt;
  // A negative number of an unsigned type is another.
  if (is_unsigned_integer(type) && (x->least < 0 || y->least < 0)) return std::nullopt;
  IntegerProduct product{depth_of(op), 0, *x, *y};
  product.products = static_cast<double>(product.depth) *
                     static_cast<double>(element_count(op.result_type().dims()));
  if (product.products < kLeastProducts) return std::nullopt;
  return product;
}

// Parts of its sums that are exact by themselves: 0 if they are too many.
int64_t parts_of(const IntegerProduct& product, bool may_cut) {
  const int64_t one = std::max<int64_t>(product.most_sum(), 1);
  if (one > kMostExact) return 0;
  const int64_t a_part = kMostExact / one;
  const int64_t parts = (product.depth + a_part - 1) / a_part;
  return parts == 1 || (may_cut && parts <= kMostSummands) ? parts : 0;
}

// The numbers in another type, which has them all.
Value converted(Builder& b, Value value, ElementType type) {
  const DenseAttr* const constant = constant_of(value);
  if (constant == nullptr) return b.convert(value, type);
  DenseAttr made{Shape(type, constant->shape.dims()),
                 Literal(Shape(type, constant->values.shape().dims()))};
  for (int64_t i = 0; i < made.values.element_count(); ++i) {
    const int64_t number = constant->values.get_integer(i);
    if (is_float(type)) {
      made.values.set_double(i, static_cast<double>(number));
    } else {
      made.values.set_integer(i, number);
    }
  }
  return b.constant(std::move(made));
}
Value as_floats(Builder& b, Value value) { return converted(b, value, ElementType::kF32); }

bool is_byte(Value value) {
  return value.type().element_type() == ElementType::kS8 ||
         value.type().element_type() == ElementType::kU8;
}

// The right factor as floats, or in 8 bits where it is so stored: kernels convert those as they
// read them.
Value right_factor(Builder& b, Value value, const IntegerBounds& range, bool keeps_bytes) {
  if (!keeps_bytes) return as_floats(b, value);
  const DenseAttr* const constant = constant_of(value);
  if (constant != nullptr && constant->shape.element_count() < kFewElements)
    return as_floats(b, value);
  if (is_byte(value)) return value;
  const Instruction* const op = value.def;
  if (op != nullptr && op->code() == OpCode::kConvert && is_byte(op->operand(0))) {
    // The conversion must have changed no number.
    const auto before = range_of(op->operand(0));
    const IntegerBounds held = bounds_of_type(value.type().element_type());
    if (before && before->fits(held.least, held.most)) return op->operand(0);
  }
  if (constant == nullptr) return as_floats(b, value);
  if (range.fits(INT8_MIN, INT8_MAX)) return converted(b, value, ElementType::kS8);
  return range.fits(0, UINT8_MAX) ? converted(b, value, ElementType::kU8) : as_floats(b, value);
}

Value float_convolution(Builder& b, const Instruction& op, Value x, Value y) {
  Type type = Type::tensor(ElementType::kF32, op.result_type().dims());
  auto made = std::make_unique<Instruction>(OpCode::kConvolution, std::vector<Value>{x, y},
                                            std::vector<Type>{std::move(type)});
  made->mutable_attributes() = op.attributes();
  return b.create(std::move(made))->result();
}

// The product of a part of the depth, along the first contracted dimension of several elements.
Value float_dot(Builder& b, const Instruction& op, Value x, Value y, int64_t parts) {
  const DotDims& dims = *op.attr<DotDims>(AttrKey::dot_dimension_numbers);
  const ElementType type = op.result_type().element_type();
  if (parts == 1) return b.convert(b.dot_general(x, y, dims, ElementType::kF32), type);
  size_t longest = 0;
  const auto size_at = [&](size_t i) {
    return x.type().dims()[static_cast<size_t>(dims.lhs_contracting[i])];
  };
  for (size_t i = 1; i < dims.lhs_contracting.size(); ++i) {
    if (size_at(i) > size_at(longest)) longest = i;
  }
  const int64_t size = size_at(longest), step = (size + parts - 1) / parts;
  const auto part_of = [&](Value v, int64_t dimension, int64_t start) {
    I64s low(v.type().dims().size(), 0), high = v.type().dims(), strides(low.size(), 1);
    low[static_cast<size_t>(dimension)] = start;
    high[static_cast<size_t>(dimension)] = std::min(start + step, size);
    return b.slice(v, low, high, strides);
  };
  Value sum{};
  for (int64_t start = 0; start < size; start += step) {
    const Value part = b.convert(
        b.dot_general(part_of(x, dims.lhs_contracting[longest], start),
                      part_of(y, dims.rhs_contracting[longest], start), dims, ElementType::kF32),
        type);
    sum = sum.def == nullptr ? part : b.binary(OpCode::kAdd, sum, part);
  }
  return sum;
}

// --- Products of narrow integers

// A type of 8 bits that has all numbers of a range, else s16, if that has.
std::optional<ElementType> narrowest(const IntegerBounds& range) {
  if (range.fits(INT8_MIN, INT8_MAX)) return ElementType::kS8;
  if (range.fits(0, UINT8_MAX)) return ElementType::kU8;
  if (range.fits(INT16_MIN, INT16_MAX)) return ElementType::kS16;
  return std::nullopt;
}

// Whether dimensions lie one behind the other, so that they are one loop.
bool is_one_run(const I64s& dims) {
  for (size_t i = 1; i < dims.size(); ++i) {
    if (dims[i] != dims[i - 1] + 1) return false;
  }
  return true;
}

// The elements of a factor's last other dimensions, which are one loop of lines; 0 if neither they
// nor its products are adjacent in memory.
int64_t adjacent_lines(Value factor, const I64s& batching, const I64s& contracting) {
  const Dims& dims = factor.type().dims();
  const auto rank = static_cast<int64_t>(dims.size());
  if (contains(batching, rank - 1)) return 0;
  const auto is_line = [&](int64_t d) {
    return !contains(batching, d) && !contains(contracting, d);
  };
  int64_t last = rank - 1, lines = 1;
  while (last >= 0 && !is_line(last)) --last;
  for (; last >= 0 && is_line(last); --last) lines *= dims[static_cast<size_t>(last)];
  return lines;
}

// Whether a dot_general of integers has the lines and the products from which the target
// multiplies narrow ones faster than floats, each of them one loop.
bool may_be_narrow(const Instruction& op, const IntegerProduct& product, int64_t least_lines) {
  constexpr int64_t kLeastDepth = 16;
  const DotDims& dims = *op.attr<DotDims>(AttrKey::dot_dimension_numbers);
  return least_lines > 0 && product.depth >= kLeastDepth &&
         bit_width(op.result_type().element_type()) == 32 && is_one_run(dims.lhs_contracting) &&
         is_one_run(dims.rhs_contracting) &&
         adjacent_lines(op.operand(0), dims.lhs_batching, dims.lhs_contracting) >= least_lines &&
         adjacent_lines(op.operand(1), dims.rhs_batching, dims.rhs_contracting) >= least_lines;
}

// The numbers in so few bits: as they were before conversions that have changed none of them.
Value narrowed(Builder& b, Value value, ElementType type) {
  const ElementType own = value.type().element_type();
  if (own == type) return value;
  const Instruction* const op = value.def;
  if (op == nullptr || op->code() != OpCode::kConvert || constant_of(value) != nullptr)
    return converted(b, value, type);
  const Value before = op->operand(0);
  const ElementType from = before.type().element_type();
  const auto range = is_integer(from) ? range_of(before) : std::nullopt;
  const IntegerBounds held = bounds_of_type(own);
  const bool keeps = range && range->fits(held.least, held.most);
  return keeps && bit_width(from) <= bit_width(type) ? narrowed(b, before, type)
                                                     : converted(b, value, type);
}

/// A factor of s32 as bytes less a number that is the same for all of them, as quantized numbers
/// less their zero point are written.
struct ShiftedFactor {
  Value from;  ///< The bytes, or numbers that `type` has.
  std::optional<ElementType> type;
  const Literal* number = nullptr;  ///< The zero point, if it is a constant,
  Value zero{};                     ///< or where it is found; neither means 0.
  bool adds = false;                ///< It is added, not subtracted.
};

std::optional<ShiftedFactor> shifted_factor(Value value) {
  if (is_byte(value)) return ShiftedFactor{value, {}};
  if (value.type().element_type() != ElementType::kS32) return std::nullopt;
  const auto type = narrowest(range_of(value).value_or(bounds_of_type(ElementType::kS32)));
  if (type && *type != ElementType::kS16) return ShiftedFactor{value, type};
  const Instruction* const op = value.def;
  const bool adds = op != nullptr && op->code() == OpCode::kAdd;
  if (op == nullptr || (!adds && op->code() != OpCode::kSubtract)) return std::nullopt;
  const Instruction* const from = op->operand(0).def;
  if (from == nullptr || from->code() != OpCode::kConvert || !is_byte(from->operand(0)))
    return std::nullopt;
  const Value zero = op->operand(1);
  if (const Literal* const splat = splat_of(zero))
    return ShiftedFactor{from->operand(0), {}, splat, {}, adds};
  const bool is_broadcast = zero.def != nullptr && zero.def->code() == OpCode::kBroadcastInDim &&
                            zero.def->operand_type(0).dims().empty();
  if (!is_broadcast) return std::nullopt;
  return ShiftedFactor{from->operand(0), {}, nullptr, zero.def->operand(0), adds};
}

/// The same as ops: `zero`, of s32, is null for 0.
struct ShiftedBytes {
  Value bytes, zero;
};

ShiftedBytes shifted_bytes(Builder& b, const ShiftedFactor& factor) {
  if (factor.type) return {narrowed(b, factor.from, *factor.type), {}};
  Value zero = factor.zero;
  if (factor.number != nullptr)
    zero = b.scalar(ElementType::kS32, static_cast<double>(factor.number->get_integer(0)));
  return {factor.from, zero && factor.adds ? b.neg(zero) : zero};
}

// Unsigned bytes as signed ones, each 128 less, with a zero point that is 128 less.
ShiftedBytes as_signed(Builder& b, const ShiftedBytes& factor) {
  if (factor.bytes.type().element_type() == ElementType::kS8) return factor;
  const Value flipped = b.binary(OpCode::kXor, factor.bytes, b.splat_like(factor.bytes, 128));
  const Type type = Type::tensor(ElementType::kS8, factor.bytes.type().dims());
  const Value less = b.scalar(ElementType::kS32, -128);
  return {b.bitcast(flipped, type), factor.zero ? b.add(factor.zero, less) : less};
}

// The sums of a factor's bytes over its contracted dimensions, for each result: its other
// dimensions are dimensions of the result from `first` on, but for batch dimensions.
Value sums_of_bytes(Builder& b, const Instruction& op, Value bytes, const I64s& batching,
                    const I64s& contracting, int64_t first) {
  I64s places;
  const auto rank = static_cast<int64_t>(bytes.type().dims().size());
  for (int64_t d = 0; d < rank; ++d) {
    if (contains(contracting, d)) continue;
    const auto batch = std::ranges::find(batching, d);
    places.push_back(batch == batching.end() ? first++ : batch - batching.begin());
  }
  const Value zero = b.scalar(ElementType::kS32, 0);
  const Value sums = b.reduce(OpCode::kAdd, b.convert(bytes, ElementType::kS32), zero, contracting);
  return b.broadcast_in_dim(sums, op.result_type().dims(), places);
}

// (x - p)(y - q) as xy - p sum(y) - q sum(x) + n p q, which is exact as integers wrap around: the
// products are of bytes. Null if the factors are not such.
Value product_of_shifted(Builder& b, const Instruction& op, const IntegerProduct& product) {
  const DotDims& dims = *op.attr<DotDims>(AttrKey::dot_dimension_numbers);
  if (op.result_type().element_type() != ElementType::kS32) return {};
  const auto factor_x = shifted_factor(op.operand(0)), factor_y = shifted_factor(op.operand(1));
  if (!factor_x || !factor_y) return {};
  ShiftedBytes x = shifted_bytes(b, *factor_x), y = shifted_bytes(b, *factor_y);
  if (x.bytes.type().element_type() != y.bytes.type().element_type()) {
    x = as_signed(b, x);  // A library call takes factors of one type.
    y = as_signed(b, y);
  }
  const Dims& sizes = op.result_type().dims();
  const auto of_batch = static_cast<int64_t>(dims.lhs_batching.size());
  const auto free_of_x = static_cast<int64_t>(op.operand_type(0).dims().size()) - of_batch -
                         static_cast<int64_t>(dims.lhs_contracting.size());
  Value result = b.dot_general(x.bytes, y.bytes, dims, ElementType::kS32);
  const auto less = [&](Value zero, Value sums) {
    result = b.sub(result, b.mul(b.broadcast_scalar(zero, sizes), sums));
  };
  if (x.zero) {
    less(x.zero, sums_of_bytes(b, op, y.bytes, dims.rhs_batching, dims.rhs_contracting,
                               of_batch + free_of_x));
  }
  if (y.zero) {
    less(y.zero, sums_of_bytes(b, op, x.bytes, dims.lhs_batching, dims.lhs_contracting, of_batch));
  }
  if (x.zero && y.zero) {
    const Value depth = b.scalar(ElementType::kS32, static_cast<double>(product.depth));
    const Value all = b.mul(depth, b.mul(x.zero, y.zero));
    result = b.add(result, b.broadcast_scalar(all, sizes));
  }
  return result;
}

// Whether the product became one of narrow integers; nothing if the target multiplies none of its
// size, or floats faster.
std::optional<bool> compute_narrow(Instruction& op, const IntegerProduct& product,
                                   const lower::CostModel& cost) {
  if (!may_be_narrow(op, product, cost.narrow_products)) return std::nullopt;
  auto type_of_x = narrowest(product.x), type_of_y = narrowest(product.y);
  if (product.x.fits(0, UINT8_MAX) && product.y.fits(0, UINT8_MAX) && type_of_x != type_of_y)
    type_of_x = type_of_y = ElementType::kU8;
  Builder b(*op.parent(), &op);
  b.set_location(op.location());
  const bool are_bytes =
      type_of_x && type_of_x == type_of_y && bit_width(*type_of_x) == bit_width(ElementType::kS8);
  Value made{};
  if (!are_bytes && cost.byte_products) made = product_of_shifted(b, op, product);
  if (!made) {
    constexpr auto kWord = ElementType::kS16;
    if (!type_of_x || !type_of_y || (type_of_x == kWord && type_of_y == kWord)) return std::nullopt;
    const Value x = narrowed(b, op.operand(0), are_bytes ? *type_of_x : kWord);
    const Value y = narrowed(b, op.operand(1), are_bytes ? *type_of_y : kWord);
    if (x == op.operand(0) && y == op.operand(1)) return false;
    made = b.dot_general(x, y, *op.attr<DotDims>(AttrKey::dot_dimension_numbers),
                         op.result_type().element_type());
  }
  op.replace_all_uses({made});
  op.parent()->erase(&op);
  return true;
}

// --- Products in floats

bool compute_in_floats(Instruction& op, const lower::CostModel& cost) {
  const auto product = integer_product(op);
  if (!product) return false;
  const bool is_dot = op.code() == OpCode::kDotGeneral;
  if (const auto narrow = is_dot ? compute_narrow(op, *product, cost) : std::nullopt)
    return *narrow;
  if (!cost.float_products) return false;
  const int64_t parts = parts_of(*product, is_dot);
  if (parts == 0) return false;
  // The parts of the longest contracted dimension must be as exact as parts of the depth.
  if (parts > 1 && op.attr<DotDims>(AttrKey::dot_dimension_numbers)->lhs_contracting.size() != 1)
    return false;
  Builder b(*op.parent(), &op);
  b.set_location(op.location());
  const Value x = as_floats(b, op.operand(0));
  const Value y = right_factor(b, op.operand(1), product->y, is_dot);
  const Value result =
      is_dot ? float_dot(b, op, x, y, parts)
             : b.convert(float_convolution(b, op, x, y), op.result_type().element_type());
  op.replace_all_uses({result});
  op.parent()->erase(&op);
  return true;
}

}  // namespace

Result<bool> compute_integers_in_floats(Module& module, const PassOptions& options) {
  return (options.cost.float_products || options.cost.narrow_products > 0) &&
         change_ops(
             module, [&](Instruction& op) { return compute_in_floats(op, options.cost); }, false);
}

}  // namespace tenon::hlo
