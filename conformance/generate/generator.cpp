#include "conformance/generate/generator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/base/random.h"
#include "core/types/float_convert.h"
#include "hlo/builder/builder.h"

namespace tenon::conformance {
namespace {

using hlo::Attribute;
using hlo::AttrKey;
using hlo::Builder;
using hlo::Computation;
using hlo::EnumAttr;
using hlo::EnumKind;
using hlo::I64s;
using hlo::OpCode;
using hlo::OpInfo;
using hlo::Type;
using hlo::Value;
using enum ElementType;

int64_t element_count(const Dims& dims) {
  int64_t n = 1;
  for (const int64_t d : dims) n *= d;
  return n;
}

void set_number(Literal& array, int64_t i, double re, double im) {
  if (is_complex(array.element_type())) {
    array.set_complex(i, {re, im});
  } else {
    array.set_double(i, re);
  }
}

Attribute word(EnumKind kind, int64_t value) { return EnumAttr{kind, static_cast<uint8_t>(value)}; }

// Elementwise ops of one or two operands of one type and nothing else to say.
std::vector<OpCode> plain_ops(size_t operands) {
  // Their decompositions are accurate in absolute, not relative terms near zeros (docs/ops.md), or
  // are covered by the tests of decompositions alone.
  const std::vector<OpCode> excluded = {
      OpCode::kChloLgamma,       OpCode::kChloDigamma,   OpCode::kChloZeta, OpCode::kChloPolygamma,
      OpCode::kChloErfInv,       OpCode::kChloBesselI1e, OpCode::kComplex,  OpCode::kConvert,
      OpCode::kChloConstantLike, OpCode::kChloNextAfter};
  std::vector<OpCode> codes;
  for (const OpInfo& op : hlo::all_ops()) {
    const bool plain = op.category == hlo::Category::kElementwise &&
                       op.operand_names().size() == operands && op.region_names().empty() &&
                       op.name.find("broadcast") == std::string_view::npos;
    const auto attributes = op.attribute_specs();
    const bool silent = std::none_of(attributes.begin(), attributes.end(), [](const auto& spec) {
      return spec.default_value == hlo::AttrDefault::kRequired;
    });
    if (plain && silent && std::find(excluded.begin(), excluded.end(), op.code) == excluded.end()) {
      codes.push_back(op.code);
    }
  }
  return codes;
}

class ProgramGenerator {
 public:
  explicit ProgramGenerator(const GeneratorOptions& options)
      : options_(options), random_(options.seed), module_(std::make_unique<hlo::Module>()) {}

  std::unique_ptr<hlo::Module> run() {
    module_->set_name("generated");
    function_ = &module_->add_function("main");
    const int64_t parameters = random_.between(1, 4);
    for (int64_t i = 0; i < parameters; ++i) {
      const Dims d = dims();
      pool_.push_back(function_->add_parameter(Type::tensor(element_type(), d)));
    }
    // An op that does not fit is not made, so the bound is on tries, not on ops.
    for (int tries = 0; made_ < options_.size && tries < 20 * options_.size; ++tries) step();
    std::vector<Value> results;
    std::vector<Type> types;
    for (const hlo::Instruction& op : *function_) {
      for (uint32_t r = 0; r < op.result_count(); ++r) {
        results.push_back(const_cast<hlo::Instruction&>(op).result(r));
        types.push_back(results.back().type());
      }
    }
    function_->set_declared_result_types(std::move(types));
    Builder builder(*function_);
    static_cast<void>(builder.finish(results));
    return std::move(module_);
  }

 private:
  // --- Types and values

  ElementType element_type() {
    static const std::vector<ElementType> kTypes = {
        kF32, kF32,  kF32, kF32, kS32, kS32,    kS32,      kPred,    kF64,
        kF16, kBF16, kS8,  kU8,  kS16, kU16,    kS64,      kU32,     kU64,
        kC64, kC128, kS4,  kU4,  kS2,  kF8E5M2, kF8E4M3FN, kF4E2M1FN};
    static const std::vector<ElementType> kIntegers = {kS32, kS32, kPred, kS8, kU8,
                                                       kU32, kS64, kU64,  kS4, kU2};
    return random_.of(options_.integers ? kIntegers : kTypes);
  }

