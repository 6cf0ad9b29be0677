// fft along each dimension in turn. Lines that fit scratch memory are transformed there, one or
// several by a workgroup; longer ones by a few passes through temporaries, each of which transforms
// lines of some hundred points that lie apart. Real numbers of even length are transformed as
// complex ones of half the length.
#include <algorithm>
#include <map>
#include <tuple>

#include "hlo/lower/elements/index_math.h"
#include "hlo/lower/schedules/fourier/fourier.h"
#include "hlo/lower/schedules/own_kernels.h"

namespace tenon::hlo::lower {
namespace {

using kernel::Access;
using kernel::Builder;
using kernel::MemoryId;

// One transform along one axis.
struct AxisTransform {
  size_t axis = 0;
  int64_t size = 1;
  int sign = -1;
  Dims from;                 ///< Dimensions of the input.
  Dims to;                   ///< Dimensions of the output.
  bool real_result = false;  ///< The input is the first half of the spectrum of real numbers.
  /// Pairs of real numbers are taken for complex ones.
  bool packed = false;
  int64_t points = 1;  ///< The complex numbers that are transformed.

  bool packed_input() const { return packed && !real_result; }
  bool packed_output() const { return packed && real_result; }
};

// Where a transform reads and writes: kNone: the operand, and the result of the op.
struct TransformEnds {
  uint32_t from = kernel::kNone;
  uint32_t to = kernel::kNone;
};

// A pass of a transform by lines of `radix` points that lie m s apart.
struct FarPass {
  int64_t radix = 1;
  int64_t m = 1;
  int64_t s = 1;
  bool first = false;
  bool last = false;
};

class FourierLowering {
 public:
  FourierLowering(LoweredOp& lowered, const Instruction& op, TuningParameters& tuning,
                  const LowerLimits& limits)
      : lowered_(lowered),
        op_(op),
        tuning_(tuning),
        fma_(limits.fma),
        scratch_bytes_(tuning.choose_flag(parameters::kRowScratch, true) ? limits.scratch_bytes
                                                                         : 0) {
    const ElementType in = op.operand_type(0).element_type();
    complex_ = is_complex(in) ? in : *complex_of(in);
    part_ = complex_part(complex_);
  }

