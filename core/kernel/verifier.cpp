#include "core/kernel/verifier.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/kernel/proofs.h"
#include "core/kernel/structure.h"
#include "core/kernel/text.h"

namespace tenon::kernel {
namespace {

/// Induction variables of the grid and of lanes loops that a value depends on, as bits; kAll when
/// that is not known.
using Dependence = uint64_t;
constexpr Dependence kAll = ~Dependence{0};

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel)
      : kernel_(kernel),
        in_scope_(kernel.values.size()),
        memory_in_scope_(kernel.memories.size()),
        dependence_(kernel.values.size()),
        conditional_(kernel.nodes.size()) {}

  Status run() {
    if (!head()) return std::move(status_);
    Context context;
    grid_ = vary(kernel_.block(kernel_.body).arguments, kernel_.grid, context);
    if (!block(kernel_.body, context)) return std::move(status_);
    return verify_indices(kernel_, conditional_);
  }

 private:
  /// Where a block stands.
  struct Context {
    const Node* lanes = nullptr;  ///< The lanes loop around it.
    bool pure = false;            ///< In a leaf or combination.
    bool conditional = false;     ///< May not be executed by every iteration of the loop around.
    Dependence varying = 0;       ///< Grid and lanes variables around with more than one value.
  };

  template <class... Args>
  bool fail(fmt::format_string<Args...> format, Args&&... args) {
    return fail_as(ErrorCode::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
  }
  bool fail_as(ErrorCode code, std::string message) {
    if (status_.ok()) {
      status_ = Status(code, std::move(message));
      status_ = std::move(status_).at(at_ == kNone ? SourcePosition{kernel_.name, 1, 0}
                                                   : position_of(kernel_, at_));
      status_ = std::move(status_).in_stage("verify");
    }
    return false;
  }

  ElementType type_of(ValueId value) const { return kernel_.value(value).type; }

  // --- Head

  bool head() {
    if (kernel_.index_type != ElementType::kS32 && kernel_.index_type != ElementType::kS64) {
      return fail("K10: the index type is {}, not s32 or s64", name_of(kernel_.index_type));
    }
    for (MemoryId m = 0; m < kernel_.buffer_count; ++m) {
      if (!buffer(m)) return false;
      memory_in_scope_[m] = true;
    }
    if (kernel_.block(kernel_.body).arguments.size() != kernel_.grid.size()) {
      return fail("K0: the grid has {} variables for {} extents",
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

  // Iterations of one loop, or workgroups: what 32 bits count.
  static constexpr int64_t kMostIterations = (int64_t{1} << 32) - 2;
  static constexpr int64_t kMostScratchBytes = int64_t{1} << 31;
  static constexpr int64_t kMostBufferBytes = int64_t{1} << 50;

  bool countable(const Dims& extents, int64_t most, std::string_view what) {
    const Result<int64_t> count = checked_element_count(extents);
    if (count && *count <= most) return true;
    return fail_as(ErrorCode::kResourceExhausted,
                   fmt::format("K0: {} has more than {} iterations", what, most));
  }

  // The bytes between the first element and the last, and as many as its dimensions say.
  bool fits(const Memory& m, int64_t most) {
    const auto width = static_cast<int64_t>(storage_bytes(m.type));
    const Result<int64_t> count = checked_element_count(m.dims, width);
    bool good = count.has_value() && *count <= most / width;
    __int128 last = 0;
    for (size_t d = 0; good && d < m.strides.size(); ++d) {
      good = m.strides[d] >= 0;
      last += static_cast<__int128>(std::max<int64_t>(m.dims[d] - 1, 0)) * m.strides[d];
      good = good && last < most / width;
    }
    return good || fail_as(ErrorCode::kResourceExhausted,
                           fmt::format("K0: %{} takes more than {} bytes, or has a negative stride",
                                       m.name, most));
  }

  bool buffer(MemoryId id) {
    const Memory& m = kernel_.memory(id);
    if (is_complex(m.type)) return fail("K0: %{} is of {}", m.name, name_of(m.type));
    if (!m.strides.empty() && m.strides.size() != m.dims.size()) {
      return fail("K0: %{} has {} strides for {} dimensions", m.name, m.strides.size(),
                  m.dims.size());
    }
    if (!fits(m, kMostBufferBytes)) return false;
    if (m.packed && bit_width(m.type) != 2 && bit_width(m.type) != 4) {
      return fail("K9: %{} is packed, but {} does not share bytes evenly", m.name, name_of(m.type));
    }
    if (m.packed && m.access != Access::kIn) {
      return fail("K9: %{} is packed and can only be 'in'; declare what is stored to as bytes",
                  m.name);
    }
    if (m.over == kNone) return true;
    if (m.over >= kernel_.buffer_count || m.over == id) return fail("K4: no buffer to be over");
    const Memory& under = kernel_.memory(m.over);
    if (m.access != Access::kOut || under.access != Access::kIn) {
      return fail("K4: %{} over %{}: an 'out' buffer may take the memory of an 'in' one", m.name,
                  under.name);
    }
    if (m.dims != under.dims || m.resolved_strides() != under.resolved_strides() || under.packed ||
        storage_bytes(m.type) != storage_bytes(under.type)) {
      return fail("K4: %{} over %{}: elements do not lie in the same places", m.name, under.name);
    }
    return true;
  }

  // --- Blocks

  bool block(BlockId id, const Context& context) {
    const Block& b = kernel_.block(id);
    for (const ValueId argument : b.arguments) in_scope_[argument] = true;
    const size_t first_memory = scoped_memories_.size();
    std::vector<ValueId> defined = b.arguments;
    bool statements = false;
    for (const NodeId n : b.nodes) {
      at_ = n;
      const Node& node = kernel_.node(n);
      const bool declares = node.op == OpCode::kScratch || node.op == OpCode::kPrivate;
      if (declares && statements) {
        return fail("K0: {} stands behind other statements, not at the head of its body",
                    op_name(node.op));
      }
      statements |= !declares;
      if (node.op == OpCode::kYield && n != b.nodes.back()) {
        return fail("K0: statements behind yield");
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

  // A block that has nothing to give.
  bool no_yield(BlockId id) {
    const Block& b = kernel_.block(id);
    if (b.nodes.empty() || kernel_.node(b.nodes.back()).op != OpCode::kYield) return true;
    return fail("K0: a block of {} yields nothing", op_name(kernel_.node(at_).op));
  }

  // Values that a statement takes along: as many, and of the types, of its results.
  bool carries(const Node& node, size_t first) {
    bool same = node.operands.size() - first == node.results.size();
    for (size_t i = 0; same && i < node.results.size(); ++i) {
      same = type_of(node.operands[first + i]) == type_of(node.results[i]);
    }
    return same || fail("K0: {} begins with values of other types than it gives", op_name(node.op));
  }

  // Arguments of a block from `first` on: those of the results, `times` over.
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
    return same || fail("K0: a block of {} takes other values than it is given", op_name(node.op));
  }

  bool yields(BlockId id, const std::vector<ValueId>& like, size_t from = 0) {
    std::vector<ElementType> types;
    for (size_t i = from; i < like.size(); ++i) types.push_back(type_of(like[i]));
    return yields_types(id, types);
  }
  bool yields_types(BlockId id, const std::vector<ElementType>& types) {
    const Block& b = kernel_.block(id);
    if (b.nodes.empty() || kernel_.node(b.nodes.back()).op != OpCode::kYield) {
      return fail("K0: a block of {} does not end in yield", op_name(kernel_.node(at_).op));
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
    return fail("K0: yield gives ({}), expected ({})", fmt::join(given, ", "),
                fmt::join(wanted, ", "));
  }

  bool operands_in_scope(const Node& node) {
    for (const ValueId operand : node.operands) {
      if (operand >= kernel_.values.size() || !in_scope_[operand]) {
        return fail("K0: an operand of {} is not defined here", op_name(node.op));
      }
    }
    for (const MemoryId m : node.memories) {
      const bool declares = node.op == OpCode::kScratch || node.op == OpCode::kPrivate;
      if (!declares && !memory_in_scope_[m]) {
        return fail("K0: %{} is not declared here", kernel_.memory(m).name);
      }
    }
    return true;
  }

  bool node(const Node& node, const Context& context) {
    if (!operands_in_scope(node)) return false;
    if (context.pure && (node.op == OpCode::kStore || node.op == OpCode::kAtomic)) {
      return fail("K5: a leaf or combination only computes: it does not {}", op_name(node.op));
    }
    const bool workgroup_only =
        node.op == OpCode::kLanes || node.op == OpCode::kScratch || node.op == OpCode::kPrivate ||
        node.op == OpCode::kCopy || node.op == OpCode::kContract ||
        ((node.op == OpCode::kReduce || node.op == OpCode::kScan) && node.over_lanes);
    if (workgroup_only && (context.lanes != nullptr || context.pure)) {
      return fail("K1: {}{} stands {}; it belongs to the whole workgroup", op_name(node.op),
                  node.over_lanes ? " over lanes" : "",
                  context.lanes ? "inside a lanes loop" : "in a leaf or combination");
    }
    switch (node.op) {
      case OpCode::kLoad:
      case OpCode::kStore:
      case OpCode::kAtomic:
        return access(node, context);
      case OpCode::kScratch:
      case OpCode::kPrivate:
        return declaration(node);
      case OpCode::kLanes:
        return lanes(node, context);
      case OpCode::kFor:
        return for_loop(node, context);
      case OpCode::kWhile:
        return while_loop(node, context);
      case OpCode::kIf:
        return if_else(node, context);
      case OpCode::kReduce:
      case OpCode::kScan:
        return reduction(node, context);
      case OpCode::kCopy:
        return copy(node, context);
      case OpCode::kContract:
        return contract(node);
      case OpCode::kYield:
        return true;
      default:
        return scalar(node);
    }
  }

  bool scalar(const Node& node) {
    const ScalarOp& row = scalar_op(node.op);
    if (node.operands.size() != row.operands) {
      return fail("K0: {} takes {} operands, {} given", row.name, row.operands,
                  node.operands.size());
    }
    if (node.op == OpCode::kFma && !is_float(node.from)) {
      return fail("K8: fma rounds once; on {} there is nothing to round", name_of(node.from));
    }
    if (!contains(row.types, node.from)) {
      return fail("K0: {} has no meaning on {}", row.name, name_of(node.from));
    }
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const bool condition = node.op == OpCode::kSelect && i == 0;
      const ElementType expected = condition ? ElementType::kPred : node.from;
      if (type_of(node.operands[i]) != expected) {
        return fail("K0: operand {} of {} is {}, expected {}", i, row.name,
                    name_of(type_of(node.operands[i])), name_of(expected));
      }
    }
    if (node.op == OpCode::kBitcast && bit_width(node.from) != bit_width(node.type)) {
      return fail("K0: bitcast from {} to {}: the widths differ", name_of(node.from),
                  name_of(node.type));
    }
    const bool stated = row.result == ResultType::kStated;
    const ElementType result = row.result == ResultType::kPred ? ElementType::kPred : node.type;
    if (is_complex(node.type) || (!stated && node.type != node.from) ||
        type_of(node.results[0]) != result) {
      return fail("K0: {} on {} gives {}", row.name, name_of(node.from),
                  name_of(type_of(node.results[0])));
    }
    Dependence& depends = dependence_[node.results[0]];
    for (const ValueId operand : node.operands) depends |= dependence_[operand];
    return true;
  }

  // --- Memory

  bool access(const Node& node, const Context& context) {
    const Memory& m = kernel_.memory(node.memories[0]);
    const size_t first = node.op == OpCode::kLoad ? 0 : 1;
    if (!indices(m, node.operands, first, m.dims.size())) return false;
    if (node.type != m.type || (first == 0 && type_of(node.results[0]) != m.type)) {
      return fail("K0: {} of {}, but %{} holds {}", op_name(node.op), name_of(node.type), m.name,
                  name_of(m.type));
    }
    if (first == 1 && type_of(node.operands[0]) != m.type) {
      return fail("K0: a {} is stored to %{}, which holds {}", name_of(type_of(node.operands[0])),
                  m.name, name_of(m.type));
    }
    if (m.space == Space::kPrivate && !is_own_part(node, m, first, context)) return false;
    if (node.op == OpCode::kLoad) return load(node, m, context);
    if (m.space == Space::kBuffer && m.access == Access::kIn) {
      return fail("K0: %{} is 'in' and stored to", m.name);
    }
    if (node.op == OpCode::kAtomic) {
      if (!is_integer(m.type)) {
        return fail("K6: an atomic on {}: the order of its combinations would change bits",
                    name_of(m.type));
      }
      if (m.access == Access::kOut && m.space == Space::kBuffer) {
        return fail("K2: an atomic on %{}, which is 'out': what it holds is undefined", m.name);
      }
      return true;
    }
    return races(node, m, first, context);
  }

  bool load(const Node& node, const Memory& m, const Context& context) {
    if (m.space == Space::kBuffer && m.access == Access::kOut) {
      return fail("K2: %{} is 'out' and loaded from: what it holds is undefined", m.name);
    }
    Dependence& depends = dependence_[node.results[0]];
    for (const ValueId index : node.operands) depends |= dependence_[index];
    if (m.space == Space::kPrivate) depends |= context.varying;
    // What was stored there may depend on anything.
    if (m.space == Space::kScratch || m.access == Access::kInOut) depends = kAll;
    return true;
  }

  bool indices(const Memory& m, const std::vector<ValueId>& operands, size_t first, size_t rank) {
    if (operands.size() < first + rank) {
      return fail("K0: %{} has {} indices, {} given", m.name, rank, operands.size() - first);
    }
    for (size_t i = 0; i < rank; ++i) {
      const ElementType type = type_of(operands[first + i]);
      if (type != kernel_.index_type) {
        return fail("K10: an index of %{} is {}, the kernel's index type is {}", m.name,
                    name_of(type), name_of(kernel_.index_type));
      }
    }
    return true;
  }

  bool is_own_part(const Node& node, const Memory& m, size_t first, const Context& context) {
    const Node* lanes = context.lanes;
    bool own = lanes != nullptr && lanes->extents.size() == m.lane_rank;
    for (size_t d = 0; own && d < m.lane_rank; ++d) {
      const ValueId index = node.operands[first + d];
      const bool only_one =
          m.dims[d] == 1 && kernel_.is_constant(index) && kernel_.value(index).bits == 0;
      own = lanes->extents[d] == m.dims[d] &&
            (only_one || index == kernel_.block(lanes->blocks[0]).arguments[d]);
    }
    return own || fail(
                      "K3: %{} is private: its first {} indices are the variables of a lanes loop "
                      "of its extents, in order",
                      m.name, m.lane_rank);
  }

  // A store to one place by every iteration of a loop that has more than one.
  bool races(const Node& node, const Memory& m, size_t first, const Context& context) {
    if (context.conditional) return true;
    Dependence depends = 0;
    for (size_t i = first; i < node.operands.size(); ++i) depends |= dependence_[node.operands[i]];
    Dependence concerned = context.varying;
    // Scratch belongs to one workgroup: the grid's variables do not matter.
    if (m.space != Space::kBuffer) concerned &= ~grid_;
    if (m.space == Space::kPrivate) concerned = 0;
    if ((concerned & ~depends) == 0) return true;
    return fail("K3: every iteration of {} stores to the same elements of %{}",
                (concerned & ~depends & grid_) != 0 ? "the grid" : "the lanes loop", m.name);
  }

  bool declaration(const Node& node) {
    const MemoryId id = node.memories[0];
    const Memory& m = kernel_.memory(id);
    if (is_complex(m.type)) return fail("K0: %{} is of {}", m.name, name_of(m.type));
    if (m.packed) return fail("K9: %{}: only buffers are packed", m.name);
    if (!fits(m, kMostScratchBytes)) return false;
    scratch_bytes_ += m.span() * static_cast<int64_t>(storage_bytes(m.type));
    if (scratch_bytes_ > kMostScratchBytes) {
      return fail_as(
          ErrorCode::kResourceExhausted,
          fmt::format("K0: scratch and private memory take more than {} bytes", kMostScratchBytes));
    }
    if ((node.op == OpCode::kPrivate) != (m.lane_rank > 0) || m.lane_rank > m.dims.size()) {
      return fail("K0: lanes are the leading dimensions of private memory");
    }
    memory_in_scope_[id] = true;
    scoped_memories_.push_back(id);
    return true;
  }

  // --- Control

  /// Gives the variables of a loop their bits, and their bits to `context` where there are several
  /// iterations.
  Dependence vary(const std::vector<ValueId>& variables, const Dims& extents, Context& context) {
    Dependence all = 0;
    for (size_t d = 0; d < extents.size(); ++d) {
      const Dependence bit = next_bit_ < 63 ? Dependence{1} << next_bit_++ : 0;
      dependence_[variables[d]] = bit == 0 ? kAll : bit;
      if (extents[d] > 1) context.varying |= bit;
      all |= bit;
    }
    return all;
  }

  // Variables of loops have the index type.
  bool indices_of(const std::vector<ValueId>& variables) {
    for (const ValueId variable : variables) {
      if (type_of(variable) == kernel_.index_type) continue;
      return fail("K10: the variable of a loop is {}, the kernel's index type is {}",
                  name_of(type_of(variable)), name_of(kernel_.index_type));
    }
    return true;
  }

  bool extents_fit(const Node& node, const std::vector<ValueId>& variables) {
    if (!indices_of(variables)) return false;
    for (const int64_t extent : node.extents) {
      if (kernel_.index_type == ElementType::kS32 && extent > int64_t{1} << 31) {
        return fail("K10: extent {} of {} does not fit s32", extent, op_name(node.op));
      }
    }
    return true;
  }

  bool lanes(const Node& node, const Context& context) {
    const Block& body = kernel_.block(node.blocks[0]);
    if (!extents_fit(node, body.arguments)) return false;
    Context inner = context;
    if (!countable(node.extents, kMostIterations, "a lanes loop")) return false;
    inner.lanes = &node;
    inner.conditional = std::count(node.extents.begin(), node.extents.end(), 0) != 0;
    inner.varying = context.conditional ? 0 : context.varying;
    vary(body.arguments, node.extents, inner);
    return no_yield(node.blocks[0]) && block(node.blocks[0], inner);
  }

  bool for_loop(const Node& node, const Context& context) {
    if (node.extents.size() != 1 || node.extents[0] < 1) {
      return fail("K0: the step of for is a positive constant");
    }
    for (size_t i = 0; i < 2; ++i) {
      if (type_of(node.operands[i]) != kernel_.index_type) {
        return fail("K10: a bound of for is {}, the kernel's index type is {}",
                    name_of(type_of(node.operands[i])), name_of(kernel_.index_type));
      }
    }
    if (kernel_.index_type == ElementType::kS32 && node.extents[0] >> 31 != 0) {
      return fail("K10: the step {} of for does not fit s32", node.extents[0]);
    }
    const Block& body = kernel_.block(node.blocks[0]);
    if (body.arguments.size() != node.operands.size() - 1) {
      return fail("K0: for carries {} values into {} arguments", node.operands.size() - 2,
                  body.arguments.size() - 1);
    }
    if (!carries(node, 2) || !takes(node, node.blocks[0], 1)) return false;
    for (const ValueId argument : body.arguments) dependence_[argument] = kAll;
    const bool constant =
        kernel_.is_constant(node.operands[0]) && kernel_.is_constant(node.operands[1]);
    if (constant) dependence_[body.arguments[0]] = 0;
    const bool runs = constant && static_cast<int64_t>(kernel_.value(node.operands[0]).bits) <
                                      static_cast<int64_t>(kernel_.value(node.operands[1]).bits);
    Context inner = context;
    inner.conditional |= !runs;
    for (const ValueId result : node.results) dependence_[result] = kAll;
    const NodeId here = at_;
    if (!block(node.blocks[0], inner)) return false;
    at_ = here;
    return yields(node.blocks[0], node.results);
  }

  bool while_loop(const Node& node, const Context& context) {
    Context inner = context;
    inner.conditional = true;
    const NodeId here = at_;
    for (const BlockId b : node.blocks) {
      for (const ValueId argument : kernel_.block(b).arguments) dependence_[argument] = kAll;
      if (kernel_.block(b).arguments.size() != node.results.size()) {
        return fail("K0: while carries {} values into {} arguments", node.results.size(),
                    kernel_.block(b).arguments.size());
      }
    }
    if (!carries(node, 0) || !takes(node, node.blocks[0], 0) || !takes(node, node.blocks[1], 0)) {
      return false;
    }
    for (const ValueId result : node.results) dependence_[result] = kAll;
    Context condition = inner;
    condition.pure = true;
    if (!block(node.blocks[0], condition) || !block(node.blocks[1], inner)) return false;
    at_ = here;
    return yields_types(node.blocks[0], {ElementType::kPred}) &&
           yields(node.blocks[1], node.results);
  }

  bool if_else(const Node& node, const Context& context) {
    if (type_of(node.operands[0]) != ElementType::kPred) {
      return fail("K0: the condition is {}, not pred", name_of(type_of(node.operands[0])));
    }
    Context inner = context;
    inner.conditional = true;
    const NodeId here = at_;
    for (const BlockId b : node.blocks) {
      if (!block(b, inner)) return false;
      at_ = here;
      if (!yields(b, node.results)) return false;
    }
    for (const ValueId result : node.results) dependence_[result] = kAll;
    return true;
  }

  bool reduction(const Node& node, const Context& context) {
    const Block& leaf = kernel_.block(node.blocks[0]);
    const Block& combine = kernel_.block(node.blocks[1]);
    if (!extents_fit(node, leaf.arguments)) return false;
    const size_t n = node.operands.size();
    if (combine.arguments.size() != 2 * n || node.results.size() != n) {
      return fail("K5: {} of {} values combines {}", op_name(node.op), n, combine.arguments.size());
    }
    if (!countable(node.extents, int64_t{1} << 62, op_name(node.op)) || !carries(node, 0) ||
        !takes(node, node.blocks[1], 0, 2)) {
      return false;
    }
    Context pure = context;
    pure.pure = true;
    pure.conditional |= std::count(node.extents.begin(), node.extents.end(), 0) != 0;
    for (const ValueId index : leaf.arguments) dependence_[index] = kAll;
    for (const ValueId argument : combine.arguments) dependence_[argument] = kAll;
    for (const ValueId result : node.results) dependence_[result] = kAll;
    const NodeId here = at_;
    for (size_t i = 0; i < 2; ++i) {
      if (!block(node.blocks[i], pure)) return false;
      at_ = here;
      if (!yields(node.blocks[i], node.results)) return false;
    }
    if (node.commutative && !is_symmetric(kernel_, node)) {
      return fail(
          "K5: commutative: swapping the sides of the combination gives another expression");
    }
    if (node.op == OpCode::kReduce) return true;
    if (node.extents.size() != 1) return fail("K5: scan runs along one extent");
    Context each = context;
    each.conditional |= node.extents[0] == 0;
    if (node.over_lanes) each.lanes = &node;
    const std::vector<ValueId>& arguments = kernel_.block(node.blocks[2]).arguments;
    if (arguments.size() != n + 1) {
      return fail("K5: 'each' names an index and {} prefixes", n);
    }
    for (const ValueId argument : arguments) dependence_[argument] = kAll;
    return no_yield(node.blocks[2]) && takes(node, node.blocks[2], 1) &&
           block(node.blocks[2], each);
  }

  // --- Tiles

  bool copy(const Node& node, const Context& context) {
    const Memory& destination = kernel_.memory(node.memories[0]);
    const Memory& source = kernel_.memory(node.memories[1]);
    if (destination.type != source.type || node.type != source.type) {
      return fail("K0: copy from {} to {}", name_of(source.type), name_of(destination.type));
    }
    if (destination.space == Space::kPrivate || source.space == Space::kPrivate) {
      return fail("K3: copy does not touch private memory");
    }
    if (destination.space == Space::kBuffer && destination.access == Access::kIn) {
      return fail("K0: %{} is 'in' and stored to", destination.name);
    }
    if (source.space == Space::kBuffer && source.access == Access::kOut) {
      return fail("K2: %{} is 'out' and loaded from: what it holds is undefined", source.name);
    }
    const size_t box = node.extents.size();
    const size_t starts = destination.dims.size() + source.dims.size();
    if (node.by.size() != 2 * box || node.operands.size() != starts + (node.has_pad ? 1 : 0)) {
      return fail("K0: copy names a dimension of each memory for each dimension of the box");
    }
    for (size_t side = 0; side < 2; ++side) {
      const Memory& m = side == 0 ? destination : source;
      std::set<uint32_t> seen;
      for (size_t d = 0; d < box; ++d) {
        const uint32_t by = node.by[side * box + d];
        if (by >= m.dims.size() || !seen.insert(by).second) {
          return fail("K0: by({}): no dimension of %{}, or named twice", by, m.name);
        }
      }
    }
    if (node.has_pad && type_of(node.operands.back()) != source.type) {
      return fail("K0: the padding is {}, the elements are {}",
                  name_of(type_of(node.operands.back())), name_of(source.type));
    }
    return countable(node.extents, kMostIterations, "the box of copy") &&
           indices(destination, node.operands, 0, starts) && copies_race_free(node, context);
  }

  // As for a store: every workgroup copying to one place.
  bool copies_race_free(const Node& node, const Context& context) {
    const Memory& destination = kernel_.memory(node.memories[0]);
    if (destination.space != Space::kBuffer || context.conditional) return true;
    Dependence depends = 0;
    for (size_t d = 0; d < destination.dims.size(); ++d) depends |= dependence_[node.operands[d]];
    if ((context.varying & grid_ & ~depends) == 0) return true;
    return fail("K3: every iteration of the grid copies to the same elements of %{}",
                destination.name);
  }

  bool contract(const Node& node) {
    size_t first = 0;
    for (size_t i = 0; i < 3; ++i) {
      const Memory& m = kernel_.memory(node.memories[i]);
      const bool accumulator = m.space == Space::kPrivate;
      if (accumulator && (i != 0 || m.lane_rank != 2 || m.dims.size() != 4)) {
        return fail("K0: a private tile is the accumulator, of 4 dimensions per lanes 2");
      }
      if (m.dims.size() < 2) return fail("K0: tile %{} has fewer than 2 dimensions", m.name);
      if (!contains(kNumbers, m.type)) return fail("K0: a tile of {}", name_of(m.type));
      if (m.space == Space::kBuffer && m.access == Access::kOut) {
        return fail("K2: %{} is 'out' and loaded from: what it holds is undefined", m.name);
      }
      const size_t starts = accumulator ? 2 : m.dims.size();
      if (!indices(m, node.operands, first, starts)) return false;
      first += starts;
    }
    if (!countable({node.extents[0], node.extents[1]}, kMostIterations, "the box of contract")) {
      return false;
    }
    const Memory& c = kernel_.memory(node.memories[0]);
    if (c.space == Space::kBuffer)
      return fail("K0: contract accumulates in scratch or private tiles");
    if (is_float(c.type) != is_float(kernel_.memory(node.memories[1]).type) ||
        is_float(c.type) != is_float(kernel_.memory(node.memories[2]).type)) {
      return fail("K0: contract of integers gives integers, of floats floats");
    }
    return true;
  }

  const Kernel& kernel_;
  Status status_;
  NodeId at_ = kNone;
  std::vector<bool> in_scope_;
  std::vector<bool> memory_in_scope_;
  std::vector<MemoryId> scoped_memories_;
  std::vector<Dependence> dependence_;
  std::vector<bool> conditional_;  // by node
  Dependence grid_ = 0;
  int64_t scratch_bytes_ = 0;
  int next_bit_ = 0;
};

}  // namespace

Status verify(const Kernel& kernel) {
  TENON_TRY(check_structure(kernel));
  return Verifier(kernel).run();
}

SourcePosition position_of(const Kernel& kernel, NodeId node) {
  if (node < kernel.lines.size()) return {kernel.name, kernel.lines[node], 0};
  std::vector<uint32_t> lines;
  print(kernel, &lines);
  return {kernel.name, lines[node], 0};
}

}  // namespace tenon::kernel
