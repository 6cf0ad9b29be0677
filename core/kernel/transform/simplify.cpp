#include "core/kernel/transform/simplify.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "core/kernel/analysis/ranges.h"
#include "core/kernel/ir/visitor.h"
#include "core/kernel/transform/rewriter.h"

namespace tenon::kernel {
namespace {

// An integer as constant + sum of factor * value, where nothing wraps around.
struct Linear {
  std::map<ValueId, __int128> terms;
  __int128 constant = 0;

  void add(const Linear& other, __int128 factor) {
    constant += factor * other.constant;
    for (const auto& [value, f] : other.terms) {
      __int128& total = terms[value];
      total += factor * f;
      if (total == 0) terms.erase(value);
    }
  }
};

class LinearForms {
 public:
  explicit LinearForms(const Kernel& kernel) : kernel_(kernel), ranges_(kernel) {}

  const Ranges& ranges() const { return ranges_; }

  Linear of(ValueId value, int depth = 8) const {
    Linear whole;
    const IntegerRange& range = ranges_.of(value);
    if (range.low == range.high) {
      whole.constant = range.low;
      return whole;
    }
    whole.terms[value] = 1;
    const Value& v = kernel_.value(value);
    if (v.kind != ValueKind::kResult || depth == 0 || ranges_.may_overflow(value)) return whole;
    const Node& node = kernel_.node(v.node);
    const auto operand = [&](size_t i) { return of(node.operands[i], depth - 1); };
    const auto fixed = [&](size_t i) -> std::optional<__int128> {
      const IntegerRange& r = ranges_.of(node.operands[i]);
      return r.low == r.high ? std::optional(r.low) : std::nullopt;
    };
    Linear sum;
    switch (node.op) {
      case OpCode::kAdd:
      case OpCode::kSub:
        sum.add(operand(0), 1);
        sum.add(operand(1), node.op == OpCode::kAdd ? 1 : -1);
        return sum;
      case OpCode::kMul:
        for (size_t i = 0; i < 2; ++i) {
          if (const auto factor = fixed(i)) {
            sum.add(operand(1 - i), *factor);
            return sum;
          }
        }
        return whole;
      case OpCode::kNeg:
        sum.add(operand(0), -1);
        return sum;
      case OpCode::kShl:
        if (const auto by = fixed(1); by && *by < 63) {
          sum.add(operand(0), static_cast<__int128>(1) << static_cast<int>(*by));
          return sum;
        }
        return whole;
      default:
        return whole;
    }
  }

  // Bounds of a linear form, and of each of its partial sums.
  IntegerRange range(const Linear& form) const {
    IntegerRange r = {form.constant, form.constant};
    for (const auto& [value, factor] : form.terms) {
      const IntegerRange& v = ranges_.of(value);
      r.low += std::min(factor * v.low, factor * v.high);
      r.high += std::max(factor * v.low, factor * v.high);
    }
    return r;
  }