  Dims dims() {
    Dims d(static_cast<size_t>(random_.of({0, 1, 1, 2, 2, 2, 3, 4})));
    int64_t room = options_.max_elements;
    for (int64_t& size : d) {
      size = std::min(
          room, random_.of({int64_t{1}, int64_t{2}, int64_t{3}, int64_t{4}, int64_t{5}, int64_t{7},
                            int64_t{8}, int64_t{13}, int64_t{16}, int64_t{33}}));
      if (random_.one_in(60)) size = 0;
      room = std::max<int64_t>(1, room / std::max<int64_t>(size, 1));
    }
    std::shuffle(d.begin(), d.end(), Shuffler{&random_});
    return d;
  }
  struct Shuffler {
    using result_type = uint64_t;
    Random* random;
    static constexpr uint64_t min() { return 0; }
    static constexpr uint64_t max() { return ~uint64_t{0}; }
    uint64_t operator()() const { return random->bits(); }
  };

  template <class Predicate>
  std::optional<Value> pick(const Predicate& fits) {
    std::vector<Value> found;
    // The newest first: programs are deep rather than wide.
    for (auto at = pool_.rbegin(); at != pool_.rend() && found.size() < 6; ++at) {
      if (fits(*at)) found.push_back(*at);
    }
    if (found.empty()) return std::nullopt;
    return random_.of(found);
  }
  Value any() {
    return *pick([](Value) { return true; });
  }
  std::optional<Value> like(Value x) {
    return pick([&](Value v) { return v.type() == x.type(); });
  }
  // A value of x's type: another one, or x itself.
  Value partner(Value x) { return random_.one_in(3) ? x : *like(x); }

  void keep(hlo::Instruction* op) {
    if (op == nullptr) return;
    ++made_;
    for (uint32_t r = 0; r < op->result_count(); ++r) pool_.push_back(op->result(r));
  }
  void keep(Value value) {
    if (value) keep(value.def);
  }

  // --- Ops

  void step() {
    // An op that does not verify leaves nothing behind.
    Builder b(*function_);
    switch (random_.below(25)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return plain(b, 1);
      case 4:
      case 5:
      case 6:
      case 7:
        return plain(b, 2);
      case 8:
        return compare(b);
      case 9:
        return select(b);
      case 10:
        return convert(b);
      case 11:
        return broadcast(b);
      case 12:
        return rearrange(b);
      case 13:
        return cut(b);
      case 14:
        return pad(b);
      case 15:
        return concatenate(b);
      case 16:
        return reduce(b);
      case 17:
        return dot(b);
      case 18:
        return dynamic(b);
      case 19:
        return gather(b);
      case 20:
        return scatter(b);
      case 21:
        return sort(b);
      case 22:
        return reduce_window(b);
      case 23:
        return control(b);
      default:
        return special(b);
    }
  }

  void plain(Builder& b, size_t operands) {
    static const std::vector<OpCode> kUnary = plain_ops(1);
    static const std::vector<OpCode> kBinary = plain_ops(2);
    const OpCode code = random_.of(operands == 1 ? kUnary : kBinary);
    const std::optional<Value> x =
        pick([&](Value v) { return admits(hlo::op_info(code), v.type().element_type()); });
    if (!x) return;
    if (operands == 1) {
      keep(b.create(code, {*x}));
    } else {
      keep(b.create(code, {*x, partner(*x)}));
    }
  }

  static bool admits(const OpInfo& op, ElementType type) {
    // Complex ones are logarithms and quotients of each other: how far they may be off depends on
    // the operands, and near a branch cut on the last bit.
    const bool ill_conditioned =
        op.code == OpCode::kPower || op.code == OpCode::kAtan2 || op.code == OpCode::kRemainder;
    if (is_complex(type) && ill_conditioned) return false;
    const uint8_t set = is_pred(type)      ? hlo::kTypesPred
                        : is_integer(type) ? hlo::kTypesInt
                        : is_float(type)   ? hlo::kTypesFloat
                                           : hlo::kTypesComplex;
    return (op.types & set) != 0;
  }

  void compare(Builder& b) {
    const Value x = any();
    const ElementType type = x.type().element_type();
    const int64_t direction = random_.below(is_complex(type) ? 2 : 6);
    const bool total = is_float(type) && random_.one_in(4);
    keep(b.compare(static_cast<hlo::ComparisonDirection>(direction), x, partner(x),
                   total ? hlo::ComparisonType::kTotalOrder : hlo::ComparisonType::kNoType));
  }

