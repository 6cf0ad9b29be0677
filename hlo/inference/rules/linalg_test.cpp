#include "hlo/inference/infer_test_util.h"

namespace tenon::hlo::testing {
namespace {

TEST(InferCholesky, clauses) {
  check_clauses({OpCode::kCholesky, {"f32[2,3,3]"}, {}, {}, {}, {}}, "f32[2,3,3]",
                {{"C1", [](Draft& d) { d.stated = {"f64[2,3,3]"}; },
                  "stablehlo.cholesky: C1: result type is f64[2,3,3], expected f32[2,3,3]"},
                 {"C2", [](Draft& d) { d.operands = {"f32[3]"}; },
                  "stablehlo.cholesky: C2: operand is f32[3], expected rank 2 or more"},
                 {"C3", [](Draft& d) { d.operands = {"f32[2,3]"}; },
                  "stablehlo.cholesky: C3: operand is f32[2,3], expected square matrices"}});
}

TEST(InferTriangularSolve, clauses) {
  check_clauses(
      {OpCode::kTriangularSolve,
       {"f32[2,3,3]", "f32[?,3,4]"},
       {{AttrKey::left_side, true},
        {AttrKey::lower, true},
        {AttrKey::unit_diagonal, false},
        {AttrKey::transpose_a, word(EnumKind::kTranspose, Transpose::kAdjoint)}},
       {},
       {},
       {}},
      "f32[2,3,4]",
      {{"right side",
        [](Draft& d) {
          d.attributes[AttrKey::left_side] = false;
          d.operands[1] = "f32[2,4,3]";
        },
        "f32[2,4,3]"},
       {"C1", [](Draft& d) { d.operands[1] = "f64[2,3,4]"; },
        "stablehlo.triangular_solve: C1: element types differ: f32 and f64"},
       {"C2", [](Draft& d) { d.operands[1] = "f32[3,4]"; },
        "stablehlo.triangular_solve: C2: operands are f32[2,3,3] and f32[3,4], expected the same "
        "rank of 2 or more"},
       {"C2 rank", [](Draft& d) { d.operands = {"f32[3]", "f32[3]"}; },
        "stablehlo.triangular_solve: C2: operands are f32[3] and f32[3], expected the same rank of "
        "2 or more"},
       {"C3", set(AttrKey::left_side, false),
        "stablehlo.triangular_solve: C3: a is f32[2,3,3], b is f32[?,3,4], expected equal batch "
        "dimensions, square a and its size in the columns of b"},
       {"C3 batch", [](Draft& d) { d.operands[1] = "f32[3,3,4]"; },
        "stablehlo.triangular_solve: C3: a is f32[2,3,3], b is f32[3,3,4], expected equal batch "
        "dimensions, square a and its size in the rows of b"},
       {"I6", set(AttrKey::transpose_a, word(EnumKind::kTranspose, Transpose::kInvalid)),
        "stablehlo.triangular_solve: I6: transpose_a is TRANSPOSE_INVALID, expected NO_TRANSPOSE, "
        "TRANSPOSE or ADJOINT"},
       {"C4", [](Draft& d) { d.stated = {"f32[2,3,3]"}; },
        "stablehlo.triangular_solve: C4: result type is f32[2,3,3], expected f32[2,3,4]"}});
}

TEST(InferFft, clauses) {
  const auto type = [](FftType value) { return word(EnumKind::kFftType, value); };
  check_clauses(
      {OpCode::kFft,
       {"f32[2,8]"},
       {{AttrKey::fft_type, type(FftType::kRfft)}, {AttrKey::fft_length, I64s{8}}},
       {},
       {},
       {}},
      "c64[2,5]",
      {{"complex",
        [=](Draft& d) {
          d.attributes[AttrKey::fft_type] = type(FftType::kFft);
          d.operands = {"c128[2,8]"};
        },
        "c128[2,8]"},
       {"back",
        [=](Draft& d) {
          d.attributes[AttrKey::fft_type] = type(FftType::kIrfft);
          d.operands = {"c64[2,5]"};
        },
        "f32[2,8]"},
       {"nothing",
        [](Draft& d) {
          d.operands = {"f32[2,0]"};
          d.attributes[AttrKey::fft_length] = I64s{0};
        },
        "c64[2,0]"},
       {"C1", set(AttrKey::fft_length, I64s{1, 2, 8}),
        "stablehlo.fft: C1: fft_length has length 3, expected at most the rank of f32[2,8]"},
       {"C2", [](Draft& d) { d.operands = {"f16[2,8]"}; },
        "stablehlo.fft: C2: operand is f16[2,8], expected f32 or f64"},
       {"C2 complex", set(AttrKey::fft_type, type(FftType::kIfft)),
        "stablehlo.fft: C2: operand is f32[2,8], expected complex numbers"},
       {"C2 result", [](Draft& d) { d.stated = {"c128[2,5]"}; },
        "stablehlo.fft: C2: result type is c128[2,5], expected c64[2,5]"},
       {"C3", set(AttrKey::fft_length, I64s{}),
        "stablehlo.fft: C3: fft_length has length 0, expected 1 to 3"},
       {"C3 long", set(AttrKey::fft_length, I64s{1, 1, 1, 1}),
        "stablehlo.fft: C3: fft_length has length 4, expected 1 to 3"},
       {"C4", set(AttrKey::fft_length, I64s{7}),
        "stablehlo.fft: C4: dimension 1 of f32[2,8] is 8, expected 7 as in fft_length"},
       {"C4 negative", set(AttrKey::fft_length, I64s{-8}),
        "stablehlo.fft: C4: fft_length contains -8, a negative size"},
       {"C4 complex",
        [=](Draft& d) {
          d.attributes[AttrKey::fft_type] = type(FftType::kFft);
          d.attributes[AttrKey::fft_length] = I64s{4};
          d.operands = {"c64[2,8]"};
        },
        "stablehlo.fft: C4: dimension 1 of c64[2,8] is 8, expected 4 as in fft_length"},
       {"C4 complex inverse",
        [=](Draft& d) {
          d.attributes[AttrKey::fft_type] = type(FftType::kIfft);
          d.attributes[AttrKey::fft_length] = I64s{4, 8};
          d.operands = {"c64[2,8]"};
        },
        "stablehlo.fft: C4: dimension 0 of c64[2,8] is 2, expected 4 as in fft_length"},
       {"C4 inverse",
        [=](Draft& d) {
          d.attributes[AttrKey::fft_type] = type(FftType::kIrfft);
          d.attributes[AttrKey::fft_length] = I64s{3, 8};
          d.operands = {"c64[2,5]"};
        },
        "stablehlo.fft: C4: dimension 0 of c64[2,5] is 2, expected 3 as in fft_length"},
       {"C5", [](Draft& d) { d.stated = {"c64[2,8]"}; },
        "stablehlo.fft: C5: result type is c64[2,8], expected c64[2,5]"},
       {"C5 inverse",
        [=](Draft& d) {
          d.attributes[AttrKey::fft_type] = type(FftType::kIrfft);
          d.operands = {"c64[2,8]"};
        },
        "stablehlo.fft: C5: last dimension of c64[2,8] is 8, expected 5 for a result of 8"}});
}

TEST(InferRng, clauses) {
  const auto distribution = [](RngDistribution value) {
    return word(EnumKind::kRngDistribution, value);
  };
  check_clauses({OpCode::kRng,
                 {"f32[]", "f32[]", "s64[2]"},
                 {{AttrKey::rng_distribution, distribution(RngDistribution::kNormal)}},
                 {},
                 {},
                 {{2, {3, 4}}}},
                "f32[3,4]",
                {{"unknown shape", [](Draft& d) { d.constants = {}; }, "f32[?,?]"},
                 {"stated shape",
                  [](Draft& d) {
                    d.constants = {};
                    d.stated = {"f32[3,?]"};
                  },
                  "f32[3,?]"},
                 {"C1", [](Draft& d) { d.operands[1] = "f64[]"; },
                  "stablehlo.rng: C1: element types differ: f32 and f64"},
                 {"C1 result", [](Draft& d) { d.stated = {"f64[3,4]"}; },
                  "stablehlo.rng: C1: result type is f64[3,4], expected f32[3,4]"},
                 {"I1", [](Draft& d) { d.operands[0] = "f32[1]"; },
                  "stablehlo.rng: I1: operand 0 is f32[1], expected a 0-dimensional tensor"},
                 {"I2", [](Draft& d) { d.operands[1] = "f32[1]"; },
                  "stablehlo.rng: I2: operand 1 is f32[1], expected a 0-dimensional tensor"},
                 {"I3",
                  [](Draft& d) {
                    d.constants = {};
                    d.operands[2] = "s64[]";
                  },
                  "stablehlo.rng: I3: operand 2 is s64[], expected a 1-dimensional tensor"},
                 {"I4", set(AttrKey::rng_distribution, distribution(RngDistribution::kNone)),
                  "stablehlo.rng: I4: rng_distribution has no meaning, expected UNIFORM or NORMAL"},
                 {"C2",
                  [](Draft& d) {
                    d.operands[0] = "s32[]";
                    d.operands[1] = "s32[]";
                  },
                  "stablehlo.rng: C2: a is s32[], expected floats for a NORMAL distribution"},
                 {"C3", [](Draft& d) { d.stated = {"f32[3,5]"}; },
                  "stablehlo.rng: C3: result type is f32[3,5], expected f32[3,4]"},
                 {"C3 negative", [](Draft& d) { d.constants[2] = I64s{3, -4}; },
                  "stablehlo.rng: C3: shape contains -4, a negative size"},
                 {"C3 rank",
                  [](Draft& d) {
                    d.constants = {};
                    d.stated = {"f32[3]"};
                  },
                  "stablehlo.rng: C3: result is f32[3], expected rank 2"},
                 {"C3 huge rank",
                  [](Draft& d) {
                    d.constants = {};
                    d.operands[2] = "s64[1000000000000]";
                  },
                  "stablehlo.rng: C3: shape is s64[1000000000000], from which no rank follows"}});
}

TEST(InferRngBitGenerator, clauses) {
  const auto algorithm = [](RngAlgorithm value) { return word(EnumKind::kRngAlgorithm, value); };
  check_clauses({OpCode::kRngBitGenerator,
                 {"u64[2]"},
                 {{AttrKey::rng_algorithm, algorithm(RngAlgorithm::kThreeFry)}},
                 {},
                 {"u64[2]", "u32[4]"},
                 {}},
                "u64[2], u32[4]",
                {{"Philox",
                  [=](Draft& d) {
                    d.attributes[AttrKey::rng_algorithm] = algorithm(RngAlgorithm::kPhilox);
                    d.operands = {"u64[3]"};
                    d.stated[0] = "u64[3]";
                  },
                  "u64[3], u32[4]"},
                 {"C1", [](Draft& d) { d.stated[0] = "u64[3]"; },
                  "stablehlo.rng_bit_generator: C1: type of result 0 is u64[3], expected u64[2]"},
                 {"C2", [](Draft& d) { d.operands = {"u64[3]"}; },
                  "stablehlo.rng_bit_generator: C2: initial_state is u64[3], expected 2 elements "
                  "for THREE_FRY"},
                 {"C2 Philox",
                  [=](Draft& d) {
                    d.attributes[AttrKey::rng_algorithm] = algorithm(RngAlgorithm::kPhilox);
                    d.operands = {"u64[4]"};
                  },
                  "stablehlo.rng_bit_generator: C2: initial_state is u64[4], expected 2 or 3 "
                  "elements for PHILOX and DEFAULT"},
                 {"C2 of 32 bits",
                  [](Draft& d) {
                    d.operands = {"u32[5]"};
                    d.stated[0] = "u32[5]";
                  },
                  "stablehlo.rng_bit_generator: C2: initial_state is u32[5], expected 4 elements "
                  "for THREE_FRY"},
                 {"of 32 bits",
                  [](Draft& d) {
                    d.operands = {"u32[4]"};
                    d.stated[0] = "u32[4]";
                  },
                  "u32[4], u32[4]"},
                 {"of unknown size",
                  [](Draft& d) {
                    d.operands = {"u64[?]"};
                    d.stated[0] = "u64[?]";
                  },
                  "u64[?], u32[4]"},
                 {"I2", [](Draft& d) { d.operands = {"u64[2,1]"}; },
                  "stablehlo.rng_bit_generator: I2: initial_state is u64[2,1], expected u64[2] or "
                  "u64[3]"},
                 {"I2 element", [](Draft& d) { d.operands = {"u16[8]"}; },
                  "stablehlo.rng_bit_generator: I2: initial_state is u16[8], expected u64[2] or "
                  "u64[3]"},
                 {"nothing stated", [](Draft& d) { d.stated = {}; },
                  "stablehlo.rng_bit_generator: the result type follows from nothing else and must "
                  "be stated"},
                 {"complex bits", [](Draft& d) { d.stated[1] = "c64[4]"; },
                  "stablehlo.rng_bit_generator: result 1 is c64[4], expected integers, floats"}});
}

}  // namespace
}  // namespace tenon::hlo::testing
