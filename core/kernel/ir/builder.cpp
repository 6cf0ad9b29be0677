#include "core/kernel/ir/builder.h"

#include <algorithm>
#include <cstring>

#include "core/kernel/ir/visitor.h"
#include "core/kernel/math/scalar.h"

namespace tenon::kernel {

Builder::Builder(std::string name, ElementType index_type) {
  kernel_.name = std::move(name);
  kernel_.index_type = index_type;
  kernel_.blocks.emplace_back();
  open_.push_back(0);
}

void Builder::reserve(const Kernel& like) {
  kernel_.values.reserve(like.values.size());
  depths_.reserve(like.values.size());
  kernel_.nodes.reserve(like.nodes.size());
  kernel_.blocks.reserve(like.blocks.size());
}

// --- The head

MemoryId Builder::add_memory(Memory memory) {
  // Names must be unique, so that the printed kernel can be parsed.
  const std::string name = memory.name;
  for (int i = 2; !memory_names_.insert(memory.name).second; ++i) {
    memory.name = name + "_" + std::to_string(i);
  }
  kernel_.memories.push_back(std::move(memory));
  return static_cast<MemoryId>(kernel_.memories.size() - 1);
}

MemoryId Builder::buffer(std::string name, ElementType type, Dims dims, Access access) {
  Memory memory;
  memory.name = std::move(name);
  memory.type = type;
  memory.dims = std::move(dims);
  memory.access = access;
  return buffer(std::move(memory));
}

MemoryId Builder::buffer(Memory memory) {
  ++kernel_.buffer_count;
  return add_memory(std::move(memory));
}

ValueId Builder::scalar(std::string name, ElementType type) {
  const ValueId value = new_value(type, ValueKind::kScalar, 0);
  kernel_.scalars.push_back(value);
  const std::string stem = name;
  const auto taken = [&] {
    const auto& names = kernel_.scalar_names;
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (int i = 2; taken(); ++i) name = stem + "_" + std::to_string(i);
  kernel_.scalar_names.push_back(std::move(name));
  return value;
}

Values Builder::grid(Dims extents) {
  kernel_.grid = std::move(extents);
  for (size_t d = 0; d < kernel_.grid.size(); ++d) {
    kernel_.blocks[0].arguments.push_back(new_value(kernel_.index_type, ValueKind::kArgument, 0));
  }
  return kernel_.blocks[0].arguments;
}

// --- Scalars

ValueId Builder::new_value(ElementType type, ValueKind kind, size_t depth, NodeId node) {
  depths_.push_back(static_cast<uint32_t>(depth));
  kernel_.values.push_back({type, kind, 0, node});
  return static_cast<ValueId>(kernel_.values.size() - 1);
}

ValueId Builder::constant(ElementType type, uint64_t bits) {
  const auto place_of = [&](ElementType t, uint64_t b) {
    const uint64_t mixed = (b ^ (static_cast<uint64_t>(t) << 56)) * 0x9E3779B97F4A7C15;
    return (mixed >> 32) & (constants_.size() - 1);
  };
  if (2 * constant_count_ >= constants_.size()) {
    std::vector<ValueId> old(std::max<size_t>(16, 2 * constants_.size()), kNone);
    old.swap(constants_);
    for (const ValueId value : old) {
      if (value == kNone) continue;
      size_t at = place_of(kernel_.value(value).type, kernel_.value(value).bits);
      while (constants_[at] != kNone) at = (at + 1) & (constants_.size() - 1);
      constants_[at] = value;
    }
  }
  size_t at = place_of(type, bits);
  for (; constants_[at] != kNone; at = (at + 1) & (constants_.size() - 1)) {
    const Value& known = kernel_.value(constants_[at]);
    if (known.type == type && known.bits == bits) return constants_[at];
  }
  const ValueId value = new_value(type, ValueKind::kConstant, 0);
  kernel_.values.back().bits = bits;
  constants_[at] = value;
  ++constant_count_;
  return value;
}

ValueId Builder::real(ElementType type, double value) {
  return constant(type, bits_of_real(type, value));
}

ValueId Builder::integer(ElementType type, int64_t value) {
  return constant(type, bits_of_integer(type, value));
}

ValueId Builder::literal(const Literal& array, int64_t i) {
  const ElementType type = array.element_type();
  const size_t bytes = storage_bytes(type);
  uint64_t pattern = 0;  // little-endian, as the literal
  std::memcpy(&pattern, array.data().data() + static_cast<size_t>(i) * bytes, bytes);
  return constant(type, from_pattern(type, pattern));
}

ValueId Builder::convert(ValueId x, ElementType type) {
  return type_of(x) == type ? x : op(OpCode::kConvert, {x}, type);
}

ValueId Builder::bitcast(ValueId x, ElementType type) {
  return type_of(x) == type ? x : op(OpCode::kBitcast, {x}, type);
}

ValueId Builder::op(OpCode code, std::span<const ValueId> operands, ElementType stated) {
  const ScalarOp& row = scalar_op(code);
  // T is the type of the last operand, because the first operand of select is the condition.
  const ElementType type = type_of(operands.back());
  if (const ValueId folded = fold(code, type, operands, stated); folded != kNone) return folded;
  Node node;
  node.op = code;
  node.type = row.result == ResultType::kStated ? stated : type;
  node.from = type;
  node.operands.assign(operands.begin(), operands.end());
  const ElementType result = row.result == ResultType::kPred ? ElementType::kPred : node.type;
  return append_one(std::move(node), result);
}

ValueId Builder::fold(OpCode code, ElementType type, std::span<const ValueId> operands,
                      ElementType stated) {
  uint64_t bits[3] = {};
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!kernel_.is_constant(operands[i])) return simplify(code, type, operands);
    bits[i] = kernel_.value(operands[i]).bits;
  }
  // Math functions are not folded: their bits depend on the target that runs the kernel.
  if (is_math(code)) return kNone;
  const ScalarOp& row = scalar_op(code);
  const ElementType working = row.result == ResultType::kStated ? stated : type;
  const uint64_t value = evaluate(code, working, type, bits[0], bits[1], bits[2]);
  return constant(row.result == ResultType::kPred ? ElementType::kPred : working, value);
}