  void select(Builder& b) {
    const Value x = any();
    const auto p = pick([&](Value v) {
      return is_pred(v.type().element_type()) &&
             (v.type().rank() == 0 || v.type().dims() == x.type().dims());
    });
    if (p) return keep(b.select(*p, x, partner(x)));
    const bool ordered = !is_complex(x.type().element_type());
    if (ordered) keep(b.create(OpCode::kClamp, {partner(x), x, partner(x)}));
  }

  void convert(Builder& b) {
    const Value x = any();
    const ElementType to = element_type();
    if (random_.one_in(3) && is_float(x.type().element_type())) {
      keep(b.create(OpCode::kReducePrecision, {x},
                    {{AttrKey::exponent_bits, random_.between(1, 9)},
                     {AttrKey::mantissa_bits, random_.between(0, 24)}}));
      return;
    }
    // Not from integers to floats: the evaluator has a single NaN and does not keep payloads.
    const bool keeps_nans = !is_float(to) || is_float(x.type().element_type());
    if (random_.one_in(3) && bit_width(to) == bit_width(x.type().element_type()) && !is_pred(to) &&
        !is_pred(x.type().element_type()) && !is_complex(to) && keeps_nans) {
      return keep(b.bitcast(x, Type::tensor(to, x.type().dims())));
    }
    keep(b.convert(x, to));
  }

  void broadcast(Builder& b) {
    const Value x = any();
    Dims to = x.type().dims();
    I64s map;
    for (size_t i = 0; i < to.size(); ++i) map.push_back(static_cast<int64_t>(i));
    for (int64_t& d : to) {
      if (d == 1) d = random_.between(1, 4);
    }
    for (int64_t extra = random_.below(3); extra > 0; --extra) {
      const int64_t at = random_.between(0, static_cast<int64_t>(to.size()));
      to.insert(to.begin() + at, random_.between(1, 5));
      for (int64_t& m : map) m += m >= at ? 1 : 0;
    }
    if (element_count(to) > options_.max_elements) return;
    keep(b.broadcast_in_dim(x, to, map));
  }

  void rearrange(Builder& b) {
    const Value x = any();
    const auto rank = static_cast<int64_t>(x.type().dims().size());
    I64s order;
    for (int64_t i = 0; i < rank; ++i) order.push_back(i);
    std::shuffle(order.begin(), order.end(), Shuffler{&random_});
    if (random_.one_in(3)) return keep(b.transpose(x, order));
    if (random_.one_in(2)) {
      order.resize(static_cast<size_t>(random_.between(0, rank)));
      keep(b.create(OpCode::kReverse, {x}, {{AttrKey::dimensions, order}}));
      return;
    }
    keep(b.reshape(x, refactored(element_count(x.type().dims()))));
  }

  // Dimensions of `count` elements.
  Dims refactored(int64_t count) {
    Dims to;
    int64_t rest = count;
    for (int64_t part = random_.between(0, 3); part > 0 && rest > 1; --part) {
      std::vector<int64_t> divisors;
      for (int64_t d = 1; d <= rest; ++d) {
        if (rest % d == 0) divisors.push_back(d);
      }
      to.push_back(random_.of(divisors));
      rest /= to.back();
    }
    if (rest != 1 || count == 0) to.push_back(rest);
    return to;
  }

  void cut(Builder& b) {
    const Value x = any();
    I64s start;
    I64s limit;
    I64s strides;
    for (const int64_t d : x.type().dims()) {
      start.push_back(random_.between(0, d));
      limit.push_back(random_.between(start.back(), d));
      strides.push_back(random_.between(1, 3));
    }
    keep(b.slice(x, start, limit, strides));
  }

  std::optional<Value> scalar_of(ElementType type) {
    return pick([&](Value v) { return v.type() == Type::tensor(type, {}); });
  }
  Value scalar(Builder& b, ElementType type) {
    const std::optional<Value> known = scalar_of(type);
    return known && random_.one_in(2) ? *known
                                      : b.scalar(type, static_cast<double>(random_.below(3)));
  }

