// Modules made from bytes: ops are drawn from the op table, nearly as it and the shape rules
// require, so that most of them pass the verifier and many others fail late.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hlo/ir/raw_module.h"

namespace tenon::hlo {

/// The program for `data`. Its arrays are small, so that running it takes no time.
RawModule raw_module_of(const uint8_t* data, size_t size);

}  // namespace tenon::hlo