bool Builder::is_integer_constant(ValueId value, int64_t number) const {
  const Value& v = kernel_.value(value);
  return v.kind == ValueKind::kConstant && !is_float(v.type) &&
         v.bits == bits_of_integer(v.type, number);
}

// x and a constant c, if `value` is x + c or x - c (then with the constant -c).
std::optional<Builder::SumWithConstant> Builder::sum_with_constant(ValueId value) const {
  const Value& v = kernel_.value(value);
  if (v.kind != ValueKind::kResult || v.node == kNone) return std::nullopt;
  const Node& node = kernel_.node(v.node);
  if (node.op != OpCode::kAdd && node.op != OpCode::kSub) return std::nullopt;
  const ValueId x = node.operands[0], y = node.operands[1];
  if (kernel_.is_constant(y)) {
    const uint64_t bits = kernel_.value(y).bits;
    return SumWithConstant{x, evaluate(node.op, v.type, v.type, 0, bits, 0)};
  }
  if (node.op == OpCode::kAdd && kernel_.is_constant(x))
    return SumWithConstant{y, kernel_.value(x).bits};
  return std::nullopt;
}

// (x + c1) + c2 and the like as x plus one constant: integers wrap around. This shows which indices
// differ by a constant.
ValueId Builder::join_constants(OpCode code, ElementType type, ValueId x, ValueId y) {
  if (code == OpCode::kAdd && kernel_.is_constant(x)) std::swap(x, y);
  if (!kernel_.is_constant(y)) return kNone;
  const std::optional<SumWithConstant> sum = sum_with_constant(x);
  if (!sum) return kNone;
  const uint64_t bits = evaluate(code, type, type, sum->constant, kernel_.value(y).bits, 0);
  return op(OpCode::kAdd, {sum->x, constant(type, bits)});
}

