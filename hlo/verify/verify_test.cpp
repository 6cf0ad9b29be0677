#include "hlo/verify/verify.h"

#include "hlo/builder/builder.h"
#include "hlo/inference/infer_test_util.h"

namespace tenon::hlo::testing {
namespace {

Attribute symbol(const char* name) { return SymbolAttr{name}; }

// The errors of a program of f32[2] that `make` writes into @main(f32[2], f32[2]) -> f32[2].
std::vector<std::string> errors_of(const std::function<void(Module&, Computation&)>& make) {
  Module module;
  Computation& main = module.add_function("main");
  main.add_parameter(type_of("f32[2]"));
  main.add_parameter(type_of("f32[2]"));
  main.set_declared_result_types({type_of("f32[2]")});
  make(module, main);
  std::vector<std::string> messages;
  for (const Status& status : verify_all(module)) {
    EXPECT_EQ(status.stage(), "verify");
    messages.push_back(status.message());
  }
  EXPECT_EQ(verify(module).message(), messages.empty() ? "" : messages.front());
  // Out-of-scope uses would outlive the values that they use.
  for (const auto& function : module.functions()) {
    for (Instruction& op : *function) op.set_operands({});
  }
  return messages;
}

Instruction* append(Computation& to, OpCode code, const std::vector<Value>& operands,
                    const TypeArgs& types) {
  return to.insert(std::make_unique<Instruction>(code, operands, types_of(types)));
}

using Messages = std::vector<std::string>;

TEST(VerifyModule, sound) {
  EXPECT_EQ(errors_of([](Module&, Computation& main) {
              Builder b(main);
              const Value sum = b.add(main.parameter(0), main.parameter(1));
              const auto state = b.while_loop(
                  {sum},
                  [&](Builder& inner, const std::vector<Value>& values) {
                    // A region may use values of the enclosing computation.
                    const Value less = inner.compare(ComparisonDirection::kLt, values[0], sum);
                    return inner.reduce(OpCode::kAnd, less, inner.scalar(ElementType::kPred, 1),
                                        {0});
                  },
                  [](Builder& inner, const std::vector<Value>& values) {
                    return std::vector<Value>{inner.neg(values[0])};
                  });
              EXPECT_TRUE(b.finish(state).ok()) << b.status().to_string();
            }),
            Messages{});
}

TEST(VerifyModule, declared_types) {
  EXPECT_EQ(
      errors_of([](Module& module, Computation& main) {
        append(main, OpCode::kReturn, {main.parameter(0)}, {});
        module.add_function("declared").set_declared_result_types({Type::future({Type::token()})});
      }),
      Messages{"a result type of @declared is malformed: a future holds something other than "
               "tensors"});
}

TEST(VerifyModule, declared_results) {
  EXPECT_EQ(errors_of([](Module&, Computation& main) { append(main, OpCode::kReturn, {}, {}); }),
            Messages{"stablehlo.return: returns (), but @main is declared to give (f32[2])"});
}

TEST(VerifyModule, ends_in_return) {
  EXPECT_EQ(errors_of([](Module&, Computation& main) {
              append(main, OpCode::kTanh, {main.parameter(0)}, {"f32[2]"});
            }),
            Messages{"function @main does not end in a return"});
  EXPECT_EQ(errors_of([](Module&, Computation& main) {
              append(main, OpCode::kReturn, {main.parameter(0)}, {});
              append(main, OpCode::kTanh, {main.parameter(0)}, {"f32[2]"});
            }),
            (Messages{"stablehlo.return: is followed by stablehlo.tanh, expected the end of its "
                      "computation",
                      "function @main does not end in a return"}));
}

TEST(VerifyModule, order_of_definitions) {
  EXPECT_EQ(errors_of([](Module&, Computation& main) {
              Instruction* late = append(main, OpCode::kTanh, {main.parameter(0)}, {"f32[2]"});
              append(main, OpCode::kReturn, {late->result()}, {});
              auto early = std::make_unique<Instruction>(
                  OpCode::kNegate, std::vector<Value>{late->result()}, types_of({"f32[2]"}));
              main.insert(std::move(early), late);
            }),
            Messages{"stablehlo.negate: operand 0 is not defined before its use"});
}

TEST(VerifyModule, values_of_other_computations) {
  EXPECT_EQ(errors_of([](Module& module, Computation& main) {
              append(main, OpCode::kReturn, {main.parameter(0)}, {});
              Computation& other = module.add_function("other");
              append(other, OpCode::kNegate, {main.parameter(0)}, {"f32[2]"});
              append(other, OpCode::kReturn, {}, {});
            }),
            Messages{"stablehlo.negate: operand 0 is not defined before its use"});
  // The scope of a value that a region defines ends with the region.
  EXPECT_EQ(errors_of([](Module&, Computation& main) {
              auto fusion = std::make_unique<Instruction>(OpCode::kFusion, std::vector<Value>{},
                                                          types_of({"f32[2]"}));
              Computation& body = fusion->add_region();
              Instruction* inner = append(body, OpCode::kTanh, {main.parameter(0)}, {"f32[2]"});
              append(body, OpCode::kReturn, {inner->result()}, {});
              main.insert(std::move(fusion));
              append(main, OpCode::kReturn, {inner->result()}, {});
            }),
            Messages{"stablehlo.return: operand 0 is not defined before its use"});
}

TEST(VerifyModule, errors_inside_come_first) {
  EXPECT_EQ(errors_of([](Module&, Computation& main) {
              auto fusion = std::make_unique<Instruction>(OpCode::kFusion, std::vector<Value>{},
                                                          types_of({"f32[2]"}));
              Computation& body = fusion->add_region();
              Instruction* inner = append(body, OpCode::kTanh, {main.parameter(0)}, {"f32[3]"});
              append(body, OpCode::kReturn, {inner->result()}, {});
              Instruction* outer = main.insert(std::move(fusion));
              append(main, OpCode::kReturn, {outer->result()}, {});
            }),
            Messages{"stablehlo.tanh: C1: result type is f32[3], expected f32[2]"});
}

TEST(VerifyModule, null_operands) {
  EXPECT_EQ(errors_of([](Module&, Computation& main) {
              append(main, OpCode::kTanh, {Value{}}, {"f32[2]"});
              append(main, OpCode::kTanh, {Value{&main.parameter_instruction(0), 3}}, {"f32[2]"});
              append(main, OpCode::kReturn, {main.parameter(0)}, {});
            }),
            (Messages{"stablehlo.tanh: operand 0 is null",
                      "stablehlo.tanh: operand 0 is result 3 of tenon.parameter, which has 1"}));
}

TEST(VerifyModule, names_of_functions) {
  EXPECT_EQ(errors_of([](Module& module, Computation& main) {
              append(main, OpCode::kReturn, {main.parameter(0)}, {});
              module.add_function("main");
              module.add_function("");
            }),
            (Messages{"function @main is defined twice", "a function has no name"}));
}

TEST(VerifyModule, recursion) {
  const auto call = [](Computation& from, const char* callee) {
    Instruction* op = append(from, OpCode::kCall, {}, {});
    op->mutable_attributes().set(AttrKey::callee, symbol(callee));
    append(from, OpCode::kReturn, {}, {});
  };
  EXPECT_EQ(errors_of([&](Module& module, Computation& main) {
              append(main, OpCode::kReturn, {main.parameter(0)}, {});
              call(module.add_function("f"), "g");
              call(module.add_function("g"), "h");
              call(module.add_function("h"), "g");
            }),
            Messages{"func.call: recursion through @g"});
  // Two calls of one function are not recursion.
  EXPECT_EQ(errors_of([&](Module& module, Computation& main) {
              append(main, OpCode::kReturn, {main.parameter(0)}, {});
              call(module.add_function("f"), "h");
              call(module.add_function("g"), "h");
              append(module.add_function("h"), OpCode::kReturn, {}, {});
            }),
            Messages{});
}

TEST(VerifyModule, a_long_chain_of_calls) {
  EXPECT_EQ(errors_of([&](Module& module, Computation& main) {
              append(main, OpCode::kReturn, {main.parameter(0)}, {});
              for (int i = 0; i < 2000; ++i) {
                Computation& from = module.add_function(fmt::format("f{}", i));
                Instruction* op = append(from, OpCode::kCall, {}, {});
                op->mutable_attributes().set(AttrKey::callee,
                                             SymbolAttr{fmt::format("f{}", (i + 1) % 2000)});
                append(from, OpCode::kReturn, {}, {});
              }
            }),
            Messages{"func.call: recursion through @f0"});
}

TEST(VerifyModule, limit_and_position) {
  Module module;
  Computation& main = module.add_function("main");
  const Value x = main.add_parameter(type_of("f32[2]"));
  for (uint32_t i = 1; i <= 5; ++i) {
    append(main, OpCode::kTanh, {x}, {"f32[3]"})->set_location(file_location("a.mlir", i, 7));
  }
  append(main, OpCode::kReturn, {}, {});
  EXPECT_EQ(verify_all(module).size(), 5u);
  EXPECT_EQ(verify_all(module, 2).size(), 2u);
  EXPECT_EQ(verify(module).to_string(),
            "a.mlir:1:7: error: stablehlo.tanh: C1: result type is f32[3], expected f32[2]");
}

TEST(VerifyStructure, attributes) {
  check_clauses({OpCode::kIota, {}, {{AttrKey::iota_dimension, int64_t{0}}}, {}, {"f32[2]"}, {}},
                "f32[2]",
                {{"undeclared", [](Draft& d) { d.attributes[AttrKey::k] = int64_t{1}; },
                  "stablehlo.iota: attribute k is not declared for this op"},
                 {"form", [](Draft& d) { d.attributes[AttrKey::iota_dimension] = "0"; },
                  "stablehlo.iota: attribute iota_dimension has the wrong form"},
                 {"operands", [](Draft& d) { d.operands = {"f32[]"}; },
                  "stablehlo.iota: has 1 operands, expected 0"},
                 {"results", [](Draft& d) { d.stated = {"f32[2]", "f32[2]"}; },
                  "stablehlo.iota: has 2 results, expected 1"}});
  Instruction op(OpCode::kIota, {}, {type_of("f32[2]")});
  EXPECT_EQ(verify_structure(op).message(), "stablehlo.iota: attribute iota_dimension is missing");
}

TEST(VerifyStructure, types) {
  const auto malformed = [](const std::function<void(QuantizedType&)>& change) {
    QuantizedType q;
    change(q);
    return outcome({OpCode::kTanh, {Type::quantized_tensor({2, 3}, q)}, {}, {}, {}, {}});
  };
  const std::string prefix = "stablehlo.tanh: type of operand 0 is malformed: ";
  EXPECT_EQ(malformed([](QuantizedType& q) { q.expressed = ElementType::kS8; }),
            prefix + "the expressed type is not a float type");
  EXPECT_EQ(malformed([](QuantizedType& q) { q.storage = ElementType::kF32; }),
            prefix + "the storage type is not an integer type");
  EXPECT_EQ(malformed([](QuantizedType& q) { q.storage_max = 128; }),
            prefix + "the storage range does not lie in the storage type");
  EXPECT_EQ(malformed([](QuantizedType& q) { q.axis = 2; }),
            prefix + "the quantized dimension does not exist");
  EXPECT_EQ(malformed([](QuantizedType& q) { q.scales = {}; }),
            prefix + "scales and zero points differ in number");
  EXPECT_EQ(malformed([](QuantizedType& q) { q.axis = 1; }),
            prefix + "there are 1 scales, expected 3");
  EXPECT_EQ(malformed([](QuantizedType& q) { q.scales = {-1}; }),
            prefix + "the scale -1 is not a positive number of the expressed type");
  EXPECT_EQ(malformed([](QuantizedType& q) { q.expressed = ElementType::kF8E8M0FNU; }),
            prefix + "the expressed type has no zero and no negative numbers");
  EXPECT_EQ(malformed([](QuantizedType& q) { q.zero_points = {200}; }),
            prefix + "a zero point is out of range");
  EXPECT_EQ(outcome({OpCode::kTanh, {Type::tensor(ElementType::kF32, {-2})}, {}, {}, {}, {}}),
            prefix + "the size -2 is negative");
  const auto uncountable = [](ElementType type, Dims dims) {
    return outcome({OpCode::kTanh, {Type::tensor(type, std::move(dims))}, {}, {}, {}, {}});
  };
  constexpr int64_t kLarge = int64_t{1} << 32;
  const std::string more = "has more elements than can be counted";
  EXPECT_EQ(uncountable(ElementType::kF32, {kLarge, kLarge}),
            prefix + "a shape of dimensions [4294967296,4294967296] " + more);
  // Bytes are counted too, also of the dimensions beside an empty one.
  EXPECT_EQ(uncountable(ElementType::kF32, {kLarge << 30}),
            prefix + "a shape of dimensions [4611686018427387904] " + more);
  EXPECT_EQ(uncountable(ElementType::kF32, {0, kLarge, kLarge}),
            prefix + "a shape of dimensions [0,4294967296,4294967296] " + more);
  EXPECT_EQ(uncountable(ElementType::kF32, {kDynamic, kLarge, kLarge}),
            "f32[?,4294967296,4294967296]");
  EXPECT_EQ(outcome({OpCode::kTanh, {Type(Shape(ElementType::kF32, {2, 3}, {4}))}, {}, {}, {}, {}}),
            prefix + "bounds and rank differ");
}

TEST(VerifyInstruction, number_of_results) {
  const Instruction op(OpCode::kReplicaId, {}, {});
  EXPECT_EQ(verify(op).message(), "stablehlo.replica_id: has 0 results, expected 1");
  EXPECT_EQ(verify(op).stage(), "verify");
}

TEST(CanonicalizeAttributes, drops_defaults) {
  Instruction op(OpCode::kReduceWindow, {}, {});
  op.mutable_attributes().set(AttrKey::window_dimensions, I64s{1, 1});
  op.mutable_attributes().set(AttrKey::window_strides, I64s{1, 1});
  op.mutable_attributes().set(AttrKey::base_dilations, I64s{1, 2});
  op.mutable_attributes().set(AttrKey::padding, I64Matrix{2, 2, {0, 0, 0, 0}});
  canonicalize_attributes(op);
  EXPECT_NE(op.attribute(AttrKey::window_dimensions), nullptr);
  EXPECT_EQ(op.attribute(AttrKey::window_strides), nullptr);
  EXPECT_NE(op.attribute(AttrKey::base_dilations), nullptr);
  EXPECT_EQ(op.attribute(AttrKey::padding), nullptr);
}

}  // namespace
}  // namespace tenon::hlo::testing
