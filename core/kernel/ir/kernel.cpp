#include "core/kernel/ir/kernel.h"

#include "core/kernel/text/text.h"

namespace tenon::kernel {

Dims Memory::resolved_strides() const {
  if (!strides.empty()) return strides;
  Dims result(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 1;) result[d - 1] = result[d] * dims[d];
  return result;
}

int64_t Memory::span() const {
  const Dims steps = resolved_strides();
  int64_t last = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 0) return 0;
    last += (dims[d] - 1) * steps[d];
  }
  return last + 1;
}

int64_t Memory::bytes() const {
  return packed ? (span() * bit_width(type) + 7) / 8 : Shape(type, {span()}).byte_size();
}

std::span<const ValueId> indices_of(const Node& access) {
  return std::span(access.operands).subspan(access.op == OpCode::kLoad ? 0 : 1);
}

CopyOperands copy_operands(const Kernel& kernel, const Node& node) {
  const size_t destination_rank = kernel.memory(node.memories[0]).dims.size();
  const size_t source_rank = kernel.memory(node.memories[1]).dims.size();
  const ValueId* first = node.operands.data();
  return {first, first + destination_rank,
          node.has_pad ? first[destination_rank + source_rank] : kNone};
}

bool equal(const Kernel& a, const Kernel& b) { return print(a) == print(b); }

}  // namespace tenon::kernel
