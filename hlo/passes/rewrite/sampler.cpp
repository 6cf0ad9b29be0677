#include "hlo/passes/rewrite/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "hlo/sample/sampler.h"
#include "hlo/verify/verify.h"

namespace tenon::hlo::rewrite {
namespace {

using enum ElementType;

constexpr int64_t kMostElements = 1000;

// Its operands are the values for the operands in the pattern.
class PatternSampler : public Sampler {
 public:
  PatternSampler(Random& drawn_from, size_t variables)
      : Sampler(drawn_from, kMostElements),
        module_(std::make_unique<Module>()),
        variables_(variables) {
    main_ = &module_->add_function("main");
  }

  Sample run(const Pattern& pattern) {
    Builder b(*main_);
    set_builder(&b);
    const Value root = make(pattern, std::nullopt);
    if (!root || !b.ok()) return {};
    main_->set_declared_result_types({root.type()});
    if (!b.finish({root}).ok() || !verify(*module_).ok()) return {};
    return {std::move(module_), root.def};
  }

  // --- Implementation of Sampler

  Value array(size_t i, const Fits& fits) override {
    if (i >= sampled_->operands.size()) return {};
    const Value x = make(sampled_->operands[i], std::nullopt);
    return x && fits(x.type()) ? x : Value();
  }
  Value of_type(size_t i, const Type& type) override {
    const Value x = i < sampled_->operands.size() ? make(sampled_->operands[i], type) : Value();
    return x && x.type() == type ? x : Value();
  }
  Value number(ElementType type) override { return parameter(Type::tensor(type, {})); }
  ElementType element_type() override { return element_type(kTypesPred | kTypesNumber); }
  bool is_trivial() override { return random.one_in(2); }
  Dims dims() override {
    Dims drawn(static_cast<size_t>(random.of({0, 1, 1, 2, 2, 3})));
    for (int64_t& size : drawn) size = random.one_in(30) ? 0 : random.of({1, 1, 2, 3, 4, 5});
    return drawn;
  }

 private:
  using Wanted = std::optional<Type>;

  // --- Types

  ElementType element_type(uint8_t types) {
    static const std::vector<ElementType> kTypes = {
        kF32, kF32, kS32, kS32, kPred, kPred,   kF64,      kF16, kBF16, kS8, kU8,       kS16,
        kU16, kU32, kS64, kU64, kC64,  kF8E5M2, kF8E4M3FN, kS4,  kU4,   kU2, kF8E8M0FNU};
    ElementType drawn{};
    do {
      drawn = random.of(kTypes);
    } while ((types & type_set_of(drawn)) == 0);
    return drawn;
  }
  Type type(uint8_t types) {
    const ElementType element = element_type(types);
    return Type::tensor(element, dims());
  }
  Type number_type() { return type(kTypesPred | kTypesInt | kTypesFloat | kTypesComplex); }

  // --- Values

  Value parameter(const Type& type) { return main_->add_parameter(type); }

  Value make(const Pattern& pattern, Wanted wanted) {
    switch (pattern.kind) {
      case Pattern::Kind::kVariable: {
        Value& bound = variables_[pattern.variable];
        if (!bound) bound = parameter(wanted ? *wanted : number_type());
        return bound;
      }
      case Pattern::Kind::kNumber:
        return constant(wanted ? *wanted : number_type(), pattern);
      case Pattern::Kind::kOnes:
        return constant(wanted ? *wanted : type(kTypesPred | kTypesInt), pattern);
      case Pattern::Kind::kOp:
        return op(pattern, wanted);
      case Pattern::Kind::kEither:
        return make(random.of(pattern.operands), wanted);
      case Pattern::Kind::kRest:
        break;
    }
    return {};
  }

  Value constant(const Type& type, const Pattern& pattern) {
    const ElementType element = type.element_type();
    if (is_complex(element) || (pattern.is_truth && !is_pred(element))) return {};
    if (pattern.kind == Pattern::Kind::kOnes) {
      if (is_float(element)) return {};
      const Literal ones = Literal::scalar_integer(element, is_pred(element) ? 1 : -1);
      return b().constant(DenseAttr::splat(type.shape(), ones));
    }
    Literal number = Literal::scalar(element, pattern.number);
    // Formats without -0.0, or without 0.
    const double kept = number.get_double(0);
    if (kept != pattern.number || std::signbit(kept) != std::signbit(pattern.number)) return {};
    return b().constant(DenseAttr::splat(type.shape(), std::move(number)));
  }

