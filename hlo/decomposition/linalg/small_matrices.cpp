#include "hlo/decomposition/linalg/small_matrices.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "hlo/decomposition/linalg/jacobi.h"

namespace tenon::hlo::decomposition {
namespace {

// The least dimension and the greatest: code grows with the cube of them.
constexpr int64_t kLeast = 4;
constexpr int64_t kLeastComplex = 3;
constexpr int64_t kGreatest = 8;

// One matrix of vectors [batch].
class SmallMatrix {
 public:
  SmallMatrix(int64_t rows, int64_t columns, const Expr& fill)
      : rows_(rows), columns_(columns), elements_(at(rows * columns), fill) {}
  /// Those of matrices [batch, rows, columns].
  SmallMatrix(Builder& b, Value x) : rows_(x.type().dims()[1]), columns_(x.type().dims()[2]) {
    const ByElements all(b, x);
    for (int64_t i = 0; i < rows_; ++i) {
      for (int64_t j = 0; j < columns_; ++j) elements_.push_back(all.element(i, j));
    }
  }
  /// As a loop has them.
  SmallMatrix(Builder& b, int64_t rows, int64_t columns, const Value* values)
      : rows_(rows), columns_(columns) {
    for (int64_t i = 0; i < rows * columns; ++i) elements_.emplace_back(b, values[i]);
  }

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  Expr& operator()(int64_t i, int64_t j) { return elements_[at(i * columns_ + j)]; }
  const Expr& operator()(int64_t i, int64_t j) const { return elements_[at(i * columns_ + j)]; }

  void append_to(std::vector<Value>& values) const {
    for (const Expr& each : elements_) values.push_back(each.value());
  }
  /// [batch, rows, columns]
  Value joined(Builder& b, int64_t batch) const {
    std::vector<Value> parts;
    for (const Expr& each : elements_) parts.push_back(b.reshape(each.value(), {1, batch}));
    if (!b.ok()) return {};
    return b.reshape(b.transpose(b.concatenate(parts, 0), {1, 0}), {batch, rows_, columns_});
  }

