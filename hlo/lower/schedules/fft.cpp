// fft of power-of-two lengths: Stockham's radix-2 passes, along each dimension in turn. Each output
// element of a pass is a sum or a difference of two inputs, the difference multiplied by a root of
// unity from a table that is rounded once.
#include <bit>
#include <cmath>

#include "core/base/roots_of_unity.h"
#include "core/types/float_convert.h"
#include "hlo/lower/elements/index_math.h"
#include "hlo/lower/schedules/row_passes.h"

namespace tenon::hlo::lower {
namespace {

using kernel::Builder;

// exp(sign 2 pi i k / n) for k < n / 2.
Literal roots_of_unity(ElementType type, int64_t n, int sign) {
  Literal table(Shape(type, {std::max<int64_t>(n / 2, 1)}));
  for (int64_t k = 0; k < table.element_count(); ++k) {
    const std::complex<long double> root = root_of_unity(k, n);
    table.set_complex(k,
                      {static_cast<double>(root.real()), sign * static_cast<double>(root.imag())});
  }
  return table;
}

// One transform along one axis.
struct AxisTransform {
  size_t axis = 0;
  int64_t size = 1;
  int sign = -1;
  Dims from;              ///< Dimensions of the input.
  Dims to;                ///< Dimensions of the output: `size` on the axis, fewer if it is real.
  bool mirrored = false;  ///< The input is the first half of the spectrum of real numbers.
  bool real_result = false;
};

class FourierLowering {
 public:
  FourierLowering(LoweredOp& lowered, const Instruction& op, TuningParameters& tuning,
                  const LowerLimits& limits)
      : lowered_(lowered), op_(op), tuning_(tuning), limits_(limits) {
    const ElementType in = op.operand_type(0).element_type();
    complex_ = is_complex(in) ? in : *complex_of(in);
  }

  Status run() {
    const std::vector<AxisTransform> transforms = plan();
    for (size_t t = 0; t < transforms.size(); ++t) {
      const bool last = t + 1 == transforms.size();
      const auto from = t == 0 ? kernel::kNone : temporary_;
      if (!last) {
        temporary_ = static_cast<uint32_t>(lowered_.temporaries.size());
        lowered_.temporaries.emplace_back(complex_, transforms[t].to);
      }
      TENON_TRY(along(transforms[t], from, last ? kernel::kNone : temporary_,
                      transforms.size() == 1 ? "" : fmt::format("_axis{}", transforms[t].axis)));
    }
    return {};
  }

 private:
  std::vector<AxisTransform> plan() const {
    const I64s& lengths = op_.i64s(AttrKey::fft_length);
    const auto type = op_.enumeration<FftType>(AttrKey::fft_type);
    const size_t rank = op_.operand_type(0).dims().size();
    const size_t first = rank - lengths.size();
    std::vector<AxisTransform> transforms;
    Dims dims = op_.operand_type(0).dims();
    const auto add = [&](size_t axis) {
      AxisTransform t;
      t.axis = axis;
      t.size = lengths[axis - first];
      t.sign = type == FftType::kIfft || type == FftType::kIrfft ? 1 : -1;
      t.from = dims;
      t.to = dims;
      const bool minor = axis + 1 == rank;
      if (minor && type == FftType::kRfft) t.to[axis] = t.size / 2 + 1;
      if (minor && type == FftType::kIrfft) {
        t.mirrored = true;
        t.real_result = true;
        t.to[axis] = t.size;
      }
      dims = t.to;
      transforms.push_back(std::move(t));
    };
    // The minor axis has the half spectrum of real numbers: it is transformed first, and inverted
    // last.
    if (type != FftType::kIrfft) {
      for (size_t axis = rank; axis-- > first;) add(axis);
    } else {
      for (size_t axis = first; axis < rank; ++axis) add(axis);
    }
    return transforms;
  }

