// The verifier's walk over a kernel: scopes, the types of operands and results (K0, K8, K10), and
// the positions of statements (K1, K5). memory_rules.h checks accesses to memory; proofs.h proves
// facts about indices and combinations.
#include "core/kernel/verify/verifier.h"

#include <algorithm>
#include <atomic>

#include "core/kernel/ir/structure.h"
#include "core/kernel/ir/visitor.h"
#include "core/kernel/text/text.h"
#include "core/kernel/verify/memory_rules.h"
#include "core/kernel/verify/proofs.h"

namespace tenon::kernel {
namespace {

class Verifier : private MemoryRules {
 public:
  explicit Verifier(const Kernel& kernel)
      : MemoryRules(kernel),
        in_scope_(kernel.values.size()),
        memory_in_scope_(kernel.memories.size()),
        conditional_(kernel.nodes.size()) {}

  std::optional<Violation> run() {
    if (!head()) return take_violation();
    BlockContext context;
    context.grid = dependences_.vary(kernel_.block(kernel_.body).arguments, kernel_.grid);
    context.varying = context.grid;
    if (!block(kernel_.body, context)) return take_violation();
    return verify_indices(kernel_, conditional_);
  }

 private:
  // --- Head

  bool head() {
    if (kernel_.index_type != ElementType::kS32 && kernel_.index_type != ElementType::kS64) {
      return fail(KernelRule::kK10, "the index type is {}, not s32 or s64",
                  name_of(kernel_.index_type));
    }
    for (MemoryId m = 0; m < kernel_.buffer_count; ++m) {
      if (!buffer(m)) return false;
      memory_in_scope_[m] = true;
    }
    if (kernel_.block(kernel_.body).arguments.size() != kernel_.grid.size()) {
      return fail(KernelRule::kK0, "the grid has {} variables for {} extents",
                  kernel_.block(kernel_.body).arguments.size(), kernel_.grid.size());
    }
    if (!indices_of(kernel_.block(kernel_.body).arguments)) return false;
    if (!countable(kernel_.grid, kMostIterations, "the grid")) return false;
    for (ValueId v = 0; v < kernel_.values.size(); ++v) {
      const ValueKind kind = kernel_.value(v).kind;
      in_scope_[v] = kind == ValueKind::kConstant || kind == ValueKind::kScalar;
    }
    return true;
  }

  // --- Blocks

  bool block(BlockId id, const BlockContext& context) {
    const Block& b = kernel_.block(id);
    for (const ValueId argument : b.arguments) in_scope_[argument] = true;
    const size_t first_memory = scoped_memories_.size();
    std::vector<ValueId> defined = b.arguments;
    bool statements = false;
    for (const NodeId n : b.nodes) {
      at_ = n;
      const Node& node = kernel_.node(n);
      const bool declares = is<OnDeclaration>(node.op);
      if (declares && statements) {
        return fail(KernelRule::kK0,
                    "{} follows other statements; it must stand at the head of its body",
                    op_name(node.op));
      }
      statements |= !declares;
      if (node.op == OpCode::kYield && n != b.nodes.back()) {
        return fail(KernelRule::kK0, "statements after yield");
      }
      conditional_[n] = context.conditional;
      if (!this->node(node, context)) return false;
      for (const ValueId result : node.results) {
        in_scope_[result] = true;
        defined.push_back(result);
      }
    }
    for (const ValueId value : defined) in_scope_[value] = false;
    while (scoped_memories_.size() > first_memory) {
      memory_in_scope_[scoped_memories_.back()] = false;
      scoped_memories_.pop_back();
    }
    return true;
  }

  // Checks that a block yields nothing.
  bool no_yield(BlockId id) {
    const Block& b = kernel_.block(id);
    if (b.nodes.empty() || kernel_.node(b.nodes.back()).op != OpCode::kYield) return true;
    return fail(KernelRule::kK0, "a block of {} yields nothing", op_name(kernel_.node(at_).op));
  }

  // Checks that carried values have the number and types of the results.
  bool carries(const Node& node, size_t first) {
    bool same = node.operands.size() - first == node.results.size();
    for (size_t i = 0; same && i < node.results.size(); ++i) {
      same = type_of(node.operands[first + i]) == type_of(node.results[i]);
    }
    return same || fail(KernelRule::kK0, "{} begins with values of other types than it gives",
                        op_name(node.op));
  }