 private:
  int64_t rows_;
  int64_t columns_;
  std::vector<Expr> elements_;
};

SmallMatrix unit_of(int64_t rows, int64_t columns, const Expr& like) {
  SmallMatrix unit(rows, columns, like.constant(0));
  for (int64_t i = 0; i < std::min(rows, columns); ++i) unit(i, i) = like.constant(1);
  return unit;
}

SmallMatrix adjoint_elements(const SmallMatrix& x) {
  SmallMatrix y(x.columns(), x.rows(), x(0, 0));
  for (int64_t i = 0; i < x.rows(); ++i) {
    for (int64_t j = 0; j < x.columns(); ++j) y(j, i) = conjugate(x(i, j));
  }
  return y;
}

// A number of each matrix as [batch, size].
Value joined_numbers(Builder& b, const std::vector<Expr>& numbers, int64_t batch) {
  std::vector<Value> parts;
  for (const Expr& each : numbers) parts.push_back(b.reshape(each.value(), {1, batch}));
  return b.transpose(b.concatenate(parts, 0), {1, 0});
}

// Whether a number is true of any matrix.
Value any_of(Builder& b, const Expr& x) {
  return b.reduce(OpCode::kOr, x.value(), b.scalar(ElementType::kPred, 0), {0});
}
Value is_before(Builder& b, Value turn, int64_t end) {
  return b.compare(ComparisonDirection::kLt, turn, b.i64_constant(end));
}

Expr sum_of(const std::vector<Expr>& terms) {
  Expr sum = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) sum = sum + terms[i];
  return sum;
}

// 1 for a matrix of zeros, else its greatest part.
Expr scale_of_elements(const SmallMatrix& x) {
  Expr largest = greatest_part(x(0, 0));
  for (int64_t i = 0; i < x.rows(); ++i) {
    for (int64_t j = 0; j < x.columns(); ++j) largest = max(largest, greatest_part(x(i, j)));
  }
  return select(largest == 0.0, 1.0, largest);
}

Expr sum_of_squares(const SmallMatrix& x) {
  std::vector<Expr> squares;
  for (int64_t i = 0; i < x.rows(); ++i) {
    for (int64_t j = 0; j < x.columns(); ++j) squares.push_back(squared_size(x(i, j)));
  }
  return sum_of(squares);
}

// Divides a matrix by its scale. One that is not finite, which must not keep the loop of the
// others, becomes zero; returns where matrices are finite.
Expr divide_finite(SmallMatrix& a, const Expr& scale) {
  const auto change = [&](const auto& changed) {
    for (int64_t i = 0; i < a.rows(); ++i) {
      for (int64_t j = 0; j < a.columns(); ++j) a(i, j) = changed(a(i, j));
    }
  };
  change([&](const Expr& x) { return x / as_type(scale, x.type()); });
  const Expr known = sum_of_squares(a).apply(OpCode::kIsFinite);
  change([&](const Expr& x) { return select(known, x, 0.0); });
  return known;
}

struct Factored {
  SmallMatrix matrix;
  std::vector<Expr> taus;
};

Factored qr_elements(SmallMatrix a) {
  std::vector<Expr> taus;
  const ElementType type = a(0, 0).type();
  for (int64_t j = 0; j < std::min(a.rows(), a.columns()); ++j) {
    Expr largest = greatest_part(a(j, j));
    for (int64_t i = j + 1; i < a.rows(); ++i) largest = max(largest, greatest_part(a(i, j)));
    const Expr scale = select(largest == 0.0, 1.0, largest);
    std::vector<Expr> v;  // From row j + 1 on.
    Expr under = scale.constant(0);
    for (int64_t i = j + 1; i < a.rows(); ++i) {
      v.push_back(a(i, j) / as_type(scale, type));
      under = under + squared_size(v.back());
    }
    const ReflectionNumbers h = reflection_numbers(a(j, j), scale, under);
    for (Expr& each : v) each = each * h.factor;
    for (int64_t k = j + 1; k < a.columns(); ++k) {
      Expr product = a(j, k);
      for (size_t i = 0; i < v.size(); ++i) {
        product = product + conjugate(v[i]) * a(j + 1 + static_cast<int64_t>(i), k);
      }
      const Expr change = conjugate(h.tau) * product;
      a(j, k) = a(j, k) - change;
      for (size_t i = 0; i < v.size(); ++i) {
        Expr& element = a(j + 1 + static_cast<int64_t>(i), k);
        element = element - v[i] * change;
      }
    }
    a(j, j) = as_type(h.beta, type);
    for (size_t i = 0; i < v.size(); ++i) a(j + 1 + static_cast<int64_t>(i), j) = v[i];
    taus.push_back(h.tau);
  }
  return {std::move(a), std::move(taus)};
}

SmallMatrix reflected_elements(const Factored& q, SmallMatrix x, bool adjoint) {
  const auto count = static_cast<int64_t>(q.taus.size());
  for (int64_t turn = 0; turn < count; ++turn) {
    const int64_t j = adjoint ? turn : count - 1 - turn;
    const Expr tau = adjoint ? conjugate(q.taus[at(j)]) : q.taus[at(j)];
    for (int64_t k = 0; k < x.columns(); ++k) {
      Expr product = x(j, k);
      for (int64_t i = j + 1; i < x.rows(); ++i) {
        product = product + conjugate(q.matrix(i, j)) * x(i, k);
      }
      const Expr change = tau * product;
      x(j, k) = x(j, k) - change;
      for (int64_t i = j + 1; i < x.rows(); ++i) x(i, k) = x(i, k) - q.matrix(i, j) * change;
    }
  }
  return x;
}

// Exchanges numbers, and rows of the matrices, until the numbers are in order.
void sort_with_rows(std::vector<Expr>& numbers, std::vector<SmallMatrix*> matrices, bool descends) {
  const auto size = static_cast<int64_t>(numbers.size());
  for (int64_t end = size - 1; end > 0; --end) {
    for (int64_t i = 0; i < end; ++i) {
      Expr &first = numbers[at(i)], &second = numbers[at(i + 1)];
      const Expr is_due = descends ? first < second : second < first;
      const auto exchange = [&](Expr& x, Expr& y) {
        const Expr kept = x;
        x = select(is_due, y, x);
        y = select(is_due, kept, y);
      };
      exchange(first, second);
      for (SmallMatrix* const each : matrices) {
        for (int64_t j = 0; j < each->columns(); ++j) exchange((*each)(i, j), (*each)(i + 1, j));
      }
    }
  }
}

// Rows p and q of a matrix, rotated.
void rotate_rows(SmallMatrix& x, int64_t p, int64_t q, const Rotation& turn) {
  const Expr c = as_type(turn.c, x(0, 0).type());
  for (int64_t j = 0; j < x.columns(); ++j) {
    const Expr first = x(p, j), second = x(q, j);
    x(p, j) = c * first - turn.s * second;
    x(q, j) = conjugate(turn.s) * first + c * second;
  }
}

// A sweep over a Hermitian matrix, of which the diagonal and what is above it are used, and over
// the adjoint of its vectors.
void sweep_of_eigenvalues(SmallMatrix& a, SmallMatrix& adjoint) {
  const int64_t size = a.rows();
  const ElementType type = a(0, 0).type();
  const auto upper = [&](int64_t i, int64_t j) { return i < j ? a(i, j) : conjugate(a(j, i)); };
  for (int64_t p = 0; p < size; ++p) {
    for (int64_t q = p + 1; q < size; ++q) {
      const Rotation turn = rotation_of(real_part(a(p, p)), real_part(a(q, q)), a(p, q));
      const Expr c = as_type(turn.c, type), shift = as_type(turn.shift, type);
      for (int64_t k = 0; k < size; ++k) {
        if (k == p || k == q) continue;
        // SmallMatrix (p, k) and (q, k), which rows are rotated for.
        const Expr first = upper(p, k), second = upper(q, k);
        const Expr above = c * first - turn.s * second;
        const Expr below = conjugate(turn.s) * first + c * second;
        (p < k ? a(p, k) : a(k, p)) = p < k ? above : conjugate(above);
        (q < k ? a(q, k) : a(k, q)) = q < k ? below : conjugate(below);
      }
      a(p, p) = a(p, p) - shift;
      a(q, q) = a(q, q) + shift;
      a(p, q) = a(p, q).constant(0);
      rotate_rows(adjoint, p, q, turn);
    }
  }
}

}  // namespace

