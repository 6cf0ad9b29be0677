#include "conformance/compare/reducer.h"

#include <gtest/gtest.h>

#include <set>

#include "conformance/generate/generator.h"
#include "hlo/driver/interpreted.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/import/import.h"
#include "hlo/verify/verify.h"

namespace tenon::conformance {
namespace {

Result<std::vector<Literal>> evaluate(const hlo::Module& module,
                                      const std::vector<Literal>& arguments) {
  return hlo::Evaluator(module).run(*module.entry(), arguments);
}

// A correct device, except that products of s32 are 42.
Result<std::vector<Literal>> faulty(const hlo::Module& module,
                                    const std::vector<Literal>& arguments) {
  TENON_ASSIGN(std::vector<Literal> results, evaluate(module, arguments));
  const hlo::Instruction& end = *module.entry()->return_instruction();
  for (size_t i = 0; i < results.size(); ++i) {
    if (end.operand(i).def->code() != hlo::OpCode::kMultiply) continue;
    if (results[i].element_type() != ElementType::kS32) continue;
    for (int64_t k = 0; k < results[i].element_count(); ++k) {
      if (results[i].get_integer(k) == 42) results[i].set_integer(k, 43);
    }
  }
  return results;
}

Failure failing() {
  auto module = hlo::import_module(
      R"(func.func @main(%x: tensor<8x6xi32>) -> (tensor<8x6xi32>, tensor<8x6xi32>, tensor<8x6xi32>,
                                                  tensor<8x6xi32>) {
  %0 = stablehlo.add %x, %x : tensor<8x6xi32>
  %1 = stablehlo.negate %0 : tensor<8x6xi32>
  %2 = stablehlo.multiply %0, %x : tensor<8x6xi32>
  %3 = stablehlo.subtract %2, %1 : tensor<8x6xi32>
  return %0, %1, %2, %3 : tensor<8x6xi32>, tensor<8x6xi32>, tensor<8x6xi32>, tensor<8x6xi32>
})",
      "t");
  EXPECT_TRUE(module) << module.error().to_string();
  Literal x(Shape(ElementType::kS32, {8, 6}));
  for (int64_t i = 0; i < 48; ++i) x.set_integer(i, i);
  Failure failure;
  failure.module = std::move(*module);
  failure.arguments = {x};
  return failure;
}

TEST(Compare, NamesTheOpThatIsWrong) {
  Failure failure = failing();
  // 2 x^2 is 42 for no number, so the device is not detected.
  EXPECT_FALSE(compare(*failure.module, failure.arguments, faulty).has_value());
  EXPECT_FALSE(compare(*failure.module, failure.arguments, evaluate).has_value());
  const auto first = [](const hlo::Module& module, const std::vector<Literal>& arguments) {
    auto results = evaluate(module, arguments);
    if (results) (*results)[0].set_integer(3, -1);
    return results;
  };
  const auto found = compare(*failure.module, failure.arguments, first);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->text,
            "stablehlo.add result 0 element [0, 3]: -1, expected 6 (bound: exact; operands: 3, 3)");
  ASSERT_NE(found->op, nullptr);
  EXPECT_EQ(found->op->code(), hlo::OpCode::kAdd);
}

// A mismatch is replayed through the interpreter: it is right if only the backend is wrong.
TEST(Reduce, SaysWhoIsAtFault) {
  Failure failure = failing();
  for (int64_t i = 0; i < 48; ++i) failure.arguments[0].set_integer(i, 42);
  const auto wrong = [](const hlo::Module& module, const std::vector<Literal>& arguments) {
    auto results = evaluate(module, arguments);
    if (results) (*results)[0].set_integer(0, -1);
    return results;
  };
  const auto interpreter = [](const hlo::Module& module, const std::vector<Literal>& arguments) {
    std::vector<hlo::CheckFailure> failures;
    int64_t checks = 0;
    return hlo::run_interpreted(module, arguments, hlo::Checks(&failures, &checks));
  };
  const auto found = compare(*failure.module, failure.arguments, wrong);
  ASSERT_TRUE(found);
  EXPECT_EQ(name_of(fault_of(failure, interpreter)), "backend");
  EXPECT_EQ(name_of(fault_of(failure, wrong)), "lowering");
}

