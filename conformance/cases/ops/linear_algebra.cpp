// Linear algebra: Fourier transforms, Cholesky factors, triangular systems.
#include "conformance/cases/text_program.h"

namespace tenon::conformance {
namespace {

using hlo::OpCode;
using enum ElementType;

// `$T` is the complex type.
constexpr TextTemplate kFft[] = {
    {"length1", "3x1x$T", "3x1x$T", "data",
     "%r = stablehlo.fft %a, type = FFT, length = [1] : ($A) -> $R"},
    {"length2", "3x2x$T", "3x2x$T", "data",
     "%r = stablehlo.fft %a, type = FFT, length = [2] : ($A) -> $R"},
    {"length8", "3x8x$T", "3x8x$T", "data",
     "%r = stablehlo.fft %a, type = FFT, length = [8] : ($A) -> $R"},
    {"length13", "3x13x$T", "3x13x$T", "data",
     "%r = stablehlo.fft %a, type = FFT, length = [13] : ($A) -> $R"},
    {"length30", "3x30x$T", "3x30x$T", "data",
     "%r = stablehlo.fft %a, type = FFT, length = [30] : ($A) -> $R"},
    {"length64", "3x64x$T", "3x64x$T", "data",
     "%r = stablehlo.fft %a, type = FFT, length = [64] : ($A) -> $R"},
    {"length97", "3x97x$T", "3x97x$T", "data",
     "%r = stablehlo.fft %a, type = FFT, length = [97] : ($A) -> $R"},
    {"length128", "3x128x$T", "3x128x$T", "data",
     "%r = stablehlo.fft %a, type = FFT, length = [128] : ($A) -> $R"},
    {"inverse8", "3x8x$T", "3x8x$T", "data",
     "%r = stablehlo.fft %a, type = IFFT, length = [8] : ($A) -> $R"},
    {"inverse13", "3x13x$T", "3x13x$T", "data",
     "%r = stablehlo.fft %a, type = IFFT, length = [13] : ($A) -> $R"},
    {"inverse30", "3x30x$T", "3x30x$T", "data",
     "%r = stablehlo.fft %a, type = IFFT, length = [30] : ($A) -> $R"},
    {"rank2", "2x6x8x$T", "2x6x8x$T", "data",
     "%r = stablehlo.fft %a, type = FFT, length = [6, 8] : ($A) -> $R"},
    {"rank3", "3x4x5x$T", "3x4x5x$T", "data",
     "%r = stablehlo.fft %a, type = FFT, length = [3, 4, 5] : ($A) -> $R"},
    {"inverse_rank2", "2x6x8x$T", "2x6x8x$T", "data",
     "%r = stablehlo.fft %a, type = IFFT, length = [6, 8] : ($A) -> $R"},
};

constexpr TextTemplate kRealFft32[] = {
    {"real1", "3x1xf32", "3x1xcomplex<f32>", "data",
     "%r = stablehlo.fft %a, type = RFFT, length = [1] : ($A) -> $R"},
    {"real2", "3x2xf32", "3x2xcomplex<f32>", "data",
     "%r = stablehlo.fft %a, type = RFFT, length = [2] : ($A) -> $R"},
    {"real8", "3x8xf32", "3x5xcomplex<f32>", "data",
     "%r = stablehlo.fft %a, type = RFFT, length = [8] : ($A) -> $R"},
    {"real13", "3x13xf32", "3x7xcomplex<f32>", "data",
     "%r = stablehlo.fft %a, type = RFFT, length = [13] : ($A) -> $R"},
    {"real30", "3x30xf32", "3x16xcomplex<f32>", "data",
     "%r = stablehlo.fft %a, type = RFFT, length = [30] : ($A) -> $R"},
    {"real64", "3x64xf32", "3x33xcomplex<f32>", "data",
     "%r = stablehlo.fft %a, type = RFFT, length = [64] : ($A) -> $R"},
    {"real_rank2", "2x6x8xf32", "2x6x5xcomplex<f32>", "data",
     "%r = stablehlo.fft %a, type = RFFT, length = [6, 8] : ($A) -> $R"},
    {"inverse_real2", "3x2xcomplex<f32>", "3x2xf32", "data",
     "%r = stablehlo.fft %a, type = IRFFT, length = [2] : ($A) -> $R"},
    {"inverse_real8", "3x5xcomplex<f32>", "3x8xf32", "data",
     "%r = stablehlo.fft %a, type = IRFFT, length = [8] : ($A) -> $R"},
    {"inverse_real13", "3x7xcomplex<f32>", "3x13xf32", "data",
     "%r = stablehlo.fft %a, type = IRFFT, length = [13] : ($A) -> $R"},
    {"inverse_real30", "3x16xcomplex<f32>", "3x30xf32", "data",
     "%r = stablehlo.fft %a, type = IRFFT, length = [30] : ($A) -> $R"},
    {"inverse_real64", "3x33xcomplex<f32>", "3x64xf32", "data",
     "%r = stablehlo.fft %a, type = IRFFT, length = [64] : ($A) -> $R"},
    {"inverse_real_rank2", "2x6x5xcomplex<f32>", "2x6x8xf32", "data",
     "%r = stablehlo.fft %a, type = IRFFT, length = [6, 8] : ($A) -> $R"},
};
constexpr TextTemplate kRealFft64[] = {
    {"real1", "3x1xf64", "3x1xcomplex<f64>", "data",
     "%r = stablehlo.fft %a, type = RFFT, length = [1] : ($A) -> $R"},
    {"real2", "3x2xf64", "3x2xcomplex<f64>", "data",
     "%r = stablehlo.fft %a, type = RFFT, length = [2] : ($A) -> $R"},
    {"real8", "3x8xf64", "3x5xcomplex<f64>", "data",
     "%r = stablehlo.fft %a, type = RFFT, length = [8] : ($A) -> $R"},
    {"real13", "3x13xf64", "3x7xcomplex<f64>", "data",
     "%r = stablehlo.fft %a, type = RFFT, length = [13] : ($A) -> $R"},
    {"real30", "3x30xf64", "3x16xcomplex<f64>", "data",
     "%r = stablehlo.fft %a, type = RFFT, length = [30] : ($A) -> $R"},
    {"real64", "3x64xf64", "3x33xcomplex<f64>", "data",
     "%r = stablehlo.fft %a, type = RFFT, length = [64] : ($A) -> $R"},
    {"real_rank2", "2x6x8xf64", "2x6x5xcomplex<f64>", "data",
     "%r = stablehlo.fft %a, type = RFFT, length = [6, 8] : ($A) -> $R"},
    {"inverse_real2", "3x2xcomplex<f64>", "3x2xf64", "data",
     "%r = stablehlo.fft %a, type = IRFFT, length = [2] : ($A) -> $R"},
    {"inverse_real8", "3x5xcomplex<f64>", "3x8xf64", "data",
     "%r = stablehlo.fft %a, type = IRFFT, length = [8] : ($A) -> $R"},
    {"inverse_real13", "3x7xcomplex<f64>", "3x13xf64", "data",
     "%r = stablehlo.fft %a, type = IRFFT, length = [13] : ($A) -> $R"},
    {"inverse_real30", "3x16xcomplex<f64>", "3x30xf64", "data",
     "%r = stablehlo.fft %a, type = IRFFT, length = [30] : ($A) -> $R"},
    {"inverse_real64", "3x33xcomplex<f64>", "3x64xf64", "data",
     "%r = stablehlo.fft %a, type = IRFFT, length = [64] : ($A) -> $R"},
    {"inverse_real_rank2", "2x6x5xcomplex<f64>", "2x6x8xf64", "data",
     "%r = stablehlo.fft %a, type = IRFFT, length = [6, 8] : ($A) -> $R"},
};

constexpr TextTemplate kCholesky[] = {
    {"lower", "7x7x$T", "7x7x$T", "spd", "%r = stablehlo.cholesky %a, lower = true : $A"},
    {"upper", "7x7x$T", "7x7x$T", "spd", "%r = stablehlo.cholesky %a, lower = false : $A"},
    {"one", "1x1x$T", "1x1x$T", "spd", "%r = stablehlo.cholesky %a, lower = true : $A"},
    {"batch", "2x3x5x5x$T", "2x3x5x5x$T", "spd", "%r = stablehlo.cholesky %a, lower = true : $A"},
    {"large", "33x33x$T", "33x33x$T", "spd", "%r = stablehlo.cholesky %a, lower = true : $A"},
};

constexpr TextTemplate kTriangularSolve[] = {
    {"left_lower", "6x6x$T, 6x4x$T", "6x4x$T", "triangular data",
     "%r = \"stablehlo.triangular_solve\"(%a, %b) {left_side = true, lower = true, "
     "unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : ($A, $B) -> $R"},
    {"left_lower_transpose", "6x6x$T, 6x4x$T", "6x4x$T", "triangular data",
     "%r = \"stablehlo.triangular_solve\"(%a, %b) {left_side = true, lower = true, "
     "unit_diagonal = false, transpose_a = #stablehlo<transpose TRANSPOSE>} : ($A, $B) -> $R"},
    {"left_lower_adjoint", "6x6x$T, 6x4x$T", "6x4x$T", "triangular data",
     "%r = \"stablehlo.triangular_solve\"(%a, %b) {left_side = true, lower = true, "
     "unit_diagonal = false, transpose_a = #stablehlo<transpose ADJOINT>} : ($A, $B) -> $R"},
    {"left_lower_unit", "6x6x$T, 6x4x$T", "6x4x$T", "triangular data",
     "%r = \"stablehlo.triangular_solve\"(%a, %b) {left_side = true, lower = true, "
     "unit_diagonal = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : ($A, $B) -> $R"},
    {"left_lower_unit_transpose", "6x6x$T, 6x4x$T", "6x4x$T", "triangular data",
     "%r = \"stablehlo.triangular_solve\"(%a, %b) {left_side = true, lower = true, "
     "unit_diagonal = true, transpose_a = #stablehlo<transpose TRANSPOSE>} : ($A, $B) -> $R"},
    {"left_lower_unit_adjoint", "6x6x$T, 6x4x$T", "6x4x$T", "triangular data",
     "%r = \"stablehlo.triangular_solve\"(%a, %b) {left_side = true, lower = true, "
     "unit_diagonal = true, transpose_a = #stablehlo<transpose ADJOINT>} : ($A, $B) -> $R"},
    {"left_upper", "6x6x$T, 6x4x$T", "6x4x$T", "triangular data",
     "%r = \"stablehlo.triangular_solve\"(%a, %b) {left_side = true, lower = false, "
     "unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : ($A, $B) -> $R"},
    {"left_upper_transpose", "6x6x$T, 6x4x$T", "6x4x$T", "triangular data",
     "%r = \"stablehlo.triangular_solve\"(%a, %b) {left_side = true, lower = false, "
     "unit_diagonal = false, transpose_a = #stablehlo<transpose TRANSPOSE>} : ($A, $B) -> $R"},
    {"left_upper_adjoint", "6x6x$T, 6x4x$T", "6x4x$T", "triangular data",
     "%r = \"stablehlo.triangular_solve\"(%a, %b) {left_side = true, lower = false, "
     "unit_diagonal = false, transpose_a = #stablehlo<transpose ADJOINT>} : ($A, $B) -> $R"},
    {"left_upper_unit", "6x6x$T, 6x4x$T", "6x4x$T", "triangular data",
     "%r = \"stablehlo.triangular_solve\"(%a, %b) {left_side = true, lower = false, "
     "unit_diagonal = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : ($A, $B) -> $R"},
    {"left_upper_unit_transpose", "6x6x$T, 6x4x$T", "6x4x$T", "triangular data",
     "%r = \"stablehlo.triangular_solve\"(%a, %b) {left_side = true, lower = false, "
     "unit_diagonal = true, transpose_a = #stablehlo<transpose TRANSPOSE>} : ($A, $B) -> $R"},
    {"left_upper_unit_adjoint", "6x6x$T, 6x4x$T", "6x4x$T", "triangular data",
     "%r = \"stablehlo.triangular_solve\"(%a, %b) {left_side = true, lower = false, "
     "unit_diagonal = true, transpose_a = #stablehlo<transpose ADJOINT>} : ($A, $B) -> $R"},
    {"right_lower", "6x6x$T, 4x6x$T", "4x6x$T", "triangular data",
     "%r = \"stablehlo.triangular_solve\"(%a, %b) {left_side = false, lower = true, "
     "unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : ($A, $B) -> $R"},
    {"right_lower_transpose", "6x6x$T, 4x6x$T", "4x6x$T", "triangular data",
     "%r = \"stablehlo.triangular_solve\"(%a, %b) {left_side = false, lower = true, "
     "unit_diagonal = false, transpose_a = #stablehlo<transpose TRANSPOSE>} : ($A, $B) -> $R"},
    {"right_lower_adjoint", "6x6x$T, 4x6x$T", "4x6x$T", "triangular data",
     "%r = \"stablehlo.triangular_solve\"(%a, %b) {left_side = false, lower = true, "
     "unit_diagonal = false, transpose_a = #stablehlo<transpose ADJOINT>} : ($A, $B) -> $R"},
    {"right_lower_unit", "6x6x$T, 4x6x$T", "4x6x$T", "triangular data",
     "%r = \"stablehlo.triangular_solve\"(%a, %b) {left_side = false, lower = true, "
     "unit_diagonal = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : ($A, $B) -> $R"},
    {"right_lower_unit_transpose", "6x6x$T, 4x6x$T", "4x6x$T", "triangular data",
     "%r = \"stablehlo.triangular_solve\"(%a, %b) {left_side = false, lower = true, "
     "unit_diagonal = true, transpose_a = #stablehlo<transpose TRANSPOSE>} : ($A, $B) -> $R"},
    {"right_lower_unit_adjoint", "6x6x$T, 4x6x$T", "4x6x$T", "triangular data",
     "%r = \"stablehlo.triangular_solve\"(%a, %b) {left_side = false, lower = true, "
     "unit_diagonal = true, transpose_a = #stablehlo<transpose ADJOINT>} : ($A, $B) -> $R"},
    {"right_upper", "6x6x$T, 4x6x$T", "4x6x$T", "triangular data",
     "%r = \"stablehlo.triangular_solve\"(%a, %b) {left_side = false, lower = false, "
     "unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : ($A, $B) -> $R"},
    {"right_upper_transpose", "6x6x$T, 4x6x$T", "4x6x$T", "triangular data",
     "%r = \"stablehlo.triangular_solve\"(%a, %b) {left_side = false, lower = false, "
     "unit_diagonal = false, transpose_a = #stablehlo<transpose TRANSPOSE>} : ($A, $B) -> $R"},
    {"right_upper_adjoint", "6x6x$T, 4x6x$T", "4x6x$T", "triangular data",
     "%r = \"stablehlo.triangular_solve\"(%a, %b) {left_side = false, lower = false, "
     "unit_diagonal = false, transpose_a = #stablehlo<transpose ADJOINT>} : ($A, $B) -> $R"},
    {"right_upper_unit", "6x6x$T, 4x6x$T", "4x6x$T", "triangular data",
     "%r = \"stablehlo.triangular_solve\"(%a, %b) {left_side = false, lower = false, "
     "unit_diagonal = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : ($A, $B) -> $R"},
    {"right_upper_unit_transpose", "6x6x$T, 4x6x$T", "4x6x$T", "triangular data",
     "%r = \"stablehlo.triangular_solve\"(%a, %b) {left_side = false, lower = false, "
     "unit_diagonal = true, transpose_a = #stablehlo<transpose TRANSPOSE>} : ($A, $B) -> $R"},
    {"right_upper_unit_adjoint", "6x6x$T, 4x6x$T", "4x6x$T", "triangular data",
     "%r = \"stablehlo.triangular_solve\"(%a, %b) {left_side = false, lower = false, "
     "unit_diagonal = true, transpose_a = #stablehlo<transpose ADJOINT>} : ($A, $B) -> $R"},
    {"batch", "2x3x5x5x$T, 2x3x5x2x$T", "2x3x5x2x$T", "triangular data",
     "%r = \"stablehlo.triangular_solve\"(%a, %b) {left_side = true, lower = true, "
     "unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : ($A, $B) -> $R"},
    {"large", "33x33x$T, 33x5x$T", "33x5x$T", "triangular data",
     "%r = \"stablehlo.triangular_solve\"(%a, %b) {left_side = true, lower = true, "
     "unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : ($A, $B) -> $R"},
    {"one", "1x1x$T, 1x3x$T", "1x3x$T", "triangular data",
     "%r = \"stablehlo.triangular_solve\"(%a, %b) {left_side = true, lower = true, "
     "unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : ($A, $B) -> $R"},
};

}  // namespace

void add_linear_algebra_cases(CaseList& list) {
  for (const ElementType type : types_of(OpCode::kFft)) {
    if (!is_complex(type) && type != kF32 && type != kF64)
      list.left_out.push_back({cell_of(OpCode::kFft, type), "the op takes f32, f64 and complex"});
  }
  add_text_cases(list, OpCode::kFft, kFft, kOrdinaryValues, {kC64, kC128});
  add_text_cases(list, OpCode::kFft, kRealFft32, kOrdinaryValues, {kF32});
  add_text_cases(list, OpCode::kFft, kRealFft64, kOrdinaryValues, {kF64});
  add_text_cases(list, OpCode::kCholesky, kCholesky, kOrdinaryValues);
  add_text_cases(list, OpCode::kTriangularSolve, kTriangularSolve, kOrdinaryValues);
}

}  // namespace tenon::conformance
