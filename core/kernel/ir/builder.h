// Builder: builds kernels.
//
//   Builder b("scale", ElementType::kS32);
//   const MemoryId x = b.buffer("x", ElementType::kF32, {128, 256}, Access::kIn);
//   const MemoryId y = b.buffer("y", ElementType::kF32, {128, 256}, Access::kOut);
//   const Values i = b.grid({128});
//   b.lanes({256}, [&](const Values& j) {
//     const ValueId v = b.load(x, {i[0], j[0]});
//     b.store(b.mul(v, b.real(ElementType::kF32, 2)), y, {i[0], j[0]});
//   });
//   Kernel kernel = b.finish();
//
// Operations on constants are folded, and so are identities of index arithmetic (x + 0, x * 1, x /
// 1, (x + 1) + 2 …) that change no bit. The builder does not check its arguments: verify() reports
// errors.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>

#include "core/kernel/ir/kernel.h"
#include "core/types/literal.h"

namespace tenon::kernel {

using Values = std::vector<ValueId>;

class Builder {
 public:
  explicit Builder(std::string name, ElementType index_type = ElementType::kS32);

  void set_label(std::string label) { kernel_.label = std::move(label); }
  ElementType index_type() const { return kernel_.index_type; }
  const Kernel& kernel() const { return kernel_; }
  ElementType type_of(ValueId value) const { return kernel_.values[value].type; }
  /// Reserves memory for a kernel of about the size of `like`.
  void reserve(const Kernel& like);

  // --- The head: buffers and scalars precede the grid, the grid precedes the body.
  MemoryId buffer(std::string name, ElementType type, Dims dims, Access access);
  MemoryId buffer(Memory memory);
  ValueId scalar(std::string name, ElementType type);
  Values grid(Dims extents);

  // --- Scalars
  ValueId constant(ElementType type, uint64_t bits);
  ValueId real(ElementType type, double value);
  ValueId integer(ElementType type, int64_t value);
  ValueId index(int64_t value) {
    index_fits_ &= kernel_.index_type == ElementType::kS64 || value == static_cast<int32_t>(value);
    return integer(kernel_.index_type, value);
  }
  /// Whether every index() so far fitted the index type.
  bool index_fits() const { return index_fits_; }
  /// Element `i` of an array of real numbers, integers or pred, with all its bits.
  ValueId literal(const Literal& array, int64_t i);
  ValueId pred(bool value) { return constant(ElementType::kPred, value ? 1 : 0); }
  /// An operation of ops.inc; `stated` is the result type of convert and bitcast.
  ValueId op(OpCode code, std::span<const ValueId> operands, ElementType stated = {});
  ValueId op(OpCode code, std::initializer_list<ValueId> operands, ElementType stated = {}) {
    return op(code, std::span(operands.begin(), operands.size()), stated);
  }
  ValueId unary(OpCode code, ValueId x) { return op(code, {x}); }
  ValueId binary(OpCode code, ValueId x, ValueId y) { return op(code, {x, y}); }
  ValueId add(ValueId x, ValueId y) { return binary(OpCode::kAdd, x, y); }
  ValueId sub(ValueId x, ValueId y) { return binary(OpCode::kSub, x, y); }
  ValueId mul(ValueId x, ValueId y) { return binary(OpCode::kMul, x, y); }
  ValueId div(ValueId x, ValueId y) { return binary(OpCode::kDiv, x, y); }
  ValueId rem(ValueId x, ValueId y) { return binary(OpCode::kRem, x, y); }
  ValueId min(ValueId x, ValueId y) { return binary(OpCode::kMin, x, y); }
  ValueId max(ValueId x, ValueId y) { return binary(OpCode::kMax, x, y); }
  ValueId fma(ValueId x, ValueId y, ValueId z) { return op(OpCode::kFma, {x, y, z}); }
  ValueId logical_and(ValueId x, ValueId y) { return binary(OpCode::kAnd, x, y); }
  ValueId logical_or(ValueId x, ValueId y) { return binary(OpCode::kOr, x, y); }
  ValueId logical_not(ValueId x) { return unary(OpCode::kNot, x); }
  ValueId compare(OpCode code, ValueId x, ValueId y) { return op(code, {x, y}); }
  ValueId select(ValueId p, ValueId x, ValueId y) { return op(OpCode::kSelect, {p, x, y}); }
  ValueId convert(ValueId x, ElementType type);
  ValueId bitcast(ValueId x, ElementType type);

