// Transforms of lines in scratch memory.
#include <algorithm>
#include <array>

#include "core/base/roots_of_unity.h"
#include "core/types/shape.h"
#include "hlo/ir/fft_lengths.h"
#include "hlo/lower/elements/index_math.h"
#include "hlo/lower/schedules/fourier/fourier.h"

namespace tenon::hlo::lower {
namespace {

using kernel::Builder;
using kernel::MemoryId;

// A pass of a LineTransform.
struct LinePass {
  int64_t radix;
  int64_t m;
  int64_t s;
  int64_t first_root;  // in the table: root j k s of row k - 1 is at first_root + (k - 1) m + j
};

std::vector<LinePass> passes_of(int64_t size) {
  std::vector<LinePass> passes;
  int64_t s = 1;
  int64_t roots = 0;
  for (const int64_t radix : radices_of(size)) {
    const int64_t m = size / (radix * s);
    passes.push_back({radix, m, s, roots});
    if (m > 1) roots += (radix - 1) * m;
    s *= radix;
  }
  return passes;
}

// Two memories of `lines` lines, for real and imaginary parts.
struct SplitLines {
  MemoryId re = kernel::kNone;
  MemoryId im = kernel::kNone;
};

// A lanes loop over the extents that are not 1; the others have index 0.
void lanes_of(Builder& b, const Dims& extents, const std::function<void(const Values&)>& body) {
  Dims kept;
  std::ranges::copy_if(extents, std::back_inserter(kept), [](int64_t each) { return each != 1; });
  if (kept.empty()) kept = {1};
  b.lanes(kept, [&](const Values& lanes) {
    Values all;
    size_t next = 0;
    for (const int64_t each : extents) all.push_back(each == 1 ? b.index(0) : lanes[next++]);
    body(all);
  });
}

}  // namespace

std::vector<int64_t> radices_of(int64_t n) {
  if (n == 1) return {1};
  std::vector<int64_t> radices;
  int64_t rest = n;
  const auto take = [&](int64_t radix) {
    radices.push_back(radix);
    rest /= radix;
  };
  // The second pass reads runs as long as the first radix.
  for (const int64_t radix : {8, 10, 9, 12, 15, 14}) {
    if (rest % radix == 0 && rest != 16 && radices.empty()) take(radix);
  }
  // 4 4 is faster than 8 2.
  while (rest % 8 == 0 && rest != 16) take(8);
  for (const int64_t radix : {12, 4, 10, 9, 6, 2}) {
    while (rest % radix == 0) take(radix);
  }
  for (int64_t radix = kMostFftRadix; radix > 2; --radix) {
    while (rest % radix == 0) take(radix);
  }
  return radices;
}

std::vector<int64_t> factors_of(int64_t n, int64_t most) {
  std::vector<int64_t> primes;
  int64_t rest = n;
  for (int64_t p = 2; p <= kMostFftRadix; ++p) {
    for (; rest % p == 0; rest /= p) primes.push_back(p);
  }
  std::ranges::reverse(primes);
  // The greatest prime factors go to the least product that still has room.
  for (size_t count = 1;; ++count) {
    std::vector<int64_t> factors(count, 1);
    for (const int64_t p : primes) *std::ranges::min_element(factors) *= p;
    const bool all_fit = std::ranges::all_of(
        factors, [&](int64_t each) { return each <= std::max(most, kMostFftRadix); });
    if (all_fit || count >= primes.size()) return factors;
  }
}

Literal table_of_roots(ElementType part, int64_t n, int sign, const std::vector<int64_t>& numbers) {
  const auto count = static_cast<int64_t>(numbers.size());
  Literal table(Shape(part, {2, std::max<int64_t>(count, 1)}));
  // Many roots are products of two from short lists: the product is rounded to more bits than any
  // element type has.
  int64_t fine = 1;
  while (fine * fine < n) fine *= 2;
  std::vector<std::complex<long double>> low;
  std::vector<std::complex<long double>> high;
  const bool many = count > 4096;
  if (many) {
    for (int64_t k = 0; k < fine; ++k) low.push_back(root_of_unity(k % n, n));
    for (int64_t k = 0; k * fine < n; ++k) high.push_back(root_of_unity(k * fine, n));
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t k = numbers[static_cast<size_t>(i)] % n;
    const std::complex<long double> root =
        many ? high[static_cast<size_t>(k / fine)] * low[static_cast<size_t>(k % fine)]
             : root_of_unity(k, n);
    table.set_double(i, static_cast<double>(root.real()));
    table.set_double(count + i, sign * static_cast<double>(root.imag()));
  }
  return table;
}

Literal LineTransform::roots() const {
  std::vector<int64_t> numbers;
  for (const LinePass& p : passes_of(size)) {
    if (p.m == 1) continue;
    for (int64_t k = 1; k < p.radix; ++k) {
      for (int64_t j = 0; j < p.m; ++j) numbers.push_back(j * k * p.s);
    }
  }
  return table_of_roots(part, size, sign, numbers);
}

int64_t LineTransform::scratch_bytes(bool stay) const {
  const size_t passes = radices_of(size).size();
  const size_t sides = std::min<size_t>(2, stay ? passes : passes - 1);
  return static_cast<int64_t>(sides) * 2 * Shape(part, {size}).byte_size();
}

LineTransform::Read LineTransform::emit(Builder& b, MemoryId table, const Read& read,
                                        const Write& write, const Guard& guard) const {
  const std::vector<LinePass> passes = passes_of(size);
  const bool stay = write == nullptr;
  std::array<SplitLines, 2> sides;
  const size_t stored = stay ? passes.size() : passes.size() - 1;
  const Dims dims = along_lines ? Dims{size, lines} : Dims{lines, size};
  for (size_t side = 0; side < std::min<size_t>(stored, 2); ++side) {
    sides[side].re = b.scratch(fmt::format("re{}", side), part, dims);
    sides[side].im = b.scratch(fmt::format("im{}", side), part, dims);
  }
  const auto place = [this](ValueId line, ValueId position) {
    return along_lines ? Values{position, line} : Values{line, position};
  };
  const auto reader = [&b, place](const SplitLines& from) -> Read {
    return [&b, place, from](ValueId line, ValueId position) {
      const Values at = place(line, position);
      return Element{b.load(from.re, at), b.load(from.im, at)};
    };
  };
  for (size_t p = 0; p < passes.size(); ++p) {
    const auto& [radix, m, s, first_root] = passes[p];
    const Read from = p == 0 ? read : reader(sides[(p - 1) % 2]);
    const SplitLines& to = sides[p % 2];
    const Dims extents = along_lines ? Dims{m, s, lines} : Dims{lines, m, s};
    lanes_of(b, extents, [&](const Values& i) {
      const ValueId line = along_lines ? i[2] : i[0];
      const ValueId j = along_lines ? i[0] : i[1];
      const ValueId q = along_lines ? i[1] : i[2];
      guard(line, [&] {
        const ValueId start = b.add(b.mul(j, b.index(s)), q);
        Elements x;
        for (int64_t k = 0; k < radix; ++k) {
          x.push_back(from(line, b.add(start, b.index(m * s * k))));
        }
        Elements y = butterfly(b, part, x, sign, fma);
        for (int64_t k = 1; k < radix && m > 1; ++k) {
          const ValueId at = b.add(j, b.index(first_root + (k - 1) * m));
          const Element w = {b.load(table, {b.index(0), at}), b.load(table, {b.index(1), at})};
          y[static_cast<size_t>(k)] = turned(b, y[static_cast<size_t>(k)], w, fma);
        }
        const ValueId target = b.add(b.mul(j, b.index(s * radix)), q);
        for (int64_t k = 0; k < radix && p + 1 == passes.size() && finish; ++k) {
          Element& number = y[static_cast<size_t>(k)];
          number = finish(line, b.add(target, b.index(s * k)), number);
        }
        const auto each = [&](const std::function<void(ValueId, const Element&)>& store) {
          for (int64_t k = 0; k < radix; ++k) {
            store(b.add(target, b.index(s * k)), y[static_cast<size_t>(k)]);
          }
        };
        if (!stay && p + 1 == passes.size()) {
          return each([&](ValueId at, const Element& number) { write(line, at, number); });
        }
        // Adjacent stores to one memory, which a backend may join.
        each(
            [&](ValueId at, const Element& number) { b.store(number.re, to.re, place(line, at)); });
        each(
            [&](ValueId at, const Element& number) { b.store(number.im, to.im, place(line, at)); });
      });
    });
  }
  return stay ? reader(sides[(passes.size() - 1) % 2]) : Read();
}

}  // namespace tenon::hlo::lower
