#include "backends/cpu/codegen/row_pattern.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <set>

#include "backends/cpu/codegen/varying.h"
#include "core/kernel/analysis/slope.h"
#include "core/kernel/ir/ops.h"
#include "core/kernel/ir/visitor.h"
#include "core/kernel/math/scalar.h"

namespace tenon::cpu {

using kernel::Kernel;
using kernel::Node;
using kernel::NodeId;
using kernel::OpCode;
using kernel::ValueId;

namespace {

constexpr int64_t kLongestRow = 128;
constexpr int64_t kLongestOfSeveral = 32;      // elements of a row that shares vectors with others
constexpr int64_t kMostLanesOfSeveral = 16;    // Workgroups have multiples of 16 short rows.
constexpr int64_t kMostNodesByPatterns = 600;  // of all vectors of a pattern
constexpr int64_t kMostLeaves = 7;             // of a reduction for each element
constexpr int64_t kMostJoined = 4;             // elements from lane to lane of other accesses
constexpr size_t kMostWindows = 8;             // of an access; more elements are gathered as fast
constexpr int64_t kMathOperations = 20;        // of a math function
constexpr int64_t kQuotientOperations = 8;     // of a quotient of integers in vectors

int64_t ceiling_of(int64_t count) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count)));
}

bool are_different(std::vector<int64_t> places) {
  std::ranges::sort(places);
  return std::ranges::adjacent_find(places) == places.end();
}

// How an index of an access depends on the row and on the place within it.
struct IndexTerms {
  int64_t by_row = 0;
  std::vector<int64_t> within;  // added to the value for the first row's first element
};

// Finds what a body consists of: operations, accesses, and conditions that only compute, or that
// depend on the place within a row alone; and where the accesses lie.
class PatternReader {
 public:
  PatternReader(const Kernel& kernel, const Varying& varying, const Varying& within_rows,
                RowPattern& pattern)
      : kernel_(kernel), varying_(varying), within_rows_(within_rows), pattern_(pattern) {}

  bool run(const Node& lanes) {
    const std::vector<ValueId>& arguments = kernel_.block(lanes.blocks[0]).arguments;
    last_ = arguments.back();
    for (size_t d = 0; d < pattern_.sizes.size(); ++d) {
      std::vector<uint64_t>& values = pattern_.known[arguments[pattern_.row + 1 + d]];
      for (int64_t at = 0; at < pattern_.count; ++at)
        values.push_back(static_cast<uint64_t>(place_within(at, pattern_.sizes)[d]));
    }
    return block(lanes.blocks[0], std::vector<bool>(static_cast<size_t>(pattern_.count), true)) &&
           !pattern_.accesses.empty();
  }
  int64_t nodes() const { return nodes_; }
  /// Those that compute what is not known.
  int64_t operations() const { return operations_; }
  /// Beside them: quotients that are the same for all elements of a row.
  int64_t quotients_of_rows() const { return quotients_of_rows_; }
  /// Loads of places that are known only when the code runs, each as often as it is computed.
  int64_t gathers() const { return gathers_; }
  /// Those of them that are vectors of memory where lanes are along one dimension.
  int64_t along_memory() const { return along_memory_; }

 private:
  using Active = std::vector<bool>;

  bool block(kernel::BlockId id, const Active& active) {
    return std::ranges::all_of(kernel_.block(id).nodes,
                               [&](NodeId each) { return node(each, active); });
  }

  bool node(NodeId id, const Active& active) {
    const Node& n = kernel_.node(id);
    ++nodes_;
    if (n.op == OpCode::kLoad || n.op == OpCode::kStore) return access(n, active);
    if (kernel::is_scalar_op(n.op)) {
      if (evaluate(n) || !varying_(n.results[0])) return true;
      const bool is_quotient = n.op == OpCode::kDiv || n.op == OpCode::kRem;
      if (is_quotient && is_integer(n.type) && !within_rows_(n.results[0])) {
        ++quotients_of_rows_;
      } else {
        operations_ += kernel::is_math(n.op) ? kMathOperations : 1;
      }
      return true;
    }
    if (n.op == OpCode::kYield) return true;
    if (n.op == OpCode::kReduce) return reduce(n, active);
    return n.op == OpCode::kIf && branch(id, active);
  }