TEST(Compare, ADeviceThatFails) {
  const Failure failure = failing();
  const auto refuses = [](const hlo::Module&, const std::vector<Literal>&) {
    return Result<std::vector<Literal>>(Error(Status(ErrorCode::kUnimplemented, "no such op")));
  };
  const auto found = compare(*failure.module, failure.arguments, refuses);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->text, "the device failed: error: no such op");
}

// Reduces a program of many ops to one op, arrays of one element, and zeros where the value does
// not matter.
TEST(Reduce, ToOneOpAndTheSmallestInput) {
  Failure failure = failing();
  const auto wrong = [](const hlo::Module& module, const std::vector<Literal>& arguments) {
    auto results = evaluate(module, arguments);
    const hlo::Instruction& end = *module.entry()->return_instruction();
    for (size_t i = 0; results && i < results->size(); ++i) {
      if (end.operand(i).def->code() != hlo::OpCode::kMultiply) continue;
      Literal& product = (*results)[i];
      for (int64_t k = 0; k < product.element_count(); ++k) {
        if (product.get_integer(k) == 18) product.set_integer(k, 19);
      }
    }
    return results;
  };
  const Failure reduced = reduce(std::move(failure), wrong);
  EXPECT_EQ(to_mlir(reduced),
            "// stablehlo.multiply result 0 element [0, 0]: 19, expected 18 (bound: exact; "
            "operands: 6, 3)\n"
            "module @reduced {\n"
            "  func.func @main() -> (tensor<1x1xi32>) {\n"
            "    %0 = stablehlo.constant dense<3> : tensor<1x1xi32>\n"
            "    %1 = stablehlo.constant dense<6> : tensor<1x1xi32>\n"
            "    %2 = stablehlo.multiply %1, %0 : tensor<1x1xi32>\n"
            "    func.return %2 : tensor<1x1xi32>\n"
            "  }\n"
            "}\n");
}

TEST(Generate, SameSeedSameProgram) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto a = generate({seed, 30, 400});
    const auto b = generate({seed, 30, 400});
    EXPECT_TRUE(hlo::equal(*a, *b));
    EXPECT_EQ(hlo::verify(*a).to_string(), "OK");
    const auto x = generate_arguments(*a, seed);
    const auto y = generate_arguments(*b, seed);
    EXPECT_EQ(x, y);
  }
}

// Over a few hundred seeds the generator uses every op for which it has a rule.
TEST(Generate, ReachesTheOpTable) {
  std::set<hlo::OpCode> reached;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const auto module = generate({seed, 30, 100});
    for (const hlo::Instruction& op : *module->entry()) reached.insert(op.code());
  }
  for (const hlo::OpCode code : {hlo::OpCode::kAdd,
                                 hlo::OpCode::kTanh,
                                 hlo::OpCode::kPower,
                                 hlo::OpCode::kCompare,
                                 hlo::OpCode::kSelect,
                                 hlo::OpCode::kClamp,
                                 hlo::OpCode::kConvert,
                                 hlo::OpCode::kPad,
                                 hlo::OpCode::kReducePrecision,
                                 hlo::OpCode::kBitcastConvert,
                                 hlo::OpCode::kTranspose,
                                 hlo::OpCode::kReverse,
                                 hlo::OpCode::kReshape,
                                 hlo::OpCode::kSlice,
                                 hlo::OpCode::kReduce,
                                 hlo::OpCode::kConcatenate,
                                 hlo::OpCode::kDotGeneral,
                                 hlo::OpCode::kDynamicSlice,
                                 hlo::OpCode::kDynamicUpdateSlice,
                                 hlo::OpCode::kGather,
                                 hlo::OpCode::kScatter,
                                 hlo::OpCode::kSort,
                                 hlo::OpCode::kReduceWindow,
                                 hlo::OpCode::kWhile,
                                 hlo::OpCode::kIf,
                                 hlo::OpCode::kCase,
                                 hlo::OpCode::kIota,
                                 hlo::OpCode::kComplex,
                                 hlo::OpCode::kRngBitGenerator,
                                 hlo::OpCode::kBroadcastInDim}) {
    EXPECT_TRUE(reached.contains(code)) << hlo::op_name(code);
  }
  EXPECT_GE(reached.size(), 80u);
}

}  // namespace
}  // namespace tenon::conformance
