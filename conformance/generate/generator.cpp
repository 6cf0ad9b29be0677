#include "conformance/generate/generator.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/random.h"
#include "core/types/float_convert.h"
#include "hlo/sample/sampler.h"

namespace tenon::conformance {
namespace {

using hlo::Builder;
using hlo::Computation;
using hlo::OpCode;
using hlo::OpInfo;
using hlo::Type;
using hlo::Value;
using enum ElementType;

void set_number(Literal& array, int64_t i, double re, double im) {
  if (is_complex(array.element_type())) {
    array.set_complex(i, {re, im});
  } else {
    array.set_double(i, re);
  }
}

// The sampled ops: those with one operand type and no attributes, and all others.
std::vector<OpCode> sampled_ops(bool elementwise) {
  std::vector<OpCode> codes;
  for (const OpInfo& op : hlo::all_ops()) {
    const bool is_elementwise = op.sample == hlo::sample::elementwise;
    if (op.sample != nullptr && is_elementwise == elementwise) codes.push_back(op.code);
  }
  return codes;
}

// Operands are values of the program, preferably new ones: programs are deep rather than wide.
class ProgramGenerator : public hlo::Sampler {
 public:
  ProgramGenerator(Random& drawn_from, const GeneratorOptions& options)
      : Sampler(drawn_from, options.max_elements),
        options_(options),
        module_(std::make_unique<hlo::Module>()) {}

  std::unique_ptr<hlo::Module> run() {
    module_->set_name("generated");
    function_ = &module_->add_function("main");
    for (int64_t i = random.between(1, 4); i > 0; --i) {
      const Dims d = dims();
      pool_.push_back(function_->add_parameter(Type::tensor(element_type(), d)));
    }
    // An op that does not fit is not made, so the bound is on attempts, not on ops.
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

  // --- Implementation of Sampler

  Value array(size_t, const Fits& fits) override {
    constexpr size_t kChoices = 6;
    std::vector<Value> found;
    for (auto at = pool_.rbegin(); at != pool_.rend() && found.size() < kChoices; ++at) {
      if (fits(at->type())) found.push_back(*at);
    }
    return found.empty() ? Value() : random.of(found);
  }

  Value of_type(size_t i, const Type& type) override {
    const Value known = array(i, [&](const Type& other) { return other == type; });
    return known ? known : b().broadcast_scalar(number(type.element_type()), type.dims());
  }

  Value number(ElementType type) override {
    const Value known =
        array(0, [&](const Type& other) { return other == Type::tensor(type, {}); });
    return known && random.one_in(2) ? known
                                     : b().scalar(type, static_cast<double>(random.below(3)));
  }

  ElementType element_type() override {
    static const std::vector<ElementType> kTypes = {
        kF32, kF32,  kF32, kF32, kS32, kS32,    kS32,      kPred,    kF64,
        kF16, kBF16, kS8,  kU8,  kS16, kU16,    kS64,      kU32,     kU64,
        kC64, kC128, kS4,  kU4,  kS2,  kF8E5M2, kF8E4M3FN, kF4E2M1FN};
    static const std::vector<ElementType> kIntegers = {kS32, kS32, kPred, kS8, kU8,
                                                       kU32, kS64, kU64,  kS4, kU2};
    return random.of(options_.integers ? kIntegers : kTypes);
  }

  Dims dims() override {
    Dims d(static_cast<size_t>(random.of({0, 1, 1, 2, 2, 2, 3, 4})));
    int64_t room = options_.max_elements;
    for (int64_t& size : d) {
      size = std::min(
          room, random.of({int64_t{1}, int64_t{2}, int64_t{3}, int64_t{4}, int64_t{5}, int64_t{7},
                           int64_t{8}, int64_t{13}, int64_t{16}, int64_t{33}}));
      if (random.one_in(60)) size = 0;
      room = std::max<int64_t>(1, room / std::max<int64_t>(size, 1));
    }
    return shuffled(std::move(d));
  }

 private:
  // A third of the ops are elementwise. An op that does not verify is removed; the values made for
  // it remain, and later ops may use them.
  void step() {
    static const std::vector<OpCode> kElementwise = sampled_ops(true);
    static const std::vector<OpCode> kOther = sampled_ops(false);
    Builder builder(*function_);
    set_builder(&builder);
    const OpCode code = random.of(random.one_in(3) ? kElementwise : kOther);
    const hlo::Instruction* const last = function_->last();
    if (hlo::op_info(code).sample(*this, code) != nullptr) ++made_;
    hlo::Instruction* at = last == nullptr ? function_->first() : last->next();
    for (; at != nullptr; at = at->next()) {
      if (at->code() == OpCode::kConstant && at->result_type().rank() == 0) continue;
      for (uint32_t r = 0; r < at->result_count(); ++r) pool_.push_back(at->result(r));
    }
  }

  GeneratorOptions options_;
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
  Random random(options.seed);
  return ProgramGenerator(random, options).run();
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