  Status along(const AxisTransform& t, uint32_t from, uint32_t to, const std::string& suffix) {
    const auto table = static_cast<uint32_t>(lowered_.constants.size());
    lowered_.constants.push_back(roots_of_unity(complex_, t.size, t.sign));
    kernel::MemoryId roots = kernel::kNone;
    kernel::MemoryId source = kernel::kNone;
    RowPasses rows;
    rows.dims = t.from;
    rows.dims[t.axis] = t.size;
    rows.axis = t.axis;
    rows.types = {complex_};
    rows.passes = log2_ceil(t.size);
    rows.declare = [&](KernelMaker& maker) {
      roots = maker.constant(table);
      source = from == kernel::kNone ? kernel::kNone : maker.temporary(from, kernel::Access::kIn);
    };
    rows.input = [&](KernelMaker& maker, const Values& index) {
      return Elements{input(maker, t, source, index)};
    };
    rows.step = [&](KernelMaker& maker, int pass, const RowReader& read, ValueId i) {
      return Elements{butterfly(maker, t, roots, pass, read, i)};
    };
    rows.output = [&](KernelMaker& maker) -> RowPasses::Writer {
      const kernel::MemoryId memory =
          to == kernel::kNone ? maker.result(0) : maker.temporary(to, kernel::Access::kOut);
      return [&maker, &t, memory](const Elements& elements, const Values& index) {
        write(maker, t, memory, elements[0], index);
      };
    };
    return lower_row_passes(lowered_, op_, rows, suffix, tuning_, limits_);
  }

  Element input(KernelMaker& maker, const AxisTransform& t, kernel::MemoryId source,
                const Values& index) {
    ElementEmitter& e = maker.e();
    const auto read = [&](const Values& at) {
      if (source != kernel::kNone) return e.load(source, Type::tensor(complex_, t.from), at);
      const Type& type = op_.operand_type(0);
      return e.convert(e.element(op_.operand(0), at), type.element_type(), complex_);
    };
    if (!t.mirrored || t.size == 1) return read(index);
    // X[k] = conj(X[n - k])
    const ValueId half = maker.b().index(t.size / 2);
    const ValueId behind = maker.b().compare(K::kGt, index[t.axis], half);
    Values mirrored = index;
    mirrored[t.axis] = maker.b().select(
        behind, maker.b().sub(maker.b().index(t.size), index[t.axis]), index[t.axis]);
    // The clamp proves to the verifier a bound that the selection guarantees.
    mirrored[t.axis] = maker.b().min(mirrored[t.axis], half);
    Element x = read(mirrored);
    const ValueId conjugate = maker.b().unary(K::kNeg, x.im);
    x.im = maker.b().select(behind, conjugate, x.im);
    return x;
  }

  // Output o of pass p is q + s (2 j + r) with s = 2^p: the sum (r = 0) of inputs q + s j and q + s
  // (j + m), or their difference multiplied by root number j s.
  Element butterfly(KernelMaker& maker, const AxisTransform& t, kernel::MemoryId roots, int pass,
                    const RowReader& read, ValueId o) {
    Builder& b = maker.b();
    ElementEmitter& e = maker.e();
    const ElementType part = complex_part(complex_);
    const int64_t s = int64_t{1} << pass;
    const int64_t m = t.size / (2 * s);
    const ValueId q = b.rem(o, b.index(s));
    const ValueId block = b.div(o, b.index(s));
    const ValueId j = b.div(block, b.index(2));
    const ValueId r = b.rem(block, b.index(2));
    const ValueId first = b.add(q, b.mul(j, b.index(s)));
    const Element x = read(first)[0];
    const Element y = read(b.add(first, b.index(s * m)))[0];
    const Element w = e.load(roots, Type::tensor(complex_, {}), {b.mul(j, b.index(s))});
    const Element sum = add(e, x, y, part);
    const Element difference = {b.sub(x.re, y.re), b.sub(x.im, y.im)};
    const Element turned = multiply(e, difference, w, part);
    Element result = e.select(b.compare(K::kEq, r, b.index(0)), sum, turned);
    if (t.sign > 0 && pass + 1 == log2_ceil(t.size)) {
      const ValueId scale = b.real(part, 1.0 / static_cast<double>(t.size));
      result = {b.mul(result.re, scale), b.mul(result.im, scale)};
    }
    return result;
  }

  static void write(KernelMaker& maker, const AxisTransform& t, kernel::MemoryId memory,
                    const Element& x, const Values& index) {
    const Element stored = t.real_result ? Element{x.re} : x;
    if (t.to[t.axis] == t.size) return maker.e().store(stored, memory, index);
    const ValueId kept = maker.b().compare(K::kLt, index[t.axis], maker.b().index(t.to[t.axis]));
    maker.b().if_then(kept, [&] { maker.e().store(stored, memory, index); });
  }

  LoweredOp& lowered_;
  const Instruction& op_;
  TuningParameters& tuning_;
  const LowerLimits& limits_;
  ElementType complex_{};
  uint32_t temporary_ = kernel::kNone;
};

}  // namespace

Status lower_fft(LoweredOp& lowered, const Instruction& op, TuningParameters& tuning,
                 const LowerLimits& limits) {
  return FourierLowering(lowered, op, tuning, limits).run();
}

}  // namespace tenon::hlo::lower
