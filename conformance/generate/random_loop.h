// Random programs of a loop whose state may be updated in place.
#pragma once

#include <cstdint>
#include <string>

namespace tenon::conformance {

/// A function @main of s32: a loop of three iterations over two vectors and two matrices. Slices
/// and scattered updates are stored into arrays that are also read before, after, or never. The
/// loop also swaps values, and has branches that return a value unchanged and inner loops. With
/// `is_long` the matrices are too large for a workgroup (hlo/lower/schedules/control_form.h) and
/// rarely changed as a whole. The same seed gives the same text.
std::string random_loop(uint64_t seed, bool is_long);

}  // namespace tenon::conformance