// Only identities of integers and pred: hardly any identity of floats keeps every bit.
ValueId Builder::simplify(OpCode code, ElementType type, std::span<const ValueId> operands) {
  if (code == OpCode::kSelect) {
    if (kernel_.is_constant(operands[0])) {
      return kernel_.value(operands[0]).bits != 0 ? operands[1] : operands[2];
    }
    return operands[1] == operands[2] ? operands[1] : kNone;
  }
  if (is_float(type) || operands.size() != 2) return kNone;
  const ValueId x = operands[0];
  const ValueId y = operands[1];
  switch (code) {
    case OpCode::kAdd:
    case OpCode::kOr:
    case OpCode::kXor:
      if (is_integer_constant(x, 0)) return y;
      if (code == OpCode::kOr && x == y) return x;
      if (is_integer_constant(y, 0)) return x;
      return code == OpCode::kAdd ? join_constants(code, type, x, y) : kNone;
    case OpCode::kSub:
      if (is_integer_constant(y, 0)) return x;
      return join_constants(code, type, x, y);
    case OpCode::kShl:
    case OpCode::kShr:
    case OpCode::kSar:
      return is_integer_constant(y, 0) ? x : kNone;
    case OpCode::kMul:
      if (is_integer_constant(x, 0) || is_integer_constant(y, 1)) return x;
      return is_integer_constant(y, 0) || is_integer_constant(x, 1) ? y : kNone;
    case OpCode::kDiv:
      return is_integer_constant(y, 1) ? x : kNone;
    case OpCode::kRem:
      return is_integer_constant(y, 1) ? constant(type, 0) : kNone;
    case OpCode::kAnd:
      if (is_integer_constant(x, 0) || x == y) return x;
      if (is_integer_constant(y, 0)) return y;
      if (is_integer_constant(x, is_pred(type) ? 1 : -1)) return y;
      return is_integer_constant(y, is_pred(type) ? 1 : -1) ? x : kNone;
    case OpCode::kMin:
    case OpCode::kMax:
      return x == y ? x : kNone;
    default:
      return kNone;
  }
}

// --- Memory

MemoryId Builder::scratch(std::string name, ElementType type, Dims dims) {
  return private_memory(std::move(name), type, std::move(dims), 0);
}

MemoryId Builder::private_memory(std::string name, ElementType type, Dims dims,
                                 uint32_t lane_rank) {
  Memory memory;
  memory.name = std::move(name);
  memory.space = lane_rank == 0 ? Space::kScratch : Space::kPrivate;
  memory.type = type;
  memory.dims = std::move(dims);
  memory.lane_rank = lane_rank;
  const MemoryId id = add_memory(std::move(memory));
  Node node;
  node.op = lane_rank == 0 ? OpCode::kScratch : OpCode::kPrivate;
  node.memories = {id};
  append(std::move(node), {});
  // Declarations come first in their body.
  std::vector<NodeId>& nodes = kernel_.blocks[open_.back()].nodes;
  const auto is_statement = [&](NodeId n) { return !is<OnDeclaration>(kernel_.node(n).op); };
  std::rotate(std::find_if(nodes.begin(), nodes.end() - 1, is_statement), nodes.end() - 1,
              nodes.end());
  return id;
}

ValueId Builder::load(MemoryId memory, const Values& indices) {
  Node node;
  node.op = OpCode::kLoad;
  node.type = kernel_.memory(memory).type;
  node.memories = {memory};
  node.operands = indices;
  const ElementType type = node.type;
  return append_one(std::move(node), type);
}

