// Correctly rounded conversion between numbers and the bit patterns of the element types.
//
// Rounding is to nearest, ties to even, in one step from the exact source value: conversion from
// f64 or i64 to f8 never rounds twice. Overflow and NaN follow FloatSpecials.
#pragma once

#include <cstdint>

#include "core/types/element_type.h"

namespace tenon {

/// IEEE binary128: the wide type of the reference evaluator. It represents every value of every
/// element type exactly, including 64-bit integers, and every product of two f64.
using Float128 = __float128;

/// The value of the low `bits(type)` bits of `bits`. `type` is a float type.
double decode_float(ElementType type, uint64_t bits);

/// The bit pattern of `type` nearest to `value`.
uint64_t encode_float(ElementType type, double value);
uint64_t encode_float(ElementType type, Float128 value);

/// `value` rounded to the nearest value of `type`: decode_float(encode_float(value)), but fast for
/// f32 and f64.
double round_to(ElementType type, double value);
double round_to(ElementType type, Float128 value);

/// The low `bits` of `value` as a two's complement (or unsigned) integer of that width.
int64_t wrap_integer(ElementType type, int64_t value);

/// `value` truncated toward zero, saturated to the range of the integer type `type`; NaN gives 0.
/// For 64-bit unsigned results the bits of the value are returned in the int64.
int64_t float_to_integer(ElementType type, Float128 value);

/// The least and the greatest value of an integer type; u64's greatest is returned as its bits, -1.
int64_t integer_min(ElementType type);
int64_t integer_max(ElementType type);

/// Greatest finite value of a float type.
double float_max(ElementType type);
/// Whether the format has infinities, and NaNs.
bool has_infinity(ElementType type);
bool has_nan(ElementType type);

}  // namespace tenon
