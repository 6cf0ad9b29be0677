// Eigenvalues of Hermitian matrices and singular values, by Jacobi's method (Golub and Van Loan,
// Matrix Computations, sections 8.5 and 8.6). All arrays have one batch dimension.
#pragma once

#include "hlo/decomposition/linalg/matrices.h"

namespace tenon::hlo::decomposition {

struct Eigen {
  Value vectors;  ///< [batch, size, size], in columns.
  Value values;   ///< [batch, size], real.
};
/// The eigenvalues of matrices [batch, size, size], of size 1 at least, of which one triangle is
/// read. Ascending if `sorts`. A matrix that is not finite has NaN alone.
Eigen eigen_of(Builder& b, Value a, bool lower, bool sorts);

struct SingularValues {
  Value u;   ///< [batch, rows, rows or least], orthonormal columns.
  Value s;   ///< [batch, least], real, descending.
  Value vh;  ///< [batch, columns or least, columns], orthonormal rows.
};
/// U S V^H of matrices [batch, rows, columns], of one row and column at least; `least` is the
/// smaller of both. A matrix that is not finite has NaN alone.
SingularValues singular_values_of(Builder& b, Value a, bool full_matrices);

}  // namespace tenon::hlo::decomposition
