#include "hlo/inference/infer_test_util.h"

namespace tenon::hlo::testing {
namespace {

RegionDraft branch(TypeArgs results) { return {{}, std::move(results), true}; }

TEST(InferIf, clauses) {
  check_clauses({OpCode::kIf,
                 {"pred[]"},
                 {},
                 {branch({"f32[2]", "token"}), branch({"f32[2]", "token"})},
                 {},
                 {}},
                "f32[2], token",
                {{"one branch knows less",
                  [](Draft& d) { d.regions[1] = branch({"f32[?]", "token"}); }, "f32[?], token"},
                 {"I1", [](Draft& d) { d.operands = {"s32[]"}; },
                  "stablehlo.if: I1: pred is s32[], expected pred[]"},
                 {"I1 rank", [](Draft& d) { d.operands = {"pred[1]"}; },
                  "stablehlo.if: I1: operand 0 is pred[1], expected a 0-dimensional tensor"},
                 {"I1 token", [](Draft& d) { d.operands = {"token"}; },
                  "stablehlo.if: I1: operand 0 is token, expected a 0-dimensional tensor"},
                 {"C1", [](Draft& d) { d.regions[1].parameters = {"f32[]"}; },
                  "stablehlo.if: C1: region 1 takes 1 parameters, expected 0"},
                 {"C2", [](Draft& d) { d.regions[1] = branch({"f32[2]"}); },
                  "stablehlo.if: C2: branch 0 returns (f32[2], token), branch 1 returns (f32[2])"},
                 {"C2 no return", [](Draft& d) { d.regions[0].ends_in_return = false; },
                  "stablehlo.if: C2: region 0 does not end in a return"},
                 {"C3", [](Draft& d) { d.stated = {"f32[3]", "token"}; },
                  "stablehlo.if: C3: type of result 0 is f32[3], expected f32[2]"},
                 {"number of regions", [](Draft& d) { d.regions.pop_back(); },
                  "stablehlo.if: has 1 regions, expected 2"}});
}

TEST(InferCase, clauses) {
  check_clauses(
      {OpCode::kCase,
       {"s32[]"},
       {},
       {branch({"f32[2]"}), branch({"f32[2]"}), branch({"f32[2]"})},
       {},
       {}},
      "f32[2]",
      {{"I1", [](Draft& d) { d.operands = {"s64[]"}; },
        "stablehlo.case: I1: index is s64[], expected s32[]"},
       {"I1 rank", [](Draft& d) { d.operands = {"s32[2]"}; },
        "stablehlo.case: I1: operand 0 is s32[2], expected a 0-dimensional tensor"},
       {"C1", [](Draft& d) { d.regions = {}; }, "stablehlo.case: C1: there are no branches"},
       {"C2", [](Draft& d) { d.regions[2].parameters = {"f32[]"}; },
        "stablehlo.case: C2: region 2 takes 1 parameters, expected 0"},
       {"C3", [](Draft& d) { d.regions[2] = branch({"s32[2]"}); },
        "stablehlo.case: C3: branch 0 returns (f32[2]), branch 2 returns (s32[2])"},
       {"C4", [](Draft& d) { d.stated = {"f32[]"}; },
        "stablehlo.case: C4: result type is f32[], expected f32[2]"}});
}

TEST(InferWhile, clauses) {
  check_clauses(
      {OpCode::kWhile,
       {"s32[]", "token", "f32[2]"},
       {},
       {{{"s32[]", "token", "f32[2]"}, {"pred[]"}, true},
        {{"s32[]", "token", "f32[2]"}, {"s32[]", "token", "f32[?]"}, true}},
       {},
       {}},
      "s32[], token, f32[2]",
      {{"nothing carried",
        [](Draft& d) {
          d.operands = {};
          d.regions = {{{}, {"pred[]"}, true}, {{}, {}, true}};
        },
        ""},
       {"C1", [](Draft& d) { d.regions[0].parameters.pop_back(); },
        "stablehlo.while: C1: region 0 takes (s32[], token), expected (s32[], token, f32[2])"},
       {"C1 result", [](Draft& d) { d.regions[0].results = {"s32[]"}; },
        "stablehlo.while: C1: cond returns (s32[]), expected pred[]"},
       {"C1 two results", [](Draft& d) { d.regions[0].results = {"pred[]", "pred[]"}; },
        "stablehlo.while: C1: cond returns (pred[], pred[]), expected pred[]"},
       {"C2", [](Draft& d) { d.regions[1].parameters[0] = "s64[]"; },
        "stablehlo.while: C2: region 1 takes (s64[], token, f32[2]), expected (s32[], token, "
        "f32[2])"},
       {"C2 result", [](Draft& d) { d.regions[1].results[2] = "f32[3]"; },
        "stablehlo.while: C2: body returns (s32[], token, f32[3]), expected (s32[], token, "
        "f32[2])"},
       {"C2 count", [](Draft& d) { d.regions[1].results.pop_back(); },
        "stablehlo.while: C2: body returns (s32[], token), expected (s32[], token, f32[2])"},
       {"C3", [](Draft& d) { d.stated = {"s32[]", "token", "f32[3]"}; },
        "stablehlo.while: C3: type of result 2 is f32[3], expected f32[2]"}});
}

TEST(InferTuple, clauses) {
  check_clauses(
      {OpCode::kTuple, {"f32[2]", "token"}, {}, {}, {}, {}}, "tuple<f32[2], token>",
      {{"empty", [](Draft& d) { d.operands = {}; }, "tuple<>"},
       {"C1", [](Draft& d) { d.stated = {Type::tuple({Type::token()})}; },
        "stablehlo.tuple: C1: result type is tuple<token>, expected tuple<f32[2], token>"}});
}

TEST(InferGetTupleElement, clauses) {
  check_clauses({OpCode::kGetTupleElement,
                 {Type::tuple({type_of("f32[2]"), Type::token()})},
                 {{AttrKey::index, int64_t{1}}},
                 {},
                 {},
                 {}},
                "token",
                {{"I1", [](Draft& d) { d.operands = {"f32[2]"}; },
                  "stablehlo.get_tuple_element: I1: operand is f32[2], expected a tuple"},
                 {"C1", set(AttrKey::index, int64_t{2}),
                  "stablehlo.get_tuple_element: C1: index is 2, expected a value in [0, 2)"},
                 {"C1 negative", set(AttrKey::index, int64_t{-1}),
                  "stablehlo.get_tuple_element: C1: index is -1, expected a value in [0, 2)"},
                 {"C2", [](Draft& d) { d.stated = {"f32[2]"}; },
                  "stablehlo.get_tuple_element: C2: result type is f32[2], expected token"}});
}

TEST(InferOptimizationBarrier, clauses) {
  check_clauses(
      {OpCode::kOptimizationBarrier, {"f32[2]", "token"}, {}, {}, {}, {}}, "f32[2], token",
      {{"C1", [](Draft& d) { d.stated = {"f32[3]", "token"}; },
        "stablehlo.optimization_barrier: C1: type of result 0 is f32[3], expected f32[2]"}});
}

TEST(InferFusion, clauses) {
  check_clauses(
      {OpCode::kFusion, {"f32[2]"}, {}, {{{"f32[2]"}, {"f32[3]", "s32[]"}, true}}, {}, {}},
      "f32[3], s32[]",
      {{"parameters", [](Draft& d) { d.regions[0].parameters = {"f32[3]"}; },
        "tenon.fusion: region 0 takes (f32[3]), expected (f32[2])"},
       {"no return", [](Draft& d) { d.regions[0].ends_in_return = false; },
        "tenon.fusion: region 0 does not end in a return"}});
}

TEST(InferCustomCall, clauses) {
  const auto layouts = [](std::vector<I64s> orders) {
    ArrayAttr list;
    for (I64s& order : orders) list.emplace_back(std::move(order));
    return Attribute(std::move(list));
  };
  const auto both = [](const Attribute& operands, const Attribute& results) {
    return [=](Draft& d) {
      d.attributes[AttrKey::operand_layouts] = operands;
      d.attributes[AttrKey::result_layouts] = results;
    };
  };
  const auto alias = [](I64s output, int64_t operand, I64s part) {
    return set(AttrKey::output_operand_aliases,
               ArrayAttr{OutputOperandAlias{std::move(output), operand, std::move(part)}});
  };
  check_clauses(
      {OpCode::kCustomCall,
       {"f32[2,3]", "token"},
       {{AttrKey::call_target_name, "target"}},
       {},
       {"f32[2,3]", "token"},
       {}},
      "f32[2,3], token",
      {{"layouts",
        [=](Draft& d) {
          d.attributes[AttrKey::operand_layouts] = layouts({{0, 1}, {}});
          d.attributes[AttrKey::result_layouts] = layouts({{1, 0}, {}});
        },
        "f32[2,3], token"},
       {"layouts of operands alone", set(AttrKey::operand_layouts, layouts({{0, 1}, {}})),
        "stablehlo.custom_call: operands alone have layouts, expected both operands and "
        "results or neither"},
       {"layouts of an empty tuple",
        [=](Draft& d) {
          d.attributes[AttrKey::operand_layouts] = layouts({{0, 1}, {}});
          d.stated = {Type::tuple({})};
        },
        "tuple<>"},
       {"configuration", set(AttrKey::backend_config, Dict{{"k", true}}),
        "stablehlo.custom_call: backend_config is not a string, as this api_version requires"},
       {"typed configuration",
        [](Draft& d) {
          d.attributes[AttrKey::api_version] =
              word(EnumKind::kCustomCallApiVersion, CustomCallApiVersion::kTypedFfi);
          d.attributes[AttrKey::backend_config] = "text";
        },
        "stablehlo.custom_call: backend_config is not a dictionary, as this api_version requires"},
       {"layout count", both(layouts({{0, 1}}), layouts({{0, 1}, {}})),
        "stablehlo.custom_call: operand_layouts has length 1, expected 2"},
       {"layout", both(layouts({{0, 1}, {}}), layouts({{0, 0}, {}})),
        "stablehlo.custom_call: result_layouts has [0, 0] for f32[2,3], expected its "
        "dimensions in some order"},
       {"layout of a token", both(layouts({{0, 1}, {}}), layouts({{0, 1}, {0}})),
        "stablehlo.custom_call: result_layouts has [0] for token, expected its "
        "dimensions in some order"},
       {"layout form", set(AttrKey::result_layouts, ArrayAttr{int64_t{1}}),
        "stablehlo.custom_call: attribute result_layouts has the wrong form"},
       {"alias", alias({0}, 0, {}), "f32[2,3], token"},
       {"alias operand", alias({0}, 2, {}),
        "stablehlo.custom_call: operand_index of output_operand_aliases is 2, expected a "
        "value in [0, 2)"},
       {"alias part", alias({0}, 0, {1}),
        "stablehlo.custom_call: output_operand_aliases leads out of a tuple"},
       {"alias result", alias({2}, 0, {}),
        "stablehlo.custom_call: output_operand_aliases leads out of a tuple"},
       {"alias types", alias({1}, 0, {}),
        "stablehlo.custom_call: output_operand_aliases joins f32[2,3] of an operand and "
        "token of a result"},
       {"target", [](Draft& d) { d.attributes.clear(); },
        "stablehlo.custom_call: attribute call_target_name is missing"}});
}

// Those of this project's tools, which every device provides.
TEST(InferCustomCall, results_of_tools) {
  const auto outcome_of = [](const char* target, TypeArgs results) {
    return outcome({OpCode::kCustomCall,
                    {"f32[2]"},
                    {{AttrKey::call_target_name, target}},
                    {},
                    std::move(results),
                    {}});
  };
  EXPECT_EQ(outcome_of("make", {"f32[2]", "token"}), "f32[2], token");
  EXPECT_EQ(outcome_of("shape_assertion", {}), "");
  EXPECT_EQ(outcome_of("shape_assertion", {"f32[2]"}),
            "stablehlo.custom_call: @shape_assertion has 1 results, expected none");
  EXPECT_EQ(outcome_of("interpreter.print", {"f32[2]"}),
            "stablehlo.custom_call: @interpreter.print has 1 results, expected none");
  EXPECT_EQ(outcome_of("check.expect_serialized_eq", {"f32[2]"}),
            "stablehlo.custom_call: @check.expect_serialized_eq has 1 results, expected none");
  EXPECT_EQ(outcome_of("interpreter.probe", {"f32[2]"}), "f32[2]");
  EXPECT_EQ(outcome_of("interpreter.probe", {"f32[2]", "f32[2]"}),
            "stablehlo.custom_call: results of @interpreter.probe are (f32[2], f32[2]), expected "
            "(f32[2]), the operands");
  EXPECT_EQ(outcome_of("check.eq", {"pred[]"}), "pred[]");
  EXPECT_EQ(outcome_of("check.eq", {"c64[]"}),
            "stablehlo.custom_call: result 0 of @check.eq is c64[], expected a tensor of pred");
  EXPECT_EQ(outcome_of("check.expect_eq", {"token"}),
            "stablehlo.custom_call: result 0 of @check.expect_eq is token, expected a tensor of "
            "pred");
}

// Functions @callee: (f32[2], token) -> s32[].
std::string call_outcome(const Draft& draft) {
  Module module;
  Computation& callee = module.add_function("callee");
  callee.add_parameter(type_of("f32[2]"));
  callee.add_parameter(Type::token());
  callee.set_declared_result_types({type_of("s32[]")});
  const Instruction* op = add_draft(draft, module.add_function("main"));
  const Result<std::vector<Type>> types = infer_types(*op);
  return types ? types_to_string(*types) : types.error().message();
}

TEST(InferCall, in_a_module) {
  const Draft sound{
      OpCode::kCall, {"f32[?]", "token"}, {{AttrKey::callee, SymbolAttr{"callee"}}}, {}, {}, {}};
  EXPECT_EQ(call_outcome(sound), "s32[]");
  Draft draft = sound;
  draft.operands.pop_back();
  EXPECT_EQ(call_outcome(draft),
            "func.call: operands are (f32[?]), but @callee takes (f32[2], token)");
  draft = sound;
  draft.stated = {"s64[]"};
  EXPECT_EQ(call_outcome(draft), "func.call: results are (s64[]), but @callee gives (s32[])");
  draft = sound;
  draft.attributes[AttrKey::callee] = SymbolAttr{"missing"};
  EXPECT_EQ(call_outcome(draft), "func.call: @missing is not a function of the module");
}

TEST(InferCall, detached) {
  Instruction op(OpCode::kCall, {}, {type_of("f32[2]")});
  op.mutable_attributes().set(AttrKey::callee, SymbolAttr{"anything"});
  EXPECT_EQ(types_to_string(*infer_types(op)), "f32[2]");
}

TEST(InferComposite, clauses) {
  const Draft sound{
      OpCode::kComposite,
      {"f32[2]", "token"},
      {{AttrKey::name, "my_ns.my_op.v2"}, {AttrKey::decomposition, SymbolAttr{"callee"}}},
      {},
      {"s32[]"},
      {}};
  EXPECT_EQ(call_outcome(sound), "s32[]");
  Draft draft = sound;
  for (const char* name : {"", "op", "1ns.op", "ns.", "ns..op", "ns.op-x", "n s.op"}) {
    draft.attributes[AttrKey::name] = name;
    EXPECT_EQ(
        call_outcome(draft),
        fmt::format("stablehlo.composite: C1: name is \"{}\", expected a namespace and a name "
                    "such as \"my.op\"",
                    name));
  }
  draft = sound;
  draft.attributes[AttrKey::decomposition] = SymbolAttr{"missing"};
  EXPECT_EQ(call_outcome(draft),
            "stablehlo.composite: C2: @missing is not a function of the module");
  draft = sound;
  draft.operands[0] = "f32[3]";
  EXPECT_EQ(call_outcome(draft),
            "stablehlo.composite: C3: operands are (f32[3], token), but @callee takes (f32[2], "
            "token)");
  draft = sound;
  draft.stated = {"s32[1]"};
  EXPECT_EQ(call_outcome(draft),
            "stablehlo.composite: C4: results are (s32[1]), but @callee gives (s32[])");
}

}  // namespace
}  // namespace tenon::hlo::testing
