// Valid states of rng_bit_generator.
#pragma once

#include <string>

#include "hlo/ir/instruction.h"

namespace tenon::hlo {

/// The reason why the state of `op`, an rng_bit_generator, is invalid; empty if it is valid. The
/// specification has u64[2], for PHILOX also u64[3]; older programs state the same bits as s64 or
/// as twice as many 32-bit integers.
///
/// The verifier also accepts f32[], which StableHLO's compatibility artifacts use throughout: such
/// a program can be read and printed, but running it fails with this text.
std::string random_state_fault(const Instruction& op);

}  // namespace tenon::hlo
