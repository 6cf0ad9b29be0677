#include "conformance/generate/elementwise.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "conformance/generate/bit_patterns.h"
#include "core/base/random.h"
#include "core/types/float_convert.h"
#include "hlo/builder/builder.h"

namespace tenon::conformance {
namespace {

using hlo::AttrKey;
using hlo::Builder;
using hlo::OpCode;
using hlo::OpInfo;
using hlo::Type;
using hlo::Value;

// Ops with `operands` operands of one type, and nothing else.
std::vector<OpCode> plain_ops(size_t operands) {
  std::vector<OpCode> codes;
  for (const OpInfo& op : hlo::all_ops()) {
    // A constant's value is its operand's shape only; the bits of a NaN reveal its sign.
    if (op.code == OpCode::kChloConstantLike || op.code == OpCode::kConvert) continue;
    const bool plain = op.category == hlo::Category::kElementwise &&
                       op.operand_names().size() == operands && op.region_names().empty() &&
                       op.name.find("broadcast") == std::string_view::npos;
    const auto attributes = op.attribute_specs();
    const bool silent = std::none_of(attributes.begin(), attributes.end(), [](const auto& spec) {
      return spec.default_value == hlo::AttrDefault::kRequired;
    });
    if (plain && silent) codes.push_back(op.code);
  }
  return codes;
}
const std::vector<OpCode>& unary_ops() {
  static const std::vector<OpCode> codes = plain_ops(1);
  return codes;
}
const std::vector<OpCode>& binary_ops() {
  static const std::vector<OpCode> codes = plain_ops(2);
  return codes;
}

// It is not defined for the others (hlo/decomposition/chlo/basic.cpp), although their set has it.
bool has_next_after(ElementType type) {
  const FloatSpecials specials = element_type_info(type).format.specials;
  return specials == FloatSpecials::kIeee || specials == FloatSpecials::kNanOnly;
}

bool admits(OpCode code, ElementType type) {
  if (code == OpCode::kChloNextAfter && is_float(type) && !has_next_after(type)) return false;
  return (hlo::op_info(code).types & hlo::type_set_of(type)) != 0;
}

// --- Numbers

// Midpoints between numbers of narrower types, numbers next to them, and the ends of their ranges.
void add_edges_of_narrower_types(ElementType type, std::vector<double>& values) {
  for (const ElementType to : {ElementType::kF32, ElementType::kF16, ElementType::kBF16,
                               ElementType::kF8E5M2, ElementType::kF8E4M3FN}) {
    if (bit_width(to) >= bit_width(type)) continue;
    const auto bits_of_one = encode_float(to, 1.0);
    const double step = decode_float(to, bits_of_one + 1) - 1;
    for (const double halves : {1.0, 3.0}) {
      const double middle = 1 + halves * step / 2;
      values.insert(values.end(), {middle, round_to(type, std::nextafter(middle, 2.0)),
                                   round_to(type, std::nextafter(middle, 0.0))});
    }
    const double last = float_max(to);
    const double least = decode_float(to, 1);
    values.insert(values.end(), {last, last * (1 + step / 4), last * (1 + step / 2), least,
                                 least / 2, least * 1.5, least * 0.75});
  }
}

std::vector<double> special_reals(ElementType type) {
  const int mantissa = element_type_info(type).format.mantissa_bits;
  const double ulp = std::ldexp(1.0, -mantissa);
  const uint64_t first_normal = uint64_t{1} << mantissa;
  std::vector<double> values = {
      0.0, 1.0, 1 + ulp, 1 - ulp / 2, 0.5, 1.5, 2.5, 3.5, 0.1, 2.0, 3.0, 7.0, HUGE_VAL,
      float_max(type), decode_float(type, 1), decode_float(type, 2),
      decode_float(type, first_normal - 1), decode_float(type, first_normal),
      std::ldexp(1.0, mantissa) - 0.5, std::ldexp(1.0, mantissa) + 1, std::ldexp(1.0, mantissa + 1),
      // Ends of integer ranges, and of the ranges of exp and gamma.
      127.5, 255.5, 32767.5, 2147483648.0, 4294967296.0, 9223372036854775808.0, 88.72283, 89.0,
      104.0, 709.78, 745.2, 35.04, 171.6, 1.5707963267948966, 3.1415927410125732, 100000.0, 1e22};
  add_edges_of_narrower_types(type, values);
  const size_t positive = values.size();
  for (size_t i = 0; i < positive; ++i) values.push_back(-values[i]);
  values.push_back(std::numeric_limits<double>::quiet_NaN());
  return values;
}

// Bit patterns of the type, storage_bytes() each; for a complex type, of a part.
std::vector<uint64_t> special_patterns(ElementType type) {
  std::vector<uint64_t> patterns;
  if (bit_width(type) <= 8) {
    for (uint64_t i = 0; i < uint64_t{1} << bit_width(type); ++i) patterns.push_back(i);
  } else if (is_float(type)) {
    for (const double value : special_reals(type)) patterns.push_back(encode_float(type, value));
  } else {
    const int bits = bit_width(type);
    for (const int64_t value : {0, 1, 2, 3, 5, 7, 8, 31, 32, 63, 64, 100, 127, 128, 255, 12345}) {
      patterns.push_back(static_cast<uint64_t>(value));
      patterns.push_back(static_cast<uint64_t>(-value));
    }
    for (const int at : {bits - 1, bits - 2, bits / 2, 24, 53}) {
      if (at >= bits) continue;
      const uint64_t power = uint64_t{1} << at;
      patterns.insert(patterns.end(), {power, power - 1, power + 1});
    }
  }
  std::sort(patterns.begin(), patterns.end());
  patterns.erase(std::unique(patterns.begin(), patterns.end()), patterns.end());
  return patterns;
}

// Every special value with every other, up to `count`; the rest at random.
std::vector<Literal> paired_arguments(ElementType type, int64_t count, Random& random) {
  const ElementType part = complex_part(type);
  const int64_t parts = is_complex(type) ? 2 : 1;
  const std::vector<uint64_t> special = special_patterns(part);
  const auto n = static_cast<int64_t>(special.size());
  Literal x(Shape(type, {count}));
  Literal y(Shape(type, {count}));
  for (int64_t i = 0; i < count * parts; ++i) {
    const bool paired = i < n * n;
    set_pattern(x, part, i, paired ? special[static_cast<size_t>(i % n)] : random.bits());
    set_pattern(y, part, i, paired ? special[static_cast<size_t>((i / n + i) % n)] : random.bits());
  }
  return {std::move(x), std::move(y)};
}

// --- Every op

bool is_among(const WithoutOps& ops, OpCode code) {
  return std::find(ops.begin(), ops.end(), code) != ops.end();
}

using Maker = std::function<Value(Builder&, Value x, Value y)>;

std::vector<Maker> makers_of(ElementType type, const WithoutOps& without) {
  std::vector<Maker> makers;
  for (const OpCode code : unary_ops()) {
    if (admits(code, type) && !is_among(without, code)) {
      makers.emplace_back([code](Builder& b, Value x, Value) { return b.unary(code, x); });
    }
  }
  for (const OpCode code : binary_ops()) {
    if (admits(code, type) && !is_among(without, code)) {
      makers.emplace_back([code](Builder& b, Value x, Value y) { return b.binary(code, x, y); });
    }
  }
  for (int64_t d = 0; d < (is_complex(type) ? 2 : 6); ++d) {
    makers.emplace_back([d](Builder& b, Value x, Value y) {
      return b.compare(static_cast<hlo::ComparisonDirection>(d), x, y);
    });
  }
  for (const auto& to : element_types()) {
    makers.emplace_back([to = to.type](Builder& b, Value x, Value) { return b.convert(x, to); });
  }
  if (!is_complex(type)) {
    makers.emplace_back(
        [](Builder& b, Value x, Value y) { return b.make(OpCode::kClamp, {y, x, y}); });
  }
  if (is_float(type)) {
    for (const auto& [exponent, mantissa] :
         {std::pair<int64_t, int64_t>{5, 10}, {8, 7}, {4, 3}, {2, 0}}) {
      makers.emplace_back([exponent, mantissa](Builder& b, Value x, Value) {
        return b.make(OpCode::kReducePrecision, {x},
                      {{AttrKey::exponent_bits, exponent}, {AttrKey::mantissa_bits, mantissa}});
      });
    }
  }
  return makers;
}

void finish(hlo::Computation& function, const std::vector<Value>& results) {
  std::vector<Type> types;
  for (const Value value : results) types.push_back(value.type());
  function.set_declared_result_types(std::move(types));
  static_cast<void>(Builder(function).finish(results));
}

// --- Random graphs

class Graph {
 public:
  Graph(uint64_t seed, int size, const WithoutOps& without)
      : random_(seed), size_(size), without_(without) {}

