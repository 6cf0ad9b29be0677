// Many small matrices: each element of all of them is a vector over the batch, and every step of an
// algorithm is an elementwise op, so that a factorization, or a sweep of rotations, is one kernel.
#pragma once

#include "hlo/decomposition/linalg/eigenvalues.h"
#include "hlo/decomposition/linalg/householder.h"

namespace tenon::hlo::decomposition {

/// Whether matrices [batch, rows, columns] are many, and so small that their algorithms are
/// unrolled.
bool is_small(Value matrices);

/// As qr_of, reflected, eigen_of and singular_values_of, of matrices with as many rows as columns
/// at least for the last.
Reflections small_qr(Builder& b, Value a);
Value small_reflected(Builder& b, const Reflections& q, Value x, bool adjoint);
Eigen small_eigen(Builder& b, Value a, bool lower, bool sorts);
SingularValues small_singular_values(Builder& b, Value a, bool full_matrices);

}  // namespace tenon::hlo::decomposition