  // Checks that the arguments of a block from `first` on have the types of the results, repeated
  // `times` times.
  bool takes(const Node& node, BlockId id, size_t first, size_t times = 1) {
    const std::vector<ValueId>& arguments = kernel_.block(id).arguments;
    const size_t n = node.results.size();
    bool same = arguments.size() == first + times * n;
    for (size_t i = 0; same && i < times * n; ++i) {
      same = type_of(arguments[first + i]) == type_of(node.results[i % n]);
    }
    for (size_t i = 0; same && i < first; ++i) {
      same = type_of(arguments[i]) == kernel_.index_type;
    }
    return same || fail(KernelRule::kK0, "a block of {} takes other values than it is given",
                        op_name(node.op));
  }

  bool yields(BlockId id, const std::vector<ValueId>& like, size_t from = 0) {
    std::vector<ElementType> types;
    for (size_t i = from; i < like.size(); ++i) types.push_back(type_of(like[i]));
    return yields_types(id, types);
  }
  bool yields_types(BlockId id, const std::vector<ElementType>& types) {
    const Block& b = kernel_.block(id);
    if (b.nodes.empty() || kernel_.node(b.nodes.back()).op != OpCode::kYield) {
      return fail(KernelRule::kK0, "a block of {} does not end in yield",
                  op_name(kernel_.node(at_).op));
    }
    const Node& yield = kernel_.node(b.nodes.back());
    bool same = yield.operands.size() == types.size();
    for (size_t i = 0; same && i < types.size(); ++i) same = type_of(yield.operands[i]) == types[i];
    if (same) return true;
    at_ = b.nodes.back();
    std::vector<std::string_view> wanted;
    for (const ElementType type : types) wanted.push_back(name_of(type));
    std::vector<std::string_view> given;
    for (const ValueId value : yield.operands) given.push_back(name_of(type_of(value)));
    return fail(KernelRule::kK0, "yield gives ({}), expected ({})", fmt::join(given, ", "),
                fmt::join(wanted, ", "));
  }

  bool operands_in_scope(const Node& node) {
    for (const ValueId operand : node.operands) {
      if (operand >= kernel_.values.size() || !in_scope_[operand]) {
        return fail(KernelRule::kK0, "an operand of {} is not defined here", op_name(node.op));
      }
    }
    for (const MemoryId m : node.memories) {
      const bool declares = is<OnDeclaration>(node.op);
      if (!declares && !memory_in_scope_[m]) {
        return fail(KernelRule::kK0, "%{} is not declared here", kernel_.memory(m).name);
      }
    }
    return true;
  }

  // K1 and K5.
  bool may_stand(const Node& node, const BlockContext& context) {
    if (context.pure && (node.op == OpCode::kStore || node.op == OpCode::kAtomic)) {
      return fail(KernelRule::kK5, "a leaf, combination or condition only computes: it does not {}",
                  op_name(node.op));
    }
    const bool workgroup_only = is<OnLanes, OnDeclaration, OnTile>(node.op) ||
                                (is<OnReduction>(node.op) && node.over_lanes);
    if (workgroup_only && (context.lanes != nullptr || context.pure)) {
      return fail(KernelRule::kK1, "{}{} stands {}; it belongs to the whole workgroup",
                  op_name(node.op), node.over_lanes ? " over lanes" : "",
                  context.lanes ? "inside a lanes loop" : "in a leaf or combination");
    }
    return true;
  }

  bool node(const Node& node, const BlockContext& context) {
    if (!operands_in_scope(node) || !may_stand(node, context)) return false;
    return visit(
        node,
        Overloads{
            [&](OnScalar) { return scalar(node); }, [&](OnAccess) { return access(node, context); },
            [&](OnDeclaration) { return declare(node); },
            [&](OnLanes) { return lanes(node, context); },
            [&](OnFor) { return for_loop(node, context); },
            [&](OnWhile) { return while_loop(node, context); },
            [&](OnIf) { return if_else(node, context); },
            [&](OnReduction) { return reduction(node, context); },
            [&](OnCopy) { return copy(node, context); }, [&](OnContract) { return contract(node); },
            [](OnYield) { return true; },  // Checked with its statement.
        });
  }

  bool declare(const Node& node) {
    if (!declaration(node)) return false;
    memory_in_scope_[node.memories[0]] = true;
    scoped_memories_.push_back(node.memories[0]);
    return true;
  }

