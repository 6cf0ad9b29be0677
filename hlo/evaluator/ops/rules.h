// The evaluator's functions that `.evaluate` of the op table names; they define the meaning of each
// op.
//
// Each returns the results of one instruction from the values of its operands. The instruction must
// be verified. The functions may be called from any thread, if each thread has its own Evaluator.
// An elementwise op on scalars names a row of hlo/evaluator/scalars/element_functions.h instead; a
// decomposable op without such a function is evaluated by its decomposition.
#pragma once

#include "hlo/evaluator/evaluator.h"

namespace tenon::hlo {

/// An instruction that is being evaluated.
struct EvalCall {
  Evaluator& e;
  const Instruction& op;
  const std::vector<EvalValue>& operands;
  const EvalFrame& frame;
};

namespace evaluate {

using Rule = Result<std::vector<EvalValue>>(const EvalCall& call);

// Elementwise ops with operands of more than one shape, or a region.
Rule clamp, map;
// Shape.
Rule bitcast_convert, broadcast_in_dim, concatenate, constant, dynamic_slice, dynamic_update_slice,
    gather, iota, pad, reshape, reverse, scatter, set_dimension_size, slice, transpose;
// Reductions and contractions.
Rule convolution, dot_general, reduce, reduce_window, select_and_scatter, sort;
// Linear algebra and random numbers.
Rule fft, rng_bit_generator;
// Control flow, calls and structure.
Rule call, case_op, composite, custom_call, fusion, get_tuple_element, if_op, optimization_barrier,
    tuple, while_op;
// Between processes, and with the host.
Rule all_gather, all_reduce, all_to_all, async_done, async_start, collective_broadcast,
    collective_permute, collective_reduce, infeed, outfeed, partition_id, recv, reduce_scatter,
    replica_id, send, token;

}  // namespace evaluate
}  // namespace tenon::hlo
