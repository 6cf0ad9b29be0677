#include "core/kernel/analysis/cost.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "core/kernel/analysis/ranges.h"
#include "core/kernel/ir/visitor.h"

namespace tenon::kernel {
namespace {

double product(const Dims& extents) {
  double result = 1;
  for (const int64_t extent : extents) result *= static_cast<double>(std::max<int64_t>(extent, 0));
  return result;
}

struct Work {
  double flops = 0;
  double transcendentals = 0;
  double operations = 0;
  bool exact = true;
  bool bounded = true;

  Work& operator+=(const Work& other) {
    flops += other.flops;
    transcendentals += other.transcendentals;
    operations += other.operations;
    exact = exact && other.exact;
    bounded = bounded && other.bounded;
    return *this;
  }
  bool operator==(const Work&) const = default;
};

Work operator*(double times, Work work) {
  work.flops *= times;
  work.transcendentals *= times;
  work.operations *= times;
  return work;
}

class Counter {
 public:
  explicit Counter(const Kernel& kernel) : kernel_(kernel), ranges_(kernel) {}

  /// Adds to `counts`, by memory, how many elements `times` executions of a block access at most.
  void count_accesses(BlockId id, double times, std::vector<double>& counts) const {
    for (const NodeId number : kernel_.block(id).nodes) {
      const Node& n = kernel_.node(number);
      for (const MemoryId memory : n.memories) {
        counts[memory] += times * std::max(product(n.extents), 1.0);
      }
      double each = times;
      if (n.op == OpCode::kFor) {
        each *= turns_of(n).value_or(std::numeric_limits<double>::infinity());
      } else if (n.op == OpCode::kWhile) {
        each = std::numeric_limits<double>::infinity();
      } else {
        each *= product(n.extents);
      }
      if (each == 0 || std::isnan(each)) continue;
      for (const BlockId inner : n.blocks) count_accesses(inner, each, counts);
    }
  }

  Work block(BlockId id) const {
    Work work;
    for (const NodeId n : kernel_.block(id).nodes) work += node(kernel_.node(n));
    return work;
  }

 private:
  Work node(const Node& n) const {
    return visit(n, Overloads{
                        [&](OnScalar) { return scalar(n); },
                        [&](OnAccess) { return operations(1); },
                        [&](OnDeclaration) { return Work(); },
                        [&](OnLanes) { return product(n.extents) * blocks(n); },
                        [&](OnFor) { return turns(n); },
                        [&](OnWhile) {
                          Work once = blocks(n);
                          once.exact = once.bounded = false;
                          return once;
                        },
                        [&](OnIf) { return branches(n); },
                        [&](OnReduction) { return product(n.extents) * blocks(n); },
                        [&](OnCopy) { return operations(product(n.extents)); },
                        [&](OnContract) {
                          Work work = operations(2 * product(n.extents));
                          const bool real = is_float(kernel_.memory(n.memories[0]).type);
                          if (real) work.flops = work.operations;
                          return work;
                        },
                        [&](OnYield) { return Work(); },
                    });
  }

  // Visits each block of a statement once.
  Work blocks(const Node& n) const {
    Work work;
    for (const BlockId b : n.blocks) work += block(b);
    return work;
  }

  static Work operations(double count) {
    Work work;
    work.operations = count;
    return work;
  }

  static Work scalar(const Node& n) {
    Work work = operations(is_math(n.op) ? kMathOperations : 1);
    if (!is_float(n.type)) return work;
    if (is_math(n.op)) work.transcendentals = 1;
    if (n.op <= OpCode::kRoundAway) work.flops = n.op == OpCode::kFma ? 2 : 1;
    return work;
  }

  // The most turns of a `for`; nothing if its bounds are unknown.
  std::optional<double> turns_of(const Node& n) const {
    const IntegerRange low = ranges_.of(n.operands[0]);
    const IntegerRange high = ranges_.of(n.operands[1]);
    const IntegerRange any = range_of_type(kernel_.value(n.operands[1]).type);
    if (!has_known_turns(n) && (low.low == any.low || high.high == any.high)) return std::nullopt;
    const __int128 step = std::max<int64_t>(n.extents[0], 1);
    const __int128 length = std::max<__int128>(high.high - low.low, 0);
    const __int128 turns = (length + step - 1) / step;
    return static_cast<double>(turns);
  }
  bool has_known_turns(const Node& n) const {
    const IntegerRange low = ranges_.of(n.operands[0]);
    const IntegerRange high = ranges_.of(n.operands[1]);
    return low.low == low.high && high.low == high.high;
  }

  Work turns(const Node& n) const {
    Work once = block(n.blocks[0]);
    const std::optional<double> turns = turns_of(n);
    if (!turns) {
      once.exact = once.bounded = false;
      return once;
    }
    Work all = *turns * once;
    all.exact = once.exact && has_known_turns(n);
    all.bounded = once.bounded;
    return all;
  }

  Work branches(const Node& n) const {
    const Work then = block(n.blocks[0]);
    const Work otherwise = block(n.blocks[1]);
    Work larger;
    larger.flops = std::max(then.flops, otherwise.flops);
    larger.transcendentals = std::max(then.transcendentals, otherwise.transcendentals);
    larger.operations = std::max(then.operations, otherwise.operations);
    larger.exact = then == otherwise && then.exact;
    larger.bounded = then.bounded && otherwise.bounded;
    return larger;
  }

  const Kernel& kernel_;
  const Ranges ranges_;
};

}  // namespace

Cost cost_of(const Kernel& kernel) {
  const Counter counter(kernel);
  const Work work = product(kernel.grid) * counter.block(kernel.body);
  std::vector<double> accesses(kernel.memories.size());
  counter.count_accesses(kernel.body, product(kernel.grid), accesses);
  Cost cost = {work.flops, work.transcendentals, 0, 0, work.operations, work.exact, work.bounded};
  for (size_t i = 0; i < kernel.buffer_count; ++i) {
    const Memory& memory = kernel.memories[i];
    const double accessed = accesses[i] * std::max(bit_width(memory.type) / 8, 1);
    const int64_t bytes = accessed < static_cast<double>(memory.bytes())
                              ? static_cast<int64_t>(accessed)
                              : memory.bytes();
    if (memory.access != Access::kOut) cost.bytes_read += bytes;
    if (memory.access != Access::kIn) cost.bytes_written += bytes;
  }
  return cost;
}

}  // namespace tenon::kernel
