// Locations of ops in a program without location information.
#pragma once

#include <string_view>

#include "hlo/types/location.h"

namespace tenon::hlo {

/// The part that all ops of a function share.
Location function_location(std::string_view file, std::string_view function);

/// The location of op `number` of the function: an unknown location, for which position_of gives
/// "program.mlirbc: @main: op 17", without a line.
Location op_location(Location function, uint32_t number);

}  // namespace tenon::hlo
