// Roots of unity, for tables of constants.
#pragma once

#include <complex>
#include <cstdint>

namespace tenon {

/// exp(2 pi i k / n), 0 <= k < n, in long double: each part is accurate to an ulp or two of itself,
/// for every n. Quarter turns are exact, and so are symmetries: mirrored parts of roots have the
/// same bits.
std::complex<long double> root_of_unity(int64_t k, int64_t n);

}  // namespace tenon
