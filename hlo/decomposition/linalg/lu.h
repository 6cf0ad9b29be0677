// LU factors with exchanges of rows (Golub and Van Loan, Matrix Computations, section 3.4), with
// the pivots of LAPACK's getrf.
#pragma once

#include "hlo/decomposition/linalg/matrices.h"

namespace tenon::hlo::decomposition {

struct LuFactors {
  Value matrix;  ///< [batch, rows, columns]: U, and below the diagonal L, whose diagonal is 1.
  Value pivots;  ///< s32 [batch, least]: the row, from 0 on, that each row was exchanged with.
  Value order;   ///< s32 [batch, rows]: the rows of the matrix that are those of L U.
};
/// The factors of matrices [batch, rows, columns], of one row and column at least; `least` is the
/// smaller of both. A column without a pivot is left as it is. Without `exchanges` rows stay where
/// they are.
LuFactors lu_of(Builder& b, Value a, bool exchanges = true);

}  // namespace tenon::hlo::decomposition