  Status run() {
    const std::vector<AxisTransform> transforms = plan();
    TransformEnds arrays;
    for (size_t t = 0; t < transforms.size(); ++t) {
      const bool last = t + 1 == transforms.size();
      arrays.to = last ? kernel::kNone : temporary(transforms[t].to);
      TENON_TRY(along(transforms[t], arrays,
                      transforms.size() == 1 ? "" : fmt::format("_axis{}", transforms[t].axis)));
      arrays.from = arrays.to;
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
      const bool real = minor && (type == FftType::kRfft || type == FftType::kIrfft);
      t.packed = real && t.size % 2 == 0 && t.size > 2;
      t.points = t.packed ? t.size / 2 : t.size;
      t.real_result = minor && type == FftType::kIrfft;
      if (minor && type == FftType::kRfft) t.to[axis] = t.size / 2 + 1;
      if (t.real_result) t.to[axis] = t.size;
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

  uint32_t temporary(const Dims& dims) {
    lowered_.temporaries.emplace_back(complex_, dims);
    return static_cast<uint32_t>(lowered_.temporaries.size() - 1);
  }

  // A table, made once for its key.
  uint32_t table(const std::tuple<int64_t, int64_t, int>& key,
                 const std::function<Literal()>& make) {
    const auto found = tables_.find(key);
    if (found != tables_.end()) return found->second;
    const auto index = static_cast<uint32_t>(lowered_.constants.size());
    lowered_.constants.push_back(make());
    tables_.emplace(key, index);
    return index;
  }
  uint32_t table_of_lines(const LineTransform& lines) {
    return table({lines.size, 0, lines.sign}, [&] { return lines.roots(); });
  }
  // exp(sign 2 pi i k j / (rows columns)) for k < rows, j < columns.
  uint32_t table_of_products(int64_t rows, int64_t columns, int sign) {
    return table({rows, columns, sign}, [&] {
      std::vector<int64_t> numbers;
      for (int64_t k = 0; k < rows; ++k) {
        for (int64_t j = 0; j < columns; ++j) numbers.push_back(k * j);
      }
      return table_of_roots(part_, rows * columns, sign, numbers);
    });
  }
  // exp(sign 2 pi i k / size), which joins the transforms of even and odd numbers.
  uint32_t table_of_halves(const AxisTransform& t) {
    return table({t.size, -1, t.sign}, [&] {
      std::vector<int64_t> numbers;
      for (int64_t k = 0; k <= t.points; ++k) numbers.push_back(k);
      return table_of_roots(part_, t.size, t.sign, numbers);
    });
  }

  Status along(const AxisTransform& t, const TransformEnds& arrays, const std::string& suffix) {
    const int64_t most = tuning_.choose(parameters::kFftPoints, parameters::kFftPoints.most);
    const bool minor = t.axis + 1 == t.from.size();
    LineTransform lines = lines_of(t);
    const int64_t bytes = lines.scratch_bytes(t.packed_input());
    const bool fits = bytes <= scratch_bytes_ && (bytes == 0 || t.points <= most);
    constexpr int64_t kFewestColumns = 8;
    if (fits && (minor || t.to.back() < kFewestColumns)) return rows(t, arrays, suffix, bytes);
    // Lines apart: a workgroup has as many as fill a line of a cache.
    const int64_t preferred = std::max<int64_t>(128 / Shape(complex_, {1}).byte_size(), 1);
    const int64_t abreast = tuning_.choose(parameters::kFftLines, preferred);
    const int64_t point = 4 * Shape(part_, {1}).byte_size();
    const int64_t room = std::min(most, scratch_bytes_ / (point * abreast));
    const bool in_scratch = room >= 2 * 13;
    const std::vector<int64_t> factors =
        in_scratch ? factors_of(t.points, room) : radices_of(t.points);
    return far(t, arrays, suffix, factors, in_scratch ? abreast : std::max<int64_t>(abreast, 64));
  }

  LineTransform lines_of(const AxisTransform& t) const {
    LineTransform lines;
    lines.size = t.points;
    lines.sign = t.sign;
    lines.fma = fma_;
    lines.part = part_;
    return lines;
  }

  // --- Inputs and outputs

  // The number at `index` of what `t` transforms.
  Element input(KernelMaker& maker, const AxisTransform& t, MemoryId source, MemoryId halves,
                const Values& index) {
    ElementEmitter& e = maker.e();
    Builder& b = maker.b();
    const auto read = [&](ValueId position) {
      Values at = index;
      at[t.axis] = position;
      if (source != kernel::kNone) return e.load(source, Type::tensor(complex_, t.from), at);
      const Type& type = op_.operand_type(0);
      const Element x = e.element(op_.operand(0), at);
      return t.packed_input() ? x : e.convert(x, type.element_type(), complex_);
    };
    const ValueId k = index[t.axis];
    if (t.packed_input()) {
      const ValueId even = b.mul(k, b.index(2));
      const ValueId re = read(even).re;
      return {re, read(b.add(even, b.index(1))).re};
    }
    if (t.packed_output()) return tangled(maker, t, halves, k, read);
    if (!t.real_result || t.size == 1) return read(k);
    // X[k] = conj(X[n - k])
    const ValueId half = b.index(t.size / 2);
    const ValueId behind = b.compare(K::kGt, k, half);
    const ValueId mirrored = b.select(behind, b.sub(b.index(t.size), k), k);
    // The clamp proves to the verifier a bound that the selection guarantees.
    Element x = read(b.min(mirrored, half));
    x.im = b.select(behind, b.unary(K::kNeg, x.im), x.im);
    return x;
  }

  // With h = n / 2, the spectrum of even numbers and i times that of odd numbers, times two: X[k] +
  // conj(X[h - k]) + i w^k (X[k] - conj(X[h - k])).
  Element tangled(KernelMaker& maker, const AxisTransform& t, MemoryId halves, ValueId k,
                  const std::function<Element(ValueId)>& read) const {
    Builder& b = maker.b();
    Element x = read(k);
    Element y = read(b.sub(b.index(t.points), k));
    // The imaginary parts of the first and the last number have no meaning.
    const ValueId first = b.compare(K::kEq, k, b.index(0));
    const ValueId zero = b.real(b.type_of(x.im), 0);
    x.im = b.select(first, zero, x.im);
    y.im = b.select(first, zero, y.im);
    const Element sum = {b.add(x.re, y.re), b.sub(x.im, y.im)};
    const Element difference = {b.sub(x.re, y.re), b.add(x.im, y.im)};
    const Element z = turned(b, difference, root(b, halves, k), fma_);
    return {b.sub(sum.re, z.im), b.add(sum.im, z.re)};
  }

  static Element root(Builder& b, MemoryId table, ValueId number) {
    return {b.load(table, {b.index(0), number}), b.load(table, {b.index(1), number})};
  }

  void output(KernelMaker& maker, const AxisTransform& t, MemoryId memory, const Values& index,
              Element x) {
    Builder& b = maker.b();
    ElementEmitter& e = maker.e();
    if (t.sign > 0) {
      const ValueId scale = b.real(part_, 1.0 / static_cast<double>(t.size));
      x = {b.mul(x.re, scale), b.mul(x.im, scale)};
    }
    if (t.packed_output()) {
      Values at = index;
      at[t.axis] = b.mul(index[t.axis], b.index(2));
      e.store({x.re}, memory, at);
      at[t.axis] = b.add(at[t.axis], b.index(1));
      return e.store({x.im}, memory, at);
    }
    const Element stored = t.real_result ? Element{x.re} : x;
    if (t.to[t.axis] == t.points) return e.store(stored, memory, index);
    const ValueId kept = b.compare(K::kLt, index[t.axis], b.index(t.to[t.axis]));
    b.if_then(kept, [&] { e.store(stored, memory, index); });
  }

  // The spectrum of real numbers from that of their pairs: (z[k] + conj(z[h - k])) / 2 - i w^k
  // (z[k] - conj(z[h - k])) / 2.
  Element untangled(Builder& b, const Element& x, const Element& y, const Element& w) const {
    const ValueId half = b.real(part_, 0.5);
    const Element even = {b.mul(half, b.add(x.re, y.re)), b.mul(half, b.sub(x.im, y.im))};
    const Element odd = {b.mul(half, b.add(x.im, y.im)), b.mul(half, b.sub(y.re, x.re))};
    const Element z = turned(b, odd, w, fma_);
    return {b.add(even.re, z.re), b.add(even.im, z.im)};
  }
  // The first number and the last, which are real.
  void untangle_ends(Builder& b, const AxisTransform& t, const Element& first,
                     const std::function<void(ValueId, const Element&)>& write) const {
    const ValueId zero = b.real(part_, 0);
    write(b.index(0), {b.add(first.re, first.im), zero});
    write(b.index(t.points), {b.sub(first.re, first.im), zero});
  }

  MemoryId source_of(KernelMaker& maker, const TransformEnds& arrays) const {
    return arrays.from == kernel::kNone ? kernel::kNone : maker.temporary(arrays.from, Access::kIn);
  }
  MemoryId target_of(KernelMaker& maker, const TransformEnds& arrays) const {
    return arrays.to == kernel::kNone ? maker.result(0) : maker.temporary(arrays.to, Access::kOut);
  }

  // --- Lines in scratch memory

  Status rows(const AxisTransform& t, const TransformEnds& arrays, const std::string& suffix,
              int64_t bytes) {
    LineTransform lines = lines_of(t);
    const size_t rank = t.from.size();
    const bool several = t.axis + 1 == rank && rank > 1;
    if (several) {
      // Enough for the lanes of a workgroup, while the lines stay in a cache.
      const int64_t fill = std::max<int64_t>(
          {int64_t{1}, std::min(4 * CostModel().lanes, int64_t{2048}) / t.points});
      const int64_t wanted = tuning_.choose(parameters::kFftLines, fill);
      const int64_t room = bytes == 0 ? wanted : scratch_bytes_ / bytes;
      lines.lines = std::max<int64_t>(1, std::min({wanted, room, t.from[rank - 2]}));
    }
    const uint32_t roots = table_of_lines(lines);
    const uint32_t halves = t.packed ? table_of_halves(t) : kernel::kNone;
    return add_kernel(lowered_, op_, suffix, [&, lines](KernelMaker& maker) {
      Builder& b = maker.b();
      maker.inputs();
      const MemoryId root_table = maker.constant(roots);
      const MemoryId half_table = t.packed ? maker.constant(halves) : kernel::kNone;
      const MemoryId source = source_of(maker, arrays);
      const MemoryId target = target_of(maker, arrays);
      Dims rest = t.from;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(t.axis));
      if (several) rest.back() = tiles_of(rest.back(), lines.lines);
      const Values group = b.grid(rest);
      const auto row = [&](ValueId line) {
        return several ? b.add(b.mul(group.back(), b.index(lines.lines)), line) : line;
      };
      const auto at = [&](ValueId line, ValueId position) {
        Values index = group;
        if (several) index.back() = row(line);
        index.insert(index.begin() + static_cast<std::ptrdiff_t>(t.axis), position);
        return index;
      };
      const auto guard = [&](ValueId line, const std::function<void()>& body) {
        if (!several) return body();
        if_inside(b, {{row(line), t.from[rank - 2], lines.lines}}, body);
      };
      const auto read = [&](ValueId line, ValueId position) {
        return input(maker, t, source, half_table, at(line, position));
      };
      const auto write = [&](ValueId line, ValueId position, const Element& x) {
        output(maker, t, target, at(line, position), x);
      };
      if (!t.packed_input()) {
        lines.emit(b, root_table, read, write, guard);
        return;
      }
      const LineTransform::Read z = lines.emit(b, root_table, read, nullptr, guard);
      const auto store = [&](ValueId line) {
        return [&, line](ValueId k, const Element& x) { maker.e().store(x, target, at(line, k)); };
      };
      b.lanes({lines.lines, t.points - 1}, [&](const Values& i) {
        guard(i[0], [&] {
          const ValueId k = b.add(i[1], b.index(1));
          const Element mirrored = z(i[0], b.sub(b.index(t.points - 1), i[1]));
          store(i[0])(k, untangled(b, z(i[0], k), mirrored, root(b, half_table, k)));
        });
      });
      b.lanes({lines.lines}, [&](const Values& i) {
        guard(i[0], [&] { untangle_ends(b, t, z(i[0], b.index(0)), store(i[0])); });
      });
    });
  }

  // --- Passes through temporaries

  Status far(const AxisTransform& t, const TransformEnds& arrays, const std::string& suffix,
             const std::vector<int64_t>& factors, int64_t abreast) {
    Dims work = t.from;
    work[t.axis] = t.points;
    const size_t stored = factors.size() - (t.packed_input() ? 0 : 1);
    std::vector<uint32_t> temporaries;
    for (size_t i = 0; i < std::min<size_t>(stored, 2); ++i) temporaries.push_back(temporary(work));
    int64_t s = 1;
    for (size_t p = 0; p < factors.size(); ++p) {
      FarPass pass = {factors[p], t.points / (s * factors[p]), s, p == 0, p + 1 == factors.size()};
      const bool to_temporary = p < stored;
      const TransformEnds now = {pass.first ? arrays.from : temporaries[(p - 1) % 2],
                                 to_temporary ? temporaries[p % 2] : arrays.to};
      const std::string name = factors.size() == 1 ? suffix : fmt::format("{}_pass{}", suffix, p);
      TENON_TRY(far_pass(t, pass, now, work, name, abreast, to_temporary));
      s *= factors[p];
    }
    if (!t.packed_input()) return {};
    return untangle(t, {temporaries[(factors.size() - 1) % 2], arrays.to}, work, suffix);
  }

  // The workgroups of a pass along `axis`: lines of adjacent columns, or of adjacent points if the
  // axis is the minor one.
  struct FarGrid {
    Dims extents;
    int64_t size = 1;     ///< Number of lines that are adjacent.
    int64_t abreast = 1;  ///< Those of a workgroup, among them.
  };

  static FarGrid grid_of(const AxisTransform& t, const FarPass& pass, const Dims& work,
                         int64_t abreast) {
    FarGrid grid;
    const bool minor = t.axis + 1 == work.size();
    for (size_t d = 0; d + 1 < work.size(); ++d) {
      if (d != t.axis) grid.extents.push_back(work[d]);
    }
    grid.size = minor ? (pass.s == 1 ? pass.m : pass.s) : work.back();
    grid.abreast = std::min(abreast, grid.size);
    const bool along_j = minor && pass.s == 1;
    grid.extents.push_back(along_j ? 1 : pass.m);
    grid.extents.push_back(minor ? 1 : pass.s);
    grid.extents.push_back(tiles_of(grid.size, grid.abreast));
    return grid;
  }

  Status far_pass(const AxisTransform& t, const FarPass& pass, const TransformEnds& arrays,
                  const Dims& work, const std::string& name, int64_t abreast, bool to_temporary) {
    const bool minor = t.axis + 1 == work.size();
    const bool along_j = minor && pass.s == 1;
    const FarGrid grid = grid_of(t, pass, work, abreast);
    LineTransform lines = lines_of(t);
    lines.size = pass.radix;
    lines.lines = grid.abreast;
    lines.along_lines = true;
    const bool turns = pass.m > 1;
    // Results of one line are adjacent in memory, those of adjacent lines are not.
    const bool transposed = along_j && turns && radices_of(pass.radix).size() > 1;
    const uint32_t roots = table_of_lines(lines);
    const uint32_t products = turns ? table_of_products(pass.radix, pass.m, t.sign) : kernel::kNone;
    const bool tangles = pass.first && t.packed_output();
    const uint32_t halves = tangles ? table_of_halves(t) : kernel::kNone;
    return add_kernel(lowered_, op_, name, [&, lines](KernelMaker& maker) mutable {
      Builder& b = maker.b();
      maker.inputs();
      const MemoryId root_table = maker.constant(roots);
      const MemoryId product_table = turns ? maker.constant(products) : kernel::kNone;
      const MemoryId half_table = tangles ? maker.constant(halves) : kernel::kNone;
      const MemoryId source = source_of(maker, arrays);
      const MemoryId target = target_of(maker, arrays);
      const Values group = b.grid(grid.extents);
      const size_t after = group.size() - 3;
      const auto lane = [&](ValueId line) {
        return b.add(b.mul(group.back(), b.index(grid.abreast)), line);
      };
      const auto j_of = [&](ValueId line) { return along_j ? lane(line) : group[after]; };
      const auto q_of = [&](ValueId line) {
        return along_j ? b.index(0) : minor ? lane(line) : group[after + 1];
      };
      const auto at = [&](ValueId line, ValueId position) {
        Values index(group.begin(), group.begin() + static_cast<std::ptrdiff_t>(after));
        if (!minor) index.push_back(lane(line));
        index.insert(index.begin() + static_cast<std::ptrdiff_t>(t.axis), position);
        return index;
      };
      const auto read = [&](ValueId line, ValueId k) {
        const ValueId first = b.add(b.mul(j_of(line), b.index(pass.s)), q_of(line));
        const Values index = at(line, b.add(b.mul(k, b.index(pass.m * pass.s)), first));
        if (pass.first) return input(maker, t, source, half_table, index);
        return maker.e().load(source, Type::tensor(complex_, work), index);
      };
      const auto write = [&](ValueId line, ValueId k, const Element& x) {
        const ValueId run = b.add(b.mul(j_of(line), b.index(pass.radix)), k);
        const Values index = at(line, b.add(b.mul(run, b.index(pass.s)), q_of(line)));
        if (to_temporary) return maker.e().store(x, target, index);
        output(maker, t, target, index, x);
      };
      const auto guard = [&](ValueId line, const std::function<void()>& body) {
        if_inside(b, {{lane(line), grid.size, grid.abreast}}, body);
      };
      if (turns) {
        lines.finish = [&](ValueId line, ValueId k, const Element& x) {
          const ValueId number = b.add(b.mul(k, b.index(pass.m)), j_of(line));
          return turned(b, x, root(b, product_table, number), fma_);
        };
      }
      if (!transposed) {
        lines.emit(b, root_table, read, write, guard);
        return;
      }
      const LineTransform::Read y = lines.emit(b, root_table, read, nullptr, guard);
      b.lanes({grid.abreast, pass.radix},
              [&](const Values& i) { guard(i[0], [&] { write(i[0], i[1], y(i[0], i[1])); }); });
    });
  }

  Status untangle(const AxisTransform& t, const TransformEnds& arrays, const Dims& work,
                  const std::string& suffix) {
    const uint32_t halves = table_of_halves(t);
    return add_kernel(lowered_, op_, suffix + "_real", [&](KernelMaker& maker) {
      Builder& b = maker.b();
      const MemoryId half_table = maker.constant(halves);
      const MemoryId source = source_of(maker, arrays);
      const MemoryId target = target_of(maker, arrays);
      Dims pairs = work;
      pairs[t.axis] = t.points - 1;
      for_each_index(b, pairs, tuning_, [&](const Values& i) {
        const auto moved = [&](ValueId position) {
          Values index = i;
          index[t.axis] = position;
          return index;
        };
        const auto z = [&](ValueId position) {
          return maker.e().load(source, Type::tensor(complex_, work), moved(position));
        };
        const auto store = [&](ValueId k, const Element& x) {
          maker.e().store(x, target, moved(k));
        };
        const ValueId k = b.add(i[t.axis], b.index(1));
        const Element mirrored = z(b.sub(b.index(t.points - 1), i[t.axis]));
        store(k, untangled(b, z(k), mirrored, root(b, half_table, k)));
        b.if_then(b.compare(K::kEq, i[t.axis], b.index(0)),
                  [&] { untangle_ends(b, t, z(b.index(0)), store); });
      });
    });
  }

  LoweredOp& lowered_;
  const Instruction& op_;
  TuningParameters& tuning_;
  const bool fma_;
  const int64_t scratch_bytes_;
  ElementType complex_{};
  ElementType part_{};
  std::map<std::tuple<int64_t, int64_t, int>, uint32_t> tables_;
};

}  // namespace

Status lower_fft(LoweredOp& lowered, const Instruction& op, TuningParameters& tuning,
                 const LowerLimits& limits) {
  return FourierLowering(lowered, op, tuning, limits).run();
}

}  // namespace tenon::hlo::lower
