// Memory of one dimension, indexed by the place of an element.
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
    const size_t first = n.op == OpCode::kLoad ? 0 : 1;
    switch (n.op) {
      case OpCode::kLoad:
        return set(n.results[0], to().load(memory(n.memories[0]), {place(n, first)}));
      case OpCode::kStore:
        return to().store(map(n.operands[0]), memory(n.memories[0]), {place(n, first)});
      case OpCode::kAtomic:
        return to().atomic(n.atomic, map(n.operands[0]), memory(n.memories[0]), {place(n, first)});
      default:
        copy_node(n);
    }
  }

  ValueId place(const Node& n, size_t first) {
    const Memory& m = from().memory(n.memories[0]);
    const Dims strides = m.resolved_strides();
    ValueId sum = to().index(0);
    for (size_t d = 0; d < strides.size(); ++d) {
      const ValueId index = bounded_index(to(), map(n.operands[first + d]),
                                          ranges_.of(n.operands[first + d]), m.dims[d]);
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