void Builder::store(ValueId value, MemoryId memory, const Values& indices) {
  Node node;
  node.op = OpCode::kStore;
  node.type = kernel_.memory(memory).type;
  node.memories = {memory};
  node.operands = {value};
  node.operands.insert(node.operands.end(), indices.begin(), indices.end());
  append(std::move(node), {});
}

void Builder::atomic(AtomicKind kind, ValueId value, MemoryId memory, const Values& indices) {
  store(value, memory, indices);
  kernel_.nodes.back().op = OpCode::kAtomic;
  kernel_.nodes.back().atomic = kind;
}

void Builder::copy(const Dims& box, MemoryId destination, const Values& destination_start,
                   std::vector<uint32_t> destination_by, MemoryId source,
                   const Values& source_start, std::vector<uint32_t> source_by, ValueId pad,
                   bool clip) {
  Node node;
  node.op = OpCode::kCopy;
  node.type = kernel_.memory(destination).type;
  node.memories = {destination, source};
  node.extents = box;
  node.operands = destination_start;
  node.operands.insert(node.operands.end(), source_start.begin(), source_start.end());
  node.has_pad = pad != kNone;
  if (node.has_pad) node.operands.push_back(pad);
  node.by = std::move(destination_by);
  node.by.insert(node.by.end(), source_by.begin(), source_by.end());
  node.clip = clip;
  append(std::move(node), {});
}

void Builder::contract(int64_t m, int64_t n, int64_t k, MemoryId c, const Values& c_start,
                       MemoryId a, const Values& a_start, MemoryId b, const Values& b_start,
                       bool transpose_a, bool transpose_b) {
  Node node;
  node.op = OpCode::kContract;
  node.type = kernel_.memory(c).type;
  node.memories = {c, a, b};
  node.extents = {m, n, k};
  for (const Values* start : {&c_start, &a_start, &b_start}) {
    node.operands.insert(node.operands.end(), start->begin(), start->end());
  }
  node.transpose_a = transpose_a;
  node.transpose_b = transpose_b;
  append(std::move(node), {});
}

// --- Control

BlockId Builder::begin_block(const std::vector<ElementType>& arguments) {
  const auto block = static_cast<BlockId>(kernel_.blocks.size());
  kernel_.blocks.emplace_back();
  for (const ElementType type : arguments) {
    const ValueId argument = new_value(type, ValueKind::kArgument, open_.size());
    kernel_.blocks[block].arguments.push_back(argument);
  }
  open_.push_back(block);
  return block;
}

bool Builder::is_open(BlockId block) const {
  return std::find(open_.begin(), open_.end(), block) != open_.end();
}

void Builder::end_block(bool has_yield, const Values& values) {
  if (has_yield) {
    Node node;
    node.op = OpCode::kYield;
    node.operands = values;
    append(std::move(node), {});
  }
  open_.pop_back();
}

void Builder::place(Node node, NodeId id, size_t depth) {
  kernel_.nodes.push_back(std::move(node));
  kernel_.blocks[open_[depth]].nodes.push_back(id);
}

Values Builder::append(Node node, const std::vector<ElementType>& result_types) {
  const auto id = static_cast<NodeId>(kernel_.nodes.size());
  const size_t at = insertion_ == kInnermost ? depth() : insertion_;
  node.results.clear();
  for (const ElementType type : result_types) {
    node.results.push_back(new_value(type, ValueKind::kResult, at, id));
  }
  place(std::move(node), id, at);
  return kernel_.nodes.back().results;
}

ValueId Builder::append_one(Node node, ElementType result_type) {
  const auto id = static_cast<NodeId>(kernel_.nodes.size());
  const size_t at = insertion_ == kInnermost ? depth() : insertion_;
  const ValueId result = new_value(result_type, ValueKind::kResult, at, id);
  node.results.assign(1, result);
  place(std::move(node), id, at);
  return result;
}

std::vector<ElementType> Builder::types_of(const Values& values) const {
  std::vector<ElementType> types;
  types.reserve(values.size());
  for (const ValueId value : values) types.push_back(type_of(value));
  return types;
}

