// hlo/registry/: ties the rows of the op table to the functions that they name.
//
// The op table with the functions that its rows name. The folder stands above those that define
// them, so that hlo/ops knows of no other: it declares op_info() and all_ops(), defined here.

#include "hlo/decomposition/decomposition.h"
#include "hlo/inference/infer.h"
#include "hlo/ops/ops.h"

namespace tenon::hlo {
namespace {

constexpr OpInfo kOps[] = {
#define TENON_OP(id, op_name, ...) OpInfo{.code = OpCode::k##id, .name = op_name, __VA_ARGS__},
#include "hlo/ops/op_table.inc"
#undef TENON_OP
};

}  // namespace

const OpInfo& op_info(OpCode code) { return kOps[static_cast<size_t>(code)]; }
std::span<const OpInfo> all_ops() { return kOps; }

}  // namespace tenon::hlo
