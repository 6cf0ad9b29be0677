#include "core/kernel/legalize/tiles.h"

#include <algorithm>
#include <functional>

#include "core/kernel/ir/visitor.h"
#include "core/kernel/transform/rewriter.h"

namespace tenon::kernel {
namespace {

class TileExpander : public Rewriter {
 public:
  TileExpander(const Kernel& kernel, bool registers, const std::function<bool(const Node&)>& keeps)
      : Rewriter(kernel), registers_(registers), keeps_(keeps) {}

 private:
  void node(const Node& n) override {
    if (keeps_ && keeps_(n)) return copy_node(n);
    if (n.op == OpCode::kCopy) return copy(n);
    if (n.op == OpCode::kContract) return contract(n);
    copy_node(n);
  }

  ValueId offset(ValueId start, ValueId index) { return to().add(start, index); }

  /// Whether 0 <= index < size, for the dimensions along which the box runs.
  ValueId in_range(const Values& at, const Dims& dims, const uint32_t* by, size_t count) {
    ValueId all = to().pred(true);
    for (size_t d = 0; d < count; ++d) {
      const ValueId i = at[by[d]];
      const ValueId low = to().compare(OpCode::kGe, i, to().index(0));
      // A 32-bit index cannot reach the end of such a dimension.
      const bool endless = to().index_type() == ElementType::kS32 && dims[by[d]] >> 31 != 0;
      const ValueId high =
          endless ? to().pred(true) : to().compare(OpCode::kLt, i, to().index(dims[by[d]]));
      all = to().logical_and(all, to().logical_and(low, high));
    }
    return all;
  }

  void copy(const Node& n) {
    const MemoryId destination = memory(n.memories[0]);
    const MemoryId source = memory(n.memories[1]);
    const Dims& to_dims = from().memory(n.memories[0]).dims;
    const Dims& from_dims = from().memory(n.memories[1]).dims;
    const Values operands = map(n.operands);
    const auto split = operands.begin() + static_cast<std::ptrdiff_t>(to_dims.size());
    const auto end = split + static_cast<std::ptrdiff_t>(from_dims.size());
    const size_t rank = n.extents.size();
    to().lanes(n.extents, [&](const Values& box) {
      Values to_at(operands.begin(), split);
      Values from_at(split, end);
      for (size_t d = 0; d < rank; ++d) {
        to_at[n.by[d]] = offset(to_at[n.by[d]], box[d]);
        from_at[n.by[rank + d]] = offset(from_at[n.by[rank + d]], box[d]);
      }
      const auto move = [&] {
        ValueId value = kNone;
        if (n.has_pad) {
          value = to().if_else(
              in_range(from_at, from_dims, n.by.data() + rank, rank),
              [&] { return Values{to().load(source, from_at)}; },
              [&] { return Values{operands.back()}; })[0];
        } else {
          value = to().load(source, from_at);
        }
        to().store(value, destination, to_at);
      };
      if (n.clip) {
        to().if_then(in_range(to_at, to_dims, n.by.data(), rank), move);
      } else {
        move();
      }
    });
  }

  /// Element (row, column) of a scratch tile or buffer.
  ValueId element(MemoryId tile, Values start, ValueId row, ValueId column) {
    start[start.size() - 2] = offset(start[start.size() - 2], row);
    start.back() = offset(start.back(), column);
    return to().load(tile, start);
  }

  ValueId multiply_add(ValueId a, ValueId b, ValueId c, ElementType type) {
    const ValueId x = to().convert(a, type);
    const ValueId y = to().convert(b, type);
    return is_float(type) ? to().fma(x, y, c) : to().add(to().mul(x, y), c);
  }