bool is_small(Value matrices) {
  if (!matrices || !is_many(matrices)) return false;
  const Dims& dims = matrices.type().dims();
  const int64_t least = std::min(dims[1], dims[2]), greatest = std::max(dims[1], dims[2]);
  const bool is_real = !is_complex(matrices.type().element_type());
  return least <= (is_real ? kLeast : kLeastComplex) && greatest <= kGreatest;
}

Reflections small_qr(Builder& b, Value a) {
  if (!b.ok()) return {};
  const int64_t batch = a.type().dims()[0];
  const Factored q = qr_elements(SmallMatrix(b, a));
  return {q.matrix.joined(b, batch), joined_numbers(b, q.taus, batch)};
}

Value small_reflected(Builder& b, const Reflections& q, Value x, bool adjoint) {
  if (!b.ok()) return {};
  const int64_t batch = x.type().dims()[0], count = q.taus.type().dims()[1];
  const Value taus = b.reshape(q.taus, {batch, 1, count});
  Factored factored = {SmallMatrix(b, q.matrix), {}};
  const SmallMatrix numbers(b, taus);
  for (int64_t i = 0; i < count; ++i) factored.taus.push_back(numbers(0, i));
  return reflected_elements(factored, SmallMatrix(b, x), adjoint).joined(b, batch);
}

