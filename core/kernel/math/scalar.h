// The meaning of the operations on scalars, on their bits; the builder uses it for folding and the
// interpreter for running.
//
// A scalar is held in 64 bits: integers sign-extended (unsigned ones zero-extended), floats in the
// low bits in their own format, pred as 0 or 1.
#pragma once

#include <bit>
#include <cstdint>

#include "core/kernel/ir/ops.h"

namespace tenon::kernel {

/// An operation on operands of type `from` (for convert and bitcast; otherwise of `type`).
using ScalarFunction = uint64_t (*)(ElementType type, ElementType from, uint64_t x, uint64_t y,
                                    uint64_t z);

/// Never null for an operation on a type of its set.
ScalarFunction scalar_function(OpCode code, ElementType type);

inline uint64_t evaluate(OpCode code, ElementType type, ElementType from, uint64_t x,
                         uint64_t y = 0, uint64_t z = 0) {
  return scalar_function(code, type)(type, from, x, y, z);
}

/// The number as bits of `type`, rounded or wrapped to it.
uint64_t bits_of_integer(ElementType type, int64_t value);
uint64_t bits_of_real(ElementType type, double value);
/// The low bits of a scalar, as many as the type has; and the scalar with these low bits. In memory
/// a scalar takes the storage bytes of its type.
uint64_t pattern_of(ElementType type, uint64_t bits);
uint64_t from_pattern(ElementType type, uint64_t pattern);
/// The value of a float type's bits; exact.
double real_of(ElementType type, uint64_t bits);

}  // namespace tenon::kernel