  void contract(const Node& n) {
    const Memory& c_info = from().memory(n.memories[0]);
    const Values operands = map(n.operands);
    const bool is_private = c_info.space == Space::kPrivate;
    auto at = operands.begin();
    const auto take = [&](size_t count) {
      Values part(at, at + static_cast<std::ptrdiff_t>(count));
      at += static_cast<std::ptrdiff_t>(count);
      return part;
    };
    const Values c_start = take(is_private ? 2 : c_info.dims.size());
    const Values a_start = take(from().memory(n.memories[1]).dims.size());
    const Values b_start = take(from().memory(n.memories[2]).dims.size());
    const MemoryId c = memory(n.memories[0]);
    const MemoryId a = memory(n.memories[1]);
    const MemoryId b = memory(n.memories[2]);
    const auto product = [&](ValueId i, ValueId j, ValueId k, ValueId sum) {
      const ValueId x = n.transpose_a ? element(a, a_start, k, i) : element(a, a_start, i, k);
      const ValueId y = n.transpose_b ? element(b, b_start, j, k) : element(b, b_start, k, j);
      return multiply_add(x, y, sum, c_info.type);
    };
    // c at `place` += row i of a times column j of b.
    const auto accumulate = [&](const Values& place, ValueId i, ValueId j) {
      const Values sum = to().for_loop(to().index(0), to().index(n.extents[2]), 1,
                                       {to().load(c, place)}, [&](const Values& arguments) {
                                         return Values{product(i, j, arguments[0], arguments[1])};
                                       });
      to().store(sum[0], c, place);
    };
    if (!is_private) {
      to().lanes({n.extents[0], n.extents[1]}, [&](const Values& ij) {
        Values place = c_start;
        place[place.size() - 2] = offset(place[place.size() - 2], ij[0]);
        place.back() = offset(place.back(), ij[1]);
        accumulate(place, ij[0], ij[1]);
      });
      return;
    }
    to().lanes({c_info.dims[0], c_info.dims[1]}, [&](const Values& lane) {
      if (!registers_) return for_each_result(n, c_info, c_start, lane, accumulate);
      to().for_loop(to().index(0), to().index(n.extents[2]), 1, {}, [&](const Values& k) {
        for_each_result(n, c_info, c_start, lane, [&](const Values& place, ValueId i, ValueId j) {
          to().store(product(i, j, k[0], to().load(c, place)), c, place);
        });
        return Values{};
      });
    });
  }

  // Calls body(place in c, row, column) for the elements of the box that one lane owns: row i of
  // the tile lies in lane i / r at i mod r.
  void for_each_result(const Node& n, const Memory& c, const Values& start, const Values& lane,
                       const std::function<void(const Values&, ValueId, ValueId)>& body) {
    Builder& b = to();
    b.for_loop(b.index(0), b.index(c.dims[2]), 1, {}, [&](const Values& r) {
      b.for_loop(b.index(0), b.index(c.dims[3]), 1, {}, [&](const Values& s) {
        const ValueId row = b.sub(b.add(b.mul(lane[0], b.index(c.dims[2])), r[0]), start[0]);
        const ValueId column = b.sub(b.add(b.mul(lane[1], b.index(c.dims[3])), s[0]), start[1]);
        const auto inside = [&](ValueId i, int64_t size) {
          return b.logical_and(b.compare(OpCode::kGe, i, b.index(0)),
                               b.compare(OpCode::kLt, i, b.index(size)));
        };
        b.if_then(b.logical_and(inside(row, n.extents[0]), inside(column, n.extents[1])),
                  [&] { body({lane[0], lane[1], r[0], s[0]}, row, column); });
        return Values{};
      });
      return Values{};
    });
  }

  const bool registers_;
  const std::function<bool(const Node&)>& keeps_;
};

}  // namespace

Kernel expand_tiles(const Kernel& kernel, bool registers,
                    const std::function<bool(const Node&)>& keeps) {
  return TileExpander(kernel, registers, keeps).run();
}

bool covers_private_sums(const Kernel& kernel, const Node& contract) {
  const Memory& c = kernel.memory(contract.memories[0]);
  const auto is_zero = [&](ValueId start) {
    return kernel.is_constant(start) && kernel.value(start).bits == 0;
  };
  return c.space == Space::kPrivate && is_zero(contract.operands[0]) &&
         is_zero(contract.operands[1]) && contract.extents[0] == c.dims[0] * c.dims[2] &&
         contract.extents[1] == c.dims[1] * c.dims[3];
}

bool has_tiles(const Kernel& kernel) {
  return std::any_of(kernel.nodes.begin(), kernel.nodes.end(),
                     [](const Node& n) { return is<OnTile>(n.op); });
}

}  // namespace tenon::kernel