Eigen small_eigen(Builder& b, Value x, bool lower, bool sorts) {
  if (!b.ok()) return {};
  const int64_t batch = x.type().dims()[0], size = x.type().dims()[1];
  const ElementType type = x.type().element_type();
  SmallMatrix a(b, x);
  for (int64_t i = 0; i < size; ++i) {
    a(i, i) = as_type(real_part(a(i, i)), type);
    for (int64_t j = i + 1; j < size; ++j) {
      if (lower) a(i, j) = conjugate(a(j, i));
      a(j, i) = conjugate(a(i, j));
    }
  }
  const Expr scale = scale_of_elements(a);
  const Expr known = divide_finite(a, scale);
  const Expr total = sum_of_squares(a);
  const double epsilon = epsilon_of(total.type());
  const Expr bound = total * (epsilon * epsilon);
  const int64_t count = size * size;
  std::vector<Value> start = {b.i64_constant(0)};
  a.append_to(start);
  unit_of(size, size, a(0, 0)).append_to(start);
  const std::vector<Value> state = b.while_loop(
      start,
      [&](Builder& inner, const std::vector<Value>& s) {
        const SmallMatrix now(inner, size, size, &s[1]);
        Expr off = Expr(inner, bound.value()).constant(0);
        for (int64_t i = 0; i < size; ++i) {
          for (int64_t j = i + 1; j < size; ++j) off = off + squared_size(now(i, j));
        }
        const Value any = any_of(inner, off > Expr(inner, bound.value()));
        return inner.make(OpCode::kAnd, {any, is_before(inner, s[0], kMostSweeps)});
      },
      [&](Builder& inner, const std::vector<Value>& s) -> std::vector<Value> {
        SmallMatrix now(inner, size, size, &s[1]), vectors(inner, size, size, &s[at(1 + count)]);
        sweep_of_eigenvalues(now, vectors);
        std::vector<Value> next_state = {next(inner, s[0])};
        now.append_to(next_state);
        vectors.append_to(next_state);
        return next_state;
      });
  if (!b.ok()) return {};
  const SmallMatrix diagonal(b, size, size, &state[1]);
  SmallMatrix vectors(b, size, size, &state[at(1 + count)]);
  std::vector<Expr> values;
  for (int64_t i = 0; i < size; ++i) values.push_back(real_part(diagonal(i, i)) * scale);
  if (sorts) sort_with_rows(values, {&vectors}, false);
  for (Expr& each : values) each = select(known, each, kNan);
  SmallMatrix columns = adjoint_elements(vectors);
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t j = 0; j < size; ++j) columns(i, j) = select(known, columns(i, j), kNan);
  }
  return {columns.joined(b, batch), joined_numbers(b, values, batch)};
}

namespace {

// A sweep over the rows of w, and what it does to the rows of j. Returns the greatest cosine
// between two rows.
Expr sweep_of_rows(SmallMatrix& w, SmallMatrix& j, const Expr& floor) {
  const int64_t size = w.rows();
  const auto product = [&](int64_t p, int64_t q) {
    std::vector<Expr> terms;
    for (int64_t k = 0; k < w.columns(); ++k) terms.push_back(w(p, k) * conjugate(w(q, k)));
    return sum_of(terms);
  };
  const auto square = [&](int64_t p) {
    std::vector<Expr> terms;
    for (int64_t k = 0; k < w.columns(); ++k) terms.push_back(squared_size(w(p, k)));
    return sum_of(terms);
  };
  Expr greatest = real_part(w(0, 0)).constant(0);
  for (int64_t p = 0; p < size; ++p) {
    for (int64_t q = p + 1; q < size; ++q) {
      const Expr alpha = square(p), beta = square(q), corner = product(p, q);
      const RowPair pair = row_pair(alpha, beta, corner, floor);
      rotate_rows(w, p, q, pair.rotation);
      rotate_rows(j, p, q, pair.rotation);
      greatest = max(greatest, pair.cosine);
    }
  }
  return greatest;
}

// Rows that are orthonormal to rounding, also where w's are zero (eigenvalues.cpp).
SmallMatrix orthonormal_elements(const SmallMatrix& w) {
  const int64_t size = w.rows();
  const Factored q = qr_elements(adjoint_elements(w));
  SmallMatrix columns = reflected_elements(q, unit_of(size, size, w(0, 0)), false);
  for (int64_t j = 0; j < size; ++j) {
    const Expr diagonal = q.matrix(j, j), length = abs(diagonal), is_zero = length == 0.0;
    const Expr safe = as_type(select(is_zero, 1.0, length), diagonal.type());
    const Expr phase = select(is_zero, diagonal.constant(1), diagonal / safe);
    for (int64_t i = 0; i < size; ++i) columns(i, j) = columns(i, j) * phase;
  }
  return adjoint_elements(columns);
}

}  // namespace