  void pad(Builder& b) {
    const Value x = any();
    I64s low;
    I64s high;
    I64s interior;
    for (const int64_t d : x.type().dims()) {
      interior.push_back(random_.of({0, 0, 1, 2}));
      low.push_back(random_.between(-std::min<int64_t>(d, 1), 2));
      high.push_back(random_.between(-std::min<int64_t>(d, 1), 2));
    }
    const Value padded = b.pad(x, scalar(b, x.type().element_type()), low, high, interior);
    if (padded) keep(padded);
  }

  void concatenate(Builder& b) {
    const Value x = any();
    if (x.type().rank() == 0) return;
    const auto axis = static_cast<size_t>(random_.below(x.type().rank()));
    const auto fits = [&](Value v) {
      Dims dims = v.type().dims();
      if (dims.size() != x.type().dims().size()) return false;
      dims[axis] = x.type().dims()[axis];
      return Type::tensor(v.type().element_type(), dims) == x.type();
    };
    std::vector<Value> parts = {x};
    for (int64_t n = random_.between(0, 2); n > 0; --n) parts.push_back(*pick(fits));
    keep(b.concatenate(parts, static_cast<int64_t>(axis)));
  }

  // An op that combines two numbers of a type in any order.
  OpCode combiner(ElementType type) {
    if (is_pred(type)) return random_.of({OpCode::kAnd, OpCode::kOr, OpCode::kXor});
    if (is_complex(type)) return OpCode::kAdd;
    if (is_float(type)) return random_.of({OpCode::kAdd, OpCode::kMaximum, OpCode::kMinimum});
    return random_.of({OpCode::kAdd, OpCode::kMultiply, OpCode::kMaximum, OpCode::kMinimum,
                       OpCode::kAnd, OpCode::kOr, OpCode::kXor});
  }
  // Its identity.
  static Value identity(Builder& b, OpCode code, ElementType type) {
    Literal value = Literal::scalar(type, 0);
    const auto set = [&](double real, int64_t integer) {
      value = is_float(type) ? Literal::scalar(type, real) : Literal::scalar_integer(type, integer);
    };
    const int64_t most =
        is_signed_integer(type) ? static_cast<int64_t>(~uint64_t{0} >> (65 - bit_width(type))) : -1;
    if (code == OpCode::kMultiply) set(1, 1);
    if (code == OpCode::kMaximum) set(-HUGE_VAL, is_signed_integer(type) ? -most - 1 : 0);
    if (code == OpCode::kMinimum) set(HUGE_VAL, most);
    if (code == OpCode::kAnd) set(0, is_pred(type) ? 1 : -1);
    return b.constant(value);
  }

  void reduce(Builder& b) {
    const Value x = any();
    I64s over;
    for (int64_t d = 0; d < x.type().rank(); ++d) {
      if (random_.one_in(2)) over.push_back(d);
    }
    const ElementType type = x.type().element_type();
    const OpCode code = combiner(type);
    keep(b.reduce(code, x, identity(b, code, type), over));
  }

  void dot(Builder& b) {
    const auto number = [](Value v) {
      return v.type().rank() >= 1 && v.type().rank() <= 3 && !is_pred(v.type().element_type());
    };
    const auto x = pick(number);
    if (!x) return;
    const auto y = pick(
        [&](Value v) { return number(v) && v.type().element_type() == x->type().element_type(); });
    hlo::DotDims dims;
    // Contract a pair of dimensions of one size, batch another.
    std::vector<bool> used_x(x->type().dims().size());
    std::vector<bool> used_y(y->type().dims().size());
    for (int64_t role = 0; role < 2; ++role) {
      for (size_t i = 0; i < used_x.size(); ++i) {
        for (size_t j = 0; j < used_y.size(); ++j) {
          if (used_x[i] || used_y[j] || x->type().dims()[i] != y->type().dims()[j]) continue;
          if (random_.one_in(2)) continue;
          used_x[i] = used_y[j] = true;
          (role == 0 ? dims.lhs_contracting : dims.lhs_batching).push_back(static_cast<int64_t>(i));
          (role == 0 ? dims.rhs_contracting : dims.rhs_batching).push_back(static_cast<int64_t>(j));
        }
      }
    }
    int64_t size = 1;
    for (size_t i = 0; i < used_x.size(); ++i) size *= x->type().dims()[i];
    for (size_t j = 0; j < used_y.size(); ++j) size *= used_y[j] ? 1 : y->type().dims()[j];
    if (size > 20 * options_.max_elements || size == 0) return;
    const Value product = b.dot_general(*x, *y, dims, x->type().element_type());
    if (product && element_count(product.type().dims()) <= 4 * options_.max_elements) keep(product);
  }

