#include "hlo/lower/elements/index_math.h"

#include <algorithm>

namespace tenon::hlo::lower {

using kernel::Builder;

ValueId linear_index(Builder& b, const Values& index, const Dims& dims) {
  ValueId linear = b.index(0);
  for (size_t d = 0; d < dims.size(); ++d) {
    linear = b.add(b.mul(linear, b.index(dims[d])), index[d]);
  }
  return linear;
}

Values delinearize(Builder& b, ValueId linear, const Dims& dims) {
  Values index(dims.size(), b.index(0));
  // The first dimension of several elements has what is left; no remainder, which would differ from
  // the index that it is made of.
  size_t first = 0;
  while (first + 1 < dims.size() && dims[first] == 1) ++first;
  for (size_t d = dims.size(); d-- > first;) {
    index[d] = d == first ? linear : dims[d] == 1 ? b.index(0) : b.rem(linear, b.index(dims[d]));
    linear = b.div(linear, b.index(dims[d]));
  }
  return index;
}

// Both arrays are divided into runs of dimensions that hold the same elements; only a run of
// several dimensions needs computation.
Values reshaped_index(Builder& b, const Values& index, const Dims& from, const Dims& to) {
  Values result(to.size());
  size_t f = 0;
  size_t t = 0;
  while (f < from.size() || t < to.size()) {
    const size_t f0 = f;
    const size_t t0 = t;
    int64_t from_size = f < from.size() ? from[f++] : 1;
    int64_t to_size = t < to.size() ? to[t++] : 1;
    while (from_size != to_size) {
      if (from_size < to_size && f < from.size()) {
        from_size *= from[f++];
      } else if (t < to.size()) {
        to_size *= to[t++];
      } else {
        from_size *= from[f++];
      }
    }
    const Values part(index.begin() + static_cast<std::ptrdiff_t>(f0),
                      index.begin() + static_cast<std::ptrdiff_t>(f));
    const Dims from_run(from.begin() + static_cast<std::ptrdiff_t>(f0),
                        from.begin() + static_cast<std::ptrdiff_t>(f));
    const Dims to_run(to.begin() + static_cast<std::ptrdiff_t>(t0),
                      to.begin() + static_cast<std::ptrdiff_t>(t));
    const Values moved = delinearize(b, linear_index(b, part, from_run), to_run);
    std::copy(moved.begin(), moved.end(), result.begin() + static_cast<std::ptrdiff_t>(t0));
  }
  return result;
}

ValueId clamped_index(Builder& b, ValueId value, int64_t limit) {
  const ElementType type = b.type_of(value);
  if (limit <= 0) return b.index(0);
  if (is_signed_integer(type)) value = b.max(value, b.integer(type, 0));
  // A type whose greatest number is below the limit needs no clamp.
  const int bits = bit_width(type) - (is_signed_integer(type) ? 1 : 0);
  const bool bounded = bits >= 63 || limit < (int64_t{1} << bits);
  if (type == b.index_type() && bounded) {
    // The value is computed by the program, and wraps as its type does; as a number of another type
    // it is data, not index arithmetic (K10).
    const ElementType other = *integer_of_width(bit_width(type), false);
    value = b.min(b.bitcast(value, other), b.integer(other, limit));
  } else if (bounded) {
    value = b.min(value, b.integer(type, limit));
  }
  return b.convert(value, b.index_type());
}

ValueId in_bounds(Builder& b, ValueId index, int64_t size) {
  return b.logical_and(b.compare(K::kGe, index, b.index(0)),
                       b.compare(K::kLt, index, b.index(size)));
}

}  // namespace tenon::hlo::lower
