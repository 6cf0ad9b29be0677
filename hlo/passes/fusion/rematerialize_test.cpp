// Groups compute cheap values again, with the same bits.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/base/random.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/import/import.h"
#include "hlo/passes/pass.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace tenon::hlo {
namespace {

// A program on arrays of 4 x 8, with products that no fusion takes between their ops: values that
// were computed before a product are read behind it.
class RandomProgram {
 public:
  explicit RandomProgram(uint64_t seed) : random_(seed) {
    constexpr int kOps = 40;
    for (int i = 0; i < kOps; ++i) add_op();
    std::string results, types;
    const uint64_t count = 1 + random_.below(3);
    for (uint64_t i = 0; i < count; ++i) {
      results += (i == 0 ? "" : ", ") + (i == 0 ? name(values_ - 1) : any());
      types += std::string(i == 0 ? "" : ", ") + kType;
    }
    text_ = fmt::format(
        "func.func @main(%v0: {0}, %v1: {0}, %w: tensor<8x8xf32>) -> ({1}) {{\n"
        "  %zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "  %half = stablehlo.constant dense<0.5> : {0}\n{2}  return {3} : {1}\n}}\n",
        kType, types, text_, results);
  }
  const std::string& text() const { return text_; }

 private:
  static constexpr const char* kType = "tensor<4x8xf32>";

  static std::string name(int value) { return fmt::format("%v{}", value); }
  std::string any() {
    return name(static_cast<int>(random_.below(static_cast<uint64_t>(values_))));
  }
  std::string next() { return name(values_++); }

  void add_op() {
    const std::string x = any(), y = any(), r = next();
    const auto line = [&](const std::string& rest) {
      text_ += "  " + r + " = stablehlo." + rest + "\n";
    };
    switch (random_.below(10)) {
      case 0:
      case 1:
        return line(fmt::format("add {}, {} : {}", x, y, kType));
      case 2:
        return line(fmt::format("multiply {}, {} : {}", x, y, kType));
      case 3:
        return line(fmt::format("subtract {}, %half : {}", x, kType));
      case 4:
        return line(fmt::format("maximum {}, {} : {}", x, y, kType));
      case 5:
        return line(fmt::format("tanh {} : {}", x, kType));
      case 6:
        return line(
            fmt::format("dot_general {}, %w, contracting_dims = [1] x [0] : ({}, "
                        "tensor<8x8xf32>) -> {}",
                        x, kType, kType));
      case 7: {  // A sum of each row, or each column.
        const uint64_t along = random_.below(2);
        const std::string sum = fmt::format("%s{}", values_);
        text_ += fmt::format(
            "  {} = stablehlo.reduce({} init: %zero) applies stablehlo.add across dimensions = "
            "[{}] : ({}, tensor<f32>) -> tensor<{}xf32>\n",
            sum, x, along, kType, along == 0 ? 8 : 4);
        return line(fmt::format("broadcast_in_dim {}, dims = [{}] : (tensor<{}xf32>) -> {}", sum,
                                1 - along, along == 0 ? 8 : 4, kType));
      }
      case 8:
        return line(fmt::format("divide {}, {} : {}", x, y, kType));
      default: {
        const std::string less = fmt::format("%p{}", values_);
        text_ += fmt::format("  {} = stablehlo.compare LT, {}, {} : ({}, {}) -> tensor<4x8xi1>\n",
                             less, x, y, kType, kType);
        return line(fmt::format("select {}, {}, {} : tensor<4x8xi1>, {}", less, y, x, kType));
      }
    }
  }

  Random random_;
  std::string text_;
  int values_ = 2;
};

int64_t cheap_ops(const Module& module) {
  int64_t count = 0;
  any_instruction(*module.entry(), [&](const Instruction& op) {
    count += op.info().fusion == FusionKind::kElementwise ? 1 : 0;
    return false;
  });
  return count;
}

std::vector<Literal> results_of_numbers(const Module& module) {
  Random random(3);
  std::vector<Literal> arguments;
  for (size_t i = 0; i < module.entry()->parameter_count(); ++i) {
    Literal literal(module.entry()->parameter(i).type().shape());
    for (int64_t n = 0; n < literal.element_count(); ++n)
      literal.set_double(n, static_cast<double>(random.below(2000)) / 1000 - 1);
    arguments.push_back(std::move(literal));
  }
  return Evaluator(module).run(*module.entry(), arguments).value();
}

TEST(Rematerialize, RandomProgramsHaveTheSameBits) {
  int changed = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    const RandomProgram program(seed);
    const auto plain = import_module(program.text(), "t");
    ASSERT_TRUE(plain) << plain.error().to_string() << program.text();
    ASSERT_TRUE(eliminate_dead(**plain));
    const auto fused = (*plain)->clone();
    PassOptions options;
    options.cost.rematerialized_bytes = 1;
    options.cost.rematerialized_ops = 16;
    ASSERT_TRUE(fuse_elements(*fused, options) && eliminate_dead(*fused));
    ASSERT_TRUE(verify(*fused).ok()) << verify(*fused).to_string() << print_module(*fused);
    EXPECT_EQ(results_of_numbers(*fused), results_of_numbers(**plain)) << seed << program.text();
    changed += cheap_ops(*fused) > cheap_ops(**plain) ? 1 : 0;
  }
  EXPECT_GT(changed, 50);
}

}  // namespace
}  // namespace tenon::hlo
