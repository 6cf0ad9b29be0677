// core/kernel/: the kernel IR, and everything done to a kernel without a target.
// core/kernel/ir/: the kernel IR: operations, statements, builder.
//
// Kernel: scalar operations inside fork-join loops over typed buffers; the unit that a backend
// compiles. docs/kernel-ir.md is the specification; K0 … K10 are its rules.
//
// A kernel consists of plain arrays: values, memories, nodes and blocks refer to each other by
// index. Builder, a parser or a reader builds it, and it is never modified: a transformation reads
// one kernel and builds another (rewriter.h). Ids are valid as long as their kernel exists.
//
// Thread-safety: a value; concurrent reads are safe.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/kernel/ir/ops.h"
#include "core/types/shape.h"

namespace tenon::kernel {

using ValueId = uint32_t;
using MemoryId = uint32_t;
using NodeId = uint32_t;
using BlockId = uint32_t;
inline constexpr uint32_t kNone = ~uint32_t{0};

enum class Space : uint8_t { kBuffer, kScratch, kPrivate };
enum class Access : uint8_t { kIn, kOut, kInOut };

/// An array that is loaded from and stored to. Buffers are the kernel's parameters and come first.
struct Memory {
  std::string name;
  Space space = Space::kBuffer;
  ElementType type{};
  Dims dims;
  Dims strides;                 ///< In elements; empty for dense row-major.
  Access access = Access::kIn;  ///< For a buffer.
  MemoryId over = kNone;        ///< The buffer whose memory a launch may give to this one (K4).
  bool packed = false;          ///< Sub-byte elements share bytes (K9).
  uint32_t lane_rank = 0;       ///< For private memory: leading dimensions that are lanes.

  bool operator==(const Memory&) const = default;
  /// `strides`, or those of dense row-major order.
  Dims resolved_strides() const;
  /// The number of elements between the first and one beyond the last, 0 if empty.
  int64_t span() const;
  /// The size of these elements in bytes: packed, or each in whole bytes (K9).
  int64_t bytes() const;
};

enum class ValueKind : uint8_t {
  kConstant,  ///< `bits`
  kScalar,    ///< Bound by the launch.
  kArgument,  ///< Argument of a block.
  kResult,    ///< Result of a node.
};

struct Value {
  ElementType type{};
  ValueKind kind = ValueKind::kConstant;
  /// The bits of a constant, as registers of the Interpreter hold them: integers sign-extended to
  /// 64 bits, floats in their format, pred 0 or 1.
  uint64_t bits = 0;
  NodeId node = kNone;  ///< The node of a result.
};

// clang-format off
/// An operation or statement. `op` determines which members are used:
///
///   scalar op    operands, type; results[0]; from (the operand's type) of convert and bitcast
///   load         operands: indices; type, memories {m}; results[0]
///   store        operands: value, indices; type, memories {m}
///   atomic       the same; atomic
///   scratch      memories {m}; private the same
///   lanes        extents; blocks {body(indices)}
///   for          operands: low, high, inits; extents {step}; blocks {body(k, carried)}
///   while        operands: inits; blocks {condition(carried), body(carried)}
///   if           operands: condition; blocks {then, else}; types of results
///   reduce       operands: inits; extents; over_lanes, commutative;
///                blocks {leaf(indices), combine(2n)}
///   scan         the same, one extent; blocks {leaf, combine, each(index, prefixes)}
///   copy         operands: starts of destination, of source, pad; memories {dst, src};
///                extents: box; by: dimension of dst, then of src, for each of the box;
///                has_pad, clip
///   contract     operands: starts of c, a, b; memories {c, a, b}; extents {m, n, k};
///                transpose_a, transpose_b
///   yield        operands
// clang-format on
struct Node {
  OpCode op{};
  ElementType type{};
  ElementType from{};
  AtomicKind atomic{};
  bool over_lanes = false;
  bool commutative = false;
  bool has_pad = false;
  bool clip = false;
  bool transpose_a = false;
  bool transpose_b = false;
  std::vector<ValueId> operands;
  std::vector<ValueId> results;
  std::vector<BlockId> blocks;
  std::vector<MemoryId> memories;
  Dims extents;
  std::vector<uint32_t> by;
};

struct Block {
  std::vector<ValueId> arguments;
  std::vector<NodeId> nodes;  ///< The last node is a yield if the statement requires values.
};

struct Kernel {
  std::string name;
  std::string label;  ///< The source of the kernel: op names and location.
  ElementType index_type = ElementType::kS32;
  std::vector<Memory> memories;
  size_t buffer_count = 0;       ///< memories[0 … buffer_count) are parameters.
  std::vector<ValueId> scalars;  ///< Scalar parameters, in the order of the launch.
  std::vector<std::string> scalar_names;
  Dims grid;
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<Block> blocks;
  BlockId body = 0;  ///< Its arguments are the grid's indices.
  /// The line of each node in the text from which the kernel was parsed; empty for a kernel that
  /// was built.
  std::vector<uint32_t> lines;

  const Value& value(ValueId id) const { return values[id]; }
  const Node& node(NodeId id) const { return nodes[id]; }
  const Block& block(BlockId id) const { return blocks[id]; }
  const Memory& memory(MemoryId id) const { return memories[id]; }
  bool is_constant(ValueId id) const { return values[id].kind == ValueKind::kConstant; }
};

/// Whether structure, types, memories and constants are equal; ids, value names and lines are
/// ignored.
bool equal(const Kernel& a, const Kernel& b);

/// The indices of the element that a load, store or atomic accesses.
std::span<const ValueId> indices_of(const Node& access);

/// The first operands of the parts of `operands` of a copy or contract.
struct CopyOperands {
  const ValueId* destination;
  const ValueId* source;
  ValueId pad;  ///< kNone without one.
};
CopyOperands copy_operands(const Kernel& kernel, const Node& node);

}  // namespace tenon::kernel
