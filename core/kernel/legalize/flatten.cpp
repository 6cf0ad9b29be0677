// Turns memory into memory of one dimension with a linear index.
#include "core/kernel/ir/visitor.h"
#include "core/kernel/legalize/expr.h"
#include "core/kernel/legalize/passes.h"
#include "core/kernel/transform/rewriter.h"

namespace tenon::kernel {
namespace {

class Flattener : public Rewriter {
 public:
  explicit Flattener(const Kernel& kernel) : Rewriter(kernel), ranges_(kernel) {}

 private:
  Memory memory_for(const Memory& m) const override {
    Memory result = m;
    result.dims = {m.span()};
    result.strides = {};
    return result;
  }

  void node(const Node& n) override {
    if (!is<OnAccess>(n.op)) return copy_node(n);
    const Values at = {place(n)};
    const MemoryId m = memory(n.memories[0]);
    if (n.op == OpCode::kLoad) return set(n.results[0], to().load(m, at));
    const ValueId value = map(n.operands[0]);
    n.op == OpCode::kStore ? to().store(value, m, at) : to().atomic(n.atomic, value, m, at);
  }

  ValueId place(const Node& n) {
    const Memory& m = from().memory(n.memories[0]);
    const Dims strides = m.resolved_strides();
    const std::span<const ValueId> indices = indices_of(n);
    ValueId sum = to().index(0);
    for (size_t d = 0; d < strides.size(); ++d) {
      const ValueId index = bounded_index(to(), map(indices[d]), ranges_.of(indices[d]), m.dims[d]);
      sum = to().add(sum, to().mul(index, to().index(strides[d])));
    }
    return sum;
  }

  Ranges ranges_;
};

}  // namespace

Result<Kernel> flatten(const Kernel& kernel) {
  for (const Memory& m : kernel.memories) {
    if (m.space == Space::kPrivate) {
      return unimplemented("@{}: %{} is private memory, which has its lanes as dimensions",
                           kernel.name, m.name);
    }
    if (kernel.index_type == ElementType::kS32 && m.span() >> 31 != 0) {
      return unimplemented("@{}: %{} has too many elements for one index of s32", kernel.name,
                           m.name);
    }
  }
  return Flattener(kernel).run();
}

}  // namespace tenon::kernel
