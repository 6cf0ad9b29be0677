#include "backends/gpu/tiles.h"

#include <functional>

#include "core/kernel/legalize/tiles.h"
#include "core/kernel/rewriter.h"

namespace tenon::gpu {
namespace {

using kernel::Builder;
using kernel::Memory;
using kernel::MemoryId;
using kernel::Node;
using kernel::OpCode;
using kernel::ValueId;
using kernel::Values;

class ProductExpander : public kernel::Rewriter {
 public:
  using Rewriter::Rewriter;

 private:
  void node(const Node& n) override {
    const bool own =
        n.op == OpCode::kContract && from().memory(n.memories[0]).space == kernel::Space::kPrivate;
    if (!own) return copy_node(n);
    product(n);
  }

  void product(const Node& n) {
    const Memory& c = from().memory(n.memories[0]);
    const Values operands = map(n.operands);
    const size_t a_rank = from().memory(n.memories[1]).dims.size();
    const Values c_start(operands.begin(), operands.begin() + 2);
    const auto split = operands.begin() + 2 + static_cast<std::ptrdiff_t>(a_rank);
    const Values a_start(operands.begin() + 2, split);
    const Values b_start(split, operands.end());
    Builder& b = to();
    const auto serially = [&](int64_t count, const std::function<void(ValueId)>& body) {
      b.for_loop(b.index(0), b.index(count), 1, {}, [&](const Values& i) {
        body(i[0]);
        return Values{};
      });
    };
    b.lanes({c.dims[0], c.dims[1]}, [&](const Values& lane) {
      serially(n.extents[2], [&](ValueId k) {
        serially(c.dims[2], [&](ValueId r) {
          serially(c.dims[3], [&](ValueId s) {
            const ValueId row = b.sub(b.add(b.mul(lane[0], b.index(c.dims[2])), r), c_start[0]);
            const ValueId column = b.sub(b.add(b.mul(lane[1], b.index(c.dims[3])), s), c_start[1]);
            b.if_then(b.logical_and(inside(row, n.extents[0]), inside(column, n.extents[1])), [&] {
              const ValueId x =
                  element(n.memories[1], a_start, n.transpose_a ? k : row, n.transpose_a ? row : k);
              const ValueId y = element(n.memories[2], b_start, n.transpose_b ? column : k,
                                        n.transpose_b ? k : column);
              add_product(n, {lane[0], lane[1], r, s}, x, y);
            });
          });
        });
      });
    });
  }

  ValueId inside(ValueId i, int64_t size) {
    Builder& b = to();
    return b.logical_and(b.compare(OpCode::kGe, i, b.index(0)),
                         b.compare(OpCode::kLt, i, b.index(size)));
  }

  ValueId element(MemoryId tile, Values at, ValueId row, ValueId column) {
    at[at.size() - 2] = to().add(at[at.size() - 2], row);
    at.back() = to().add(at.back(), column);
    return to().load(memory(tile), at);
  }

  void add_product(const Node& n, const Values& place, ValueId x, ValueId y) {
    Builder& b = to();
    const MemoryId sums = memory(n.memories[0]);
    const ElementType type = from().memory(n.memories[0]).type;
    const ValueId sum = b.load(sums, place);
    x = b.convert(x, type);
    y = b.convert(y, type);
    b.store(is_float(type) ? b.fma(x, y, sum) : b.add(b.mul(x, y), sum), sums, place);
  }
};

}  // namespace

kernel::Kernel expand_tiles_for_threads(const kernel::Kernel& kernel) {
  if (!kernel::has_tiles(kernel)) return kernel;
  return kernel::expand_tiles(ProductExpander(kernel).run());
}

}  // namespace tenon::gpu
