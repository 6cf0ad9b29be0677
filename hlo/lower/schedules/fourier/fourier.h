// hlo/lower/schedules/fourier/: kernels of Fourier transforms by passes of mixed radix.
//
// A transform of length n = r1 r2 … is a sequence of passes of Stockham's algorithm. A pass of
// radix r, with n = r m s, takes for each j < m and q < s the points x[q + s (j + m k)], k < r,
// transforms these r numbers, multiplies number k by exp(sign 2 pi i j k / (r m)) and stores it at
// y[q + s (r j + k)]. s is the product of the radices of the passes before. Reads are contiguous
// along (j, q), writes along q, so that lanes along them become vectors.
//
// The points of a pass are r numbers in registers (butterfly), or lines in scratch memory, which
// passes of small radices transform (LineTransform).
#pragma once

#include <functional>
#include <vector>

#include "hlo/lower/kernel_maker.h"

namespace tenon::hlo::lower {

/// The radices of the passes of a direct length (hlo/ir/fft_lengths.h), in their order: 8 first, so
/// that the following passes have contiguous runs of 8 numbers. {1} for length 1.
std::vector<int64_t> radices_of(int64_t n);

/// Factors of `n` of at most `most` points each, as few as possible and about equal; a prime factor
/// may exceed `most`.
std::vector<int64_t> factors_of(int64_t n, int64_t most);

/// The transform of x.size() complex numbers, a radix of radices_of(): y[k] = sum over j of x[j]
/// exp(sign 2 pi i j k / r). With `fma`, products are contracted.
Elements butterfly(kernel::Builder& b, ElementType part, const Elements& x, int sign, bool fma);

/// x w, for complex numbers.
Element turned(kernel::Builder& b, const Element& x, const Element& w, bool fma);

/// Roots of unity: numbers[p] = exp(sign 2 pi i p / n), as two rows, of real and imaginary parts.
Literal table_of_roots(ElementType part, int64_t n, int sign, const std::vector<int64_t>& numbers);

/// Transforms of `lines` lines of `size` points by one workgroup.
struct LineTransform {
  int64_t size = 1;
  int64_t lines = 1;
  /// Whether adjacent lanes work on adjacent lines instead of adjacent points.
  bool along_lines = false;
  int sign = -1;
  bool fma = true;
  ElementType part = ElementType::kF32;  ///< The type of both parts of a number.

  /// Changes each result, if set.
  std::function<Element(ValueId line, ValueId position, const Element&)> finish;

  using Read = std::function<Element(ValueId line, ValueId position)>;
  using Write = std::function<void(ValueId line, ValueId position, const Element&)>;
  /// Calls its argument for a line that is within the array.
  using Guard = std::function<void(ValueId line, const std::function<void()>&)>;

  /// The table of roots that the passes read; empty if they need none.
  Literal roots() const;
  /// Bytes of scratch memory of one line, for `stay` as for emit().
  int64_t scratch_bytes(bool stay) const;

  /// Emits the passes, at the level of a workgroup: the first reads by `read`, the last writes by
  /// `write`. Without `write` the results stay in scratch, and the function returns their reader.
  /// `table` is a buffer of roots().
  Read emit(kernel::Builder& b, kernel::MemoryId table, const Read& read, const Write& write,
            const Guard& guard) const;
};

}  // namespace tenon::hlo::lower