  bool branch(NodeId id, const Active& active) {
    const Node& n = kernel_.node(id);
    if (id == pattern_.bound || !varying_(n.operands[0])) return uniform(n, active);
    const std::optional<std::vector<uint64_t>> condition = known(n.operands[0]);
    if (!condition) {
      const size_t before = pattern_.accesses.size();
      return sides(n, active, active) && pattern_.accesses.size() == before;
    }
    Active then = active, otherwise = active;
    for (size_t at = 0; at < active.size(); ++at) {
      then[at] = active[at] && (*condition)[at] != 0;
      otherwise[at] = active[at] && (*condition)[at] == 0;
    }
    return sides(n, then, otherwise);
  }
  // All lanes take the same side, on which the condition is known.
  bool uniform(const Node& n, const Active& active) {
    const ValueId condition = n.operands[0];
    if (known(condition)) return sides(n, active, active);
    for (const size_t side : {0, 1}) {
      pattern_.known[condition].assign(active.size(), side == 0 ? 1 : 0);
      const bool fits = block(n.blocks[side], active);
      pattern_.known.erase(condition);
      if (!fits) return false;
    }
    return true;
  }
  bool sides(const Node& n, const Active& then, const Active& otherwise) {
    return block(n.blocks[0], then) && block(n.blocks[1], otherwise);
  }

  // A reduction of a few leaves, which are one after the other.
  bool reduce(const Node& n, const Active& active) {
    const int64_t leaves = element_count(n.extents);
    const int64_t nodes = nodes_, operations = operations_, gathers = gathers_;
    const int64_t along_memory = along_memory_;
    if (n.over_lanes || leaves > kMostLeaves || !block(n.blocks[0], active) ||
        !block(n.blocks[1], active)) {
      return false;
    }
    const int64_t more = std::max<int64_t>(leaves - 1, 0);
    nodes_ += (nodes_ - nodes) * more;
    operations_ += (operations_ - operations) * more;
    gathers_ += (gathers_ - gathers) * more;
    along_memory_ += (along_memory_ - along_memory) * more;
    return true;
  }

  std::optional<std::vector<uint64_t>> known(ValueId value) const {
    const kernel::Value& v = kernel_.value(value);
    if (v.kind == kernel::ValueKind::kConstant)
      return std::vector<uint64_t>(static_cast<size_t>(pattern_.count), v.bits);
    const auto found = pattern_.known.find(value);
    return found == pattern_.known.end() ? std::nullopt : std::optional(found->second);
  }

  // Computes an operation on numbers that are known.
  bool evaluate(const Node& n) {
    std::vector<std::vector<uint64_t>> operands;
    for (const ValueId each : n.operands) {
      std::optional<std::vector<uint64_t>> numbers = known(each);
      if (!numbers) return false;
      operands.push_back(std::move(*numbers));
    }
    if (operands.empty() || operands.size() > 3) return false;
    operands.resize(3, operands[0]);
    std::vector<uint64_t> results;
    for (size_t at = 0; at < operands[0].size(); ++at) {
      results.push_back(kernel::evaluate(n.op, n.type, n.from, operands[0][at], operands[1][at],
                                         operands[2][at]));
    }
    pattern_.known[n.results[0]] = std::move(results);
    return true;
  }

