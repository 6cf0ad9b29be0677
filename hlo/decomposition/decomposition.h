// hlo/decomposition/: decomposable ops written in simpler ops.
//
// A decomposition is written once and is independent of targets. It builds the op's results with
// the builder; it may use the operands of `op` at the builder's insertion point. The evaluator
// applies a decomposition to single values, the pass `decompose` applies it to a Module.
#pragma once

#include "hlo/builder/builder.h"

namespace tenon::hlo::decomposition {

using Values = Result<std::vector<Value>>;

Values batch_norm_grad(Builder& b, const Instruction& op);
Values batch_norm_inference(Builder& b, const Instruction& op);
Values batch_norm_training(Builder& b, const Instruction& op);
Values broadcast(Builder& b, const Instruction& op);
Values chlo__asin_acos_kernel(Builder& b, const Instruction& op);
Values chlo_acos(Builder& b, const Instruction& op);
Values chlo_acosh(Builder& b, const Instruction& op);
Values chlo_asin(Builder& b, const Instruction& op);
Values chlo_asinh(Builder& b, const Instruction& op);
Values chlo_atan(Builder& b, const Instruction& op);
Values chlo_atanh(Builder& b, const Instruction& op);
Values chlo_bessel_i1e(Builder& b, const Instruction& op);
Values chlo_broadcast(Builder& b, const Instruction& op);
Values chlo_conj(Builder& b, const Instruction& op);
Values chlo_constant(Builder& b, const Instruction& op);
Values chlo_constant_like(Builder& b, const Instruction& op);
Values chlo_cosh(Builder& b, const Instruction& op);
Values chlo_digamma(Builder& b, const Instruction& op);
Values chlo_erf_inv(Builder& b, const Instruction& op);
Values chlo_is_inf(Builder& b, const Instruction& op);
Values chlo_is_neg_inf(Builder& b, const Instruction& op);
Values chlo_is_pos_inf(Builder& b, const Instruction& op);
Values chlo_lgamma(Builder& b, const Instruction& op);
Values chlo_mulhi(Builder& b, const Instruction& op);
Values chlo_next_after(Builder& b, const Instruction& op);
Values chlo_polygamma(Builder& b, const Instruction& op);
Values chlo_ragged_dot(Builder& b, const Instruction& op);
Values chlo_scan(Builder& b, const Instruction& op);
Values chlo_sinh(Builder& b, const Instruction& op);
Values chlo_square(Builder& b, const Instruction& op);
Values chlo_tan(Builder& b, const Instruction& op);
Values chlo_top_k(Builder& b, const Instruction& op);
Values chlo_zeta(Builder& b, const Instruction& op);
Values cholesky(Builder& b, const Instruction& op);
/// Whether a dot_general or a convolution of complex numbers is so large that tiles of real numbers
/// pay; and one as that of real numbers.
bool is_large_complex_product(const Instruction& op);
Values complex_product(Builder& b, const Instruction& op);
Values create_token(Builder& b, const Instruction& op);
Values cross_replica_sum(Builder& b, const Instruction& op);
Values dot(Builder& b, const Instruction& op);
Values dynamic_broadcast_in_dim(Builder& b, const Instruction& op);
Values dynamic_conv(Builder& b, const Instruction& op);
Values dynamic_gather(Builder& b, const Instruction& op);
Values dynamic_iota(Builder& b, const Instruction& op);
Values dynamic_pad(Builder& b, const Instruction& op);
Values dynamic_reshape(Builder& b, const Instruction& op);
Values einsum(Builder& b, const Instruction& op);
Values fft(Builder& b, const Instruction& op);
Values get_dimension_size(Builder& b, const Instruction& op);
/// Any op on quantized types: dequantizes, runs the op on expressed types, quantizes. An op with
/// regions moves stored integers, and its regions compute on quantized values.
Values quantized(Builder& b, const Instruction& op);
Values real_dynamic_slice(Builder& b, const Instruction& op);
/// Draws numbers from the builder's random state (Builder::set_random_state), and advances it.
Values rng(Builder& b, const Instruction& op);
Values torch_index_select(Builder& b, const Instruction& op);
Values triangular_solve(Builder& b, const Instruction& op);
Values unary_einsum(Builder& b, const Instruction& op);
Values uniform_dequantize(Builder& b, const Instruction& op);
Values uniform_quantize(Builder& b, const Instruction& op);

}  // namespace tenon::hlo::decomposition