  Value op(const Pattern& pattern, const Wanted& wanted) {
    switch (pattern.code) {
      case OpCode::kSelect:
        return select(pattern, wanted);
      case OpCode::kCompare:
        return compare(pattern);
      case OpCode::kComplex:
      case OpCode::kReal:
      case OpCode::kImag:
        return complex_part(pattern, wanted);
      case OpCode::kTuple:
      case OpCode::kGetTupleElement:
        return tuple(pattern);
      default:
        break;
    }
    if (pattern.operands.empty()) return {};
    if (pattern.code == OpCode::kScatter && pattern.operands.size() == 3) return scatter();
    if (pattern.code == OpCode::kConvolution && pattern.operands[1].kind == Pattern::Kind::kOp)
      return convolution_of_reversed();
    const OpInfo& info = op_info(pattern.code);
    if (info.sample == sample::elementwise || info.sample == sample::clamp ||
        (info.sample == nullptr && info.category == Category::kElementwise)) {
      return elementwise(pattern, wanted);
    }
    if (pattern.code == OpCode::kConcatenate) return concatenate(pattern);
    if (pattern.code == OpCode::kPad && random.one_in(4)) return pad_of_long_rows(pattern);
    if (info.sample == nullptr) return {};
    const Pattern* const outer = std::exchange(sampled_, &pattern);
    Instruction* const made = info.sample(*this, pattern.code);
    sampled_ = outer;
    return made == nullptr ? Value() : made->result();
  }

  // Operands of one type.
  Value elementwise(const Pattern& pattern, const Wanted& wanted) {
    Type common = wanted ? *wanted : type(op_info(pattern.code).types);
    std::vector<Value> operands(pattern.operands.size());
    for (const bool constants : {false, true}) {  // A bound variable determines the type.
      for (size_t i = 0; i < operands.size(); ++i) {
        const Pattern& each = pattern.operands[i];
        const bool is_constant =
            each.kind == Pattern::Kind::kNumber || each.kind == Pattern::Kind::kOnes;
        if (is_constant != constants) continue;
        operands[i] = make(each, common);
        if (!operands[i]) return {};
        common = operands[i].type();
      }
    }
    if (operands.size() == 2 && op_info(pattern.code).commutative && random.one_in(2)) {
      std::swap(operands[0], operands[1]);
    }
    return b().make(pattern.code, operands);
  }

  Value select(const Pattern& pattern, const Wanted& wanted) {
    const Type common = wanted ? *wanted : number_type();
    const Dims chosen = random.one_in(3) ? Dims{} : common.dims();
    const Value predicate = make(pattern.operands[0], Type::tensor(kPred, chosen));
    const Value on_true = predicate ? make(pattern.operands[1], common) : Value();
    const Value on_false = on_true ? make(pattern.operands[2], on_true.type()) : Value();
    return on_false ? b().select(predicate, on_true, on_false) : Value();
  }

  Value compare(const Pattern& pattern) {
    Type common = number_type();
    for (const Pattern& each : pattern.operands) {
      if (each.is_truth) common = Type::tensor(kPred, common.dims());
    }
    const Value lhs = make(pattern.operands[0], common);
    const Value rhs = lhs ? make(pattern.operands[1], lhs.type()) : Value();
    if (!rhs) return {};
    const ComparisonDirection direction = pattern.directions.empty()
                                              ? static_cast<ComparisonDirection>(random.below(6))
                                              : random.of(pattern.directions);
    return b().compare(direction, lhs, rhs);
  }

  Value complex_part(const Pattern& pattern, const Wanted& wanted) {
    const bool makes = pattern.code == OpCode::kComplex;
    const ElementType real = wanted && !makes ? wanted->element_type() : random.of({kF32, kF64});
    const Dims shape = wanted ? wanted->dims() : dims();
    Type common = Type::tensor(makes ? real : real == kF64 ? kC128 : kC64, shape);
    std::vector<Value> operands;
    for (const Pattern& each : pattern.operands) {
      operands.push_back(make(each, common));
      if (!operands.back()) return {};
      common = operands.back().type();
    }
    return b().make(pattern.code, operands);
  }

