// Householder's reflections, as LAPACK's geqrf keeps them: H = I - tau v v^H, where v is 0 above
// row j, 1 in row j, and below it column j of a matrix (Golub and Van Loan, Matrix Computations,
// sections 5.1 and 5.2). All arrays have one batch dimension.
#pragma once

#include "hlo/decomposition/linalg/matrices.h"

namespace tenon::hlo::decomposition {

/// A matrix whose columns hold vectors of reflections below the diagonal, and R of A = Q R in the
/// upper triangle; Q is the product of the reflections in order.
struct Reflections {
  Value matrix;  ///< [batch, rows, columns]
  Value taus;    ///< [batch, min(rows, columns)]
};

/// The numbers of a reflection of columns (…, alpha, below): v below row j is `below` / scale times
/// `factor`. All are [batch].
struct ReflectionNumbers {
  Expr tau;
  Expr beta;  ///< Real: row j of H^H times the column, whose rows below are 0.
  Expr factor;
};
/// `scale`: the greatest part of alpha and below, so that squares neither overflow nor vanish;
/// `under`: the sum of the squares of below / scale.
ReflectionNumbers reflection_numbers(const Expr& alpha, const Expr& scale, const Expr& under);
/// |re|^2 + |im|^2, and the greater of |re| and |im|.
Expr squared_size(const Expr& x);
Expr greatest_part(const Expr& x);

/// Q R of matrices [batch, rows, columns], of one row and column at least.
Reflections qr_of(Builder& b, Value a);
/// Q x for x [batch, rows, columns], or Q^H x.
Value reflected(Builder& b, const Reflections& q, Value x, bool adjoint);

}  // namespace tenon::hlo::decomposition