SingularValues small_singular_values(Builder& b, Value x, bool full_matrices) {
  if (!b.ok()) return {};
  const int64_t batch = x.type().dims()[0], rows = x.type().dims()[1], size = x.type().dims()[2];
  SmallMatrix a(b, x);
  const Expr scale = scale_of_elements(a);
  const Expr known = divide_finite(a, scale);
  const Factored q = qr_elements(a);
  SmallMatrix r(size, size, a(0, 0).constant(0));
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t j = i; j < size; ++j) r(i, j) = q.matrix(i, j);
  }
  const int64_t count = size * size;
  // Rounding leaves as much in a product of rows.
  const double epsilon = epsilon_of(scale.type());
  const double bound = 2 * epsilon * std::sqrt(static_cast<double>(size));
  const Expr floor = sum_of_squares(r) * (bound * bound);
  std::vector<Value> start = {b.i64_constant(0), scale.constant(1).value()};
  r.append_to(start);
  unit_of(size, size, a(0, 0)).append_to(start);
  const std::vector<Value> state = b.while_loop(
      start,
      [&](Builder& inner, const std::vector<Value>& s) {
        const Value any = any_of(inner, Expr(inner, s[1]) > bound);
        return inner.make(OpCode::kAnd, {any, is_before(inner, s[0], kMostSweeps)});
      },
      [&](Builder& inner, const std::vector<Value>& s) -> std::vector<Value> {
        SmallMatrix w(inner, size, size, &s[2]), j(inner, size, size, &s[at(2 + count)]);
        const Expr greatest = sweep_of_rows(w, j, Expr(inner, floor.value()));
        std::vector<Value> next_state = {next(inner, s[0]), greatest.value()};
        w.append_to(next_state);
        j.append_to(next_state);
        return next_state;
      });
  if (!b.ok()) return {};
  SmallMatrix w(b, size, size, &state[2]), j(b, size, size, &state[at(2 + count)]);
  std::vector<Expr> values;
  for (int64_t i = 0; i < size; ++i) {
    std::vector<Expr> squares;
    for (int64_t k = 0; k < size; ++k) squares.push_back(squared_size(w(i, k)));
    values.push_back(sqrt(sum_of(squares)));
  }
  sort_with_rows(values, {&w, &j}, true);
  const int64_t left = full_matrices ? rows : size;
  SmallMatrix u(rows, left, a(0, 0).constant(0));
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t k = 0; k < size; ++k) u(i, k) = conjugate(j(k, i));
  }
  for (int64_t i = size; i < left; ++i) u(i, i) = a(0, 0).constant(1);
  u = reflected_elements(q, std::move(u), false);
  w = orthonormal_elements(w);
  const auto checked = [&](SmallMatrix& of) {
    for (int64_t i = 0; i < of.rows(); ++i) {
      for (int64_t k = 0; k < of.columns(); ++k) of(i, k) = select(known, of(i, k), kNan);
    }
  };
  checked(u);
  checked(w);
  for (Expr& each : values) each = select(known, each * scale, kNan);
  return {u.joined(b, batch), joined_numbers(b, values, batch), w.joined(b, batch)};
}

}  // namespace tenon::hlo::decomposition