  Value tuple(const Pattern& pattern) {
    if (pattern.code == OpCode::kGetTupleElement) {
      const Value inner = make(pattern.operands[0], std::nullopt);
      if (!inner) return {};
      const auto count = static_cast<int64_t>(inner.def->operand_count());
      return b().make(pattern.code, {inner},
                      {{AttrKey::index, IntegerAttr{random.below(count), kS32}}});
    }
    std::vector<Value> parts;
    for (int64_t i = random.between(1, 3); i > 0; --i) parts.push_back(parameter(number_type()));
    return b().make(pattern.code, parts);
  }

  // Rows of an array of one number, replaced at places that count up, mostly within it.
  Value scatter() {
    const Type type = number_type();
    if (type.rank() == 0) return {};
    const ElementType integer = random.of({kS32, kS64, kU8, kS8});
    const int64_t count = random.between(1, 4), step = random.between(1, 3);
    const Dims places = random.one_in(2) ? Dims{count} : Dims{count, 1};
    const auto splat = [&](const Dims& dims, int64_t number) {
      return b().splat(Shape(integer, dims), static_cast<double>(number));
    };
    const Value counted = b().mul(b().iota(integer, {count}, 0), splat({count}, step));
    const Value moved = b().add(splat({count}, random.below(3)), counted);
    ScatterDims numbers;
    numbers.scatter_dims_to_operand_dims = numbers.inserted_window_dims = {0};
    numbers.index_vector_dim = 1;
    Dims whole = type.dims();
    whole[0] = random.between(1, 12);
    Dims rows = type.dims();
    rows[0] = count;
    for (int64_t d = 1; d < type.rank(); ++d) numbers.update_window_dims.push_back(d);
    variables_[0] = b().splat(Shape(type.element_type(), whole), random.one_in(2) ? 0 : 1);
    variables_[1] = places.size() == 1 ? moved : b().reshape(moved, places);
    variables_[2] = parameter(Type::tensor(type.element_type(), rows));
    auto region = std::make_unique<Computation>();
    region->add_parameter(Type::tensor(type.element_type(), {}));
    const Value replacement = region->add_parameter(Type::tensor(type.element_type(), {}));
    region->insert(std::make_unique<Instruction>(OpCode::kReturn, std::vector<Value>{replacement},
                                                 std::vector<Type>{}));
    std::vector<std::unique_ptr<Computation>> regions;
    regions.push_back(std::move(region));
    Instruction* const made =
        b().create(OpCode::kScatter, {variables_[0], variables_[1], variables_[2]},
                   {{AttrKey::scatter_dimension_numbers, numbers}}, {}, std::move(regions));
    return made == nullptr ? Value() : made->result();
  }

  // The filter is reversed along some places of the window, which may be reversed too.
  Value convolution_of_reversed() {
    const size_t spatial = random.one_in(2) ? 1 : 2;
    const ElementType type = element_type(kTypesInt | kTypesFloat | kTypesComplex);
    const int64_t features = random.between(1, 3);
    Dims image = {random.between(1, 2), features}, filter = {features, random.between(1, 3)};
    ConvDims numbers = {0, 1, {}, 0, 1, {}, 0, 1, {}};
    BoolsAttr reversal;
    I64s reversed, strides;
    for (size_t s = 0; s < spatial; ++s) {
      const auto axis = static_cast<int64_t>(s) + 2;
      image.push_back(random.between(4, 5));
      filter.push_back(random.between(1, 4));
      if (filter.back() > 1 && random.one_in(2)) reversed.push_back(axis);
      reversal.values.push_back(random.one_in(2) ? 1 : 0);
      strides.push_back(random.between(1, 2));
      for (I64s* const list :
           {&numbers.input_spatial, &numbers.kernel_spatial, &numbers.output_spatial})
        list->push_back(axis);
    }
    variables_[0] = parameter(Type::tensor(type, image));
    variables_[1] = parameter(Type::tensor(type, filter));
    const Value back =
        b().make(OpCode::kReverse, {variables_[1]}, {{AttrKey::dimensions, reversed}});
    if (!back) return {};
    return b().make(OpCode::kConvolution, {variables_[0], back},
                    {{AttrKey::window_strides, strides},
                     {AttrKey::window_reversal, reversal},
                     {AttrKey::dimension_numbers, numbers},
                     {AttrKey::feature_group_count, IntegerAttr{1, kS64}},
                     {AttrKey::batch_group_count, IntegerAttr{1, kS64}}});
  }