 private:
  const Kernel& kernel_;
  Ranges ranges_;
};

bool within(const IntegerRange& inner, const IntegerRange& outer) {
  return inner.low >= outer.low && inner.high <= outer.high;
}

// The result of a comparison of two ranges, if it is the same for all values.
std::optional<bool> decide(OpCode code, const IntegerRange& x, const IntegerRange& y) {
  switch (code) {
    case OpCode::kLt:
    case OpCode::kGe:
      if (x.high < y.low) return code == OpCode::kLt;
      if (x.low >= y.high) return code == OpCode::kGe;
      return std::nullopt;
    case OpCode::kLe:
    case OpCode::kGt:
      if (x.high <= y.low) return code == OpCode::kLe;
      if (x.low > y.high) return code == OpCode::kGt;
      return std::nullopt;
    case OpCode::kEq:
    case OpCode::kNe:
      if (x.high < y.low || x.low > y.high) return code == OpCode::kNe;
      if (x.low == x.high && y.low == y.high) return code == OpCode::kEq;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

class Simplifier : public Rewriter {
 public:
  explicit Simplifier(const Kernel& kernel) : Rewriter(kernel), forms_(kernel), scopes_(1) {}

 private:
  using Key = std::tuple<OpCode, ElementType, ElementType, MemoryId, Values>;
  struct ValueScope {
    std::map<Key, ValueId> known;
    bool branch = false;  // runs only conditionally: nothing is moved out of it
    bool certain = true;  // runs at least once if the enclosing block runs
    bool combination = false;
  };

  void node(const Node& n) override {
    visit(n, Overloads{
                 [&](OnScalar) { scalar(n); },
                 [&](OnStatement) { copy_node(n); },
                 [&](OnLoad) {
                   const MemoryId m = n.memories[0];
                   const bool fixed = from().memory(m).access == Access::kIn && is_buffer(m);
                   return fixed ? load(n) : copy_node(n);
                 },
                 [&](OnIf) { branch(n); },
                 [&](OnFor) { loop(n); },
                 [&](OnLanes) {
                   if (std::count(n.extents.begin(), n.extents.end(), 0) == 0) copy_node(n);
                 },
             });
  }

  bool is_buffer(MemoryId m) const { return from().memory(m).space == Space::kBuffer; }

  // Replaces an integer with only one possible value by that value.
  ValueId map(ValueId value) override {
    const ElementType type = from().value(value).type;
    const IntegerRange& range = forms_.ranges().of(value);
    if (is_integer(type) && range.low == range.high) {
      return to().integer(type, static_cast<int64_t>(range.low));
    }
    return Rewriter::map(value);
  }
  using Rewriter::map;

  BlockId block(const Node& owner, size_t index) override {
    ValueScope scope;
    scope.branch = owner.op == OpCode::kIf;
    scope.certain = runs(owner, index);
    scope.combination = is<OnReduction>(owner.op) && index == 1;
    scopes_.push_back(std::move(scope));
    const BlockId copy = copy_block(owner.blocks[index]);
    scopes_.pop_back();
    return copy;
  }

  bool runs(const Node& owner, size_t index) const {
    const auto all = [&] { return std::count(owner.extents.begin(), owner.extents.end(), 0) == 0; };
    const auto turns = [&] {
      const Ranges& ranges = forms_.ranges();
      return ranges.of(owner.operands[0]).high < ranges.of(owner.operands[1]).low;
    };
    return visit(owner, Overloads{
                            [](OnNode) { return false; },  // It may not run.
                            [](OnLanes) { return true; },
                            [&](OnReduction) { return index != 1 && all(); },
                            [&](OnFor) { return turns(); },
                        });
  }

  ValueId emit(const Node& n, const Values& operands, bool is_load) {
    const MemoryId m = is_load ? memory(n.memories[0]) : kNone;
    Key key{n.op, n.type, n.from, m, operands};
    if (is_commutative(n.op)) std::sort(std::get<Values>(key).begin(), std::get<Values>(key).end());
    for (const ValueScope& scope : scopes_) {
      const auto found = scope.known.find(key);
      if (found != scope.known.end()) return found->second;
    }
    size_t depth = 0;
    for (const ValueId operand : operands) depth = std::max(depth, to().depth_of(operand));
    size_t target = to().depth();
    while (target > depth && !scopes_[target].branch && (!is_load || scopes_[target].certain)) {
      --target;
    }
    to().insert_at(target);
    const ValueId value = is_load ? to().load(m, operands) : to().op(n.op, operands, n.type);
    to().insert_innermost();
    scopes_[target].known.emplace(std::move(key), value);
    return value;
  }

  void scalar(const Node& n) {
    const ValueId result = n.results[0];
    if (const ValueId decided = by_ranges(n); decided != kNone) return set(result, decided);
    set(result, emit(n, map(n.operands), false));
  }

  void load(const Node& n) { set(n.results[0], emit(n, map(n.operands), true)); }

  // A value that the operands' intervals determine, or kNone.
  ValueId by_ranges(const Node& n) {
    const ElementType type = is_comparison(n.op) ? n.from : n.type;
    if (!is_integer(type) || n.operands.size() != 2) return kNone;
    const IntegerRange& x = forms_.ranges().of(n.operands[0]);
    const IntegerRange& y = forms_.ranges().of(n.operands[1]);
    if (is_comparison(n.op)) {
      const auto answer = decide(n.op, x, y);
      return answer ? to().pred(*answer) : kNone;
    }
    switch (n.op) {
      case OpCode::kMin:
        if (x.high <= y.low) return map(n.operands[0]);
        return y.high <= x.low ? map(n.operands[1]) : kNone;
      case OpCode::kMax:
        if (x.low >= y.high) return map(n.operands[0]);
        return y.low >= x.high ? map(n.operands[1]) : kNone;
      case OpCode::kDiv:
      case OpCode::kRem:
        return divided(n, x, y);
      default:
        return kNone;
    }
  }

  // A combination is not changed, because its form proves that it is commutative (K5).
  bool in_combination() const {
    return std::any_of(scopes_.begin(), scopes_.end(),
                       [](const ValueScope& scope) { return scope.combination; });
  }

  // (q * c + r) / c and rem c, where r lies in [0, c) and nothing is negative.
  ValueId divided(const Node& n, const IntegerRange& x, const IntegerRange& y) {
    if (x.low < 0 || y.low <= 0 || y.low != y.high || in_combination()) return kNone;
    const __int128 c = y.low;
    const Linear form = forms_.of(n.operands[0]);
    Linear quotient;
    Linear rest;
    for (const auto& [value, factor] : form.terms) {
      if (factor % c == 0) {
        quotient.terms[value] = factor / c;
      } else {
        rest.terms[value] = factor;
      }
    }
    rest.constant = ((form.constant % c) + c) % c;
    quotient.constant = (form.constant - rest.constant) / c;
    if (!within(forms_.range(rest), {0, c - 1})) return kNone;
    const Linear& wanted = n.op == OpCode::kDiv ? quotient : rest;
    return sum(wanted, n.type);
  }

  // Emits operations for the linear form; kNone if a partial sum might not fit.
  ValueId sum(const Linear& form, ElementType type) {
    IntegerRange r = {std::min<__int128>(form.constant, 0), std::max<__int128>(form.constant, 0)};
    for (const auto& [value, factor] : form.terms) {
      const IntegerRange& v = forms_.ranges().of(value);
      if (from().value(value).type != type) return kNone;
      r.low += std::min<__int128>({factor * v.low, factor * v.high, 0});
      r.high += std::max<__int128>({factor * v.low, factor * v.high, 0});
    }
    if (!within(r, range_of_type(type))) return kNone;
    ValueId total = to().integer(type, static_cast<int64_t>(form.constant));
    for (const auto& [value, factor] : form.terms) {
      const ValueId scale = to().integer(type, static_cast<int64_t>(factor));
      const ValueId term = emit_op(OpCode::kMul, type, {map(value), scale});
      total = emit_op(OpCode::kAdd, type, {total, term});
    }
    return total;
  }

  ValueId emit_op(OpCode code, ElementType type, const Values& operands) {
    Node n;
    n.op = code;
    n.type = type;
    n.from = type;
    return emit(n, operands, false);
  }

  // Copies the nodes of a block without a scope; returns the values that it yields.
  Values inlined(BlockId id) {
    const Block& b = from().block(id);
    for (const NodeId child : b.nodes) {
      const Node& n = from().node(child);
      if (n.op == OpCode::kYield) return map(n.operands);
      node(n);
    }
    return {};
  }

  void set_results(const Node& n, const Values& values) {
    for (size_t i = 0; i < n.results.size(); ++i) set(n.results[i], values[i]);
  }

  static bool declares(const Kernel& kernel, BlockId id) {
    const Block& b = kernel.block(id);
    return std::any_of(b.nodes.begin(), b.nodes.end(),
                       [&](NodeId c) { return is<OnDeclaration>(kernel.node(c).op); });
  }

  void branch(const Node& n) {
    const ValueId condition = map(n.operands[0]);
    if (!to().kernel().is_constant(condition)) return copy_node(n);
    const size_t taken = to().kernel().value(condition).bits != 0 ? 0 : 1;
    if (declares(from(), n.blocks[taken])) return copy_node(n);
    set_results(n, inlined(n.blocks[taken]));
  }

  void loop(const Node& n) {
    const IntegerRange& low = forms_.ranges().of(n.operands[0]);
    const IntegerRange& high = forms_.ranges().of(n.operands[1]);
    const Values inits(n.operands.begin() + 2, n.operands.end());
    if (low.low >= high.high) return set_results(n, map(inits));
    const bool once =
        low.low == low.high && high.low == high.high && high.low - low.low <= n.extents[0];
    if (!once || declares(from(), n.blocks[0])) return copy_node(n);
    const Values& arguments = from().block(n.blocks[0]).arguments;
    set(arguments[0], map(n.operands[0]));
    for (size_t i = 0; i < inits.size(); ++i) set(arguments[i + 1], map(inits[i]));
    set_results(n, inlined(n.blocks[0]));
  }

  LinearForms forms_;
  std::vector<ValueScope> scopes_;
};

// Marks the nodes on which some store to a buffer depends.
class StoreLiveness {
 public:
  explicit StoreLiveness(const Kernel& kernel)
      : kernel_(kernel),
        owner_(kernel.blocks.size(), kNone),
        parent_(kernel.nodes.size(), kernel.body),
        live_(kernel.nodes.size()),
        loaded_(kernel.memories.size()) {
    for (BlockId b = 0; b < kernel.blocks.size(); ++b) {
      for (const NodeId n : kernel.block(b).nodes) parent_[n] = b;
    }
    for (NodeId n = 0; n < kernel.nodes.size(); ++n) {
      for (const BlockId b : kernel.node(n).blocks) owner_[b] = n;
    }
    for (NodeId n = 0; n < kernel.nodes.size(); ++n) {
      if (is_write(kernel.node(n).op) && is_buffer(kernel.node(n).memories[0])) mark(n);
    }
    while (!work_.empty()) {
      const NodeId n = work_.back();
      work_.pop_back();
      need(kernel.node(n));
    }
  }

  bool is_live(NodeId n) const { return live_[n]; }

 private:
  static bool is_write(OpCode op) { return is<OnStore, OnAtomic, OnTile>(op); }
  bool is_buffer(MemoryId m) const { return kernel_.memory(m).space == Space::kBuffer; }

  void mark(NodeId n) {
    if (n == kNone || live_[n]) return;
    live_[n] = true;
    work_.push_back(n);
  }

  void need(const Node& n) {
    const auto id = static_cast<NodeId>(&n - kernel_.nodes.data());
    for (const ValueId operand : n.operands) mark(kernel_.value(operand).node);
    if (parent_[id] != kernel_.body) mark(owner_[parent_[id]]);
    // The statement's yields are live: it must end as before, and its results come from its blocks.
    for (const BlockId b : n.blocks) {
      const std::vector<NodeId>& nodes = kernel_.block(b).nodes;
      if (!nodes.empty() && kernel_.node(nodes.back()).op == OpCode::kYield) mark(nodes.back());
    }
    // Writers of a memory that is read are live.
    for (const MemoryId m : n.memories) {
      if (is_buffer(m) || loaded_[m]) continue;
      loaded_[m] = true;
      for (NodeId other = 0; other < kernel_.nodes.size(); ++other) {
        const Node& o = kernel_.node(other);
        const bool writes = is_write(o.op) && o.memories[0] == m;
        const bool declares = is<OnDeclaration>(o.op) && o.memories[0] == m;
        if (writes || declares) mark(other);
      }
    }
  }

  const Kernel& kernel_;
  std::vector<NodeId> owner_;
  std::vector<BlockId> parent_;
  std::vector<bool> live_;
  std::vector<bool> loaded_;
  std::vector<NodeId> work_;
};

class DeadEliminator : public Rewriter {
 public:
  explicit DeadEliminator(const Kernel& kernel) : Rewriter(kernel), liveness_(kernel) {}

 private:
  void node(const Node& n) override {
    if (liveness_.is_live(static_cast<NodeId>(&n - from().nodes.data()))) copy_node(n);
  }

  StoreLiveness liveness_;
};

}  // namespace

Kernel eliminate_dead(const Kernel& kernel) { return DeadEliminator(kernel).run(); }

Kernel simplify(const Kernel& kernel) { return eliminate_dead(Simplifier(kernel).run()); }

}  // namespace tenon::kernel