  std::optional<IndexTerms> terms(ValueId value) const {
    const auto count = static_cast<size_t>(pattern_.count);
    if (const std::optional<std::vector<uint64_t>> numbers = known(value)) {
      IndexTerms terms;
      for (const uint64_t each : *numbers)
        terms.within.push_back(static_cast<int64_t>(each - (*numbers)[0]));
      return terms;
    }
    if (!varying_(value)) return IndexTerms{0, std::vector<int64_t>(count)};
    if (value == pattern_.row_index) return IndexTerms{1, std::vector<int64_t>(count)};
    const kernel::Value& v = kernel_.value(value);
    if (v.kind != kernel::ValueKind::kResult) return {};
    return terms_of(kernel_.node(v.node));
  }
  std::optional<IndexTerms> terms_of(const Node& n) const {
    if (n.op != OpCode::kAdd && n.op != OpCode::kSub && n.op != OpCode::kMul) return {};
    std::optional<IndexTerms> x = terms(n.operands[0]), y = terms(n.operands[1]);
    if (!x || !y) return {};
    if (n.op == OpCode::kMul) {
      for (const size_t i : {0, 1}) {
        const kernel::Value& by = kernel_.value(n.operands[i]);
        if (by.kind == kernel::ValueKind::kConstant)
          return sum({}, i == 0 ? *y : *x, static_cast<int64_t>(by.bits));
      }
      return {};
    }
    return sum(*x, *y, n.op == OpCode::kAdd ? 1 : -1);
  }
  IndexTerms sum(IndexTerms x, const IndexTerms& y, int64_t times) const {
    x.within.resize(static_cast<size_t>(pattern_.count));
    x.by_row += times * y.by_row;
    for (size_t at = 0; at < x.within.size(); ++at) x.within[at] += times * y.within[at];
    return x;
  }

  bool access(const Node& n, const Active& active) {
    const Dims strides = kernel_.memory(n.memories[0]).resolved_strides();
    IndexTerms all;
    for (size_t d = 0; const ValueId index : kernel::indices_of(n)) {
      const std::optional<IndexTerms> each = terms(index);
      if (!each) {
        const std::optional<int64_t> step = kernel::Slopes(kernel_, last_).of_place(n);
        ++gathers_;
        along_memory_ += step && std::abs(*step) <= 1 ? 1 : 0;
        return n.op == OpCode::kLoad;
      }
      all = sum(std::move(all), *each, strides[d++]);
    }
    all.within.resize(static_cast<size_t>(pattern_.count));
    pattern_.accesses[&n] = {all.by_row, std::move(all.within), active};
    return true;
  }

  const Kernel& kernel_;
  const Varying& varying_;
  const Varying& within_rows_;
  RowPattern& pattern_;
  int64_t nodes_ = 0;
  int64_t operations_ = 0;
  int64_t quotients_of_rows_ = 0;
  int64_t gathers_ = 0;
  int64_t along_memory_ = 0;
  ValueId last_ = kernel::kNone;  ///< The index of the last dimension.
};

// The target's vectors, and whether those along one dimension are along the last one.
struct VectorTarget {
  int64_t bytes = 0;
  bool is_along = false;

  // How many more operations an access under a known mask takes.
  int64_t of_mask(const Node& access, bool is_masked) const {
    return is_masked && access.op == OpCode::kStore && bytes < kMaskRegisters ? 2 : 0;
  }
};

// How many operations an access of a row takes, if vectors are along its last dimension: adjacent
// elements under masks, some apart together with what lies between them (emit_runs.cpp), others by
// gathers.
int64_t operations_of_row(const Node& access, const RowPlaces& places, const RowPattern& pattern,
                          const VectorTarget& target) {
  const int64_t full = pattern.width;
  const int64_t last = pattern.sizes.back();
  const int64_t vectors = (last + full - 1) / full;
  std::set<int64_t> steps;
  for (size_t at = 1; at < places.within.size(); ++at) {
    if (static_cast<int64_t>(at) % last != 0)
      steps.insert(std::abs(places.within[at] - places.within[at - 1]));
  }
  const bool gathers =
      !target.is_along || steps.size() > 1 || (!steps.empty() && *steps.begin() > kMostJoined);
  const bool between = !steps.empty() && *steps.begin() > 1;
  const int64_t each = gathers   ? last
                       : between ? 2 * vectors
                                 : vectors + target.of_mask(access, last % full != 0);
  return pattern.count / last * each;
}

