// The operations and statements of the kernel IR. Operations on scalars are declared in ops.inc,
// one row each; statements, which have blocks or access memory, in statements.inc.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/types/element_type.h"

namespace tenon::kernel {

enum class OpCode : uint8_t {
#define KERNEL_OP(id, ...) k##id,
#include "core/kernel/ir/ops.inc"
#undef KERNEL_OP
#define KERNEL_STATEMENT(id, ...) k##id,
#include "core/kernel/ir/statements.inc"
#undef KERNEL_STATEMENT
};
inline constexpr int kScalarOpCount = static_cast<int>(OpCode::kLoad);
inline constexpr int kOpCount = static_cast<int>(OpCode::kYield) + 1;

/// The set of types that are allowed for T, the type after the colon.
enum TypeSet : uint8_t {
  kPreds = 1,
  kIntegers = 2,
  kFloats = 4,
  kNumbers = kIntegers | kFloats,
  kAnyType = kPreds | kNumbers,
};
bool contains(TypeSet set, ElementType type);

enum class ResultType : uint8_t {
  kSame,    ///< T
  kPred,    ///< pred
  kStated,  ///< A second type: `convert %x : T -> U`.
};

/// A row of ops.inc.
struct ScalarOp {
  OpCode code;
  std::string_view name;
  uint8_t operands;
  TypeSet types;
  ResultType result;
  uint8_t ulp_bound;  ///< Maximum error in units in the last place; 0: exactly rounded.
  std::string_view summary;
};

/// A row of statements.inc.
struct StatementOp {
  OpCode code;
  std::string_view name;
  uint8_t memories;
  uint8_t blocks;
};

inline bool is_scalar_op(OpCode code) { return static_cast<int>(code) < kScalarOpCount; }
/// The row of an operation on scalars.
const ScalarOp& scalar_op(OpCode code);
/// The row of a statement.
const StatementOp& statement_op(OpCode code);
/// "add", "lanes" …
std::string_view op_name(OpCode code);
std::optional<OpCode> op_from_name(std::string_view name);

constexpr bool is_comparison(OpCode code) { return code >= OpCode::kEq && code <= OpCode::kGe; }
constexpr bool is_math(OpCode code) { return code >= OpCode::kExp && code <= OpCode::kPow; }
/// Whether swapping the operands never changes a bit.
bool is_commutative(OpCode code);

/// The combinations of an atomic.
enum class AtomicKind : uint8_t { kAdd, kMin, kMax, kAnd, kOr, kXor };
OpCode combination_of(AtomicKind kind);

}  // namespace tenon::kernel
