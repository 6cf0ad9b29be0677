// What may seed rng_bit_generator.
#pragma once

#include <string>

#include "hlo/ir/instruction.h"

namespace tenon::hlo {

/// What is wrong with the state of `op`, an rng_bit_generator, or nothing. The specification has
/// u64[2], of PHILOX also u64[3]; older programs state the same bits as s64 or as twice as many
/// integers of 32 bits.
///
/// The verifier also admits f32[], which StableHLO's compatibility artifacts state throughout: such
/// a program can be read and printed, and what runs programs refuses it by this text.
std::string random_state_fault(const Instruction& op);

}  // namespace tenon::hlo