  bool scalar(const Node& node) {
    const ScalarOp& row = scalar_op(node.op);
    if (node.operands.size() != row.operands) {
      return fail(KernelRule::kK0, "{} takes {} operands, {} given", row.name, row.operands,
                  node.operands.size());
    }
    if (node.op == OpCode::kFma && !is_float(node.from)) {
      return fail(KernelRule::kK8, "fma rounds once; on {} there is nothing to round",
                  name_of(node.from));
    }
    if (!contains(row.types, node.from)) {
      return fail(KernelRule::kK0, "{} has no meaning on {}", row.name, name_of(node.from));
    }
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const bool condition = node.op == OpCode::kSelect && i == 0;
      const ElementType expected = condition ? ElementType::kPred : node.from;
      if (type_of(node.operands[i]) != expected) {
        return fail(KernelRule::kK0, "operand {} of {} is {}, expected {}", i, row.name,
                    name_of(type_of(node.operands[i])), name_of(expected));
      }
    }
    if (node.op == OpCode::kBitcast && bit_width(node.from) != bit_width(node.type)) {
      return fail(KernelRule::kK0, "bitcast from {} to {}: the widths differ", name_of(node.from),
                  name_of(node.type));
    }
    const bool stated = row.result == ResultType::kStated;
    const ElementType result = row.result == ResultType::kPred ? ElementType::kPred : node.type;
    if (is_complex(node.type) || (!stated && node.type != node.from) ||
        type_of(node.results[0]) != result) {
      return fail(KernelRule::kK0, "{} on {} gives {}", row.name, name_of(node.from),
                  name_of(type_of(node.results[0])));
    }
    dependences_.set(node.results[0], dependences_.of(node.operands));
    return true;
  }

  // --- Control

  // Loop variables must have the index type.
  bool indices_of(const std::vector<ValueId>& variables) {
    for (const ValueId variable : variables) {
      if (type_of(variable) == kernel_.index_type) continue;
      return fail(KernelRule::kK10, "the variable of a loop is {}, the kernel's index type is {}",
                  name_of(type_of(variable)), name_of(kernel_.index_type));
    }
    return true;
  }

  bool extents_fit(const Node& node, const std::vector<ValueId>& variables) {
    if (!indices_of(variables)) return false;
    for (const int64_t extent : node.extents) {
      if (kernel_.index_type == ElementType::kS32 && extent > int64_t{1} << 31) {
        return fail(KernelRule::kK10, "extent {} of {} does not fit s32", extent, op_name(node.op));
      }
    }
    return true;
  }

  bool lanes(const Node& node, const BlockContext& context) {
    const Block& body = kernel_.block(node.blocks[0]);
    if (!extents_fit(node, body.arguments)) return false;
    BlockContext inner = context;
    if (!countable(node.extents, kMostIterations, "a lanes loop")) return false;
    inner.lanes = &node;
    inner.conditional = std::count(node.extents.begin(), node.extents.end(), 0) != 0;
    inner.varying = context.conditional ? 0 : context.varying;
    inner.varying |= dependences_.vary(body.arguments, node.extents);
    return no_yield(node.blocks[0]) && block(node.blocks[0], inner);
  }

  bool for_loop(const Node& node, const BlockContext& context) {
    if (node.extents.size() != 1 || node.extents[0] < 1) {
      return fail(KernelRule::kK0, "the step of for is a positive constant");
    }
    for (size_t i = 0; i < 2; ++i) {
      if (type_of(node.operands[i]) != kernel_.index_type) {
        return fail(KernelRule::kK10, "a bound of for is {}, the kernel's index type is {}",
                    name_of(type_of(node.operands[i])), name_of(kernel_.index_type));
      }
    }
    if (kernel_.index_type == ElementType::kS32 && node.extents[0] >> 31 != 0) {
      return fail(KernelRule::kK10, "the step {} of for does not fit s32", node.extents[0]);
    }
    const Block& body = kernel_.block(node.blocks[0]);
    if (body.arguments.size() != node.operands.size() - 1) {
      return fail(KernelRule::kK0, "for carries {} values into {} arguments",
                  node.operands.size() - 2, body.arguments.size() - 1);
    }
    if (!carries(node, 2) || !takes(node, node.blocks[0], 1)) return false;
    dependences_.set_unknown(body.arguments);
    const bool constant =
        kernel_.is_constant(node.operands[0]) && kernel_.is_constant(node.operands[1]);
    if (constant) dependences_.set(body.arguments[0], 0);
    const bool runs = constant && static_cast<int64_t>(kernel_.value(node.operands[0]).bits) <
                                      static_cast<int64_t>(kernel_.value(node.operands[1]).bits);
    BlockContext inner = context;
    inner.conditional |= !runs;
    dependences_.set_unknown(node.results);
    const NodeId here = at_;
    if (!block(node.blocks[0], inner)) return false;
    at_ = here;
    return yields(node.blocks[0], node.results);
  }

