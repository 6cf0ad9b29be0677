// Batch normalization, and random numbers.
#include "conformance/cases/text_program.h"

namespace tenon::conformance {
namespace {

using hlo::OpCode;

constexpr TextTemplate kInference[] = {
    {"minor_feature", "3x4x5x$T, 5x$T, 5x$T, 5x$T, 5x$T", "3x4x5x$T",
     "data data data data positive",
     "%r = \"stablehlo.batch_norm_inference\"(%a, %b, %c, %d, %e) "
     "{epsilon = 0.001 : f32, feature_index = 2 : i64} : ($A, $B, $C, $D, $E) -> $R"},
    {"middle_feature", "3x4x5x$T, 4x$T, 4x$T, 4x$T, 4x$T", "3x4x5x$T",
     "data data data data positive",
     "%r = \"stablehlo.batch_norm_inference\"(%a, %b, %c, %d, %e) "
     "{epsilon = 0.001 : f32, feature_index = 1 : i64} : ($A, $B, $C, $D, $E) -> $R"},
};
constexpr TextTemplate kTraining[] = {
    {"minor_feature", "6x7x5x$T, 5x$T, 5x$T", "6x7x5x$T, 5x$T, 5x$T", "unit",
     "%r, %s, %u = \"stablehlo.batch_norm_training\"(%a, %b, %c) "
     "{epsilon = 0.001 : f32, feature_index = 2 : i64} : ($A, $B, $C) -> ($R, $S, $U)"},
    {"middle_feature", "6x4x7x$T, 4x$T, 4x$T", "6x4x7x$T, 4x$T, 4x$T", "unit",
     "%r, %s, %u = \"stablehlo.batch_norm_training\"(%a, %b, %c) "
     "{epsilon = 0.001 : f32, feature_index = 1 : i64} : ($A, $B, $C) -> ($R, $S, $U)"},
};
constexpr TextTemplate kGrad[] = {
    {"minor_feature", "6x7x5x$T, 5x$T, 5x$T, 5x$T, 6x7x5x$T", "6x7x5x$T, 5x$T, 5x$T",
     "unit unit unit positive unit",
     "%r, %s, %u = \"stablehlo.batch_norm_grad\"(%a, %b, %c, %d, %e) "
     "{epsilon = 0.001 : f32, feature_index = 2 : i64} : ($A, $B, $C, $D, $E) -> ($R, $S, $U)"},
    {"middle_feature", "6x4x7x$T, 4x$T, 4x$T, 4x$T, 6x4x7x$T", "6x4x7x$T, 4x$T, 4x$T",
     "unit unit unit positive unit",
     "%r, %s, %u = \"stablehlo.batch_norm_grad\"(%a, %b, %c, %d, %e) "
     "{epsilon = 0.001 : f32, feature_index = 1 : i64} : ($A, $B, $C, $D, $E) -> ($R, $S, $U)"},
};

// The states are 64-bit numbers: the generated bits depend on all of them.
constexpr TextTemplate kRngBits[] = {
    {"three_fry", "2xui64", "2xui64, 7x5x$T", "data",
     "%r, %s = stablehlo.rng_bit_generator %a, algorithm = THREE_FRY : ($A) -> ($R, $S)"},
    {"philox", "2xui64", "2xui64, 7x5x$T", "data",
     "%r, %s = stablehlo.rng_bit_generator %a, algorithm = PHILOX : ($A) -> ($R, $S)"},
    {"philox_state3", "3xui64", "3xui64, 7x5x$T", "data",
     "%r, %s = stablehlo.rng_bit_generator %a, algorithm = PHILOX : ($A) -> ($R, $S)"},
    {"three_fry_scalar", "2xui64", "2xui64, $T", "data",
     "%r, %s = stablehlo.rng_bit_generator %a, algorithm = THREE_FRY : ($A) -> ($R, $S)"},
    {"three_fry_long", "2xui64", "2xui64, 1027x$T", "data",
     "%r, %s = stablehlo.rng_bit_generator %a, algorithm = THREE_FRY : ($A) -> ($R, $S)"},
};

constexpr TextTemplate kRng[] = {
    {"uniform", "$T, $T, 1xi64", "4096x$T", "list:0 list:1 list:4096",
     "%r = stablehlo.rng %a, %b, %c, distribution = UNIFORM : ($A, $B, $C) -> $R"},
    {"normal", "$T, $T, 1xi64", "4096x$T", "list:0 list:1 list:4096",
     "%r = stablehlo.rng %a, %b, %c, distribution = NORMAL : ($A, $B, $C) -> $R"},
};
constexpr TextTemplate kRngIntegers[] = {
    {"uniform", "$T, $T, 1xi64", "4096x$T", "list:0 list:7 list:4096",
     "%r = stablehlo.rng %a, %b, %c, distribution = UNIFORM : ($A, $B, $C) -> $R"},
};

}  // namespace

void add_normalization_cases(CaseList& list) {
  add_text_cases(list, OpCode::kBatchNormInference, kInference, kOrdinaryValues);
  add_text_cases(list, OpCode::kBatchNormTraining, kTraining, kOrdinaryValues);
  add_text_cases(list, OpCode::kBatchNormGrad, kGrad, kOrdinaryValues);
}

void add_random_bits_cases(CaseList& list) {
  constexpr static ValueClass kStates[] = {ValueClass::kOrdinary, ValueClass::kExtreme};
  add_text_cases(list, OpCode::kRngBitGenerator, kRngBits, kStates);
  std::vector<ElementType> floats;
  std::vector<ElementType> integers;
  for (const ElementTypeInfo& info : element_types()) {
    if (is_float(info.type) && bit_width(info.type) >= 16) floats.push_back(info.type);
    if (is_integer(info.type) && bit_width(info.type) >= 8) integers.push_back(info.type);
    const bool is_narrow = bit_width(info.type) < (is_float(info.type) ? 16 : 8);
    if (admits(OpCode::kRng, info.type) && is_narrow)
      list.left_out.push_back(
          {cell_of(OpCode::kRng, info.type), "it has too few values for a test of moments"});
  }
  add_text_cases(list, OpCode::kRng, kRng, kOrdinaryValues, floats);
  add_text_cases(list, OpCode::kRng, kRngIntegers, kOrdinaryValues, integers);
}

}  // namespace tenon::conformance