  ElementwiseProgram run() {
    program_.module = std::make_unique<hlo::Module>();
    function_ = &program_.module->add_function("main");
    // Around the sizes of vectors and of workgroups.
    dims_ = random_.of(
        std::vector<Dims>{{1}, {7}, {16}, {33}, {64}, {257}, {3, 5}, {5, 64}, {2, 3, 17}, {0}});
    for (int64_t i = random_.between(2, 4); i > 0; --i) parameter();
    for (int tries = 0; made_ < size_ && tries < 10 * size_; ++tries) step();
    std::vector<Value> results = {pool_.back()};
    for (const Value value : pool_) {
      if (random_.one_in(4)) results.push_back(value);
    }
    finish(*function_, results);
    return std::move(program_);
  }

 private:
  void parameter() {
    // Half of the parameters have the type of the first, so that binary ops find operands.
    const bool alike = !pool_.empty() && random_.one_in(2);
    const ElementType type = alike ? pool_[0].type().element_type() : any_type();
    const ElementType part = complex_part(type);
    pool_.push_back(function_->add_parameter(Type::tensor(type, dims_)));
    Literal values(Shape(type, dims_));
    const std::vector<uint64_t> special = special_patterns(part);
    for (int64_t i = 0; i < values.element_count() * (is_complex(type) ? 2 : 1); ++i) {
      // Half of them contain numbers near one, on which chains of functions stay finite.
      const bool near = random_.one_in(2) && is_float(part);
      set_pattern(values, part, i,
                  near ? encode_float(part, 4 * random_.unit() - 2)
                       : (random_.one_in(3) ? random_.bits() : random_.of(special)));
    }
    program_.arguments.push_back(std::move(values));
  }