  bool while_loop(const Node& node, const BlockContext& context) {
    BlockContext inner = context;
    inner.conditional = true;
    const NodeId here = at_;
    for (const BlockId b : node.blocks) {
      dependences_.set_unknown(kernel_.block(b).arguments);
      if (kernel_.block(b).arguments.size() != node.results.size()) {
        return fail(KernelRule::kK0, "while carries {} values into {} arguments",
                    node.results.size(), kernel_.block(b).arguments.size());
      }
    }
    if (!carries(node, 0) || !takes(node, node.blocks[0], 0) || !takes(node, node.blocks[1], 0)) {
      return false;
    }
    dependences_.set_unknown(node.results);
    BlockContext condition = inner;
    condition.pure = true;
    if (!block(node.blocks[0], condition) || !block(node.blocks[1], inner)) return false;
    at_ = here;
    return yields_types(node.blocks[0], {ElementType::kPred}) &&
           yields(node.blocks[1], node.results);
  }

  bool if_else(const Node& node, const BlockContext& context) {
    if (type_of(node.operands[0]) != ElementType::kPred) {
      return fail(KernelRule::kK0, "the condition is {}, not pred",
                  name_of(type_of(node.operands[0])));
    }
    BlockContext inner = context;
    inner.conditional = true;
    const NodeId here = at_;
    for (const BlockId b : node.blocks) {
      if (!block(b, inner)) return false;
      at_ = here;
      if (!yields(b, node.results)) return false;
    }
    dependences_.set_unknown(node.results);
    return true;
  }

  bool reduction(const Node& node, const BlockContext& context) {
    const Block& leaf = kernel_.block(node.blocks[0]);
    const Block& combine = kernel_.block(node.blocks[1]);
    if (!extents_fit(node, leaf.arguments)) return false;
    const size_t n = node.operands.size();
    if (combine.arguments.size() != 2 * n || node.results.size() != n) {
      return fail(KernelRule::kK5, "{} of {} values combines {}", op_name(node.op), n,
                  combine.arguments.size());
    }
    if (!countable(node.extents, int64_t{1} << 62, op_name(node.op)) || !carries(node, 0) ||
        !takes(node, node.blocks[1], 0, 2)) {
      return false;
    }
    BlockContext pure = context;
    pure.pure = true;
    pure.conditional |= std::count(node.extents.begin(), node.extents.end(), 0) != 0;
    dependences_.set_unknown(leaf.arguments);
    dependences_.set_unknown(combine.arguments);
    dependences_.set_unknown(node.results);
    const NodeId here = at_;
    for (size_t i = 0; i < 2; ++i) {
      if (!block(node.blocks[i], pure)) return false;
      at_ = here;
      if (!yields(node.blocks[i], node.results)) return false;
    }
    if (node.commutative && !is_symmetric(kernel_, node)) {
      return fail(KernelRule::kK5,
                  "commutative: swapping the sides of the combination gives another expression");
    }
    return node.op == OpCode::kReduce || scan_each(node, context);
  }

  bool scan_each(const Node& node, const BlockContext& context) {
    if (node.extents.size() != 1) return fail(KernelRule::kK5, "scan runs along one extent");
    BlockContext each = context;
    each.conditional |= node.extents[0] == 0;
    if (node.over_lanes) each.lanes = &node;
    const std::vector<ValueId>& arguments = kernel_.block(node.blocks[2]).arguments;
    if (arguments.size() != node.operands.size() + 1) {
      return fail(KernelRule::kK5, "'each' names an index and {} prefixes", node.operands.size());
    }
    dependences_.set_unknown(arguments);
    return no_yield(node.blocks[2]) && takes(node, node.blocks[2], 1) &&
           block(node.blocks[2], each);
  }

  std::vector<bool> in_scope_;             // by value
  std::vector<bool> memory_in_scope_;      // by memory
  std::vector<MemoryId> scoped_memories_;  // declared in the blocks that are open, in order
  std::vector<bool> conditional_;          // by node: whether it may not be executed
};

std::atomic<int64_t> verified = 0;

}  // namespace

int64_t verified_count() { return verified; }

std::optional<Violation> find_violation(const Kernel& kernel) {
  ++verified;
  if (Status status = check_structure(kernel); !status.ok()) {
    return Violation{KernelRule::kK0, std::move(status)};
  }
  return Verifier(kernel).run();
}

Status verify(const Kernel& kernel) {
  std::optional<Violation> violation = find_violation(kernel);
  return violation ? std::move(violation->status) : Status();
}

SourcePosition position_of(const Kernel& kernel, NodeId node) {
  if (node < kernel.lines.size()) return {kernel.name, kernel.lines[node], 0};
  std::vector<uint32_t> lines;
  print(kernel, &lines);
  return {kernel.name, lines[node], 0};
}

}  // namespace tenon::kernel
