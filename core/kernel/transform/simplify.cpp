#include "core/kernel/transform/simplify.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>

#include "core/kernel/analysis/ranges.h"
#include "core/kernel/ir/visitor.h"
#include "core/kernel/math/scalar.h"
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

// An operation or load, to find an equal one.
struct Expression {
  OpCode op{};
  ElementType type{};
  ElementType from{};
  MemoryId memory = kNone;

  bool operator==(const Expression&) const = default;
};

// Expressions on operands, and the value of each while it is known.
class ExpressionTable {
 public:
  // The entry for an expression, which may be new; an entry keeps its number.
  uint32_t entry(const Expression& expression, std::span<const ValueId> operands) {
    const uint64_t hash = hash_of(expression, operands);
    if (entries_.size() >= heads_.size()) grow();
    uint32_t& head = heads_[hash & (heads_.size() - 1)];
    for (uint32_t at = head; at != kNone; at = entries_[at].next) {
      if (entries_[at].hash == hash && equals(entries_[at], expression, operands)) return at;
    }
    const auto added = static_cast<uint32_t>(entries_.size());
    entries_.push_back({expression, static_cast<uint32_t>(operands_.size()),
                        static_cast<uint32_t>(operands.size()), hash, kNone, head});
    operands_.insert(operands_.end(), operands.begin(), operands.end());
    head = added;
    return added;
  }

  // kNone while it is not known.
  ValueId& value(uint32_t entry) { return entries_[entry].value; }

 private:
  struct KnownExpression {
    Expression expression;
    uint32_t first = 0;  // Its operands in operands_.
    uint32_t count = 0;
    uint64_t hash = 0;
    ValueId value = kNone;
    uint32_t next = kNone;  // Of those with the same head.
  };

  static uint64_t hash_of(const Expression& e, std::span<const ValueId> operands) {
    uint64_t hash = e.memory;
    const auto add = [&](uint64_t number) {
      hash = (hash ^ number) * 0x9E3779B97F4A7C15;
      hash ^= hash >> 32;
    };
    add(static_cast<uint64_t>(e.op) << 16 | static_cast<uint64_t>(e.type) << 8 |
        static_cast<uint64_t>(e.from));
    for (const ValueId operand : operands) add(operand);
    return hash;
  }
  bool equals(const KnownExpression& entry, const Expression& expression,
              std::span<const ValueId> operands) const {
    return entry.expression == expression && entry.count == operands.size() &&
           std::equal(operands.begin(), operands.end(), operands_.begin() + entry.first);
  }
  void grow() {
    heads_.assign(std::max<size_t>(64, 2 * heads_.size()), kNone);
    for (uint32_t at = 0; at < entries_.size(); ++at) {
      uint32_t& head = heads_[entries_[at].hash & (heads_.size() - 1)];
      entries_[at].next = head;
      head = at;
    }
  }

  std::vector<KnownExpression> entries_;
  std::vector<ValueId> operands_;
  std::vector<uint32_t> heads_;  // By hash: the first entry of a list.
};

class Simplifier : public Rewriter {
 public:
  explicit Simplifier(const Kernel& kernel) : Rewriter(kernel), forms_(kernel), scopes_(1) {}

 private:
  struct ValueScope {
    std::vector<uint32_t> known;  // Entries of known_ whose values this block defines.
    bool branch = false;          // runs only conditionally: nothing is moved out of it
    bool certain = true;          // runs at least once if the enclosing block runs
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

  // A kernel may have been built with integers wider than their type.
  Values constant(ElementType type, uint64_t bits) override {
    return {to().constant(type, is_integer(type) ? from_pattern(type, bits) : bits)};
  }