  // --- Memory
  MemoryId scratch(std::string name, ElementType type, Dims dims);
  MemoryId private_memory(std::string name, ElementType type, Dims dims, uint32_t lane_rank);
  ValueId load(MemoryId memory, const Values& indices);
  void store(ValueId value, MemoryId memory, const Values& indices);
  void atomic(AtomicKind kind, ValueId value, MemoryId memory, const Values& indices);
  void copy(const Dims& box, MemoryId destination, const Values& destination_start,
            std::vector<uint32_t> destination_by, MemoryId source, const Values& source_start,
            std::vector<uint32_t> source_by, ValueId pad = kNone, bool clip = false);
  void contract(int64_t m, int64_t n, int64_t k, MemoryId c, const Values& c_start, MemoryId a,
                const Values& a_start, MemoryId b, const Values& b_start, bool transpose_a = false,
                bool transpose_b = false);

  // --- Control flow. A body returns the values that its statement requires.
  using Body = std::function<void(const Values& indices)>;
  using ValueBody = std::function<Values(const Values& arguments)>;
  void lanes(Dims extents, const Body& body);
  /// body(k, carried …) returns the next carried values.
  Values for_loop(ValueId low, ValueId high, int64_t step, const Values& inits,
                  const ValueBody& body);
  /// condition(carried …) returns one pred.
  Values while_loop(const Values& inits, const ValueBody& condition, const ValueBody& body);
  Values if_else(ValueId condition, const std::function<Values()>& then,
                 const std::function<Values()>& otherwise);
  void if_then(ValueId condition, const std::function<void()>& then);

  struct ReduceSpec {
    Dims extents;
    bool over_lanes = false;
    bool commutative = false;
    Values inits;
    ValueBody leaf;     ///< Maps indices to the leaf's values.
    ValueBody combine;  ///< Maps left values, then right values, to their combination.
  };
  Values reduce(const ReduceSpec& reduction);
  /// each(index, prefixes …)
  Values scan(const ReduceSpec& reduction, const Body& each);

  /// The kernel; the builder is empty afterwards.
  Kernel finish();

  // --- For copying kernels node by node (rewriter.h)
  BlockId begin_block(const std::vector<ElementType>& arguments);
  /// Ends the innermost open block, with a yield of `values` if `has_yield`.
  void end_block(bool has_yield, const Values& values);
  const Values& arguments(BlockId block) const { return kernel_.blocks[block].arguments; }
  /// Appends `node`, whose operands, blocks and memories must belong to this kernel, and creates
  /// its results.
  Values append(Node node, const std::vector<ElementType>& result_types);
  MemoryId add_memory(Memory memory);
  /// The number of open blocks around the innermost one.
  size_t depth() const { return open_.size() - 1; }
  BlockId current_block() const { return open_.back(); }
  /// Whether values defined in `block` may be used at the builder's current position.
  bool is_open(BlockId block) const;
  /// The depth of the block in which a value was defined.
  size_t depth_of(ValueId value) const { return depths_[value]; }
  /// Appends operations to the open block at `depth`, before the statement that is being built
  /// there, until `insert_innermost`.
  void insert_at(size_t depth) { insertion_ = depth; }
  void insert_innermost() { insertion_ = kInnermost; }

 private:
  static constexpr size_t kInnermost = ~size_t{0};

  ValueId new_value(ElementType type, ValueKind kind, size_t depth, NodeId node = kNone);
  /// Appends a node of one result.
  ValueId append_one(Node node, ElementType result_type);
  void place(Node node, NodeId id, size_t depth);
  ValueId fold(OpCode code, ElementType type, std::span<const ValueId> operands,
               ElementType stated);
  ValueId simplify(OpCode code, ElementType type, std::span<const ValueId> operands);
  bool is_integer_constant(ValueId value, int64_t number) const;
  struct SumWithConstant {
    ValueId x;
    uint64_t constant;  // Bits of the same type.
  };
  std::optional<SumWithConstant> sum_with_constant(ValueId value) const;
  ValueId join_constants(OpCode code, ElementType type, ValueId x, ValueId y);
  Node reduction_node(OpCode code, const ReduceSpec& reduction);
  std::vector<ElementType> types_of(const Values& values) const;

  Kernel kernel_;
  std::unordered_set<std::string> memory_names_;
  std::vector<BlockId> open_;
  size_t insertion_ = kInnermost;
  bool index_fits_ = true;
  std::vector<uint32_t> depths_;    // one per value
  std::vector<ValueId> constants_;  // A table by hash of type and bits, at most half full.
  size_t constant_count_ = 0;
};

}  // namespace tenon::kernel
