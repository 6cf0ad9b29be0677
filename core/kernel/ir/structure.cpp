#include "core/kernel/ir/structure.h"

#include <algorithm>
#include <set>

#include "core/kernel/ir/visitor.h"
#include "core/kernel/math/scalar.h"

namespace tenon::kernel {
namespace {

bool is_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '.' || c == '$' || c == '-';
  });
}

class StructureChecker {
 public:
  explicit StructureChecker(const Kernel& kernel)
      : kernel_(kernel),
        defined_(kernel.values.size()),
        seen_nodes_(kernel.nodes.size()),
        seen_blocks_(kernel.blocks.size()),
        declared_(kernel.memories.size()) {}

  Status run() {
    if (!head()) return std::move(status_);
    for (MemoryId m = 0; m < kernel_.memories.size(); ++m) {
      if (!memory(m)) return std::move(status_);
    }
    if (!constants() || !block(kernel_.body, kernel_.grid.size(), 0)) return std::move(status_);
    if (ends_in_yield(kernel_.body)) fail("the kernel's body yields nothing");
    for (MemoryId m = 0; m < kernel_.memories.size(); ++m) {
      if (m >= kernel_.buffer_count && !declared_[m])
        fail("%{} is not declared", kernel_.memory(m).name);
    }
    return std::move(status_);
  }

