// Quantized types: numbers to stored integers and back, and ops on stored integers.
#include <fmt/format.h>

#include <algorithm>

#include "conformance/cases/text_program.h"

namespace tenon::conformance {
namespace {

using hlo::OpCode;
using hlo::OpInfo;
using enum ElementType;

// `$Q` is the storage type.
constexpr TextTemplate kQuantize[] = {
    {"per_tensor", "37xf32", "37x!quant.uniform<$Q:f32, 0.25:3>", "data",
     "%r = stablehlo.uniform_quantize %a : ($A) -> $R"},
    {"per_axis", "3x11xf32", "3x11x!quant.uniform<$Q:f32:0, {0.25:3, 0.5:0, 1.5:-1}>", "data",
     "%r = stablehlo.uniform_quantize %a : ($A) -> $R"},
    {"from_f16", "37xf16", "37x!quant.uniform<$Q:f16, 0.25:3>", "data",
     "%r = stablehlo.uniform_quantize %a : ($A) -> $R"},
    {"from_bf16", "37xbf16", "37x!quant.uniform<$Q:bf16, 0.25:3>", "data",
     "%r = stablehlo.uniform_quantize %a : ($A) -> $R"},
    {"requantize", "37x!quant.uniform<$Q:f32, 0.25:3>", "37x!quant.uniform<$Q:f32, 0.75:-2>",
     "data", "%r = stablehlo.uniform_quantize %a : ($A) -> $R"},
};
constexpr TextTemplate kDequantize[] = {
    {"per_tensor", "37x!quant.uniform<$Q:f32, 0.25:3>", "37xf32", "data",
     "%r = stablehlo.uniform_dequantize %a : ($A) -> $R"},
    {"per_axis", "3x11x!quant.uniform<$Q:f32:0, {0.25:3, 0.5:0, 1.5:-1}>", "3x11xf32", "data",
     "%r = stablehlo.uniform_dequantize %a : ($A) -> $R"},
    {"to_f16", "37x!quant.uniform<$Q:f16, 0.25:3>", "37xf16", "data",
     "%r = stablehlo.uniform_dequantize %a : ($A) -> $R"},
};

constexpr TextTemplate kQuantizedDot[] = {
    {"quantized", "5x17x!quant.uniform<$Q:f32, 0.25:3>, 17x7x!quant.uniform<$Q:f32, 0.5:0>",
     "5x7x!quant.uniform<i32:f32, 0.125:0>", "data",
     "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ($A, $B) -> $R"},
    {"quantized_narrow_result",
     "5x17x!quant.uniform<$Q:f32, 0.25:3>, 17x7x!quant.uniform<$Q:f32, 0.5:0>",
     "5x7x!quant.uniform<$Q:f32, 2.0:1>", "data",
     "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ($A, $B) -> $R"},
};
constexpr TextTemplate kQuantizedConvolution[] = {
    {"quantized", "1x6x6x2x!quant.uniform<$Q:f32, 0.25:3>, 3x3x2x3x!quant.uniform<$Q:f32, 0.5:0>",
     "1x4x4x3x!quant.uniform<i32:f32, 0.125:0>", "data",
     "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
     "window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : ($A, $B) -> $R"},
};

// An elementwise op on stored integers; its result has the same scale.
MakeProgram elementwise(const OpInfo& op, ElementType storage, bool per_axis) {
  const std::string_view type = per_axis ? "3x11x!quant.uniform<$Q:f32:0, {0.25:3, 0.5:0, 1.5:1}>"
                                         : "37x!quant.uniform<$Q:f32, 0.25:3>";
  std::string parameters;
  std::string operands;
  std::string types;
  for (size_t i = 0; i < op.operand_names().size(); ++i) {
    const char* const separator = i == 0 ? "" : ", ";
    parameters += fmt::format("{}{}", separator, type);
    operands += fmt::format("{}%{}", separator, static_cast<char>('a' + i));
    types += fmt::format("{}$A", separator);
  }
  const std::string body = fmt::format("%r = \"{}\"({}) : ({}) -> $R", op.name, operands, types);
  return [=](ValueClass values, uint64_t seed) {
    const TextTemplate program{"", parameters, type, "data", body};
    return make_text_program(program, storage, values, seed);
  };
}

bool is_elementwise(const OpInfo& op) {
  const bool attributes = std::ranges::any_of(op.attribute_specs(), [](const auto& spec) {
    return spec.default_value == hlo::AttrDefault::kRequired;
  });
  return op.category == hlo::Category::kElementwise && (op.types & hlo::kTypesQuantized) != 0 &&
         op.dialect() == "stablehlo" && op.region_names().empty() && !attributes &&
         op.code != OpCode::kUniformQuantize && op.code != OpCode::kUniformDequantize &&
         op.code != OpCode::kSelect && op.code != OpCode::kConvert;
}

}  // namespace

void add_quantized_cases(CaseList& list) {
  const std::vector<ElementType> storages = {kS4, kS8, kU8, kS16};
  constexpr static ValueClass kStored[] = {ValueClass::kOrdinary, ValueClass::kExtreme};
  add_text_cases(list, OpCode::kUniformQuantize, kQuantize, ProgramCases::kDefaultValues, storages);
  add_text_cases(list, OpCode::kUniformDequantize, kDequantize, kStored, storages);
  // Sums of products of 16-bit integers exceed the precision of the expressed type.
  const std::vector<ElementType> narrow = {kS4, kS8, kU8};
  add_text_cases(list, OpCode::kDotGeneral, kQuantizedDot, kStored, narrow);
  add_text_cases(list, OpCode::kConvolution, kQuantizedConvolution, kStored, narrow);
  for (const OpCode op : {OpCode::kDotGeneral, OpCode::kConvolution}) {
    list.left_out.push_back({"op/" + case_name_of(op) + "/s16/quantized",
                             "sums of products exceed the precision of the expressed type"});
  }
  for (const OpInfo& op : hlo::all_ops()) {
    if (!is_elementwise(op)) continue;
    VariantCases added{"op/" + case_name_of(op.code), {}, storages, kStored};
    for (const bool per_axis : {false, true}) {
      if (per_axis && !op.takes_per_axis) continue;
      added.variants.push_back(
          {per_axis ? "quantized_per_axis" : "quantized",
           [&op, per_axis](ElementType type) { return elementwise(op, type, per_axis); }});
    }
    add_variants(list, added);
  }
}

}  // namespace tenon::conformance
