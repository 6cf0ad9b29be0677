// backends/cpu/lapack/: eigenvalues and singular values by a library with LAPACK's functions.
//
// The library is not linked: TENON_LAPACK names its file, which is opened when the first program
// asks for it. Where the variable is not set, or "none", programs keep Tenon's own algorithms
// (hlo/decomposition/linalg).
//
// Thread-safety: everything, from any thread.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "backends/cpu/code.h"
#include "core/program/library_call.h"

namespace tenon::cpu {

/// The functions that are called: syevd and heevd, or gesdd.
enum class LapackFunction : int64_t { kEigenvalues, kSingularValues };

/// A call that LAPACK computes, matrix by matrix.
struct LapackCall {
  LapackFunction function = LapackFunction::kEigenvalues;
  ElementType type = ElementType::kF32;  ///< f32, f64, c64 or c128.
  int64_t batch = 1;
  int64_t rows = 0;
  int64_t columns = 0;
  bool reads_lower = true;       ///< The triangle that eigenvalues read.
  bool full_matrices = false;    ///< Singular values have all vectors.
  std::vector<int64_t> buffers;  ///< Bytes of a, and of the results in their order.
};

inline constexpr const char* kLapackVariable = "TENON_LAPACK";
/// Whether the environment names a library.
bool names_lapack();
/// kUnavailable unless that library has all functions.
Status lapack_state();
/// The call of a site for which a library is named and faster than Tenon's own algorithm.
std::optional<LapackCall> lapack_call_of(const program::LibraryCall& call,
                                         std::span<const Shape> operands,
                                         std::span<const Shape> results);
/// Its code: an object that calls kLapackFunction, as that of a contraction. A matrix is a
/// workgroup.
Result<std::shared_ptr<const CpuCode>> lapack_code(const LapackCall& call);

/// The name and the function by which such code calls the library: matrices from `begin` up to
/// `end`. `numbers`: the members of the call up to full_matrices. A matrix that is not finite, or
/// for which LAPACK finds no result, has NaN alone.
inline constexpr const char* kLapackFunction = "tenon_lapack";
void run_lapack(const int64_t* numbers, std::byte* const* buffers, int64_t begin, int64_t end);

}  // namespace tenon::cpu
