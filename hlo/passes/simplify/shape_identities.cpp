#include <algorithm>
#include <utility>

#include "hlo/passes/simplify/constants.h"
#include "hlo/passes/simplify/identities.h"

namespace tenon::hlo {
namespace {

bool all_are(const I64s& list, int64_t value) {
  return std::ranges::all_of(list, [&](int64_t each) { return each == value; });
}

// 0, 1, 2 …
bool counts(const I64s& list) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

// The instruction behind an operand, if it is one of the same op.
const Instruction* same_below(const Instruction& op) {
  const Instruction* inner = op.operand(0).def;
  return inner->code() == op.code() && is_plain(inner->operand_type(0)) ? inner : nullptr;
}

// An op whose result has its operand's type does nothing if `nothing` says so.
Value operand_if(const Instruction& op, bool nothing) {
  return nothing && op.operand_type(0) == op.result_type() ? op.operand(0) : Value();
}

// --- transpose, reshape, broadcast

Value transpose_nothing(Builder&, Instruction& op) {
  return operand_if(op, counts(op.i64s(AttrKey::permutation)));
}
Value transpose_twice(Builder& b, Instruction& op) {
  const Instruction* inner = same_below(op);
  if (inner == nullptr) return {};
  I64s both;
  for (const int64_t d : op.i64s(AttrKey::permutation)) {
    both.push_back(inner->i64s(AttrKey::permutation)[static_cast<size_t>(d)]);
  }
  return b.transpose(inner->operand(0), std::move(both));
}
Value reshape_nothing(Builder&, Instruction& op) { return operand_if(op, true); }
Value reshape_twice(Builder& b, Instruction& op) {
  const Instruction* inner = same_below(op);
  return inner != nullptr ? b.reshape(inner->operand(0), op.result_type().dims()) : Value();
}
Value broadcast_nothing(Builder&, Instruction& op) {
  return operand_if(op, counts(op.i64s(AttrKey::broadcast_dimensions)));
}
Value broadcast_twice(Builder& b, Instruction& op) {
  const Instruction* inner = same_below(op);
  if (inner == nullptr) return {};
  I64s both;
  for (const int64_t d : inner->i64s(AttrKey::broadcast_dimensions)) {
    both.push_back(op.i64s(AttrKey::broadcast_dimensions)[static_cast<size_t>(d)]);
  }
  return b.broadcast_in_dim(inner->operand(0), op.result_type().dims(), std::move(both));
}

// --- slice, pad, concatenate

Value slice_nothing(Builder&, Instruction& op) {
  return operand_if(op, all_are(op.i64s(AttrKey::strides), 1));
}
Value slice_twice(Builder& b, Instruction& op) {
  const Instruction* inner = same_below(op);
  if (inner == nullptr) return {};
  const I64s& first_start = inner->i64s(AttrKey::start_indices);
  const I64s& first_stride = inner->i64s(AttrKey::strides);
  const I64s& start = op.i64s(AttrKey::start_indices);
  const I64s& stride = op.i64s(AttrKey::strides);
  I64s starts, limits, strides;
  for (size_t d = 0; d < start.size(); ++d) {
    const int64_t size = op.result_type().dims()[d];
    // The last element is where both find it; a stride to no other element means nothing.
    starts.push_back(size == 0 ? 0 : first_start[d] + start[d] * first_stride[d]);
    strides.push_back(size > 1 ? first_stride[d] * stride[d] : 1);
    limits.push_back(size == 0 ? 0 : starts[d] + (size - 1) * strides[d] + 1);
  }
  return b.slice(inner->operand(0), std::move(starts), std::move(limits), std::move(strides));
}
Value pad_nothing(Builder&, Instruction& op) {
  return operand_if(op, all_are(op.i64s(AttrKey::edge_padding_low), 0) &&
                            all_are(op.i64s(AttrKey::edge_padding_high), 0) &&
                            all_are(op.i64s(AttrKey::interior_padding), 0));
}
Value concatenate_one(Builder&, Instruction& op) { return operand_if(op, op.operand_count() == 1); }
Value concatenate_empty(Builder& b, Instruction& op) {
  const auto axis = static_cast<size_t>(op.integer(AttrKey::dimension));
  std::vector<Value> parts;
  for (const Value part : op.operands()) {
    if (part.type().dims()[axis] != 0) parts.push_back(part);
  }
  if (parts.empty() || parts.size() == op.operand_count()) return {};
  return b.concatenate(parts, static_cast<int64_t>(axis));
}

// --- dynamic_slice, dynamic_update_slice

Value dynamic_slice_whole(Builder&, Instruction& op) { return operand_if(op, true); }
Value dynamic_slice_of_known(Builder& b, Instruction& op) {
  const Dims& dims = op.operand_type(0).dims();
  I64s starts;
  I64s limits;
  for (size_t d = 0; d < dims.size(); ++d) {
    const Literal* start = splat_of(op.operand(d + 1));
    const int64_t size = op.result_type().dims()[d];
    if (start == nullptr) return {};
    // Of u64 from 2^63 on the number reads as negative.
    const int64_t number = start->get_integer(0);
    const bool huge = number < 0 && start->element_type() == ElementType::kU64;
    starts.push_back(huge ? dims[d] - size : std::clamp<int64_t>(number, 0, dims[d] - size));
    limits.push_back(starts[d] + size);
  }
  return b.slice(op.operand(0), std::move(starts), std::move(limits), I64s(dims.size(), 1));
}
Value update_whole(Builder&, Instruction& op) {
  return op.operand_type(1) == op.operand_type(0) ? op.operand(1) : Value();
}

// --- reverse

Value reverse_nothing(Builder&, Instruction& op) {
  return operand_if(op, std::ranges::all_of(op.i64s(AttrKey::dimensions), [&](int64_t d) {
                      return op.result_type().dims()[static_cast<size_t>(d)] <= 1;
                    }));
}
Value reverse_twice(Builder&, Instruction& op) {
  const Instruction* inner = same_below(op);
  if (inner == nullptr) return {};
  I64s first = inner->i64s(AttrKey::dimensions);
  I64s second = op.i64s(AttrKey::dimensions);
  std::ranges::sort(first);
  std::ranges::sort(second);
  return first == second ? inner->operand(0) : Value();
}

// --- Parts of what has been put together

Value element_of_tuple(Builder&, Instruction& op) {
  const Instruction& inner = *op.operand(0).def;
  if (inner.code() != OpCode::kTuple) return {};
  return inner.operand(static_cast<size_t>(op.integer(AttrKey::index)));
}
Value real_of_complex(Builder&, Instruction& op) {
  const Instruction& inner = *op.operand(0).def;
  return inner.code() == OpCode::kComplex ? inner.operand(0) : Value();
}
Value imag_of_complex(Builder&, Instruction& op) {
  const Instruction& inner = *op.operand(0).def;
  return inner.code() == OpCode::kComplex ? inner.operand(1) : Value();
}
Value complex_of_parts(Builder&, Instruction& op) {
  const Instruction& re = *op.operand(0).def;
  const Instruction& im = *op.operand(1).def;
  const bool parts =
      re.code() == OpCode::kReal && im.code() == OpCode::kImag && re.operand(0) == im.operand(0);
  return parts ? re.operand(0) : Value();
}

// clang-format off
constexpr Identity kIdentities[] = {
    {OpCode::kTranspose, "transpose(x) = x", "of dimensions in their order", transpose_nothing},
    {OpCode::kTranspose, "transpose(transpose(x)) = transpose(x)", "permutations compose", transpose_twice},
    {OpCode::kReshape, "reshape(x) = x", "to its own shape", reshape_nothing},
    {OpCode::kReshape, "reshape(reshape(x)) = reshape(x)", "the order of elements is the same", reshape_twice},
    {OpCode::kBroadcastInDim, "broadcast(x) = x", "to its own shape", broadcast_nothing},
    {OpCode::kBroadcastInDim, "broadcast(broadcast(x)) = broadcast(x)", "maps of dimensions compose", broadcast_twice},
    {OpCode::kSlice, "slice(x) = x", "of all elements", slice_nothing},
    {OpCode::kSlice, "slice(slice(x)) = slice(x)", "starts and strides compose", slice_twice},
    {OpCode::kPad, "pad(x) = x", "with nothing", pad_nothing},
    {OpCode::kConcatenate, "concatenate(x) = x", "of one", concatenate_one},
    {OpCode::kConcatenate, "concatenate(x, empty, y) = concatenate(x, y)", "what is empty has no element", concatenate_empty},
    {OpCode::kDynamicSlice, "dynamic_slice(x) = x", "of all elements: the start is clamped to 0", dynamic_slice_whole},
    {OpCode::kDynamicSlice, "dynamic_slice(x, c) = slice(x)", "from a known start, clamped", dynamic_slice_of_known},
    {OpCode::kDynamicUpdateSlice, "dynamic_update_slice(x, y) = y", "of all elements: the start is clamped to 0", update_whole},
    {OpCode::kReverse, "reverse(x) = x", "of dimensions of one element, or none", reverse_nothing},
    {OpCode::kReverse, "reverse(reverse(x)) = x", "of the same dimensions", reverse_twice},
    {OpCode::kGetTupleElement, "element(tuple(x, y), 0) = x", "as it was put together", element_of_tuple},
    {OpCode::kReal, "real(complex(x, y)) = x", "as it was put together", real_of_complex},
    {OpCode::kImag, "imag(complex(x, y)) = y", "as it was put together", imag_of_complex},
    {OpCode::kComplex, "complex(real(z), imag(z)) = z", "as it was taken apart", complex_of_parts},
};
// clang-format on

}  // namespace

std::span<const Identity> shape_identities() { return kIdentities; }

}  // namespace tenon::hlo
