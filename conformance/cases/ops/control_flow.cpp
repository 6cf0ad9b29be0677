// Control flow: loops and branches on every type, calls, composites, tuples; ops with a body.
//
// Bodies use operations that are exact in any order, so that results have the same bits everywhere.
#include "conformance/cases/text_program.h"

namespace tenon::conformance {
namespace {

using hlo::OpCode;
using enum ElementType;

// %c counts: the number of turns is an argument.
constexpr TextTemplate kWhile[] = {
    {"counted", "4x5x$T, i32", "4x5x$T, i32", "data ints:7:7", R"(
%r, %s = stablehlo.while(%x = %a, %i = %b) : $A, $B
 cond {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %p = stablehlo.compare GT, %i, %zero : ($B, $B) -> tensor<i1>
  stablehlo.return %p : tensor<i1>
 } do {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.subtract %i, %one : $B
  %m = stablehlo.maximum %x, %x : $A
  %y = stablehlo.reverse %m, dims = [0] : $A
  stablehlo.return %y, %n : $A, $B
 })"},
    {"no_turn", "4x5x$T, i32", "4x5x$T, i32", "data ints:0:0", R"(
%q = stablehlo.maximum %a, %a : $A
%r, %s = stablehlo.while(%x = %q, %i = %b) : $A, $B
 cond {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %p = stablehlo.compare GT, %i, %zero : ($B, $B) -> tensor<i1>
  stablehlo.return %p : tensor<i1>
 } do {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.subtract %i, %one : $B
  %y = stablehlo.reverse %x, dims = [0] : $A
  stablehlo.return %y, %n : $A, $B
 })"},
    {"swap", "7x$T, 7x$T, i32", "7x$T, 7x$T, i32", "data data ints:5:5", R"(
%r, %s, %u = stablehlo.while(%x = %a, %y = %b, %i = %c) : $A, $B, $C
 cond {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %p = stablehlo.compare GT, %i, %zero : ($C, $C) -> tensor<i1>
  stablehlo.return %p : tensor<i1>
 } do {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.subtract %i, %one : $C
  %m = stablehlo.minimum %x, %x : $A
  stablehlo.return %y, %m, %n : $B, $A, $C
 })"},
    {"update_in_place", "9x3x$T, 3x$T, i32", "9x3x$T, i32", "data data ints:9:9", R"(
%r, %s = stablehlo.while(%x = %a, %i = %c) : $A, $C
 cond {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %p = stablehlo.compare GT, %i, %zero : ($C, $C) -> tensor<i1>
  stablehlo.return %p : tensor<i1>
 } do {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.subtract %i, %one : $C
  %old = stablehlo.dynamic_slice %x, %n, %zero, sizes = [1, 3] : ($A, $C, $C) -> tensor<1x3x$T>
  %row = stablehlo.reshape %b : ($B) -> tensor<1x3x$T>
  %new = stablehlo.maximum %old, %row : tensor<1x3x$T>
  %y = stablehlo.dynamic_update_slice %x, %new, %n, %zero : ($A, tensor<1x3x$T>, $C, $C) -> $A
  stablehlo.return %y, %n : $A, $C
 })"},
    {"nested", "6x$T, i32", "6x$T, i32", "data ints:3:3", R"(
%r, %s = stablehlo.while(%x = %a, %i = %b) : $A, $B
 cond {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %p = stablehlo.compare GT, %i, %zero : ($B, $B) -> tensor<i1>
  stablehlo.return %p : tensor<i1>
 } do {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.subtract %i, %one : $B
  %k, %l = stablehlo.while(%z = %x, %j = %i) : $A, $B
   cond {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %p = stablehlo.compare GT, %j, %zero : ($B, $B) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
   } do {
    %m = stablehlo.subtract %j, %one : $B
    %h = stablehlo.maximum %z, %z : $A
    %y = stablehlo.reverse %h, dims = [0] : $A
    stablehlo.return %y, %m : $A, $B
   }
  stablehlo.return %k, %n : $A, $B
 })"},
    {"until_value", "f32, 5x$T", "f32, 5x$T", "positive data", R"(
%r, %s = stablehlo.while(%x = %a, %y = %b) : $A, $B
 cond {
  %limit = stablehlo.constant dense<100.0> : tensor<f32>
  %p = stablehlo.compare LT, %x, %limit : ($A, $A) -> tensor<i1>
  stablehlo.return %p : tensor<i1>
 } do {
  %n = stablehlo.add %x, %x : $A
  %m = stablehlo.maximum %y, %y : $B
  %z = stablehlo.reverse %m, dims = [0] : $B
  stablehlo.return %n, %z : $A, $B
 })"},
};

constexpr TextTemplate kIf[] = {
    {"true", "i1, 4x5x$T, 4x5x$T", "4x5x$T", "ints:1:1 data data", R"(
%r = "stablehlo.if"(%a) ({
  %x = stablehlo.maximum %b, %c : $B
  stablehlo.return %x : $B
 }, {
  %x = stablehlo.minimum %b, %c : $B
  stablehlo.return %x : $B
 }) : ($A) -> $R)"},
    {"false", "i1, 4x5x$T, 4x5x$T", "4x5x$T", "ints:0:0 data data", R"(
%r = "stablehlo.if"(%a) ({
  %x = stablehlo.maximum %b, %c : $B
  stablehlo.return %x : $B
 }, {
  %x = stablehlo.minimum %b, %c : $B
  stablehlo.return %x : $B
 }) : ($A) -> $R)"},
    {"forwards", "i1, 4x5x$T, 4x5x$T", "4x5x$T, 4x5x$T", "ints:0:1 data data", R"(
%r, %s = "stablehlo.if"(%a) ({
  %x = stablehlo.maximum %b, %c : $B
  stablehlo.return %b, %x : $B, $B
 }, {
  stablehlo.return %c, %b : $C, $B
 }) : ($A) -> ($R, $S)
%n = stablehlo.maximum %r, %s : $R)"},
};

constexpr std::string_view kBranches = R"(
%r = "stablehlo.case"(%a) ({
  %x = stablehlo.maximum %b, %c : $B
  stablehlo.return %x : $B
 }, {
  %x = stablehlo.minimum %b, %c : $B
  stablehlo.return %x : $B
 }, {
  %x = stablehlo.reverse %b, dims = [0] : $B
  %y = stablehlo.maximum %x, %x : $B
  stablehlo.return %y : $B
 }) : ($A) -> $R)";
constexpr TextTemplate kCase[] = {
    {"first", "i32, 6x$T, 6x$T", "6x$T", "ints:0:0 data data", kBranches},
    {"middle", "i32, 6x$T, 6x$T", "6x$T", "ints:1:1 data data", kBranches},
    {"beyond", "i32, 6x$T, 6x$T", "6x$T", "ints:9:9 data data", kBranches},
    {"negative", "i32, 6x$T, 6x$T", "6x$T", "ints:-1:-1 data data", kBranches},
};

constexpr TextTemplate kCall[] = {
    {"twice", "4x5x$T, 4x5x$T", "4x5x$T", "data", R"(
%m = func.call @greater(%a, %b) : ($A, $B) -> $A
%n = stablehlo.reverse %m, dims = [1] : $A
%r = func.call @greater(%n, %a) : ($A, $A) -> $R)",
     "func.func private @greater(%x: tensor<4x5x$T>, %y: tensor<4x5x$T>) -> tensor<4x5x$T> {\n"
     "%0 = stablehlo.maximum %x, %y : tensor<4x5x$T>\nreturn %0 : tensor<4x5x$T>\n}\n"}};
