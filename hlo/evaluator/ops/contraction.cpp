// dot_general and convolution: sums of products.
//
// Each product and each partial sum is rounded to the accumulator's type, in row-major order of the
// contracted elements, as in the specification's reduce over multiply: f32 for floats of at most 32
// bits, f64 for f64; in wide mode f64 and binary128. Integers wrap in the result type.
#include <algorithm>

#include "hlo/evaluator/ops/index.h"
#include "hlo/evaluator/ops/rules.h"

namespace tenon::hlo {
namespace {

template <class T>
inline constexpr bool kIsComplex = false;
template <class R>
inline constexpr bool kIsComplex<ComplexOf<R>> = true;

template <class R>
ComplexOf<R> complex_element(const Tensor& x, const Scalar& value) {
  switch (x.storage()) {
    case ScalarStorage::kComplexWide:
      return {static_cast<R>(value.cw.re), static_cast<R>(value.cw.im)};
    case ScalarStorage::kComplex:
      return {static_cast<R>(value.c.re), static_cast<R>(value.c.im)};
    case ScalarStorage::kWide:
      return {static_cast<R>(value.w), 0};
    case ScalarStorage::kReal:
      return {static_cast<R>(value.d), 0};
    case ScalarStorage::kInteger:
      return {is_signed_integer(x.type()) ? static_cast<R>(value.i)
                                          : static_cast<R>(static_cast<uint64_t>(value.i)),
              0};
  }
  return {};
}

// The elements of `x` as T, for the inner loops.
template <class T>
std::vector<T> elements(const Tensor& x) {
  std::vector<T> out(static_cast<size_t>(x.count()));
  for (int64_t i = 0; i < x.count(); ++i) {
    const Scalar value = x.get(i);
    T& to = out[static_cast<size_t>(i)];
    if constexpr (kIsComplex<T>) {
      to = complex_element<decltype(to.re)>(x, value);
    } else if constexpr (std::is_same_v<T, uint64_t>) {
      to = x.storage() == ScalarStorage::kInteger
               ? static_cast<uint64_t>(value.i)
               : static_cast<uint64_t>(static_cast<int64_t>(value.d));
    } else {
      to = complex_element<T>(x, value).re;
    }
  }
  return out;
}

template <class T>
void accumulate(T& sum, T x, T y) {
  sum += x * y;
}
template <class R>
void accumulate(ComplexOf<R>& sum, ComplexOf<R> x, ComplexOf<R> y) {
  sum.re += x.re * y.re - x.im * y.im;
  sum.im += x.re * y.im + x.im * y.re;
}

template <class T>
void store(Tensor& to, int64_t i, T sum, bool wide) {
  if constexpr (std::is_same_v<T, uint64_t>) {
    const auto value = static_cast<int64_t>(sum);
    to.set(i, Scalar(is_pred(to.type()) ? int64_t{value != 0} : wrap_integer(to.type(), value)));
  } else if constexpr (kIsComplex<T>) {
    if (to.storage() == ScalarStorage::kComplexWide) {
      to.set(i, Scalar(ComplexOf<Float128>{sum.re, sum.im}));
    } else {
      to.set(i,
             Scalar(ComplexOf<double>{static_cast<double>(sum.re), static_cast<double>(sum.im)}));
    }
  } else if (to.storage() == ScalarStorage::kWide) {
    to.set(i, Scalar(static_cast<Float128>(sum)));
  } else {
    to.set(i,
           Scalar(wide ? static_cast<double>(sum) : round_to(to.type(), static_cast<double>(sum))));
  }
}

// Calls `f` with a zero of the accumulator type for a result of `type`.
template <class F>
void with_accumulator(ElementType type, bool wide, F f) {
  if (type == ElementType::kC128) {
    wide ? f(ComplexOf<Float128>{}) : f(ComplexOf<double>{});
  } else if (type == ElementType::kC64) {
    wide ? f(ComplexOf<double>{}) : f(ComplexOf<float>{});
  } else if (type == ElementType::kF64) {
    wide ? f(Float128{}) : f(double{});
  } else if (is_float(type)) {
    wide ? f(double{}) : f(float{});
  } else {
    f(uint64_t{});
  }
}

// `x` transposed to [batch][rows][contracting], or to [batch][contracting][rows] for the right
// operand.
struct Matrix {
  Dims order;  // permutation of the operand's dimensions
  int64_t batch = 1;
  int64_t free = 1;
  int64_t contracting = 1;
};

Matrix matrix_of(const Tensor& x, const I64s& batching, const I64s& contracting, bool free_last) {
  Matrix m;
  Dims free_dims;
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (!contains(batching, d) && !contains(contracting, d)) free_dims.push_back(d);
  }
  m.order = batching;
  const Dims& second = free_last ? contracting : free_dims;
  const Dims& third = free_last ? free_dims : contracting;
  m.order.insert(m.order.end(), second.begin(), second.end());
  m.order.insert(m.order.end(), third.begin(), third.end());
  for (const int64_t d : batching) m.batch *= x.dims()[static_cast<size_t>(d)];
  for (const int64_t d : contracting) m.contracting *= x.dims()[static_cast<size_t>(d)];
  for (const int64_t d : free_dims) m.free *= x.dims()[static_cast<size_t>(d)];
  return m;
}

template <class T>
std::vector<T> permuted(const std::vector<T>& x, const Dims& dims, const Dims& order) {
  const Dims strides = row_major_strides(dims);
  Dims new_dims(dims.size());
  Dims new_strides(dims.size());
  for (size_t i = 0; i < order.size(); ++i) {
    new_dims[i] = dims[static_cast<size_t>(order[i])];
    new_strides[i] = strides[static_cast<size_t>(order[i])];
  }
  std::vector<T> out(x.size());
  for (IndexSpace at(new_dims); !at.done(); at.next()) {
    out[static_cast<size_t>(at.linear())] = x[static_cast<size_t>(dot(*at, new_strides))];
  }
  return out;
}

// c[m][n] += a[m][k] b[k][n]; with k in the middle loop, the inner loop is contiguous.
template <class T>
void multiply(const T* a, const T* b, T* c, int64_t rows, int64_t depth, int64_t columns) {
  for (int64_t m = 0; m < rows; ++m) {
    for (int64_t k = 0; k < depth; ++k) {
      const T x = a[m * depth + k];
      for (int64_t n = 0; n < columns; ++n) accumulate(c[m * columns + n], x, b[k * columns + n]);
    }
  }
}

template <class T>
void dot_general(const Instruction& op, const Tensor& lhs, const Tensor& rhs, Tensor& result,
                 bool wide) {
  const auto& dims = *op.attr<DotDims>(AttrKey::dot_dimension_numbers);
  const Matrix left = matrix_of(lhs, dims.lhs_batching, dims.lhs_contracting, false);
  const Matrix right = matrix_of(rhs, dims.rhs_batching, dims.rhs_contracting, true);
  const std::vector<T> a = permuted(elements<T>(lhs), lhs.dims(), left.order);
  const std::vector<T> b = permuted(elements<T>(rhs), rhs.dims(), right.order);
  std::vector<T> c(static_cast<size_t>(result.count()));
  for (int64_t batch = 0; batch < left.batch; ++batch) {
    multiply(a.data() + batch * left.free * left.contracting,
             b.data() + batch * right.free * right.contracting,
             c.data() + batch * left.free * right.free, left.free, left.contracting, right.free);
  }
  for (int64_t i = 0; i < result.count(); ++i) store(result, i, c[static_cast<size_t>(i)], wide);
}

// The parameters of a convolution's index arithmetic.
struct ConvolutionGeometry {
  const ConvDims& dims;
  size_t spatial;
  I64s strides, lhs_dilation, rhs_dilation;
  I64Matrix padding;
  BoolsAttr reversal;
  int64_t feature_groups, batch_groups;
};

ConvolutionGeometry convolution_of(const Instruction& op) {
  const auto& dims = *op.attr<ConvDims>(AttrKey::dimension_numbers);
  const size_t n = dims.input_spatial.size();
  ConvolutionGeometry c{dims,
                        n,
                        op.i64s_or(AttrKey::window_strides, n, 1),
                        op.i64s_or(AttrKey::lhs_dilation, n, 1),
                        op.i64s_or(AttrKey::rhs_dilation, n, 1),
                        op.padding_or_zero(n),
                        {},
                        op.integer(AttrKey::feature_group_count, 1),
                        op.integer(AttrKey::batch_group_count, 1)};
  const auto* reversal = op.attr<BoolsAttr>(AttrKey::window_reversal);
  c.reversal.values = reversal ? reversal->values : std::vector<uint8_t>(n, 0);
  return c;
}

// For each result element: the sum over kernel positions and the input features of its group.
template <class T>
void convolve(const Instruction& op, const Tensor& lhs, const Tensor& rhs, Tensor& result,
              bool wide) {
  const ConvolutionGeometry c = convolution_of(op);
  const ConvDims& d = c.dims;
  const std::vector<T> a = elements<T>(lhs);
  const std::vector<T> b = elements<T>(rhs);
  const Dims a_strides = row_major_strides(lhs.dims());
  const Dims b_strides = row_major_strides(rhs.dims());
  const auto size = [](const Tensor& x, int64_t axis) {
    return x.dims()[static_cast<size_t>(axis)];
  };
  const auto stride = [](const Dims& strides, int64_t axis) {
    return strides[static_cast<size_t>(axis)];
  };
  const int64_t outputs = size(rhs, d.kernel_output_feature);
  const int64_t features = size(rhs, d.kernel_input_feature);
  const int64_t outputs_per_group = std::max<int64_t>(outputs / c.feature_groups, 1);
  const int64_t outputs_per_batch_group = std::max<int64_t>(outputs / c.batch_groups, 1);
  const int64_t batches = size(lhs, d.input_batch) / c.batch_groups;
  Dims kernel_dims;
  for (const int64_t axis : d.kernel_spatial) kernel_dims.push_back(size(rhs, axis));

  for (IndexSpace out(result.dims()); !out.done(); out.next()) {
    const int64_t output = out[static_cast<size_t>(d.output_feature)];
    const int64_t batch =
        out[static_cast<size_t>(d.output_batch)] +
        (output / outputs_per_batch_group) * batches * (c.batch_groups > 1 ? 1 : 0);
    const int64_t first_feature = c.feature_groups > 1 ? output / outputs_per_group * features : 0;
    T sum{};
    for (IndexSpace window(kernel_dims); !window.done(); window.next()) {
      int64_t from = batch * stride(a_strides, d.input_batch) +
                     first_feature * stride(a_strides, d.input_feature);
      int64_t weight = output * stride(b_strides, d.kernel_output_feature);
      bool inside = true;
      for (size_t s = 0; s < c.spatial; ++s) {
        const int64_t w = window[s];
        const int64_t place = out[static_cast<size_t>(d.output_spatial[s])] * c.strides[s] +
                              w * c.rhs_dilation[s] - c.padding.at(static_cast<int64_t>(s), 0);
        const int64_t index = place / c.lhs_dilation[s];
        inside &=
            place >= 0 && place % c.lhs_dilation[s] == 0 && index < size(lhs, d.input_spatial[s]);
        from += index * stride(a_strides, d.input_spatial[s]);
        const int64_t tap = c.reversal.values[s] != 0 ? kernel_dims[s] - 1 - w : w;
        weight += tap * stride(b_strides, d.kernel_spatial[s]);
      }
      if (!inside) continue;
      for (int64_t f = 0; f < features; ++f) {
        accumulate(sum, a[static_cast<size_t>(from + f * stride(a_strides, d.input_feature))],
                   b[static_cast<size_t>(weight + f * stride(b_strides, d.kernel_input_feature))]);
      }
    }
    store(result, out.linear(), sum, wide);
  }
}

// Calls compute(accumulator, result) with a zero of the type in which products are summed. The
// operands may have a wider type than the result (s8 times bf16 into s32 is not legal, but f32
// operands with an f64 result are): the accumulator has the widest type.
template <class Compute>
Evaluator::Values contract(const EvalCall& c, const Compute& compute) {
  const Type& type = c.op.result_type();
  Tensor result = c.e.tensor(type.element_type(), type.dims());
  ElementType widest = type.element_type();
  for (const EvalValue& operand : c.operands) {
    if (is_float(operand->type()) && !is_float(widest) && !is_complex(widest)) {
      widest = operand->type();
    }
  }
  with_accumulator(widest, c.e.wide(), [&](auto zero) { compute(zero, result); });
  return one(std::move(result));
}

}  // namespace

namespace evaluate {

using Values = Evaluator::Values;

Values convolution(const EvalCall& c) {
  return contract(c, [&](auto zero, Tensor& result) {
    convolve<decltype(zero)>(c.op, *c.operands[0], *c.operands[1], result, c.e.wide());
  });
}
Values dot_general(const EvalCall& c) {
  return contract(c, [&](auto zero, Tensor& result) {
    hlo::dot_general<decltype(zero)>(c.op, *c.operands[0], *c.operands[1], result, c.e.wide());
  });
}

}  // namespace evaluate
}  // namespace tenon::hlo
