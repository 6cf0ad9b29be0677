// The passes change no bit: random programs are disguised by changes that the passes undo.
// Afterwards they give the evaluator's results of the original programs, and are no larger than the
// originals.
#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <regex>

#include "conformance/generate/generator.h"
#include "core/base/random.h"
#include "hlo/builder/builder.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/passes/pass.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace tenon::conformance {
namespace {

using hlo::Builder;
using hlo::Computation;
using hlo::Instruction;
using hlo::Module;
using hlo::OpCode;
using hlo::Value;

int64_t count_of(const Module& module) {
  int64_t count = 0;
  for (const auto& function : module.functions()) {
    hlo::any_instruction(*function, [&](const Instruction&) {
      ++count;
      return false;
    });
  }
  return count;
}

// Text in which equal numbers are equal, and all NaNs are equal.
std::vector<std::string> texts(const std::vector<Literal>& literals) {
  std::vector<std::string> all;
  for (const Literal& each : literals) {
    // The sign of a NaN is not defined (docs/numerics.md): it depends on the compiler of Tenon.
    all.push_back(
        std::regex_replace(each.to_string(each.element_count()), std::regex("-nan"), "nan"));
  }
  return all;
}

// Computes the same value with more ops than necessary.
class Disguise {
 public:
  Disguise(Module& module, uint64_t seed) : entry_(*module.entry()), random_(seed) {}

  void run() {
    std::vector<Instruction*> ops;
    for (Instruction& op : entry_) ops.push_back(&op);
    for (Instruction* op : ops) {
      if (op->code() != OpCode::kReturn && op->result_count() == 1) hide(*op);
    }
  }

 private:
  void hide(Instruction& op) {
    const hlo::Type& type = op.result_type();
    if (!type.is_tensor() || type.is_quantized() || random_.below(2) == 0) return;
    const std::vector<hlo::Use> uses = op.uses();
    Builder b(entry_, op.next());
    const Value hidden = disguised(b, op.result());
    ASSERT_TRUE(b.ok()) << b.status().to_string();
    for (const hlo::Use& use : uses) use.user->set_operand(use.operand, hidden);
  }

  Value disguised(Builder& b, Value x) {
    const ElementType type = x.type().element_type();
    const Dims& dims = x.type().dims();
    const bool sign = is_signed_integer(type) || type == ElementType::kF32;
    const bool number = is_float(type) || is_integer(type);
    switch (random_.below(8)) {
      case 0:
        // Some formats have no -0.0.
        if (type == ElementType::kF32) return b.add(x, b.splat_like(x, -0.0));
        return is_integer(type) ? b.add(b.splat_like(x, 0.0), x) : x;
      case 1:
        return number ? b.mul(b.splat_like(x, 1.0), x) : x;
      case 2:
        return sign ? b.neg(b.neg(x)) : x;
      case 3:
        return b.reshape(b.reshape(x, {element_count(dims)}), dims);
      case 4:
        return dims.empty() ? x : reversed(b, reversed(b, x));
      case 5: {
        const Value yes = b.splat(Shape(ElementType::kPred, dims), 1.0);
        return b.select(yes, b.reshape(x, dims), x);
      }
      case 6:
        return type == ElementType::kBF16 ? b.convert(b.convert(x, ElementType::kF64), type) : x;
      default:
        // Equal ops, of which the select takes one or the other.
        return b.select(b.splat(Shape(ElementType::kPred, dims), 0.0), b.bitcast(x, x.type()),
                        copied(b, x));
    }
  }

  static Value reversed(Builder& b, Value x) {
    return b.make(OpCode::kReverse, {x}, {{hlo::AttrKey::dimensions, hlo::I64s{0}}});
  }

  static Value copied(Builder& b, Value x) {
    const bool pure = !x.def->has_side_effect() && x.def->code() != OpCode::kCustomCall;
    if (!pure || x.def->code() == OpCode::kParameter) return x;
    hlo::Cloner cloner;
    return b.create(cloner.clone(*x.def))->result();
  }

  Computation& entry_;
  Random random_;
};

// Makes some of the arguments constants.
void bind_arguments(Module& module, const std::vector<Literal>& arguments, Random random) {
  Computation& entry = *module.entry();
  Builder b(entry, entry.first());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Value parameter = entry.parameter(i);
    if (random.below(2) == 0 || parameter.type().is_quantized()) continue;
    parameter.def->replace_uses(0, b.constant(arguments[i]));
  }
}

