// Random programs of a loop whose state may be updated in place.
#pragma once

#include <cstdint>
#include <string>

namespace tenon::conformance {

/// A function @main of s32: a loop of three turns over two vectors and two matrices, in which
/// slices are stored and updates scattered into what is read before, behind or never again; with
/// what changes places, branches that give a value as it is, loops within. Matrices of a `is_long`
/// one are more than a workgroup's (hlo/lower/schedules/control_form.h), and seldom changed as a
/// whole. The same text for the same seed.
std::string random_loop(uint64_t seed, bool is_long);

}  // namespace tenon::conformance