  // Start indices: known numbers, some of them out of range.
  std::vector<Value> starts(Builder& b, const Dims& dims) {
    std::vector<Value> indices;
    const ElementType type = random_.of({kS32, kS32, kS64, kU8, kS8});
    for (const int64_t d : dims) {
      const auto known = scalar_of(type);
      indices.push_back(known && random_.one_in(2)
                            ? *known
                            : b.constant(Literal::scalar_integer(
                                  type, random_.between(is_signed_integer(type) ? -2 : 0, d + 2))));
    }
    return indices;
  }

  void dynamic(Builder& b) {
    const Value x = any();
    I64s sizes;
    for (const int64_t d : x.type().dims()) sizes.push_back(random_.between(0, d));
    if (random_.one_in(2)) return keep(b.dynamic_slice(x, starts(b, x.type().dims()), sizes));
    const I64s zero(sizes.size(), 0);
    const Value update = b.slice(x, zero, sizes);
    if (!update) return;
    pool_.push_back(update);
    const auto better = like(update);
    keep(b.dynamic_update_slice(x, better ? *better : update, starts(b, x.type().dims())));
  }

  // Rows of x by an array of numbers.
  void gather(Builder& b) {
    const auto x =
        pick([](Value v) { return v.type().rank() >= 1 && element_count(v.type().dims()) > 0; });
    const auto indices =
        pick([](Value v) { return is_integer(v.type().element_type()) && v.type().rank() <= 2; });
    if (!x || !indices) return;
    const Dims& dims = x->type().dims();
    hlo::GatherDims numbers;
    const auto axis = random_.below(x->type().rank());
    numbers.start_index_map = {axis};
    numbers.index_vector_dim = indices->type().rank();
    numbers.collapsed_slice_dims = {axis};
    I64s sizes = dims;
    sizes[static_cast<size_t>(axis)] = 1;
    for (int64_t i = 0; i + 1 < x->type().rank(); ++i) {
      numbers.offset_dims.push_back(indices->type().rank() + i);
    }
    if (element_count(sizes) * element_count(indices->type().dims()) > options_.max_elements)
      return;
    keep(b.create(OpCode::kGather, {*x, *indices},
                  {{AttrKey::dimension_numbers, numbers}, {AttrKey::slice_sizes, sizes}}));
  }

  // Updates combined into rows of x.
  void scatter(Builder& b) {
    const auto x =
        pick([](Value v) { return v.type().rank() >= 1 && element_count(v.type().dims()) > 0; });
    const auto indices =
        pick([](Value v) { return is_integer(v.type().element_type()) && v.type().rank() <= 1; });
    if (!x || !indices) return;
    hlo::ScatterDims numbers;
    const auto axis = random_.below(x->type().rank());
    numbers.scatter_dims_to_operand_dims = {axis};
    numbers.inserted_window_dims = {axis};
    numbers.index_vector_dim = indices->type().rank();
    Dims update_dims = indices->type().dims();
    for (int64_t d = 0; d < x->type().rank(); ++d) {
      if (d == axis) continue;
      numbers.update_window_dims.push_back(static_cast<int64_t>(update_dims.size()));
      update_dims.push_back(x->type().dims()[static_cast<size_t>(d)]);
    }
    if (element_count(update_dims) > options_.max_elements) return;
    const ElementType type = x->type().element_type();
    const Type update_type = Type::tensor(type, update_dims);
    const auto known = pick([&](Value v) { return v.type() == update_type; });
    const Value updates = known ? *known : b.broadcast_scalar(scalar(b, type), update_dims);
    if (!b.ok()) return;
    if (!known) pool_.push_back(updates);
    std::vector<std::unique_ptr<Computation>> regions;
    regions.push_back(hlo::binary_region(combiner(type), Type::tensor(type, {})));
    keep(b.create(OpCode::kScatter, {*x, *indices, updates},
                  {{AttrKey::scatter_dimension_numbers, numbers}}, {}, std::move(regions)));
  }