  // Replaces an integer with only one possible value by that value.
  ValueId map(ValueId value) override {
    const ElementType type = from().value(value).type;
    const IntegerRange& range = forms_.ranges().of(value);
    if (is_integer(type) && range.low == range.high && !from().is_constant(value)) {
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
    for (const uint32_t entry : scopes_.back().known) known_.value(entry) = kNone;
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

  ValueId emit(const Node& n, std::span<const ValueId> operands, bool is_load) {
    const MemoryId m = is_load ? memory(n.memories[0]) : kNone;
    std::array<ValueId, 2> sorted{};
    std::span<const ValueId> key = operands;
    if (is_commutative(n.op)) {
      sorted = {std::min(operands[0], operands[1]), std::max(operands[0], operands[1])};
      key = sorted;
    }
    const uint32_t entry = known_.entry({n.op, n.type, n.from, m}, key);
    if (const ValueId known = known_.value(entry); known != kNone) return known;
    size_t depth = 0;
    for (const ValueId operand : operands) depth = std::max(depth, to().depth_of(operand));
    size_t target = to().depth();
    while (target > depth && !scopes_[target].branch && (!is_load || scopes_[target].certain)) {
      --target;
    }
    to().insert_at(target);
    const ValueId value = is_load ? to().load(m, Values(operands.begin(), operands.end()))
                                  : to().op(n.op, operands, n.type);
    to().insert_innermost();
    known_.value(entry) = value;
    scopes_[target].known.push_back(entry);
    return value;
  }

  void scalar(const Node& n) {
    const ValueId result = n.results[0];
    if (const ValueId decided = by_ranges(n); decided != kNone) return set(result, decided);
    set(result, emit(n, map_operands(n).span(), false));
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

  ValueId emit_op(OpCode code, ElementType type, std::array<ValueId, 2> operands) {
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
  ExpressionTable known_;
  std::vector<ValueScope> scopes_;  // One for each open block.
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
      const Node& node = kernel.node(n);
      if (is_scalar_op(node.op)) continue;
      for (const BlockId b : node.blocks) owner_[b] = n;
      const bool writes = is_write(node.op);
      if (writes && is_buffer(node.memories[0])) mark(n);
      if ((writes || is<OnDeclaration>(node.op)) && !is_buffer(node.memories[0]))
        writers_.push_back(n);
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
      for (const NodeId other : writers_) {
        if (kernel_.node(other).memories[0] == m) mark(other);
      }
    }
  }

  const Kernel& kernel_;
  std::vector<NodeId> owner_;
  std::vector<BlockId> parent_;
  std::vector<NodeId> writers_;  // Declare or write memory that is not a buffer.
  std::vector<bool> live_;
  std::vector<bool> loaded_;
  std::vector<NodeId> work_;
};

// Moves the live nodes of a kernel that a Rewriter made into one without the others. Values, nodes
// and memories get the order in which a Rewriter would make them.
class LiveKernel {
 public:
  explicit LiveKernel(Kernel from)
      : from_(std::move(from)),
        liveness_(from_),
        values_(from_.values.size(), kNone),
        memories_(from_.memories.size(), kNone) {}

  Kernel run() {
    to_.name = std::move(from_.name);
    to_.label = std::move(from_.label);
    to_.index_type = from_.index_type;
    to_.buffer_count = from_.buffer_count;
    to_.values.reserve(from_.values.size());
    to_.nodes.reserve(from_.nodes.size());
    to_.blocks.reserve(from_.blocks.size());
    for (MemoryId m = 0; m < from_.buffer_count; ++m) move_memory(m);
    for (ValueId& scalar : from_.scalars) scalar = add(scalar);
    to_.scalars = std::move(from_.scalars);
    to_.scalar_names = std::move(from_.scalar_names);
    to_.grid = std::move(from_.grid);
    to_.body = move_block(from_.body);
    return std::move(to_);
  }

 private:
  ValueId add(ValueId value, NodeId node = kNone) {
    values_[value] = static_cast<ValueId>(to_.values.size());
    to_.values.push_back(from_.values[value]);
    to_.values.back().node = node;
    return values_[value];
  }

  void move_memory(MemoryId m) {
    memories_[m] = static_cast<MemoryId>(to_.memories.size());
    to_.memories.push_back(std::move(from_.memories[m]));
  }

  BlockId move_block(BlockId block) {
    const auto id = static_cast<BlockId>(to_.blocks.size());
    to_.blocks.emplace_back();
    Block moved = std::move(from_.blocks[block]);
    for (ValueId& argument : moved.arguments) argument = add(argument);
    size_t kept = 0;
    for (const NodeId n : moved.nodes) {
      if (liveness_.is_live(n)) moved.nodes[kept++] = move_node(from_.nodes[n]);
    }
    moved.nodes.resize(kept);
    to_.blocks[id] = std::move(moved);
    return id;
  }

  NodeId move_node(Node& n) {
    for (ValueId& operand : n.operands) {
      if (values_[operand] == kNone) add(operand);  // A constant.
      operand = values_[operand];
    }
    if (is<OnDeclaration>(n.op)) move_memory(n.memories[0]);
    for (MemoryId& m : n.memories) m = memories_[m];
    for (BlockId& block : n.blocks) block = move_block(block);
    const auto id = static_cast<NodeId>(to_.nodes.size());
    for (ValueId& result : n.results) result = add(result, id);
    to_.nodes.push_back(std::move(n));
    return id;
  }

  Kernel from_;
  StoreLiveness liveness_;
  Kernel to_;
  std::vector<ValueId> values_;
  std::vector<MemoryId> memories_;
};

}  // namespace

Kernel simplify(const Kernel& kernel) { return LiveKernel(Simplifier(kernel).run()).run(); }

}  // namespace tenon::kernel