void Builder::lanes(Dims extents, const Body& body) {
  Node node;
  node.op = OpCode::kLanes;
  const BlockId block = begin_block(std::vector<ElementType>(extents.size(), kernel_.index_type));
  node.extents = std::move(extents);
  body(Values(arguments(block)));
  end_block(false, {});
  node.blocks = {block};
  append(std::move(node), {});
}

Values Builder::for_loop(ValueId low, ValueId high, int64_t step, const Values& inits,
                         const ValueBody& body) {
  Node node;
  node.op = OpCode::kFor;
  node.operands = {low, high};
  node.operands.insert(node.operands.end(), inits.begin(), inits.end());
  node.extents = {step};
  const std::vector<ElementType> carried = types_of(inits);
  std::vector<ElementType> types = {kernel_.index_type};
  for (const ElementType type : carried) types.push_back(type);
  const BlockId block = begin_block(types);
  const Values next = body(Values(arguments(block)));
  end_block(true, next);
  node.blocks = {block};
  return append(std::move(node), carried);
}

Values Builder::while_loop(const Values& inits, const ValueBody& condition, const ValueBody& body) {
  Node node;
  node.op = OpCode::kWhile;
  node.operands = inits;
  const std::vector<ElementType> carried = types_of(inits);
  for (const ValueBody* part : {&condition, &body}) {
    const BlockId block = begin_block(carried);
    const Values values = (*part)(Values(arguments(block)));
    end_block(true, values);
    node.blocks.push_back(block);
  }
  return append(std::move(node), carried);
}

Values Builder::if_else(ValueId condition, const std::function<Values()>& then,
                        const std::function<Values()>& otherwise) {
  Node node;
  node.op = OpCode::kIf;
  node.operands = {condition};
  std::vector<ElementType> types;
  for (const std::function<Values()>* part : {&then, &otherwise}) {
    const BlockId block = begin_block({});
    const Values values = (*part)();
    types = types_of(values);
    end_block(true, values);
    node.blocks.push_back(block);
  }
  return append(std::move(node), types);
}

void Builder::if_then(ValueId condition, const std::function<void()>& then) {
  if_else(
      condition,
      [&] {
        then();
        return Values{};
      },
      [] { return Values{}; });
}

Node Builder::reduction_node(OpCode code, const ReduceSpec& reduction) {
  Node node;
  node.op = code;
  node.operands = reduction.inits;
  node.extents = reduction.extents;
  node.over_lanes = reduction.over_lanes;
  node.commutative = reduction.commutative;
  const BlockId leaf =
      begin_block(std::vector<ElementType>(reduction.extents.size(), kernel_.index_type));
  const Values leaves = reduction.leaf(Values(arguments(leaf)));
  end_block(true, leaves);
  std::vector<ElementType> types = types_of(reduction.inits);
  for (size_t i = 0; i < reduction.inits.size(); ++i) types.push_back(types[i]);
  const BlockId combine = begin_block(types);
  const Values combined = reduction.combine(Values(arguments(combine)));
  end_block(true, combined);
  node.blocks = {leaf, combine};
  return node;
}

Values Builder::reduce(const ReduceSpec& reduction) {
  Node node = reduction_node(OpCode::kReduce, reduction);
  return append(std::move(node), types_of(reduction.inits));
}

Values Builder::scan(const ReduceSpec& reduction, const Body& each) {
  Node node = reduction_node(OpCode::kScan, reduction);
  std::vector<ElementType> types = {kernel_.index_type};
  const std::vector<ElementType> prefixes = types_of(reduction.inits);
  for (const ElementType type : prefixes) types.push_back(type);
  const BlockId block = begin_block(types);
  each(Values(arguments(block)));
  end_block(false, {});
  node.blocks.push_back(block);
  return append(std::move(node), prefixes);
}

Kernel Builder::finish() { return std::move(kernel_); }

}  // namespace tenon::kernel
