// NumPy's .npy files (format versions 1.0 to 3.0).
//
// Types that NumPy lacks are written as ml_dtypes writes them: bf16 as '<V2', 8-bit and narrower
// floats and sub-byte integers as '|V1'. Such a file does not state its type, so the reader must be
// given it.
#pragma once

#include <string>
#include <string_view>

#include "core/types/literal.h"

namespace tenon {

/// Decodes a file's bytes. `expected`, if given, is the type of an array whose descriptor states
/// only a width ('V1', 'V2'); other types are not converted to it. Column-major arrays are
/// transposed, other byte orders swapped.
Result<Literal> parse_npy(std::string_view bytes, std::optional<ElementType> expected = {});

/// The bytes of a version 1.0 file (2.0 if the header requires it).
std::string npy_bytes(const Literal& literal);

/// Read and write files; errors name the path. Writing goes through a temporary file in the same
/// folder, so that a reader never sees a partial file.
Result<Literal> read_npy(const std::string& path, std::optional<ElementType> expected = {});
Status write_npy(const std::string& path, const Literal& literal);

}  // namespace tenon
