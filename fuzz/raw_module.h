// Modules made of bytes: ops are drawn from the op table, nearly as it and the shape rules want
// them, so that most of what the bytes say passes the verifier and much of the rest fails late.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hlo/ir/raw_module.h"

namespace tenon::hlo {

/// The program that `data` stands for. Its arrays are small: what runs on it takes no time.
RawModule raw_module_of(const uint8_t* data, size_t size);

}  // namespace tenon::hlo
