#include "core/kernel/ir/ops.h"

#include <array>

namespace tenon::kernel {
namespace {

constexpr ScalarOp kScalarOps[] = {
#define KERNEL_OP(id, name, operands, types, result, ulp, summary) \
  {OpCode::k##id, name, operands, static_cast<TypeSet>(types), ResultType::result, ulp, summary},
#include "core/kernel/ir/ops.inc"
#undef KERNEL_OP
};
static_assert(std::size(kScalarOps) == kScalarOpCount);

constexpr StatementOp kStatementOps[] = {
#define KERNEL_STATEMENT(id, name, group, memories, blocks) {OpCode::k##id, name, memories, blocks},
#include "core/kernel/ir/statements.inc"
#undef KERNEL_STATEMENT
};
static_assert(std::size(kStatementOps) == kOpCount - kScalarOpCount);

}  // namespace

bool contains(TypeSet set, ElementType type) {
  if (is_pred(type)) return (set & kPreds) != 0;
  if (is_integer(type)) return (set & kIntegers) != 0;
  return is_float(type) && (set & kFloats) != 0;
}

const ScalarOp& scalar_op(OpCode code) { return kScalarOps[static_cast<size_t>(code)]; }

const StatementOp& statement_op(OpCode code) {
  return kStatementOps[static_cast<int>(code) - kScalarOpCount];
}

std::string_view op_name(OpCode code) {
  return is_scalar_op(code) ? scalar_op(code).name : statement_op(code).name;
}

std::optional<OpCode> op_from_name(std::string_view name) {
  for (int i = 0; i < kOpCount; ++i) {
    if (op_name(static_cast<OpCode>(i)) == name) return static_cast<OpCode>(i);
  }
  return std::nullopt;
}

bool is_commutative(OpCode code) {
  switch (code) {
    case OpCode::kAdd:
    case OpCode::kMul:
    case OpCode::kMulHi:
    case OpCode::kMin:
    case OpCode::kMax:
    case OpCode::kAnd:
    case OpCode::kOr:
    case OpCode::kXor:
    case OpCode::kEq:
    case OpCode::kNe:
      return true;
    default:
      return false;
  }
}

OpCode combination_of(AtomicKind kind) {
  static constexpr OpCode kCodes[] = {OpCode::kAdd, OpCode::kMin, OpCode::kMax,
                                      OpCode::kAnd, OpCode::kOr,  OpCode::kXor};
  return kCodes[static_cast<size_t>(kind)];
}

}  // namespace tenon::kernel