  ElementType any_type() {
    using enum ElementType;
    return random_.one_in(3) ? random_.of({kF32, kF64, kF16, kBF16, kS32})
                             : random_
                                   .of(std::vector<ElementTypeInfo>(element_types().begin(),
                                                                    element_types().end()))
                                   .type;
  }
  Value any() { return pool_[index(pool_.size())]; }
  size_t index(size_t count) {
    // Prefers new values: graphs are deep rather than wide.
    const auto back = std::min(random_.below(static_cast<int64_t>(count)),
                               random_.below(static_cast<int64_t>(count)));
    return count - 1 - static_cast<size_t>(back);
  }
  Value like(Value x) {
    std::vector<Value> same;
    for (const Value v : pool_) {
      if (v.type() == x.type()) same.push_back(v);
    }
    return random_.of(same);
  }

  void step() {
    // An op that does not verify is removed.
    Builder b(*function_);
    const Value x = any();
    const ElementType type = x.type().element_type();
    Value made;
    switch (random_.below(8)) {
      case 0:
      case 1:
        made = plain(b, unary_ops(), {x});
        break;
      case 2:
      case 3:
      case 4:
        made = plain(b, binary_ops(), {x, like(x)});
        break;
      case 5:
        made = b.convert(x, any_type());
        break;
      case 6: {
        const Value other = like(x);
        const int64_t direction = random_.below(is_complex(type) ? 2 : 6);
        made = b.compare(static_cast<hlo::ComparisonDirection>(direction), x, other);
        break;
      }
      default:
        made = choice(b, x);
    }
    if (!made) return;
    ++made_;
    pool_.push_back(made);
  }

  Value plain(Builder& b, const std::vector<OpCode>& codes, const std::vector<Value>& operands) {
    const OpCode code = random_.of(codes);
    if (!admits(code, operands[0].type().element_type()) || is_among(without_, code)) return {};
    return b.make(code, operands);
  }

  Value choice(Builder& b, Value x) {
    std::vector<Value> predicates;
    for (const Value v : pool_) {
      if (is_pred(v.type().element_type())) predicates.push_back(v);
    }
    if (!predicates.empty()) {
      const Value other = like(x);
      return b.select(random_.of(predicates), x, other);
    }
    if (is_complex(x.type().element_type())) return {};
    return b.make(OpCode::kClamp, {like(x), x, like(x)});
  }

  Random random_;
  const int size_;
  const WithoutOps& without_;
  ElementwiseProgram program_;
  hlo::Computation* function_ = nullptr;
  Dims dims_;
  std::vector<Value> pool_;
  int made_ = 0;
};

}  // namespace

std::vector<ElementwiseProgram> programs_of_every_op(ElementType type, int ops,
                                                     const WithoutOps& without) {
  std::vector<ElementwiseProgram> programs;
  const std::vector<Maker> makers = makers_of(type, without);
  Random random(static_cast<uint64_t>(type));
  const std::vector<Literal> arguments = paired_arguments(type, /*count=*/1031, random);
  for (size_t next = 0; next < makers.size();) {
    ElementwiseProgram program;
    program.module = std::make_unique<hlo::Module>();
    hlo::Computation& main = program.module->add_function("main");
    const Value x = main.add_parameter(Type::tensor(type, arguments[0].shape().dims()));
    const Value y = main.add_parameter(x.type());
    program.arguments = arguments;
    std::vector<Value> results;
    for (; next < makers.size() && results.size() < static_cast<size_t>(ops); ++next) {
      Builder b(main);
      if (const Value made = makers[next](b, x, y)) results.push_back(made);
    }
    if (results.empty()) continue;
    finish(main, results);
    programs.push_back(std::move(program));
  }
  return programs;
}

ElementwiseProgram random_elementwise_program(uint64_t seed, int size, const WithoutOps& without) {
  return Graph(seed, size, without).run();
}

int64_t first_difference(const Literal& a, const Literal& b) {
  if (a == b) return -1;
  const ElementType part = complex_part(a.element_type());
  const int64_t parts = is_complex(a.element_type()) ? 2 : 1;
  const Shape flat(part, {a.element_count() * parts});
  const Literal x = Literal::from_bytes(flat, a.data()).value();
  const Literal y = Literal::from_bytes(flat, b.data()).value();
  const size_t bytes = storage_bytes(part);
  for (int64_t i = 0; i < flat.element_count(); ++i) {
    const size_t at = static_cast<size_t>(i) * bytes;
    if (std::memcmp(x.data().data() + at, y.data().data() + at, bytes) == 0) continue;
    if (is_float(part) && std::isnan(x.get_double(i)) && std::isnan(y.get_double(i))) continue;
    return i / parts;
  }
  return -1;
}

}  // namespace tenon::conformance