// How many operations the accesses of all vectors take; nothing if one takes too many.
std::optional<int64_t> operations_of(const RowPattern& pattern, const Node& access,
                                     const RowPlaces& places, const VectorTarget& target) {
  int64_t operations = 0;
  for (int64_t first = 0; first < pattern.elements(); first += pattern.width) {
    const std::vector<int64_t> all = pattern.places_of(access, first);
    std::vector<int64_t> active;
    std::set<int64_t> begins;  // One: the places are in order, lane by lane.
    for (int64_t lane = 0; lane < pattern.width; ++lane) {
      if (!pattern.is_active(access, first + lane)) continue;
      active.push_back(all[static_cast<size_t>(lane)]);
      begins.insert(active.back() - lane);
    }
    const size_t windows = windows_of(active, pattern.width).size();
    if (windows > kMostWindows) return {};
    if (access.op == OpCode::kStore && !are_different(active)) return {};
    if (places.by_row == 0 && !pattern.by_row && first > 0) continue;  // The same for all rows.
    const auto parts = static_cast<int64_t>(windows);
    const bool is_masked = active.size() % static_cast<size_t>(pattern.width) != 0;
    operations += begins.size() < 2 ? 1 + target.of_mask(access, is_masked)
                                    : parts * (2 + target.of_mask(access, true));
  }
  return operations;
}

// How many times as many operations vectors along one dimension take; nothing if an access takes
// too many in the pattern. An access is one operation; what is computed, and a gather, takes as
// long as there are lanes, of vectors that are no wider than a row.
std::optional<double> gain_of(const RowPattern& pattern, const PatternReader& reader,
                              const VectorTarget& target) {
  const int64_t full = pattern.width;
  const int64_t last = pattern.sizes.back();
  const int64_t rows = pattern.elements() / last;
  const int64_t width = std::min(full, ceiling_of(last));
  const int64_t vectors = rows * ((last + width - 1) / width);
  const bool is_along = target.is_along;
  const int64_t lanes_along = is_along ? vectors * width : pattern.elements();
  const int64_t lanes = pattern.vectors() * pattern.width;
  const int64_t near = is_along ? reader.along_memory() : 0;
  const auto computing = [&](int64_t of) {
    return static_cast<double>(reader.operations() * of) / static_cast<double>(full);
  };
  const int64_t quotients = reader.quotients_of_rows();
  double operations = computing(lanes) + static_cast<double>(reader.gathers() * lanes) +
                      static_cast<double>(quotients * kQuotientOperations * pattern.vectors());
  double by_rows = computing(lanes_along) + static_cast<double>(quotients * rows) +
                   static_cast<double>(near * vectors) +
                   static_cast<double>((reader.gathers() - near) * lanes_along);
  for (const auto& [access, places] : pattern.accesses) {
    const std::optional<int64_t> each = operations_of(pattern, *access, places, target);
    if (!each) return {};
    operations += static_cast<double>(*each);
    by_rows +=
        static_cast<double>(pattern.rows * operations_of_row(*access, places, pattern, target));
  }
  return by_rows / std::max(operations, 1.0);
}

struct Candidate {
  RowPattern pattern;
  double gain = 0;
};