  void sort(Builder& b) {
    const auto x =
        pick([](Value v) { return v.type().rank() >= 1 && !is_complex(v.type().element_type()); });
    if (!x) return;
    const ElementType type = x->type().element_type();
    std::vector<Value> operands = {*x};
    const auto other = pick([&](Value v) { return v.type().dims() == x->type().dims(); });
    if (random_.one_in(2)) operands.push_back(*other);
    auto region = std::make_unique<Computation>();
    std::vector<Value> sides;
    for (const Value operand : operands) {
      for (int side = 0; side < 2; ++side) {
        const Value p = region->add_parameter(Type::tensor(operand.type().element_type(), {}));
        if (sides.size() < 2) sides.push_back(p);
      }
    }
    Builder inner(*region);
    const bool total = is_float(type);
    const auto direction =
        random_.of({hlo::ComparisonDirection::kLt, hlo::ComparisonDirection::kGt});
    const Value less =
        inner.compare(direction, sides[0], sides[1],
                      total ? hlo::ComparisonType::kTotalOrder : hlo::ComparisonType::kNoType);
    if (!inner.finish({less}).ok()) return;
    std::vector<std::unique_ptr<Computation>> regions;
    regions.push_back(std::move(region));
    keep(b.create(
        OpCode::kSort, operands,
        {{AttrKey::dimension, random_.below(x->type().rank())}, {AttrKey::is_stable, true}}, {},
        std::move(regions)));
  }

  void reduce_window(Builder& b) {
    const auto x = pick([](Value v) { return v.type().rank() >= 1 && v.type().rank() <= 3; });
    if (!x) return;
    const ElementType type = x->type().element_type();
    const OpCode code = combiner(type);
    I64s window;
    I64s strides;
    I64s dilations;
    hlo::I64Matrix padding{x->type().rank(), 2, {}};
    for (int64_t d = 0; d < x->type().rank(); ++d) {
      window.push_back(random_.between(1, 3));
      strides.push_back(random_.between(1, 2));
      dilations.push_back(random_.of({1, 1, 2}));
      padding.values.push_back(random_.between(0, 2));
      padding.values.push_back(random_.between(0, 2));
    }
    std::vector<std::unique_ptr<Computation>> regions;
    regions.push_back(hlo::binary_region(code, Type::tensor(type, {})));
    keep(b.create(
        OpCode::kReduceWindow, {*x, identity(b, code, type)},
        {{AttrKey::window_dimensions, window},
         {AttrKey::window_strides, strides},
         {random_.one_in(2) ? AttrKey::window_dilations : AttrKey::base_dilations, dilations},
         {AttrKey::padding, padding}},
        {}, std::move(regions)));
  }

  // An op whose result has the same bits on every device.
  Value exact(Builder& b, Value x, Value y) {
    const ElementType type = x.type().element_type();
    if (is_pred(type)) return b.binary(random_.of({OpCode::kAnd, OpCode::kXor}), x, y);
    if (is_complex(type)) return b.sub(x, y);
    return b.binary(random_.of({OpCode::kAdd, OpCode::kSubtract, OpCode::kMultiply,
                                OpCode::kMaximum, OpCode::kMinimum}),
                    x, y);
  }

  void control(Builder& b) {
    const Value x = any();
    const Value y = partner(x);
    if (random_.one_in(2)) {
      const int64_t trips = random_.between(0, 4);
      const Value zero = b.constant(Literal::scalar_integer(kS32, 0));
      const auto state = b.while_loop(
          {zero, x, y},
          [&](Builder& c, const std::vector<Value>& s) {
            return c.compare(hlo::ComparisonDirection::kLt, s[0],
                             c.constant(Literal::scalar_integer(kS32, trips)));
          },
          [&](Builder& c, const std::vector<Value>& s) {
            const Value one = c.constant(Literal::scalar_integer(kS32, 1));
            // The two change places, too.
            return std::vector<Value>{c.add(s[0], one), exact(c, s[1], s[2]), s[1]};
          });
      if (b.ok() && !state.empty()) keep(state[0]);
      return;
    }
    const auto p = pick([](Value v) {
      return v.type() == Type::tensor(kPred, {}) || v.type() == Type::tensor(kS32, {});
    });
    if (!p) return;
    const bool binary = is_pred(p->type().element_type());
    std::vector<std::unique_ptr<Computation>> branches;
    for (int64_t i = binary ? 2 : random_.between(1, 4); i > 0; --i) {
      auto branch = std::make_unique<Computation>();
      Builder inner(*branch);
      const Value first = exact(inner, x, y);
      if (!inner.finish({first, random_.one_in(2) ? first : y}).ok()) return;
      branches.push_back(std::move(branch));
    }
    keep(b.create(binary ? OpCode::kIf : OpCode::kCase, {*p}, {}, {}, std::move(branches)));
  }

