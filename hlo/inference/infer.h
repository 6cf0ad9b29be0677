// hlo/inference/: shape inference: result types, and the constraints of the specification.
//
// Shape rules compute the result types of an instruction from its operands, attributes, regions
// and, if they are an input of the op, its stated result types. Each rule checks the constraints of
// its section of the StableHLO specification and cites the label of a violated one ("C6: …").
//
// A rule may rely on the structure that the op table states (number of operands, kinds and presence
// of attributes, number of regions), which verify_structure has checked before.
#pragma once

#include "hlo/ir/instruction.h"

namespace tenon::hlo::infer {

using Types = Result<std::vector<Type>>;

Types abs(const Instruction& op);
Types after_all(const Instruction& op);
Types all_gather(const Instruction& op);
Types all_reduce(const Instruction& op);
Types all_to_all(const Instruction& op);
Types async_done(const Instruction& op);
Types async_start(const Instruction& op);
Types batch_norm_grad(const Instruction& op);
Types batch_norm_inference(const Instruction& op);
Types batch_norm_training(const Instruction& op);
Types binary(const Instruction& op);
Types bitcast_convert(const Instruction& op);
Types broadcast(const Instruction& op);
Types broadcast_in_dim(const Instruction& op);
Types call(const Instruction& op);
Types case_op(const Instruction& op);
Types chlo_broadcast(const Instruction& op);
Types chlo_constant_like(const Instruction& op);
Types chlo_ragged_dot(const Instruction& op);
Types chlo_scan(const Instruction& op);
Types chlo_top_k(const Instruction& op);
Types cholesky(const Instruction& op);
Types clamp(const Instruction& op);
Types collective_broadcast(const Instruction& op);
Types collective_permute(const Instruction& op);
Types collective_reduce(const Instruction& op);
Types compare(const Instruction& op);
Types complex(const Instruction& op);
Types composite(const Instruction& op);
Types concatenate(const Instruction& op);
Types constant(const Instruction& op);
Types convert(const Instruction& op);
Types convolution(const Instruction& op);
Types create_token(const Instruction& op);
Types cross_replica_sum(const Instruction& op);
Types custom_call(const Instruction& op);
Types dot(const Instruction& op);
Types dot_general(const Instruction& op);
Types dynamic_broadcast_in_dim(const Instruction& op);
Types dynamic_conv(const Instruction& op);
Types dynamic_gather(const Instruction& op);
Types dynamic_iota(const Instruction& op);
Types dynamic_pad(const Instruction& op);
Types dynamic_reshape(const Instruction& op);
Types dynamic_slice(const Instruction& op);
Types dynamic_update_slice(const Instruction& op);
Types einsum(const Instruction& op);
Types fft(const Instruction& op);
Types fusion(const Instruction& op);
Types gather(const Instruction& op);
Types get_dimension_size(const Instruction& op);
Types get_tuple_element(const Instruction& op);
Types if_op(const Instruction& op);
Types infeed(const Instruction& op);
Types iota(const Instruction& op);
Types is_finite(const Instruction& op);
Types map(const Instruction& op);
Types optimization_barrier(const Instruction& op);
Types outfeed(const Instruction& op);
Types pad(const Instruction& op);
Types parameter(const Instruction& op);
Types process_id(const Instruction& op);
Types real_dynamic_slice(const Instruction& op);
Types real_imag(const Instruction& op);
Types recv(const Instruction& op);
Types reduce(const Instruction& op);
Types reduce_precision(const Instruction& op);
Types reduce_scatter(const Instruction& op);
Types reduce_window(const Instruction& op);
Types reshape(const Instruction& op);
Types return_op(const Instruction& op);
Types reverse(const Instruction& op);
Types rng(const Instruction& op);
Types rng_bit_generator(const Instruction& op);
Types scatter(const Instruction& op);
Types select(const Instruction& op);
Types select_and_scatter(const Instruction& op);
Types send(const Instruction& op);
Types set_dimension_size(const Instruction& op);
Types slice(const Instruction& op);
Types sort(const Instruction& op);
Types torch_index_select(const Instruction& op);
Types transpose(const Instruction& op);
Types triangular_solve(const Instruction& op);
Types tuple(const Instruction& op);
Types unary(const Instruction& op);
Types unary_einsum(const Instruction& op);
Types uniform_dequantize(const Instruction& op);
Types uniform_quantize(const Instruction& op);
Types while_op(const Instruction& op);

/// The number of operands of a chlo.scan that are scanned; the others are initial carries. It
/// follows from the body, which takes the scanned operands without the scanned dimension.
size_t scan_input_count(const Instruction& op);

}  // namespace tenon::hlo::infer
