// The states that may seed rng_bit_generator.
#pragma once

#include <string>

#include "hlo/ir/instruction.h"

namespace tenon::hlo {

/// The fault of the state of `op`, an rng_bit_generator; empty if it has none. The specification
/// has u64[2], for PHILOX also u64[3]; older programs state the same bits as s64 or as twice as
/// many integers of 32 bits.
///
/// The verifier also admits f32[], which StableHLO's compatibility artifacts state throughout: such
/// a program can be read and printed, but running it fails with this text.
std::string random_state_fault(const Instruction& op);

}  // namespace tenon::hlo