constexpr TextTemplate kComposite[] = {
    {"unknown_name", "4x5x$T, 4x5x$T", "4x5x$T", "data", R"(
%r = stablehlo.composite "conformance.greater" %a, %b {decomposition = @greater,
 composite_attributes = {n = 2 : i64}} : ($A, $B) -> $R)",
     "func.func private @greater(%x: tensor<4x5x$T>, %y: tensor<4x5x$T>) -> tensor<4x5x$T> {\n"
     "%0 = stablehlo.maximum %x, %y : tensor<4x5x$T>\nreturn %0 : tensor<4x5x$T>\n}\n"}};
constexpr TextTemplate kTuple[] = {{"pair", "4x5x$T, 4x5x$T", "4x5x$T, 4x5x$T", "data", R"(
%t = stablehlo.tuple %a, %b : tuple<$A, $B>
%x = stablehlo.get_tuple_element %t[0] : (tuple<$A, $B>) -> $A
%y = stablehlo.get_tuple_element %t[1] : (tuple<$A, $B>) -> $B
%r = stablehlo.maximum %x, %y : $A
%s = stablehlo.minimum %y, %x : $B)",
                                    "", Comparison::kBits}};
constexpr TextTemplate kBarrier[] = {{"pair", "4x5x$T, 4x5x$T", "4x5x$T, 4x5x$T", "data", R"(
%x, %y = stablehlo.optimization_barrier %a, %b : $A, $B
%r = stablehlo.maximum %x, %y : $A
%s = stablehlo.minimum %y, %x : $B)"}};

constexpr TextTemplate kMap[] = {{"binary", "3x7x$T, 3x7x$T", "3x7x$T", "data", R"(
%r = "stablehlo.map"(%a, %b) ({
 ^bb0(%x: tensor<$T>, %y: tensor<$T>):
  %m = stablehlo.maximum %x, %y : tensor<$T>
  %n = stablehlo.minimum %m, %x : tensor<$T>
  stablehlo.return %n : tensor<$T>
 }) {dimensions = array<i64: 0, 1>} : ($A, $B) -> $R)"},
                                 {"to_pred", "3x7x$T, 3x7x$T", "3x7xi1", "data", R"(
%r = "stablehlo.map"(%a, %b) ({
 ^bb0(%x: tensor<$T>, %y: tensor<$T>):
  %m = stablehlo.compare LE, %x, %y : (tensor<$T>, tensor<$T>) -> tensor<i1>
  stablehlo.return %m : tensor<i1>
 }) {dimensions = array<i64: 0, 1>} : ($A, $B) -> $R)"}};

constexpr TextTemplate kScan[] = {{"greatest", "5x9x$T, 5x$T", "5x9x$T, 5x$T", "data", R"(
%r, %s = "chlo.scan"(%a, %b) ({
 ^bb0(%x: tensor<5x$T>, %y: tensor<5x$T>):
  %m = stablehlo.maximum %x, %y : tensor<5x$T>
  stablehlo.return %m, %m : tensor<5x$T>, tensor<5x$T>
 }) {dimension = 1 : i64, is_reverse = false, operandSegmentSizes = array<i32: 1, 1>,
 resultSegmentSizes = array<i32: 1, 1>} : ($A, $B) -> ($R, $S))"},
                                  {"greatest_reversed", "9x5x$T, 5x$T", "9x5x$T, 5x$T", "data", R"(
%r, %s = "chlo.scan"(%a, %b) ({
 ^bb0(%x: tensor<5x$T>, %y: tensor<5x$T>):
  %m = stablehlo.maximum %x, %y : tensor<5x$T>
  stablehlo.return %m, %m : tensor<5x$T>, tensor<5x$T>
 }) {dimension = 0 : i64, is_reverse = true, operandSegmentSizes = array<i32: 1, 1>,
 resultSegmentSizes = array<i32: 1, 1>} : ($A, $B) -> ($R, $S))"}};
constexpr TextTemplate kScanSum[] = {{"sum", "5x9x$T, 5x$T", "5x9x$T, 5x$T", "data", R"(
%r, %s = "chlo.scan"(%a, %b) ({
 ^bb0(%x: tensor<5x$T>, %y: tensor<5x$T>):
  %m = stablehlo.add %x, %y : tensor<5x$T>
  stablehlo.return %m, %m : tensor<5x$T>, tensor<5x$T>
 }) {dimension = 1 : i64, is_reverse = false, is_associative = true,
 operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>}
 : ($A, $B) -> ($R, $S))"}};

constexpr TextTemplate kTopK[] = {
    {"rows", "5x19x$T", "5x4x$T, 5x4xi32", "data",
     "%r, %s = chlo.top_k(%a, k = 4) : $A -> ($R, $S)\n%n = stablehlo.negate %s : $S"},
    {"all", "7x$T", "7x$T, 7xi32", "data",
     "%r, %s = chlo.top_k(%a, k = 7) : $A -> ($R, $S)\n%n = stablehlo.negate %s : $S"},
    {"one", "2x3x33x$T", "2x3x1x$T, 2x3x1xi32", "data",
     "%r, %s = chlo.top_k(%a, k = 1) : $A -> ($R, $S)\n%n = stablehlo.negate %s : $S"},
    {"ties", "3x40x$T", "3x9x$T, 3x9xi32", "small",
     "%r, %s = chlo.top_k(%a, k = 9) : $A -> ($R, $S)\n%n = stablehlo.negate %s : $S"}};

constexpr TextTemplate kTorchIndexSelect[] = {
    {"rows", "6x5x$T, 4xi32", "4x5x$T", "data ints:0:5",
     "%r = \"stablehlo.torch_index_select\"(%a, %b) {dim = 0 : i64, batch_dims = 0 : i64} : "
     "($A, $B) -> $R\n%n = stablehlo.maximum %r, %r : $R"},
    {"batch", "3x6x5x$T, 3x4xi32", "3x4x5x$T", "data ints:0:5",
     "%r = \"stablehlo.torch_index_select\"(%a, %b) {dim = 1 : i64, batch_dims = 1 : i64} : "
     "($A, $B) -> $R\n%n = stablehlo.maximum %r, %r : $R"}};
constexpr TextTemplate kBroadcast[] = {{"major", "4x5x$T", "2x3x4x5x$T", "data",
                                        "%r = stablehlo.broadcast %a, sizes = [2, 3] : ($A) -> $R\n"
                                        "%n = stablehlo.maximum %r, %r : $R"}};
constexpr TextTemplate kConstant[] = {
    {"scalar", "5x$T", "5x$T", "data",
     "%k = stablehlo.constant dense<1> : tensor<5x$T>\n%r = stablehlo.maximum %a, %k : $R"}};
constexpr TextTemplate kConstantFloat[] = {
    {"scalar", "5x$T", "5x$T", "data",
     "%k = stablehlo.constant dense<1.0> : tensor<5x$T>\n%r = stablehlo.maximum %a, %k : $R"}};
constexpr TextTemplate kConstantPred[] = {
    {"scalar", "5x$T", "5x$T", "data",
     "%k = stablehlo.constant dense<true> : tensor<5x$T>\n%r = stablehlo.xor %a, %k : $R"}};
constexpr TextTemplate kConstantComplex[] = {
    {"scalar", "5x$T", "5x$T", "data",
     "%k = stablehlo.constant dense<(1.0, -2.0)> : tensor<5x$T>\n%r = stablehlo.add %a, %k : $R"}};
constexpr TextTemplate kConstantLike[] = {
    {"scalar", "5x$T", "5x$T", "data",
     "%k = \"chlo.constant_like\"(%a) {value = 1.0 : $T} : ($A) -> $A\n"
     "%r = stablehlo.maximum %a, %k : $R"}};
constexpr TextTemplate kConstantLikePred[] = {{"scalar", "5x$T", "5x$T", "data",
                                               "%k = \"chlo.constant_like\"(%a) {value = true} : "
                                               "($A) -> $A\n%r = stablehlo.xor %a, %k : $R"}};
constexpr TextTemplate kConstantLikeInt[] = {
    {"scalar", "5x$T", "5x$T", "data",
     "%k = \"chlo.constant_like\"(%a) {value = 1 : $T} : ($A) -> $A\n"
     "%r = stablehlo.maximum %a, %k : $R"}};

std::vector<ElementType> types_with(bool (*is)(ElementType)) {
  std::vector<ElementType> types;
  for (const ElementTypeInfo& info : element_types()) {
    if (is(info.type)) types.push_back(info.type);
  }
  return types;
}

}  // namespace

void add_control_flow_cases(CaseList& list) {
  const std::span<const ValueClass> values = ProgramCases::kDefaultValues;
  const auto floats = types_with(is_float);
  const auto integers = types_with(is_integer);
  add_text_cases(list, OpCode::kWhile, kWhile);
  add_text_cases(list, OpCode::kIf, kIf);
  add_text_cases(list, OpCode::kCase, kCase);
  add_text_cases(list, OpCode::kCall, kCall);
  add_text_cases(list, OpCode::kComposite, kComposite);
  add_text_cases(list, OpCode::kTuple, kTuple);
  add_text_cases(list, OpCode::kOptimizationBarrier, kBarrier);
  add_text_cases(list, OpCode::kMap, kMap);
  add_text_cases(list, OpCode::kChloScan, kScan);
  add_text_cases(list, OpCode::kChloScan, kScanSum, kOrdinaryValues);
  add_text_cases(list, OpCode::kChloTopK, kTopK);
  add_text_cases(list, OpCode::kTorchIndexSelect, kTorchIndexSelect);
  add_text_cases(list, OpCode::kBroadcast, kBroadcast);
  add_text_cases(list, OpCode::kConstant, kConstant, values, integers);
  add_text_cases(list, OpCode::kConstant, kConstantFloat, values, floats);
  add_text_cases(list, OpCode::kConstant, kConstantPred, values, {kPred});
  add_text_cases(list, OpCode::kConstant, kConstantComplex, values, {kC64, kC128});
  add_text_cases(list, OpCode::kChloConstantLike, kConstantLikePred, values, {kPred});
  for (const ElementType type : {kC64, kC128})
    list.left_out.push_back(
        {cell_of(OpCode::kChloConstantLike, type), "text has no form of a complex attribute"});
  add_text_cases(list, OpCode::kChloConstantLike, kConstantLike, values, floats);
  add_text_cases(list, OpCode::kChloConstantLike, kConstantLikeInt, values, integers);
}

}  // namespace tenon::conformance