  void special(Builder& b) {
    const ElementType type = element_type();
    switch (random_.below(4)) {
      case 0: {
        const Dims d = dims();
        if (!d.empty() && !is_pred(type)) {
          keep(b.iota(type, d, random_.below(static_cast<int64_t>(d.size()))));
        }
        return;
      }
      case 1: {
        const auto x = pick([](Value v) {
          const ElementType t = v.type().element_type();
          return t == kF32 || t == kF64;
        });
        if (x) keep(b.create(OpCode::kComplex, {*x, partner(*x)}));
        return;
      }
      case 2: {
        Literal state(Shape(kU64, {2}));
        state.set_integer(0, static_cast<int64_t>(random_.bits()));
        state.set_integer(1, random_.one_in(2) ? -1 : 3);
        const Dims d = dims();
        const ElementType bits = random_.of({kU8, kU32, kU64, kS32});
        const Attribute algorithm = word(EnumKind::kRngAlgorithm, random_.between(1, 2));
        keep(b.create(OpCode::kRngBitGenerator, {b.constant(state)},
                      {{AttrKey::rng_algorithm, algorithm}},
                      {Type::tensor(kU64, {2}), Type::tensor(bits, d)}));
        return;
      }
      default: {
        Literal values(Shape(type, dims()));
        if (is_complex(type) || is_float(type)) {
          for (int64_t i = 0; i < values.element_count(); ++i) {
            set_number(values, i, random_.unit() - 0.5, 0);
          }
        }
        if (values.element_count() != 0) keep(b.constant(std::move(values)));
        return;
      }
    }
  }

  GeneratorOptions options_;
  Random random_;
  std::unique_ptr<hlo::Module> module_;
  Computation* function_ = nullptr;
  std::vector<Value> pool_;
  int made_ = 0;
};

double special_real(Random& random, ElementType type) {
  const double most = decode_float(type, (uint64_t{1} << (bit_width(type) - 1)) - 1);
  switch (random.below(12)) {
    case 0:
      return 0.0;
    case 1:
      return -0.0;
    case 2:
      return std::numeric_limits<double>::infinity();
    case 3:
      return -std::numeric_limits<double>::infinity();
    case 4:
      return std::numeric_limits<double>::quiet_NaN();
    case 5:
      return decode_float(type, 1);  // the least denormal
    case 6:
      return std::isfinite(most) ? most : 1e30;
    case 7:
      return 1;
    case 8:
      return -1;
    default:
      return static_cast<double>(random.between(-5, 5));
  }
}

}  // namespace

std::unique_ptr<hlo::Module> generate(const GeneratorOptions& options) {
  return ProgramGenerator(options).run();
}

std::vector<Literal> generate_arguments(const hlo::Module& module, uint64_t seed) {
  Random random(seed ^ 0x5DEECE66D);
  std::vector<Literal> arguments;
  for (const Type& type : module.entry()->parameter_types()) {
    Literal literal(type.shape());
    const ElementType element = type.element_type();
    const ElementType part = complex_part(element);
    const auto real = [&] {
      // Other tests cover the special cases of complex functions.
      if (!is_complex(element) && random.one_in(6)) return special_real(random, part);
      const double scale = std::pow(2.0, static_cast<double>(random.between(-3, 3)));
      return (2 * random.unit() - 1) * scale;
    };
    for (int64_t i = 0; i < literal.element_count(); ++i) {
      if (is_float(part)) {
        const double re = real();
        set_number(literal, i, re, is_complex(element) ? real() : 0);
      } else {
        const bool small = random.one_in(2);
        literal.set_integer(i, small ? random.between(is_signed_integer(element) ? -4 : 0, 5)
                                     : static_cast<int64_t>(random.bits()));
      }
    }
    arguments.push_back(std::move(literal));
  }
  return arguments;
}

}  // namespace tenon::conformance
