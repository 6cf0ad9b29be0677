#include "hlo/proto/proto.h"

#include <gtest/gtest.h>

#include <functional>
#include <protozero/pbf_writer.hpp>

#include "hlo/import/import.h"
#include "hlo/text/printer.h"

namespace tenon::hlo::proto {
namespace {

using Writer = protozero::pbf_writer;
using Fields = std::function<void(Writer&)>;

std::string message(const Fields& fields) {
  std::string bytes;
  Writer writer(bytes);
  fields(writer);
  return bytes;
}

constexpr int kF32 = 11, kS32 = 4, kPred = 1;

std::string shape(int type, std::vector<int64_t> dims) {
  return message([&](Writer& to) {
    to.add_enum(2, type);
    to.add_packed_int64(3, dims.begin(), dims.end());
  });
}
std::string tuple(const std::vector<std::string>& shapes) {
  return message([&](Writer& to) {
    to.add_enum(2, 13);
    for (const std::string& each : shapes) to.add_message(4, each);
  });
}

// An instruction, whose further fields `more` writes.
std::string op(
    int64_t id, const char* opcode, const std::string& shape, std::vector<int64_t> operands = {},
    const Fields& more = [](Writer&) {}) {
  return message([&](Writer& to) {
    to.add_string(1, std::string(opcode) + "." + std::to_string(id));
    to.add_string(2, opcode);
    to.add_message(3, shape);
    to.add_int64(35, id);
    to.add_packed_int64(36, operands.begin(), operands.end());
    more(to);
  });
}
Fields number(int64_t n) {
  return [n](Writer& to) { to.add_int64(9, n); };
}
Fields calls(std::vector<int64_t> ids) {
  return [ids](Writer& to) { to.add_packed_int64(38, ids.begin(), ids.end()); };
}

std::string computation(int64_t id, const std::vector<std::string>& ops, int64_t root) {
  return message([&](Writer& to) {
    to.add_string(1, "c" + std::to_string(id));
    for (const std::string& each : ops) to.add_message(2, each);
    to.add_int64(5, id);
    to.add_int64(6, root);
  });
}
std::string module(
    const std::vector<std::string>& computations, int64_t entry,
    const Fields& more = [](Writer&) {}) {
  return message([&](Writer& to) {
    to.add_string(1, "m");
    for (const std::string& each : computations) to.add_message(3, each);
    to.add_int64(6, entry);
    more(to);
  });
}

std::string imported(const std::string& bytes) {
  const auto module = import_module(bytes, "p");
  return module ? print_module(**module, {TextForm::kStableHlo, false})
                : module.error().to_string();
}

const std::string kFour = shape(kF32, {4});
const std::string kScalar = shape(kF32, {});

// A function of two scalars that adds them, for reductions.
std::string sum_of_scalars(int64_t id) {
  return computation(id,
                     {op(1, "parameter", kScalar, {}, number(0)),
                      op(2, "parameter", kScalar, {}, number(1)), op(3, "add", kScalar, {1, 2})},
                     3);
}

TEST(HloProto, TuplesBecomeResults) {
  const std::string main =
      computation(7,
                  {op(1, "parameter", kFour, {}, number(1)),
                   op(2, "parameter", kFour, {}, number(0)), op(3, "subtract", kFour, {2, 1}),
                   op(4, "copy", kFour, {3}), op(5, "tuple", tuple({kFour, kFour}), {4, 1}),
                   op(6, "get-tuple-element", kFour, {5}, [](Writer& to) { to.add_int64(13, 1); }),
                   op(8, "tuple", tuple({tuple({kFour}), kFour}), {6, 3})},
                  8);
  EXPECT_EQ(imported(module({main}, 7)),
            "module @m {\n"
            "  func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<4xf32>, "
            "tensor<4xf32>) {\n"
            "    %0 = stablehlo.subtract %arg0, %arg1 : tensor<4xf32>\n"
            "    func.return %arg1, %0 : tensor<4xf32>, tensor<4xf32>\n"
            "  }\n}\n");
}

TEST(HloProto, ComputationsBecomeRegions) {
  const std::string main =
      computation(7,
                  {op(1, "parameter", kFour, {}, number(0)),
                   op(2, "constant", kScalar, {},
                      [](Writer& to) {
                        to.add_message(8, message([](Writer& literal) {
                                         literal.add_message(1, kScalar);
                                         const float value[] = {2.5F};
                                         literal.add_packed_float(8, value, value + 1);
                                       }));
                      }),
                   op(3, "reduce", kScalar, {1, 2},
                      [](Writer& to) {
                        const int64_t dims[] = {0};
                        to.add_packed_int64(14, dims, dims + 1);
                        calls({9})(to);
                      })},
                  3);
  const std::string text = imported(module({sum_of_scalars(9), main}, 7));
  EXPECT_NE(text.find("stablehlo.constant dense<2.5"), std::string::npos) << text;
  EXPECT_NE(text.find("stablehlo.reduce(%arg0 init: %0) across dimensions = [0]"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("%2 = stablehlo.add %arg1, %arg2"), std::string::npos) << text;
}

// As TensorFlow 2.21 sends them: ids with and without that of the computation, in one module.
TEST(HloProto, IdsWithAndWithoutThatOfTheComputation) {
  const int64_t above = int64_t{7} << 32;
  const std::string main = computation(
      7,
      {op(above + 1, "parameter", kFour, {}, number(0)), op(above + 2, "negate", kFour, {1}),
       op(above + 3, "add", kFour, {above + 1, 2}), op(above + 4, "abs", kFour, {above + 3})},
      above + 3);
  EXPECT_EQ(imported(module({main}, 7)),
            "module @m {\n"
            "  func.func @main(%arg0: tensor<4xf32>) -> (tensor<4xf32>) {\n"
            "    %0 = stablehlo.negate %arg0 : tensor<4xf32>\n"
            "    %1 = stablehlo.add %arg0, %0 : tensor<4xf32>\n"
            "    %2 = stablehlo.abs %1 : tensor<4xf32>\n"
            "    func.return %1 : tensor<4xf32>\n"
            "  }\n}\n");
}

// TensorFlow writes one behind each top-k, with the size that the dimension has.
TEST(HloProto, ASizeThatADimensionHas) {
  const auto bytes = [](const std::string& result) {
    return module(
        {computation(7,
                     {op(1, "parameter", kFour, {}, number(0)),
                      op(2, "parameter", shape(kS32, {}), {}, number(1)),
                      op(3, "set-dimension-size", result, {1, 2}), op(4, "negate", result, {3})},
                     4)},
        7);
  };
  const std::string text = imported(bytes(kFour));
  EXPECT_NE(text.find("%0 = stablehlo.negate %arg0"), std::string::npos) << text;
  const std::string dynamic = message([](Writer& to) {
    to.add_enum(2, kF32);
    const int64_t dims[] = {4};
    to.add_packed_int64(3, dims, dims + 1);
    const bool is_dynamic[] = {true};
    to.add_packed_bool(6, is_dynamic, is_dynamic + 1);
  });
  const std::string refused = imported(bytes(dynamic));
  EXPECT_NE(refused.find("set-dimension-size"), std::string::npos) << refused;
  EXPECT_NE(refused.find("size is found when the program runs"), std::string::npos) << refused;
}

TEST(HloProto, LoopsAndBranches) {
  const std::string state = tuple({kFour, kFour});
  const std::string body =
      computation(3,
                  {op(1, "parameter", state, {}, number(0)),
                   op(2, "get-tuple-element", kFour, {1}, [](Writer& to) { to.add_int64(13, 0); }),
                   op(3, "get-tuple-element", kFour, {1}, [](Writer& to) { to.add_int64(13, 1); }),
                   op(4, "tuple", state, {3, 2})},
                  4);
  const std::string condition =
      computation(4,
                  {op(1, "parameter", state, {}, number(0)),
                   op(2, "constant", shape(kPred, {}), {},
                      [](Writer& to) {
                        to.add_message(8, message([](Writer& literal) {
                                         literal.add_message(1, shape(kPred, {}));
                                         literal.add_bool(2, false);
                                       }));
                      })},
                  2);
  const std::string negated =
      computation(5, {op(1, "parameter", kFour, {}, number(0)), op(2, "negate", kFour, {1})}, 2);
  const std::string same = computation(6, {op(1, "parameter", kFour, {}, number(0))}, 1);
  const std::string main =
      computation(7,
                  {op(1, "parameter", kFour, {}, number(0)),
                   op(2, "parameter", shape(kPred, {}), {}, number(1)),
                   op(3, "tuple", state, {1, 1}), op(4, "while", state, {3}, calls({3, 4})),
                   op(5, "get-tuple-element", kFour, {4}, [](Writer& to) { to.add_int64(13, 1); }),
                   op(6, "conditional", kFour, {2, 5, 1}, calls({5, 6})),
                   op(8, "call", kFour, {6}, calls({5}))},
                  8);
  const std::string text = imported(module({body, condition, negated, same, main}, 7));
  EXPECT_NE(text.find("stablehlo.while"), std::string::npos) << text;
  EXPECT_NE(text.find("stablehlo.if"), std::string::npos) << text;
  EXPECT_NE(text.find("%4 = stablehlo.negate %2"), std::string::npos) << text;
}

TEST(HloProto, DonatedParameters) {
  const std::string main =
      computation(7, {op(1, "parameter", kFour, {}, number(0)), op(2, "negate", kFour, {1})}, 2);
  const std::string text = imported(module({main}, 7, [](Writer& to) {
    to.add_message(8, message([](Writer& alias) {
                     alias.add_message(1, message([](Writer& entry) { entry.add_int64(2, 0); }));
                   }));
  }));
  EXPECT_NE(text.find("%arg0: tensor<4xf32> {tf.aliasing_output = 0 : i32}"), std::string::npos)
      << text;
}

TEST(HloProto, OtherLayoutsOfConstants) {
  const std::string columns = message([](Writer& to) {
    to.add_enum(2, kS32);
    const int64_t dims[] = {2, 3};
    to.add_packed_int64(3, dims, dims + 2);
    to.add_message(5, message([](Writer& layout) {
                     const int64_t order[] = {0, 1};
                     layout.add_packed_int64(1, order, order + 2);
                   }));
  });
  const std::string main =
      computation(7,
                  {op(1, "constant", columns, {},
                      [&](Writer& to) {
                        to.add_message(8, message([&](Writer& literal) {
                                         literal.add_message(1, columns);
                                         const int32_t values[] = {1, 4, 2, 5, 3, 6};
                                         literal.add_packed_int32(4, values, values + 6);
                                       }));
                      })},
                  1);
  const std::string text = imported(module({main}, 7));
  EXPECT_NE(text.find("dense<[[1, 2, 3], [4, 5, 6]]>"), std::string::npos) << text;
}

TEST(HloProto, ErrorsNameTheInstruction) {
  const auto one = [](const std::string& last) {
    return imported(
        module({computation(7, {op(1, "parameter", kFour, {}, number(0)), last}, 2)}, 7));
  };
  EXPECT_EQ(one(op(2, "infeed", kFour, {1})),
            "error: infeed %infeed.2: HLO's op 'infeed' is not supported");
  EXPECT_EQ(one(op(2, "infeed", kFour, {1},
                   [](Writer& to) {
                     to.add_message(7, message([](Writer& metadata) {
                                      metadata.add_string(3, "model.py");
                                      metadata.add_int32(4, 12);
                                    }));
                   })),
            "model.py:12:1: error: infeed %infeed.2: HLO's op 'infeed' is not supported");
  EXPECT_EQ(one(op(2, "negate", shape(99, {}), {1})),
            "error: negate %negate.2: element type 99 of HLO");
  EXPECT_EQ(one(op(2, "negate", kFour, {8})), "error: %negate.2: operand 8 comes later");
  EXPECT_EQ(one(op(2, "compare", shape(kPred, {4}), {1, 1})),
            "error: compare %compare.2: '' is no comparison_direction");
  EXPECT_EQ(one(op(2, "reduce", kScalar, {1, 1})),
            "error: reduce %reduce.2: it lacks a computation");
}

// As newer versions of XLA state it.
TEST(HloProto, PlacesInATableOfStackFrames) {
  const std::string main = computation(
      7,
      {op(1, "infeed", kFour, {},
          [](Writer& to) {
            to.add_message(7, message([](Writer& metadata) { metadata.add_int32(15, 1); }));
          })},
      1);
  const auto said = [&](int64_t file) {
    return imported(module({main}, 7, [&](Writer& to) {
      to.add_message(17, message([&](Writer& table) {
                       table.add_string(1, "layer.py");
                       table.add_message(3, message([&](Writer& place) {
                                           place.add_int64(1, file);
                                           place.add_int64(3, 5);
                                           place.add_int64(4, 9);
                                         }));
                       table.add_message(4, message([](Writer& frame) { frame.add_int64(1, 1); }));
                     }));
    }));
  };
  EXPECT_EQ(said(1), "layer.py:5:9: error: infeed %infeed.1: HLO's op 'infeed' is not supported");
  EXPECT_EQ(said(2), "error: infeed %infeed.1: HLO's op 'infeed' is not supported");
}

TEST(HloProto, DamagedModules) {
  EXPECT_EQ(imported(module({computation(7, {}, 1)}, 8)),
            "error: p: there is no entry computation");
  // A computation that calls itself.
  const std::string endless = computation(
      7, {op(1, "parameter", kFour, {}, number(0)), op(2, "call", kFour, {1}, calls({7}))}, 2);
  EXPECT_NE(imported(module({endless}, 7)).find("computations call one another too deeply"),
            std::string::npos);
  // The bytes end within a field.
  const std::string whole = module({sum_of_scalars(7)}, 7);
  for (size_t size = 1; size < whole.size(); ++size) {
    EXPECT_FALSE(import_module(std::string_view(whole).substr(0, size), "p")) << size;
  }
}

TEST(HloProto, ShapesAreThoseOfTheValues) {
  EXPECT_EQ(imported(module({computation(7,
                                         {op(1, "parameter", kFour, {}, number(0)),
                                          op(2, "copy", shape(kF32, {3}), {1})},
                                         2)},
                            7)),
            "error: copy %copy.2: its shape is not that of its value");
}

// A small file whose tuples would fill the memory.
TEST(HloProto, TuplesOfTuplesAreLimited) {
  constexpr size_t kMany = 6000;
  const std::string tokens =
      tuple(std::vector<std::string>(kMany, message([](Writer& to) { to.add_enum(2, 17); })));
  const std::string main = computation(7,
                                       {op(1, "parameter", tokens, {}, number(0)),
                                        op(2, "tuple", tokens, std::vector<int64_t>(kMany, 1))},
                                       2);
  EXPECT_EQ(imported(module({main}, 7)),
            "error: more than 16777216 instructions and operands, calls inlined");
}

// A constant of a computation that is called often is kept once.
TEST(HloProto, CallsShareConstants) {
  constexpr int64_t kElements = 1 << 16;
  const std::string table = shape(kF32, {kElements});
  const std::string constant =
      computation(5,
                  {op(1, "constant", table, {},
                      [&](Writer& to) {
                        to.add_message(8, message([&](Writer& literal) {
                                         literal.add_message(1, table);
                                         std::vector<float> values(kElements);
                                         values[1] = 1;
                                         literal.add_packed_float(8, values.begin(), values.end());
                                       }));
                      })},
                  1);
  std::vector<std::string> ops;
  for (int64_t i = 0; i < 4; ++i) ops.push_back(op(i, "call", table, {}, calls({5})));
  const auto module_of_calls = parse_hlo_proto(module({constant, computation(7, ops, 3)}, 7), "p");
  ASSERT_TRUE(module_of_calls);
  const std::vector<RawOp>& body = module_of_calls->module.regions[0].ops[0].regions[0].ops;
  ASSERT_EQ(body.size(), 5u);
  const auto bytes_of = [](const RawOp& each) {
    return find(each.attributes, "value")->get<DenseAttr>()->values.data().data();
  };
  EXPECT_EQ(bytes_of(body[0]), bytes_of(body[3]));
}

TEST(HloProto, TextIsNoProto) {
  EXPECT_FALSE(is_hlo_proto("\nmodule {\n}\n"));
  EXPECT_FALSE(is_hlo_proto(""));
  EXPECT_FALSE(is_hlo_proto("func.func @main() { return }"));
  EXPECT_TRUE(is_hlo_proto(module({sum_of_scalars(7)}, 7)));
}

}  // namespace
}  // namespace tenon::hlo::proto