// The pattern of rows that begin behind dimension `row`, also if it takes more operations.
std::optional<Candidate> candidate(const Kernel& kernel, const Node& lanes,
                                   const VectorTarget& target, RowPattern pattern) {
  const std::vector<ValueId>& arguments = kernel.block(lanes.blocks[0]).arguments;
  const Varying varying(kernel, lanes, pattern.lanes_of(arguments));
  const int64_t most = target.bytes / (varying.widest() == 0 ? 4 : varying.widest());
  // Also of a short row: an access of elements apart needs fewer vectors then.
  pattern.width = std::min(most, kMostLanesOfSeveral);
  if (!pattern.by_row) pattern.rows = pattern.width / std::gcd(pattern.width, pattern.count);
  // Rows of whole vectors, along memory, need no pattern.
  if (!pattern.by_row && ((pattern.rows == 1 && pattern.sizes.size() == 1) ||
                          lanes.extents[pattern.row] < pattern.rows)) {
    return {};
  }
  const Varying within_rows(
      kernel, lanes,
      {arguments.begin() + static_cast<std::ptrdiff_t>(pattern.row + 1), arguments.end()});
  PatternReader reader(kernel, varying, within_rows, pattern);
  if (!reader.run(lanes) || pattern.vectors() * reader.nodes() > kMostNodesByPatterns) return {};
  const std::optional<double> gain = gain_of(pattern, reader, target);
  if (!gain) return {};
  return Candidate{std::move(pattern), *gain};
}

}  // namespace

std::vector<int64_t> place_within(int64_t number, const Dims& sizes) {
  std::vector<int64_t> place(sizes.size());
  for (size_t d = sizes.size(); d-- > 0; number /= sizes[d]) place[d] = number % sizes[d];
  return place;
}

std::vector<MemoryWindow> windows_of(std::vector<int64_t> places, int64_t width) {
  std::ranges::sort(places);
  std::vector<MemoryWindow> windows;
  for (const int64_t place : places) {
    if (windows.empty() || place >= windows.back().begin + width) windows.push_back({place, 0});
    windows.back().size = place - windows.back().begin + 1;
  }
  return windows;
}

bool RowPattern::is_active(const Node& access, int64_t at) const {
  return at < elements() && accesses.at(&access).active[static_cast<size_t>(at % count)];
}

std::vector<int64_t> RowPattern::places_of(const Node& access, int64_t first) const {
  const RowPlaces& of = accesses.at(&access);
  std::vector<int64_t> places;
  for (int64_t lane = 0; lane < width; ++lane) {
    const int64_t at = std::min(first + lane, elements() - 1);
    places.push_back(of.by_row * (at / count) + of.within[static_cast<size_t>(at % count)]);
  }
  return places;
}

std::vector<ValueId> RowPattern::lanes_of(const std::vector<ValueId>& arguments) const {
  return {arguments.begin() + static_cast<std::ptrdiff_t>(by_row ? row + 1 : row), arguments.end()};
}

std::optional<RowPatterns> find_row_patterns(const Kernel& kernel, const Node& lanes,
                                             int64_t vector_bytes, bool is_along,
                                             const std::vector<std::optional<NodeId>>& bounds) {
  if (lanes.op != OpCode::kLanes || vector_bytes < 32) return {};
  const std::vector<ValueId>& arguments = kernel.block(lanes.blocks[0]).arguments;
  const VectorTarget target = {vector_bytes, is_along};
  std::optional<RowPatterns> best;
  double best_gain = 1;
  RowPattern pattern;
  for (size_t first = lanes.extents.size(); first > 1;) {
    pattern.count *= lanes.extents[--first];
    if (pattern.count > kLongestRow) break;
    if (pattern.count < 2) continue;
    pattern.row = first - 1;
    pattern.row_index = arguments[pattern.row];
    pattern.sizes =
        Dims(lanes.extents.begin() + static_cast<std::ptrdiff_t>(first), lanes.extents.end());
    pattern.bound = {};
    pattern.by_row = true;
    std::optional<Candidate> one = candidate(kernel, lanes, target, pattern);
    if (pattern.count <= kLongestOfSeveral) {
      pattern.by_row = false;
      pattern.bound = bounds[pattern.row];
      std::optional<Candidate> several = candidate(kernel, lanes, target, pattern);
      if (several && several->gain > best_gain) {
        best_gain = several->gain;
        best = {std::move(several->pattern), {}};
        if (one) best->of_one_row = one->pattern;
      }
    }
    if (one && one->gain > best_gain) {
      best_gain = one->gain;
      best = {std::move(one->pattern), {}};
    }
  }
  return best;
}

}  // namespace tenon::cpu