 private:
  template <class... Args>
  bool fail(fmt::format_string<Args...> format, Args&&... args) {
    return refuse(ErrorCode::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
  }
  bool refuse(ErrorCode code, std::string_view text) {
    if (status_.ok()) {
      status_ = Status(code, fmt::format("K0: {}", text));
      status_ = std::move(status_).at({kernel_.name, 1, 0}).in_stage("verify");
    }
    return false;
  }

  bool is_rank(const Dims& dims, std::string_view what) {
    if (dims.size() > kMostRank) return fail("{} has more than {} dimensions", what, kMostRank);
    for (const int64_t d : dims) {
      if (d < 0) return fail("{} has an extent of {}", what, d);
    }
    return true;
  }

  // --- Head

  bool head() {
    if (!is_word(kernel_.name)) return fail("a kernel's name must be a word");
    if (kernel_.buffer_count > kernel_.memories.size()) {
      return fail("{} buffers of {} memories", kernel_.buffer_count, kernel_.memories.size());
    }
    if (kernel_.body >= kernel_.blocks.size()) return fail("there is no body");
    if (kernel_.scalars.size() != kernel_.scalar_names.size()) {
      return fail("{} scalars have {} names", kernel_.scalars.size(), kernel_.scalar_names.size());
    }
    std::set<std::string_view> names;
    for (const std::string& name : kernel_.scalar_names) {
      if (!is_word(name) || !names.insert(name).second)
        return fail("two scalars are called %{}", name);
    }
    for (const Memory& m : kernel_.memories) {
      if (!is_word(m.name) || !names.insert(m.name).second) {
        return fail("names must be words, and distinct: '{}'", m.name);
      }
    }
    return is_rank(kernel_.grid, "the grid");
  }

  bool memory(MemoryId id) {
    const Memory& m = kernel_.memory(id);
    const bool buffer = id < kernel_.buffer_count;
    if ((m.space == Space::kBuffer) != buffer) return fail("%{}: buffers come first", m.name);
    if (is_complex(m.type)) return fail("%{} is of {}", m.name, name_of(m.type));
    if (!is_rank(m.dims, "a memory")) return false;
    if (m.over != kNone && m.over >= std::min<size_t>(id, kernel_.buffer_count)) {
      return fail("K4: %{} is over a buffer that does not come before it", m.name);
    }
    if (!buffer && (!m.strides.empty() || m.over != kNone || m.access != Access::kIn)) {
      return fail("%{}: only a buffer has strides, or is over another", m.name);
    }
    return m.lane_rank == 0 || m.space == Space::kPrivate || fail("%{} has no lanes", m.name);
  }

  // --- Values

  bool constants() {
    for (const Value& v : kernel_.values) {
      if (is_complex(v.type)) return fail("a value of {}", name_of(v.type));
      const bool constant = v.kind == ValueKind::kConstant;
      if (constant && from_pattern(v.type, pattern_of(v.type, v.bits)) != v.bits) {
        return fail("{:#x} is not a bit pattern of {}", v.bits, name_of(v.type));
      }
    }
    for (const ValueId scalar : kernel_.scalars) {
      if (!define(scalar, ValueKind::kScalar, kNone)) return false;
    }
    return true;
  }

  bool define(ValueId id, ValueKind kind, NodeId node) {
    if (id >= kernel_.values.size()) return fail("there is no value {}", id);
    const Value& value = kernel_.value(id);
    if (value.kind != kind || value.node != node || defined_[id]) {
      return fail("value {} is defined in two ways", id);
    }
    defined_[id] = true;
    return true;
  }

  // --- Blocks and nodes

  bool ends_in_yield(BlockId id) const {
    const Block& b = kernel_.block(id);
    return !b.nodes.empty() && kernel_.node(b.nodes.back()).op == OpCode::kYield;
  }

  bool block(BlockId id, size_t arguments, int depth) {
    if (id >= kernel_.blocks.size() || seen_blocks_[id])
      return fail("a block stands in two places");
    if (depth > kMostNesting) {
      return refuse(ErrorCode::kResourceExhausted,
                    fmt::format("nested deeper than {} levels", kMostNesting));
    }
    seen_blocks_[id] = true;
    const Block& b = kernel_.block(id);
    if (b.arguments.size() != arguments) {
      return fail("a block of {} arguments, expected {}", b.arguments.size(), arguments);
    }
    for (const ValueId argument : b.arguments) {
      if (!define(argument, ValueKind::kArgument, kNone)) return false;
    }
    for (const NodeId n : b.nodes) {
      if (n >= kernel_.nodes.size() || seen_nodes_[n])
        return fail("a statement stands in two places");
      seen_nodes_[n] = true;
      if (!node(n, depth)) return false;
    }
    return true;
  }

  bool node(NodeId id, int depth) {
    const Node& n = kernel_.node(id);
    for (const ValueId operand : n.operands) {
      if (operand >= kernel_.values.size()) return fail("there is no value {}", operand);
    }
    for (const MemoryId m : n.memories) {
      if (m >= kernel_.memories.size()) return fail("there is no memory {}", m);
    }
    if (!is_rank(n.extents, op_name(n.op)) || !has_only_its_own(n)) return false;
    if (n.memories.size() != memory_count(n.op)) {
      return fail("{} of {} memories", op_name(n.op), n.memories.size());
    }
    if (!counts(n)) {
      return fail("{} has {} operands, {} results and {} extents", op_name(n.op), n.operands.size(),
                  n.results.size(), n.extents.size());
    }
    if (n.blocks.size() != block_count(n.op))
      return fail("{} of {} blocks", op_name(n.op), n.blocks.size());
    const std::vector<size_t> arguments = block_arguments(n);
    for (size_t i = 0; i < n.blocks.size(); ++i) {
      if (!block(n.blocks[i], arguments[i], depth + 1)) return false;
    }
    for (const ValueId result : n.results) {
      if (!define(result, ValueKind::kResult, id)) return false;
    }
    return n.memories.empty() || touches(n);
  }

  // Checks that flags and lists of other operations are not set, so that readers need not check.
  bool has_only_its_own(const Node& n) {
    const bool reduces = is<OnReduction>(n.op);
    const bool copies = n.op == OpCode::kCopy;
    const bool contracts = n.op == OpCode::kContract;
    const bool loops = is<OnLanes, OnFor, OnReduction, OnTile>(n.op);
    const bool good = (reduces || (!n.over_lanes && !n.commutative)) &&
                      (copies || (!n.has_pad && !n.clip && n.by.empty())) &&
                      (contracts || (!n.transpose_a && !n.transpose_b)) &&
                      (loops || n.extents.empty());
    return good || fail("{} has members of another statement", op_name(n.op));
  }

  static size_t memory_count(OpCode op) { return is_scalar_op(op) ? 0 : statement_op(op).memories; }
  static size_t block_count(OpCode op) { return is_scalar_op(op) ? 0 : statement_op(op).blocks; }

  size_t rank(const Node& n, size_t memory) const {
    return kernel_.memory(n.memories[memory]).dims.size();
  }

  bool counts(const Node& n) const {
    const size_t operands = n.operands.size();
    const size_t results = n.results.size();
    const size_t extents = n.extents.size();
    return visit(n,
                 Overloads{
                     [&](OnScalar) { return operands == scalar_op(n.op).operands && results == 1; },
                     [&](OnLoad) { return operands == rank(n, 0) && results == 1; },
                     [&](OnAccess) { return operands == rank(n, 0) + 1 && results == 0; },
                     [&](OnDeclaration) { return operands == 0 && results == 0; },
                     [&](OnLanes) { return operands == 0 && results == 0; },
                     [&](OnFor) { return extents == 1 && operands == results + 2; },
                     [&](OnWhile) { return operands == results; },
                     [&](OnIf) { return operands == 1; },
                     [&](OnReduce) { return operands == results; },
                     [&](OnScan) { return extents == 1 && operands == results; },
                     [&](OnCopy) {
                       return operands == rank(n, 0) + rank(n, 1) + (n.has_pad ? 1 : 0) &&
                              results == 0 && n.by.size() == 2 * extents;
                     },
                     [&](OnContract) { return contract_counts(n) && results == 0; },
                     [&](OnYield) { return results == 0; },
                 });
  }

  bool contract_counts(const Node& n) const {
    if (n.extents.size() != 3) return false;
    size_t starts = 0;
    for (size_t i = 0; i < 3; ++i) {
      const bool accumulator = kernel_.memory(n.memories[i]).space == Space::kPrivate;
      if (accumulator ? i != 0 || rank(n, i) != 4 : rank(n, i) < 2) return false;
      starts += accumulator ? 2 : rank(n, i);
    }
    return n.operands.size() == starts;
  }

  // The number of arguments of each block.
  static std::vector<size_t> block_arguments(const Node& n) {
    using Counts = std::vector<size_t>;
    const size_t extents = n.extents.size();
    const size_t results = n.results.size();
    return visit(n, Overloads{
                        [](OnScalar) { return Counts(); },
                        [](OnAccess) { return Counts(); },
                        [](OnDeclaration) { return Counts(); },
                        [&](OnLanes) { return Counts{extents}; },
                        [&](OnFor) { return Counts{1 + results}; },
                        [&](OnWhile) { return Counts{results, results}; },
                        [&](OnIf) { return Counts{0, 0}; },
                        [&](OnReduce) { return Counts{extents, 2 * results}; },
                        [&](OnScan) { return Counts{1, 2 * results, 1 + results}; },
                        [](OnTile) { return Counts(); },
                        [](OnYield) { return Counts(); },
                    });
  }

  bool touches(const Node& n) {
    const MemoryId id = n.memories[0];
    if (!is<OnDeclaration>(n.op)) return true;
    const Space space = n.op == OpCode::kScratch ? Space::kScratch : Space::kPrivate;
    if (kernel_.memory(id).space != space || declared_[id]) {
      return fail("%{} is declared as something else, or twice", kernel_.memory(id).name);
    }
    declared_[id] = true;
    return true;
  }

  const Kernel& kernel_;
  Status status_;
  std::vector<bool> defined_;
  std::vector<bool> seen_nodes_;
  std::vector<bool> seen_blocks_;
  std::vector<bool> declared_;
};

}  // namespace

Status check_structure(const Kernel& kernel) { return StructureChecker(kernel).run(); }

}  // namespace tenon::kernel