TEST(Passes, ChangeNoBitOfRandomPrograms) {
  constexpr uint64_t kPrograms = 400;
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    SCOPED_TRACE(seed);
    GeneratorOptions options;
    options.seed = seed;
    const std::unique_ptr<Module> module = generate(options);
    const std::vector<Literal> arguments = generate_arguments(*module, seed);
    const std::string_view before[] = {"inline-calls", "decompose"};
    ASSERT_TRUE(hlo::run_passes(*module, before).ok());
    const auto expected = hlo::Evaluator(*module).run(*module->entry(), arguments);
    ASSERT_TRUE(expected) << expected.error().to_string();

    const std::string_view passes[] = {"simplify"};
    const std::unique_ptr<Module> plain = module->clone();
    bind_arguments(*plain, arguments, Random(seed));
    const std::unique_ptr<Module> hidden = plain->clone();
    Disguise(*hidden, seed).run();
    const Status verified = hlo::verify(*hidden);
    ASSERT_TRUE(verified.ok()) << verified.to_string();
    for (Module* each : {plain.get(), hidden.get()}) {
      hlo::PassOptions pass_options;
      pass_options.verify = true;
      const Status status = hlo::run_passes(*each, passes, pass_options);
      ASSERT_TRUE(status.ok()) << status.to_string();
      const auto results = hlo::Evaluator(*each).run(*each->entry(), arguments);
      ASSERT_TRUE(results) << results.error().to_string();
      EXPECT_EQ(texts(*results), texts(*expected)) << hlo::print_module(*each);
    }
    // One of two equal loops may use a constant from outside, the other its own.
    const bool loops = hlo::any_instruction(
        *module->entry(), [](const Instruction& op) { return op.code() == OpCode::kWhile; });
    const int64_t most = count_of(*plain);
    EXPECT_TRUE(loops || count_of(*hidden) <= most) << most << hlo::print_module(*hidden);
  }
}

// Ends of ranges, and numbers beyond them.
Literal special_values(ElementType type) {
  const double values[] = {0.0,    -0.0,   0.5,    1,        -1,        -5,          2,
                           3.5,    100,    127,    128,      200,       255,         256,
                           300,    -128,   -129,   1000,     32767,     32768,       65535,
                           65536,  0x1p31, 0x1p32, -0x1p31,  3e9,       -3e9,        1e10,
                           0x1p63, 1e-10,  1e-45,  HUGE_VAL, -HUGE_VAL, std::nan("")};
  Literal literal(Shape(type, {std::size(values)}));
  for (size_t i = 0; i < std::size(values); ++i) {
    literal.set_double(static_cast<int64_t>(i), values[i]);
  }
  return literal;
}

// The program that `make` builds on an array of each real type gives the same bits after the
// passes.
template <class Make>
void expect_kept(const Make& make) {
  for (const ElementTypeInfo& info : element_types()) {
    if (is_complex(info.type)) continue;
    SCOPED_TRACE(info.name);
    Module module;
    Computation& main = module.add_function("main");
    const std::vector<Literal> arguments = {special_values(info.type)};
    const Value parameter = main.add_parameter(hlo::Type(arguments[0].shape()));
    Builder b(main);
    const std::vector<Value> results = make(b, parameter);
    ASSERT_TRUE(b.ok()) << b.status().to_string();
    b.create(std::make_unique<Instruction>(OpCode::kReturn, results, std::vector<hlo::Type>{}));
    std::vector<hlo::Type> types;
    for (const Value value : results) types.push_back(value.type());
    main.set_declared_result_types(types);
    const Status verified = hlo::verify(module);
    ASSERT_TRUE(verified.ok()) << verified.to_string();
    const auto expected = hlo::Evaluator(module).run(main, arguments);
    ASSERT_TRUE(expected) << expected.error().to_string();
    const std::string_view passes[] = {"simplify"};
    ASSERT_TRUE(hlo::run_passes(module, passes).ok());
    const auto actual = hlo::Evaluator(module).run(main, arguments);
    ASSERT_TRUE(actual) << actual.error().to_string();
    for (size_t r = 0; r < expected->size(); ++r) {
      const Literal& right = (*expected)[r];
      EXPECT_EQ((*actual)[r].to_string(64), right.to_string(64))
          << "result " << r << " of type " << right.shape().to_string();
    }
  }
}

// Conversions through any type to any other: from an integer through a float to an integer, a
// number that does not fit saturates; converted directly it would wrap.
TEST(Passes, ChangeNoBitOfConversionsInARow) {
  expect_kept([](Builder& b, Value x) {
    std::vector<Value> results;
    for (const ElementTypeInfo& between : element_types()) {
      if (is_complex(between.type)) continue;
      const Value middle = b.convert(x, between.type);
      for (const ElementTypeInfo& last : element_types()) {
        if (!is_complex(last.type)) results.push_back(b.convert(middle, last.type));
      }
    }
    return results;
  });
}

// f8E8M0FNU has no sign.
TEST(Passes, ChangeNoSign) {
  expect_kept([](Builder& b, Value x) {
    const ElementType type = x.type().element_type();
    if (is_pred(type)) return std::vector<Value>{x};
    if (is_unsigned_integer(type)) return std::vector<Value>{b.neg(b.neg(x))};
    return std::vector<Value>{b.neg(b.neg(x)), b.abs(b.neg(x)), b.abs(b.abs(x)), b.neg(b.abs(x))};
  });
}

}  // namespace
}  // namespace tenon::conformance