  Value pad_of_long_rows(const Pattern& pattern) {
    const ElementType type = number_type().element_type();
    const Value x = make(pattern.operands[0], Type::tensor(type, {2, random.between(40, 140)}));
    const Value y = make(pattern.operands[1], Type::tensor(type, {}));
    if (!x || !y || x.type().rank() != 2) return {};
    const auto edge = [&] { return I64s{random.between(-1, 1), random.between(-2, 3)}; };
    return b().pad(x, y, edge(), edge(), {random.between(0, 1), random.between(0, 3)});
  }

  Value concatenate(const Pattern& pattern) {
    Type common = number_type();
    if (common.rank() == 0) return {};
    const auto axis = static_cast<size_t>(random.below(common.rank()));
    return concatenate(pattern, common, axis);
  }

  // Those that it concatenates are mostly along the same axis.
  Value concatenate(const Pattern& pattern, const Type& common, size_t axis) {
    const auto part_type = [&] {
      Dims shape = common.dims();
      shape[axis] = random.below(3);
      return Type::tensor(common.element_type(), shape);
    };
    std::vector<Value> parts;
    for (const Pattern& each : pattern.operands) {
      if (each.kind == Pattern::Kind::kRest) {
        for (int64_t i = random.between(1, 4); i > 0; --i) parts.push_back(parameter(part_type()));
      } else if (each.kind == Pattern::Kind::kOp && each.code == OpCode::kConcatenate) {
        const auto other = static_cast<size_t>(random.below(common.rank()));
        const Value inner = concatenate(each, common, random.one_in(4) ? other : axis);
        // Along another axis it has other sizes than its neighbours.
        for (size_t d = 0; inner && d < common.dims().size(); ++d) {
          if (d != axis && inner.type().dims()[d] != common.dims()[d]) return {};
        }
        parts.push_back(inner);
      } else {
        parts.push_back(make(each, pattern.operands.size() == 1 ? common : part_type()));
      }
      if (!parts.empty() && !parts.back()) return {};
    }
    return b().concatenate(parts, static_cast<int64_t>(axis));
  }

  std::unique_ptr<Module> module_;
  Computation* main_ = nullptr;
  const Pattern* sampled_ = nullptr;  ///< The op whose sample function is drawing.
  std::vector<Value> variables_;
};

double special_number(ElementType type, Random& random) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (is_pred(type)) return static_cast<double>(random.below(2));
  if (is_integer(type)) {
    return static_cast<double>(random.of({0, 1, -1, 2, 3, 7, 100, 127, -128, 5, 4}));
  }
  switch (random.below(4)) {
    case 0:
      return random.of({0.0, -0.0, kInfinity, -kInfinity, std::nan("")});
    case 1:
      return random.of({1.0, -1.0, 0.5, 2.0, 3.0, 1e-45, 1e-310, 6e-8, 6e4, 3e38, 1e308, 448.0});
    default:
      return (random.unit() - 0.5) * 16;
  }
}

Literal special_array(const Shape& shape, Random& random) {
  Literal array(shape);
  const ElementType type = shape.element_type();
  for (int64_t i = 0; i < array.element_count(); ++i) {
    if (is_complex(type)) {
      const double re = special_number(kF32, random);
      const double im = special_number(kF32, random);
      array.set_complex(i, {re, im});
    } else if (is_integer(type) && random.one_in(3)) {
      // The least and the greatest integer.
      const int width = bit_width(type);
      const int64_t least = std::numeric_limits<int64_t>::min() >> (64 - width);
      const int64_t greatest = is_unsigned_integer(type) ? -1 : ~least;
      array.set_integer(i, random.one_in(2) ? greatest : is_unsigned_integer(type) ? 0 : least);
    } else {
      array.set_double(i, special_number(type, random));
    }
  }
  return array;
}

}  // namespace

Sample draw_sample(const Pattern& pattern, size_t variables, Random& random) {
  return PatternSampler(random, variables).run(pattern);
}

Sample draw_match(const CompiledRule& rule, Random& random, int tries, Match& match) {
  for (int i = 0; i < tries; ++i) {
    Sample sample = draw_sample(rule.pattern, Match::kMostVariables, random);
    if (sample.root != nullptr && matches(rule, *sample.root, match)) return sample;
  }
  return {};
}

std::vector<Literal> draw_arguments(const Module& module, Random& random) {
  std::vector<Literal> arguments;
  const Computation& main = *module.entry();
  for (size_t i = 0; i < main.parameter_count(); ++i) {
    arguments.push_back(special_array(main.parameter(i).type().shape(), random));
  }
  return arguments;
}

}  // namespace tenon::hlo::rewrite
